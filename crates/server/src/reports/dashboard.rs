//! The dashboard of a user's files, of a tenant's, or of all files, as they are at the moment of the request. Nothing is cached
//! between requests; it is cheap because the totals are (`totals.rs`), and everything else uses an index without
//! the finished files.

use super::queue_status;
use crate::records::batch::count_active;
use crate::records::files::dead_letters::{self, DeadLetter, Filter};
use crate::records::files::queue;
use crate::records::throughput;
use crate::records::totals::Distribution;
use crate::recovery::stuck_files::detection::Detection;
use landfall_api::dashboard::{Dashboard, Metrics, RecentError};
use landfall_api::queues::queue_name;
use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};
use landfall_store::Error;
use landfall_store::Tx;

const RECENT_ERRORS: i64 = 10;
/// For many users together: the maximum number of users whose oldest file is checked.
pub const MAX_USERS: usize = 2_000;

fn recent_error(letter: DeadLetter) -> RecentError {
    let error = letter.reason();
    RecentError {
        file_id: letter.id,
        file_name: letter.file_name,
        error,
        code: letter.error_code,
        stage: letter.error_stage,
        timestamp: letter.failed_at,
    }
}

/// Must run in a snapshot. `in_full`: the reader is an operator.
pub async fn load(
    tx: &mut Tx,
    reach: &Reach,
    in_full: bool,
    detection: &Detection,
    first_stage: Stage,
    now: Time,
) -> Result<Dashboard, Error> {
    let distribution = Distribution::load(tx, reach).await?;
    let ended = throughput::last_day(tx, reach, now).await?;
    let filter = Filter::of(reach.clone());
    let recent = dead_letters::list(tx, &filter, None, RECENT_ERRORS, 0).await?;
    Ok(Dashboard {
        status_distribution: Status::ALL
            .into_iter()
            .filter(|status| *status != Status::Deleted)
            .map(|status| (status, distribution.count(status)))
            .collect(),
        active_batches: count_active(tx, reach).await?,
        dlq_depth: distribution.count(Status::Failed),
        stuck_files: detection.count(tx, reach, now).await?,
        queue_depths: Stage::ALL
            .into_iter()
            // Without a scanner there is no such queue.
            .filter(|stage| *stage >= first_stage || distribution.waiting(*stage) > 0)
            .map(|stage| (queue_name(stage), distribution.waiting(stage)))
            .collect(),
        recent_errors: recent.into_iter().map(recent_error).collect(),
        metrics: Metrics {
            average_processing_time: ended.average_processing_ms(),
            throughput: ended.completed,
            failure_rate: ended.failure_rate(),
        },
        circuits: queue_status::circuits(tx, in_full).await?,
        oldest_waiting_ms: oldest_waiting(tx, reach, now).await?,
    })
}

/// How many milliseconds the oldest file that a worker could claim has waited.
pub async fn oldest_waiting(tx: &mut Tx, reach: &Reach, now: Time) -> Result<i64, Error> {
    let oldest = queue::oldest_by_stage(tx, reach, MAX_USERS).await?.into_values().min();
    Ok(oldest.map_or(0, |since| (now - since).num_milliseconds().max(0)))
}
