//! What the last scan of the storage found. A scan may take long, so its result is kept for an hour, and a request waits
//! only a short time for a new one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::orphan_blobs::{self, Orphan};
use crate::blobs::Blobs;
use crate::records::files::uploads;
use crate::recovery::config::CleaningConfig;
use landfall_api::orphans::{AbandonedView, BlobsView, OrphanReport};
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_store::Error;
use landfall_store::{Db, Rows, Tx, Write, args};

/// How long a result is used before the next request starts a new scan.
const MAX_AGE: Duration = Duration::from_hours(1);
/// How long a request waits for a scan. If there are millions of blobs, a later request gets the result.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Orphans whose keys are reported.
const MAX_SAMPLES: usize = 10;
/// Users whose orphans are counted separately. The total covers all users.
const MAX_USERS: usize = 10_000;
/// Stands for the total over all users in the column of the user. No user has this name.
const ALL_USERS: &str = "";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    count: i64,
    bytes: i64,
    samples: Vec<String>,
}

impl Found {
    fn add(&mut self, key: &str, size: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(i64::try_from(size).unwrap_or(i64::MAX));
        if self.samples.len() < MAX_SAMPLES {
            self.samples.push(key.to_owned());
        }
    }
}

/// Adds up the orphans during a scan.
#[derive(Default)]
pub struct Scan {
    all: Found,
    by_user: BTreeMap<String, Found>,
}

impl Scan {
    pub fn add(&mut self, orphan: Orphan) {
        let (key, size) = (&orphan.blob.key, orphan.blob.size);
        self.all.add(key, size);
        if let Some(user) = orphan.user
            && (self.by_user.len() < MAX_USERS || self.by_user.contains_key(&user))
        {
            self.by_user.entry(user).or_default().add(key, size);
        }
    }

    pub fn finish(self) -> Vec<(String, Found)> {
        let mut found: Vec<_> = self.by_user.into_iter().filter(|(user, _)| user != ALL_USERS).collect();
        found.push((ALL_USERS.to_owned(), self.all));
        found
    }
}

/// Replaces the result of the previous scan.
pub struct StoreScan {
    pub found: Vec<(String, Found)>,
    pub now: Time,
}

impl Write for StoreScan {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        // If two scans end at the same time, the second waits here for the first and replaces its result.
        tx.enter_section("orphan scan").await?;
        tx.execute("DELETE FROM orphan_scans", args![]).await?;
        let mut rows = Rows::default();
        for (user, found) in &self.found {
            rows.push(args![user, found.count, found.bytes, json!(found.samples), self.now]);
        }
        tx.insert("orphan_scans (user_id, count, bytes, samples, scanned_at)", rows, "").await
    }
}

/// Makes reports, and scans the storage when the last result is too old.
#[derive(Clone)]
pub struct Scanner {
    pub db: Db,
    pub blobs: Blobs,
    pub clock: Clock,
    pub config: CleaningConfig,
    /// Held during a scan: one at a time is enough for a process.
    pub scanning: Arc<Mutex<()>>,
}

impl Scanner {
    /// `user`: only the orphans of this user. `fresh`: scan even if the last result is recent.
    pub async fn report(&self, user: Option<&str>, fresh: bool) -> Result<OrphanReport, Error> {
        let now = self.clock.now();
        let last = last_scan(&mut self.db.read().await?).await?;
        if fresh || last.is_none_or(|at| now - at >= to_delta(MAX_AGE)) {
            self.scan_until_timeout().await;
        }
        let mut tx = self.db.read().await?;
        let found: Option<(i64, i64, Value)> = tx
            .row(
                "SELECT count, bytes, samples FROM orphan_scans WHERE user_id = $1",
                args![user.unwrap_or(ALL_USERS)],
            )
            .await?;
        let (count, total_size, samples) = found.unwrap_or((0, 0, json!([])));
        Ok(OrphanReport {
            last_scan_time: last_scan(&mut tx).await?,
            orphan_blobs: BlobsView {
                count,
                total_size,
                samples: serde_json::from_value(samples).unwrap_or_default(),
            },
            abandoned_uploads: self.abandoned(&mut tx, user, now).await?,
        })
    }

    /// Starts a scan in a task of its own, and waits for it up to the timeout.
    async fn scan_until_timeout(&self) {
        let Ok(scanning) = self.scanning.clone().try_lock_owned() else {
            // Another request has started a scan. Its result serves this one too.
            tokio::select! {
                _ = self.scanning.lock() => {}
                () = Clock::System.sleep(TIMEOUT) => {}
            }
            return;
        };
        let scanner = self.clone();
        let scan = tokio::spawn(async move {
            if let Err(error) = scanner.scan().await {
                tracing::warn!(%error, "could not scan for orphans");
            }
            drop(scanning);
        });
        tokio::select! {
            _ = scan => {}
            () = Clock::System.sleep(TIMEOUT) => {}
        }
    }

    async fn scan(&self) -> Result<(), Error> {
        let now = self.clock.now();
        let written_before = now - to_delta(self.config.orphan_min_age);
        let found = orphan_blobs::count(&self.db, &self.blobs, written_before).await?;
        self.db.write(StoreScan { found: found.scan.finish(), now }).await
    }

    async fn abandoned(&self, tx: &mut Tx, user: Option<&str>, now: Time) -> Result<AbandonedView, Error> {
        let before = now - to_delta(self.config.abandoned_upload);
        let (count, oldest) = uploads::count_abandoned(tx, user, before, now).await?;
        let oldest_age = oldest.map_or(0, |at| (now - at).num_milliseconds().max(0));
        Ok(AbandonedView { count, oldest_age })
    }
}

async fn last_scan(tx: &mut Tx) -> Result<Option<Time>, Error> {
    let row: Option<(Time,)> =
        tx.row("SELECT scanned_at FROM orphan_scans WHERE user_id = $1", args![ALL_USERS]).await?;
    Ok(row.map(|(at,)| at))
}
