//! A batch is timed out if and only if it is `active`, its `expires_at` is over, and it still waits for files: fewer were
//! registered than it was opened for, or the bytes of one have not arrived.
//!
//! It is then `expired` and takes no more files. Those whose bytes never arrived are deleted and their quota is given
//! back, in the same transaction; all others go on as if nothing had happened. A batch whose files are all here is only
//! slow, and is left alone however old it is.

use chrono::TimeDelta;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use super::{Sweep, SweepReport};
use crate::intake::delete::{self, Cause};
use crate::records::batch::Batch;
use crate::records::batch::changes;
use crate::records::file::File;
use landfall_core::actor::Actor;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Status;
use landfall_store::Error;
use landfall_store::{Db, Tx, Write};

const NAME: &str = "batch-timeout";
const PAGE: usize = 200;

pub struct BatchTimeout {
    pub db: Db,
}

impl Sweep for BatchTimeout {
    fn name(&self) -> &'static str {
        NAME
    }

    fn sweep_once(&self, now: Time) -> BoxFuture<'_, Result<SweepReport, Error>> {
        self.sweep(now).boxed()
    }
}

impl BatchTimeout {
    async fn sweep(&self, now: Time) -> Result<SweepReport, Error> {
        let (mut expired, mut deleted, mut age) = (0, 0, TimeDelta::zero());
        let mut errors = Vec::new();
        let mut last = (Time::UNIX_EPOCH, Uuid::nil());
        loop {
            let page = changes::timed_out(&mut self.db.read().await?, last, PAGE, now).await?;
            let Some((expires_at, id, _)) = page.last() else { break };
            last = (*expires_at, *id);
            for (_, batch, created_at) in page {
                match self.db.write(ExpireBatch { batch, now }).await {
                    Ok(Some(files)) => {
                        expired += 1;
                        deleted += files;
                        age += now - created_at;
                    }
                    Ok(None) => {}
                    Err(error) => errors.push(format!("batch {batch}: {error}")),
                }
            }
        }
        let average = age.num_milliseconds() / i64::max(expired, 1);
        let metrics = [
            ("expiredBatches", json!(expired)),
            ("deletedFiles", json!(deleted)),
            ("averageBatchAge", json!(average)),
        ];
        let metrics = metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(SweepReport { metrics, errors })
    }
}

/// Returns how many files were deleted, or `None` if the batch is not timed out any more.
struct ExpireBatch {
    batch: Uuid,
    now: Time,
}

impl Write for ExpireBatch {
    type Output = Option<i64>;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        // Files before their batch, as every move of theirs takes them. Once the batch is held no file can be added to it;
        // files that were added until then are found by the second read.
        let missing = File::lock_in_batch(tx, self.batch, &[Status::Registered]).await?;
        if !changes::expire(tx, self.batch, missing.len(), self.now).await? {
            return Ok(None);
        }
        let missing = File::lock_in_batch(tx, self.batch, &[Status::Registered]).await?;
        let cause = Cause {
            name: Some("batch_expired"),
            reason: Some("Its bytes had not arrived when its batch expired"),
        };
        let deleted = delete::bury(tx, missing, &Actor::sweep(NAME), Some(cause), self.now).await?.len();
        let batch = Batch::find(tx, self.batch).await?;
        batch.record_expiry(tx, self.now).await?;
        Ok(Some(i64::try_from(deleted).unwrap_or(i64::MAX)))
    }
}
