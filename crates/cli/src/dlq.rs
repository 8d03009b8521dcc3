//! `landfall dlq`: lists files that failed, one by one or by cause, and retries or discards them.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::routes::collect;
use crate::client::{Client, Connection};
use crate::format::{count, number, printable, table, time};
use landfall_api::dead_letters::{DeadLetterFilter, DeadLetterQuery};
use landfall_api::operations::OperationView;
use landfall_api::page::MAX_LIMIT;
use landfall_core::clock::Clock;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::states::{OperationStatus, Scope};

/// How often to poll the progress of an operation.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List failed files, newest first.
    List {
        /// The maximum number of files.
        #[arg(long, value_name = "N", default_value = "50")]
        limit: usize,
        #[command(flatten)]
        filter: FilterArgs,
        #[command(flatten)]
        connection: Connection,
    },
    /// List the causes, the one with the most files first.
    Groups {
        #[command(flatten)]
        filter: FilterArgs,
        #[command(flatten)]
        connection: Connection,
    },
    /// Retry one file from the stage that failed.
    Retry {
        /// The id of the file.
        id: Uuid,
        #[command(flatten)]
        connection: Connection,
    },
    /// Retry all files that match. With --fingerprint a few go first; the others follow unless these fail in the same way.
    RetryAll {
        /// Wait until all are in the queue or the operation was stopped.
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        filter: FilterArgs,
        #[command(flatten)]
        connection: Connection,
    },
    /// Delete one file.
    Discard {
        /// The id of the file.
        id: Uuid,
        #[command(flatten)]
        connection: Connection,
    },
}

#[derive(Debug, clap::Args)]
struct FilterArgs {
    /// Only files that failed with this code.
    #[arg(long)]
    code: Option<String>,
    /// Only files that failed at this stage: scan, extract, chunk, embed.
    #[arg(long)]
    stage: Option<Stage>,
    /// Only files of this batch.
    #[arg(long, value_name = "ID")]
    batch: Option<Uuid>,
    /// Only files with this cause, as `landfall dlq groups` shows it.
    #[arg(long)]
    fingerprint: Option<String>,
    /// Files of all users, for administrators.
    #[arg(long)]
    all: bool,
}

impl From<&FilterArgs> for DeadLetterFilter {
    fn from(args: &FilterArgs) -> Self {
        Self {
            code: args.code.clone(),
            stage: args.stage,
            batch_id: args.batch.map(|batch| batch.to_string()),
            fingerprint: args.fingerprint.clone(),
            scope: args.all.then_some(Scope::All),
        }
    }
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    match &args.command {
        Command::List { limit, filter, connection } => {
            list(&Client::connect(connection)?, filter.into(), *limit, as_json).await
        }
        Command::Groups { filter, connection } => {
            groups(&Client::connect(connection)?, filter.into(), as_json).await
        }
        Command::Retry { id, connection } => {
            let retried = Client::connect(connection)?.retry_dead_letter(*id).await?;
            if as_json {
                println!("{}", json!(retried));
            } else {
                println!("The file is in the queue again.");
            }
            Ok(Outcome::Good)
        }
        Command::RetryAll { wait, filter, connection } => {
            retry_all(&Client::connect(connection)?, &filter.into(), *wait, as_json).await
        }
        Command::Discard { id, connection } => {
            let client = Client::connect(connection)?;
            client.retry(async || client.discard_dead_letter(*id).await).await?;
            if as_json {
                println!("{}", json!({ "fileId": id, "status": Status::Deleted }));
            } else {
                println!("The file is deleted.");
            }
            Ok(Outcome::Good)
        }
    }
}

async fn list(
    client: &Client,
    filter: DeadLetterFilter,
    limit: usize,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let page = collect(client, limit, async |limit, cursor| {
        client.dead_letters(&DeadLetterQuery::of(filter.clone(), limit, cursor)).await
    })
    .await?;
    if as_json {
        println!("{}", json!(page));
        return Ok(Outcome::Good);
    }
    if page.items.is_empty() {
        println!("No dead letters match.");
        return Ok(Outcome::Good);
    }
    let mut rows = vec![["FAILED", "DELETED ON", "STAGE", "NAME", "ID", "ERROR"].map(str::to_owned).to_vec()];
    rows.extend(page.items.iter().map(|letter| {
        let again = letter
            .retried_by
            .as_ref()
            .map_or_else(String::new, |by| format!(" (again, after a retry by {})", printable(by)));
        let attempts = count(usize::try_from(letter.attempts).unwrap_or_default(), "attempt");
        vec![
            time(letter.failed_at),
            letter.deletion_at.format("%Y-%m-%d").to_string(),
            letter.stage.to_string(),
            printable(&letter.file_name),
            letter.file_id.to_string(),
            format!("{}: {}{again}; {attempts}", printable(&letter.code), printable(&letter.error)),
        ]
    }));
    print!("{}", table(&rows));
    if page.next_cursor.is_some() {
        println!("The newest {} are shown; --limit shows more.", count(page.items.len(), "file"));
    }
    Ok(Outcome::Good)
}

async fn groups(client: &Client, filter: DeadLetterFilter, as_json: bool) -> anyhow::Result<Outcome> {
    let query = DeadLetterQuery::of(filter, MAX_LIMIT, None);
    let list = client.retry(async || client.dead_letter_groups(&query).await).await?;
    if as_json {
        println!("{}", json!(list));
        return Ok(Outcome::Good);
    }
    if list.groups.is_empty() {
        println!("No dead letters match.");
        return Ok(Outcome::Good);
    }
    let mut rows = vec![["FILES", "STAGE", "LAST", "FINGERPRINT", "ERROR"].map(str::to_owned).to_vec()];
    rows.extend(list.groups.iter().map(|group| {
        vec![
            group.count.to_string(),
            group.stage.to_string(),
            time(group.last_seen),
            printable(&group.fingerprint),
            format!("{}: {}", printable(&group.code), printable(&group.sample.message)),
        ]
    }));
    print!("{}", table(&rows));
    println!("`landfall dlq retry-all --fingerprint …` retries the files of one cause.");
    Ok(Outcome::Good)
}

async fn retry_all(
    client: &Client,
    filter: &DeadLetterFilter,
    wait: bool,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let mut operation = client.retry_dead_letters(filter).await?;
    while wait && !operation.status.is_over() {
        Clock::System.sleep(POLL_INTERVAL).await;
        let id = operation.operation_id;
        operation = client.retry(async || client.operation(id).await).await?;
    }
    if as_json {
        println!("{}", json!(operation));
    } else {
        println!("{}", describe(&operation));
    }
    let bad = operation.status == OperationStatus::Stopped || operation.error_count > 0;
    Ok(if bad { Outcome::Bad } else { Outcome::Good })
}

fn describe(operation: &OperationView) -> String {
    let plural = if operation.retried_count == 1 { "" } else { "s" };
    let mut text = format!("{} file{plural} in the queue again", number(operation.retried_count));
    if operation.skipped_count > 0 {
        text.push_str(&format!(", {} skipped because the bytes are gone", number(operation.skipped_count)));
    }
    if operation.error_count > 0 {
        text.push_str(&format!(", {} not retried because of an error", number(operation.error_count)));
    }
    text.push('.');
    for skipped in operation.skipped.as_array().into_iter().flatten() {
        let part = |name: &str| printable(skipped[name].as_str().unwrap_or_default());
        text.push_str(&format!("\n  {}: {}", part("fileName"), part("message")));
    }
    match operation.status {
        OperationStatus::Completed => return text,
        OperationStatus::Stopped => {
            let reason = operation.reason.as_deref().unwrap_or("no reason is known");
            text.push_str(&format!("\nStopped before the end: {}.", printable(reason)));
        }
        OperationStatus::Canary => {
            text.push_str("\nThe others follow unless these fail in the same way.");
        }
        OperationStatus::Running => text.push_str("\nThe server continues with the others."),
    }
    text.push_str(&format!("\nThe operation is {}.", operation.operation_id));
    text
}
