//! `retention`: records go when their time is over. What goes, and when:
//!
//! | record | goes if and only if |
//! |---|---|
//! | tombstone, with its history and its last events | it is older than its time, and its blob is gone |
//! | event that is no step in a file's history | it is older than its time |
//! | idempotency key | it was made longer ago than its time |
//! | hourly counters | they are of an hour that no report shows any more |
//! | throughput of a user | it is older than the day that is shown |
//! | run of a job | it ended longer ago than its time |
//! | operation | it ended longer ago than its time |
//! | notification | it was made longer ago than its time |
//! | delivery to a webhook | it ended longer ago than its time, or its webhook is gone |
//! | rate bucket | its next turn came a day ago: a new one would be the same |
//!
//! The history of a file that still has a row stays with it, whatever its age. Everything goes in portions, each of which
//! is a transaction of its own: no other transaction waits long behind one, and an interrupted run keeps what it did.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;

use super::config::CleaningConfig;
use super::{Sweep, SweepReport};
use crate::records::events;
use crate::records::files::blobs;
use crate::records::{hourly, throughput};
use landfall_core::clock::{Time, to_delta};
use landfall_store::Error;
use landfall_store::{Arg, Db, Rows, Tx, Write, args};

/// Records that go in one transaction.
const PORTION: i64 = 500;
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
            let mut done = vec![("tombstones", tombstones), ("events", events)];
            for kind in self.kinds(now) {
                done.push((kind.name, self.remove_all(&kind).await));
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

/// Records that go by themselves: where they are, what names one, and which go.
struct Kind {
    name: &'static str,
    table: &'static str,
    key: &'static str,
    /// With `$1` for the time before which they go.
    condition: &'static str,
    before: Time,
}

impl Retention {
    fn kinds(&self, now: Time) -> Vec<Kind> {
        let keep = &self.config;
        let kind = |name, table, key, condition, time| Kind {
            name,
            table,
            key,
            condition,
            before: now - to_delta(time),
        };
        vec![
            kind(
                "idempotencyKeys",
                "idempotency_keys",
                "user_id, key",
                "created_at < $1",
                keep.idempotency_keys,
            ),
            Kind {
                before: hourly::oldest_kept(now),
                ..kind("hourlyMetrics", "hourly", "hour, name", "hour < $1", Duration::ZERO)
            },
            Kind {
                before: throughput::oldest_kept(now),
                ..kind("throughput", "throughput", "user_id, slot", "slot < $1", Duration::ZERO)
            },
            kind("jobRuns", "job_runs", "id", "ended_at < $1", keep.job_runs),
            kind("operations", "operations", "id", "ended_at < $1", keep.operations),
            kind("notifications", "notifications", "id", "created_at < $1", keep.notifications),
            kind("webhookDeliveries", "webhook_deliveries", "number", "ended_at < $1", keep.deliveries),
            kind(
                "deliveriesWithoutWebhook",
                "webhook_deliveries",
                "number",
                "created_at < $1 AND NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.id = webhook_deliveries.webhook_id)",
                Duration::ZERO,
            ),
            kind(
                "rateBuckets",
                "rate_buckets",
                "name",
                "next_at < $1 AND (reported_at IS NULL OR reported_at < $1)",
                UNUSED_BUCKET,
            ),
        ]
    }

    async fn remove_all(&self, kind: &Kind) -> Result<u64, Error> {
        // What a portion picked and then finds changed stays, so the condition is there twice.
        let Kind { table, key, condition, before, .. } = kind;
        let sql = format!(
            "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {condition} LIMIT $2) AND {condition}"
        );
        let mut removed = 0;
        loop {
            let portion = RemovePortion { sql: sql.clone(), args: args![*before, PORTION] };
            let gone = self.db.write(portion).await?;
            removed += gone;
            if gone == 0 {
                return Ok(removed);
            }
        }
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

struct RemovePortion {
    sql: String,
    args: Vec<Arg>,
}

impl Write for RemovePortion {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        tx.execute(self.sql.clone(), self.args.clone()).await
    }
}

/// Removes a portion of the events that are no step in a file's history.
struct RemoveEvents {
    before: Time,
}

impl Write for RemoveEvents {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        let gone: Vec<(i64,)> = tx
            .rows(
                "DELETE FROM events WHERE id IN
                     (SELECT id FROM events WHERE at < $1 AND kind <> 'file:status-changed' LIMIT $2) RETURNING id",
                args![self.before, PORTION],
            )
            .await?;
        events::note_removal(tx, &gone).await?;
        Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
    }
}

/// Forgets a portion of deleted files, and all that was written down about them.
struct RemoveTombstones {
    before: Time,
}

impl Write for RemoveTombstones {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        let gone = blobs::remove_tombstones(tx, self.before, PORTION).await?;
        for portion in gone.chunks(Rows::MOST) {
            let mut ids = Rows::default();
            for id in portion {
                ids.push(args![*id]);
            }
            let (values, arguments) = ids.into_values(tx);
            let sql =
                format!("DELETE FROM events WHERE file_id IN (SELECT * FROM ({values}) AS v) RETURNING id");
            let events: Vec<(i64,)> = tx.rows(sql, arguments).await?;
            events::note_removal(tx, &events).await?;
        }
        Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
    }
}
