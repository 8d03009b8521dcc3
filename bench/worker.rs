//! A worker whose stages do nothing, so that all it costs is the queue.

use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::clock::Clock;
use landfall_core::failure::Failure;
use landfall_core::lifecycle::Stage;
use landfall_server::blobs::Blobs;
use landfall_server::config::{Config, Variables};
use landfall_server::process::liveness::Liveness;
use landfall_server::queue::config::describe;
use landfall_server::queue::worker::Worker;
use landfall_server::recovery::abandoned_uploads::RescueDead;
use landfall_server::stages::{Job, Output, Work};
use landfall_store::wake::Wake;
use landfall_store::{Db, args};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::databases::Fresh;

/// The settings that a server would have that nobody configured.
pub fn default_config() -> anyhow::Result<Config> {
    Ok(Config::from_variables(Variables::default())?)
}

/// Stages that end as soon as they begin, and tell what came by.
pub struct Nothing {
    pub seen: watch::Sender<Seen>,
}

#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// When the first stage of a file began last.
    pub claimed_at: Instant,
    /// How many files came to their last stage.
    pub through: usize,
}

impl Nothing {
    pub fn new() -> Arc<Self> {
        let seen = Seen { claimed_at: Instant::now(), through: 0 };
        Arc::new(Self { seen: watch::Sender::new(seen) })
    }
}

impl Work for Nothing {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        self.seen.send_if_modified(|seen| {
            match job.stage {
                Stage::Extract => seen.claimed_at = Instant::now(),
                Stage::Embed => seen.through += 1,
                _ => {}
            }
            job.stage == Stage::Embed
        });
        std::future::ready(Ok(Output::Nothing)).boxed()
    }
}

/// All of a process that a file meets after its confirmation.
pub struct Running {
    pub db: Db,
    pub blobs: Blobs,
    pub wake: Wake,
    pub liveness: Arc<Liveness>,
    pub worker: Worker,
    seen: watch::Receiver<Seen>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Running {
    /// Opens everything and registers the process, but looks at no file yet.
    pub async fn prepare(fresh: &Fresh) -> anyhow::Result<Self> {
        let config = default_config()?;
        let db = fresh.open(config.database_connections).await?;
        let blobs = Blobs::open(fresh.path().join("blobs")).await?;
        let wake = db.wake().clone();
        let on_death = Arc::new(RescueDead { db: db.clone(), blobs: blobs.clone() });
        let description = describe("bench:1".to_owned(), &config.queue.stages);
        let liveness =
            Liveness::start(db.clone(), Clock::System, config.queue.liveness, description, on_death).await?;
        let work = Nothing::new();
        let seen = work.seen.subscribe();
        let worker =
            Worker::new(db.clone(), Clock::System, config.queue, work, wake.clone(), liveness.clone());
        Ok(Self {
            db,
            blobs,
            wake,
            liveness,
            worker,
            seen,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    pub fn start(&self) {
        self.tasks.spawn(self.liveness.clone().run(self.stop.clone()));
        let (worker, stop) = (self.worker.clone(), self.stop.clone());
        self.tasks.spawn(async move { worker.run(stop).await });
    }

    /// Resolves when so many files in all have come to their last stage.
    pub async fn through(&mut self, files: usize) -> anyhow::Result<Seen> {
        Ok(*self.seen.wait_for(|seen| seen.through >= files).await?)
    }

    /// Asks again and again until the row has this status. Only the last commit is waited for in this way, because
    /// asking costs time that belongs to the worker.
    pub async fn until(&self, table: &str, id: Uuid, status: &str) -> anyhow::Result<()> {
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE id = $1 AND status = $2");
        while self.db.read().await?.number(sql.clone(), args![id, status]).await? == 0 {}
        Ok(())
    }

    pub async fn end(self, fresh: Fresh) -> anyhow::Result<()> {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        fresh.remove(self.db).await
    }
}
