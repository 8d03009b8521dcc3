//! The upload that a file receives at this moment. There is at most one, so that what is under way never needs more room
//! than was reserved for the file.

use landfall_core::clock::Time;
use landfall_store::{Error, Tx, args};
use uuid::Uuid;

/// Notes the upload. Returns `false` if the file receives another one, in another process that is known. A process asks only
/// if the file receives none in itself, so a row of its own is of an upload whose end could not be written. `left` is such an
/// upload from when the process had another id.
pub async fn begin(
    tx: &mut Tx,
    file: Uuid,
    upload: Uuid,
    worker: Uuid,
    left: Option<Uuid>,
    now: Time,
) -> Result<bool, Error> {
    let noted = tx
        .execute(
            "INSERT INTO arriving_uploads (file_id, upload_id, worker_id, started_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (file_id) DO UPDATE
             SET upload_id = excluded.upload_id, worker_id = excluded.worker_id, started_at = excluded.started_at
             WHERE arriving_uploads.worker_id = excluded.worker_id OR arriving_uploads.upload_id = $5
                OR NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = arriving_uploads.worker_id)",
            args![file, upload, worker, now, left],
        )
        .await?;
    Ok(noted > 0)
}

/// The upload is over.
pub async fn end(tx: &mut Tx, file: Uuid, upload: Uuid) -> Result<(), Error> {
    let sql = "DELETE FROM arriving_uploads WHERE file_id = $1 AND upload_id = $2";
    tx.execute(sql, args![file, upload]).await.map(drop)
}
