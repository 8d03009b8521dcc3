//! A batch is opened for a number of files, and closed when no more will come.

use serde_json::Value;
use uuid::Uuid;

use super::{IntakeConfig, registrations};
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
    batch.metadata.as_ref().map_or(Ok(()), check_metadata)?;
    batch.mapping.as_ref().map_or(Ok(()), check_mapping)
}

/// The bytes that a client may store as JSON with a batch or a file: enough for labels and ids. Documents are uploaded.
const MAX_JSON_BYTES: usize = 16 * 1024;

fn check_metadata(metadata: &Value) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(RefusalCode::InvalidMetadata, message));
    if !metadata.is_object() {
        return refuse("metadata must be a JSON object".to_owned());
    }
    check_json(metadata).or_else(|why| refuse(format!("metadata is not valid: {why}")))
}

/// A mapping is sent unchanged to the operator's own extraction service, so it must be valid and not too large.
pub fn check_mapping(mapping: &Value) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(RefusalCode::InvalidMapping, message));
    if !(mapping.is_object() || mapping.is_array()) {
        return refuse("The mapping is not valid: it must be a JSON object or array".to_owned());
    }
    check_json(mapping).or_else(|why| refuse(format!("The mapping is not valid: {why}")))
}

fn check_json(value: &Value) -> Result<(), String> {
    let text = value.to_string();
    if text.len() > MAX_JSON_BYTES {
        return Err(format!("it has {} bytes as JSON, and the limit is {MAX_JSON_BYTES}", text.len()));
    }
    // PostgreSQL cannot store a NUL, not even an escaped one.
    if text.contains("\\u0000") {
        return Err("it has a NUL character in it".to_owned());
    }
    Ok(())
}

pub struct OpenBatch {
    pub caller: Caller,
    pub id: Uuid,
    pub batch: NewBatch,
    pub now: Time,
    pub config: IntakeConfig,
}

impl Write for OpenBatch {
    type Output = OpenedBatch;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let NewBatch { metadata, mapping, .. } = &self.batch;
        let rows = 1 + registrations::rows_of(metadata.as_ref()) + registrations::rows_of(mapping.as_ref());
        registrations::take(tx, &self.caller.tenant, rows, self.config.registrations, self.now).await?;
        self.check_active(tx).await?;
        let expires_at = self.now + to_delta(self.config.batch_timeout);
        let opened = Opened {
            id: self.id,
            tenant: &self.caller.tenant,
            user: &self.caller.user,
            file_count: self.batch.file_count,
            priority: self.batch.priority.rank(),
            metadata: self.batch.metadata.clone(),
            mapping: self.batch.mapping.clone(),
            archive: None,
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

impl OpenBatch {
    /// The transaction is the only one that registers something for the tenant, so the count is right until it ends.
    async fn check_active(&self, tx: &mut Tx) -> Result<(), Error> {
        let most = self.config.max_active_batches;
        if changes::count_active(tx, &self.caller.tenant, most).await? < most {
            return Ok(());
        }
        let message = format!(
            "This tenant has {most} active batches, the maximum: close or cancel one, or wait until one is complete"
        );
        Err(Refusal::new(RefusalCode::TooManyBatches, message).into())
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
