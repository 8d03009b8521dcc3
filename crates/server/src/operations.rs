//! To retry, cancel or delete many files is an operation: a row that says what is wanted and how far it is.
//!
//! It advances in steps, each of which is one transaction (`operations/advance.rs`). The request that started the
//! operation takes the first steps, and then the process that polls first takes the next. A process that dies in the
//! middle leaves only the row behind, and the other processes continue from it.

mod advance;
mod files;
pub mod rows;
mod tally;

use std::collections::HashSet;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::Value;
use uuid::Uuid;

pub use advance::Step;
use advance::{Advance, Extent, Taken};

use crate::blobs::Blobs;
use crate::queue::worker::Worker;
use crate::records::cursor::Cursor;
use crate::records::files::dead_letters::{Filter, retry};
use crate::records::lines::Lines;
use crate::telemetry::traces;
use landfall_api::file_queries::FileFilter;
use landfall_api::operations::{FilterView, OperationView};
use landfall_core::caller::{Caller, TenantUser};
use landfall_core::clock::{Clock, Time};
use landfall_core::states::{OperationAction, OperationStatus};
use landfall_store::Error;
use landfall_store::wake::{Signal, Wake};
use landfall_store::{Db, Tx, Write};

/// How many operations of a user are kept, whatever their age.
const MAX_KEPT: i64 = 1_000;
/// How often a process polls for operations to continue, and for the results of their canaries.
const INTERVAL: Duration = Duration::from_secs(1);
/// Blobs that are looked for at the same time.
const BLOBS_AT_ONCE: usize = 8;
/// Operations that are loaded in one query.
const BATCH_SIZE: i64 = 100;

/// The row, which is the complete state of an operation.
#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct Operation {
    pub id: Uuid,
    pub tenant_id: String,
    pub user_id: String,
    #[row(flatten)]
    pub filter: Filter,
    #[row(try_from = "String")]
    pub action: OperationAction,
    #[row(try_from = "String")]
    pub status: OperationStatus,
    pub reason: Option<String>,
    wanted: Option<Value>,
    file_ids: Option<Value>,
    pub total_count: Option<i64>,
    canaries: Value,
    /// How many files were retried, cancelled or deleted.
    pub retried_count: i64,
    pub skipped_count: i64,
    pub error_count: i64,
    pub errors: Value,
    pub skipped: Value,
    trace_parent: Option<String>,
    cursor_at: Time,
    cursor_id: Uuid,
    pub created_at: Time,
    pub updated_at: Time,
    pub ended_at: Option<Time>,
}

impl Operation {
    /// Which files it is about.
    fn files(&self) -> Result<Files, Error> {
        let unreadable = |error| Error::Internal(format!("operation {} cannot be read: {error}", self.id));
        Ok(match (self.wanted.clone(), self.file_ids.clone()) {
            (Some(filter), _) => Files::Matching(serde_json::from_value(filter).map_err(unreadable)?),
            (None, Some(ids)) => Files::Named(serde_json::from_value(ids).map_err(unreadable)?),
            (None, None) => Files::DeadLetters,
        })
    }

    /// The last dead letter that was processed.
    const fn cursor(&self) -> Cursor {
        Cursor { at: self.cursor_at, id: self.cursor_id }
    }

    /// Whose wish it is.
    fn by(&self) -> TenantUser {
        TenantUser::new(self.tenant_id.clone(), self.user_id.clone())
    }

    fn canaries(&self) -> Vec<Uuid> {
        let ids = self.canaries.as_array().into_iter().flatten();
        ids.filter_map(|id| Uuid::parse_str(id.as_str()?).ok()).collect()
    }
}

impl From<Operation> for OperationView {
    fn from(operation: Operation) -> Self {
        let filter = match operation.files() {
            Ok(Files::Matching(filter)) => filter,
            _ => FileFilter::default(),
        };
        let scope = filter.scope.unwrap_or(operation.filter.scope());
        let Filter { code, stage, batch_id, fingerprint, .. } = operation.filter;
        Self {
            operation_id: operation.id,
            action: operation.action,
            status: operation.status,
            reason: operation.reason,
            total_count: operation.total_count,
            done_count: operation.retried_count,
            retried_count: if operation.action == OperationAction::Retry {
                operation.retried_count
            } else {
                0
            },
            skipped_count: operation.skipped_count,
            error_count: operation.error_count,
            errors: operation.errors,
            skipped: operation.skipped,
            scope,
            filter: FilterView {
                code: code.or_else(|| filter.code.map(|codes| codes.to_string())),
                stage: stage.and_then(|stage| stage.parse().ok()),
                batch_id: batch_id.or_else(|| Uuid::parse_str(filter.batch_id.as_deref()?).ok()),
                fingerprint,
                status: filter.status,
                q: filter.q,
                owner: filter.owner,
                tenant_id: filter.tenant_id,
                created_after: filter.created_after,
                created_before: filter.created_before,
                warnings: filter.warnings,
            },
            created_by: operation.user_id,
            created_at: operation.created_at,
            updated_at: operation.updated_at,
            ended_at: operation.ended_at,
        }
    }
}

/// The files that an operation is about.
#[derive(Debug, Clone)]
pub enum Files {
    /// The dead letters that match the columns of the operation.
    DeadLetters,
    Matching(FileFilter),
    Named(Vec<Uuid>),
}

/// Starts an operation on files that exist until now. Returns its id.
pub struct Start {
    pub id: Uuid,
    pub user: TenantUser,
    pub action: OperationAction,
    /// Whose files these are, and which dead letters.
    pub filter: Filter,
    pub files: Files,
    /// How many files match, where that is known.
    pub total: Option<i64>,
    pub now: Time,
}

impl Start {
    /// Retries the matching files that have failed until now.
    pub const fn retry_all(id: Uuid, user: TenantUser, filter: Filter, now: Time) -> Self {
        let (action, files) = (OperationAction::Retry, Files::DeadLetters);
        Self { id, user, action, filter, files, total: None, now }
    }
}

impl Write for Start {
    type Output = Uuid;

    async fn apply(&self, tx: &mut Tx) -> Result<Uuid, Error> {
        // Files of one cause probably fail again, unless the cause was fixed. So a few are retried first.
        let one_cause = self.filter.fingerprint.is_some();
        let status = if one_cause { OperationStatus::Canary } else { OperationStatus::Running };
        let from = match self.files {
            Files::DeadLetters | Files::Named(_) => Cursor::newest(self.now),
            // Files that are registered later have greater ids.
            Files::Matching(_) => Cursor { at: self.now, id: self.id },
        };
        rows::insert(tx, self, status, from, traces::current()).await?;
        rows::keep_last(tx, &self.user, MAX_KEPT).await?;
        started(tx, self);
        tx.signal(Signal::Operation);
        Ok(self.id)
    }
}

/// Takes no further step of an operation. What was done stays done. An operation that has ended is unchanged.
pub struct Stop {
    pub caller: Caller,
    pub operation: Uuid,
    pub now: Time,
}

impl Write for Stop {
    type Output = Operation;

    async fn apply(&self, tx: &mut Tx) -> Result<Operation, Error> {
        Operation::find_for(tx, &self.caller, self.operation).await?;
        let reason = format!("Stopped by {}", self.caller.user);
        let is_stopped = rows::stop(tx, self.operation, reason, self.now).await?;
        let operation = Operation::find_for(tx, &self.caller, self.operation).await?;
        if is_stopped {
            ended(tx, operation.clone());
        }
        Ok(operation)
    }
}

/// Logs that an operation began.
fn started(tx: &mut Tx, wanted: &Start) {
    let (id, action, user, filter) = (wanted.id, wanted.action, wanted.user.clone(), wanted.filter.clone());
    tx.hook::<Lines>().add(move || {
        tracing::info!(
            operationId = %id, action = action.name(), userId = user.user, tenantId = user.tenant, ofTenant = filter.of_tenant, ofUser = filter.of_user, errorCode = filter.code, stage = filter.stage,
            batchId = filter.batch_id.map(display), fingerprint = filter.fingerprint,
            "an operation started"
        );
    });
}

/// Logs how an operation ended.
fn ended(tx: &mut Tx, operation: Operation) {
    tx.hook::<Lines>().add(move || {
        let ended_at = operation.ended_at.unwrap_or(operation.updated_at);
        tracing::info!(
            operationId = %operation.id, action = operation.action.name(), userId = operation.user_id, tenantId = operation.tenant_id, status = operation.status.name(),
            reason = operation.reason, retriedCount = operation.retried_count, skippedCount = operation.skipped_count,
            errorCount = operation.error_count, durationMs = (ended_at - operation.created_at).num_milliseconds(),
            "an operation ended"
        );
    });
}

/// Takes the steps of operations.
#[derive(Clone)]
pub struct Operations {
    pub db: Db,
    pub blobs: Blobs,
    pub clock: Clock,
    pub wake: Wake,
    /// Its work on files that are cancelled or deleted is stopped.
    pub worker: Option<Worker>,
}

impl Operations {
    /// Continues the operations under way: at startup, when an operation was started here, and every second.
    pub async fn run(self) {
        loop {
            if let Err(error) = self.advance_all().await {
                tracing::warn!(%error, "could not advance the operations");
            }
            tokio::select! {
                () = self.clock.sleep(INTERVAL) => {}
                () = self.wake.wait(Signal::Operation) => {}
            }
        }
    }

    /// Takes steps, one of each operation in turn, until all are over or wait for their canaries. One that fails does
    /// not block the others.
    pub async fn advance_all(&self) -> Result<(), Error> {
        loop {
            let (mut moved, mut last) = (false, Uuid::nil());
            loop {
                let under_way = rows::under_way(&mut self.db.read().await?, last, BATCH_SIZE).await?;
                let Some(newest) = under_way.last() else { break };
                last = *newest;
                for operation in under_way {
                    match self.step(operation, false).await {
                        Ok(step) => moved |= matches!(step, Step::Moved { .. }),
                        Err(error) => {
                            tracing::warn!(operationId = %operation, %error, "an operation could not advance");
                        }
                    }
                }
            }
            if !moved {
                return Ok(());
            }
        }
    }

    /// Takes steps of one operation until it is over, waits, or `files` files were processed. The process that
    /// polls next does the rest.
    pub async fn advance_up_to(&self, operation: Uuid, files: usize) -> Result<(), Error> {
        let mut processed = 0;
        while processed < files {
            match self.step(operation, true).await? {
                Step::Moved { files, .. } => processed += files,
                Step::Waits | Step::Over | Step::Elsewhere => return Ok(()),
            }
        }
        self.wake.send(Signal::Operation);
        Ok(())
    }

    /// The blobs that are gone, of the files that are retried next. The storage is asked before the transaction, which
    /// must not wait for it. A file whose blob goes after this fails again, and a storage that does not answer is no
    /// reason to leave files alone.
    async fn gone_blobs(&self, operation: Uuid) -> Result<HashSet<String>, Error> {
        let mut tx = self.db.read().await?;
        let Some(found) = Operation::find_under_way(&mut tx, operation).await? else {
            return Ok(HashSet::new());
        };
        let keys = match (found.action, found.files()?) {
            (OperationAction::Retry, Files::DeadLetters) => {
                retry::next_blobs(&mut tx, &found.filter, operation, found.cursor(), advance::PAGE).await?
            }
            (OperationAction::Retry, files) => files::next_blobs(&mut tx, &found, &files).await?,
            (OperationAction::Cancel | OperationAction::Delete, _) => Vec::new(),
        };
        drop(tx);
        let checked = stream::iter(keys).map(async |key| {
            let is_gone = matches!(self.blobs.size(&key).await, Ok(None));
            is_gone.then_some(key)
        });
        Ok(checked.buffer_unordered(BLOBS_AT_ONCE).filter_map(std::future::ready).collect().await)
    }

    /// Takes one step. `patient`: if another process is taking one, waits for it instead of skipping the operation.
    pub async fn step(&self, operation: Uuid, patient: bool) -> Result<Step, Error> {
        let gone = self.gone_blobs(operation).await?;
        let take = async |extent| {
            let (gone, now) = (gone.clone(), self.clock.now());
            self.db.write(Advance { operation, extent, patient, gone, now }).await
        };
        let mut taken = take(Extent::Page).await;
        // One file of the page cannot be changed. It must not block the others.
        if taken.as_ref().is_err_and(Error::is_about_the_data) {
            let found = Operation::find_under_way(&mut self.db.read().await?, operation).await?;
            let Some(cursor) = found.map(|found| found.cursor()) else { return Ok(Step::Over) };
            taken = take(Extent::One(cursor)).await;
            if let Err(error) = &taken
                && error.is_about_the_data()
            {
                tracing::error!(operationId = %operation, %error, "a file of an operation could not be changed");
                taken = take(Extent::PassOver(cursor)).await;
            }
        }
        let Taken { step, stopped } = taken?;
        for file in stopped {
            if let Some(worker) = &self.worker {
                worker.stop_file(file);
            }
        }
        Ok(step)
    }
}
