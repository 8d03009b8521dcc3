//! `landfall config`: the settings in force, here or in a running server.

use anyhow::Context;
use serde_json::{Map, Value, json};

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::words::printable;
use landfall_server::config::{Config, GROUPS};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show what a running server uses, not what a server started here would use. Without a URL: LANDFALL_URL, otherwise
    /// this machine at PORT. Needs an administrator's token.
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    server: Option<String>,
    /// The token to send; otherwise LANDFALL_TOKEN, otherwise one is made with the server's secret, where it is at hand.
    #[arg(long, value_name = "TOKEN", requires = "server")]
    token: Option<String>,
}

struct Group {
    title: String,
    settings: Vec<Setting>,
}

struct Setting {
    name: String,
    value: String,
    source: String,
}

pub async fn run(args: Args, as_json: bool) -> anyhow::Result<Outcome> {
    let groups = match args.server {
        Some(server) => {
            let client = Client::connect(&Connection::new(Some(server), args.token))?;
            let answer = client.settings().await?;
            of_server(&answer).with_context(|| format!("{} sent no settings", client.server()))?
        }
        None => of_this_folder(&crate::settings()?),
    };
    if as_json {
        println!("{}", as_object(&groups));
    } else {
        print!("{}", as_text(&groups));
    }
    Ok(Outcome::Good)
}

fn of_this_folder(config: &Config) -> Vec<Group> {
    for warning in &config.warnings {
        eprintln!("landfall: {}", printable(&warning.message));
    }
    let groups = GROUPS.iter().map(|group| Group {
        title: group.title.to_owned(),
        settings: config
            .settings_of(group)
            .map(|(setting, _)| Setting {
                name: setting.name.to_owned(),
                value: setting.value.clone(),
                source: setting.source.name().to_owned(),
            })
            .collect(),
    });
    groups.collect()
}

fn of_server(answer: &Value) -> Option<Vec<Group>> {
    let text = |value: &Value, name: &str| Some(value[name].as_str()?.to_owned());
    let setting = |value: &Value| {
        Some(Setting {
            name: text(value, "name")?,
            value: text(value, "value")?,
            source: text(value, "source")?,
        })
    };
    let group = |value: &Value| {
        let settings = value["settings"].as_array()?.iter().map(setting).collect::<Option<_>>()?;
        Some(Group { title: text(value, "name")?, settings })
    };
    answer["groups"].as_array()?.iter().map(group).collect()
}

fn as_object(groups: &[Group]) -> Value {
    let mut object = Map::new();
    for group in groups {
        for setting in &group.settings {
            let shown = json!({ "value": setting.value, "source": setting.source, "group": group.title });
            object.insert(setting.name.clone(), shown);
        }
    }
    Value::Object(object)
}

fn as_text(groups: &[Group]) -> String {
    let all = || groups.iter().flat_map(|group| &group.settings);
    let names = all().map(|setting| setting.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (number, group) in groups.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        text.push_str(&format!("{}\n", printable(&group.title)));
        for setting in &group.settings {
            let (name, value) = (printable(&setting.name), printable(&setting.value));
            text.push_str(&format!("  {name:<names$}  {value:<44} {}\n", printable(&setting.source)));
        }
    }
    text
}
