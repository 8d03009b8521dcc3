//! Two processes act on the same file at once, on PostgreSQL, where transactions run side by side at READ COMMITTED.
//!
//! One process is held at a step of its action; the other begins meanwhile, and either ends or waits for a lock. Then the
//! first goes on. Whatever the pair, the result is that of one order or of the other, or of one alone if the other was
//! refused: nothing is lost, doubled or refunded twice. The tests print how often each pair met (`--no-capture` shows it).
//!
//! By default a third of the pairs meet in each situation, the next third in the next one, and the first is held before each
//! of its commits. With `LANDFALL_TEST_EVERY_STEP` all pairs meet, and the first is held at every step.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use landfall_core::clock::ManualClock;
use landfall_core::lifecycle::Stage;
use landfall_server::recovery::{Sweep, abandoned_uploads, unfinished_deletions};
use landfall_store::{Error, args};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::TestDb;
use crate::support::actions::{RunningWorker, TestUser, offline_app};
use crate::support::fault_injector::{HoldPoint, PlannedFaults};
use crate::support::offline_app::OfflineApp;

const DAY: Duration = Duration::from_hours(24);

/// What the file is when two act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    Registered,
    Uploaded,
    Queued,
    /// A worker that does not exist holds it.
    Stuck,
    Failed,
    Ready,
}

/// What is done to the file, or to the batch that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    FreshUrl,
    Upload,
    Confirm,
    Cancel,
    Retry,
    Delete,
    Add,
    CloseBatch,
    CancelBatch,
    Work,
    Expire,
    Recover,
    CleanUp,
    TimeOut,
}

const ACTIONS: [Action; 14] = [
    Action::FreshUrl,
    Action::Upload,
    Action::Confirm,
    Action::Cancel,
    Action::Retry,
    Action::Delete,
    Action::Add,
    Action::CloseBatch,
    Action::CancelBatch,
    Action::Work,
    Action::Expire,
    Action::Recover,
    Action::CleanUp,
    Action::TimeOut,
];

/// A process whose steps can be held.
struct Process {
    app: Arc<OfflineApp>,
    faults: Arc<PlannedFaults>,
}

impl Process {
    async fn start(db: &TestDb, clock: &ManualClock) -> Self {
        let faults = PlannedFaults::new();
        let variables = [("UNCONFIRMED_UPLOADS", "delete".to_owned())];
        Self { app: offline_app(db, clock, &faults, &variables).await, faults }
    }
}

/// A file of a tenant that no other case has.
#[derive(Clone)]
struct Case {
    tenant: String,
    batch: Uuid,
    file: Uuid,
}

impl Case {
    async fn prepare(process: &Process, clock: &ManualClock, tenant: String, situation: Situation) -> Self {
        let user = TestUser::of(&process.app, &tenant);
        let batch = user.open_batch(3, "batch").await.unwrap();
        let name = if situation == Situation::Failed { "cf" } else { "a" };
        let file = user.register(Some(batch), name, 5).await.unwrap();
        if situation != Situation::Registered {
            user.upload(file).await.unwrap();
        }
        if !matches!(situation, Situation::Registered | Situation::Uploaded) {
            user.confirm(file).await.unwrap();
        }
        match situation {
            Situation::Stuck => user.break_claim(file, Stage::Chunk, Uuid::new_v4()).await,
            Situation::Failed | Situation::Ready => {
                process.app.work(&tenant, &CancellationToken::new()).await;
            }
            _ => {}
        }
        // Whatever waits for its time may be done now.
        clock.advance(DAY * 2);
        Self { tenant, batch, file }
    }

    async fn act(&self, app: &Arc<OfflineApp>, action: Action) -> Result<(), Error> {
        let (user, file, now) = (TestUser::of(app, &self.tenant), self.file, app.now());
        match action {
            Action::FreshUrl => user.fresh_url(file).await,
            Action::Upload => user.upload(file).await,
            Action::Confirm => user.confirm(file).await.map(drop),
            Action::Cancel => user.cancel(file).await.map(drop),
            Action::Retry => user.retry(file).await.map(drop),
            Action::Delete => user.delete(file).await,
            Action::Add => user.register(Some(self.batch), "added", 5).await.map(drop),
            Action::CloseBatch => user.close_batch(self.batch).await.map(drop),
            Action::CancelBatch => user.cancel_batch(self.batch).await,
            Action::Work => {
                let working = RunningWorker::begin(app);
                let worker = app.app.worker.as_ref().expect("it has a worker");
                app.let_time_pass_until(worker.run_until_idle()).await;
                working.end().await;
                Ok(())
            }
            Action::Expire => app.app.stuck_files.expiry.sweep_once(now).await.map(drop),
            Action::Recover => app.app.stuck_files.sweep_once(now).await.map(drop),
            Action::CleanUp => app.app.orphan_cleanup.sweep_once(now).await.map(drop),
            Action::TimeOut => app.batch_timeout().sweep_once(now).await.map(drop),
        }
    }

    /// What the tenant has after these actions, without ids and times.
    async fn outcome(&self, app: &Arc<OfflineApp>, actions: &[Action]) -> Outcome {
        // A worker passes over a file that another transaction holds, and takes it the next time.
        if actions.contains(&Action::Work) {
            self.act(app, Action::Work).await.unwrap();
        }
        unfinished_deletions::sweep_once(&app.app.db, &app.app.blobs).await.unwrap();
        abandoned_uploads::sweep_once(&app.app.db, &app.app.blobs).await.unwrap();
        let mut tx = app.observer.read().await.unwrap();
        let quota =
            "SELECT reserved_bytes, reserved_files, used_bytes, used_files FROM tenants WHERE id = $1";
        let files = "SELECT file_name, status, CASE WHEN status = 'failed' THEN error_code END,
                            CAST(CASE WHEN blob_key IS NULL THEN 0 ELSE 1 END AS BIGINT),
                            CASE WHEN status = 'ready' THEN
                                (SELECT COUNT(*) FROM chunks WHERE chunks.file_id = files.id) END
                     FROM files WHERE tenant_id = $1 ORDER BY file_name";
        let batches =
            "SELECT status, registered_files, ready_files, failed_files, cancelled_files, deleted_files
                       FROM batches WHERE tenant_id = $1";
        let ends = "SELECT CASE WHEN to_state IS NULL THEN kind ELSE to_state END AS what, COUNT(*) FROM events
                    WHERE tenant_id = $1 AND (to_state IN ('registered', 'ready', 'failed', 'cancelled', 'deleted')
                        OR kind IN ('batch:completed', 'batch:expired', 'batch:cancelled', 'notification:created'))
                    GROUP BY 1 ORDER BY 1";
        Outcome {
            quota: tx.row(quota, args![&self.tenant]).await.unwrap(),
            files: tx.rows(files, args![&self.tenant]).await.unwrap(),
            batches: tx.rows(batches, args![&self.tenant]).await.unwrap(),
            ends: tx.rows(ends, args![&self.tenant]).await.unwrap(),
        }
    }

    /// Leaves nothing that a sweep of the next case would find.
    async fn remove(&self, app: &Arc<OfflineApp>) {
        let user = TestUser::of(app, &self.tenant);
        // A batch that has ended cannot be cancelled again.
        _ = user.cancel_batch(self.batch).await;
        let left = "SELECT id FROM files WHERE tenant_id = $1 AND status <> 'deleted'";
        for (file,) in app.rows::<(Uuid,)>(left, args![&self.tenant]).await {
            user.delete(file).await.unwrap();
        }
    }
}

/// Name, status, code of a failure, whether there is a blob, and the chunks of a file that is ready.
type FileShape = (String, String, Option<String>, i64, Option<i64>);

#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    quota: Option<(i64, i64, i64, i64)>,
    files: Vec<FileShape>,
    batches: Vec<(String, i64, i64, i64, i64, i64)>,
    ends: Vec<(String, i64)>,
}

/// What two actions come to if they do not meet.
struct InOrder {
    outcome: Outcome,
    /// The steps at which the first is held if they do.
    hold_at: Vec<usize>,
}

/// How often a pair was tried, and what came of it.
#[derive(Default)]
struct Cell {
    tried: usize,
    waited: usize,
}

struct Matrix {
    clock: ManualClock,
    first: Process,
    second: Process,
    tenants: usize,
    cells: BTreeMap<(Action, Action), Cell>,
}

impl Matrix {
    async fn prepare(&mut self, situation: Situation) -> Case {
        self.tenants += 1;
        let tenant = format!("tenant{}", self.tenants);
        Case::prepare(&self.first, &self.clock, tenant, situation).await
    }

    /// The outcome of one action after the other, and the steps of the first.
    async fn in_order(&mut self, situation: Situation, one: Action, other: Action) -> InOrder {
        let case = self.prepare(situation).await;
        let (first, second) = (self.first.app.clone(), self.second.app.clone());
        self.first.faults.reset();
        is_done(case.act(&first, one).await, situation, one);
        let (steps, commits) = self.first.faults.steps();
        is_done(case.act(&second, other).await, situation, other);
        let outcome = case.outcome(&first, &[one, other]).await;
        case.remove(&first).await;
        // Each commit is two steps, before and after it.
        let commits = commits.into_iter().step_by(2);
        InOrder { outcome, hold_at: if at_every_step() { (1..=steps).collect() } else { commits.collect() } }
    }

    /// The outcome of an action that does not meet another.
    async fn alone(&mut self, situation: Situation, one: Action) -> Outcome {
        let case = self.prepare(situation).await;
        let app = self.first.app.clone();
        is_done(case.act(&app, one).await, situation, one);
        let outcome = case.outcome(&app, &[one]).await;
        case.remove(&app).await;
        outcome
    }

    /// Holds the first at a step while the second begins. Returns also whether each of them was done, and not refused.
    async fn interleave(
        &mut self,
        situation: Situation,
        one: Action,
        other: Action,
        step: usize,
    ) -> (Outcome, bool, bool) {
        let case = self.prepare(situation).await;
        self.first.faults.reset();
        let gate = self.first.faults.hold_at(HoldPoint::Step(step));
        let held = begin(&case, &self.first.app, one);
        // An action may take fewer steps than before, if a sweep had found more to do.
        while !held.is_finished() {
            tokio::select! {
                biased;
                () = gate.reached() => break,
                () = tokio::task::yield_now() => {}
            }
        }
        let running = begin(&case, &self.second.app, other);
        let cell = self.cells.entry((one, other)).or_default();
        cell.tried += 1;
        while !running.is_finished() {
            if waits_for_lock(&self.second.app).await {
                cell.waited += 1;
                break;
            }
        }
        gate.open();
        let held = is_done(held.await.expect("no panic"), situation, one);
        let running = is_done(running.await.expect("no panic"), situation, other);
        self.first.faults.reset();
        let outcome = case.outcome(&self.first.app, &[one, other]).await;
        case.remove(&self.first.app).await;
        (outcome, held, running)
    }

    /// How many times each pair was tried, and in how many of them the second waited for the first.
    fn print(&self) {
        let mut table = format!("{:>12}", "");
        for other in ACTIONS {
            write!(table, "{:>12}", format!("{other:?}")).expect("a string");
        }
        for one in ACTIONS {
            write!(table, "\n{:>12}", format!("{one:?}")).expect("a string");
            for other in ACTIONS {
                let cell = self.cells.get(&(one, other));
                let cell = cell.map_or_else(String::new, |cell| format!("{}/{}", cell.waited, cell.tried));
                write!(table, "{cell:>12}").expect("a string");
            }
        }
        println!("{table}");
    }
}

fn begin(case: &Case, app: &Arc<OfflineApp>, action: Action) -> JoinHandle<Result<(), Error>> {
    let (case, app) = (case.clone(), app.clone());
    tokio::spawn(async move { case.act(&app, action).await })
}

fn at_every_step() -> bool {
    std::env::var_os("LANDFALL_TEST_EVERY_STEP").is_some()
}

/// The pairs that meet in a situation. If one does, so does the same pair with its places changed.
fn pairs(situation: Situation) -> impl Iterator<Item = (Action, Action)> {
    let all = ACTIONS.into_iter().flat_map(|one| ACTIONS.into_iter().map(move |other| (one, other)));
    all.filter(move |(one, other)| {
        at_every_step() || (*one as usize + *other as usize) % 3 == situation as usize % 3
    })
}

/// Whether an action was done. Otherwise it was refused; nothing else may become of it.
#[track_caller]
fn is_done(answer: Result<(), Error>, situation: Situation, action: Action) -> bool {
    assert!(matches!(answer, Ok(()) | Err(Error::Refused(_))), "{situation:?}, {action:?}: {answer:?}");
    answer.is_ok()
}

/// Whether a statement in this database waits for a lock that another transaction holds.
async fn waits_for_lock(app: &OfflineApp) -> bool {
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    app.number(waiting).await > 0
}

/// Lets pairs of actions meet at files in this situation.
async fn pairs_meet(situation: Situation) {
    let Some(db) = TestDb::postgres().await else { return };
    // All stored blobs are older than any age limit.
    let clock = ManualClock::starting_at("2040-01-02T03:04:05Z".parse().unwrap());
    let first = Process::start(&db, &clock).await;
    let second = Process::start(&db, &clock).await;
    let mut matrix = Matrix { clock, first, second, tenants: 0, cells: BTreeMap::new() };
    let mut in_order = BTreeMap::new();
    for (one, other) in pairs(situation) {
        in_order.insert((one, other), matrix.in_order(situation, one, other).await);
    }
    let mut alone = BTreeMap::new();
    for action in ACTIONS {
        alone.insert(action, matrix.alone(situation, action).await);
    }
    let mut wrong = Vec::new();
    for (one, other) in pairs(situation) {
        let (straight, swapped) = (&in_order[&(one, other)], &in_order[&(other, one)]);
        for &step in &straight.hold_at {
            let (outcome, one_done, other_done) = matrix.interleave(situation, one, other, step).await;
            let is_right = outcome == straight.outcome
                || outcome == swapped.outcome
                // What was refused has changed nothing.
                || (!other_done && outcome == alone[&one])
                || (!one_done && outcome == alone[&other]);
            if !is_right {
                wrong.push(format!(
                    "{one:?} ({one_done}) held at step {step}, {other:?} ({other_done}) meanwhile: {outcome:?}\n  \
                     {one:?} first: {:?}\n  {other:?} first: {:?}",
                    straight.outcome, swapped.outcome
                ));
            }
        }
    }
    matrix.print();
    assert!(wrong.is_empty(), "{} pairs ended like neither order:\n{}", wrong.len(), wrong.join("\n"));
    assert!(matrix.cells.values().any(|cell| cell.waited > 0), "no action ever waited for another");
    matrix.first.app.assert_audit_clean().await;
}

/// A test for each situation.
macro_rules! pairs_meet_at {
    ($($test:ident: $situation:ident,)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            pairs_meet(Situation::$situation).await;
        })+
    };
}

pairs_meet_at! {
    two_at_a_registered_file_end_like_one_after_the_other: Registered,
    two_at_an_uploaded_file_end_like_one_after_the_other: Uploaded,
    two_at_a_queued_file_end_like_one_after_the_other: Queued,
    two_at_a_stuck_file_end_like_one_after_the_other: Stuck,
    two_at_a_failed_file_end_like_one_after_the_other: Failed,
    two_at_a_ready_file_end_like_one_after_the_other: Ready,
}
