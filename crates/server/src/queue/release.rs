//! Releases files that this worker may hold without knowing it.
//!
//! When the reply to a commit is lost, the commit may still have succeeded. Then files may be claimed that this
//! worker does not work on, or may be one stage further than it knows. A claim's token is created before the claim,
//! so the files that it holds can always be found and released.

use landfall_core::actor::Actor;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Transition;
use landfall_store::{Error, Tx, Write};
use serde_json::json;
use uuid::Uuid;

use super::settle::RELEASED;
use crate::records::files::held;
use crate::records::moves::{self, Change, Ending, Move};

/// Queues every file that `claim` still holds again, at the stage it is at. The attempt does not count.
pub struct Release {
    pub worker: Uuid,
    pub worker_name: String,
    pub claim: Uuid,
    /// Only this file of the claim's.
    pub file: Option<Uuid>,
    pub now: Time,
}

impl Write for Release {
    type Output = usize;

    async fn apply(&self, tx: &mut Tx) -> Result<usize, Error> {
        let files = held::lock_claimed(tx, self.worker, self.claim, self.file).await?;
        let moves = files.iter().filter_map(|file| {
            Some(Move {
                file: file.id,
                from: file.status,
                passed: Vec::new(),
                transition: Transition::Requeue(file.next_stage),
                change: Change::End(Ending::release(file, self.now)?),
                worker: Some(self.worker_name.clone()),
                actor: Actor::worker(&self.worker_name),
                data: Some(json!({ "reason": RELEASED })),
            })
        });
        let moved = moves::apply(tx, moves.collect(), self.now).await?;
        Ok(moved.into_iter().flatten().count())
    }
}
