//! Twelve mistakes that are easy to make in a system like this one. Each test fails if the code makes the mistake.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::future::join_all;
use landfall_core::clock::ManualClock;
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage::{Chunk, Embed, Extract};
use landfall_server::blobs::Blobs;
use landfall_server::queue::claim::{ClaimDue, Claims, Want};
use landfall_server::queue::isolation::Next;
use landfall_server::queue::limits::RateLimits;
use landfall_server::queue::rescue::RescueWorker;
use landfall_server::recovery::Sweep;
use landfall_server::recovery::unfinished_deletions;
use landfall_store::args;
use serde_json::{Value, json};

use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::offline_app::{OfflineApp, Sql};
use crate::support::script::Gate;
use crate::support::{
    Client, Script, Setup, Step, TestDb, TestServer, batch_summary, manual_clock, on_each_database, until,
};

const DAY: Duration = Duration::from_hours(24);
/// A schedule that is never due within a test.
const NEVER: &str = "0 0 1 1 *";

/// A server whose sweeps run only when the test says so.
fn by_hand(clock: &ManualClock) -> Setup {
    Setup::default().clock(clock).with("STUCK_RECOVERY_SCHEDULE", NEVER).with("BATCH_TIMEOUT_SCHEDULE", NEVER)
}

async fn number(server: &TestServer, sql: &str) -> i64 {
    server.app.db.read().await.unwrap().number(sql, args![]).await.unwrap()
}

async fn total(client: &Client, path: &str, list: &str) -> usize {
    client.get(&format!("/api/v2/uploads/{path}")).await.ok()[list].as_array().expect("a list").len()
}

#[on_each_database]
async fn the_owner_of_a_failed_file_is_warned_before_it_is_deleted(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new().then(Extract, Step::Fail(Code::ParseError));
    let server = by_hand(&clock).work(script).start(&db).await;
    server.client("alice").upload("a", b"12345").await;
    server.idle().await;
    server.stop().await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    let clean =
        async || rest.app.orphan_cleanup.sweep_once(rest.now()).await.unwrap().metrics["oldFailures"].clone();
    // However late the first run is, it deletes nothing.
    clock.advance(DAY * 45);
    assert_eq!(clean().await, json!({ "warnings": 1, "deleted": 0 }));
    let warned: Vec<(String, Value)> = rest
        .rows("SELECT user_id, data FROM notifications WHERE kind = 'file-deletion-warning'", args![])
        .await;
    assert_eq!(warned.len(), 1);
    assert_eq!(warned[0].0, "alice");
    for _ in 0..6 {
        clock.advance(DAY);
        assert_eq!(clean().await, json!({ "warnings": 0, "deleted": 0 }));
    }
    clock.advance(DAY);
    assert_eq!(clean().await, json!({ "warnings": 0, "deleted": 1 }));
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn a_rate_limited_file_waits_and_is_not_dropped(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    let server = by_hand(&clock).work(script.clone()).with("EXTRACT_RATE_LIMIT", "1/60s").start(&db).await;
    let alice = server.client("alice");
    let mut files = Vec::new();
    for name in ["a", "b", "c"] {
        files.push(alice.upload(name, b"a").await);
    }
    for ready in 1..=3 {
        server.idle().await;
        assert_eq!(number(&server, "SELECT COUNT(*) FROM files WHERE status = 'ready'").await, ready);
        for file in &files {
            let seen = alice.file(file).await;
            if seen["status"] != "ready" {
                assert_eq!(
                    (&seen["status"], &seen["waitingFor"]),
                    (&json!("queued"), &json!("rate_limit")),
                    "{seen}"
                );
                assert_eq!((&seen["attempt"], &seen["error"]), (&json!(0), &json!(null)), "{seen}");
            }
        }
        clock.advance(Duration::from_mins(1));
    }
    assert_eq!(script.runs().len(), 9, "each stage of each file, once");
    assert_eq!(
        number(&server, "SELECT COUNT(*) FROM events WHERE kind = 'queue:rate-limit-exceeded'").await,
        2
    );
    server.stop().await;
}

#[on_each_database]
async fn two_workers_cannot_hold_one_file(db: TestDb) {
    const FILES: usize = 40;
    let start = async || Setup::default().with("ROLE", "api").start(&db).await;
    let servers = [start().await, start().await, start().await];
    let names: Vec<String> = (0..FILES).map(|number| number.to_string()).collect();
    servers[0].client("alice").upload_all(&names).await;
    let mut held = Vec::new();
    while held.len() < FILES {
        let claims = join_all(servers.iter().map(|server| {
            let app = &server.app;
            app.db.write(ClaimDue {
                worker: app.liveness.identity().id,
                worker_name: app.liveness.name().to_owned(),
                wants: vec![Want { stage: Extract, room: 3, services: &[] }],
                held: landfall_server::queue::tenant_share::Held::default(),
                token: app.clock.new_id(),
                rounds: Arc::default(),
                limits: RateLimits::default(),
                breaker: app.config.queue.breaker,
                next: Next::Many,
                makes_way: false,
                now: app.clock.now(),
            })
        }))
        .await;
        let mut got = 0;
        for claim in claims {
            let Claims::Taken(taken) = claim.unwrap() else { panic!("the workers are alive") };
            got += taken.files.len();
            held.extend(taken.files.into_iter().map(|file| file.id));
        }
        assert!(got > 0, "at least one worker gets files");
    }
    held.sort();
    held.dedup();
    assert_eq!(held.len(), FILES, "each file was claimed by one worker");
}

#[on_each_database]
async fn a_long_backlog_is_not_stuck(db: TestDb) {
    let (clock, gate, script) = (manual_clock(), Gate::default(), Script::new());
    for _ in 0..12 {
        script.then(Extract, Step::Block(gate.clone()));
    }
    let server = by_hand(&clock)
        .work(script)
        .with("EXTRACT_CONCURRENCY", 1)
        .with("EXTRACT_TIMEOUT_MS", 86_400_000)
        .start(&db)
        .await;
    let alice = server.client("alice");
    let names: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let (batch, _) = alice.upload_all(&names).await;
    // One file an hour: the last has waited for half a day when its turn comes.
    for _ in 0..12 {
        gate.reached().await;
        for _ in 0..4 {
            clock.advance(Duration::from_mins(15));
            let report = server.app.stuck_files.sweep_once(server.app.clock.now()).await.unwrap();
            assert_eq!(report.metrics["totalStuck"], 0, "{report:?}");
        }
        assert_eq!(total(&alice, "stuck", "files").await, 0);
        gate.open();
    }
    server.idle().await;
    assert_eq!(alice.batch(&batch).await["summary"], batch_summary(12, 12, 0));
    assert_eq!(number(&server, "SELECT CAST(SUM(retry_count) AS BIGINT) FROM files").await, 0);
    server.stop().await;
}

#[on_each_database]
async fn a_manual_retry_fences_the_worker_that_still_runs(db: TestDb) {
    let (clock, first, second) = (manual_clock(), Gate::default(), Gate::default());
    let script =
        Script::new().then(Extract, Step::Block(first.clone())).then(Extract, Step::Block(second.clone()));
    let server = by_hand(&clock).work(script).with("EXTRACT_CONCURRENCY", 2).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a", b"a").await;
    first.reached().await;
    alice.post(&format!("/api/v2/uploads/stuck/{file}/retry"), json!({})).await.ok();
    server.app.wake.poll_work();
    second.reached().await;
    // The first attempt ends while the second has the file: its result is ignored.
    first.open();
    until("the first attempt is fenced off", async || server.app.worker.as_ref().unwrap().fenced_off() == 1)
        .await;
    assert_eq!(alice.status(&file).await, "extracting");
    second.open();
    server.idle().await;
    let states = alice.states(&file).await;
    let expected = [
        "registered",
        "uploaded",
        "queued",
        "extracting",
        "queued",
        "extracting",
        "chunking",
        "embedding",
        "ready",
    ];
    assert_eq!(states, expected);
    // The first worker may have begun the next stages before it learned that it had lost the file.
    assert_eq!(server.app.worker.as_ref().unwrap().fenced_off(), 1);
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn cleanup_changes_the_row_before_the_blob(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new().then(Extract, Step::Fail(Code::ParseError));
    let server = by_hand(&clock).work(script).start(&db).await;
    let alice = server.client("alice");
    alice.upload("failed", b"12345").await;
    server.idle().await;
    alice.send_bytes(None, "unconfirmed", b"12345").await;
    server.stop().await;
    let rest = OfflineApp::open(&db, &clock, &[("UNCONFIRMED_UPLOADS", "delete".to_owned())]).await;
    clock.advance(DAY * 30);
    rest.app.orphan_cleanup.sweep_once(rest.now()).await.unwrap();
    clock.advance(DAY * 7);
    let key = async |name: &str| -> Option<String> {
        let sql = "SELECT blob_key FROM files WHERE file_name = $1";
        rest.rows::<(Option<String>,)>(sql, args![name]).await.remove(0).0
    };
    for (name, sweep) in [("unconfirmed", 0), ("failed", 1)] {
        let blob = key(name).await.expect("it has one");
        let obstruction = rest.obstruct(&blob);
        let errors = match sweep {
            0 => rest.app.stuck_files.expiry.sweep_once(rest.now()).await.unwrap().errors,
            _ => rest.app.orphan_cleanup.sweep_once(rest.now()).await.unwrap().errors,
        };
        assert_eq!(errors.len(), 1, "the storage did not remove the blob of {name}: {errors:?}");
        let sql = format!("SELECT COUNT(*) FROM files WHERE file_name = '{name}' AND status = 'deleted'");
        assert_eq!(
            rest.number(&sql).await,
            1,
            "the row changed first, so that no confirm and no retry finds it without its blob"
        );
        obstruction.remove();
        assert_eq!(key(name).await.as_ref(), Some(&blob), "the row says what is still to be removed");
        assert_eq!(unfinished_deletions::sweep_once(&rest.app.db, &rest.app.blobs).await.unwrap(), 1);
        assert!(!rest.is_stored(&blob));
    }
    assert_eq!(rest.number("SELECT reserved_bytes + used_bytes FROM tenants").await, 0);
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn a_refund_is_never_made_twice(db: TestDb) {
    let clock = manual_clock();
    let server = by_hand(&clock).work(Script::new()).with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let mut files = Vec::new();
    for number in 0..20 {
        files
            .push(alice.register(None, &number.to_string(), 10).await["fileId"].as_str().unwrap().to_owned());
    }
    let kept = alice.send_bytes(None, "kept", &[7; 500]).await;
    alice.confirm(&kept).await.ok();
    assert_eq!(alice.quota().await, (200, 500));
    clock.advance(DAY + Duration::from_hours(1));
    // Every sweep that may clean up a missing upload, and its owner, all at the same moment.
    let (app, now) = (&server.app, server.app.clock.now());
    let expire = async || app.stuck_files.expiry.sweep_once(now).await.unwrap().errors;
    let clean = async || app.orphan_cleanup.sweep_once(now).await.unwrap().errors;
    let delete = async || {
        for file in &files {
            assert_eq!(alice.delete(&format!("/api/v2/uploads/files/{file}")).await.status, 204);
        }
    };
    let (one, two, three, four, ()) = tokio::join!(expire(), expire(), clean(), clean(), delete());
    assert_eq!([one, two, three, four].concat(), Vec::<String>::new());
    assert_eq!(alice.quota().await, (0, 500), "each was refunded once");
    expire().await;
    clean().await;
    delete().await;
    assert_eq!(alice.quota().await, (0, 500));
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn an_upload_in_progress_is_no_orphan(db: TestDb) {
    let clock = manual_clock();
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    let key = || Blobs::key(rest.app.clock.new_id(), rest.app.clock.new_id());
    let removed = async || {
        let report = rest.app.orphan_cleanup.sweep_once(rest.now()).await.unwrap();
        report.metrics["orphanBlobs"]["deleted"].as_u64().unwrap()
    };
    // In the storage for less than a day, and no row yet.
    let fresh = key();
    rest.store(&fresh, "12345", rest.now() - TimeDelta::hours(23));
    // In the storage for weeks, and its process has not updated the row yet.
    let slow = key();
    let mut incoming = rest.app.blobs.receive(rest.app.liveness.identity().id, &slow).await.unwrap();
    incoming.write(b"12345").await.unwrap();
    incoming.publish(|_| Ok(())).await.unwrap();
    rest.age(&slow, rest.now() - TimeDelta::days(30));
    assert_eq!(removed().await, 0);
    assert!(rest.is_stored(&fresh) && rest.is_stored(&slow));
    incoming.finish().await;
    clock.advance(Duration::from_hours(2));
    assert_eq!(removed().await, 2, "no row references them");
}

#[on_each_database]
async fn an_outage_uses_no_attempt_and_half_open_lets_few_through(db: TestDb) {
    const FILES: usize = 30;
    let clock = manual_clock();
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(Reply::ApiResponse(503, "text/plain", "gone fishing"));
    let server =
        by_hand(&clock).with("EXTRACT_GATEWAY_URL", &url).with("EXTRACT_CONCURRENCY", 5).start(&db).await;
    let alice = server.client("alice");
    let names: Vec<String> = (0..FILES).map(|number| number.to_string()).collect();
    let (batch, _) = alice.upload_all(&names).await;
    server.idle().await;
    assert_eq!(gateway.calls().len(), 5, "five failures open the circuit");
    for round in 1..=10 {
        clock.advance(Duration::from_secs(61));
        server.idle().await;
        assert!(gateway.calls().len() <= 5 + 3 * round, "three are let through, and no more");
        let untouched = "SELECT COUNT(*) FROM files WHERE status = 'queued' AND attempt = 0";
        assert_eq!(number(&server, untouched).await, i64::try_from(FILES).unwrap(), "no attempt is used");
    }
    assert!(gateway.calls().len() > 5, "probes check whether it is back");
    gateway.otherwise(Reply::ApiResponse(200, "text/plain", "Some words about the sea."));
    for _ in 0..4 {
        clock.advance(Duration::from_secs(61));
        server.idle().await;
    }
    assert_eq!(alice.batch(&batch).await["summary"], batch_summary(FILES, FILES, 0));
    server.stop().await;
}

#[on_each_database]
async fn a_dead_letter_resumes_at_its_failed_stage(db: TestDb) {
    for (stage, runs) in [
        (Extract, vec![Extract, Extract, Chunk, Embed]),
        (Chunk, vec![Extract, Chunk, Chunk, Embed]),
        (Embed, vec![Extract, Chunk, Embed, Embed]),
    ] {
        let script = Script::new().then(stage, Step::Fail(Code::ParseError));
        let server = Setup::default().work(script.clone()).start(&db).await;
        let alice = server.client("alice");
        let file = alice.upload("a", b"a").await;
        server.idle().await;
        assert_eq!(alice.file(&file).await["error"]["stage"], json!(stage));
        let queued = alice.post(&format!("/api/v2/uploads/dlq/{file}/retry"), json!({})).await.ok();
        server.idle().await;
        assert_eq!(alice.status(&file).await, "ready", "{queued}");
        let ran: Vec<_> = script.runs().into_iter().map(|(stage, _)| stage).collect();
        assert_eq!(ran, runs, "finished stages are not repeated");
        server.assert_audit_clean().await;
        server.stop().await;
    }
}

#[on_each_database]
async fn a_worker_cannot_keep_a_claim_it_has_lost(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Block(gate.clone()));
    // It sends heartbeats all the time, also after it was declared dead.
    let worker = Setup::default()
        .work(script.clone())
        .change(|config| config.queue.liveness.heartbeat_interval = Duration::from_millis(50))
        .with("HEARTBEAT_EXPIRY_MS", 60_000)
        .start(&db)
        .await;
    let alice = worker.client("alice");
    let file = alice.upload("a", b"a").await;
    gate.reached().await;
    let name = worker.app.liveness.identity();
    let rescued =
        worker.app.db.write(RescueWorker { worker: name.id, now: worker.app.clock.now() }).await.unwrap();
    assert_eq!(rescued.map(|rescued| rescued.requeued), Some(1));
    until("the worker notices", async || name.lost.is_cancelled()).await;
    // Its work was dropped, and the file is processed again under the claim of another name.
    until("the file is ready", async || alice.status(&file).await == "ready").await;
    assert_ne!(worker.app.liveness.identity().id, name.id);
    let known = format!("SELECT COUNT(*) FROM workers WHERE name = '{}'", worker.app.liveness.name());
    assert_eq!(number(&worker, &known).await, 1, "its old name did not come back");
    gate.open();
    worker.idle().await;
    let states = alice.states(&file).await;
    assert_eq!(states.iter().filter(|state| *state == "ready").count(), 1, "{states:?}");
    assert_eq!(states.iter().filter(|state| *state == "extracting").count(), 2, "{states:?}");
    worker.assert_audit_clean().await;
    worker.stop().await;
}

#[on_each_database]
async fn numbers_are_current(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new().then(Extract, Step::Fail(Code::ParseError));
    let server = by_hand(&clock).work(script).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
    let (alice, admin) = (server.client("alice"), server.admin());
    let batch = alice.open_batch(2).await;
    let progress = async |state: &str| alice.batch(&batch).await["progress"][state].clone();
    // Each number is read before and after a change, and no time passes in between.
    assert_eq!((alice.quota().await, progress("registered").await), ((0, 0), json!(0)));
    let bad = alice.send_bytes(Some(&batch), "bad", b"12345").await;
    assert_eq!((alice.quota().await, progress("uploaded").await), ((5, 0), json!(1)));
    alice.confirm(&bad).await.ok();
    server.idle().await;
    assert_eq!((alice.quota().await, progress("failed").await), ((0, 5), json!(1)));
    assert_eq!(total(&alice, "dlq", "entries").await, 1);
    admin.post("/api/v2/admin/queues/extract/pause", json!({})).await.ok();
    alice.post(&format!("/api/v2/uploads/dlq/{bad}/retry"), json!({})).await.ok();
    assert_eq!((total(&alice, "dlq", "entries").await, progress("queued").await), (0, json!(1)));
    let stranded = "UPDATE files SET status = 'extracting', claim = id, claimed_by = id, claimed_at = $1, updated_at = $1,
                        run_after = NULL, is_due = FALSE";
    server.app.db.write(Sql(stranded.to_owned(), args![server.app.clock.now()])).await.unwrap();
    assert_eq!((total(&alice, "stuck", "files").await, progress("extracting").await), (0, json!(1)));
    clock.advance(Duration::from_mins(30));
    assert_eq!(total(&alice, "stuck", "files").await, 1);
    alice.post("/api/v2/uploads/stuck/retry-all", json!({})).await.ok();
    assert_eq!((total(&alice, "stuck", "files").await, progress("queued").await), (0, json!(1)));
    let status = admin.get("/api/v2/admin/queue-status").await.ok();
    assert_eq!(status["queues"]["file-extract"]["waiting"], 1, "{status}");
    alice.delete(&format!("/api/v2/uploads/files/{bad}")).await.ok();
    assert_eq!(
        (alice.quota().await, progress("queued").await, progress("deleted").await),
        ((0, 0), json!(0), json!(1))
    );
    assert_eq!(admin.get("/api/v2/admin/queue-status").await.ok()["queues"]["file-extract"]["waiting"], 0);
    server.assert_audit_clean().await;
    server.stop().await;
}
