//! An upload whose bytes are whole and that its owner did not confirm: it goes on as if it were confirmed.

use uuid::Uuid;

use super::direct;
use crate::blobs::Blobs;
use crate::records::file::{File, StoredBytes};
use crate::records::moves::{self, Change};
use crate::records::quota;
use landfall_core::actor::Actor;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Status, Transition};
use landfall_store::{Db, Error, Tx, Write};

/// Confirms a file that the transaction holds. `arrived` is what the object store has, if the row does not know it yet.
/// `recoveries` is added to the number of times that the file was recovered.
pub async fn adopt(
    tx: &mut Tx,
    file: &mut File,
    arrived: Option<StoredBytes>,
    recoveries: i64,
    (actor, reason): (Actor, &str),
    now: Time,
) -> Result<(), Error> {
    let change = Change::Confirm { trace: None, recoveries, arrived };
    moves::apply_to(tx, file, Transition::Confirm, change, actor, Some(reason), now).await?;
    quota::settle(tx, std::slice::from_ref(file)).await
}

/// The name of the object store's notifications in the history of a file.
pub const NOTIFICATIONS: &str = "storage-events";

/// The object store says that it has the bytes of a file. Returns whether the file goes on because of that: a notification may
/// come late, or twice, or be about something else.
pub async fn adopt_notified(db: &Db, blobs: &Blobs, file: Uuid, now: Time) -> Result<bool, Error> {
    let found = File::find(&mut db.read().await?, file).await?;
    let is_awaited =
        |file: &File| file.is_direct && file.blob_key.is_none() && file.status == Status::Registered;
    let Some(file) = found.filter(is_awaited) else { return Ok(false) };
    match direct::arrived(blobs, &file).await {
        Ok(Some(arrived)) => db.write(Notified { file: file.id, arrived, now }).await,
        // Removed meanwhile, or not what was declared: its client learns that when it confirms.
        Ok(None) | Err(Error::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

struct Notified {
    file: Uuid,
    arrived: StoredBytes,
    now: Time,
}

impl Write for Notified {
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        let Some(mut file) = File::lock(tx, self.file).await? else { return Ok(false) };
        if file.status != Status::Registered || file.blob_key.is_some() {
            return Ok(false);
        }
        let why = (Actor::sweep(NOTIFICATIONS), "The object store has its bytes");
        adopt(tx, &mut file, Some(self.arrived.clone()), 0, why, self.now).await?;
        Ok(true)
    }
}
