//! One file goes: its bytes, then the word that they are there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use super::Problem;
use super::candidates::unreadable;
use super::progress::Screen;
use super::register::Registered;
use crate::client::{Client, ClientError};
use landfall_core::clock::Clock;
use landfall_api::uploads::UploadTicket;

const PART_BYTES: usize = 128 * 1024;
/// How long not a byte may move before the connection is given up. Longer than the server's own patience, which ends
/// with an answer.
const STALL: Duration = Duration::from_mins(2);

/// The outer error is the server's, the inner one that of the file here.
type Sent<T> = Result<Result<T, Problem>, ClientError>;

/// The file's state once it is confirmed, or why it is not there. The outer error ends the whole upload.
pub async fn send(client: &Client, screen: &Screen, file: &Registered) -> Sent<String> {
    let problem = match deliver(client, screen, file).await {
        Ok(Ok(status)) => return Ok(Ok(status)),
        Ok(Err(problem)) => problem,
        Err(error) if error.ends_everything() => return Err(error),
        Err(error) => Problem::from(&error),
    };
    // The batch was promised this file, and would wait for it.
    let path = format!("/files/{}", file.ticket.file_id);
    let deleted = client.persist(async || client.delete(&path).await).await;
    match deleted {
        Err(error) if error.ends_everything() => Err(error),
        // The server itself gives up on what never arrives; it only takes longer.
        _ => Ok(Err(problem)),
    }
}

async fn deliver(client: &Client, screen: &Screen, file: &Registered) -> Sent<String> {
    #[derive(Deserialize)]
    struct Confirmed {
        status: String,
    }
    let mut ticket = file.ticket.clone();
    let put = client
        .persist(async || match put(client, screen, file, &ticket).await {
            Err(error) if error.code() == "UPLOAD_URL_EXPIRED" => {
                let path = format!("/files/{}/upload-url", file.ticket.file_id);
                ticket = client.post(&path, &json!({})).await?;
                put(client, screen, file, &ticket).await
            }
            done => done,
        })
        .await?;
    if let Err(problem) = put {
        return Ok(Err(problem));
    }
    let path = format!("/files/{}/confirm", file.ticket.file_id);
    let belief = json!({ "size": file.candidate.size, "md5": file.md5 });
    let confirmed: Confirmed = client.persist(async || client.post(&path, &belief).await).await?;
    Ok(Ok(confirmed.status))
}

/// Sends the bytes, once, from the disk as they are needed.
async fn put(client: &Client, screen: &Screen, file: &Registered, ticket: &UploadTicket) -> Sent<()> {
    let candidate = &file.candidate;
    let bytes = match tokio::fs::File::open(&candidate.path).await {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Err(unreadable(&error))),
    };
    let read = Arc::new(Read::default());
    let body = ReaderStream::with_capacity(bytes.take(candidate.size), PART_BYTES).inspect({
        let (read, screen) = (read.clone(), screen.clone());
        move |part| match part {
            Ok(part) => {
                read.bytes.fetch_add(part.len() as u64, Ordering::Relaxed);
                screen.advance(part.len() as u64);
            }
            Err(error) => {
                *read.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(unreadable(error));
            }
        }
    });
    let sent = tokio::select! {
        sent = client.put(ticket, reqwest::Body::wrap_stream(body)) => sent,
        () = stalled(&read) => Err(client.broken_off("no bytes moved for too long")),
    };
    let Err(error) = sent else { return Ok(Ok(())) };
    screen.take_back(read.bytes.load(Ordering::Relaxed));
    if let Some(problem) = read.problem.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Ok(Err(problem));
    }
    match tokio::fs::metadata(&candidate.path).await {
        Ok(now) if now.len() != candidate.size => Ok(Err(Problem::new(
            "CHANGED",
            format!(
                "This had {} bytes and now has {}: it changed while it was being sent",
                candidate.size,
                now.len()
            ),
        ))),
        Ok(_) => Err(error),
        Err(error) => Ok(Err(unreadable(&error))),
    }
}

/// How much of the file was read, and what went wrong there.
#[derive(Default)]
struct Read {
    bytes: AtomicU64,
    problem: Mutex<Option<Problem>>,
}

async fn stalled(read: &Read) {
    let mut before = u64::MAX;
    loop {
        let now = read.bytes.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
        Clock::System.sleep(STALL).await;
    }
}
