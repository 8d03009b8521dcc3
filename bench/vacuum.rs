//! Whether PostgreSQL cleans up as fast as files leave dead rows behind: flows one batch after the other, beside many finished
//! files, with the server's own settings for autovacuum.
//!
//! Each minute is printed as it ends. `BENCH_MINUTES` says how many there are.

use std::time::Duration;

use anyhow::Context;
use landfall_store::Db;

use super::databases::{Fresh, Kind, postmaster};
use super::figures::Figures;
use super::measure::{Stopwatch, cpu_of_family, milliseconds};
use super::seed_rows::{add_finished_without_history, queue_batch};
use super::worker::Running;

const MINUTES: u32 = 30;
const FILES_OF_BATCH: usize = 10_000;
const MINUTE: Duration = Duration::from_mins(1);
const TABLES: [&str; 3] = ["files", "listed_files", "events"];

pub async fn run(finished: i64) -> anyhow::Result<Figures> {
    let minutes = match std::env::var("BENCH_MINUTES") {
        Ok(number) => number.parse().context("BENCH_MINUTES is not a number")?,
        Err(_) => MINUTES,
    };
    let fresh = Fresh::create(Kind::Postgres, "vacuum").await?;
    let mut running = Running::prepare(&fresh).await?;
    add_finished_without_history(&running.db, finished).await?;
    let postmaster = postmaster(&running.db).await?.context("the server runs on another machine")?;
    running.start();

    let (watch, mut flows, mut speeds) = (Stopwatch::start(), 0, Vec::new());
    let before = Upkeep::of(&running.db, "files").await?;
    let sizes_before = sizes(&running.db).await?;
    for minute in 1..=minutes {
        let (of_minute, cpu, server) = (Stopwatch::start(), watch.cpu(), cpu_of_family(postmaster));
        let first = flows;
        while watch.elapsed() < MINUTE * minute {
            queue_batch(&running.db, FILES_OF_BATCH).await?;
            flows += FILES_OF_BATCH;
            running.finished(flows).await?;
        }
        let count = (flows - first).max(1) as f64;
        let speed = count / of_minute.elapsed().as_secs_f64();
        let upkeep = Upkeep::of(&running.db, "files").await?;
        eprintln!(
            "  minute {minute}: {speed:.0} flows/s, {:.3} + {:.3} CPU ms per flow, {} dead of {} rows, vacuumed {} times, \
             {:.0} % of the updates HOT",
            milliseconds(watch.cpu().saturating_sub(cpu)) / count,
            milliseconds(cpu_of_family(postmaster).saturating_sub(server)) / count,
            upkeep.dead,
            upkeep.live,
            upkeep.vacuums - before.vacuums,
            upkeep.hot_share_since(&before) * 100.0,
        );
        speeds.push((speed, upkeep.dead as f64));
    }

    let mut figures = Figures::default();
    let sizes_after = sizes(&running.db).await?;
    let quarter = speeds.len().div_ceil(4);
    let mean = |part: &[(f64, f64)]| part.iter().map(|(speed, _)| speed).sum::<f64>() / part.len() as f64;
    figures.add("vacuum: flows/s in the first quarter", mean(&speeds[..quarter]));
    figures.add("vacuum: flows/s in the last quarter", mean(&speeds[speeds.len() - quarter..]));
    figures.add("vacuum: dead rows at most", speeds.iter().map(|(_, dead)| *dead).fold(0.0, f64::max));
    for (table, (before, after)) in TABLES.into_iter().zip(sizes_before.into_iter().zip(sizes_after)) {
        figures.add(format!("vacuum: MiB of {table} before"), before);
        figures.add(format!("vacuum: MiB of {table} after"), after);
    }
    figures.add("vacuum: flows", flows as f64);
    running.end(fresh).await?;
    Ok(figures)
}

/// What the server knows about the rows of a table.
struct Upkeep {
    live: i64,
    dead: i64,
    vacuums: i64,
    updates: i64,
    hot_updates: i64,
}

impl Upkeep {
    async fn of(db: &Db, table: &str) -> anyhow::Result<Self> {
        let row: Option<(i64, i64, i64, i64, i64)> = db
            .read()
            .await?
            .row(
                "SELECT n_live_tup, n_dead_tup, autovacuum_count, n_tup_upd, n_tup_hot_upd
                 FROM pg_stat_user_tables WHERE relname = $1",
                vec![table.into()],
            )
            .await?;
        let (live, dead, vacuums, updates, hot_updates) = row.context("the table has statistics")?;
        Ok(Self { live, dead, vacuums, updates, hot_updates })
    }

    fn hot_share_since(&self, before: &Self) -> f64 {
        (self.hot_updates - before.hot_updates) as f64 / (self.updates - before.updates).max(1) as f64
    }
}

/// MiB of each table with its indexes.
async fn sizes(db: &Db) -> anyhow::Result<Vec<f64>> {
    let mut sizes = Vec::new();
    for table in TABLES {
        let sql = format!("SELECT pg_total_relation_size('{table}')");
        sizes.push(db.read().await?.number(sql, vec![]).await? as f64 / f64::from(1 << 20));
    }
    Ok(sizes)
}
