//! Uploads that come in several requests: by the protocol, and whatever is interrupted.

use std::time::Duration;

use base64::Engine;
use landfall_server::recovery::{Sweep, resumable_uploads};
use landfall_store::{Arg, Db, args};
use reqwest::Method;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::support::process::Process;
use crate::support::tus::{PATH, PIECE, metadata};
use crate::support::{Script, Setup, TestDb, TestServer, manual_clock, on_each_database, until};

const TEXT: &[u8] = b"Wind from the west, the sea is calm.";
const HOUR: Duration = Duration::from_hours(1);

/// Bytes that are different at every place.
fn large(size: usize) -> Vec<u8> {
    (0..u32::try_from(size / 4).expect("small enough")).flat_map(u32::to_be_bytes).collect()
}

/// What lies in the storage of uploads that are not finished: their names and sizes.
fn unfinished(db: &TestDb) -> Vec<(String, u64)> {
    let folder = std::fs::read_dir(db.folder.path().join("blobs/incoming")).expect("a folder");
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.expect("an entry");
        let size = entry.metadata().map_or(0, |metadata| metadata.len());
        (entry.file_name().to_string_lossy().into_owned(), size)
    };
    folder.map(entry).collect()
}

async fn count(server: &TestServer, sql: &'static str, arguments: Vec<Arg>) -> i64 {
    let mut tx = server.app.db.read().await.expect("a connection");
    tx.number(sql, arguments).await.expect("a number")
}

async fn rows(server: &TestServer) -> i64 {
    count(server, "SELECT COUNT(*) FROM resumable_uploads", args![]).await
}

/// Nothing is left of any upload.
async fn assert_nothing_is_left(server: &TestServer, db: &TestDb) {
    assert_eq!((rows(server).await, unfinished(db)), (0, Vec::new()));
    server.assert_audit_clean().await;
}

async fn serve(db: &TestDb) -> TestServer {
    Setup::default().work(Script::new()).start(db).await
}

#[on_each_database]
async fn a_file_that_comes_in_pieces_is_confirmed_with_its_last_byte(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let created = alice.create_upload("log.txt", TEXT.len()).await.expect(201);
    let (path, file) = (created.location(), created.file());
    assert_eq!(created.header("location"), Some(format!("{}{path}", alice.base).as_str()));
    assert!(created.header("upload-expires").is_some_and(|at| at.ends_with("GMT")), "{created:?}");
    assert_eq!(alice.quota().await, (36, 0), "its room is reserved");
    assert_eq!(alice.status(&file).await, "registered");

    let first = alice.append(&path, 0, &TEXT[..10]).await.expect(204);
    assert_eq!(first.offset(), Some(10));
    let head = alice.head_upload(&path).await.expect(200);
    assert_eq!((head.offset(), head.header("upload-length")), (Some(10), Some("36")));
    assert_eq!(head.header("cache-control"), Some("no-store"));
    assert_eq!(head.header("upload-metadata"), Some(metadata(&[("filename", "log.txt")]).as_str()));
    assert_eq!(alice.quota().await, (36, 0));

    let last = alice.append(&path, 10, &TEXT[10..]).await.expect(204);
    assert_eq!((last.offset(), last.file()), (Some(36), file.clone()));
    assert_eq!(alice.quota().await, (0, 36), "it is confirmed when the client has the answer");
    // A client that did not get the answer asks again.
    let head = alice.head_upload(&path).await.expect(200);
    assert_eq!((head.offset(), head.header("upload-expires")), (Some(36), None));
    assert_eq!(alice.append(&path, 36, b"").await.expect(204).offset(), Some(36));
    server.idle().await;
    assert_eq!(alice.states(&file).await[..3], ["registered", "uploaded", "queued"]);
    assert_eq!(alice.status(&file).await, "ready");
    assert_eq!(alice.download(&file).await, TEXT);
    let sha256 = hex::encode(Sha256::digest(TEXT));
    let kept = count(&server, "SELECT COUNT(*) FROM files WHERE blob_sha256 = $1", args![sha256]).await;
    assert_eq!(kept, 1, "the checksum goes over all pieces");
    assert_nothing_is_left(&server, &db).await;
    server.stop().await;
}

#[on_each_database]
async fn the_request_that_creates_an_upload_may_bring_bytes(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let begin = |length: usize| {
        let request = alice.tus(Method::POST, PATH).header("Upload-Length", length);
        request.header("Content-Type", PIECE).header("Upload-Metadata", metadata(&[("name", "a.txt")]))
    };
    let whole = alice.answer(begin(TEXT.len()).body(TEXT)).await.expect(201);
    assert_eq!(whole.offset(), Some(36));
    assert_ne!(alice.status(&whole.file()).await, "registered");
    let part = alice.answer(begin(TEXT.len()).body(&TEXT[..5])).await.expect(201);
    assert_eq!(part.offset(), Some(5));
    alice.append(&part.location(), 5, &TEXT[5..]).await.expect(204);
    let empty = alice.create_upload("empty.txt", 0).await.expect(201);
    assert_eq!(empty.offset(), Some(0));
    assert_ne!(alice.status(&empty.file()).await, "registered", "an empty file is whole");
    alice.answer(begin(5).body(TEXT)).await.refused(413, "TOO_LARGE");
    let other = alice.tus(Method::POST, PATH).header("Upload-Length", 5).body("12345");
    alice.answer(other.header("Content-Type", "text/plain")).await.refused(415, "UNSUPPORTED_MEDIA_TYPE");
    server.stop().await;
}

#[on_each_database]
async fn the_protocol_is_kept_to_the_letter(db: TestDb) {
    let server = Setup::default().with("MAX_FILE_BYTES", 1_000).with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    // What the server can do is for everyone.
    for path in [PATH.to_owned(), format!("{PATH}/{}", uuid::Uuid::new_v4())] {
        let options =
            alice.http.request(Method::OPTIONS, format!("{}{path}", alice.base)).send().await.unwrap();
        assert_eq!(options.status().as_u16(), 204);
        let header = |name: &str| options.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("tus-version"), "1.0.0");
        assert_eq!(header("tus-max-size"), "1000");
        assert_eq!(header("tus-checksum-algorithm"), "sha1,md5,sha256");
        let extensions = header("tus-extension");
        for extension in
            ["creation", "creation-with-upload", "expiration", "checksum", "termination", "concatenation"]
        {
            assert!(extensions.split(',').any(|one| one == extension), "{extensions}");
        }
    }
    let created = alice.create_upload("a.txt", 10).await.expect(201);
    let path = created.location();

    for version in [None, Some("0.2.2")] {
        let mut request = alice.request(Method::HEAD, &path);
        if let Some(version) = version {
            request = request.header("Tus-Resumable", version);
        }
        let refused = alice.answer(request).await;
        assert_eq!((refused.status, refused.header("tus-version")), (412, Some("1.0.0")));
        assert_eq!(refused.header("tus-resumable"), Some("1.0.0"));
    }
    let kind =
        alice.tus(Method::PATCH, &path).header("Upload-Offset", 0).header("Content-Type", "text/plain");
    alice.answer(kind.body("12345")).await.refused(415, "UNSUPPORTED_MEDIA_TYPE");
    for wrong in ["", "-1", "1.5", "x", "99999999999999999999"] {
        let piece = alice.tus(Method::PATCH, &path).header("Content-Type", PIECE);
        alice
            .answer(piece.header("Upload-Offset", wrong).body("1"))
            .await
            .refused(400, "INVALID_UPLOAD_HEADER");
    }
    let no_offset = alice.tus(Method::PATCH, &path).header("Content-Type", PIECE).body("1");
    alice.answer(no_offset).await.refused(400, "INVALID_UPLOAD_HEADER");
    let elsewhere = alice.append(&path, 3, b"45678").await.refused(409, "OFFSET_MISMATCH");
    assert_eq!(elsewhere.body["error"]["details"]["offset"], 0);
    alice.append(&path, 0, b"12345678901").await.refused(413, "TOO_LARGE");
    assert_eq!(alice.head_upload(&path).await.expect(200).offset(), Some(0), "nothing of these was kept");
    let nothing = format!("{PATH}/{}", uuid::Uuid::new_v4());
    assert_eq!(alice.head_upload(&nothing).await.status, 404);
    alice.append(&nothing, 0, b"1").await.refused(404, "UPLOAD_NOT_FOUND");
    alice.append(&format!("{PATH}/nonsense"), 0, b"1").await.refused(404, "UPLOAD_NOT_FOUND");
    alice.create_upload("b.txt", 1_001).await.refused(413, "TOO_LARGE");
    let deferred = alice.tus(Method::POST, PATH).header("Upload-Defer-Length", 1);
    alice.answer(deferred).await.refused(400, "INVALID_UPLOAD_HEADER");
    alice.answer(alice.tus(Method::POST, PATH)).await.refused(400, "INVALID_UPLOAD_HEADER");

    // For clients that can only send a POST.
    let by_post = |method: &str| alice.tus(Method::POST, &path).header("X-HTTP-Method-Override", method);
    let piece = by_post("PATCH").header("Upload-Offset", 0).header("Content-Type", PIECE);
    assert_eq!(alice.answer(piece.body("123")).await.expect(204).offset(), Some(3));
    assert_eq!(alice.answer(by_post("HEAD")).await.expect(200).offset(), Some(3));
    alice.answer(by_post("PUT")).await.refused(405, "METHOD_NOT_ALLOWED");
    alice.answer(by_post("DELETE")).await.expect(204);
    assert_eq!(alice.head_upload(&path).await.status, 410);
    alice.append(&path, 3, b"4").await.refused(410, "FILE_DELETED");
    assert_nothing_is_left(&server, &db).await;
    server.stop().await;
}

#[on_each_database]
async fn metadata_registers_a_file_like_any_other(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(1).await;
    let create = async |pairs: &[(&str, &str)]| {
        let request = alice.tus(Method::POST, PATH).header("Upload-Length", TEXT.len());
        alice.answer(request.header("Upload-Metadata", metadata(pairs))).await
    };
    let name = ("filename", "a.txt");
    for (pairs, status, code) in [
        (vec![("relativePath", "null")], 400, "INVALID_FILE_NAME"),
        (vec![("filename", "a/b.txt")], 400, "INVALID_FILE_NAME"),
        (vec![name, ("filetype", "nonsense")], 400, "INVALID_CONTENT_TYPE"),
        (vec![name, ("md5", "nonsense")], 400, "INVALID_MD5"),
        (vec![name, ("mapping", "nonsense")], 400, "INVALID_MAPPING"),
        (vec![name, ("mapping", "7")], 400, "INVALID_MAPPING"),
        (vec![name, ("batch", "nonsense")], 404, "BATCH_NOT_FOUND"),
        (vec![name, ("batch", "00000000-0000-0000-0000-000000000000")], 404, "BATCH_NOT_FOUND"),
    ] {
        create(&pairs).await.refused(status, code);
    }
    let request = alice.tus(Method::POST, PATH).header("Upload-Length", 5);
    alice.answer(request.header("Upload-Metadata", "filename !!")).await.refused(400, "INVALID_METADATA");
    assert_eq!(alice.quota().await, (0, 0), "nothing was registered");

    let pairs = [
        ("name", "a.txt"),
        ("type", "text/plain"),
        ("filetype", ""),
        ("batch", &batch),
        ("mapping", r#"{"a":1}"#),
    ];
    let created = create(&pairs).await.expect(201);
    let file = alice.file(&created.file()).await;
    assert_eq!((&file["fileName"], &file["contentType"]), (&json!("a.txt"), &json!("text/plain")));
    assert_eq!(file["batchId"], json!(batch));
    create(&pairs).await.refused(409, "BATCH_FULL");
    alice.append(&created.location(), 0, TEXT).await.expect(204);
    server.idle().await;
    assert_eq!(alice.batch(&batch).await["status"], "completed");
    assert_eq!(count(&server, "SELECT COUNT(*) FROM files WHERE mapping IS NOT NULL", args![]).await, 1);
    server.stop().await;
}

#[on_each_database]
async fn the_same_key_creates_one_upload(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let create = async |length: usize| {
        let request = alice.tus(Method::POST, PATH).header("Upload-Length", length);
        let request = request.header("Idempotency-Key", "once");
        alice.answer(request.header("Upload-Metadata", metadata(&[("filename", "a.txt")]))).await
    };
    let first = create(36).await.expect(201);
    assert_eq!(create(36).await.expect(201).location(), first.location());
    create(37).await.refused(422, "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(alice.quota().await, (36, 0));
    server.stop().await;
}

#[on_each_database]
async fn a_piece_with_a_checksum_is_kept_as_a_whole_or_not_at_all(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let sum = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(bytes));
    let created = alice.create_upload("a.txt", TEXT.len()).await.expect(201);
    let path = created.location();
    let piece = |offset: u64, checksum: String, bytes: &'static [u8]| {
        alice.piece(&path, offset).header("Upload-Checksum", checksum).body(bytes)
    };
    let right = format!("sha256 {}", sum(&TEXT[..10]));
    alice.answer(piece(0, right, &TEXT[..10])).await.expect(204);
    let wrong = format!("sha256 {}", sum(b"something else"));
    alice.answer(piece(10, wrong.clone(), &TEXT[10..])).await.refused(460, "PIECE_CHECKSUM_MISMATCH");
    alice.answer(piece(10, "crc32 AAAA".to_owned(), &TEXT[10..])).await.refused(400, "UNSUPPORTED_CHECKSUM");
    assert_eq!(alice.head_upload(&path).await.expect(200).offset(), Some(10), "also where it was the last");

    // Half of a piece, and then the connection is lost.
    let header = format!("Upload-Checksum: {wrong}\r\n");
    let mut cut = alice.begin_append(&path, 10, 26, &header).await;
    cut.send(&TEXT[10..20]).await;
    until("it has the turn", async || turn(&server).await.is_some()).await;
    drop(cut);
    until("it has ended", async || turn(&server).await.is_none()).await;
    assert_eq!(alice.head_upload(&path).await.expect(200).offset(), Some(10));
    let rest = format!("sha256 {}", sum(&TEXT[10..]));
    alice.answer(piece(10, rest, &TEXT[10..])).await.expect(204);
    assert_eq!(alice.download(&created.file()).await, TEXT);
    server.stop().await;
}

/// The request that has the turn.
async fn turn(server: &TestServer) -> Option<uuid::Uuid> {
    let mut tx = server.app.db.read().await.expect("a connection");
    let rows: Vec<(Option<uuid::Uuid>,)> =
        tx.rows("SELECT turn FROM resumable_uploads", args![]).await.expect("rows");
    rows.into_iter().find_map(|(turn,)| turn)
}

#[on_each_database]
async fn an_unverified_piece_of_a_killed_process_is_not_kept(db: TestDb) {
    let mut process = Process::start(&db, &[]);
    let client = process.client();
    let bytes = large(4 << 20);
    let created = client.create_upload("a.bin", bytes.len()).await.expect(201);
    let header = format!("Upload-Checksum: sha1 {}=\r\n", "A".repeat(27));
    let mut cut = client.begin_append(&created.location(), 0, bytes.len(), &header).await;
    cut.send(&bytes[..2 << 20]).await;
    until("some of it is written", async || unfinished(&db).iter().any(|(_, size)| *size > 1 << 20)).await;
    process.kill();
    let process = Process::start(&db, &[]);
    let client = process.client();
    assert_eq!(client.head_upload(&created.location()).await.expect(200).offset(), Some(0));
    client.append(&created.location(), 0, &bytes).await.expect(204);
    assert!(client.download(&created.file()).await == bytes);
}

#[on_each_database]
async fn what_a_lost_connection_brought_is_kept(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let created = alice.create_upload("a.txt", TEXT.len()).await.expect(201);
    let path = created.location();
    let mut cut = alice.begin_append(&path, 0, TEXT.len(), "").await;
    cut.send(&TEXT[..20]).await;
    until("it has the turn", async || turn(&server).await.is_some()).await;
    drop(cut);
    until("all is noted", async || {
        let head = alice.head_upload(&path).await.expect(200);
        head.offset() == Some(20)
    })
    .await;
    alice.append(&path, 20, &TEXT[20..]).await.expect(204);
    assert_eq!(alice.download(&created.file()).await, TEXT);
    assert_nothing_is_left(&server, &db).await;
    server.stop().await;
}

#[on_each_database]
async fn a_client_whose_connection_is_half_dead_goes_on_at_once(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let bytes = large(1 << 20);
    let created = alice.create_upload("a.bin", bytes.len()).await.expect(201);
    let path = created.location();
    // No one has told the server that this connection is dead.
    let mut dead = alice.begin_append(&path, 0, bytes.len(), "").await;
    dead.send(&bytes[..700_000]).await;
    until("some of it is written", async || unfinished(&db).iter().any(|(_, size)| *size > 0)).await;
    let offset = alice.head_upload(&path).await.expect(200).offset().expect("an offset");
    assert!(offset > 0 && offset <= 700_000, "{offset}");
    // The older request is over: what it still sends is not taken in.
    assert!(dead.answer().await.starts_with("HTTP/1.1 423"));
    let at = usize::try_from(offset).unwrap();
    alice.append(&path, offset, &bytes[at..]).await.expect(204);
    assert!(alice.download(&created.file()).await == bytes);
    assert_nothing_is_left(&server, &db).await;
    server.stop().await;
}

#[on_each_database]
async fn the_newest_of_many_requests_at_once_wins_and_no_byte_is_mixed_up(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let bytes = large(1 << 20);
    let created = alice.create_upload("a.bin", bytes.len()).await.expect(201);
    let path = created.location();
    // Many clients that all believe to be the one, each with the whole file.
    let mut rounds = 0;
    loop {
        let offset = alice.head_upload(&path).await.expect(200).offset().expect("an offset");
        if offset == bytes.len() as u64 {
            break;
        }
        rounds += 1;
        assert!(rounds < 100, "it never comes to an end");
        let at = usize::try_from(offset).unwrap();
        let requests = (0..8).map(|_| alice.append(&path, offset, &bytes[at..]));
        for answer in futures_util::future::join_all(requests).await {
            assert!([204, 409, 413, 423].contains(&answer.status), "{answer:?}");
        }
    }
    assert!(alice.download(&created.file()).await == bytes);
    assert_nothing_is_left(&server, &db).await;
    server.stop().await;
}

#[on_each_database]
async fn a_request_in_another_process_gives_way_as_well(db: TestDb) {
    let one = serve(&db).await;
    let other = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = one.client("alice");
    let there = other.client("alice");
    let bytes = large(4 << 20);
    let created = alice.create_upload("a.bin", bytes.len()).await.expect(201);
    let path = created.location();
    let mut dead = alice.begin_append(&path, 0, bytes.len(), "").await;
    dead.send(&bytes[..700_000]).await;
    until("some of it is written", async || unfinished(&db).iter().any(|(_, size)| *size > 0)).await;
    let offset = there.head_upload(&path).await.expect(200).offset().expect("an offset");
    assert!(offset > 0 && offset <= 700_000, "{offset}");
    assert!(dead.answer().await.starts_with("HTTP/1.1 423"));
    // And back again.
    let at = usize::try_from(offset).unwrap();
    let mut dead = there.begin_append(&path, offset, bytes.len() - at, "").await;
    dead.send(&bytes[at..3 << 20]).await;
    until("more of it is written", async || unfinished(&db).iter().any(|(_, size)| *size > offset)).await;
    let offset = alice.head_upload(&path).await.expect(200).offset().expect("an offset");
    let at = usize::try_from(offset).unwrap();
    there.append(&path, offset, &bytes[at..]).await.expect(204);
    assert!(alice.download(&created.file()).await == bytes);
    drop(dead);
    other.stop().await;
    assert_nothing_is_left(&one, &db).await;
    one.stop().await;
}

#[on_each_database]
async fn a_frozen_process_cannot_write_to_an_upload_that_went_on_elsewhere(db: TestDb) {
    let mut frozen = Process::start(&db, &[("ROLE", "api"), ("HEARTBEAT_EXPIRY_MS", "600000")]);
    let client = frozen.client();
    let bytes = large(1 << 20);
    let created = client.create_upload("a.bin", bytes.len()).await.expect(201);
    let path = created.location();
    let mut dead = client.begin_append(&path, 0, bytes.len(), "").await;
    dead.send(&bytes[..700_000]).await;
    until("some of it is written", async || unfinished(&db).iter().any(|(_, size)| *size > 0)).await;
    frozen.signal("STOP");
    let other = Process::start(&db, &[("ROLE", "api"), ("HEARTBEAT_EXPIRY_MS", "600000")]);
    let there = other.client();
    // It may wake up and write at any time.
    let locked = there.head_upload(&path).await;
    assert_eq!(locked.status, 423);
    frozen.kill();
    let offset = there.head_upload(&path).await.expect(200).offset().expect("an offset");
    assert!(offset > 0, "what it wrote is kept");
    let at = usize::try_from(offset).unwrap();
    there.append(&path, offset, &bytes[at..]).await.expect(204);
    assert!(there.download(&created.file()).await == bytes);
}

#[on_each_database]
async fn what_was_written_survives_kills_and_is_not_sent_again(db: TestDb) {
    let bytes = large(8 << 20);
    let mut process = Process::start(&db, &[]);
    let mut client = process.client();
    let created = client.create_upload("a.bin", bytes.len()).await.expect(201);
    let path = created.location();
    let mut offset = 0_usize;
    for _ in 0..3 {
        let mut cut = client.begin_append(&path, offset as u64, bytes.len() - offset, "").await;
        cut.send(&bytes[offset..offset + (2 << 20)]).await;
        let most = |db: &TestDb| unfinished(db).iter().map(|(_, size)| *size).max().unwrap_or(0);
        until("most of it is written", async || most(&db) > (offset + (1 << 20)) as u64).await;
        let written = most(&db);
        process.kill();
        process = Process::start(&db, &[]);
        client = process.client();
        let head = client.head_upload(&path).await.expect(200);
        let now = head.offset().expect("an offset");
        assert!(now >= written, "{now} after {written} were written");
        offset = usize::try_from(now).unwrap();
    }
    client.append(&path, offset as u64, &bytes[offset..]).await.expect(204);
    assert!(client.download(&created.file()).await == bytes);
    let reader = Db::open(&db.url, 2).await.unwrap();
    let sha256 = hex::encode(Sha256::digest(&bytes));
    let kept = "SELECT COUNT(*) FROM files WHERE blob_sha256 = $1";
    assert_eq!(reader.read().await.unwrap().number(kept, args![sha256]).await.unwrap(), 1);
}

#[on_each_database]
async fn bytes_that_were_not_synced_before_a_power_cut_are_sent_again(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let created = alice.create_upload("a.txt", TEXT.len()).await.expect(201);
    let path = created.location();
    alice.append(&path, 0, &TEXT[..10]).await.expect(204);
    let (name, _) = unfinished(&db).remove(0);
    // What the file system has behind the synced bytes after the machine started again.
    let file = db.folder.path().join("blobs/incoming").join(name);
    std::fs::write(&file, [&TEXT[..10], b"\0\0\0\0\0"].concat()).unwrap();
    let other =
        crate::support::offline_app::Sql("UPDATE resumable_uploads SET boot = 'before'".to_owned(), args![]);
    server.app.db.write(other).await.unwrap();
    assert_eq!(alice.head_upload(&path).await.expect(200).offset(), Some(10));
    alice.append(&path, 10, &TEXT[10..]).await.expect(204);
    assert_eq!(alice.download(&created.file()).await, TEXT);
    server.stop().await;
}

#[on_each_database]
async fn a_server_that_stops_notes_what_came(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let created = alice.create_upload("a.txt", TEXT.len()).await.expect(201);
    let mut cut = alice.begin_append(&created.location(), 0, TEXT.len(), "").await;
    cut.send(&TEXT[..20]).await;
    until("it has the turn", async || turn(&server).await.is_some()).await;
    until("it is received", async || unfinished(&db).len() == 1).await;
    server.stop().await;
    let reader = Db::open(&db.url, 2).await.unwrap();
    let noted = "SELECT COUNT(*) FROM resumable_uploads WHERE turn IS NULL";
    assert_eq!(reader.read().await.unwrap().number(noted, args![]).await.unwrap(), 1);
    drop(reader);
    let server = serve(&db).await;
    let alice = server.client("alice");
    let offset = alice.head_upload(&created.location()).await.expect(200).offset().expect("an offset");
    let at = usize::try_from(offset).unwrap();
    alice.append(&created.location(), offset, &TEXT[at..]).await.expect(204);
    assert_eq!(alice.download(&created.file()).await, TEXT);
    server.stop().await;
}

#[on_each_database]
async fn an_upload_that_is_given_up_gives_its_room_back(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default()
        .clock(&clock)
        .work(Script::new())
        .with("RESUMABLE_UPLOAD_WINDOW_MS", 7_200_000)
        .start(&db)
        .await;
    let alice = server.client("alice");
    let batch = alice.open_batch(2).await;
    let request = alice.tus(Method::POST, PATH).header("Upload-Length", 36);
    let pairs = metadata(&[("filename", "a.txt"), ("batch", &batch)]);
    let created = alice.answer(request.header("Upload-Metadata", pairs)).await.expect(201);
    let (path, file) = (created.location(), created.file());
    let part = alice
        .answer(alice.tus(Method::POST, PATH).header("Upload-Length", 20).header("Upload-Concat", "partial"));
    let part = part.await.expect(201);
    assert_eq!(part.header("x-file-id"), None, "a part is no file");
    assert_eq!(alice.quota().await, (56, 0));
    // Each byte is a sign of life.
    clock.advance(HOUR);
    alice.append(&path, 0, &TEXT[..10]).await.expect(204);
    alice.append(&part.location(), 0, &TEXT[..10]).await.expect(204);
    clock.advance(HOUR + HOUR / 2);
    assert_eq!(alice.head_upload(&path).await.expect(200).offset(), Some(10));
    clock.advance(HOUR);
    let (app, now) = (&server.app, server.app.clock.now());
    app.stuck_files.expiry.sweep_once(now).await.unwrap();
    resumable_uploads::sweep_once(&app.resumables, now).await.unwrap();
    assert_eq!(alice.quota().await, (0, 0));
    assert_eq!(alice.head_upload(&path).await.status, 410);
    alice.append(&path, 10, &TEXT[10..]).await.refused(410, "FILE_DELETED");
    assert_eq!(alice.head_upload(&part.location()).await.status, 404);
    assert_eq!(alice.states(&file).await, ["registered", "deleted"]);
    resumable_uploads::sweep_once(&app.resumables, now).await.unwrap();
    assert_nothing_is_left(&server, &db).await;
    server.stop().await;
}

#[on_each_database]
async fn a_terminated_upload_leaves_nothing(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let created = alice.create_upload("a.txt", TEXT.len()).await.expect(201);
    let path = created.location();
    // Also while a request still sends bytes.
    let mut running = alice.begin_append(&path, 0, TEXT.len(), "").await;
    running.send(&TEXT[..20]).await;
    until("it has the turn", async || turn(&server).await.is_some()).await;
    alice.terminate(&path).await.expect(204);
    assert!(running.answer().await.starts_with("HTTP/1.1 423"));
    assert_eq!(alice.quota().await, (0, 0));
    assert_eq!(alice.head_upload(&path).await.status, 410);
    alice.terminate(&path).await.refused(410, "FILE_DELETED");
    assert_nothing_is_left(&server, &db).await;

    // The upload of a file that was deleted in another way.
    let created = alice.create_upload("a.txt", TEXT.len()).await.expect(201);
    alice.append(&created.location(), 0, &TEXT[..10]).await.expect(204);
    alice.delete(&format!("/api/v2/uploads/files/{}", created.file())).await.ok();
    alice.append(&created.location(), 10, &TEXT[10..]).await.refused(410, "FILE_DELETED");
    resumable_uploads::sweep_once(&server.app.resumables, server.app.clock.now()).await.unwrap();
    assert_nothing_is_left(&server, &db).await;

    // A complete one is a file.
    let created = alice.create_upload("a.txt", TEXT.len()).await.expect(201);
    alice.append(&created.location(), 0, TEXT).await.expect(204);
    server.idle().await;
    let key = alice.post("/api/v2/keys", json!({ "name": "k", "scopes": ["upload"] })).await.ok();
    let mut uploader = alice.clone();
    uploader.token = key["key"].as_str().expect("a key").to_owned();
    assert_eq!(uploader.head_upload(&created.location()).await.expect(200).offset(), Some(36));
    uploader.terminate(&created.location()).await.refused(403, "INSUFFICIENT_SCOPE");
    alice.terminate(&created.location()).await.expect(204);
    assert_eq!(alice.quota().await, (0, 0));
    assert_nothing_is_left(&server, &db).await;
    server.stop().await;
}

#[on_each_database]
async fn bytes_with_another_checksum_than_was_declared_never_become_a_file(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let pairs = metadata(&[("filename", "a.txt"), ("md5", "d41d8cd98f00b204e9800998ecf8427e")]);
    let request = alice.tus(Method::POST, PATH).header("Upload-Length", 36).header("Upload-Metadata", pairs);
    let created = alice.answer(request).await.expect(201);
    alice.append(&created.location(), 0, TEXT).await.refused(400, "CHECKSUM_MISMATCH");
    assert_eq!(alice.head_upload(&created.location()).await.status, 410);
    assert_eq!(alice.quota().await, (0, 0));
    assert_nothing_is_left(&server, &db).await;
    server.stop().await;
}

#[on_each_database]
async fn parts_are_joined_to_a_file(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let part = async |bytes: &[u8]| {
        let request = alice.tus(Method::POST, PATH).header("Upload-Length", bytes.len());
        let request = request.header("Upload-Concat", "partial").header("Content-Type", PIECE);
        alice.answer(request.body(bytes.to_vec())).await.expect(201)
    };
    let bytes = large(3 << 20);
    let parts = [part(&bytes[..1 << 20]).await, part(&bytes[1 << 20..]).await];
    let head = alice.head_upload(&parts[0].location()).await.expect(200);
    assert_eq!((head.offset(), head.header("upload-concat")), (Some(1 << 20), Some("partial")));
    assert_eq!(alice.quota().await, (3 << 20, 0), "parts have their room reserved");
    server.assert_audit_clean().await;
    let addresses = format!("final;{} {}", parts[0].header("location").unwrap(), parts[1].location());
    let join = |concat: &str| {
        let request = alice.tus(Method::POST, PATH).header("Upload-Concat", concat);
        request.header("Upload-Metadata", metadata(&[("filename", "joined.bin")]))
    };
    let unfinished_part = {
        let request = alice.tus(Method::POST, PATH).header("Upload-Length", 5);
        alice.answer(request.header("Upload-Concat", "partial")).await.expect(201)
    };
    let with_unfinished = format!("final;{}", unfinished_part.location());
    alice.answer(join(&with_unfinished)).await.refused(409, "INVALID_STATE");
    alice.terminate(&unfinished_part.location()).await.expect(204);
    alice.answer(join("final;/nonsense")).await.refused(404, "UPLOAD_NOT_FOUND");
    alice.answer(join("finally")).await.refused(400, "INVALID_UPLOAD_HEADER");
    let bob = server.client("bob");
    let theft = bob.tus(Method::POST, PATH).header("Upload-Concat", &addresses);
    let theft = theft.header("Upload-Metadata", metadata(&[("filename", "a")]));
    bob.answer(theft).await.refused(404, "UPLOAD_NOT_FOUND");

    let joined = alice.answer(join(&addresses)).await.expect(201);
    let file = joined.file();
    until("it is joined", async || alice.status(&file).await != "registered").await;
    assert_eq!(alice.quota().await, (0, 3 << 20));
    let head = alice.head_upload(&joined.location()).await.expect(200);
    assert_eq!((head.offset(), head.header("upload-length")), (Some(3 << 20), Some("3145728")));
    assert_eq!(alice.head_upload(&parts[0].location()).await.status, 404, "it is used up");
    alice.answer(join(&addresses)).await.refused(404, "UPLOAD_NOT_FOUND");
    assert!(alice.download(&file).await == bytes);
    until("nothing is left", async || rows(&server).await == 0).await;
    assert_nothing_is_left(&server, &db).await;
    server.stop().await;
}

#[on_each_database]
async fn a_joined_upload_takes_no_bytes_of_its_own(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let created = alice.create_upload("a.bin", 5).await.expect(201);
    // As it is while its parts are being joined.
    let turned =
        "UPDATE resumable_uploads SET kind = 'joined', concat = 'final;x', turn = id, worker_id = $1";
    let held = args![server.app.liveness.identity().id];
    server.app.db.write(crate::support::offline_app::Sql(turned.to_owned(), held)).await.unwrap();
    alice.append(&created.location(), 0, b"12345").await.refused(403, "JOINED_UPLOAD");
    let head = alice.head_upload(&created.location()).await.expect(200);
    assert_eq!((head.offset(), head.header("upload-concat")), (None, Some("final;x")));
    server.stop().await;
}

#[on_each_database]
async fn each_request_is_authorised_by_itself(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let created = alice.create_upload("a.txt", TEXT.len()).await.expect(201);
    alice.append(&created.location(), 0, &TEXT[..10]).await.expect(204);
    clock.advance(Duration::from_secs(90));
    let renewed = server.client("alice");
    assert_ne!(renewed.token, alice.token);
    renewed.append(&created.location(), 10, &TEXT[10..]).await.expect(204);
    let mut stranger = server.client("alice");
    stranger.token.push('x');
    stranger.append(&created.location(), 0, b"1").await.refused(401, "INVALID_TOKEN");
    server.stop().await;
}

#[on_each_database]
async fn a_file_is_uploaded_in_one_way_only(db: TestDb) {
    let server = serve(&db).await;
    let alice = server.client("alice");
    let created = alice.create_upload("a.txt", TEXT.len()).await.expect(201);
    let fresh = format!("/api/v2/uploads/files/{}/upload-url", created.file());
    alice.post(&fresh, json!({})).await.refused(409, "INVALID_STATE");
    alice.confirm(&created.file()).await.refused(409, "UPLOAD_MISSING");
    let ticket = alice.register(None, "b.txt", 5).await;
    let path = format!("{PATH}/{}", ticket["fileId"].as_str().unwrap());
    assert_eq!(alice.head_upload(&path).await.status, 404);
    alice.append(&path, 0, b"12345").await.refused(404, "UPLOAD_NOT_FOUND");
    server.stop().await;
}

#[on_each_database]
async fn with_too_little_room_no_bytes_are_taken_in(db: TestDb) {
    let server = serve(&db).await;
    let created = server.client("alice").create_upload("a.txt", TEXT.len()).await.expect(201);
    server.stop().await;
    let server = Setup::default().with("ROLE", "api").with("MIN_FREE_DISK", "1000000TB").start(&db).await;
    let alice = server.client("alice");
    alice.create_upload("b.txt", 5).await.refused(507, "STORAGE_FULL");
    alice.append(&created.location(), 0, TEXT).await.refused(507, "STORAGE_FULL");
    alice.terminate(&created.location()).await.expect(204);
    server.stop().await;
}

#[on_each_database]
async fn a_stalled_request_keeps_what_it_brought(db: TestDb) {
    let server = Setup::default().with("UPLOAD_STALL_MS", 300).with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let created = alice.create_upload("a.txt", TEXT.len()).await.expect(201);
    let mut stalled = alice.begin_append(&created.location(), 0, TEXT.len(), "").await;
    stalled.send(&TEXT[..20]).await;
    assert!(stalled.answer().await.starts_with("HTTP/1.1 408"));
    assert_eq!(alice.head_upload(&created.location()).await.expect(200).offset(), Some(20));
    server.stop().await;
}

/// A server on a bucket of each object store, with what it needs to know of it.
async fn on_each_store() -> Vec<(TestDb, crate::support::object_stores::Bucket, TestServer)> {
    let mut servers = Vec::new();
    for store in crate::support::object_stores::ALL {
        let Some(bucket) = store.bucket().await else { continue };
        let db = TestDb::sqlite();
        let server = on(&bucket, &db).await;
        servers.push((db, bucket, server));
    }
    servers
}

async fn on(bucket: &crate::support::object_stores::Bucket, db: &TestDb) -> TestServer {
    let mut setup = Setup::default().work(Script::new());
    setup.variables.extend(bucket.settings());
    setup.start(db).await
}

/// What is in a bucket beside blobs that files know, the mark and the probe.
async fn left_in(bucket: &crate::support::object_stores::Bucket, blobs: usize) -> Vec<String> {
    let keys = bucket.keys().await;
    let (stored, rest): (Vec<String>, Vec<String>) =
        keys.into_iter().partition(|key| key.starts_with("blobs/"));
    assert_eq!(stored.len(), blobs, "{stored:?}");
    rest.into_iter().filter(|key| key.starts_with("incoming/")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_goes_on_in_another_process_onto_an_object_store() {
    for (db, bucket, server) in on_each_store().await {
        let alice = server.client("alice");
        let other = on(&bucket, &db).await;
        let there = other.client("alice");
        // More than two parts, in pieces that end within parts.
        let bytes = large(20 << 20);
        let created = alice.create_upload("a.bin", bytes.len()).await.expect(201);
        let path = created.location();
        let mut offset = 0;
        for (client, size) in [(&alice, 3 << 20), (&there, 7 << 20), (&alice, 1), (&there, 6 << 20)] {
            let sent = client.append(&path, offset as u64, &bytes[offset..offset + size]).await.expect(204);
            offset += size;
            assert_eq!(sent.offset(), Some(offset as u64), "{:?}", bucket.store);
            assert_eq!(alice.head_upload(&path).await.expect(200).offset(), Some(offset as u64));
        }
        assert_eq!(left_in(&bucket, 0).await.len(), 2, "the rest, and the one before it: {:?}", bucket.store);
        there.append(&path, offset as u64, &bytes[offset..]).await.expect(204);
        assert!(alice.download(&created.file()).await == bytes, "{:?}", bucket.store);
        let sha256 = hex::encode(Sha256::digest(&bytes));
        let kept = count(&server, "SELECT COUNT(*) FROM files WHERE blob_sha256 = $1", args![sha256]).await;
        assert_eq!(kept, 1);
        assert_eq!((rows(&server).await, left_in(&bucket, 1).await), (0, Vec::new()), "{:?}", bucket.store);
        other.stop().await;
        server.assert_audit_clean().await;
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_onto_an_object_store_that_ends_early_leaves_nothing() {
    for (_db, bucket, server) in on_each_store().await {
        let alice = server.client("alice");
        let bytes = large(10 << 20);
        let created = alice.create_upload("a.bin", 12 << 20).await.expect(201);
        alice.append(&created.location(), 0, &bytes).await.expect(204);
        // A damaged piece is not kept, also where it filled a part.
        let sum = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(b"something else"));
        let piece =
            alice.piece(&created.location(), 10 << 20).header("Upload-Checksum", format!("sha256 {sum}"));
        alice.answer(piece.body(large(1 << 20))).await.refused(460, "PIECE_CHECKSUM_MISMATCH");
        assert_eq!(alice.head_upload(&created.location()).await.expect(200).offset(), Some(10 << 20));
        alice.terminate(&created.location()).await.expect(204);
        assert_eq!((rows(&server).await, left_in(&bucket, 0).await), (0, Vec::new()), "{:?}", bucket.store);

        // What a cut connection brought counts to the last byte.
        let created = alice.create_upload("b.bin", bytes.len()).await.expect(201);
        let mut cut = alice.begin_append(&created.location(), 0, bytes.len(), "").await;
        cut.send(&bytes[..9 << 20]).await;
        until("the first part is there", async || {
            count(&server, "SELECT COUNT(*) FROM resumable_uploads WHERE offset_bytes > 0", args![]).await > 0
        })
        .await;
        let offset = alice.head_upload(&created.location()).await.expect(200).offset().expect("an offset");
        assert!(offset >= 8 << 20, "{offset}");
        drop(cut);
        let at = usize::try_from(offset).unwrap();
        alice.append(&created.location(), offset, &bytes[at..]).await.expect(204);
        assert!(alice.download(&created.file()).await == bytes, "{:?}", bucket.store);
        assert_eq!(left_in(&bucket, 1).await, Vec::<String>::new());
        server.assert_audit_clean().await;
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_are_joined_to_a_file_on_an_object_store() {
    for (_db, bucket, server) in on_each_store().await {
        let alice = server.client("alice");
        let bytes = large(11 << 20);
        let mut addresses = "final;".to_owned();
        for part in [&bytes[..9 << 20], &bytes[9 << 20..]] {
            let request = alice.tus(Method::POST, PATH).header("Upload-Length", part.len());
            let request = request.header("Upload-Concat", "partial").header("Content-Type", PIECE);
            let (first, last) = part.split_at(part.len() - 1);
            let created = alice.answer(request.body(first.to_vec())).await.expect(201);
            assert_eq!(created.offset(), Some(first.len() as u64));
            // Parts of the store that belong to no file, and are old by then.
            let later = server.app.clock.now() + chrono::TimeDelta::days(2);
            let swept = server.app.orphan_cleanup.sweep_once(later).await.unwrap();
            assert_eq!(swept.errors, Vec::<String>::new());
            alice.append(&created.location(), first.len() as u64, last).await.expect(204);
            addresses.push_str(&format!("{} ", created.location()));
        }
        server.assert_audit_clean().await;
        let join = alice.tus(Method::POST, PATH).header("Upload-Concat", addresses.trim_end());
        let join = join.header("Upload-Metadata", metadata(&[("filename", "joined.bin")]));
        let joined = alice.answer(join).await.expect(201);
        let file = joined.file();
        until("it is joined", async || alice.status(&file).await == "ready").await;
        assert!(alice.download(&file).await == bytes, "{:?}", bucket.store);
        until("nothing is left", async || rows(&server).await == 0).await;
        assert_eq!(left_in(&bucket, 1).await, Vec::<String>::new(), "{:?}", bucket.store);
        server.assert_audit_clean().await;
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_found_whose_process_died_after_it_had_stored_the_last_part() {
    for (_db, bucket, server) in on_each_store().await {
        let alice = server.client("alice");
        for size in [TEXT.len(), 9 << 20] {
            let bytes = if size == TEXT.len() { TEXT.to_vec() } else { large(size) };
            let created = alice.create_upload("a.bin", size).await.expect(201);
            let id: uuid::Uuid = created.file().parse().unwrap();
            alice.append(&created.location(), 0, &bytes[..size - 3]).await.expect(204);
            // The process noted that it makes a blob of it, made it, and was killed.
            let uploads = &server.app.resumables;
            let mut tx = uploads.db.read().await.unwrap();
            let upload = landfall_server::records::resumable::find(&mut tx, id).await.unwrap();
            let upload = upload.expect("it is there");
            drop(tx);
            let saved = landfall_server::blobs::Saved {
                offset: u64::try_from(upload.offset_bytes).unwrap(),
                hashes: upload.hashes,
                stored: upload.stored,
            };
            let keep = landfall_server::blobs::Unsaved::Keep;
            let opened = uploads.blobs.append(&upload.blob_key, &saved, keep, size as u64).await.unwrap();
            let mut opened = opened.expect("no one writes to it");
            opened.write(&bytes[size - 3..]).await.unwrap();
            let noted = opened.begin_finishing().expect("it is noted before");
            let sql = "UPDATE resumable_uploads SET stored = $2, turn = $3, worker_id = $3 WHERE id = $1";
            let dead = args![id, noted.stored, uuid::Uuid::new_v4()];
            uploads.db.write(crate::support::offline_app::Sql(sql.to_owned(), dead)).await.unwrap();
            opened.publish(|_| Ok(())).await.unwrap();
            drop(opened);
            let settled = resumable_uploads::sweep_once(uploads, server.app.clock.now()).await.unwrap();
            assert_eq!(settled, 1, "{:?}", bucket.store);
            server.idle().await;
            assert!(alice.download(&created.file()).await == bytes, "{:?} {size}", bucket.store);
            alice.delete(&format!("/api/v2/uploads/files/{id}")).await.ok();
        }
        assert_eq!((rows(&server).await, left_in(&bucket, 0).await), (0, Vec::new()), "{:?}", bucket.store);
        server.stop().await;
    }
}
