//! A service fails a file: the service may be down, or the document may be one that it cannot process. An outage costs no
//! file an attempt, and no document hides behind one.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use landfall_core::clock::ManualClock;
use landfall_server::recovery::Sweep;
use serde_json::json;

use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::script::Gate;
use crate::support::{Client, Setup, TestDb, TestServer, manual_clock, on_each_database, until};

const FAILS: Reply = Reply::ApiResponse(500, "text/plain", "cannot do this one");
const DOWN: Reply = Reply::ApiResponse(503, "text/plain", "gone fishing");
const UP: Reply = Reply::ApiResponse(200, "text/plain", "Some words about the sea.");

fn setup(gateway: &str, clock: &ManualClock) -> Setup {
    Setup::default().clock(clock).with("EXTRACT_GATEWAY_URL", gateway)
}

async fn upload(client: &Client, names: &[&str], text: &str) -> Vec<String> {
    let mut files = Vec::new();
    for name in names {
        files.push(client.upload(name, text.as_bytes()).await);
    }
    files
}

/// Lets so many minutes pass, one by one.
async fn minutes(server: &TestServer, clock: &ManualClock, count: usize) {
    for _ in 0..count {
        clock.advance(Duration::from_secs(61));
        server.idle().await;
    }
}

#[on_each_database]
async fn documents_that_the_service_cannot_process_fail_without_any_other_traffic(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(FAILS);
    let clock = manual_clock();
    let server = setup(&url, &clock).start(&db).await;
    let client = server.client("ada");
    let files = upload(&client, &["a.bin", "b.bin"], "poison").await;
    minutes(&server, &clock, 4).await;
    for file in &files {
        let seen = client.file(file).await;
        assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("GW_5XX")), "{seen}");
    }
    let keys: HashSet<String> = gateway.calls().into_iter().map(|call| call.key).collect();
    assert_eq!(
        (keys.len(), server.circuit("gateway").await["state"].clone()),
        (6, json!("closed")),
        "three attempts each"
    );
    server.stop().await;
}

#[on_each_database]
async fn one_document_retried_by_hand_never_opens_the_circuit(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(FAILS);
    let clock = manual_clock();
    let server = setup(&url, &clock).start(&db).await;
    let client = server.client("ada");
    let file = client.upload("a.bin", b"poison").await;
    for _ in 0..4 {
        minutes(&server, &clock, 4).await;
        assert_eq!(client.status(&file).await, "failed");
        assert_eq!(server.circuit("gateway").await["state"], "closed");
        client.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({})).await.ok();
    }
    assert!(gateway.calls().len() >= 12);
    server.stop().await;
}

#[on_each_database]
async fn without_a_witness_a_file_waits_for_a_day_and_then_fails_with_a_reason_and_a_retry_that_works(
    db: TestDb,
) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(FAILS);
    let clock = manual_clock();
    let server = setup(&url, &clock).with("CIRCUIT_THRESHOLD", 2).start(&db).await;
    let client = server.client("ada");
    let files = upload(&client, &["a.bin", "b.bin"], "poison").await;
    server.idle().await;
    minutes(&server, &clock, 3).await;
    let waiting = client.file(&files[0]).await;
    assert_eq!((&waiting["status"], &waiting["waitingFor"]), (&json!("queued"), &json!("circuit")));
    let reason = waiting["waitingMessage"].as_str().unwrap_or_default();
    assert!(reason.contains("(500 Internal Server Error)"), "the last error: {waiting}");

    for _ in 0..25 {
        clock.advance(Duration::from_hours(1));
        server.idle().await;
    }
    for file in &files {
        let seen = client.file(file).await;
        assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("GW_5XX")), "{seen}");
        let reason = seen["error"]["message"].as_str().unwrap();
        assert!(reason.contains("24 hours") && reason.contains("times"), "{reason}");
    }
    gateway.otherwise(UP);
    for file in &files {
        client.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({})).await.ok();
    }
    minutes(&server, &clock, 3).await;
    for file in &files {
        assert_eq!(client.status(file).await, "ready", "{}", client.file(file).await);
    }
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn files_that_no_call_ever_reached_do_not_wait_for_longer(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(DOWN);
    let clock = manual_clock();
    let server =
        setup(&url, &clock).with("CIRCUIT_THRESHOLD", 2).with("EXTRACT_CONCURRENCY", 2).start(&db).await;
    let client = server.client("ada");
    let names: Vec<String> = (0..20).map(|number| format!("{number}.bin")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let files = upload(&client, &names, "bytes").await;
    server.idle().await;
    clock.advance(Duration::from_hours(23));
    let sweep = async || server.app.stuck_files.sweep_once(server.app.clock.now()).await.unwrap();
    assert_eq!(sweep().await.metrics["waitedTooLong"], 0);
    // The circuit lets a file through by now. Its call ends before the clock goes on, which would time it out.
    server.idle().await;
    clock.advance(Duration::from_hours(2));
    let before = gateway.calls().len();
    until("all have failed", async || {
        // A file that the worker has locked is left for the next sweep.
        sweep().await;
        let failed = client.get("/api/v2/uploads/files?status=failed&limit=100").await.ok();
        failed["files"].as_array().unwrap().len() == files.len()
    })
    .await;
    // The sweep ended the wait of the others.
    server.idle().await;
    assert!(gateway.calls().len() <= before + 3);
    let told = client.get("/api/v2/notifications?limit=100").await.ok();
    assert_eq!(
        told["notifications"].as_array().unwrap().len(),
        files.len(),
        "each owner is told of each file"
    );
    for file in &files {
        let seen = client.file(file).await;
        assert_eq!(
            (&seen["status"], &seen["error"]["code"]),
            (&json!("failed"), &json!("GW_UNAVAILABLE")),
            "{seen}"
        );
    }
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_service_that_says_it_is_well_is_a_witness_against_the_file(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(FAILS);
    gateway.says.store(503, Ordering::SeqCst);
    let clock = manual_clock();
    let health = url.replace("/convert", "/health");
    let server = setup(&url, &clock)
        .with("CIRCUIT_THRESHOLD", 2)
        .with("EXTRACT_GATEWAY_HEALTH_URL", health)
        .start(&db)
        .await;
    let client = server.client("ada");
    let files = upload(&client, &["a.bin", "b.bin"], "poison").await;
    server.idle().await;
    minutes(&server, &clock, 10).await;
    for file in &files {
        assert_eq!(client.status(file).await, "queued", "the service says itself that it is down");
    }
    gateway.says.store(200, Ordering::SeqCst);
    minutes(&server, &clock, 10).await;
    for file in &files {
        let seen = client.file(file).await;
        assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("GW_5XX")), "{seen}");
    }
    server.stop().await;
}

#[on_each_database]
async fn a_failure_from_before_the_outage_does_not_end_the_probes(db: TestDb) {
    let (late, probes) = (Gate::default(), Gate::default());
    let (gateway, url) = GatewayServer::serve([Reply::Gated(late.clone(), 500)]).await;
    gateway.otherwise(DOWN);
    let clock = manual_clock();
    let server = setup(&url, &clock)
        .with("CIRCUIT_THRESHOLD", 2)
        .with("EXTRACT_CONCURRENCY", 8)
        .with("EXTRACT_TIMEOUT_MS", 100_000_000)
        .start(&db)
        .await;
    let client = server.client("ada");
    let slow = client.upload("slow.bin", b"bytes").await;
    late.reached().await;
    // What was claimed in the same moment as the first failure counts as one of the calls that decide.
    clock.advance(Duration::from_secs(1));
    let files = upload(&client, &["a.bin", "b.bin", "c.bin", "d.bin", "e.bin"], "bytes").await;
    until("the circuit is open", async || server.circuit("gateway").await["state"] == "open").await;
    gateway.otherwise(Reply::Gated(probes.clone(), 404));
    clock.advance(Duration::from_secs(61));
    server.app.wake.poll_work();
    for _ in 0..3 {
        probes.reached().await;
    }
    late.open();
    until("the slow one is back", async || client.status(&slow).await == "queued").await;
    assert_eq!(server.circuit("gateway").await["state"], "half-open");
    assert_eq!(client.file(&slow).await["attempt"], 0, "its failure belongs to the outage");
    let calls = gateway.calls().len();
    server.app.wake.poll_work();
    gateway.otherwise(UP);
    // A call that was about to begin when the circuit opened may wait there too.
    (0..10).for_each(|_| probes.open());
    minutes(&server, &clock, 3).await;
    assert_eq!(server.circuit("gateway").await["state"], "closed");
    assert!(gateway.calls().len() > calls);
    let mut ended = 0;
    for file in files.iter().chain([&slow]) {
        let status = client.status(file).await;
        ended += usize::from(status == "ready" || status == "failed");
    }
    assert_eq!(ended, 6);
    server.stop().await;
}

#[on_each_database]
async fn the_files_that_waited_the_longest_probe_the_service_whatever_their_priority(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(UP);
    gateway.reply_to_text("poison", FAILS);
    let clock = manual_clock();
    let server = setup(&url, &clock)
        .with("CIRCUIT_THRESHOLD", 1)
        .with("CIRCUIT_HALF_OPEN_REQUESTS", 1)
        .start(&db)
        .await;
    let client = server.client("ada");
    let urgent = json!({ "fileCount": 1, "priority": "high" });
    let urgent = client.post("/api/v2/uploads/batches", urgent).await.ok();
    let poison = client.upload_in(urgent["batchId"].as_str().unwrap(), "poison.bin", b"poison").await;
    server.idle().await;
    assert_eq!(server.circuit("gateway").await["state"], "open");
    let good = client.upload("good.bin", b"bytes").await;
    minutes(&server, &clock, 1).await;
    assert_eq!(client.status(&good).await, "ready");
    // Each further file that succeeds is a witness against the one that fails.
    for number in 0..8 {
        client.upload(&format!("{number}.bin"), b"bytes").await;
        minutes(&server, &clock, 2).await;
    }
    assert_eq!(client.status(&poison).await, "failed");
    server.stop().await;
}

#[on_each_database]
async fn no_two_calls_of_a_file_share_their_idempotency_key_unless_an_attempt_is_repeated(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(FAILS);
    let clock = manual_clock();
    let server = setup(&url, &clock).with("CIRCUIT_THRESHOLD", 2).start(&db).await;
    let client = server.client("ada");
    let files = upload(&client, &["a.bin", "b.bin"], "poison").await;
    server.idle().await;
    minutes(&server, &clock, 3).await;
    for file in &files {
        client.post(&format!("/api/v2/uploads/files/{file}/cancel"), json!({})).await.ok();
        client.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({})).await.ok();
    }
    minutes(&server, &clock, 3).await;
    let calls = gateway.calls();
    let keys: HashSet<&str> = calls.iter().map(|call| call.key.as_str()).collect();
    assert!(calls.len() > 4);
    assert_eq!(keys.len(), calls.len(), "{keys:?}");
    server.stop().await;
}
