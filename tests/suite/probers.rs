//! After an outage some files try the service before all others. None of them decides alone: each that waits has its turn, also
//! one that must be worked on alone, and a document that the service cannot process keeps no other file waiting for ever.

use std::time::Duration;

use landfall_core::clock::ManualClock;
use landfall_store::args;
use serde_json::json;

use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::offline_app::Sql;
use crate::support::{Client, Setup, TestDb, TestServer, manual_clock, on_each_database};

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

/// From now on the file is claimed alone, as if workers had died with it.
async fn suspect(server: &TestServer, file: &str) {
    let sql = "UPDATE files SET is_alone = TRUE, is_due = FALSE, lost_workers = 2, deaths = 2
               WHERE id = $1 AND status = 'queued'";
    let isolate = Sql(sql.to_owned(), args![uuid::Uuid::parse_str(file).unwrap()]);
    assert_eq!(server.app.db.write(isolate).await.unwrap(), 1);
}

/// A server whose gateway is down, with one file that waits for each of these texts.
async fn in_an_outage(
    db: &TestDb,
    clock: &ManualClock,
    texts: &[&str],
) -> (GatewayServer, TestServer, Client, Vec<String>) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(DOWN);
    let server = Setup::default()
        .clock(clock)
        .with("EXTRACT_GATEWAY_URL", url)
        .with("CIRCUIT_THRESHOLD", 2)
        .with("CIRCUIT_HALF_OPEN_REQUESTS", 1)
        .start(db)
        .await;
    let client = server.client("ada");
    let mut files = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        files.push(client.upload(&format!("{number}.bin"), text.as_bytes()).await);
        server.idle().await;
    }
    assert_eq!(server.circuit("gateway").await["state"], "open");
    (gateway, server, client, files)
}

#[on_each_database]
async fn a_file_that_must_be_worked_on_alone_tries_the_service_in_its_turn(db: TestDb) {
    let clock = manual_clock();
    let (gateway, server, client, files) = in_an_outage(&db, &clock, &["poison", "bytes"]).await;
    let [poison, alone] = &files[..] else { panic!("two files") };
    suspect(&server, alone).await;
    gateway.otherwise(UP);
    gateway.reply_to_text("poison", FAILS);
    minutes(&server, &clock, 4).await;
    assert_eq!(client.status(alone).await, "ready", "{}", client.file(alone).await);
    minutes(&server, &clock, 6).await;
    let seen = client.file(poison).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("GW_5XX")), "{seen}");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_file_that_is_worked_on_alone_and_fails_lets_the_others_try_the_service(db: TestDb) {
    let clock = manual_clock();
    let (gateway, server, client, files) = in_an_outage(&db, &clock, &["poison", "bytes"]).await;
    let [poison, other] = &files[..] else { panic!("two files") };
    suspect(&server, poison).await;
    gateway.otherwise(UP);
    gateway.reply_to_text("poison", DOWN);
    minutes(&server, &clock, 4).await;
    assert_eq!(client.status(other).await, "ready", "{}", client.file(other).await);
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn the_only_document_that_is_left_after_an_outage_fails_for_its_own_reason(db: TestDb) {
    let clock = manual_clock();
    let (gateway, server, client, files) = in_an_outage(&db, &clock, &["poison", "bytes"]).await;
    let [poison, other] = &files[..] else { panic!("two files") };
    client.post(&format!("/api/v2/uploads/files/{other}/cancel"), json!({})).await.ok();
    minutes(&server, &clock, 30).await;
    let seen = client.file(poison).await;
    assert_eq!((&seen["status"], &seen["attempt"]), (&json!("queued"), &json!(0)), "an outage: {seen}");

    gateway.otherwise(UP);
    gateway.reply_to_text("poison", FAILS);
    minutes(&server, &clock, 8).await;
    let seen = client.file(poison).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("GW_5XX")), "{seen}");
    let good = client.upload("good.bin", b"bytes").await;
    server.idle().await;
    assert_eq!(client.status(&good).await, "ready", "{}", client.file(&good).await);
    assert_eq!(server.circuit("gateway").await["state"], "closed");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn as_many_files_as_open_the_circuit_wait_for_a_service_that_fails_all_of_them(db: TestDb) {
    let clock = manual_clock();
    let (gateway, server, client, mut files) = in_an_outage(&db, &clock, &["bytes", "bytes"]).await;
    // Documents of several owners, which take turns.
    for name in ["bob", "cleo"] {
        files.push(server.client(name).upload("a.bin", b"bytes").await);
    }
    gateway.otherwise(FAILS);
    minutes(&server, &clock, 60).await;
    let sql = "SELECT COUNT(*) FROM files WHERE status = 'queued' AND attempt = 0";
    let waiting = server.app.db.read().await.unwrap().number(sql.to_owned(), args![]).await.unwrap();
    assert_eq!(waiting, 4, "no file lost an attempt");
    gateway.otherwise(UP);
    minutes(&server, &clock, 5).await;
    let sql = "SELECT COUNT(*) FROM files WHERE status = 'ready'";
    let ready = server.app.db.read().await.unwrap().number(sql.to_owned(), args![]).await.unwrap();
    assert_eq!(ready, 4, "{}", client.file(&files[0]).await);
    server.assert_audit_clean().await;
    server.stop().await;
}
