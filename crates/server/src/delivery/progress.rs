//! `batch:progress`: how far a batch is, at most once a second.
//!
//! The change that moves a batch's counts writes it, in its own transaction, unless there was one less than a second
//! before. Then it leaves a note in the batch's row that one is owed, and this module pays, whoever dies in between. What is
//! owed when the batch completes comes with `batch:completed`, which has the same counts.

use std::time::Duration;

use crate::records::batch::{self, Batch};
use landfall_core::clock::{Clock, Time};
use landfall_store::Error;
use landfall_store::wake::Wake;
use landfall_store::{Db, Tx, Write, args};

/// Batches in one transaction.
const PORTION: i64 = 100;
/// Looks for what is owed follow one another no faster, however much is committed.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// When to look without any signal: for what other processes left behind.
const POLL: Duration = Duration::from_secs(30);

/// Tells what is owed, for ever.
pub async fn run(db: Db, clock: Clock, wake: Wake) {
    let mut signal = wake.events();
    loop {
        signal.mark_unchanged();
        match pay(&db, clock.now()).await {
            Ok(None) => {}
            // Nothing is due before: what comes to be owed now is due later.
            Ok(Some(next)) => {
                clock.sleep_until(next).await;
                continue;
            }
            Err(error) => tracing::warn!(%error, "the progress of batches could not be told"),
        }
        Clock::System.sleep(BETWEEN_LOOKS).await;
        tokio::select! {
            _ = signal.changed() => {}
            () = Clock::System.sleep(POLL) => {}
        }
    }
}

/// Tells all that is owed by now; answers when there will be more.
pub async fn pay(db: &Db, now: Time) -> Result<Option<Time>, Error> {
    loop {
        let next: Option<(Option<Time>,)> = db
            .read()
            .await?
            .row("SELECT MIN(progress_due) FROM batches WHERE progress_due IS NOT NULL", args![])
            .await?;
        match next.and_then(|(next,)| next) {
            Some(due) if due <= now => {
                // Somebody else may be at it; then there is nothing left for us, and nothing to look for again.
                if db.write(TellOwed { now }).await? == 0 {
                    return Ok(None);
                }
            }
            other => return Ok(other),
        }
    }
}

struct TellOwed {
    now: Time,
}

impl Write for TellOwed {
    type Output = usize;

    async fn apply(&self, tx: &mut Tx) -> Result<usize, Error> {
        let skip = tx.skip_locked();
        let owed: Vec<Batch> = tx
            .rows(
                format!(
                    "UPDATE batches SET progress_at = $1, progress_due = NULL
                     WHERE progress_due <= $1 AND id IN
                         (SELECT id FROM batches WHERE progress_due <= $1 ORDER BY progress_due LIMIT $2 {skip})
                     RETURNING {}",
                    batch::COLUMNS
                ),
                args![self.now, PORTION],
            )
            .await?;
        for batch in &owed {
            batch.record_progress(tx, self.now).await?;
        }
        Ok(owed.len())
    }
}
