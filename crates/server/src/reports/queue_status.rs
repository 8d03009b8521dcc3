//! The queue as the operator sees it: the workers, what waits, what delays it, and the throughput of the last
//! hours.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::queue::breaker::{Circuit, State};
use crate::queue::limits::bucket_of_stage;
use crate::records::hourly::{self, Hour};
use crate::records::totals::Distribution;
use crate::recovery::runs::{self, JobView};
use landfall_core::clock::Time;
use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;
use landfall_store::Error;
use landfall_store::{Tx, args};

/// Files that wait for their next attempt are counted up to this number, so that the cost is bounded.
const MAX_COUNTED: i64 = 100_000;

#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    pub throughput: Throughput,
    pub recent_hours: Vec<Hour>,
    pub workers: Vec<WorkerView>,
    pub queues: BTreeMap<String, QueueView>,
    pub circuits: Vec<CircuitView>,
    pub schedules: Vec<JobView>,
}

/// Over the hours that are kept.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Throughput {
    pub total_completed: i64,
    pub total_failed: i64,
    pub total_timed_out: i64,
}

#[derive(Debug, Serialize, sqlx::FromRow, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerView {
    pub name: String,
    pub stages: String,
    pub started_at: DateTime<Utc>,
    pub heartbeat_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueView {
    /// Files that could be claimed now.
    pub waiting: i64,
    /// Files that wait for their next attempt.
    pub retrying: i64,
    pub running: i64,
    pub paused: Option<PauseView>,
    /// When the next file may begin, if a rate limit delays the stage.
    pub limited_until: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseView {
    pub at: DateTime<Utc>,
    pub by: String,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CircuitView {
    pub service: Service,
    pub state: State,
    pub failures: i64,
    pub until: Option<DateTime<Utc>>,
    pub changed_at: Option<DateTime<Utc>>,
}

pub async fn load(tx: &mut Tx, now: Time) -> Result<QueueStatus, Error> {
    let recent_hours = hourly::recent(tx, now).await?;
    let mut throughput = Throughput::default();
    for hour in &recent_hours {
        throughput.total_completed += hour.completed;
        throughput.total_failed += hour.failed;
        throughput.total_timed_out += hour.timed_out;
    }
    let workers = tx
        .rows(
            "SELECT name, stages, started_at, heartbeat_at FROM workers WHERE stages <> '' ORDER BY started_at",
            args![],
        )
        .await?;
    Ok(QueueStatus {
        throughput,
        recent_hours,
        workers,
        queues: queues(tx, now).await?,
        circuits: circuits(tx).await?,
        schedules: runs::list(tx).await?,
    })
}

async fn queues(tx: &mut Tx, now: Time) -> Result<BTreeMap<String, QueueView>, Error> {
    let paused: Vec<(String, Time, String)> =
        tx.rows("SELECT stage, paused_at, paused_by FROM paused_stages", args![]).await?;
    let buckets = Stage::ALL.map(bucket_of_stage);
    let limited: Vec<(String, Time)> = tx
        .rows(
            "SELECT name, next_at FROM rate_buckets WHERE name IN ($1, $2, $3, $4) AND next_at > $5",
            args![&buckets[0], &buckets[1], &buckets[2], &buckets[3], now],
        )
        .await?;
    let distribution = Distribution::look(tx, None).await?;
    let retrying: Vec<(String, i64)> = tx
        .rows(
            "SELECT next_stage, COUNT(*) FROM (SELECT next_stage FROM files WHERE status = 'queued' AND NOT is_due LIMIT $1)
                 AS retrying GROUP BY next_stage",
            args![MAX_COUNTED],
        )
        .await?;
    let mut queues = BTreeMap::new();
    for stage in Stage::ALL {
        let retrying = retrying.iter().find(|(name, _)| name == stage.name()).map_or(0, |(_, count)| *count);
        let paused = paused.iter().find(|(name, _, _)| name == stage.name());
        let limited_until = limited.iter().find(|(name, _)| *name == bucket_of_stage(stage));
        queues.insert(
            format!("file-{stage}"),
            QueueView {
                waiting: distribution.waiting(stage) - retrying,
                retrying,
                running: distribution.running(stage),
                paused: paused.map(|(_, at, by)| PauseView { at: *at, by: by.clone() }),
                limited_until: limited_until.map(|(_, until)| *until),
            },
        );
    }
    Ok(queues)
}

pub async fn circuits(tx: &mut Tx) -> Result<Vec<CircuitView>, Error> {
    let mut circuits = Vec::new();
    for service in Service::ALL {
        let Circuit { state, failures, until, changed_at, .. } = Circuit::find(tx, service).await?;
        circuits.push(CircuitView { service, state, failures, until, changed_at });
    }
    Ok(circuits)
}
