//! What a dead worker held goes back to the queue.
//!
//! A worker is dead if and only if nobody holds its lock, or its heartbeat is older than the expiry. Where the database
//! itself was away in between, its silence is not held against the files that it had.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::dead_letter::fingerprint;
use crate::records::batch::Tally;
use crate::records::events::{self, Event};
use crate::records::file::File;
use crate::records::hourly::Counters;
use crate::records::notifications;
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::{Stage, Transition};
use landfall_store::Error;
use landfall_store::locks;
use landfall_store::{Tx, Write, args};

/// A file that was in the hands of so many workers when they died is suspected of killing them.
const DEATHS_OF_A_POISONOUS_FILE: i64 = 3;

/// Gives a dead worker's files back, and removes the worker so that nobody does it again. Its attempt at each file
/// does not count, but its death does.
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
        let sql = format!(
            "DELETE FROM workers WHERE id = $1 RETURNING name, lock_epoch IN ('', {}) AS known_by_this_server",
            locks::epoch(tx)
        );
        let worker: Option<(String, bool)> = tx.row(sql, args![self.worker]).await?;
        let Some((name, known_by_this_server)) = worker else { return Ok(None) };

        // Or it lost the database as everybody did.
        let deaths = i64::from(known_by_this_server);
        let failure = Failure::new(
            Code::WorkerLost,
            if known_by_this_server {
                format!("The worker {name} died while it held this file")
            } else {
                format!("The worker {name} lost the database while it held this file")
            },
        );
        let poison = Failure::new(
            Code::WorkerLost,
            format!(
                "{DEATHS_OF_A_POISONOUS_FILE} workers died while they held this file; it may be what kills them"
            ),
        );
        let requeued: Vec<File> = tx
            .rows(
                "UPDATE files SET status = 'queued', run_after = $2, is_due = TRUE, attempt = attempt - 1,
                     lost_workers = lost_workers + $6, claim = NULL, claimed_by = NULL, claimed_at = NULL,
                     error_code = $4, error_message = $5, error_stage = next_stage, error_at = $2, updated_at = $2
                 WHERE claimed_by = $1 AND lost_workers + $6 < $3 RETURNING *",
                args![self.worker, self.now, DEATHS_OF_A_POISONOUS_FILE, failure.code, &failure.message, deaths],
            )
            .await?;
        let [scan, extract, chunk, embed] = Stage::ALL.map(|stage| fingerprint(stage, &poison));
        let failed: Vec<File> = tx
            .rows(
                "UPDATE files SET status = 'failed', failed_at = $2,
                     lost_workers = lost_workers + 1, claim = NULL, claimed_by = NULL, claimed_at = NULL,
                     error_code = $3, error_message = $4, error_stage = next_stage, error_at = $2, updated_at = $2,
                     error_fingerprint = CASE next_stage WHEN 'scan' THEN $5 WHEN 'extract' THEN $6
                                                         WHEN 'chunk' THEN $7 ELSE $8 END
                 WHERE claimed_by = $1 RETURNING *",
                args![self.worker, self.now, poison.code, &poison.message, scan, extract, chunk, embed],
            )
            .await?;
        self.record(tx, &requeued, &failed, &failure, &poison, &name).await?;
        Ok(Some(Rescued { requeued: requeued.len(), failed: failed.len() }))
    }
}

impl RescueWorker {
    async fn record(
        &self,
        tx: &mut Tx,
        requeued: &[File],
        failed: &[File],
        failure: &Failure,
        poison: &Failure,
        name: &str,
    ) -> Result<(), Error> {
        let mut events = Vec::new();
        let mut tallies: BTreeMap<Uuid, Tally> = BTreeMap::new();
        let mut counters = Counters::default();
        let both = requeued
            .iter()
            .map(|file| (file, Transition::Requeue(file.next_stage), failure))
            .chain(failed.iter().map(|file| (file, Transition::DeadLetter(file.next_stage), poison)));
        for (file, transition, failure) in both {
            let (from, to) = (file.next_stage.running(), transition.to());
            let event =
                Event { stage: Some(file.next_stage), worker: Some(name.to_owned()), ..file.event(self.now) };
            events.push(Event {
                kind: EventKind::FileProcessingStalled,
                data: Some(serde_json::json!({
                    "fileId": file.id, "stage": file.next_stage, "retryCount": file.lost_workers,
                })),
                ..event.clone()
            });
            events.push(Event { from: Some(from), to: Some(to), failure: Some(failure.clone()), ..event });
            if let Some(batch) = file.batch_id {
                *tallies.entry(batch).or_default() += Tally::of(from, to);
            }
            counters.count(&file.user_id, to, Some(failure), file.confirmed_at, self.now);
        }
        events::record(tx, events).await?;
        let failed: Vec<Uuid> = failed.iter().map(|file| file.id).collect();
        notifications::tell_of_failures(tx, &failed, self.now).await?;
        for (batch, tally) in tallies {
            tally.apply(tx, batch, self.now).await?;
        }
        counters.write(tx, self.now).await
    }
}
