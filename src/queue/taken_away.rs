//! Notices that files in hand were taken away by another process: cancelled, deleted, or rescued from here.
//!
//! The fence keeps such work from changing anything. This only spares the effort, and ends what the owner called off.

use std::collections::HashSet;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::worker::{InHand, Inner};
use crate::db::args;
use crate::error::Error;

/// Looks again and again, until `stop`.
pub(super) async fn watch(inner: &Inner, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        tokio::select! {
            () = inner.clock.sleep(inner.config.poll_interval) => {}
            () = stop.cancelled() => return,
        }
        if let Err(error) = look(inner).await {
            tracing::debug!(%error, "could not see whether files were taken away");
        }
    }
}

async fn look(inner: &Inner) -> Result<(), Error> {
    // Before the database is asked: what is claimed after that is not missing.
    let in_hand: Vec<(InHand, CancellationToken)> =
        inner.in_hand().iter().map(|(held, stop)| (*held, stop.clone())).collect();
    if in_hand.is_empty() {
        return Ok(());
    }
    let worker = inner.liveness.identity().id;
    let sql = "SELECT id, claim FROM files WHERE claimed_by = $1";
    let held: Vec<(Uuid, Uuid)> = inner.db.read().await?.rows(sql, args![worker]).await?;
    let held: HashSet<InHand> = held.into_iter().collect();
    for (file, stop) in in_hand {
        if !held.contains(&file) {
            stop.cancel();
        }
    }
    Ok(())
}
