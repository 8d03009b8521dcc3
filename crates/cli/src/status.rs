//! `landfall status`: shows the state of a file or a batch, and why.

use anyhow::bail;
use chrono::TimeDelta;
use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::routes::collect;
use crate::client::{Client, ClientError, Connection};
use crate::files;
use crate::format::{count, printable, size, table, time};
use landfall_api::batches::BatchView;
use landfall_api::file_queries::FileQuery;
use landfall_api::files::{FileView, HistoryEntry};
use landfall_api::page::PageQuery;
use landfall_core::clock::spoken;
use landfall_core::lifecycle::Status;

/// Of a longer history, the oldest part is shown.
const MAX_HISTORY: usize = 1_000;
const MAX_FAILED: usize = 10_000;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The id of a file or of a batch.
    id: Uuid,
    #[command(flatten)]
    connection: Connection,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    match client.file(args.id).await {
        Ok(file) => show_file(&client, args.id, Some(file), as_json).await?,
        // The history of a deleted file is kept for a while.
        Err(error) if error.is_status(410) => show_file(&client, args.id, None, as_json).await?,
        Err(error) if error.is_status(404) => match client.batch(args.id).await {
            Ok(batch) => show_batch(&client, batch, as_json).await?,
            Err(error) if error.is_status(404) => bail!("there is neither a file nor a batch {}", args.id),
            Err(error) => return Err(error.into()),
        },
        Err(error) => return Err(error.into()),
    }
    Ok(Outcome::Good)
}

async fn show_file(
    client: &Client,
    id: Uuid,
    file: Option<FileView>,
    as_json: bool,
) -> Result<(), ClientError> {
    let history = collect(client, MAX_HISTORY, async |limit, cursor| {
        client.history(id, &PageQuery { limit: Some(limit), cursor }).await
    })
    .await?;
    if as_json {
        let mut shown =
            file.map_or_else(|| json!({ "fileId": id, "status": Status::Deleted }), |file| json!(file));
        shown["history"] = json!(history.items);
        println!("{shown}");
        return Ok(());
    }
    match &file {
        Some(file) => describe(file),
        None => println!("{id} was deleted."),
    }
    println!("\nHistory:");
    let rows: Vec<Vec<String>> = history.items.iter().map(row).collect();
    print!("{}", table(&rows));
    Ok(())
}

fn describe(file: &FileView) {
    println!("{}  ({})", printable(&file.file_name), size(file.size.unsigned_abs()));
    println!("  status   {}", file.status);
    if let Some(why) = &file.waiting_message {
        println!("  waits    {}{}", printable(why), countdown(file));
    }
    if let Some(why) = &file.staleness.message {
        let label = if file.staleness.stuck.is_some() { "stuck" } else { "stale" };
        println!("  {label:<8} {}", printable(why));
    }
    if let Some(error) = &file.error {
        println!("  error    {}: {}", printable(&error.code), printable(&error.message));
    }
    for warning in file.warnings.iter().flatten() {
        println!("  warning  {}: {}", printable(&warning.code), printable(&warning.message));
    }
    if let Some(attempt) = files::attempt(file) {
        println!("  attempt  {attempt}");
    }
    if !file.attempts.is_empty() {
        let stages = file.attempts.iter().map(|(stage, attempts)| format!("{stage} {attempts}"));
        println!("  attempts {}", stages.collect::<Vec<_>>().join(", "));
    }
    if let Some(at) = file.retried_at {
        println!("  retried  {} by {}", time(at), printable(file.retried_by.as_deref().unwrap_or("a user")));
    }
    if let Some(at) = file.deletion_at {
        println!("  deletion {}", time(at));
    }
    if let Some(chunks) = file.chunk_count.filter(|chunks| *chunks > 0) {
        println!("  chunks   {chunks}");
    }
    if let Some(batch) = file.batch_id {
        println!("  batch    {batch}");
    }
    println!("  id       {}", file.file_id);
}

/// When the file may go on, in words, for the end of a sentence.
pub fn countdown(file: &FileView) -> String {
    let left = file.retry_in_ms.map(TimeDelta::milliseconds);
    left.map_or_else(String::new, |left| format!(" (in {})", spoken(left)))
}

fn row(entry: &HistoryEntry) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    if let Some(attempt) = entry.attempt.filter(|attempt| *attempt > 1) {
        let stage = entry.stage.map_or("this stage", |stage| stage.name());
        notes.push(format!("attempt {attempt} at {stage}"));
    }
    if let Some(code) = &entry.error_code {
        let message = entry.error_message.as_deref().unwrap_or_default();
        notes.push(format!("{}: {}", printable(code), printable(message)));
    }
    notes.push(printable(&entry.reason));
    let by = match &entry.actor {
        Some(actor) => format!("{} {}", actor.kind, printable(&actor.name)),
        None => String::new(),
    };
    let to = entry.to.map_or("", Status::name);
    let change = match entry.from {
        Some(from) => format!("{from} → {to}"),
        None => to.to_owned(),
    };
    vec![format!("  {}", time(entry.at)), change, by, notes.join("; ")]
}

async fn show_batch(client: &Client, batch: BatchView, as_json: bool) -> Result<(), ClientError> {
    let id = batch.batch_id;
    let query = FileQuery {
        batch_id: Some(id.to_string()),
        status: Some(Status::Failed.into()),
        ..FileQuery::default()
    };
    let failed = files::list(client, &query, MAX_FAILED).await?.items;
    if as_json {
        let mut shown = json!(batch);
        shown["failed"] = json!(failed);
        println!("{shown}");
        return Ok(());
    }
    println!(
        "Batch {id} is {}: {} expected, {} registered, priority {}",
        batch.status,
        count(usize::try_from(batch.file_count).unwrap_or_default(), "file"),
        batch.registered,
        batch.priority
    );
    println!("  opened     {}", time(batch.created_at));
    if let Some(at) = batch.completed_at {
        println!("  completed  {}", time(at));
    }
    for status in Status::ALL {
        // Those that never came are counted apart.
        let files = match status {
            Status::Deleted => batch.summary.deleted,
            status => batch.count(|one| one == status),
        };
        if files > 0 {
            println!("  {:<10} {files}", status.name());
        }
    }
    if batch.summary.never_uploaded > 0 {
        println!("  never sent {}", batch.summary.never_uploaded);
    }
    for file in &failed {
        println!("  {}  {}  {}", printable(&file.file_name), file.file_id, files::error(file));
    }
    Ok(())
}
