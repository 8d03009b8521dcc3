//! The file of a SQLite database is deleted or replaced under a server: nothing is confirmed that would be lost.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::support::process::Process;
use crate::support::{Client, TestDb, until};

const CODE: &str = "DATABASE_FILE_GONE";

struct Running {
    db: TestDb,
    process: Process,
    client: Client,
}

impl Running {
    fn start() -> Self {
        let db = TestDb::sqlite();
        let log = std::fs::File::create(db.folder.path().join("log")).expect("a file");
        let process = Process::start_with_log(&db, &[], Stdio::from(log));
        let client = process.client();
        Self { db, process, client }
    }

    fn file(&self) -> PathBuf {
        self.db.folder.path().join("landfall.db")
    }

    fn errors(&self) -> usize {
        let log = std::fs::read_to_string(self.db.folder.path().join("log")).expect("the log");
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let says_so =
            |line: &Value| line["message"].as_str().is_some_and(|text| text.starts_with("The database file"));
        lines.filter(|line| line["level"] == "ERROR" && says_so(line)).count()
    }

    /// Nothing is confirmed, registered or shown, and every answer says why.
    async fn assert_refuses(&self, uploaded: &str) {
        let refused = self.client.confirm(uploaded).await.refused(503, CODE);
        let message = refused["message"].as_str().expect("a message");
        assert!(message.contains("deleted or replaced") && message.contains("operator"), "{message}");
        self.client.get(&format!("/api/v2/uploads/files/{uploaded}")).await.refused(503, CODE);
        let ready = self.client.get("/readyz").await;
        let database = &ready.body["checks"]["database"];
        assert_eq!((ready.status, &database["status"]), (503, &Value::from("failed")));
        assert!(
            database["message"].as_str().is_some_and(|text| text.contains("deleted or replaced")),
            "{database}"
        );
        assert_eq!(self.client.get("/healthz").await.status, 200);
        until("the log says so, once", async || self.errors() == 1).await;
    }
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", file.display()))
}

#[tokio::test]
async fn a_server_whose_database_file_was_deleted_confirms_nothing() {
    let running = Running::start();
    let file = running.client.send_bytes(None, "a.txt", b"The anchor holds.").await;
    for ending in ["", "-wal", "-shm"] {
        std::fs::remove_file(with_ending(&running.file(), ending)).expect("it is there");
    }
    running.assert_refuses(&file).await;
    assert!(!running.file().exists(), "no empty database is made in its place");
}

#[tokio::test]
async fn a_server_whose_database_file_was_replaced_confirms_nothing() {
    let running = Running::start();
    let file = running.client.send_bytes(None, "a.txt", b"The anchor holds.").await;
    let copy = with_ending(&running.file(), ".copy");
    std::fs::copy(running.file(), &copy).expect("it can be copied");
    std::fs::rename(&copy, running.file()).expect("it can be renamed");
    running.assert_refuses(&file).await;
}

#[tokio::test]
async fn a_database_file_that_is_put_back_is_used_again() {
    let running = Running::start();
    let file = running.client.send_bytes(None, "a.txt", b"The anchor holds.").await;
    let aside = with_ending(&running.file(), ".aside");
    std::fs::rename(running.file(), &aside).expect("it can be renamed");
    running.assert_refuses(&file).await;
    std::fs::rename(&aside, running.file()).expect("it can be renamed");
    running.client.confirm(&file).await.ok();
    until("it is ready", async || running.client.status(&file).await == "ready").await;
    running.process.signal("TERM");
    assert!(running.process.wait(), "it exits cleanly");
    let (code, printed) = crate::support::process::run(&running.db, &["audit"]);
    assert_eq!(code, 0, "{printed}");
}
