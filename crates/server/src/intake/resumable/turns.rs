//! One request at a time has the turn to write to an upload, and the newest request gets it: a connection that died without a word
//! looks like one that is slow, and its client must be able to go on at once.
//!
//! In this process the older request is told, and the newer one waits until it has ended. A request in another process finds in
//! the row that another one wants the turn, and ends; the newer one waits for that as well. A turn is worth nothing once its
//! process is gone, and its row says which process that is. A folder also locks what is written, so that a process that was only
//! taken for gone cannot write beside another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Resumables, reached, saved};
use crate::blobs::{Appending, Saved, Unsaved};
use crate::intake::upload::{interrupted, must_await_bytes};
use crate::process::machine::boot_id;
use crate::process::workers;
use crate::records::batch::deadline;
use crate::records::file::File;
use crate::records::files::uploads;
use crate::records::resumable::{self, Resumable};
use landfall_core::clock::{Clock, Stopwatch, Time, to_delta};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::{Db, Durability, Error, Tx, Write};

/// How long an older request may take to end.
const GIVING_WAY: Duration = Duration::from_secs(10);
/// How often a request looks whether one in another process has taken its turn.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is looked whether the older request has ended.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// How long to wait before the end of a turn is written again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The turns of this process.
#[derive(Clone, Default)]
pub struct Turns {
    here: Arc<Mutex<HashMap<Uuid, Here>>>,
    stopping: CancellationToken,
}

struct Here {
    /// Held by the request that has the turn.
    lock: Arc<tokio::sync::Mutex<()>>,
    /// Cancelled when a newer request comes.
    newest: CancellationToken,
    /// The requests that have the turn or wait for it.
    users: usize,
}

/// A place among the requests of this process.
struct Place {
    turns: Turns,
    upload: Uuid,
    given_up: CancellationToken,
}

impl Turns {
    /// Ends all requests, because the process stops. What they brought is noted.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    fn here(&self) -> MutexGuard<'_, HashMap<Uuid, Here>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the requests of this process that came before, and waits until they have ended.
    async fn enter(&self, upload: Uuid) -> Result<(Place, OwnedMutexGuard<()>), Error> {
        let given_up = CancellationToken::new();
        let lock = {
            let mut here = self.here();
            let here = here.entry(upload).or_insert_with(Here::new);
            std::mem::replace(&mut here.newest, given_up.clone()).cancel();
            here.users += 1;
            here.lock.clone()
        };
        let place = Place { turns: self.clone(), upload, given_up };
        tokio::select! {
            guard = lock.lock_owned() => Ok((place, guard)),
            () = place.given_up.cancelled() => Err(overtaken().into()),
            () = Clock::System.sleep(GIVING_WAY) => Err(busy().into()),
        }
    }

    /// Enters only if there is no other request.
    fn enter_if_free(&self, upload: Uuid) -> Option<(Place, OwnedMutexGuard<()>)> {
        let mut here = self.here();
        if here.contains_key(&upload) {
            return None;
        }
        let entry = here.entry(upload).or_insert_with(Here::new);
        let guard = entry.lock.clone().try_lock_owned().ok()?;
        entry.users += 1;
        let place = Place { turns: self.clone(), upload, given_up: entry.newest.clone() };
        Some((place, guard))
    }
}

impl Here {
    fn new() -> Self {
        Self { lock: Arc::default(), newest: CancellationToken::new(), users: 0 }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut here = self.turns.here();
        if let Some(entry) = here.get_mut(&self.upload) {
            entry.users -= 1;
            if entry.users == 0 {
                here.remove(&self.upload);
            }
        }
    }
}

pub(super) fn overtaken() -> Refusal {
    let message = "A newer request for this upload has taken over; ask for the offset and go on from there";
    Refusal::new(RefusalCode::UploadLocked, message).retryable()
}

fn busy() -> Refusal {
    let message = "An older request for this upload has not ended yet; try again in a moment";
    Refusal::new(RefusalCode::UploadLocked, message).retryable()
}

/// The turn of one request. It ends when this is dropped, whatever happened.
pub(super) struct Turn {
    pub id: Uuid,
    /// The upload as it was before.
    pub upload: Resumable,
    /// Whether its row still says that it is our turn, as far as we know.
    is_noted: bool,
    resumables: Resumables,
    place: Place,
    /// The next request of this process waits for it. The last to be dropped.
    _guard: OwnedMutexGuard<()>,
}

/// Which bytes a request is going to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bytes {
    /// Each counts as soon as it is written.
    Plain,
    /// They count only together, if they have the checksum of the request.
    Checked,
}

impl Resumables {
    /// Takes the turn from the request that has it.
    pub(super) async fn turn(&self, upload: Uuid, bytes: Bytes) -> Result<Turn, Error> {
        let (place, guard) = self.turns.enter(upload).await?;
        let taken = self.take(upload, place, guard, bytes, false).await?;
        taken.ok_or_else(|| busy().into())
    }

    /// Takes the turn if no one has it.
    pub(super) async fn turn_if_free(&self, upload: Uuid) -> Result<Option<Turn>, Error> {
        let Some((place, guard)) = self.turns.enter_if_free(upload) else { return Ok(None) };
        self.take(upload, place, guard, Bytes::Plain, true).await
    }

    async fn take(
        &self,
        upload: Uuid,
        place: Place,
        guard: OwnedMutexGuard<()>,
        bytes: Bytes,
        only_if_free: bool,
    ) -> Result<Option<Turn>, Error> {
        let id = self.clock.new_id();
        let waiting = Stopwatch::start();
        loop {
            let take = Take {
                upload,
                turn: id,
                worker: self.liveness.identity().id,
                is_unverified: bytes == Bytes::Checked,
                only_if_free,
            };
            match self.db.write(take).await {
                Ok(Some(before)) => {
                    let resumables = self.clone();
                    let turn = Turn { id, upload: before, is_noted: true, resumables, place, _guard: guard };
                    return Ok(Some(turn));
                }
                Ok(None) if only_if_free => return Ok(None),
                Ok(None) => {}
                Err(error) => {
                    if !matches!(error, Error::Refused(_)) {
                        // Whether the row was written is unknown.
                        forget(self, upload, id);
                    }
                    return Err(error);
                }
            }
            self.await_end(upload, id, &place, &waiting).await?;
        }
    }

    /// Waits until the request in another process that has the turn has ended.
    async fn await_end(
        &self,
        upload: Uuid,
        turn: Uuid,
        place: &Place,
        waiting: &Stopwatch,
    ) -> Result<(), Error> {
        loop {
            tokio::select! {
                () = Clock::System.sleep(ASK_AGAIN) => {}
                () = place.given_up.cancelled() => return Err(overtaken().into()),
            }
            let mut tx = self.db.read().await?;
            let found = resumable::find(&mut tx, upload).await?.ok_or_else(Refusal::no_such_upload)?;
            if found.turn.is_none() || !resumable::is_held(&mut tx, upload).await? {
                return Ok(());
            }
            if found.wanted != Some(turn) {
                return Err(overtaken().into());
            }
            if waiting.elapsed() > GIVING_WAY {
                return Err(busy().into());
            }
        }
    }
}

impl Turn {
    /// Opens the upload, once the request that had the turn before has stopped writing to it.
    pub async fn open(&self) -> Result<Appending, Error> {
        let Resumable { blob_key, boot, is_unverified, .. } = &self.upload;
        let is_right = boot == boot_id() && !is_unverified;
        let unsaved = if is_right { Unsaved::Keep } else { Unsaved::Discard };
        let saved = saved(&self.upload);
        let length = u64::try_from(self.upload.length).unwrap_or(0);
        let waiting = Stopwatch::start();
        loop {
            if let Some(appending) = self.resumables.blobs.append(blob_key, &saved, unsaved, length).await? {
                return Ok(appending);
            }
            if waiting.elapsed() > GIVING_WAY {
                return Err(busy().into());
            }
            tokio::select! {
                () = Clock::System.sleep(ASK_AGAIN) => {}
                () = self.place.given_up.cancelled() => return Err(overtaken().into()),
            }
        }
    }

    /// Notes what is true of the bytes that are written next, where it is not what the row says.
    pub async fn begin_writing(&self, bytes: Bytes) -> Result<(), Error> {
        let is_unverified = bytes == Bytes::Checked;
        let is_noted = self.upload.boot == boot_id() && (!self.upload.is_unverified || is_unverified);
        let note = Note { upload: self.upload.id, turn: self.id, is_unverified };
        if is_noted || self.resumables.db.write(note).await? { Ok(()) } else { Err(overtaken().into()) }
    }

    /// Resolves when another request has the turn.
    pub async fn is_over(&self) -> Refusal {
        let looks = async {
            loop {
                Clock::System.sleep(LOOK).await;
                // A database that does not answer takes no turn away.
                if matches!(self.look().await, Ok(false)) {
                    return;
                }
            }
        };
        tokio::select! {
            () = self.place.given_up.cancelled() => overtaken(),
            () = looks => overtaken(),
            () = self.place.turns.stopping.cancelled() => {
                let message = "The server stops; ask for the offset and go on from there";
                Refusal::new(RefusalCode::UploadInterrupted, message).retryable()
            }
        }
    }

    async fn look(&self) -> Result<bool, Error> {
        resumable::keeps_turn(&mut self.resumables.db.read().await?, self.upload.id, self.id).await
    }

    /// Notes how far the upload is. A sign of life of its file.
    pub async fn reach(&self, saved: Saved) -> Result<(), Error> {
        let reach = self.reaching(saved, false);
        self.resumables.db.write(reach).await
    }

    /// The same at the end of the turn.
    pub async fn leave(mut self, saved: Saved) -> Result<(), Error> {
        let reach = self.reaching(saved, true);
        self.resumables.db.write(reach).await?;
        self.is_noted = false;
        Ok(())
    }

    fn reaching(&self, saved: Saved, is_last: bool) -> Reach {
        Reach {
            upload: self.upload.id,
            file: self.upload.file(),
            turn: self.id,
            reached: reached(saved),
            is_last,
            window: self.resumables.config.resumable_window,
            now: self.resumables.clock.now(),
        }
    }

    /// The row is gone, and the turn with it.
    pub fn is_gone(&mut self) {
        self.is_noted = false;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_noted {
            forget(&self.resumables, self.upload.id, self.id);
        }
    }
}

/// Writes the end of a turn of which the row may still tell.
fn forget(resumables: &Resumables, upload: Uuid, turn: Uuid) {
    let db: Db = resumables.db.clone();
    resumables.tasks.spawn(async move {
        while let Err(error) = db.write(Leave { upload, turn }).await {
            tracing::debug!(%error, "the end of a request for an upload could not be written yet");
            Clock::System.sleep(TRY_AGAIN).await;
        }
    });
}

/// Takes the turn. Returns the upload as it was, or `None` while a request in another process has the turn, which is told to end
/// unless it may keep it.
struct Take {
    upload: Uuid,
    turn: Uuid,
    worker: Uuid,
    is_unverified: bool,
    only_if_free: bool,
}

impl Write for Take {
    type Output = Option<Resumable>;

    fn durability(&self) -> Durability {
        // It means nothing after the process has ended.
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<Option<Resumable>, Error> {
        // A process that was declared dead would lose the turn at once.
        if !workers::hold(tx, self.worker).await? {
            return Err(interrupted());
        }
        let upload = resumable::lock(tx, self.upload).await?.ok_or_else(Refusal::no_such_upload)?;
        // A turn of this process that is still noted is one whose end could not be written.
        let is_elsewhere = upload.worker_id.is_some_and(|worker| worker != self.worker);
        if is_elsewhere && resumable::is_held(tx, self.upload).await? {
            if !self.only_if_free {
                resumable::want_turn(tx, self.upload, self.turn).await?;
            }
            return Ok(None);
        }
        resumable::take_turn(tx, self.upload, (self.turn, self.worker), self.is_unverified).await?;
        Ok(Some(upload))
    }
}

struct Note {
    upload: Uuid,
    turn: Uuid,
    is_unverified: bool,
}

impl Write for Note {
    type Output = bool;

    fn durability(&self) -> Durability {
        // After a power cut the row says that bytes which were not synced are not to be trusted.
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        resumable::note_writer(tx, self.upload, self.turn, boot_id(), self.is_unverified).await
    }
}

struct Reach {
    upload: Uuid,
    file: Option<Uuid>,
    turn: Uuid,
    reached: resumable::Reached,
    is_last: bool,
    window: Duration,
    now: Time,
}

impl Write for Reach {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let until = self.now + to_delta(self.window);
        if let Some(id) = self.file {
            let file = File::lock(tx, id).await?.ok_or_else(Refusal::no_such_upload)?;
            must_await_bytes(tx, &file).await?;
            uploads::set_deadline(tx, id, until, self.now).await?;
            deadline::extend(tx, file.batch_id, self.window, self.now).await?;
        }
        if !resumable::reach(tx, self.upload, self.turn, &self.reached, until, self.now).await? {
            return Err(overtaken().into());
        }
        if self.is_last {
            resumable::leave(tx, self.upload, self.turn, true).await?;
        }
        Ok(())
    }
}

struct Leave {
    upload: Uuid,
    turn: Uuid,
}

impl Write for Leave {
    type Output = ();

    fn durability(&self) -> Durability {
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        resumable::leave(tx, self.upload, self.turn, false).await
    }
}
