//! The actions of clients, workers and sweeps on an offline app, one at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_api::uploads::ConfirmRequest;
use landfall_core::caller::{Caller, Role};
use landfall_core::clock::{Clock, ManualClock};
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage;
use landfall_core::text::{Chunk, Embedded, Extracted};
use landfall_documents::{Contents, ListedMember, Member};
use landfall_server::intake::announce::Announced;
use landfall_server::intake::batches::{CloseBatch, OpenBatch};
use landfall_server::intake::cancel::Cancel;
use landfall_server::intake::cancel_batch::CancelBatch;
use landfall_server::intake::confirm::{self, Confirmed};
use landfall_server::intake::delete;
use landfall_server::intake::idempotency::{Idempotent, Key};
use landfall_server::intake::register::{Register, Reissue, Tickets};
use landfall_server::intake::resumable::create::Beginning;
use landfall_server::intake::resumable::receive::Piece;
use landfall_server::intake::upload::{Upload, WHOLE_WITHIN};
use landfall_server::queue::rescue::RescueWorker;
use landfall_server::queue::revive::{self, Revive};
use landfall_server::records::batch::Batch;
use landfall_server::records::file::File;
use landfall_server::recovery::batch_timeout::BatchTimeout;
use landfall_server::recovery::{
    Sweep, SweepReport, abandoned_uploads, resumable_uploads, unfinished_deletions,
};
use landfall_server::stages::{Job, Output, Work};
use landfall_store::Error;
use landfall_store::args;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::TestDb;
use super::fault_injector::PlannedFaults;
use super::offline_app::{OfflineApp, patiently};

/// A user who calls the intake of a process without HTTP.
#[derive(Clone)]
pub struct TestUser {
    pub rest: Arc<OfflineApp>,
    pub caller: Caller,
}

impl TestUser {
    pub fn of(rest: &Arc<OfflineApp>, tenant: &str) -> Self {
        let caller = Caller { user: tenant.to_owned(), tenant: tenant.to_owned(), role: Role::Member };
        Self { rest: rest.clone(), caller }
    }

    /// A request with the same key is done once.
    fn key(&self, key: &str) -> Key {
        Key::new(self.caller.owner(), key, "", b"").expect("a good key")
    }

    pub async fn open_batch(&self, files: usize, key: &str) -> Result<Uuid, Error> {
        let app = &self.rest.app;
        let change = OpenBatch {
            caller: self.caller.clone(),
            id: app.clock.new_id(),
            batch: serde_json::from_value(json!({ "fileCount": files })).expect("a good batch"),
            now: app.clock.now(),
            config: app.config.intake.clone(),
        };
        let opened =
            app.db.write(Idempotent { key: Some(self.key(key)), now: app.clock.now(), change }).await?;
        Ok(opened.batch_id)
    }

    /// Registers a file; its name is its key.
    pub async fn register(&self, batch: Option<Uuid>, name: &str, size: i64) -> Result<Uuid, Error> {
        let app = &self.rest.app;
        let announced = Announced { name: name.to_owned(), size, ..Announced::default() };
        let (files, now) = (vec![(app.clock.new_id(), announced)], app.clock.now());
        let tickets = Tickets::for_files(&files, &app.signer, &app.config.intake, now);
        let change = Register {
            caller: self.caller.clone(),
            batch,
            priority: None,
            files,
            now,
            config: app.config.intake.clone(),
            tickets,
            direct: None,
            trace: None,
        };
        let tickets = app
            .db
            .write_jointly(Idempotent { key: Some(self.key(name)), now: app.clock.now(), change })
            .await?;
        Ok(tickets[0].file_id)
    }

    pub async fn fresh_url(&self, file: Uuid) -> Result<(), Error> {
        let app = &self.rest.app;
        let (now, window) = (app.clock.now(), app.config.intake.confirm_window);
        let url_ttl = app.config.intake.url_ttl;
        let signer = app.signer.clone();
        let change = Reissue { caller: self.caller.clone(), file, now, window, url_ttl, signer };
        app.db.write(change).await.map(drop)
    }

    /// Sends a body of this size in these parts.
    pub async fn send(
        &self,
        file: Uuid,
        size: i64,
        parts: Vec<Result<&'static [u8], &'static str>>,
    ) -> Result<(), Error> {
        let parts = parts.into_iter().map(|part| part.map(Bytes::from_static));
        self.uploading(file, size).receive(futures_util::stream::iter(parts)).await.map(drop)
    }

    pub fn uploading(&self, file: Uuid, size: i64) -> Upload {
        let app = &self.rest.app;
        Upload {
            db: app.db.clone(),
            blobs: app.blobs.clone(),
            clock: app.clock.clone(),
            owner: app.liveness.identity().id,
            tasks: app.uploads.clone(),
            arrivals: app.arrivals.clone(),
            disk: app.disk.clone(),
            confirm_window: app.config.intake.confirm_window,
            stall: Duration::from_hours(1_000_000),
            min_rate: 1,
            whole_within: WHOLE_WITHIN,
            file,
            size,
            md5: None,
        }
    }

    pub async fn upload(&self, file: Uuid) -> Result<(), Error> {
        self.send(file, 5, vec![Ok(b"12345")]).await
    }

    /// The same, but the bytes do not come at once, so the upload takes its place in all processes first.
    pub async fn upload_slowly(&self, file: Uuid) -> Result<(), Error> {
        let upload = Upload { whole_within: Duration::ZERO, ..self.uploading(file, 5) };
        let body = futures_util::stream::iter([Ok::<_, &str>(Bytes::from_static(b"12345"))]);
        upload.receive(body).await.map(drop)
    }

    /// Begins a resumable upload of five bytes; its name is its key.
    pub async fn create_upload(&self, batch: Option<Uuid>, name: &str) -> Result<Uuid, Error> {
        let announced = Announced { name: name.to_owned(), size: 5, ..Announced::default() };
        let beginning = Beginning {
            caller: self.caller.clone(),
            batch,
            announced,
            metadata: None,
            concat: None,
            parts: Vec::new(),
            key: Some(self.key(name)),
        };
        self.rest.app.resumables.create(beginning).await
    }

    /// Sends what a resumable upload does not have of its bytes up to there.
    pub async fn resume(&self, upload: Uuid, up_to: usize) -> Result<(), Error> {
        let uploads = &self.rest.app.resumables;
        let progress = uploads.status(&self.caller, upload).await?;
        let offset = progress.offset.unwrap_or_default();
        let from = usize::try_from(offset).expect("a small number");
        if from >= up_to {
            return Ok(());
        }
        let bytes: Vec<Result<Bytes, &'static str>> = vec![Ok(Bytes::from_static(&b"12345"[from..up_to]))];
        let piece = Piece { offset, length: Some((up_to - from) as u64), checksum: None };
        uploads.receive(&self.caller, upload, piece, futures_util::stream::iter(bytes)).await.map(drop)
    }

    /// A part of five bytes that is complete.
    pub async fn upload_part(&self, name: &str) -> Result<Uuid, Error> {
        let key = Some(self.key(name));
        let part = self.rest.app.resumables.create_part(&self.caller, 5, None, key).await?;
        self.resume(part, 5).await?;
        Ok(part)
    }

    /// Makes a file of parts.
    pub async fn join(&self, parts: &[Uuid], name: &str) -> Result<(), Error> {
        let uploads = &self.rest.app.resumables;
        let size = i64::try_from(parts.len() * 5).expect("a small number");
        let beginning = Beginning {
            caller: self.caller.clone(),
            batch: None,
            announced: Announced { name: name.to_owned(), size, ..Announced::default() },
            metadata: None,
            concat: Some(String::new()),
            parts: parts.to_vec(),
            key: Some(self.key(name)),
        };
        let joined = uploads.create(beginning).await?;
        uploads.join(joined).await.map(drop)
    }

    pub async fn terminate(&self, upload: Uuid) -> Result<(), Error> {
        self.rest.app.resumables.terminate(&self.caller, upload, Ok(())).await
    }

    pub async fn confirm(&self, file: Uuid) -> Result<Confirmed, Error> {
        let app = &self.rest.app;
        let request = ConfirmRequest::default();
        confirm::confirm(&app.db, &app.blobs, &self.caller, file, None, &request, &app.clock).await
    }

    /// Registers, uploads and confirms a file of five bytes.
    pub async fn upload_and_confirm(&self, batch: Option<Uuid>, name: &str) -> Result<Uuid, Error> {
        let file = self.register(batch, name, 5).await?;
        self.upload(file).await?;
        self.confirm(file).await?;
        Ok(file)
    }

    pub async fn cancel(&self, file: Uuid) -> Result<File, Error> {
        let app = &self.rest.app;
        app.db.write(Cancel { caller: self.caller.clone(), file, now: app.clock.now() }).await
    }

    pub async fn retry(&self, file: Uuid) -> Result<File, Error> {
        let app = &self.rest.app;
        let request = Revive {
            caller: self.caller.clone(),
            file,
            from_stage: None,
            first_stage: app.config.intake.first_stage,
            only_failed: false,
            now: app.clock.now(),
        };
        revive::revive(&app.db, &app.blobs, request).await
    }

    pub async fn delete(&self, file: Uuid) -> Result<(), Error> {
        let app = &self.rest.app;
        delete::delete(&app.db, &app.blobs, &self.caller, file, app.clock.now()).await
    }

    pub async fn close_batch(&self, id: Uuid) -> Result<Batch, Error> {
        let app = &self.rest.app;
        app.db.write(CloseBatch { caller: self.caller.clone(), id, now: app.clock.now() }).await
    }

    pub async fn cancel_batch(&self, batch: Uuid) -> Result<(), Error> {
        let app = &self.rest.app;
        let change = CancelBatch { caller: self.caller.clone(), batch, now: app.clock.now() };
        app.db.write(change).await.map(drop)
    }

    /// Leaves a file as if an unknown worker had claimed it.
    pub async fn break_claim(&self, file: Uuid, stage: Stage, holder: Uuid) {
        let sql = "UPDATE files SET status = $2, next_stage = $3, claim = $4, claimed_by = $4, claimed_at = $5,
                                    updated_at = $5, run_after = NULL, is_due = FALSE, attempt = 1 WHERE id = $1";
        self.rest.move_files(sql, args![file, stage.running(), stage, holder, self.rest.now()]).await;
    }
}

/// Fails files by the first letter of their names, at extract (x), chunk (c) or embed (e): permanently if the second
/// letter is an f, and only the first time if it is a t. A name that begins with `z:` is that of an archive, with the files
/// that it lists (`z:a,cf`). All others succeed, with text, a chunk and a vector.
#[derive(Default)]
pub struct WorkByName {
    tried: Mutex<HashMap<Uuid, usize>>,
}

/// What is in each file of a made archive.
const IN_ARCHIVE: &[u8] = b"12345";

/// The paths of the files in an archive with this name; `None` if it is none.
fn in_archive(name: &str) -> Option<impl Iterator<Item = String>> {
    Some(name.strip_prefix("z:")?.split(',').map(|name| format!("folder/{name}")))
}

impl WorkByName {
    fn run_stage(&self, job: &Job) -> Result<Output, Failure> {
        if let Some(paths) = in_archive(&job.file.file_name).filter(|_| job.stage == Stage::Extract) {
            let size = IN_ARCHIVE.len() as u64;
            let members = paths.map(|path| ListedMember { path, size }).collect();
            return Ok(Output::Archive(Contents { members, ..Contents::default() }));
        }
        let mut letters = job.file.file_name.chars();
        let fails_here = match letters.next() {
            Some('x') => job.stage == Stage::Extract,
            Some('c') => job.stage == Stage::Chunk,
            Some('e') => job.stage == Stage::Embed,
            _ => false,
        };
        if fails_here {
            let mut tried = self.tried.lock().expect("not poisoned");
            let tries = tried.entry(job.file.id).or_default();
            *tries += 1;
            match letters.next() {
                Some('f') => return Err(Failure::new(Code::ParseError, "It is damaged")),
                Some('t') if *tries == 1 => return Err(Failure::new(Code::DbError, "It was refused")),
                _ => {}
            }
        }
        Ok(match job.stage {
            Stage::Scan => Output::Nothing,
            Stage::Extract => Output::Extracted(Extracted::plain("Wind from the west".to_owned())),
            Stage::Chunk => Output::Chunked(vec![Chunk {
                text: "Wind from the west".to_owned(),
                page: None,
                heading: None,
                headings: Vec::new(),
                places: Vec::new(),
                char_start: 0,
                char_end: 18,
                tokens: 4,
            }]),
            Stage::Embed => {
                Output::Embedded(Embedded { model: "made".to_owned(), vectors: vec![vec![1.0; 8]] })
            }
        })
    }
}

impl Work for WorkByName {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        let output = self.run_stage(job);
        async move { output }.boxed()
    }

    fn unpack<'a>(
        &'a self,
        job: &'a Job,
        members: mpsc::Sender<Member>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        async move {
            for path in in_archive(&job.file.file_name).expect("an archive") {
                // The receiver is gone when the attempt is over.
                _ = members.send(Member { path, bytes: IN_ARCHIVE.to_vec() }).await;
            }
            Ok(())
        }
        .boxed()
    }
}

/// An offline app whose connection to its database can be broken.
pub async fn offline_app(
    db: &TestDb,
    clock: &ManualClock,
    fault_injector: &Arc<PlannedFaults>,
    variables: &[(&'static str, String)],
) -> Arc<OfflineApp> {
    Arc::new(
        OfflineApp::open_with(
            db,
            clock,
            variables,
            Arc::new(WorkByName::default()),
            Some(fault_injector.clone()),
        )
        .await,
    )
}

/// The running worker of a process.
pub struct RunningWorker {
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl RunningWorker {
    pub fn begin(rest: &OfflineApp) -> Self {
        let (worker, stop) = (rest.app.worker.clone().expect("it has a worker"), CancellationToken::new());
        let running = tokio::spawn({
            let stop = stop.clone();
            async move { worker.run(stop).await }
        });
        Self { stop, running }
    }

    pub async fn end(self) {
        self.stop.cancel();
        self.running.await.expect("the worker exits cleanly");
    }
}

impl OfflineApp {
    pub fn batch_timeout(&self) -> BatchTimeout {
        BatchTimeout { db: self.app.db.clone() }
    }

    /// Runs the worker and lets time pass until no file of this tenant is in progress any more, or the database is
    /// gone.
    pub async fn work(&self, tenant: &str, database_gone: &CancellationToken) {
        let working = RunningWorker::begin(self);
        let worker = self.app.worker.as_ref().expect("it has a worker");
        let in_progress = "SELECT COUNT(*) FROM files WHERE tenant_id = $1 AND confirmed_at IS NOT NULL
                              AND status NOT IN ('ready', 'failed', 'cancelled', 'deleted')";
        let all_finished = async {
            loop {
                self.let_time_pass_until(worker.run_until_idle()).await;
                // Through the connection without faults: this query belongs to the test.
                let Ok(mut tx) = patiently(async || self.observer.read().await).await else { return };
                if tx.number(in_progress, args![tenant]).await.expect("an answer") == 0 {
                    return;
                }
                self.clock.advance(Duration::from_secs(30));
            }
        };
        let finish_then_stop = async {
            all_finished.await;
            working.stop.cancel();
            std::future::pending::<()>().await;
        };
        // The database may also go away at the very end, when all files are finished and the worker polls once more.
        let mut running = working.running;
        tokio::select! {
            () = database_gone.cancelled() => self.app.liveness.identity().lost.cancel(),
            ended = &mut running => return ended.expect("the worker exits cleanly"),
            () = finish_then_stop => {}
        }
        working.stop.cancel();
        running.await.expect("the worker exits cleanly");
    }

    /// Advances the clock until the future is done.
    pub async fn let_time_pass_until<T>(&self, done: impl Future<Output = T>) -> T {
        tokio::pin!(done);
        loop {
            tokio::select! {
                biased;
                done = &mut done => return done,
                () = Clock::System.sleep(Duration::from_millis(3)) => self.clock.advance(Duration::from_secs(1)),
            }
        }
    }

    /// Runs every recovery sweep once. Returns their errors.
    pub async fn sweep(&self) -> Vec<String> {
        let (app, now) = (&self.app, self.now());
        let mut errors = Vec::new();
        errors
            .extend(unfinished_deletions::sweep_once(&app.db, &app.blobs).await.err().map(|e| e.to_string()));
        errors.extend(abandoned_uploads::sweep_once(&app.db, &app.blobs).await.err().map(|e| e.to_string()));
        errors.extend(resumable_uploads::sweep_once(&app.resumables, now).await.err().map(|e| e.to_string()));
        let batch_timeout = self.batch_timeout();
        let reports = [
            app.stuck_files.expiry.sweep_once(now).await,
            app.stuck_files.sweep_once(now).await,
            batch_timeout.sweep_once(now).await,
            app.orphan_cleanup.sweep_once(now).await,
        ];
        for report in reports {
            match report {
                Ok(SweepReport { errors: more, .. }) => errors.extend(more),
                Err(error) => errors.push(error.to_string()),
            }
        }
        errors
    }

    /// The process dies and is started again: its claims are released, and its unfinished uploads are not its own
    /// any more.
    pub async fn die_and_restart(&self) {
        let dead = self.app.liveness.identity();
        dead.lost.cancel();
        // A write of the dead process may still be failing in the writer, which both share here.
        let mut tries = 0;
        let rescue = async || self.app.db.write(RescueWorker { worker: dead.id, now: self.now() }).await;
        while let Err(error) = patiently(rescue).await {
            tries += 1;
            assert!(tries < 3 && matches!(error, Error::GroupNotCommitted(_)), "it is not rescued: {error}");
        }
        patiently(async || self.app.liveness.rejoin(&dead).await).await.expect("it restarts");
    }
}
