//! A file receives one upload at a time, whichever process it comes to. Small uploads that come at once are the exception.
//!
//! The place is a row (`records/files/arriving.rs`) that counts while its process is known. An upload whose bytes are all here
//! before it takes the place needs none: it is over at once, and refused at its end if the file receives another one. A second
//! upload is refused while the first one brings bytes. A connection that died without a word looks like one that is slow, so an
//! upload that has been silent for a while gives way to another one in the same process; in another process it ends by its stall.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::records::file::File;
use crate::records::files::arriving;
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::{Db, Durability, Error, Joint, Tx, Write};

/// An upload that brought nothing for so long gives way to another one of the same file.
const SILENCE: Duration = Duration::from_secs(10);
/// How long an upload may take to give way.
const GIVING_WAY: Duration = Duration::from_secs(5);
/// How long to wait before the end of an upload is written again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The uploads that arrive in this process.
#[derive(Clone, Default)]
pub struct Arrivals {
    here: Arc<Mutex<HashMap<Uuid, Arc<Arrival>>>>,
    /// For each file, the upload whose end could not be written yet.
    left: Arc<Mutex<HashMap<Uuid, Uuid>>>,
}

struct Arrival {
    last_bytes_at: Mutex<Time>,
    /// Another upload wants the place.
    gives_way: CancellationToken,
    ended: CancellationToken,
}

/// What an upload needs to take its place.
pub struct Arriving<'a> {
    pub db: &'a Db,
    pub clock: &'a Clock,
    pub tasks: &'a TaskTracker,
    pub file: Uuid,
    pub upload: Uuid,
    pub worker: Uuid,
}

impl Arrivals {
    /// Takes the place of the file's only upload in this process, or refuses.
    pub async fn enter(&self, arriving: Arriving<'_>) -> Result<Place, Error> {
        let Arriving { db, clock, tasks, file, upload, worker } = arriving;
        let arrival = self.take(file, clock).await?;
        let (arrivals, db, tasks) = (self.clone(), db.clone(), tasks.clone());
        Ok(Place { arrivals, arrival, db, tasks, file, upload, worker, is_noted: false })
    }

    async fn take(&self, file: Uuid, clock: &Clock) -> Result<Arc<Arrival>, Error> {
        loop {
            let earlier = {
                let mut here = self.here();
                match here.get(&file) {
                    Some(earlier) => earlier.clone(),
                    None => {
                        let arrival = Arc::new(Arrival::new(clock.now()));
                        here.insert(file, arrival.clone());
                        return Ok(arrival);
                    }
                }
            };
            if clock.now() - earlier.last_bytes_at() < to_delta(SILENCE) {
                return Err(in_progress());
            }
            earlier.gives_way.cancel();
            tokio::select! {
                () = earlier.ended.cancelled() => {}
                () = Clock::System.sleep(GIVING_WAY) => return Err(in_progress()),
            }
        }
    }

    fn left(&self) -> MutexGuard<'_, HashMap<Uuid, Uuid>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn here(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Arrival>>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn in_progress() -> Error {
    let message = "Another upload of this file is arriving. Wait for its end; if its connection was lost, send the bytes \
        again in a few seconds";
    Refusal::new(RefusalCode::UploadInProgress, message).retryable().into()
}

impl Arrival {
    fn new(now: Time) -> Self {
        Self {
            last_bytes_at: Mutex::new(now),
            gives_way: CancellationToken::new(),
            ended: CancellationToken::new(),
        }
    }

    fn last_bytes_at(&self) -> Time {
        *self.last_bytes_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of the file's only upload. It is free again when this is dropped, whatever happened.
pub struct Place {
    arrivals: Arrivals,
    arrival: Arc<Arrival>,
    db: Db,
    tasks: TaskTracker,
    file: Uuid,
    upload: Uuid,
    worker: Uuid,
    /// Whether there may be a row.
    is_noted: bool,
}

impl Place {
    /// Takes the place of the file's only upload in all processes, or refuses.
    pub async fn note(&mut self, now: Time) -> Result<(), Error> {
        let left = self.arrivals.left().get(&self.file).copied();
        let Self { file, upload, worker, .. } = *self;
        // If there is no answer, whether the row was written is unknown.
        self.is_noted = true;
        self.is_noted = self.db.write_jointly(Begin { file, upload, worker, left, now }).await?;
        if self.is_noted { Ok(()) } else { Err(in_progress()) }
    }

    /// Whether other processes know of this upload.
    pub fn is_noted(&self) -> bool {
        self.is_noted
    }

    /// Bytes have come.
    pub fn bytes_came(&self, now: Time) {
        *self.arrival.last_bytes_at.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Resolves when this upload must end for another one.
    pub async fn must_give_way(&self) {
        self.arrival.gives_way.cancelled().await;
    }

    /// The row is gone already.
    pub fn left(mut self) {
        self.is_noted = false;
    }

    /// Frees the place, so that the client can send the bytes again as soon as it has the response.
    pub async fn leave(mut self) {
        if self.is_noted {
            let end = End { file: self.file, upload: self.upload };
            self.is_noted = self.db.write(end).await.is_err();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_noted {
            let (db, arrivals, file, upload) =
                (self.db.clone(), self.arrivals.clone(), self.file, self.upload);
            arrivals.left().insert(file, upload);
            self.tasks.spawn(async move {
                while let Err(error) = db.write(End { file, upload }).await {
                    tracing::debug!(%error, "the end of an upload could not be written yet");
                    Clock::System.sleep(TRY_AGAIN).await;
                }
                let mut left = arrivals.left();
                if left.get(&file) == Some(&upload) {
                    left.remove(&file);
                }
            });
        }
        self.arrivals.here().remove(&self.file);
        self.arrival.ended.cancel();
    }
}

/// Notes the upload, unless the file receives another one.
struct Begin {
    file: Uuid,
    upload: Uuid,
    worker: Uuid,
    /// An upload of the file whose end could not be written yet.
    left: Option<Uuid>,
    now: Time,
}

impl Joint for Begin {
    type Output = bool;

    /// They wait for no row, but one transaction costs less than many.
    fn key(&self) -> &'static str {
        ""
    }

    fn durability(&self) -> Durability {
        Durability::Ephemeral
    }

    async fn apply_all(these: &[&Self], tx: &mut Tx) -> Result<Vec<bool>, Error> {
        // A process that was declared dead would lose the place at once.
        super::upload::hold_workers(tx, these.iter().map(|one| one.worker)).await?;
        let left: Vec<(Uuid, Uuid)> = these.iter().filter_map(|one| Some((one.file, one.left?))).collect();
        if !left.is_empty() {
            arriving::end(tx, left.into_iter()).await?;
        }
        // In the order of their ids, so that two processes never wait for one another. Files before their uploads, for the
        // same reason: a row of an upload holds its file.
        let mut by_file: Vec<&&Self> = these.iter().collect();
        by_file.sort_by_key(|one| one.file);
        let files: Vec<Uuid> = by_file.iter().map(|one| one.file).collect();
        File::hold_all(tx, &files).await?;
        let uploads = by_file.into_iter().map(|one| arriving::Beginning {
            file: one.file,
            upload: one.upload,
            worker: one.worker,
            now: one.now,
        });
        let noted = arriving::begin(tx, uploads).await?;
        Ok(these.iter().map(|one| noted.contains(&one.file)).collect())
    }
}

struct End {
    file: Uuid,
    upload: Uuid,
}

impl Write for End {
    type Output = ();

    fn durability(&self) -> Durability {
        Durability::Ephemeral
    }

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        arriving::end(tx, std::iter::once((self.file, self.upload))).await
    }
}
