//! The queue as its operator sees it: who works, what waits, what holds it up, how the last hours went.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::hourly::{self, Hour};
use crate::clock::Time;
use crate::db::{Tx, args};
use crate::error::Error;
use crate::lifecycle::Stage;
use crate::queue::breaker::{Circuit, Service, State};
use crate::recovery::runs::{self, JobView};

/// Files are counted up to here, so that the answer costs the same whatever waits.
const MOST_COUNTED: i64 = 100_000;

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
    /// Files that could be claimed now, as far as they are counted.
    pub waiting: i64,
    /// Files that wait for their next attempt.
    pub retrying: i64,
    pub running: i64,
    pub paused: Option<PauseView>,
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

pub async fn look(tx: &mut Tx, now: Time) -> Result<QueueStatus, Error> {
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
        queues: queues(tx).await?,
        circuits: circuits(tx).await?,
        schedules: runs::list(tx).await?,
    })
}

async fn queues(tx: &mut Tx) -> Result<BTreeMap<String, QueueView>, Error> {
    let paused: Vec<(String, Time, String)> =
        tx.rows("SELECT stage, paused_at, paused_by FROM paused_stages", args![]).await?;
    let running: Vec<(String, i64)> = tx
        .rows("SELECT status, COUNT(*) FROM files WHERE claimed_by IS NOT NULL GROUP BY status", args![])
        .await?;
    let mut queues = BTreeMap::new();
    for stage in Stage::ALL {
        let count = |which: &str| {
            format!(
                "SELECT COUNT(*) FROM (SELECT 1 FROM files WHERE status = 'queued' AND {which}
                     AND next_stage = $1 LIMIT $2) AS counted"
            )
        };
        let waiting = tx.number(count("is_due"), args![stage, MOST_COUNTED]).await?;
        let retrying = tx.number(count("NOT is_due"), args![stage, MOST_COUNTED]).await?;
        let at_it = running.iter().find(|(status, _)| status == stage.running().name());
        let paused = paused.iter().find(|(name, _, _)| name == stage.name());
        queues.insert(
            format!("file-{stage}"),
            QueueView {
                waiting,
                retrying,
                running: at_it.map_or(0, |(_, count)| *count),
                paused: paused.map(|(_, at, by)| PauseView { at: *at, by: by.clone() }),
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
