//! An archive becomes a batch of files, and its state is that of its files.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::failure::Failure;
use landfall_core::lifecycle::Stage;
use landfall_documents::Member;
use landfall_server::stages::{Job, Output, Work};
use landfall_test_documents as made;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::actions::WorkByName;
use crate::support::script::Gate;
use crate::support::{Client, Setup, TestDb, TestServer, on_each_database, until};

const FILES: &str = "/api/v2/uploads/files";

/// The files in the batch of an archive, by their paths.
async fn members(client: &Client, archive: &Value) -> Vec<Value> {
    let batch = archive["archiveBatchId"].as_str().expect("it was unpacked");
    let listed = client.get(&format!("{FILES}?batchId={batch}&limit=100")).await.ok();
    let mut members = listed["files"].as_array().expect("a list").clone();
    members.sort_by_key(|member| member["attributes"]["path"].as_str().expect("a path").to_owned());
    members
}

async fn until_status(client: &Client, file: &str, status: &str) -> Value {
    until(status, async || client.status(file).await == status).await;
    client.file(file).await
}

fn column<'a>(files: &'a [Value], name: &str) -> Vec<&'a str> {
    files.iter().map(|file| file[name].as_str().expect("a text")).collect()
}

/// An archive whose first file is marked as one that needs a password.
fn locked(path: &str, others: &[(&str, &[u8])]) -> Vec<u8> {
    let files: Vec<(&str, &[u8])> =
        [(path, &b"hidden"[..])].into_iter().chain(others.iter().copied()).collect();
    let mut bytes = made::archive(&files);
    let directory = bytes.windows(4).position(|mark| mark == b"PK\x01\x02").expect("a directory");
    bytes[6] |= 1;
    bytes[directory + 8] |= 1;
    bytes
}

#[on_each_database]
async fn each_file_of_an_archive_is_a_file_of_its_own_and_goes_with_it(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let inner = made::archive(&[("deep/log.txt", b"The maelstrom was sighted")]);
    let bytes = made::archive(&[
        ("reports/", b""),
        ("reports/tides.txt", b"High water at noon, said the harbourmaster"),
        ("../../etc/notes.md", b"# Buoys\n\nRed buoys mark the port side"),
        ("inner.zip", &inner),
        ("empty.txt", b""),
        ("__MACOSX/._tides.txt", b"resource"),
        (".DS_Store", b"resource"),
    ]);
    let file = alice.upload("winter.zip", &bytes).await;
    let archive = until_status(&alice, &file, "ready").await;

    let members = members(&alice, &archive).await;
    let paths: Vec<&str> =
        members.iter().map(|member| member["attributes"]["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["etc/notes.md", "inner.zip/deep/log.txt", "reports/tides.txt"]);
    assert_eq!(column(&members, "fileName"), ["notes.md", "log.txt", "tides.txt"]);
    assert_eq!(column(&members, "status"), ["ready"; 3]);
    let batch = alice.batch(archive["archiveBatchId"].as_str().unwrap()).await;
    assert_eq!((&batch["status"], &batch["archiveFileId"]), (&json!("completed"), &json!(file)));
    assert_eq!(batch["metadata"]["leftOut"]["files"][0]["path"], "empty.txt");
    let warnings = archive["warnings"].as_array().unwrap();
    assert_eq!((warnings.len(), &warnings[0]["code"]), (1, &json!("PARTS_NOT_READ")));
    assert!(warnings[0]["message"].as_str().unwrap().contains("empty.txt: It is empty"), "{warnings:?}");

    let hits = alice.search("harbourmaster").await;
    assert_eq!(hits[0]["fileId"], members[2]["fileId"], "{hits:?}");
    let text = alice.request(reqwest::Method::GET, &format!("{FILES}/{file}/text")).send().await.unwrap();
    let listed = "# winter.zip\n\n- etc/notes.md\n- inner.zip/deep/log.txt\n- reports/tides.txt";
    assert_eq!(text.text().await.unwrap(), listed);
    let sizes: i64 = members.iter().map(|member| member["size"].as_i64().unwrap()).sum();
    let of_archive = i64::try_from(bytes.len()).unwrap();
    assert_eq!(alice.quota().await, (0, of_archive + sizes), "each file is charged");
    server.assert_audit_clean().await;

    alice.delete(&format!("{FILES}/{file}")).await;
    until("its files are deleted", async || alice.quota().await == (0, 0)).await;
    for member in &members {
        alice
            .get(&format!("{FILES}/{}", member["fileId"].as_str().unwrap()))
            .await
            .refused(410, "FILE_DELETED");
    }
    assert_eq!(alice.search("harbourmaster").await, [] as [Value; 0]);
    until("their blobs are gone", async || {
        server.app.blobs.list("", None).next_page(1).await.unwrap().is_empty()
    })
    .await;
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn an_archive_is_ready_with_a_warning_if_some_of_its_files_failed_and_fails_if_all_did(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let some = made::archive(&[("a.txt", b"Wind from the west"), ("fake.pdf", b"this is no PDF")]);
    let some = alice.upload("some.zip", &some).await;
    let ready = until_status(&alice, &some, "ready").await;
    let warning = ready["warnings"][0]["message"].as_str().unwrap();
    assert_eq!(ready["warningCount"], 1);
    assert!(warning.contains("Of the 2 files in this archive, 1 failed (fake.pdf)"), "{warning}");

    let none = made::archive(&[("one.pdf", b"this is no PDF"), ("two.pdf", b"nor is this")]);
    let none = alice.upload("none.zip", &none).await;
    let failed = until_status(&alice, &none, "failed").await;
    assert_eq!(failed["error"]["code"], "ARCHIVE_FAILED");
    assert!(failed["error"]["message"].as_str().unwrap().contains("2 failed"), "{}", failed["error"]);
    let before = members(&alice, &failed).await;
    assert_eq!(column(&before, "status"), ["failed"; 2]);

    // A retry of the archive retries its files.
    alice.post(&format!("{FILES}/{none}/retry"), json!({})).await.ok();
    until("it failed again", async || {
        let seen = alice.file(&none).await;
        seen["status"] == "failed" && seen["retriedAt"].is_string()
    })
    .await;
    for member in members(&alice, &failed).await {
        assert_eq!((&member["status"], &member["retriedBy"]), (&json!("failed"), &json!("alice")));
        let states = alice.states(member["fileId"].as_str().unwrap()).await;
        assert_eq!(states.iter().filter(|state| *state == "failed").count(), 2, "{states:?}");
    }
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn an_archive_that_does_not_fit_into_the_quota_leaves_none_of_its_files(db: TestDb) {
    let server = Setup::default().with("DEFAULT_TENANT_QUOTA_FILES", 4).start(&db).await;
    let alice = server.client("alice");
    let first = alice.upload("first.txt", b"Wind from the west").await;
    let bytes = made::archive(&[("a.txt", b"one"), ("b.txt", b"two"), ("c.txt", b"three")]);
    let file = alice.upload("three.zip", &bytes).await;
    let failed = until_status(&alice, &file, "failed").await;
    assert_eq!(
        (&failed["error"]["code"], &failed["archiveBatchId"]),
        (&json!("QUOTA_EXCEEDED"), &json!(null))
    );
    let listed = alice.get(FILES).await.ok();
    assert_eq!(listed["files"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(alice.get("/api/v2/uploads/batches").await.ok()["batches"], json!([]));

    alice.delete(&format!("{FILES}/{first}")).await;
    alice.post(&format!("{FILES}/{file}/retry"), json!({})).await.ok();
    let ready = until_status(&alice, &file, "ready").await;
    assert_eq!(members(&alice, &ready).await.len(), 3);
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn hostile_and_unreadable_archives_end_with_a_reason_and_leave_no_files(db: TestDb) {
    let server =
        Setup::default().with("ARCHIVE_MAX_FILES", 3).with("ARCHIVE_MAX_BYTES", "2MB").start(&db).await;
    let alice = server.client("alice");
    let files: Vec<(&str, &[u8])> =
        ["a.txt", "b.txt", "c.txt", "d.txt"].iter().map(|name| (*name, &b"x"[..])).collect();
    let large = vec![b'x'; 3 << 20];
    let nested = made::archive(&files[..2]);
    let mut damaged = made::archive(&[("a.txt", b"one")]);
    damaged.truncate(damaged.len() - 10);
    let cases: Vec<(&str, Vec<u8>, &str, &str)> = vec![
        ("many.zip", made::archive(&files), "TOO_LARGE", "more than 3 files"),
        (
            "nested.zip",
            made::archive(&[("a.txt", b"x"), ("b.txt", b"x"), ("in.zip", &nested)]),
            "TOO_LARGE",
            "more than 3 files",
        ),
        ("large.zip", made::archive(&[("a.txt", &large)]), "TOO_LARGE", "unpacks to more than 2 MB"),
        ("locked.zip", locked("a.txt", &[]), "NO_TEXT", "protected by a password"),
        (
            "system.zip",
            made::archive(&[(".DS_Store", b"x"), ("a/", b"")]),
            "NO_TEXT",
            "no files in this archive",
        ),
        ("blank.zip", made::archive(&[("a.txt", b"")]), "NO_TEXT", "It is empty"),
        ("damaged.zip", damaged, "PARSE_ERROR", "damaged"),
    ];
    for (name, bytes, code, words) in cases {
        let file = alice.upload(name, &bytes).await;
        let failed = until_status(&alice, &file, "failed").await;
        assert_eq!(failed["error"]["code"], code, "{name}: {}", failed["error"]);
        assert!(failed["error"]["message"].as_str().unwrap().contains(words), "{name}: {}", failed["error"]);
        assert_eq!(failed["archiveBatchId"], json!(null), "{name}");
        alice.delete(&format!("{FILES}/{file}")).await;
    }
    assert_eq!(alice.quota().await, (0, 0), "no file is left of any");

    let mixed =
        alice.upload("mixed.zip", &locked("secret.txt", &[("open.txt", b"Wind from the west")])).await;
    let ready = until_status(&alice, &mixed, "ready").await;
    let warning = ready["warnings"][0]["message"].as_str().unwrap();
    assert!(warning.contains("secret.txt: It is protected by a password"), "{warning}");
    server.assert_audit_clean().await;
    server.stop().await;
}

/// Files with an `s` wait at their embedding.
struct SlowFiles {
    by_name: WorkByName,
    gate: Gate,
}

impl Work for SlowFiles {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        async move {
            if job.stage == Stage::Embed && job.file.file_name.starts_with('s') {
                self.gate.wait().await;
            }
            self.by_name.run(job).await
        }
        .boxed()
    }

    fn unpack<'a>(
        &'a self,
        job: &'a Job,
        members: mpsc::Sender<Member>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        self.by_name.unpack(job, members)
    }
}

#[on_each_database]
async fn an_archive_waits_for_its_files_and_is_cancelled_and_retried_with_them(db: TestDb) {
    let gate = Gate::default();
    let work = SlowFiles { by_name: WorkByName::default(), gate: gate.clone() };
    let server = Setup::default().work(Arc::new(work)).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("z:a,s", b"made").await;
    gate.reached().await;
    until("it waits for its files", async || alice.file(&file).await["waitingFor"] == "members").await;
    let waiting = alice.file(&file).await;
    assert_eq!((&waiting["status"], &waiting["attempt"]), (&json!("queued"), &json!(0)));
    let of_archive = members(&alice, &waiting).await;
    let [quick, slow] = &of_archive[..] else { panic!("{of_archive:?}") };
    let (quick, slow) = (quick["fileId"].as_str().unwrap(), slow["fileId"].as_str().unwrap());
    until_status(&alice, quick, "ready").await;

    alice.post(&format!("{FILES}/{file}/cancel"), json!({})).await.ok();
    assert_eq!(alice.status(&file).await, "cancelled");
    assert_eq!(
        (alice.status(quick).await.as_str(), alice.status(slow).await.as_str()),
        ("ready", "cancelled")
    );
    gate.open();
    server.idle().await;
    assert_eq!(alice.status(slow).await, "cancelled", "the fence held");
    server.assert_audit_clean().await;

    alice.post(&format!("{FILES}/{file}/retry"), json!({})).await.ok();
    gate.reached().await;
    gate.open();
    until_status(&alice, &file, "ready").await;
    assert_eq!(alice.status(slow).await, "ready");
    server.assert_audit_clean().await;
    server.stop().await;
}
