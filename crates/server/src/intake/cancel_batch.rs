//! A person calls a whole batch off: what waits or runs is cancelled, what never arrived is deleted, what has made
//! landfall stays.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::cancel::cancellation;
use crate::records::batch::{Batch, Tally};
use crate::records::events::{self, Event};
use crate::records::file::File;
use crate::records::quota;
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Status, Transition};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_core::states::BatchStatus;
use landfall_store::Error;
use landfall_store::{Arg, Tx, Write, args};

/// Everything in one transaction, a statement for each state and not for each file. Repeating it is safe.
pub struct CancelBatch {
    pub caller: Caller,
    pub batch: Uuid,
    pub now: Time,
}

pub struct CancelledBatch {
    pub batch: Batch,
    /// Files that a worker had in hand, and whose work may be stopped.
    pub stopped: Vec<Uuid>,
    /// Whether there are blobs that nobody may have any more.
    pub leaves_blobs: bool,
}

impl Write for CancelBatch {
    type Output = CancelledBatch;

    async fn apply(&self, tx: &mut Tx) -> Result<CancelledBatch, Error> {
        let batch = Batch::find_for(tx, &self.caller, self.batch).await?;
        if batch.status == BatchStatus::Completed {
            let message = "This batch is completed: there is nothing left in it to cancel";
            return Err(Refusal::new(RefusalCode::InvalidState, message)
                .details(serde_json::json!({ "status": batch.status }))
                .into());
        }
        // Files before their batch, as every step of theirs takes them. From when the batch is held no file can be
        // added to it; those that were added until then are found by the second look.
        let mut ended = self.end_files(tx).await?;
        let newly = tx
            .execute(
                "UPDATE batches SET status = 'cancelled', updated_at = $2
                 WHERE id = $1 AND status IN ('active', 'expired')",
                args![self.batch, self.now],
            )
            .await?;
        ended.extend(self.end_files(tx).await?);
        self.settle(tx, &ended).await?;
        let batch = Batch::find_for(tx, &self.caller, self.batch).await?;
        if newly > 0 {
            batch.record_cancellation(tx, self.now).await?;
        }
        let running = ended.iter().filter(|ended| ended.from.is_running());
        Ok(CancelledBatch {
            batch,
            stopped: running.map(|ended| ended.file.id).collect(),
            leaves_blobs: ended.iter().any(|ended| ended.is_deleted() && ended.file.blob_key.is_some()),
        })
    }
}

/// A file that was moved, and where from.
struct Ended {
    from: Status,
    file: File,
}

impl Ended {
    fn is_deleted(&self) -> bool {
        self.file.status == Status::Deleted
    }
}

impl CancelBatch {
    async fn end_files(&self, tx: &mut Tx) -> Result<Vec<Ended>, Error> {
        let reason = cancellation(&self.caller);
        let mut ended = Vec::new();
        for from in Transition::Cancel.from() {
            let set = "claim = NULL, claimed_by = NULL, claimed_at = NULL, run_after = NULL, is_due = FALSE,
                       error_code = $5, error_message = $6, error_stage = next_stage, error_at = $4";
            let arguments = args![reason.code, &reason.message];
            ended.extend(self.move_files(tx, *from, Transition::Cancel, set, arguments).await?);
        }
        for from in [Status::Registered, Status::Uploaded] {
            let set = "deleted_at = $4, upload_until = NULL";
            ended.extend(self.move_files(tx, from, Transition::Delete, set, args![]).await?);
        }
        Ok(ended)
    }

    /// Moves all files of the batch that are in one state. `set` is what else changes in their rows; its arguments are
    /// numbered from `$5`.
    async fn move_files(
        &self,
        tx: &mut Tx,
        from: Status,
        transition: Transition,
        set: &str,
        more: Vec<Arg>,
    ) -> Result<Vec<Ended>, Error> {
        let to = from.apply(transition).map_err(Refusal::from)?;
        let mut arguments = args![self.batch, from, to, self.now];
        arguments.extend(more);
        let sql = format!(
            "UPDATE files SET status = $3, updated_at = $4, {set} WHERE batch_id = $1 AND status = $2 RETURNING *"
        );
        let files: Vec<File> = tx.rows(sql, arguments).await?;
        Ok(files.into_iter().map(|file| Ended { from, file }).collect())
    }

    /// Writes what belongs to the moves: the history, the batch's counts, the quota.
    async fn settle(&self, tx: &mut Tx, ended: &[Ended]) -> Result<(), Error> {
        let reason = cancellation(&self.caller);
        let mut tally = Tally::default();
        // A user may have registered them for several tenants.
        let mut refunds: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        let mut events = Vec::with_capacity(ended.len());
        for one in ended {
            tally += Tally::of(one.from, one.file.status);
            if one.is_deleted() {
                let (bytes, files) = refunds.entry(&one.file.tenant_id).or_default();
                *bytes += one.file.size_bytes;
                *files += 1;
            }
            events.push(Event {
                from: Some(one.from),
                to: Some(one.file.status),
                stage: one.from.stage(),
                failure: Some(reason.clone()),
                ..one.file.event(self.now)
            });
        }
        events::record(tx, events).await?;
        tally.apply(tx, self.batch, self.now).await?;
        for (tenant, (bytes, files)) in refunds {
            quota::refund_reserved(tx, tenant, bytes, files).await?;
        }
        Ok(())
    }
}
