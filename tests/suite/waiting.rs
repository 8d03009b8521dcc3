//! "Why is it not running?" always has an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::lifecycle::Stage::Extract;
use landfall_store::{Error, FaultInjector};
use serde_json::json;

use crate::support::script::Gate;
use crate::support::{Script, Setup, Step, TestDb, manual_clock, on_each_database};

#[on_each_database]
async fn a_file_shows_what_it_waits_for_at_every_step(db: TestDb) {
    use landfall_core::failure::Code;
    let (clock, gate) = (manual_clock(), Gate::default());
    let script =
        Script::new().then(Extract, Step::Block(gate.clone())).then(Extract, Step::Fail(Code::DbError));
    let server = Setup::default().clock(&clock).work(script).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
    let alice = server.client("alice");
    let registered = alice.register(None, "registered", 1).await;
    assert_eq!(alice.file(registered["fileId"].as_str().unwrap()).await["waitingFor"], "upload");

    let running = alice.upload("running", b"a").await;
    gate.reached().await;
    let seen = alice.file(&running).await;
    assert_eq!((&seen["waitingFor"], &seen["queuePosition"]), (&json!(null), &json!(null)));
    assert_eq!((&seen["inflight"]["stage"], &seen["inflight"]["attempt"]), (&json!("extract"), &json!(1)));
    let mut behind = Vec::new();
    for name in ["next", "after-that"] {
        behind.push(alice.upload(name, b"a").await);
        clock.advance(Duration::from_millis(1));
    }
    for (place, file) in behind.iter().enumerate() {
        let seen = alice.file(file).await;
        assert_eq!((&seen["waitingFor"], &seen["queuePosition"]), (&json!("worker"), &json!(place + 1)));
    }
    assert_eq!(seen["staleness"]["stale"], false);
    clock.advance(Duration::from_mins(3));
    for file in [&running, &behind[0]] {
        let staleness = &alice.file(file).await["staleness"];
        assert_eq!(staleness["stale"], true, "{staleness}");
        assert!(
            staleness["message"].as_str().unwrap().starts_with("No progress for 3 minutes. "),
            "{staleness}"
        );
    }
    gate.open();
    server.idle().await;
    let seen = alice.file(&behind[0]).await;
    assert_eq!(
        (&seen["waitingFor"], &seen["staleness"]["stale"]),
        (&json!("retry"), &json!(false)),
        "{seen}"
    );
    let seen = alice.file(&running).await;
    assert_eq!((&seen["waitingFor"], &seen["staleness"]["stale"]), (&json!(null), &json!(false)), "{seen}");
    server.stop().await;
}

/// Counts the queries that have these words.
struct Reads(&'static str, AtomicUsize);

impl Reads {
    fn of(words: &'static str) -> Arc<Self> {
        Arc::new(Self(words, AtomicUsize::default()))
    }

    fn count(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

impl FaultInjector for Reads {
    fn inject<'a>(&'a self, step: landfall_store::Step<'a>) -> BoxFuture<'a, Result<(), Error>> {
        if let landfall_store::Step::Statement(sql) = step
            && sql.starts_with("SELECT")
            && sql.contains(self.0)
        {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
        std::future::ready(Ok(())).boxed()
    }
}

/// The longer the queue, the more often its owner looks at it.
#[on_each_database]
async fn a_page_of_waiting_files_reads_the_queue_once(db: TestDb) {
    let (clock, reads) = (manual_clock(), Reads::of("FROM files WHERE is_due"));
    let server = Setup::default().clock(&clock).faults(reads.clone()).with("ROLE", "api").start(&db).await;
    let (alice, bob) = (server.client("alice"), server.client("bob"));
    let mut expected = Vec::new();
    for position in 2..=5 {
        bob.upload("of another owner", b"a").await;
        expected.push((alice.upload("a.txt", b"a").await, json!(position)));
        clock.advance(Duration::from_millis(1));
    }
    let urgent = json!({ "fileCount": 1, "priority": "high" });
    let batch = alice.post("/api/v2/uploads/batches", urgent).await.ok();
    expected.push((alice.upload_in(batch["batchId"].as_str().unwrap(), "a.txt", b"a").await, json!(1)));
    expected
        .push((alice.register(None, "a.txt", 1).await["fileId"].as_str().unwrap().to_owned(), json!(null)));
    expected.sort_unstable_by(|one, other| one.0.cmp(&other.0));

    let before = reads.count();
    let listed = alice.get("/api/v2/uploads/files").await.ok();
    assert_eq!(reads.count() - before, 1);
    let listed = listed["files"].as_array().unwrap().iter();
    let mut listed: Vec<_> = listed
        .map(|file| (file["fileId"].as_str().unwrap().to_owned(), file["queuePosition"].clone()))
        .collect();
    listed.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(listed, expected);
    for (file, position) in expected {
        assert_eq!(alice.file(&file).await["queuePosition"], position);
    }
    server.stop().await;
}

/// Most lists have none that waits.
#[on_each_database]
async fn what_blocks_files_is_read_only_for_those_that_it_can_block(db: TestDb) {
    let reads = Reads::of("FROM paused_stages");
    let server = Setup::default().faults(reads.clone()).with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    let list = async || alice.get("/api/v2/uploads/files").await.ok()["files"][0]["waitingFor"].clone();
    assert_eq!((list().await, reads.count()), (json!("no_workers"), 1));
    alice.post(&format!("/api/v2/uploads/files/{file}/cancel"), json!({})).await.ok();
    assert_eq!((list().await, reads.count()), (json!(null), 1));
    assert_eq!((alice.file(&file).await["waitingFor"].clone(), reads.count()), (json!(null), 1));
    server.stop().await;
}

#[on_each_database]
async fn a_queue_without_a_worker_is_shown_as_such(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    assert_eq!(alice.file(&file).await["waitingFor"], "no_workers");
    server.stop().await;
}

#[on_each_database]
async fn the_operator_sees_the_results_of_the_last_hours(db: TestDb) {
    use landfall_core::failure::Code;
    let clock = manual_clock();
    let script = Script::new();
    for code in [Code::ParseError, Code::StageTimeout, Code::StageTimeout] {
        script.then(Extract, Step::Fail(code));
    }
    let server = Setup::default().clock(&clock).work(script).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
    let alice = server.client("alice");
    alice.upload("bad", b"a").await;
    server.idle().await;
    alice.upload("slow", b"a").await;
    for _ in 0..3 {
        server.idle().await;
        clock.advance(Duration::from_secs(61));
    }
    alice.upload("good", b"a").await;
    server.idle().await;
    clock.advance(Duration::from_hours(1));
    alice.upload("good again", b"a").await;
    server.idle().await;
    let status = server.admin().get("/api/v2/admin/queue-status").await.ok();
    let totals = &status["throughput"];
    assert_eq!(
        (&totals["totalCompleted"], &totals["totalFailed"], &totals["totalTimedOut"]),
        (&json!(2), &json!(2), &json!(1)),
        "{status}"
    );
    let hours = status["recentHours"].as_array().unwrap();
    assert_eq!((&hours[0]["completed"], &hours[0]["failed"]), (&json!(1), &json!(0)));
    assert_eq!(
        (&hours[1]["completed"], &hours[1]["failed"], &hours[1]["timedOut"]),
        (&json!(1), &json!(2), &json!(1))
    );
    assert_eq!(hours[1]["byClass"], json!({ "DOCUMENT_ERROR": 1, "TIMEOUT": 1 }));
    assert_eq!(status["workers"].as_array().unwrap().len(), 1);
    server.stop().await;
}
