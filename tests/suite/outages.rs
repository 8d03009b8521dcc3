//! A service goes down: files wait for it, none fails because of it, and all continue when it is back.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use landfall_store::args;
use serde_json::json;

use crate::support::embedding_server::EmbeddingServer;
use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::{Client, Setup, TestDb, TestServer, manual_clock, on_each_database};

const DOWN: Reply = Reply::ApiResponse(503, "text/plain", "gone fishing");
const UP: Reply = Reply::ApiResponse(200, "text/plain", "Some words about the sea.");
const THRESHOLD: usize = 5;
const PROBES: usize = 3;

/// As many at once as failures open the circuit: more would still be running when the circuit opens.
fn setup(gateway: &str) -> Setup {
    Setup::default().with("EXTRACT_GATEWAY_URL", gateway).with("EXTRACT_CONCURRENCY", THRESHOLD)
}

async fn upload_many(client: &Client, count: usize) -> Vec<String> {
    let upload = async |number: usize| client.upload(&format!("{number}.bin"), b"bytes").await;
    stream::iter(0..count).map(upload).buffered(16).collect().await
}

/// The number of files for each state and number of attempts.
async fn states(server: &TestServer) -> Vec<(String, i64, i64)> {
    let sql = "SELECT status, attempt, COUNT(*) FROM files GROUP BY status, attempt ORDER BY status, attempt";
    server.app.db.read().await.unwrap().rows(sql, args![]).await.unwrap()
}

#[on_each_database]
async fn a_thousand_files_outlast_a_gateway_outage_of_an_hour(db: TestDb) {
    const FILES: usize = 1_000;
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(DOWN);
    let embeddings = EmbeddingServer::start(8).await;
    let clock = manual_clock();
    let server = setup(&url)
        .clock(&clock)
        .with("EMBEDDINGS_URL", &embeddings.url)
        .with("EMBEDDINGS_MODEL", "words")
        .start(&db)
        .await;
    let client = server.client("ada");
    let files = upload_many(&client, FILES).await;
    server.idle().await;
    assert_eq!(gateway.calls().len(), THRESHOLD);
    assert_eq!(server.circuit("gateway").await["state"], "open");
    let waiting = client.file(&files[FILES - 1]).await;
    assert_eq!(waiting["waitingFor"], "circuit", "{waiting}");

    for _ in 0..60 {
        clock.advance(Duration::from_secs(61));
        server.idle().await;
    }
    assert!(gateway.calls().len() <= THRESHOLD + 60 * PROBES, "{} calls", gateway.calls().len());
    assert!(gateway.calls().len() > THRESHOLD, "no probe was ever sent");
    let all = i64::try_from(FILES).unwrap();
    assert_eq!(states(&server).await, [("queued".to_owned(), 0, all)]);

    gateway.otherwise(UP);
    for _ in 0..10 {
        clock.advance(Duration::from_secs(61));
        server.idle().await;
    }
    let states = states(&server).await;
    assert!(states.iter().all(|(status, _, _)| status == "ready"), "{states:?}");
    assert_eq!(server.circuit("gateway").await["state"], "closed");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn two_processes_share_one_circuit(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(DOWN);
    let one = setup(&url).start(&db).await;
    let other = setup(&url).start(&db).await;
    upload_many(&one.client("ada"), 12).await;
    crate::support::until("the circuit is open", async || one.circuit("gateway").await["state"] == "open")
        .await;
    let seen = [one.circuit("gateway").await, other.circuit("gateway").await];
    assert_eq!(seen[0], seen[1]);

    // All running work has ended, and neither process starts more.
    one.idle().await;
    other.idle().await;
    let calls = gateway.calls().len();
    upload_many(&other.client("ada"), 3).await;
    other.idle().await;
    one.idle().await;
    assert_eq!(gateway.calls().len(), calls);
    one.stop().await;
    other.stop().await;
}

#[on_each_database]
async fn a_half_open_circuit_lets_three_files_through_and_closes_after_them(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(DOWN);
    let clock = manual_clock();
    let server = setup(&url).clock(&clock).with("EXTRACT_TIMEOUT_MS", 100_000).start(&db).await;
    let client = server.client("ada");
    let files = upload_many(&client, 12).await;
    server.idle().await;
    gateway.otherwise(Reply::Never);
    clock.advance(Duration::from_secs(61));
    // The worker may be about to sleep for a second of the new time.
    server.app.wake.poll_work();
    gateway.open.subscribe().wait_for(|open| *open == PROBES).await.unwrap();
    let state = server.circuit("gateway").await;
    assert_eq!(state["state"], "half-open", "{state}");
    client.upload("one-more.bin", b"bytes").await;
    // A poll of the queue that starts now finds three probes running and lets no more through.
    server.app.wake.poll_work();
    assert_eq!(gateway.calls().len(), THRESHOLD + PROBES);

    // The probes never return: others are sent after them.
    gateway.otherwise(UP);
    clock.advance(Duration::from_secs(121));
    server.idle().await;
    clock.advance(Duration::from_secs(61));
    server.idle().await;
    clock.advance(Duration::from_secs(61));
    server.idle().await;
    for file in &files {
        assert_eq!(client.status(file).await, "ready", "{}", client.file(file).await);
    }
    assert_eq!(server.circuit("gateway").await["state"], "closed");
    let kinds: Vec<(String,)> = server
        .app
        .db
        .read()
        .await
        .unwrap()
        .rows("SELECT DISTINCT kind FROM events WHERE kind LIKE 'circuit:%'", args![])
        .await
        .unwrap();
    assert_eq!(kinds, [("circuit:changed".to_owned(),)]);
    server.stop().await;
}

#[on_each_database]
async fn the_files_that_opened_the_circuit_are_retried_like_all_others(db: TestDb) {
    // The gateway fails on two documents, six times in a row, and then works again.
    let (gateway, url) = GatewayServer::serve(vec![DOWN; 6]).await;
    let clock = manual_clock();
    let server = setup(&url).clock(&clock).with("CIRCUIT_THRESHOLD", 2).start(&db).await;
    let client = server.client("ada");
    let bad = upload_many(&client, 2).await;
    server.idle().await;
    assert_eq!(server.circuit("gateway").await["state"], "open");
    gateway.otherwise(UP);
    upload_many(&client, 6).await;
    for _ in 0..12 {
        clock.advance(Duration::from_secs(61));
        server.idle().await;
    }
    let states = states(&server).await;
    assert!(
        states.iter().all(|(status, _, _)| status == "ready"),
        "{states:?} {}",
        client.file(&bad[0]).await
    );
    server.stop().await;
}

#[on_each_database]
async fn documents_that_the_gateway_cannot_process_become_dead_letters_and_do_not_block_others_permanently(
    db: TestDb,
) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(UP);
    gateway.reply_to_text("poison", DOWN);
    let clock = manual_clock();
    let server = setup(&url).clock(&clock).with("CIRCUIT_THRESHOLD", 2).start(&db).await;
    let (mallory, alice) = (server.client("mallory"), server.client("alice"));
    let mut bad = Vec::new();
    for name in ["a", "b", "c"] {
        bad.push(mallory.upload(name, b"poison").await);
    }
    server.idle().await;
    assert_eq!(server.circuit("gateway").await["state"], "open");
    let good = upload_many(&alice, 20).await;
    for _ in 0..40 {
        clock.advance(Duration::from_secs(61));
        server.idle().await;
    }
    for file in &good {
        assert_eq!(alice.status(file).await, "ready", "{}", alice.file(file).await);
    }
    // Without a successful call of another file since they last failed, they wait. Each further success is a witness.
    upload_many(&alice, 20).await;
    for _ in 0..20 {
        clock.advance(Duration::from_secs(61));
        server.idle().await;
        upload_many(&alice, 1).await;
    }
    for file in &bad {
        let seen = mallory.file(file).await;
        assert_eq!(
            (&seen["status"], &seen["error"]["code"]),
            (&json!("failed"), &json!("GW_UNAVAILABLE")),
            "{seen}"
        );
    }
    server.stop().await;
}

#[on_each_database]
async fn a_refusal_shows_that_the_gateway_is_up(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(Reply::ApiResponse(400, "text/plain", "not this one"));
    let server = setup(&url).start(&db).await;
    let client = server.client("ada");
    let files = upload_many(&client, 12).await;
    server.idle().await;
    for file in files {
        assert_eq!(client.status(&file).await, "failed");
    }
    assert_eq!(
        (gateway.calls().len(), server.circuit("gateway").await["state"].clone()),
        (12, json!("closed"))
    );
    server.stop().await;
}

#[on_each_database]
async fn files_wait_for_a_storage_that_cannot_be_read(db: TestDb) {
    use crate::support::{Script, Step};
    use landfall_core::failure::Code;
    use landfall_core::lifecycle::Stage::Extract;
    let script = Script::new();
    for _ in 0..THRESHOLD {
        script.then(Extract, Step::Fail(Code::IoError));
    }
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(script).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
    let client = server.client("ada");
    let files = upload_many(&client, 12).await;
    server.idle().await;
    assert_eq!(server.circuit("storage").await["state"], "open");
    assert_eq!(states(&server).await, [("queued".to_owned(), 0, 12)], "no attempt was used");
    for _ in 0..5 {
        clock.advance(Duration::from_secs(61));
        server.idle().await;
    }
    for file in files {
        assert_eq!(client.status(&file).await, "ready", "{}", client.file(&file).await);
    }
    server.stop().await;
}

/// Otherwise files would wait for the storage, and fail because of it, for as long as the gateway fails them.
#[on_each_database]
async fn a_gateway_that_fails_shows_that_the_storage_is_back(db: TestDb) {
    use crate::support::{Script, Step};
    use landfall_core::failure::Code;
    use landfall_core::lifecycle::Stage::Extract;
    let script = Script::new();
    for _ in 0..THRESHOLD {
        script.then(Extract, Step::Fail(Code::IoError));
    }
    for _ in 0..100 {
        script.then(Extract, Step::Fail(Code::Gateway5xx));
    }
    let clock = manual_clock();
    let server = Setup::default()
        .clock(&clock)
        .work(script)
        .with("EXTRACT_GATEWAY_URL", "http://127.0.0.1:9/")
        .with("EXTRACT_CONCURRENCY", 1)
        .start(&db)
        .await;
    let client = server.client("ada");
    let files = upload_many(&client, 12).await;
    server.idle().await;
    assert_eq!(server.circuit("storage").await["state"], "open");
    for _ in 0..5 {
        clock.advance(Duration::from_secs(61));
        server.idle().await;
    }
    assert_eq!(server.circuit("storage").await["state"], "closed");
    assert_eq!(server.circuit("gateway").await["state"], "open");
    for file in files {
        let seen = client.file(&file).await;
        assert_eq!((&seen["status"], &seen["waitingFor"]), (&json!("queued"), &json!("circuit")), "{seen}");
        let why = seen["waitingMessage"].as_str().unwrap_or_default();
        assert!(why.contains("extraction service") && !why.contains("storage"), "{seen}");
    }
    server.stop().await;
}
