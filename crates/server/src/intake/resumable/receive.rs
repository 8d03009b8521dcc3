//! Takes in the bytes of a request, and says how far an upload is.
//!
//! Whatever ends a request, the bytes that came are kept, made durable and noted before its turn is over. Only a request with a
//! checksum keeps all of its bytes or none.

use bytes::Bytes;
use futures_util::Stream;
use tracing::Instrument;
use uuid::Uuid;

use super::checksum::Expected;
use super::turns::{self, Turn};
use super::{Found, Progress, Resumables, done, saved};
use crate::blobs::{Appending, Saved};
use crate::intake::body::Body;
use crate::intake::upload::{SIGN_OF_LIFE, StillArriving};
use crate::records::file::File;
use crate::records::resumable::{self, Kind, Resumable};
use landfall_core::caller::Caller;
use landfall_core::clock::to_delta;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;

/// What a request says of its bytes.
#[derive(Debug, Clone, Default)]
pub struct Piece {
    /// Where they begin.
    pub offset: u64,
    /// How many there are, if it says so.
    pub length: Option<u64>,
    pub checksum: Option<Expected>,
}

impl Resumables {
    /// Says how far an upload is. What it says is durable. An older request that still writes is ended for that, because its
    /// client asks in order to go on.
    pub async fn status(&self, caller: &Caller, id: Uuid) -> Result<Progress, Error> {
        let upload = match self.find(caller, id).await? {
            Found::Done(file) => return Ok(done(&file)),
            Found::Upload(upload) => upload,
        };
        if upload.kind == Kind::Joined {
            self.join_soon(id);
            return self.progress(id).await;
        }
        if self.is_at_rest(&upload).await? {
            return self.progress(id).await;
        }
        let this = self.clone();
        match self.run_to_end(async move { this.settle(id).await }).await {
            // An older request may have brought the last byte in the meantime.
            Err(Error::Refused(refusal)) if refusal.code == RefusalCode::UploadNotFound => {}
            settled => settled?,
        }
        match self.find(caller, id).await? {
            Found::Done(file) => Ok(done(&file)),
            Found::Upload(_) => self.progress(id).await,
        }
    }

    /// Whether all is noted, and there is nothing to do.
    async fn is_at_rest(&self, upload: &Resumable) -> Result<bool, Error> {
        let is_whole = upload.offset_bytes == upload.length && upload.kind != Kind::Part;
        if upload.turn.is_some() || is_whole {
            return Ok(false);
        }
        let here = self.blobs.appended(&upload.blob_key, &saved(upload)).await?;
        Ok(u64::try_from(upload.offset_bytes) == Ok(here))
    }

    /// Notes how far an upload is, and makes a file of it if it is whole.
    async fn settle(&self, id: Uuid) -> Result<(), Error> {
        let turn = self.turn(id, turns::Bytes::Plain).await?;
        let appending = turn.open().await?;
        self.end(turn, appending).await
    }

    /// Receives the bytes of one request.
    pub async fn receive<S, E>(
        &self,
        caller: &Caller,
        id: Uuid,
        piece: Piece,
        body: S,
    ) -> Result<Progress, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin + Send + 'static,
        E: std::fmt::Display + Send + 'static,
    {
        let upload = match self.find(caller, id).await? {
            Found::Done(file) => return after_the_end(&file, &piece),
            Found::Upload(upload) => upload,
        };
        if upload.kind == Kind::Joined {
            let message = "This upload is joined from its parts, and takes no bytes";
            return Err(Refusal::new(RefusalCode::JoinedUpload, message).into());
        }
        let length = u64::try_from(upload.length).unwrap_or(0);
        if piece.offset.saturating_add(piece.length.unwrap_or(0)) > length {
            // Refused before any byte is read.
            return Err(too_long(length).into());
        }
        self.disk.require_room().await?;
        let (this, came) = (self.clone(), piece.clone());
        let received = self.run_to_end(async move { this.receive_piece(id, piece, body).await }).await;
        match received {
            // An older request may have brought the last byte in the meantime.
            Err(Error::Refused(refusal)) if refusal.code == RefusalCode::UploadNotFound => {
                match self.find(caller, id).await? {
                    Found::Done(file) => after_the_end(&file, &came),
                    Found::Upload(_) => Err(refusal.into()),
                }
            }
            received => {
                received?;
                self.progress(id).await
            }
        }
    }

    /// Runs to its end even if the caller stops waiting, so that no turn is left and what came is noted.
    async fn run_to_end<F>(&self, work: F) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let done = self.tasks.spawn(work.in_current_span()).await;
        done.unwrap_or_else(|panic| Err(Error::Internal(format!("an upload panicked: {panic}"))))
    }

    async fn receive_piece<S, E>(&self, id: Uuid, piece: Piece, body: S) -> Result<(), Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin + Send,
        E: std::fmt::Display + Send,
    {
        let bytes = if piece.checksum.is_some() { turns::Bytes::Checked } else { turns::Bytes::Plain };
        let turn = self.turn(id, bytes).await?;
        let mut appending = turn.open().await?;
        if appending.offset() != piece.offset {
            let refusal = elsewhere(appending.offset());
            self.end(turn, appending).await?;
            return Err(refusal.into());
        }
        turn.begin_writing(bytes).await?;
        let is_checked = piece.checksum.is_some();
        if is_checked && appending.is_unsaved() {
            // What comes next may have to be taken back to here.
            turn.reach(appending.save().await?).await?;
        }
        let received = self.take_in(&turn, &mut appending, piece.checksum, body).await;
        if is_checked && received.is_err() {
            appending.take_back().await?;
        }
        let ended = self.end(turn, appending).await;
        received.and(ended)
    }

    async fn take_in<S, E>(
        &self,
        turn: &Turn,
        appending: &mut Appending,
        mut checksum: Option<Expected>,
        body: S,
    ) -> Result<(), Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin + Send,
        E: std::fmt::Display + Send,
    {
        let (clock, upload) = (&self.clock, &turn.upload);
        let length = u64::try_from(upload.length).unwrap_or(0);
        let mut body = Body::new(body, self.terms());
        let mut last_sign = clock.now();
        let between_signs = to_delta(SIGN_OF_LIFE.min(self.config.resumable_window / 4));
        let over = turn.is_over();
        tokio::pin!(over);
        while let Some(part) = body.next(&mut over).await? {
            let room = length - appending.offset();
            let fits = part.len() as u64 <= room;
            if fits {
                if let Some(saved) = appending.prepare(part.len()).await? {
                    turn.reach(saved).await?;
                }
                appending.write(&part).await?;
                if let Some(checksum) = &mut checksum {
                    checksum.update(&part);
                }
            } else {
                // A request that brings too much has not told its length before.
                return Err(too_long(length).into());
            }
            let is_time = clock.now() - last_sign > between_signs;
            if checksum.is_none() && (appending.is_due() || is_time) {
                last_sign = clock.now();
                turn.reach(appending.checkpoint().await?).await?;
            } else if is_time {
                last_sign = clock.now();
                self.sign_of_life(upload).await?;
            }
        }
        checksum.map_or(Ok(()), Expected::compare).map_err(Error::from)
    }

    /// The bytes of a request with a checksum are not noted before all have come.
    async fn sign_of_life(&self, upload: &Resumable) -> Result<(), Error> {
        let Some(id) = upload.file() else { return Ok(()) };
        let file = File::find(&mut self.db.read().await?, id).await?.ok_or_else(Refusal::no_such_upload)?;
        let (now, window) = (self.clock.now(), self.config.resumable_window);
        self.db.write(StillArriving { file: id, batch: file.batch_id, now, window }).await
    }

    /// Ends a turn: notes how far the upload is, or makes a file of it if it is whole.
    pub(super) async fn end(&self, turn: Turn, mut appending: Appending) -> Result<(), Error> {
        let is_whole = u64::try_from(turn.upload.length) == Ok(appending.offset());
        if is_whole && turn.upload.kind != Kind::Part {
            return self.finish(turn, appending).await;
        }
        if is_whole {
            if let Some(saved) = appending.begin_finishing() {
                turn.reach(saved).await?;
            }
            appending.seal().await?;
        }
        let saved: Saved = appending.save().await?;
        // The next request opens it, and this one must have closed it then.
        drop(appending);
        turn.leave(saved).await
    }

    /// How far an upload is by its row, or by its file if that is all there is.
    pub(super) async fn progress(&self, id: Uuid) -> Result<Progress, Error> {
        let mut tx = self.db.read().await?;
        let upload = resumable::find(&mut tx, id).await?;
        let file = File::find(&mut tx, id).await?;
        let Some(upload) = upload else {
            return file.as_ref().map(done).ok_or_else(|| Refusal::no_such_upload().into());
        };
        let length = u64::try_from(upload.length).unwrap_or(0);
        let offset = u64::try_from(upload.offset_bytes).unwrap_or(0);
        Ok(Progress {
            id,
            kind: upload.kind,
            length,
            offset: (upload.kind != Kind::Joined).then_some(offset),
            metadata: upload.metadata,
            concat: upload.concat,
            expires_at: upload.expires_at.or_else(|| file.and_then(|file| file.upload_until)),
        })
    }
}

/// A request for an upload that is a file already, because the answer to the last one was lost.
fn after_the_end(file: &File, piece: &Piece) -> Result<Progress, Error> {
    let progress = done(file);
    if piece.offset != progress.length {
        return Err(elsewhere(progress.length).into());
    }
    if piece.length != Some(0) {
        return Err(too_long(progress.length).into());
    }
    Ok(progress)
}

fn elsewhere(offset: u64) -> Refusal {
    let message = format!("The upload is at offset {offset}; go on from there");
    Refusal::new(RefusalCode::OffsetMismatch, message).details(serde_json::json!({ "offset": offset }))
}

fn too_long(length: u64) -> Refusal {
    Refusal::new(RefusalCode::TooLarge, format!("The upload has {length} bytes, and these would be more"))
        .details(serde_json::json!({ "uploadLength": length }))
}
