//! `retention`: records go when their time is over. What goes, and when:
//!
//! | record | goes if and only if |
//! |---|---|
//! | tombstone, with its history and its last events | it is older than its time, and its blob is gone |
//! | batch | it has ended, none of its files has a row any more, and its last change is older than the time of a tombstone |
//! | event that is no step in a file's history | it is older than its time |
//! | idempotency key | it was made longer ago than its time |
//! | hourly counters | they are of an hour that no report shows any more |
//! | throughput of a user | it is older than the day that is shown |
//! | run of a job | it ended longer ago than its time |
//! | operation | it ended longer ago than its time |
//! | notification | it was made longer ago than its time |
//! | delivery to a webhook | it ended longer ago than its time, or its webhook is gone |
//! | session of the page, one-time link | it expired |
//! | entry of the audit log | it was made longer ago than its time |
//! | API key | it was revoked or expired 90 days ago |
//! | rate bucket | its next turn came a day ago: a new one would be the same |
//!
//! The history of a file that still has a row stays with it, whatever its age. Everything goes in batches, each of which
//! is a transaction of its own: no other transaction waits long behind one, and an interrupted run keeps what it did.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use super::config::CleaningConfig;
use super::{Sweep, SweepReport, runs};
use crate::auth::{api_keys, links, sessions};
use crate::delivery::webhooks::deliveries;
use crate::intake::idempotency;
use crate::operations;
use crate::queue::limits;
use crate::records::batch::removal as removal_of_batches;
use crate::records::events::removal;
use crate::records::files::blobs;
use crate::records::{audit_log, hourly, notifications, throughput};
use landfall_core::clock::{Time, to_delta};
use landfall_store::Error;
use landfall_store::{Db, Tx, Write};

/// Records that go in one transaction.
const BATCH_SIZE: i64 = 500;
/// How long a key that was revoked or has expired stays in the list.
const DEAD_KEYS: Duration = Duration::from_hours(90 * 24);
/// A bucket that was not used for so long delays no file.
const UNUSED_BUCKET: Duration = Duration::from_hours(24);

#[derive(Clone)]
pub struct Retention {
    pub db: Db,
    pub config: CleaningConfig,
}

impl Sweep for Retention {
    fn name(&self) -> &'static str {
        "retention"
    }

    fn sweep_once(&self, now: Time) -> BoxFuture<'_, Result<SweepReport, Error>> {
        async move {
            let mut report = SweepReport::default();
            let tombstones = self.remove_tombstones(now - to_delta(self.config.tombstones)).await;
            let events = self.remove_events(now - to_delta(self.config.events)).await;
            // After the tombstones: a batch stays as long as one of them.
            let batches = self.remove_batches(now - to_delta(self.config.tombstones)).await;
            let mut done = vec![("tombstones", tombstones), ("batches", batches), ("events", events)];
            for kind in Kind::ALL {
                let before = kind.before(&self.config, now);
                done.push((kind.name(), self.remove_all(kind, before).await));
            }
            for (name, removed) in done {
                match removed {
                    Ok(removed) => {
                        if removed > 0 {
                            tracing::info!(
                                job = "retention",
                                name,
                                removed,
                                "removed records whose time was over"
                            );
                        }
                        report.metrics.insert(name.to_owned(), json!(removed));
                    }
                    // The others go all the same.
                    Err(error) => report.errors.push(format!("{name}: {error}")),
                }
            }
            Ok(report)
        }
        .boxed()
    }
}

/// Records that go by themselves.
#[derive(Debug, Clone, Copy)]
enum Kind {
    IdempotencyKeys,
    HourlyMetrics,
    Throughput,
    JobRuns,
    Operations,
    Notifications,
    WebhookDeliveries,
    DeliveriesWithoutWebhook,
    RateBuckets,
    Sessions,
    SignInLinks,
    AuditLog,
    ApiKeys,
}

impl Kind {
    const ALL: [Self; 13] = [
        Self::IdempotencyKeys,
        Self::HourlyMetrics,
        Self::Throughput,
        Self::JobRuns,
        Self::Operations,
        Self::Notifications,
        Self::WebhookDeliveries,
        Self::DeliveriesWithoutWebhook,
        Self::RateBuckets,
        Self::AuditLog,
        Self::ApiKeys,
        Self::Sessions,
        Self::SignInLinks,
    ];

    /// What it is called in the report.
    const fn name(self) -> &'static str {
        match self {
            Self::IdempotencyKeys => "idempotencyKeys",
            Self::HourlyMetrics => "hourlyMetrics",
            Self::Throughput => "throughput",
            Self::JobRuns => "jobRuns",
            Self::Operations => "operations",
            Self::Notifications => "notifications",
            Self::WebhookDeliveries => "webhookDeliveries",
            Self::DeliveriesWithoutWebhook => "deliveriesWithoutWebhook",
            Self::RateBuckets => "rateBuckets",
            Self::AuditLog => "auditLog",
            Self::ApiKeys => "apiKeys",
            Self::Sessions => "sessions",
            Self::SignInLinks => "signInLinks",
        }
    }

    /// The time before which they go.
    fn before(self, keep: &CleaningConfig, now: Time) -> Time {
        let ago = |time| now - to_delta(time);
        match self {
            Self::IdempotencyKeys => ago(keep.idempotency_keys),
            Self::HourlyMetrics => hourly::oldest_kept(now),
            Self::Throughput => throughput::oldest_kept(now),
            Self::JobRuns => ago(keep.job_runs),
            Self::Operations => ago(keep.operations),
            Self::Notifications => ago(keep.notifications),
            Self::WebhookDeliveries => ago(keep.deliveries),
            Self::DeliveriesWithoutWebhook | Self::Sessions | Self::SignInLinks => now,
            Self::RateBuckets => ago(UNUSED_BUCKET),
            Self::AuditLog => ago(keep.audit_log),
            Self::ApiKeys => ago(DEAD_KEYS),
        }
    }
}

impl Retention {
    async fn remove_all(&self, kind: Kind, before: Time) -> Result<u64, Error> {
        let mut removed = 0;
        loop {
            let gone = self.db.write(RemoveBatch { kind, before }).await?;
            removed += gone;
            if gone == 0 {
                return Ok(removed);
            }
        }
    }

    async fn remove_batches(&self, before: Time) -> Result<u64, Error> {
        let (mut removed, mut after) = (0, Some(Uuid::nil()));
        while let Some(page) = after {
            let (gone, last) = self.db.write(RemoveBatches { before, after: page }).await?;
            removed += gone;
            after = last;
        }
        Ok(removed)
    }

    async fn remove_events(&self, before: Time) -> Result<u64, Error> {
        let mut removed = 0;
        loop {
            let gone = self.db.write(RemoveEvents { before }).await?;
            removed += gone;
            if gone == 0 {
                return Ok(removed);
            }
        }
    }

    async fn remove_tombstones(&self, before: Time) -> Result<u64, Error> {
        let mut removed = 0;
        loop {
            let gone = self.db.write(RemoveTombstones { before }).await?;
            removed += gone;
            if gone == 0 {
                return Ok(removed);
            }
        }
    }
}

struct RemoveBatch {
    kind: Kind,
    before: Time,
}

impl Write for RemoveBatch {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        let before = self.before;
        match self.kind {
            Kind::IdempotencyKeys => idempotency::remove_old(tx, before, BATCH_SIZE).await,
            Kind::HourlyMetrics => hourly::remove_old(tx, before, BATCH_SIZE).await,
            Kind::Throughput => throughput::remove_old(tx, before, BATCH_SIZE).await,
            Kind::JobRuns => runs::remove_ended(tx, before, BATCH_SIZE).await,
            Kind::Operations => operations::rows::remove_ended(tx, before, BATCH_SIZE).await,
            Kind::Notifications => notifications::remove_old(tx, before, BATCH_SIZE).await,
            Kind::WebhookDeliveries => deliveries::remove_ended(tx, before, BATCH_SIZE).await,
            Kind::DeliveriesWithoutWebhook => deliveries::remove_lone(tx, before, BATCH_SIZE).await,
            Kind::RateBuckets => limits::remove_unused(tx, before, BATCH_SIZE).await,
            Kind::AuditLog => audit_log::remove_old(tx, before, BATCH_SIZE).await,
            Kind::ApiKeys => api_keys::remove_old(tx, before, BATCH_SIZE).await,
            Kind::Sessions => sessions::remove_old(tx, before, BATCH_SIZE).await,
            Kind::SignInLinks => links::remove_old(tx, before, BATCH_SIZE).await,
        }
    }
}

/// Removes a batch of the events that are no step in a file's history.
struct RemoveEvents {
    before: Time,
}

impl Write for RemoveEvents {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        let gone = removal::remove_old(tx, self.before, BATCH_SIZE).await?;
        Ok(u64::try_from(gone).unwrap_or(u64::MAX))
    }
}

/// Removes those of a page of ended batches that have no file any more. Returns how many, and the last of the page.
struct RemoveBatches {
    before: Time,
    after: Uuid,
}

impl Write for RemoveBatches {
    type Output = (u64, Option<Uuid>);

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        removal_of_batches::remove_page(tx, self.before, self.after, BATCH_SIZE).await
    }
}

/// Forgets a batch of deleted files, and all that was written down about them.
struct RemoveTombstones {
    before: Time,
}

impl Write for RemoveTombstones {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        let gone = blobs::remove_tombstones(tx, self.before, BATCH_SIZE).await?;
        removal::remove_of(tx, &gone).await?;
        Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
    }
}
