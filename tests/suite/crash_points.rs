//! The connection to the database breaks at every step of every deed, each in turn: before the transaction begins, at each
//! statement, before the commit, and after it, so that only the answer is lost. Once the process lives on, and once it
//! dies of it (by default in turn, and both at commits; `LANDFALL_TEST_EVERY_BREAK` asks for both everywhere). Then it
//! heals, the deed is done again, and all is as if nothing had happened: nothing is lost, nothing is there twice, nothing
//! is refunded twice.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use landfall_core::clock::ManualClock;
use landfall_core::lifecycle::Stage;
use landfall_server::blobs::Blobs;
use landfall_server::recovery::{Sweep, abandoned_uploads, unfinished_deletions};
use landfall_store::Error;
use landfall_store::args;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::at_rest::AtRest;
use crate::support::hands::{Hands, at_rest};
use crate::support::meddler::{Break, Meddler};
use crate::support::{TestDb, on_each_database};

const DAY: Duration = Duration::from_hours(24);
const MINUTE: Duration = Duration::from_mins(1);

/// Lists each deed once, among those of whoever does it.
macro_rules! deeds {
    ($($who:ident: $($deed:ident),+;)+) => {
        /// Something that is done to files.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Deed {
            $($($deed,)+)+
        }

        $(const $who: &[Deed] = &[$(Deed::$deed),+];)+
    };
}

deeds! {
    CLIENTS:
        OpenBatch, Register, RegisterInBatch, FreshUrl, Upload, UploadOnceMore, UploadTooShort, UploadBrokenOff, Confirm,
        Cancel, Retry, DeleteRegistered, DeleteUploaded, DeleteQueued, DeleteReady, CloseBatch, CancelBatch;
    WORKERS:
        Work, WorkInVain, RescueWorker;
    SWEEPS:
        Adopt, Expire, RecoverStuck, GiveUpStuck, CleanOrphans, GiveUpAbandoned, WarnOfDeletion, DeleteOldFailure,
        TimeOutBatch, ForgetDeleted, FinishDeletion, CleanUpAfterUpload;
}

use Deed::*;

/// A tenant of its own for each case, so that none sees what another left.
struct Case {
    hands: Hands,
    batch: Uuid,
    file: Uuid,
}

impl Case {
    async fn prepare(rest: &Arc<AtRest>, clock: &ManualClock, tenant: &str, deed: Deed) -> Self {
        let hands = Hands::of(rest, tenant);
        let batch = match deed {
            Register | OpenBatch | CleanOrphans | CleanUpAfterUpload | Adopt | Expire => Uuid::nil(),
            TimeOutBatch | CloseBatch | CancelBatch => hands.open_batch(4, "batch").await.unwrap(),
            _ => hands.open_batch(1, "batch").await.unwrap(),
        };
        let within = Some(batch).filter(|batch| !batch.is_nil());
        let file = match deed {
            OpenBatch | Register | RegisterInBatch | CleanUpAfterUpload | CleanOrphans => Uuid::nil(),
            FreshUrl | Upload | UploadTooShort | UploadBrokenOff | DeleteRegistered | Expire
            | GiveUpAbandoned => hands.register(within, "a", 5).await.unwrap(),
            UploadOnceMore | Confirm | DeleteUploaded | Adopt | FinishDeletion => {
                let file = hands.register(within, "a", 5).await.unwrap();
                hands.upload(file).await.unwrap();
                file
            }
            Cancel | DeleteQueued | Work | RecoverStuck | GiveUpStuck | RescueWorker | ForgetDeleted => {
                hands.bring(within, "a").await.unwrap()
            }
            WorkInVain | Retry | WarnOfDeletion | DeleteOldFailure => {
                hands.bring(within, "cf").await.unwrap()
            }
            DeleteReady => hands.bring(within, "a").await.unwrap(),
            CloseBatch | CancelBatch | TimeOutBatch => {
                hands.register(within, "b", 5).await.unwrap();
                let unconfirmed = hands.register(within, "c", 5).await.unwrap();
                hands.upload(unconfirmed).await.unwrap();
                hands.bring(within, "a").await.unwrap()
            }
        };
        let case = Self { hands, batch, file };
        case.prepare_more(clock, deed).await;
        case
    }

    async fn prepare_more(&self, clock: &ManualClock, deed: Deed) {
        let (hands, rest, tenant) = (&self.hands, &self.hands.rest, &self.hands.caller.tenant);
        let nobody = Uuid::new_v4();
        match deed {
            Retry | WarnOfDeletion | DeleteOldFailure | DeleteReady => {
                rest.work(tenant, &CancellationToken::new()).await;
            }
            RecoverStuck => hands.break_claim(self.file, Stage::Chunk, nobody).await,
            GiveUpStuck => {
                hands.break_claim(self.file, Stage::Embed, nobody).await;
                rest.sql("UPDATE files SET retry_count = 3 WHERE id = $1", args![self.file]).await;
            }
            RescueWorker => {
                hands.break_claim(self.file, Stage::Extract, nobody).await;
                let sql =
                    "INSERT INTO workers (id, name, stages, services, lock_key, started_at, heartbeat_at)
                           VALUES ($1, 'dead', '', '', 7, $2, $2)";
                rest.sql(sql, args![nobody, landfall_core::clock::Clock::System.now()]).await;
            }
            ForgetDeleted => hands.delete(self.file).await.unwrap(),
            FinishDeletion => hands.cancel_batch(self.batch).await.unwrap(),
            CleanOrphans => {
                for number in 0..3 {
                    rest.store(
                        &Blobs::key(Uuid::new_v4(), nobody),
                        &number.to_string(),
                        rest.now() - DAY * 2,
                    );
                }
            }
            CleanUpAfterUpload => {
                let key = Blobs::key(Uuid::new_v4(), nobody);
                let mut incoming = rest.app.blobs.receive(nobody, &key).await.unwrap();
                incoming.write(b"12345").await.unwrap();
                incoming.publish(|_| Ok(())).await.unwrap();
            }
            _ => {}
        }
        let passes = match deed {
            RecoverStuck => MINUTE * 30,
            GiveUpStuck => MINUTE * 31,
            // The batch's time is a day, an upload's are two.
            TimeOutBatch => DAY,
            Adopt | Expire | GiveUpAbandoned => DAY * 2,
            ForgetDeleted => DAY * 8,
            WarnOfDeletion | DeleteOldFailure => DAY * 23,
            _ => Duration::ZERO,
        };
        clock.advance(passes);
        if deed == DeleteOldFailure {
            rest.app.orphan_cleanup.sweep_once(rest.now()).await.unwrap();
            clock.advance(DAY * 7);
        }
    }

    /// What a client gets for it; a sweep tries again by itself.
    async fn act(&self, deed: Deed, gone: &CancellationToken) -> Result<(), Error> {
        let (hands, rest, file) = (&self.hands, &self.hands.rest, self.file);
        let (app, now) = (&rest.app, rest.now());
        match deed {
            OpenBatch => hands.open_batch(2, "new").await.map(drop),
            Register => hands.register(None, "a", 5).await.map(drop),
            RegisterInBatch => hands.register(Some(self.batch), "a", 5).await.map(drop),
            FreshUrl => hands.fresh_url(file).await,
            Upload | UploadOnceMore => hands.upload(file).await,
            UploadTooShort => hands.send(file, 5, vec![Ok(b"123")]).await,
            UploadBrokenOff => hands.send(file, 5, vec![Ok(b"12345"), Err("cut")]).await,
            Confirm => hands.confirm(file).await.map(drop),
            Cancel => hands.cancel(file).await.map(drop),
            Retry => hands.retry(file).await.map(drop),
            DeleteRegistered | DeleteUploaded | DeleteQueued | DeleteReady => hands.delete(file).await,
            CloseBatch => hands.close_batch(self.batch).await.map(drop),
            CancelBatch => hands.cancel_batch(self.batch).await,
            Work | WorkInVain => {
                rest.work(&hands.caller.tenant, gone).await;
                Ok(())
            }
            Adopt | Expire => app.stuck_files.expiry.sweep_once(now).await.map(drop),
            RecoverStuck | GiveUpStuck => app.stuck_files.sweep_once(now).await.map(drop),
            CleanOrphans | GiveUpAbandoned | WarnOfDeletion | DeleteOldFailure => {
                app.orphan_cleanup.sweep_once(now).await.map(drop)
            }
            TimeOutBatch => rest.batch_timeout().sweep_once(now).await.map(drop),
            ForgetDeleted => app.retention.sweep_once(now).await.map(drop),
            FinishDeletion => unfinished_deletions::sweep_once(&app.db, &app.blobs).await.map(drop),
            CleanUpAfterUpload => abandoned_uploads::sweep_once(&app.db, &app.blobs).await.map(drop),
            RescueWorker => app.liveness.rescue_dead_workers().await.map(drop),
        }
    }

    /// All that the tenant has and was told, without ids and times.
    async fn shape(&self) -> Shape {
        let mut tx = self.hands.rest.looking_on.read().await.unwrap();
        let tenant = &self.hands.caller.tenant;
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
        Shape {
            quota: tx.row(quota, args![tenant]).await.unwrap(),
            files: tx.rows(files, args![tenant]).await.unwrap(),
            batches: tx.rows(batches, args![tenant]).await.unwrap(),
            told: tx.rows(told, args![tenant]).await.unwrap(),
            ends: tx.rows(ends, args![tenant]).await.unwrap(),
        }
    }

    /// What the tenant is charged for is what it has, at this very moment.
    async fn assert_charged_rightly(&self, what: &str) {
        let wrong = "SELECT COUNT(*) FROM tenants t WHERE t.id = $1 AND
                         (t.reserved_bytes + t.used_bytes, t.reserved_files + t.used_files)
                      <> (SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT), COUNT(*) FROM files
                          WHERE tenant_id = $1 AND status <> 'deleted')";
        let mut tx = self.hands.rest.looking_on.read().await.unwrap();
        assert_eq!(tx.number(wrong, args![&self.hands.caller.tenant]).await.unwrap(), 0, "{what}");
    }

    /// The client tries again, the sweep comes round again.
    async fn act_again(&self, deed: Deed) {
        let answer = self.act(deed, &CancellationToken::new()).await;
        assert!(answer.is_ok() || is_refusal(&answer), "{deed:?}: {answer:?}");
        let app = &self.hands.rest.app;
        unfinished_deletions::sweep_once(&app.db, &app.blobs).await.unwrap();
    }

    async fn delete_all(&self) {
        let left = "SELECT id FROM files WHERE tenant_id = $1 AND status <> 'deleted'";
        for (file,) in self.hands.rest.rows::<(Uuid,)>(left, args![&self.hands.caller.tenant]).await {
            self.hands.delete(file).await.unwrap();
        }
    }
}

/// Name, status, code of a failure, recoveries, whether there is a blob, chunks.
type FileShape = (String, String, Option<String>, i64, i64, Option<i64>);

#[derive(Debug, PartialEq, Eq)]
struct Shape {
    quota: Option<(i64, i64, i64, i64)>,
    files: Vec<FileShape>,
    batches: Vec<(String, i64, i64, i64, i64, i64, i64)>,
    told: Vec<(String, i64)>,
    ends: Vec<(String, i64)>,
}

/// A process whose connection is broken again and again, and who is to be asked for the next tenant.
struct Victim {
    rest: Arc<AtRest>,
    clock: ManualClock,
    meddler: Arc<Meddler>,
    tenants: usize,
}

impl Victim {
    async fn start(db: &TestDb) -> Self {
        // Everything that is stored is older than any limit: nothing is spared because it is young.
        let clock = ManualClock::starting_at("2040-01-02T03:04:05Z".parse().unwrap());
        let meddler = Meddler::new();
        let variables = [("UPLOAD_CONFIRM_WINDOW_MS", "172800000".to_owned())];
        let rest = at_rest(db, &clock, &meddler, &variables).await;
        Self { rest, clock, meddler, tenants: 0 }
    }

    async fn prepare(&mut self, deed: Deed) -> Case {
        self.tenants += 1;
        Case::prepare(&self.rest, &self.clock, &format!("tenant{}", self.tenants), deed).await
    }

    /// Where the deed may be broken, and what there is after it when it is not.
    async fn undisturbed(&mut self, deed: Deed) -> (Vec<(usize, Break)>, Shape) {
        let case = self.prepare(deed).await;
        self.meddler.rest();
        let answer = case.act(deed, &CancellationToken::new()).await;
        let (steps, commits) = self.meddler.steps();
        assert!(steps > 0 && (answer.is_ok() || is_refusal(&answer)), "{deed:?}: {answer:?}");
        case.act_again(deed).await;
        let shape = case.shape().await;
        case.delete_all().await;
        (points(steps, &commits), shape)
    }

    /// Breaks the connection at that step of the deed, and heals from it.
    async fn disturb(&self, case: &Case, deed: Deed, step: usize, how: Break) -> Result<(), Error> {
        let gone = self.meddler.break_at(step, how);
        let answer = case.act(deed, &gone).await;
        self.meddler.rest();
        if how == Break::ForGood {
            self.rest.die_and_rise().await;
        }
        case.assert_charged_rightly(&point(deed, step, how)).await;
        answer
    }

    /// The sweeps have nothing to complain of, and neither has the audit.
    async fn assert_healed(&self, deed: Deed) {
        // Uploads that were in doubt come to their end by themselves.
        let settled = async {
            while !self.rest.app.uploads.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        self.rest.let_time_pass_until(settled).await;
        assert_eq!(self.rest.sweep().await, Vec::<String>::new(), "{deed:?}");
        assert_eq!(self.rest.findings().await, [], "{deed:?}");
    }

    /// When all is deleted and forgotten, nothing is left of it.
    async fn assert_nothing_is_left(&self, deed: Deed) {
        self.clock.advance(DAY * 8);
        self.assert_healed(deed).await;
        assert_eq!(
            self.rest.app.retention.sweep_once(self.rest.now()).await.unwrap().errors,
            Vec::<String>::new()
        );
        assert_eq!(self.rest.number("SELECT COUNT(*) FROM files").await, 0, "{deed:?}");
        assert_eq!(self.rest.app.blobs.list("", None).next_page(1).await.unwrap(), [], "{deed:?}");
        assert_eq!(self.rest.app.blobs.unfinished().await.unwrap(), [], "{deed:?}");
        let held = "SELECT COUNT(*) FROM tenants WHERE reserved_bytes + reserved_files + used_bytes + used_files <> 0";
        assert_eq!(self.rest.number(held).await, 0, "{deed:?}: everything was given back, once");
    }
}

/// Each step in one of the two ways, in turn, and what is about a commit in both; all in both where somebody has the time.
fn points(steps: usize, commits: &[usize]) -> Vec<(usize, Break)> {
    let all = std::env::var_os("LANDFALL_TEST_EVERY_BREAK").is_some();
    let ways = |step: usize| match step % 2 {
        _ if all || commits.contains(&step) => vec![Break::Once, Break::ForGood],
        0 => vec![Break::Once],
        _ => vec![Break::ForGood],
    };
    (1..=steps).flat_map(|step| ways(step).into_iter().map(move |how| (step, how))).collect()
}

fn point(deed: Deed, step: usize, how: Break) -> String {
    format!("{deed:?}, broken {how:?} at step {step}")
}

/// What clients do: all cases side by side, each with a tenant of its own. None of them sees another's.
async fn break_clients_at_every_step(db: TestDb) {
    let db = db.without_syncs();
    let mut victim = Victim::start(&db).await;
    for &deed in CLIENTS {
        let (mut points, undisturbed) = victim.undisturbed(deed).await;
        // Those that the process outlives come last: nobody else cleans up after it.
        points.sort_by_key(|(_, how)| *how == Break::Once);
        let mut cases = Vec::new();
        for (step, how) in points {
            cases.push((step, how, victim.prepare(deed).await));
        }
        for (step, how, case) in &cases {
            if victim.disturb(case, deed, *step, *how).await.is_ok() {
                let promised = case.shape().await;
                if deed != CancelBatch {
                    assert_eq!(
                        promised,
                        undisturbed,
                        "{}: it said that it was done",
                        point(deed, *step, *how)
                    );
                }
            }
        }
        victim.assert_healed(deed).await;
        for (step, how, case) in &cases {
            case.act_again(deed).await;
            assert_eq!(case.shape().await, undisturbed, "{}", point(deed, *step, *how));
        }
        victim.assert_healed(deed).await;
        for (_, _, case) in &cases {
            case.delete_all().await;
        }
        victim.assert_nothing_is_left(deed).await;
    }
}

/// What a worker and sweeps do, they do to all that there is: one case after the other.
async fn break_processes_at_every_step(db: TestDb, deeds: &[Deed]) {
    let db = db.without_syncs();
    let mut victim = Victim::start(&db).await;
    for deed in deeds {
        let (points, undisturbed) = victim.undisturbed(*deed).await;
        for (step, how) in points {
            let case = victim.prepare(*deed).await;
            // What it did not come to, it comes to when it runs again.
            drop(victim.disturb(&case, *deed, step, how).await);
            case.act_again(*deed).await;
            assert_eq!(case.shape().await, undisturbed, "{}", point(*deed, step, how));
            case.delete_all().await;
        }
        victim.assert_nothing_is_left(*deed).await;
    }
}

fn is_refusal<T: Debug>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Refused(_)))
}

#[on_each_database]
async fn a_connection_that_breaks_at_any_step_of_what_a_client_does_leaves_all_or_nothing_of_it(db: TestDb) {
    break_clients_at_every_step(db).await;
}

#[on_each_database]
async fn a_connection_that_breaks_at_any_step_of_a_workers_keeps_no_file_from_its_end(db: TestDb) {
    break_processes_at_every_step(db, WORKERS).await;
}

#[on_each_database]
async fn a_connection_that_breaks_at_any_step_of_a_sweep_is_made_good_by_the_next(db: TestDb) {
    break_processes_at_every_step(db, SWEEPS).await;
}
