//! Dead letters that failed long ago: their owners are warned, and later they are deleted.

use landfall_core::clock::Time;
use landfall_store::{Error, Tx, args};
use uuid::Uuid;

use crate::records::file::File;

/// Notes that the owners of a page of files are warned of their deletion, of those that failed before a time and were not
/// warned of since. Returns these files.
pub async fn note_warning(
    tx: &mut Tx,
    failed_before: Time,
    limit: i64,
    now: Time,
) -> Result<Vec<File>, Error> {
    let due = "failed_at IS NOT NULL AND failed_at <= $1
                   AND (deletion_warned_at IS NULL OR deletion_warned_at < failed_at)";
    // Another process may work at the same page: this one takes what is left. A row that another transaction holds is
    // waited for, or its owner would not be warned today.
    let lock = tx.for_update();
    let sql = format!(
        "WITH page AS MATERIALIZED
             (SELECT id FROM files WHERE {due} ORDER BY failed_at, id LIMIT $2 {lock})
         UPDATE files SET deletion_warned_at = $3 WHERE id IN (SELECT id FROM page) AND {due} RETURNING *"
    );
    tx.rows(sql, args![failed_before, limit, now]).await
}

/// A page of the files that failed and were warned of before these times, oldest first, behind `after`.
pub async fn to_be_deleted(
    tx: &mut Tx,
    failed_before: Time,
    warned_before: Time,
    after: (Time, Uuid),
    limit: i64,
) -> Result<Vec<(Time, Uuid)>, Error> {
    tx.rows(
        "SELECT failed_at, id FROM files
         WHERE failed_at IS NOT NULL AND failed_at <= $1
           AND deletion_warned_at >= failed_at AND deletion_warned_at <= $2
           AND (failed_at, id) > ($3, $4)
         ORDER BY failed_at, id LIMIT $5",
        args![failed_before, warned_before, after.0, after.1, limit],
    )
    .await
}

/// Whether a file is still one of those.
pub async fn is_to_be_deleted(
    tx: &mut Tx,
    file: Uuid,
    failed_before: Time,
    warned_before: Time,
) -> Result<bool, Error> {
    let is_due = tx
        .number(
            "SELECT COUNT(*) FROM files WHERE id = $1 AND failed_at <= $2
                 AND deletion_warned_at >= failed_at AND deletion_warned_at <= $3",
            args![file, failed_before, warned_before],
        )
        .await?;
    Ok(is_due > 0)
}
