//! The owner of a failed file is to be warned if and only if it failed at least the retention less seven days ago and they
//! were not warned since it failed. A failed file is to be deleted if and only if it failed at least the retention ago
//! and its owner was warned, since then, at least seven days ago.
//!
//! So a server that is down from day 20 to day 40 warns on day 40 and deletes on day 47. The warning and the note that it
//! was sent are one transaction. A file that is retried and fails again starts over.

use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use super::{Errors, OrphanCleanup};
use crate::intake::delete::{self, Cause};
use crate::records::file::File;
use crate::records::files::dead_letters::retention::{is_to_be_deleted, note_warning, to_be_deleted};
use crate::records::notifications;
use landfall_core::actor::Actor;
use landfall_core::clock::{Time, to_delta};
use landfall_core::lifecycle::Status;
use landfall_store::Error;
use landfall_store::{Tx, Write};

/// Between the warning and the deletion.
pub const NOTICE: Duration = Duration::from_hours(7 * 24);
const PAGE: i64 = 200;

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metrics {
    pub warnings: usize,
    pub deleted: usize,
}

/// When a file will be deleted, as far as that is known: a failed one if it is not retried, an upload if it does not come.
pub fn deletion_at(file: &File, retention: Duration, now: Time) -> Option<Time> {
    let Some(failed_at) = file.failed_at else {
        return file.upload_until.filter(|_| file.status == Status::Registered);
    };
    Some(deletion_of_failed(failed_at, file.deletion_warned_at, retention, now))
}

/// The same for a file that failed at `failed_at`. An owner who was not warned yet is warned now at the earliest.
pub fn deletion_of_failed(failed_at: Time, warned_at: Option<Time>, retention: Duration, now: Time) -> Time {
    let warned = warned_at.filter(|at| *at >= failed_at).unwrap_or(now);
    (failed_at + to_delta(retention)).max(warned + to_delta(NOTICE))
}

pub async fn clean(job: &OrphanCleanup, now: Time, errors: &mut Errors) -> Result<Metrics, Error> {
    let retention = job.config.failed_files;
    // What cannot be warned of is not deleted either; what was warned of long ago still is.
    let warnings = match warn_all(job, retention, now).await {
        Ok(warnings) => warnings,
        Err(error) => {
            errors.add("warnings of deletions", &error);
            0
        }
    };
    let deleted = delete_all(job, retention, now, errors).await?;
    Ok(Metrics { warnings, deleted })
}

async fn warn_all(job: &OrphanCleanup, retention: Duration, now: Time) -> Result<usize, Error> {
    let mut all = 0;
    loop {
        let warned = job.db.write(Warn { retention, now }).await?;
        all += warned;
        if warned == 0 {
            return Ok(all);
        }
        tracing::info!(job = "orphan-cleanup", warned, "warned of the deletion of failed files");
    }
}

async fn delete_all(
    job: &OrphanCleanup,
    retention: Duration,
    now: Time,
    errors: &mut Errors,
) -> Result<usize, Error> {
    let (failed_before, warned_before) = (now - to_delta(retention), now - to_delta(NOTICE));
    let mut deleted = 0;
    let mut after = (Time::UNIX_EPOCH, Uuid::nil());
    loop {
        let mut tx = job.db.read().await?;
        let page = to_be_deleted(&mut tx, failed_before, warned_before, after, PAGE).await?;
        drop(tx);
        let Some(last) = page.last() else { return Ok(deleted) };
        after = *last;
        for (_, file) in page {
            match let_go(job, LetGo { file, failed_before, warned_before, now }).await {
                Ok(gone) => deleted += usize::from(gone),
                Err(error) => errors.add_file("failed file", file, &error),
            }
        }
    }
}

/// Whether it was still to be deleted.
async fn let_go(job: &OrphanCleanup, change: LetGo) -> Result<bool, Error> {
    let Some(file) = job.db.write(change).await? else { return Ok(false) };
    tracing::info!(job = "orphan-cleanup", fileId = %file.id, size = file.size_bytes, "deleted an old failed file");
    if let Some(key) = &file.blob_key {
        delete::remove_blob(&job.db, &job.blobs, file.id, key).await?;
    }
    Ok(true)
}

/// Warns the owners of a page of files. Returns how many files.
struct Warn {
    retention: Duration,
    now: Time,
}

impl Write for Warn {
    type Output = usize;

    async fn apply(&self, tx: &mut Tx) -> Result<usize, Error> {
        let failed_before = self.now - to_delta(self.retention.saturating_sub(NOTICE));
        let files = note_warning(tx, failed_before, PAGE, self.now).await?;
        let warned = files.len();
        let dated = files.into_iter().map(|file| {
            let deletion =
                deletion_at(&file, self.retention, self.now).unwrap_or(self.now + to_delta(NOTICE));
            (file, deletion)
        });
        notifications::warn_of_deletion(tx, dated.collect(), self.now).await?;
        Ok(warned)
    }
}

struct LetGo {
    file: Uuid,
    failed_before: Time,
    warned_before: Time,
    now: Time,
}

impl Write for LetGo {
    /// The tombstone; `None` if the file was retried or deleted meanwhile.
    type Output = Option<File>;

    async fn apply(&self, tx: &mut Tx) -> Result<Option<File>, Error> {
        let Some(file) = File::lock(tx, self.file).await? else { return Ok(None) };
        if !is_to_be_deleted(tx, self.file, self.failed_before, self.warned_before).await? {
            return Ok(None);
        }
        let cause = Cause {
            name: Some("failed-file-retention"),
            reason: Some("It failed long ago, and its owner was warned"),
        };
        Ok(delete::bury(tx, vec![file], &Actor::sweep(super::NAME), Some(cause), self.now).await?.pop())
    }
}
