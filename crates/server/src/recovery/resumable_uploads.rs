//! A resumable upload is looked after if and only if no request has its turn: its process died, or its request ended, before all
//! was done.
//!
//! - If it is whole, or its parts are still to be joined, it becomes a file now, as its last request would have made it.
//! - If its file was confirmed or deleted, or it is a part that has expired, what is left of it is removed.
//! - Bytes that no row knows are removed: the row is written before them and goes after them.
//!
//! The expiry of a file whose upload is not whole is `upload_expiry`'s.

use std::time::Duration;

use uuid::Uuid;

use crate::blobs::Blobs;
use crate::intake::resumable::Resumables;
use crate::records::cleanup_failures::{Leftovers, Uncleaned};
use crate::records::resumable::{self, Kind, Seen};
use crate::telemetry::metrics;
use landfall_core::clock::{Clock, Time};
use landfall_store::{Db, Error, Rows};

const INTERVAL: Duration = Duration::from_secs(20);
const PAGE: usize = 500;
const SCOPE: &str = "resumable-uploads";

/// Sweeps at the start and then three times a minute.
pub async fn run(uploads: Resumables, clock: Clock) {
    loop {
        match sweep_once(&uploads, clock.now()).await {
            Ok(0) => {}
            Ok(settled) => tracing::info!(settled, "looked after resumable uploads that were cut short"),
            Err(error) => tracing::warn!(%error, "could not look for resumable uploads that were cut short"),
        }
        clock.sleep(INTERVAL).await;
    }
}

/// Looks after all of them. Returns for how many there was something to do. One that cannot be dealt with does not keep the
/// others, and is written down.
pub async fn sweep_once(uploads: &Resumables, now: Time) -> Result<usize, Error> {
    let (mut settled, mut failures) = (remove_unknown(&uploads.db, &uploads.blobs).await?, Vec::new());
    let mut last = Uuid::nil();
    loop {
        let page = resumable::page(&mut uploads.db.read().await?, last, PAGE).await?;
        let Some(seen) = page.last() else {
            Leftovers { scope: SCOPE, failures, is_complete: true, now }.keep(&uploads.db).await?;
            return Ok(settled);
        };
        last = seen.upload.id;
        for seen in &page {
            match look_after(uploads, seen, now).await {
                Ok(done) => settled += usize::from(done),
                // It is the client's affair, or it ended in the meantime.
                Err(Error::Refused(_)) => settled += 1,
                Err(error) => {
                    let id = seen.upload.id;
                    tracing::warn!(uploadId = %id, %error, "a resumable upload could not be looked after");
                    metrics::cleanup_failed(&error);
                    let (subject, error) = (format!("resumable upload {id}"), error.to_string());
                    failures.push(Uncleaned { subject, file: seen.upload.file(), error });
                }
            }
        }
    }
}

async fn look_after(uploads: &Resumables, seen: &Seen, now: Time) -> Result<bool, Error> {
    let upload = &seen.upload;
    if Resumables::is_over(seen) {
        // A request that still writes finds that its turn is over.
        uploads.clear(upload.id).await?;
        return Ok(true);
    }
    // A turn of this process that has ended may still be noted. Whether it has, the turns know.
    let is_elsewhere = upload.worker_id != Some(uploads.liveness.identity().id);
    if seen.is_held && is_elsewhere {
        return Ok(false);
    }
    if upload.kind != Kind::Part {
        return Box::pin(uploads.complete(upload.id)).await;
    }
    let has_expired = upload.joined_into.is_none() && upload.expires_at.is_some_and(|at| at <= now);
    if has_expired && uploads.expire_part(upload.id, now).await? {
        uploads.clear(upload.id).await?;
        return Ok(true);
    }
    Ok(false)
}

/// Removes bytes that no row knows. The storage is listed first: a row is written before its bytes.
pub async fn remove_unknown(db: &Db, blobs: &Blobs) -> Result<usize, Error> {
    let found = blobs.all_appended().await?;
    let mut removed = 0;
    for page in found.chunks(Rows::MAX) {
        let ids = page.iter().filter_map(|key| Blobs::file_of(key));
        let known = resumable::keys(&mut db.read().await?, ids).await?;
        for key in page.iter().filter(|key| !known.contains(key)) {
            blobs.discard_appended(key, None).await?;
            removed += 1;
        }
    }
    Ok(removed)
}
