//! A file receives one upload at a time, at a minimum rate, and never more bytes than were registered for it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use landfall_core::clock::ManualClock;
use landfall_core::refusal::RefusalCode;
use landfall_server::intake::upload::Upload;
use landfall_store::{Error, args};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::support::actions::{TestUser, offline_app};
use crate::support::fault_injector::{HoldPoint, PlannedFaults};
use crate::support::fixture::text;
use crate::support::{Script, Setup, TestDb, TestServer, manual_clock, on_each_database, until};

const MEGABYTE: usize = 1 << 20;

/// A request whose body does not come to its end.
async fn begin_put(server: &TestServer, url: &str, length: usize, sent: &[u8]) -> TcpStream {
    let (host, path) = url.strip_prefix("http://").expect("a URL").split_once('/').expect("a path");
    let mut socket =
        TcpStream::connect(server.base.strip_prefix("http://").expect("a URL")).await.expect("open");
    let head = format!("PUT /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n");
    socket.write_all(head.as_bytes()).await.expect("it is sent");
    socket.write_all(sent).await.expect("it is sent");
    socket
}

async fn answer(socket: &mut TcpStream) -> String {
    let mut read = vec![0; 4_096];
    let length = socket.read(&mut read).await.expect("an answer");
    String::from_utf8_lossy(&read[..length]).into_owned()
}

/// How many uploads lie unfinished in the storage.
fn unfinished(db: &TestDb) -> usize {
    std::fs::read_dir(db.folder.path().join("blobs/incoming")).expect("a folder").count()
}

#[on_each_database]
async fn sixty_uploads_of_one_file_take_the_room_of_one(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "a", MEGABYTE).await;
    let url = text(&ticket["uploadUrl"]);
    let mut first = begin_put(&server, url, MEGABYTE, &[b'a'; 1_000]).await;
    until("the first arrives", async || unfinished(&db) == 1).await;
    for _ in 0..59 {
        let mut other = begin_put(&server, url, MEGABYTE, b"").await;
        let answer = answer(&mut other).await;
        assert!(answer.starts_with("HTTP/1.1 409") && answer.contains("UPLOAD_IN_PROGRESS"), "{answer}");
        assert_eq!(unfinished(&db), 1);
    }
    // The first one goes on as if nothing had happened.
    first.write_all(&vec![b'a'; MEGABYTE - 1_000]).await.expect("it is sent");
    let answer = answer(&mut first).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    alice.confirm(text(&ticket["fileId"])).await.ok();
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn bytes_beyond_the_registered_size_are_not_stored(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "a", 5).await;
    let url = text(&ticket["uploadUrl"]).to_owned();
    // A body without a length, which does not end.
    let (host, path) = url.strip_prefix("http://").expect("a URL").split_once('/').expect("a path");
    let mut socket = TcpStream::connect(host).await.expect("open");
    let head = format!("PUT /{path} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n");
    socket.write_all(head.as_bytes()).await.expect("it is sent");
    socket.write_all(b"3\r\n123\r\n3\r\n456\r\n").await.expect("it is sent");
    let answer = answer(&mut socket).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("SIZE_MISMATCH"), "{answer}");
    // The place is free as soon as the client has the refusal.
    alice.put(&url, "12345").await.ok();
    assert_eq!(unfinished(&db), 0);
    server.stop().await;
}

#[on_each_database]
async fn a_file_receives_one_upload_whichever_process_it_comes_to(db: TestDb) {
    let one = Setup::default().with("ROLE", "api").start(&db).await;
    let other = Setup::default().with("ROLE", "api").start(&db).await;
    let ticket = one.client("alice").register(None, "a", 5).await;
    let url = text(&ticket["uploadUrl"]).to_owned();
    let there = url.replace(&one.base, &other.base);
    let socket = begin_put(&one, &url, 5, b"12").await;
    until("it arrives", async || unfinished(&db) == 1).await;
    other.client("alice").put(&there, "12345").await.refused(409, "UPLOAD_IN_PROGRESS");
    let stored = other.app.blobs.list("", None).next_page(10).await.expect("a listing");
    assert!(stored.is_empty(), "what is refused leaves nothing: {stored:?}");
    // A connection that ends frees the place at once.
    drop(socket);
    until("the place is free", async || other.client("alice").put(&there, "12345").await.status == 200).await;
    other.stop().await;
    one.stop().await;
}

#[on_each_database]
async fn an_upload_that_comes_at_once_is_one_transaction(db: TestDb) {
    let faults = PlannedFaults::new();
    let app = offline_app(&db, &manual_clock(), &faults, &[]).await;
    let alice = TestUser::of(&app, "alice");
    for (slowly, transactions) in [(false, 1), (true, 2)] {
        let file = alice.register(None, "a", 5).await.expect("it is registered");
        let before = faults.steps().1.len();
        let sent = if slowly { alice.upload_slowly(file).await } else { alice.upload(file).await };
        sent.expect("it arrives");
        // Before each commit and after it.
        assert_eq!(faults.steps().1.len() - before, 2 * transactions, "slowly: {slowly}");
    }
}

#[on_each_database]
async fn of_two_uploads_that_come_at_once_to_two_processes_the_later_one_stays(db: TestDb) {
    let (clock, held) = (manual_clock(), PlannedFaults::new());
    let one = offline_app(&db, &clock, &held, &[]).await;
    let other = offline_app(&db, &clock, &PlannedFaults::new(), &[]).await;
    let (here, there) = (TestUser::of(&one, "alice"), TestUser::of(&other, "alice"));
    let file = here.register(None, "a", 5).await.expect("it is registered");
    // The bytes are stored, and the row does not know them yet.
    let gate = held.hold_at(HoldPoint::BeforeBegin);
    let later = tokio::spawn({
        let here = here.clone();
        async move { here.send(file, 5, vec![Ok(b"later")]).await }
    });
    gate.reached().await;
    there.send(file, 5, vec![Ok(b"first")]).await.expect("it arrives");
    gate.open();
    later.await.expect("no panic").expect("it arrives");
    let stored = one.app.blobs.list("", None).next_page(10).await.expect("a listing");
    let [blob] = &stored[..] else { panic!("only the later bytes are kept: {stored:?}") };
    let mut bytes = String::new();
    one.app.blobs.read(&blob.key).await.expect("it is there").read_to_string(&mut bytes).await.expect("text");
    assert_eq!(bytes, "later");
    assert_eq!(unfinished(&db), 0);
    here.confirm(file).await.expect("it is confirmed");
    one.assert_audit_clean().await;
}

#[on_each_database]
async fn an_upload_of_a_process_that_is_not_known_any_more_does_not_count(db: TestDb) {
    let app = offline_app(&db, &manual_clock(), &PlannedFaults::new(), &[]).await;
    let alice = TestUser::of(&app, "alice");
    for slowly in [false, true] {
        let file = alice.register(None, "a", 5).await.expect("it is registered");
        let left = "INSERT INTO arriving_uploads (file_id, upload_id, worker_id, started_at) \
                    VALUES ($1, $2, $3, $4)";
        app.sql(left, args![file, Uuid::new_v4(), Uuid::new_v4(), app.now()]).await;
        let sent = if slowly { alice.upload_slowly(file).await } else { alice.upload(file).await };
        sent.expect("the dead process does not count");
        let rows = app.number("SELECT COUNT(*) FROM arriving_uploads").await;
        assert_eq!(rows, 0, "an upload that ended leaves nothing, slowly: {slowly}");
    }
}

#[on_each_database]
async fn an_upload_into_a_folder_that_is_gone_fails_and_leaves_nothing_to_do(db: TestDb) {
    let app = offline_app(&db, &manual_clock(), &PlannedFaults::new(), &[]).await;
    let alice = TestUser::of(&app, "alice");
    let (folder, aside) = (db.folder.path().join("blobs"), db.folder.path().join("aside"));
    for slowly in [false, true] {
        let file = alice.register(None, "a", 5).await.expect("it is registered");
        std::fs::rename(&folder, &aside).expect("it is moved");
        let sent = if slowly { alice.upload_slowly(file).await } else { alice.upload(file).await };
        assert!(matches!(sent, Err(Error::Storage { .. })), "{sent:?}");
        until("no task is left", async || app.app.uploads.is_empty()).await;
        std::fs::rename(&aside, &folder).expect("it is moved back");
        alice.upload(file).await.expect("it arrives");
    }
}

#[on_each_database]
async fn a_silent_upload_gives_way_to_another_one(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "a", 5).await;
    let url = text(&ticket["uploadUrl"]).to_owned();
    // The network of this client is gone, and no one has told the server.
    let _silent = begin_put(&server, &url, 5, b"12").await;
    until("it arrives", async || unfinished(&db) == 1).await;
    alice.put(&url, "12345").await.refused(409, "UPLOAD_IN_PROGRESS");
    clock.advance(Duration::from_secs(11));
    alice.put(&url, "12345").await.ok();
    alice.confirm(text(&ticket["fileId"])).await.ok();
    server.idle().await;
    server.assert_audit_clean().await;
    server.stop().await;
}

type Part = Result<Bytes, &'static str>;

/// An upload that gets its bytes from the test.
struct SlowUpload {
    parts: mpsc::Sender<Part>,
    /// A permit for each time that it asks for more.
    asks: Arc<Semaphore>,
    receiving: JoinHandle<Result<(), Error>>,
}

impl SlowUpload {
    async fn begin(alice: &TestUser, size: i64) -> Self {
        let file = alice.register(None, "a", size).await.expect("it is registered");
        let (parts, receive) = mpsc::channel::<Part>(1);
        let asks = Arc::new(Semaphore::new(0));
        let body = futures_util::stream::unfold((receive, asks.clone()), async |(mut receive, asks)| {
            asks.add_permits(1);
            receive.recv().await.map(|part| (part, (receive, asks)))
        });
        let upload = Upload { stall: Duration::from_mins(1), min_rate: 1_024, ..alice.uploading(file, size) };
        let receiving = tokio::spawn(async move { upload.receive(Box::pin(body)).await.map(drop) });
        Self { parts, asks, receiving }
    }

    /// Sends bytes once the server has waited for them this long. Returns whether it still takes any.
    async fn give_after(&self, clock: &ManualClock, wait: Duration, bytes: usize) -> bool {
        let asked = tokio::select! {
            asked = self.asks.acquire() => asked.is_ok(),
            () = self.parts.closed() => false,
        };
        if !asked {
            return false;
        }
        self.asks.forget_permits(1);
        clock.advance(wait);
        self.parts.send(Ok(Bytes::from(vec![b'a'; bytes]))).await.is_ok()
    }
}

async fn alice(db: &TestDb) -> (ManualClock, TestUser) {
    let clock = manual_clock();
    let app = offline_app(db, &clock, &PlannedFaults::new(), &[]).await;
    (clock, TestUser::of(&app, "alice"))
}

#[on_each_database]
async fn an_upload_that_trickles_is_ended(db: TestDb) {
    let (clock, alice) = alice(&db).await;
    let trickle = SlowUpload::begin(&alice, 100_000).await;
    let second = Duration::from_secs(1);
    let mut given = 0;
    while trickle.give_after(&clock, second, 100).await {
        given += 1;
        assert!(given < 100, "it should have ended");
    }
    match trickle.receiving.await.expect("no panic") {
        Err(Error::Refused(refusal)) => assert_eq!(refusal.code, RefusalCode::UploadTooSlow),
        other => panic!("{other:?}"),
    }
}

#[on_each_database]
async fn an_upload_over_a_slow_link_arrives(db: TestDb) {
    let (clock, alice) = alice(&db).await;
    // Two kilobytes a second, for five minutes, with a pause of half a minute in each.
    let slow = SlowUpload::begin(&alice, 300 * 2_048).await;
    for _ in 0..5 {
        assert!(slow.give_after(&clock, Duration::from_secs(31), 32 * 2_048).await);
        for _ in 0..28 {
            assert!(slow.give_after(&clock, Duration::from_secs(1), 2_048).await);
        }
    }
    let sent = 5 * 60 * 2_048;
    assert!(slow.give_after(&clock, Duration::from_secs(1), 300 * 2_048 - sent).await || sent == 300 * 2_048);
    drop(slow.parts);
    slow.receiving.await.expect("no panic").expect("it arrives");
}

#[on_each_database]
async fn with_too_little_room_nothing_new_is_taken_in_and_deletions_work(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let file = alice.send_bytes(None, "old.txt", b"12345").await;
    let ticket = alice.register(None, "new.txt", 5).await;
    server.stop().await;

    let server = Setup::default().with("ROLE", "api").with("MIN_FREE_DISK", "1000000TB").start(&db).await;
    let alice = server.client("alice");
    let refused = alice.post("/api/v2/uploads/files/init", json!({ "fileName": "a", "fileSize": 5 })).await;
    refused.refused(507, "STORAGE_FULL");
    let path = format!("/api/v2/uploads/files/{}/upload-url", text(&ticket["fileId"]));
    let fresh = alice.post(&path, json!({})).await.ok();
    alice.put(text(&fresh["uploadUrl"]), "12345").await.refused(507, "STORAGE_FULL");
    assert_eq!(unfinished(&db), 0);
    let ready = alice.get("/readyz").await;
    assert_eq!((ready.status, &ready.body["checks"]["disk"]["status"]), (503, &json!("failed")));
    alice.confirm(&file).await.ok();
    alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
    server.stop().await;
}
