//! apalis with its workflows, on PostgreSQL or SQLite: the same work and the same lines as the programs of ../node, whose
//! harness.mjs describes them.

mod harness;

use std::time::{Duration, Instant};

use anyhow::Context;
use apalis::prelude::*;
use apalis_postgres::{PgPool, PostgresStorage};
use apalis_sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteStorage};
use apalis_workflow::SteppedFlow;
use serde_json::json;

use harness::{Mode, Phases, Tally, Task};

const QUEUE: &str = "files";
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const GROUP: usize = 1_000;
const WARM_UP: u64 = 5;
/// Between two flows of the latency measurement, so that the worker is idle.
const PAUSE: Duration = Duration::from_millis(5);

/// Starts the worker. A macro, because a workflow has a different type for each storage.
macro_rules! work {
    ($storage:ident, $task:ident, $tally:ident) => {{
        let [extract, chunk, embed] = [0, 1, 2].map(|stage| ($tally.clone(), stage));
        let flow = SteppedFlow::new("files")
            .and_then(move |file: u64| stage(extract.clone(), file))
            .and_then(move |file: u64| stage(chunk.clone(), file))
            .and_then(move |file: u64| stage(embed.clone(), file));
        let worker = WorkerBuilder::new(format!("worker-{}", std::process::id()))
            .backend($storage.clone().poll_with_interval(POLL_INTERVAL))
            .concurrency($task.slots)
            .build(flow);
        tokio::spawn(async move {
            if let Err(error) = worker.run().await {
                eprintln!("the worker ended: {error}");
                std::process::exit(1);
            }
        });
    }};
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let task = Task::from_environment()?;
    // The process that takes over must not migrate a database that another process works with.
    let migrate = task.mode != Mode::Take;
    if let Some(url) = &task.url {
        let pool = PgPool::connect(url).await?;
        if migrate {
            PostgresStorage::setup(&pool).await?;
        }
        let config = apalis_postgres::Config::default().queue(QUEUE).batch_size(task.batch);
        let storage = PostgresStorage::<u64>::new(&pool).with_config(config);
        run(&task, storage.clone(), |tally| work!(storage, task, tally)).await
    } else {
        let file = task.file.as_ref().context("the task names neither a server nor a file")?;
        if migrate {
            // This sets `synchronous=OFF` on one connection, so it gets its own pool.
            let pool = SqlitePool::connect_with(sqlite(file)).await?;
            SqliteStorage::setup(&pool).await?;
            pool.close().await;
        }
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(sqlite(file)).await?;
        let config = apalis_sqlite::Config::default().queue(QUEUE).batch_size(task.batch);
        let storage = SqliteStorage::<u64>::new(&pool).with_config(config);
        run(&task, storage.clone(), |tally| work!(storage, task, tally)).await
    }
}

fn sqlite(file: &str) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .pragma("journal_mode", "WAL")
        .pragma("synchronous", "FULL")
}

async fn stage((tally, stage): (Tally, usize), file: u64) -> Result<u64, BoxDynError> {
    tally.reached(stage, file).await;
    Ok(file)
}

async fn run<S, Kind>(task: &Task, mut storage: S, work: impl FnOnce(Tally)) -> anyhow::Result<()>
where
    S: TaskSink<u64, Kind>,
    S::Error: std::error::Error + Send + Sync + 'static,
{
    let tally = Tally::new(task.mode, WARM_UP + task.files);
    let mut phases = Phases::default();
    match task.mode {
        Mode::Flows => {
            phases.end("opened", json!({}))?;
            let files: Vec<u64> = (0..task.files).collect();
            for group in files.chunks(GROUP) {
                storage.push_bulk(group.to_vec()).await?;
            }
            phases.end("queued", json!({}))?;
            work(tally.clone());
            tally.all(task.files).await;
            phases
                .end("worked", json!({ "stages": tally.counts(), "out_of_order": tally.out_of_order() }))?;
        }
        Mode::Latency => {
            work(tally.clone());
            phases.end("opened", json!({}))?;
            let mut samples = Vec::new();
            for file in 0..WARM_UP + task.files {
                tokio::time::sleep(PAUSE).await;
                let began = Instant::now();
                storage.push(file).await?;
                tally.all(file + 1).await;
                if file >= WARM_UP {
                    samples.push(began.elapsed().as_secs_f64() * 1e3);
                }
            }
            phases.end("worked", json!({ "samples": samples }))?;
        }
        Mode::Hold => {
            work(tally);
            storage.push(0).await?;
            std::future::pending::<()>().await;
        }
        Mode::Take => {
            work(tally.clone());
            phases.end("opened", json!({}))?;
            tally.started().await;
            harness::print(&json!({ "phase": "taken" }))?;
        }
    }
    // Everything is measured, so there is nothing to shut down in order.
    std::process::exit(0);
}
