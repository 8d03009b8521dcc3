//! The connection to the database breaks at every step of every action, one step at a time: before the transaction
//! begins, at each statement, before the commit, and after it, so that only the response is lost. In one run the
//! process survives, in the other it dies (alternating by default, both at commits; `LANDFALL_TEST_EVERY_BREAK` runs both
//! everywhere). Then recovery runs, the action is repeated, and the result equals an undisturbed run: nothing is
//! lost, nothing exists twice, nothing is refunded twice.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use landfall_api::file_queries::FileFilter;
use landfall_core::caller::Reach;
use landfall_core::clock::ManualClock;
use landfall_core::lifecycle::Stage;
use landfall_core::states::OperationAction;
use landfall_server::blobs::{Blobs, Saved, Unsaved};
use landfall_server::operations::{Files, Start};
use landfall_server::records::files::dead_letters::Filter;
use landfall_server::recovery::{Sweep, abandoned_uploads, resumable_uploads, unfinished_deletions};
use landfall_store::Error;
use landfall_store::args;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::actions::{TestUser, offline_app};
use crate::support::fault_injector::{Break, PlannedFaults};
use crate::support::offline_app::{OfflineApp, patiently};
use crate::support::{TestDb, on_each_database};

const DAY: Duration = Duration::from_hours(24);
const MINUTE: Duration = Duration::from_mins(1);

/// Lists each action once, grouped by its actor.
macro_rules! actions {
    ($($actor:ident: $($action:ident),+;)+) => {
        /// Something that is done to files.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Action {
            $($($action,)+)+
        }

        $(const $actor: &[Action] = &[$(Action::$action),+];)+
    };
}

actions! {
    CLIENTS:
        OpenBatch, Register, RegisterInBatch, FreshUrl, Upload, UploadSlowly, UploadOnceMore, UploadTooShort,
        UploadBrokenOff, Confirm, Cancel, Retry, DeleteRegistered, DeleteUploaded, DeleteQueued, DeleteReady, CloseBatch, CancelBatch,
        RetryMany, CancelMany, DeleteMany, DeleteArchive,
        CreateUpload, AppendToUpload, FinishUpload, TerminateUpload, TerminatePart, JoinParts;
    WORKERS:
        Work, WorkInVain, RescueWorker;
    ARCHIVES:
        WorkOnArchive, RetryArchive;
    SWEEPS:
        Adopt, Expire, RecoverStuck, GiveUpStuck, CleanOrphans, GiveUpAbandoned, WarnOfDeletion, DeleteOldFailure,
        TimeOutBatch, ForgetDeleted, FinishDeletion, CleanUpAfterUpload, FinishLeftUpload, ExpireUpload, ExpirePart,
        ClearDeletedUpload, DeleteFilesOfArchive;
}

use Action::*;

/// Each case has its own tenant, so that cases do not see each other's data.
struct Case {
    user: TestUser,
    batch: Uuid,
    file: Uuid,
    /// The parts of a file that is still to be joined.
    parts: Vec<Uuid>,
    /// An operation that was started.
    operation: Uuid,
}

impl Case {
    async fn prepare(rest: &Arc<OfflineApp>, clock: &ManualClock, tenant: &str, action: Action) -> Self {
        let user = TestUser::of(rest, tenant);
        let batch = match action {
            Register | OpenBatch | CleanOrphans | CleanUpAfterUpload | Adopt | Expire | TerminatePart
            | JoinParts | ExpireUpload | ExpirePart => Uuid::nil(),
            TimeOutBatch | CloseBatch | CancelBatch | CancelMany | DeleteMany => {
                user.open_batch(4, "batch").await.unwrap()
            }
            _ => user.open_batch(1, "batch").await.unwrap(),
        };
        let within = Some(batch).filter(|batch| !batch.is_nil());
        let file = match action {
            OpenBatch | Register | RegisterInBatch | CleanUpAfterUpload | CleanOrphans | CreateUpload
            | TerminatePart | JoinParts | ExpirePart => Uuid::nil(),
            AppendToUpload | FinishUpload | TerminateUpload | FinishLeftUpload | ExpireUpload
            | ClearDeletedUpload => {
                let upload = user.create_upload(within, "a").await.unwrap();
                user.resume(upload, 2).await.unwrap();
                upload
            }
            FreshUrl | Upload | UploadSlowly | UploadTooShort | UploadBrokenOff | DeleteRegistered
            | Expire | GiveUpAbandoned => user.register(within, "a", 5).await.unwrap(),
            UploadOnceMore | Confirm | DeleteUploaded | Adopt | FinishDeletion => {
                let file = user.register(within, "a", 5).await.unwrap();
                user.upload(file).await.unwrap();
                file
            }
            Cancel | DeleteQueued | Work | RecoverStuck | GiveUpStuck | RescueWorker | ForgetDeleted => {
                user.upload_and_confirm(within, "a").await.unwrap()
            }
            WorkInVain | Retry | RetryMany | WarnOfDeletion | DeleteOldFailure => {
                user.upload_and_confirm(within, "cf").await.unwrap()
            }
            DeleteReady => user.upload_and_confirm(within, "a").await.unwrap(),
            WorkOnArchive | DeleteArchive | DeleteFilesOfArchive => {
                user.upload_and_confirm(within, "z:a,cf").await.unwrap()
            }
            RetryArchive => user.upload_and_confirm(within, "z:cf,xf").await.unwrap(),
            CloseBatch | CancelBatch | CancelMany | DeleteMany | TimeOutBatch => {
                user.register(within, "b", 5).await.unwrap();
                let unconfirmed = user.register(within, "c", 5).await.unwrap();
                user.upload(unconfirmed).await.unwrap();
                user.upload_and_confirm(within, "a").await.unwrap()
            }
        };
        let parts = match action {
            TerminatePart | ExpirePart => vec![user.upload_part("1").await.unwrap()],
            JoinParts => vec![user.upload_part("1").await.unwrap(), user.upload_part("2").await.unwrap()],
            _ => Vec::new(),
        };
        let mut case = Self { user, batch, file, parts, operation: Uuid::nil() };
        case.prepare_more(clock, action).await;
        case.operation = case.start_operation(action).await;
        case
    }

    /// Starts the operation of an action that is one.
    async fn start_operation(&self, action: Action) -> Uuid {
        let action = match action {
            RetryMany => OperationAction::Retry,
            CancelMany => OperationAction::Cancel,
            DeleteMany => OperationAction::Delete,
            _ => return Uuid::nil(),
        };
        let (user, rest) = (self.user.caller.owner(), &self.user.rest);
        let filter = Filter::of(Reach::User(user.clone()));
        let (id, now) = (rest.app.clock.new_id(), rest.now());
        let files = Files::Matching(FileFilter::default());
        rest.app.db.write(Start { id, user, action, filter, files, total: None, now }).await.unwrap()
    }

    async fn prepare_more(&self, clock: &ManualClock, action: Action) {
        let (user, rest, tenant) = (&self.user, &self.user.rest, &self.user.caller.tenant);
        let unknown = Uuid::new_v4();
        match action {
            Retry | RetryMany | WarnOfDeletion | DeleteOldFailure | DeleteReady | DeleteArchive => {
                rest.work(tenant, &CancellationToken::new()).await;
            }
            DeleteFilesOfArchive => {
                rest.work(tenant, &CancellationToken::new()).await;
                user.delete(self.file).await.unwrap();
            }
            RetryArchive => {
                rest.work(tenant, &CancellationToken::new()).await;
                user.retry(self.file).await.unwrap();
            }
            RecoverStuck => user.break_claim(self.file, Stage::Chunk, unknown).await,
            GiveUpStuck => {
                user.break_claim(self.file, Stage::Embed, unknown).await;
                rest.sql("UPDATE files SET retry_count = 3 WHERE id = $1", args![self.file]).await;
            }
            RescueWorker => {
                user.break_claim(self.file, Stage::Extract, unknown).await;
                let sql =
                    "INSERT INTO workers (id, name, stages, services, lock_key, started_at, heartbeat_at)
                           VALUES ($1, 'dead', '', '', 7, $2, $2)";
                rest.sql(sql, args![unknown, landfall_core::clock::Clock::System.now()]).await;
            }
            ForgetDeleted | ClearDeletedUpload => user.delete(self.file).await.unwrap(),
            FinishDeletion => user.cancel_batch(self.batch).await.unwrap(),
            CleanOrphans => {
                for number in 0..3 {
                    rest.store(
                        &Blobs::key(Uuid::new_v4(), unknown),
                        &number.to_string(),
                        rest.now() - DAY * 2,
                    );
                }
            }
            FinishLeftUpload => {
                // All bytes are here, and the process was killed before it noted that.
                let sql = "SELECT blob_key, hashes FROM resumable_uploads WHERE id = $1";
                let (key, hashes) = rest.rows::<(String, String)>(sql, args![self.file]).await.remove(0);
                let saved = Saved { offset: 2, hashes, stored: None };
                let left = rest.app.blobs.append(&key, &saved, Unsaved::Keep, 5).await.unwrap();
                let mut left = left.expect("no one else writes to it");
                left.write(b"345").await.unwrap();
                left.save().await.unwrap();
            }
            CleanUpAfterUpload => {
                let key = Blobs::key(Uuid::new_v4(), unknown);
                let mut incoming = rest.app.blobs.receive(unknown, &key).await.unwrap();
                incoming.write(b"12345").await.unwrap();
                incoming.publish(|_| Ok(())).await.unwrap();
            }
            _ => {}
        }
        let passes = match action {
            RecoverStuck => MINUTE * 30,
            GiveUpStuck => MINUTE * 31,
            // The batch times out after a day, an upload after two.
            TimeOutBatch => DAY,
            Adopt | Expire | GiveUpAbandoned | ExpireUpload | ExpirePart => DAY * 2,
            ForgetDeleted => DAY * 8,
            WarnOfDeletion | DeleteOldFailure => DAY * 23,
            _ => Duration::ZERO,
        };
        clock.advance(passes);
        if action == DeleteOldFailure {
            rest.app.orphan_cleanup.sweep_once(rest.now()).await.unwrap();
            clock.advance(DAY * 7);
        }
    }

    /// Returns what a client would get; a sweep retries by itself.
    async fn act(&self, action: Action, gone: &CancellationToken) -> Result<(), Error> {
        let (user, rest, file) = (&self.user, &self.user.rest, self.file);
        let (app, now) = (&rest.app, rest.now());
        match action {
            OpenBatch => user.open_batch(2, "new").await.map(drop),
            Register => user.register(None, "a", 5).await.map(drop),
            RegisterInBatch => user.register(Some(self.batch), "a", 5).await.map(drop),
            FreshUrl => user.fresh_url(file).await,
            Upload | UploadOnceMore => user.upload(file).await,
            UploadSlowly => user.upload_slowly(file).await,
            UploadTooShort => user.send(file, 5, vec![Ok(b"123")]).await,
            UploadBrokenOff => user.send(file, 5, vec![Ok(b"12345"), Err("cut")]).await,
            Confirm => user.confirm(file).await.map(drop),
            CreateUpload => user.create_upload(Some(self.batch), "a").await.map(drop),
            AppendToUpload => user.resume(file, 4).await,
            FinishUpload => user.resume(file, 5).await,
            TerminateUpload => user.terminate(file).await,
            TerminatePart => user.terminate(self.parts[0]).await,
            JoinParts => user.join(&self.parts, "a").await,
            Cancel => user.cancel(file).await.map(drop),
            Retry => user.retry(file).await.map(drop),
            DeleteRegistered | DeleteUploaded | DeleteQueued | DeleteReady | DeleteArchive => {
                user.delete(file).await
            }
            CloseBatch => user.close_batch(self.batch).await.map(drop),
            CancelBatch => user.cancel_batch(self.batch).await,
            RetryMany | CancelMany | DeleteMany => {
                app.operations().advance_up_to(self.operation, 1_000).await
            }
            Work | WorkInVain | WorkOnArchive | RetryArchive => {
                rest.work(&user.caller.tenant, gone).await;
                Ok(())
            }
            Adopt | Expire => app.stuck_files.expiry.sweep_once(now).await.map(drop),
            RecoverStuck | GiveUpStuck => app.stuck_files.sweep_once(now).await.map(drop),
            CleanOrphans | GiveUpAbandoned | WarnOfDeletion | DeleteOldFailure => {
                app.orphan_cleanup.sweep_once(now).await.map(drop)
            }
            TimeOutBatch => rest.batch_timeout().sweep_once(now).await.map(drop),
            ForgetDeleted => app.retention.sweep_once(now).await.map(drop),
            FinishDeletion | DeleteFilesOfArchive => {
                unfinished_deletions::sweep_once(&app.db, &app.blobs).await.map(drop)
            }
            CleanUpAfterUpload => abandoned_uploads::sweep_once(&app.db, &app.blobs).await.map(drop),
            FinishLeftUpload | ClearDeletedUpload | ExpirePart => {
                resumable_uploads::sweep_once(&app.resumables, now).await.map(drop)
            }
            ExpireUpload => {
                app.stuck_files.expiry.sweep_once(now).await?;
                resumable_uploads::sweep_once(&app.resumables, now).await.map(drop)
            }
            RescueWorker => app.liveness.rescue_dead_workers().await.map(drop),
        }
    }

    /// Everything that the tenant has and was notified of, without ids and times.
    async fn snapshot(&self) -> Snapshot {
        let mut tx = patiently(async || self.user.rest.observer.read().await).await.unwrap();
        let tenant = &self.user.caller.tenant;
        let quota =
            "SELECT reserved_bytes, reserved_files, used_bytes, used_files FROM tenants WHERE id = $1";
        let files = "SELECT file_name, status, CASE WHEN status = 'failed' THEN error_code END, retry_count,
                            CAST(CASE WHEN blob_key IS NULL THEN 0 ELSE 1 END AS BIGINT), chunk_count
                     FROM files WHERE tenant_id = $1 ORDER BY file_name";
        let batches =
            "SELECT status, file_count, registered_files, ready_files, failed_files, cancelled_files,
                              deleted_files FROM batches WHERE tenant_id = $1 ORDER BY id";
        let told =
            "SELECT kind, COUNT(*) FROM notifications WHERE tenant_id = $1 GROUP BY kind ORDER BY kind";
        let ends = "SELECT CASE WHEN to_state IS NULL THEN kind ELSE to_state END AS what, COUNT(*) FROM events
                    WHERE tenant_id = $1 AND (to_state IN ('registered', 'ready', 'failed', 'cancelled', 'deleted')
                        OR kind IN ('file:cleaned-up', 'batch:completed', 'batch:expired', 'batch:cancelled',
                                    'notification:created'))
                    GROUP BY 1 ORDER BY 1";
        let operations =
            "SELECT status, retried_count, skipped_count, error_count FROM operations WHERE tenant_id = $1";
        Snapshot {
            operations: tx.rows(operations, args![tenant]).await.unwrap(),
            quota: tx.row(quota, args![tenant]).await.unwrap(),
            files: tx.rows(files, args![tenant]).await.unwrap(),
            batches: tx.rows(batches, args![tenant]).await.unwrap(),
            told: tx.rows(told, args![tenant]).await.unwrap(),
            ends: tx.rows(ends, args![tenant]).await.unwrap(),
        }
    }

    /// The tenant is charged for exactly what it has at this moment.
    async fn assert_charges_match(&self, what: &str) {
        let wrong = "SELECT COUNT(*) FROM tenants t WHERE t.id = $1 AND
                         (t.reserved_bytes + t.used_bytes, t.reserved_files + t.used_files)
                      <> (SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT), COUNT(*) FROM
                          (SELECT size_bytes AS bytes FROM files WHERE tenant_id = $1 AND status <> 'deleted'
                           UNION ALL SELECT length FROM resumable_uploads
                           WHERE tenant_id = $1 AND kind = 'part' AND joined_into IS NULL AND NOT is_over) AS charged)";
        let mut tx = patiently(async || self.user.rest.observer.read().await).await.unwrap();
        assert_eq!(tx.number(wrong, args![&self.user.caller.tenant]).await.unwrap(), 0, "{what}");
    }

    /// The client retries, or the sweep runs again.
    async fn act_again(&self, action: Action) {
        let answer = patiently(async || self.act(action, &CancellationToken::new()).await).await;
        assert!(answer.is_ok() || is_refusal(&answer), "{action:?}: {answer:?}");
        let app = &self.user.rest.app;
        patiently(async || unfinished_deletions::sweep_once(&app.db, &app.blobs).await).await.unwrap();
    }

    async fn delete_all(&self) {
        let left = "SELECT id FROM files WHERE tenant_id = $1 AND status <> 'deleted'";
        for (file,) in self.user.rest.rows::<(Uuid,)>(left, args![&self.user.caller.tenant]).await {
            patiently(async || self.user.delete(file).await).await.unwrap();
        }
    }
}

/// Name, status, code of a failure, recoveries, whether there is a blob, chunks.
type FileShape = (String, String, Option<String>, i64, i64, Option<i64>);

#[derive(Debug, PartialEq, Eq)]
struct Snapshot {
    operations: Vec<(String, i64, i64, i64)>,
    quota: Option<(i64, i64, i64, i64)>,
    files: Vec<FileShape>,
    batches: Vec<(String, i64, i64, i64, i64, i64, i64)>,
    told: Vec<(String, i64)>,
    ends: Vec<(String, i64)>,
}

/// A process whose connection is broken again and again, and the number of the next tenant.
struct FaultyProcess {
    rest: Arc<OfflineApp>,
    clock: ManualClock,
    fault_injector: Arc<PlannedFaults>,
    tenants: usize,
}

impl FaultyProcess {
    async fn start(db: &TestDb) -> Self {
        // All stored blobs are older than any age limit, so none is skipped for being new.
        let clock = ManualClock::starting_at("2040-01-02T03:04:05Z".parse().unwrap());
        let fault_injector = PlannedFaults::new();
        let variables = [
            ("UPLOAD_CONFIRM_WINDOW_MS", "172800000".to_owned()),
            // The clock of the test runs ahead while a slow machine works on a stage.
            ("EXTRACT_TIMEOUT_MS", "7200000".to_owned()),
        ];
        let rest = offline_app(db, &clock, &fault_injector, &variables).await;
        Self { rest, clock, fault_injector, tenants: 0 }
    }

    async fn prepare(&mut self, action: Action) -> Case {
        self.tenants += 1;
        Case::prepare(&self.rest, &self.clock, &format!("tenant{}", self.tenants), action).await
    }

    /// The points at which the action may be broken, and the result of an undisturbed run.
    async fn undisturbed(&mut self, action: Action) -> (Vec<(usize, Break)>, Snapshot) {
        let case = self.prepare(action).await;
        self.fault_injector.reset();
        let answer = case.act(action, &CancellationToken::new()).await;
        let (steps, commits) = self.fault_injector.steps();
        assert!(steps > 0 && (answer.is_ok() || is_refusal(&answer)), "{action:?}: {answer:?}");
        case.act_again(action).await;
        let snapshot = case.snapshot().await;
        case.delete_all().await;
        (points(steps, &commits), snapshot)
    }

    /// Breaks the connection at that step of the action, and recovers.
    async fn disturb(&self, case: &Case, action: Action, step: usize, how: Break) -> Result<(), Error> {
        let gone = self.fault_injector.break_at(step, how);
        let answer = case.act(action, &gone).await;
        self.fault_injector.reset();
        if how == Break::Permanently {
            self.rest.die_and_restart().await;
        }
        case.assert_charges_match(&point(action, step, how)).await;
        answer
    }

    /// The sweeps report no error, and neither does the audit.
    async fn assert_recovered(&self, action: Action) {
        // Uploads with an unknown outcome are settled by the sweep.
        let settled = async {
            while !self.rest.app.uploads.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        self.rest.let_time_pass_until(settled).await;
        assert_eq!(self.rest.sweep().await, Vec::<String>::new(), "{action:?}");
        assert_eq!(self.rest.findings().await, [], "{action:?}");
    }

    /// When everything is deleted and purged, no row, blob or charge is left.
    async fn assert_nothing_is_left(&self, action: Action) {
        self.clock.advance(DAY * 8);
        self.assert_recovered(action).await;
        assert_eq!(
            self.rest.app.retention.sweep_once(self.rest.now()).await.unwrap().errors,
            Vec::<String>::new()
        );
        assert_eq!(self.rest.number("SELECT COUNT(*) FROM files").await, 0, "{action:?}");
        assert_eq!(self.rest.app.blobs.list("", None).next_page(1).await.unwrap(), [], "{action:?}");
        assert_eq!(self.rest.app.blobs.unfinished().await.unwrap(), [], "{action:?}");
        assert_eq!(self.rest.app.blobs.all_appended().await.unwrap(), [] as [&str; 0], "{action:?}");
        assert_eq!(self.rest.number("SELECT COUNT(*) FROM resumable_uploads").await, 0, "{action:?}");
        let held = "SELECT COUNT(*) FROM tenants WHERE reserved_bytes + reserved_files + used_bytes + used_files <> 0";
        assert_eq!(self.rest.number(held).await, 0, "{action:?}: everything was refunded once");
    }
}

/// Each step in one of the two ways, alternating, and commits in both; all steps in both if the variable is set.
fn points(steps: usize, commits: &[usize]) -> Vec<(usize, Break)> {
    let all = std::env::var_os("LANDFALL_TEST_EVERY_BREAK").is_some();
    let ways = |step: usize| match step % 2 {
        _ if all || commits.contains(&step) => vec![Break::Once, Break::Permanently],
        0 => vec![Break::Once],
        _ => vec![Break::Permanently],
    };
    (1..=steps).flat_map(|step| ways(step).into_iter().map(move |how| (step, how))).collect()
}

fn point(action: Action, step: usize, how: Break) -> String {
    format!("{action:?}, broken {how:?} at step {step}")
}

/// Client actions: all cases run side by side, each with its own tenant, so that they do not affect each other.
async fn break_clients_at_every_step(db: TestDb) {
    let mut process = FaultyProcess::start(&db).await;
    for &action in CLIENTS {
        let (mut points, undisturbed) = process.undisturbed(action).await;
        // Cases that the process survives come last: no other process cleans up after it.
        points.sort_by_key(|(_, how)| *how == Break::Once);
        let mut cases = Vec::new();
        for (step, how) in points {
            cases.push((step, how, process.prepare(action).await));
        }
        for (step, how, case) in &cases {
            if process.disturb(case, action, *step, *how).await.is_ok() {
                let promised = case.snapshot().await;
                // The blobs of what these delete, and the files of an archive, are removed by a sweep.
                if ![CancelBatch, DeleteMany, DeleteArchive].contains(&action) {
                    assert_eq!(
                        promised,
                        undisturbed,
                        "{}: the action reported success",
                        point(action, *step, *how)
                    );
                }
            }
        }
        process.assert_recovered(action).await;
        for (step, how, case) in &cases {
            case.act_again(action).await;
            assert_eq!(case.snapshot().await, undisturbed, "{}", point(action, *step, *how));
        }
        process.assert_recovered(action).await;
        for (_, _, case) in &cases {
            case.delete_all().await;
        }
        process.assert_nothing_is_left(action).await;
    }
}

/// Worker and sweep actions affect everything in the database, so the cases run one after the other.
async fn break_processes_at_every_step(db: TestDb, actions: &[Action]) {
    let mut process = FaultyProcess::start(&db).await;
    for action in actions {
        let (points, undisturbed) = process.undisturbed(*action).await;
        for (step, how) in points {
            let case = process.prepare(*action).await;
            // Work that was interrupted is done in the next run.
            drop(process.disturb(&case, *action, step, how).await);
            case.act_again(*action).await;
            assert_eq!(case.snapshot().await, undisturbed, "{}", point(*action, step, how));
            case.delete_all().await;
        }
        process.assert_nothing_is_left(*action).await;
    }
}

fn is_refusal<T: Debug>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Refused(_)))
}

#[on_each_database]
async fn a_connection_that_breaks_at_any_step_of_a_client_action_leaves_all_or_nothing_of_it(db: TestDb) {
    break_clients_at_every_step(db).await;
}

#[on_each_database]
async fn a_connection_that_breaks_at_any_step_of_a_worker_keeps_no_file_from_finishing(db: TestDb) {
    break_processes_at_every_step(db, WORKERS).await;
}

#[on_each_database]
async fn a_connection_that_breaks_at_any_step_of_an_archive_keeps_none_of_its_files_from_finishing(
    db: TestDb,
) {
    break_processes_at_every_step(db, ARCHIVES).await;
}

#[on_each_database]
async fn a_connection_that_breaks_at_any_step_of_a_sweep_is_repaired_by_the_next_sweep(db: TestDb) {
    break_processes_at_every_step(db, SWEEPS).await;
}
