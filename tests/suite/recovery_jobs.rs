//! The recovery jobs: what they repair, and what they leave alone.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use landfall_core::clock::{ManualClock, Time};
use landfall_core::lifecycle::Stage;
use landfall_core::refusal::RefusalCode;
use landfall_server::recovery::{Job, Jobs, Sweep, SweepReport};
use landfall_store::Error;
use landfall_store::wake::Signal;
use landfall_store::{Arg, Rows, Tx, Write, args};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::fault_injector::{Break, PlannedFaults};
use crate::support::offline_app::{OfflineApp, Recount};
use crate::support::script::Gate;
use crate::support::{
    Client, Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database, until,
};

/// A schedule that is never due within a test.
const NEVER: &str = "0 0 1 1 *";
const SECOND: Duration = Duration::from_secs(1);

/// One second less.
fn nearly(duration: Duration) -> Duration {
    duration.saturating_sub(SECOND)
}

type Part = Result<Vec<u8>, std::io::Error>;

struct Sql(&'static str, Vec<Arg>);

impl Write for Sql {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        tx.execute(self.0, self.1.clone()).await
    }
}

/// A server whose sweeps run only when the test says so.
pub fn by_hand(clock: &ManualClock) -> Setup {
    let schedules = [
        "STUCK_RECOVERY_SCHEDULE",
        "ORPHAN_CLEANUP_SCHEDULE",
        "BATCH_TIMEOUT_SCHEDULE",
        "RETENTION_SCHEDULE",
        "UPLOAD_EXPIRY_SCHEDULE",
        "BLOB_SCRUB_SCHEDULE",
    ];
    schedules.into_iter().fold(Setup::default().clock(clock), |setup, name| setup.with(name, NEVER))
}

/// The same without a worker.
pub fn without_workers(clock: &ManualClock) -> Setup {
    by_hand(clock).with("ROLE", "maintenance")
}

async fn run(server: &TestServer, job: &str) -> Value {
    let answer = server.admin().post(&format!("/api/v2/admin/jobs/{job}/run"), json!({})).await.ok();
    assert_eq!(answer["run"]["errors"], json!([]), "{answer}");
    answer["run"]["metrics"].clone()
}

pub async fn recover(server: &TestServer) -> Value {
    run(server, "stuck-file-recovery").await
}

async fn change(server: &TestServer, sql: &'static str, arguments: Vec<Arg>) {
    assert!(server.app.db.write(Sql(sql, arguments)).await.unwrap() > 0, "{sql} changes something");
}

async fn number(server: &TestServer, sql: &str) -> i64 {
    server.app.db.read().await.unwrap().number(sql, args![]).await.unwrap()
}

/// Leaves a file as if a worker that does not exist any more had claimed it.
pub async fn break_claim(server: &TestServer, file: &str, stage: Stage) {
    change(
        server,
        "UPDATE files SET status = $2, next_stage = $3, claim = $4, claimed_by = $4, claimed_at = $5, updated_at = $5,
                          run_after = NULL, is_due = FALSE, attempt = 1
         WHERE id = $1",
        args![Uuid::parse_str(file).unwrap(), stage.running(), stage, Uuid::new_v4(), server.app.clock.now()],
    )
    .await;
    server.app.db.write(Recount).await.unwrap();
}

async fn events(server: &TestServer, kind: &str) -> Vec<Value> {
    let sql = "SELECT data FROM events WHERE kind = $1 ORDER BY id";
    let found: Vec<(Value,)> = server.app.db.read().await.unwrap().rows(sql, args![kind]).await.unwrap();
    found.into_iter().map(|(data,)| data).collect()
}

/// How often a job ran.
async fn runs(server: &TestServer, job: &str) -> i64 {
    let sql = "SELECT COUNT(*) FROM job_runs WHERE name = $1";
    server.app.db.read().await.unwrap().number(sql, args![job]).await.unwrap()
}

async fn job(client: &Client, name: &str) -> Value {
    let jobs = client.get("/api/v2/admin/jobs").await.ok();
    let found = jobs["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).cloned();
    found.unwrap_or_else(|| panic!("{name} is in {jobs}"))
}

/// A sweep that ends when the test opens the gate.
struct Slow(Gate);

impl Sweep for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn sweep_once(&self, _: Time) -> BoxFuture<'_, Result<SweepReport, Error>> {
        async move {
            self.0.wait().await;
            Ok(SweepReport::default())
        }
        .boxed()
    }
}

async fn slow(server: &TestServer, gate: &Gate) -> Jobs {
    let jobs = vec![Job { sweep: Arc::new(Slow(gate.clone())), schedule: NEVER.parse().unwrap() }];
    let app = &server.app;
    Jobs::start(app.db.clone(), app.clock.clone(), app.liveness.clone(), jobs).await.unwrap()
}

#[on_each_database]
async fn a_file_of_a_lost_worker_is_released_after_30_3_and_10_minutes_and_fails_after_30_more(db: TestDb) {
    let clock = manual_clock();
    let server = without_workers(&clock).start(&db).await;
    let alice = server.client("alice");
    let mut files = Vec::new();
    for stage in Stage::ALL {
        files.push((stage, alice.upload(stage.name(), b"a").await));
    }
    for (recovered, minutes) in [30, 3, 10].into_iter().enumerate() {
        for (stage, file) in &files {
            break_claim(&server, file, *stage).await;
        }
        let patience = Duration::from_mins(minutes);
        clock.advance(nearly(patience));
        assert_eq!(recover(&server).await["totalStuck"], 0, "after nearly {minutes} minutes");
        clock.advance(SECOND);
        let listed = alice.get("/api/v2/uploads/stuck").await.ok();
        assert_eq!(
            (&listed["total"], &listed["files"][0]["reason"]),
            (&json!(4), &json!("claim_broken")),
            "{listed}"
        );
        let metrics = recover(&server).await;
        assert_eq!(
            (&metrics["totalStuck"], &metrics["reEnqueued"], &metrics["permanentlyFailed"]),
            (&json!(4), &json!(4), &json!(0)),
            "{metrics}"
        );
        assert_eq!(metrics["averageStuckDuration"], json!(minutes * 60_000), "{metrics}");
        assert_eq!(
            metrics["byStatus"],
            json!({ "scanning": 1, "extracting": 1, "chunking": 1, "embedding": 1 })
        );
        for (stage, file) in &files {
            let seen = alice.file(file).await;
            assert_eq!((&seen["status"], &seen["nextStage"]), (&json!("queued"), &json!(stage)), "{seen}");
            assert_eq!((&seen["retryCount"], &seen["attempt"]), (&json!(recovered + 1), &json!(0)), "{seen}");
        }
    }
    for (stage, file) in &files {
        break_claim(&server, file, *stage).await;
    }
    clock.advance(nearly(Duration::from_mins(30)));
    assert_eq!(recover(&server).await["totalStuck"], 0);
    clock.advance(SECOND);
    let retried = alice.post("/api/v2/uploads/stuck/retry-all", json!({})).await.ok();
    assert_eq!(retried, json!({ "success": true, "retriedCount": 0, "skippedCount": 4, "errors": [] }));
    assert_eq!(recover(&server).await["permanentlyFailed"], 4);
    for (stage, file) in &files {
        let error = &alice.file(file).await["error"];
        assert_eq!((&error["code"], &error["stage"]), (&json!("STUCK_EXHAUSTED"), &json!(stage)), "{error}");
    }
    assert_eq!(recover(&server).await["totalStuck"], 0);
    let told = alice.get("/api/v2/notifications").await.ok();
    for (stage, file) in &files {
        let of_it: Vec<&Value> =
            told["notifications"].as_array().unwrap().iter().filter(|one| one["fileId"] == **file).collect();
        assert_eq!(of_it.len(), 1, "notified once: {told}");
        assert_eq!(
            (&of_it[0]["type"], &of_it[0]["data"]["code"]),
            (&json!("file-failure-notification"), &json!("STUCK_EXHAUSTED")),
            "{told}"
        );
        assert_eq!(of_it[0]["data"]["stage"], json!(stage), "{told}");
    }
    assert_eq!(told["unreadCount"], 4, "{told}");
    assert_eq!(events(&server, "file:processing-stalled").await.len(), 12);
    let path = format!("/api/v2/uploads/files/{}/retry", files[0].1);
    assert_eq!(alice.post(&path, json!({})).await.ok()["retryCount"], 0, "a manual retry resets the count");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn no_file_is_stuck_in_a_queue_of_five_thousand_behind_one_slow_worker(db: TestDb) {
    const FILES: usize = 5_000;
    let (clock, gate, script) = (manual_clock(), Gate::default(), Script::new());
    for _ in 0..50 {
        script.then(Stage::Extract, Step::Block(gate.clone()));
    }
    let server = by_hand(&clock)
        .work(script)
        .with("EXTRACT_CONCURRENCY", 1)
        .with("EXTRACT_TIMEOUT_MS", 86_400_000)
        .with("STUCK_RECOVERY_SCHEDULE", "*/5 * * * *")
        .start(&db)
        .await;
    server.app.db.write(Backlog { files: FILES, now: server.app.clock.now() }).await.unwrap();
    server.app.wake.send(Signal::Work);
    gate.reached().await;
    for five_minutes in 1..=72 {
        clock.advance(Duration::from_mins(5));
        let report = server.app.stuck_files.sweep_once(server.app.clock.now()).await.unwrap();
        assert_eq!((&report.metrics["totalStuck"], report.errors.len()), (&json!(0), 0), "{report:?}");
        if five_minutes % 12 == 0 {
            gate.open();
            gate.reached().await;
        }
    }
    until("the last is ready", async || {
        number(&server, "SELECT COUNT(*) FROM files WHERE status = 'ready'").await == 6
    })
    .await;
    until("the scheduled runs have ended", async || {
        !job(&server.admin(), "stuck-file-recovery").await["running"].as_bool().unwrap()
    })
    .await;
    assert!(runs(&server, "stuck-file-recovery").await > 0);
    assert_eq!(number(&server, "SELECT CAST(SUM(retry_count) AS BIGINT) FROM files").await, 0);
    assert_eq!(number(&server, "SELECT COUNT(*) FROM files WHERE status = 'failed'").await, 0);
    assert_eq!(
        number(&server, "SELECT COUNT(*) FROM files WHERE status = 'queued' AND attempt > 0").await,
        0
    );
    assert_eq!(number(&server, "SELECT CAST(MAX(attempt) AS BIGINT) FROM files").await, 1);
    assert_eq!(server.client("alice").get("/api/v2/uploads/stuck").await.ok()["total"], 0);
}

#[on_each_database]
async fn a_queue_without_a_worker_for_six_hours_is_reported_and_finishes_when_a_worker_starts(db: TestDb) {
    const FILES: i64 = 1_000;
    let clock = manual_clock();
    let setup = || by_hand(&clock).with("STUCK_RECOVERY_SCHEDULE", "*/5 * * * *");
    let server = setup().with("ROLE", "maintenance").start(&db).await;
    server.app.db.write(Backlog { files: 1_000, now: server.app.clock.now() }).await.unwrap();
    for tick in 1..=72 {
        clock.advance(Duration::from_mins(5));
        until("the scheduled run has ended", async || {
            let ended =
                "SELECT COUNT(*) FROM job_runs WHERE name = 'stuck-file-recovery' AND ended_at IS NOT NULL";
            number(&server, ended).await == tick
        })
        .await;
    }
    let raised = events(&server, "alert:raised").await;
    assert!(raised.iter().any(|alert| alert["alert"] == "no-workers:extract"), "{raised:?}");
    let untouched = "SELECT COUNT(*) FROM files WHERE status = 'queued' AND retry_count = 0 AND attempt = 0";
    assert_eq!(number(&server, untouched).await, FILES);
    assert_eq!(events(&server, "file:processing-stalled").await.len(), 0);
    let worker = setup().work(Script::new()).start(&db).await;
    worker.idle().await;
    let through =
        "SELECT COUNT(*) FROM files WHERE status = 'ready' AND retry_count = 0 AND lost_workers = 0";
    assert_eq!(number(&server, through).await, FILES);
    worker.stop().await;
    server.stop().await;
}

#[on_each_database]
async fn a_scheduled_run_is_done_even_if_the_response_to_its_start_is_lost(db: TestDb) {
    // First the schedules are read, then the start is recorded; later steps belong to the sweep.
    const STEPS: usize = 9;
    let (clock, fault_injector) = (manual_clock(), PlannedFaults::new());
    let yearly = [
        ("STUCK_RECOVERY_SCHEDULE", NEVER.to_owned()),
        ("BATCH_TIMEOUT_SCHEDULE", NEVER.to_owned()),
        ("RETENTION_SCHEDULE", NEVER.to_owned()),
        ("UPLOAD_EXPIRY_SCHEDULE", NEVER.to_owned()),
        ("BLOB_SCRUB_SCHEDULE", NEVER.to_owned()),
    ];
    let rest = OfflineApp::open_with(&db, &clock, &yearly, Script::new(), Some(fault_injector.clone())).await;
    let ended = async || {
        rest.number("SELECT COUNT(*) FROM job_runs WHERE name = 'orphan-cleanup' AND metrics IS NOT NULL")
            .await
    };
    let run = async || {
        clock.advance(Duration::from_hours(24));
        rest.app.jobs.run_due().await.is_ok()
    };
    let all_over = async || {
        until("no run is in progress", async || {
            rest.number("SELECT COUNT(*) FROM job_runs WHERE ended_at IS NULL").await == 0
        })
        .await;
    };
    run().await;
    all_over().await;
    assert_eq!(ended().await, 1);
    for step in 2..=STEPS {
        let before = ended().await;
        fault_injector.break_at(step, Break::Once);
        assert!(run().await);
        all_over().await;
        fault_injector.reset();
        assert_eq!(ended().await, before + 1, "broken at step {step}: the scheduled run was done once");
    }
    assert_eq!(
        rest.number(
            "SELECT COUNT(*) FROM job_runs WHERE started_at = (SELECT MAX(started_at) FROM job_runs)"
        )
        .await,
        1
    );
    for step in 2..=STEPS {
        // The database fails before the process knows whether the run has started, and comes back later.
        fault_injector.break_at(step, Break::Permanently);
        run().await;
        fault_injector.reset();
        let before = ended().await;
        assert!(run().await);
        until("the next one is run", async || ended().await > before).await;
        all_over().await;
    }
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn a_queue_without_a_worker_is_reported_and_costs_no_retry(db: TestDb) {
    let clock = manual_clock();
    let server = without_workers(&clock).start(&db).await;
    let alice = server.client("alice");
    let mut files = Vec::new();
    for name in ["a", "b", "c"] {
        files.push(alice.upload(name, b"a").await);
    }
    for _ in 0..72 {
        clock.advance(Duration::from_mins(5));
        let metrics = recover(&server).await;
        assert_eq!(
            (&metrics["totalStuck"], &metrics["withoutWorkers"]),
            (&json!(0), &json!({ "extract": 3 }))
        );
    }
    for file in &files {
        let seen = alice.file(file).await;
        assert_eq!((&seen["waitingFor"], &seen["retryCount"]), (&json!("no_workers"), &json!(0)), "{seen}");
    }
    let listed = alice.get("/api/v2/uploads/stuck").await.ok();
    assert_eq!(listed, json!({ "files": [], "total": 0, "withoutWorkers": { "extract": 3 } }));
    assert_eq!(server.client("bob").get("/api/v2/uploads/stuck").await.ok()["withoutWorkers"], json!({}));
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn an_attempt_that_a_wrong_clock_put_years_ahead_is_made_due_and_not_counted(db: TestDb) {
    let clock = manual_clock();
    let server = by_hand(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    server.admin().post("/api/v2/admin/queues/extract/pause", json!({})).await.ok();
    let file = alice.upload("a", b"a").await;
    let ahead = server.app.clock.now() + chrono::TimeDelta::days(700);
    change(&server, "UPDATE files SET run_after = $1, updated_at = $1, is_due = FALSE", args![ahead]).await;
    assert_eq!(alice.get("/api/v2/uploads/stuck").await.ok()["files"][0]["reason"], "not_due");
    let metrics = recover(&server).await;
    assert_eq!((&metrics["reEnqueued"], &metrics["byStatus"]), (&json!(1), &json!({ "queued": 1 })));
    server.admin().post("/api/v2/admin/queues/extract/resume", json!({})).await.ok();
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["retryCount"]), (&json!("ready"), &json!(0)), "{seen}");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_claim_that_its_living_process_does_not_work_on_is_released_by_it(db: TestDb) {
    let clock = manual_clock();
    let server = by_hand(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    server.admin().post("/api/v2/admin/queues/extract/pause", json!({})).await.ok();
    let file = alice.upload("a", b"a").await;
    break_claim(&server, &file, Stage::Extract).await;
    change(&server, "UPDATE files SET claimed_by = $1", args![server.app.liveness.identity().id]).await;
    server.admin().post("/api/v2/admin/queues/extract/resume", json!({})).await.ok();
    until("the file is ready", async || {
        clock.advance(SECOND);
        alice.status(&file).await == "ready"
    })
    .await;
    assert_eq!(alice.file(&file).await["retryCount"], 0, "no sweep had to recover it");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_sweep_that_runs_twice_or_twice_at_once_changes_nothing_more(db: TestDb) {
    const FILES: usize = 20;
    let clock = manual_clock();
    let servers = [
        without_workers(&clock).with("UPLOAD_CONFIRM_WINDOW_MS", 172_800_000).start(&db).await,
        without_workers(&clock).with("UPLOAD_CONFIRM_WINDOW_MS", 172_800_000).start(&db).await,
    ];
    let alice = servers[0].client("alice");
    let mut files = Vec::new();
    for number in 0..FILES {
        let batch = alice.open_batch(2).await;
        alice.register(Some(&batch), "never comes", 5).await;
        files.push(alice.upload_in(&batch, &number.to_string(), b"a").await);
    }
    clock.advance(Duration::from_hours(24));
    for file in &files {
        break_claim(&servers[0], file, Stage::Embed).await;
    }
    clock.advance(Duration::from_mins(30));
    let now = servers[0].app.clock.now();
    let both = join_all(servers.iter().map(|server| server.app.stuck_files.sweep_once(now))).await;
    let recovered: i64 =
        both.iter().map(|report| report.as_ref().unwrap().metrics["totalStuck"].as_i64().unwrap()).sum();
    assert_eq!(recovered, 20, "{both:?}");
    assert_eq!(recover(&servers[1]).await["totalStuck"], 0);
    assert_eq!(number(&servers[0], "SELECT CAST(SUM(retry_count) AS BIGINT) FROM files").await, 20);

    let timeouts = servers
        .each_ref()
        .map(|server| landfall_server::recovery::batch_timeout::BatchTimeout { db: server.app.db.clone() });
    let both = join_all(timeouts.iter().map(|sweep| sweep.sweep_once(now))).await;
    let expired = |name: &str| -> i64 {
        both.iter().map(|report| report.as_ref().unwrap().metrics[name].as_i64().unwrap()).sum()
    };
    assert_eq!((expired("expiredBatches"), expired("deletedFiles")), (20, 20), "{both:?}");
    assert_eq!(run(&servers[0], "batch-timeout").await["expiredBatches"], 0);
    assert_eq!(alice.quota().await, (0, 20));
    servers[0].assert_audit_clean().await;
}

#[on_each_database]
async fn a_batch_that_waits_for_files_expires_and_a_slow_one_does_not(db: TestDb) {
    let clock = manual_clock();
    let server = without_workers(&clock).with("UPLOAD_CONFIRM_WINDOW_MS", 172_800_000).start(&db).await;
    let alice = server.client("alice");
    let (waiting, short, slow) =
        (alice.open_batch(3).await, alice.open_batch(2).await, alice.open_batch(1).await);
    let gone = alice.register(Some(&waiting), "gone", 100).await["fileId"].as_str().unwrap().to_owned();
    let here = alice.upload_in(&waiting, "here", b"12345").await;
    let unconfirmed = alice.send_bytes(Some(&waiting), "unconfirmed", b"123").await;
    alice.upload_in(&short, "first of two", b"1").await;
    alice.upload_in(&slow, "the only one", b"1").await;
    clock.advance(nearly(Duration::from_hours(24)));
    assert_eq!(run(&server, "batch-timeout").await["expiredBatches"], 0);
    clock.advance(SECOND);
    let metrics = run(&server, "batch-timeout").await;
    assert_eq!(metrics, json!({ "expiredBatches": 2, "deletedFiles": 1, "averageBatchAge": 86_400_000 }));
    for (batch, status) in [(&waiting, "expired"), (&short, "expired"), (&slow, "active")] {
        assert_eq!(alice.batch(batch).await["status"], status);
    }
    alice.get(&format!("/api/v2/uploads/files/{gone}")).await.refused(410, "FILE_DELETED");
    assert_eq!(alice.status(&here).await, "queued");
    assert_eq!(alice.status(&unconfirmed).await, "uploaded");
    assert_eq!(alice.quota().await, (3, 7), "the reservation of the missing file is free again");
    let path = format!("/api/v2/uploads/batches/{waiting}/upload-urls");
    alice.post(&path, json!({ "fileName": "late", "fileSize": 1 })).await.refused(409, "BATCH_NOT_ACTIVE");
    assert_eq!(events(&server, "batch:expired").await.len(), 2);
    let cleaned = &events(&server, "file:cleaned-up").await[0];
    assert_eq!(cleaned["fileId"], json!(gone));
    assert_eq!(
        (&cleaned["tenantId"], &cleaned["sizeReclaimed"]),
        (&json!("alice"), &json!(100)),
        "{cleaned}"
    );
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_complete_upload_is_adopted_at_its_deadline_and_an_incomplete_one_is_deleted(db: TestDb) {
    let clock = manual_clock();
    let server = by_hand(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let whole = alice.send_bytes(None, "whole", b"12345").await;
    let ticket = alice.register(None, "never sent", 1_000).await;
    let missing = ticket["fileId"].as_str().unwrap();
    assert_eq!(alice.quota().await, (1_005, 0));
    clock.advance(nearly(Duration::from_hours(1)));
    server.idle().await;
    let soon = (server.app.clock.now(), alice.status(&whole).await, alice.status(missing).await);
    assert_eq!((soon.1.as_str(), soon.2.as_str()), ("uploaded", "registered"));
    clock.advance(SECOND);
    until("the complete file is ready", async || alice.status(&whole).await == "ready").await;
    until("the incomplete file is gone", async || {
        alice.get(&format!("/api/v2/uploads/files/{missing}")).await.status == 410
    })
    .await;
    assert_eq!(alice.quota().await, (0, 5));
    let history = alice.get(&format!("/api/v2/uploads/files/{whole}/history")).await.ok();
    let adopted =
        history["history"].as_array().unwrap().iter().find(|entry| entry["to"] == "queued").unwrap();
    assert!(adopted["reason"].as_str().unwrap().contains("adopted"), "{adopted}");
    assert_eq!(
        alice.confirm(&whole).await.ok()["status"],
        "ready",
        "a late confirm returns what happened to the file"
    );
    alice.confirm(missing).await.refused(410, "FILE_DELETED");
    let sent = alice.put(ticket["uploadUrl"].as_str().unwrap(), vec![0; 1_000]).await;
    assert!(matches!(sent.status, 403 | 410), "{sent:?}");
    let cleaned = events(&server, "file:cleaned-up").await;
    assert_eq!(
        cleaned,
        [json!({ "fileId": missing, "tenantId": "alice", "reason": "orphaned", "sizeReclaimed": 1_000 })]
    );
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn with_the_delete_setting_an_unconfirmed_upload_is_deleted_with_its_blob(db: TestDb) {
    let clock = manual_clock();
    let server = by_hand(&clock).work(Script::new()).with("UNCONFIRMED_UPLOADS", "delete").start(&db).await;
    let alice = server.client("alice");
    let file = alice.send_bytes(None, "whole", b"12345").await;
    clock.advance(Duration::from_hours(1));
    until("it is gone", async || alice.get(&format!("/api/v2/uploads/files/{file}")).await.status == 410)
        .await;
    alice.confirm(&file).await.refused(410, "FILE_DELETED");
    until("its blob is gone", async || {
        number(&server, "SELECT COUNT(*) FROM files WHERE blob_key IS NOT NULL").await == 0
    })
    .await;
    assert_eq!(alice.quota().await, (0, 0));
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_file_confirmed_at_the_moment_of_its_expiry_is_queued_with_its_blob_or_gone(db: TestDb) {
    let clock = manual_clock();
    let server = by_hand(&clock).work(Script::new()).with("UNCONFIRMED_UPLOADS", "delete").start(&db).await;
    let alice = server.client("alice");
    for _ in 0..5 {
        let files = join_all((0..20).map(|_| alice.send_bytes(None, "a", b"12345"))).await;
        clock.advance(Duration::from_hours(1));
        let answers = join_all(files.iter().map(|file| alice.confirm(file))).await;
        server.idle().await;
        for (file, answer) in files.iter().zip(answers) {
            let seen = alice.get(&format!("/api/v2/uploads/files/{file}")).await;
            match answer.status {
                200 => assert_eq!(seen.body["status"], "ready", "{seen:?}"),
                _ => {
                    answer.refused(410, "FILE_DELETED");
                    seen.refused(410, "FILE_DELETED");
                }
            }
        }
    }
    until("no blob is left behind", async || {
        number(&server, "SELECT COUNT(*) FROM files WHERE deleted_at IS NOT NULL AND blob_key IS NOT NULL")
            .await
            == 0
    })
    .await;
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn bytes_that_keep_arriving_extend_the_deadline_of_an_upload(db: TestDb) {
    let clock = manual_clock();
    let server = by_hand(&clock)
        .work(Script::new())
        .with("UPLOAD_CONFIRM_WINDOW_MS", 120_000)
        .with("UPLOAD_STALL_MS", 3_600_000)
        .start(&db)
        .await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "slow", 20).await;
    let file = ticket["fileId"].as_str().unwrap().to_owned();
    let (parts, body) = parts_and_body();
    let sending = tokio::spawn({
        let (alice, url) = (alice.clone(), ticket["uploadUrl"].as_str().unwrap().to_owned());
        async move { alice.put(&url, reqwest::Body::wrap_stream(body)).await }
    });
    let deadline = async || -> Option<(Option<Time>,)> {
        let id = Uuid::parse_str(&file).unwrap();
        server
            .app
            .db
            .read()
            .await
            .unwrap()
            .row("SELECT upload_until FROM files WHERE id = $1", args![id])
            .await
            .unwrap()
    };
    parts.send(Ok(b"x".to_vec())).await.unwrap();
    until("the upload has begun", async || !server.app.blobs.unfinished().await.unwrap().is_empty()).await;
    // The first deadline may already include the first of these intervals.
    clock.advance(Duration::from_secs(40));
    parts.send(Ok(b"x".to_vec())).await.unwrap();
    for _ in 0..18 {
        let before = deadline().await;
        clock.advance(Duration::from_secs(40));
        parts.send(Ok(b"x".to_vec())).await.unwrap();
        until("the deadline has moved", async || deadline().await != before).await;
    }
    drop(parts);
    sending.await.unwrap().ok();
    assert_eq!(alice.status(&file).await, "uploaded");
    alice.confirm(&file).await.ok();
    server.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn an_upload_that_was_never_expired_is_recovered_as_a_stuck_file(db: TestDb) {
    let clock = manual_clock();
    let server = by_hand(&clock).with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let file = alice.send_bytes(None, "whole", b"12345").await;
    clock.advance(Duration::from_hours(1));
    assert_eq!(alice.get("/api/v2/uploads/stuck").await.ok()["files"][0]["reason"], "unconfirmed");
    let metrics = recover(&server).await;
    assert_eq!(
        (&metrics["reEnqueued"], &metrics["byStatus"]),
        (&json!(1), &json!({ "uploaded": 1 })),
        "{metrics}"
    );
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["retryCount"]), (&json!("queued"), &json!(1)), "{seen}");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_file_retried_by_hand_while_a_worker_has_it_is_finished_by_one_of_the_two(db: TestDb) {
    let (clock, gate) = (manual_clock(), Gate::default());
    let script = Script::new().then(Stage::Extract, Step::Block(gate.clone()));
    let server = by_hand(&clock).work(script).with("EXTRACT_CONCURRENCY", 2).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a", b"a").await;
    gate.reached().await;
    let path = format!("/api/v2/uploads/stuck/{file}/retry");
    server.client("bob").post(&path, json!({})).await.refused(404, "FILE_NOT_FOUND");
    let retried = alice.post(&path, json!({})).await.ok();
    let expected = json!({ "success": true, "fileId": file, "previousStatus": "extracting", "newStatus": "queued", "retryCount": 1 });
    assert_eq!(retried, expected);
    until("the second attempt is through", async || alice.status(&file).await == "ready").await;
    gate.open();
    server.idle().await;
    assert_eq!(server.app.worker.as_ref().unwrap().fenced_off(), 1);
    let readies = alice.states(&file).await.iter().filter(|state| *state == "ready").count();
    assert_eq!(readies, 1);
    alice.post(&path, json!({})).await.refused(400, "INVALID_STATE");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn users_see_and_retry_only_their_own_stuck_files(db: TestDb) {
    let clock = manual_clock();
    let server = without_workers(&clock).start(&db).await;
    let (alice, bob) = (server.client("alice"), server.client("bob"));
    for client in [&alice, &alice, &bob] {
        let file = client.upload("a", b"a").await;
        break_claim(&server, &file, Stage::Chunk).await;
    }
    clock.advance(Duration::from_mins(31));
    assert_eq!(alice.get("/api/v2/uploads/stuck").await.ok()["total"], 2);
    assert_eq!(server.admin().get("/api/v2/uploads/stuck?scope=all&limit=1").await.ok()["total"], 3);
    alice.get("/api/v2/uploads/stuck?scope=all").await.refused(403, "FORBIDDEN");
    let listed = bob.get("/api/v2/uploads/stuck").await.ok()["files"][0].clone();
    assert_eq!(
        (&listed["status"], &listed["stuckDuration"], &listed["retryCount"]),
        (&json!("chunking"), &json!(1_860_000), &json!(0)),
        "{listed}"
    );
    let retried = alice.post("/api/v2/uploads/stuck/retry-all", json!({})).await.ok();
    assert_eq!((&retried["retriedCount"], &retried["skippedCount"]), (&json!(2), &json!(0)), "{retried}");
    assert_eq!(alice.get("/api/v2/uploads/stuck").await.ok()["total"], 0);
    assert_eq!(bob.get("/api/v2/uploads/stuck").await.ok()["total"], 1);
    server.stop().await;
}

#[on_each_database]
async fn a_scheduled_run_starts_on_exactly_one_of_two_processes(db: TestDb) {
    let clock = manual_clock();
    let setup = || by_hand(&clock).with("STUCK_RECOVERY_SCHEDULE", "*/5 * * * *").with("ROLE", "maintenance");
    let servers = [setup().start(&db).await, setup().start(&db).await];
    for tick in 1..=10 {
        clock.advance(Duration::from_mins(5));
        until("the run has started", async || runs(&servers[0], "stuck-file-recovery").await >= tick).await;
        for server in &servers {
            server.app.jobs.run_due().await.unwrap();
        }
        until("the run has ended", async || {
            !job(&servers[0].admin(), "stuck-file-recovery").await["running"].as_bool().unwrap()
        })
        .await;
        assert_eq!(runs(&servers[0], "stuck-file-recovery").await, tick);
    }
    let completed = events(&servers[0], "job:completed").await;
    assert_eq!(completed.iter().filter(|event| event["job"] == "stuck-file-recovery").count(), 10);
    let [one, two] = servers;
    one.stop().await;
    two.stop().await;
}

#[on_each_database]
async fn runs_missed_while_no_process_was_up_are_made_up_for_once(db: TestDb) {
    let clock = manual_clock();
    let setup = || by_hand(&clock).with("STUCK_RECOVERY_SCHEDULE", "*/5 * * * *");
    let server = setup().start(&db).await;
    let due = job(&server.admin(), "stuck-file-recovery").await["nextRunAt"].clone();
    assert_eq!(due, "2026-01-02T03:05:00Z");
    server.stop().await;
    clock.advance(Duration::from_hours(72));
    let server = setup().start(&db).await;
    until("the missed run has started", async || runs(&server, "stuck-file-recovery").await > 0).await;
    server.app.jobs.run_due().await.unwrap();
    until("the run has ended", async || {
        !job(&server.admin(), "stuck-file-recovery").await["running"].as_bool().unwrap()
    })
    .await;
    assert_eq!(runs(&server, "stuck-file-recovery").await, 1);
    let seen = job(&server.admin(), "stuck-file-recovery").await;
    assert_eq!(seen["nextRunAt"], "2026-01-05T03:05:00Z", "{seen}");
    assert_eq!(
        (&seen["lastRun"]["startedBy"], &seen["lastRun"]["errors"]),
        (&json!(null), &json!([])),
        "{seen}"
    );
    let status = server.admin().get("/api/v2/admin/queue-status").await.ok();
    assert!(status["schedules"].as_array().unwrap().contains(&seen), "{status}");
    server.stop().await;
}

#[on_each_database]
async fn of_two_callers_that_run_a_job_at_once_one_is_refused_because_it_runs(db: TestDb) {
    let (clock, gate) = (manual_clock(), Gate::default());
    let server = without_workers(&clock).start(&db).await;
    let jobs = slow(&server, &gate).await;
    let first = jobs.run_by_hand("slow", "root").await.unwrap();
    gate.reached().await;
    match jobs.run_by_hand("slow", "root").await.map(|started| started.run) {
        Err(Error::Refused(refusal)) => assert_eq!(refusal.code, RefusalCode::JobRunning),
        other => panic!("{other:?}"),
    }
    gate.open();
    first.ended.await.unwrap();
    let again = jobs.run_by_hand("slow", "root").await.unwrap();
    gate.open();
    again.ended.await.unwrap();

    server.client("alice").get("/api/v2/admin/jobs").await.refused(403, "FORBIDDEN");
    server
        .client("alice")
        .post("/api/v2/admin/jobs/batch-timeout/run", json!({}))
        .await
        .refused(403, "FORBIDDEN");
    server.admin().post("/api/v2/admin/jobs/tidy-up/run", json!({})).await.refused(404, "JOB_NOT_FOUND");
    let ran = server.admin().post("/api/v2/admin/jobs/batch-timeout/run", json!({})).await.ok();
    assert_eq!(
        (&ran["run"]["startedBy"], &ran["run"]["metrics"]["expiredBatches"]),
        (&json!("root"), &json!(0)),
        "{ran}"
    );
    server.stop().await;
}

#[on_each_database]
async fn a_run_whose_process_died_or_was_stopped_does_not_block_the_next(db: TestDb) {
    let (clock, gate) = (manual_clock(), Gate::default());
    let server = without_workers(&clock).start(&db).await;
    let jobs = slow(&server, &gate).await;
    let died = jobs.run_by_hand("slow", "root").await.unwrap();
    gate.reached().await;
    change(&server, "UPDATE job_runs SET worker = $1", args![Uuid::new_v4()]).await;
    let other = slow(&server, &gate).await;
    let next = other.run_by_hand("slow", "root").await.unwrap();
    gate.reached().await;
    other.stop().await;
    next.ended.await.unwrap();
    let errors = async |run: Uuid| -> Value {
        let sql = "SELECT errors FROM job_runs WHERE id = $1 AND ended_at IS NOT NULL";
        let found: Option<(Value,)> = server.app.db.read().await.unwrap().row(sql, args![run]).await.unwrap();
        found.expect("it has an end").0
    };
    assert_eq!(errors(died.run).await, json!(["the process that ran it died"]));
    assert_eq!(errors(next.run).await, json!(["the process was stopped before the end"]));
    gate.open();
    died.ended.await.unwrap();
    assert_eq!(errors(died.run).await, json!(["the process that ran it died"]), "its late report is ignored");
    server.stop().await;
}

/// The parts of a body, and the body.
fn parts_and_body()
-> (tokio::sync::mpsc::Sender<Part>, impl futures_util::Stream<Item = Part> + Send + 'static) {
    let (send, receive) = tokio::sync::mpsc::channel(1);
    let parts = futures_util::stream::unfold(receive, async |mut receive: tokio::sync::mpsc::Receiver<_>| {
        receive.recv().await.map(|part| (part, receive))
    });
    (send, Box::pin(parts))
}

/// Files in the queue that were not uploaded one by one.
struct Backlog {
    files: usize,
    now: Time,
}

impl Write for Backlog {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let mut rows = Rows::default();
        for number in 0..self.files {
            rows.push(args![
                Uuid::new_v4(),
                "alice",
                "alice",
                number.to_string(),
                1_i64,
                "00/x/y",
                "queued",
                "extract",
                true,
                self.now,
                self.now,
                self.now,
                self.now,
            ]);
        }
        tx.insert(
            "files (id, tenant_id, user_id, file_name, size_bytes, blob_key, status, next_stage, is_due, run_after,
                    created_at, updated_at, confirmed_at)",
            rows,
            "",
        )
        .await
    }
}
