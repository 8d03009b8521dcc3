//! `batch:progress`: the progress of a batch, at most once a second.
//!
//! The transaction that changes the counts of a batch also writes this event, unless there was one less than a
//! second before. Then it marks in the batch's row that an event is due, and this module writes it, so a crash in
//! between loses nothing. If the batch completes first, `batch:completed` has the same counts.

use std::time::Duration;

use crate::records::batch;
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_store::Error;
use landfall_store::wake::{Signal, Wake};
use landfall_store::{Db, Tx, Write};

/// Batches in one transaction.
const BATCH_SIZE: i64 = 100;
/// How often to poll without a signal. What a dead process left behind is signalled by the process that rescues its files.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// When to look again for batches that another transaction holds: a registration of many files, or the same task of another process.
const HELD_DELAY: Duration = Duration::from_millis(200);
/// Progress is due within a second. Only a clock that was ahead sets a later time, which the sweep of stuck files corrects.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Writes the due events, forever.
pub async fn run(db: Db, clock: Clock, wake: Wake) {
    loop {
        match flush_due(&db, clock.now()).await {
            Ok(Owed::Nothing) => tokio::select! {
                () = wake.wait(Signal::Progress) => {}
                () = Clock::System.sleep(POLL_INTERVAL) => {}
            },
            // Nothing is due earlier: what is marked from now on is due later.
            Ok(Owed::At(next)) => clock.sleep_until(next.min(clock.now() + to_delta(LONGEST_WAIT))).await,
            Ok(Owed::Held) => Clock::System.sleep(HELD_DELAY).await,
            Err(error) => {
                tracing::warn!(%error, "the progress of batches could not be written");
                Clock::System.sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// The progress that is still to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owed {
    Nothing,
    /// The next is due then.
    At(Time),
    /// Some was due, and other transactions held its batches.
    Held,
}

/// Writes all events that are due by now, unless their batches are held.
pub async fn flush_due(db: &Db, now: Time) -> Result<Owed, Error> {
    loop {
        let next = batch::next_progress(&mut db.read().await?).await?;
        match next {
            None => return Ok(Owed::Nothing),
            Some(due) if due > now => return Ok(Owed::At(due)),
            Some(_) if db.write(FlushDue { now }).await? == 0 => return Ok(Owed::Held),
            Some(_) => {}
        }
    }
}

struct FlushDue {
    now: Time,
}

impl Write for FlushDue {
    type Output = usize;

    async fn apply(&self, tx: &mut Tx) -> Result<usize, Error> {
        let due = batch::take_owed_progress(tx, BATCH_SIZE, self.now).await?;
        for batch in &due {
            batch.record_progress(tx, self.now).await?;
        }
        Ok(due.len())
    }
}
