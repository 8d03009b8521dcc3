//! `landfall jobs`: when maintenance runs and ran, and some of it run now.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, ClientError, Connection};
use crate::words::{printable, table, time};
use landfall_core::clock::Clock;

/// How often to ask whether a run is over.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

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
    /// Run one now, and wait for its end.
    Run {
        /// As `landfall jobs list` shows it.
        name: String,
        /// Also if that looks like a mistake: `orphan-cleanup` then removes orphans however many they are.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        connection: Connection,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    name: String,
    schedule: String,
    next_run_at: Option<DateTime<Utc>>,
    running: bool,
    last_run: Option<Run>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    run_id: Uuid,
    started_at: DateTime<Utc>,
    ended_at: Option<DateTime<Utc>>,
    metrics: Option<Value>,
    errors: Vec<String>,
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    match &args.command {
        Command::List { connection } => list(&Client::connect(connection)?, as_json).await,
        Command::Run { name, force, connection } => {
            run_now(&Client::connect(connection)?, name, *force, as_json).await
        }
    }
}

async fn list(client: &Client, as_json: bool) -> anyhow::Result<Outcome> {
    let answer = client.persist(async || client.jobs().await).await?;
    if as_json {
        println!("{answer}");
        return Ok(Outcome::Good);
    }
    let mut rows = vec![["JOB", "SCHEDULE", "NEXT", "LAST", "RESULT"].map(str::to_owned).to_vec()];
    for job in jobs(client, &answer)? {
        let result = match &job.last_run {
            _ if job.running => "running".to_owned(),
            Some(run) => in_words(run),
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

async fn run_now(client: &Client, name: &str, force: bool, as_json: bool) -> anyhow::Result<Outcome> {
    let mut answer = client.run_job(name, force).await?["run"].take();
    let mut run: Run = told(client, &answer)?;
    while run.ended_at.is_none() {
        Clock::System.sleep(BETWEEN_LOOKS).await;
        let all = client.persist(async || client.jobs().await).await?;
        let known = all["jobs"].as_array().into_iter().flatten().find(|job| job["name"] == name);
        let Some(last) = known.map(|job| &job["lastRun"]).filter(|last| !last.is_null()) else { break };
        let seen: Run = told(client, last)?;
        if seen.run_id != run.run_id {
            anyhow::bail!("another run of {name} began before the end of this one was seen");
        }
        (answer, run) = (last.clone(), seen);
    }
    if as_json {
        println!("{answer}");
    } else {
        println!("{}", in_words(&run));
    }
    Ok(if run.errors.is_empty() { Outcome::Good } else { Outcome::Bad })
}

/// What came of a run, on one line.
fn in_words(run: &Run) -> String {
    let metrics = run.metrics.as_ref().and_then(Value::as_object).into_iter().flatten();
    let mut words: Vec<String> = metrics
        .map(|(name, value)| format!("{} {}", printable(name), printable(&value.to_string())))
        .collect();
    words.extend(run.errors.iter().map(|error| format!("error: {}", printable(error))));
    if words.is_empty() { "done".to_owned() } else { words.join(", ") }
}

fn jobs(client: &Client, answer: &Value) -> Result<Vec<Job>, ClientError> {
    let jobs = answer["jobs"].as_array().into_iter().flatten();
    jobs.map(|job| Job::deserialize(job).map_err(|error| client.strange(error.to_string()))).collect()
}

fn told(client: &Client, answer: &Value) -> Result<Run, ClientError> {
    Run::deserialize(answer).map_err(|error| client.strange(error.to_string()))
}
