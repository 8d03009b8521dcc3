//! The storage belongs to the database, each blob has its row, and each row has its blob.

use uuid::Uuid;

use super::{Report, Violations};
use crate::blobs::Blobs;
use crate::recovery::ownership::Ownership;
use landfall_store::Error;
use landfall_store::{Db, args};

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
    let row: Option<(Option<String>,)> =
        db.read().await?.row("SELECT blob_key FROM files WHERE id = $1", args![file]).await?;
    Ok(row.is_some_and(|(known,)| known.as_deref() == Some(key)))
}

/// Rows whose blob is missing or has another size than the row says.
pub async fn missing(db: &Db, storage: &Blobs, report: &mut Report) -> Result<(), Error> {
    let mut violations = Violations::default();
    let mut last = Uuid::nil();
    loop {
        let page: Vec<(Uuid, String, i64)> = db
            .read()
            .await?
            .rows(
                "SELECT id, blob_key, size_bytes FROM files
                 WHERE id > $1 AND blob_key IS NOT NULL AND status <> 'deleted'
                   AND COALESCE(error_code, '') <> 'INFECTED' ORDER BY id LIMIT $2",
                args![last, ROWS_PER_PAGE],
            )
            .await?;
        let Some((id, ..)) = page.last() else { break };
        last = *id;
        for (id, key, size) in page {
            let stored = storage.size(&key).await?;
            if stored != u64::try_from(size).ok() && still_has(db, id, &key).await? {
                let stored = stored.map_or_else(|| "missing".to_owned(), |stored| format!("{stored} bytes"));
                violations.push(format!("file {id}: its blob is {stored}, should be {size} bytes"));
            }
        }
    }
    report.add("no row without its blob", violations);
    Ok(())
}

/// Whether the file was neither deleted nor uploaded again during the check.
async fn still_has(db: &Db, file: Uuid, key: &str) -> Result<bool, Error> {
    let sql = "SELECT id FROM files WHERE id = $1 AND blob_key = $2 AND status <> 'deleted'";
    Ok(db.read().await?.row::<(Uuid,)>(sql, args![file, key]).await?.is_some())
}
