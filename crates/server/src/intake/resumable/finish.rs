//! Makes a file of the bytes of an upload: they become a blob, the file's row learns of it, and the file is confirmed as if its
//! owner had done it. Then what is left of the upload is removed. Each step finds what the one before it left, so all of it may
//! be repeated.

use std::time::Duration;

use uuid::Uuid;

use super::turns::{Turn, overtaken};
use super::{Resumables, as_caller, saved};
use crate::blobs::Appending;
use crate::intake::confirm;
use crate::intake::delete::{self, Cause};
use crate::intake::upload::{check_sums, must_await_bytes, note_arrived};
use crate::records::file::{File, StoredBytes};
use crate::records::resumable::{self, Kind};
use crate::telemetry::spans;
use landfall_api::uploads::ConfirmRequest;
use landfall_core::actor::Actor;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Status;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::{Error, Tx, Write};
use tracing::Instrument;

impl Resumables {
    /// Makes a file of an upload that is whole, if no request has the turn. Returns whether it is a file now.
    pub async fn complete(&self, id: Uuid) -> Result<bool, Error> {
        let Some(upload) = resumable::find(&mut self.db.read().await?, id).await? else { return Ok(false) };
        if upload.kind == Kind::Joined {
            return self.join(id).await;
        }
        let here = self.blobs.appended(&upload.blob_key, &saved(&upload)).await?;
        if upload.kind == Kind::Part || u64::try_from(upload.length) != Ok(here) {
            return Ok(false);
        }
        let Some(turn) = self.turn_if_free(id).await? else { return Ok(false) };
        let appending = turn.open().await?;
        let is_whole = u64::try_from(turn.upload.length) == Ok(appending.offset());
        self.end(turn, appending).await?;
        Ok(is_whole)
    }

    pub(super) async fn finish(&self, mut turn: Turn, mut appending: Appending) -> Result<(), Error> {
        let id = turn.upload.id;
        let file = File::find(&mut self.db.read().await?, id).await?.ok_or_else(Refusal::no_such_upload)?;
        let span = spans::in_request("upload", &file.traced());
        let arriving = async {
            if file.status == Status::Registered {
                if let Some(saved) = appending.begin_finishing() {
                    turn.reach(saved).await?;
                }
                let stored = appending.publish(|stored| check_sums(stored, &file, None)).await?;
                let arrived = Arrived {
                    file: id,
                    turn: turn.id,
                    bytes: stored.under(turn.upload.blob_key.clone()),
                    window: self.config.resumable_window,
                    now: self.clock.now(),
                };
                self.db.write(arrived).await?;
            }
            Ok(())
        };
        let arrived: Result<(), Error> = arriving.instrument(span).await;
        drop(appending);
        match arrived {
            Ok(()) => {}
            Err(Error::Refused(refusal)) if refusal.code == RefusalCode::ChecksumMismatch => {
                // No bytes that are sent from here on can make it right.
                self.db.write(Spoilt { file: id, turn: turn.id, now: self.clock.now() }).await?;
                self.clear(id).await?;
                turn.is_gone();
                return Err(Error::Refused(refusal));
            }
            Err(error) => return Err(error),
        }
        let owner = as_caller(turn.upload.owner());
        let request = ConfirmRequest::default();
        confirm::confirm(&self.db, &self.blobs, &owner, id, None, &request, &self.clock).await?;
        // The file is in the queue. What remains is only cleaning up, which a sweep does as well.
        match self.clear(id).await {
            Ok(()) => turn.is_gone(),
            Err(error) => {
                tracing::warn!(fileId = %id, %error, "what is left of an upload could not be removed yet");
            }
        }
        Ok(())
    }
}

/// The whole upload is in the storage.
struct Arrived {
    file: Uuid,
    turn: Uuid,
    bytes: StoredBytes,
    window: Duration,
    now: Time,
}

impl Write for Arrived {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let file = File::lock(tx, self.file).await?.ok_or_else(Refusal::no_such_upload)?;
        must_await_bytes(tx, &file).await?;
        if !resumable::has_turn(tx, self.file, self.turn).await? {
            return Err(overtaken().into());
        }
        if file.blob_key.as_ref() == Some(&self.bytes.key) {
            return Ok(());
        }
        note_arrived(tx, vec![(file, &self.bytes)], self.window, self.now).await.map(drop)
    }
}

/// The bytes are others than those that were declared.
struct Spoilt {
    file: Uuid,
    turn: Uuid,
    now: Time,
}

impl Write for Spoilt {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let Some(file) = File::lock(tx, self.file).await? else { return Ok(()) };
        if file.status != Status::Registered || !resumable::has_turn(tx, self.file, self.turn).await? {
            return Ok(());
        }
        let cause =
            Cause { name: None, reason: Some("Its bytes did not have the checksum that was declared") };
        delete::bury(tx, vec![file], &Actor::system("uploads"), Some(cause), self.now).await.map(drop)
    }
}
