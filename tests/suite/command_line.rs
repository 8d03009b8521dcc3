//! The command line, as a person and as a script use it.

use std::process::Stdio;

use serde_json::Value;

use crate::support::process::Process;
use crate::support::session::Session;
use crate::support::{TestDb, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_waits_when_the_server_limits_it_and_loses_nothing() {
    let session = Session::with(&[("WRITES_PER_USER", "4/1s")]);
    let names: Vec<String> = (0..12).map(|number| format!("{number}.txt")).collect();
    for name in &names {
        session.write(name, "The harbour closes at low tide.");
    }
    let mut arguments = vec!["upload"];
    arguments.extend(names.iter().map(String::as_str));
    let sent = session.run(&arguments);
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    let listed = session.run(&["files", "--json"]).json();
    assert_eq!(listed["files"].as_array().unwrap().len(), names.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_uploaded_followed_listed_and_found() {
    let session = Session::new();
    session.write("tides.md", "# Tides\n\nThe harbour closes at low tide.");
    session.write("crew.csv", "name,rank\nNemo,captain\n");
    let sent = session.run(&["upload", "tides.md", "crew.csv", "--wait"]);
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);

    let listed = session.run(&["files", "--json"]).json();
    let files = listed["files"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|file| file["status"] == "ready"));
    assert!(session.run(&["files", "--name", "TIDES"]).out.contains("tides.md"));
    assert!(!session.run(&["files", "--name", "tides"]).out.contains("crew.csv"));

    let found = session.run(&["search", "when does the port close?"]);
    assert_eq!(found.code, 0);
    assert!(found.out.contains("tides.md") && found.out.contains("harbour closes"), "{}", found.out);

    let id = files[0]["fileId"].as_str().unwrap();
    let status = session.run(&["status", id]);
    assert!(status.out.contains("ready") && status.out.contains("extracting"), "{}", status.out);
    let batch = session.run(&["status", files[0]["batchId"].as_str().unwrap(), "--json"]).json();
    assert_eq!(batch["summary"]["ready"], 2);
}

/// A container runtime knows exit codes 0 and 1 only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_health_of_a_server_is_an_exit_code() {
    let session = Session::new();
    let server = session.server.base.clone();
    let alive = session.run(&["health", "--server", &server]);
    assert!(alive.code == 0 && alive.out == "ok\n", "{} {}", alive.out, alive.err);
    let ready = session.run(&["health", "--ready", "--server", &server, "--json"]);
    assert!(ready.code == 0 && ready.json()["status"] == "ready", "{} {}", ready.out, ready.err);

    std::fs::remove_file(session.db.folder.path().join("landfall.db")).unwrap();
    // The result of a check serves all requests of the next second.
    let mut broken = session.run(&["health", "--ready", "--server", &server]);
    until("the server notices", async || {
        broken = session.run(&["health", "--ready", "--server", &server]);
        broken.code != 0
    })
    .await;
    assert!(broken.code == 1 && broken.out.starts_with("not ready\n  database: "), "{}", broken.out);
    assert_eq!(session.run(&["health", "--server", &server]).code, 0, "it is still alive");

    let Session { db, server } = session;
    let base = server.base.clone();
    drop(server);
    let (code, out) = crate::support::process::run(&db, &["health", "--server", &base]);
    assert!(code == 1 && out.starts_with("unreachable\n"), "{code} {out}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maintenance_jobs_are_listed_and_run_by_hand() {
    let session = Session::new();
    let ran = session.run(&["jobs", "run", "stuck-file-recovery", "--json"]);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    assert_eq!(ran.json()["metrics"]["totalStuck"], 0);
    let listed = session.run(&["jobs", "list"]);
    assert!(
        listed.out.contains("stuck-file-recovery") && listed.out.contains("totalStuck 0"),
        "{}",
        listed.out
    );
    let jobs = session.run(&["jobs", "list", "--json"]).json();
    assert!(jobs["jobs"].as_array().unwrap().iter().all(|job| job["nextRunAt"].is_string()), "{jobs}");
    let unknown = session.run(&["jobs", "run", "tidy-up"]);
    assert!(unknown.code == 2 && unknown.err.contains("JOB_NOT_FOUND"), "{}", unknown.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stuck_files_are_listed_and_retried() {
    // The file waits at a stage that no worker runs.
    let session = Session::with(&[("WORKER_STAGES", "chunk")]);
    session.write("a.txt", "All is well.");
    assert_eq!(session.run(&["upload", "a.txt"]).code, 0);
    let id = session.run(&["files", "--json"]).json()["files"][0]["fileId"].as_str().unwrap().to_owned();
    let well = session.run(&["stuck"]);
    assert_eq!(well.code, 0, "{}", well.err);
    assert!(
        well.out.contains("No file is stuck") && well.out.contains("1 file waits at extract"),
        "{}",
        well.out
    );

    let wrong_clock = session.db.sqlite_connection();
    let sql =
        "UPDATE files SET is_due = FALSE, run_after = '2099-01-01T00:00:00+00:00' WHERE status = 'queued'";
    assert_eq!(wrong_clock.execute(sql, []).unwrap(), 1);
    let listed = session.run(&["stuck", "list"]).out;
    assert!(listed.contains("a.txt") && listed.contains(&id) && listed.contains("not_due"), "{listed}");
    assert_eq!(session.run(&["stuck", "--json", "--all"]).json()["total"], 1);
    let stranger = session.run(&["token", "--user", "bob"]).out;
    assert_eq!(session.run(&["stuck", "--json", "--token", stranger.trim()]).json()["total"], 0);

    let retried = session.run(&["stuck", "retry-all"]);
    assert!(retried.code == 0 && retried.out.contains("1 file released to the queue"), "{}", retried.out);
    assert_eq!(session.run(&["stuck", "retry-all", "--json"]).json()["retriedCount"], 0);
    let retried = session.run(&["stuck", "retry", &id]);
    assert!(
        retried.out.contains("was queued and is queued now (retry 1)"),
        "{} {}",
        retried.out,
        retried.err
    );
    let unknown = session.run(&["stuck", "retry", "01890000-0000-7000-8000-000000000000"]);
    assert!(unknown.code == 2 && unknown.err.contains("FILE_NOT_FOUND"), "{}", unknown.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphans_are_reported_and_gone_after_a_cleanup() {
    let session = Session::with(&[("ORPHAN_MIN_AGE_MS", "1")]);
    assert!(session.run(&["orphans"]).out.contains("Every blob belongs to a file"));
    let folder = session.db.folder.path().join("blobs/blobs/ff");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("stray"), "x").unwrap();
    // A report is cached for an hour.
    assert_eq!(session.run(&["orphans", "--json"]).json()["orphanBlobs"]["count"], 0);
    until("the blob is old enough", async || {
        session.run(&["orphans", "--all", "--refresh", "--json"]).json()["orphanBlobs"]["count"] == 1
    })
    .await;
    let found = session.run(&["orphans", "--all"]).out;
    assert!(found.contains("1 blob (1 B)") && found.contains("ff/stray"), "{found}");
    let user = session.run(&["token", "--user", "bob"]).out;
    let refused = session.run(&["orphans", "--refresh", "--token", user.trim()]);
    assert!(refused.code == 2 && refused.err.contains("FORBIDDEN"), "{}", refused.err);
    assert_eq!(session.run(&["jobs", "run", "orphan-cleanup"]).code, 0);
    assert!(session.run(&["orphans", "--all", "--refresh"]).out.contains("Every blob belongs to a file"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_overall_status_is_printed_once_for_a_script() {
    let session = Session::new();
    session.write("a.txt", "All is well.");
    session.write("b.pdf", "this is no PDF");
    assert_eq!(session.run(&["upload", "a.txt", "b.pdf", "--wait"]).code, 1);
    let seen = session.run(&["top", "--once", "--all"]);
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
    assert!(!seen.out.contains('\u{1b}'), "no colours without a terminal: {}", seen.out);
    let json = session.run(&["top", "--once", "--json"]).json();
    assert_eq!((&json["dashboard"]["dlqDepth"], &json["stuck"]["total"]), (&Value::from(1), &Value::from(0)));
    assert!(json["queueStatus"]["workers"][0]["name"].is_string(), "{json}");

    let user = session.run(&["token", "--user", "bob"]).out;
    let own = session.run(&["top", "--once", "--token", user.trim()]);
    assert!(own.out.contains("your files") && own.out.contains("none yet"), "{} {}", own.out, own.err);
    assert!(!own.out.contains("WORKER") && !own.out.contains("b.pdf"), "{}", own.out);
    let refused = session.run(&["top", "--once", "--all", "--token", user.trim()]);
    assert!(refused.code == 2 && refused.err.contains("FORBIDDEN"), "{}", refused.err);
    let unreachable = session.run_against("http://127.0.0.1:9", &["top", "--once"]);
    assert!(unreachable.code == 2 && unreachable.err.contains("landfall serve"), "{}", unreachable.err);
    assert_eq!(session.run(&["top", "--once", "--interval", "0"]).code, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_cannot_be_uploaded_gets_its_own_line_and_does_not_stop_the_rest() {
    let session = Session::new();
    session.write("good.txt", "All is well.");
    session.write("empty.txt", "");
    session.write("fake.pdf", "this is no PDF");
    let named = [
        "upload",
        "good.txt",
        "empty.txt",
        "missing.txt",
        "fake.pdf",
        "/dev/null",
        "no*match",
        "--wait",
        "--json",
    ];
    let sent = session.run(&named);
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
    for path in ["empty.txt", "missing.txt", "/dev/null", "no*match"] {
        assert!(of(path).1.is_string(), "{path} says why");
        assert!(sent.err.contains(path), "{}", sent.err);
    }
    let batch = report["batches"][0]["batchId"].as_str().unwrap();
    assert_eq!(
        session.run(&["status", batch, "--json"]).json()["status"],
        "completed",
        "the batch does not wait for them"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_listed_retried_and_discarded() {
    let session = Session::new();
    assert!(session.run(&["dlq", "list"]).out.contains("No dead letters match"));
    session.write("one.pdf", "this is no PDF");
    session.write("two.pdf", "nor is this");
    assert_eq!(session.run(&["upload", "one.pdf", "two.pdf", "--wait"]).code, 1);

    let listed = session.run(&["dlq", "list", "--json", "--code", "NOT_PDF", "--stage", "extract"]).json();
    let entries = listed["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    let shown = session.run(&["dlq", "list", "--limit", "1"]).out;
    assert!(shown.contains("NOT_PDF") && shown.contains("--limit shows more"), "{shown}");
    let groups = session.run(&["dlq", "groups", "--json"]).json();
    assert_eq!(
        (groups["groups"].as_array().unwrap().len(), &groups["groups"][0]["count"]),
        (1, &Value::from(2))
    );
    let fingerprint = groups["groups"][0]["fingerprint"].as_str().unwrap();
    assert!(session.run(&["dlq", "groups"]).out.contains(fingerprint));

    let again = session.run(&["dlq", "retry-all", "--fingerprint", fingerprint, "--wait"]);
    assert_eq!(again.code, 1, "{} {}", again.out, again.err);
    assert!(
        again.out.contains("2 files in the queue again") && again.out.contains("same way"),
        "{}",
        again.out
    );
    let all = session.run(&["dlq", "retry-all", "--code", "NO_TEXT", "--all", "--json"]);
    assert_eq!((all.code, all.json()["retriedCount"].as_i64()), (0, Some(0)));

    let id = entries[0]["fileId"].as_str().unwrap();
    let retried = session.run(&["dlq", "retry", id]);
    assert_eq!(retried.code, 0, "{} {}", retried.out, retried.err);
    until("it failed again", async || session.run(&["dlq", "discard", id]).code == 0).await;
    let left = session.run(&["dlq", "list", "--json"]).json();
    assert_eq!(left["entries"].as_array().unwrap().len(), 1);
    let gone = session.run(&["dlq", "retry", id]);
    assert!(gone.code == 2 && gone.err.contains("FILE_DELETED"), "{}", gone.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_invocation_exits_with_two_and_a_message() {
    let session = Session::new();
    session.write("a.txt", "a");
    let unreachable = session.run_against("http://127.0.0.1:9", &["upload", "a.txt"]);
    assert_eq!(unreachable.code, 2);
    assert!(unreachable.err.contains("landfall serve"), "{}", unreachable.err);
    let unknown = session.run(&["status", "01890000-0000-7000-8000-000000000000"]);
    assert_eq!(unknown.code, 2, "{} {}", unknown.out, unknown.err);
    let stranger = session.run(&["files", "--token", "rubbish"]);
    assert_eq!(stranger.code, 2);
    assert!(stranger.err.contains("INVALID_TOKEN"), "{}", stranger.err);
    assert_eq!(session.run(&["files", "--status", "lost"]).code, 2);
    assert_eq!(session.run(&["token", "--user", "a", "--ttl", "soon"]).code, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_gives_access_to_the_files_of_its_user_only() {
    let session = Session::new();
    session.write("a.txt", "Only for Alice.");
    let token = |user: &str| session.run(&["token", "--user", user]).out.trim().to_owned();
    let (alice, bob) = (token("alice"), token("bob"));
    assert_eq!(session.run(&["upload", "a.txt", "--wait", "--token", &alice]).code, 0);
    let count = |token: &str| {
        session.run(&["files", "--json", "--token", token]).json()["files"].as_array().unwrap().len()
    };
    assert_eq!((count(&alice), count(&bob)), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_exits_with_one_when_it_finds_a_problem() {
    let session = Session::new();
    session.write("a.txt", "All is well.");
    assert_eq!(session.run(&["upload", "a.txt", "--wait"]).code, 0);
    let well = session.run(&["audit", "--json"]);
    assert_eq!((well.code, &well.json()["findings"]), (0, &serde_json::json!([])));
    let stray = session.db.folder.path().join("blobs/blobs/ff");
    std::fs::create_dir_all(&stray).unwrap();
    std::fs::write(stray.join("stray"), "x").unwrap();
    let wrong = session.run(&["audit"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.out.contains("ff/stray"), "{}", wrong.out);
}

#[test]
fn the_settings_are_shown_with_their_sources() {
    let db = TestDb::sqlite();
    std::fs::write(db.folder.path().join(".env"), "CHUNK_SIZE=100\n").unwrap();
    let output = Process::command(&db).args(["config", "--json"]).output().unwrap();
    let settings: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        settings["CHUNK_SIZE"],
        serde_json::json!({ "value": "100", "source": ".env", "group": "Embeddings and chunks" })
    );
    assert_eq!(settings["PORT"]["source"], "environment");
    assert_eq!(
        settings["ROLE"],
        serde_json::json!({ "value": "all", "source": "default", "group": "Server" })
    );
    let output =
        Process::command(&db).arg("config").env("PORT", "x").stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("PORT is \"x\""));
}

#[test]
fn a_command_whose_output_is_closed_early_exits_without_an_error() {
    use std::process::{Command, Stdio};
    let mut command = Command::new(env!("CARGO_BIN_EXE_landfall"))
        .arg("config")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Close the pipe before the command has printed anything.
    drop(command.stdout.take());
    let said = command.wait_with_output().expect("it ends").stderr;
    assert_eq!(String::from_utf8_lossy(&said), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn warnings_are_counted_in_lists_and_written_out_for_a_file() {
    let session = Session::new();
    session.write("half.rtf", "{\\rtf1 Half a {\\b sentence");
    let sent = session.run(&["upload", "half.rtf", "--wait"]);
    assert_eq!(sent.code, 0, "{} {}", sent.out, sent.err);
    assert!(sent.err.contains("half.rtf: ready, with 1 warning"), "{}", sent.err);
    assert!(session.run(&["files"]).out.contains("1 warning"));
    let listed = session.run(&["files", "--json"]).json();
    assert_eq!(listed["files"][0]["warningCount"], 1);
    let shown = session.run(&["status", listed["files"][0]["fileId"].as_str().unwrap()]);
    assert!(
        shown.out.contains("warning  TRUNCATED: This document breaks off before its end"),
        "{}",
        shown.out
    );
}
