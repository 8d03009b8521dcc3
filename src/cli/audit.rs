//! `landfall audit`: whether the books balance.

use serde_json::json;

use super::{Outcome, logs};
use crate::audit::audit;
use crate::blobs::Blobs;
use crate::clock::{Clock, to_delta};
use crate::config::Config;
use crate::db::Db;
use crate::index;

pub async fn run(config: Config, as_json: bool) -> anyhow::Result<Outcome> {
    logs::start(&config);
    let db = Db::open(&config.database_url, config.database_connections).await?;
    index::install(&db).await?;
    let blobs = Blobs::open(config.blobs_dir.clone()).await?;
    let oldest_heartbeat = Clock::System.now() - to_delta(config.queue.heartbeat_expiry);
    let report = audit(&db, &blobs, oldest_heartbeat).await?;
    if as_json {
        println!("{}", json!(report));
    } else {
        for finding in &report.findings {
            println!("{:<28} {}", finding.invariant, finding.what);
        }
        let (files, blobs, found) = (report.files, report.blobs, report.findings.len());
        println!(
            "{files} files, {blobs} blobs: {}",
            if found == 0 { "all is well".to_owned() } else { format!("{found} things are wrong") }
        );
    }
    Ok(if report.findings.is_empty() { Outcome::Good } else { Outcome::Bad })
}
