//! An upload is abandoned if and only if its file is still `registered`, was registered longer ago than the threshold, and
//! its deadline has passed: no byte arrived and no fresh URL was asked for within the confirm window.
//!
//! This is the net under the expiry of uploads, which comes at the deadline itself. Row first, blob after: a confirm or
//! an upload that comes at the same moment finds the file either as it was, or deleted.

use serde::Serialize;
use uuid::Uuid;

use super::{Errors, OrphanCleanup};
use crate::intake::delete::{self, Cause};
use crate::records::batch::deadline;
use crate::records::file::File;
use crate::records::files::uploads;
use crate::records::notifications;
use crate::records::resumable;
use crate::telemetry::metrics::abandoned_upload_deleted;
use landfall_core::actor::Actor;
use landfall_core::clock::{Time, to_delta};
use landfall_core::lifecycle::Status;
use landfall_store::Error;
use landfall_store::{Tx, Write};

const PAGE: i64 = 500;

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metrics {
    pub total: usize,
    pub deleted: usize,
}

pub async fn clean(job: &OrphanCleanup, now: Time, errors: &mut Errors) -> Result<Metrics, Error> {
    let registered_before = now - to_delta(job.config.abandoned_upload);
    let mut metrics = Metrics::default();
    let mut after = (Time::UNIX_EPOCH, Uuid::nil());
    loop {
        let mut tx = job.db.read().await?;
        let page = uploads::abandoned(&mut tx, registered_before, after, PAGE, now).await?;
        drop(tx);
        let Some(last) = page.last() else { return Ok(metrics) };
        after = *last;
        for (_, file) in page {
            metrics.total += 1;
            match give_up(job, GiveUp { file, registered_before, now }).await {
                Ok(true) => {
                    metrics.deleted += 1;
                    abandoned_upload_deleted();
                }
                Ok(false) => {}
                Err(error) => errors.add_file("abandoned upload", file, &error),
            }
        }
    }
}

/// Whether it was still abandoned.
async fn give_up(job: &OrphanCleanup, change: GiveUp) -> Result<bool, Error> {
    let Some(file) = job.db.write(change).await? else { return Ok(false) };
    tracing::info!(job = "orphan-cleanup", fileId = %file.id, size = file.size_bytes, "gave up an upload");
    if let Some(key) = &file.blob_key {
        delete::remove_blob(&job.db, &job.blobs, file.id, key).await?;
    }
    Ok(true)
}

struct GiveUp {
    file: Uuid,
    registered_before: Time,
    now: Time,
}

impl Write for GiveUp {
    /// The tombstone; `None` if the file is not abandoned any more.
    type Output = Option<File>;

    async fn apply(&self, tx: &mut Tx) -> Result<Option<File>, Error> {
        let abandoned = |file: &File| {
            file.status == Status::Registered
                && file.created_at <= self.registered_before
                && file.upload_until.is_some_and(|until| until <= self.now)
        };
        let Some(file) = File::lock(tx, self.file).await?.filter(abandoned) else { return Ok(None) };
        if resumable::find(tx, self.file).await?.is_some() || deadline::spare(tx, &file, self.now).await? {
            return Ok(None);
        }
        let cause = Cause { name: Some("abandoned"), reason: Some("Its bytes did not arrive in time") };
        let mut tombstones =
            delete::bury(tx, vec![file], &Actor::sweep(super::NAME), Some(cause), self.now).await?;
        notifications::tell_of_expired_uploads(tx, &tombstones, self.now).await?;
        Ok(tombstones.pop())
    }
}
