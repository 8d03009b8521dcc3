//! `landfall storage`: shows which database the storage belongs to, or changes it.
//!
//! It opens both itself, because a server does not start if they do not belong together.

use serde_json::json;

use crate::{Outcome, logs};
use landfall_server::blobs::Blobs;
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
}

pub async fn run(config: Config, args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    logs::start(&config);
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
