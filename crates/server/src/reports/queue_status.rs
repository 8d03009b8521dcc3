//! The queue as the operator sees it: the workers, what waits, what delays it, and the throughput of the last
//! hours.

use std::collections::BTreeMap;

use crate::queue::breaker::Circuit;
use crate::queue::limits::bucket_of_stage;
use crate::records::files::queue;
use crate::records::hourly;
use crate::records::totals::Distribution;
use crate::recovery::runs;
use landfall_api::queues::{CircuitView, PauseView, QueueStatus, QueueView, WorkerView, queue_name};
use landfall_core::clock::Time;
use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;
use landfall_store::Error;
use landfall_store::{Tx, args};

/// Files that wait for their next attempt are counted up to this number, so that the cost is bounded.
const MAX_COUNTED: i64 = 100_000;

#[derive(Debug, sqlx::FromRow)]
struct WorkerRow {
    name: String,
    stages: String,
    started_at: Time,
    heartbeat_at: Time,
}

impl From<WorkerRow> for WorkerView {
    fn from(row: WorkerRow) -> Self {
        let WorkerRow { name, stages, started_at, heartbeat_at } = row;
        Self { name, stages, started_at, heartbeat_at }
    }
}

pub async fn load(tx: &mut Tx, now: Time) -> Result<QueueStatus, Error> {
    let (recent_hours, throughput) = hourly::recent(tx, now).await?;
    let workers: Vec<WorkerRow> = tx
        .rows(
            "SELECT name, stages, started_at, heartbeat_at FROM workers WHERE stages <> '' ORDER BY started_at",
            args![],
        )
        .await?;
    Ok(QueueStatus {
        throughput,
        recent_hours,
        workers: workers.into_iter().map(WorkerView::from).collect(),
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
    let distribution = Distribution::load(tx, None).await?;
    let retrying = queue::count_retrying(tx, MAX_COUNTED).await?;
    let mut queues = BTreeMap::new();
    for stage in Stage::ALL {
        let retrying = retrying.iter().find(|(name, _)| name == stage.name()).map_or(0, |(_, count)| *count);
        let paused = paused.iter().find(|(name, _, _)| name == stage.name());
        let limited_until = limited.iter().find(|(name, _)| *name == bucket_of_stage(stage));
        queues.insert(
            queue_name(stage),
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
