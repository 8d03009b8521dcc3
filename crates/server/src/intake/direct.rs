//! Bytes that a client sends straight to the object store: this server issues the address, and looks what arrived.

use std::time::Duration;

use uuid::Uuid;

use super::upload::must_await_bytes;
use crate::blobs::Blobs;
use crate::blobs::direct::Declared;
use crate::records::batch::deadline;
use crate::records::file::{File, StoredBytes};
use crate::records::files::uploads;
use landfall_api::uploads::UploadTicket;
use landfall_core::caller::Caller;
use landfall_core::clock::{Time, to_delta};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::{Error, Tx, Write};

/// What a client does that has sent other bytes than it declared.
const AGAIN: &str = "Delete this file, register it again, and send the bytes to its new address";

/// The ticket with the address of the object store in place of this server's.
pub async fn readdress(
    blobs: &Blobs,
    mut ticket: UploadTicket,
    declared: &Declared<'_>,
    ttl: Duration,
) -> Result<UploadTicket, Error> {
    if let Some(upload) = blobs.sign_upload(ticket.file_id, declared, ttl).await? {
        ticket.upload_url = upload.url;
        ticket.headers = upload.headers.into_iter().map(|(name, value)| (name, value.into())).collect();
    }
    Ok(ticket)
}

/// What the object store has of a file that the client sends there. `None` if nothing arrived.
///
/// An object that is not what was declared stays until its file is deleted, or expires, and the store takes no second one under
/// the same key. To remove it here would not be safe: a process that stands still between its look and the removal
/// could remove the right bytes, which the client has sent and another process has confirmed meanwhile.
pub async fn arrived(blobs: &Blobs, file: &File) -> Result<Option<StoredBytes>, Error> {
    let key = Blobs::direct_key(file.id);
    let Some(found) = blobs.head(&key).await? else { return Ok(None) };
    if u64::try_from(file.size_bytes) != Ok(found.size) {
        let message = format!("{} bytes were declared, {} are stored. {AGAIN}", file.size_bytes, found.size);
        return Err(Refusal::new(RefusalCode::SizeMismatch, message).into());
    }
    if let Some(declared) = &file.declared_md5
        && let Some(md5) = blobs.md5_of(&key).await?
        && *declared != md5
    {
        let message = format!("The MD5 {declared} was declared; the stored bytes have {md5}. {AGAIN}");
        return Err(Refusal::new(RefusalCode::ChecksumMismatch, message).into());
    }
    Ok(Some(StoredBytes {
        key,
        // What the store did not compare is compared when the bytes are read for the first time.
        md5: file.declared_md5.clone(),
        sha256: file.declared_sha256.clone(),
        etag: found.revision.etag,
        version: found.revision.version,
    }))
}

/// The client of a registered file sends the bytes to the object store itself, in parts. That is a sign of life.
pub struct GoDirect {
    pub caller: Caller,
    pub file: Uuid,
    pub window: Duration,
    pub now: Time,
}

impl Write for GoDirect {
    type Output = File;

    async fn apply(&self, tx: &mut Tx) -> Result<File, Error> {
        let file = File::lock_for(tx, &self.caller, self.file).await?;
        must_await_bytes(tx, &file).await?;
        if file.blob_key.is_some() {
            let message = "The bytes of this file came through the server already: confirm it";
            return Err(Refusal::new(RefusalCode::InvalidState, message).into());
        }
        if !file.is_direct {
            uploads::go_direct(tx, file.id).await?;
        }
        uploads::set_deadline(tx, file.id, self.now + to_delta(self.window), self.now).await?;
        deadline::extend(tx, file.batch_id, self.window, self.now).await?;
        Ok(file)
    }
}
