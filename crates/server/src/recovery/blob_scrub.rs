//! A blob is damaged if and only if a file should have it and the storage has no blob under its key, cannot read it, or has
//! other bytes than those that arrived.
//!
//! The scrub reads the blobs that were not checked for the longest time, at a limited rate, and writes after each page which
//! were checked. So a run that was cut short goes on where it was. A file whose blob is damaged is marked until its blob is
//! right again: bytes that were restored from a backup are found at the next scrub. Files from before SHA-256 was kept are
//! compared with their MD5, and get their SHA-256.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use uuid::Uuid;

use super::{Sweep, SweepReport};
use crate::blobs::{Blobs, Checksum, Pin, Revision};
use crate::records::files::blobs::{self, ToScrub};
use crate::telemetry::metrics::{blob_scrubbed, damaged_blob_found};
use landfall_core::clock::{Clock, Stopwatch, Time, to_delta};
use landfall_store::{Db, Error, Tx, Write};

const NAME: &str = "blob-scrub";
const PAGE: usize = 50;
const BUFFER: usize = 256 * 1024;

#[derive(Debug, Clone)]
pub struct ScrubConfig {
    /// How long after its last check a blob is checked again.
    pub interval: Duration,
    /// In bytes a second.
    pub rate: u64,
    /// How much one run reads at the most; the next run goes on.
    pub most: u64,
}

pub struct BlobScrub {
    pub db: Db,
    pub blobs: Blobs,
    pub config: ScrubConfig,
}

impl Sweep for BlobScrub {
    fn name(&self) -> &'static str {
        NAME
    }

    fn sweep_once(&self, now: Time) -> BoxFuture<'_, Result<SweepReport, Error>> {
        self.sweep(now).boxed()
    }
}

/// What is wrong with a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    Missing,
    Unreadable,
    Changed,
}

impl Finding {
    const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
            Self::Changed => "changed",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Missing => "its bytes are gone from the storage",
            Self::Unreadable => "its bytes cannot be read",
            Self::Changed => "its bytes are not those that were uploaded",
        }
    }
}

struct Checked {
    file: Uuid,
    key: String,
    outcome: Result<String, Finding>,
}

impl BlobScrub {
    async fn sweep(&self, now: Time) -> Result<SweepReport, Error> {
        let (mut checked, mut bytes, mut damaged) = (0_u64, 0_u64, 0_u64);
        let mut errors = Vec::new();
        let mut pace = RatePace { rate: self.config.rate.max(1), bytes: 0, began: Stopwatch::start() };
        let before = now - to_delta(self.config.interval);
        while bytes < self.config.most {
            let page = blobs::to_scrub(&mut self.db.read().await?, before, PAGE).await?;
            if page.is_empty() {
                break;
            }
            let mut results = Vec::with_capacity(page.len());
            for file in page {
                bytes += file.size_bytes.unsigned_abs();
                let outcome = self.check(&file, &mut pace).await?;
                results.push(Checked { file: file.id, key: file.blob_key, outcome });
                if bytes >= self.config.most {
                    break;
                }
            }
            checked += results.len() as u64;
            for (file, finding) in self.db.write(Record { results, now }).await? {
                damaged += 1;
                damaged_blob_found(finding.name());
                tracing::error!(job = NAME, fileId = %file, finding = finding.name(), "a blob is damaged");
                errors.push(format!("file {file}: {}", finding.sentence()));
            }
        }
        blob_scrubbed(checked);
        let metrics = [("checked", json!(checked)), ("bytes", json!(bytes)), ("damaged", json!(damaged))];
        let metrics = metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(SweepReport { metrics, errors })
    }

    /// The SHA-256 of a good blob, or what is wrong with it. Fails if the storage as a whole does not work.
    async fn check(&self, file: &ToScrub, pace: &mut RatePace) -> Result<Result<String, Finding>, Error> {
        let checksum = Checksum::of(file.blob_sha256.as_deref(), file.md5.as_deref());
        let pin = Pin {
            key: file.blob_key.clone(),
            size: file.size_bytes.unsigned_abs(),
            checksum,
            revision: Revision { etag: file.blob_etag.clone(), version: file.blob_version.clone() },
        };
        let opened = self.blobs.read_pinned(&pin).await;
        let (mut blob, integrity) = match opened {
            Ok(opened) => opened,
            Err(Error::BlobMissing { .. }) => {
                self.blobs.check().await?;
                return Ok(Err(Finding::Missing));
            }
            Err(Error::BlobChanged { .. }) => return Ok(Err(Finding::Changed)),
            Err(error) => return self.unreadable(file, error.to_string()).await,
        };
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; BUFFER]);
        loop {
            match blob.read(&mut buffer).await {
                Ok(0) => return Ok(Ok(hex::encode(hash.finalize()))),
                Ok(read) => {
                    hash.update(&buffer[..read]);
                    pace.keep(read as u64).await;
                }
                Err(_) if integrity.is_broken() => return Ok(Err(Finding::Changed)),
                Err(error) => return self.unreadable(file, error.to_string()).await,
            }
        }
    }

    /// A single blob that cannot be read is damaged. Where nothing can be read, nothing is known about any.
    async fn unreadable(&self, file: &ToScrub, error: String) -> Result<Result<String, Finding>, Error> {
        self.blobs.check().await?;
        tracing::warn!(job = NAME, fileId = %file.id, error, "a blob cannot be read");
        Ok(Err(Finding::Unreadable))
    }
}

/// Keeps the scrub from taking the disk for itself. By the system's clock: the disk knows no other.
struct RatePace {
    rate: u64,
    bytes: u64,
    began: Stopwatch,
}

impl RatePace {
    async fn keep(&mut self, bytes: u64) {
        self.bytes += bytes;
        let due = Duration::from_millis(self.bytes.saturating_mul(1_000) / self.rate);
        if let Some(early) = due.checked_sub(self.began.elapsed()).filter(|early| early.as_millis() > 20) {
            Clock::System.sleep(early).await;
        }
    }
}

/// Writes what was found. Returns what is damaged, of those files that still have the same blob: one that was deleted or
/// replaced meanwhile is not.
struct Record {
    results: Vec<Checked>,
    now: Time,
}

impl Write for Record {
    type Output = Vec<(Uuid, Finding)>;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let mut damaged = Vec::new();
        for Checked { file, key, outcome } in &self.results {
            match outcome {
                Ok(sha256) => blobs::note_right(tx, *file, key, sha256, self.now).await?,
                Err(finding) => {
                    if blobs::note_damage(tx, *file, key, self.now).await? {
                        damaged.push((*file, *finding));
                    }
                }
            }
        }
        Ok(damaged)
    }
}
