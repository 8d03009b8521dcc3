//! Files that may be stuck: held by a worker that is gone, never confirmed, or due further ahead than any wait.
//!
//! These statements name `workers`, a table of a higher layer. Whether a file's worker is gone must be read with the file:
//! one that is claimed between two reads would look abandoned.

use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_store::{Error, Tx, args};
use uuid::Uuid;

use crate::records::file::File;
use crate::records::reach;

/// A page of the suspects in the order of their ids, behind `after`, of these owners. A file that is due later than
/// `furthest` is one.
pub async fn suspects(
    tx: &mut Tx,
    reach: &Reach,
    after: Uuid,
    furthest: Time,
    limit: usize,
    now: Time,
) -> Result<Vec<File>, Error> {
    let mut arguments = args![after, now, furthest, limit];
    let whose = reach::condition(reach, &mut arguments);
    // Each part goes along an index that files at rest are not in, and is empty where all is well.
    tx.rows(
        format!(
            "WITH suspects AS MATERIALIZED (
                 SELECT * FROM files WHERE claimed_by IS NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = files.claimed_by)
                 UNION ALL
                 SELECT * FROM files WHERE upload_until IS NOT NULL AND upload_until <= $2
                    AND status = 'uploaded'
                 UNION ALL
                 SELECT * FROM files WHERE queue_stage IS NOT NULL AND NOT is_due AND run_after > $3)
             SELECT * FROM suspects WHERE id > $1 AND {whose} ORDER BY id LIMIT $4"
        ),
        arguments,
    )
    .await
}

/// What decides whether a suspect is stuck.
#[derive(Debug)]
pub struct Suspect {
    pub status: String,
    pub retry_count: i64,
    pub updated_at: Time,
}

/// The same of up to `most` suspects, in no order.
pub async fn brief_suspects(
    tx: &mut Tx,
    reach: &Reach,
    furthest: Time,
    most: i64,
    now: Time,
) -> Result<Vec<Suspect>, Error> {
    let mut arguments = args![now, furthest, most];
    let whose = reach::condition(reach, &mut arguments);
    let found: Vec<(String, i64, Time)> = tx
        .rows(
            format!(
                "SELECT status, retry_count, updated_at FROM files WHERE claimed_by IS NOT NULL AND {whose}
                    AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = files.claimed_by)
                 UNION ALL
                 SELECT status, retry_count, updated_at FROM files WHERE upload_until IS NOT NULL
                    AND upload_until <= $1 AND status = 'uploaded' AND {whose}
                 UNION ALL
                 SELECT status, retry_count, updated_at FROM files WHERE queue_stage IS NOT NULL AND NOT is_due
                    AND run_after > $2 AND {whose}
                 LIMIT $3"
            ),
            arguments,
        )
        .await?;
    let suspects = found.into_iter().map(|(status, retry_count, updated_at)| Suspect {
        status,
        retry_count,
        updated_at,
    });
    Ok(suspects.collect())
}
