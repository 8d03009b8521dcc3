//! Sends a large file in parts that the server keeps, so that it goes on where it was after a lost connection, and after the
//! program was interrupted.

use std::fs::File;
use std::sync::Arc;

use uuid::Uuid;

use super::candidates::{Candidate, Checksums, Hashed, changed, head, unreadable};
use super::reading::Reading;
use super::unfinished::{Claim, Held, Note};
use super::{Outcome, Problem, Run, Sent, known, send};
use crate::client::ClientError;
use crate::client::tus::{NewUpload, Offset};
use landfall_api::uploads::ConfirmRequest;
use landfall_core::clock::Clock;
use landfall_core::lifecycle::Status;

/// Larger files are sent in parts; smaller ones are sent again as a whole.
pub const MAX_WHOLE_BYTES: u64 = 8 << 20;
/// A request has at most this many bytes. Each has a token of its own, and a proxy in between need not hold more.
const PART_BYTES: u64 = 64 << 20;
/// An upload that the server has given up is begun again so many times.
const MAX_BEGINNINGS: usize = 2;

/// How the bytes of an upload went.
enum Transfer {
    Complete,
    /// The server does not know the upload any more.
    Gone,
}

pub async fn upload(run: &Run<'_>, candidate: Candidate) -> Result<Outcome, ClientError> {
    let mut held = match claim(run, &candidate).await {
        Ok(held) => held,
        Err(problem) => return Ok(Outcome::failed(problem)),
    };
    if let Some(held) = &mut held
        && let Some(outcome) = resume(run, &candidate, held).await?
    {
        return Ok(outcome);
    }
    let hashed = match run.hash(candidate.clone()).await {
        Ok(hashed) => hashed,
        Err(problem) => {
            run.not_sent(&candidate).await;
            return Ok(Outcome::failed(problem));
        }
    };
    if !run.force {
        let own = run.batches.ids().await;
        let mut found = known::known(run.client, std::slice::from_ref(&hashed), &own).await?;
        if let Some(known) = found.pop().flatten() {
            run.not_sent(&hashed.candidate).await;
            return Ok(Outcome::Skipped(known));
        }
    }
    for _ in 0..MAX_BEGINNINGS {
        if let Some(outcome) = begin(run, &hashed, held.as_deref_mut()).await? {
            return Ok(outcome);
        }
    }
    let message = "The server gave the upload up before it was complete";
    Ok(Outcome::failed(Problem::new("UPLOAD_INTERRUPTED", message)))
}

/// Takes the right to upload the file. A file that cannot be found again is uploaded without.
async fn claim(run: &Run<'_>, candidate: &Candidate) -> Result<Option<Box<Held>>, Problem> {
    let Some(path) = candidate.place.path() else { return Ok(None) };
    match run.unfinished.claim(&path) {
        Ok(Claim::Held(held)) => Ok(Some(held)),
        Ok(Claim::Busy) => {
            run.not_sent(candidate).await;
            let message = "Another `landfall upload` sends this file at this moment";
            Err(Problem::new("UPLOAD_IN_PROGRESS", message))
        }
        Ok(Claim::Unavailable) => Ok(None),
        Err(error) => {
            run.cannot_remember(&error);
            Ok(None)
        }
    }
}

/// Goes on with an earlier upload, if there is one and the file is still the same.
async fn resume(
    run: &Run<'_>,
    candidate: &Candidate,
    held: &mut Held,
) -> Result<Option<Outcome>, ClientError> {
    let Some(note) = held.note.clone() else { return Ok(None) };
    let opened = match candidate.place.open() {
        Ok(opened) => opened,
        Err(error) => {
            run.not_sent(candidate).await;
            return Ok(Some(Outcome::failed(unreadable(&error))));
        }
    };
    let is_same = head(&opened).is_ok_and(|(stamp, head)| stamp == note.stamp && head == note.head);
    if !is_same {
        // What was sent is of no use, and holds quota.
        abandon(run, held, note.file_id).await?;
        return Ok(None);
    }
    let size = note.stamp.size;
    let offset = match run.client.retry(async || run.client.upload_offset(note.file_id).await).await {
        Ok(Offset::At(offset)) if offset <= size => offset,
        Err(error) if error.is_fatal() || error.is_transient() => return Err(error),
        // The response to the last bytes may have been lost.
        _ => match run.client.retry(async || run.client.file(note.file_id).await).await {
            Ok(view) if view.md5.as_ref() == Some(&note.checksums.md5) && is_confirmed(view.status) => size,
            Err(error) if error.is_fatal() || error.is_transient() => return Err(error),
            _ => {
                abandon(run, held, note.file_id).await?;
                return Ok(None);
            }
        },
    };
    run.screen.leave_out(offset);
    run.resumed(offset);
    run.batches.not_expected().await;
    let upload = Upload { run, id: note.file_id, batch: note.batch_id, size, checksums: &note.checksums };
    let outcome = upload.carry_through(&opened, offset, Some(held)).await?;
    if outcome.is_none() {
        // It is begun again, from the first byte.
        run.screen.take_back(size - offset);
        held.forget();
    }
    Ok(outcome)
}

/// Begins an upload and carries it through. `None` if the server gave it up in between.
async fn begin(
    run: &Run<'_>,
    file: &Hashed,
    mut held: Option<&mut Held>,
) -> Result<Option<Outcome>, ClientError> {
    let opened = match file.candidate.place.open() {
        Ok(opened) => opened,
        Err(error) => {
            run.not_sent(&file.candidate).await;
            return Ok(Some(Outcome::failed(unreadable(&error))));
        }
    };
    let (stamp, head) = match head(&opened) {
        Ok((stamp, head)) => (stamp, head),
        Err(error) => {
            run.not_sent(&file.candidate).await;
            return Ok(Some(Outcome::failed(unreadable(&error))));
        }
    };
    let size = file.stamp.size;
    let (batch, _) = run.batches.take(1).await?;
    let attributes = file.candidate.attributes();
    let new = NewUpload {
        name: &file.candidate.name,
        size,
        md5: &file.checksums.md5,
        sha256: &file.checksums.sha256,
        batch,
        attributes: attributes.as_ref(),
    };
    let id = match run.client.create_upload(&new).await {
        Ok(id) => id,
        Err(error) if error.is_fatal() => return Err(error),
        Err(error) => {
            run.batches.not_used(batch).await;
            run.screen.leave_out(size);
            return Ok(Some(Outcome::failed(Problem::from(&error))));
        }
    };
    // A file that was changed since it was hashed is not the one that a later command would find.
    if let Some(held) = &mut held
        && stamp == file.stamp
        && let Some(path) = file.candidate.place.path()
    {
        let note = Note {
            server: run.client.server().to_owned(),
            path,
            upload_url: run.client.upload_url(id),
            file_id: id,
            batch_id: batch,
            stamp,
            head,
            checksums: file.checksums.clone(),
            begun_at: Clock::System.now(),
        };
        if let Err(error) = held.write(note) {
            run.cannot_remember(&error);
        }
    }
    let upload = Upload { run, id, batch, size, checksums: &file.checksums };
    upload.carry_through(&opened, 0, held).await
}

/// Gives up what was sent. If that fails, the server does it after a while.
async fn abandon(run: &Run<'_>, held: &mut Held, id: Uuid) -> Result<(), ClientError> {
    held.forget();
    match run.client.retry(async || run.client.terminate_upload(id).await).await {
        Err(error) if error.is_fatal() => Err(error),
        _ => Ok(()),
    }
}

/// An upload that the server knows.
struct Upload<'a> {
    run: &'a Run<'a>,
    id: Uuid,
    batch: Uuid,
    size: u64,
    checksums: &'a Checksums,
}

impl Upload<'_> {
    /// Sends all bytes from the offset on and checks what arrived. `None` if the server gave the upload up in between.
    async fn carry_through(
        &self,
        file: &Arc<File>,
        offset: u64,
        mut held: Option<&mut Held>,
    ) -> Result<Option<Outcome>, ClientError> {
        let client = self.run.client;
        let problem = match self.transfer(file, offset).await {
            Ok(Ok(Transfer::Complete)) => match self.finish().await {
                Ok(Ok(status)) => {
                    if let Some(held) = &mut held {
                        held.forget();
                    }
                    return Ok(Some(Outcome::Uploaded { file_id: self.id, batch_id: self.batch, status }));
                }
                Ok(Err(problem)) => {
                    // They are a file by now.
                    let deleted = client.retry(async || client.delete_file(self.id).await).await;
                    if let Err(error) = deleted
                        && error.is_fatal()
                    {
                        return Err(error);
                    }
                    problem
                }
                Err(error) if error.is_fatal() => return Err(error),
                // The bytes are there. The next command finds them.
                Err(error) => return Ok(Some(self.failed(Problem::from(&error)))),
            },
            Ok(Ok(Transfer::Gone)) => {
                if let Some(held) = &mut held {
                    held.forget();
                }
                return Ok(None);
            }
            Ok(Err(problem)) => problem,
            Err(error) if error.is_fatal() => return Err(error),
            // The next command goes on with it.
            Err(error) if error.is_transient() => return Ok(Some(self.failed(Problem::from(&error)))),
            Err(error) => send::problem(&error),
        };
        match held {
            Some(held) => abandon(self.run, held, self.id).await?,
            None => drop(client.retry(async || client.terminate_upload(self.id).await).await),
        }
        Ok(Some(self.failed(problem)))
    }

    fn failed(&self, problem: Problem) -> Outcome {
        Outcome::Failed { problem, file_id: Some(self.id), batch_id: Some(self.batch) }
    }

    /// Sends the bytes part by part. After an error the server says how many of them arrived.
    async fn transfer(&self, file: &Arc<File>, mut offset: u64) -> Sent<Transfer> {
        let (client, screen) = (self.run.client, &self.run.screen);
        let mut backoff = client.backoff();
        while offset < self.size {
            let to = self.size.min(offset + PART_BYTES);
            let reading = Arc::new(Reading::default());
            let body = reading.body(screen, file, offset..to, self.size);
            let sent = tokio::select! {
                sent = client.append(self.id, offset, to - offset, body) => sent,
                () = reading.stalled() => Err(client.interrupted("no bytes moved for too long")),
            };
            let error = match sent {
                Ok(now) if now > offset && now <= to => {
                    screen.take_back(reading.bytes().saturating_sub(now - offset));
                    offset = now;
                    backoff.reset();
                    continue;
                }
                Ok(now) => {
                    return Err(client.unexpected(format!("offset {now} after bytes from {offset} to {to}")));
                }
                Err(error) => error,
            };
            screen.take_back(reading.bytes());
            if let Some(problem) = reading.take_problem() {
                return Ok(Err(problem));
            }
            if error.is_status(404) || error.is_status(410) {
                return Ok(Ok(Transfer::Gone));
            }
            // 409: the server has another number of bytes. 423: it still works on the request before.
            if !(error.is_transient() || error.is_status(409) || error.is_status(423)) {
                return Err(error);
            }
            client.wait(&mut backoff, error).await?;
            match client.retry(async || client.upload_offset(self.id).await).await? {
                Offset::At(now) if now <= self.size => {
                    if now > offset {
                        backoff.reset();
                        screen.advance(now - offset);
                    } else {
                        screen.take_back(offset - now);
                    }
                    offset = now;
                }
                Offset::At(now) => return Err(client.unexpected(format!("offset {now} of {}", self.size))),
                Offset::Gone => return Ok(Ok(Transfer::Gone)),
            }
        }
        Ok(Ok(Transfer::Complete))
    }

    /// All bytes are there, and the server confirms them by itself. They must be those that were hashed.
    async fn finish(&self) -> Sent<Status> {
        let client = self.run.client;
        let view = client.retry(async || client.file(self.id).await).await?;
        if view.md5.as_ref().is_some_and(|md5| *md5 != self.checksums.md5) {
            return Ok(Err(changed(self.size, self.size)));
        }
        if is_confirmed(view.status) {
            return Ok(Ok(view.status));
        }
        let size = i64::try_from(self.size).ok();
        let request = ConfirmRequest { size, md5: Some(self.checksums.md5.clone()) };
        match client.retry(async || client.confirm(self.id, &request).await).await {
            Ok(confirmed) => Ok(Ok(confirmed.status)),
            Err(error) if error.is_transient() || error.is_fatal() => Err(error),
            Err(error) => Ok(Err(send::problem(&error))),
        }
    }
}

fn is_confirmed(status: Status) -> bool {
    !matches!(status, Status::Registered | Status::Uploaded | Status::Deleted)
}
