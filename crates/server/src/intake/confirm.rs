//! The owner confirms that the bytes are uploaded. If they are, the file is in the queue before the response is sent.

use std::collections::{BTreeMap, HashMap};

use tracing::Instrument;
use uuid::Uuid;

use super::announce::{check_size, parse_md5};
use super::direct;
use crate::blobs::Blobs;
use crate::records::events;
use crate::records::file::{File, StoredBytes};
use crate::records::moves::{self, Change, Move};
use crate::records::quota;
use crate::telemetry::{spans, traces};
use landfall_api::uploads::ConfirmRequest;
use landfall_core::actor::Actor;
use landfall_core::caller::Caller;
use landfall_core::clock::{Clock, Time};
use landfall_core::lifecycle::{Status, Transition};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;
use landfall_store::{Db, Joint, Tx};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmed {
    pub file_id: Uuid,
    pub status: Status,
}

/// What the request says about the bytes, after its own checks.
struct Declared {
    size: Option<i64>,
    /// In hexadecimal.
    md5: Option<String>,
}

impl Declared {
    fn parse(request: &ConfirmRequest) -> Result<Self, Refusal> {
        if let Some(size) = request.size {
            check_size(size, u64::MAX)?;
        }
        Ok(Self { size: request.size, md5: request.md5.as_deref().map(parse_md5).transpose()? })
    }
}

/// Verifies the bytes, then queues the file. Repeating it is safe.
pub async fn confirm(
    db: &Db,
    blobs: &Blobs,
    caller: &Caller,
    id: Uuid,
    batch: Option<Uuid>,
    request: &ConfirmRequest,
    clock: &Clock,
) -> Result<Confirmed, Error> {
    // Before the file is looked at: an invalid request is refused whatever state the file is in.
    let declared = Declared::parse(request)?;
    let file = File::find_for(&mut db.look_up().await?, caller, id).await?;
    if batch.is_some_and(|batch| file.batch_id != Some(batch)) {
        return Err(Refusal::no_such_file().into());
    }
    match file.status {
        Status::Registered | Status::Uploaded => {}
        Status::Deleted => return Err(events::gone(&mut db.read().await?, id).await?.into()),
        status => {
            return Ok(Confirmed { file_id: id, status });
        }
    }
    let span = spans::in_request("confirm", &file.traced());
    confirm_found(db, blobs, caller, &file, &declared, clock).instrument(span).await
}

async fn confirm_found(
    db: &Db,
    blobs: &Blobs,
    caller: &Caller,
    file: &File,
    declared: &Declared,
    clock: &Clock,
) -> Result<Confirmed, Error> {
    let id = file.id;
    let verified = match verify(blobs, file, declared).await {
        Ok(verified) => verified,
        Err(error) => {
            // The file and its blob may have been deleted since the file was loaded.
            let mut tx = db.read().await?;
            let is_gone = File::find_for(&mut tx, caller, id).await?.status == Status::Deleted;
            return Err(if is_gone { events::gone(&mut tx, id).await?.into() } else { error });
        }
    };
    // Not before: the storage may take its time to answer, and only now does the file begin to wait for a worker.
    let now = clock.now();
    let (tenant, trace) = (file.tenant_id.clone(), traces::current());
    db.write_jointly(Confirm { caller: caller.clone(), tenant, file: id, verified, trace, now }).await
}

/// The blob that was compared with what was declared.
enum Verified {
    /// The row knows the blob with this key. Another upload may replace it before the file is confirmed.
    Known(String),
    /// The client sent the bytes straight to the object store, and the row does not know them yet.
    Arrived(StoredBytes),
}

/// Returns the blob, if it matches what was declared at registration and in this request.
async fn verify(blobs: &Blobs, file: &File, declared: &Declared) -> Result<Verified, Error> {
    let missing = || {
        Refusal::new(
            RefusalCode::UploadMissing,
            "The bytes of this file have not arrived; send them, then confirm again",
        )
        .retryable()
    };
    if file.is_direct && file.blob_key.is_none() {
        let arrived = direct::arrived(blobs, file).await?.ok_or_else(missing)?;
        if let Some(size) = declared.size.filter(|size| *size != file.size_bytes) {
            return Err(wrong_size(size, file.size_bytes.unsigned_abs()));
        }
        let differs = |declared: &&String| arrived.md5.as_ref().is_some_and(|md5| md5 != *declared);
        if let Some(md5) = declared.md5.as_ref().filter(differs) {
            return Err(wrong_md5(md5));
        }
        // What is declared only now is compared when the bytes are read.
        let md5 = arrived.md5.clone().or_else(|| declared.md5.clone());
        return Ok(Verified::Arrived(StoredBytes { md5, ..arrived }));
    }
    let key = file.blob_key.clone().ok_or_else(missing)?;
    let stored = blobs.size(&key).await?.ok_or_else(missing)?;
    for expected in [Some(file.size_bytes), declared.size].into_iter().flatten() {
        if u64::try_from(expected) != Ok(stored) {
            return Err(wrong_size(expected, stored));
        }
    }
    if let Some(md5) = declared.md5.as_ref().filter(|md5| file.md5.as_ref() != Some(md5)) {
        return Err(wrong_md5(md5));
    }
    Ok(Verified::Known(key))
}

fn wrong_size(declared: i64, stored: u64) -> Error {
    let message = format!("{declared} bytes were declared, {stored} are stored");
    Refusal::new(RefusalCode::SizeMismatch, message).into()
}

fn wrong_md5(declared: &str) -> Error {
    let message = format!("The MD5 {declared} was declared; the stored bytes have another");
    Refusal::new(RefusalCode::ChecksumMismatch, message).into()
}

impl Verified {
    /// Whether the file still has the blob that was verified.
    fn is_of(&self, file: &File) -> bool {
        match self {
            Self::Known(key) => file.blob_key.as_ref() == Some(key),
            Self::Arrived(_) => file.blob_key.is_none(),
        }
    }
}

struct Confirm {
    caller: Caller,
    /// Of the file.
    tenant: String,
    file: Uuid,
    verified: Verified,
    /// The position of the request in its trace.
    trace: Option<String>,
    now: Time,
}

/// Those of one tenant together: they would wait for one another at its quota.
impl Joint for Confirm {
    type Output = Confirmed;

    fn key(&self) -> &str {
        &self.tenant
    }

    async fn apply_all(these: &[&Self], tx: &mut Tx) -> Result<Vec<Self::Output>, Error> {
        let ids: Vec<Uuid> = these.iter().map(|one| one.file).collect();
        let mut files: HashMap<Uuid, File> =
            File::lock_all(tx, &ids).await?.into_iter().map(|file| (file.id, file)).collect();
        // A client may confirm a file twice at once.
        let mut moves: BTreeMap<Uuid, Move> = BTreeMap::new();
        for one in these {
            let file = File::visible(files.get(&one.file), &one.caller)?;
            if let Some(confirmation) = one.of(tx, file).await? {
                moves.entry(file.id).or_insert(confirmation);
            }
        }
        let now = these.iter().map(|one| one.now).max().unwrap_or_default();
        let moved = moves::apply(tx, moves.into_values().collect(), now).await?;
        let moved: Vec<File> = moved.into_iter().flatten().filter_map(|moved| moved.file).collect();
        quota::settle(tx, &moved).await?;
        files.extend(moved.into_iter().map(|file| (file.id, file)));
        let status = |one: &&Self| Confirmed { file_id: one.file, status: files[&one.file].status };
        Ok(these.iter().map(status).collect())
    }
}

impl Confirm {
    /// The move of the file, which the transaction holds. `None` if the file was confirmed before.
    async fn of(&self, tx: &mut Tx, file: &File) -> Result<Option<Move>, Error> {
        match file.status {
            Status::Registered | Status::Uploaded if self.verified.is_of(file) => {}
            Status::Registered | Status::Uploaded => {
                return Err(Refusal::new(
                    RefusalCode::UploadChanged,
                    "Another upload of this file arrived while it was being confirmed; confirm again",
                )
                .retryable()
                .into());
            }
            Status::Deleted => return Err(events::gone(tx, file.id).await?.into()),
            _ => return Ok(None),
        }
        let arrived = match &self.verified {
            Verified::Known(_) => None,
            Verified::Arrived(bytes) => Some(bytes.clone()),
        };
        Ok(Some(Move {
            file: file.id,
            from: file.status,
            passed: Vec::new(),
            transition: Transition::Confirm,
            change: Change::Confirm { trace: self.trace.clone(), recoveries: 0, arrived },
            worker: None,
            actor: Actor::caller(&self.caller, &file.tenant_id, &file.user_id),
            data: None,
        }))
    }
}
