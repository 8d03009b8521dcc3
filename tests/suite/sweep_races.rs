//! A sweep and another actor meet at the same file. Each order is forced: one has read and is held before it writes,
//! the other runs completely, then the first continues. The first writer wins, and the other notices.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::TimeDelta;
use landfall_core::clock::{Clock, ManualClock, Time};
use landfall_core::lifecycle::Stage;
use landfall_core::refusal::RefusalCode;
use landfall_server::blobs::Blobs;
use landfall_server::intake::upload::Upload;
use landfall_server::recovery::{Sweep, abandoned_uploads, unfinished_deletions};
use landfall_store::Error;
use landfall_store::args;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::actions::{TestUser, offline_app};
use crate::support::fault_injector::{HoldPoint, PlannedFaults};
use crate::support::offline_app::OfflineApp;
use crate::support::{TestDb, on_each_database};

const DAY: Duration = Duration::from_hours(24);
/// Before an upload whose bytes are stored is written to its row: of one that comes at once, this is the only transaction.
const BYTES_ARE_STORED: HoldPoint = HoldPoint::BeforeBegin;
const HOUR: Duration = Duration::from_hours(1);

/// Two processes on one database: one that sweeps and one that serves. Either can be held.
struct TwoProcesses {
    clock: ManualClock,
    sweeper: Arc<OfflineApp>,
    at_sweeper: Arc<PlannedFaults>,
    server: Arc<OfflineApp>,
    at_server: Arc<PlannedFaults>,
    alice: TestUser,
}

impl TwoProcesses {
    async fn start(db: &TestDb) -> Self {
        // All stored blobs are older than any age limit.
        let clock = ManualClock::starting_at("2040-01-02T03:04:05Z".parse().unwrap());
        let (at_sweeper, at_server) = (PlannedFaults::new(), PlannedFaults::new());
        let variables = [("UNCONFIRMED_UPLOADS", "delete".to_owned())];
        let sweeper = offline_app(db, &clock, &at_sweeper, &variables).await;
        let server = offline_app(db, &clock, &at_server, &variables).await;
        let alice = TestUser::of(&server, "alice");
        Self { clock, sweeper, at_sweeper, server, at_server, alice }
    }

    async fn expire(&self) -> i64 {
        let report = self.sweeper.app.stuck_files.expiry.sweep_once(self.sweeper.now()).await.unwrap();
        assert_eq!(report.errors, Vec::<String>::new());
        report.metrics["deleted"].as_i64().unwrap()
    }

    async fn status(&self, file: Uuid) -> String {
        let found: Vec<(String,)> =
            self.server.rows("SELECT status FROM files WHERE id = $1", args![file]).await;
        found[0].0.clone()
    }

    /// Reserved and used bytes.
    async fn quota(&self) -> (i64, i64) {
        self.server.rows("SELECT reserved_bytes, used_bytes FROM tenants", args![]).await[0]
    }

    async fn stored(&self) -> usize {
        self.server.app.blobs.list("", None).next_page(100).await.unwrap().len()
    }

    /// Confirmed files finish, and the audit finds nothing.
    async fn assert_consistent(&self) {
        self.server.work("alice", &CancellationToken::new()).await;
        self.server.assert_audit_clean().await;
        let on_the_way =
            "SELECT COUNT(*) FROM files WHERE status NOT IN ('ready', 'failed', 'deleted', 'uploaded')";
        assert_eq!(self.server.number(on_the_way).await, 0);
    }
}

type Part = Result<Bytes, &'static str>;

/// An upload that gets its bytes from the test.
struct SlowUpload {
    parts: mpsc::Sender<Part>,
    /// A permit for each time that it asks for more.
    asks: Arc<Semaphore>,
    sending: JoinHandle<Result<(), Error>>,
}

impl SlowUpload {
    fn begin(user: &TestUser, file: Uuid) -> Self {
        let (parts, receive) = mpsc::channel::<Part>(1);
        let asks = Arc::new(Semaphore::new(0));
        let body = futures_util::stream::unfold((receive, asks.clone()), async |(mut receive, asks)| {
            asks.add_permits(1);
            receive.recv().await.map(|part| (part, (receive, asks)))
        });
        let upload = Upload { whole_within: Duration::ZERO, ..user.uploading(file, 5) };
        let sending = tokio::spawn(async move { upload.receive(Box::pin(body)).await.map(drop) });
        Self { parts, asks, sending }
    }

    /// Sends these bytes after the upload has processed those before.
    async fn give(&self, part: &'static str) {
        self.asks.acquire().await.expect("never closed").forget();
        self.parts.send(Ok(part.into())).await.expect("it takes them");
    }

    /// Waits until the upload has processed all its bytes.
    async fn taken(&self) {
        drop(self.asks.acquire().await.expect("never closed"));
    }

    async fn end(self) -> Result<(), Error> {
        drop(self.parts);
        self.sending.await.expect("no panic")
    }
}

#[track_caller]
fn assert_gone<T: std::fmt::Debug>(answer: Result<T, Error>) {
    match answer {
        Err(Error::Refused(refusal)) => assert_eq!(refusal.code, RefusalCode::FileDeleted),
        other => panic!("{other:?}"),
    }
}

#[on_each_database]
async fn a_file_confirmed_after_the_expiry_has_read_it_is_kept(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let file = two.alice.register(None, "a", 5).await.unwrap();
    two.alice.upload(file).await.unwrap();
    two.clock.advance(HOUR);
    let gate = two.at_sweeper.hold_at(HoldPoint::BeforeBegin);
    let (expiry, now) = (two.sweeper.app.stuck_files.expiry.clone(), two.sweeper.now());
    let sweep = tokio::spawn(async move { expiry.sweep_once(now).await });
    gate.reached().await;
    two.alice.confirm(file).await.unwrap();
    gate.open();
    assert_eq!(sweep.await.unwrap().unwrap().metrics["deleted"], 0);
    assert_eq!((two.quota().await, two.stored().await), ((0, 5), 1));
    two.assert_consistent().await;
    assert_eq!(two.status(file).await, "ready");
}

#[on_each_database]
async fn a_file_expired_after_the_confirm_has_read_it_is_gone_and_the_confirm_says_so(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let file = two.alice.register(None, "a", 5).await.unwrap();
    two.alice.upload(file).await.unwrap();
    two.clock.advance(HOUR);
    let gate = two.at_server.hold_at(HoldPoint::BeforeBegin);
    let confirm = tokio::spawn({
        let alice = two.alice.clone();
        async move { alice.confirm(file).await }
    });
    gate.reached().await;
    assert_eq!(two.expire().await, 1);
    gate.open();
    assert_gone(confirm.await.unwrap());
    assert_eq!((two.quota().await, two.stored().await), ((0, 0), 0));
    two.assert_consistent().await;
}

#[on_each_database]
async fn a_byte_that_arrives_after_the_expiry_has_read_the_row_keeps_the_upload_alive(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let file = two.alice.register(None, "a", 5).await.unwrap();
    let upload = SlowUpload::begin(&two.alice, file);
    upload.give("123").await;
    upload.taken().await;
    let until = "SELECT upload_until FROM files";
    let first: Vec<(Time,)> = two.server.rows(until, args![]).await;
    two.clock.advance(HOUR);
    let gate = two.at_sweeper.hold_at(HoldPoint::BeforeBegin);
    let (expiry, now) = (two.sweeper.app.stuck_files.expiry.clone(), two.sweeper.now());
    let sweep = tokio::spawn(async move { expiry.sweep_once(now).await });
    gate.reached().await;
    upload.give("4").await;
    upload.taken().await;
    let second: Vec<(Time,)> = two.server.rows(until, args![]).await;
    assert!(second > first, "the byte moved the deadline");
    gate.open();
    assert_eq!(sweep.await.unwrap().unwrap().metrics["deleted"], 0);
    upload.give("5").await;
    upload.end().await.unwrap();
    two.alice.confirm(file).await.unwrap();
    two.assert_consistent().await;
    assert_eq!(two.status(file).await, "ready");
}

#[on_each_database]
async fn an_upload_that_expires_before_its_next_byte_is_recorded_leaves_nothing(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let file = two.alice.register(None, "a", 5).await.unwrap();
    let upload = SlowUpload::begin(&two.alice, file);
    upload.give("123").await;
    upload.taken().await;
    two.clock.advance(HOUR);
    let gate = two.at_server.hold_at(HoldPoint::BeforeBegin);
    upload.give("4").await;
    gate.reached().await;
    assert_eq!(two.expire().await, 1);
    gate.open();
    upload.give("5").await;
    assert_gone(upload.end().await);
    assert_eq!((two.quota().await, two.stored().await), ((0, 0), 0));
    assert_eq!(two.server.app.blobs.unfinished().await.unwrap(), []);
    two.assert_consistent().await;
}

#[on_each_database]
async fn an_upload_that_expires_with_stored_bytes_that_its_row_does_not_record_leaves_nothing(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let file = two.alice.register(None, "a", 5).await.unwrap();
    two.clock.advance(HOUR);
    let gate = two.at_server.hold_at(BYTES_ARE_STORED);
    let upload = tokio::spawn({
        let alice = two.alice.clone();
        async move { alice.upload(file).await }
    });
    gate.reached().await;
    assert_eq!(two.stored().await, 1);
    assert_eq!(two.expire().await, 1);
    gate.open();
    assert_gone(upload.await.unwrap());
    assert_eq!((two.quota().await, two.stored().await), ((0, 0), 0));
    two.assert_consistent().await;
}

#[on_each_database]
async fn an_upload_recorded_after_the_orphan_sweep_has_read_the_rows_is_no_orphan(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let file = two.alice.register(None, "a", 5).await.unwrap();
    let gate = two.at_server.hold_at(BYTES_ARE_STORED);
    let upload = tokio::spawn({
        let alice = two.alice.clone();
        async move { alice.upload(file).await }
    });
    gate.reached().await;
    // Its bytes are stored, no row references them, and they are old: only their name says that they are arriving.
    let report = two.sweeper.app.orphan_cleanup.sweep_once(two.sweeper.now()).await.unwrap();
    assert_eq!(report.metrics["orphanBlobs"]["deleted"], 0, "{report:?}");
    gate.open();
    upload.await.unwrap().unwrap();
    two.alice.confirm(file).await.unwrap();
    two.assert_consistent().await;
    assert_eq!((two.status(file).await.as_str(), two.stored().await), ("ready", 1));
}

#[on_each_database]
async fn an_upload_recorded_between_the_listing_and_the_read_of_the_rows_is_no_orphan(db: TestDb) {
    for question in 1..=2 {
        let two = TwoProcesses::start(&db).await;
        let file = two.alice.register(None, &format!("a{question}"), 5).await.unwrap();
        let at_row = two.at_server.hold_at(BYTES_ARE_STORED);
        let upload = tokio::spawn({
            let alice = two.alice.clone();
            async move { alice.upload(file).await }
        });
        at_row.reached().await;
        // A stray blob beside it, so that something is left to check when arriving uploads are excluded.
        let stray = Blobs::key(file, Uuid::new_v4());
        two.server.store(&stray, "stray", two.server.now() - TimeDelta::days(2));
        let asks = HoldPoint::Before("SELECT id, blob_key, is_direct AND status");
        let mut asked = two.at_sweeper.hold_at(asks);
        let (cleanup, now) = (two.sweeper.app.orphan_cleanup.clone(), two.sweeper.now());
        let sweep = tokio::spawn(async move { cleanup.sweep_once(now).await });
        asked.reached().await;
        if question == 2 {
            let first = std::mem::replace(&mut asked, two.at_sweeper.hold_at(asks));
            first.open();
            asked.reached().await;
        }
        at_row.open();
        upload.await.unwrap().unwrap();
        asked.open();
        let report = sweep.await.unwrap().unwrap();
        assert_eq!(report.metrics["orphanBlobs"]["deleted"], 1, "{report:?}");
        assert!(!two.server.is_stored(&stray));
        two.alice.confirm(file).await.unwrap();
        two.assert_consistent().await;
        assert_eq!(two.status(file).await, "ready");
    }
}

#[on_each_database]
async fn a_new_upload_survives_the_cleanup_of_an_abandoned_one_of_its_file(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let file = two.alice.register(None, "a", 5).await.unwrap();
    let dead = Uuid::new_v4();
    let key = Blobs::key(file, dead);
    let mut abandoned = two.server.app.blobs.receive(dead, &key).await.unwrap();
    abandoned.write(b"54321").await.unwrap();
    abandoned.publish(|_| Ok(())).await.unwrap();
    drop(abandoned);
    let gate = two.at_sweeper.hold_at(HoldPoint::Before("SELECT * FROM files WHERE id"));
    let (db, blobs) = (two.sweeper.app.db.clone(), two.sweeper.app.blobs.clone());
    let sweep = tokio::spawn(async move { abandoned_uploads::sweep_once(&db, &blobs).await });
    gate.reached().await;
    two.alice.upload(file).await.unwrap();
    gate.open();
    assert_eq!(sweep.await.unwrap().unwrap(), 1);
    assert_eq!(two.stored().await, 1, "only the abandoned upload is gone");
    two.alice.confirm(file).await.unwrap();
    two.assert_consistent().await;
    assert_eq!(two.status(file).await, "ready");
}

#[on_each_database]
async fn a_batch_whose_last_file_comes_after_the_timeout_has_read_it_does_not_expire(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let batch = two.alice.open_batch(2, "batch").await.unwrap();
    two.alice.upload_and_confirm(Some(batch), "a").await.unwrap();
    let last = two.alice.register(Some(batch), "b", 5).await.unwrap();
    two.clock.advance(DAY);
    let gate = two.at_sweeper.hold_at(HoldPoint::BeforeBegin);
    let (timeout, now) = (two.sweeper.batch_timeout(), two.sweeper.now());
    let sweep = tokio::spawn(async move { timeout.sweep_once(now).await });
    gate.reached().await;
    two.alice.upload(last).await.unwrap();
    two.alice.confirm(last).await.unwrap();
    gate.open();
    let report = sweep.await.unwrap().unwrap();
    assert_eq!((&report.metrics["expiredBatches"], &report.metrics["deletedFiles"]), (&0.into(), &0.into()));
    two.assert_consistent().await;
    let seen: Vec<(String, i64)> = two.server.rows("SELECT status, ready_files FROM batches", args![]).await;
    assert_eq!(seen, [("completed".to_owned(), 2)]);
}

#[on_each_database]
async fn a_batch_that_expires_before_its_last_upload_is_recorded_deletes_only_that_file(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let batch = two.alice.open_batch(3, "batch").await.unwrap();
    two.alice.upload_and_confirm(Some(batch), "a").await.unwrap();
    let unconfirmed = two.alice.register(Some(batch), "b", 5).await.unwrap();
    two.alice.upload(unconfirmed).await.unwrap();
    let last = two.alice.register(Some(batch), "c", 5).await.unwrap();
    two.clock.advance(DAY);
    // Both have read: the upload its row, and the confirm its blob.
    let arriving = two.at_server.hold_at(BYTES_ARE_STORED);
    let upload = tokio::spawn({
        let alice = two.alice.clone();
        async move { alice.upload(last).await }
    });
    arriving.reached().await;
    let report = two.sweeper.batch_timeout().sweep_once(two.sweeper.now()).await.unwrap();
    assert_eq!((&report.metrics["expiredBatches"], &report.metrics["deletedFiles"]), (&1.into(), &1.into()));
    arriving.open();
    assert_gone(upload.await.unwrap());
    two.alice.confirm(unconfirmed).await.unwrap();
    assert_gone(two.alice.confirm(last).await);
    assert_eq!((two.quota().await, two.stored().await), ((0, 10), 2));
    two.assert_consistent().await;
    let seen: Vec<(String, i64, i64)> =
        two.server.rows("SELECT status, ready_files, deleted_files FROM batches", args![]).await;
    assert_eq!(seen, [("expired".to_owned(), 2, 1)]);
}

#[on_each_database]
async fn a_confirm_that_has_read_its_file_when_the_batch_expires_succeeds(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let batch = two.alice.open_batch(2, "batch").await.unwrap();
    let file = two.alice.register(Some(batch), "a", 5).await.unwrap();
    two.alice.upload(file).await.unwrap();
    two.clock.advance(DAY);
    let gate = two.at_server.hold_at(HoldPoint::BeforeBegin);
    let confirm = tokio::spawn({
        let alice = two.alice.clone();
        async move { alice.confirm(file).await }
    });
    gate.reached().await;
    let report = two.sweeper.batch_timeout().sweep_once(two.sweeper.now()).await.unwrap();
    assert_eq!((&report.metrics["expiredBatches"], &report.metrics["deletedFiles"]), (&1.into(), &0.into()));
    gate.open();
    confirm.await.unwrap().unwrap();
    two.assert_consistent().await;
    assert_eq!((two.status(file).await.as_str(), two.quota().await), ("ready", (0, 5)));
}

#[on_each_database]
async fn an_old_failure_retried_after_the_cleanup_has_read_it_is_kept(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let file = old_failure(&two).await;
    // The cleanup has found what to delete, and is about to delete it.
    let gate = two.at_sweeper.hold_at(HoldPoint::BeforeBeginAfter("AND deletion_warned_at >= failed_at"));
    let (cleanup, now) = (two.sweeper.app.orphan_cleanup.clone(), two.sweeper.now());
    let sweep = tokio::spawn(async move { cleanup.sweep_once(now).await });
    gate.reached().await;
    two.alice.retry(file).await.unwrap();
    gate.open();
    let report = sweep.await.unwrap().unwrap();
    assert_eq!(
        (&report.metrics["oldFailures"]["deleted"], report.errors.len()),
        (&0.into(), 0),
        "{report:?}"
    );
    assert_eq!((two.quota().await, two.stored().await), ((0, 5), 1));
    two.assert_consistent().await;
    assert_eq!(two.status(file).await, "failed", "it failed again, for its own reason");
}

#[on_each_database]
async fn an_old_failure_deleted_after_its_retry_has_read_it_is_gone_and_the_retry_says_so(db: TestDb) {
    let two = TwoProcesses::start(&db).await;
    let file = old_failure(&two).await;
    let gate = two.at_server.hold_at(HoldPoint::BeforeBegin);
    let retry = tokio::spawn({
        let alice = two.alice.clone();
        async move { alice.retry(file).await }
    });
    gate.reached().await;
    let report = two.sweeper.app.orphan_cleanup.sweep_once(two.sweeper.now()).await.unwrap();
    assert_eq!(report.metrics["oldFailures"]["deleted"], 1, "{report:?}");
    gate.open();
    assert_gone(retry.await.unwrap());
    assert_eq!((two.quota().await, two.stored().await), ((0, 0), 0));
    two.assert_consistent().await;
}

#[on_each_database]
async fn two_sweeps_that_remove_the_same_blobs_remove_all_of_them_and_no_others(db: TestDb) {
    const FILES: i64 = 4;
    let two = TwoProcesses::start(&db).await;
    let (alice, server) = (&two.alice, &two.server);
    alice.upload_and_confirm(None, "a").await.unwrap();
    for _ in 0..FILES {
        server.store(&Blobs::key(Uuid::new_v4(), Uuid::new_v4()), "stray", server.now() - TimeDelta::days(2));
    }
    let stored = two.stored().await;
    let held = HoldPoint::Before("SELECT id, blob_key, is_direct AND status");
    both(&two, held, async |rest| {
        rest.app.orphan_cleanup.sweep_once(rest.now()).await.unwrap().metrics.len()
    })
    .await;
    assert_eq!(two.stored().await, stored - 4);
    let batch = alice.open_batch(4, "called off").await.unwrap();
    for number in 0..FILES {
        let file = alice.register(Some(batch), &format!("off{number}"), 5).await.unwrap();
        alice.upload(file).await.unwrap();
    }
    alice.cancel_batch(batch).await.unwrap();
    let left = "SELECT COUNT(*) FROM files WHERE status = 'deleted' AND blob_key IS NOT NULL";
    assert_eq!(server.number(left).await, FILES);
    both(&two, HoldPoint::BeforeBegin, async |rest| {
        unfinished_deletions::sweep_once(&rest.app.db, &rest.app.blobs).await.unwrap()
    })
    .await;
    assert_eq!((server.number(left).await, two.stored().await), (0, stored - 4));
    for _ in 0..FILES {
        let key = Blobs::key(Uuid::new_v4(), Uuid::new_v4());
        let mut incoming = server.app.blobs.receive(Uuid::new_v4(), &key).await.unwrap();
        incoming.publish(|_| Ok(())).await.unwrap();
    }
    let held = HoldPoint::Before("SELECT id FROM workers");
    both(&two, held, async |rest| {
        abandoned_uploads::sweep_once(&rest.app.db, &rest.app.blobs).await.unwrap()
    })
    .await;
    assert_eq!(two.stored().await, stored - 4);
    assert_eq!(server.app.blobs.unfinished().await.unwrap(), []);
    two.assert_consistent().await;
}

#[on_each_database]
async fn each_item_is_handled_by_only_one_of_two_concurrent_sweeps(db: TestDb) {
    const FILES: i64 = 4;
    let two = TwoProcesses::start(&db).await;
    let told = async |kind: &str| {
        two.server.rows::<(i64,)>("SELECT COUNT(*) FROM events WHERE kind = $1", args![kind]).await[0].0
    };
    let (alice, clock, server) = (&two.alice, &two.clock, &two.server);

    // Uploads that were never confirmed.
    for number in 0..FILES {
        let file = alice.register(None, &format!("unconfirmed{number}"), 5).await.unwrap();
        alice.upload(file).await.unwrap();
    }
    clock.advance(HOUR);
    let [one, other] = both(&two, HoldPoint::BeforeBegin, async |rest| {
        rest.app.stuck_files.expiry.sweep_once(rest.now()).await.unwrap().metrics["deleted"].as_i64().unwrap()
    })
    .await;
    assert_eq!((one + other, told("file:cleaned-up").await, two.quota().await), (FILES, FILES, (0, 0)));

    // Files claimed by unknown workers.
    for number in 0..FILES {
        let file = alice.upload_and_confirm(None, &format!("stuck{number}")).await.unwrap();
        alice.break_claim(file, Stage::Chunk, Uuid::new_v4()).await;
    }
    clock.advance(HOUR);
    let [one, other] = both(&two, HoldPoint::BeforeBegin, async |rest| {
        let report = rest.app.stuck_files.sweep_once(rest.now()).await.unwrap();
        assert_eq!(report.errors, Vec::<String>::new());
        report.metrics["reEnqueued"].as_i64().unwrap()
    })
    .await;
    assert_eq!((one + other, told("file:processing-stalled").await), (FILES, FILES));
    assert_eq!(server.number("SELECT MAX(retry_count) FROM files").await, 1);

    // Files of a dead worker.
    let dead = Uuid::new_v4();
    for (file,) in server.rows::<(Uuid,)>("SELECT id FROM files WHERE status = 'queued'", args![]).await {
        alice.break_claim(file, Stage::Chunk, dead).await;
    }
    let sql = "INSERT INTO workers (id, name, stages, services, lock_key, started_at, heartbeat_at)
               VALUES ($1, 'dead', '', '', 7, $2, $2)";
    server.sql(sql, args![dead, Clock::System.now()]).await;
    let [one, other] = both(&two, HoldPoint::BeforeBegin, async |rest| {
        rest.app.liveness.rescue_dead_workers().await.unwrap()
    })
    .await;
    assert_eq!((one + other, told("file:processing-stalled").await), (1, 2 * FILES));
    assert_eq!(server.number("SELECT MAX(lost_workers) FROM files").await, 1);
    server.work("alice", &CancellationToken::new()).await;

    // Batches that wait in vain.
    for number in 0..FILES {
        let batch = alice.open_batch(2, &format!("batch{number}")).await.unwrap();
        alice.register(Some(batch), &format!("late{number}"), 5).await.unwrap();
    }
    let reserved = two.quota().await.0;
    assert_eq!(reserved, 5 * FILES);
    clock.advance(DAY);
    let [one, other] = both(&two, HoldPoint::BeforeBegin, async |rest| {
        rest.batch_timeout().sweep_once(rest.now()).await.unwrap().metrics["deletedFiles"].as_i64().unwrap()
    })
    .await;
    assert_eq!((one + other, told("batch:expired").await, two.quota().await.0), (FILES, FILES, 0));

    // Old failures: both sweeps warn, then both delete.
    for number in 0..FILES {
        alice.upload_and_confirm(None, &format!("cf{number}")).await.unwrap();
    }
    server.work("alice", &CancellationToken::new()).await;
    clock.advance(DAY * 30);
    let old_failures = async |rest: Arc<OfflineApp>, name: &'static str| {
        rest.app.orphan_cleanup.sweep_once(rest.now()).await.unwrap().metrics["oldFailures"][name]
            .as_i64()
            .unwrap()
    };
    let [one, other] =
        both(&two, HoldPoint::BeforeBegin, async |rest| old_failures(rest, "warnings").await).await;
    let warnings = "SELECT COUNT(*) FROM notifications WHERE kind = 'file-deletion-warning'";
    assert_eq!((one + other, server.number(warnings).await), (FILES, FILES));
    clock.advance(DAY * 7);
    let used = two.quota().await.1;
    let held = HoldPoint::BeforeBeginAfter("AND deletion_warned_at >= failed_at");
    let [one, other] = both(&two, held, async |rest| old_failures(rest, "deleted").await).await;
    assert_eq!((one + other, two.quota().await), (FILES, (0, used - 5 * FILES)));

    // Expired records are removed by only one of them.
    clock.advance(DAY * 8);
    let tombstones = server.number("SELECT COUNT(*) FROM files WHERE status = 'deleted'").await;
    let [one, other] = both(&two, HoldPoint::BeforeBegin, async |rest| {
        rest.app.retention.sweep_once(rest.now()).await.unwrap().metrics["tombstones"].as_i64().unwrap()
    })
    .await;
    assert_eq!(one + other, tombstones);
    assert!(tombstones >= 3 * FILES);
    two.assert_consistent().await;
}

/// Both processes reach the same point before either continues.
async fn both<T, F>(two: &TwoProcesses, held: HoldPoint, sweep: impl Fn(Arc<OfflineApp>) -> F) -> [T; 2]
where
    F: Future<Output = T>,
{
    let gates = [two.at_sweeper.hold_at(held), two.at_server.hold_at(held)];
    let together = async {
        for gate in &gates {
            gate.reached().await;
        }
        for gate in &gates {
            gate.open();
        }
    };
    let (one, other, ()) = tokio::join!(sweep(two.sweeper.clone()), sweep(two.server.clone()), together);
    [one, other]
}

/// A file that failed 30 days ago and whose owner was warned seven days ago.
async fn old_failure(two: &TwoProcesses) -> Uuid {
    let file = two.alice.upload_and_confirm(None, "cf").await.unwrap();
    two.server.work("alice", &CancellationToken::new()).await;
    two.clock.advance(DAY * 23);
    let report = two.sweeper.app.orphan_cleanup.sweep_once(two.sweeper.now()).await.unwrap();
    assert_eq!(report.metrics["oldFailures"]["warnings"], 1);
    two.clock.advance(DAY * 7);
    file
}
