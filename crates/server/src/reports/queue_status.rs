//! The queue as the operator sees it: the workers, what waits, what delays it, and the throughput of the last
//! hours.

use std::collections::BTreeMap;

use crate::process::workers::{self, WorkerAtWork};
use crate::queue::circuits;
use crate::queue::limits::{blocked_stages, bucket_of_stage};
use crate::queue::pause;
use crate::records::files::queue;
use crate::records::hourly;
use crate::records::totals::Distribution;
use crate::recovery::runs;
use landfall_api::queues::{CircuitView, PauseView, QueueStatus, QueueView, WorkerView, queue_name};
use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;
use landfall_store::Error;
use landfall_store::Tx;

/// Files that wait for their next attempt are counted up to this number, so that the cost is bounded.
const MAX_COUNTED: i64 = 100_000;

fn worker_view(worker: WorkerAtWork) -> WorkerView {
    let WorkerAtWork { name, stages, started_at, heartbeat_at } = worker;
    WorkerView { name, stages, started_at, heartbeat_at }
}

/// For operators. `hours`: how many of the last hours are shown.
pub async fn load(tx: &mut Tx, hours: Option<i64>, now: Time) -> Result<QueueStatus, Error> {
    let (recent_hours, throughput) = hourly::recent(tx, hours, now).await?;
    let workers = workers::at_work(tx).await?;
    Ok(QueueStatus {
        throughput,
        recent_hours,
        workers: workers.into_iter().map(worker_view).collect(),
        queues: queues(tx, now).await?,
        circuits: circuits(tx, true).await?,
        schedules: runs::list(tx).await?,
    })
}

async fn queues(tx: &mut Tx, now: Time) -> Result<BTreeMap<String, QueueView>, Error> {
    let paused = pause::all(tx).await?;
    let limited = blocked_stages(tx, now).await?;
    let distribution = Distribution::load(tx, &Reach::All).await?;
    let retrying = queue::count_retrying(tx, MAX_COUNTED).await?;
    let mut queues = BTreeMap::new();
    for stage in Stage::ALL {
        let retrying = retrying.iter().find(|(name, _)| name == stage.name()).map_or(0, |(_, count)| *count);
        let paused = paused.iter().find(|paused| paused.stage == stage.name());
        let limited_until = limited.iter().find(|(name, _)| *name == bucket_of_stage(stage));
        queues.insert(
            queue_name(stage),
            QueueView {
                waiting: distribution.waiting(stage) - retrying,
                retrying,
                running: distribution.running(stage),
                paused: paused.map(|paused| PauseView { at: paused.at, by: paused.by.clone() }),
                limited_until: limited_until.map(|(_, until)| *until),
            },
        );
    }
    Ok(queues)
}

/// The circuits of all services. `in_full`: the reader is an operator.
pub async fn circuits(tx: &mut Tx, in_full: bool) -> Result<Vec<CircuitView>, Error> {
    let mut views = Vec::new();
    for service in Service::ALL {
        views.push(circuits::find(tx, service).await?.view(service, in_full));
    }
    Ok(views)
}
