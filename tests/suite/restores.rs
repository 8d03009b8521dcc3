//! A backup is restored: the events have a new epoch, and every client that followed the old one is told.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection;
use sqlx_postgres::PgConnection;

use crate::support::hooks::{self, Hook};
use crate::support::process::run;
use crate::support::stream::{EVENTS, EventStream};
use crate::support::webhook_receiver::Receiver;
use crate::support::{Client, Script, TestDb, TestServer, on_each_database, template, until};

async fn server(db: &TestDb) -> TestServer {
    hooks::setup().work(Script::new()).start(db).await
}

/// Uploads a file, waits until it is ready, and returns the id of the last event that its owner saw.
async fn upload(server: &TestServer, name: &str) -> i64 {
    let alice = server.client("alice");
    let mut stream = EventStream::open(&alice, "").await;
    let file = alice.upload(name, b"12345").await;
    let seen = stream.up_to(|event| event["data"]["to"] == "ready" && event["data"]["fileId"] == *file).await;
    last_id(&seen)
}

fn last_id(events: &[Value]) -> i64 {
    events.last().expect("an event")["id"].as_i64().expect("an id")
}

async fn epoch(server: &TestServer) -> Value {
    let request = server.client("alice").request(Method::GET, EVENTS);
    let open = EventStream::begin(request).await.next().await.expect("a first message");
    assert!(open["epoch"].is_string(), "{open}");
    open["epoch"].clone()
}

async fn resume(client: &Client, after: i64) -> (EventStream, Value) {
    let request = client.request(Method::GET, EVENTS).header("last-event-id", after.to_string());
    let mut stream = EventStream::begin(request).await;
    let first = stream.next().await.expect("a first message");
    (stream, first)
}

fn file_of(url: &str) -> PathBuf {
    PathBuf::from(url.strip_prefix("sqlite://").expect("the URL of a file"))
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", file.display()))
}

fn name_of(url: &str) -> String {
    url::Url::parse(url).expect("a URL").path().trim_start_matches('/').to_owned()
}

/// As the runbook has it: the current database is moved away, and the backup takes its place.
async fn restore(db: &TestDb, backup: &str) {
    if db.url.starts_with("sqlite:") {
        let file = file_of(&db.url);
        for ending in ["", "-wal", "-shm"] {
            drop(std::fs::rename(beside(&file, ending), beside(&file, &format!(".broken{ending}"))));
        }
        std::fs::copy(file_of(backup), file).expect("it can be copied");
        return;
    }
    let (name, backup) = (name_of(&db.url), name_of(backup));
    let mut connection =
        PgConnection::connect(&template::address(&db.url, "postgres")).await.expect("PostgreSQL");
    for sql in [
        format!("ALTER DATABASE {name} RENAME TO {name}_broken"),
        format!("CREATE DATABASE {name} TEMPLATE {backup}"),
    ] {
        template::execute(&mut connection, &sql).await.expect("it is done");
    }
}

/// Into the very place of the current database.
fn restore_in_place(db: &TestDb, backup: &str) {
    let file = file_of(&db.url);
    for ending in ["-wal", "-shm"] {
        drop(std::fs::remove_file(beside(&file, ending)));
    }
    std::fs::copy(file_of(backup), file).expect("it can be copied");
}

#[on_each_database]
async fn a_client_that_saw_events_which_a_restore_undid_is_told(db: TestDb) {
    let first = server(&db).await;
    let (old_epoch, in_the_backup) = (epoch(&first).await, upload(&first, "before").await);
    first.stop().await;
    let backup = db.back_up().await;
    let second = server(&db).await;
    assert_eq!(epoch(&second).await, old_epoch, "a restart is no restore");
    let lost = upload(&second, "after").await;
    assert_eq!(resume(&second.client("alice"), lost).await.1["type"], "stream:open");
    second.stop().await;
    restore(&db, &backup).await;

    let third = server(&db).await;
    let alice = third.client("alice");
    let new_epoch = epoch(&third).await;
    assert_ne!(new_epoch, old_epoch);
    let (mut stream, told) = resume(&alice, lost).await;
    assert_eq!((&told["type"], &told["epoch"]), (&json!("stream:reset"), &new_epoch), "{told}");
    assert_eq!((&told["data"]["reason"], &told["data"]["after"]), (&json!("restored"), &json!(lost)));
    assert_eq!(told["data"]["resumesAfter"], told["id"]);
    let file = alice.upload("new", b"12345").await;
    let seen = stream.up_to(|event| event["data"]["to"] == "ready").await;
    let new: Vec<&Value> = seen.iter().filter(|event| event["type"] != "stream:open").collect();
    assert!(
        new.iter().all(|event| event["data"]["fileId"] == *file || event["data"]["fileId"].is_null()),
        "{seen:#?}"
    );
    assert!(
        new.iter().all(|event| event["epoch"] == new_epoch && event["id"].as_i64() > Some(lost)),
        "{seen:#?}"
    );
    // It has joined the new epoch, and is told once.
    assert_eq!(resume(&alice, last_id(&seen)).await.1["type"], "stream:open");
    assert_eq!(resume(&alice, told["id"].as_i64().expect("an id")).await.1["type"], "stream:open");

    assert_eq!(resume_from_before(&alice, in_the_backup).await, new_epoch);
    third.stop().await;
    let fourth = server(&db).await;
    assert_eq!(epoch(&fourth).await, new_epoch, "it is noticed once");
    fourth.stop().await;
}

/// A client that saw nothing of what is lost misses nothing, and is told all the same. Returns the epoch that it is in then.
async fn resume_from_before(client: &Client, position: i64) -> Value {
    let (mut stream, told) = resume(client, position).await;
    assert_eq!((&told["type"], &told["data"]["resumesAfter"]), (&json!("stream:reset"), &json!(position)));
    let seen = stream.up_to(|event| event["type"] == "stream:open").await;
    assert!(seen.iter().any(|event| event["data"]["to"] == "ready"), "{seen:#?}");
    // Where it is then belongs to the new epoch.
    assert_eq!(resume(client, last_id(&seen)).await.1["type"], "stream:open");
    seen.last().expect("an event")["epoch"].clone()
}

#[on_each_database]
async fn a_webhook_is_sent_the_epoch_of_each_event(db: TestDb) {
    let receiver = Receiver::serve([]).await;
    let first = server(&db).await;
    Hook::register(&first.client("alice"), &receiver.url).await;
    upload(&first, "before").await;
    until("it arrives", async || epochs_of_ready(&receiver).len() == 1).await;
    let old_epoch = epoch(&first).await;
    first.stop().await;
    let backup = db.back_up().await;
    restore(&db, &backup).await;
    let second = server(&db).await;
    upload(&second, "new").await;
    until("it arrives", async || epochs_of_ready(&receiver).len() == 2).await;
    assert_eq!(epochs_of_ready(&receiver), [old_epoch, epoch(&second).await]);
    second.stop().await;
}

/// What the receiver was sent of files that became ready.
fn epochs_of_ready(receiver: &Receiver) -> Vec<Value> {
    let bodies = receiver.calls().into_iter().map(|call| call.json());
    bodies.filter(|body| body["data"]["to"] == "ready").map(|body| body["epoch"].clone()).collect()
}

#[tokio::test]
async fn a_backup_that_is_restored_into_the_same_file_is_noticed_by_the_storage() {
    let db = TestDb::sqlite();
    let first = server(&db).await;
    upload(&first, "before").await;
    first.stop().await;
    let backup = db.back_up().await;
    let second = server(&db).await;
    let (old_epoch, lost) = (epoch(&second).await, upload(&second, "after").await);
    second.stop().await;
    restore_in_place(&db, &backup);
    let third = server(&db).await;
    assert_ne!(epoch(&third).await, old_epoch);
    assert_eq!(resume(&third.client("alice"), lost).await.1["type"], "stream:reset");
    let noticed = epoch(&third).await;
    third.stop().await;
    let fourth = server(&db).await;
    assert_eq!(epoch(&fourth).await, noticed, "it is noticed once, also while the storage is not adopted");
    fourth.stop().await;
}

#[on_each_database]
async fn an_operator_can_report_a_restore_that_leaves_no_trace(db: TestDb) {
    let first = server(&db).await;
    let (old_epoch, seen) = (epoch(&first).await, upload(&first, "before").await);
    first.stop().await;
    assert_eq!(run(&db, &["storage", "restored"]).0, 0);
    let second = server(&db).await;
    assert_ne!(epoch(&second).await, old_epoch);
    assert_eq!(resume(&second.client("alice"), seen).await.1["type"], "stream:reset");
    second.stop().await;
}
