//! How long an upload URL, a registration and a batch live, and what is said when their time is over.

use std::time::Duration;

use landfall_core::clock::ManualClock;
use serde_json::{Value, json};

use crate::support::stream::EventStream;
use crate::support::{Client, Script, Setup, TestDb, TestServer, manual_clock, on_each_database, until};

const MINUTE: Duration = Duration::from_mins(1);

async fn server(db: &TestDb, clock: &ManualClock) -> TestServer {
    Setup::default().clock(clock).work(Script::new()).start(db).await
}

fn url(ticket: &Value) -> &str {
    ticket["uploadUrl"].as_str().expect("a URL")
}

fn id(ticket: &Value) -> String {
    ticket["fileId"].as_str().expect("an id").to_owned()
}

async fn fresh(client: &Client, file: &str) -> Value {
    client.post(&format!("/api/v2/uploads/files/{file}/upload-url"), json!({})).await.ok()
}

async fn is_gone(client: &Client, file: &str) -> bool {
    client.get(&format!("/api/v2/uploads/files/{file}")).await.status == 410
}

#[on_each_database]
async fn a_url_expires_before_its_registration_and_a_fresh_one_works(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "late.txt", 4).await;
    assert_eq!(ticket["expiresInMs"], 900_000);
    clock.advance(15 * MINUTE + Duration::from_millis(1));
    let refused = alice.put(url(&ticket), "late").await;
    let path = refused.body["error"]["details"]["freshUrl"].as_str().expect("where to ask").to_owned();
    refused.refused(403, "UPLOAD_URL_EXPIRED");
    let fresh = alice.post(&path, json!({})).await.ok();
    alice.put(url(&fresh), "late").await.ok();
    alice.confirm(&id(&ticket)).await.ok();
    server.idle().await;
    assert_eq!(alice.status(&id(&ticket)).await, "ready");
    // The old URL says what is the matter now, and promises no fresh one.
    alice.put(url(&ticket), "late").await.refused(409, "INVALID_STATE");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn every_fresh_url_gives_a_registration_another_hour(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "patient.txt", 4).await;
    let file = id(&ticket);
    for _ in 0..4 {
        clock.advance(59 * MINUTE);
        server.idle().await;
        fresh(&alice, &file).await;
    }
    assert_eq!(alice.status(&file).await, "registered");
    clock.advance(61 * MINUTE);
    until("the registration expires", async || {
        clock.advance(Duration::from_secs(1));
        is_gone(&alice, &file).await
    })
    .await;
    for refused in [
        alice.put(url(&ticket), "late").await,
        alice.post(&format!("/api/v2/uploads/files/{file}/upload-url"), json!({})).await,
        alice.confirm(&file).await,
    ] {
        let message = refused.body["error"]["message"].as_str().expect("a sentence").to_owned();
        refused.refused(410, "FILE_DELETED");
        assert!(
            message.contains("did not arrive in time") && message.contains("Register it again"),
            "{message}"
        );
    }
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn files_of_a_batch_wait_for_their_turn_while_its_owner_sends_others(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let (alice, batch) = (server.client("alice"), server.client("alice").open_batch(8).await);
    let mut tickets = Vec::new();
    for number in 0..8 {
        tickets.push(alice.register(Some(&batch), &format!("{number}.txt"), 4).await);
    }
    let alone = id(&alice.register(None, "alone.txt", 4).await);
    for ticket in &tickets {
        clock.advance(50 * MINUTE);
        server.idle().await;
        let ticket = fresh(&alice, &id(ticket)).await;
        alice.put(url(&ticket), "turn").await.ok();
        alice.confirm(&id(&ticket)).await.ok();
    }
    server.idle().await;
    let seen = alice.batch(&batch).await;
    assert_eq!((&seen["status"], &seen["summary"]["ready"]), (&json!("completed"), &json!(8)));
    until("a file that is in no batch has its own deadline", async || {
        clock.advance(Duration::from_secs(1));
        is_gone(&alice, &alone).await
    })
    .await;
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn another_user_does_not_keep_a_registration_alive(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let (alice, mallory) = (server.client("alice"), server.client("mallory"));
    let batch = alice.open_batch(1).await;
    let file = id(&alice.register(Some(&batch), "a.txt", 4).await);
    clock.advance(59 * MINUTE);
    let path = format!("/api/v2/uploads/files/{file}/upload-url");
    mallory.post(&path, json!({})).await.refused(404, "FILE_NOT_FOUND");
    clock.advance(MINUTE);
    until("it expires", async || {
        // If a run of the job is under way, the next one follows after a second.
        clock.advance(Duration::from_secs(1));
        is_gone(&alice, &file).await
    })
    .await;
}

/// Five are promised, two come, and the window passes.
#[on_each_database]
async fn a_batch_of_which_files_never_came_expires_and_its_owner_is_told(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(5).await;
    let mut stream = EventStream::open(&alice, &format!("?batchId={batch}")).await;
    for name in ["one.txt", "two.txt"] {
        alice.upload_in(&batch, name, b"1234").await;
    }
    for name in ["three.txt", "four.txt", "five.txt"] {
        alice.register(Some(&batch), name, 4).await;
    }
    server.idle().await;
    clock.advance(61 * MINUTE);
    let events = stream.up_to(|event| event["type"] == "notification:created").await;
    let expiry = events.iter().find(|event| event["type"] == "batch:expired").expect("it expires");
    let summary =
        json!({ "total": 5, "ready": 2, "failed": 0, "cancelled": 0, "deleted": 0, "neverUploaded": 3 });
    assert_eq!((&expiry["data"]["summary"], &expiry["data"]["total"]), (&summary, &json!(5)));
    assert!(events.iter().all(|event| event["type"] != "batch:completed"));

    let seen = alice.batch(&batch).await;
    assert_eq!((&seen["status"], &seen["summary"]), (&json!("expired"), &summary));
    let told = alice.get("/api/v2/notifications").await.ok();
    assert_eq!(told["notifications"].as_array().expect("a list").len(), 1);
    let told = &told["notifications"][0];
    assert_eq!(
        (&told["type"], &told["data"]["batchId"], &told["data"]["summary"]),
        (&json!("batch-expired-notification"), &json!(batch), &summary)
    );
    assert!(told["message"].as_str().expect("a sentence").contains("3 files never arrived"), "{told}");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_batch_expires_with_its_last_file_if_another_never_came(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(3).await;
    let late = alice.register(Some(&batch), "late.txt", 4).await;
    // Its own deadline is over, and so is the batch's.
    alice.register(Some(&batch), "never.txt", 4).await;
    clock.advance(61 * MINUTE);
    until("both are given up", async || {
        clock.advance(Duration::from_secs(1));
        is_gone(&alice, &id(&late)).await
    })
    .await;
    assert_eq!(alice.batch(&batch).await["status"], "active", "one more can be registered");
    until("none is left", async || alice.batch(&batch).await["summary"]["neverUploaded"] == 2).await;
    alice.upload_in(&batch, "here.txt", b"1234").await;
    server.idle().await;
    let seen = alice.batch(&batch).await;
    assert_eq!((&seen["status"], &seen["summary"]["neverUploaded"]), (&json!("expired"), &json!(2)));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_registration_that_its_owner_deletes_does_not_expire_the_batch(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(1).await;
    let file = id(&alice.register(Some(&batch), "unwanted.txt", 4).await);
    alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
    let seen = alice.batch(&batch).await;
    assert_eq!(
        (&seen["status"], &seen["summary"]["deleted"], &seen["summary"]["neverUploaded"]),
        (&json!("completed"), &json!(1), &json!(0))
    );
}

#[on_each_database]
async fn the_progress_of_a_batch_has_the_count_of_every_state(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(3).await;
    alice.register(Some(&batch), "registered.txt", 4).await;
    alice.send_bytes(Some(&batch), "uploaded.txt", b"1234").await;
    let mut stream = EventStream::open(&alice, "?types=batch:progress").await;
    alice.upload_in(&batch, "ready.txt", b"1234").await;
    let progress = stream.next().await.expect("an event")["data"].clone();
    let states = landfall_core::lifecycle::Status::ALL.iter().map(|status| status.name());
    let counted: i64 = states.map(|state| progress[state].as_i64().expect(state)).sum();
    assert_eq!((counted, &progress["total"]), (3, &json!(3)), "{progress}");
    assert_eq!(
        (&progress["registered"], &progress["uploaded"], &progress["ready"]),
        (&json!(1), &json!(1), &json!(1))
    );
}
