//! The worker: which files it processes, when, and with what result.

use std::sync::Arc;
use std::time::Duration;

use landfall_core::clock::Time;
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage::{Chunk, Embed, Extract};
use landfall_server::queue::claim::{ClaimDue, Claims, Want};
use landfall_server::queue::isolation::Next;
use landfall_server::queue::limits::RateLimits;
use landfall_server::queue::release::Release;
use landfall_server::queue::rescue::RescueWorker;
use landfall_store::wake::Signal;
use landfall_store::{Db, args};
use serde_json::json;

use crate::support::offline_app::Sql;
use crate::support::script::Gate;
use crate::support::{
    Client, Script, Setup, Step, TestDb, TestServer, batch_summary, manual_clock, on_each_database, until,
};

/// Longer than any wait between two attempts.
const LONG: Duration = Duration::from_secs(90);

#[on_each_database]
async fn a_failing_stage_is_retried_after_a_growing_wait_and_then_given_up(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    for _ in 0..3 {
        script.then(Extract, Step::Fail(Code::DbError));
    }
    let server = Setup::default().clock(&clock).work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    server.idle().await;

    let seen = alice.file(&file).await;
    assert_eq!(
        (&seen["status"], &seen["waitingFor"], &seen["attempt"]),
        (&json!("queued"), &json!("retry"), &json!(1))
    );
    assert_eq!(seen["error"]["code"], "DB_ERROR");
    clock.advance(Duration::from_millis(3_999));
    server.idle().await;
    assert_eq!(script.runs().len(), 1, "five seconds less a fifth have not passed");
    clock.advance(Duration::from_secs(3));
    server.idle().await;
    assert_eq!(script.runs(), [(Extract, 1), (Extract, 2)]);
    clock.advance(Duration::from_millis(7_999));
    server.idle().await;
    assert_eq!(script.runs().len(), 2, "ten seconds less a fifth have not passed");
    clock.advance(Duration::from_secs(5));
    server.idle().await;

    let seen = alice.file(&file).await;
    assert_eq!(
        (&seen["status"], &seen["attempt"], &seen["error"]["stage"]),
        (&json!("failed"), &json!(3), &json!("extract"))
    );
    assert_eq!(seen["error"]["class"], "DB_ERROR");
    clock.advance(LONG);
    server.idle().await;
    assert_eq!(script.runs().len(), 3);
    server.assert_audit_clean().await;
}

/// What attempts and deaths of workers leave in the row of a file: an error, waits for a service, deaths.
type Marks = (Option<String>, Option<String>, i64, Option<Time>, i64, i64, i64);

#[on_each_database]
async fn a_finished_stage_clears_what_earlier_attempts_left_in_the_row(db: TestDb) {
    for failed_at in [Extract, Chunk, Embed] {
        let clock = manual_clock();
        let script = Script::new().then(failed_at, Step::Fail(Code::DbError));
        let server = Setup::default().clock(&clock).work(script).start(&db).await;
        let alice = server.client("alice");
        let file = alice.upload("a.txt", b"a").await;
        server.idle().await;
        assert_eq!(alice.file(&file).await["error"]["code"], "DB_ERROR", "{failed_at:?}");
        let id: uuid::Uuid = file.parse().expect("an id");
        let mark = "UPDATE files SET waits = 1, waiting_since = updated_at, lost_workers = 1, deaths = 1 WHERE id = $1";
        server.app.db.write(Sql(mark.to_owned(), args![id])).await.unwrap();
        clock.advance(LONG);
        server.idle().await;
        assert_eq!(alice.status(&file).await, "ready", "{failed_at:?}");
        let sql = "SELECT error_code, error_message, waits, waiting_since, lost_workers, deaths, deaths_alone
                   FROM files WHERE id = $1";
        let marks: Option<Marks> = server.app.db.read().await.unwrap().row(sql, args![id]).await.unwrap();
        assert_eq!(marks, Some((None, None, 0, None, 0, 0, 0)), "{failed_at:?}");
        server.assert_audit_clean().await;
        server.stop().await;
    }
}

#[on_each_database]
async fn a_permanent_failure_is_not_retried(db: TestDb) {
    let script = Script::new().then(Extract, Step::Fail(Code::ParseError));
    let server = Setup::default().work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    server.idle().await;
    assert_eq!(alice.status(&file).await, "failed");
    assert_eq!(script.runs(), [(Extract, 1)]);
}

#[on_each_database]
async fn a_retry_resumes_at_the_stage_that_failed(db: TestDb) {
    let script = Script::new().then(Embed, Step::Fail(Code::ParseError));
    let server = Setup::default().work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    server.idle().await;
    assert_eq!(alice.status(&file).await, "failed");

    alice.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({})).await.ok();
    server.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
    assert_eq!(script.runs(), [(Extract, 1), (Chunk, 1), (Embed, 1), (Embed, 1)]);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn only_failed_or_cancelled_files_can_be_retried(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    server.idle().await;
    alice.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({})).await.refused(409, "INVALID_STATE");
    alice
        .post(&format!("/api/v2/uploads/files/{file}/cancel"), json!({}))
        .await
        .refused(409, "INVALID_STATE");
}

#[on_each_database]
async fn a_stage_that_panics_fails_its_file_and_nothing_else(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new().then(Chunk, Step::Panic).then(Chunk, Step::Panic);
    let server = Setup::default().clock(&clock).work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    server.idle().await;
    clock.advance(LONG);
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("UNKNOWN")));
    let other = alice.upload("b.txt", b"b").await;
    server.idle().await;
    assert_eq!(alice.status(&other).await, "ready");
}

#[on_each_database]
async fn a_hanging_stage_is_stopped_at_its_timeout(db: TestDb) {
    let clock = manual_clock();
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Block(gate.clone()));
    let server = Setup::default()
        .clock(&clock)
        .work(script.clone())
        .with("EXTRACT_TIMEOUT_MS", 1_000)
        .start(&db)
        .await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    gate.reached().await;
    assert_eq!(alice.file(&file).await["inflight"]["stage"], "extract");
    clock.advance(Duration::from_millis(1_001));
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("queued"), &json!("STAGE_TIMEOUT")));
    clock.advance(LONG);
    server.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
}

#[on_each_database]
async fn a_stage_that_takes_too_long_twice_fails_and_can_be_retried_by_hand(db: TestDb) {
    let clock = manual_clock();
    let too_long = Step::Fail(Code::StageTimeout);
    let script = Script::new().then(Extract, too_long.clone()).then(Extract, too_long);
    let server = Setup::default().clock(&clock).work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    for _ in 0..3 {
        server.idle().await;
        clock.advance(LONG);
    }
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("STAGE_TIMEOUT")));
    let message = seen["error"]["message"].as_str().unwrap();
    assert!(message.contains("does not try it again by itself"), "{message}");
    assert_eq!(script.runs(), [(Extract, 1), (Extract, 2)], "a third attempt would take as long");
    alice.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({})).await.ok();
    server.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
}

#[on_each_database]
async fn no_more_files_are_in_progress_than_the_stages_have_room_for(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new();
    for _ in 0..6 {
        script.then(Extract, Step::Block(gate.clone()));
    }
    let server = Setup::default().work(script.clone()).with("EXTRACT_CONCURRENCY", 2).start(&db).await;
    let alice = server.client("alice");
    for number in 0..6 {
        alice.upload(&format!("{number}.txt"), b"a").await;
    }
    gate.reached().await;
    gate.reached().await;
    let count = async |status: &str| {
        let found = alice.get(&format!("/api/v2/uploads/files?status={status}")).await.ok();
        found["files"].as_array().unwrap().len()
    };
    assert_eq!((count("extracting").await, count("queued").await), (2, 4));
    for _ in 0..6 {
        gate.open();
    }
    server.idle().await;
    assert_eq!(count("ready").await, 6);
}

#[on_each_database]
async fn files_with_priority_go_first(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Block(gate.clone()));
    let server = Setup::default().work(script.clone()).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
    let alice = server.client("alice");
    alice.upload("first", b"a").await;
    gate.reached().await;
    for priority in ["low", "normal", "high"] {
        let batch = json!({ "fileCount": 1, "priority": priority });
        let batch = alice.post("/api/v2/uploads/batches", batch).await.ok();
        alice.upload_in(batch["batchId"].as_str().unwrap(), priority, b"a").await;
    }
    gate.open();
    server.idle().await;
    assert_eq!(script.order(), ["first", "high", "normal", "low"]);
}

#[on_each_database]
async fn a_worker_that_does_not_run_the_next_stage_releases_the_file(db: TestDb) {
    let (first, second) = (Script::new(), Script::new());
    let extractor = Setup::default().work(first.clone()).with("WORKER_STAGES", "extract").start(&db).await;
    let alice = extractor.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    extractor.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!(
        (&seen["status"], &seen["nextStage"], &seen["waitingFor"]),
        (&json!("queued"), &json!("chunk"), &json!("no_workers"))
    );

    let rest = Setup::default().work(second.clone()).with("WORKER_STAGES", "chunk,embed").start(&db).await;
    rest.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
    assert_eq!((first.runs(), second.runs()), (vec![(Extract, 1)], vec![(Chunk, 1), (Embed, 1)]));
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn a_shutdown_releases_unfinished_files_and_uses_no_attempt(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Block(gate.clone()));
    let server = Setup::default().work(script).with("SHUTDOWN_GRACE_MS", 1).start(&db).await;
    let file = server.client("alice").upload("a.txt", b"a").await;
    gate.reached().await;
    server.stop().await;

    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let seen = server.client("alice").file(&file).await;
    assert_eq!(
        (&seen["status"], &seen["attempt"], &seen["error"]),
        (&json!("queued"), &json!(0), &json!(null))
    );
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_shutdown_finishes_files_that_end_in_time(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Block(gate.clone()));
    let server = Setup::default().work(script).start(&db).await;
    let file = server.client("alice").upload("a.txt", b"a").await;
    gate.reached().await;
    gate.open();
    server.stop().await;
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    assert_eq!(server.client("alice").status(&file).await, "ready");
}

#[on_each_database]
async fn a_worker_declared_dead_changes_nothing_when_it_comes_back(db: TestDb) {
    let gate = Gate::default();
    let zombie_script = Script::new().then(Extract, Step::Block(gate.clone()));
    // With its one slot taken it does not poll the queue, and it is too slow to notice that it was declared dead.
    let zombie = Setup::default()
        .work(zombie_script)
        .with("WORKER_STAGES", "extract")
        .with("EXTRACT_CONCURRENCY", 1)
        .with("HEARTBEAT_EXPIRY_MS", 2_000_000)
        .start(&db)
        .await;
    let alice = zombie.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    gate.reached().await;

    // Another process declares it dead and takes the file over.
    let worker = zombie.app.liveness.identity().id;
    let heir_gate = Gate::default();
    let heir =
        Setup::default().work(Script::new().then(Extract, Step::Block(heir_gate.clone()))).start(&db).await;
    let rescued =
        heir.app.db.write(RescueWorker { worker, now: heir.app.clock.now() }).await.unwrap().unwrap();
    assert_eq!(rescued.requeued, 1);
    heir.app.wake.send(Signal::Work);
    heir_gate.reached().await;

    gate.open();
    zombie.idle().await;
    assert_eq!(zombie.app.worker.as_ref().unwrap().fenced_off(), 1);
    let seen = alice.file(&file).await;
    assert_eq!(
        (&seen["status"], &seen["attempt"]),
        (&json!("extracting"), &json!(1)),
        "still claimed by the other process"
    );
    heir_gate.open();
    heir.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
    heir.assert_audit_clean().await;
}

#[on_each_database]
async fn files_claimed_without_the_workers_knowledge_are_released(db: TestDb) {
    // As when the response to a claim is lost: the files are claimed, and no worker processes them.
    let server = Setup::default().work(Script::new()).with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    let identity = server.app.liveness.identity();
    let (token, now) = (server.app.clock.new_id(), server.app.clock.now());
    let name = server.app.liveness.name().to_owned();
    let claim = ClaimDue {
        worker: identity.id,
        worker_name: name.clone(),
        wants: vec![Want { stage: Extract, room: 5, services: &[] }],
        held: landfall_server::queue::tenant_share::Held::default(),
        token,
        rounds: Arc::default(),
        limits: RateLimits::default(),
        breaker: server.app.config.queue.breaker,
        next: Next::Many,
        makes_way: false,
        now,
    };
    assert!(
        matches!(server.app.db.write(claim).await.unwrap(), Claims::Taken(taken) if taken.files.len() == 1)
    );
    assert_eq!(alice.status(&file).await, "extracting");
    let release = |claim| Release { worker: identity.id, worker_name: name.clone(), claim, file: None, now };
    let another = server.app.clock.new_id();
    assert_eq!(server.app.db.write(release(another)).await.unwrap(), 0, "files of another claim stay");
    assert_eq!(server.app.db.write(release(token)).await.unwrap(), 1);
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["attempt"]), (&json!("queued"), &json!(0)));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_late_stop_does_not_strand_the_next_attempt(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Block(gate.clone()));
    let server = Setup::default().work(script).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    gate.reached().await;
    // A user cancelled and retried the file; the stop of the first attempt reaches the second.
    server.app.worker.as_ref().unwrap().stop_file(file.parse().unwrap());
    server.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
    server.assert_audit_clean().await;
}

/// Takes the files of a server's worker from it, as from a dead one. It goes on under a new id.
async fn declare_dead(server: &TestServer) {
    let worker = server.app.liveness.identity();
    server.app.db.write(RescueWorker { worker: worker.id, now: server.app.clock.now() }).await.unwrap();
    server.app.liveness.rejoin(&worker).await.unwrap();
    server.app.wake.send(Signal::Work);
}

/// A file whose workers die, and another worker that dies just before the death `with` of these.
struct WithAnotherDeath {
    server: TestServer,
    alice: Client,
    file: String,
}

impl WithAnotherDeath {
    async fn run(db: &TestDb, deaths: usize, with: usize) -> Self {
        let gate = Gate::default();
        let script = Script::new();
        for _ in 0..deaths {
            script.then(Extract, Step::Block(gate.clone()));
        }
        let server = Setup::default().work(script).start(db).await;
        let other = Setup::default().work(Script::new()).with("ROLE", "api").start(db).await;
        let alice = server.client("alice");
        let file = alice.upload("a.txt", b"a").await;
        for death in 1..=deaths {
            gate.reached().await;
            if death == with {
                declare_dead(&other).await;
            }
            declare_dead(&server).await;
        }
        Self { server, alice, file }
    }

    async fn assert_goes_on(self) {
        assert_ne!(self.alice.status(&self.file).await, "failed");
        until("the file is ready", async || self.alice.status(&self.file).await == "ready").await;
        self.server.assert_audit_clean().await;
    }
}

/// Another death shows that something else kills the workers, also while the file is in the hand of one.
#[on_each_database]
async fn a_file_that_is_worked_on_alone_is_cleared_by_the_death_of_another_worker(db: TestDb) {
    WithAnotherDeath::run(&db, 5, 5).await.assert_goes_on().await;
}

/// What killed the other worker may have killed this one.
#[on_each_database]
async fn a_death_alone_that_comes_with_that_of_another_worker_does_not_count(db: TestDb) {
    WithAnotherDeath::run(&db, 5, 4).await.assert_goes_on().await;
}

#[on_each_database]
async fn another_death_excuses_only_the_worker_that_has_the_file(db: TestDb) {
    let WithAnotherDeath { server, alice, file } = WithAnotherDeath::run(&db, 6, 4).await;
    server.idle().await;
    assert_eq!(alice.file(&file).await["error"]["code"], json!("WORKER_LOST"));
    server.assert_audit_clean().await;
}

/// A document that takes the memory of a whole machine ends the workers beside its own, which would excuse it for ever.
#[on_each_database]
async fn a_file_fails_after_fifty_deaths_although_another_worker_died_at_each(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new();
    // The first that it is worked on alone is the fourth.
    for _ in 0..4 {
        script.then(Extract, Step::Block(gate.clone()));
    }
    let server = Setup::default().work(script).start(&db).await;
    let other = Setup::default().work(Script::new()).with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    for death in 1..=4 {
        gate.reached().await;
        if death == 4 {
            let many = Sql("UPDATE files SET deaths = 49".to_owned(), args![]);
            assert_eq!(server.app.db.write(many).await.unwrap(), 1);
        }
        declare_dead(&other).await;
        declare_dead(&server).await;
    }
    server.idle().await;
    let error = &alice.file(&file).await["error"];
    assert_eq!(error["code"], json!("WORKER_LOST"));
    assert!(error["message"].as_str().unwrap().starts_with("50 workers died"), "{error}");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_whose_worker_died_twice_with_it_alone_fails(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new();
    // One death makes it watched, two while it is worked on isolate it, and two alone prove it.
    for _ in 0..5 {
        script.then(Extract, Step::Block(gate.clone()));
    }
    let server = Setup::default().work(script).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(1).await;
    let file = alice.upload_in(&batch, "a.txt", b"a").await;
    for death in 1..=5 {
        gate.reached().await;
        declare_dead(&server).await;
        if death < 5 {
            assert_ne!(alice.status(&file).await, "failed");
        }
    }
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("WORKER_LOST")));
    assert_eq!(alice.batch(&batch).await["summary"], batch_summary(1, 0, 1));
    let stalls = server
        .app
        .db
        .read()
        .await
        .unwrap()
        .number("SELECT COUNT(*) FROM events WHERE kind = 'file:processing-stalled'", args![])
        .await
        .unwrap();
    assert_eq!(stalls, 5);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn an_output_that_the_database_refuses_fails_only_its_own_file(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(std::sync::Arc::new(BadOutput)).start(&db).await;
    let alice = server.client("alice");
    let bad = alice.upload("bad", b"a").await;
    let good = alice.upload("good", b"a").await;
    for _ in 0..8 {
        // Between its attempts to write the result, the worker waits by the clock.
        pass_time_until_idle(&server, &clock).await;
    }
    assert_eq!(alice.status(&good).await, "ready");
    let seen = alice.file(&bad).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("DB_ERROR")));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn the_hourly_counts_show_the_results_of_files(db: TestDb) {
    let script = Script::new().then(Extract, Step::Fail(Code::ParseError));
    let server = Setup::default().work(script).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
    let alice = server.client("alice");
    for name in ["bad", "good", "better"] {
        alice.upload(name, b"a").await;
    }
    server.idle().await;
    let counters: Vec<(String, i64)> = server
        .app
        .db
        .read()
        .await
        .unwrap()
        .rows("SELECT name, count FROM hourly WHERE name NOT LIKE 'took:%' ORDER BY name", args![])
        .await
        .unwrap();
    let expected = [
        ("attempts:class:DOCUMENT_ERROR", 1),
        ("attempts:failed", 1),
        ("completed", 2),
        ("failed", 1),
        ("files:class:DOCUMENT_ERROR", 1),
    ];
    assert_eq!(counters, expected.map(|(name, count)| (name.to_owned(), count)));
}

/// Returns vectors for one file that has no chunks, which the index refuses.
struct BadOutput;

impl landfall_server::stages::Work for BadOutput {
    fn run<'a>(
        &'a self,
        job: &'a landfall_server::stages::Job,
    ) -> futures_util::future::BoxFuture<
        'a,
        Result<landfall_server::stages::Output, landfall_core::failure::Failure>,
    > {
        use landfall_core::text::Embedded;
        use landfall_server::stages::Output;
        Box::pin(async move {
            Ok(if job.stage == Embed && job.file.file_name == "bad" {
                Output::Embedded(Embedded { model: "none".to_owned(), vectors: vec![vec![1.0]] })
            } else {
                Output::Nothing
            })
        })
    }
}

/// Lets time pass until no file is in progress and none is due.
async fn pass_time_until_idle(server: &TestServer, clock: &landfall_core::clock::ManualClock) {
    let idle = server.idle();
    tokio::pin!(idle);
    loop {
        clock.advance(Duration::from_secs(2));
        tokio::select! {
            () = &mut idle => return,
            () = landfall_core::clock::Clock::System.sleep(Duration::from_millis(5)) => {}
        }
    }
}

/// PostgreSQL writes all indexes of a row if a column of one of them has changed, also one that only a condition names.
#[on_each_database]
async fn a_stage_that_is_done_changes_no_index_of_its_file(db: TestDb) {
    let opened = Db::open(&db.url, 2).await.unwrap();
    let sql = if opened.is_postgres() {
        "SELECT CAST(indexdef AS TEXT) FROM pg_indexes WHERE schemaname = current_schema() AND tablename = 'files'"
    } else {
        "SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'files' AND sql IS NOT NULL"
    };
    let indexes: Vec<(String,)> = opened.read().await.unwrap().rows(sql, args![]).await.unwrap();
    assert!(indexes.len() > 10, "{indexes:?}");
    for (index,) in indexes {
        let words: Vec<&str> = index.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for column in ["status", "next_stage", "claimed_at", "updated_at", "attempt", "begun"] {
            assert!(!words.contains(&column), "{column} changes with each stage: {index}");
        }
    }
}
