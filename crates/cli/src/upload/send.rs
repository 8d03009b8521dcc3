//! Sends the bytes of one file and confirms it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use super::Problem;
use super::candidates::unreadable;
use super::progress::Screen;
use super::register::Registered;
use crate::client::{Client, ClientError};
use landfall_api::uploads::{ConfirmRequest, UploadTicket};
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_core::lifecycle::Status;

const CHUNK_BYTES: usize = 128 * 1024;
/// How long no byte may move before the connection is given up. The server's own timeout is shorter, and ends with a
/// response.
const STALL_TIMEOUT: Duration = Duration::from_mins(2);

/// A URL that expires sooner than this is not used any more.
const URL_RESERVE: Duration = Duration::from_secs(10);

/// The outer error is about the server, the inner one about the local file.
type Sent<T> = Result<Result<T, Problem>, ClientError>;

/// Returns the file's state after the confirmation, or its problem. The outer error ends the whole upload.
pub async fn send(client: &Client, screen: &Screen, file: &Registered) -> Sent<Status> {
    let problem = match deliver(client, screen, file).await {
        Ok(Ok(status)) => return Ok(Ok(status)),
        Ok(Err(problem)) => problem,
        Err(error) if error.is_fatal() => return Err(error),
        Err(error) => Problem::from(&error),
    };
    // Without this, the batch would wait for the file.
    let deleted = client.retry(async || client.delete_file(file.ticket.file_id).await).await;
    match deleted {
        Err(error) if error.is_fatal() => Err(error),
        // If this failed, the server gives the file up itself after a while.
        _ => Ok(Err(problem)),
    }
}

async fn deliver(client: &Client, screen: &Screen, file: &Registered) -> Sent<Status> {
    let id = file.ticket.file_id;
    let (mut ticket, mut received) = (file.ticket.clone(), file.received);
    let put = client
        .retry(async || {
            // Files wait for their turn longer than a URL is valid. Without this, the bytes would be sent in vain first.
            if is_stale(&ticket, received) {
                (ticket, received) = (client.renew_upload_url(id).await?, Clock::System.now());
            }
            match put(client, screen, file, &ticket).await {
                Err(error) if error.code() == "UPLOAD_URL_EXPIRED" => {
                    (ticket, received) = (client.renew_upload_url(id).await?, Clock::System.now());
                    put(client, screen, file, &ticket).await
                }
                done => done,
            }
        })
        .await?;
    if let Err(problem) = put {
        return Ok(Err(problem));
    }
    let request =
        ConfirmRequest { size: i64::try_from(file.candidate.size).ok(), md5: Some(file.md5.clone()) };
    let confirmed = client.retry(async || client.confirm(id, &request).await).await?;
    Ok(Ok(confirmed.status))
}

/// Whether a URL expires before much can be sent to it. A server that does not say how long it is valid is believed.
fn is_stale(ticket: &UploadTicket, received: Time) -> bool {
    let valid = to_delta(Duration::from_millis(u64::try_from(ticket.expires_in_ms).unwrap_or_default()));
    !valid.is_zero() && Clock::System.now() - received + to_delta(URL_RESERVE) > valid
}

/// Sends the bytes once, streamed from the disk.
async fn put(client: &Client, screen: &Screen, file: &Registered, ticket: &UploadTicket) -> Sent<()> {
    let candidate = &file.candidate;
    let bytes = match tokio::fs::File::open(&candidate.path).await {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Err(unreadable(&error))),
    };
    let read = Arc::new(Read::default());
    let body = ReaderStream::with_capacity(bytes.take(candidate.size), CHUNK_BYTES).inspect({
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
        sent = client.send_bytes(ticket, reqwest::Body::wrap_stream(body)) => sent,
        () = stalled(&read) => Err(client.interrupted("no bytes moved for too long")),
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
                "This file had {} bytes and now has {}: it changed during the upload",
                candidate.size,
                now.len()
            ),
        ))),
        Ok(_) => Err(error),
        Err(error) => Ok(Err(unreadable(&error))),
    }
}

/// How much of the file was read, and the error if reading failed.
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
        Clock::System.sleep(STALL_TIMEOUT).await;
    }
}
