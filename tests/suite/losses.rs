//! Something is removed from under a running server. Every file still ends ready, or failed with a reason and a retry
//! that works.

use std::time::Duration;

use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage::{Chunk, Embed, Extract};
use landfall_store::args;
use serde_json::json;
use sqlx::Connection;
use sqlx_postgres::PgConnection;

use crate::support::offline_app::Sql;
use crate::support::script::Gate;
use crate::support::{
    Client, Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database, until,
};

async fn control_queue(server: &TestServer, stage: &str, action: &str) {
    server.admin().post(&format!("/api/v2/admin/queues/{stage}/{action}"), json!({})).await.ok();
    server.idle().await;
}

async fn change(server: &TestServer, sql: &str) {
    assert!(server.app.db.write(Sql(sql.to_owned(), args![])).await.unwrap() > 0, "{sql} changes something");
}

async fn retry_from(client: &Client, file: &str, stage: &str) {
    client.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({ "fromStage": stage })).await.ok();
}

/// The database accepts no writes for a while.
enum Interruption {
    /// Another program has locked it.
    Held(Box<rusqlite::Connection>),
    /// All connections were cut, and new ones are accepted again.
    Cut,
}

impl Interruption {
    async fn begin(db: &TestDb) -> Self {
        if db.url.starts_with("sqlite:") {
            let connection = db.sqlite_connection();
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            return Self::Held(Box::new(connection));
        }
        let mut connection = PgConnection::connect(&db.url).await.unwrap();
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        sqlx::query(cut).execute(&mut connection).await.unwrap();
        Self::Cut
    }

    fn end(self) {
        if let Self::Held(connection) = self {
            connection.execute_batch("ROLLBACK").unwrap();
        }
    }
}

#[on_each_database]
async fn missing_text_fails_its_file_with_a_reason_and_a_retry_from_extraction_repairs_it(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    control_queue(&server, "chunk", "pause").await;
    let file = alice.upload("a.txt", b"Words about the sea.").await;
    server.idle().await;
    change(&server, "DELETE FROM artifacts").await;
    control_queue(&server, "chunk", "resume").await;
    let seen = alice.file(&file).await;
    assert_eq!(
        (&seen["status"], &seen["error"]["code"], &seen["error"]["stage"]),
        (&json!("failed"), &json!("IO_ERROR"), &json!("chunk")),
        "{seen}"
    );
    let message = seen["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("The extracted text of this file is gone. "), "{message}");
    retry_from(&alice, &file, "extract").await;
    server.idle().await;
    assert_eq!(alice.search("sea").await.len(), 1);
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn missing_chunks_fail_their_file_and_a_retry_from_chunking_repairs_it(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    control_queue(&server, "embed", "pause").await;
    let file = alice.upload("a.txt", b"Words about the sea.").await;
    server.idle().await;
    change(&server, "DELETE FROM chunks").await;
    control_queue(&server, "embed", "resume").await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["error"]["stage"]), (&json!("failed"), &json!("embed")), "{seen}");
    retry_from(&alice, &file, "chunk").await;
    server.idle().await;
    assert_eq!(alice.search("sea").await.len(), 1);
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn missing_bytes_fail_their_own_file_and_delay_no_other(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    control_queue(&server, "extract", "pause").await;
    let mut files = Vec::new();
    // More files than the number of failures in a row that would open the circuit of the storage.
    for number in 0..8 {
        files.push(alice.upload(&format!("{number}.txt"), b"Words about the sea.").await);
    }
    let (kept, lost) = files.split_first().unwrap();
    for file in lost {
        for key in server.app.blobs.keys_of(file.parse().unwrap()).await.unwrap() {
            server.app.blobs.remove(&key).await.unwrap();
        }
    }
    control_queue(&server, "extract", "resume").await;
    assert_eq!(alice.status(kept).await, "ready");
    for file in lost {
        let error = &alice.file(file).await["error"];
        assert_eq!(error["code"], "IO_ERROR");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("The bytes of this file are gone from the storage. "), "{message}");
        alice
            .post(&format!("/api/v2/uploads/files/{file}/retry"), json!({}))
            .await
            .refused(404, "FILE_NOT_FOUND");
    }
    let status = server.admin().get("/api/v2/admin/queue-status").await.ok();
    let circuits = status["circuits"].as_array().unwrap();
    assert!(circuits.iter().all(|circuit| circuit["state"] == "closed"), "{status}");
    server.stop().await;
}

#[on_each_database]
async fn a_storage_that_accepts_no_bytes_refuses_the_upload_and_the_same_url_works_afterwards(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "a.txt", 20).await;
    let url = ticket["uploadUrl"].as_str().unwrap();
    let (incoming, away) = (db.folder.path().join("blobs/incoming"), db.folder.path().join("away"));
    std::fs::rename(&incoming, &away).unwrap();
    let refused = alice.put(url, "Words about the sea.").await.refused(503, "STORAGE_UNAVAILABLE");
    assert_eq!(refused["retryable"], true);
    assert_eq!(alice.status(ticket["fileId"].as_str().unwrap()).await, "registered");
    std::fs::rename(&away, &incoming).unwrap();
    alice.put(url, "Words about the sea.").await.ok();
    alice.confirm(ticket["fileId"].as_str().unwrap()).await.ok();
    server.idle().await;
    assert_eq!(alice.search("sea").await.len(), 1);
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_temporary_outage_of_the_database_loses_no_file(db: TestDb) {
    let (gate, script) = (Gate::default(), Script::new());
    for stage in [Extract, Chunk, Embed] {
        script.then(stage, Step::Block(gate.clone()));
    }
    let server = Setup::default()
        .work(script)
        .change(|config| config.queue.liveness.heartbeat_interval = Duration::from_millis(200))
        .start(&db)
        .await;
    let alice = server.client("alice");
    let file = alice.upload("a", b"a").await;
    // At each stage the database is gone when the stage ends.
    for _ in 0..3 {
        gate.reached().await;
        let interruption = Interruption::begin(&db).await;
        gate.open();
        interruption.end();
    }
    // A stage that had to run again is not blocked any more.
    for _ in 0..10 {
        gate.open();
    }
    let path = format!("/api/v2/uploads/files/{file}");
    until("the file is ready", async || alice.get(&path).await.body["status"] == "ready").await;
    let states = alice.states(&file).await;
    assert_eq!(states.iter().filter(|state| *state == "ready").count(), 1, "{states:?}");
    until("no lost claim is left", async || server.findings().await.is_empty()).await;
    server.stop().await;
}

#[on_each_database]
async fn a_wait_for_the_next_attempt_survives_a_restart(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new().then(Chunk, Step::Fail(Code::DbError));
    let server = Setup::default().clock(&clock).work(script.clone()).start(&db).await;
    let file = server.client("alice").upload("a", b"a").await;
    server.idle().await;
    let before = server.client("alice").file(&file).await;
    assert_eq!(
        (&before["status"], &before["attempt"], &before["waitingFor"]),
        (&json!("queued"), &json!(1), &json!("retry"))
    );
    server.stop().await;
    let server = Setup::default().clock(&clock).work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    server.idle().await;
    assert_eq!(alice.file(&file).await["retryAfter"], before["retryAfter"]);
    assert_eq!(script.runs().len(), 2, "the next attempt is not due yet");
    clock.advance(Duration::from_secs(10));
    server.idle().await;
    assert_eq!(script.runs(), [(Extract, 1), (Chunk, 1), (Chunk, 2), (Embed, 1)]);
    assert_eq!(alice.status(&file).await, "ready");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_file_whose_wake_signal_was_lost_is_found_by_polling(db: TestDb) {
    let script = Script::new().then(Extract, Step::Fail(Code::DbError));
    let server = Setup::default()
        .work(script)
        .with("RETRY_BASE_DELAY_MS", 60_000)
        .with("POLL_INTERVAL_MS", 50)
        .start(&db)
        .await;
    let alice = server.client("alice");
    let file = alice.upload("a", b"a").await;
    server.idle().await;
    assert_eq!(alice.file(&file).await["waitingFor"], "retry");
    // Queued directly in the database: no signal is sent.
    let sql = "UPDATE files SET run_after = created_at, is_due = TRUE WHERE status = 'queued'";
    change(&server, sql).await;
    until("it is ready", async || alice.status(&file).await == "ready").await;
    server.assert_audit_clean().await;
    server.stop().await;
}
