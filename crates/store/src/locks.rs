//! A lock that dies with its process. The operating system (or PostgreSQL, for the end of a connection) knows of a
//! death before any heartbeat can be missed.

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use sqlx::Connection;
use sqlx_postgres::PgConnection;
use uuid::Uuid;

use crate::Error;
use crate::{Db, Tx, args};
use landfall_core::clock::Time;

/// The lock that says "this process lives", held until it is dropped or the process ends.
pub enum ProcessLock {
    /// On a file beside the SQLite database.
    File { path: PathBuf, _file: File },
    /// An advisory lock on a connection of its own.
    Session(Box<PgConnection>),
}

impl ProcessLock {
    pub async fn take(db: &Db, worker: Uuid) -> Result<Self, Error> {
        match db.postgres() {
            Some(pool) => {
                let mut connection = PgConnection::connect_with(&pool.connect_options()).await?;
                sqlx::query("SELECT pg_advisory_lock($1)")
                    .bind(lock_key(worker))
                    .execute(&mut connection)
                    .await?;
                Ok(Self::Session(Box::new(connection)))
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

    /// Takes the lock of a worker again whose connection was lost. `None` where something still holds it: perhaps the
    /// lost connection, which the server believes in; perhaps not.
    pub async fn take_again(db: &Db, worker: Uuid) -> Result<Option<Self>, Error> {
        let Some(pool) = db.postgres() else { return Self::take(db, worker).await.map(Some) };
        let mut connection = PgConnection::connect_with(&pool.connect_options()).await?;
        let taken: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
            .bind(lock_key(worker))
            .fetch_one(&mut connection)
            .await?;
        Ok(taken.then(|| Self::Session(Box::new(connection))))
    }

    /// Whether the lock is still held. A connection can be lost without the process noticing.
    pub async fn still_held(&mut self) -> bool {
        match self {
            Self::File { .. } => true,
            Self::Session(connection) => connection.ping().await.is_ok(),
        }
    }

    /// Gives the lock up in good order.
    pub async fn release(self) {
        match self {
            Self::File { path, _file } => {
                if let Err(error) = std::fs::remove_file(&path) {
                    tracing::warn!(path = %path.display(), %error, "a lock file stays behind");
                }
            }
            // The server drops the lock with the connection, whether or not the goodbye arrives.
            Self::Session(connection) => {
                drop(tokio::time::timeout(std::time::Duration::from_secs(5), connection.close()).await);
            }
        }
    }
}

/// The number that stands for a worker in its lock.
pub fn lock_key(worker: Uuid) -> i64 {
    // The last 64 bits of a v7 id are random.
    i64::from_be_bytes(worker.as_bytes()[8..].try_into().expect("eight bytes"))
}

/// What tells one start of the database server from another, in SQL. SQLite's locks are the operating system's.
pub fn epoch(tx: &Tx) -> &'static str {
    if tx.is_postgres() { "CAST(EXTRACT(EPOCH FROM pg_postmaster_start_time()) AS TEXT)" } else { "''" }
}

/// Workers that are dead: nobody holds their lock, or their heartbeat is older than `oldest`.
///
/// A lock that was taken before the server was last started is nobody's, whoever lives: then the heartbeat decides.
pub async fn dead_workers(db: &Db, oldest: Time) -> Result<Vec<Uuid>, Error> {
    if db.is_postgres() {
        let mut tx = db.read().await?;
        let sql = format!(
            "SELECT w.id FROM workers w
             WHERE w.heartbeat_at < $1 OR (w.lock_epoch IN ('', {}) AND NOT EXISTS (
                 SELECT 1 FROM pg_locks l
                 WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                   AND l.classid::bigint = (w.lock_key >> 32) & 4294967295
                   AND l.objid::bigint = w.lock_key & 4294967295))",
            epoch(&tx)
        );
        let dead: Vec<(Uuid,)> = tx.rows(sql, args![oldest]).await?;
        return Ok(dead.into_iter().map(|(id,)| id).collect());
    }
    let workers: Vec<(Uuid, Time)> =
        db.read().await?.rows("SELECT id, heartbeat_at FROM workers", args![]).await?;
    Ok(workers
        .into_iter()
        .filter(|(id, heartbeat_at)| *heartbeat_at < oldest || !file_is_locked(&lock_file(db, *id)))
        .map(|(id, _)| id)
        .collect())
}

/// Removes what a dead worker leaves of its lock.
pub fn forget(db: &Db, worker: Uuid) {
    if db.sqlite_file().is_some() {
        // Gone already: another process was faster.
        drop(std::fs::remove_file(lock_file(db, worker)));
    }
}

fn lock_file(db: &Db, worker: Uuid) -> PathBuf {
    let mut folder = db.sqlite_file().expect("only SQLite has lock files").clone().into_os_string();
    folder.push(".workers");
    PathBuf::from(folder).join(worker.simple().to_string())
}

fn file_is_locked(path: &PathBuf) -> bool {
    match File::open(path) {
        // Taken for a moment and dropped again, if it can be taken.
        Ok(file) => matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        // Not readable is not dead: the heartbeat decides.
        Err(_) => true,
    }
}
