//! `landfall dlq`: files that failed, by themselves and by their causes; retried or discarded.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, ClientError, Connection};
use crate::words::{count, printable, table, time};
use landfall_core::clock::Clock;
use landfall_core::lifecycle::Stage;

const MOST_PER_PAGE: usize = 200;
/// How often to ask how far an operation is.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List them, the newest first.
    List {
        /// How many.
        #[arg(long, value_name = "N", default_value = "50")]
        limit: usize,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        connection: Connection,
    },
    /// List the causes, the one with most files first.
    Groups {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        connection: Connection,
    },
    /// Try one again, from the stage that failed.
    Retry {
        /// Of the file.
        id: Uuid,
        #[command(flatten)]
        connection: Connection,
    },
    /// Try all again that match. With --fingerprint a few go first, and the rest follows unless they fail the same way.
    RetryAll {
        /// Wait until all are in the queue, or it was stopped.
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        connection: Connection,
    },
    /// Delete one.
    Discard {
        /// Of the file.
        id: Uuid,
        #[command(flatten)]
        connection: Connection,
    },
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Only those that failed with this code.
    #[arg(long)]
    code: Option<String>,
    /// Only those that failed at this stage: scan, extract, chunk, embed.
    #[arg(long)]
    stage: Option<Stage>,
    /// Only those of this batch.
    #[arg(long, value_name = "ID")]
    batch: Option<Uuid>,
    /// Only those of this cause, as `landfall dlq groups` shows it.
    #[arg(long)]
    fingerprint: Option<String>,
    /// Everybody's, for administrators.
    #[arg(long)]
    all: bool,
}

impl Which {
    fn members(&self) -> Vec<(&'static str, String)> {
        let mut members = Vec::new();
        members.extend(self.code.clone().map(|code| ("code", code)));
        members.extend(self.stage.map(|stage| ("stage", stage.to_string())));
        members.extend(self.batch.map(|batch| ("batchId", batch.to_string())));
        members.extend(self.fingerprint.clone().map(|fingerprint| ("fingerprint", fingerprint)));
        members.extend(self.all.then(|| ("scope", "all".to_owned())));
        members
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    file_id: Uuid,
    file_name: String,
    stage: String,
    code: String,
    error: String,
    failed_at: DateTime<Utc>,
    retried_by: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    fingerprint: String,
    stage: String,
    code: String,
    sample: Sample,
    count: usize,
    last_seen: DateTime<Utc>,
}

#[derive(Deserialize)]
struct Sample {
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operation {
    operation_id: Uuid,
    status: String,
    reason: Option<String>,
    retried_count: usize,
    skipped_count: usize,
    error_count: usize,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    match &args.command {
        Command::List { limit, which, connection } => {
            list(&Client::connect(connection)?, which, *limit, as_json).await
        }
        Command::Groups { which, connection } => groups(&Client::connect(connection)?, which, as_json).await,
        Command::Retry { id, connection } => {
            let client = Client::connect(connection)?;
            let answer: Value = client.post(&format!("/dlq/{id}/retry"), &json!({})).await?;
            say(as_json, &answer, "It is in the queue again.");
            Ok(Outcome::Good)
        }
        Command::RetryAll { wait, which, connection } => {
            retry_all(&Client::connect(connection)?, which, *wait, as_json).await
        }
        Command::Discard { id, connection } => {
            let client = Client::connect(connection)?;
            client.persist(async || client.delete(&format!("/dlq/{id}")).await).await?;
            say(as_json, &json!({ "fileId": id, "status": "deleted" }), "It is deleted.");
            Ok(Outcome::Good)
        }
    }
}

fn say(as_json: bool, answer: &Value, sentence: &str) {
    if as_json {
        println!("{answer}");
    } else {
        println!("{sentence}");
    }
}

async fn list(client: &Client, which: &Which, limit: usize, as_json: bool) -> anyhow::Result<Outcome> {
    let (mut entries, mut next): (Vec<Value>, Option<String>) = (Vec::new(), None);
    while entries.len() < limit {
        let mut query = which.members();
        query.push(("limit", (limit - entries.len()).min(MOST_PER_PAGE).to_string()));
        query.extend(next.take().map(|cursor| ("cursor", cursor)));
        let page: Value = client.persist(async || client.get("/dlq", &query).await).await?;
        entries.extend(page["entries"].as_array().cloned().unwrap_or_default());
        next = page["nextCursor"].as_str().map(ToOwned::to_owned);
        if next.is_none() {
            break;
        }
    }
    if as_json {
        println!("{}", json!({ "entries": entries, "nextCursor": next }));
        return Ok(Outcome::Good);
    }
    let entries: Vec<Entry> = told(client, entries)?;
    if entries.is_empty() {
        println!("There are no such dead letters.");
        return Ok(Outcome::Good);
    }
    let mut rows = vec![["FAILED", "STAGE", "NAME", "ID", "ERROR"].map(str::to_owned).to_vec()];
    rows.extend(entries.iter().map(|entry| {
        let again = entry.retried_by.as_ref().map_or("", |_| " (again, after a retry)");
        vec![
            time(entry.failed_at),
            printable(&entry.stage),
            printable(&entry.file_name),
            entry.file_id.to_string(),
            format!("{}: {}{again}", printable(&entry.code), printable(&entry.error)),
        ]
    }));
    print!("{}", table(&rows));
    if next.is_some() {
        println!("The newest {} are shown; --limit shows more.", count(entries.len(), "file"));
    }
    Ok(Outcome::Good)
}

async fn groups(client: &Client, which: &Which, as_json: bool) -> anyhow::Result<Outcome> {
    let mut query = which.members();
    query.push(("limit", MOST_PER_PAGE.to_string()));
    let answer: Value = client.persist(async || client.get("/dlq/groups", &query).await).await?;
    if as_json {
        println!("{answer}");
        return Ok(Outcome::Good);
    }
    let groups: Vec<Group> = told(client, answer["groups"].as_array().cloned().unwrap_or_default())?;
    if groups.is_empty() {
        println!("There are no such dead letters.");
        return Ok(Outcome::Good);
    }
    let mut rows = vec![["FILES", "STAGE", "LAST", "FINGERPRINT", "ERROR"].map(str::to_owned).to_vec()];
    rows.extend(groups.iter().map(|group| {
        vec![
            group.count.to_string(),
            printable(&group.stage),
            time(group.last_seen),
            printable(&group.fingerprint),
            format!("{}: {}", printable(&group.code), printable(&group.sample.message)),
        ]
    }));
    print!("{}", table(&rows));
    println!("`landfall dlq retry-all --fingerprint …` tries one of these again.");
    Ok(Outcome::Good)
}

async fn retry_all(client: &Client, which: &Which, wait: bool, as_json: bool) -> anyhow::Result<Outcome> {
    let members = which.members().into_iter();
    let body: Map<String, Value> = members.map(|(name, value)| (name.to_owned(), value.into())).collect();
    let mut answer: Value = client.create("/dlq/retry-all", &Value::Object(body)).await?;
    let mut operation: Operation = told_one(client, &answer)?;
    let is_over = |operation: &Operation| matches!(operation.status.as_str(), "completed" | "stopped");
    while wait && !is_over(&operation) {
        Clock::System.sleep(BETWEEN_LOOKS).await;
        let path = format!("/operations/{}", operation.operation_id);
        answer = client.persist(async || client.get(&path, &[]).await).await?;
        operation = told_one(client, &answer)?;
    }
    if as_json {
        println!("{answer}");
    } else {
        println!("{}", in_words(&operation));
    }
    let bad = operation.status == "stopped" || operation.error_count > 0;
    Ok(if bad { Outcome::Bad } else { Outcome::Good })
}

fn in_words(operation: &Operation) -> String {
    let mut words = format!("{} in the queue again", count(operation.retried_count, "file"));
    if operation.skipped_count > 0 {
        words.push_str(&format!(", {} skipped because the bytes are gone", operation.skipped_count));
    }
    if operation.error_count > 0 {
        words.push_str(&format!(", {} left after an error", operation.error_count));
    }
    words.push('.');
    match operation.status.as_str() {
        "completed" => {}
        "stopped" => {
            let reason = operation.reason.as_deref().unwrap_or("it was stopped");
            words.push_str(&format!("\nNot all: {}.", printable(reason)));
        }
        "canary" => words.push_str("\nThe others follow when these do not fail the same way."),
        _ => words.push_str("\nThe server goes on with the others."),
    }
    if operation.status != "completed" {
        words.push_str(&format!("\nThis is operation {}.", operation.operation_id));
    }
    words
}

fn told<T: DeserializeOwned>(client: &Client, answers: Vec<Value>) -> Result<Vec<T>, ClientError> {
    answers.iter().map(|answer| told_one(client, answer)).collect()
}

fn told_one<T: DeserializeOwned>(client: &Client, answer: &Value) -> Result<T, ClientError> {
    T::deserialize(answer).map_err(|error| client.strange(error.to_string()))
}
