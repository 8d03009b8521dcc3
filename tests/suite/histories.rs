//! Random sequences of actions, with the database lost at random moments: after every step each tenant is charged for
//! exactly what was accepted and not deleted; at the end every confirmed file is finished, with its blob, and there
//! is no other blob.
//!
//! The histories come from a fixed seed. `LANDFALL_TEST_HISTORIES` runs more of them, `LANDFALL_TEST_SEED` others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use landfall_core::clock::{ManualClock, Time};
use landfall_server::blobs::Blobs;
use landfall_server::recovery::{Sweep, abandoned_uploads, unfinished_deletions};
use landfall_store::Error;
use landfall_store::args;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::actions::{RunningWorker, TestUser, offline_app};
use crate::support::fault_injector::{Break, PlannedFaults};
use crate::support::offline_app::OfflineApp;
use crate::support::{TestDb, on_each_database, until};

const HISTORIES: u64 = 10;
const STEPS: usize = 60;
const TENANTS: [&str; 2] = ["acme", "zeta"];
const DAY: Duration = Duration::from_hours(24);
/// Some succeed, some fail at each stage, some fail only the first time.
const NAMES: [&str; 7] = ["a", "b", "xf", "cf", "ef", "ct", "et"];

fn number_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What a file costs its tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    /// There is no such file.
    Nothing,
    Reserved,
    Used,
    Refunded,
}

use Cost::{Nothing, Refunded, Reserved, Used};

/// What is done, and to which file or batch of the model.
#[derive(Debug, Clone, Copy)]
enum Action {
    OpenBatch(usize),
    Register(usize),
    Upload(usize),
    UploadTooShort(usize),
    UploadBrokenOff(usize),
    /// The process dies during an upload; `true`: the bytes are stored already, and the row does not record it.
    DieUploading(usize, bool),
    Confirm(usize),
    Cancel(usize),
    Retry(usize),
    Delete(usize),
    CloseBatch(usize),
    CancelBatch(usize),
    BeginWork,
    EndWork,
    Wait(Duration),
    Expire,
    RecoverStuck,
    TimeOutBatches,
    CleanUp,
    Forget,
    FinishDeletions,
    CleanUpAfterUploads,
}

/// The outcome of an action, as far as its caller knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Refused,
    Unknown,
}

struct ModelFile {
    tenant: usize,
    name: String,
    size: i64,
    batch: Option<usize>,
    id: Option<Uuid>,
    cost: Cost,
}

struct ModelBatch {
    tenant: usize,
    key: String,
    places: usize,
    id: Option<Uuid>,
}

/// What the rows say of a file.
#[derive(Debug, Clone, landfall_store::FromRow)]
struct Row {
    id: Uuid,
    status: String,
    created_at: Time,
    confirmed_at: Option<Time>,
    upload_until: Option<Time>,
    failed_at: Option<Time>,
    batch_expires_at: Option<Time>,
}

impl Row {
    fn cost(&self) -> Cost {
        match (self.status.as_str(), self.confirmed_at) {
            ("deleted", _) => Refunded,
            (_, Some(_)) => Used,
            (_, None) => Reserved,
        }
    }
}

struct History {
    db: TestDb,
    clock: ManualClock,
    fault_injector: Arc<PlannedFaults>,
    rest: Arc<OfflineApp>,
    working: Option<RunningWorker>,
    random: StdRng,
    files: Vec<ModelFile>,
    batches: Vec<ModelBatch>,
    journal: Journal,
}

/// What happened so far, printed when the test fails.
#[derive(Default)]
struct Journal(Vec<String>);

impl Drop for Journal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("The history:\n{}", self.0.join("\n"));
        }
    }
}

impl History {
    async fn begin(db: TestDb, seed: u64) -> Self {
        let clock = ManualClock::starting_at("2040-01-02T03:04:05Z".parse().unwrap());
        let fault_injector = PlannedFaults::new();
        let rest = offline_app(&db, &clock, &fault_injector, &[]).await;
        let random = StdRng::seed_from_u64(seed);
        let journal = Journal(vec![format!("LANDFALL_TEST_SEED={seed}")]);
        Self {
            db,
            clock,
            fault_injector,
            rest,
            working: None,
            random,
            files: vec![],
            batches: vec![],
            journal,
        }
    }

    fn user(&self, tenant: usize) -> TestUser {
        TestUser::of(&self.rest, TENANTS[tenant])
    }

    fn choose(&mut self) -> Action {
        let choice = self.random.random_range(0..100);
        if self.files.is_empty() || choice < 14 {
            return self.choose_new_file();
        }
        // Mostly one of the last files, whose outcome is still open.
        let recent = self.files.len().saturating_sub(8);
        let file = self.random.random_range(recent..self.files.len());
        match choice {
            14..30 => Action::Upload(file),
            30..32 => Action::UploadTooShort(file),
            32..34 => Action::UploadBrokenOff(file),
            34..37 => Action::DieUploading(file, self.random.random()),
            37..53 => Action::Confirm(file),
            53..56 => Action::Cancel(file),
            56..61 => Action::Retry(file),
            61..66 => Action::Delete(file),
            66..69 => self.choose_batch(Action::CloseBatch, file),
            69..71 => self.choose_batch(Action::CancelBatch, file),
            71..77 => Action::BeginWork,
            77..79 => Action::EndWork,
            79..85 => {
                let hours = [1, 2, 25, 8 * 24, 24 * 24][self.random.random_range(0..5)];
                Action::Wait(Duration::from_hours(hours))
            }
            85..88 => Action::Expire,
            88..90 => Action::RecoverStuck,
            90..92 => Action::TimeOutBatches,
            92..95 => Action::CleanUp,
            95..97 => Action::Forget,
            97..99 => Action::FinishDeletions,
            _ => Action::CleanUpAfterUploads,
        }
    }

    fn choose_new_file(&mut self) -> Action {
        let tenant = self.random.random_range(0..TENANTS.len());
        if self.random.random_ratio(1, 4) {
            let (number, places) = (self.batches.len(), self.random.random_range(1..5));
            self.batches.push(ModelBatch { tenant, key: format!("batch{number}"), places, id: None });
            return Action::OpenBatch(number);
        }
        let within: Vec<usize> = (0..self.batches.len())
            .filter(|batch| self.batches[*batch].tenant == tenant && self.batches[*batch].id.is_some())
            .collect();
        let batch = (!within.is_empty()).then(|| within[self.random.random_range(0..within.len())]);
        let kind = NAMES[self.random.random_range(0..NAMES.len())];
        let number = self.files.len();
        self.files.push(ModelFile {
            tenant,
            name: format!("{kind}{number}"),
            size: self.random.random_range(1..=9),
            batch,
            id: None,
            cost: Nothing,
        });
        Action::Register(number)
    }

    fn choose_batch(&self, action: fn(usize) -> Action, file: usize) -> Action {
        match self.files[file].batch {
            Some(batch) if self.batches[batch].id.is_some() => action(batch),
            _ => Action::Expire,
        }
    }

    async fn step(&mut self) {
        let action = self.choose();
        let breaks = self.random.random_ratio(2, 5).then(|| {
            let how = if self.random.random() { Break::Once } else { Break::Permanently };
            (self.random.random_range(1..24), how)
        });
        let before = self.rows().await;
        let gone = breaks.map(|(step, how)| self.fault_injector.break_at(step, how));
        let outcome = match self.act(action).await {
            Ok(()) => Outcome::Done,
            Err(Error::Refused(_)) => Outcome::Refused,
            Err(_) => Outcome::Unknown,
        };
        self.fault_injector.reset();
        self.journal.0.push(format!("{action:?} {breaks:?} → {outcome:?}"));
        if gone.is_some_and(|gone| gone.is_cancelled()) || matches!(action, Action::DieUploading(..)) {
            self.die().await;
        }
        self.account_for(action, outcome, &before).await;
    }

    async fn act(&mut self, action: Action) -> Result<(), Error> {
        let (rest, now) = (self.rest.clone(), self.rest.now());
        match action {
            Action::OpenBatch(batch) => {
                let ModelBatch { tenant, key, places, .. } = &self.batches[batch];
                let id = self.user(*tenant).open_batch(*places, key).await?;
                self.batches[batch].id = Some(id);
            }
            Action::Register(file) => {
                let ModelFile { tenant, name, size, batch, .. } = &self.files[file];
                let batch = batch.and_then(|batch| self.batches[batch].id);
                self.user(*tenant).register(batch, name, *size).await?;
            }
            Action::Wait(time) => self.clock.advance(time),
            Action::BeginWork => {
                if self.working.is_none() {
                    self.working = Some(RunningWorker::begin(&rest));
                }
                rest.app.wake.poll_work();
            }
            Action::EndWork => self.end_work().await,
            Action::CloseBatch(batch) => {
                let ModelBatch { tenant, id, .. } = &self.batches[batch];
                self.user(*tenant).close_batch(id.expect("it was opened")).await?;
            }
            Action::CancelBatch(batch) => {
                let ModelBatch { tenant, id, .. } = &self.batches[batch];
                self.user(*tenant).cancel_batch(id.expect("it was opened")).await?;
            }
            Action::Expire => drop(rest.app.stuck_files.expiry.sweep_once(now).await?),
            Action::RecoverStuck => drop(rest.app.stuck_files.sweep_once(now).await?),
            Action::TimeOutBatches => drop(rest.batch_timeout().sweep_once(now).await?),
            Action::CleanUp => drop(rest.app.orphan_cleanup.sweep_once(now).await?),
            Action::Forget => drop(rest.app.retention.sweep_once(now).await?),
            Action::FinishDeletions => {
                unfinished_deletions::sweep_once(&rest.app.db, &rest.app.blobs).await?;
            }
            Action::CleanUpAfterUploads => {
                abandoned_uploads::sweep_once(&rest.app.db, &rest.app.blobs).await?;
            }
            Action::Upload(file)
            | Action::UploadTooShort(file)
            | Action::UploadBrokenOff(file)
            | Action::DieUploading(file, _)
            | Action::Confirm(file)
            | Action::Cancel(file)
            | Action::Retry(file)
            | Action::Delete(file) => self.act_on_file(action, file).await?,
        }
        Ok(())
    }

    async fn act_on_file(&self, action: Action, file: usize) -> Result<(), Error> {
        const BYTES: &[u8] = b"123456789";
        let ModelFile { tenant, size, id, .. } = self.files[file];
        // A file whose registration was refused is treated like one that does not exist.
        let (user, id) = (self.user(tenant), id.unwrap_or_default());
        let bytes = &BYTES[..usize::try_from(size).expect("small")];
        match action {
            Action::Upload(_) => user.send(id, size, vec![Ok(bytes)]).await,
            Action::UploadTooShort(_) => user.send(id, size, vec![Ok(&bytes[1..])]).await,
            Action::UploadBrokenOff(_) => user.send(id, size, vec![Ok(bytes), Err("cut off")]).await,
            Action::DieUploading(_, stored) => {
                let app = &self.rest.app;
                let key = Blobs::key(id, app.clock.new_id());
                let mut incoming = app.blobs.receive(app.liveness.identity().id, &key).await?;
                incoming.write(bytes).await?;
                if stored {
                    incoming.publish(|_| Ok(())).await?;
                }
                // A killed process cleans up nothing.
                std::mem::forget(incoming);
                Ok(())
            }
            Action::Confirm(_) => user.confirm(id).await.map(drop),
            Action::Cancel(_) => user.cancel(id).await.map(drop),
            Action::Retry(_) => user.retry(id).await.map(drop),
            _ => user.delete(id).await,
        }
    }

    async fn end_work(&mut self) {
        if let Some(working) = self.working.take() {
            self.rest.let_time_pass_until(working.end()).await;
        }
    }

    /// The process dies; sometimes another one starts in its place, sometimes the same one was only cut off.
    async fn die(&mut self) {
        let dead = self.rest.app.liveness.identity();
        dead.lost.cancel();
        self.end_work().await;
        self.settle_uploads().await;
        if self.random.random() {
            self.rest.die_and_restart().await;
            return;
        }
        self.journal.0.push("another process".to_owned());
        // Its connections break too.
        self.rest.app.db.close().await;
        self.rest.observer.close().await;
        self.rest = offline_app(&self.db, &self.clock, &self.fault_injector, &[]).await;
        until("the dead process is found", async || {
            self.rest.app.liveness.rescue_dead_workers().await.expect("the check runs");
            let sql = "SELECT COUNT(*) FROM workers WHERE id = $1";
            let mut tx = self.rest.observer.read().await.expect("a connection");
            tx.number(sql, args![dead.id]).await.expect("an answer") == 0
        })
        .await;
    }

    async fn settle_uploads(&self) {
        let settled = async {
            while !self.rest.app.uploads.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        self.rest.let_time_pass_until(settled).await;
    }

    async fn rows(&self) -> BTreeMap<Uuid, Row> {
        let sql = "SELECT f.id, f.status, f.created_at, f.confirmed_at, f.upload_until, f.failed_at,
                          b.expires_at AS batch_expires_at
                   FROM files f LEFT JOIN batches b ON b.id = f.batch_id";
        let mut tx = self.rest.observer.read().await.expect("a connection");
        let rows: Vec<Row> = tx.rows(sql, args![]).await.expect("an answer");
        rows.into_iter().map(|row| (row.id, row)).collect()
    }

    /// Each file costs what it may cost after this action, and its tenant is charged for exactly that.
    async fn account_for(&mut self, action: Action, outcome: Outcome, before: &BTreeMap<Uuid, Row>) {
        let rows = self.rows().await;
        if let Action::Register(file) = action {
            self.files[file].id = self.find(file).await;
        }
        let now = self.rest.now();
        for (number, file) in self.files.iter_mut().enumerate() {
            let row = file.id.and_then(|id| rows.get(&id));
            let cost = match (row, file.cost) {
                (Some(row), _) => row.cost(),
                // Its tombstone was purged.
                (None, Refunded) => Refunded,
                (None, _) => Nothing,
            };
            let was = file.id.and_then(|id| before.get(&id));
            let allowed = may_cost(action, outcome, number, file, was, now);
            assert!(
                allowed.contains(&cost),
                "{action:?} {outcome:?}: file {} is {cost:?}, not one of {allowed:?}",
                file.name
            );
            file.cost = cost;
        }
        for (tenant, name) in TENANTS.iter().enumerate() {
            let sum = |cost: Cost| {
                let of_it = self.files.iter().filter(|file| file.tenant == tenant && file.cost == cost);
                of_it.fold((0, 0), |(bytes, files), file| (bytes + file.size, files + 1))
            };
            let charged =
                "SELECT reserved_bytes, reserved_files, used_bytes, used_files FROM tenants WHERE id = $1";
            let mut tx = self.rest.observer.read().await.expect("a connection");
            let charged: Option<(i64, i64, i64, i64)> =
                tx.row(charged, args![*name]).await.expect("an answer");
            let ((reserved_bytes, reserved), (used_bytes, used)) = (sum(Reserved), sum(Used));
            let owed = (reserved_bytes, reserved, used_bytes, used);
            assert_eq!(charged.unwrap_or_default(), owed, "{name} after {action:?}");
        }
    }

    async fn find(&self, file: usize) -> Option<Uuid> {
        let ModelFile { tenant, name, .. } = &self.files[file];
        let sql = "SELECT id FROM files WHERE tenant_id = $1 AND file_name = $2";
        let mut tx = self.rest.observer.read().await.expect("a connection");
        let found: Vec<(Uuid,)> = tx.rows(sql, args![TENANTS[*tenant], name]).await.expect("an answer");
        assert!(found.len() <= 1, "one file of each name");
        found.first().map(|(id,)| *id)
    }

    /// No further actions: the worker finishes everything, and the sweeps run.
    async fn end(mut self) {
        self.end_work().await;
        self.settle_uploads().await;
        self.rest.die_and_restart().await;
        for _ in 0..2 {
            self.clock.advance(DAY);
            assert_eq!(self.rest.sweep().await, Vec::<String>::new());
            for tenant in TENANTS {
                self.rest.work(tenant, &CancellationToken::new()).await;
            }
        }
        assert_eq!(self.rest.findings().await, []);
        let rows = self.rows().await;
        for row in rows.values() {
            let offline_app = matches!(row.status.as_str(), "ready" | "failed" | "cancelled" | "deleted");
            assert!(offline_app, "{row:?}");
        }
        for file in &self.files {
            let status = file.id.and_then(|id| rows.get(&id)).map(|row| row.status.as_str());
            if file.cost == Used && file.name.chars().nth(1) == Some('f') && status != Some("cancelled") {
                assert_eq!(status, Some("failed"), "{}", file.name);
            }
        }
        // Everything is deleted, and nothing is left: neither blobs nor charges.
        for file in &self.files {
            if let (Some(id), Used | Reserved) = (file.id, file.cost) {
                self.user(file.tenant).delete(id).await.unwrap();
            }
        }
        assert_eq!(self.rest.sweep().await, Vec::<String>::new());
        let stored = self.rest.app.blobs.list("", None).next_page(10).await.unwrap();
        assert_eq!(stored, []);
        assert_eq!(self.rest.app.blobs.unfinished().await.unwrap(), []);
        let owed = "SELECT COUNT(*) FROM tenants WHERE reserved_bytes + reserved_files + used_bytes + used_files <> 0";
        assert_eq!(self.rest.number(owed).await, 0);
        assert_eq!(self.rest.findings().await, []);
        self.rest.app.db.close().await;
        self.rest.observer.close().await;
    }
}

/// What a file may cost after an action with this outcome.
fn may_cost(
    action: Action,
    outcome: Outcome,
    number: usize,
    file: &ModelFile,
    was: Option<&Row>,
    now: Time,
) -> Vec<Cost> {
    let same = vec![file.cost];
    let becomes = |cost: Cost| match outcome {
        Outcome::Done => vec![cost],
        Outcome::Refused => vec![file.cost],
        Outcome::Unknown => vec![file.cost, cost],
    };
    let may_become = |cost: Cost| vec![file.cost, cost];
    let over = |time: Option<Time>| time.is_some_and(|time| time <= now);
    match action {
        Action::Register(which) if which == number => becomes(Reserved),
        Action::Confirm(which) if which == number && file.cost == Reserved => becomes(Used),
        Action::Delete(which) if which == number && file.cost != Nothing => becomes(Refunded),
        Action::CancelBatch(which) if file.batch == Some(which) && file.cost == Reserved => becomes(Refunded),
        _ => match (action, was) {
            (Action::Expire | Action::RecoverStuck, Some(was)) if over(was.upload_until) => {
                let adopted = was.status == "uploaded";
                may_become(if adopted { Used } else { Refunded })
            }
            (Action::TimeOutBatches, Some(was))
                if was.status == "registered" && over(was.batch_expires_at) =>
            {
                may_become(Refunded)
            }
            (Action::CleanUp, Some(was))
                if was.status == "registered" && over(was.upload_until) && was.created_at + DAY <= now =>
            {
                may_become(Refunded)
            }
            (Action::CleanUp, Some(was)) if over(was.failed_at.map(|failed| failed + 30 * DAY)) => {
                may_become(Refunded)
            }
            _ => same,
        },
    }
}

#[on_each_database]
async fn after_any_history_every_tenant_is_charged_for_its_files_and_every_file_is_finished(db: TestDb) {
    let histories = number_from("LANDFALL_TEST_HISTORIES", HISTORIES);
    let seed = number_from("LANDFALL_TEST_SEED", 4711);
    let is_sqlite = db.url.starts_with("sqlite:");
    let mut first = Some(db);
    for number in 0..histories {
        // Each on its own database, so that no fault is hidden by what an earlier history left.
        let db = match first.take() {
            Some(db) => db,
            None if is_sqlite => TestDb::sqlite(),
            None => TestDb::postgres().await.expect("it was there a moment ago"),
        };
        let mut history = History::begin(db, seed + number).await;
        for _ in 0..STEPS {
            history.step().await;
        }
        history.end().await;
    }
}
