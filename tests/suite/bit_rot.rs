//! Stored bytes that are not those that arrived: they are found, reported, and never passed on as if nothing were wrong.

use std::path::PathBuf;

use landfall_store::args;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::fixture::text;
use crate::support::offline_app::Sql;
use crate::support::{Client, Script, Setup, TestDb, TestServer, on_each_database, until};

const CONTENT: &[u8] = b"The lighthouse is lit at dusk and put out at dawn.";

/// The file in which the storage keeps the bytes of a file.
fn blob_of(db: &TestDb, file: &str) -> PathBuf {
    let id = file.replace('-', "");
    let folder = db.folder.path().join("blobs/blobs").join(&id[30..]).join(&id);
    let mut entries = std::fs::read_dir(folder).expect("the blob is there");
    entries.next().expect("the blob is there").expect("an entry").path()
}

/// Changes one bit.
fn rot(path: &PathBuf, at: usize) {
    let mut bytes = std::fs::read(path).expect("the blob is there");
    bytes[at] ^= 1;
    std::fs::write(path, bytes).expect("it is written");
}

async fn scrub(server: &TestServer) -> Value {
    let admin = server.admin();
    server.run_job("blob-scrub").await;
    let mut run = Value::Null;
    until("the scrub ends", async || {
        let jobs = admin.get("/api/v2/admin/jobs").await.ok();
        let jobs = jobs["jobs"].as_array().expect("jobs");
        let job = jobs.iter().find(|job| job["name"] == "blob-scrub").expect("the job");
        run = job["lastRun"].clone();
        !run["endedAt"].is_null()
    })
    .await;
    run
}

/// As if they had not been checked for a long time.
async fn forget_checks(server: &TestServer) {
    let sql = "UPDATE files SET blob_checked_at = NULL";
    server.app.db.write(Sql(sql.to_owned(), args![])).await.expect("it is written");
}

async fn metric(server: &TestServer, name: &str) -> f64 {
    let answer = reqwest::get(format!("{}/metrics", server.base)).await.expect("an answer");
    let answer = answer.text().await.expect("text");
    let line = answer.lines().find(|line| line.starts_with(&format!("{name} "))).expect("the metric");
    line.rsplit(' ').next().expect("a value").parse().expect("a number")
}

async fn download(client: &Client, file: &str) -> reqwest::Response {
    let path = format!("/api/v2/uploads/files/{file}/download");
    client.request(Method::GET, &path).send().await.expect("an answer")
}

#[on_each_database]
async fn a_flipped_bit_is_reported_by_the_scrub_until_the_bytes_are_restored(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let (rotten, lost) = (alice.upload("a.txt", CONTENT).await, alice.upload("b.txt", CONTENT).await);
    let good = alice.upload("c.txt", CONTENT).await;
    server.idle().await;
    rot(&blob_of(&db, &rotten), 7);
    std::fs::remove_file(blob_of(&db, &lost)).expect("it is there");
    assert_eq!(scrub(&server).await["metrics"]["checked"], 0, "what has just arrived is not due");

    forget_checks(&server).await;
    let run = scrub(&server).await;
    assert_eq!(run["metrics"]["checked"], 3, "{run}");
    assert_eq!(run["metrics"]["damaged"], 2, "{run}");
    let errors = run["errors"].to_string();
    assert!(errors.contains(&format!("{rotten}: its bytes are not those that were uploaded")), "{errors}");
    assert!(errors.contains(&format!("{lost}: its bytes are gone")), "{errors}");
    assert!(!errors.contains(&good), "{errors}");
    assert!(metric(&server, "landfall_damaged_files").await > 1.9);
    let findings = server.findings().await;
    let about = |file: &str| {
        findings
            .iter()
            .any(|it| it.invariant == "stored bytes are those that arrived" && it.what.contains(file))
    };
    assert!(about(&rotten) && about(&lost) && !about(&good), "{findings:?}");
    download(&alice, &rotten).await;

    // The operator restores one, and the owner deletes the other.
    rot(&blob_of(&db, &rotten), 7);
    alice.delete(&format!("/api/v2/uploads/files/{lost}")).await.ok();
    forget_checks(&server).await;
    let run = scrub(&server).await;
    assert_eq!((&run["metrics"]["damaged"], &run["errors"]), (&json!(0), &json!([])), "{run}");
    assert!(metric(&server, "landfall_damaged_files").await < 0.1);
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn work_on_changed_bytes_fails_with_the_reason_and_succeeds_once_they_are_restored(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let file = server.client("alice").upload("a.txt", CONTENT).await;
    server.stop().await;
    rot(&blob_of(&db, &file), 20);

    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    server.idle().await;
    let shown = alice.file(&file).await;
    assert_eq!(
        (text(&shown["status"]), text(&shown["error"]["code"])),
        ("failed", "BLOB_DAMAGED"),
        "{shown}"
    );
    assert!(text(&shown["error"]["message"]).contains("not those that were uploaded"), "{shown}");

    rot(&blob_of(&db, &file), 20);
    alice.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({})).await.ok();
    server.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn changed_bytes_are_not_downloaded_as_if_they_were_right(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let small = alice.upload("small.txt", CONTENT).await;
    let content = vec![b'x'; 6 << 20];
    let large = alice.upload("large.bin", &content).await;
    let cut = alice.upload("cut.txt", CONTENT).await;
    server.idle().await;
    assert_eq!(download(&alice, &large).await.bytes().await.expect("bytes"), content);
    rot(&blob_of(&db, &small), 0);
    // The last byte: all others were sent by then.
    rot(&blob_of(&db, &large), content.len() - 1);
    std::fs::write(blob_of(&db, &cut), "The light").expect("it is written");
    for file in [&small, &cut] {
        let path = format!("/api/v2/uploads/files/{file}/download");
        alice.get(&path).await.refused(500, "FILE_DAMAGED");
    }
    let broken = download(&alice, &large).await;
    assert!(broken.bytes().await.is_err(), "the connection breaks off before the end");
    // Once that is known, the client is told so.
    forget_checks(&server).await;
    scrub(&server).await;
    let path = format!("/api/v2/uploads/files/{large}/download");
    alice.get(&path).await.refused(500, "FILE_DAMAGED");
    server.stop().await;
}

#[on_each_database]
async fn files_from_before_get_their_checksum_from_the_scrub(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let (good, rotten) = (alice.upload("a.txt", CONTENT).await, alice.upload("b.txt", CONTENT).await);
    server.idle().await;
    let before = "UPDATE files SET blob_sha256 = NULL, blob_checked_at = NULL";
    server.app.db.write(Sql(before.to_owned(), args![])).await.expect("it is written");
    rot(&blob_of(&db, &rotten), 3);
    let run = scrub(&server).await;
    assert_eq!((&run["metrics"]["checked"], &run["metrics"]["damaged"]), (&json!(2), &json!(1)), "{run}");
    let sql = "SELECT CAST(id AS TEXT), blob_sha256 FROM files WHERE blob_sha256 IS NOT NULL";
    let sql = if server.app.db.is_postgres() {
        sql
    } else {
        "SELECT file_name, blob_sha256 FROM files WHERE blob_sha256 IS NOT NULL"
    };
    let known: Vec<(String, String)> =
        server.app.db.read().await.expect("a connection").rows(sql, args![]).await.expect("rows");
    let expected = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(CONTENT));
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].1, expected);
    assert!([good.as_str(), "a.txt"].contains(&known[0].0.as_str()));
    server.stop().await;
}

#[on_each_database]
async fn a_link_in_the_place_of_a_blob_is_not_followed(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", CONTENT).await;
    server.idle().await;
    let elsewhere = db.folder.path().join("elsewhere");
    std::fs::write(&elsewhere, CONTENT).expect("it is written");
    let blob = blob_of(&db, &file);
    std::fs::remove_file(&blob).expect("it is there");
    std::os::unix::fs::symlink(&elsewhere, &blob).expect("a link");
    alice.get(&format!("/api/v2/uploads/files/{file}/download")).await.refused(404, "FILE_NOT_FOUND");
    alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
    assert_eq!(std::fs::read(&elsewhere).expect("it is still there"), CONTENT);
    server.stop().await;
}
