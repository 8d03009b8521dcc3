//! `landfall config`: the settings in force, here or in a running server.

use serde_json::{Map, Value, json};

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::format::printable;
use landfall_api::settings::SettingsGroup;
use landfall_server::http::settings;

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

pub async fn run(args: Args, as_json: bool) -> anyhow::Result<Outcome> {
    let settings = match args.server {
        Some(server) => Client::connect(&Connection::new(Some(server), args.token))?.settings().await?,
        None => {
            let config = crate::settings()?;
            for warning in &config.warnings {
                eprintln!("landfall: {}", printable(&warning.message));
            }
            settings::view(&config)
        }
    };
    if as_json {
        println!("{}", as_object(&settings.groups));
    } else {
        print!("{}", as_text(&settings.groups));
    }
    Ok(Outcome::Good)
}

fn as_object(groups: &[SettingsGroup]) -> Value {
    let mut object = Map::new();
    for group in groups {
        for setting in &group.settings {
            let shown = json!({ "value": setting.value, "source": setting.source, "group": group.name });
            object.insert(setting.name.clone(), shown);
        }
    }
    Value::Object(object)
}

fn as_text(groups: &[SettingsGroup]) -> String {
    let all = || groups.iter().flat_map(|group| &group.settings);
    let names = all().map(|setting| setting.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (number, group) in groups.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        text.push_str(&format!("{}\n", printable(&group.name)));
        for setting in &group.settings {
            let (name, value) = (printable(&setting.name), printable(&setting.value));
            text.push_str(&format!("  {name:<names$}  {value:<44} {}\n", printable(&setting.source)));
        }
    }
    text
}
