//! The command line, as a person and as a script use it.

use std::process::Stdio;

use serde_json::Value;
use sqlx::{Connection, SqliteConnection};

use crate::support::process::Process;
use crate::support::{TestDb, until};

/// A server, a folder to work in, and the program to work with.
struct Desk {
    db: TestDb,
    server: Process,
}

struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    /// The one JSON value that a script reads.
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {:?} {:?}", self.out, self.err))
    }
}

impl Desk {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(variables: &[(&str, &str)]) -> Self {
        let db = TestDb::sqlite();
        let server = Process::start(&db, variables);
        Self { db, server }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.db.folder.path().join(name), text).unwrap();
    }

    fn say(&self, arguments: &[&str]) -> Said {
        self.say_to(&self.server.base, arguments)
    }

    fn say_to(&self, server: &str, arguments: &[&str]) -> Said {
        let output = Process::command(&self.db)
            .args(arguments)
            .env("LANDFALL_URL", server)
            .stderr(Stdio::piped())
            .output()
            .expect("the program runs");
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_sent_followed_listed_and_found() {
    let desk = Desk::new();
    desk.write("tides.md", "# Tides\n\nThe harbour closes at low tide.");
    desk.write("crew.csv", "name,rank\nNemo,captain\n");
    let sent = desk.say(&["upload", "tides.md", "crew.csv", "--wait"]);
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);

    let listed = desk.say(&["files", "--json"]).json();
    let files = listed["files"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|file| file["status"] == "ready"));
    assert!(desk.say(&["files", "--name", "TIDES"]).out.contains("tides.md"));
    assert!(!desk.say(&["files", "--name", "tides"]).out.contains("crew.csv"));

    let found = desk.say(&["search", "when does the port close?"]);
    assert_eq!(found.code, 0);
    assert!(found.out.contains("tides.md") && found.out.contains("harbour closes"), "{}", found.out);

    let id = files[0]["fileId"].as_str().unwrap();
    let status = desk.say(&["status", id]);
    assert!(status.out.contains("ready") && status.out.contains("extracting"), "{}", status.out);
    let batch = desk.say(&["status", files[0]["batchId"].as_str().unwrap(), "--json"]).json();
    assert_eq!(batch["summary"]["ready"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maintenance_is_listed_and_run_by_hand() {
    let desk = Desk::new();
    let ran = desk.say(&["jobs", "run", "stuck-file-recovery", "--json"]);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    assert_eq!(ran.json()["metrics"]["totalStuck"], 0);
    let listed = desk.say(&["jobs", "list"]);
    assert!(
        listed.out.contains("stuck-file-recovery") && listed.out.contains("totalStuck 0"),
        "{}",
        listed.out
    );
    let jobs = desk.say(&["jobs", "list", "--json"]).json();
    assert!(jobs["jobs"].as_array().unwrap().iter().all(|job| job["nextRunAt"].is_string()), "{jobs}");
    let unknown = desk.say(&["jobs", "run", "tidy-up"]);
    assert!(unknown.code == 2 && unknown.err.contains("JOB_NOT_FOUND"), "{}", unknown.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stuck_files_are_listed_and_given_back() {
    // It waits at a stage that nobody does.
    let desk = Desk::with(&[("WORKER_STAGES", "chunk")]);
    desk.write("a.txt", "All is well.");
    assert_eq!(desk.say(&["upload", "a.txt"]).code, 0);
    let id = desk.say(&["files", "--json"]).json()["files"][0]["fileId"].as_str().unwrap().to_owned();
    let well = desk.say(&["stuck"]);
    assert_eq!(well.code, 0, "{}", well.err);
    assert!(
        well.out.contains("No file is stuck") && well.out.contains("1 file waits at extract"),
        "{}",
        well.out
    );

    let mut wrong_clock = SqliteConnection::connect(&desk.db.url).await.unwrap();
    let sql =
        "UPDATE files SET is_due = FALSE, run_after = '2099-01-01T00:00:00+00:00' WHERE status = 'queued'";
    assert_eq!(sqlx::query(sql).execute(&mut wrong_clock).await.unwrap().rows_affected(), 1);
    let listed = desk.say(&["stuck", "list"]).out;
    assert!(listed.contains("a.txt") && listed.contains(&id) && listed.contains("not_due"), "{listed}");
    assert_eq!(desk.say(&["stuck", "--json", "--all"]).json()["total"], 1);
    let stranger = desk.say(&["token", "--user", "bob"]).out;
    assert_eq!(desk.say(&["stuck", "--json", "--token", stranger.trim()]).json()["total"], 0);

    let retried = desk.say(&["stuck", "retry-all"]);
    assert!(retried.code == 0 && retried.out.contains("1 file released to the queue"), "{}", retried.out);
    assert_eq!(desk.say(&["stuck", "retry-all", "--json"]).json()["retriedCount"], 0);
    let retried = desk.say(&["stuck", "retry", &id]);
    assert!(
        retried.out.contains("was queued and is queued now (retry 1)"),
        "{} {}",
        retried.out,
        retried.err
    );
    let unknown = desk.say(&["stuck", "retry", "01890000-0000-7000-8000-000000000000"]);
    assert!(unknown.code == 2 && unknown.err.contains("FILE_NOT_FOUND"), "{}", unknown.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_over_is_reported_and_gone_after_cleaning() {
    let desk = Desk::with(&[("ORPHAN_MIN_AGE_MS", "1")]);
    assert!(desk.say(&["orphans"]).out.contains("Every blob belongs to a file"));
    let folder = desk.db.folder.path().join("blobs/blobs/ff");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("stray"), "x").unwrap();
    // A look is good for an hour.
    assert_eq!(desk.say(&["orphans", "--json"]).json()["orphanBlobs"]["count"], 0);
    until("it is old enough", async || {
        desk.say(&["orphans", "--refresh", "--json"]).json()["orphanBlobs"]["count"] == 1
    })
    .await;
    let found = desk.say(&["orphans"]).out;
    assert!(found.contains("1 blob (1 B)") && found.contains("ff/stray"), "{found}");
    let user = desk.say(&["token", "--user", "bob"]).out;
    let refused = desk.say(&["orphans", "--refresh", "--token", user.trim()]);
    assert!(refused.code == 2 && refused.err.contains("FORBIDDEN"), "{}", refused.err);
    assert_eq!(desk.say(&["jobs", "run", "orphan-cleanup"]).code, 0);
    assert!(desk.say(&["orphans", "--refresh"]).out.contains("Every blob belongs to a file"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_everything_stands_is_printed_once_for_a_script() {
    let desk = Desk::new();
    desk.write("a.txt", "All is well.");
    desk.write("b.pdf", "this is no PDF");
    assert_eq!(desk.say(&["upload", "a.txt", "b.pdf", "--wait"]).code, 1);
    let seen = desk.say(&["top", "--once", "--all"]);
    assert_eq!(seen.code, 0, "{}", seen.err);
    for part in [
        "files of all users",
        "1 ready in 24 h",
        "failed 1",
        "QUEUE",
        "WORKER",
        "SCHEDULE",
        "NOT_PDF",
        "b.pdf",
    ] {
        assert!(seen.out.contains(part), "{part}: {}", seen.out);
    }
    assert!(!seen.out.contains('\u{1b}'), "no colours where no terminal is: {}", seen.out);
    let json = desk.say(&["top", "--once", "--json"]).json();
    assert_eq!((&json["dashboard"]["dlqDepth"], &json["stuck"]["total"]), (&Value::from(1), &Value::from(0)));
    assert!(json["queueStatus"]["workers"][0]["name"].is_string(), "{json}");

    let user = desk.say(&["token", "--user", "bob"]).out;
    let own = desk.say(&["top", "--once", "--token", user.trim()]);
    assert!(own.out.contains("your files") && own.out.contains("none yet"), "{} {}", own.out, own.err);
    assert!(!own.out.contains("WORKER") && !own.out.contains("b.pdf"), "{}", own.out);
    let refused = desk.say(&["top", "--once", "--all", "--token", user.trim()]);
    assert!(refused.code == 2 && refused.err.contains("FORBIDDEN"), "{}", refused.err);
    let nobody = desk.say_to("http://127.0.0.1:9", &["top", "--once"]);
    assert!(nobody.code == 2 && nobody.err.contains("landfall serve"), "{}", nobody.err);
    assert_eq!(desk.say(&["top", "--once", "--interval", "0"]).code, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_sent_or_read_has_its_own_line_and_does_not_stop_the_rest() {
    let desk = Desk::new();
    desk.write("good.txt", "All is well.");
    desk.write("empty.txt", "");
    desk.write("fake.pdf", "this is no PDF");
    let sent =
        desk.say(&["upload", "good.txt", "empty.txt", "missing.txt", "fake.pdf", ".", "--wait", "--json"]);
    assert_eq!(sent.code, 1, "{}", sent.err);
    let report = sent.json();
    let of = |path: &str| {
        let files = report["files"].as_array().unwrap();
        let file =
            files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("{path}: {report}"));
        (file["status"].clone(), file["error"]["code"].clone())
    };
    assert_eq!(of("good.txt").0, "ready");
    assert_eq!(of("fake.pdf"), (Value::from("failed"), Value::from("NOT_PDF")));
    for path in ["empty.txt", "missing.txt", "."] {
        assert!(of(path).1.is_string(), "{path} says why");
        assert!(sent.err.contains(path), "{}", sent.err);
    }
    let batch = report["batches"][0]["batchId"].as_str().unwrap();
    assert_eq!(desk.say(&["status", batch, "--json"]).json()["status"], "completed", "it waits for nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_listed_retried_and_discarded() {
    let desk = Desk::new();
    assert!(desk.say(&["dlq", "list"]).out.contains("No dead letters match"));
    desk.write("one.pdf", "this is no PDF");
    desk.write("two.pdf", "nor is this");
    assert_eq!(desk.say(&["upload", "one.pdf", "two.pdf", "--wait"]).code, 1);

    let listed = desk.say(&["dlq", "list", "--json", "--code", "NOT_PDF", "--stage", "extract"]).json();
    let entries = listed["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    let shown = desk.say(&["dlq", "list", "--limit", "1"]).out;
    assert!(shown.contains("NOT_PDF") && shown.contains("--limit shows more"), "{shown}");
    let groups = desk.say(&["dlq", "groups", "--json"]).json();
    assert_eq!(
        (groups["groups"].as_array().unwrap().len(), &groups["groups"][0]["count"]),
        (1, &Value::from(2))
    );
    let fingerprint = groups["groups"][0]["fingerprint"].as_str().unwrap();
    assert!(desk.say(&["dlq", "groups"]).out.contains(fingerprint));

    let again = desk.say(&["dlq", "retry-all", "--fingerprint", fingerprint, "--wait"]);
    assert_eq!(again.code, 1, "{} {}", again.out, again.err);
    assert!(
        again.out.contains("2 files in the queue again") && again.out.contains("same way"),
        "{}",
        again.out
    );
    let all = desk.say(&["dlq", "retry-all", "--code", "NO_TEXT", "--all", "--json"]);
    assert_eq!((all.code, all.json()["retriedCount"].as_i64()), (0, Some(0)));

    let id = entries[0]["fileId"].as_str().unwrap();
    let retried = desk.say(&["dlq", "retry", id]);
    assert_eq!(retried.code, 0, "{} {}", retried.out, retried.err);
    until("it failed once more", async || desk.say(&["dlq", "discard", id]).code == 0).await;
    let left = desk.say(&["dlq", "list", "--json"]).json();
    assert_eq!(left["entries"].as_array().unwrap().len(), 1);
    let gone = desk.say(&["dlq", "retry", id]);
    assert!(gone.code == 2 && gone.err.contains("FILE_DELETED"), "{}", gone.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_asked_wrongly_ends_with_two_and_a_sentence() {
    let desk = Desk::new();
    desk.write("a.txt", "a");
    let nobody = desk.say_to("http://127.0.0.1:9", &["upload", "a.txt"]);
    assert_eq!(nobody.code, 2);
    assert!(nobody.err.contains("landfall serve"), "{}", nobody.err);
    let unknown = desk.say(&["status", "01890000-0000-7000-8000-000000000000"]);
    assert_eq!(unknown.code, 2, "{} {}", unknown.out, unknown.err);
    let stranger = desk.say(&["files", "--token", "rubbish"]);
    assert_eq!(stranger.code, 2);
    assert!(stranger.err.contains("INVALID_TOKEN"), "{}", stranger.err);
    assert_eq!(desk.say(&["files", "--status", "lost"]).code, 2);
    assert_eq!(desk.say(&["token", "--user", "a", "--ttl", "soon"]).code, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_the_files_of_its_user_and_no_others() {
    let desk = Desk::new();
    desk.write("a.txt", "Only for Alice.");
    let token = |user: &str| desk.say(&["token", "--user", user]).out.trim().to_owned();
    let (alice, bob) = (token("alice"), token("bob"));
    assert_eq!(desk.say(&["upload", "a.txt", "--wait", "--token", &alice]).code, 0);
    let count = |token: &str| {
        desk.say(&["files", "--json", "--token", token]).json()["files"].as_array().unwrap().len()
    };
    assert_eq!((count(&alice), count(&bob)), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_ends_with_one_when_something_is_wrong() {
    let desk = Desk::new();
    desk.write("a.txt", "All is well.");
    assert_eq!(desk.say(&["upload", "a.txt", "--wait"]).code, 0);
    let well = desk.say(&["audit", "--json"]);
    assert_eq!((well.code, &well.json()["findings"]), (0, &serde_json::json!([])));
    let stray = desk.db.folder.path().join("blobs/blobs/ff");
    std::fs::create_dir_all(&stray).unwrap();
    std::fs::write(stray.join("stray"), "x").unwrap();
    let wrong = desk.say(&["audit"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.out.contains("ff/stray"), "{}", wrong.out);
}

#[test]
fn the_settings_are_shown_with_where_they_come_from() {
    let db = TestDb::sqlite();
    std::fs::write(db.folder.path().join(".env"), "CHUNK_SIZE=100\n").unwrap();
    let output = Process::command(&db).args(["config", "--json"]).output().unwrap();
    let settings: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(settings["CHUNK_SIZE"], serde_json::json!({ "value": "100", "source": ".env" }));
    assert_eq!(settings["PORT"]["source"], "environment");
    assert_eq!(settings["ROLE"], serde_json::json!({ "value": "all", "source": "default" }));
    let output =
        Process::command(&db).arg("config").env("PORT", "x").stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("PORT is \"x\""));
}

#[test]
fn a_command_that_nobody_reads_to_the_end_ends_without_a_complaint() {
    use std::process::{Command, Stdio};
    let mut command = Command::new(env!("CARGO_BIN_EXE_landfall"))
        .arg("config")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Gone before it has said anything.
    drop(command.stdout.take());
    let said = command.wait_with_output().expect("it ends").stderr;
    assert_eq!(String::from_utf8_lossy(&said), "");
}
