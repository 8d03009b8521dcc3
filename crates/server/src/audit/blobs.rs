//! The storage belongs to the database, each blob has its row, and each row has its blob.

use futures_util::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use super::{Report, Violations};
use crate::blobs::{Blobs, Saved};
use crate::records::files::blobs;
use crate::records::resumable::{self, Seen};
use crate::recovery::ownership::Ownership;
use landfall_store::Db;
use landfall_store::Error;

/// Rows that are compared with the storage at a time.
const ROWS_PER_PAGE: i64 = 500;
const BLOBS_PER_PAGE: usize = 500;
/// Blobs that the storage is asked for at a time: each question to an object store waits for the network.
const LOOKED_FOR_AT_ONCE: usize = 16;

/// Whether the storage belongs to the database and has not seen a later state of it.
pub async fn belong(db: &Db, storage: &Blobs, report: &mut Report) -> Result<(), Error> {
    let standing = Ownership { db: db.clone(), blobs: storage.clone() }.standing().await?;
    let mut violations = Violations::default();
    if !standing.may_be_cleaned() {
        violations.push(standing.to_string());
    }
    report.add("the storage is the database's own", violations);
    Ok(())
}

/// Blobs that no row knows. An upload has its blob a moment before its row says so. So such a blob is checked again
/// before it counts.
pub async fn without_rows(db: &Db, storage: &Blobs, report: &mut Report) -> Result<(), Error> {
    let mut violations = Violations::default();
    let mut listing = storage.list("", None);
    loop {
        let page = listing.next_page(BLOBS_PER_PAGE).await?;
        if page.is_empty() {
            break;
        }
        report.blobs += page.len();
        let mut unknown = Vec::new();
        for blob in page {
            if !is_known(db, &blob.key).await? {
                unknown.push(blob.key);
            }
        }
        for key in unknown {
            if storage.size(&key).await?.is_some() && !is_known(db, &key).await? {
                violations.push(format!("blob {key} belongs to no file"));
            }
        }
    }
    report.add("no blob without its row", violations);
    Ok(())
}

async fn is_known(db: &Db, key: &str) -> Result<bool, Error> {
    // A key contains the id of its file, so the row is found without a search for the key.
    let Some(file) = Blobs::file_of(key) else {
        return Ok(false);
    };
    let mut tx = db.read().await?;
    let known = blobs::key_of(&mut tx, file).await?;
    let is_of_file = known.is_some_and(|(known, awaits_direct)| {
        known.as_deref() == Some(key) || (awaits_direct && key == Blobs::direct_key(file))
    });
    Ok(is_of_file || resumable::has_key(&mut tx, file, key).await?)
}

/// Uploads that come in several requests: what was noted of them is here, and what is here belongs to one of them.
pub async fn resumables(db: &Db, storage: &Blobs, report: &mut Report) -> Result<(), Error> {
    let mut violations = Violations::default();
    for key in storage.all_appended().await? {
        let Some(id) = Blobs::file_of(&key) else { continue };
        let is_known = resumable::has_key(&mut db.read().await?, id, &key).await?;
        // It may have come to its end during the check.
        if !is_known && storage.all_appended().await?.contains(&key) {
            violations.push(format!("the bytes {key} belong to no upload"));
        }
    }
    let mut last = Uuid::nil();
    loop {
        let page = resumable::page(&mut db.read().await?, last, BLOBS_PER_PAGE).await?;
        let Some(seen) = page.last() else { break };
        last = seen.upload.id;
        for Seen { upload, .. } in page {
            let saved = Saved {
                offset: u64::try_from(upload.offset_bytes).unwrap_or(0),
                hashes: String::new(),
                stored: upload.stored.clone(),
            };
            let here = storage.appended(&upload.blob_key, &saved).await?;
            let is_short = here < saved.offset;
            let is_current = match resumable::find(&mut db.read().await?, upload.id).await? {
                Some(now) => now.offset_bytes == upload.offset_bytes && !now.is_over,
                None => false,
            };
            if is_short && is_current && storage.appended(&upload.blob_key, &saved).await? == here {
                violations.push(format!(
                    "upload {}: {here} bytes are stored, should be {} or more",
                    upload.id, upload.offset_bytes
                ));
            }
        }
    }
    report.add("resumable uploads have their bytes", violations);
    Ok(())
}

/// Rows whose blob is missing or has another size than the row says.
pub async fn missing(db: &Db, storage: &Blobs, report: &mut Report) -> Result<(), Error> {
    let mut violations = Violations::default();
    let mut last = Uuid::nil();
    loop {
        let page = blobs::page_of_kept(&mut db.read().await?, last, ROWS_PER_PAGE).await?;
        let Some((id, ..)) = page.last() else { break };
        last = *id;
        let looked_for = stream::iter(page).map(|(id, key, size)| async move {
            let stored = storage.size(&key).await?;
            Ok::<_, Error>((id, key, size, stored))
        });
        let mut looked_for = looked_for.buffered(LOOKED_FOR_AT_ONCE);
        while let Some((id, key, size, stored)) = looked_for.try_next().await? {
            // The file may have been deleted or uploaded again during the check.
            if stored != u64::try_from(size).ok() && blobs::still_has(&mut db.read().await?, id, &key).await?
            {
                let stored = stored.map_or_else(|| "missing".to_owned(), |stored| format!("{stored} bytes"));
                violations.push(format!("file {id}: its blob is {stored}, should be {size} bytes"));
            }
        }
    }
    report.add("no row without its blob", violations);
    Ok(())
}
