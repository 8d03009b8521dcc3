//! A batch is opened for a number of files, and closed when no more will come.

use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use crate::records::batch::Batch;
use crate::records::batch::changes::{self, Opened};
use landfall_api::batches::{NewBatch, OpenedBatch};
use landfall_core::caller::Caller;
use landfall_core::clock::{Time, to_delta};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_core::states::BatchStatus;
use landfall_store::Error;
use landfall_store::{Tx, Write};

const MAX_FILES: i64 = 10_000;

/// Checks a request to open a batch.
pub fn check(batch: &NewBatch) -> Result<(), Refusal> {
    if !(1..=MAX_FILES).contains(&batch.file_count) {
        return Err(Refusal::new(
            RefusalCode::InvalidFileCount,
            format!("A batch has 1 to {MAX_FILES} files, not {}", batch.file_count),
        ));
    }
    if batch.metadata.as_ref().is_some_and(|value| !value.is_object() || has_nul(value)) {
        let message = "metadata must be a JSON object without NUL characters";
        return Err(Refusal::new(RefusalCode::InvalidRequest, message));
    }
    batch.mapping.as_ref().map_or(Ok(()), check_mapping)
}

/// A mapping is sent unchanged to the operator's own extraction service, so it must be valid and not too large.
pub fn check_mapping(mapping: &Value) -> Result<(), Refusal> {
    const MAX_BYTES: usize = 64 * 1024;
    let refuse = |message: &str| Err(Refusal::new(RefusalCode::InvalidMapping, message));
    if !(mapping.is_object() || mapping.is_array()) {
        return refuse("The mapping is not valid: it must be a JSON object or array");
    }
    if has_nul(mapping) {
        return refuse("The mapping is not valid: it has a NUL character in it");
    }
    if mapping.to_string().len() > MAX_BYTES {
        return refuse("The mapping is not valid: it is longer than 64 KB");
    }
    Ok(())
}

/// PostgreSQL cannot store a NUL, not even an escaped one.
fn has_nul(value: &Value) -> bool {
    value.to_string().contains("\\u0000")
}

pub struct OpenBatch {
    pub caller: Caller,
    pub id: Uuid,
    pub batch: NewBatch,
    pub now: Time,
    pub timeout: Duration,
}

impl Write for OpenBatch {
    type Output = OpenedBatch;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let expires_at = self.now + to_delta(self.timeout);
        let opened = Opened {
            id: self.id,
            tenant: &self.caller.tenant,
            user: &self.caller.user,
            file_count: self.batch.file_count,
            priority: self.batch.priority.rank(),
            metadata: self.batch.metadata.clone(),
            mapping: self.batch.mapping.clone(),
            expires_at,
            now: self.now,
        };
        changes::open(tx, opened).await?;
        Ok(OpenedBatch {
            batch_id: self.id,
            status: BatchStatus::Active,
            file_count: self.batch.file_count,
            expires_at,
        })
    }
}

/// No more files will come. The batch now expects only the files that it has, and completes when they do.
pub struct CloseBatch {
    pub caller: Caller,
    pub id: Uuid,
    pub now: Time,
}

impl Write for CloseBatch {
    type Output = Batch;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        Batch::find_for(tx, &self.caller, self.id).await?;
        changes::close(tx, self.id, self.now).await?;
        // Read again: the row is locked since the update.
        Batch::find_for(tx, &self.caller, self.id).await?.settle(tx, self.now).await?;
        Batch::find_for(tx, &self.caller, self.id).await
    }
}
