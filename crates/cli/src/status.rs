//! `landfall status`: what became of a file or a batch, and why.

use anyhow::bail;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, ClientError, Connection};
use crate::files::{self, Told};
use crate::words::{count, printable, size, table, time};
use landfall_core::lifecycle::Status;

/// A file whose history is longer than this has its oldest part shown.
const MOST_HISTORY: usize = 1_000;
const MOST_FAILED: usize = 10_000;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Of a file or of a batch.
    id: Uuid,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    at: DateTime<Utc>,
    from: Option<String>,
    to: Option<String>,
    stage: Option<String>,
    attempt: Option<i64>,
    worker: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Batch {
    status: String,
    file_count: usize,
    registered: usize,
    priority: String,
    progress: Map<String, Value>,
    created_at: DateTime<Utc>,
    completed_at: Option<DateTime<Utc>>,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    match client.get::<Value>(&format!("/files/{}", args.id), &[]).await {
        Ok(file) => show_file(&client, args.id, Some(file), as_json).await?,
        // Its history is kept for a while.
        Err(error) if error.is_status(410) => show_file(&client, args.id, None, as_json).await?,
        Err(error) if error.is_status(404) => {
            match client.get::<Value>(&format!("/batches/{}", args.id), &[]).await {
                Ok(batch) => show_batch(&client, args.id, batch, as_json).await?,
                Err(error) if error.is_status(404) => {
                    bail!("there is neither a file nor a batch {}", args.id)
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Outcome::Good)
}

async fn show_file(client: &Client, id: Uuid, file: Option<Value>, as_json: bool) -> Result<(), ClientError> {
    let steps = history(client, id).await?;
    if as_json {
        let mut file = file.unwrap_or_else(|| json!({ "fileId": id, "status": "deleted" }));
        file["history"] = json!(steps);
        println!("{file}");
        return Ok(());
    }
    match &file {
        Some(file) => describe(client, file)?,
        None => println!("{id} was deleted."),
    }
    let steps: Vec<Step> = steps
        .iter()
        .map(|step| Step::deserialize(step).map_err(|error| client.strange(error.to_string())))
        .collect::<Result<_, _>>()?;
    println!("\nHistory:");
    let rows: Vec<Vec<String>> = steps.iter().map(step_row).collect();
    print!("{}", table(&rows));
    Ok(())
}

fn describe(client: &Client, file: &Value) -> Result<(), ClientError> {
    let told = Told::deserialize(file).map_err(|error| client.strange(error.to_string()))?;
    println!("{}  ({})", printable(&told.file_name), size(told.size));
    println!("  status   {}", printable(&told.status));
    if let Some(why) = &told.waiting_message {
        println!("  waits    {}", printable(why));
    }
    if let Some(error) = &told.error {
        println!("  error    {}: {}", printable(&error.code), printable(&error.message));
        if told.status == "queued" {
            println!("           (the last attempt; it will be tried again)");
        }
    }
    for (label, member) in [("attempt", "attempt"), ("chunks", "chunkCount")] {
        if let Some(number) = file[member].as_i64().filter(|number| *number > 0) {
            println!("  {label:<8} {number}");
        }
    }
    if let Some(batch) = file["batchId"].as_str() {
        println!("  batch    {}", printable(batch));
    }
    println!("  id       {}", told.file_id);
    Ok(())
}

/// All of it, oldest first.
async fn history(client: &Client, id: Uuid) -> Result<Vec<Value>, ClientError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        history: Vec<Value>,
        next_cursor: Option<String>,
    }
    let mut steps = Vec::new();
    let mut cursor: Option<String> = None;
    while steps.len() < MOST_HISTORY {
        let mut query = vec![("limit", "200".to_owned())];
        query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
        let page: Page = client.get(&format!("/files/{id}/history"), &query).await?;
        steps.extend(page.history);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(steps)
}

fn step_row(step: &Step) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    if let Some(attempt) = step.attempt.filter(|attempt| *attempt > 1) {
        let stage = step.stage.as_deref().unwrap_or("this stage");
        notes.push(format!("attempt {attempt} at {}", printable(stage)));
    }
    if let Some(code) = &step.error_code {
        let message = step.error_message.as_deref().unwrap_or_default();
        notes.push(format!("{}: {}", printable(code), printable(message)));
    }
    if let Some(worker) = &step.worker {
        notes.push(format!("by {}", printable(worker)));
    }
    let state = |name: &Option<String>| name.as_deref().map(printable).unwrap_or_default();
    vec![
        format!("  {}", time(step.at)),
        if step.from.is_none() {
            state(&step.to)
        } else {
            format!("{} → {}", state(&step.from), state(&step.to))
        },
        notes.join("; "),
    ]
}

async fn show_batch(client: &Client, id: Uuid, answer: Value, as_json: bool) -> Result<(), ClientError> {
    let filter = [("batchId", id.to_string()), ("status", "failed".to_owned())];
    let failed = files::list(client, &filter, MOST_FAILED).await?.files;
    if as_json {
        let mut answer = answer;
        answer["failed"] = json!(failed);
        println!("{answer}");
        return Ok(());
    }
    let batch = Batch::deserialize(&answer).map_err(|error| client.strange(error.to_string()))?;
    println!(
        "Batch {id} is {}: {} promised, {} registered, priority {}",
        printable(&batch.status),
        count(batch.file_count, "file"),
        batch.registered,
        printable(&batch.priority)
    );
    println!("  opened     {}", time(batch.created_at));
    if let Some(at) = batch.completed_at {
        println!("  completed  {}", time(at));
    }
    for status in Status::ALL {
        let number = batch.progress.get(status.name()).and_then(Value::as_i64);
        if let Some(number) = number.filter(|number| *number > 0) {
            println!("  {:<10} {number}", status.name());
        }
    }
    for file in files::told(client, &failed)? {
        let error = file.error.map_or_else(String::new, |error| format!("{}: {}", error.code, error.message));
        println!("  {}  {}  {}", printable(&file.file_name), file.file_id, printable(&error));
    }
    Ok(())
}
