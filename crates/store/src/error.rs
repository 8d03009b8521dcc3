//! What goes wrong while serving a request or driving the queue.
//!
//! A [`Refusal`] is for the caller: it has a code, a sentence, and an HTTP status. Everything else is for the log; the
//! caller learns only that it was not their fault.

use std::sync::Arc;

use landfall_core::refusal::Refusal;

/// What a backend of the storage reported. Each has its own type of error.
type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    #[error("database: {0}")]
    GroupNotCommitted(Arc<str>),
    #[error("database schema: {0}")]
    Migration(sqlx::migrate::MigrateError),
    #[error("the database is closed")]
    Closed,
    /// The storage has no such blob. The storage itself works.
    #[error("storage: there is no blob {key}")]
    BlobMissing { key: String },
    /// The key has a blob already, and a blob is never overwritten.
    #[error("storage: there is a blob {key} already")]
    BlobExists { key: String },
    #[error("storage: full, cannot {what}: {source}")]
    StorageFull { what: String, source: Cause },
    /// Any other failure of the storage, or of a file of the server's own.
    #[error("storage: cannot {what}: {source}")]
    Storage { what: String, source: Cause },
    /// The storage and the database have nothing to do with one another.
    #[error("{0}")]
    StorageNotOurs(String),
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// Whether the database undid the transaction only because it met another one, and it should be tried again.
    pub fn asks_for_repetition(&self) -> bool {
        // https://www.postgresql.org/docs/current/errcodes-appendix.html
        const SERIALIZATION_FAILURE: &str = "40001";
        const DEADLOCK_DETECTED: &str = "40P01";
        let Self::Database(sqlx::Error::Database(error)) = self else {
            return false;
        };
        matches!(error.code().as_deref(), Some(SERIALIZATION_FAILURE | DEADLOCK_DETECTED))
    }

    /// Whether the database refused what it was given, so that giving it again is no use.
    pub fn is_about_the_data(&self) -> bool {
        match self {
            Self::Database(sqlx::Error::Database(error)) => match error.code().as_deref() {
                // PostgreSQL's classes "data exception", "integrity constraint violation", "program limit exceeded".
                Some(code) if code.len() == 5 => {
                    ["22", "23", "54"].iter().any(|class| code.starts_with(class))
                }
                // SQLite's TOOBIG, CONSTRAINT and MISMATCH, in the low byte of its extended codes.
                Some(code) => code.parse::<u32>().is_ok_and(|code| matches!(code & 0xFF, 18..=20)),
                None => false,
            },
            Self::Database(sqlx::Error::Encode(_)) | Self::Internal(_) => true,
            _ => false,
        }
    }

    /// Whether the database could not be asked, or could not write for want of room or a lock: nothing is known to be
    /// wrong with what it was given, and the same may go well when it is back.
    pub fn database_is_away(&self) -> bool {
        match self {
            Self::GroupNotCommitted(_) | Self::Closed => true,
            Self::Database(error) => match error {
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed => true,
                sqlx::Error::Database(error) => match error.code().as_deref() {
                    // PostgreSQL's classes "connection exception", "insufficient resources", "operator intervention",
                    // "system error".
                    Some(code) if code.len() == 5 => {
                        ["08", "53", "57", "58"].iter().any(|class| code.starts_with(class))
                    }
                    // SQLite's BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN.
                    Some(code) => {
                        code.parse::<u32>().is_ok_and(|code| matches!(code & 0xFF, 5 | 6 | 8 | 10 | 13 | 14))
                    }
                    None => false,
                },
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether another program has the database to itself.
    pub fn is_a_lock(&self) -> bool {
        const SQLITE_BUSY: u32 = 5;
        let Self::Database(sqlx::Error::Database(error)) = self else { return false };
        error.code().and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xFF == SQLITE_BUSY)
    }

    /// The same error for another one who waited for the same commit.
    pub fn again(&self) -> Self {
        Self::GroupNotCommitted(self.to_string().into())
    }
}
