//! The command line. A person at a terminal gets sentences; a program asks for `--json`.

mod audit;
mod client;
mod config;
mod dlq;
mod events;
mod files;
mod jobs;
mod logs;
mod orphans;
mod reindex;
mod search;
mod serve;
mod status;
mod storage;
mod stuck;
mod token;
mod top;
mod upload;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use landfall_server::config::{Config, Variables};

/// Takes files in, turns them into searchable text, and makes sure every one of them arrives.
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Answer in JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server.
    Serve,
    /// Send files to a server.
    Upload(upload::Args),
    /// List files.
    Files(files::Args),
    /// Show what became of a file or a batch, and why.
    Status(status::Args),
    /// Find something in the files that are ready.
    Search(search::Args),
    /// Look at files that failed, and retry or discard them.
    Dlq(dlq::Args),
    /// Look at files that are stuck, and give them back to the queue.
    Stuck(stuck::Args),
    /// See what is left over: blobs that no file knows, uploads that never came.
    Orphans(orphans::Args),
    /// Watch everything: throughput, queues, workers, circuits, schedules, errors.
    Top(top::Args),
    /// Show what happens, as it happens.
    Events(events::Args),
    /// See when maintenance runs and ran, or run some of it now.
    Jobs(jobs::Args),
    /// Make a token for the API.
    Token(token::Args),
    /// Show every setting, its value, and where it comes from.
    Config(config::Args),
    /// Embed anew what was embedded with another model. May run beside servers, twice, and be stopped at any time.
    Reindex,
    /// Show which database the storage belongs to, or give it to this one.
    Storage(storage::Args),
    /// Check that the books balance: every file, batch, quota, blob and index entry.
    Audit(audit::Args),
}

/// How a command ended, when it did not fail.
pub enum Outcome {
    Good,
    /// It did what it was asked, and what it found is bad.
    Bad,
}

pub fn run(cli: Cli) -> ExitCode {
    if !matches!(cli.command, Command::Serve | Command::Reindex) {
        end_when_nobody_reads();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    let outcome = runtime.block_on(async {
        match cli.command {
            Command::Serve => Box::pin(serve::run(settings()?)).await,
            Command::Upload(args) => upload::run(&args, cli.json).await,
            Command::Files(args) => files::run(&args, cli.json).await,
            Command::Status(args) => status::run(&args, cli.json).await,
            Command::Search(args) => search::run(&args, cli.json).await,
            Command::Dlq(args) => dlq::run(&args, cli.json).await,
            Command::Stuck(args) => stuck::run(&args, cli.json).await,
            Command::Orphans(args) => orphans::run(&args, cli.json).await,
            Command::Top(args) => top::run(&args, cli.json).await,
            Command::Events(args) => events::run(&args, cli.json).await,
            Command::Jobs(args) => jobs::run(&args, cli.json).await,
            Command::Token(args) => token::run(&args, cli.json),
            Command::Config(args) => config::run(args, cli.json).await,
            Command::Reindex => reindex::run(settings()?, cli.json).await,
            Command::Storage(args) => storage::run(settings()?, &args, cli.json).await,
            Command::Audit(args) => audit::run(settings()?, &args, cli.json).await,
        }
    });
    // Work on blocking threads may go on for a while; nobody waits for it.
    runtime.shutdown_background();
    match outcome {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::from(1),
        Err(error) => fail(&error),
    }
}

/// `landfall files | head` ends like any other command, and not with a complaint about a broken pipe. A server or a
/// worker must go on, whoever reads its output.
fn end_when_nobody_reads() {
    // SAFETY: no other thread runs yet, and the default action is not a function of ours that a signal could interrupt.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

fn settings() -> anyhow::Result<Config> {
    Ok(Config::from_variables(Variables::from_environment()?)?)
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("landfall: {error:#}");
    ExitCode::from(2)
}
