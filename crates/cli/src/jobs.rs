//! `landfall jobs`: lists the maintenance jobs, and runs one now.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Outcome;
use crate::client::{Client, Connection};
use crate::format::{printable, table, time};
use landfall_api::maintenance::{CleanupFailureQuery, RunQuery, RunView};
use landfall_core::clock::Clock;

/// How often to poll whether a run has ended.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the jobs, with their last run and their next.
    List {
        #[command(flatten)]
        connection: Connection,
    },
    /// List what could not be cleaned, with the last error of each.
    Failures {
        /// The maximum number of items, those that wait longest first.
        #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(i64).range(1..=1_000))]
        limit: i64,
        #[command(flatten)]
        connection: Connection,
    },
    /// Run one now, and wait until it ends.
    Run {
        /// The name of the job, as `landfall jobs list` shows it.
        name: String,
        /// Ignore the safety limit: `orphan-cleanup` then removes any number of orphans.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        connection: Connection,
    },
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    match &args.command {
        Command::List { connection } => list(&Client::connect(connection)?, as_json).await,
        Command::Failures { limit, connection } => {
            failures(&Client::connect(connection)?, *limit, as_json).await
        }
        Command::Run { name, force, connection } => {
            run_now(&Client::connect(connection)?, name, *force, as_json).await
        }
    }
}

async fn list(client: &Client, as_json: bool) -> anyhow::Result<Outcome> {
    let list = client.retry(async || client.jobs().await).await?;
    if as_json {
        println!("{}", json!(list));
        return Ok(Outcome::Good);
    }
    let mut rows = vec![["JOB", "SCHEDULE", "NEXT", "LAST", "RESULT"].map(str::to_owned).to_vec()];
    for job in list.jobs {
        let result = match &job.last_run {
            _ if job.running => "running".to_owned(),
            Some(run) => describe(run),
            None => String::new(),
        };
        rows.push(vec![
            printable(&job.name),
            printable(&job.schedule),
            job.next_run_at.map_or_else(|| "never".to_owned(), time),
            job.last_run.as_ref().map_or_else(|| "never".to_owned(), |run| time(run.started_at)),
            result,
        ]);
    }
    print!("{}", table(&rows));
    Ok(Outcome::Good)
}

async fn failures(client: &Client, limit: i64, as_json: bool) -> anyhow::Result<Outcome> {
    let query = CleanupFailureQuery { limit: Some(limit) };
    let list = client.retry(async || client.cleanup_failures(&query).await).await?;
    if as_json {
        println!("{}", json!(list));
    } else if list.failures.is_empty() {
        println!("Everything could be cleaned.");
    } else {
        let mut rows = vec![["SINCE", "TRIES", "BY", "WHAT", "LAST ERROR"].map(str::to_owned).to_vec()];
        rows.extend(list.failures.iter().map(|failure| {
            vec![
                time(failure.first_at),
                failure.attempts.to_string(),
                printable(&failure.scope),
                printable(&failure.subject),
                printable(&failure.error),
            ]
        }));
        print!("{}", table(&rows));
        println!("{} in all. Each is tried again.", list.total);
    }
    Ok(if list.failures.is_empty() { Outcome::Good } else { Outcome::Bad })
}

async fn run_now(client: &Client, name: &str, force: bool, as_json: bool) -> anyhow::Result<Outcome> {
    let started = client.run_job(name, &RunQuery { force: force.then_some(true) }).await?;
    let mut run = started.run.ok_or_else(|| client.unexpected(format!("no run of {name} was started")))?;
    while run.ended_at.is_none() {
        Clock::System.sleep(POLL_INTERVAL).await;
        let list = client.retry(async || client.jobs().await).await?;
        let job = list.jobs.into_iter().find(|job| job.name == name);
        let Some(last) = job.and_then(|job| job.last_run) else { break };
        if last.run_id != run.run_id {
            anyhow::bail!("another run of {name} started before the end of this one was seen");
        }
        run = last;
    }
    if as_json {
        println!("{}", json!(run));
    } else {
        println!("{}", describe(&run));
    }
    Ok(if run.errors.is_empty() { Outcome::Good } else { Outcome::Bad })
}

/// The result of a run on one line.
fn describe(run: &RunView) -> String {
    let metrics = run.metrics.as_ref().and_then(Value::as_object).into_iter().flatten();
    let mut parts: Vec<String> = metrics
        .map(|(name, value)| format!("{} {}", printable(name), printable(&value.to_string())))
        .collect();
    parts.extend(run.errors.iter().map(|error| format!("error: {}", printable(error))));
    if parts.is_empty() { "done".to_owned() } else { parts.join(", ") }
}
