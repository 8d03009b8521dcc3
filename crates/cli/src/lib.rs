//! The command line: text for people, and `--json` for programs.

mod audit;
mod audit_log;
mod client;
mod config;
mod dlq;
mod events;
mod files;
mod format;
mod health;
mod jobs;
mod keys;
mod logs;
mod notifications;
mod open;
mod openapi;
mod orphans;
mod reindex;
mod search;
mod serve;
mod status;
mod storage;
mod stuck;
mod text;
mod token;
mod top;
mod upload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use landfall_server::config::{Config, Variables};

/// Takes files in, turns them into searchable text, and makes sure every one of them arrives.
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server.
    Serve,
    /// Upload files to a server.
    Upload(upload::Args),
    /// List files.
    Files(files::Args),
    /// Show the state of a file or a batch, with its history and errors.
    Status(status::Args),
    /// Print the text of a file.
    Text(text::Args),
    /// Search the files that are ready.
    Search(search::Args),
    /// List failed files, and retry or discard them.
    Dlq(dlq::Args),
    /// List stuck files and release them to the queue.
    Stuck(stuck::Args),
    /// List notifications and mark them as read.
    Notifications(notifications::Args),
    /// Report blobs that belong to no file, and uploads that never arrived.
    Orphans(orphans::Args),
    /// Watch throughput, queues, workers, circuits, schedules and errors.
    Top(top::Args),
    /// Print events.
    Events(events::Args),
    /// List the maintenance jobs, or run one now.
    Jobs(jobs::Args),
    /// Ask the server on this machine whether it is alive or ready. Exits with 1 if it is not.
    Health(health::Args),
    /// Print a link that signs you in on the page, once.
    Open(open::Args),
    /// Create, list and revoke API keys.
    Keys(keys::Args),
    /// Make a token for the API.
    Token(token::Args),
    /// Show every setting, its value, and where it comes from.
    Config(config::Args),
    /// Print the description of the API in OpenAPI, as /api/openapi.json has it. Needs no server.
    Openapi,
    /// Re-embed the files that were embedded with another model. Servers may run meanwhile; it can be stopped at any time.
    Reindex,
    /// Check the storage, show which database it belongs to, or assign it to this one.
    Storage(storage::Args),
    /// Show what administrators did, and which requests were refused.
    AuditLog(audit_log::Args),
    /// Check that all files, batches, quotas, blobs and index entries are consistent.
    Audit(audit::Args),
}

/// The result of a command that did not fail.
pub enum Outcome {
    Good,
    /// The command worked, and it found problems.
    Bad,
}

pub fn run(cli: Cli) -> ExitCode {
    // What this program writes is for its own user alone: the database, its log, blobs, secrets.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    if !matches!(cli.command, Command::Serve | Command::Reindex) {
        end_on_broken_pipe();
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
            Command::Text(args) => text::run(&args, cli.json).await,
            Command::Search(args) => search::run(&args, cli.json).await,
            Command::Dlq(args) => dlq::run(&args, cli.json).await,
            Command::Stuck(args) => stuck::run(&args, cli.json).await,
            Command::Notifications(args) => notifications::run(&args, cli.json).await,
            Command::Orphans(args) => orphans::run(&args, cli.json).await,
            Command::Top(args) => top::run(&args, cli.json).await,
            Command::Events(args) => events::run(&args, cli.json).await,
            Command::Jobs(args) => jobs::run(&args, cli.json).await,
            Command::Health(args) => health::run(&args, cli.json).await,
            Command::Open(args) => open::run(&args, cli.json).await,
            Command::Keys(args) => keys::run(&args, cli.json).await,
            Command::Token(args) => token::run(&args, cli.json),
            Command::Config(args) => config::run(args, cli.json).await,
            Command::Openapi => openapi::run(),
            Command::Reindex => reindex::run(settings()?, cli.json).await,
            Command::Storage(args) => storage::run(settings()?, &args, cli.json).await,
            Command::AuditLog(args) => audit_log::run(&args, cli.json).await,
            Command::Audit(args) => audit::run(settings()?, &args, cli.json).await,
        }
    });
    // Do not wait for work on blocking threads.
    runtime.shutdown_background();
    match outcome {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Bad) => ExitCode::from(1),
        Err(error) => fail(&error),
    }
}

/// `landfall files | head` ends without an error about a broken pipe. A server must continue even if its output is closed.
fn end_on_broken_pipe() {
    // SAFETY: no other thread runs yet, and the handler calls only functions that a handler may call.
    unsafe { libc::signal(libc::SIGPIPE, on_broken_pipe as *const () as libc::sighandler_t) };
}

/// The same signal comes when another machine closes a connection. Then only the write fails.
extern "C" fn on_broken_pipe(_: libc::c_int) {
    for fd in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        let mut output = libc::pollfd { fd, events: 0, revents: 0 };
        // SAFETY: it is one valid entry, and all three functions are safe in a handler. The signal is blocked until the handler
        // returns, and ends the program then.
        unsafe {
            if libc::poll(&raw mut output, 1, 0) == 1 && output.revents & libc::POLLERR != 0 {
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                libc::raise(libc::SIGPIPE);
            }
        }
    }
}

fn settings() -> anyhow::Result<Config> {
    Ok(Config::from_variables(Variables::from_environment()?)?)
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("landfall: {error:#}");
    ExitCode::from(2)
}
