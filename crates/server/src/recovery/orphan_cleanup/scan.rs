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
use crate::records::reach;
use crate::recovery::config::CleaningConfig;
use landfall_api::orphans::{AbandonedView, BlobsView, OrphanReport};
use landfall_core::caller::{Reach, TenantUser};
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_store::Error;
use landfall_store::{Db, Rows, Tx, Write, args};

/// How long a result is used before the next request starts a new scan.
const MAX_AGE: Duration = Duration::from_hours(1);
/// How long a request waits for a scan. If there are millions of blobs, a later request gets the result.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Orphans whose keys are reported.
const MAX_SAMPLES: usize = 10;
/// Users whose orphans are counted separately, and whose tenants. The total covers all users.
const MAX_USERS: usize = 10_000;

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
    by_tenant: BTreeMap<String, Found>,
    by_user: BTreeMap<TenantUser, Found>,
}

impl Scan {
    pub fn add(&mut self, orphan: Orphan) {
        let (key, size) = (&orphan.blob.key, orphan.blob.size);
        self.all.add(key, size);
        if let Some(owner) = orphan.owner
            && (self.by_user.len() < MAX_USERS || self.by_user.contains_key(&owner))
        {
            self.by_tenant.entry(owner.tenant.clone()).or_default().add(key, size);
            self.by_user.entry(owner).or_default().add(key, size);
        }
    }

    pub fn finish(self) -> Vec<(Reach, Found)> {
        let users = self.by_user.into_iter().map(|(owner, found)| (Reach::User(owner), found));
        let tenants = self.by_tenant.into_iter().map(|(tenant, found)| (Reach::Tenant(tenant), found));
        users.chain(tenants).chain([(Reach::All, self.all)]).collect()
    }
}

/// Replaces the result of the previous scan.
pub struct StoreScan {
    pub found: Vec<(Reach, Found)>,
    pub now: Time,
}

impl Write for StoreScan {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        // If two scans end at the same time, the second waits here for the first and replaces its result.
        tx.enter_section("orphan scan").await?;
        tx.execute("DELETE FROM orphan_scans", args![]).await?;
        let mut rows = Rows::default();
        for (whose, found) in &self.found {
            let (tenant, user) = reach::names(whose);
            rows.push(args![tenant, user, found.count, found.bytes, json!(found.samples), self.now]);
        }
        tx.insert("orphan_scans (tenant_id, user_id, count, bytes, samples, scanned_at)", rows, "").await
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
    /// The orphans of these owners. `fresh`: scan even if the last result is recent.
    pub async fn report(&self, reach: &Reach, fresh: bool) -> Result<OrphanReport, Error> {
        let now = self.clock.now();
        let last = last_scan(&mut self.db.read().await?).await?;
        if fresh || last.is_none_or(|at| now - at >= to_delta(MAX_AGE)) {
            self.scan_until_timeout().await;
        }
        let mut tx = self.db.read().await?;
        let (tenant, user) = reach::names(reach);
        let found: Option<(i64, i64, Value)> = tx
            .row(
                "SELECT count, bytes, samples FROM orphan_scans WHERE tenant_id = $1 AND user_id = $2",
                args![tenant, user],
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
            abandoned_uploads: self.abandoned(&mut tx, reach, now).await?,
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

    async fn abandoned(&self, tx: &mut Tx, reach: &Reach, now: Time) -> Result<AbandonedView, Error> {
        let before = now - to_delta(self.config.abandoned_upload);
        let (count, oldest) = uploads::count_abandoned(tx, reach, before, now).await?;
        let oldest_age = oldest.map_or(0, |at| (now - at).num_milliseconds().max(0));
        Ok(AbandonedView { count, oldest_age })
    }
}

async fn last_scan(tx: &mut Tx) -> Result<Option<Time>, Error> {
    let row: Option<(Time,)> =
        tx.row("SELECT scanned_at FROM orphan_scans WHERE tenant_id = '' AND user_id = ''", args![]).await?;
    Ok(row.map(|(at,)| at))
}
