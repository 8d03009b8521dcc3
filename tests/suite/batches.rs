//! Batches: files that belong together.

use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage::Extract;
use landfall_store::args;
use serde_json::json;

use crate::support::script::Gate;
use crate::support::{Script, Setup, Step, TestDb, batch_summary, on_each_database, until};

#[on_each_database]
async fn a_batch_waits_for_every_file_it_was_opened_for(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(2).await;
    alice.upload_in(&batch, "a", b"a").await;
    server.idle().await;
    assert_eq!(alice.batch(&batch).await["status"], "active");
    alice.upload_in(&batch, "b", b"b").await;
    server.idle().await;
    assert_eq!(alice.batch(&batch).await["status"], "completed");
}

#[on_each_database]
async fn a_batch_accepts_no_more_files_than_it_was_opened_for(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(2).await;
    let path = format!("/api/v2/uploads/batches/{batch}/upload-urls");
    let file = json!({ "fileName": "a", "fileSize": 1 });
    alice.post(&path, json!([file, file, file])).await.refused(409, "BATCH_FULL");
    assert_eq!(alice.quota().await, (0, 0), "no file of the list was registered");
    alice.post(&path, json!([file, file])).await.ok();
    alice.post(&path, file).await.refused(409, "BATCH_FULL");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_closed_batch_is_complete_with_the_files_it_has(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(10).await;
    alice.upload_in(&batch, "a", b"a").await;
    server.idle().await;
    let closed = alice.post(&format!("/api/v2/uploads/batches/{batch}/close"), json!({})).await.ok();
    assert_eq!((&closed["status"], &closed["fileCount"]), (&json!("completed"), &json!(1)));
    let file = json!({ "fileName": "b", "fileSize": 1 });
    let path = format!("/api/v2/uploads/batches/{batch}/upload-urls");
    alice.post(&path, file).await.refused(409, "BATCH_NOT_ACTIVE");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_retried_file_makes_its_batch_active_and_completes_it_again(db: TestDb) {
    let script = Script::new().then(Extract, Step::Fail(Code::ParseError));
    let server = Setup::default().work(script).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(1).await;
    let file = alice.upload_in(&batch, "a", b"a").await;
    server.idle().await;
    assert_eq!(alice.batch(&batch).await["summary"], batch_summary(1, 0, 1));
    alice.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({})).await.ok();
    server.idle().await;
    let seen = alice.batch(&batch).await;
    assert_eq!((&seen["status"], &seen["summary"]), (&json!("completed"), &batch_summary(1, 1, 0)));
    let completions = server
        .app
        .db
        .read()
        .await
        .unwrap()
        .number("SELECT COUNT(*) FROM events WHERE kind = 'batch:completed'", vec![])
        .await
        .unwrap();
    assert_eq!(completions, 2);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_batch_no_longer_waits_for_a_file_that_was_deleted_from_it(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(2).await;
    alice.upload_in(&batch, "a", b"a").await;
    let unwanted = alice.send_bytes(Some(&batch), "b", b"b").await;
    server.idle().await;
    assert_eq!(alice.batch(&batch).await["status"], "active");
    alice.delete(&format!("/api/v2/uploads/files/{unwanted}")).await.ok();
    assert_eq!(alice.batch(&batch).await["status"], "completed");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_can_be_confirmed_only_in_its_own_batch(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let (mine, other) = (alice.open_batch(1).await, alice.open_batch(1).await);
    let file = alice.send_bytes(Some(&mine), "a", b"a").await;
    let confirm = |batch: &str| format!("/api/v2/uploads/batches/{batch}/files/{file}/confirm");
    alice.post(&confirm(&other), json!({})).await.refused(404, "FILE_NOT_FOUND");
    assert_eq!(alice.post(&confirm(&mine), json!({})).await.ok()["status"], "queued");
}

#[on_each_database]
async fn a_cancelled_batch_stops_unfinished_files_and_keeps_finished_ones(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Fail(Code::ParseError));
    let server = Setup::default().work(script.clone()).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(10).await;
    let failed = alice.upload_in(&batch, "failed", b"1").await;
    server.idle().await;
    let ready = alice.upload_in(&batch, "ready", b"22").await;
    let gone = alice.upload_in(&batch, "gone", b"333").await;
    server.idle().await;
    alice.delete(&format!("/api/v2/uploads/files/{gone}")).await.ok();
    script.then(Extract, Step::Block(gate.clone()));
    let running = alice.upload_in(&batch, "running", b"4444").await;
    gate.reached().await;
    let called_off = alice.upload_in(&batch, "called off", b"55555").await;
    alice.post(&format!("/api/v2/uploads/files/{called_off}/cancel"), json!({})).await.ok();
    let queued = alice.upload_in(&batch, "queued", b"666666").await;
    let uploaded = alice.send_bytes(Some(&batch), "uploaded", b"7777777").await;
    let registered =
        alice.register(Some(&batch), "registered", 8).await["fileId"].as_str().unwrap().to_owned();
    let other = alice.send_bytes(None, "of no batch", b"999999999").await;
    assert_eq!(alice.quota().await, (24, 18));

    let path = format!("/api/v2/uploads/batches/{batch}/cancel");
    let seen = alice.post(&path, json!({})).await.ok();
    assert_eq!(seen["status"], "cancelled");
    let counts =
        ["ready", "failed", "cancelled", "deleted", "registered", "uploaded", "queued", "extracting"];
    assert_eq!(counts.map(|state| seen["progress"][state].as_i64().unwrap()), [1, 1, 3, 3, 0, 0, 0, 0]);
    // The work is cancelled: the test never opens the gate.
    server.idle().await;
    for (file, status) in [
        (&failed, "failed"),
        (&ready, "ready"),
        (&running, "cancelled"),
        (&called_off, "cancelled"),
        (&queued, "cancelled"),
    ] {
        assert_eq!(alice.status(file).await, status);
    }
    assert_eq!(alice.states(&running).await[2..], ["queued", "extracting", "cancelled"]);
    let error = alice.file(&queued).await["error"].clone();
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!("CANCELLED"), &json!("Cancelled by alice. Retry it if you still need it."))
    );
    for file in [&uploaded, &registered] {
        alice.confirm(file).await.refused(410, "FILE_DELETED");
    }
    assert_eq!(alice.quota().await, (9, 18), "missing uploads are refunded, the rest is still stored");
    let bytes = uploaded.parse().unwrap();
    until("its bytes are gone", async || server.app.blobs.keys_of(bytes).await.unwrap().is_empty()).await;
    assert_eq!(alice.status(&other).await, "uploaded");

    let events = async || {
        let sql = "SELECT COUNT(*) FROM events";
        server.app.db.read().await.unwrap().number(sql, args![]).await.unwrap()
    };
    let before = events().await;
    assert_eq!(alice.post(&path, json!({})).await.ok(), seen, "repeating it is safe");
    assert_eq!(events().await, before);
    let new = json!({ "fileName": "late", "fileSize": 1 });
    let late = alice.post(&format!("/api/v2/uploads/batches/{batch}/upload-urls"), new).await;
    late.refused(409, "BATCH_NOT_ACTIVE");
    server.assert_audit_clean().await;

    // A user can still retry one of them.
    alice.post(&format!("/api/v2/uploads/files/{queued}/retry"), json!({})).await.ok();
    server.idle().await;
    let seen = alice.batch(&batch).await;
    assert_eq!((&seen["status"], &seen["summary"]["ready"]), (&json!("cancelled"), &json!(2)));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_batch_of_thousands_is_cancelled_as_a_whole(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(2_100).await;
    let files: Vec<_> =
        (0..700).map(|number| json!({ "fileName": format!("{number}"), "fileSize": 3 })).collect();
    for _ in 0..3 {
        alice.post(&format!("/api/v2/uploads/batches/{batch}/upload-urls"), json!(files)).await.ok();
    }
    let waiting = alice.upload_all(&(0..40).map(|number| number.to_string()).collect::<Vec<_>>()).await;
    assert_eq!(alice.quota().await, (6_300, 40));
    let seen = alice.post(&format!("/api/v2/uploads/batches/{batch}/cancel"), json!({})).await.ok();
    assert_eq!((&seen["status"], &seen["progress"]["deleted"]), (&json!("cancelled"), &json!(2_100)));
    assert_eq!(alice.quota().await, (0, 40));
    let seen = alice.post(&format!("/api/v2/uploads/batches/{}/cancel", waiting.0), json!({})).await.ok();
    assert_eq!((&seen["status"], &seen["progress"]["cancelled"]), (&json!("cancelled"), &json!(40)));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn only_the_owner_cancels_a_batch_and_only_before_it_is_complete(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let (alice, mallory) = (server.client("alice"), server.client("mallory"));
    let batch = alice.open_batch(1).await;
    for id in [batch.as_str(), "01890000-0000-7000-8000-000000000000", "not-an-id", "%00"] {
        let path = format!("/api/v2/uploads/batches/{id}/cancel");
        mallory.post(&path, json!({})).await.refused(404, "BATCH_NOT_FOUND");
    }
    alice.upload_in(&batch, "a", b"a").await;
    server.idle().await;
    alice
        .post(&format!("/api/v2/uploads/batches/{batch}/cancel"), json!({}))
        .await
        .refused(409, "INVALID_STATE");
    assert_eq!(alice.batch(&batch).await["status"], "completed");
}
