//! Many files as one archive: with safe and unique names, only of files that the caller may see, and honest about what is missing.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::PathBuf;

use landfall_core::caller::Role;
use landfall_store::args;
use reqwest::Method;
use zip::ZipArchive;

use crate::support::object_stores::ALL;
use crate::support::offline_app::Sql;
use crate::support::{Client, Script, Setup, TestDb, TestServer, on_each_database};

const ARCHIVE: &str = "/api/v2/uploads/files/archive";

/// The entries of an archive with their bytes, by their names.
async fn unpack(client: &Client, query: &str) -> BTreeMap<String, Vec<u8>> {
    let response =
        client.request(Method::GET, &format!("{ARCHIVE}?{query}")).send().await.expect("an answer");
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap_or_default());
    assert_eq!(response.headers()["content-type"], "application/zip");
    assert!(
        response.headers()["content-disposition"]
            .to_str()
            .unwrap()
            .starts_with("attachment; filename=\"files-")
    );
    let bytes = response.bytes().await.expect("a whole body");
    let mut archive = ZipArchive::new(Cursor::new(bytes)).expect("an archive");
    let mut entries = BTreeMap::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).expect("an entry");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("its checksum is right");
        assert!(
            entries.insert(entry.name().expect("a name").into_owned(), bytes).is_none(),
            "no name comes twice"
        );
    }
    entries
}

fn names(entries: &BTreeMap<String, Vec<u8>>) -> Vec<&str> {
    entries.keys().map(String::as_str).collect()
}

fn missing(entries: &BTreeMap<String, Vec<u8>>) -> String {
    String::from_utf8(entries["MISSING.txt"].clone()).expect("text")
}

fn blob_of(db: &TestDb, file: &str) -> PathBuf {
    let id = file.replace('-', "");
    let folder = db.folder.path().join("blobs/blobs").join(&id[30..]).join(&id);
    std::fs::read_dir(folder).expect("it is there").next().expect("it is there").expect("an entry").path()
}

fn rot(path: &PathBuf) {
    let mut bytes = std::fs::read(path).expect("it is there");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(path, bytes).expect("it is written");
}

async fn rename(server: &TestServer, file: &str, name: &str) {
    let sql = "UPDATE files SET file_name = $2 WHERE id = $1";
    let id: uuid::Uuid = file.parse().unwrap();
    server.app.db.write(Sql(sql.to_owned(), args![id, name])).await.unwrap();
}

#[on_each_database]
async fn an_archive_has_every_file_under_a_safe_name_and_names_what_is_missing(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let first = alice.upload("Bericht für 日本.txt", b"one").await;
    alice.upload("same.txt", b"two").await;
    alice.upload("same.txt", b"three").await;
    alice.upload("SAME.TXT", b"four").await;
    alice.upload("MISSING.txt", b"five").await;
    let escaping = alice.upload("escaping", b"six").await;
    rename(&server, &escaping, "../../etc/passwd").await;
    let large: Vec<u8> = (0..5_000_000_u32).flat_map(u32::to_le_bytes).take(9_000_000).collect();
    alice.upload("large.bin", &large).await;
    let damaged = alice.upload("damaged.txt", b"seven").await;
    let damaged_late = alice.upload("damaged.bin", &large).await;
    let lost = alice.upload("lost.txt", b"eight").await;
    let empty = alice.upload("empty.txt", b"e").await;
    server.idle().await;
    alice.register(None, "never sent.txt", 5).await;
    rot(&blob_of(&db, &damaged));
    rot(&blob_of(&db, &damaged_late));
    std::fs::remove_file(blob_of(&db, &lost)).unwrap();
    // A file of no bytes cannot be registered today.
    std::fs::write(blob_of(&db, &empty), b"").unwrap();
    let sql = "UPDATE files SET size_bytes = 0, blob_sha256 = NULL, md5 = NULL WHERE file_name = 'empty.txt'";
    server.app.db.write(Sql(sql.to_owned(), args![])).await.unwrap();

    let entries = unpack(&alice, "").await;
    assert_eq!(
        names(&entries),
        [
            ".._.._etc_passwd",
            "Bericht für 日本.txt",
            "MISSING (2).txt",
            "MISSING.txt",
            "SAME.TXT",
            "damaged.bin",
            "empty.txt",
            "large.bin",
            "same (2).txt",
            "same (3).txt",
        ]
    );
    assert_eq!(entries["Bericht für 日本.txt"], b"one");
    assert_eq!((&entries["same (2).txt"][..], &entries["same (3).txt"][..]), (&b"three"[..], &b"two"[..]));
    assert_eq!((entries["empty.txt"].len(), &entries["MISSING (2).txt"][..]), (0, &b"five"[..]));
    assert!(entries["large.bin"] == large, "its bytes are whole");
    assert!(entries["damaged.bin"].len() < large.len(), "wrong bytes are never written to their end");
    let missing = missing(&entries);
    for (file, why) in [
        (format!("damaged.txt ({damaged})"), "not those that were uploaded"),
        (format!("damaged.bin ({damaged_late})"), "What is in this archive of it is incomplete"),
        (format!("lost.txt ({lost})"), "gone from the storage"),
        ("never sent.txt".to_owned(), "have not arrived"),
    ] {
        let line =
            missing.lines().find(|line| line.starts_with(&file)).unwrap_or_else(|| panic!("{missing}"));
        assert!(line.contains(why), "{line}");
    }
    assert_eq!(missing.lines().count(), 6, "{missing}");

    assert_eq!(names(&unpack(&alice, "q=large").await), ["large.bin"]);
    assert_eq!(
        names(&unpack(&alice, &format!("fileIds={first},{escaping},{first}")).await),
        [".._.._etc_passwd", "Bericht für 日本.txt"]
    );
    let counted = alice.get("/api/v2/uploads/files/counts?q=e").await.ok();
    assert_eq!(counted["isCapped"], false);
}

#[on_each_database]
async fn an_archive_has_only_files_that_the_caller_may_see(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let (ada, bob) = (server.client_of("ada", "acme"), server.client_of("bob", "acme"));
    let (his, hers) = (bob.upload("secret of bob.txt", b"b").await, ada.upload("of ada.txt", b"a").await);
    let other = server.client_of("ada", "evilcorp").upload("secret of evilcorp.txt", b"e").await;
    server.idle().await;
    let ids = format!("fileIds={hers},{his},{other},01920000-0000-7000-8000-000000000000");
    let entries = unpack(&ada, &ids).await;
    assert_eq!(names(&entries), ["MISSING.txt", "of ada.txt"]);
    let text = missing(&entries);
    assert_eq!(text.matches(": There is no such file").count(), 3, "{text}");
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(names(&unpack(&ada, "").await), ["of ada.txt"]);
    let carol = server.client_with("carol", "acme", Role::TenantAdmin);
    assert_eq!(names(&unpack(&carol, "scope=tenant").await), ["of ada.txt", "secret of bob.txt"]);
    assert_eq!(names(&unpack(&carol, &ids).await), ["MISSING.txt", "of ada.txt", "secret of bob.txt"]);
    assert_eq!(unpack(&server.admin(), "scope=all").await.len(), 3);
    // What an administrator takes of others is in the audit log.
    let log = server.admin().get("/api/v2/admin/audit-log?actor=carol&action=archiveFiles").await.ok();
    assert_eq!(log["entries"].as_array().unwrap().len(), 2, "{log}");

    for (query, code) in [
        (format!("{ids}&q=a"), "INVALID_REQUEST"),
        ("fileIds=x".to_owned(), "INVALID_REQUEST"),
        ("fileIds=".to_owned(), "INVALID_REQUEST"),
        ("limit=3".to_owned(), "INVALID_REQUEST"),
        ("q=nothing".to_owned(), "INVALID_FILE_COUNT"),
        (format!("fileIds={}", vec![server.app.clock.new_id().to_string(); 1].join(",")), ""),
    ] {
        if !code.is_empty() {
            ada.get(&format!("{ARCHIVE}?{query}")).await.refused(400, code);
        }
    }
    let many: Vec<String> = (0..1001).map(|_| server.app.clock.new_id().to_string()).collect();
    ada.get(&format!("{ARCHIVE}?fileIds={}", many.join(","))).await.refused(400, "INVALID_FILE_COUNT");
    crate::support::many_files::insert_ready(&server, "alice", 10_001).await;
    server.client("alice").get(ARCHIVE).await.refused(400, "INVALID_FILE_COUNT");
    assert_eq!(unpack(&server.client("alice"), "q=file%20100").await.len(), 1, "none of them has bytes");
}

#[on_each_database]
async fn a_user_has_few_archives_made_at_a_time(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let (alice, bob) = (server.client("alice"), server.client("bob"));
    for client in [&alice, &bob] {
        client.upload("large.bin", &vec![7; 50_000_000]).await;
    }
    let begin = async |client: &Client| client.request(Method::GET, ARCHIVE).send().await.expect("an answer");
    let (one, two) = (begin(&alice).await, begin(&alice).await);
    assert_eq!((one.status(), two.status()), (reqwest::StatusCode::OK, reqwest::StatusCode::OK));
    alice.get(ARCHIVE).await.refused(429, "TOO_MANY_ARCHIVES");
    assert_eq!(begin(&bob).await.status(), 200);
    drop(one);
    drop(two);
    crate::support::until("they are over", async || begin(&alice).await.status() == 200).await;
}

#[tokio::test]
async fn files_in_an_object_store_are_archived_as_well() {
    for store in ALL {
        let Some(bucket) = store.bucket().await else { continue };
        let db = TestDb::sqlite();
        let mut setup = Setup::default().work(Script::new()).with("UPLOAD_MODE", "proxy");
        for (name, value) in bucket.settings() {
            setup = setup.with(name, value);
        }
        let server = setup.start(&db).await;
        let alice = server.client("alice");
        let large: Vec<u8> = (0..5_000_000_u32).flat_map(u32::to_le_bytes).take(6_000_000).collect();
        alice.upload("large.bin", &large).await;
        alice.upload("small.txt", b"one").await;
        let lost = alice.upload("lost.txt", b"two").await;
        server.idle().await;
        for key in bucket.keys().await.iter().filter(|key| key.contains(&lost.replace('-', ""))) {
            bucket.remove(key).await;
        }
        let entries = unpack(&alice, "").await;
        assert_eq!(names(&entries), ["MISSING.txt", "large.bin", "small.txt"], "{store:?}");
        assert!(entries["large.bin"] == large && entries["small.txt"] == b"one");
        // Some stores say of an object that is gone only that it is not the one that was confirmed.
        assert!(missing(&entries).contains("lost.txt"), "{}", missing(&entries));
    }
}
