//! Files that do not move although nothing is wrong with them, counted by what they wait for.

use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Stage;
use landfall_store::{Error, Tx, args};

use crate::records::reach;

/// Why a file in the queue is not marked as due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDue {
    /// It is worked on alone.
    Alone,
    /// Its next attempt is still to come.
    Retry,
    /// Its time has come, and no worker has marked it yet.
    Unmarked,
}

/// Files at one stage that are not due for the same reason.
#[derive(Debug, Clone, Copy)]
pub struct NotDueCount {
    pub stage: Stage,
    pub why: NotDue,
    pub files: i64,
    /// When the first of them may go on.
    pub next_at: Time,
    /// When the first of them last changed.
    pub oldest_at: Time,
}

/// The files in the queue of these owners that are not due, without those that are due after `furthest`, which are stuck.
/// Counted up to `most`.
pub async fn not_due(
    tx: &mut Tx,
    reach: &Reach,
    furthest: Time,
    most: i64,
    now: Time,
) -> Result<Vec<NotDueCount>, Error> {
    let mut arguments = args![now, furthest, most];
    let whose = reach::condition(reach, &mut arguments);
    let sql = format!(
        "SELECT next_stage, why, COUNT(*), MIN(run_after), MIN(updated_at) FROM (
             SELECT next_stage, run_after, updated_at,
                    CASE WHEN is_alone THEN 'alone' WHEN run_after > $1 THEN 'retry' ELSE 'unmarked' END AS why
             FROM files WHERE queue_stage IS NOT NULL AND NOT is_due AND run_after <= $2
               -- An archive waits for its files, which are counted themselves.
               AND (archive_batch IS NULL OR error_code IS NOT NULL OR run_after <= $1) AND {whose} LIMIT $3) AS not_due
         GROUP BY next_stage, why"
    );
    let found: Vec<(String, String, i64, Time, Time)> = tx.rows(sql, arguments).await?;
    let count = |(stage, why, files, next_at, oldest_at): (String, String, i64, Time, Time)| {
        let why = match why.as_str() {
            "alone" => NotDue::Alone,
            "retry" => NotDue::Retry,
            _ => NotDue::Unmarked,
        };
        Some(NotDueCount { stage: stage.parse().ok()?, why, files, next_at, oldest_at })
    };
    Ok(found.into_iter().filter_map(count).collect())
}

/// When the first of the files was registered whose bytes are not here or not confirmed, of up to `most` of these owners.
pub async fn oldest_upload(tx: &mut Tx, reach: &Reach, most: i64) -> Result<Option<Time>, Error> {
    let mut arguments = args![most];
    let whose = reach::condition(reach, &mut arguments);
    let sql = format!(
        "SELECT MIN(created_at) FROM (SELECT created_at FROM files WHERE upload_until IS NOT NULL AND {whose} LIMIT $1)
             AS uploads"
    );
    let oldest: Option<(Option<Time>,)> = tx.row(sql, arguments).await?;
    Ok(oldest.and_then(|(at,)| at))
}
