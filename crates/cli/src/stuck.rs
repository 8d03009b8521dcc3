//! `landfall stuck`: lists stuck files with the reason, and releases one or all of them to the queue.

use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::format::{count, files_wait, number, printable, span, table};
use landfall_api::stuck::{RetriedAll, RetryError, RetryQuery, StuckQuery, StuckView};
use landfall_core::states::Scope;

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
    /// List stuck files, the longest stuck first. This is the default.
    List(ListArgs),
    /// Release one file to the queue now, even if it does not count as stuck. A worker that holds it loses its claim.
    Retry {
        /// The id of the file.
        id: Uuid,
        #[command(flatten)]
        connection: Connection,
    },
    /// Release all stuck files to the queue.
    RetryAll {
        /// Files of all users, for administrators.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        connection: Connection,
    },
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// The maximum number of files.
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    limit: u64,
    /// Files of all users, for administrators.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    connection: Connection,
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
    let query = StuckQuery { limit: usize::try_from(args.limit).ok(), scope: args.all.then_some(Scope::All) };
    let stuck = client.retry(async || client.stuck_files(&query).await).await?;
    if as_json {
        println!("{}", json!(stuck));
        return Ok(Outcome::Good);
    }
    if stuck.files.is_empty() {
        println!("No file is stuck.");
    } else {
        let mut rows = vec![["FOR", "STATUS", "RETRIES", "NAME", "ID", "WHY"].map(str::to_owned).to_vec()];
        rows.extend(stuck.files.iter().map(row));
        print!("{}", table(&rows));
        if stuck.total > stuck.files.len() {
            println!("{} are stuck in total; --limit shows more.", count(stuck.total, "file"));
        }
        println!("`landfall stuck retry ID` and `landfall stuck retry-all` release them to the queue.");
    }
    // These files are not stuck, but they make no progress either.
    for (stage, files) in &stuck.without_workers {
        println!("{} at {stage}, and no process runs this stage.", files_wait(*files));
    }
    Ok(Outcome::Good)
}

fn row(file: &StuckView) -> Vec<String> {
    vec![
        span(file.stuck_duration),
        file.status.to_string(),
        file.retry_count.to_string(),
        printable(&file.file_name),
        file.id.to_string(),
        format!("{}: {}", file.reason, printable(&file.message)),
    ]
}

async fn retry(client: &Client, id: Uuid, as_json: bool) -> anyhow::Result<Outcome> {
    let retried = client.retry_stuck_file(id).await?;
    if as_json {
        println!("{}", json!(retried));
    } else {
        let (before, after) = (retried.previous_status, retried.new_status);
        println!("The file was {before} and is {after} now (retry {}).", retried.retry_count);
    }
    Ok(Outcome::Good)
}

async fn retry_all(client: &Client, all: bool, as_json: bool) -> anyhow::Result<Outcome> {
    let query = RetryQuery { scope: all.then_some(Scope::All) };
    // Safe to repeat: a file that is in the queue again is not stuck any more.
    let retried = client.retry(async || client.retry_stuck_files(&query).await).await?;
    if as_json {
        println!("{}", json!(retried));
    } else {
        println!("{}", describe(&retried));
    }
    Ok(if retried.errors.is_empty() { Outcome::Good } else { Outcome::Bad })
}

fn describe(retried: &RetriedAll) -> String {
    let plural = if retried.retried_count == 1 { "" } else { "s" };
    let mut text = format!("{} file{plural} released to the queue", number(retried.retried_count));
    if retried.skipped_count > 0 {
        text.push_str(&format!(
            ", {} skipped (no recoveries left, or no longer stuck)",
            number(retried.skipped_count)
        ));
    }
    text.push('.');
    for RetryError { file_id, error } in &retried.errors {
        text.push_str(&format!("\n{file_id}: {}", printable(error)));
    }
    text
}
