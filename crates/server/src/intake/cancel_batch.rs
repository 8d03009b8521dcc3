//! A user cancels a whole batch: files that wait or run are cancelled, files whose bytes were never confirmed are
//! deleted, and files that have ended stay as they are.

use serde_json::json;
use uuid::Uuid;

use super::cancel::move_all;
use super::delete::{self, Cause};
use crate::records::batch::Batch;
use crate::records::batch::changes;
use crate::records::file::File;
use landfall_core::actor::Actor;
use landfall_core::caller::{Caller, TenantUser};
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
        let by = self.caller.owner();
        let (arrived, stopped) =
            cancel_files(tx, self.batch, &by, "Its batch was cancelled", self.now).await?;
        // Archives among them have batches of their own.
        for archive in arrived.iter().filter_map(|file| file.archive_batch) {
            cancel_files(tx, archive, &by, "Its archive was cancelled", self.now).await?;
        }
        let batch = Batch::find_for(tx, &self.caller, self.batch).await?;
        Ok(CancelledBatch { batch, stopped })
    }
}

/// Cancels a batch and its files that wait or run, and deletes those that were never confirmed. Returns the files that were
/// cancelled, and those of them that a worker held.
pub(super) async fn cancel_files(
    tx: &mut Tx,
    batch: Uuid,
    by: &TenantUser,
    reason: &str,
    now: Time,
) -> Result<(Vec<File>, Vec<Uuid>), Error> {
    // Lock the files before their batch, in the same order as every move of a file. Once the batch is locked, no
    // file can be added to it; the second read finds the files that were added until then. The batch is
    // cancelled before its files end, or the last of them would complete it.
    File::lock_in_batch(tx, batch, OPEN).await?;
    let newly = changes::cancel(tx, batch, now).await?;
    let open = File::lock_in_batch(tx, batch, OPEN).await?;
    let arrived = |file: &File| Transition::Cancel.from().contains(&file.status);
    let (arrived, never_arrived): (Vec<File>, Vec<File>) = open.into_iter().partition(arrived);
    let running = arrived.iter().filter(|file| file.status.is_running()).map(|file| file.id).collect();
    move_all(tx, &arrived, by, reason, now).await?;
    let cause = Cause { name: None, reason: Some(reason) };
    let owner = never_arrived.first().map(|file| (file.tenant_id.clone(), file.user_id.clone()));
    let (tenant, user) = owner.unwrap_or_default();
    let actor = Actor::user(by, &tenant, &user);
    delete::bury(tx, never_arrived, &actor, Some(cause), now).await?;
    if newly {
        Batch::find(tx, batch).await?.record_cancellation(tx, now).await?;
    }
    Ok((arrived, running))
}
