//! The lines of the log: each thing that an operator looks for is one line, with the fields that name it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::configuration::assert_generated;
use crate::logs::Logged;
#[cfg(debug_assertions)]
use crate::sandbox::children_of;
use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::{TestDb, on_each_database, until};

/// All lines with this message.
fn all(logged: &Logged, message: &str) -> Vec<Value> {
    logged.lines().into_iter().filter(|line| line["message"] == message).collect()
}

/// The only line with this message about this file.
fn only(logged: &Logged, message: &str, field: &str, id: &str) -> Value {
    let mut found = all(logged, message);
    found.retain(|line| line[field] == id);
    assert_eq!(found.len(), 1, "{message} about {id} in {}", logged.text());
    found.remove(0)
}

fn assert_fields(line: &Value, expected: &Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&line[name], value, "{name} in {line}");
    }
}

fn assert_has(line: &Value, names: &[&str]) {
    for name in names {
        assert!(!line[name].is_null(), "{name} is missing in {line}");
    }
}

#[on_each_database]
async fn retries_failures_batches_operations_and_jobs_have_one_line_each(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([Reply::ApiResponse(502, "text/plain", "broken")]).await;
    gateway.otherwise(Reply::ApiResponse(200, "text/plain", "Some words about the sea."));
    gateway.reply_to_text("refuse me", Reply::ApiResponse(400, "text/plain", "no"));
    let variables =
        [("LOG_FORMAT", "json"), ("EXTRACT_GATEWAY_URL", url.as_str()), ("RETRY_BASE_DELAY_MS", "50")];
    let logged = Logged::start(&db, &variables);
    let client = logged.process.client();
    let batch = client.open_batch(2).await;
    let late = client.upload_in(&batch, "late.txt", b"bytes").await;
    until("it is ready", async || client.status(&late).await == "ready").await;
    let bad = client.upload_in(&batch, "bad.txt", b"refuse me").await;
    until("it failed", async || client.status(&bad).await == "failed").await;

    let retry = only(&logged, "a stage failed and will be retried", "fileId", &late);
    assert_fields(
        &retry,
        &json!({
            "level": "WARN", "batchId": batch, "stage": "extract", "attempt": 1, "errorCode": "GW_5XX",
            "fileName": "late.txt",
        }),
    );
    assert_has(&retry, &["error", "errorClass", "retryAt", "worker", "userId", "tenantId"]);
    assert!(retry["durationMs"].is_i64(), "{retry}");
    let failure = only(&logged, "a file failed", "fileId", &bad);
    assert_fields(
        &failure,
        &json!({
            "level": "ERROR", "batchId": batch, "stage": "extract", "attempt": 1, "errorCode": "GW_4XX",
            "lastStatus": "extracting",
        }),
    );
    assert_has(&failure, &["error", "errorClass", "worker", "userId", "tenantId", "durationMs"]);
    let ended = only(&logged, "a batch is completed", "batchId", &batch);
    assert_fields(&ended, &json!({ "level": "INFO" }));
    assert_fields(&ended["summary"], &json!({ "total": 2, "ready": 1, "failed": 1 }));
    assert_has(&ended, &["userId", "tenantId", "durationMs"]);

    let operation = client.post("/api/v2/uploads/dlq/retry-all", json!({ "code": "GW_4XX" })).await.ok();
    let operation = operation["operationId"].as_str().unwrap();
    let started = only(&logged, "an operation started", "operationId", operation);
    assert_fields(&started, &json!({ "level": "INFO", "errorCode": "GW_4XX" }));
    assert_has(&started, &["userId"]);
    let ended = only(&logged, "an operation ended", "operationId", operation);
    assert_fields(&ended, &json!({ "level": "INFO", "status": "completed", "retriedCount": 1 }));
    assert_has(&ended, &["userId", "durationMs"]);
    only(&logged, "a file is retried by hand", "fileId", &bad);

    let run = client.post("/api/v2/admin/jobs/stuck-file-recovery/run", json!({})).await.ok();
    let run = run["run"]["runId"].as_str().unwrap().to_owned();
    let started = only(&logged, "job started", "runId", &run);
    assert_fields(&started, &json!({ "level": "INFO", "job": "stuck-file-recovery" }));
    let ended = only(&logged, "job completed", "runId", &run);
    assert_fields(&ended, &json!({ "level": "INFO", "job": "stuck-file-recovery" }));
    assert_eq!(ended["metrics"]["totalStuck"], 0, "the metrics are fields and no text: {ended}");
    assert!(ended["durationMs"].is_u64(), "{ended}");
}

#[on_each_database]
async fn a_circuit_that_changes_and_a_rate_limit_that_is_met_have_a_line(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(Reply::ApiResponse(503, "text/plain", "down"));
    let variables = [
        ("LOG_FORMAT", "json"),
        ("EXTRACT_GATEWAY_URL", url.as_str()),
        ("RETRY_BASE_DELAY_MS", "50"),
        ("CIRCUIT_THRESHOLD", "1"),
        ("CIRCUIT_TIMEOUT_MS", "200"),
        ("CHUNK_RATE_LIMIT", "1/1s"),
        ("USER_RATE_LIMIT", "2/1s"),
    ];
    let logged = Logged::start(&db, &variables);
    let client = logged.process.client();
    let file = client.upload_in(&client.open_batch(1).await, "a.txt", b"bytes").await;
    until("the circuit opened", async || !all(&logged, "a circuit changed").is_empty()).await;
    assert_fields(
        &all(&logged, "a circuit changed")[0],
        &json!({ "level": "WARN", "service": "gateway", "from": "closed", "state": "open" }),
    );
    gateway.otherwise(Reply::ApiResponse(200, "text/plain", "Some words about the sea."));
    until("it is ready", async || client.status(&file).await == "ready").await;
    client.upload_all(&["b.txt", "c.txt", "d.txt", "e.txt", "f.txt", "g.txt"].map(str::to_owned)).await;
    let user = "a rate limit makes a user's files wait";
    until("files wait", async || !all(&logged, user).is_empty()).await;
    let line = &all(&logged, user)[0];
    assert_fields(line, &json!({ "level": "WARN" }));
    assert_has(line, &["userId", "until"]);
    let stage = "a rate limit makes the files of a stage wait";
    until("files wait at a stage", async || !all(&logged, stage).is_empty()).await;
    assert_fields(&all(&logged, stage)[0], &json!({ "level": "WARN", "queue": "file-chunk" }));
}

#[cfg(debug_assertions)]
/// The line of a document that the sandbox could not read names its file.
#[on_each_database]
async fn what_the_sandbox_says_names_the_file(db: TestDb) {
    const EXITED: &str = "the process that read a document exited without a response";
    let logged = Logged::start(
        &db,
        &[("LOG_FORMAT", "json"), ("RETRY_BASE_DELAY_MS", "50"), ("RETRY_MAX_ATTEMPTS", "1000")],
    );
    let client = logged.process.client();
    let large = "Some words about the sea. ".repeat(800_000);
    let file = client.upload_in(&client.open_batch(1).await, "large.txt", large.as_bytes()).await;
    until("a reader was killed at work", async || {
        if client.status(&file).await == "extracting" {
            for pid in children_of(logged.process.id()) {
                // One that ended by itself cannot be killed.
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
            }
        }
        !all(&logged, EXITED).is_empty()
    })
    .await;
    let line = &all(&logged, EXITED)[0];
    assert_fields(line, &json!({ "level": "WARN", "stage": "extract", "fileId": file }));
    assert!(line["document"].is_null(), "{line}");
}

/// A line as the code writes it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Written {
    level: &'static str,
    message: String,
    fields: BTreeSet<String>,
}

#[test]
fn the_document_lists_every_line_that_the_code_writes() {
    const BEGIN: &str = "| level | message | fields |\n|---|---|---|\n";
    assert_generated("docs/logs.md", |current| {
        let begin = current.find(BEGIN).expect("the table of the lines") + BEGIN.len();
        let rest = &current[begin..];
        let end = rest.find("\n\n").map_or(rest.len(), |end| end + 1);
        let mut table = String::new();
        for line in written_lines() {
            let fields: Vec<String> = line.fields.iter().map(|field| format!("`{field}`")).collect();
            writeln!(table, "| {} | {} | {} |", line.level, line.message, fields.join(", ")).unwrap();
        }
        format!("{}{table}{}", &current[..begin], &rest[end..])
    });
}

/// Every line at `info` and above, those for the most trouble first.
fn written_lines() -> Vec<Written> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut lines = Vec::new();
    for part in ["core", "documents", "models", "store", "server", "cli"] {
        for path in sources(&root.join(part).join("src")) {
            let text = std::fs::read_to_string(path).unwrap();
            for level in ["error", "warn", "info"] {
                let call = format!("tracing::{level}!(");
                let starts = text.match_indices(&call).map(|(at, _)| at + call.len());
                lines.extend(starts.map(|at| written(level, arguments(&text[at..]))));
            }
        }
    }
    let rank = |line: &Written| ["error", "warn", "info"].iter().position(|level| *level == line.level);
    lines.sort_by_key(|line| (rank(line), line.message.clone(), line.fields.clone()));
    lines.dedup();
    lines
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The arguments of a call, from behind its opening parenthesis to its closing one.
fn arguments(text: &str) -> Vec<String> {
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    let mut found = vec![String::new()];
    for c in text.chars() {
        let last = found.last_mut().unwrap();
        if in_text {
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
            last.push(c);
            continue;
        }
        match c {
            '"' => in_text = true,
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        last.push(c);
    }
    found
        .into_iter()
        .map(|argument| argument.trim().to_owned())
        .filter(|argument| !argument.is_empty())
        .collect()
}

fn written(level: &'static str, arguments: Vec<String>) -> Written {
    // What follows the message fills its braces.
    let place =
        arguments.iter().position(|argument| argument.starts_with('"')).expect("a line has a message");
    let (fields, texts) = arguments.split_at(place);
    let message = texts[0].trim_matches('"');
    let message = message.split('\\').map(str::trim).collect::<Vec<_>>().join(" ");
    let name = |field: &String| {
        let name = field.split('=').next().unwrap_or_default().trim().trim_start_matches(['%', '?']);
        name.strip_suffix(".json").unwrap_or(name).to_owned()
    };
    Written { level, message, fields: fields.iter().map(name).collect() }
}
