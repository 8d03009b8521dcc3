//! Files that workers hold: by worker, by claim, and how many.

use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::lifecycle::Stage;
use landfall_store::{Error, Tx, args};
use uuid::Uuid;

use crate::records::file::File;
use crate::records::reach;

/// The files that a worker holds, each with its claim.
pub async fn held_by(tx: &mut Tx, worker: Uuid) -> Result<Vec<(Uuid, Uuid)>, Error> {
    tx.rows("SELECT id, claim FROM files WHERE claimed_by = $1", args![worker]).await
}

/// The same for those that were claimed at `before` or earlier.
pub async fn held_since(tx: &mut Tx, worker: Uuid, before: Time) -> Result<Vec<(Uuid, Uuid)>, Error> {
    let sql = "SELECT id, claim FROM files WHERE claimed_by = $1 AND claimed_at <= $2";
    tx.rows(sql, args![worker, before]).await
}

/// The files that a worker holds, locked until the transaction ends.
pub async fn lock_held_by(tx: &mut Tx, worker: Uuid) -> Result<Vec<File>, Error> {
    let sql = format!("SELECT * FROM files WHERE claimed_by = $1 ORDER BY id {}", tx.for_update());
    tx.rows(sql, args![worker]).await
}

/// The files that a worker holds by one claim, or one `file` of them, locked until the transaction ends.
pub async fn lock_claimed(
    tx: &mut Tx,
    worker: Uuid,
    claim: Uuid,
    file: Option<Uuid>,
) -> Result<Vec<File>, Error> {
    let sql = format!(
        "SELECT * FROM files WHERE claimed_by = $1 AND claim = $2 AND id = COALESCE($3, id) ORDER BY id {}",
        tx.for_update()
    );
    tx.rows(sql, args![worker, claim, file]).await
}

/// How many files are being worked on at these stages, by all processes, that were claimed at `since` or later.
pub async fn count_running(tx: &mut Tx, stages: &[Stage], since: Time) -> Result<i64, Error> {
    let states: Vec<String> = stages.iter().map(|stage| format!("'{}'", stage.running())).collect();
    let sql = format!(
        "SELECT COUNT(*) FROM files WHERE claimed_by IS NOT NULL AND status IN ({}) AND claimed_at >= $1",
        states.join(", ")
    );
    tx.number(sql, args![since]).await
}

/// How many files workers hold, by the names of their states: of these owners.
pub async fn count_by_status(tx: &mut Tx, reach: &Reach) -> Result<Vec<(String, i64)>, Error> {
    let mut arguments = args![];
    let whose = reach::condition(reach, &mut arguments);
    tx.rows(
        format!(
            "SELECT status, COUNT(*) FROM files WHERE claimed_by IS NOT NULL AND {whose} GROUP BY status"
        ),
        arguments,
    )
    .await
}

/// How many files of each tenant workers hold.
pub async fn count_by_tenant(tx: &mut Tx) -> Result<Vec<(String, i64)>, Error> {
    tx.rows("SELECT tenant_id, COUNT(*) FROM files WHERE claimed_by IS NOT NULL GROUP BY tenant_id", args![])
        .await
}

/// The workers that work on a file alone, because it may be what kills them.
pub async fn workers_alone(tx: &mut Tx) -> Result<Vec<Uuid>, Error> {
    let sql = "SELECT claimed_by FROM files WHERE claimed_by IS NOT NULL AND is_alone AND begun";
    let workers: Vec<(Uuid,)> = tx.rows(sql, args![]).await?;
    Ok(workers.into_iter().map(|(worker,)| worker).collect())
}

/// Notes that the holder begins to work on a file. Returns whether it still holds the file.
pub async fn note_begun(tx: &mut Tx, file: Uuid, claim: Uuid) -> Result<bool, Error> {
    let sql = "UPDATE files SET begun = TRUE WHERE id = $1 AND claim = $2";
    Ok(tx.execute(sql, args![file, claim]).await? == 1)
}
