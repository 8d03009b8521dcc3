//! The log: every line has the ids of its subject, and never a secret.

use std::path::PathBuf;
use std::process::Stdio;

use landfall_store::{Db, args};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::collector::Collector;
use crate::support::embedding_server::{self, EmbeddingServer};
use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::process::Process;
use crate::support::{Client, TestDb, on_each_database, until};

const JWT_SECRET: &str = "the-tokens-7f3b9c1e-of-this-test-52d8a4";
const API_KEY: &str = "sk-embeddings-key";
const WEBHOOK: &str = "http://127.0.0.1:1/services/T000/B000/webhook-secret";
const GATEWAY_PASSWORD: &str = "gateway-password";
const GATEWAY_KEY: &str = "gateway-key-in-query";
const COLLECTOR_KEY: &str = "collector-key";

pub struct Logged {
    pub process: Process,
    path: PathBuf,
}

impl Logged {
    pub fn start(db: &TestDb, variables: &[(&str, &str)]) -> Self {
        let path = db.folder.path().join("log");
        let log = std::fs::File::create(&path).unwrap();
        Self { process: Process::start_with_log(db, variables, Stdio::from(log)), path }
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(&self.path).unwrap()
    }

    pub fn lines(&self) -> Vec<Value> {
        // The last line may be incomplete.
        let text = self.text();
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    fn line(&self, message: &str) -> Value {
        let found = self.lines().into_iter().find(|line| line["message"].as_str().unwrap().contains(message));
        found.unwrap_or_else(|| panic!("{message} in {}", self.text()))
    }
}

/// A token that an administrator issues for a user.
fn token(db: &TestDb, user: &str) -> String {
    let made = Process::command(db)
        .env("JWT_SECRET", JWT_SECRET)
        .args(["token", "--user", user, "--role", "admin"])
        .output();
    let made = String::from_utf8(made.unwrap().stdout).unwrap();
    made.split_whitespace().find(|word| word.starts_with("eyJ")).expect("a token").to_owned()
}

#[on_each_database]
async fn no_secret_gets_into_the_log_whether_requests_succeed_or_fail(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([
        Reply::ApiResponse(400, "text/plain", "no"),
        Reply::ApiResponse(503, "text/plain", "gone"),
    ])
    .await;
    gateway.otherwise(Reply::ApiResponse(200, "text/plain", "Some words about the sea."));
    let gateway_url =
        url.replace("http://", &format!("http://me:{GATEWAY_PASSWORD}@")) + "?key=" + GATEWAY_KEY;
    let embeddings = EmbeddingServer::start(8).await;
    embeddings.then(embedding_server::Reply::Echo(401)).then(embedding_server::Reply::Echo(503));
    let collector = Collector::start().await;
    for format in ["json", "pretty"] {
        let logged = Logged::start(
            &db,
            &[
                ("LOG_FORMAT", format),
                ("LOG_LEVEL", "debug"),
                ("JWT_SECRET", JWT_SECRET),
                ("EXTRACT_GATEWAY_URL", &gateway_url),
                ("EMBEDDINGS_URL", &embeddings.url),
                ("EMBEDDINGS_MODEL", "words"),
                ("EMBEDDINGS_API_KEY", API_KEY),
                ("ALERT_WEBHOOK_URL", WEBHOOK),
                ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url),
                ("OTEL_EXPORTER_OTLP_HEADERS", &format!("authorization=Bearer%20{COLLECTOR_KEY}")),
                ("RETRY_BASE_DELAY_MS", "50"),
                ("RETRY_LATE_BASE_DELAY_MS", "50"),
            ],
        );
        let token = token(&db, "ada");
        let client = Client::new(logged.process.base.clone(), token.clone());
        let mut urls = Vec::new();
        for number in 0..4 {
            let ticket = client.register(None, &format!("{number}.txt"), 5).await;
            let url = ticket["uploadUrl"].as_str().unwrap().to_owned();
            // Too few bytes, a forged signature, and a correct upload.
            client.put(&url, "x").await.refused(400, "SIZE_MISMATCH");
            let forged = url.replace("signature=", "signature=00");
            assert!(client.put(&forged, "bytes").await.status >= 400);
            client.put(&url, "bytes").await.ok();
            client.confirm(ticket["fileId"].as_str().unwrap()).await.ok();
            urls.push(url);
        }
        let expired = format!("{token}x");
        let other = Client { token: expired.clone(), ..client.clone() };
        assert_eq!(other.get("/api/v2/uploads/files").await.status, 401);
        client.get(&format!("/api/v2/uploads/files?token={token}")).await.refused(400, "INVALID_REQUEST");
        client.search("sea").await;
        until("all files are finished", async || {
            let files = client.get("/api/v2/uploads/files").await.ok();
            files["files"]
                .as_array()
                .unwrap()
                .iter()
                .all(|file| ["ready", "failed"].contains(&file["status"].as_str().unwrap()))
        })
        .await;
        client.post("/api/v2/uploads/dlq/retry-all", json!({})).await.ok();
        logged.process.signal("TERM");
        let (path, ended) = (logged.path.clone(), logged.process.wait());
        assert!(ended, "it exits cleanly");
        let log = std::fs::read_to_string(&path).unwrap();
        assert!(log.len() > 10_000, "the log is long enough: {log}");

        let reader = Db::open(&db.url, 4).await.unwrap();
        let kept: Vec<(Vec<u8>,)> =
            reader.read().await.unwrap().rows("SELECT value FROM secrets", args![]).await.unwrap();
        reader.close().await;
        let mut secrets = vec![
            JWT_SECRET.to_owned(),
            API_KEY.to_owned(),
            "webhook-secret".to_owned(),
            GATEWAY_PASSWORD.to_owned(),
            GATEWAY_KEY.to_owned(),
            COLLECTOR_KEY.to_owned(),
            token.clone(),
            expired,
        ];
        // A token without its signature is harmless; with it, it gives full access.
        secrets.push(token.rsplit('.').next().unwrap().to_owned());
        secrets.extend(
            kept.iter().map(|(value,)| value.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        );
        for url in &urls {
            let url = url::Url::parse(url).unwrap();
            secrets.extend(
                url.query_pairs().filter(|(_, value)| value.len() > 20).map(|(_, value)| value.into_owned()),
            );
        }
        if let Some(password) = url::Url::parse(&db.url).unwrap().password() {
            secrets.push(password.to_owned());
        }
        assert!(secrets.len() >= 8 + 1 + 4, "there is something to look for");
        for secret in &secrets {
            let found = log.lines().find(|line| line.contains(secret.as_str()));
            assert_eq!(found, None, "{secret} is in the log");
        }
    }
}

#[on_each_database]
async fn every_line_has_the_ids_of_its_subject(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([Reply::Never]).await;
    gateway.otherwise(Reply::ApiResponse(200, "text/plain", "Some words about the sea."));
    let collector = Collector::start().await;
    // Only warnings: the ids are logged all the same.
    let logged = Logged::start(
        &db,
        &[
            ("LOG_FORMAT", "json"),
            ("LOG_LEVEL", "warn"),
            ("EXTRACT_GATEWAY_URL", &url),
            ("GATEWAY_TIMEOUT_MS", "200"),
            ("RETRY_BASE_DELAY_MS", "50"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url),
        ],
    );
    let client = logged.process.client();
    let batch = client.open_batch(1).await;
    let file = client.upload_in(&batch, "a.txt", b"bytes").await;
    until("it is ready", async || client.status(&file).await == "ready").await;
    let line = logged.line("because of the extraction service");
    let said = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        (said("fileId"), said("batchId"), said("stage"), said("level")),
        (file.clone(), batch, "extract".to_owned(), "WARN".to_owned()),
        "{line}"
    );
    assert_eq!(line["attempt"], 1, "{line}");
    assert!(
        said("worker").contains(':') && said("traceId").len() == 32 && said("spanId").len() == 16,
        "{line}"
    );

    // The storage is gone, and a request logs that.
    let blobs = db.folder.path().join("blobs");
    std::fs::rename(&blobs, db.folder.path().join("aside")).unwrap();
    let request = client
        .request(Method::GET, &format!("/api/v2/uploads/files/{file}/download"))
        .header("x-request-id", "the-one");
    assert_ne!(client.send(request).await.status, 200);
    let ready = client.request(Method::GET, "/readyz").header("x-request-id", "the-other");
    assert_eq!(client.send(ready).await.status, 503);
    let line = logged.line("not ready");
    assert_eq!(
        (&line["requestId"], &line["path"], &line["check"]),
        (&json!("the-other"), &json!("/readyz"), &json!("storage")),
        "{line}"
    );
    assert!(logged.lines().iter().all(|line| line["level"] == "WARN" || line["level"] == "ERROR"));
}
