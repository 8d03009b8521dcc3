//! Errors of a request or of the queue.
//!
//! A [`Refusal`] is for the caller: it has a code, a message, and an HTTP status. All other errors are for the log;
//! the caller learns only that the server failed.

use std::sync::Arc;

use landfall_core::refusal::Refusal;

use crate::migrate::SchemaError;
use rusqlite::ErrorCode;

/// What a backend of the storage reported. Each has its own type of error.
type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    #[error("database: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("database: the column {column} cannot be read: {cause}")]
    Unreadable { column: String, cause: crate::Unreadable },
    #[error("database: {0}")]
    GroupNotCommitted(Arc<str>),
    #[error(transparent)]
    Migration(#[from] SchemaError),
    /// PostgreSQL was to prove who it is, and did not.
    #[error("{0}")]
    DatabaseTls(String),
    #[error("the database is closed")]
    Closed,
    /// The file of the SQLite database is not where it was opened.
    #[error(
        "The database file {file} was {what} while this process has it open: what this process writes is lost when it ends. \
         It refuses all requests until the file is back. Put the file back, or save its content before you stop the process \
         (docs/recovery.md)"
    )]
    DatabaseFileGone { file: String, what: &'static str },
    /// The storage has no such blob. The storage itself works.
    #[error("storage: there is no blob {key}")]
    BlobMissing { key: String },
    /// The key has a blob already, and a blob is never overwritten.
    #[error("storage: there is a blob {key} already")]
    BlobExists { key: String },
    /// The object store has other bytes under the key than those that were confirmed.
    #[error("storage: the object {key} was replaced after it was confirmed")]
    BlobChanged { key: String },
    #[error("storage: full, cannot {what}: {source}")]
    StorageFull { what: String, source: Cause },
    /// Any other failure of the storage, or of a file of the server's own.
    #[error("storage: cannot {what}: {source}")]
    Storage { what: String, source: Cause },
    /// The storage does not belong to the database.
    #[error("{0}")]
    StorageMismatch(String),
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// No connection was free, or none could be made, in the time that a caller waits.
    pub const fn no_connection() -> Self {
        Self::Database(sqlx::Error::PoolTimedOut)
    }

    /// Whether the database rolled the transaction back because of a conflict with another one, so that a retry
    /// helps.
    pub fn is_transaction_conflict(&self) -> bool {
        // https://www.postgresql.org/docs/current/errcodes-appendix.html
        const SERIALIZATION_FAILURE: &str = "40001";
        const DEADLOCK_DETECTED: &str = "40P01";
        let Self::Database(sqlx::Error::Database(error)) = self else {
            return false;
        };
        matches!(error.code().as_deref(), Some(SERIALIZATION_FAILURE | DEADLOCK_DETECTED))
    }

    /// Whether the database rejected the data, so that the same write would fail again.
    pub fn is_about_the_data(&self) -> bool {
        match self {
            // PostgreSQL's classes "data exception", "integrity constraint violation", "program limit exceeded".
            Self::Database(sqlx::Error::Database(error)) => {
                let code = error.code().unwrap_or_default();
                ["22", "23", "54"].iter().any(|class| code.starts_with(class))
            }
            Self::Sqlite(_) => matches!(
                self.sqlite_code(),
                Some(ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch)
            ),
            Self::Database(sqlx::Error::Encode(_)) | Self::Unreadable { .. } | Self::Internal(_) => true,
            _ => false,
        }
    }

    /// Whether the database could not be reached, or could not write for lack of space or because of a lock. The
    /// write itself may be valid, and may succeed later.
    pub fn database_is_away(&self) -> bool {
        match self {
            Self::GroupNotCommitted(_)
            | Self::Closed
            | Self::DatabaseTls(_)
            | Self::DatabaseFileGone { .. } => true,
            Self::Database(error) => match error {
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed => true,
                // PostgreSQL's classes "connection exception", "insufficient resources", "operator intervention",
                // "system error".
                sqlx::Error::Database(error) => {
                    let code = error.code().unwrap_or_default();
                    ["08", "53", "57", "58"].iter().any(|class| code.starts_with(class))
                }
                _ => false,
            },
            Self::Sqlite(_) => matches!(
                self.sqlite_code(),
                Some(
                    ErrorCode::DatabaseBusy
                        | ErrorCode::DatabaseLocked
                        | ErrorCode::ReadOnly
                        | ErrorCode::SystemIoFailure
                        | ErrorCode::DiskFull
                        | ErrorCode::CannotOpen
                )
            ),
            _ => false,
        }
    }

    /// Whether the database has found that its own data is damaged.
    pub fn is_damage(&self) -> bool {
        match self {
            // PostgreSQL's data_corrupted and index_corrupted.
            Self::Database(sqlx::Error::Database(error)) => {
                matches!(error.code().as_deref(), Some("XX001" | "XX002"))
            }
            _ => matches!(self.sqlite_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)),
        }
    }

    /// Whether another program locks the database.
    pub fn is_locked(&self) -> bool {
        self.sqlite_code() == Some(ErrorCode::DatabaseBusy)
    }

    pub(crate) fn sqlite_code(&self) -> Option<ErrorCode> {
        let Self::Sqlite(error) = self else { return None };
        error.sqlite_error_code()
    }

    /// The same error for another caller that waited for the same commit.
    #[must_use]
    pub fn again(&self) -> Self {
        match self {
            Self::DatabaseFileGone { file, what } => Self::DatabaseFileGone { file: file.clone(), what },
            _ => Self::GroupNotCommitted(self.to_string().into()),
        }
    }
}
