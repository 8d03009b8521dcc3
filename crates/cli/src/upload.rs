//! `landfall upload`: uploads files and folders, skips what the server has, goes on with what was interrupted, and reports
//! each file that could not be sent with the reason.

mod batches;
mod candidates;
mod excludes;
mod follow;
mod known;
mod pattern;
mod progress;
mod reading;
mod register;
mod report;
mod resumable;
mod send;
mod sources;
mod spool;
mod unfinished;
mod walk;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use futures_util::{StreamExt, TryStreamExt, future, stream};
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc};
use uuid::Uuid;

use crate::client::{Client, ClientError, Connection};
use crate::format::{name_and_value, printable};
use batches::Batches;
use candidates::{Candidate, Hashed};
use excludes::Excludes;
use known::Known;
use landfall_core::lifecycle::Status;
use landfall_core::priority::Priority;
use progress::Screen;
use register::Registered;
use report::Report;
use sources::{STANDARD_INPUT, Sources, Total};
use unfinished::Unfinished;
use walk::Found;

/// Files are looked up and registered in groups of this size.
const GROUP_FILES: usize = known::MAX_AT_ONCE;
/// How many groups the walk through the folders is ahead.
const GROUPS_AHEAD: usize = 4;
/// Reading is limited by the disk and hashing by the CPU; two at once keep both busy.
const HASH_CONCURRENCY: usize = 2;
/// How long a request is repeated: a laptop that changes the network, a server that is upgraded.
const PATIENCE: Duration = Duration::from_mins(5);

/// Uploads files and folders.
///
/// Files that the server has already, ready or on their way, are skipped: they are compared by their bytes. A large file
/// that was interrupted, even by kill -9, goes on where it was when the same command runs again.
///
/// Folders are sent with all that is in them, and each file keeps its path below the folder as the attribute `path`. Hidden
/// files, empty files and symbolic links in folders are left out. Links that are named themselves are followed.
///
/// Exits with 0 if every file is there, with 1 if one could not be sent or, with --wait, could not be processed, and with 2 if
/// the command itself could not work: wrong arguments, no server, no permission.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Files, folders, patterns such as 'docs/**/*.pdf' (quoted, so that the shell does not expand them), or - for standard
    /// input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The file name for standard input.
    #[arg(long)]
    name: Option<String>,
    /// Leave out what matches this pattern, in the syntax of .gitignore, relative to each folder. May be repeated.
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Leave out what matches the patterns in this file, one in each line, in the syntax of .gitignore. May be repeated.
    #[arg(long, value_name = "FILE")]
    exclude_from: Vec<PathBuf>,
    /// Also send hidden files in folders: those whose names begin with a dot.
    #[arg(long)]
    hidden: bool,
    /// Send files that the server has already, too.
    #[arg(long)]
    force: bool,
    /// How many files are sent at once.
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u8).range(1..=64))]
    concurrency: u8,
    /// Wait until every file is ready or has failed.
    #[arg(long)]
    wait: bool,
    /// The priority among your own files.
    #[arg(long, default_value = "normal", value_parser = priorities())]
    priority: Priority,
    /// Note this about every file; a search can be narrowed by it. May be repeated.
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = name_and_value)]
    attributes: Vec<(String, String)>,
    #[command(flatten)]
    connection: Connection,
}

/// The result for one file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileResult {
    path: String,
    outcome: Fate,
    /// The file on the server. Of a file that was skipped, the one that has the same bytes.
    file_id: Option<Uuid>,
    batch_id: Option<Uuid>,
    /// The file's last known state; `None` if the server does not have it.
    status: Option<Status>,
    error: Option<Problem>,
    /// How much is missing of a file that is ready; `landfall status` shows what.
    warning_count: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Fate {
    Uploaded,
    Skipped,
    Failed,
}

#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    pub code: String,
    pub message: String,
}

impl Problem {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

impl From<&ClientError> for Problem {
    fn from(error: &ClientError) -> Self {
        Self::new(error.code(), error.message())
    }
}

/// The outer error is about the server, the inner one about the local file.
type Sent<T> = Result<Result<T, Problem>, ClientError>;

/// What became of one file.
enum Outcome {
    Uploaded { file_id: Uuid, batch_id: Uuid, status: Status },
    Skipped(Known),
    Failed { problem: Problem, file_id: Option<Uuid>, batch_id: Option<Uuid> },
}

impl Outcome {
    fn failed(problem: Problem) -> Self {
        Self::Failed { problem, file_id: None, batch_id: None }
    }
}

/// Parses a priority; the help lists the names.
fn priorities() -> impl TypedValueParser<Value = Priority> {
    PossibleValuesParser::new(Priority::ALL.map(Priority::name)).try_map(|name| name.parse::<Priority>())
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<crate::Outcome> {
    let name = name_of_input(args)?;
    let excludes = Arc::new(Excludes::new(&args.exclude, &args.exclude_from, args.hidden)?);
    let screen = Screen::new();
    let client = Client::connect(&args.connection)?.with_patience(PATIENCE, {
        let screen = screen.clone();
        move |error, delay| screen.waiting(error, delay)
    });
    let noted = args.attributes.iter().map(|(name, value)| (name.clone(), value.clone().into()));
    let noted = Arc::new(noted.collect());
    let mut sources = Sources { paths: args.paths.clone(), excludes, spooled: None, noted };
    let report = Mutex::new(Report { keeps_all: as_json || args.wait, ..Report::default() });
    if let Some(name) = name {
        match spool(&client, name).await? {
            Ok(spooled) => sources.spooled = Some(spooled),
            Err(problem) => refuse(&screen, &report, STANDARD_INPUT.to_owned(), problem),
        }
    }
    let sources = Arc::new(sources);
    let total = tokio::task::spawn_blocking({
        let sources = sources.clone();
        move || sources.count()
    });
    let total = total.await.context("the folders could not be listed")?;

    let unfinished = Unfinished::new(client.server());
    unfinished.prune();
    let run = Run {
        client: &client,
        screen,
        batches: Batches::new(&client, args.priority, total.files),
        unfinished,
        hashing: Semaphore::new(HASH_CONCURRENCY),
        report,
        force: args.force,
        warned: Once::new(),
    };
    let ended = run.send_and_follow(sources, total, usize::from(args.concurrency), args.wait).await;
    run.screen.finish();
    let batches = run.batches.all().await;
    let report = run.report.into_inner().unwrap_or_else(PoisonError::into_inner);
    if as_json {
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, &report.json(&batches))?;
        writeln!(out)?;
    } else {
        report.print(&batches, args.wait, ended.is_err());
    }
    ended?;
    Ok(if report.has_problems() { crate::Outcome::Bad } else { crate::Outcome::Good })
}

/// The name for standard input, if that is to be sent.
fn name_of_input(args: &Args) -> anyhow::Result<Option<&str>> {
    let inputs = args.paths.iter().filter(|path| *path == Path::new(STANDARD_INPUT)).count();
    match (inputs, args.name.as_deref()) {
        (0, None) => Ok(None),
        (1, Some(name)) => Ok(Some(name)),
        (0, Some(_)) => bail!("--name is the name for standard input: it needs the path -"),
        (1, None) => bail!("standard input needs a name: --name NAME"),
        _ => bail!("standard input can be sent once"),
    }
}

async fn spool(client: &Client, name: &str) -> anyhow::Result<Result<Candidate, Problem>> {
    // Without retries, so that a missing server or a wrong token is reported before anything is read.
    let quota = client.quota().await?;
    let free = u64::try_from(quota.bytes.free).unwrap_or_default();
    let limit = client.max_upload_size().await?.map_or(free, |limit| limit.min(free));
    let name = name.to_owned();
    let read =
        tokio::task::spawn_blocking(move || spool::read(&mut std::io::stdin().lock(), &name, limit)).await?;
    read.context("standard input could not be read")
}

fn refuse(screen: &Screen, report: &Mutex<Report>, path: String, problem: Problem) {
    screen.report(&path, &problem);
    let result = FileResult {
        path,
        outcome: Fate::Failed,
        file_id: None,
        batch_id: None,
        status: None,
        error: Some(problem),
        warning_count: 0,
    };
    report.lock().unwrap_or_else(PoisonError::into_inner).add(result, 0);
}

/// One run of the command.
struct Run<'a> {
    client: &'a Client,
    screen: Screen,
    batches: Batches<'a>,
    unfinished: Unfinished,
    hashing: Semaphore,
    report: Mutex<Report>,
    force: bool,
    /// Whether the user was told that interrupted uploads cannot be continued.
    warned: Once,
}

/// A file that is ready to be sent.
enum Job {
    Whole(Box<Registered>),
    InParts(Candidate),
}

impl Run<'_> {
    async fn send_and_follow(
        &self,
        sources: Arc<Sources>,
        total: Total,
        concurrency: usize,
        wait: bool,
    ) -> Result<(), ClientError> {
        if total.files > 0 {
            // Without retries, so that a missing server or a wrong token is reported at once.
            self.client.quota().await?;
            self.screen.show_sending(total);
        }
        self.send_all(sources, concurrency).await?;
        self.batches.close().await?;
        if wait {
            self.follow().await?;
        }
        Ok(())
    }

    /// Three things go on at once: the folders are listed, what was found is looked up and registered, and bytes are sent.
    async fn send_all(&self, sources: Arc<Sources>, concurrency: usize) -> Result<(), ClientError> {
        let (groups, mut found) = mpsc::channel(GROUPS_AHEAD);
        // It ends with the channel.
        tokio::task::spawn_blocking(move || {
            let mut files = sources.files();
            loop {
                let group: Vec<Found> = files.by_ref().take(GROUP_FILES).collect();
                if group.is_empty() || groups.blocking_send(group).is_err() {
                    break;
                }
            }
        });
        let (jobs, mut waiting) = mpsc::channel(concurrency);
        let prepare = async {
            while let Some(group) = found.recv().await {
                self.prepare(group, &jobs).await?;
            }
            drop(jobs);
            Ok(())
        };
        let send = stream::poll_fn(move |context| waiting.poll_recv(context))
            .map(|job| self.send(job))
            .buffer_unordered(concurrency)
            .try_for_each(|()| future::ready(Ok(())));
        // The first error ends both.
        tokio::try_join!(prepare, send).map(drop)
    }

    /// Looks up and registers small files. Large ones do that themselves when it is their turn.
    async fn prepare(&self, group: Vec<Found>, jobs: &mpsc::Sender<Job>) -> Result<(), ClientError> {
        let mut small = Vec::new();
        for found in group {
            match found {
                Found::File(candidate) if candidate.size > resumable::MAX_WHOLE_BYTES => {
                    queue(jobs, Job::InParts(candidate)).await;
                }
                Found::File(candidate) => small.push(candidate),
                Found::LeftOut(what) => self.report().left_out.add(what),
                Found::Problem(path, problem) => refuse(&self.screen, &self.report, path, problem),
            }
        }
        let mut hashed = Vec::with_capacity(small.len());
        let mut results = stream::iter(small)
            .map(|file| async {
                let result = self.hash(file.clone()).await;
                (file, result)
            })
            .buffered(HASH_CONCURRENCY);
        while let Some((file, result)) = results.next().await {
            match result {
                Ok(file) => hashed.push(file),
                Err(problem) => {
                    self.not_sent(&file).await;
                    self.done(&file, Outcome::failed(problem));
                }
            }
        }
        if !self.force {
            hashed = self.without_known(hashed).await?;
        }
        while !hashed.is_empty() {
            let (batch, places) = self.batches.take(hashed.len()).await?;
            let rest = hashed.split_off(places);
            let (registered, refused) = register::register(self.client, batch, hashed).await?;
            for (file, problem) in refused {
                self.batches.not_used(batch).await;
                self.screen.leave_out(file.size);
                self.done(&file, Outcome::failed(problem));
            }
            for file in registered {
                queue(jobs, Job::Whole(Box::new(file))).await;
            }
            hashed = rest;
        }
        Ok(())
    }

    /// Leaves out the files that the server has.
    async fn without_known(&self, files: Vec<Hashed>) -> Result<Vec<Hashed>, ClientError> {
        let known = known::known(self.client, &files, &self.batches.ids().await).await?;
        let mut unknown = Vec::with_capacity(files.len());
        for (file, known) in files.into_iter().zip(known) {
            match known {
                Some(known) => {
                    self.not_sent(&file.candidate).await;
                    self.done(&file.candidate, Outcome::Skipped(known));
                }
                None => unknown.push(file),
            }
        }
        Ok(unknown)
    }

    async fn send(&self, job: Job) -> Result<(), ClientError> {
        match job {
            Job::Whole(file) => {
                let (file_id, batch_id) = (file.ticket.file_id, file.batch);
                let outcome = match send::send(self.client, &self.screen, &file).await? {
                    Ok(status) => Outcome::Uploaded { file_id, batch_id, status },
                    Err(problem) => {
                        self.screen.leave_out(file.file.candidate.size);
                        Outcome::Failed { problem, file_id: Some(file_id), batch_id: Some(batch_id) }
                    }
                };
                self.done(&file.file.candidate, outcome);
            }
            Job::InParts(candidate) => {
                let outcome = match Box::pin(resumable::upload(self, candidate.clone())).await {
                    Err(error) if error.is_fatal() => return Err(error),
                    // The next command goes on with it.
                    Err(error) => Outcome::failed(Problem::from(&error)),
                    Ok(outcome) => outcome,
                };
                self.done(&candidate, outcome);
            }
        }
        Ok(())
    }

    async fn hash(&self, candidate: Candidate) -> Result<Hashed, Problem> {
        // It is never closed.
        let _turn = self.hashing.acquire().await;
        let hashed = tokio::task::spawn_blocking(move || candidates::hash(candidate)).await;
        hashed.unwrap_or_else(|error| Err(candidates::unreadable(&std::io::Error::other(error))))
    }

    /// A file is not sent: it needs no place in a batch, and its bytes do not count.
    async fn not_sent(&self, file: &Candidate) {
        self.batches.not_expected().await;
        self.screen.leave_out(file.size);
    }

    fn resumed(&self, bytes: u64) {
        self.report().resumed_bytes += bytes;
    }

    fn cannot_remember(&self, error: &std::io::Error) {
        self.warned.call_once(|| {
            self.screen.print(&format!(
                "The state folder cannot be used ({error}): an upload that is interrupted will begin again"
            ));
        });
    }

    /// Records the result of one file.
    fn done(&self, file: &Candidate, outcome: Outcome) {
        let (path, size) = (file.shown.clone(), file.size);
        let result = match outcome {
            Outcome::Uploaded { file_id, batch_id, status } => FileResult {
                path,
                outcome: Fate::Uploaded,
                file_id: Some(file_id),
                batch_id: Some(batch_id),
                status: Some(status),
                error: None,
                warning_count: 0,
            },
            Outcome::Skipped(known) => FileResult {
                path,
                outcome: Fate::Skipped,
                file_id: Some(known.file_id),
                batch_id: known.batch_id,
                status: Some(known.status),
                error: None,
                warning_count: 0,
            },
            Outcome::Failed { problem, file_id, batch_id } => {
                self.screen.report(&path, &problem);
                FileResult {
                    path,
                    outcome: Fate::Failed,
                    file_id,
                    batch_id,
                    status: None,
                    error: Some(problem),
                    warning_count: 0,
                }
            }
        };
        self.report().add(result, size);
        self.screen.file_done();
    }

    fn report(&self) -> std::sync::MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// If no receiver takes it any more, an error has ended the upload.
async fn queue(jobs: &mpsc::Sender<Job>, job: Job) {
    drop(jobs.send(job).await);
}

/// One line about a file with a problem.
fn problem_line(path: &str, problem: &Problem) -> String {
    format!("{}: {}: {}", printable(path), printable(&problem.code), printable(&problem.message))
}
