//! Files that fail for the causes that a test names, and helpers to inspect them as dead letters.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage::{self, Chunk, Embed, Extract};
use landfall_server::stages::{Job, Output, Work};
use landfall_store::args;
use serde_json::Value;

use super::{Client, Setup, TestDb, TestServer};

pub const DLQ: &str = "/api/v2/uploads/dlq";
pub const RETRY_ALL: &str = "/api/v2/uploads/dlq/retry-all";

/// Fails files by the first letter of their names, until that cause is fixed.
#[derive(Default)]
pub struct ScriptedFailures {
    fixed: Mutex<HashSet<char>>,
    runs: Mutex<Vec<(String, Stage)>>,
}

impl ScriptedFailures {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn fix(&self, cause: char) {
        self.fixed.lock().unwrap().insert(cause);
    }

    pub fn runs(&self, name: &str) -> Vec<Stage> {
        let runs = self.runs.lock().unwrap();
        runs.iter().filter(|(file, _)| file == name).map(|(_, stage)| *stage).collect()
    }

    fn run_stage(&self, job: &Job) -> Result<Output, Failure> {
        let name = job.file.file_name.as_str();
        self.runs.lock().unwrap().push((name.to_owned(), job.stage));
        let (cause, number) = name.split_at(1);
        let cause = cause.chars().next().unwrap_or_default();
        if self.fixed.lock().unwrap().contains(&cause) {
            return Ok(Output::Nothing);
        }
        let (code, message) = match (cause, job.stage) {
            ('p', Extract) => (Code::ParseError, format!("Page {number} is damaged")),
            ('d', Chunk) => (Code::DbError, format!("The row \"{name}\" was refused")),
            ('e', Embed) => (Code::EmbedError, format!("https://model.example/v{number} is closed")),
            _ => return Ok(Output::Nothing),
        };
        Err(Failure::new(code, message).permanent())
    }
}

impl Work for ScriptedFailures {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        async move { self.run_stage(job) }.boxed()
    }
}

pub fn names(cause: char, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{cause}{number}")).collect()
}

pub async fn server(db: &TestDb, work: &Arc<ScriptedFailures>) -> TestServer {
    Setup::default().work(work.clone()).start(db).await
}

pub async fn groups(client: &Client) -> Vec<Value> {
    client.get(&format!("{DLQ}/groups")).await.ok()["groups"].as_array().expect("a list").clone()
}

/// The ids of all entries that match, page by page.
pub async fn entries(client: &Client, query: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut path = format!("{DLQ}?limit=40&{query}");
    loop {
        let page = client.get(&path).await.ok();
        found.extend(page["entries"].as_array().expect("a list").iter().cloned());
        let Some(cursor) = page["nextCursor"].as_str() else { return found };
        path = format!("{DLQ}?limit=40&{query}&cursor={cursor}");
    }
}

pub async fn fingerprint(client: &Client, code: &str) -> String {
    let groups = groups(client).await;
    let group = groups.iter().find(|group| group["code"] == code).expect("a group with this code");
    group["fingerprint"].as_str().expect("a text").to_owned()
}

pub async fn operation(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/v2/uploads/operations/{id}")).await.ok()
}

pub fn time(text: &Value) -> Time {
    text.as_str().expect("a text").parse().expect("a time")
}

/// The id and the status of an operation, and how many files it retried and skipped.
pub fn summary(operation: &Value) -> (String, &str, i64, i64) {
    (
        operation["operationId"].as_str().expect("an id").to_owned(),
        operation["status"].as_str().expect("a status"),
        operation["retriedCount"].as_i64().expect("a number"),
        operation["skippedCount"].as_i64().expect("a number"),
    )
}

/// Finishes the canaries, lets the operation see the result, and finishes the rest.
pub async fn finish_operation(server: &TestServer, operation: &str) {
    server.idle().await;
    server.app.operations().advance_up_to(operation.parse().unwrap(), 10_000).await.unwrap();
    server.idle().await;
}

pub async fn revivals(server: &TestServer) -> i64 {
    let sql = "SELECT COUNT(*) FROM events WHERE from_state = 'failed' AND to_state = 'queued'";
    server.app.db.read().await.unwrap().number(sql, args![]).await.unwrap()
}
