//! Ends an upload before its time, and removes what it leaves.

use uuid::Uuid;

use super::turns::Bytes;
use super::{Found, Resumables};
use crate::intake::delete;
use crate::records::file::File;
use crate::records::quota;
use crate::records::resumable::{self, Kind, Seen};
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::refusal::Refusal;
use landfall_store::{Error, Tx, Write};

impl Resumables {
    /// Ends an upload and gives its room back. The upload of a file that is in the queue, or further, is ended by the deletion
    /// of the file, if the caller may do that.
    pub async fn terminate(
        &self,
        caller: &Caller,
        id: Uuid,
        may_delete: Result<(), Refusal>,
    ) -> Result<(), Error> {
        let upload = match self.find(caller, id).await? {
            Found::Upload(upload) => upload,
            Found::Done(file) => {
                may_delete?;
                return delete::delete(&self.db, &self.blobs, caller, file.id, self.clock.now()).await;
            }
        };
        // A request that still writes is ended first.
        let mut turn = self.turn(id, Bytes::Plain).await?;
        match upload.file() {
            Some(file) => delete::delete(&self.db, &self.blobs, caller, file, self.clock.now()).await?,
            None => self
                .db
                .write(GiveUp { part: id, expired_before: None, now: self.clock.now() })
                .await
                .map(drop)?,
        }
        self.clear(id).await?;
        turn.is_gone();
        Ok(())
    }

    /// Whether only the leftovers of an upload are to be removed.
    pub fn is_over(seen: &Seen) -> bool {
        let awaits_bytes = matches!(seen.file_status.as_deref(), Some("registered" | "uploaded"));
        let belongs_to_file = seen.upload.kind != Kind::Part || seen.upload.joined_into.is_some();
        seen.upload.is_over || (belongs_to_file && !awaits_bytes)
    }

    /// Gives up a part whose time is over. Returns whether it was.
    pub async fn expire_part(&self, part: Uuid, now: Time) -> Result<bool, Error> {
        self.db.write(GiveUp { part, expired_before: Some(now), now }).await
    }

    /// Removes what is left of an upload, its row last. A blob that its file knows stays.
    pub async fn clear(&self, upload: Uuid) -> Result<(), Error> {
        // As it was noted last.
        let upload = resumable::find(&mut self.db.read().await?, upload).await?;
        let Some(upload) = upload else { return Ok(()) };
        // Without it no one can make a blob of it any more.
        self.blobs.discard_appended(&upload.blob_key, upload.stored.as_ref()).await?;
        let file = match upload.file() {
            Some(file) => File::find(&mut self.db.read().await?, file).await?,
            None => None,
        };
        if file.is_none_or(|file| file.blob_key.as_ref() != Some(&upload.blob_key)) {
            self.blobs.remove(&upload.blob_key).await?;
        }
        self.db.write(Gone { upload: upload.id }).await
    }
}

/// Gives up a part: its room is free again. Only its bytes are left to be removed.
struct GiveUp {
    part: Uuid,
    /// Only if it has expired by then and no request has the turn.
    expired_before: Option<Time>,
    now: Time,
}

impl Write for GiveUp {
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        let Some(part) = resumable::lock(tx, self.part).await? else { return Ok(false) };
        if part.joined_into.is_some() {
            return match self.expired_before {
                Some(_) => Ok(false),
                None => Err(Refusal::no_such_upload().into()),
            };
        }
        if let Some(time) = self.expired_before
            && (part.expires_at.is_none_or(|at| at > time) || resumable::is_held(tx, self.part).await?)
        {
            return Ok(false);
        }
        if !resumable::give_up(tx, self.part, self.now).await? {
            return Ok(true);
        }
        quota::release(tx, &part.tenant_id, part.length, 1).await?;
        Ok(true)
    }
}

struct Gone {
    upload: Uuid,
}

impl Write for Gone {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        resumable::remove(tx, self.upload).await
    }
}
