//! A deletion is unfinished if and only if the row of a deleted or infected file still has the key of a blob: the
//! process that deleted the file died, or the storage failed, before the blob was gone. So is that of an archive whose
//! files are not deleted yet.

use std::time::Duration;

use uuid::Uuid;

use crate::blobs::Blobs;
use crate::intake::{archives, delete};
use crate::records::cleanup_failures::{Leftovers, Uncleaned};
use crate::records::files::blobs::to_be_removed;
use crate::telemetry::metrics;
use landfall_core::clock::{Clock, Time};
use landfall_store::Db;
use landfall_store::Error;
use landfall_store::wake::{Signal, Wake};

const INTERVAL: Duration = Duration::from_mins(1);
const PAGE: i64 = 500;
const SCOPE: &str = "unfinished-deletions";

/// Sweeps at the start, when there is something to remove, and every minute.
pub async fn run(db: Db, blobs: Blobs, clock: Clock, wake: Wake) {
    loop {
        match sweep(&db, &blobs, clock.now()).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "removed the blobs of deleted or infected files"),
            Err(error) => tracing::warn!(%error, "could not look for unfinished deletions"),
        }
        tokio::select! {
            () = clock.sleep(INTERVAL) => {}
            () = wake.wait(Signal::BlobToRemove) => {}
        }
    }
}

/// The same as a round of the sweep, now.
pub async fn sweep_once(db: &Db, blobs: &Blobs) -> Result<usize, Error> {
    sweep(db, blobs, Clock::System.now()).await
}

/// Removes the blobs that are still to be removed. Returns how many it removed. One that cannot be removed does not keep
/// the others, and is written down.
async fn sweep(db: &Db, blobs: &Blobs, now: Time) -> Result<usize, Error> {
    // Their blobs are among those that are removed below. An error does not keep the others.
    let of_archives = archives::deletion::delete_all(db, now).await;
    let (mut removed, mut failures) = (0, Vec::new());
    let mut last = Uuid::nil();
    loop {
        let page = to_be_removed(&mut db.read().await?, last, PAGE).await?;
        let Some((id, _)) = page.last() else {
            Leftovers { scope: SCOPE, failures, is_complete: true, now }.keep(db).await?;
            return of_archives.map(|()| removed);
        };
        last = *id;
        for (file, key) in page {
            match delete::remove_blob(db, blobs, file, &key).await {
                Ok(()) => removed += 1,
                Err(error) => {
                    tracing::warn!(fileId = %file, %error, "the blob of a deleted file could not be removed");
                    metrics::cleanup_failed(&error);
                    let subject = format!("blob {key}");
                    failures.push(Uncleaned { subject, file: Some(file), error: error.to_string() });
                }
            }
        }
    }
}
