//! The owner confirms that the bytes are uploaded. If they are, the file is in the queue before the response is sent.

use tracing::Instrument;
use uuid::Uuid;

use super::announce::parse_md5;
use crate::blobs::Blobs;
use crate::records::events;
use crate::records::file::File;
use crate::records::moves::{self, Change};
use crate::records::quota;
use crate::telemetry::{spans, traces};
use landfall_api::uploads::ConfirmRequest;
use landfall_core::actor::Actor;
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Status, Transition};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;
use landfall_store::{Db, Tx, Write};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmed {
    pub file_id: Uuid,
    pub status: Status,
}

/// Verifies the bytes, then queues the file. Repeating it is safe.
pub async fn confirm(
    db: &Db,
    blobs: &Blobs,
    caller: &Caller,
    id: Uuid,
    batch: Option<Uuid>,
    request: &ConfirmRequest,
    now: Time,
) -> Result<Confirmed, Error> {
    let file = File::find_for(&mut db.read().await?, caller, id).await?;
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
    confirm_found(db, blobs, caller, &file, request, now).instrument(span).await
}

async fn confirm_found(
    db: &Db,
    blobs: &Blobs,
    caller: &Caller,
    file: &File,
    request: &ConfirmRequest,
    now: Time,
) -> Result<Confirmed, Error> {
    let id = file.id;
    let blob = match verify(blobs, file, request).await {
        Ok(blob) => blob,
        Err(error) => {
            // The file and its blob may have been deleted since the file was loaded.
            let mut tx = db.read().await?;
            let is_gone = File::find_for(&mut tx, caller, id).await?.status == Status::Deleted;
            return Err(if is_gone { events::gone(&mut tx, id).await?.into() } else { error });
        }
    };
    db.write(Confirm { caller: caller.clone(), file: id, blob, now }).await
}

/// Returns the key of the blob, if the blob matches what was declared at registration and in this request.
async fn verify(blobs: &Blobs, file: &File, request: &ConfirmRequest) -> Result<String, Error> {
    let missing = || {
        Refusal::new(
            RefusalCode::UploadMissing,
            "The bytes of this file have not arrived; send them, then confirm again",
        )
        .retryable()
    };
    let key = file.blob_key.clone().ok_or_else(missing)?;
    let stored = blobs.size(&key).await?.ok_or_else(missing)?;
    for expected in [Some(file.size_bytes), request.size].into_iter().flatten() {
        if u64::try_from(expected) != Ok(stored) {
            return Err(Refusal::new(
                RefusalCode::SizeMismatch,
                format!("{expected} bytes were declared, {stored} are stored"),
            )
            .into());
        }
    }
    if let Some(md5) = &request.md5 {
        let md5 = parse_md5(md5)?;
        if file.md5.as_ref() != Some(&md5) {
            return Err(Refusal::new(
                RefusalCode::ChecksumMismatch,
                format!("The MD5 {md5} was declared; the stored bytes have another"),
            )
            .into());
        }
    }
    Ok(key)
}

struct Confirm {
    caller: Caller,
    file: Uuid,
    /// The blob that was verified. Another upload may have replaced it since.
    blob: String,
    now: Time,
}

impl Write for Confirm {
    type Output = Confirmed;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let mut file = File::lock_for(tx, &self.caller, self.file).await?;
        match file.status {
            Status::Registered | Status::Uploaded if file.blob_key.as_ref() == Some(&self.blob) => {}
            Status::Registered | Status::Uploaded => {
                return Err(Refusal::new(
                    RefusalCode::UploadChanged,
                    "Another upload of this file arrived while it was being confirmed; confirm again",
                )
                .retryable()
                .into());
            }
            Status::Deleted => return Err(events::gone(tx, file.id).await?.into()),
            status => {
                return Ok(Confirmed { file_id: file.id, status });
            }
        }
        let change = Change::Confirm { trace: traces::current(), recoveries: 0 };
        let actor = Actor::caller(&self.caller, &file.tenant_id, &file.user_id);
        moves::apply_to(tx, &mut file, Transition::Confirm, change, actor, None, self.now).await?;
        quota::settle(tx, &file).await?;
        Ok(Confirmed { file_id: file.id, status: file.status })
    }
}
