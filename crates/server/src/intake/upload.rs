//! Receives the bytes: they are checked while they arrive, and are on disk before the row says so.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use uuid::Uuid;

use super::arrivals::{self, Arrivals, Arriving, Place};
use super::body::{Body, Terms};
use crate::blobs::{Blobs, Incoming, Stored};
use crate::process::disk_space::DiskSpace;
use crate::process::workers;
use crate::records::batch::deadline;
use crate::records::events;
use crate::records::file::{File, StoredBytes};
use crate::records::files::{arriving, uploads};
use crate::records::moves::{self, Change, Move};
use crate::telemetry::spans;
use landfall_core::actor::Actor;
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_core::lifecycle::{Status, Transition};
use landfall_core::mutants::{self, Mutant};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;
use landfall_store::{Db, Joint, Tx, Write};

/// How often a slow upload extends the deadline of its file; more often if the confirm window is short.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// An upload of up to so many bytes may come as a whole.
const WHOLE_BYTES: u64 = 64 * 1024;
/// How long the server waits for all of its bytes.
pub const WHOLE_WITHIN: Duration = Duration::from_millis(50);

/// How long to wait before checking again whether an upload with a lost reply was committed.
const SETTLE_AGAIN: Duration = Duration::from_secs(1);

/// Receives the body of an upload. If it is refused or interrupted, it leaves nothing behind and the file is
/// unchanged.
pub struct Upload {
    pub db: Db,
    pub blobs: Blobs,
    pub clock: Clock,
    /// The process that receives the bytes, and the tracker of its uploads under way.
    pub owner: Uuid,
    pub tasks: TaskTracker,
    pub arrivals: Arrivals,
    pub disk: DiskSpace,
    pub confirm_window: Duration,
    /// How long the upload may go without new bytes.
    pub stall: Duration,
    /// The bytes a second that the client must send.
    pub min_rate: u64,
    /// A small upload whose bytes all come within this time need not take its place in all processes.
    pub whole_within: Duration,
    pub file: Uuid,
    pub size: i64,
    pub md5: Option<String>,
}

impl Upload {
    /// Runs to its end even if the caller stops waiting: a client that disconnects after its last byte must not leave
    /// bytes that no row refers to.
    pub async fn receive<S, E>(self, body: S) -> Result<Stored, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin + Send + 'static,
        E: std::fmt::Display + Send + 'static,
    {
        let tasks = self.tasks.clone();
        tasks
            .spawn(async move { self.run(body).await }.in_current_span())
            .await
            .unwrap_or_else(|panic| Err(Error::Internal(format!("an upload panicked: {panic}"))))
    }

    async fn run<S, E>(self, body: S) -> Result<Stored, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin + Send,
        E: std::fmt::Display + Send,
    {
        let file = awaiting_bytes(&mut self.db.look_up().await?, self.file).await?;
        let span = spans::in_request("upload", &file.traced());
        let upload = self.clock.new_id();
        let arriving = Arriving {
            db: &self.db,
            clock: &self.clock,
            tasks: &self.tasks,
            file: self.file,
            upload,
            worker: self.owner,
        };
        let mut place = self.arrivals.enter(arriving).await?;
        let taken_in = self.take_in(&file, upload, &mut place, body).instrument(span).await;
        match &taken_in {
            // The transaction that wrote the key has also freed the place.
            Ok(_) => place.left(),
            Err(_) => place.leave().await,
        }
        taken_in
    }

    async fn take_in<S, E>(
        &self,
        file: &File,
        upload: Uuid,
        place: &mut Place,
        body: S,
    ) -> Result<Stored, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin + Send,
        E: std::fmt::Display + Send,
    {
        let (db, blobs, clock, owner, id) = (&self.db, &self.blobs, &self.clock, self.owner, self.file);
        let expected = self.size.unsigned_abs();

        self.disk.require_room().await?;
        let terms = Terms {
            clock: clock.clone(),
            disk: self.disk.clone(),
            stall: self.stall,
            min_rate: self.min_rate,
        };
        let mut body = Body::new(body, terms);
        let First { parts, is_all } = self.first(&mut body, place).await?;
        if !is_all {
            place.note(clock.now()).await?;
        }
        let key = Blobs::key(id, upload);
        let mut incoming =
            if is_all { blobs.receive_whole(owner, &key).await? } else { blobs.receive(owner, &key).await? };
        for part in parts {
            incoming.write(&part).await?;
        }
        let mut last_sign = clock.now();
        let between_signs = to_delta(SIGN_OF_LIFE.min(self.confirm_window / 4));
        while !is_all && let Some(part) = self.part(&mut body, place, incoming.size()).await? {
            incoming.write(&part).await?;
            if clock.now() - last_sign > between_signs {
                last_sign = clock.now();
                let (now, window) = (last_sign, self.confirm_window);
                db.write(StillArriving { file: id, batch: file.batch_id, now, window }).await?;
            }
        }
        if incoming.size() != expected {
            return Err(wrong_size(expected, format!("{}", incoming.size())));
        }

        let unsettled = |incoming| {
            let (db, blobs, key) = (db.clone(), blobs.clone(), key.clone());
            self.tasks.spawn(Unsettled { file: id, key, db, blobs, incoming }.settle().in_current_span());
        };
        let published = incoming.publish(|stored| check_sums(stored, file, self.md5.as_deref())).await;
        let stored = match published {
            Ok(stored) => stored,
            // The storage may have the bytes all the same. No row will refer to them.
            Err(error @ (Error::Storage { .. } | Error::StorageFull { .. }))
                if incoming.may_be_stored() && !mutants::on(Mutant::ForgottenUpload) =>
            {
                unsettled(incoming);
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        let arrived = Arrived {
            tenant: file.tenant_id.clone(),
            file: id,
            owner,
            upload,
            is_noted: place.is_noted(),
            bytes: stored.clone().under(key.clone()),
            now: clock.now(),
            window: self.confirm_window,
        };
        match db.write_jointly(arrived).await {
            Ok(replaced) => {
                // The row knows the new bytes, so the upload is done, whether or not the old ones can be removed now.
                match replaced {
                    Some(old) if blobs.remove(&old).await.is_err() => unsettled(incoming),
                    _ => incoming.finish().await,
                }
                Ok(stored)
            }
            Err(error @ Error::Refused(_)) => {
                // The row does not refer to these bytes, so no sweep would remove them.
                match blobs.remove(&key).await {
                    Ok(()) => incoming.finish().await,
                    Err(_) => unsettled(incoming),
                }
                Err(error)
            }
            // The reply is lost, so it is unknown whether the row refers to these bytes. They stay unfinished, and
            // are checked as soon as the database replies, or after this process has ended.
            Err(error) => {
                unsettled(incoming);
                Err(error)
            }
        }
    }
}

/// What of an upload came at once.
struct First {
    parts: Vec<Bytes>,
    is_all: bool,
}

impl Upload {
    /// Waits for all bytes of a small upload. Nearly always they come with the request.
    async fn first<S, E>(&self, body: &mut Body<S>, place: &Place) -> Result<First, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
        E: std::fmt::Display,
    {
        let mut parts = Vec::new();
        let mut came = 0;
        if self.size.unsigned_abs() > WHOLE_BYTES || self.whole_within.is_zero() {
            return Ok(First { parts, is_all: false });
        }
        let mut over = pin!(Clock::System.sleep(self.whole_within));
        loop {
            tokio::select! {
                biased;
                part = self.part(body, place, came) => {
                    let Some(part) = part? else { return Ok(First { parts, is_all: true }) };
                    came += part.len() as u64;
                    parts.push(part);
                }
                () = &mut over => return Ok(First { parts, is_all: false }),
            }
        }
    }

    /// The next bytes, after so many, or `None` at the end. More than were declared are refused.
    async fn part<S, E>(&self, body: &mut Body<S>, place: &Place, came: u64) -> Result<Option<Bytes>, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
        E: std::fmt::Display,
    {
        let expected = self.size.unsigned_abs();
        let Some(part) = body.next(gives_way(place)).await? else { return Ok(None) };
        if came + part.len() as u64 > expected {
            return Err(wrong_size(expected, "more".to_owned()));
        }
        place.bytes_came(self.clock.now());
        Ok(Some(part))
    }
}

async fn gives_way(place: &Place) -> Refusal {
    place.must_give_way().await;
    let message = "No bytes arrived for a while, and another upload of the file has taken the place";
    Refusal::new(RefusalCode::UploadBroken, message).retryable()
}

/// The refusal by a process that others took for dead.
pub(super) fn interrupted() -> Error {
    let message = "The server was interrupted; send the bytes again";
    Refusal::new(RefusalCode::UploadInterrupted, message).retryable().into()
}

/// An upload with a lost reply: it is unknown whether its row refers to it.
struct Unsettled {
    file: Uuid,
    key: String,
    db: Db,
    blobs: Blobs,
    incoming: Incoming,
}

impl Unsettled {
    /// Settles the upload, and retries until the database is back.
    async fn settle(self) {
        while let Err(error) = self.try_to_settle().await {
            tracing::debug!(%error, "an upload could not be settled yet");
            Clock::System.sleep(SETTLE_AGAIN).await;
        }
        self.incoming.finish().await;
    }

    async fn try_to_settle(&self) -> Result<(), Error> {
        self.db.write(Ended { file: self.file }).await?;
        settle_unfinished(&self.db, &self.blobs, &self.key).await
    }
}

/// Waits for the lock on the file's row. A commit whose reply was lost may still be running, and holds the lock
/// until it succeeds or fails.
struct Ended {
    file: Uuid,
}

impl Write for Ended {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        File::lock(tx, self.file).await.map(drop)
    }
}

/// Settles an upload that no task will write to its row any more. Blobs that the row does not refer to are removed,
/// and so is an earlier upload that was replaced and not yet removed.
///
/// The storage is listed first, then the uploads under way, and the row is read last. So a stored blob that is
/// neither under way nor in the row is orphaned. Another upload that arrives in the meantime is either not listed,
/// or under way, or in the row.
pub async fn settle_unfinished(db: &Db, blobs: &Blobs, key: &str) -> Result<(), Error> {
    let Some(id) = Blobs::file_of(key) else { return Ok(()) };
    let stored = blobs.keys_of(id).await?;
    let under_way = blobs.unfinished().await?;
    let known = File::find(&mut db.read().await?, id).await?.and_then(|file| file.blob_key);
    for other in stored {
        let is_others = (other != key && under_way.iter().any(|upload| upload.key == other))
            // The client sends it to the object store itself.
            || other == Blobs::direct_key(id);
        if !is_others && known.as_ref() != Some(&other) {
            blobs.remove(&other).await?;
        }
    }
    Ok(())
}

/// The file, if its bytes can still be sent.
pub async fn awaiting_bytes(tx: &mut Tx, id: Uuid) -> Result<File, Error> {
    let file = File::find(tx, id).await?.ok_or_else(Refusal::no_such_file)?;
    must_await_bytes(tx, &file).await?;
    Ok(file)
}

pub(super) async fn must_await_bytes(tx: &mut Tx, file: &File) -> Result<(), Error> {
    match file.status {
        Status::Registered | Status::Uploaded => Ok(()),
        Status::Deleted => Err(events::gone(tx, file.id).await?.into()),
        other => Err(Refusal::new(
            RefusalCode::InvalidState,
            format!("This file is {other}: its bytes are confirmed and cannot be replaced"),
        )
        .details(serde_json::json!({ "status": other }))
        .into()),
    }
}

fn wrong_size(expected: u64, actual: String) -> Error {
    Refusal::new(RefusalCode::SizeMismatch, format!("{expected} bytes were declared, {actual} arrived"))
        .retryable()
        .into()
}

/// Compares what arrived with what was declared: at the registration, and with the bytes.
pub fn check_sums(stored: &Stored, file: &File, md5: Option<&str>) -> Result<(), Refusal> {
    let declared = [
        ("MD5", &stored.md5, file.declared_md5.as_deref()),
        ("MD5", &stored.md5, md5),
        ("SHA-256", &stored.sha256, file.declared_sha256.as_deref()),
    ];
    for (kind, arrived, declared) in declared {
        if let Some(declared) = declared
            && declared != arrived
        {
            let message =
                format!("The {kind} {declared} was declared; the bytes that arrived have {arrived}");
            return Err(Refusal::new(RefusalCode::ChecksumMismatch, message).retryable());
        }
    }
    Ok(())
}

/// Extends the deadline while bytes keep arriving: the upload is slow, not abandoned.
pub(super) struct StillArriving {
    pub file: Uuid,
    pub batch: Option<Uuid>,
    pub now: Time,
    pub window: Duration,
}

impl Write for StillArriving {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        uploads::extend_deadline(tx, self.file, self.now + to_delta(self.window), self.now).await?;
        deadline::extend(tx, self.batch, self.window, self.now).await
    }
}

/// Whether these processes are known. Others clean up after a process that was declared dead, and after that its uploads
/// are refused. Their rows stay locked until the transaction ends.
pub(super) async fn hold_workers(tx: &mut Tx, workers: impl Iterator<Item = Uuid>) -> Result<(), Error> {
    // Nearly always one. In the order of their ids, so that two transactions never wait for one another.
    let workers: BTreeSet<Uuid> = workers.collect();
    for worker in workers {
        if !workers::hold(tx, worker).await? {
            return Err(interrupted());
        }
    }
    Ok(())
}

/// The whole upload is in the storage. Returns the key of an earlier upload that it replaces.
struct Arrived {
    /// Of the file.
    tenant: String,
    file: Uuid,
    owner: Uuid,
    upload: Uuid,
    /// Whether it took its place in all processes before.
    is_noted: bool,
    bytes: StoredBytes,
    now: Time,
    window: Duration,
}

/// Those of one tenant together: they would wait for one another at the totals of their users.
impl Joint for Arrived {
    type Output = Option<String>;

    fn key(&self) -> &str {
        &self.tenant
    }

    async fn apply_all(these: &[&Self], tx: &mut Tx) -> Result<Vec<Self::Output>, Error> {
        hold_workers(tx, these.iter().map(|one| one.owner)).await?;
        let ids: Vec<Uuid> = these.iter().map(|one| one.file).collect();
        let mut files: HashMap<Uuid, File> =
            File::lock_all(tx, &ids).await?.into_iter().map(|file| (file.id, file)).collect();
        let mut arrived = Vec::with_capacity(these.len());
        for one in these {
            // A file receives one upload at a time, so each is here once.
            let file = files.remove(&one.file).ok_or_else(Refusal::no_such_file)?;
            // While the bytes arrived, the file may have been deleted, or confirmed with other bytes.
            must_await_bytes(tx, &file).await?;
            arrived.push((file, &one.bytes));
        }
        let over = uploads_over(these, tx).await?;
        let now = these.iter().map(|one| one.now).max().unwrap_or_default();
        let window = these.iter().map(|one| one.window).max().unwrap_or_default();
        let replaced = note_arrived(tx, arrived, window, now).await?;
        if !over.is_empty() {
            arriving::end(tx, over.into_iter()).await?;
        }
        Ok(replaced)
    }
}

/// The noted uploads that end with these. One that came whole is refused if the file receives another one in a process that is
/// known. What an upload of its own process left, whose end could not be written, ends with it.
async fn uploads_over(these: &[&Arrived], tx: &mut Tx) -> Result<Vec<(Uuid, Uuid)>, Error> {
    let mut over: Vec<(Uuid, Uuid)> =
        these.iter().filter(|one| one.is_noted).map(|one| (one.file, one.upload)).collect();
    let whole: BTreeMap<Uuid, Uuid> =
        these.iter().filter(|one| !one.is_noted).map(|one| (one.file, one.owner)).collect();
    if !whole.is_empty() {
        for noted in arriving::of(tx, whole.keys().copied()).await? {
            if noted.is_known && whole[&noted.file_id] != noted.worker_id {
                return Err(arrivals::in_progress());
            }
            over.push((noted.file_id, noted.upload_id));
        }
    }
    Ok(over)
}

/// The files, which the transaction holds and which await their bytes, have them now. Returns, in their order, the key of an
/// earlier upload that they replace.
pub(super) async fn note_arrived(
    tx: &mut Tx,
    arrived: Vec<(File, &StoredBytes)>,
    window: Duration,
    now: Time,
) -> Result<Vec<Option<String>>, Error> {
    let until = now + to_delta(window);
    let mut moves = Vec::with_capacity(arrived.len());
    let (mut replaced, mut batches) = (Vec::with_capacity(arrived.len()), BTreeSet::new());
    for (file, bytes) in arrived {
        batches.extend(file.batch_id);
        if file.status == Status::Uploaded {
            uploads::replace(tx, file.id, bytes, until, now).await?;
        } else {
            moves.push(Move {
                file: file.id,
                from: file.status,
                passed: Vec::new(),
                transition: Transition::Upload,
                change: Change::Upload { bytes: bytes.clone(), until },
                worker: None,
                // The bytes are the owner's.
                actor: Actor::user(&file.tenant_user(), &file.tenant_id, &file.user_id),
                data: None,
            });
        }
        replaced.push(file.blob_key);
    }
    moves::apply(tx, moves, now).await?;
    for batch in batches {
        deadline::extend(tx, Some(batch), window, now).await?;
    }
    Ok(replaced)
}
