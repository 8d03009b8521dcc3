//! `landfall files`: lists files.

use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::routes::collect;
use crate::client::{Client, ClientError, Connection};
use crate::format::{count, printable, size, table};
use landfall_api::files::{FileList, FileQuery, FileView};
use landfall_core::lifecycle::Status;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only files in this state: registered, uploaded, queued, extracting, chunking, embedding, ready, failed, …
    #[arg(long)]
    status: Option<Status>,
    /// Only files of this batch.
    #[arg(long, value_name = "ID")]
    batch: Option<Uuid>,
    /// Only files whose names contain this text.
    #[arg(long, value_name = "PART")]
    name: Option<String>,
    /// The maximum number of files, newest first.
    #[arg(long, value_name = "N", default_value = "50")]
    limit: usize,
    #[command(flatten)]
    connection: Connection,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let query = FileQuery {
        status: args.status,
        batch_id: args.batch.map(|batch| batch.to_string()),
        q: args.name.clone(),
        ..FileQuery::default()
    };
    let page = list(&client, &query, args.limit).await?;
    if as_json {
        println!("{}", json!(page));
        return Ok(Outcome::Good);
    }
    if page.items.is_empty() {
        println!("No files match. `landfall upload PATHS…` uploads some.");
        return Ok(Outcome::Good);
    }
    let mut rows = vec![["STATUS", "SIZE", "NAME", "ID", "NOTES"].map(str::to_owned).to_vec()];
    rows.extend(page.items.iter().map(row));
    print!("{}", table(&rows));
    if page.next_cursor.is_some() {
        println!("The newest {} are shown; --limit shows more.", count(page.items.len(), "file"));
    }
    Ok(Outcome::Good)
}

fn row(file: &FileView) -> Vec<String> {
    vec![
        file.status.to_string(),
        size(file.size.unsigned_abs()),
        printable(&file.file_name),
        file.file_id.to_string(),
        notes(file),
    ]
}

/// What is wrong with a file: its error, the attempts so far, and whether it makes no progress.
fn notes(file: &FileView) -> String {
    let attempt = attempt(file).map(|attempt| format!("attempt {attempt}"));
    let stale = file.staleness.message.as_deref().map(printable);
    let notes = [Some(problem(file)).filter(|problem| !problem.is_empty()), attempt, stale];
    notes.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// "2 of 3 at extract": the attempt of a file that runs, waits after a failure, or failed.
pub fn attempt(file: &FileView) -> Option<String> {
    let stage = file.next_stage.filter(|_| file.attempt > 0 && file.status != Status::Ready)?;
    Some(format!("{} of {} at {stage}", file.attempt, file.max_attempts))
}

/// The error of a file, or the number of its warnings, which `landfall status` shows.
fn problem(file: &FileView) -> String {
    match usize::try_from(file.warning_count) {
        Ok(warnings) if warnings > 0 && file.error.is_none() => count(warnings, "warning"),
        _ => error(file),
    }
}

/// The code and the message of a file's error; empty if it has none.
pub fn error(file: &FileView) -> String {
    let error = file.error.as_ref();
    error.map_or_else(String::new, |error| {
        format!("{}: {}", printable(&error.code), printable(&error.message))
    })
}

/// Up to `limit` files that match, newest first.
pub async fn list(client: &Client, query: &FileQuery, limit: usize) -> Result<FileList, ClientError> {
    collect(client, limit, async |limit, cursor| {
        client.files(&FileQuery { limit: Some(limit), cursor, ..query.clone() }).await
    })
    .await
}
