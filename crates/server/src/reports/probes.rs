//! Whether the database and the storage work, found out by using them: a row is written, pages are read, a file is written,
//! and the free space is looked at.
//!
//! The answer is kept for a moment, and callers that come together share it: however many probes there are, the disk is
//! written at most once a second.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::blobs::Blobs;
use crate::process::disk_space::DiskSpace;
use crate::process::liveness::Liveness;
use crate::process::workers;
use crate::recovery::ownership::Ownership;
use landfall_core::clock::Stopwatch;
use landfall_store::{Db, Durability, Error, Tx, Write};
use uuid::Uuid;

/// A check that takes longer has failed: a probe does not wait long.
pub const TIMEOUT: Duration = Duration::from_secs(2);
const KEPT_FOR: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct Probes {
    db: Db,
    blobs: Blobs,
    disk: DiskSpace,
    liveness: Arc<Liveness>,
    last: Arc<Mutex<Last>>,
}

/// The last answer, and how many there were.
#[derive(Default)]
struct Last {
    answer: Option<(Stopwatch, Probed)>,
    count: u64,
}

/// What was found. `Err` has a sentence that anyone may read.
#[derive(Debug, Clone)]
pub struct Probed {
    pub database: Result<(), String>,
    pub storage: Result<(), String>,
    pub disk: Result<(), String>,
}

impl Probes {
    pub fn new(ownership: &Ownership, disk: &DiskSpace, liveness: &Arc<Liveness>) -> Self {
        let Ownership { db, blobs } = ownership.clone();
        Self { db, blobs, disk: disk.clone(), liveness: liveness.clone(), last: Arc::default() }
    }

    pub async fn probe(&self) -> Probed {
        let mut last = self.last.lock().await;
        if let Some((probed_at, probed)) = &last.answer
            && probed_at.elapsed() < KEPT_FOR
        {
            return probed.clone();
        }
        let (database, storage, disk) = tokio::join!(
            in_time("database", self.database()),
            in_time("storage", self.blobs.check()),
            self.disk.check()
        );
        let probed = Probed { database, storage, disk };
        last.answer = Some((Stopwatch::start(), probed.clone()));
        last.count += 1;
        probed
    }

    /// How often the database and the storage were really used.
    pub async fn count(&self) -> u64 {
        self.last.lock().await.count
    }

    /// Reads, and commits a write, which a full or read-only disk refuses.
    async fn database(&self) -> Result<(), Error> {
        self.db.sample(landfall_core::random::random()).await?;
        self.db.write(RewriteOwnRow { worker: self.liveness.identity().id }).await
    }
}

async fn in_time(what: &str, check: impl Future<Output = Result<(), Error>>) -> Result<(), String> {
    match tokio::time::timeout(TIMEOUT, check).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            tracing::warn!(check = what, %error, "not ready");
            Err(match error {
                Error::DatabaseFileGone { .. } => DATABASE_FILE_GONE.to_owned(),
                error if error.is_damage() => {
                    "The database is damaged: restore it from a backup (docs/runbooks/restore-from-backup.md)"
                        .to_owned()
                }
                _ => format!("The {what} is not available"),
            })
        }
        Err(_) => {
            tracing::warn!(check = what, "not ready: no response in time");
            Err(format!("The {what} did not respond within {} s", TIMEOUT.as_secs()))
        }
    }
}

/// Without the path, which only the log has.
pub const DATABASE_FILE_GONE: &str = "The file of the server's database was deleted or replaced while the server runs, so nothing \
     can be stored. An operator must put it back or restart the server; repeat the request then";

struct RewriteOwnRow {
    worker: Uuid,
}

impl Write for RewriteOwnRow {
    type Output = ();

    fn durability(&self) -> Durability {
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        workers::rewrite(tx, self.worker).await
    }
}
