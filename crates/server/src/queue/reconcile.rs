//! Stops work on files that this worker no longer holds: another process cancelled, deleted or rescued them.
//!
//! The fence keeps such work from changing anything. This only saves work, and stops what the owner cancelled.
//!
//! It also handles the opposite case: a file whose row says that this process holds it, but that is not in hand,
//! would stay claimed for as long as this process lives. Its claim is released, so the file is queued again.

use std::collections::HashSet;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::release::Release;
use super::worker::{InHand, Inner};
use crate::records::files::held;
use landfall_core::clock::to_delta;
use landfall_store::Error;

/// How often to check for files that are claimed but not in hand, and how long each must have been claimed: a claim
/// is in the database a moment before the file is in hand.
const BETWEEN_CHECKS: Duration = Duration::from_mins(1);

/// Checks at every poll interval, until `stop`.
pub(super) async fn watch(inner: &Inner, stop: &CancellationToken) {
    let mut last_check = inner.clock.now();
    while !stop.is_cancelled() {
        tokio::select! {
            () = inner.clock.sleep(inner.config.poll_interval) => {}
            () = stop.cancelled() => return,
        }
        if let Err(error) = check(inner).await {
            tracing::debug!(%error, "could not check whether files in hand are still claimed");
        }
        if inner.clock.now() - last_check >= to_delta(BETWEEN_CHECKS) {
            last_check = inner.clock.now();
            if let Err(error) = release_unworked_files(inner).await {
                tracing::debug!(%error, "could not check for files that are claimed but not in hand");
            }
        }
    }
}

async fn check(inner: &Inner) -> Result<(), Error> {
    // Read before the query, so that a file claimed in between is not taken for a lost one.
    let in_hand: Vec<(InHand, CancellationToken)> =
        inner.in_hand().iter().map(|(held, stop)| (*held, stop.clone())).collect();
    if in_hand.is_empty() {
        return Ok(());
    }
    let worker = inner.liveness.identity().id;
    let held = held::held_by(&mut inner.db.read().await?, worker).await?;
    let held: HashSet<InHand> = held.into_iter().collect();
    for (file, stop) in in_hand {
        if !held.contains(&file) {
            stop.cancel();
        }
    }
    Ok(())
}

async fn release_unworked_files(inner: &Inner) -> Result<(), Error> {
    let worker = inner.liveness.identity().id;
    let before = inner.clock.now() - to_delta(BETWEEN_CHECKS);
    let held: Vec<InHand> = held::held_since(&mut inner.db.read().await?, worker, before).await?;
    for (file, claim) in held {
        let in_hand = inner.in_hand().contains_key(&(file, claim));
        let release = Release {
            worker,
            worker_name: inner.liveness.name().to_owned(),
            claim,
            file: Some(file),
            now: inner.clock.now(),
        };
        if !in_hand && inner.db.write(release).await? > 0 {
            tracing::error!(fileId = %file, "released a file that this process held without working on it");
        }
    }
    Ok(())
}
