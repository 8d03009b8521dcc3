//! `landfall storage`: shows which database the storage belongs to, or changes it, and tries whether the storage works.
//!
//! It opens both itself, because a server does not start if they do not belong together.

use serde_json::json;

use crate::{Outcome, logs};
use landfall_server::blobs::Blobs;
use landfall_server::blobs::trial::{Audience, Trial, Verdict};
use landfall_server::config::Config;
use landfall_server::recovery::ownership::{Ownership, Standing};
use landfall_server::recovery::restores;
use landfall_store::Db;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show whether the storage belongs to this database.
    Show,
    /// Assign the storage to this database. From then on, blobs that this database does not know are removed.
    Adopt,
    /// Say that the database was restored from a backup, where Landfall cannot see that by itself (a snapshot of a whole
    /// disk, for example). Clients that follow events are told to load the current state.
    Restored,
    /// Try everything that Landfall needs of the storage, and say what is wrong. Exits with 1 if something is.
    Check(Pages),
    /// Print the rules that a bucket needs for uploads straight from a browser (CORS), or set them.
    Cors {
        #[command(flatten)]
        pages: Pages,
        /// Set the rules. Those for other origins stay.
        #[arg(long)]
        set: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Pages {
    /// The origin of a page that sends files, like https://app.example.com; may be given more than once. Without it, that of
    /// PUBLIC_URL.
    #[arg(long = "origin", value_name = "ORIGIN", value_parser = origin)]
    origins: Vec<String>,
}

impl Pages {
    fn origins(&self, config: &Config) -> Vec<String> {
        if !self.origins.is_empty() {
            return self.origins.clone();
        }
        let public = config.http.public_url.as_deref().and_then(|url| url::Url::parse(url).ok());
        public.map(|url| url.origin().ascii_serialization()).into_iter().collect()
    }
}

fn origin(text: &str) -> Result<String, String> {
    let url = url::Url::parse(text).map_err(|error| error.to_string())?;
    let origin = url.origin();
    if !origin.is_tuple() || !["", "/"].contains(&url.path()) || url.query().is_some() {
        return Err(
            "an origin is a scheme, a host and perhaps a port, like https://app.example.com".to_owned()
        );
    }
    Ok(origin.ascii_serialization())
}

pub async fn run(config: Config, args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    logs::start(&config);
    match &args.command {
        Command::Check(pages) => return check(&config, pages.origins(&config), as_json).await,
        Command::Cors { pages, set } => return cors(&config, &pages.origins(&config), *set, as_json).await,
        Command::Show | Command::Adopt | Command::Restored => {}
    }
    let db = Db::open(&config.database_url, config.database_connections).await?;
    let blobs = Blobs::connect(&config.storage).await?;
    let ownership = Ownership { db: db.clone(), blobs };
    let adopt = matches!(args.command, Command::Adopt);
    let before = if adopt { Some(ownership.adopt().await?) } else { None };
    let standing = ownership.standing().await?;
    if matches!(args.command, Command::Restored) {
        restores::report(&db, &standing).await?;
    }
    db.close().await;
    if as_json {
        let before = before.as_ref().map(Standing::name);
        println!(
            "{}",
            json!({ "standing": standing.name(), "message": standing.to_string(), "before": before })
        );
    } else {
        println!("{standing}.");
    }
    Ok(if standing.may_be_cleaned() { Outcome::Good } else { Outcome::Bad })
}

async fn check(config: &Config, origins: Vec<String>, as_json: bool) -> anyhow::Result<Outcome> {
    let blobs = Blobs::connect(&config.storage).await?;
    let audience = Audience { is_direct: config.intake.is_direct, origins };
    let trials = blobs.try_everything(&audience).await;
    let has_failed = trials.iter().any(|trial| matches!(trial.verdict, Verdict::Failed(_)));
    if as_json {
        let shown = |Trial { name, verdict }: &Trial| json!({ "check": name, "result": verdict.name(), "message": verdict.message() });
        let checks: Vec<_> = trials.iter().map(shown).collect();
        println!("{}", json!({ "passed": !has_failed, "checks": checks }));
    } else {
        for Trial { name, verdict } in &trials {
            let message = verdict.message().map(|message| format!(": {message}")).unwrap_or_default();
            println!("{name:<16}{}{message}", verdict.name());
        }
    }
    Ok(if has_failed { Outcome::Bad } else { Outcome::Good })
}

async fn cors(config: &Config, origins: &[String], set: bool, as_json: bool) -> anyhow::Result<Outcome> {
    anyhow::ensure!(!origins.is_empty(), "name the page with --origin, or set PUBLIC_URL");
    let blobs = Blobs::connect(&config.storage).await?;
    let rules = blobs.cors_rules(origins);
    let rules = rules.ok_or_else(|| anyhow::anyhow!("the storage is a folder: it needs no such rules"))?;
    if !set {
        println!("{}", serde_json::to_string_pretty(&rules)?);
        return Ok(Outcome::Good);
    }
    blobs.set_cors(origins).await?;
    if as_json {
        println!("{}", json!({ "set": rules }));
    } else {
        println!("The store now lets pages of {} send files.", origins.join(", "));
    }
    Ok(Outcome::Good)
}
