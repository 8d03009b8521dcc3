//! The statements about the table `files`, by topic. All other modules call these functions, so that what is asked of
//! the table, and along which of its indexes, is seen in one place.
//!
//! [`super::file`] is the row itself, and [`super::moves`] is the one statement that changes the state of files.

// Until the bytes are here, and where they are.
pub mod archives;
pub mod arriving;
pub mod attributes;
pub mod blobs;
pub mod uploads;
// What waits for a worker, what a worker holds, and what may be stuck.
pub mod held;
pub mod queue;
pub mod stuck;
pub mod blocked;
// What failed.
pub mod dead_letters;
// Files for people, and their numbers.
pub mod counts;
pub mod listed;
pub mod listing;

use landfall_store::{Error, Tx, args};
use uuid::Uuid;

/// The mapping of a file, or otherwise that of its batch.
pub async fn mapping(tx: &mut Tx, file: Uuid) -> Result<Option<serde_json::Value>, Error> {
    let row: Option<(Option<serde_json::Value>,)> = tx
        .row(
            "SELECT COALESCE(f.mapping, b.mapping) AS mapping FROM files f LEFT JOIN batches b ON b.id = f.batch_id
             WHERE f.id = $1",
            args![file],
        )
        .await?;
    Ok(row.and_then(|(mapping,)| mapping))
}

/// The file continues in another trace, and keeps its first one.
pub async fn continue_trace(tx: &mut Tx, file: Uuid, trace: &str) -> Result<(), Error> {
    tx.execute(
        "UPDATE files SET trace_first = COALESCE(trace_first, trace_parent), trace_parent = $2 WHERE id = $1",
        args![file, trace],
    )
    .await
    .map(drop)
}

/// Sets how many chunks a file has.
pub async fn set_chunk_count(tx: &mut Tx, file: Uuid, chunks: usize) -> Result<(), Error> {
    tx.execute("UPDATE files SET chunk_count = $2 WHERE id = $1", args![file, chunks]).await.map(drop)
}
