//! How long files wait after `kill -9` of the worker that has them, until another process works on them.
//!
//! The worker that is killed is a process of its own, which takes all files and never ends its work. The other one is this
//! process. Both have the default settings.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::failure::Failure;
use landfall_server::stages::{Job, Output, Work};
use landfall_store::Db;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::Semaphore;

use super::databases::{Fresh, Kind};
use super::figures::Figures;
use super::measure::{milliseconds, quantile};
use super::seed_rows::queue_batch;
use super::worker::{Running, default_config};

/// Set for the process that is killed: the URL of the database and its folder.
pub const VICTIM: &str = "BENCH_TAKEOVER_VICTIM";
const FILES: usize = 4;
const KILLS: usize = 25;
/// Until the other process has nothing more to do for its start.
const SETTLED: Duration = Duration::from_millis(300);

pub async fn run(kind: Kind) -> anyhow::Result<Figures> {
    let mut waits = Vec::new();
    for _ in 0..KILLS {
        let fresh = Fresh::create(kind, "takeover").await?;
        let mut survivor = Running::prepare(&fresh).await?;
        queue_batch(&survivor.db, FILES).await?;
        let mut victim = Command::new(std::env::current_exe()?)
            .env(VICTIM, format!("{} {}", fresh.url, fresh.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(victim.stdout.take().context("piped")?).lines();
        lines.next_line().await?.context("the victim ended by itself")?;
        survivor.start();
        tokio::time::sleep(SETTLED).await;
        let killed = Instant::now();
        victim.start_kill()?;
        // Of the last file.
        let begun = survivor.finished(FILES).await?.claimed_at;
        waits.push(milliseconds(begun - killed));
        victim.wait().await?;
        survivor.end(fresh).await?;
    }
    let mut figures = Figures::default();
    for (name, share) in [("p50", 0.5), ("at most", 1.0)] {
        figures.add(format!("takeover: kill to work, {name} ms"), quantile(&waits, share));
    }
    Ok(figures)
}

/// The process that is killed.
pub async fn victim(opened: &str) -> anyhow::Result<()> {
    let (url, folder) = opened.split_once(' ').context("a URL and a folder")?;
    let begun = Arc::new(Semaphore::new(0));
    let work = Arc::new(Endless { begun: begun.clone() });
    let db = Db::open(url, default_config()?.database_connections).await?;
    let running = Running::open(db, Path::new(folder), work).await?;
    running.start();
    drop(begun.acquire_many(u32::try_from(FILES)?).await?);
    println!("all files are here");
    std::future::pending().await
}

/// Work that begins and never ends.
struct Endless {
    /// A permit for each file.
    begun: Arc<Semaphore>,
}

impl Work for Endless {
    fn run<'a>(&'a self, _: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        self.begun.add_permits(1);
        std::future::pending().boxed()
    }
}
