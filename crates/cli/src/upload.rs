//! `landfall upload`: sends files, and says of each that could not be sent why.

mod candidates;
mod follow;
mod progress;
mod register;
mod send;

use std::path::{Path, PathBuf};

use futures_util::{StreamExt, stream};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Outcome;
use crate::client::{Client, ClientError, Connection};
use crate::words::{count, printable};
use candidates::Candidate;
use landfall_core::lifecycle::Status;
use landfall_api::batches::OpenedBatch;
use progress::Screen;
use register::Registered;

const MOST_PER_BATCH: usize = 10_000;
/// How many files are on their way at once.
const SENDERS: usize = 8;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The files to send.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Wait until every file is ready or has failed.
    #[arg(long)]
    wait: bool,
    /// How soon they are worked on, compared with your other files.
    #[arg(long, default_value = "normal", value_parser = ["high", "normal", "low"])]
    priority: String,
    #[command(flatten)]
    connection: Connection,
}

/// What became of one of the paths.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parcel {
    path: String,
    file_id: Option<Uuid>,
    batch_id: Option<Uuid>,
    /// The file's last known state; nothing, if it is not with the server.
    status: Option<String>,
    error: Option<Problem>,
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

pub async fn run(args: &Args, as_json: bool) -> anyhow::Result<Outcome> {
    let client = Client::connect(&args.connection)?;
    let mut upload = Upload {
        client: &client,
        screen: Screen::new(),
        priority: &args.priority,
        parcels: Vec::new(),
        batches: Vec::new(),
    };
    let mut sendable = Vec::new();
    for path in &args.paths {
        match candidates::look_at(path) {
            Ok(candidate) => sendable.push(candidate),
            Err(problem) => upload.refused(path, problem),
        }
    }
    let ended = upload.send_and_follow(sendable, args.wait).await;
    upload.screen.finish();
    if as_json {
        println!(
            "{}",
            json!({ "batches": upload.batches.iter().map(|batch| &batch.answer).collect::<Vec<_>>(), "files": upload.parcels })
        );
    } else {
        upload.sum_up(args.paths.len(), args.wait);
    }
    ended?;
    let bad = upload.parcels.iter().any(|parcel| parcel.error.is_some());
    Ok(if bad { Outcome::Bad } else { Outcome::Good })
}

struct Upload<'a> {
    client: &'a Client,
    screen: Screen,
    priority: &'a str,
    parcels: Vec<Parcel>,
    batches: Vec<Sent>,
}

/// A batch, and how the server last described it.
struct Sent {
    id: Uuid,
    answer: Value,
}

impl Upload<'_> {
    async fn send_and_follow(&mut self, mut sendable: Vec<Candidate>, wait: bool) -> Result<(), ClientError> {
        if sendable.is_empty() {
            return Ok(());
        }
        // Nobody waits a quarter of a minute to learn that there is no server, or that the token is wrong.
        self.client.get::<Value>("/quota", &[]).await?;
        self.screen.sending(&sendable);
        while !sendable.is_empty() {
            let rest = sendable.split_off(sendable.len().min(MOST_PER_BATCH));
            self.send_batch(sendable).await?;
            sendable = rest;
        }
        if wait {
            self.follow().await?;
        }
        Ok(())
    }

    async fn send_batch(&mut self, files: Vec<Candidate>) -> Result<(), ClientError> {
        let promised = files.len();
        let request = json!({ "fileCount": promised, "priority": self.priority });
        let opened: OpenedBatch = self.client.create("/batches", &request).await?;
        let batch = opened.batch_id;
        self.batches.push(Sent { id: batch, answer: json!(opened) });
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
        let path = format!("/batches/{batch}");
        let answer = if registered < promised {
            // What could not even be registered will not come; without this the batch would wait for it.
            let close = format!("{path}/close");
            self.client.persist(async || self.client.post(&close, &json!({})).await).await?
        } else {
            self.client.persist(async || self.client.get(&path, &[]).await).await?
        };
        if let Some(batch) = self.batches.last_mut() {
            batch.answer = answer;
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
            .buffer_unordered(SENDERS);
        while let Some((file, result)) = sent.next().await {
            let mut parcel = Parcel {
                path: file.candidate.shown.clone(),
                file_id: Some(file.ticket.file_id),
                batch_id: Some(batch),
                status: None,
                error: None,
            };
            match result? {
                Ok(status) => parcel.status = Some(status),
                Err(problem) => {
                    self.screen.complain(&parcel.path, &problem);
                    parcel.error = Some(problem);
                }
            }
            self.screen.one_done();
            self.parcels.push(parcel);
        }
        Ok(())
    }

    fn not_sent(&mut self, file: &Candidate, problem: Problem) {
        self.screen.skip(file.size);
        self.refused(Path::new(&file.path), problem);
    }

    fn refused(&mut self, path: &Path, problem: Problem) {
        let path = path.to_string_lossy().into_owned();
        self.screen.complain(&path, &problem);
        self.parcels.push(Parcel { path, file_id: None, batch_id: None, status: None, error: Some(problem) });
    }

    /// The last lines a person sees.
    fn sum_up(&self, named: usize, waited: bool) {
        let states = || self.parcels.iter().filter_map(|parcel| parcel.status.as_deref());
        let sent = states().count();
        if waited {
            let ready = states().filter(|status| *status == "ready").count();
            let under_way = states().filter(|status| !is_terminal(status)).count();
            let failed = sent - ready - under_way;
            let mut line = format!("{}: {ready} ready, {failed} failed", count(named, "file"));
            for (number, what) in [(under_way, "under way"), (named - sent, "not sent")] {
                if number > 0 {
                    line.push_str(&format!(", {number} {what}"));
                }
            }
            println!("{line}");
        } else {
            println!("{sent} of {} sent", count(named, "file"));
        }
        for Sent { id, .. } in &self.batches {
            if !self.parcels.iter().any(|parcel| parcel.batch_id == Some(*id)) {
                // Nothing came to be in it.
                continue;
            }
            if waited {
                println!("batch {id}");
            } else {
                println!("batch {id}: `landfall status {id}` shows how far it is");
            }
        }
    }
}

fn is_terminal(status: &str) -> bool {
    status.parse::<Status>().is_ok_and(Status::is_terminal)
}

/// One line about a file that is in trouble.
fn complaint(path: &str, problem: &Problem) -> String {
    format!("{}: {}: {}", printable(path), printable(&problem.code), printable(&problem.message))
}
