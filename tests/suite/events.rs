//! Events reach the users they concern: each once, in order, including those missed while disconnected.

use std::time::Duration;

use futures_util::FutureExt;
use landfall_server::delivery::fan_out::{Filter, Next};
use landfall_server::delivery::progress::{self, Owed};
use landfall_server::queue::rescue::RescueWorker;
use landfall_server::recovery::Sweep;
use landfall_store::wake::Signal;
use landfall_store::{Error, Tx, Write, args};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::support::fault_injector::{Break, PlannedFaults};
use crate::support::offline_app::{OfflineApp, Sql};
use crate::support::script::Gate;
use crate::support::stream::{EVENTS, EventStream, is_state};
use crate::support::{
    Client, Script, Setup, TestDb, TestServer, batch_summary, manual_clock, on_each_database, until,
};
use landfall_core::caller::{Reach, TenantUser};
use landfall_core::lifecycle::Status;

const PATH_TO_READY: [&str; 7] =
    ["registered", "uploaded", "queued", "extracting", "chunking", "embedding", "ready"];

async fn scripted_server(db: &TestDb) -> TestServer {
    Setup::default().work(Script::new()).start(db).await
}

fn ids(events: &[Value]) -> Vec<i64> {
    events.iter().map(|event| event["id"].as_i64().expect("an id")).collect()
}

fn states(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["data"]["to"].as_str().expect("a state")).collect()
}

/// Inserts events for which nothing happened.
async fn insert_events(server: &TestServer, user: &str, count: usize, size: usize) {
    let sql = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
               INSERT INTO events (at, kind, tenant_id, user_id, data)
               SELECT $2, 'file:cleaned-up', $3, $3, $4 FROM n";
    let data = json!({ "fileId": uuid::Uuid::nil(), "tenantId": user, "reason": "x".repeat(size), "sizeReclaimed": 0 });
    let change = Sql(sql.to_owned(), args![count, server.app.clock.now(), user, data]);
    server.app.db.write(change).await.expect("it is written");
}

/// Opens a connection, asks for events, and reads none of them.
async fn open_and_never_read(server: &TestServer, client: &Client, headers: &str) -> TcpStream {
    let address = server.base.strip_prefix("http://").expect("an address");
    let mut stream = TcpStream::connect(address).await.expect("it is there");
    let request = format!(
        "GET {EVENTS} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n{headers}\r\n",
        client.token
    );
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    stream
}

async fn until_open(server: &TestServer, count: usize) {
    until(&format!("{count} streams are open"), async || server.app.fan_out.open_streams() == count).await;
}

#[on_each_database]
async fn every_state_change_of_a_file_is_sent_as_it_happens(db: TestDb) {
    let server = scripted_server(&db).await;
    let alice = server.client("alice");
    let mut stream = EventStream::open(&alice, "").await;
    let batch = alice.open_batch(1).await;
    let file = alice.upload_in(&batch, "a.txt", b"hello").await;
    let events = stream.up_to(|event| event["type"] == "batch:completed").await;
    let (steps, others): (Vec<Value>, Vec<Value>) =
        events.into_iter().partition(|event| event["type"] == "file:status-changed");
    assert_eq!(states(&steps), PATH_TO_READY);
    assert!(steps.iter().all(|event| event["data"]["fileId"] == file && event["data"]["batchId"] == batch));
    assert!(steps.iter().all(|event| event["userId"] == "alice" && event["at"].is_string()));
    assert_eq!(steps[4]["data"]["from"], "extracting");
    let all = batch_summary(1, 1, 0);
    assert_eq!(others[0]["type"], "batch:progress");
    assert_eq!((&others[0]["data"]["ready"], &others[0]["data"]["fileCount"]), (&json!(1), &json!(1)));
    assert_eq!((&others[1]["data"]["batchId"], &others[1]["data"]["summary"]), (&json!(batch), &all));
    assert_eq!(others.len(), 2);
}

#[on_each_database]
async fn a_failure_is_sent_with_its_reason(db: TestDb) {
    let work = Script::new().then(
        landfall_core::lifecycle::Stage::Extract,
        crate::support::Step::Fail(landfall_core::failure::Code::ParseError),
    );
    let server = Setup::default().work(work).start(&db).await;
    let alice = server.client("alice");
    let mut stream = EventStream::open(&alice, "").await;
    let file = alice.upload("a.txt", b"hello").await;
    let events = stream.up_to(|event| event["type"] == "notification:created").await;
    let failed = events.iter().find(|event| is_state(event, &file, "failed")).expect("it failed");
    let message = landfall_core::reason::sentences("PARSE_ERROR", "scripted PARSE_ERROR", Status::Failed);
    let error = json!({ "code": "PARSE_ERROR", "class": "DOCUMENT_ERROR", "message": message });
    assert_eq!(failed["data"]["error"], error);
}

#[on_each_database]
async fn users_get_their_own_events_and_administrators_get_all(db: TestDb) {
    let server = scripted_server(&db).await;
    let (alice, bob, root) = (server.client("alice"), server.client("bob"), server.admin());
    let mut all = EventStream::open(&root, "?scope=all").await;
    let mut of_alice = EventStream::open(&alice, "").await;
    let mut of_bob = EventStream::open(&bob, "").await;
    let mut of_root = EventStream::open(&root, "").await;
    let hers = alice.upload("a.txt", b"hello").await;
    server.idle().await;
    insert_events(&server, "", 1, 1).await;
    let his = bob.upload("b.txt", b"hello").await;
    let mine = root.upload("c.txt", b"hello").await;
    server.idle().await;
    let of = |file: String| move |event: &Value| is_state(event, &file, "ready");
    for (stream, user, file) in
        [(&mut of_alice, "alice", hers), (&mut of_bob, "bob", his.clone()), (&mut of_root, "root", mine)]
    {
        let events = stream.up_to(of(file)).await;
        assert_eq!(events.len(), PATH_TO_READY.len());
        assert!(events.iter().all(|event| event["userId"] == user), "{events:?}");
    }
    let events = all.up_to(of(his)).await;
    assert!(events.iter().any(|event| event["userId"] == "alice"));
    let systems = |event: &&Value| event["type"] == "file:cleaned-up" && event["userId"].is_null();
    let systems: Vec<_> = events.iter().filter(systems).collect();
    assert_eq!(systems.len(), 1, "system events are for administrators");
    EventStream::refused(&alice, "?scope=all").await.refused(403, "FORBIDDEN");
}

#[on_each_database]
async fn a_client_that_reconnects_gets_missed_events_once_and_in_order(db: TestDb) {
    let server = scripted_server(&db).await;
    let alice = server.client("alice");
    let first = alice.upload("a.txt", b"hello").await;
    server.idle().await;
    let mut stream = EventStream::open(&alice, "?after=0").await;
    let all = stream.up_to(|event| is_state(event, &first, "ready")).await;
    assert_eq!(states(&all), PATH_TO_READY);
    for seen in 0..all.len() {
        let after = all[seen]["id"].as_i64().unwrap();
        let second = alice.upload("b.txt", b"hello").await;
        let by_address = alice.request(Method::GET, &format!("{EVENTS}?after={after}"));
        // The header is newer than the URL, which a browser never changes.
        let by_header =
            alice.request(Method::GET, &format!("{EVENTS}?after=0")).header("last-event-id", after);
        for request in [by_address, by_header] {
            let mut stream = EventStream::begin(request).await;
            let open = stream.next().await.unwrap();
            assert_eq!((&open["type"], &open["id"]), (&json!("stream:open"), &json!(after)));
            let events = stream.up_to(|event| is_state(event, &second, "ready")).await;
            assert!(ids(&events).is_sorted_by(|a, b| a < b));
            assert!(ids(&events).iter().all(|id| *id > after));
            assert_eq!(events[..all.len() - seen - 1], all[seen + 1..]);
        }
    }
}

#[on_each_database]
async fn a_client_without_a_position_starts_at_the_present(db: TestDb) {
    let server = scripted_server(&db).await;
    let alice = server.client("alice");
    alice.upload("old.txt", b"hello").await;
    server.idle().await;
    let mut stream = EventStream::open(&alice, "").await;
    let file = alice.upload("new.txt", b"hello").await;
    let events = stream.up_to(|event| is_state(event, &file, "ready")).await;
    assert!(events.iter().all(|event| event["data"]["fileId"] == file));
    assert_eq!(events.len(), PATH_TO_READY.len());
}

#[on_each_database]
async fn clients_that_connect_during_heavy_activity_miss_nothing(db: TestDb) {
    let server = scripted_server(&db).await;
    let alice = server.client("alice");
    let names: Vec<String> = (0..60).map(|number| format!("{number}.txt")).collect();
    let listen = async {
        let mut streams = Vec::new();
        for _ in 0..15 {
            streams.push(EventStream::open(&alice, "?after=0").await);
        }
        streams
    };
    let ((batch, _), streams) = tokio::join!(alice.upload_all(&names), listen);
    server.idle().await;
    let mut expected = Vec::new();
    for mut stream in streams {
        let events = stream.up_to(|event| event["type"] == "batch:completed").await;
        assert_eq!(events.iter().filter(|event| event["data"]["to"] == "ready").count(), 60);
        assert!(ids(&events).is_sorted_by(|a, b| a < b), "each once and in order");
        if expected.is_empty() {
            expected.clone_from(&events);
        }
        assert_eq!(events, expected);
    }
    assert_eq!(alice.batch(&batch).await["status"], "completed");
}

#[on_each_database]
async fn a_client_that_was_away_too_long_is_informed(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    insert_events(&server, "alice", 3, 1).await;
    let mut stream = EventStream::open(&alice, "?after=0").await;
    let old = stream.next().await.unwrap()["id"].as_i64().unwrap();
    clock.advance(Duration::from_hours(24 * 31));
    let report = server.app.retention.sweep_once(server.app.clock.now()).await.expect("it runs");
    assert!(report.errors.is_empty());
    let file = alice.upload("a.txt", b"hello").await;
    let mut stream = EventStream::begin(alice.request(Method::GET, &format!("{EVENTS}?after={old}"))).await;
    let gap = stream.next().await.unwrap();
    assert_eq!((&gap["type"], &gap["data"]["after"]), (&json!("stream:gap"), &json!(old)));
    assert_eq!(gap["data"]["resumesAfter"], gap["id"]);
    assert_eq!(states(&stream.up_to(|event| is_state(event, &file, "ready")).await), PATH_TO_READY);
    // From there on the stream works normally.
    EventStream::open(&alice, &format!("?after={}", gap["id"])).await;
}

#[on_each_database]
async fn an_id_that_does_not_exist_is_not_waited_for(db: TestDb) {
    let server = scripted_server(&db).await;
    let alice = server.client("alice");
    let mut stream =
        EventStream::begin(alice.request(Method::GET, &format!("{EVENTS}?after=900000000000"))).await;
    assert_eq!(stream.next().await.unwrap()["type"], "stream:gap");
    let file = alice.upload("a.txt", b"hello").await;
    assert_eq!(states(&stream.up_to(|event| is_state(event, &file, "ready")).await), PATH_TO_READY);
}

#[on_each_database]
async fn a_client_can_subscribe_to_some_events_only(db: TestDb) {
    let server = scripted_server(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(1).await;
    for past in [false, true] {
        let after = if past { "&after=0" } else { "" };
        let open = async |query: &str| EventStream::open(&alice, &format!("?{query}{after}")).await;
        let mut of_batch = open(&format!("batchId={batch}")).await;
        let mut completions = open("types=batch:completed,batch:expired").await;
        let mut both = open(&format!("types=batch:progress&batchId={batch}")).await;
        if !past {
            alice.upload("other.txt", b"hello").await;
            alice.upload_in(&batch, "a.txt", b"hello").await;
            server.idle().await;
        }
        let events = of_batch.up_to(|event| event["type"] == "batch:completed").await;
        assert!(events.iter().all(|event| event["data"]["batchId"] == batch));
        assert_eq!(events.len(), PATH_TO_READY.len() + 2);
        assert_eq!(completions.next().await.unwrap()["type"], "batch:completed");
        assert_eq!(both.next().await.unwrap()["type"], "batch:progress");
    }
    EventStream::refused(&alice, "?types=file:danced").await.refused(400, "INVALID_REQUEST");
    EventStream::refused(&alice, "?batchId=x").await.refused(404, "BATCH_NOT_FOUND");
    EventStream::refused(&alice, "?after=soon").await.refused(400, "INVALID_CURSOR");
    EventStream::refused(&alice, "?after=-1").await.refused(400, "INVALID_CURSOR");
    EventStream::refused(&alice, "?afterwards=1").await.refused(400, "INVALID_REQUEST");
    alice.get(EVENTS).await.refused(406, "NOT_ACCEPTABLE");
    let half = alice.request(Method::GET, EVENTS).header("upgrade", "websocket");
    alice.send(half).await.refused(400, "INVALID_UPGRADE");
}

#[on_each_database]
async fn a_stream_can_end_after_the_stored_events(db: TestDb) {
    let server = scripted_server(&db).await;
    let alice = server.client("alice");
    alice.upload("a.txt", b"hello").await;
    server.idle().await;
    let mut events = EventStream::open(&alice, "?after=0&follow=false").await.rest().await;
    let end = events.pop().unwrap();
    assert_eq!((&end["type"], &end["data"]["code"]), (&json!("stream:end"), &json!("CAUGHT_UP")));
    assert_eq!(states(&events), PATH_TO_READY);
}

#[on_each_database]
async fn a_ticket_opens_a_stream_for_a_limited_time_and_nothing_else(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let issued = alice.post("/api/v2/uploads/events/ticket", json!({})).await.ok();
    let ticket = issued["ticket"].as_str().unwrap();
    assert_eq!(issued["expiresAt"], "2026-01-02T03:04:35Z");
    // Without any header, like a browser.
    let anonymous = Client::new(server.base.clone(), String::new());
    let with = |ticket: &str| anonymous.http.get(format!("{}{EVENTS}?ticket={ticket}", server.base));
    let mut stream = EventStream::begin(with(ticket)).await;
    assert_eq!(stream.next().await.unwrap()["type"], "stream:open");
    let file = alice.upload("a.txt", b"hello").await;
    assert_eq!(states(&stream.up_to(|event| is_state(event, &file, "ready")).await), PATH_TO_READY);

    let refused = async |ticket: &str, code: &str| {
        anonymous.send(with(ticket).header("accept", "text/event-stream")).await.refused(401, code);
    };
    let (claims, signature) = ticket.split_once('.').unwrap();
    refused("", "INVALID_TICKET").await;
    refused("a.b", "INVALID_TICKET").await;
    refused(&format!("{}.{signature}", claims.to_lowercase()), "INVALID_TICKET").await;
    refused(&format!("{claims}.{}", "0".repeat(64)), "INVALID_TICKET").await;
    // A ticket is no token, and a token is no ticket.
    refused(&alice.token, "INVALID_TICKET").await;
    Client::new(server.base.clone(), ticket.to_owned())
        .get("/api/v2/uploads/files")
        .await
        .refused(401, "INVALID_TOKEN");
    anonymous
        .send(anonymous.http.get(format!("{}{EVENTS}", server.base)))
        .await
        .refused(401, "UNAUTHENTICATED");
    clock.advance(Duration::from_secs(30));
    refused(ticket, "TICKET_EXPIRED").await;
}

#[on_each_database]
async fn a_stream_ends_with_the_token_that_opened_it(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let streams = [EventStream::open(&alice, "").await, {
        let ticket = alice.post("/api/v2/uploads/events/ticket", json!({})).await.ok()["ticket"]
            .as_str()
            .unwrap()
            .to_owned();
        EventStream::begin(alice.http.get(format!("{}{EVENTS}?ticket={ticket}", server.base))).await
    }];
    clock.advance(Duration::from_hours(24 * 1001));
    for stream in streams {
        let events = stream.rest().await;
        assert_eq!(events.last().unwrap()["data"]["code"], "TOKEN_EXPIRED");
    }
    until_open(&server, 0).await;
}

#[on_each_database]
async fn open_streams_are_limited_for_each_user_and_in_total(db: TestDb) {
    let server = Setup::default()
        .work(Script::new())
        .with("EVENT_STREAMS_PER_USER", 2)
        .with("MAX_EVENT_STREAMS", 3)
        .start(&db)
        .await;
    let (alice, bob) = (server.client("alice"), server.client("bob"));
    let first = EventStream::open(&alice, "").await;
    let _second = EventStream::open(&alice, "").await;
    let error = EventStream::refused(&alice, "").await.refused(429, "TOO_MANY_EVENT_STREAMS");
    assert_eq!(error["retryable"], true);
    let _his = EventStream::open(&bob, "").await;
    EventStream::refused(&bob, "").await.refused(503, "EVENT_STREAMS_EXHAUSTED");
    drop(first);
    until_open(&server, 2).await;
    EventStream::open(&alice, "").await;
}

#[on_each_database]
async fn streams_end_cleanly_when_the_server_stops(db: TestDb) {
    let server = scripted_server(&db).await;
    let stream = EventStream::open(&server.client("alice"), "").await;
    let (events, ()) = tokio::join!(stream.rest(), server.stop());
    assert_eq!(events.last().unwrap()["data"]["code"], "SERVER_STOPPING");
}

#[on_each_database]
async fn a_client_that_does_not_read_is_disconnected_and_does_not_slow_down_others(db: TestDb) {
    let server = Setup::default()
        .work(Script::new())
        .change(|config| config.events.buffer = 300)
        .change(|config| config.events.stall = Duration::from_millis(300))
        .start(&db)
        .await;
    let alice = server.client("alice");
    let handshake = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut lazy = Vec::new();
    for headers in ["Accept: text/event-stream\r\n", handshake] {
        lazy.push(open_and_never_read(&server, &alice, headers).await);
    }
    until_open(&server, 2).await;
    let mut reader = EventStream::open(&alice, "").await;
    let mut seen = Vec::new();
    // More than any kernel buffers for a connection.
    for _ in 0..30 {
        insert_events(&server, "alice", 10, 100_000).await;
        for _ in 0..10 {
            seen.push(reader.next().await.expect("the client that reads gets all events"));
        }
    }
    assert!(ids(&seen).is_sorted_by(|a, b| a < b));
    until_open(&server, 1).await;
    // Their connections are closed, not only removed from the list.
    for mut stream in lazy {
        let mut bytes = Vec::new();
        // A reset counts as an end.
        drop(stream.read_to_end(&mut bytes).await);
        assert!(bytes.len() < 30 * 10 * 100_000, "it did not get all");
    }
    let mut back = EventStream::open(&alice, "?after=0").await;
    let last = seen.last().unwrap()["id"].clone();
    assert_eq!(back.up_to(|event| event["id"] == last).await, seen);
}

#[on_each_database]
async fn a_slow_client_gets_the_buffered_events_and_then_the_end_without_a_gap(db: TestDb) {
    let server =
        Setup::default().work(Script::new()).change(|config| config.events.buffer = 4).start(&db).await;
    let filter = Filter { types: Vec::new(), batch: None };
    let alice = TenantUser::new("alice", "alice");
    let whose = Reach::User(alice.clone());
    let mut slow = server.app.fan_out.listen(alice, whose, filter, None).unwrap();
    while !matches!(slow.next().await.unwrap(), Next::CaughtUp) {}
    let mut bob = EventStream::open(&server.client("bob"), "").await;
    insert_events(&server, "alice", 10, 1).await;
    insert_events(&server, "bob", 1, 1).await;
    bob.next().await.expect("earlier events have been delivered by now");
    let mut kept = 0;
    loop {
        match slow.next().now_or_never().expect("it does not wait for more").unwrap() {
            Next::Messages(messages) => kept += messages.len(),
            Next::TooSlow => break,
            Next::CaughtUp => panic!("it had caught up before"),
        }
    }
    assert_eq!(kept, 4);
    drop((slow, bob));
    server.stop().await;
}

#[on_each_database]
async fn an_unresponsive_client_is_disconnected(db: TestDb) {
    let server = Setup::default()
        .work(Script::new())
        .change(|config| config.events.heartbeat = Duration::from_millis(20))
        .start(&db)
        .await;
    let alice = server.client("alice");
    let handshake = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut silent = open_and_never_read(&server, &alice, handshake).await;
    let mut bytes = Vec::new();
    silent.read_to_end(&mut bytes).await.expect("it is closed");
    until_open(&server, 0).await;
    // A client that reads is not disconnected for sending nothing.
    let mut stream = EventStream::open(&alice, "").await;
    for _ in 0..10 {
        stream.beat().await;
    }
    assert_eq!(server.app.fan_out.open_streams(), 1);
}

#[on_each_database]
async fn progress_is_sent_once_a_second_and_the_last_counts_with_the_end(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let mut stream = EventStream::open(&alice, "?types=batch:progress,batch:completed").await;
    let batch = alice.open_batch(4).await;
    let upload = async |name: &str| {
        alice.upload_in(&batch, name, b"hello").await;
        server.idle().await;
    };
    upload("a.txt").await;
    // Within the same second: postponed.
    upload("b.txt").await;
    upload("c.txt").await;
    let first = stream.next().await.unwrap();
    assert_eq!((&first["type"], &first["data"]["ready"]), (&json!("batch:progress"), &json!(1)));
    clock.advance(Duration::from_secs(1));
    let second = stream.next().await.unwrap();
    assert_eq!((&second["type"], &second["data"]["ready"]), (&json!("batch:progress"), &json!(3)));
    upload("d.txt").await;
    let last = stream.next().await.unwrap();
    assert_eq!(last["type"], "batch:completed");
    let expected = json!({ "batchId": batch, "total": 4, "fileCount": 4, "registered": 0, "uploaded": 0,
        "queued": 0, "scanning": 0, "extracting": 0, "chunking": 0, "embedding": 0, "ready": 4, "failed": 0,
        "cancelled": 0, "deleted": 0, "neverUploaded": 0, "summary": batch_summary(4, 4, 0) });
    assert_eq!(last["data"], expected);
    server.stop().await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    assert_eq!(
        progress::flush_due(&rest.app.db, rest.now() + chrono::TimeDelta::hours(1)).await.unwrap(),
        Owed::Nothing
    );
    assert_eq!(rest.number("SELECT COUNT(*) FROM events WHERE kind = 'batch:progress'").await, 2);
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn postponed_progress_is_sent_by_any_living_process(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(3).await;
    for name in ["a.txt", "b.txt"] {
        alice.upload_in(&batch, name, b"hello").await;
        server.idle().await;
    }
    server.stop().await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    let told = async || rest.number("SELECT COUNT(*) FROM events WHERE kind = 'batch:progress'").await;
    let now = rest.now();
    let due = progress::flush_due(&rest.app.db, now).await.unwrap();
    assert_eq!((due, told().await), (Owed::At(now + chrono::TimeDelta::seconds(1)), 1));
    clock.advance(Duration::from_secs(5));
    let flush_due = async || progress::flush_due(&rest.app.db, rest.now()).await.unwrap();
    tokio::join!(flush_due(), flush_due());
    assert_eq!((flush_due().await, told().await), (Owed::Nothing, 2));
}

/// Holds the rows of all batches until the gate is opened.
struct HoldBatches(Gate);

impl Write for HoldBatches {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.rows::<(Uuid,)>("SELECT id FROM batches FOR UPDATE", args![]).await?;
        self.0.wait().await;
        Ok(())
    }
}

#[tokio::test]
async fn progress_of_a_batch_that_another_transaction_holds_is_told_when_that_has_ended() {
    // On SQLite only one transaction writes.
    let Some(db) = TestDb::postgres().await else { return };
    let (clock, held) = (manual_clock(), Gate::default());
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(3).await;
    let mut stream = EventStream::open(&alice, "?types=batch:progress").await;
    for name in ["a.txt", "b.txt"] {
        alice.upload_in(&batch, name, b"hello").await;
        server.idle().await;
    }
    stream.next().await.expect("the first is told at once");
    let holding = tokio::spawn({
        let (db, held) = (server.app.db.clone(), held.clone());
        async move { db.write(HoldBatches(held)).await }
    });
    held.reached().await;
    clock.advance(Duration::from_secs(1));
    let flush_due = async || progress::flush_due(&server.app.db, server.app.clock.now()).await.unwrap();
    assert_eq!(flush_due().await, Owed::Held);
    held.open();
    holding.await.unwrap().unwrap();
    assert_eq!(stream.next().await.expect("it is told")["data"]["ready"], 2);
    assert_eq!(flush_due().await, Owed::Nothing);
    server.stop().await;
}

fn is_progress_signalled(app: &OfflineApp) -> bool {
    app.app.db.wake().wait(Signal::Progress).now_or_never().is_some()
}

#[on_each_database]
async fn progress_that_a_dead_process_owed_is_looked_for_when_its_files_are_rescued(db: TestDb) {
    let rest = OfflineApp::open(&db, &manual_clock(), &[]).await;
    let dead = Uuid::new_v4();
    let sql = "INSERT INTO workers (id, name, stages, services, lock_key, started_at, heartbeat_at)
               VALUES ($1, 'dead', '', '', 7, $2, $2)";
    rest.sql(sql, args![dead, rest.now()]).await;
    assert!(!is_progress_signalled(&rest));
    rest.app.db.write(RescueWorker { worker: dead, now: rest.now() }).await.unwrap();
    assert!(is_progress_signalled(&rest));
}

struct OweProgress;

impl Write for OweProgress {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.signal(Signal::Progress);
        Ok(())
    }
}

#[tokio::test]
async fn what_a_commit_owes_is_looked_for_although_its_answer_was_lost() {
    let Some(db) = TestDb::postgres().await else { return };
    let faults = PlannedFaults::new();
    let (clock, work) = (manual_clock(), Script::new());
    let rest = OfflineApp::open_with(&db, &clock, &[], work, Some(faults.clone())).await;
    faults.reset();
    rest.app.db.write(OweProgress).await.unwrap();
    let (_, commits) = faults.steps();
    assert!(is_progress_signalled(&rest));
    let answer = *commits.last().expect("it is committed");
    faults.break_at(answer, Break::Once);
    rest.app.db.write(OweProgress).await.unwrap_err();
    assert!(is_progress_signalled(&rest));
}

#[test]
fn every_event_type_is_in_the_documents() {
    let document = include_str!("../../docs/events.md");
    let documented: Vec<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .filter(|name| name.contains(':') && !name.contains('=') && !name.starts_with("stream:"))
        .collect();
    assert_eq!(
        documented,
        landfall_core::event::EventKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>()
    );
}
