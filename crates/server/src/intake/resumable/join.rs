//! Appends parts to one another. A part is removed as soon as its bytes are durable in the joined upload, so that no more room is
//! needed than for one part more.

use tokio::io::AsyncReadExt;
use uuid::Uuid;

use super::Resumables;
use super::turns::{Bytes, Turn};
use crate::blobs::Appending;
use crate::records::resumable::{self, Resumable};
use landfall_store::Error;

const BUFFER: usize = 256 * 1024;

impl Resumables {
    /// Joins the parts of an upload in a task of its own, unless one does it already.
    pub fn join_soon(&self, id: Uuid) {
        let this = self.clone();
        self.tasks.spawn(async move {
            if let Err(error) = this.join(id).await {
                tracing::warn!(fileId = %id, %error, "the parts of an upload could not be joined yet");
            }
        });
    }

    /// Joins the parts of an upload, if no one does it already. Returns whether it is a file now.
    pub async fn join(&self, id: Uuid) -> Result<bool, Error> {
        let Some(turn) = self.turn_if_free(id).await? else { return Ok(false) };
        let mut appending = turn.open().await?;
        turn.begin_writing(Bytes::Plain).await?;
        let parts = resumable::parts_of(&mut self.db.read().await?, id).await?;
        for part in &parts {
            self.append_part(&turn, &mut appending, part).await?;
        }
        let is_whole = u64::try_from(turn.upload.length) == Ok(appending.offset());
        self.end(turn, appending).await?;
        Ok(is_whole)
    }

    /// Appends what the upload does not have of a part, and removes the part.
    async fn append_part(
        &self,
        turn: &Turn,
        appending: &mut Appending,
        part: &Resumable,
    ) -> Result<(), Error> {
        let at = u64::try_from(part.joined_at.unwrap_or_default()).unwrap_or_default();
        let size = u64::try_from(part.length).unwrap_or_default();
        let from = appending.offset().checked_sub(at).ok_or_else(|| {
            Error::Internal(format!(
                "the upload {} is at {}, before its next part",
                turn.upload.id,
                appending.offset()
            ))
        })?;
        if from < size {
            let mut bytes = self.blobs.read_appended(&part.blob_key, from, size).await?;
            let mut buffer = vec![0; BUFFER];
            let over = turn.is_over();
            tokio::pin!(over);
            loop {
                let read = tokio::select! {
                    read = bytes.read(&mut buffer) => read,
                    refusal = &mut over => return Err(refusal.into()),
                };
                let read = read.map_err(|source| Error::Storage {
                    what: format!("read the part {} of an upload", part.id),
                    source: source.into(),
                })?;
                if read == 0 {
                    break;
                }
                if let Some(saved) = appending.prepare(read).await? {
                    turn.reach(saved).await?;
                }
                appending.write(&buffer[..read]).await?;
                if appending.is_due() {
                    turn.reach(appending.checkpoint().await?).await?;
                    self.disk.require_room().await?;
                }
            }
        }
        if appending.is_unsaved() {
            turn.reach(appending.save().await?).await?;
        }
        self.clear(part.id).await
    }
}
