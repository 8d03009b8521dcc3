//! The storage belongs to the database, each blob has its row, and each row has its blob.

use uuid::Uuid;

use super::{Report, Violations};
use crate::blobs::Blobs;
use crate::records::files::blobs;
use crate::recovery::ownership::Ownership;
use landfall_store::Db;
use landfall_store::Error;

/// Rows that are compared with the storage at a time.
const ROWS_PER_PAGE: i64 = 500;
const BLOBS_PER_PAGE: usize = 500;

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
    let known = blobs::key_of(&mut db.read().await?, file).await?;
    Ok(known.is_some_and(|(known, awaits_direct)| {
        known.as_deref() == Some(key) || (awaits_direct && key == Blobs::direct_key(file))
    }))
}

/// Rows whose blob is missing or has another size than the row says.
pub async fn missing(db: &Db, storage: &Blobs, report: &mut Report) -> Result<(), Error> {
    let mut violations = Violations::default();
    let mut last = Uuid::nil();
    loop {
        let page = blobs::page_of_kept(&mut db.read().await?, last, ROWS_PER_PAGE).await?;
        let Some((id, ..)) = page.last() else { break };
        last = *id;
        for (id, key, size) in page {
            let stored = storage.size(&key).await?;
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
