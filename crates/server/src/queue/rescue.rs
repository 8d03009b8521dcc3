//! Releases the files of a dead worker to the queue.
//!
//! A worker is dead if and only if no process holds its lock, or its heartbeat is older than the expiry. If the
//! database itself was down in between, the death is not counted against the files that the worker held.

use serde_json::json;
use uuid::Uuid;

use super::isolation::{self, DELAY_ALONE};
use crate::process::workers::{self, Removed};
use crate::records::events;
use crate::records::files::{held, queue};
use crate::records::moves::{self, Change, Death, Ending, Move};
use landfall_core::actor::Actor;
use landfall_core::clock::{Time, to_delta};
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::{Status, Transition};
use landfall_store::Error;
use landfall_store::wake::Signal;
use landfall_store::{Tx, Write};

/// Releases a dead worker's files, and removes the worker so that no other process rescues them again. The worker's
/// attempt at each file does not count, but its death does.
pub struct RescueWorker {
    pub worker: Uuid,
    pub now: Time,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rescued {
    pub requeued: usize,
    pub failed: usize,
}

impl Write for RescueWorker {
    /// `None` if another process was first.
    type Output = Option<Rescued>;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let Some(Removed { name, known_by_this_server }) = workers::remove(tx, self.worker).await? else {
            return Ok(None);
        };

        let failure = Failure::new(
            Code::WorkerLost,
            if known_by_this_server {
                format!("The worker {name} died while it held this file")
            } else {
                format!("The worker {name} lost the database while it held this file")
            },
        );
        let reason = format!("Taken from the worker {name}, which is gone");
        let files = held::lock_held_by(tx, self.worker).await?;
        // It may have owed progress, and no other process knows that.
        tx.signal(Signal::Progress);
        let mut stalled = Vec::with_capacity(files.len());
        let mut moves = Vec::with_capacity(files.len());
        for file in &files {
            // A worker from before a database restart lost its connection, as every worker did. That is no death.
            let death =
                if known_by_this_server { isolation::death_of_holder(file) } else { Death::default() };
            let (transition, ending) = if let Some(verdict) = isolation::verdict(file, &death) {
                (Transition::DeadLetter(file.next_stage), Ending::dead_letter(file, verdict))
            } else {
                // Other work comes first, so that a death without this file can clear it.
                let at = if death.alone > 0 { self.now + to_delta(DELAY_ALONE) } else { self.now };
                let release = Ending::release(file, at);
                let release = release.map(|release| release.with_failure(failure.clone(), self.now));
                (Transition::Requeue(file.next_stage), release)
            };
            let Some(ending) = ending else { continue };
            stalled.push(file.stalled(file.lost_workers + death.in_hand, Some(&name), self.now));
            moves.push(Move {
                file: file.id,
                from: file.status,
                passed: Vec::new(),
                transition,
                change: Change::End(Ending { death, ..ending }),
                worker: Some(name.clone()),
                actor: Actor::system("rescue"),
                data: Some(json!({ "reason": reason })),
            });
        }
        if known_by_this_server && !files.iter().any(|file| file.is_alone && file.begun) {
            // What killed this worker was none of the files that are suspected.
            queue::clear_deaths_alone(tx).await?;
        }
        events::record(tx, stalled).await?;
        let moved = moves::apply(tx, moves, self.now).await?;
        let is = |status: Status| moved.iter().flatten().filter(|moved| moved.status == status).count();
        Ok(Some(Rescued { requeued: is(Status::Queued), failed: is(Status::Failed) }))
    }
}
