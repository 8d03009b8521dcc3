//! A cleanup of a million blobs without a file: how long it takes, and how much memory.

use std::time::Instant;

use landfall_core::clock::Clock;
use landfall_server::blobs::Blobs;
use landfall_server::config::{Config, Variables};
use landfall_server::recovery::Sweep;
use landfall_server::recovery::orphan_cleanup::OrphanCleanup;
use landfall_server::recovery::ownership::Ownership;

use super::databases::{Fresh, Kind};
use super::figures::Figures;
use super::measure::peak_memory;

pub async fn run(blobs: i64) -> anyhow::Result<Figures> {
    let fresh = Fresh::create(Kind::Sqlite, "orphans").await?;
    let db = fresh.open(4).await?;
    let root = fresh.path().join("blobs");
    let storage = Ownership { db: db.clone(), blobs: Blobs::open(root.clone()).await? };
    storage.keep().await?;
    for number in 0..blobs {
        // Each blob is where the only upload of a file would be, without its own folder.
        let folder = root.join("blobs").join(format!("{:02x}", number % 256));
        if number < 256 {
            std::fs::create_dir_all(&folder)?;
        }
        std::fs::File::create(
            folder.join(uuid::Uuid::from_u128(number.unsigned_abs().into()).simple().to_string()),
        )?;
    }
    let mut variables = Variables::default();
    variables.set("ORPHAN_MIN_AGE_MS", "1");
    let config = Config::from_variables(variables)?.cleaning;
    // The cleanup refuses to remove so many orphans without force.
    let job = OrphanCleanup {
        db: db.clone(),
        blobs: storage.blobs.clone(),
        ownership: storage,
        config,
        force: true,
    };
    let (before, began) = (peak_memory(), Instant::now());
    let report = job.sweep_once(Clock::System.now() + chrono::TimeDelta::seconds(1)).await?;
    let (took, grown) = (began.elapsed(), peak_memory() - before);
    let deleted = report.metrics["orphanBlobs"]["deleted"].as_i64();
    anyhow::ensure!(deleted == Some(blobs) && report.errors.is_empty(), "{report:?}");
    let mut figures = Figures::default();
    figures.add(format!("orphans: s to remove {blobs} blobs"), took.as_secs_f64());
    figures.add("orphans: MiB that memory grew by".to_owned(), grown);
    fresh.remove(db).await?;
    Ok(figures)
}
