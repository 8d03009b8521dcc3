//! A blob is an orphan if and only if no row has its key, it was written longer ago than the minimum age, and it has not
//! the name of an upload that was not seen to its end yet.
//!
//! The storage is listed first and the database asked after, so that a blob whose row came in between is known. An upload
//! has the name of something unfinished until its row knows it, however long that takes; one whose process is gone is
//! looked after by `abandoned_uploads`. Of what is listed no more than a page is held.

use std::collections::HashSet;

use serde::Serialize;
use uuid::Uuid;

use super::scan::{Found, Scan, StoreScan};
use super::{Errors, OrphanCleanup};
use crate::blobs::{Blobs, Listed, Listing};
use crate::clock::{Time, to_delta};
use crate::db::{Db, Rows, args};
use crate::error::Error;
use crate::observe::metrics::orphan_blob_deleted;

const PAGE: usize = Rows::MOST;

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metrics {
    pub total: usize,
    pub deleted: usize,
    pub errors: usize,
}

/// Removes them all. What could not be removed is what the next report on orphans has.
pub async fn clean(job: &OrphanCleanup, now: Time, errors: &mut Errors) -> Result<Metrics, Error> {
    let mut metrics = Metrics::default();
    let mut left = Scan::default();
    let mut orphans = Orphans::look(&job.db, &job.blobs, now - to_delta(job.config.orphan_min_age));
    while let Some(page) = orphans.next_page().await? {
        for orphan in page {
            metrics.total += 1;
            let (key, size) = (&orphan.blob.key, orphan.blob.size);
            match job.blobs.remove(key).await {
                Ok(()) => {
                    metrics.deleted += 1;
                    orphan_blob_deleted();
                    tracing::info!(job = "orphan-cleanup", key, size, "removed a blob that no file knows");
                }
                Err(error) => {
                    metrics.errors += 1;
                    errors.add(&format!("blob {key}"), &error);
                    left.add(orphan);
                }
            }
        }
    }
    job.db.write(StoreScan { found: left.finish(), now }).await?;
    Ok(metrics)
}

/// Counts them for the report, and removes none.
pub async fn count(db: &Db, blobs: &Blobs, written_before: Time) -> Result<Vec<(String, Found)>, Error> {
    let mut scan = Scan::default();
    let mut orphans = Orphans::look(db, blobs, written_before);
    while let Some(page) = orphans.next_page().await? {
        for orphan in page {
            scan.add(orphan);
        }
    }
    Ok(scan.finish())
}

pub struct Orphan {
    pub blob: Listed,
    /// Whose file it was uploaded for, if that has a row.
    pub user: Option<String>,
}

/// Walks through the storage and stops at orphans.
pub struct Orphans<'a> {
    db: &'a Db,
    blobs: &'a Blobs,
    listing: Listing,
    written_before: Time,
}

impl<'a> Orphans<'a> {
    pub fn look(db: &'a Db, blobs: &'a Blobs, written_before: Time) -> Self {
        Self { db, blobs, listing: blobs.list(), written_before }
    }

    /// The orphans of the next page of the storage, which may be none; `None` at the end.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Orphan>>, Error> {
        let mut page = self.listing.next_page(PAGE).await?;
        if page.is_empty() {
            return Ok(None);
        }
        page.retain(|blob| blob.written_at < self.written_before);
        if page.is_empty() {
            return Ok(Some(Vec::new()));
        }
        // Almost always all are known, and there is nothing more to ask.
        let owners = self.drop_known(&mut page).await?;
        if page.is_empty() {
            return Ok(Some(Vec::new()));
        }
        // An upload loses the name of something unfinished after its row knows it. So the names are looked at before the
        // rows: what has none by now and is no row's by then is nobody's.
        let unfinished = self.blobs.unfinished().await?;
        page.retain(|blob| unfinished.iter().all(|(_, key)| *key != blob.key));
        self.drop_known(&mut page).await?;
        let orphans = page.into_iter().map(|blob| {
            let file = Blobs::file_of(&blob.key);
            let owner = owners.iter().find(|owner| Some(owner.id) == file);
            Orphan { user: owner.map(|owner| owner.user_id.clone()), blob }
        });
        Ok(Some(orphans.collect()))
    }

    /// Leaves only what no row knows. Answers the rows of the files that all of it was uploaded for.
    async fn drop_known(&self, page: &mut Vec<Listed>) -> Result<Vec<Owner>, Error> {
        let owners = owners(self.db, page).await?;
        let known: HashSet<&str> = owners.iter().filter_map(|owner| owner.blob_key.as_deref()).collect();
        page.retain(|blob| !known.contains(blob.key.as_str()));
        Ok(owners)
    }
}

#[derive(sqlx::FromRow)]
struct Owner {
    id: Uuid,
    blob_key: Option<String>,
    user_id: String,
}

/// The rows of the files that these blobs were uploaded for. A key names its file: rows are found by their id.
async fn owners(db: &Db, page: &[Listed]) -> Result<Vec<Owner>, Error> {
    let files: HashSet<Uuid> = page.iter().filter_map(|blob| Blobs::file_of(&blob.key)).collect();
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let mut ids = Rows::default();
    for file in files {
        ids.push(args![file]);
    }
    let mut tx = db.read().await?;
    let (values, arguments) = ids.into_values(tx.is_postgres());
    let sql = format!("SELECT id, blob_key, user_id FROM files WHERE id IN (SELECT * FROM ({values}) AS v)");
    tx.rows(sql, arguments).await
}
