//! One step of an operation: the next page of files is changed, and the counts and the cursor move in the same
//! transaction. So each file is processed and counted once, whichever process takes a step or dies between two steps.

use std::collections::HashSet;

use serde_json::json;
use uuid::Uuid;

use super::rows;
use super::tally::Tally;
use super::{Files, Operation};
use crate::queue::revive::{RetriedBy, is_infected, removed_as_infected, revive_all, source_gone};
use crate::records::cursor::Cursor;
use crate::records::file::File;
use crate::records::files::dead_letters::retry::{Fate, fates, lock_next};
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::refusal::Refusal;
use landfall_core::states::OperationStatus;
use landfall_store::Error;
use landfall_store::{Tx, Write};

pub const PAGE: usize = 100;
/// Files that are retried first, if all matching files failed for one cause.
const CANARIES: usize = 3;

pub struct Advance {
    pub operation: Uuid,
    pub extent: Extent,
    /// Waits for a process that is taking a step of the same operation.
    pub patient: bool,
    /// The blobs that are gone, of the files that this step will probably meet.
    pub gone: HashSet<String>,
    pub now: Time,
}

/// How many files one step processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Page,
    /// The file behind the cursor.
    One(Cursor),
    /// Skips the file behind the cursor, and counts it as an error.
    PassOver(Cursor),
}

impl Extent {
    /// Whether the file that is meant is no longer the next one: another process has taken it. Its cursor was read before
    /// this step had the lock.
    fn is_outdated(self, operation: &Operation) -> bool {
        match self {
            Self::Page => false,
            Self::One(cursor) | Self::PassOver(cursor) => cursor != operation.cursor(),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Files that were processed, and how many of them are in the queue. Both are 0 when the canaries just passed, or
    /// another process was faster.
    Moved {
        files: usize,
        revived: usize,
    },
    /// The canaries have not ended yet.
    Waits,
    Over,
    /// Another process is taking a step.
    Elsewhere,
}

/// What a step did, and the files that workers held which it cancelled or deleted.
pub struct Taken {
    pub step: Step,
    pub stopped: Vec<Uuid>,
}

impl From<Step> for Taken {
    fn from(step: Step) -> Self {
        Self { step, stopped: Vec::new() }
    }
}

impl Write for Advance {
    type Output = Taken;

    async fn apply(&self, tx: &mut Tx) -> Result<Taken, Error> {
        let held = Operation::lock(tx, self.operation, self.patient).await?;
        let operation = match held {
            None => return Ok(Step::Elsewhere.into()),
            Some(operation) if operation.ended_at.is_some() => return Ok(Step::Over.into()),
            Some(operation) if self.extent.is_outdated(&operation) => {
                return Ok(Step::Moved { files: 0, revived: 0 }.into());
            }
            Some(operation) => operation,
        };
        if operation.status == OperationStatus::Canary {
            return self.try_canaries(tx, &operation).await.map(Taken::from);
        }
        let taken = match operation.files()? {
            Files::DeadLetters => self.take_page(tx, &operation, PAGE).await?.map(Taken::from),
            files => self.take_files(tx, &operation, &files).await?,
        };
        match taken {
            Some(taken) => Ok(taken),
            None => self.end(tx, &operation, OperationStatus::Completed, None).await.map(Taken::from),
        }
    }
}

impl Advance {
    /// Retries the canaries first, and decides from their rows whether the others are retried.
    async fn try_canaries(&self, tx: &mut Tx, operation: &Operation) -> Result<Step, Error> {
        let canaries = operation.canaries();
        // A canary whose row is gone counts as ended.
        let fates = fates(tx, &canaries).await?;
        let same_again = |fate: &&Fate| {
            fate.status == Status::Failed && fate.error_fingerprint == operation.filter.fingerprint
        };
        if let Some(fate) = fates.iter().find(same_again) {
            let reason = format!(
                "{} of the {} files that were tried first failed in the same way again ({}): the others were left alone",
                fates.iter().filter(same_again).count(),
                canaries.len(),
                fate.error_message.as_deref().unwrap_or("for the same cause"),
            );
            return self.end(tx, operation, OperationStatus::Stopped, Some(reason)).await;
        }
        if canaries.len() < CANARIES
            && let Some(moved) = self.take_page(tx, operation, CANARIES - canaries.len()).await?
        {
            return Ok(moved);
        }
        if canaries.is_empty() {
            return self.end(tx, operation, OperationStatus::Completed, None).await;
        }
        if fates.iter().any(|fate| !fate.status.is_terminal()) {
            return Ok(Step::Waits);
        }
        rows::start_running(tx, operation.id, self.now).await?;
        Ok(Step::Moved { files: 0, revived: 0 })
    }

    /// Processes the next dead letters, up to `most`. Returns `None` if there are no more.
    async fn take_page(
        &self,
        tx: &mut Tx,
        operation: &Operation,
        most: usize,
    ) -> Result<Option<Step>, Error> {
        let most = if self.extent == Extent::Page { most } else { 1 };
        let page = lock_next(tx, &operation.filter, operation.id, operation.cursor(), most).await?;
        let Some(last) = page.last() else { return Ok(None) };
        let cursor = Cursor { at: last.failed_at.unwrap_or(operation.cursor_at), id: last.id };
        let files = page.len();
        let mut tally = Tally::of(operation);
        let mut canaries = operation.canaries();
        if let Extent::PassOver(_) = self.extent {
            tally.pass_over(last.id);
        } else {
            let mut here = Vec::with_capacity(files);
            for file in page {
                match self.refusal(&file) {
                    None => here.push(file),
                    Some(why) => tally.skip(file.id, Some(&file.file_name), &why),
                }
            }
            if operation.status == OperationStatus::Canary {
                canaries.extend(here.iter().map(|file| file.id));
            }
            tally.done = self.revive(tx, operation, here).await?;
        }
        let revived = tally.done;
        rows::advance(tx, operation.id, tally.progress(json!(canaries), cursor), self.now).await?;
        Ok(Some(Step::Moved { files, revived }))
    }

    /// Retries files that the transaction has locked. Returns how many.
    pub(super) async fn revive(
        &self,
        tx: &mut Tx,
        operation: &Operation,
        files: Vec<File>,
    ) -> Result<usize, Error> {
        let files: Vec<(Stage, File)> = files.into_iter().map(|file| (file.next_stage, file)).collect();
        let by = RetriedBy {
            user: &operation.by(),
            operation: Some(operation.id),
            trace: operation.trace_parent.as_deref(),
            now: self.now,
        };
        Ok(revive_all(tx, &files, &by).await?.len())
    }

    /// Why a file cannot be retried: for the same reasons as when it is retried alone.
    pub(super) fn refusal(&self, file: &File) -> Option<Refusal> {
        let needs_bytes = matches!(file.next_stage, Stage::Scan | Stage::Extract);
        let has_bytes = file.blob_key.as_ref().is_some_and(|key| !self.gone.contains(key));
        if is_infected(file) {
            Some(removed_as_infected())
        } else {
            (needs_bytes && !has_bytes).then(source_gone)
        }
    }

    async fn end(
        &self,
        tx: &mut Tx,
        operation: &Operation,
        status: OperationStatus,
        reason: Option<String>,
    ) -> Result<Step, Error> {
        rows::end(tx, operation.id, status, reason.clone(), self.now).await?;
        super::ended(tx, Operation { status, reason, ended_at: Some(self.now), ..operation.clone() });
        Ok(Step::Over)
    }
}
