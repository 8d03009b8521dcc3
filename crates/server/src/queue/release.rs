//! Gives back what this worker may hold without knowing it.
//!
//! When the answer to a commit is lost, the commit may have happened all the same: files may be claimed that nobody
//! here works on, or be one stage further than their holder thinks. A claim's token is made before the claim, so what
//! it holds can always be found and given back.

use uuid::Uuid;

use crate::records::events::{self, Event};
use crate::records::file::File;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Transition;
use landfall_store::Error;
use landfall_store::{Tx, Write, args};

/// Queues every file that `claim` still holds again, at the stage it is at. The attempt does not count.
pub struct GiveBack {
    pub worker: Uuid,
    pub worker_name: String,
    pub claim: Uuid,
    /// Only this file of the claim's.
    pub file: Option<Uuid>,
    pub now: Time,
}

impl Write for GiveBack {
    type Output = usize;

    async fn apply(&self, tx: &mut Tx) -> Result<usize, Error> {
        let files: Vec<File> = tx
            .rows(
                "UPDATE files SET status = 'queued', run_after = $4, is_due = TRUE, attempt = attempt - 1, updated_at = $4,
                     claim = NULL, claimed_by = NULL, claimed_at = NULL
                 WHERE claimed_by = $1 AND claim = $2 AND id = COALESCE($3, id) RETURNING *",
                args![self.worker, self.claim, self.file, self.now],
            )
            .await?;
        let events = files
            .iter()
            .map(|file| Event {
                from: Some(file.next_stage.running()),
                to: Some(Transition::Requeue(file.next_stage).to()),
                stage: Some(file.next_stage),
                worker: Some(self.worker_name.clone()),
                ..file.event(self.now)
            })
            .collect();
        events::record(tx, events).await?;
        Ok(files.len())
    }
}
