//! Batches that have ended go some time after the last of their files, and after the archive that these were from.

use landfall_core::clock::Time;
use landfall_store::{Error, Tx, args};
use uuid::Uuid;

/// Looks at up to `limit` batches behind `after` that ended and did not change since `before`, and removes those of which
/// no file has a row any more. Returns how many, and the last that it looked at.
pub async fn remove_page(
    tx: &mut Tx,
    before: Time,
    after: Uuid,
    limit: i64,
) -> Result<(u64, Option<Uuid>), Error> {
    let page: Vec<(Uuid,)> = tx
        .rows(
            "SELECT id FROM batches WHERE id > $1 AND status <> 'active' AND updated_at < $2 ORDER BY id LIMIT $3",
            args![after, before, limit],
        )
        .await?;
    let Some((last,)) = page.last().copied() else { return Ok((0, None)) };
    // A batch that is not active takes no files, so one without files stays so. One that changed meanwhile stays.
    let removed = tx
        .execute(
            "DELETE FROM batches WHERE id > $1 AND id <= $2 AND status <> 'active' AND updated_at < $3
               AND NOT EXISTS (SELECT 1 FROM files WHERE batch_id = batches.id)
               AND NOT EXISTS (SELECT 1 FROM files WHERE id = batches.archive_id)",
            args![after, last, before],
        )
        .await?;
    Ok((removed, Some(last)))
}
