//! Waits that began at a time which has not come yet.
//!
//! A clock that is ahead and set right again leaves such times behind: a file that was put back into the queue meanwhile would
//! wait for as long as the clock was ahead, on top of its own wait. What is known to be right is how long each was meant to wait, so
//! its wait begins now. The same holds for deliveries to webhooks and for the progress of batches. Circuits, rates and schedules
//! compare their times with what they can be at most, where they read them.

use std::time::Duration;

use landfall_core::clock::{Time, to_delta};
use landfall_store::{Db, Error, Tx, Write};

use crate::delivery::webhooks::deliveries;
use crate::records::batch;
use crate::records::files::queue;

/// Clocks that are right differ by less.
pub const TOLERANCE: Duration = Duration::from_secs(5);
/// How many waits one transaction corrects.
const BATCH_SIZE: usize = 200;

/// Lets such waits begin now. Returns how many they were.
pub async fn correct(db: &Db, now: Time) -> Result<usize, Error> {
    let mut corrected = 0;
    loop {
        let batch = db.write(BeginWaitsNow { now }).await?;
        corrected += batch;
        // Less than a full batch is also what is left when other processes change the same rows.
        if batch < BATCH_SIZE {
            return Ok(corrected);
        }
    }
}

struct BeginWaitsNow {
    now: Time,
}

impl Write for BeginWaitsNow {
    type Output = usize;

    async fn apply(&self, tx: &mut Tx) -> Result<usize, Error> {
        let ahead = self.now + to_delta(TOLERANCE);
        let mut corrected = 0;
        for wait in queue::waits_from_ahead(tx, ahead, BATCH_SIZE).await? {
            corrected += usize::from(queue::begin_wait_now(tx, &wait, self.now).await?);
        }
        corrected += deliveries::begin_waits_now(tx, ahead, BATCH_SIZE, self.now).await?;
        let told = batch::owe_progress_now(tx, ahead, self.now).await?;
        Ok(corrected + usize::try_from(told).unwrap_or(usize::MAX))
    }
}
