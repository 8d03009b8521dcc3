//! `landfall upload`: uploads files, and reports each that could not be sent with the reason.

mod candidates;
mod follow;
mod progress;
mod register;
mod send;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, ClientError, Connection};
use crate::format::{count, printable};
use candidates::Candidate;
use landfall_api::batches::{BatchView, NewBatch, OpenedBatch};
use landfall_core::lifecycle::Status;
use landfall_core::priority::Priority;
use progress::Screen;
use register::Registered;

const MAX_BATCH_FILES: usize = 10_000;
/// How many files are sent at once.
const CONCURRENCY: usize = 8;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The files to send.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Wait until every file is ready or has failed.
    #[arg(long)]
    wait: bool,
    /// The priority among your own files.
    #[arg(long, default_value = "normal", value_parser = priorities())]
    priority: Priority,
    #[command(flatten)]
    connection: Connection,
}

/// The result for one of the paths.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileResult {
    path: String,
    file_id: Option<Uuid>,
    batch_id: Option<Uuid>,
    /// The file's last known state; `None` if the server does not have it.
    status: Option<Status>,
    error: Option<Problem>,
    /// How much is missing of a file that is ready; `landfall status` shows what.
    warning_count: i64,
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

/// Parses a priority; the help lists the names.
fn priorities() -> impl TypedValueParser<Value = Priority> {
    PossibleValuesParser::new(Priority::ALL.map(Priority::name)).try_map(|name| name.parse::<Priority>())
}

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let mut upload = Upload {
        client: &client,
        screen: Screen::new(),
        priority: args.priority,
        results: Vec::new(),
        batches: Vec::new(),
    };
    let mut sendable = Vec::new();
    for path in &args.paths {
        match candidates::inspect(path) {
            Ok(candidate) => sendable.push(candidate),
            Err(problem) => upload.refused(path, problem),
        }
    }
    let ended = upload.send_and_follow(sendable, args.wait).await;
    upload.screen.finish();
    if as_json {
        println!("{}", json!({ "batches": upload.batches, "files": upload.results }));
    } else {
        upload.print_summary(args.paths.len(), args.wait);
    }
    ended?;
    let bad = upload.results.iter().any(|result| result.error.is_some());
    Ok(if bad { Outcome::Bad } else { Outcome::Good })
}

struct Upload<'a> {
    client: &'a Client,
    screen: Screen,
    priority: Priority,
    results: Vec<FileResult>,
    batches: Vec<SentBatch>,
}

/// A batch as the server last described it.
#[derive(Serialize)]
#[serde(untagged)]
enum SentBatch {
    Opened(OpenedBatch),
    Sent(BatchView),
}

impl SentBatch {
    fn id(&self) -> Uuid {
        match self {
            Self::Opened(batch) => batch.batch_id,
            Self::Sent(batch) => batch.batch_id,
        }
    }
}

impl Upload<'_> {
    async fn send_and_follow(&mut self, mut sendable: Vec<Candidate>, wait: bool) -> Result<(), ClientError> {
        if sendable.is_empty() {
            return Ok(());
        }
        // Without retries, so that a missing server or a wrong token is reported at once.
        self.client.quota().await?;
        self.screen.show_sending(&sendable);
        while !sendable.is_empty() {
            let rest = sendable.split_off(sendable.len().min(MAX_BATCH_FILES));
            self.send_batch(sendable).await?;
            sendable = rest;
        }
        if wait {
            self.follow().await?;
        }
        Ok(())
    }

    async fn send_batch(&mut self, files: Vec<Candidate>) -> Result<(), ClientError> {
        let expected = files.len();
        let request = NewBatch {
            file_count: i64::try_from(expected).unwrap_or(i64::MAX),
            metadata: None,
            priority: self.priority,
            mapping: None,
        };
        let opened = self.client.open_batch(&request).await?;
        let batch = opened.batch_id;
        self.batches.push(SentBatch::Opened(opened));
        let mut registered = 0;
        for group in register::groups(files) {
            let (announced, unreadable) = candidates::hash(group).await;
            for (file, problem) in unreadable {
                self.not_sent(&file, problem);
            }
            let (tickets, refused) = register::register(self.client, batch, announced).await?;
            for (file, problem) in refused {
                self.not_sent(&file, problem);
            }
            registered += tickets.len();
            self.send_group(batch, tickets).await?;
        }
        let view = if registered < expected {
            // Some files could not be registered. Without this, the batch would wait for them.
            self.client.retry(async || self.client.close_batch(batch).await).await?
        } else {
            self.client.retry(async || self.client.batch(batch).await).await?
        };
        if let Some(batch) = self.batches.last_mut() {
            *batch = SentBatch::Sent(view);
        }
        Ok(())
    }

    async fn send_group(&mut self, batch: Uuid, files: Vec<Registered>) -> Result<(), ClientError> {
        let (client, screen) = (self.client, self.screen.clone());
        let mut sent = stream::iter(files)
            .map(|file| {
                let screen = screen.clone();
                async move {
                    let result = send::send(client, &screen, &file).await;
                    (file, result)
                }
            })
            .buffer_unordered(CONCURRENCY);
        while let Some((file, outcome)) = sent.next().await {
            let mut result = FileResult {
                path: file.candidate.shown.clone(),
                file_id: Some(file.ticket.file_id),
                batch_id: Some(batch),
                status: None,
                error: None,
                warning_count: 0,
            };
            match outcome? {
                Ok(status) => result.status = Some(status),
                Err(problem) => {
                    self.screen.report(&result.path, &problem);
                    result.error = Some(problem);
                }
            }
            self.screen.file_done();
            self.results.push(result);
        }
        Ok(())
    }

    fn not_sent(&mut self, file: &Candidate, problem: Problem) {
        self.screen.skip(file.size);
        self.refused(Path::new(&file.path), problem);
    }

    fn refused(&mut self, path: &Path, problem: Problem) {
        let path = path.to_string_lossy().into_owned();
        self.screen.report(&path, &problem);
        self.results.push(FileResult {
            path,
            file_id: None,
            batch_id: None,
            status: None,
            error: Some(problem),
            warning_count: 0,
        });
    }

    /// Prints the totals and the ids of the batches.
    fn print_summary(&self, named: usize, waited: bool) {
        let states = || self.results.iter().filter_map(|result| result.status);
        let sent = states().count();
        if waited {
            let ready = states().filter(|status| *status == Status::Ready).count();
            let unfinished = states().filter(|status| !status.is_terminal()).count();
            let failed = sent - ready - unfinished;
            let mut line = format!("{}: {ready} ready, {failed} failed", count(named, "file"));
            for (number, what) in [(unfinished, "in progress"), (named - sent, "not sent")] {
                if number > 0 {
                    line.push_str(&format!(", {number} {what}"));
                }
            }
            println!("{line}");
        } else {
            println!("{sent} of {} sent", count(named, "file"));
        }
        for id in self.batches.iter().map(SentBatch::id) {
            if !self.results.iter().any(|result| result.batch_id == Some(id)) {
                // It has no files.
                continue;
            }
            if waited {
                println!("batch {id}");
            } else {
                println!("batch {id}: `landfall status {id}` shows its progress");
            }
        }
    }
}

/// One line about a file with a problem.
fn problem_line(path: &str, problem: &Problem) -> String {
    format!("{}: {}: {}", printable(path), printable(&problem.code), printable(&problem.message))
}
