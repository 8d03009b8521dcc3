//! Ends the waits for a service that has been down for longer than `OUTAGE_PATIENCE_MS`.
//!
//! A file that probes the service ends its wait by itself, with its last failure. This is for those behind it in the
//! queue, which no call ever reached. Each fails with the code of the service, and a retry begins a new wait.

use std::time::Duration;

use landfall_core::actor::Actor;
use landfall_core::clock::{Time, to_delta};
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::{Stage, Status, Transition};
use landfall_core::service::Service;
use landfall_store::{Db, Error, Tx, Write};
use serde_json::json;

use super::stuck_files;
use crate::queue::waiting::Obstacles;
use crate::queue::{circuits, patience};
use crate::records::files::queue;
use crate::records::moves::{self, Change, Move};

/// How many files one transaction ends.
const BATCH_SIZE: usize = 200;

/// Fails the files that have waited for too long. Returns how many they were.
pub async fn end(db: &Db, patience: Duration, now: Time) -> Result<i64, Error> {
    let mut ended = 0;
    for (stage, service) in Obstacles::load(&mut db.read().await?, None, now).await?.blocked_stages() {
        loop {
            let batch = db.write(EndWaits { stage, service, patience, now }).await?;
            ended += i64::try_from(batch).unwrap_or(i64::MAX);
            if batch < BATCH_SIZE {
                break;
            }
        }
    }
    Ok(ended)
}

struct EndWaits {
    stage: Stage,
    service: Service,
    patience: Duration,
    now: Time,
}

impl Write for EndWaits {
    type Output = usize;

    async fn apply(&self, tx: &mut Tx) -> Result<usize, Error> {
        let before = self.now - to_delta(self.patience);
        // Read again: the service may be back.
        let failing = circuits::failing_since(tx, before).await?;
        let Some((_, since, error)) = failing.into_iter().find(|(service, ..)| *service == self.service)
        else {
            return Ok(0);
        };
        let last =
            Failure::new(Code::of_outage(self.service), error.unwrap_or_else(|| "no answer".to_owned()));
        let files = queue::lock_waiting_since(tx, self.stage, before, BATCH_SIZE).await?;
        let moves = files.iter().map(|file| {
            let waited = self.now - since.max(file.waiting_since.unwrap_or(file.updated_at));
            Move {
                file: file.id,
                from: Status::Queued,
                passed: Vec::new(),
                transition: Transition::GiveUp,
                change: Change::GiveUp {
                    stage: self.stage,
                    failure: patience::exhausted(&last, waited, file.waits),
                },
                worker: None,
                actor: Actor::sweep(stuck_files::NAME),
                data: Some(json!({ "reason": "It waited for a service for too long" })),
            }
        });
        Ok(moves::apply(tx, moves.collect(), self.now).await?.into_iter().flatten().count())
    }
}
