//! The data of a released version: migrated, served and worked on, with nothing lost and books that balance.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use landfall_core::clock::ManualClock;
use landfall_core::lifecycle::Status;
use landfall_server::app::{App, Replacements};
use landfall_server::content::index;
use landfall_server::delivery::webhooks::target::Names;
use landfall_server::recovery::old_terms;
use landfall_store::{Db, Error, SchemaError, args};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sqlx::Connection;
use sqlx_postgres::PgConnection;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::fixture::{self, Fixture, list, text};
use crate::support::hooks::Hook;
use crate::support::offline_app::OfflineApp;
use crate::support::process::Process;
use crate::support::repeated_sweeps::rows;
use crate::support::stream::EventStream;
use crate::support::webhook_receiver::Receiver;
use crate::support::{
    Client, Script, Setup, TestDb, TestServer, batch_summary, config, manual_clock, on_each_database, until,
};

/// The hash of each migration that was released.
const RELEASED: &[(&str, &str, &str)] = &[(
    "0001_files.sql",
    include_str!("../../migrations/0001_files.sql"),
    "e43858dab6a9714b374b58068972eb2c0123cdcd61881a048e07931a0e000ab7",
)];

/// States that came after 0.1.0. One that is added goes here, and into the fixture of the release that brings it.
const NEWER_STATES: [Status; 0] = [];

/// Answers that follow from the settings, and not from the data.
const OF_THE_SETTINGS: [&str; 1] = ["maxAttempts"];

const VERSION: &str = env!("CARGO_PKG_VERSION");

const FILES: &str = "/api/v2/uploads/files";
const WORKING: [&str; 5] = ["queued", "scanning", "extracting", "chunking", "embedding"];
const AT_REST: [&str; 3] = ["ready", "failed", "cancelled"];

#[test]
fn a_migration_that_was_released_is_never_changed() {
    for (name, migration, released) in RELEASED {
        let hash = hex::encode(Sha256::digest(migration));
        assert_eq!(
            &hash, released,
            "migrations/{name} was released: databases out there were made with it, and a server refuses one that was \
             made with another text. Put it back as it was, and write a new migration"
        );
    }
}

#[test]
fn the_fixture_has_files_in_every_state() {
    let known = Status::ALL.iter().filter(|status| !NEWER_STATES.contains(status));
    let known: BTreeSet<&str> = known.map(|status| status.name()).collect();
    for expected in fixture::all_expected() {
        let found: BTreeSet<&str> = list(&expected["files"]).map(|file| text(&file["status"])).collect();
        assert_eq!(
            found, known,
            "a state that 0.1.0 did not have goes into NEWER_STATES, and into the fixture of the next release"
        );
    }
}

/// Everything that the old version answered must be answered still. There may be more.
#[track_caller]
fn assert_still(what: &str, was: &Value, is: &Value) {
    match (was, is) {
        (Value::Object(was), Value::Object(_)) => {
            for (name, was) in was.iter().filter(|(name, _)| !OF_THE_SETTINGS.contains(&name.as_str())) {
                assert_still(&format!("{what}.{name}"), was, &is[name]);
            }
        }
        (Value::Array(was), Value::Array(is)) => {
            assert_eq!(was.len(), is.len(), "{what} has as many as before: {was:?} {is:?}");
            for (index, (was, is)) in was.iter().zip(is).enumerate() {
                assert_still(&format!("{what}[{index}]"), was, is);
            }
        }
        // Steps that had no reason have one now.
        (Value::Null, Value::String(_)) if what.ends_with(".reason") => {}
        // What a stage said is still said, and more with it.
        (Value::String(was), Value::String(is))
            if [".message", ".errorMessage", ".error"].iter().any(|it| what.ends_with(it)) =>
        {
            let was = was.split("; will retry").next().unwrap_or_default();
            assert!(is.starts_with(was), "{what} begins as before: {was} {is}");
        }
        _ => assert_eq!(was, is, "{what} is as before"),
    }
}

async fn assert_file_is_as_it_was(client: &Client, file: &Value) {
    let (name, path) = (text(&file["name"]), format!("{FILES}/{}", text(&file["id"])));
    let history = client.get(&format!("{path}/history?limit=200")).await.ok();
    assert_still(&format!("the history of {name}"), &file["history"], &history["history"]);
    if file["status"] == "deleted" {
        client.get(&path).await.refused(410, "FILE_DELETED");
        return;
    }
    assert_still(name, &file["shown"], &client.get(&path).await.ok());
    if file["status"] != "ready" {
        return;
    }
    let chunks = client.get(&format!("{path}/chunks?limit=200")).await.ok();
    assert_still(&format!("the chunks of {name}"), &file["chunks"], &chunks["chunks"]);
    for kind in ["text", "result"] {
        let answer = client.request(Method::GET, &format!("{path}/{kind}")).send().await.expect("an answer");
        assert_eq!(answer.text().await.expect("text"), text(&file[kind]), "the {kind} of {name}");
    }
}

async fn assert_bytes_are_as_they_were(client: &Client, file: &Value) {
    let path = format!("{FILES}/{}/download", text(&file["id"]));
    let answer = client.request(Method::GET, &path).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 200, "{file}");
    let bytes = answer.bytes().await.expect("bytes");
    assert_eq!(bytes.len() as u64, file["size"].as_u64().expect("a number"), "{file}");
    assert_eq!(hex::encode(md5::Md5::digest(&bytes)), text(&file["md5"]), "{file}");
}

#[on_each_database]
async fn what_rested_under_0_1_0_is_served_as_it_was(db: TestDb) {
    let fixture = Fixture::unpack(&db).await;
    let server = Setup::default().clock(&fixture.clock()).with("ROLE", "api").start(&db).await;
    let expected = &fixture.expected;

    for file in fixture.files_in(&["ready", "failed", "cancelled", "deleted"]) {
        assert_file_is_as_it_was(&fixture.client(&server, file), file).await;
    }
    let infected = |file: &&Value| file["shown"]["error"]["code"] == "INFECTED";
    for file in fixture.files().filter(|file| !infected(file)) {
        if !["registered", "deleted"].contains(&text(&file["status"])) {
            assert_bytes_are_as_they_were(&fixture.client(&server, file), file).await;
        }
    }
    // The words are indexed again in the background, which may take a moment.
    old_terms::sweep(&server.app.db).await.expect("the words are indexed again");
    for search in list(&expected["searches"]) {
        let hits = fixture.client(&server, search).search(text(&search["query"])).await;
        assert!(hits.iter().any(|hit| hit["fileId"] == search["file"]), "{search} finds {hits:?}");
    }
    for batch in list(&expected["batches"]) {
        let shown = fixture.client(&server, batch).batch(text(&batch["id"])).await;
        assert_still("a batch", &batch["shown"], &shown);
    }
    for quota in list(&expected["quotas"]) {
        let shown = fixture.client(&server, quota).get("/api/v2/uploads/quota").await.ok();
        assert_still("a quota", &quota["shown"], &shown);
    }
    for operation in list(&expected["operations"]) {
        let path = format!("/api/v2/uploads/operations/{}", text(&operation["shown"]["operationId"]));
        let shown = fixture.client(&server, operation).get(&path).await.ok();
        assert_still("an operation", &operation["shown"], &shown);
    }
    let bob = server.client_of("bob", "acme");
    let notifications = bob.get("/api/v2/notifications?limit=200").await.ok();
    assert_still("the notifications", &expected["notifications"], &notifications);
    let jobs = server.admin().get("/api/v2/admin/jobs").await.ok();
    let known = |job: &&Value| list(&expected["jobs"]).any(|old| old["name"] == job["name"]);
    let jobs: Value = list(&jobs["jobs"]).filter(known).cloned().collect();
    assert_still("the jobs", &expected["jobs"], &jobs);
    assert_lists_have_all_files(&fixture, &server).await;
    assert_webhooks_are_as_they_were(&fixture, &server).await;
    assert_events_are_as_they_were(&bob, expected).await;
    assert_requests_can_be_repeated(&fixture, &server).await;
    let with_old_token = Client::new(server.base.clone(), text(&expected["token"]).to_owned());
    assert_eq!(with_old_token.get(FILES).await.ok(), bob.get(FILES).await.ok());
    server.stop().await;
}

/// 0.1.0 sorted lists by indexes of the files, and there was no other table of them.
async fn assert_lists_have_all_files(fixture: &Fixture, server: &TestServer) {
    let living = fixture.files().filter(|file| file["status"] != "deleted");
    let expected: BTreeSet<&str> = living.map(|file| text(&file["id"])).collect();
    for sort in ["createdAt", "fileName", "size"] {
        let page = server.admin().get(&format!("{FILES}?scope=all&sort={sort}&limit=200")).await.ok();
        let found: Vec<&str> = list(&page["files"]).map(|file| text(&file["fileId"])).collect();
        assert_eq!(found.len(), expected.len(), "{sort}");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "{sort}");
    }
}

async fn assert_webhooks_are_as_they_were(fixture: &Fixture, server: &TestServer) {
    for (name, webhook) in fixture.expected["webhooks"].as_object().expect("webhooks") {
        let client = if webhook["user"] == "root" { server.admin() } else { fixture.client(server, webhook) };
        let path = format!("/api/v2/webhooks/{}", text(&webhook["id"]));
        assert_still(name, &webhook["shown"], &client.get(&path).await.ok());
        let deliveries = client.get(&format!("{path}/deliveries?limit=200")).await.ok();
        for was in list(&webhook["deliveries"]) {
            let is =
                list(&deliveries["deliveries"]).find(|is| is["id"] == was["id"]).expect("it is still there");
            if !was["endedAt"].is_null() {
                assert_still(&format!("a delivery of {name}"), was, is);
            }
            // One that was pending when the old version was asked may have arrived before it was killed.
            for same in ["messageId", "eventId", "eventType"] {
                assert_eq!(was[same], is[same], "{was} {is}");
            }
        }
    }
}

async fn assert_events_are_as_they_were(client: &Client, expected: &Value) {
    let told: Vec<&Value> = list(&expected["events"]["told"]).collect();
    let mut stream = EventStream::open(client, "?after=0").await;
    // The description is about events of this version.
    stream.is_described = false;
    for was in told {
        assert_still("an event", was, &stream.next().await.expect("the stream goes on"));
    }
}

async fn assert_requests_can_be_repeated(fixture: &Fixture, server: &TestServer) {
    for repeated in list(&fixture.expected["repeated"]) {
        let client = fixture.client(server, repeated);
        let request =
            client.request(Method::POST, text(&repeated["path"])).body(text(&repeated["body"]).to_owned());
        let answer = client.send(request.header("idempotency-key", text(&repeated["key"]))).await.ok();
        assert_still("the answer to a repeated request", &repeated["answer"], &answer);
    }
}

/// A virus scanner that finds nothing; returns its address.
async fn lenient_scanner() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(pass(connection));
        }
    });
    address
}

async fn pass(mut connection: TcpStream) -> std::io::Result<()> {
    connection.read_exact(&mut [0; b"zINSTREAM\0".len()]).await?;
    loop {
        let length = connection.read_u32().await?;
        if length == 0 {
            return connection.write_all(b"stream: OK\0").await;
        }
        connection.read_exact(&mut vec![0; length as usize]).await?;
    }
}

/// A server as the old one was, but that no name of a host means anything to it: what listens at the address of an old
/// webhook today is not the receiver of then.
async fn server_like_the_old_one(db: &TestDb, clock: &ManualClock) -> TestServer {
    let names: Names = Arc::new(|_| async { Err(std::io::ErrorKind::NotFound.into()) }.boxed());
    Setup::default()
        .clock(clock)
        .names(names)
        .with("CLAMD_ADDRESS", lenient_scanner().await)
        .with("WEBHOOK_ALLOW_PRIVATE", "true")
        .with("POLL_INTERVAL_MS", 20)
        .start(db)
        .await
}

async fn lands(server: &TestServer, clock: &ManualClock, client: &Client, file: &str) -> Value {
    until("it lands", async || {
        server.idle().await;
        // What waits for its next attempt, or for a circuit to be tried again, waits by this clock.
        clock.advance(Duration::from_secs(5));
        AT_REST.contains(&client.status(file).await.as_str())
    })
    .await;
    client.file(file).await
}

#[on_each_database]
async fn what_0_1_0_left_unfinished_makes_landfall(db: TestDb) {
    let fixture = Fixture::unpack(&db).await;
    let clock = fixture.clock();
    let server = server_like_the_old_one(&db, &clock).await;
    let admin = server.admin();

    // What the killed process held goes back to the queue.
    for file in fixture.files_in(&["scanning", "extracting", "chunking", "embedding"]) {
        let (client, id) = (fixture.client(&server, file), text(&file["id"]));
        until("it is rescued", async || {
            let history = client.get(&format!("{FILES}/{id}/history?limit=200")).await.ok();
            list(&history["history"])
                .any(|entry| entry["to"] == "queued" && entry["errorCode"] == "WORKER_LOST")
        })
        .await;
    }
    server.idle().await;
    // Until then all that wait for them are where they were.
    let queues = admin.get("/api/v2/admin/queue-status").await.ok()["queues"].clone();
    for (name, queue) in queues.as_object().expect("queues") {
        let stage = name.trim_start_matches("file-");
        let was_paused = list(&fixture.expected["paused"]).any(|paused| paused == stage);
        assert_eq!(queue["paused"].is_object(), was_paused, "{stage}: {queue}");
        if was_paused {
            admin.post(&format!("/api/v2/admin/queues/{stage}/resume"), json!({})).await.ok();
        }
    }
    for file in fixture.files_in(&WORKING) {
        let (client, name) = (fixture.client(&server, file), text(&file["name"]));
        let landed = lands(&server, &clock, &client, text(&file["id"])).await;
        // The files of the operation that was under way have no text, with any version.
        let (status, code) =
            if name.starts_with("blank") { ("failed", Some("NO_TEXT")) } else { ("ready", None) };
        assert_eq!(
            (text(&landed["status"]), landed["error"]["code"].as_str()),
            (status, code),
            "{name}: {landed}"
        );
    }
    let operation = &fixture.expected["operation"];
    let path = format!("/api/v2/uploads/operations/{}", text(&operation["id"]));
    let client = fixture.client(&server, operation);
    until("the operation ends", async || {
        clock.advance(Duration::from_secs(1));
        client.get(&path).await.ok()["status"] == "stopped"
    })
    .await;
    for file in fixture.files_in(&["ready", "deleted"]) {
        assert_file_is_as_it_was(&fixture.client(&server, file), file).await;
    }
    assert_old_vectors_get_their_codes(&server).await;
    server.assert_audit_clean().await;

    complete_the_batch(&fixture, &server, &clock).await;
    retry_what_failed(&fixture, &server, &clock).await;
    receive_what_was_refused(&fixture, &server, &clock).await;
    use_it_as_if_it_were_new(&fixture, &server, &clock).await;
    server.assert_audit_clean().await;

    server.stop().await;
    let server = server_like_the_old_one(&db, &clock).await;
    outlive_the_deadlines(&fixture, &server, &clock).await;
    server.assert_audit_clean().await;
    server.stop().await;
}

/// The URL of the old version is not valid any more, a fresh one is. One is confirmed whose bytes it took, and two new ones come.
/// 0.1.0 had no codes of vectors.
async fn assert_old_vectors_get_their_codes(server: &TestServer) {
    let number = async |sql: &str| server.app.db.read().await.unwrap().number(sql, args![]).await.unwrap();
    until("all files are coded", async || number("SELECT COUNT(*) FROM uncoded_files").await == 0).await;
    let codes = number("SELECT CAST(COALESCE(SUM(entries), 0) AS BIGINT) FROM code_segments").await;
    assert_eq!(codes, number("SELECT COUNT(*) FROM chunk_index").await);
    assert!(codes > 0);
}

async fn complete_the_batch(fixture: &Fixture, server: &TestServer, clock: &ManualClock) {
    let batch = &fixture.expected["activeBatch"];
    let (client, id) = (fixture.client(server, batch), text(&batch["id"]));
    let ticket = &fixture.expected["ticket"];
    let url = format!("{}{}", server.base, text(&ticket["url"]));
    client.put(&url, text(&ticket["content"]).to_owned()).await.refused(403, "INVALID_SIGNATURE");
    let path = format!("{FILES}/{}/upload-url", text(&ticket["file"]));
    let fresh = client.post(&path, json!({})).await.ok();
    client.put(text(&fresh["uploadUrl"]), text(&ticket["content"]).to_owned()).await.ok();
    client.confirm(text(&ticket["file"])).await.ok();
    client.confirm(text(&fixture.file("uploaded.txt")["id"])).await.ok();
    for name in ["first-new.txt", "second-new.txt"] {
        let file = client.upload_in(id, name, b"The batch is full with this one.").await;
        assert_eq!(lands(server, clock, &client, &file).await["status"], "ready");
    }
    until("the batch is complete", async || {
        server.idle().await;
        client.batch(id).await["status"] == "completed"
    })
    .await;
    let summary = &client.batch(id).await["summary"];
    assert_eq!(summary, &batch_summary(8, 8, 0));

    // Of this one, half had come when the old version died.
    let half = fixture.file("half.txt");
    let (client, id) = (fixture.client(server, half), text(&half["id"]));
    let ticket = client.post(&format!("{FILES}/{id}/upload-url"), json!({})).await.ok();
    client.put(text(&ticket["uploadUrl"]), "Half of it was sent when the server died.").await.ok();
    client.confirm(id).await.ok();
    assert_eq!(lands(server, clock, &client, id).await["status"], "ready");
}

/// What failed for want of a service that works, or was called off, arrives. What is wrong in itself fails again.
async fn retry_what_failed(fixture: &Fixture, server: &TestServer, clock: &ManualClock) {
    for (name, code) in [
        ("broken-gateway.txt", None),
        ("broken-model.txt", None),
        ("refused.txt", None),
        ("suspect.txt", None),
        ("recalled.txt", None),
        ("not-a.pdf", Some("NOT_PDF")),
        ("damaged.docx", Some("PARSE_ERROR")),
    ] {
        let file = fixture.file(name);
        let (client, id) = (fixture.client(server, file), text(&file["id"]));
        let was = client.states(id).await.len();
        client.post(&format!("{FILES}/{id}/retry"), json!({})).await.ok();
        let landed = lands(server, clock, &client, id).await;
        assert_eq!(landed["error"]["code"].as_str(), code, "{name}: {landed}");
        assert_eq!(landed["status"], if code.is_some() { "failed" } else { "ready" }, "{name}");
        assert!(client.states(id).await.len() > was, "{name} has gone its way again");
    }
}

/// A webhook whose endpoint refused everything gets it at its new address, signed with the secret of then.
async fn receive_what_was_refused(fixture: &Fixture, server: &TestServer, clock: &ManualClock) {
    let refused = &fixture.expected["webhooks"]["refused"];
    let hook = Hook {
        client: fixture.client(server, refused),
        id: text(&refused["id"]).to_owned(),
        secret: text(&refused["secret"]).to_owned(),
    };
    let receiver = Receiver::serve([]).await;
    hook.change(json!({ "url": receiver.url })).await.ok();
    until("they arrive", async || {
        clock.advance(Duration::from_mins(1));
        let calls = receiver.calls();
        list(&refused["deliveries"]).all(|owed| calls.iter().any(|call| owed["messageId"] == call.id))
    })
    .await;
    assert!(receiver.calls().iter().all(|call| call.is_signed_with(&hook.secret)));
}

async fn use_it_as_if_it_were_new(fixture: &Fixture, server: &TestServer, clock: &ManualClock) {
    let client = server.client_of("bob", "acme");
    let before = client.get("/api/v2/uploads/quota").await.ok();
    let file = client.upload("parrot.txt", b"The parrot knows every port by its smell.").await;
    assert_eq!(lands(server, clock, &client, &file).await["status"], "ready");
    assert_eq!(client.search("parrot").await[0]["fileId"], file);
    let used = |quota: &Value| quota["bytes"]["used"].as_i64().expect("a number");
    let after = client.get("/api/v2/uploads/quota").await.ok();
    assert_eq!(used(&after), used(&before) + 41);
    // An old file is given up, and so is its share of the quota.
    let old = fixture.file("monday.txt");
    client.delete(&format!("{FILES}/{}", text(&old["id"]))).await.ok();
    let after = client.get("/api/v2/uploads/quota").await.ok();
    assert_eq!(used(&after), used(&before) + 41 - old["size"].as_i64().expect("a number"));
    assert!(client.search("fair wind").await.iter().all(|hit| hit["fileId"] != old["id"]));
}

/// An upload that is never confirmed is adopted when its time is over; then all jobs run.
async fn outlive_the_deadlines(fixture: &Fixture, server: &TestServer, clock: &ManualClock) {
    let adopted = fixture.file("adopted.txt");
    let client = fixture.client(server, adopted);
    clock.advance(Duration::from_hours(2));
    until("it is adopted", async || client.status(text(&adopted["id"])).await != "uploaded").await;
    assert_eq!(lands(server, clock, &client, text(&adopted["id"])).await["status"], "ready");
    for job in list(&fixture.expected["jobs"]) {
        let run = server.run_job(text(&job["name"])).await;
        assert_eq!(run["run"]["errors"], json!([]), "{run}");
    }
}

/// Every table, column, index and constraint.
async fn schema(db: &Db) -> Vec<String> {
    const SQLITE: &str =
        "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || COALESCE(sql, '') FROM sqlite_schema";
    const POSTGRES: &str = "
        SELECT CONCAT_WS(' ', table_name, ordinal_position, column_name, data_type, udt_name, domain_name, is_nullable,
                         column_default, is_identity, identity_generation)
        FROM information_schema.columns WHERE table_schema = 'public'
        UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL SELECT CONCAT_WS(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
                  WHERE connamespace = 'public'::regnamespace
        UNION ALL SELECT CONCAT_WS(' ', typname, typtype, format_type(typbasetype, typtypmod)) FROM pg_type
                  WHERE typnamespace = 'public'::regnamespace
        UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname LIKE 'landfall%'";
    let mut tx = db.read().await.expect("a connection");
    let sql = if tx.is_postgres() { POSTGRES } else { SQLITE };
    let rows: Vec<(String,)> = tx.rows(sql, args![]).await.expect("the schema");
    let mut schema: Vec<String> = rows.into_iter().map(|(row,)| row).collect();
    schema.sort();
    schema
}

#[on_each_database]
async fn a_database_of_0_1_0_is_given_the_schema_of_a_new_one(db: TestDb) {
    Fixture::unpack(&db).await;
    let mut schemas = Vec::new();
    for url in [&db.url, &db.another().await] {
        let opened = Db::open(url, 2).await.expect("it opens");
        index::install(&opened).await.expect("it has an index");
        schemas.push(schema(&opened).await);
        opened.close().await;
    }
    let [migrated, new] = &schemas[..] else { unreachable!("there are two") };
    assert!(new.iter().any(|part| part.contains("chunk_index_by_owner")), "{new:#?}");
    let lacking: Vec<&String> = new.iter().filter(|part| !migrated.contains(part)).collect();
    let left_over: Vec<&String> = migrated.iter().filter(|part| !new.contains(part)).collect();
    assert!(
        lacking.is_empty() && left_over.is_empty(),
        "a database that is upgraded lacks {lacking:#?} and has {left_over:#?} instead: every change of the schema, also of \
         the index, is a migration"
    );
}

/// Changes what the database says about its migrations. Then no server starts, for this reason, and nothing is changed.
async fn refusal(db: &TestDb, sql: &str) -> SchemaError {
    // It was opened before, so it can tell what happens.
    let rest = OfflineApp::open(db, &manual_clock(), &[]).await;
    rest.sql(sql, args![]).await;
    let before = (rows(&rest.app).await, rest.stored());
    let replacements = Replacements { work: Some(Script::new()), ..Replacements::default() };
    let refusal = match App::start(config(db, &[]), replacements).await {
        Err(Error::Migration(refusal)) => refusal,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it started"),
    };
    for command in ["serve", "audit", "reindex"] {
        let mut program = Process::command(db);
        let output = program.arg(command).stderr(Stdio::piped()).output().expect("it runs");
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!((output.status.code(), said), (Some(2), format!("landfall: {refusal}\n")), "{command}");
        assert_eq!(output.stdout, b"", "{command}");
    }
    let workers = rest.number("SELECT COUNT(*) FROM workers").await;
    assert_eq!((before, 1), ((rows(&rest.app).await, rest.stored()), workers), "nothing was changed");
    refusal
}

#[on_each_database]
async fn an_older_program_refuses_a_newer_schema(db: TestDb) {
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
               SELECT version + 1000, 'of the future', success, checksum, execution_time FROM _sqlx_migrations";
    let refusal = Box::pin(refusal(&db, sql)).await;
    let SchemaError::Newer { database, program, written_by } = &refusal else { panic!("{refusal}") };
    assert_eq!((*database, written_by.as_deref()), (program + 1000, Some(VERSION)));
    let sentence = refusal.to_string();
    for part in [
        &format!("last written by Landfall {VERSION}"),
        &format!("schema version {database}"),
        &format!("This is Landfall {VERSION}"),
        &format!("up to {program}"),
        &format!("run Landfall {VERSION} or a newer one"),
        "backup",
    ] {
        assert!(sentence.contains(part), "{sentence}");
    }
}

#[on_each_database]
async fn a_refusal_names_the_program_that_wrote_the_database_last(db: TestDb) {
    let rest = OfflineApp::open(&db, &manual_clock(), &[]).await;
    let since = "SELECT '7.8.9', 1004, since FROM program_versions";
    rest.sql(&format!("INSERT INTO program_versions (version, schema_version, since) {since}"), args![])
        .await;
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
               SELECT version + 1000, 'of the future', success, checksum, execution_time FROM _sqlx_migrations";
    rest.sql(sql, args![]).await;
    let refused = Db::open(&db.url, 2).await.err().expect("it is refused").to_string();
    assert!(
        refused.contains("by Landfall 7.8.9") && refused.contains("run Landfall 7.8.9 or a newer"),
        "{refused}"
    );
}

#[on_each_database]
async fn a_database_of_another_program_is_refused_and_left_as_it_is(db: TestDb) {
    let url = db.another().await;
    let create = "CREATE TABLE invoices (id BIGINT PRIMARY KEY)";
    if let Some(file) = url.strip_prefix("sqlite://") {
        let other = rusqlite::Connection::open(file).expect("a database");
        other.execute_batch(create).expect("a table");
    } else {
        let mut other = PgConnection::connect(&url).await.expect("PostgreSQL answers");
        sqlx::query(create).execute(&mut other).await.expect("a table");
    }
    for _ in 0..2 {
        let refused = Db::open(&url, 2).await.err().expect("it is refused").to_string();
        for part in ["another program", "invoices", "DATABASE_URL", VERSION] {
            assert!(refused.contains(part), "{refused}");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let db = TestDb::sqlite();
    let file = db.folder.path().join("notes.txt");
    let text = "Dear diary, today we sighted land. ".repeat(100);
    std::fs::write(&file, &text).expect("it is written");
    let refused = Db::open(&format!("sqlite://{}", file.display()), 2).await.err().expect("it is refused");
    let refused = refused.to_string();
    assert!(refused.contains("is not an SQLite database") && refused.contains("DATABASE_URL"), "{refused}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is read"), text);
}

#[on_each_database]
async fn a_database_that_was_made_with_another_migration_is_refused(db: TestDb) {
    let sql = "UPDATE _sqlx_migrations SET checksum = (SELECT value FROM secrets LIMIT 1) WHERE version = 1";
    let refusal = Box::pin(refusal(&db, sql)).await;
    assert!(matches!(refusal, SchemaError::Changed { version: 1, .. }), "{refusal}");
    assert!(refusal.to_string().contains(&format!("last written by Landfall {VERSION}")), "{refusal}");
    assert!(refusal.to_string().starts_with("Migration 1 of the database is another one"), "{refusal}");
}
