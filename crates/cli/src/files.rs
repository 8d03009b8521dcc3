//! `landfall files`: a list of files.

use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, ClientError, Connection};
use crate::words::{count, printable, size, table};
use landfall_core::lifecycle::Status;

const MOST_PER_PAGE: usize = 200;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only files in this state: registered, uploaded, queued, extracting, chunking, embedding, ready, failed, …
    #[arg(long)]
    status: Option<Status>,
    /// Only files of this batch.
    #[arg(long, value_name = "ID")]
    batch: Option<Uuid>,
    /// Only files with this in their names.
    #[arg(long, value_name = "PART")]
    name: Option<String>,
    /// How many, the newest first.
    #[arg(long, value_name = "N", default_value = "50")]
    limit: usize,
    #[command(flatten)]
    connection: Connection,
}

/// A file as the server tells of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    pub file_id: Uuid,
    pub file_name: String,
    pub size: u64,
    pub status: String,
    pub error: Option<ToldError>,
    pub waiting_message: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ToldError {
    pub code: String,
    pub message: String,
}

/// As many files as there are, up to a limit, each as it came, and where a next page would begin.
pub struct Listing {
    pub files: Vec<Value>,
    pub next: Option<String>,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let mut filter = Vec::new();
    filter.extend(args.status.map(|status| ("status", status.to_string())));
    filter.extend(args.batch.map(|batch| ("batchId", batch.to_string())));
    filter.extend(args.name.clone().map(|name| ("q", name)));
    let listing = list(&client, &filter, args.limit).await?;
    if as_json {
        println!("{}", json!({ "files": listing.files, "nextCursor": listing.next }));
        return Ok(Outcome::Good);
    }
    let files = told(&client, &listing.files)?;
    if files.is_empty() {
        println!("There are no such files. `landfall upload PATHS…` brings some.");
        return Ok(Outcome::Good);
    }
    let mut rows = vec![["STATUS", "SIZE", "NAME", "ID", "ERROR"].map(str::to_owned).to_vec()];
    rows.extend(files.iter().map(row));
    print!("{}", table(&rows));
    if listing.next.is_some() {
        println!("The newest {} are shown; --limit shows more.", count(files.len(), "file"));
    }
    Ok(Outcome::Good)
}

fn row(file: &Told) -> Vec<String> {
    let error =
        file.error.as_ref().map(|error| format!("{}: {}", printable(&error.code), printable(&error.message)));
    vec![
        printable(&file.status),
        size(file.size),
        printable(&file.file_name),
        file.file_id.to_string(),
        error.unwrap_or_default(),
    ]
}

/// Follows the cursor until there are `limit` files or no more.
pub async fn list(client: &Client, filter: &[(&str, String)], limit: usize) -> Result<Listing, ClientError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        files: Vec<Value>,
        next_cursor: Option<String>,
    }
    let mut listing = Listing { files: Vec::new(), next: None };
    while listing.files.len() < limit {
        let room = (limit - listing.files.len()).min(MOST_PER_PAGE);
        let mut query = filter.to_vec();
        query.push(("limit", room.to_string()));
        query.extend(listing.next.take().map(|cursor| ("cursor", cursor)));
        let page: Page = client.persist(async || client.get("/files", &query).await).await?;
        listing.files.extend(page.files);
        listing.next = page.next_cursor;
        if listing.next.is_none() {
            break;
        }
    }
    Ok(listing)
}

pub fn told(client: &Client, files: &[Value]) -> Result<Vec<Told>, ClientError> {
    files
        .iter()
        .map(|file| Told::deserialize(file).map_err(|error| client.strange(error.to_string())))
        .collect()
}
