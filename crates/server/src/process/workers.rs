//! The statements about the table `workers`: a row for each process that shares the database.

use landfall_core::clock::Time;
use landfall_store::{Error, Tx, args, locks};
use uuid::Uuid;

use super::liveness::Description;

/// Whether a worker is registered. Its row stays locked until the transaction ends.
///
/// A rescue removes the worker's row first. With the row locked, either the rescue sees what this transaction does,
/// or this transaction sees the rescue.
pub async fn hold(tx: &mut Tx, worker: Uuid) -> Result<bool, Error> {
    let hold = tx.key_share();
    let sql = format!("SELECT lock_key FROM workers WHERE id = $1 {hold}");
    Ok(tx.row::<(i64,)>(sql, args![worker]).await?.is_some())
}

/// Writes the row of a worker that has taken its lock. `epoch` is the start of the server that granted the lock.
pub async fn register(
    tx: &mut Tx,
    worker: Uuid,
    description: &Description,
    epoch: &str,
    now: Time,
) -> Result<(), Error> {
    let Description { name, stages, services } = description;
    let arguments = args![worker, name, stages, services, locks::lock_key(worker), epoch];
    let (now, arguments) = locks::heartbeat_time(tx, now, arguments);
    let sql = format!(
        "INSERT INTO workers (id, name, stages, services, lock_key, lock_epoch, started_at, heartbeat_at)
         VALUES ($1, $2, $3, $4, $5, $6, {now}, {now})"
    );
    tx.execute(sql, arguments).await.map(drop)
}

/// Renews the heartbeat. Returns whether the worker is still registered.
///
/// `epoch` is the start of the server that granted the lock, and not that of the server that runs now: if the server was
/// restarted since the lock was checked, a free lock is no death.
pub async fn renew(tx: &mut Tx, worker: Uuid, epoch: &str, now: Time) -> Result<bool, Error> {
    let (now, arguments) = locks::heartbeat_time(tx, now, args![worker, epoch]);
    let sql = format!("UPDATE workers SET heartbeat_at = {now}, lock_epoch = $2 WHERE id = $1");
    Ok(tx.execute(sql, arguments).await? == 1)
}

/// A worker whose row was removed.
#[derive(Debug)]
pub struct Removed {
    pub name: String,
    /// Whether it took its lock on this start of the database server.
    pub known_by_this_server: bool,
}

/// Removes a worker; `None` if another process was first.
pub async fn remove(tx: &mut Tx, worker: Uuid) -> Result<Option<Removed>, Error> {
    let sql = format!(
        "DELETE FROM workers WHERE id = $1 RETURNING name, lock_epoch IN ('', {}) AS known_by_this_server",
        locks::epoch(tx)
    );
    let removed: Option<(String, bool)> = tx.row(sql, args![worker]).await?;
    Ok(removed.map(|(name, known_by_this_server)| Removed { name, known_by_this_server }))
}

/// Whether a worker is registered and its heartbeat is not older than `oldest_heartbeat`.
pub async fn is_living(tx: &mut Tx, worker: Uuid, oldest_heartbeat: Time) -> Result<bool, Error> {
    let living = "SELECT COUNT(*) FROM workers WHERE id = $1 AND heartbeat_at >= $2";
    Ok(tx.number(living, args![worker, oldest_heartbeat]).await? > 0)
}

/// The ids of all workers.
pub async fn ids(tx: &mut Tx) -> Result<Vec<Uuid>, Error> {
    let ids: Vec<(Uuid,)> = tx.rows("SELECT id FROM workers", args![]).await?;
    Ok(ids.into_iter().map(|(id,)| id).collect())
}

/// What a worker is called, and what it does.
#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct WorkerName {
    pub id: Uuid,
    pub name: String,
    pub stages: String,
    /// The services that its stages need, as `stage:service`.
    pub services: String,
}

/// All workers, with what they do.
pub async fn names(tx: &mut Tx) -> Result<Vec<WorkerName>, Error> {
    tx.rows("SELECT id, name, stages, services FROM workers", args![]).await
}

/// The stages of each worker that has some, separated by commas.
pub async fn stages(tx: &mut Tx) -> Result<Vec<String>, Error> {
    let stages: Vec<(String,)> = tx.rows("SELECT stages FROM workers WHERE stages <> ''", args![]).await?;
    Ok(stages.into_iter().map(|(stages,)| stages).collect())
}

/// A worker as the operator sees it.
#[derive(Debug, landfall_store::FromRow)]
pub struct WorkerAtWork {
    pub name: String,
    pub stages: String,
    pub started_at: Time,
    pub heartbeat_at: Time,
}

/// The workers that have stages, the longest running first.
pub async fn at_work(tx: &mut Tx) -> Result<Vec<WorkerAtWork>, Error> {
    tx.rows(
        "SELECT name, stages, started_at, heartbeat_at FROM workers WHERE stages <> '' ORDER BY started_at",
        args![],
    )
    .await
}

/// How many workers there are.
pub async fn count(tx: &mut Tx) -> Result<i64, Error> {
    tx.number("SELECT COUNT(*) FROM workers", args![]).await
}

/// Writes a worker's row as it is, for a check whether the database takes changes.
pub async fn rewrite(tx: &mut Tx, worker: Uuid) -> Result<(), Error> {
    tx.execute("UPDATE workers SET name = name WHERE id = $1", args![worker]).await.map(drop)
}
