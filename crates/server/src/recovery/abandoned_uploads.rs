//! An upload is abandoned if and only if it still has the name of something unfinished and belongs to a process that
//! is not known any more: it died, or said goodbye, before it had seen the upload to its end.

use std::time::Duration;

use uuid::Uuid;

use super::runs::InterruptRuns;
use crate::blobs::{Blobs, Unfinished};
use crate::intake::upload::settle_unfinished;
use crate::process::liveness::OnDeath;
use crate::process::workers;
use crate::queue::rescue::RescueWorker;
use crate::records::files::held;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::clock::{Clock, Time};
use landfall_core::mutants::{self, Mutant};
use landfall_store::Db;
use landfall_store::Error;

const INTERVAL: Duration = Duration::from_mins(1);

/// Sweeps at the start and then every minute, beside being called when a dead process is found.
pub async fn run(db: Db, blobs: Blobs, clock: Clock) {
    loop {
        match sweep_once(&db, &blobs).await {
            Ok(0) => {}
            Ok(settled) => tracing::info!(settled, "cleaned up after uploads that were cut short"),
            Err(error) => tracing::warn!(%error, "could not look for abandoned uploads"),
        }
        clock.sleep(INTERVAL).await;
    }
}

/// Rescues what a dead process held: its files, its runs of jobs, and the uploads that it was taking in.
pub struct RescueDead {
    pub db: Db,
    pub blobs: Blobs,
}

impl OnDeath for RescueDead {
    fn rescue(&self, worker: Uuid, now: Time) -> BoxFuture<'_, Result<bool, Error>> {
        async move {
            if mutants::on(Mutant::DeadWorkerKept) {
                return Ok(false);
            }
            let Some(files) = self.db.write(RescueWorker { worker, now }).await? else { return Ok(false) };
            if files.requeued + files.failed > 0 {
                let (requeued, failed) = (files.requeued, files.failed);
                tracing::warn!(workerId = %worker, requeued, failed, "rescued a dead worker's files");
            }
            self.db.write(InterruptRuns { worker, now }).await?;
            sweep_once(&self.db, &self.blobs).await?;
            Ok(true)
        }
        .boxed()
    }

    /// Those that worked on a file alone come last: the death of another excuses them.
    fn in_order(&self, mut workers: Vec<Uuid>) -> BoxFuture<'_, Result<Vec<Uuid>, Error>> {
        async move {
            if workers.len() > 1 {
                let alone = held::workers_alone(&mut self.db.read().await?).await?;
                workers.sort_by_key(|worker| alone.contains(worker));
            }
            Ok(workers)
        }
        .boxed()
    }
}

/// Keeps what a row knows and removes the rest. Returns how many there were.
///
/// The folder is listed before the processes are asked for: an upload that begins in between is not seen, and one of
/// a process that registers in between is not there yet. A process that is gone cannot bring its upload to the row
/// any more, because that takes its own row in the same transaction.
pub async fn sweep_once(db: &Db, blobs: &Blobs) -> Result<usize, Error> {
    let unfinished = blobs.unfinished().await?;
    if unfinished.is_empty() {
        return Ok(0);
    }
    let known = workers::ids(&mut db.read().await?).await?;
    let mut settled = 0;
    for Unfinished { owner, key } in unfinished {
        if known.contains(&owner) {
            continue;
        }
        settle_unfinished(db, blobs, &key).await?;
        blobs.forget_unfinished(owner, &key).await?;
        settled += 1;
    }
    Ok(settled)
}
