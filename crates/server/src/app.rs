//! Assembles the parts of a running process.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Auth;
use crate::auth::agreement::Agreement;
use crate::auth::links::Links;
use crate::auth::secret::SecretKey;
use crate::auth::sessions::Sessions;
use crate::auth::ticket::Tickets;
use crate::blobs::Blobs;
use crate::blobs::signed_url::UrlSigner;
use crate::config::{Config, Role};
use crate::content::{codes, index};
use crate::delivery::fan_out::FanOut;
use crate::delivery::progress;
use crate::delivery::webhooks::dispatcher::Webhooks;
use crate::delivery::webhooks::sealing::{Renewed, SealAll};
use crate::delivery::webhooks::send::Receiver;
use crate::delivery::webhooks::target::{self, Names, TargetCheck};
use crate::intake::archives::Archives;
use crate::intake::arrivals::Arrivals;
use crate::intake::resumable::Resumables;
use crate::intake::resumable::turns::Turns;
use crate::operations::Operations;
use crate::process::disk_space::DiskSpace;
use crate::process::liveness::Liveness;
use crate::process::loose_modes;
use crate::queue;
use crate::queue::config::StageConfig;
use crate::queue::worker::Worker;
use crate::recovery::abandoned_uploads::RescueDead;
use crate::recovery::batch_timeout::BatchTimeout;
use crate::recovery::blob_scrub::BlobScrub;
use crate::recovery::config::Schedules;
use crate::recovery::orphan_cleanup::OrphanCleanup;
use crate::recovery::orphan_cleanup::scan::Scanner;
use crate::recovery::ownership::{Ownership, Standing};
use crate::recovery::restores;
use crate::recovery::retention::Retention;
use crate::recovery::stuck_files::StuckFiles;
use crate::recovery::stuck_files::detection::Detection;
use crate::recovery::upload_expiry::UploadExpiry;
use crate::recovery::{self, Job, Jobs, Sweep};
use crate::reports::alerts::Alerts;
use crate::reports::probes::Probes;
use crate::stages::Work;
use crate::stages::embed::Embedder;
use crate::stages::pipeline::Pipeline;
use crate::stages::reindex::background::Background;
use crate::stages::reindex::{self, Reindex};
use crate::telemetry::metrics;
use landfall_core::clock::Clock;
use landfall_core::lifecycle::Stage;
use landfall_documents::sandbox::{Pool, Program};
use landfall_store::Error;
use landfall_store::wake::Wake;
use landfall_store::{Db, FaultInjector};

/// How long uploads in progress may continue after the process was told to stop.
const UPLOAD_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The parts of a process. Each request holds them, so a clone is one reference.
#[derive(Clone)]
pub struct App(Arc<Parts>);

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

pub struct Parts {
    pub config: Arc<Config>,
    pub clock: Clock,
    pub db: Db,
    pub blobs: Blobs,
    pub ownership: Ownership,
    pub auth: Arc<Auth>,
    /// Every key of this server is derived from it.
    pub secret: SecretKey,
    pub signer: UrlSigner,
    /// Signs the tickets with which a browser opens an event stream.
    pub tickets: Tickets,
    /// Sends events to open streams.
    pub fan_out: FanOut,
    pub embedder: Embedder,
    /// The codes that searches used last.
    pub codes: codes::Cache,
    pub wake: Wake,
    pub liveness: Arc<Liveness>,
    /// Processes files, unless this process only serves requests.
    pub worker: Option<Worker>,
    /// Jobs that run on a schedule, or when an administrator starts them.
    pub jobs: Jobs,
    pub stuck_files: Arc<StuckFiles>,
    pub orphan_cleanup: Arc<OrphanCleanup>,
    pub retention: Arc<Retention>,
    /// Finds what is left over in the storage.
    pub orphans: Scanner,
    /// Uploads in progress. They run to their end, even if the client disconnects.
    pub uploads: TaskTracker,
    /// The files that receive an upload in this process.
    pub arrivals: Arrivals,
    /// Uploads that come in several requests.
    pub resumables: Resumables,
    /// The free space of the disks.
    pub disk: DiskSpace,
    /// Whether the database and the storage work.
    pub probes: Probes,
    pub webhooks: Webhooks,
}

/// What a test may replace.
#[derive(Default)]
pub struct Replacements {
    pub clock: Option<Clock>,
    pub work: Option<Arc<dyn Work>>,
    /// The program that reads documents. The program of a test cannot do that.
    pub extractor: Option<Program>,
    /// Resolves host names for webhooks.
    pub names: Option<Names>,
    /// Delays or breaks the database steps of this process.
    pub faults: Option<Arc<dyn FaultInjector>>,
    /// The parts of a simulation, which uses no network, no disk and no threads.
    pub simulated: Option<Box<Simulated>>,
}

/// What a simulated process has in place of its surroundings.
pub struct Simulated {
    /// Its own: all processes of a simulation are one to the system.
    pub name: String,
    pub db: Db,
    pub blobs: Blobs,
    pub embedder: Embedder,
    /// Takes the requests of webhooks.
    pub receiver: Arc<dyn Receiver>,
}

impl App {
    pub async fn start(config: Config, replacements: Replacements) -> Result<Self, Error> {
        metrics::recorder();
        let name = replacements.simulated.as_ref().map_or_else(process_name, |one| one.name.clone());
        let opened = open(&config, replacements.simulated, replacements.faults);
        let (db, blobs, embedder, receiver) = Box::pin(opened).await?;
        let ownership = Ownership { db: db.clone(), blobs: blobs.clone() };
        begin_with(&ownership, &config).await?;
        let auth = Auth::new(&config.auth, &config.data_dir, config.http.bind_address)?;
        let secret = SecretKey::of(&config.auth, &config.data_dir)?;
        keep_secrets_sealed(&db, &secret).await?;
        let signer = UrlSigner::new(secret.derive("upload URLs"), secret.derive_previous("upload URLs"));
        let tickets = Tickets::new(secret.derive("event tickets"));
        let disk = disk_space(&config, &db);
        db.connect_wake();
        let (wake, works) = (db.wake().clone(), matches!(config.role, Role::All | Role::Worker));
        let stages: &[StageConfig] = if works { &config.queue.stages } else { &[] };
        let on_death = Arc::new(RescueDead { db: db.clone(), blobs: blobs.clone() });
        let description = queue::config::describe(name, stages);
        let machine = match &replacements.clock {
            Some(skewed @ Clock::Skewed(_)) => skewed.clone(),
            _ => Clock::System,
        };
        let liveness = Liveness::start(db.clone(), machine, config.queue.liveness, description, on_death);
        let liveness = Box::pin(liveness).await?;
        let clock = match replacements.clock {
            Some(manual @ Clock::Manual(_)) => manual,
            _ => liveness.time().clock(),
        };
        let fan_out = FanOut::new(db.clone(), wake.clone(), clock.clone(), config.events.clone());
        let uploads = TaskTracker::new();
        let arrivals = Arrivals::default();
        let worker = works.then(|| {
            let work = replacements.work.unwrap_or_else(|| {
                let program = replacements.extractor.unwrap_or_default();
                pipeline(&config, program, &db, &blobs, &embedder)
            });
            let work = Arc::new(Archives {
                work,
                db: db.clone(),
                blobs: blobs.clone(),
                clock: clock.clone(),
                liveness: liveness.clone(),
                arrivals: arrivals.clone(),
                tasks: uploads.clone(),
                disk: disk.clone(),
                config: config.intake.clone(),
            });
            let queue = config.queue.clone();
            Worker::new(db.clone(), clock.clone(), queue, work, wake.clone(), liveness.clone())
        });
        let resumables = resumables(&config, &ownership, &clock, &liveness, &uploads, &disk);
        let sweeps = Sweeps::new(&config, &ownership, &clock, &resumables);
        let scheduled = sweeps.scheduled(&config.healing.schedules);
        let jobs = Box::pin(Jobs::start(db.clone(), clock.clone(), liveness.clone(), scheduled)).await?;
        let orphans = scanner(&config, &ownership, &clock);
        let probes = Probes::new(&ownership, &disk, &liveness);
        let webhooks = Webhooks::new(
            db.clone(),
            clock.clone(),
            liveness.clone(),
            TargetCheck {
                names: replacements.names.unwrap_or_else(target::system_names),
                allow_private: config.webhooks.allow_private,
            },
            secret.clone(),
            config.webhooks.clone(),
            config.queue.poll_interval,
            receiver,
        );
        db.end_start().await?;
        Ok(Self(Arc::new(Parts {
            webhooks,
            codes: codes::Cache::new(config.search_cache_bytes),
            config: Arc::new(config),
            clock,
            db,
            blobs,
            ownership,
            orphans,
            auth: Arc::new(auth),
            secret,
            signer,
            tickets,
            fan_out,
            embedder,
            wake,
            liveness,
            worker,
            jobs,
            stuck_files: sweeps.stuck_files,
            orphan_cleanup: sweeps.orphan_cleanup,
            retention: sweeps.retention,
            uploads,
            resumables,
            arrivals,
            disk,
            probes,
        })))
    }

    /// People who are signed in on the page.
    pub fn sessions(&self) -> Sessions {
        Sessions { db: self.db.clone(), config: self.config.auth.sessions.clone() }
    }

    pub fn links(&self) -> Links {
        Links { db: self.db.clone() }
    }

    /// Advances the operations on many files.
    pub fn operations(&self) -> Operations {
        Operations {
            db: self.db.clone(),
            blobs: self.blobs.clone(),
            clock: self.clock.clone(),
            wake: self.wake.clone(),
            worker: self.worker.clone(),
        }
    }

    /// Re-embeds files when an operator asks for it. With half of the files in hand that `landfall reindex` has, so that
    /// new files go on beside it.
    fn reindexing(&self) -> Background {
        let (db, clock, config) = (self.db.clone(), self.clock.clone(), &self.config);
        let at_once = (config.reindex_concurrency() / 2).max(1);
        let retry = config.queue.retry.clone();
        let embedder = self.embedder.clone();
        Background {
            reindex: Reindex::new(db.clone(), Clock::System, embedder, config.chunks, retry, at_once),
            db,
            clock,
            wake: self.wake.clone(),
            liveness: self.liveness.clone(),
        }
    }

    pub fn alerts(&self) -> Alerts {
        Alerts::new(self.db.clone(), self.clock.clone(), self.config.alerts.clone())
    }

    /// Runs all background work of this process until `stop`; then shuts it down in order.
    pub async fn run(&self, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        // The other processes must see this one alive until its last file is settled.
        let settled = CancellationToken::new();
        let sending = TaskTracker::new();
        tasks.spawn(self.liveness.clone().run(settled.clone()));
        let parts = || (self.db.clone(), self.blobs.clone(), self.clock.clone());
        let (db, blobs, clock) = parts();
        let deletions = recovery::unfinished_deletions::run(db, blobs, clock, self.wake.clone());
        let (db, blobs, clock) = parts();
        let uploads = recovery::abandoned_uploads::run(db, blobs, clock);
        let resumables = recovery::resumable_uploads::run(self.resumables.clone(), self.clock.clone());
        let until_stop = stop.clone();
        tasks.spawn(async move { until_stop.run_until_cancelled(metrics::upkeep()).await });
        let (fan_out, until_stop) = (self.fan_out.clone(), stop.clone());
        tasks.spawn(async move { fan_out.run(until_stop).await });
        let (auth, clock, until_stop) = (self.auth.clone(), self.clock.clone(), stop.clone());
        tasks.spawn(async move {
            if let Some(provider) = auth.provider() {
                until_stop.run_until_cancelled(provider.run(clock)).await;
            }
        });
        let progress = progress::run(self.db.clone(), self.clock.clone(), self.wake.clone());
        let (db, embedder) = (self.db.clone(), self.embedder.clone());
        tasks.spawn(async move { reindex::warn_of_stale_files(&db, &embedder).await });
        if self.config.role != Role::Api {
            let until_stop = stop.clone();
            let operations = self.operations();
            tasks.spawn(async move { until_stop.run_until_cancelled(operations.run()).await });
            let (old_terms, until_stop) =
                (recovery::old_terms::run(self.db.clone(), self.clock.clone()), stop.clone());
            tasks.spawn(async move { until_stop.run_until_cancelled(old_terms).await });
            let (reindexing, until_stop) = (self.reindexing(), stop.clone());
            tasks.spawn(async move { reindexing.run(until_stop).await });
            let (jobs, until_stop) = (self.jobs.clone(), stop.clone());
            tasks.spawn(async move { jobs.run(until_stop).await });
            let (expiry, until_stop) = (self.stuck_files.expiry.clone(), stop.clone());
            let jobs = self.jobs.clone();
            tasks.spawn(async move { until_stop.run_until_cancelled(expiry.run(jobs)).await });
            let (ownership, until_stop) = (self.ownership.clone(), stop.clone());
            tasks.spawn(async move { until_stop.run_until_cancelled(ownership.run()).await });
            let (until_stop, alerts) = (stop.clone(), self.alerts());
            tasks.spawn(async move { until_stop.run_until_cancelled(alerts.run()).await });
            let (db, until_stop) = (self.db.clone(), stop.clone());
            tasks.spawn(async move { until_stop.run_until_cancelled(codes::uncoded::run(db)).await });
            let (webhooks, stop) = (self.webhooks.clone(), stop.clone());
            sending.spawn(async move { webhooks.run(stop).await });
        }
        let until_settled = settled.clone();
        tasks.spawn(async move {
            let sweeps = async { tokio::join!(deletions, uploads, resumables, progress) };
            Box::pin(until_settled.run_until_cancelled(sweeps)).await
        });
        match &self.worker {
            Some(worker) => worker.run(stop).await,
            None => stop.cancelled().await,
        }
        self.jobs.stop().await;
        // The outcome of a sent request must be recorded while this process still holds the webhook.
        sending.close();
        sending.wait().await;
        self.resumables.turns.stop();
        self.uploads.close();
        tokio::select! {
            () = self.uploads.wait() => {}
            () = Clock::System.sleep(UPLOAD_SHUTDOWN_TIMEOUT) => tracing::warn!("some uploads were interrupted"),
        }
        settled.cancel();
        tasks.close();
        tasks.wait().await;
        // So that the storage has seen a later state than any backup that was made until now.
        if let Err(error) = self.ownership.keep().await {
            tracing::warn!(%error, "the mark of the storage could not be renewed");
        }
        if let Err(error) = self.liveness.leave().await {
            tracing::warn!(%error, "could not unregister this process; the other processes will detect its end");
        }
    }
}

/// The stages, which read documents with this program.
fn pipeline(config: &Config, program: Program, db: &Db, blobs: &Blobs, embedder: &Embedder) -> Arc<dyn Work> {
    let readers = Pool::new(program, config.sandbox.clone());
    if config.queue.stages.iter().any(|config| config.stage == Stage::Extract) {
        readers.warm_up();
    }
    Arc::new(Pipeline::new(db.clone(), blobs.clone(), readers, config.pipeline(), embedder.clone()))
}

/// Opens the database, the storage and the model. Webhooks go over the network.
async fn open(
    config: &Config,
    simulated: Option<Box<Simulated>>,
    faults: Option<Arc<dyn FaultInjector>>,
) -> Result<(Db, Blobs, Embedder, Option<Arc<dyn Receiver>>), Error> {
    if let Some(simulated) = simulated {
        let Simulated { name: _, db, blobs, embedder, receiver } = *simulated;
        return Ok((db, blobs, embedder, Some(receiver)));
    }
    let db = Db::open_with(&config.database_url, config.database_connections, faults).await?;
    let blobs = Blobs::connect(&config.storage).await?;
    Ok((db, blobs, Embedder::open(&config.embed).await?, None))
}

/// The recovery jobs that run on a schedule.
struct Sweeps {
    stuck_files: Arc<StuckFiles>,
    orphan_cleanup: Arc<OrphanCleanup>,
    batch_timeout: Arc<BatchTimeout>,
    retention: Arc<Retention>,
    blob_scrub: Arc<BlobScrub>,
}

impl Sweeps {
    fn new(config: &Config, ownership: &Ownership, clock: &Clock, resumables: &Resumables) -> Self {
        let Ownership { db, blobs } = ownership;
        let expiry = UploadExpiry {
            db: db.clone(),
            blobs: blobs.clone(),
            clock: clock.clone(),
            window: config.intake.confirm_window,
            unconfirmed: config.healing.unconfirmed,
            resumables: resumables.clone(),
        };
        let detection = Detection::new(&config.healing, config.queue.longest_wait());
        let stuck_files =
            StuckFiles { db: db.clone(), detection, expiry, outage_patience: config.queue.breaker.patience };
        let orphan_cleanup = OrphanCleanup {
            db: db.clone(),
            blobs: blobs.clone(),
            ownership: ownership.clone(),
            config: config.cleaning.clone(),
            force: false,
        };
        Self {
            stuck_files: Arc::new(stuck_files),
            orphan_cleanup: Arc::new(orphan_cleanup),
            batch_timeout: Arc::new(BatchTimeout { db: db.clone() }),
            blob_scrub: Arc::new(BlobScrub {
                db: db.clone(),
                blobs: blobs.clone(),
                config: config.healing.scrub.clone(),
            }),
            retention: Arc::new(Retention { db: db.clone(), config: config.cleaning.clone() }),
        }
    }

    fn scheduled(&self, schedules: &Schedules) -> Vec<Job> {
        let jobs: [(Arc<dyn Sweep>, _); _] = [
            (self.stuck_files.clone(), &schedules.stuck_recovery),
            (self.orphan_cleanup.clone(), &schedules.orphan_cleanup),
            (self.batch_timeout.clone(), &schedules.batch_timeout),
            (Arc::new(self.stuck_files.expiry.clone()), &schedules.upload_expiry),
            (self.retention.clone(), &schedules.retention),
            (self.blob_scrub.clone(), &schedules.blob_scrub),
        ];
        jobs.map(|(sweep, schedule)| Job { sweep, schedule: schedule.clone() }).into()
    }
}

/// Checks that the storage belongs to the database, and prepares both for this process.
async fn begin_with(ownership: &Ownership, config: &Config) -> Result<(), Error> {
    let db = &ownership.db;
    let standing = ownership.keep().await?;
    match &standing {
        Standing::Ours => {}
        standing if standing.may_be_used() => tracing::warn!("{standing}"),
        standing => return Err(Error::StorageMismatch(standing.to_string())),
    }
    restores::notice(db, &standing).await?;
    index::install(db).await?;
    warn_of_loose_modes(config, db);
    db.leave_gap("events").await
}

/// Names the data that other users of the machine can read.
fn warn_of_loose_modes(config: &Config, db: &Db) {
    let folders = std::iter::once(config.data_dir.clone()).chain(config.storage.place.folder().cloned());
    let places: Vec<PathBuf> = folders.chain(db.sqlite_file().cloned()).collect();
    for warning in loose_modes::warnings(&places) {
        tracing::warn!("{warning}");
    }
}

fn resumables(
    config: &Config,
    ownership: &Ownership,
    clock: &Clock,
    liveness: &Arc<Liveness>,
    tasks: &TaskTracker,
    disk: &DiskSpace,
) -> Resumables {
    let Ownership { db, blobs } = ownership.clone();
    Resumables {
        db,
        blobs,
        clock: clock.clone(),
        liveness: liveness.clone(),
        tasks: tasks.clone(),
        turns: Turns::default(),
        disk: disk.clone(),
        config: config.intake.clone(),
        stall: config.http.upload_stall,
    }
}

fn scanner(config: &Config, ownership: &Ownership, clock: &Clock) -> Scanner {
    let Ownership { db, blobs } = ownership.clone();
    let (clock, config) = (clock.clone(), config.cleaning.clone());
    Scanner { db, blobs, clock, config, scanning: Arc::default() }
}

/// The disks of the blobs and of a SQLite database. That of another database is not seen from here.
fn disk_space(config: &Config, db: &Db) -> DiskSpace {
    let beside_database = db.sqlite_file().and_then(|file| file.parent()).map(Path::to_owned);
    // Where the bytes are in an object store, parts of uploads wait on this disk.
    let blobs = config.storage.place.folder().unwrap_or(&config.storage.spool).clone();
    let folders = std::iter::once(blobs).chain(beside_database).collect();
    DiskSpace::new(folders, config.min_free_disk)
}

/// Compares the secret of this process with that of the database, and encrypts what is not encrypted with it yet.
async fn keep_secrets_sealed(db: &Db, secret: &SecretKey) -> Result<(), Error> {
    let Renewed { agreement, sealed, unreadable } = db.write(SealAll { key: secret.clone() }).await?;
    if agreement == Some(Agreement::Rotated) {
        tracing::info!(webhooks = sealed, "the secret key was rotated; remove SECRET_KEY_PREVIOUS");
    } else if sealed > 0 {
        tracing::info!(webhooks = sealed, "the secrets of webhooks were encrypted");
    }
    if sealed > 0 {
        // The log of a SQLite database still has the secrets as they were. Another process that reads may delay this, and
        // the log is overwritten in time.
        if let Err(error) = db.empty_log().await {
            tracing::debug!(%error, "the log of the database could not be emptied");
        }
    }
    for webhook in unreadable {
        tracing::warn!(%webhook, "the secret of a webhook cannot be decrypted; rotate it");
    }
    Ok(())
}

/// Host and process id, as in the history of every file.
fn process_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .map_or_else(|| "localhost".to_owned(), |name| name.trim().to_owned());
    format!("{host}:{}", std::process::id())
}
