//! What the way of a file through the queue costs: `make bench`.
//!
//! Files go through stages that do nothing, on SQLite and on PostgreSQL, so that only the queue is measured. Each
//! scenario runs in its own process, so that none inherits the memory of another, and in its own database.
//!
//!     make bench                                                       everything
//!     scripts/with-postgres cargo bench --bench flows -- latency       the scenarios with this word in their names
//!     scripts/with-postgres cargo bench --bench flows -- meaning-1000000-of-1   search by meaning in a million chunks
//!     BENCH_FINISHED=100000 make bench                                 beside fewer finished files
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and ranks of samples are small"
)]

mod busy;
mod requests;
mod claims;
mod databases;
mod claim_harness;
mod embedding;
mod figures;
mod seed_rows;
mod flatness;
mod growth;
mod intake;
mod latency;
mod limits;
mod meaning;
mod measure;
mod orphans;
mod peak;
mod serving;
mod streams;
mod takeover;
mod throughput;
mod vacuum;
mod vectors;
mod words;
mod worker;

use std::process::{Command, Stdio};

use anyhow::Context;

use databases::Kind;
use figures::{Figures, Table};

const CHILD: &str = "BENCH_SCENARIO";
const FINISHED: i64 = 1_000_000;

#[derive(Debug, Clone, Copy)]
enum Scenario {
    Limits(Kind),
    Throughput(Kind, usize),
    Latency(Kind),
    Takeover(Kind),
    Intake(Kind),
    Flatness(Kind),
    Claims(Kind),
    Requests(Kind),
    Growth(Kind),
    Orphans,
    Streams(Kind),
    Vectors(usize),
    /// So many chunks, of so many users.
    Meaning(Kind, usize, usize),
    Words(Kind),
    Embedding,
    Busy(Kind),
    Vacuum,
}

impl Scenario {
    fn all() -> Vec<Self> {
        let each = |scenario: fn(Kind) -> Self| Kind::ALL.map(scenario);
        let mut all = Vec::new();
        all.extend(each(|kind| Self::Throughput(kind, 1_000)));
        all.extend(each(|kind| Self::Throughput(kind, 10_000)));
        all.extend(each(Self::Latency));
        all.extend(each(Self::Takeover));
        all.extend(each(Self::Intake));
        all.extend(each(Self::Flatness));
        all.extend(each(Self::Claims));
        all.extend(each(Self::Requests));
        all.extend(each(Self::Growth));
        all.push(Self::Orphans);
        all.extend(each(Self::Streams));
        all.extend([Self::Vectors(10_000), Self::Vectors(50_000), Self::Embedding]);
        all.extend(each(Self::Words));
        all.extend(each(Self::Busy));
        all.extend(each(Self::Limits));
        // These write gigabytes or take half an hour, so they run only when they are named.
        all.extend(each(|kind| Self::Meaning(kind, 100_000, 1)));
        all.extend(each(|kind| Self::Meaning(kind, 1_000_000, 1)));
        all.extend(each(|kind| Self::Meaning(kind, 10_000_000, 1_000)));
        all.push(Self::Vacuum);
        all
    }

    fn name(self) -> String {
        match self {
            Self::Limits(kind) => format!("{}-limits", kind.name()),
            Self::Throughput(kind, files) => format!("{}-flows-{files}", kind.name()),
            Self::Latency(kind) => format!("{}-latency", kind.name()),
            Self::Takeover(kind) => format!("{}-takeover", kind.name()),
            Self::Intake(kind) => format!("{}-intake", kind.name()),
            Self::Flatness(kind) => format!("{}-flatness", kind.name()),
            Self::Claims(kind) => format!("{}-claims", kind.name()),
            Self::Requests(kind) => format!("{}-requests", kind.name()),
            Self::Growth(kind) => format!("{}-growth", kind.name()),
            Self::Orphans => "orphans".to_owned(),
            Self::Streams(kind) => format!("{}-streams", kind.name()),
            Self::Vectors(chunks) => format!("sqlite-vectors-{chunks}"),
            Self::Meaning(kind, chunks, users) => format!("{}-meaning-{chunks}-of-{users}", kind.name()),
            Self::Words(kind) => format!("{}-words", kind.name()),
            // It needs no database; its figures are in the first column.
            Self::Embedding => "embedding".to_owned(),
            Self::Busy(kind) => format!("{}-busy", kind.name()),
            Self::Vacuum => "postgres-vacuum".to_owned(),
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Limits(kind)
            | Self::Throughput(kind, _)
            | Self::Latency(kind)
            | Self::Takeover(kind)
            | Self::Intake(kind)
            | Self::Flatness(kind)
            | Self::Claims(kind)
            | Self::Requests(kind)
            | Self::Growth(kind)
            | Self::Meaning(kind, ..)
            | Self::Words(kind)
            | Self::Streams(kind)
            | Self::Busy(kind) => kind,
            Self::Vectors(_) | Self::Embedding | Self::Orphans => Kind::Sqlite,
            Self::Vacuum => Kind::Postgres,
        }
    }

    fn times(self) -> usize {
        match self {
            Self::Throughput(..) => 3,
            _ => 1,
        }
    }

    async fn run(self) -> anyhow::Result<Figures> {
        match self {
            Self::Limits(kind) => limits::run(kind).await,
            Self::Throughput(kind, files) => throughput::run(kind, files).await,
            Self::Latency(kind) => Box::pin(latency::run(kind)).await,
            Self::Takeover(kind) => takeover::run(kind).await,
            Self::Intake(kind) => Box::pin(intake::run(kind)).await,
            Self::Flatness(kind) => flatness::run(kind, finished()?).await,
            Self::Claims(kind) => claims::run(kind).await,
            Self::Requests(kind) => Box::pin(requests::run(kind, finished()?)).await,
            Self::Growth(kind) => Box::pin(growth::run(kind, finished()?)).await,
            Self::Orphans => orphans::run(finished()?).await,
            Self::Streams(kind) => Box::pin(streams::run(kind)).await,
            Self::Vectors(chunks) => vectors::run(chunks).await,
            Self::Meaning(kind, chunks, users) => meaning::run(kind, chunks, users).await,
            Self::Words(kind) => words::run(kind).await,
            Self::Embedding => embedding::run().await,
            Self::Busy(kind) => Box::pin(busy::run(kind)).await,
            Self::Vacuum => vacuum::run(finished()?).await,
        }
    }
}

fn finished() -> anyhow::Result<i64> {
    match std::env::var("BENCH_FINISHED") {
        Ok(number) => number.parse().context("BENCH_FINISHED is not a number"),
        Err(_) => Ok(FINISHED),
    }
}

fn main() -> anyhow::Result<()> {
    if let Ok(address) = std::env::var(streams::CLIENTS) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        return runtime.block_on(streams::clients(&address));
    }
    if let Ok(server) = std::env::var(intake::CLIENTS) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        return runtime.block_on(intake::clients(&server));
    }
    if let Ok(opened) = std::env::var(takeover::VICTIM) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        return runtime.block_on(takeover::victim(&opened));
    }
    match std::env::var(CHILD) {
        Ok(name) => run_here(&name),
        Err(_) => run_all(),
    }
}

fn run_here(name: &str) -> anyhow::Result<()> {
    let scenario = Scenario::all().into_iter().find(|scenario| scenario.name() == name);
    let scenario = scenario.with_context(|| format!("there is no scenario {name}"))?;
    // The same runtime as the server.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let figures = runtime.block_on(scenario.run())?;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

fn run_all() -> anyhow::Result<()> {
    // Cargo adds its own options, such as `--bench`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (mut table, mut failed) = (Table::default(), Vec::new());
    for scenario in Scenario::all() {
        let name = scenario.name();
        let is_named = wanted.iter().any(|word| name.contains(word));
        if !is_named && (!wanted.is_empty() || matches!(scenario, Scenario::Meaning(..) | Scenario::Vacuum)) {
            continue;
        }
        if !scenario.kind().is_available() {
            eprintln!("{name}: left out, because LANDFALL_TEST_DATABASE_URL is not set");
            continue;
        }
        for _ in 0..scenario.times() {
            eprintln!("{name}");
            match run_in_child(&name) {
                Ok(figures) => table.add(scenario.kind(), figures),
                // The other scenarios are still worth running.
                Err(error) => failed.push(error),
            }
        }
    }
    table.print();
    failed.into_iter().next().map_or(Ok(()), Err)
}

fn run_in_child(scenario: &str) -> anyhow::Result<Figures> {
    let child = Command::new(std::env::current_exe()?)
        .env(CHILD, scenario)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    anyhow::ensure!(child.status.success(), "{scenario} ended with {}", child.status);
    serde_json::from_slice(&child.stdout).with_context(|| format!("{scenario} printed no figures"))
}
