//! Clients and settings of the systems that Landfall replaces: they are understood, or told what to do.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage::{Chunk, Extract};
use landfall_server::config::{Config, Variables};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::{Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database, until};

const DLQ: &str = "/api/v2/uploads/dlq";

/// A server on which so many of alice's files failed.
async fn with_failures(db: &TestDb, count: usize) -> TestServer {
    let script = Script::new();
    for _ in 0..count {
        script.then(Extract, Step::Fail(Code::ParseError));
    }
    let server = Setup::default().work(script).start(db).await;
    for number in 0..count {
        server.client("alice").upload(&format!("{number}.txt"), b"12345").await;
        server.idle().await;
    }
    server
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|it| it["fileName"].as_str().expect("a name")).collect()
}

#[on_each_database]
async fn lists_are_understood_by_offset_and_the_last_page_says_that_it_is_the_last(db: TestDb) {
    let server = with_failures(&db, 3).await;
    let alice = server.client("alice");
    for (path, field) in [(DLQ, "entries"), ("/api/v2/uploads/files", "files"), ("/api/jobs", "jobs")] {
        let page = async |query: &str| alice.get(&format!("{path}?{query}")).await.ok();
        assert_eq!(names(&page("limit=50&offset=0").await[field]), ["2.txt", "1.txt", "0.txt"], "{path}");
        let second = page("limit=1&offset=1").await;
        assert_eq!(names(&second[field]), ["1.txt"], "{path}");
        let cursor = second["nextCursor"].as_str().expect("there is more");
        let last = page(&format!("limit=1&cursor={cursor}")).await;
        assert_eq!((names(&last[field]), &last["nextCursor"]), (vec!["0.txt"], &Value::Null), "{path}");
        assert_eq!(page("limit=3").await["nextCursor"], Value::Null, "{path}: a full page can be the last");
        assert_eq!(names(&page("offset=3").await[field]), [] as [&str; 0], "{path}");
        for bad in ["offset=-1", "offset=100001", "offset=x", &format!("offset=1&cursor={cursor}")] {
            alice.get(&format!("{path}?{bad}")).await.refused(400, "INVALID_REQUEST");
        }
    }
}

#[on_each_database]
async fn stages_are_understood_by_the_names_of_their_states(db: TestDb) {
    let script =
        Script::new().then(Extract, Step::Fail(Code::ParseError)).then(Chunk, Step::Fail(Code::NoText));
    let server = Setup::default().work(script).start(&db).await;
    let alice = server.client("alice");
    for name in ["extract.txt", "chunk.txt"] {
        alice.upload(name, b"12345").await;
        server.idle().await;
    }
    for (stage, file) in
        [("extracting", "extract.txt"), ("chunking", "chunk.txt"), ("extract", "extract.txt")]
    {
        let found = alice.get(&format!("{DLQ}?stage={stage}")).await.ok();
        assert_eq!(names(&found["entries"]), [file], "{stage}");
    }
    let done = alice.post(&format!("{DLQ}/retry-all"), json!({ "stage": "chunking" })).await.ok();
    assert_eq!((&done["retriedCount"], &done["filter"]["stage"]), (&json!(1), &json!("chunk")));
}

#[on_each_database]
async fn jobs_have_the_fields_and_states_of_their_own_api(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new().then(Extract, Step::Fail(Code::GatewayTimeout));
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"hello").await;
    server.idle().await;
    let job = alice.get(&format!("/api/jobs/{file}")).await.ok();
    assert_eq!(alice.get("/api/jobs").await.ok()["jobs"], json!([job]));
    let seen =
        ["id", "status", "attemptCount", "errorCode", "canDownload", "isDeadLetter"].map(|it| &job[it]);
    let expected = [json!(file), json!("queued"), json!(1), json!("GW_TIMEOUT"), json!(false), json!(false)];
    assert_eq!(seen, expected.each_ref());
    alice.get(&format!("/api/jobs/{file}/download")).await.refused(409, "INVALID_STATE");
    assert!(job["retryAfter"].is_string() && job["lastAttemptAt"].is_string(), "{job}");
    assert!(job["errorMessage"].as_str().expect("a sentence").contains("tries it again by itself"));

    clock.advance(Duration::from_mins(1));
    server.idle().await;
    let job = alice.get(&format!("/api/jobs/{file}")).await.ok();
    let seen = ["status", "canDownload", "errorCode", "retryAfter", "attemptCount"].map(|it| &job[it]);
    assert_eq!(seen, [&json!("complete"), &json!(true), &Value::Null, &Value::Null, &json!(2)]);
    assert!(job["lastAttemptAt"].is_string(), "{job}");
    assert!(job["completedAt"].is_string() && job["queuedAt"].is_string(), "{job}");
    for (status, count) in [("complete", 1), ("processing", 0), ("queued", 0), ("uploading", 0)] {
        let found = alice.get(&format!("/api/jobs?status={status}")).await.ok();
        assert_eq!(found["jobs"].as_array().expect("a list").len(), count, "{status}");
    }
    server.stop().await;
}

#[on_each_database]
async fn what_the_gateway_made_of_a_file_is_downloaded_under_a_name_that_fits_it(db: TestDb) {
    let made = Reply::ApiResponse(200, "application/xml", "<tides><low>at noon</low></tides>");
    let json = Reply::ApiResponse(
        200,
        "application/json",
        r##"{"markdown": "# Tides\n\nLow at noon.", "pages": 1}"##,
    );
    let empty = Reply::ApiResponse(200, "application/json", r#"{"pages": [1]}"#);
    let (_gateway, url) = GatewayServer::serve([made, json, empty]).await;
    let server = Setup::default().with("EXTRACT_GATEWAY_URL", url).start(&db).await;
    let alice = server.client("alice");
    let get = async |path: String| {
        let answer = alice.request(Method::GET, &path).send().await.expect("an answer");
        let header = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
        let (kind, name) = (header("content-type"), header("content-disposition"));
        (kind, name, answer.text().await.expect("text"))
    };
    let file = alice.upload("low tides.pdf", b"the original").await;
    server.idle().await;
    for path in [format!("/api/v2/uploads/files/{file}/result"), format!("/api/jobs/{file}/download")] {
        let (kind, name, body) = get(path).await;
        assert_eq!((kind.as_str(), body.as_str()), ("application/xml", "<tides><low>at noon</low></tides>"));
        assert!(name.ends_with("filename*=UTF-8''low%20tides.xml"), "{name}");
    }
    let (_, name, body) = get(format!("/api/v2/uploads/files/{file}/download")).await;
    assert!(name.ends_with("low%20tides.pdf") && body == "the original", "{name}");
    assert_eq!(alice.file(&file).await["resultType"], "application/xml");

    let file = alice.upload("tides", b"bytes").await;
    server.idle().await;
    let (kind, name, body) = get(format!("/api/jobs/{file}/download")).await;
    assert_eq!((kind.as_str(), body.as_str()), ("text/markdown; charset=utf-8", "# Tides\n\nLow at noon."));
    assert!(name.ends_with("tides.md"), "{name}");

    let file = alice.upload("c.pdf", b"bytes").await;
    server.idle().await;
    let error = &alice.file(&file).await["error"];
    assert_eq!(error["code"], "GW_4XX");
    assert!(error["message"].as_str().expect("a sentence").contains("JSON without a text"), "{error}");
}

/// Where no gateway made anything, the original is what there is.
#[on_each_database]
async fn a_job_without_a_result_is_downloaded_as_it_was_uploaded(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.md", b"# Tides").await;
    server.idle().await;
    let path = format!("/api/jobs/{file}/download");
    let answer = alice.request(Method::GET, &path).send().await.expect("an answer");
    assert_eq!(answer.text().await.expect("text"), "# Tides");
    assert_eq!(alice.file(&file).await["resultType"], Value::Null);
}

#[on_each_database]
async fn administrators_see_whose_a_file_is(db: TestDb) {
    let script = Script::new().then(Extract, Step::Fail(Code::ParseError));
    let server = Setup::default().work(script).start(&db).await;
    server.client_of("alice", "acme").upload("a.txt", b"12345").await;
    server.idle().await;
    for (path, field) in [(DLQ, "entries"), ("/api/v2/uploads/files", "files")] {
        let found = server.admin().get(&format!("{path}?scope=all")).await.ok();
        let found = &found[field][0];
        assert_eq!((&found["userId"], &found["tenantId"]), (&json!("alice"), &json!("acme")), "{found}");
        assert_eq!(server.admin().get(path).await.ok()[field], json!([]), "an administrator's own");
    }
}

#[on_each_database]
async fn a_retry_of_all_leaves_alone_what_a_retry_of_one_refuses(db: TestDb) {
    let server = with_failures(&db, 2).await;
    let alice = server.client("alice");
    let entries = alice.get(DLQ).await.ok()["entries"].clone();
    let lost = entries[0]["fileId"].as_str().expect("an id").to_owned();
    for key in server.app.blobs.keys_of(lost.parse().unwrap()).await.unwrap() {
        server.app.blobs.remove(&key).await.unwrap();
    }
    let refused = alice.post(&format!("{DLQ}/{lost}/retry"), json!({})).await.refused(404, "FILE_NOT_FOUND");
    let done = alice.post(&format!("{DLQ}/retry-all"), json!({})).await.ok();
    assert_eq!(
        (&done["retriedCount"], &done["skippedCount"], &done["errorCount"]),
        (&json!(1), &json!(1), &json!(0))
    );
    let skipped = json!([{ "fileId": lost, "fileName": entries[0]["fileName"], "code": "FILE_NOT_FOUND",
        "message": refused["message"] }]);
    assert_eq!(done["skipped"], skipped);
    server.idle().await;
    assert_eq!(alice.status(&lost).await, "failed");
    assert_eq!(alice.status(entries[1]["fileId"].as_str().expect("an id")).await, "ready");
}

fn config(variables: &[(&str, &str)]) -> Config {
    let mut all = Variables::default();
    all.set("JWT_SECRET", "a secret that is long enough for tests");
    for (name, value) in variables {
        all.set(name, *value);
    }
    Config::from_variables(all).expect("good settings")
}

#[test]
fn the_settings_of_other_documents_work_or_are_named() {
    let two = config(&[("WORKER_CONCURRENCY", "2")]);
    let extract = two.queue.stages.iter().find(|stage| stage.stage == Extract).expect("a stage");
    assert_eq!(extract.concurrency, 2);
    assert!(two.warnings[0].message.contains("EXTRACT_CONCURRENCY=2"), "{:?}", two.warnings);

    let cached = config(&[("DASHBOARD_CACHE_TTL", "300")]);
    let warning = &cached.warnings[0].message;
    assert!(warning.contains("has no cache") && warning.contains("remove it"), "{warning}");

    // Every name of their .env files, with the value that they give.
    for (name, value) in [
        ("STUCK_FILE_THRESHOLD_MS", "1800000"),
        ("MAX_STUCK_RETRIES", "3"),
        ("STUCK_RECOVERY_SCHEDULE", "*/15 * * * *"),
        ("ABANDONED_UPLOAD_THRESHOLD_MS", "86400000"),
        ("FAILED_FILE_RETENTION_DAYS", "30"),
        ("ORPHAN_CLEANUP_SCHEDULE", "0 3 * * *"),
        ("BATCH_TIMEOUT_MS", "86400000"),
        ("BATCH_TIMEOUT_SCHEDULE", "0 * * * *"),
        ("RETRY_MAX_ATTEMPTS", "3"),
        ("RETRY_BASE_DELAY", "5000"),
        ("RETRY_MAX_DELAY", "60000"),
        ("CIRCUIT_THRESHOLD", "5"),
        ("CIRCUIT_TIMEOUT", "60000"),
        ("GATEWAY_TIMEOUT", "120000"),
    ] {
        let read = config(&[(name, value)]);
        let is_set = |name: &str| read.settings.iter().any(|setting| setting.name == name);
        let works = is_set(name) || is_set(&format!("{name}_MS"));
        assert!(works, "{name}");
    }
}

#[test]
fn a_gateway_timeout_that_the_stage_cuts_off_is_named_at_the_start() {
    let url = ("EXTRACT_GATEWAY_URL", "http://127.0.0.1:1/");
    let long = config(&[url, ("GATEWAY_TIMEOUT_MS", "600000")]);
    assert_eq!(long.warnings[0].name, "GATEWAY_TIMEOUT_MS");
    assert!(
        long.warnings[0].message.contains("raise EXTRACT_TIMEOUT_MS above 600000"),
        "{:?}",
        long.warnings
    );
    assert_eq!(config(&[url, ("GATEWAY_TIMEOUT_MS", "299999")]).warnings, []);
    assert_eq!(config(&[("GATEWAY_TIMEOUT_MS", "600000")]).warnings, [], "there is no gateway");
}

#[on_each_database]
async fn a_call_that_the_stage_cuts_off_counts_against_the_gateway(db: TestDb) {
    let (_gateway, url) = GatewayServer::serve([Reply::Never]).await;
    let server = Setup::default()
        .with("EXTRACT_GATEWAY_URL", &url)
        .with("EXTRACT_TIMEOUT_MS", 50)
        .with("CIRCUIT_THRESHOLD", 1)
        .start(&db)
        .await;
    let alice = server.client("alice");
    let file = alice.upload("a.bin", b"bytes").await;
    until("it waits for the circuit", async || alice.file(&file).await["waitingFor"] == "circuit").await;
    assert_eq!(alice.file(&file).await["error"]["code"], "GW_TIMEOUT");
    server.stop().await;
}

/// The gateway of the documentation, in a process of its own.
struct Example {
    process: Child,
    url: String,
}

impl Example {
    fn start() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gateway.py");
        let mut process = Command::new("python3")
            .args([path, "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening on ").expect("its address").to_owned();
        Self { process, url }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[on_each_database]
async fn the_gateway_of_the_documentation_works(db: TestDb) {
    let example = Example::start();
    let server = Setup::default().with("EXTRACT_GATEWAY_URL", &example.url).start(&db).await;
    let alice = server.client("alice");
    let mapping = json!({ "fileCount": 1, "mapping": { "delimiter": ";" } });
    let batch = alice.post("/api/v2/uploads/batches", mapping).await.ok();
    let file = alice
        .upload_in(batch["batchId"].as_str().expect("an id"), "tides.csv", b"port;tide\nHull;low\n")
        .await;
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!(
        (&seen["status"], &seen["resultType"]),
        (&json!("ready"), &json!("text/markdown; charset=utf-8")),
        "{seen}"
    );
    let path = format!("/api/v2/uploads/files/{file}/result");
    let result = alice.request(Method::GET, &path).send().await.expect("an answer");
    assert_eq!(result.text().await.expect("text"), "| port | tide |\n|---|---|\n| Hull | low |");

    let file = alice.upload("broken.csv", b"\xff\xfe\xff").await;
    server.idle().await;
    let error = &alice.file(&file).await["error"];
    assert_eq!(error["code"], "GW_4XX");
    assert!(error["message"].as_str().expect("a sentence").contains("The table is not UTF-8"), "{error}");
}
