//! An upload in parts is abandoned if and only if the object store has parts of it, it was begun longer ago than the minimum
//! age, and nothing awaits bytes for its key: its file is confirmed, deleted or unknown, no process receives it, and it is no
//! resumable upload.
//!
//! No listing of objects shows such parts, and they cost as much as objects. Those of an object that was completed are gone
//! with the completion.

use serde::Serialize;

use super::{Errors, OrphanCleanup};
use crate::blobs::Blobs;
use crate::blobs::direct::{AbandonedParts, Marker};
use crate::records::file::File;
use crate::records::resumable;
use landfall_core::clock::{Time, to_delta};
use landfall_core::lifecycle::Status;
use landfall_store::Error;

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metrics {
    pub total: usize,
    pub aborted: usize,
    pub errors: usize,
}

pub async fn clean(job: &OrphanCleanup, now: Time, errors: &mut Errors) -> Result<Metrics, Error> {
    let mut metrics = Metrics::default();
    let begun_before = now - to_delta(job.config.orphan_min_age);
    let mut marker = Some(Marker::default());
    while let Some(at) = marker {
        let (page, next) = job.blobs.unfinished_parts(&at).await?;
        marker = next;
        for parts in page.into_iter().filter(|parts| parts.begun_at < begun_before) {
            if is_awaited(job, &parts).await? {
                continue;
            }
            // The bucket of another database has parts that this one does not know.
            if metrics.total == 0 && !job.ownership.standing().await?.may_be_cleaned() {
                return Ok(metrics);
            }
            metrics.total += 1;
            match job.blobs.abort_parts(&parts).await {
                Ok(()) => {
                    metrics.aborted += 1;
                    tracing::info!(
                        job = super::NAME,
                        key = parts.key,
                        "removed the parts of an abandoned upload"
                    );
                }
                Err(error) => {
                    metrics.errors += 1;
                    errors.add(&format!("parts of {}", parts.key), &error);
                }
            }
        }
    }
    Ok(metrics)
}

async fn is_awaited(job: &OrphanCleanup, parts: &AbandonedParts) -> Result<bool, Error> {
    let Some(id) = Blobs::file_of(&parts.key) else { return Ok(false) };
    let mut tx = job.db.read().await?;
    // Also one that is only to be joined to a file.
    if resumable::has_key(&mut tx, id, &parts.key).await? {
        return Ok(true);
    }
    let file = File::find(&mut tx, id).await?;
    drop(tx);
    if file.is_some_and(|file| matches!(file.status, Status::Registered | Status::Uploaded)) {
        return Ok(true);
    }
    Ok(job.blobs.unfinished().await?.iter().any(|upload| upload.key == parts.key))
}
