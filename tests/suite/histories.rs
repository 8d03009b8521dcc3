//! Whatever happens to files, in whatever order, with the database lost at whatever moment: what the tenants are charged
//! for is what was accepted and not deleted, after every single step; and in the end every file that was confirmed has
//! made landfall, with its blob, and there is no other blob.
//!
//! The histories are made of a fixed seed. `LANDFALL_TEST_HISTORIES` asks for more of them, `LANDFALL_TEST_SEED` for others.

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

use crate::support::at_rest::AtRest;
use crate::support::hands::{Hands, Working, at_rest};
use crate::support::meddler::{Break, Meddler};
use crate::support::{TestDb, on_each_database, until};

const HISTORIES: u64 = 10;
const STEPS: usize = 60;
const TENANTS: [&str; 2] = ["acme", "zeta"];
const DAY: Duration = Duration::from_hours(24);
/// Some arrive, some fail at each stage, some only the first time.
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

/// What was done, to which of the model's files or batches.
#[derive(Debug, Clone, Copy)]
enum Deed {
    OpenBatch(usize),
    Register(usize),
    Upload(usize),
    UploadTooShort(usize),
    UploadBrokenOff(usize),
    /// The process dies with the bytes in hand; `true`: they are stored already, and the row does not know it.
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

/// What became of a deed, as far as whoever did it knows.
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
#[derive(Debug, Clone, sqlx::FromRow)]
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
    meddler: Arc<Meddler>,
    rest: Arc<AtRest>,
    working: Option<Working>,
    random: StdRng,
    files: Vec<ModelFile>,
    batches: Vec<ModelBatch>,
    journal: Journal,
}

/// What happened so far, said when it ends badly.
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
        let meddler = Meddler::new();
        let rest = at_rest(&db, &clock, &meddler, &[]).await;
        let random = StdRng::seed_from_u64(seed);
        let journal = Journal(vec![format!("LANDFALL_TEST_SEED={seed}")]);
        Self { db, clock, meddler, rest, working: None, random, files: vec![], batches: vec![], journal }
    }

    fn hands(&self, tenant: usize) -> Hands {
        Hands::of(&self.rest, TENANTS[tenant])
    }

    fn choose(&mut self) -> Deed {
        let choice = self.random.random_range(0..100);
        if self.files.is_empty() || choice < 14 {
            return self.choose_new_file();
        }
        // Mostly one of the last, whose fate is still open.
        let recent = self.files.len().saturating_sub(8);
        let file = self.random.random_range(recent..self.files.len());
        match choice {
            14..30 => Deed::Upload(file),
            30..32 => Deed::UploadTooShort(file),
            32..34 => Deed::UploadBrokenOff(file),
            34..37 => Deed::DieUploading(file, self.random.random()),
            37..53 => Deed::Confirm(file),
            53..56 => Deed::Cancel(file),
            56..61 => Deed::Retry(file),
            61..66 => Deed::Delete(file),
            66..69 => self.choose_batch(Deed::CloseBatch, file),
            69..71 => self.choose_batch(Deed::CancelBatch, file),
            71..77 => Deed::BeginWork,
            77..79 => Deed::EndWork,
            79..85 => {
                let hours = [1, 2, 25, 8 * 24, 24 * 24][self.random.random_range(0..5)];
                Deed::Wait(Duration::from_hours(hours))
            }
            85..88 => Deed::Expire,
            88..90 => Deed::RecoverStuck,
            90..92 => Deed::TimeOutBatches,
            92..95 => Deed::CleanUp,
            95..97 => Deed::Forget,
            97..99 => Deed::FinishDeletions,
            _ => Deed::CleanUpAfterUploads,
        }
    }

    fn choose_new_file(&mut self) -> Deed {
        let tenant = self.random.random_range(0..TENANTS.len());
        if self.random.random_ratio(1, 4) {
            let (number, places) = (self.batches.len(), self.random.random_range(1..5));
            self.batches.push(ModelBatch { tenant, key: format!("batch{number}"), places, id: None });
            return Deed::OpenBatch(number);
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
        Deed::Register(number)
    }

    fn choose_batch(&self, deed: fn(usize) -> Deed, file: usize) -> Deed {
        match self.files[file].batch {
            Some(batch) if self.batches[batch].id.is_some() => deed(batch),
            _ => Deed::Expire,
        }
    }

    async fn step(&mut self) {
        let deed = self.choose();
        let breaks = self.random.random_ratio(2, 5).then(|| {
            let how = if self.random.random() { Break::Once } else { Break::ForGood };
            (self.random.random_range(1..24), how)
        });
        let before = self.rows().await;
        let gone = breaks.map(|(step, how)| self.meddler.break_at(step, how));
        let outcome = match self.act(deed).await {
            Ok(()) => Outcome::Done,
            Err(Error::Refused(_)) => Outcome::Refused,
            Err(_) => Outcome::Unknown,
        };
        self.meddler.rest();
        self.journal.0.push(format!("{deed:?} {breaks:?} → {outcome:?}"));
        if gone.is_some_and(|gone| gone.is_cancelled()) || matches!(deed, Deed::DieUploading(..)) {
            self.die().await;
        }
        self.account_for(deed, outcome, &before).await;
    }

    async fn act(&mut self, deed: Deed) -> Result<(), Error> {
        let (rest, now) = (self.rest.clone(), self.rest.now());
        match deed {
            Deed::OpenBatch(batch) => {
                let ModelBatch { tenant, key, places, .. } = &self.batches[batch];
                let id = self.hands(*tenant).open_batch(*places, key).await?;
                self.batches[batch].id = Some(id);
            }
            Deed::Register(file) => {
                let ModelFile { tenant, name, size, batch, .. } = &self.files[file];
                let batch = batch.and_then(|batch| self.batches[batch].id);
                self.hands(*tenant).register(batch, name, *size).await?;
            }
            Deed::Wait(time) => self.clock.advance(time),
            Deed::BeginWork => {
                if self.working.is_none() {
                    self.working = Some(Working::begin(&rest));
                }
                rest.app.wake.poll_work();
            }
            Deed::EndWork => self.end_work().await,
            Deed::CloseBatch(batch) => {
                let ModelBatch { tenant, id, .. } = &self.batches[batch];
                self.hands(*tenant).close_batch(id.expect("it was opened")).await?;
            }
            Deed::CancelBatch(batch) => {
                let ModelBatch { tenant, id, .. } = &self.batches[batch];
                self.hands(*tenant).cancel_batch(id.expect("it was opened")).await?;
            }
            Deed::Expire => drop(rest.app.stuck_files.expiry.sweep_once(now).await?),
            Deed::RecoverStuck => drop(rest.app.stuck_files.sweep_once(now).await?),
            Deed::TimeOutBatches => drop(rest.batch_timeout().sweep_once(now).await?),
            Deed::CleanUp => drop(rest.app.orphan_cleanup.sweep_once(now).await?),
            Deed::Forget => drop(rest.app.retention.sweep_once(now).await?),
            Deed::FinishDeletions => {
                unfinished_deletions::sweep_once(&rest.app.db, &rest.app.blobs).await?;
            }
            Deed::CleanUpAfterUploads => {
                abandoned_uploads::sweep_once(&rest.app.db, &rest.app.blobs).await?;
            }
            Deed::Upload(file)
            | Deed::UploadTooShort(file)
            | Deed::UploadBrokenOff(file)
            | Deed::DieUploading(file, _)
            | Deed::Confirm(file)
            | Deed::Cancel(file)
            | Deed::Retry(file)
            | Deed::Delete(file) => self.act_on_file(deed, file).await?,
        }
        Ok(())
    }

    async fn act_on_file(&self, deed: Deed, file: usize) -> Result<(), Error> {
        const BYTES: &[u8] = b"123456789";
        let ModelFile { tenant, size, id, .. } = self.files[file];
        // A file whose registration was refused is as good as any other that does not exist.
        let (hands, id) = (self.hands(tenant), id.unwrap_or_default());
        let bytes = &BYTES[..usize::try_from(size).expect("small")];
        match deed {
            Deed::Upload(_) => hands.send(id, size, vec![Ok(bytes)]).await,
            Deed::UploadTooShort(_) => hands.send(id, size, vec![Ok(&bytes[1..])]).await,
            Deed::UploadBrokenOff(_) => hands.send(id, size, vec![Ok(bytes), Err("cut off")]).await,
            Deed::DieUploading(_, stored) => {
                let app = &self.rest.app;
                let key = Blobs::key(id, app.clock.new_id());
                let mut incoming = app.blobs.receive(app.liveness.identity().id, &key).await?;
                incoming.write(bytes).await?;
                if stored {
                    incoming.publish(|_| Ok(())).await?;
                }
                // A process that is killed tidies nothing up.
                std::mem::forget(incoming);
                Ok(())
            }
            Deed::Confirm(_) => hands.confirm(id).await.map(drop),
            Deed::Cancel(_) => hands.cancel(id).await.map(drop),
            Deed::Retry(_) => hands.retry(id).await.map(drop),
            _ => hands.delete(id).await,
        }
    }

    async fn end_work(&mut self) {
        if let Some(working) = self.working.take() {
            self.rest.let_time_pass_until(working.end()).await;
        }
    }

    /// The process dies; sometimes another is started in its place, sometimes it is the same that was only cut off.
    async fn die(&mut self) {
        let dead = self.rest.app.liveness.identity();
        dead.lost.cancel();
        self.end_work().await;
        self.settle_uploads().await;
        if self.random.random() {
            self.rest.die_and_rise().await;
            return;
        }
        self.journal.0.push("another process".to_owned());
        // Its connections break with it.
        self.rest.app.db.close().await;
        self.rest.looking_on.close().await;
        self.rest = at_rest(&self.db, &self.clock, &self.meddler, &[]).await;
        until("the dead are found", async || {
            self.rest.app.liveness.rescue_dead_workers().await.expect("it looks");
            let sql = "SELECT COUNT(*) FROM workers WHERE id = $1";
            let mut tx = self.rest.looking_on.read().await.expect("a connection");
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
        let mut tx = self.rest.looking_on.read().await.expect("a connection");
        let rows: Vec<Row> = tx.rows(sql, args![]).await.expect("an answer");
        rows.into_iter().map(|row| (row.id, row)).collect()
    }

    /// Each file costs what it may cost after this, and its tenant is charged for exactly that.
    async fn account_for(&mut self, deed: Deed, outcome: Outcome, before: &BTreeMap<Uuid, Row>) {
        let rows = self.rows().await;
        if let Deed::Register(file) = deed {
            self.files[file].id = self.find(file).await;
        }
        let now = self.rest.now();
        for (number, file) in self.files.iter_mut().enumerate() {
            let row = file.id.and_then(|id| rows.get(&id));
            let cost = match (row, file.cost) {
                (Some(row), _) => row.cost(),
                // Its tombstone was forgotten.
                (None, Refunded) => Refunded,
                (None, _) => Nothing,
            };
            let was = file.id.and_then(|id| before.get(&id));
            let allowed = may_cost(deed, outcome, number, file, was, now);
            assert!(
                allowed.contains(&cost),
                "{deed:?} {outcome:?}: file {} is {cost:?}, not one of {allowed:?}",
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
            let mut tx = self.rest.looking_on.read().await.expect("a connection");
            let charged: Option<(i64, i64, i64, i64)> =
                tx.row(charged, args![*name]).await.expect("an answer");
            let ((reserved_bytes, reserved), (used_bytes, used)) = (sum(Reserved), sum(Used));
            let owed = (reserved_bytes, reserved, used_bytes, used);
            assert_eq!(charged.unwrap_or_default(), owed, "{name} after {deed:?}");
        }
    }

    async fn find(&self, file: usize) -> Option<Uuid> {
        let ModelFile { tenant, name, .. } = &self.files[file];
        let sql = "SELECT id FROM files WHERE tenant_id = $1 AND file_name = $2";
        let mut tx = self.rest.looking_on.read().await.expect("a connection");
        let found: Vec<(Uuid,)> = tx.rows(sql, args![TENANTS[*tenant], name]).await.expect("an answer");
        assert!(found.len() <= 1, "one file of each name");
        found.first().map(|(id,)| *id)
    }

    /// Nobody does anything any more, the worker works, the sweeps sweep.
    async fn end(mut self) {
        self.end_work().await;
        self.settle_uploads().await;
        self.rest.die_and_rise().await;
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
            let at_rest = matches!(row.status.as_str(), "ready" | "failed" | "cancelled" | "deleted");
            assert!(at_rest, "{row:?}");
        }
        for file in &self.files {
            let status = file.id.and_then(|id| rows.get(&id)).map(|row| row.status.as_str());
            if file.cost == Used && file.name.chars().nth(1) == Some('f') && status != Some("cancelled") {
                assert_eq!(status, Some("failed"), "{}", file.name);
            }
        }
        // All of it goes, and nothing is left of it: neither blobs nor debts.
        for file in &self.files {
            if let (Some(id), Used | Reserved) = (file.id, file.cost) {
                self.hands(file.tenant).delete(id).await.unwrap();
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
        self.rest.looking_on.close().await;
    }
}

/// What a file may cost after a deed that had this outcome.
fn may_cost(
    deed: Deed,
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
    match deed {
        Deed::Register(which) if which == number => becomes(Reserved),
        Deed::Confirm(which) if which == number && file.cost == Reserved => becomes(Used),
        Deed::Delete(which) if which == number && file.cost != Nothing => becomes(Refunded),
        Deed::CancelBatch(which) if file.batch == Some(which) && file.cost == Reserved => becomes(Refunded),
        _ => match (deed, was) {
            (Deed::Expire | Deed::RecoverStuck, Some(was)) if over(was.upload_until) => {
                let adopted = was.status == "uploaded";
                may_become(if adopted { Used } else { Refunded })
            }
            (Deed::TimeOutBatches, Some(was)) if was.status == "registered" && over(was.batch_expires_at) => {
                may_become(Refunded)
            }
            (Deed::CleanUp, Some(was))
                if was.status == "registered" && over(was.upload_until) && was.created_at + DAY <= now =>
            {
                may_become(Refunded)
            }
            (Deed::CleanUp, Some(was)) if over(was.failed_at.map(|failed| failed + 30 * DAY)) => {
                may_become(Refunded)
            }
            _ => same,
        },
    }
}

#[on_each_database]
async fn after_any_history_every_tenant_is_charged_for_what_is_there_and_every_file_has_arrived(db: TestDb) {
    let histories = number_from("LANDFALL_TEST_HISTORIES", HISTORIES);
    let seed = number_from("LANDFALL_TEST_SEED", 4711);
    let is_sqlite = db.url.starts_with("sqlite:");
    let mut first = Some(db);
    for number in 0..histories {
        // Each on a database of its own, where no fault can hide behind what an earlier one left.
        let db = match first.take() {
            Some(db) => db,
            None if is_sqlite => TestDb::sqlite(),
            None => TestDb::postgres().await.expect("it was there a moment ago"),
        };
        let mut history = History::begin(db.without_syncs(), seed + number).await;
        for _ in 0..STEPS {
            history.step().await;
        }
        history.end().await;
    }
}
