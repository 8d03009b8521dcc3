//! What the last look at the storage found, for whoever asks. A look may take long, so nobody waits for one: it is kept
//! for an hour, and the next one is made behind the answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::orphan_blobs::{self, Orphan};
use crate::blobs::Blobs;
use crate::recovery::config::CleaningConfig;
use landfall_api::orphans::{AbandonedView, BlobsView, OrphanReport};
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_store::Error;
use landfall_store::{Db, Rows, Tx, Write, args};

/// How long what was found is good for.
const GOOD_FOR: Duration = Duration::from_hours(1);
/// How long a request waits for a look to end. Most do; where there are millions of blobs, the next request has it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Orphans that are named.
const SAMPLES: usize = 10;
/// Users whose orphans are counted one by one. Everybody's are counted in any case.
const MOST_USERS: usize = 10_000;
/// Under which name everybody's are kept. No user has it.
const EVERYBODY: &str = "";

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
        if self.samples.len() < SAMPLES {
            self.samples.push(key.to_owned());
        }
    }
}

/// Orphans as they are found.
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
            && (self.by_user.len() < MOST_USERS || self.by_user.contains_key(&user))
        {
            self.by_user.entry(user).or_default().add(key, size);
        }
    }

    pub fn finish(self) -> Vec<(String, Found)> {
        let mut found: Vec<_> = self.by_user.into_iter().filter(|(user, _)| user != EVERYBODY).collect();
        found.push((EVERYBODY.to_owned(), self.all));
        found
    }
}

/// Puts what was found in the place of what was found before.
pub struct StoreScan {
    pub found: Vec<(String, Found)>,
    pub now: Time,
}

impl Write for StoreScan {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        // Two looks that end together: the later one waits here for the earlier, and replaces it.
        if tx.is_postgres() {
            tx.script("SELECT pg_advisory_xact_lock(hashtext('landfall orphan scan'))").await?;
        }
        tx.execute("DELETE FROM orphan_scans", args![]).await?;
        let mut rows = Rows::default();
        for (user, found) in &self.found {
            rows.push(args![user, found.count, found.bytes, json!(found.samples), self.now]);
        }
        tx.insert("orphan_scans (user_id, count, bytes, samples, scanned_at)", rows, "").await
    }
}

/// Answers reports, and looks at the storage when what is known is too old.
#[derive(Clone)]
pub struct Scanner {
    pub db: Db,
    pub blobs: Blobs,
    pub clock: Clock,
    pub config: CleaningConfig,
    /// Held while this process looks: one look at a time is enough.
    pub looking: Arc<Mutex<()>>,
}

impl Scanner {
    /// `user`: whose; everybody's where there is none. `anew`: also if the last look is fresh.
    pub async fn report(&self, user: Option<&str>, anew: bool) -> Result<OrphanReport, Error> {
        let now = self.clock.now();
        let last = last_look(&mut self.db.read().await?).await?;
        if anew || last.is_none_or(|at| now - at >= to_delta(GOOD_FOR)) {
            self.look_for_a_while().await;
        }
        let mut tx = self.db.read().await?;
        let found: Option<(i64, i64, Value)> = tx
            .row(
                "SELECT count, bytes, samples FROM orphan_scans WHERE user_id = $1",
                args![user.unwrap_or(EVERYBODY)],
            )
            .await?;
        let (count, total_size, samples) = found.unwrap_or((0, 0, json!([])));
        Ok(OrphanReport {
            last_scan_time: last_look(&mut tx).await?,
            orphan_blobs: BlobsView {
                count,
                total_size,
                samples: serde_json::from_value(samples).unwrap_or_default(),
            },
            abandoned_uploads: self.abandoned(&mut tx, user, now).await?,
        })
    }

    /// Looks in a task of its own, and waits for it as long as a caller would.
    async fn look_for_a_while(&self) {
        let Ok(looking) = self.looking.clone().try_lock_owned() else {
            // Whoever looks already is as good as we are.
            tokio::select! {
                _ = self.looking.lock() => {}
                () = Clock::System.sleep(PATIENCE) => {}
            }
            return;
        };
        let scanner = self.clone();
        let look = tokio::spawn(async move {
            if let Err(error) = scanner.look().await {
                tracing::warn!(%error, "could not look for orphans");
            }
            drop(looking);
        });
        tokio::select! {
            _ = look => {}
            () = Clock::System.sleep(PATIENCE) => {}
        }
    }

    async fn look(&self) -> Result<(), Error> {
        let now = self.clock.now();
        let written_before = now - to_delta(self.config.orphan_min_age);
        let found = orphan_blobs::count(&self.db, &self.blobs, written_before).await?;
        self.db.write(StoreScan { found: found.scan.finish(), now }).await
    }

    async fn abandoned(&self, tx: &mut Tx, user: Option<&str>, now: Time) -> Result<AbandonedView, Error> {
        let before = now - to_delta(self.config.abandoned_upload);
        let mut arguments = args![before, now];
        let mut condition = "status = 'registered' AND created_at <= $1 AND upload_until <= $2".to_owned();
        if let Some(user) = user {
            arguments.push(user.into());
            condition.push_str(" AND user_id = $3");
        }
        let sql = format!("SELECT COUNT(*), MIN(created_at) FROM files WHERE {condition}");
        let found: Option<(i64, Option<Time>)> = tx.row(sql, arguments).await?;
        let (count, oldest) = found.unwrap_or_default();
        let oldest_age = oldest.map_or(0, |at| (now - at).num_milliseconds().max(0));
        Ok(AbandonedView { count, oldest_age })
    }
}

async fn last_look(tx: &mut Tx) -> Result<Option<Time>, Error> {
    let row: Option<(Time,)> =
        tx.row("SELECT scanned_at FROM orphan_scans WHERE user_id = $1", args![EVERYBODY]).await?;
    Ok(row.map(|(at,)| at))
}
