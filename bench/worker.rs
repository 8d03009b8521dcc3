//! A worker whose stages do nothing, so that only the queue costs time.

use std::path::Path;
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

/// The default settings.
pub fn default_config() -> anyhow::Result<Config> {
    Ok(Config::from_variables(Variables::default())?)
}

/// Stages that end at once, and report their progress.
pub struct NoWork {
    pub progress: watch::Sender<Progress>,
}

#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// When the first stage of a file last began.
    pub claimed_at: Instant,
    /// How many files reached their last stage.
    pub finished: usize,
}

impl NoWork {
    pub fn new() -> Arc<Self> {
        let progress = Progress { claimed_at: Instant::now(), finished: 0 };
        Arc::new(Self { progress: watch::Sender::new(progress) })
    }
}

impl Work for NoWork {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        self.progress.send_if_modified(|progress| {
            match job.stage {
                Stage::Extract => progress.claimed_at = Instant::now(),
                Stage::Embed => progress.finished += 1,
                _ => {}
            }
            job.stage == Stage::Embed
        });
        std::future::ready(Ok(Output::Nothing)).boxed()
    }
}

/// The parts of a process that a file needs after its confirmation.
pub struct Running {
    pub db: Db,
    pub blobs: Blobs,
    pub wake: Wake,
    pub liveness: Arc<Liveness>,
    pub worker: Worker,
    progress: watch::Receiver<Progress>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Running {
    /// Opens everything and registers the process, but polls no file yet. Its stages do nothing.
    pub async fn prepare(fresh: &Fresh) -> anyhow::Result<Self> {
        let db = fresh.open(default_config()?.database_connections).await?;
        let work = NoWork::new();
        let progress = work.progress.subscribe();
        Ok(Self { progress, ..Box::pin(Self::open(db, fresh.path(), work)).await? })
    }

    /// The same with other stages, whose progress is not known.
    pub async fn open(db: Db, folder: &Path, work: Arc<dyn Work>) -> anyhow::Result<Self> {
        let config = default_config()?;
        let blobs = Blobs::open(folder.join("blobs")).await?;
        db.connect_wake();
        let wake = db.wake().clone();
        let on_death = Arc::new(RescueDead { db: db.clone(), blobs: blobs.clone() });
        let description = describe(format!("bench:{}", std::process::id()), &config.queue.stages);
        let liveness =
            Liveness::start(db.clone(), Clock::System, config.queue.liveness, description, on_death).await?;
        let worker =
            Worker::new(db.clone(), Clock::System, config.queue, work, wake.clone(), liveness.clone());
        Ok(Self {
            db,
            blobs,
            wake,
            liveness,
            worker,
            progress: NoWork::new().progress.subscribe(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    pub fn start(&self) {
        self.tasks.spawn(self.liveness.clone().run(self.stop.clone()));
        let (worker, stop) = (self.worker.clone(), self.stop.clone());
        self.tasks.spawn(async move { worker.run(stop).await });
    }

    /// Resolves when so many files in total have reached their last stage.
    pub async fn finished(&mut self, files: usize) -> anyhow::Result<Progress> {
        Ok(*self.progress.wait_for(|progress| progress.finished >= files).await?)
    }

    /// Polls until the row has this status. Only the last commit is waited for like this, because
    /// polling costs CPU time that the worker needs.
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
