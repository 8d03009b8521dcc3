//! A blob is an orphan if and only if no row has its key, it was written longer ago than the minimum age, and it does not
//! belong to an unfinished upload.
//!
//! The storage is listed first and the database asked after, so that a blob whose row was written in between is known. An
//! upload is unfinished until its row knows the blob, however long that takes. `abandoned_uploads` cleans up after a
//! process that died. No more than one page of the listing is held in memory.
//!
//! A blob that the database does not know is an orphan only if it is the right database, in its latest state. So before
//! anything is removed, the mark of the storage is checked (`recovery/ownership.rs`) and the orphans are counted. If they
//! are many, both in number and as a share of all blobs, a mistake is more likely, and an operator must force the removal.

use std::collections::HashSet;

use serde::Serialize;
use uuid::Uuid;

use super::scan::{Scan, StoreScan};
use super::{Errors, OrphanCleanup};
use crate::blobs::{BlobInfo, Blobs, Listing};
use crate::records::files::blobs::{self, BlobOwner};
use crate::records::resumable;
use crate::recovery::ownership::Ownership;
use crate::telemetry::metrics::orphan_blob_deleted;
use landfall_core::caller::TenantUser;
use landfall_core::clock::{Time, to_delta};
use landfall_store::Error;
use landfall_store::{Db, Rows};

const PAGE_SIZE: usize = Rows::MAX;
/// This many orphans are usual, however few blobs there are.
const USUAL_ORPHANS: usize = 100;
/// Of more blobs than that, one in this many may be an orphan.
const USUAL_ONE_IN: usize = 5;

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metrics {
    pub total: usize,
    pub deleted: usize,
    pub errors: usize,
}

/// Removes all orphans. The next report on orphans has those that could not be removed.
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
    let mut orphans = Orphans::scan(&job.db, &job.blobs, written_before);
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
                    tracing::info!(
                        job = "orphan-cleanup",
                        key,
                        size,
                        "removed a blob that belongs to no file"
                    );
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
    /// At most this many.
    Remove { most: usize },
    /// None, for the reason that is given.
    HeldBack { found: Count, why: String },
}

/// Checks whether the orphans may be removed. `force`: the operator allows any number of them.
pub async fn permit(ownership: &Ownership, written_before: Time, force: bool) -> Result<Permit, Error> {
    let found = count(&ownership.db, &ownership.blobs, written_before).await?;
    if found.orphans == 0 {
        return Ok(Permit::Remove { most: 0 });
    }
    let standing = ownership.standing().await?;
    if !standing.may_be_cleaned() {
        return Ok(Permit::HeldBack { found, why: standing.to_string() });
    }
    let most = if force { usize::MAX } else { USUAL_ORPHANS.max(found.blobs / USUAL_ONE_IN) };
    if found.orphans > most {
        let why = format!(
            "{} of the {} blobs belong to no file. That is more than usual, so none was removed. Is it the right \
             database, in its latest state? If so, run `landfall jobs run orphan-cleanup --force`",
            found.orphans, found.blobs
        );
        return Ok(Permit::HeldBack { found, why });
    }
    Ok(Permit::Remove { most })
}

/// How much is in the storage.
#[derive(Default)]
pub struct Count {
    pub blobs: usize,
    pub orphans: usize,
    pub scan: Scan,
}

/// Counts the orphans and removes none.
pub async fn count(db: &Db, blobs: &Blobs, written_before: Time) -> Result<Count, Error> {
    let mut count = Count::default();
    let mut orphans = Orphans::scan(db, blobs, written_before);
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
    pub blob: BlobInfo,
    /// The owner of the file that it was uploaded for, if that file has a row.
    pub owner: Option<TenantUser>,
}

/// Walks through the storage and returns the orphans.
pub struct Orphans<'a> {
    db: &'a Db,
    blobs: &'a Blobs,
    listing: Listing,
    written_before: Time,
    /// Blobs that were listed so far, orphans or not.
    passed: usize,
}

impl<'a> Orphans<'a> {
    pub fn scan(db: &'a Db, blobs: &'a Blobs, written_before: Time) -> Self {
        Self { db, blobs, listing: blobs.list("", None), written_before, passed: 0 }
    }

    /// The orphans of the next page of the storage, which may be none; `None` at the end.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Orphan>>, Error> {
        let mut page = self.listing.next_page(PAGE_SIZE).await?;
        if page.is_empty() {
            return Ok(None);
        }
        self.passed += page.len();
        page.retain(|blob| blob.written_at < self.written_before);
        if page.is_empty() {
            return Ok(Some(Vec::new()));
        }
        // Almost always all are known, and the page is done.
        let owners = self.drop_known(&mut page).await?;
        if page.is_empty() {
            return Ok(Some(Vec::new()));
        }
        // An upload is finished only after its row knows the blob. So the unfinished uploads are listed before the rows are
        // read again: a blob that is in neither is an orphan.
        let unfinished = self.blobs.unfinished().await?;
        page.retain(|blob| unfinished.iter().all(|upload| upload.key != blob.key));
        // The row of a resumable upload goes only after its file knows the blob.
        let files: HashSet<Uuid> = page.iter().filter_map(|blob| Blobs::file_of(&blob.key)).collect();
        let resumable = resumable::keys(&mut self.db.read().await?, files.into_iter()).await?;
        page.retain(|blob| !resumable.contains(&blob.key));
        self.drop_known(&mut page).await?;
        let orphans = page.into_iter().map(|blob| {
            let file = Blobs::file_of(&blob.key);
            let owner = owners.iter().find(|owner| Some(owner.id) == file);
            let owner = owner.map(|owner| TenantUser::new(owner.tenant_id.clone(), owner.user_id.clone()));
            Orphan { blob, owner }
        });
        Ok(Some(orphans.collect()))
    }

    /// Keeps the blobs that no row knows. Returns the rows of the files that the whole page was uploaded for.
    async fn drop_known(&self, page: &mut Vec<BlobInfo>) -> Result<Vec<BlobOwner>, Error> {
        let owners = owners(self.db, page).await?;
        let known: HashSet<&str> = owners.iter().filter_map(|owner| owner.blob_key.as_deref()).collect();
        // The object is there before its client confirms it. If it never does, the sweep of expired uploads finds it.
        let awaited = owners.iter().filter(|owner| owner.awaits_direct);
        let awaited: HashSet<String> = awaited.map(|owner| Blobs::direct_key(owner.id)).collect();
        page.retain(|blob| !known.contains(blob.key.as_str()) && !awaited.contains(&blob.key));
        Ok(owners)
    }
}

/// The rows of the files that these blobs were uploaded for. A key names its file: rows are found by their id.
async fn owners(db: &Db, page: &[BlobInfo]) -> Result<Vec<BlobOwner>, Error> {
    let files: HashSet<Uuid> = page.iter().filter_map(|blob| Blobs::file_of(&blob.key)).collect();
    if files.is_empty() {
        return Ok(Vec::new());
    }
    blobs::owners(&mut db.read().await?, files.into_iter()).await
}
