//! What can be seen of a file: who did what to it and why, that it makes no progress, and what its owner is told.

use std::time::Duration;

use landfall_core::clock::ManualClock;
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage;
use serde_json::{Value, json};

use crate::recovery_jobs::{break_claim, by_hand, recover, without_workers};
use crate::support::process::{Process, run};
use crate::support::{
    Client, Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database, until,
};

const FILES: &str = "/api/v2/uploads/files";
const NOTIFICATIONS: &str = "/api/v2/notifications";
const DAY: Duration = Duration::from_hours(24);

async fn history(client: &Client, file: &str) -> Vec<Value> {
    let history = client.get(&format!("{FILES}/{file}/history?limit=200")).await.ok();
    history["history"].as_array().unwrap().clone()
}

fn step<'a>(history: &'a [Value], from: &str, to: &str) -> &'a Value {
    let found = history.iter().rev().find(|step| step["from"] == from && step["to"] == to);
    found.unwrap_or_else(|| panic!("{from} → {to} in {history:?}"))
}

fn actor(step: &Value) -> (&str, &str) {
    (step["actor"]["kind"].as_str().unwrap(), step["actor"]["name"].as_str().unwrap())
}

async fn advance_until_idle(server: &TestServer, clock: &ManualClock) {
    server.idle().await;
    clock.advance(Duration::from_mins(10));
    server.idle().await;
}

#[on_each_database]
async fn every_step_says_who_did_it_and_why_and_nothing_is_forgotten(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    script.then(Stage::Extract, Step::Fail(Code::DbError));
    script.then(Stage::Embed, Step::Fail(Code::ValidationError));
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"12345").await;
    advance_until_idle(&server, &clock).await;
    assert_eq!(alice.status(&file).await, "failed");
    alice.post(&format!("{FILES}/{file}/retry"), json!({})).await.ok();
    server.idle().await;

    let view = alice.file(&file).await;
    assert_eq!(view["status"], "ready");
    assert_eq!(view["attempts"], json!({ "extract": 2, "chunk": 1, "embed": 2 }), "over both lives");
    assert_eq!(view["retriedBy"], "alice", "it stays after the retry succeeded");
    assert!(view["retriedAt"].is_string());
    let steps = history(&alice, &file).await;
    for step in &steps {
        assert!(step["actor"]["kind"].is_string() && step["actor"]["name"] != "", "{step}");
        assert!(step["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{step}");
    }
    assert_eq!(actor(&steps[0]), ("user", "alice"));
    assert_eq!(actor(step(&steps, "uploaded", "queued")), ("user", "alice"));
    assert_eq!(actor(step(&steps, "queued", "extracting")).0, "worker");
    let retried = step(&steps, "failed", "queued");
    assert_eq!(actor(retried), ("user", "alice"));
    let reason = retried["reason"].as_str().unwrap();
    assert!(reason.contains("embed stage, after VALIDATION_ERROR: scripted"), "{reason}");

    server.admin().delete(&format!("{FILES}/{file}")).await.ok();
    let steps = history(&alice, &file).await;
    assert_eq!(actor(step(&steps, "ready", "deleted")), ("administrator", "root"));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn the_list_of_stuck_files_and_the_file_itself_say_the_same(db: TestDb) {
    let clock = manual_clock();
    let server = without_workers(&clock).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"12345").await;
    break_claim(&server, &file, Stage::Extract).await;
    let stuck = async || alice.get("/api/v2/uploads/stuck").await.ok()["files"].as_array().unwrap().clone();

    clock.advance(Duration::from_mins(5));
    let staleness = alice.file(&file).await["staleness"].clone();
    assert_eq!((&staleness["stale"], &staleness["stuck"]), (&json!(true), &Value::Null));
    assert_eq!(staleness["message"], "No progress for 5 minutes. The process that worked on it is gone");
    assert_eq!(stuck().await, Vec::<Value>::new(), "its patience is not over");

    clock.advance(Duration::from_mins(25));
    let staleness = alice.file(&file).await["staleness"].clone();
    let listed = &stuck().await[0];
    assert_eq!((&staleness["stuck"], &listed["reason"]), (&json!("claim_broken"), &json!("claim_broken")));
    let message = staleness["message"].as_str().unwrap();
    assert!(message.ends_with(listed["message"].as_str().unwrap()), "{message} and {listed}");

    // The sweep recovers it, and its history names the sweep.
    recover(&server).await;
    let steps = history(&alice, &file).await;
    assert_eq!(actor(step(&steps, "extracting", "queued")), ("sweep", "stuck-file-recovery"));
    assert_eq!(alice.file(&file).await["staleness"]["stale"], false);
}

#[on_each_database]
async fn a_users_own_retry_of_a_stuck_file_is_the_users_and_no_failure(db: TestDb) {
    let clock = manual_clock();
    let server = without_workers(&clock).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"12345").await;
    break_claim(&server, &file, Stage::Extract).await;
    alice.post(&format!("/api/v2/uploads/stuck/{file}/retry"), json!({})).await.ok();
    let steps = history(&alice, &file).await;
    let retried = step(&steps, "extracting", "queued");
    assert_eq!(actor(retried), ("user", "alice"));
    assert_eq!(retried["errorCode"], Value::Null, "{retried}");
    assert_eq!(retried["reason"], "Put back into the queue by hand while it was extracting");
    assert_eq!(alice.file(&file).await["error"], Value::Null);

    // One that waits is moved to the front; it stays in the queue, and its history says who wanted that.
    server.admin().post(&format!("/api/v2/uploads/stuck/{file}/retry"), json!({})).await.ok();
    let steps = history(&alice, &file).await;
    assert_eq!(actor(step(&steps, "queued", "queued")), ("administrator", "root"));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_failure_notification_is_settled_when_its_file_is_ready_or_deleted(db: TestDb) {
    let script = Script::new();
    script.then(Stage::Extract, Step::Fail(Code::ParseError));
    script.then(Stage::Extract, Step::Fail(Code::ParseError));
    script.then(Stage::Extract, Step::Fail(Code::ParseError));
    let server = Setup::default().work(script).start(&db).await;
    let alice = server.client("alice");
    let mut files = Vec::new();
    for name in ["retried.txt", "deleted.txt", "left.txt"] {
        files.push(alice.upload(name, b"12345").await);
        server.idle().await;
    }
    let unread = async || {
        let list = alice.get(&format!("{NOTIFICATIONS}?unread=true")).await.ok();
        list["notifications"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["fileName"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(unread().await.len(), 3);
    alice.post(&format!("{FILES}/{}/retry", files[0]), json!({})).await.ok();
    server.idle().await;
    assert_eq!(unread().await, ["left.txt", "deleted.txt"]);
    alice.delete(&format!("{FILES}/{}", files[1])).await.ok();
    assert_eq!(unread().await, ["left.txt"]);
    let all = alice.get(NOTIFICATIONS).await.ok();
    let settled = all["notifications"].as_array().unwrap().iter().filter(|one| one["resolvedAt"].is_string());
    assert_eq!(settled.count(), 2);
}

#[on_each_database]
async fn the_date_of_deletion_stands_on_the_file_and_on_the_dead_letter(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    script.then(Stage::Extract, Step::Fail(Code::ParseError));
    let server = by_hand(&clock).work(script).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"12345").await;
    server.idle().await;
    let dates = async || {
        let letters = alice.get("/api/v2/uploads/dlq").await.ok();
        let view = alice.file(&file).await;
        assert_eq!(view["deletionAt"], letters["entries"][0]["deletionAt"]);
        (view["deletionAt"].clone(), view["failedAt"].clone())
    };
    let (promised, failed_at) = dates().await;
    let day = |at: &Value| at.as_str().unwrap().parse::<landfall_core::clock::Time>().unwrap();
    assert_eq!((day(&promised) - day(&failed_at)).num_days(), 30);

    // The warning names the same date.
    clock.advance(23 * DAY);
    server.run_job("orphan-cleanup").await;
    let told = alice.get(NOTIFICATIONS).await.ok()["notifications"][0].clone();
    assert_eq!(told["type"], "file-deletion-warning");
    assert_eq!(day(&told["data"]["deletionDate"]), day(&promised));
    assert_eq!(dates().await.0, promised);
    clock.advance(7 * DAY);
    server.run_job("orphan-cleanup").await;
    alice.get(&format!("{FILES}/{file}")).await.refused(410, "FILE_DELETED");
    let steps = history(&alice, &file).await;
    assert_eq!(actor(step(&steps, "failed", "deleted")), ("sweep", "orphan-cleanup"));
}

#[on_each_database]
async fn the_owner_of_an_expired_upload_is_told(db: TestDb) {
    let clock = manual_clock();
    let server = without_workers(&clock).start(&db).await;
    let alice = server.client("alice");
    let file = alice.register(None, "never.txt", 5).await["fileId"].as_str().unwrap().to_owned();
    let at = alice.file(&file).await["deletionAt"].clone();
    assert!(at.is_string(), "it says when it will be removed");
    clock.advance(Duration::from_hours(2));
    until("it expired", async || alice.get(&format!("{FILES}/{file}")).await.status == 410).await;
    let list = alice.get(NOTIFICATIONS).await.ok();
    let told = &list["notifications"][0];
    assert_eq!((&told["type"], &told["fileId"]), (&json!("upload-expired-notification"), &json!(file)));
    assert_eq!(list["notifications"].as_array().unwrap().len(), 1);
    let steps = history(&alice, &file).await;
    assert_eq!(actor(step(&steps, "registered", "deleted")), ("sweep", "upload-expiry"));
}

#[on_each_database]
async fn the_command_line_shows_attempts_actors_reasons_and_notifications(db: TestDb) {
    let server = Process::start(&db, &[("RETRY_BASE_DELAY_MS", "50")]);
    let client = server.client();
    let file = client.upload("a.pdf", b"This is no PDF.").await;
    until("it failed", async || client.status(&file).await == "failed").await;
    let token = client.token.clone();
    let landfall = |arguments: &[&str]| {
        let connection = ["--server", &client.base, "--token", &token];
        let (code, text) = run(&db, &[arguments, &connection].concat());
        assert_eq!(code, 0, "{text}");
        text
    };
    let status = landfall(&["status", &file]);
    for part in [
        "attempt  1 of 3 at extract",
        "attempts extract 1",
        "deletion ",
        "worker ",
        "user ",
        "no attempt is left",
    ] {
        assert!(status.contains(part), "{part} in {status}");
    }
    assert!(landfall(&["files"]).contains("attempt 1 of 3 at extract"));
    let listed = landfall(&["notifications"]);
    assert!(listed.contains("unread") && listed.contains("a.pdf failed"), "{listed}");
    assert!(landfall(&["notifications", "read-all"]).contains("Marked 1 notification as read"));
    assert!(landfall(&["notifications", "--unread"]).contains("There are no notifications"));
}
