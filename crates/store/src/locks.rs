//! A lock that ends with its process. The operating system (or PostgreSQL, when a connection ends) detects a dead
//! process before its heartbeat is late.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection};
use sqlx_postgres::PgConnection;
use uuid::Uuid;

use crate::Error;
use crate::simulated::SimulatedProcess;
use crate::{Arg, Db, Tx, args};
use landfall_core::clock::{Time, to_delta};

/// The lock that shows that a process is alive. It is held until it is dropped or the process ends.
pub enum ProcessLock {
    /// On a file beside the SQLite database.
    File { path: PathBuf, _file: File },
    /// An advisory lock on a connection of its own, and the start of the server that granted it.
    Session { connection: Box<PgConnection>, epoch: String },
    /// In the list of a simulated database.
    Listed { process: SimulatedProcess, worker: Uuid },
}

/// A value that changes with each start of a PostgreSQL server.
const EPOCH: &str = "CAST(EXTRACT(EPOCH FROM pg_postmaster_start_time()) AS TEXT)";

impl ProcessLock {
    pub async fn take(db: &Db, worker: Uuid) -> Result<Self, Error> {
        if let Some(process) = db.simulated_process() {
            process.lock(worker);
            return Ok(Self::Listed { process: process.clone(), worker });
        }
        match db.postgres() {
            Some(pool) => {
                let mut connection = PgConnection::connect_with(&pool.connect_options()).await?;
                sqlx::query("SELECT pg_advisory_lock($1)")
                    .bind(lock_key(worker))
                    .execute(&mut connection)
                    .await?;
                Self::granted_on(connection).await
            }
            None => {
                let path = lock_file(db, worker);
                let locked = || -> std::io::Result<File> {
                    std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
                    let file = File::create_new(&path)?;
                    file.lock()?;
                    Ok(file)
                };
                let file = locked().map_err(|source| Error::Storage {
                    what: format!("lock {}", path.display()),
                    source: source.into(),
                })?;
                Ok(Self::File { path, _file: file })
            }
        }
    }

    /// Takes the lock of a worker again after its connection was lost. `None` if the lock is still held, perhaps by
    /// the lost connection, which the server may consider open.
    pub async fn take_again(db: &Db, worker: Uuid) -> Result<Option<Self>, Error> {
        let Some(pool) = db.postgres() else { return Self::take(db, worker).await.map(Some) };
        let mut connection = PgConnection::connect_with(&pool.connect_options()).await?;
        let taken: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
            .bind(lock_key(worker))
            .fetch_one(&mut connection)
            .await?;
        if taken { Self::granted_on(connection).await.map(Some) } else { Ok(None) }
    }

    async fn granted_on(mut connection: PgConnection) -> Result<Self, Error> {
        let sql = AssertSqlSafe(format!("SELECT {EPOCH}"));
        let epoch = sqlx::query_scalar(sql).fetch_one(&mut connection).await?;
        Ok(Self::Session { connection: Box::new(connection), epoch })
    }

    /// The start of the database server that granted it. On SQLite the locks belong to the operating system.
    pub fn epoch(&self) -> &str {
        match self {
            Self::File { .. } | Self::Listed { .. } => "",
            Self::Session { epoch, .. } => epoch,
        }
    }

    /// Whether the lock is still held. A connection can be lost without the process noticing.
    pub async fn still_held(&mut self) -> bool {
        match self {
            Self::File { .. } => true,
            Self::Listed { process, worker } => process.is_locked(*worker),
            Self::Session { connection, .. } => connection.ping().await.is_ok(),
        }
    }

    /// Releases the lock on shutdown.
    pub async fn release(self) {
        match self {
            Self::File { path, _file } => {
                if let Err(error) = std::fs::remove_file(&path) {
                    tracing::warn!(path = %path.display(), %error, "a lock file could not be removed");
                }
            }
            Self::Listed { process, worker } => process.unlock(worker),
            // The server drops the lock with the connection, even if the close message does not arrive.
            Self::Session { connection, .. } => {
                drop(tokio::time::timeout(std::time::Duration::from_secs(5), connection.close()).await);
            }
        }
    }
}

/// The key of a worker's advisory lock.
pub fn lock_key(worker: Uuid) -> i64 {
    // The last 64 bits of a v7 id are random.
    i64::from_be_bytes(worker.as_bytes()[8..].try_into().expect("eight bytes"))
}

/// SQL for a value that changes with each start of the database server. On SQLite the locks belong to the operating
/// system.
pub fn epoch(tx: &Tx) -> &'static str {
    if tx.is_postgres() { EPOCH } else { "''" }
}

/// Workers that are dead: their lock is not held, or their heartbeat is older than `expiry`.
///
/// A PostgreSQL restart drops all advisory locks; then the heartbeat decides. PostgreSQL compares it with its own clock,
/// which also wrote it: the clocks of two machines are never compared. SQLite is on one machine, whose clock shows `now`.
pub async fn dead_workers(db: &Db, expiry: Duration, now: Time) -> Result<Vec<Uuid>, Error> {
    if db.is_postgres() {
        return dead_on_postgres(&mut db.read().await?, expiry).await;
    }
    let oldest = now - to_delta(expiry);
    let workers: Vec<(Uuid, Time)> =
        db.read().await?.rows("SELECT id, heartbeat_at FROM workers", args![]).await?;
    Ok(workers
        .into_iter()
        .filter(|(id, heartbeat_at)| *heartbeat_at < oldest || !is_locked(db, *id))
        .map(|(id, _)| id)
        .collect())
}

async fn dead_on_postgres(tx: &mut Tx, expiry: Duration) -> Result<Vec<Uuid>, Error> {
    let sql = format!(
        "SELECT w.id FROM workers w
         WHERE w.heartbeat_at < clock_timestamp() - $1 * INTERVAL '1 microsecond'
             OR (w.lock_epoch IN ('', {}) AND NOT EXISTS (
                 SELECT 1 FROM pg_locks l
                 WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                   AND l.classid::bigint = (w.lock_key >> 32) & 4294967295
                   AND l.objid::bigint = w.lock_key & 4294967295))",
        epoch(tx)
    );
    let microseconds = to_delta(expiry).num_microseconds().unwrap_or(i64::MAX);
    let dead: Vec<(Uuid,)> = tx.rows(sql, args![microseconds]).await?;
    Ok(dead.into_iter().map(|(id,)| id).collect())
}

/// SQL for the time of a heartbeat, with the arguments of the statement: PostgreSQL's own time, or `now` on SQLite.
pub fn heartbeat_time(tx: &Tx, now: Time, mut args: Vec<Arg>) -> (String, Vec<Arg>) {
    if tx.is_postgres() {
        return ("clock_timestamp()".to_owned(), args);
    }
    args.push(now.into());
    (format!("${}", args.len()), args)
}

/// Removes the lock file of a dead worker.
pub fn forget(db: &Db, worker: Uuid) {
    if db.sqlite_file().is_some() {
        // An error means that another process has removed it already.
        drop(std::fs::remove_file(lock_file(db, worker)));
    }
}

fn lock_file(db: &Db, worker: Uuid) -> PathBuf {
    let mut folder = db.sqlite_file().expect("only SQLite has lock files").clone().into_os_string();
    folder.push(".workers");
    PathBuf::from(folder).join(worker.simple().to_string())
}

fn is_locked(db: &Db, worker: Uuid) -> bool {
    match db.simulated_process() {
        Some(process) => process.is_locked(worker),
        None => file_is_locked(&lock_file(db, worker)),
    }
}

fn file_is_locked(path: &PathBuf) -> bool {
    match File::open(path) {
        // Locked for a moment and released, if it is free.
        Ok(file) => matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        // An unreadable file does not mean that the worker is dead: the heartbeat decides.
        Err(_) => true,
    }
}
