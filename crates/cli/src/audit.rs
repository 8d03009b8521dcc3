//! `landfall audit`: checks that rows, counts, blobs and index agree; `--fix` repairs what is safe to repair.

use serde_json::json;

use crate::format::count;
use crate::{Outcome, logs};
use landfall_core::clock::{Clock, to_delta};
use landfall_server::audit::{Fixed, Report, audit, fix};
use landfall_server::blobs::Blobs;
use landfall_server::config::Config;
use landfall_server::content::index;
use landfall_server::recovery::ownership::Ownership;
use landfall_store::Db;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Fix what is safe to fix, then report what is left. Servers may run meanwhile.
    #[arg(long)]
    fix: bool,
    /// Remove any number of blobs that belong to no file.
    #[arg(long, requires = "fix")]
    force: bool,
}

pub async fn run(config: Config, args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    logs::start(&config);
    let db = Db::open(&config.database_url, config.database_connections).await?;
    index::install(&db).await?;
    let blobs = Blobs::connect(&config.storage).await?;
    let now = db.clock(Clock::System).await?.now();
    let oldest_heartbeat = now - to_delta(config.queue.liveness.heartbeat_expiry);
    let fixed = if args.fix {
        let written_before = now - to_delta(config.cleaning.orphan_min_age);
        let storage = Ownership { db: db.clone(), blobs: blobs.clone() };
        fix(&storage, oldest_heartbeat, written_before, args.force, now).await?
    } else {
        Fixed::default()
    };
    let Fixed { findings: fixed, held_back } = fixed;
    let report = Report { fixed, held_back, ..audit(&db, &blobs, oldest_heartbeat).await? };
    if as_json {
        println!("{}", json!(report));
    } else {
        print(&report, args.fix);
    }
    Ok(if report.findings.is_empty() { Outcome::Good } else { Outcome::Bad })
}

fn print(report: &Report, fixed: bool) {
    for fixed in &report.fixed {
        println!("fixed: {:<28} {}", fixed.invariant, fixed.what);
    }
    for finding in &report.findings {
        println!("{:<28} {}", finding.invariant, finding.what);
    }
    if let Some(why) = &report.held_back {
        println!("not fixed: {why} (or `landfall audit --fix --force`)");
    }
    let found = report.findings.len();
    let problems = count(found, "problem");
    let verdict = match (found, fixed) {
        (0, _) => "all is well".to_owned(),
        (_, false) => format!("{problems}; `landfall audit --fix` fixes what is safe to fix"),
        (_, true) => format!("{problems} that a person must look at"),
    };
    println!("{} files, {} blobs: {verdict}", report.files, report.blobs);
}
