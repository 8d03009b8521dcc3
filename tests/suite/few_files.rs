//! A service goes down while fewer files need it than open its circuit. They wait for it like many, and a document that it
//! cannot process still fails.

use std::time::Duration;

use landfall_core::clock::ManualClock;
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage::Embed;
use landfall_server::queue::rescue::RescueWorker;
use landfall_store::args;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::embedding_server::{self, EmbeddingServer};
use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::network::Network;
use crate::support::offline_app::Sql;
use crate::support::{Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database};

const FAILS: Reply = Reply::ApiResponse(500, "text/plain", "cannot do this one");
const DOWN: Reply = Reply::ApiResponse(503, "text/plain", "gone fishing");
const UP: Reply = Reply::ApiResponse(200, "text/plain", "Some words about the sea.");

/// Lets so many minutes pass, one by one. A delay of a minute varies by a fifth.
async fn minutes(server: &TestServer, clock: &ManualClock, count: usize) {
    for _ in 0..count {
        clock.advance(Duration::from_secs(73));
        server.idle().await;
    }
}

async fn hours(server: &TestServer, clock: &ManualClock, count: usize) {
    for _ in 0..count {
        clock.advance(Duration::from_hours(1));
        server.idle().await;
    }
}

#[on_each_database]
async fn one_file_waits_for_an_embedding_service_that_cannot_be_reached(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    let network = Network::before(&service.url).await;
    network.refuse();
    let clock = manual_clock();
    let server = Setup::default()
        .clock(&clock)
        .with("EMBEDDINGS_URL", format!("{}/v1", network.url()))
        .with("EMBEDDINGS_MODEL", "tiny")
        .start(&db)
        .await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"The cat sleeps.").await;
    server.idle().await;
    minutes(&server, &clock, 3).await;
    assert_eq!(server.circuit("embeddings").await["state"], "closed", "four calls");
    minutes(&server, &clock, 30).await;
    // The file was not sent, so it cannot be the cause, and its calls alone show that the service is down.
    assert_eq!(server.circuit("embeddings").await["state"], "open");
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["attempt"]), (&json!("queued"), &json!(0)), "{seen}");
    assert_eq!(seen["waitingFor"], "circuit", "{seen}");
    network.restore();
    minutes(&server, &clock, 2).await;
    assert_eq!(alice.status(&file).await, "ready", "{}", alice.file(&file).await);
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn two_files_wait_for_an_embedding_service_that_is_not_available(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    service.otherwise(embedding_server::Reply::Refusal(503, None));
    let clock = manual_clock();
    let server = Setup::default()
        .clock(&clock)
        .with("EMBEDDINGS_URL", &service.url)
        .with("EMBEDDINGS_MODEL", "tiny")
        .start(&db)
        .await;
    let alice = server.client("alice");
    let files =
        [alice.upload("a.txt", b"The cat sleeps.").await, alice.upload("b.txt", b"A ship sails.").await];
    server.idle().await;
    minutes(&server, &clock, 20).await;
    assert_eq!(server.circuit("embeddings").await["state"], "closed", "a document may be the cause");
    assert!(service.calls().len() > 6, "more often than a file has attempts");
    for file in &files {
        let seen = alice.file(file).await;
        assert_eq!((&seen["status"], &seen["attempt"]), (&json!("queued"), &json!(0)), "{seen}");
    }
    service.otherwise(embedding_server::Reply::Good);
    minutes(&server, &clock, 2).await;
    for file in &files {
        assert_eq!(alice.status(file).await, "ready", "{}", alice.file(file).await);
    }
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_file_waits_for_an_extraction_service_for_a_day_and_then_fails_with_a_reason(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(DOWN);
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).with("EXTRACT_GATEWAY_URL", url).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.bin", b"bytes").await;
    server.idle().await;
    for _ in 0..23 {
        clock.advance(Duration::from_hours(1));
        server.idle().await;
        assert_eq!(alice.status(&file).await, "queued", "{}", alice.file(&file).await);
    }
    for _ in 0..2 {
        clock.advance(Duration::from_hours(1));
        server.idle().await;
    }
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("GW_UNAVAILABLE")));
    assert!(seen["error"]["message"].as_str().unwrap().contains("24 hours"), "{seen}");
    server.stop().await;
}

#[on_each_database]
async fn a_moment_without_the_database_does_not_end_the_long_wait_for_another_service(db: TestDb) {
    let script = Script::new();
    // More than one for each hour: on a busy machine an attempt may be made again.
    for _ in 0..100 {
        script.then(Embed, Step::Wait(Code::EmbedError));
    }
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"The cat sleeps.").await;
    server.idle().await;
    hours(&server, &clock, 23).await;
    assert_eq!(alice.file(&file).await["error"]["code"], "EMBED_ERROR");
    script.replace(Embed, Step::Wait(Code::DbError));
    clock.advance(Duration::from_hours(2));
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("queued"), &json!("DB_ERROR")), "{seen}");
    hours(&server, &clock, 1).await;
    assert_eq!(alice.status(&file).await, "ready", "{}", alice.file(&file).await);
    server.assert_audit_clean().await;
    server.stop().await;
}

/// A file to which an outage gave its attempt back has only the time since when it waits.
#[on_each_database]
async fn the_death_of_a_worker_does_not_begin_the_wait_of_its_file_again(db: TestDb) {
    let script = Script::new();
    for _ in 0..100 {
        script.then(Embed, Step::Wait(Code::EmbedError));
    }
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"The cat sleeps.").await;
    server.idle().await;
    hours(&server, &clock, 20).await;
    let dead = Uuid::new_v4();
    let now = || server.app.clock.now();
    let change =
        async |sql: &str, arguments| server.app.db.write(Sql(sql.to_owned(), arguments)).await.unwrap();
    let claim = "UPDATE files SET status = 'embedding', claim = $1, claimed_by = $1, claimed_at = $2, updated_at = $2,
                     run_after = NULL, is_due = FALSE, attempt = 1, waited_for = NULL";
    assert_eq!(change(claim, args![dead, now()]).await, 1);
    // After the claim, because the server itself may rescue its files at once.
    let worker = "INSERT INTO workers (id, name, stages, services, lock_key, started_at, heartbeat_at)
                  VALUES ($1, 'dead', '', '', 7, $2, $2)";
    assert_eq!(change(worker, args![dead, now()]).await, 1);
    server.app.db.write(RescueWorker { worker: dead, now: now() }).await.unwrap();
    let rescued = "SELECT COUNT(*) FROM events WHERE kind = 'file:processing-stalled'";
    assert!(server.app.db.read().await.unwrap().number(rescued, args![]).await.unwrap() > 0);
    server.idle().await;
    hours(&server, &clock, 3).await;
    assert_eq!(alice.status(&file).await, "queued", "nearly a day: {}", alice.file(&file).await);
    hours(&server, &clock, 2).await;
    let seen = alice.file(&file).await;
    assert_eq!(
        (&seen["status"], &seen["error"]["code"]),
        (&json!("failed"), &json!("EMBED_ERROR")),
        "{seen}"
    );
    server.stop().await;
}

#[on_each_database]
async fn two_services_that_fail_a_file_in_turns_do_not_keep_it_for_ever(db: TestDb) {
    let script = Script::new();
    for _ in 0..40 {
        script.then(Embed, Step::Wait(Code::EmbedError)).then(Embed, Step::Wait(Code::DbError));
    }
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"The cat sleeps.").await;
    server.idle().await;
    // On a busy machine an attempt may be made again, and then one service has an hour more than the other.
    hours(&server, &clock, 40).await;
    assert_eq!(alice.status(&file).await, "queued", "less than a day for each: {}", alice.file(&file).await);
    hours(&server, &clock, 9).await;
    let seen = alice.file(&file).await;
    assert_eq!(seen["status"], "failed", "{seen}");
    assert!(["EMBED_ERROR", "DB_ERROR"].map(Value::from).contains(&seen["error"]["code"]), "{seen}");
    assert!(seen["error"]["message"].as_str().unwrap().contains("24 hours"), "{seen}");
    alice.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({})).await.ok();
    server.idle().await;
    assert_eq!(alice.status(&file).await, "queued", "a new wait: {}", alice.file(&file).await);
    server.stop().await;
}

#[on_each_database]
async fn a_document_that_the_service_always_turns_away_fails_because_it_works_for_others(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(UP);
    gateway.reply_to_text("poison", DOWN);
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).with("EXTRACT_GATEWAY_URL", url).start(&db).await;
    let alice = server.client("alice");
    let poison = alice.upload("poison.bin", b"poison").await;
    for number in 0..10 {
        let good = alice.upload(&format!("{number}.bin"), b"bytes").await;
        server.idle().await;
        minutes(&server, &clock, 1).await;
        assert_eq!(alice.status(&good).await, "ready", "{}", alice.file(&good).await);
    }
    let seen = alice.file(&poison).await;
    assert_eq!(
        (&seen["status"], &seen["error"]["code"]),
        (&json!("failed"), &json!("GW_UNAVAILABLE")),
        "{seen}"
    );
    assert_eq!(server.circuit("gateway").await["state"], "closed");
    server.stop().await;
}

#[on_each_database]
async fn a_service_that_says_it_is_down_costs_no_last_attempt_and_one_that_says_it_is_well_does(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(FAILS);
    gateway.says.store(503, std::sync::atomic::Ordering::SeqCst);
    let clock = manual_clock();
    let health = url.replace("/convert", "/health");
    let server = Setup::default()
        .clock(&clock)
        .with("EXTRACT_GATEWAY_URL", &url)
        .with("EXTRACT_GATEWAY_HEALTH_URL", health)
        .start(&db)
        .await;
    let alice = server.client("alice");
    let file = alice.upload("a.bin", b"poison").await;
    server.idle().await;
    minutes(&server, &clock, 10).await;
    assert_eq!(alice.status(&file).await, "queued", "the service says itself that it is down");
    assert!(gateway.calls().len() > 6);
    gateway.says.store(200, std::sync::atomic::Ordering::SeqCst);
    minutes(&server, &clock, 2).await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("GW_5XX")), "{seen}");
    server.stop().await;
}
