//! A blob is an orphan if and only if no row has its key, it was written longer ago than the minimum age, and it has not
//! the name of an upload that was not seen to its end yet.
//!
//! The storage is listed first and the database asked after, so that a blob whose row came in between is known. An upload
//! has the name of something unfinished until its row knows it, however long that takes; one whose process is gone is
//! looked after by `abandoned_uploads`. Of what is listed no more than a page is held.
//!
//! What the database does not know is nobody's only if it is the right database, in its last state. So before anything goes,
//! the storage is asked whose it is (`blobs/ownership.rs`) and the orphans are counted: if they are many, and many of what
//! there is, the mistake is more likely ours, and nothing goes until a person says so.

use std::collections::HashSet;

use serde::Serialize;
use uuid::Uuid;

use super::scan::{Scan, StoreScan};
use super::{Errors, OrphanCleanup};
use crate::blobs::{Blobs, Listed, Listing};
use crate::recovery::ownership::Ownership;
use crate::telemetry::metrics::orphan_blob_deleted;
use landfall_core::clock::{Time, to_delta};
use landfall_store::Error;
use landfall_store::{Db, Rows, args};

const PAGE: usize = Rows::MOST;
/// So many orphans are nothing unusual, however few blobs there are.
const FEW: usize = 100;
/// Beyond that, one of so many blobs may be an orphan.
const ONE_OF: usize = 5;

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metrics {
    pub total: usize,
    pub deleted: usize,
    pub errors: usize,
}

/// Removes them all. What could not be removed is what the next report on orphans has.
pub async fn clean(job: &OrphanCleanup, now: Time, errors: &mut Errors) -> Result<Metrics, Error> {
    let mut metrics = Metrics::default();
    let written_before = now - to_delta(job.config.orphan_min_age);
    let most = match permit(&job.ownership, written_before, job.force).await? {
        Permit::Remove { most } => most,
        Permit::HeldBack { found, why } => {
            metrics.total = found.orphans;
            errors.note(format!("orphan blobs: {why}"));
            job.db.write(StoreScan { found: found.scan.finish(), now }).await?;
            return Ok(metrics);
        }
    };
    let mut left = Scan::default();
    let mut orphans = Orphans::look(&job.db, &job.blobs, written_before);
    'all: while let Some(page) = orphans.next_page().await? {
        for orphan in page {
            if metrics.total == most {
                errors.note("orphan blobs: there are more than were counted; the rest is left".to_owned());
                break 'all;
            }
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

/// Whether orphans may be removed.
pub enum Permit {
    /// At most so many.
    Remove { most: usize },
    /// None, because of what was found.
    HeldBack { found: Count, why: String },
}

/// Looks whether the orphans are really nobody's. `force`: a person knows that, however many they are.
pub async fn permit(ownership: &Ownership, written_before: Time, force: bool) -> Result<Permit, Error> {
    let found = count(&ownership.db, &ownership.blobs, written_before).await?;
    if found.orphans == 0 {
        return Ok(Permit::Remove { most: 0 });
    }
    let standing = ownership.look().await?;
    if !standing.may_be_cleaned() {
        return Ok(Permit::HeldBack { found, why: standing.to_string() });
    }
    let most = if force { usize::MAX } else { FEW.max(found.blobs / ONE_OF) };
    if found.orphans > most {
        let why = format!(
            "No file knows {} of the {} blobs, which is more than happens by itself, so none was removed. Is it the \
             right database, and its last state? If so, run `landfall jobs run orphan-cleanup --force`",
            found.orphans, found.blobs
        );
        return Ok(Permit::HeldBack { found, why });
    }
    Ok(Permit::Remove { most })
}

/// What is in the storage.
#[derive(Default)]
pub struct Count {
    pub blobs: usize,
    pub orphans: usize,
    pub scan: Scan,
}

/// Counts them, and removes none.
pub async fn count(db: &Db, blobs: &Blobs, written_before: Time) -> Result<Count, Error> {
    let mut count = Count::default();
    let mut orphans = Orphans::look(db, blobs, written_before);
    while let Some(page) = orphans.next_page().await? {
        count.orphans += page.len();
        for orphan in page {
            count.scan.add(orphan);
        }
    }
    count.blobs = orphans.passed;
    Ok(count)
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
    /// Blobs that were looked at.
    passed: usize,
}

impl<'a> Orphans<'a> {
    pub fn look(db: &'a Db, blobs: &'a Blobs, written_before: Time) -> Self {
        Self { db, blobs, listing: blobs.list(), written_before, passed: 0 }
    }

    /// The orphans of the next page of the storage, which may be none; `None` at the end.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Orphan>>, Error> {
        let mut page = self.listing.next_page(PAGE).await?;
        if page.is_empty() {
            return Ok(None);
        }
        self.passed += page.len();
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
    let (values, arguments) = ids.into_values(&tx);
    let sql = format!("SELECT id, blob_key, user_id FROM files WHERE id IN (SELECT * FROM ({values}) AS v)");
    tx.rows(sql, arguments).await
}
