//! Sends the bytes of a small file in one request, to the URL of its ticket, and confirms it.

use std::sync::Arc;
use std::time::Duration;

use super::candidates::{Stamp, changed, unreadable};
use super::progress::Screen;
use super::reading::Reading;
use super::register::Registered;
use super::{Problem, Sent};
use crate::client::{Client, ClientError};
use landfall_api::uploads::{ConfirmRequest, UploadTicket};
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_core::lifecycle::Status;

/// A URL that expires sooner than this is not used any more.
const URL_RESERVE: Duration = Duration::from_secs(10);

/// Returns the file's state after the confirmation, or its problem. The outer error ends the whole upload.
pub async fn send(client: &Client, screen: &Screen, file: &Registered) -> Sent<Status> {
    let problem = match deliver(client, screen, file).await {
        Ok(Ok(status)) => return Ok(Ok(status)),
        Ok(Err(problem)) => problem,
        Err(error) if error.is_fatal() => return Err(error),
        Err(error) => problem(&error),
    };
    // Without this, the batch would wait for the file.
    let deleted = client.retry(async || client.delete_file(file.ticket.file_id).await).await;
    match deleted {
        Err(error) if error.is_fatal() => Err(error),
        // If this failed, the server gives the file up itself after a while.
        _ => Ok(Err(problem)),
    }
}

/// The problem of a file that the server refused. If the bytes are not those that were hashed, the file has changed.
pub fn problem(error: &ClientError) -> Problem {
    match error.code() {
        "CHECKSUM_MISMATCH" | "SIZE_MISMATCH" => changed(0, 0),
        _ => Problem::from(error),
    }
}

async fn deliver(client: &Client, screen: &Screen, file: &Registered) -> Sent<Status> {
    let id = file.ticket.file_id;
    let mut url = Url { ticket: file.ticket.clone(), received: file.received };
    let mut is_there = false;
    let put = client
        .retry(async || {
            // Files wait for their turn longer than a URL is valid. Without this, the bytes would be sent in vain first.
            if url.is_stale() && !url.renew(client).await? {
                is_there = true;
                return Ok(Ok(()));
            }
            match put(client, screen, file, &url.ticket).await {
                Err(error) if error.wants_fresh_url() => {
                    if !url.renew(client).await? {
                        is_there = true;
                        return Ok(Ok(()));
                    }
                    put(client, screen, file, &url.ticket).await
                }
                done => done,
            }
        })
        .await?;
    if let Err(problem) = put {
        return Ok(Err(problem));
    }
    if is_there {
        screen.leave_out(file.file.candidate.size);
    }
    let size = i64::try_from(file.file.candidate.size).ok();
    let request = ConfirmRequest { size, md5: Some(file.file.checksums.md5.clone()) };
    let confirmed = client.retry(async || client.confirm(id, &request).await).await?;
    Ok(Ok(confirmed.status))
}

/// Where to send the bytes, and since when it is known.
struct Url {
    ticket: UploadTicket,
    received: Time,
}

impl Url {
    /// Whether the URL expires before much can be sent to it. A server that does not say how long it is valid is believed.
    fn is_stale(&self) -> bool {
        let ms = u64::try_from(self.ticket.expires_in_ms).unwrap_or_default();
        let valid = to_delta(Duration::from_millis(ms));
        !valid.is_zero() && Clock::System.now() - self.received + to_delta(URL_RESERVE) > valid
    }

    /// Asks for a fresh URL. Returns false if the file needs none: its bytes are confirmed, because the response to an
    /// earlier attempt was lost and the server found them.
    async fn renew(&mut self, client: &Client) -> Result<bool, ClientError> {
        match client.renew_upload_url(self.ticket.file_id).await {
            Ok(ticket) => {
                (self.ticket, self.received) = (ticket, Clock::System.now());
                Ok(true)
            }
            Err(error) if error.code() == "INVALID_STATE" => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Sends the bytes once, streamed from the disk.
async fn put(client: &Client, screen: &Screen, file: &Registered, ticket: &UploadTicket) -> Sent<()> {
    let (place, stamp) = (&file.file.candidate.place, file.file.stamp);
    let opened = match place.open() {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(unreadable(&error))),
    };
    let size = stamp.size;
    let reading = Arc::new(Reading::default());
    let body = reading.body(screen, &opened, 0..size, size);
    let sent = tokio::select! {
        sent = client.send_bytes(ticket, body) => sent,
        () = reading.stalled() => Err(client.interrupted("no bytes moved for too long")),
    };
    let Err(error) = sent else { return Ok(Ok(())) };
    screen.take_back(reading.bytes());
    if let Some(problem) = reading.take_problem() {
        return Ok(Err(problem));
    }
    match opened.metadata() {
        // Sending it again would send the same wrong bytes.
        Ok(now) if now.len() < size || is_mismatch(&error) && Stamp::of(&now) != stamp => {
            Ok(Err(changed(size, now.len())))
        }
        Ok(_) => Err(error),
        Err(error) => Ok(Err(unreadable(&error))),
    }
}

fn is_mismatch(error: &ClientError) -> bool {
    matches!(error.code(), "CHECKSUM_MISMATCH" | "SIZE_MISMATCH" | "STORAGE_REFUSED")
}
