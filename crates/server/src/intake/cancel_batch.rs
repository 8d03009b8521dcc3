//! A user cancels a whole batch: files that wait or run are cancelled, files whose bytes were never confirmed are
//! deleted, and files that have ended stay as they are.

use serde_json::json;
use uuid::Uuid;

use super::cancel::cancel_all;
use super::delete::{self, Cause};
use crate::records::batch::Batch;
use crate::records::batch::changes;
use crate::records::file::File;
use landfall_core::actor::Actor;
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Status, Transition};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_core::states::BatchStatus;
use landfall_store::Error;
use landfall_store::{Tx, Write};

/// The states of files that have not ended.
const OPEN: &[Status] = &[
    Status::Registered,
    Status::Uploaded,
    Status::Queued,
    Status::Scanning,
    Status::Extracting,
    Status::Chunking,
    Status::Embedding,
];

/// Everything in one transaction, a statement for each state and not for each file. Repeating it is safe.
pub struct CancelBatch {
    pub caller: Caller,
    pub batch: Uuid,
    pub now: Time,
}

pub struct CancelledBatch {
    pub batch: Batch,
    /// Files that a worker had in hand. The work on them can be stopped.
    pub stopped: Vec<Uuid>,
}

impl Write for CancelBatch {
    type Output = CancelledBatch;

    async fn apply(&self, tx: &mut Tx) -> Result<CancelledBatch, Error> {
        let batch = Batch::find_for(tx, &self.caller, self.batch).await?;
        if batch.status == BatchStatus::Completed {
            let message = "This batch is completed: there is nothing left in it to cancel";
            return Err(Refusal::new(RefusalCode::InvalidState, message)
                .details(json!({ "status": batch.status }))
                .into());
        }
        // Lock the files before their batch, in the same order as every move of a file. Once the batch is locked, no
        // file can be added to it; the second read finds the files that were added until then. The batch is
        // cancelled before its files end, or the last of them would complete it.
        File::lock_in_batch(tx, self.batch, OPEN).await?;
        let newly = changes::cancel(tx, self.batch, self.now).await?;
        let open = File::lock_in_batch(tx, self.batch, OPEN).await?;
        let stopped = self.end_files(tx, open).await?;
        let batch = Batch::find_for(tx, &self.caller, self.batch).await?;
        if newly {
            batch.record_cancellation(tx, self.now).await?;
        }
        Ok(CancelledBatch { batch, stopped })
    }
}

impl CancelBatch {
    /// Cancels files that wait or run, and deletes files that were never confirmed. Returns the files that a worker
    /// held.
    async fn end_files(&self, tx: &mut Tx, open: Vec<File>) -> Result<Vec<Uuid>, Error> {
        let arrived = |file: &File| Transition::Cancel.from().contains(&file.status);
        let (arrived, never_arrived): (Vec<File>, Vec<File>) = open.into_iter().partition(arrived);
        let running = arrived.iter().filter(|file| file.status.is_running()).map(|file| file.id).collect();
        let reason = "Its batch was cancelled";
        cancel_all(tx, &arrived, &self.caller.owner(), reason, self.now).await?;
        let cause = Cause { name: None, reason: Some(reason) };
        let owner = never_arrived.first().map(|file| (file.tenant_id.clone(), file.user_id.clone()));
        let (tenant, user) = owner.unwrap_or_default();
        let actor = Actor::caller(&self.caller, &tenant, &user);
        delete::bury(tx, never_arrived, &actor, Some(cause), self.now).await?;
        Ok(running)
    }
}
