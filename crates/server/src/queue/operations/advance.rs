//! One step of an operation: the next page of dead letters is revived, and the counts and the cursor move in the same
//! transaction. So each file is processed and counted once, whichever process takes a step or dies between two steps.

use serde_json::{Value, json};
use uuid::Uuid;

use super::Operation;
use crate::queue::dead_letter::Place;
use crate::queue::revive::{RetriedBy, is_infected, revive_all};
use crate::records::file::File;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::states::OperationStatus;
use landfall_store::Error;
use landfall_store::{Arg, Tx, Write, args};

const PAGE: usize = 100;
/// Files that are retried first, if all matching files failed for one cause.
const CANARIES: usize = 3;
/// Errors that are listed one by one; the rest are only counted.
const NAMED_ERRORS: usize = 20;

pub struct Advance {
    pub operation: Uuid,
    pub extent: Extent,
    /// Waits for a process that is taking a step of the same operation.
    pub patient: bool,
    pub now: Time,
}

/// How many files one step processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Page,
    One,
    /// Skips the next file, and counts it as an error.
    PassOver,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Files that were processed, and how many of them are in the queue. Both are 0 when the canaries just passed.
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

impl Write for Advance {
    type Output = Step;

    async fn apply(&self, tx: &mut Tx) -> Result<Step, Error> {
        let lock = if self.patient { tx.for_update() } else { tx.skip_locked() };
        let held: Option<Operation> =
            tx.row(format!("SELECT * FROM operations WHERE id = $1 {lock}"), args![self.operation]).await?;
        match held {
            None => Ok(Step::Elsewhere),
            Some(operation) if operation.ended_at.is_some() => Ok(Step::Over),
            Some(operation) if operation.status == OperationStatus::Canary => {
                self.try_canaries(tx, &operation).await
            }
            Some(operation) => match self.take_page(tx, &operation, PAGE).await? {
                Some(moved) => Ok(moved),
                None => self.end(tx, &operation, OperationStatus::Completed, None).await,
            },
        }
    }
}

impl Advance {
    /// Retries the canaries first, and decides from their rows whether the others are retried.
    async fn try_canaries(&self, tx: &mut Tx, operation: &Operation) -> Result<Step, Error> {
        let canaries = operation.canaries();
        let fates = fates(tx, &canaries).await?;
        let same_again = |fate: &&Fate| {
            fate.status == Status::Failed && fate.error_fingerprint == operation.filter.fingerprint
        };
        if let Some(fate) = fates.iter().find(same_again) {
            let reason = format!(
                "{} of the {} files that were tried first failed in the same way again ({}): the others were left alone",
                fates.iter().filter(same_again).count(),
                canaries.len(),
                fate.error_message.as_deref().unwrap_or_default(),
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
        tx.execute(
            "UPDATE operations SET status = 'running', updated_at = $2 WHERE id = $1",
            args![operation.id, self.now],
        )
        .await?;
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
        let page = next_page(tx, operation, most).await?;
        let Some(last) = page.last() else { return Ok(None) };
        let cursor = Place { failed_at: last.failed_at.unwrap_or(operation.cursor_at), id: last.id };
        let files = page.len();
        let mut errors = operation.errors.as_array().cloned().unwrap_or_default();
        let mut canaries = operation.canaries();
        let (mut revived, mut skipped, mut failed) = (0, 0, 0);
        if self.extent == Extent::PassOver {
            failed = files;
            if errors.len() < NAMED_ERRORS {
                let message = "This file could not be retried; the log of the server says why";
                errors.push(json!({ "fileId": last.id, "code": "INTERNAL", "message": message }));
            }
        } else {
            // The bytes of an infected file are removed, so there is nothing to retry.
            let (gone, here): (Vec<File>, Vec<File>) = page.into_iter().partition(is_infected);
            skipped = gone.len();
            let here: Vec<(Stage, File)> = here.into_iter().map(|file| (file.next_stage, file)).collect();
            let by = RetriedBy {
                user: &operation.user_id,
                operation: Some(operation.id),
                trace: operation.trace_parent.as_deref(),
                now: self.now,
            };
            revived = revive_all(tx, &here, &by).await?.len();
            if operation.status == OperationStatus::Canary {
                canaries.extend(here.iter().map(|(_, file)| file.id));
            }
        }
        tx.execute(
            "UPDATE operations SET retried_count = retried_count + $2, skipped_count = skipped_count + $3,
                 error_count = error_count + $4, errors = $5, canaries = $6, cursor_at = $7, cursor_id = $8,
                 updated_at = $9
             WHERE id = $1",
            args![
                operation.id,
                revived,
                skipped,
                failed,
                Value::Array(errors),
                json!(canaries),
                cursor.failed_at,
                cursor.id,
                self.now,
            ],
        )
        .await?;
        Ok(Some(Step::Moved { files, revived }))
    }

    async fn end(
        &self,
        tx: &mut Tx,
        operation: &Operation,
        status: OperationStatus,
        reason: Option<String>,
    ) -> Result<Step, Error> {
        tx.execute(
            "UPDATE operations SET status = $2, reason = $3, updated_at = $4, ended_at = $4 WHERE id = $1",
            args![operation.id, status, reason.clone(), self.now],
        )
        .await?;
        super::ended(tx, Operation { status, reason, ended_at: Some(self.now), ..operation.clone() });
        Ok(Step::Over)
    }
}

/// The next dead letters that match, locked until the transaction ends.
///
/// A file that fails again is newer than it was, so the cursor does not reach it again. `retried_in` excludes it even
/// if the clock of the process that failed it is behind.
async fn next_page(tx: &mut Tx, operation: &Operation, most: usize) -> Result<Vec<File>, Error> {
    let mut arguments = args![most, operation.id];
    let condition = operation.filter.condition("files", &mut arguments);
    let cursor = operation.cursor();
    arguments.extend([Arg::from(cursor.failed_at), Arg::from(cursor.id)]);
    let (at, id) = (arguments.len() - 1, arguments.len());
    let lock = tx.for_update();
    tx.rows(
        format!(
            "SELECT * FROM files WHERE {condition} AND (failed_at, id) < (${at}, ${id})
               AND (retried_in IS NULL OR retried_in <> $2)
             ORDER BY failed_at DESC, id DESC LIMIT $1 {lock}"
        ),
        arguments,
    )
    .await
}

/// The state of a canary. A canary whose row is gone counts as ended.
#[derive(sqlx::FromRow)]
struct Fate {
    #[sqlx(try_from = "String")]
    status: Status,
    error_fingerprint: Option<String>,
    error_message: Option<String>,
}

async fn fates(tx: &mut Tx, canaries: &[Uuid]) -> Result<Vec<Fate>, Error> {
    let mut fates = Vec::with_capacity(canaries.len());
    for canary in canaries {
        let sql = "SELECT status, error_fingerprint, error_message FROM files WHERE id = $1";
        fates.extend(tx.row::<Fate>(sql, args![*canary]).await?);
    }
    Ok(fates)
}
