//! `landfall stuck`: files that are stuck, and why; given back to the queue one by one or all together.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, ClientError, Connection};
use crate::words::{count, files_wait, printable, span, table};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List them, the one that has stood still for longest first. The same as without a word.
    List(ListArgs),
    /// Give one back to the queue now, whether or not it counts as stuck. Whoever holds it finds its claim gone.
    Retry {
        /// Of the file.
        id: Uuid,
        #[command(flatten)]
        connection: Connection,
    },
    /// Give all back to the queue that are stuck.
    RetryAll {
        /// Everybody's, for administrators.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        connection: Connection,
    },
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// How many.
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    limit: u64,
    /// Everybody's, for administrators.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stuck {
    files: Vec<StuckFile>,
    total: usize,
    without_workers: BTreeMap<String, i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StuckFile {
    id: Uuid,
    file_name: String,
    status: String,
    stuck_duration: i64,
    retry_count: i64,
    reason: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Retried {
    previous_status: String,
    new_status: String,
    retry_count: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RetriedAll {
    retried_count: usize,
    skipped_count: usize,
    errors: Vec<RetryError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RetryError {
    file_id: Uuid,
    error: String,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    match &args.command {
        None => list(&args.list, as_json).await,
        Some(Command::List(args)) => list(args, as_json).await,
        Some(Command::Retry { id, connection }) => retry(&Client::connect(connection)?, *id, as_json).await,
        Some(Command::RetryAll { all, connection }) => {
            retry_all(&Client::connect(connection)?, *all, as_json).await
        }
    }
}

async fn list(args: &ListArgs, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let mut query = vec![("limit", args.limit.to_string())];
    query.extend(args.all.then(|| ("scope", "all".to_owned())));
    let answer: Value = client.persist(async || client.get("/stuck", &query).await).await?;
    if as_json {
        println!("{answer}");
        return Ok(Outcome::Good);
    }
    let stuck: Stuck = told(&client, &answer)?;
    if stuck.files.is_empty() {
        println!("No file is stuck.");
    } else {
        let mut rows = vec![["FOR", "STATUS", "RETRIES", "NAME", "ID", "WHY"].map(str::to_owned).to_vec()];
        rows.extend(stuck.files.iter().map(row));
        print!("{}", table(&rows));
        if stuck.total > stuck.files.len() {
            println!("{} are stuck in all; --limit shows more.", count(stuck.total, "file"));
        }
        println!("`landfall stuck retry ID` and `landfall stuck retry-all` give them back to the queue.");
    }
    // They are not stuck, but they do not move either.
    for (stage, files) in &stuck.without_workers {
        println!("{} at {}, and no process is running that does it.", files_wait(*files), printable(stage));
    }
    Ok(Outcome::Good)
}

fn row(file: &StuckFile) -> Vec<String> {
    vec![
        span(file.stuck_duration),
        printable(&file.status),
        file.retry_count.to_string(),
        printable(&file.file_name),
        file.id.to_string(),
        format!("{}: {}", printable(&file.reason), printable(&file.message)),
    ]
}

async fn retry(client: &Client, id: Uuid, as_json: bool) -> anyhow::Result<Outcome> {
    let answer: Value = client.post(&format!("/stuck/{id}/retry"), &json!({})).await?;
    if as_json {
        println!("{answer}");
        return Ok(Outcome::Good);
    }
    let Retried { previous_status, new_status, retry_count } = told(client, &answer)?;
    let (was, is) = (printable(&previous_status), printable(&new_status));
    println!("It was {was} and is {is} now (retry {retry_count}).");
    Ok(Outcome::Good)
}

async fn retry_all(client: &Client, all: bool, as_json: bool) -> anyhow::Result<Outcome> {
    let path = if all { "/stuck/retry-all?scope=all" } else { "/stuck/retry-all" };
    // Safe to repeat: what is in the queue again is not stuck any more.
    let answer: Value = client.persist(async || client.post(path, &json!({})).await).await?;
    let retried: RetriedAll = told(client, &answer)?;
    if as_json {
        println!("{answer}");
    } else {
        println!("{}", in_words(&retried));
    }
    Ok(if retried.errors.is_empty() { Outcome::Good } else { Outcome::Bad })
}

fn in_words(retried: &RetriedAll) -> String {
    let mut words = format!("{} in the queue again", count(retried.retried_count, "file"));
    if retried.skipped_count > 0 {
        words.push_str(&format!(
            ", {} skipped (recovered as often as they may be, or no longer stuck)",
            retried.skipped_count
        ));
    }
    words.push('.');
    for RetryError { file_id, error } in &retried.errors {
        words.push_str(&format!("\n{file_id}: {}", printable(error)));
    }
    words
}

fn told<T: DeserializeOwned>(client: &Client, answer: &Value) -> Result<T, ClientError> {
    T::deserialize(answer).map_err(|error| client.strange(error.to_string()))
}
