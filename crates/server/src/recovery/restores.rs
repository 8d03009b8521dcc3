//! Notices that the database was restored from a backup, and begins a new epoch of its events.
//!
//! A database remembers where it was when its epoch began. A copy that finds itself in another place, or beside a storage
//! that has seen a later state of it, was restored. A restore that leaves neither trace (a snapshot of the whole disk) has to
//! be reported with `landfall storage restored`.

use super::ownership::Standing;
use crate::records::epochs::{self, Begin, Epoch};
use landfall_core::clock::Clock;
use landfall_store::{Db, Error};

/// Begins a new epoch if the database was restored since the current one began. `standing`: how the storage stood to the
/// database before its mark was renewed.
pub async fn notice(db: &Db, standing: &Standing) -> Result<(), Error> {
    let current = epochs::current(&mut db.read().await?).await?;
    let (place, seen) = (db.place().await?, generation_seen(standing));
    let is_elsewhere = |epoch: &Epoch| epoch.place != place;
    let is_behind = seen > current.as_ref().map_or(0, |epoch| epoch.mark_generation);
    let restored = is_behind || current.as_ref().is_some_and(is_elsewhere);
    if restored {
        tracing::warn!(
            "the database was restored from a backup or copied: clients that follow its events are told that some may be lost"
        );
    }
    if restored || current.is_none() {
        begin(db, current, restored, place, seen).await?;
    }
    Ok(())
}

/// Begins a new epoch because an operator says that the database was restored.
pub async fn report(db: &Db, standing: &Standing) -> Result<(), Error> {
    let current = epochs::current(&mut db.read().await?).await?;
    begin(db, current, true, db.place().await?, generation_seen(standing)).await
}

/// The generation of a storage that has seen a later state than this. Zero for any other.
fn generation_seen(standing: &Standing) -> i64 {
    if let Standing::Ahead { mark, .. } = standing { mark.generation } else { 0 }
}

async fn begin(db: &Db, after: Option<Epoch>, restored: bool, place: String, seen: i64) -> Result<(), Error> {
    let clock = db.clock(Clock::System).await?;
    // What was noticed once stays noticed.
    let mark_generation = seen.max(after.as_ref().map_or(0, |epoch| epoch.mark_generation));
    let (fresh, now) = (clock.new_id(), clock.now());
    db.write(Begin { fresh, after, restored, place, mark_generation, now }).await
}
