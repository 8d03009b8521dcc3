//! The file of an SQLite database, and whether it is still where it was opened.
//!
//! A file that is deleted or replaced while it is open lives on for the process that has it open, and is lost with it.
//! SQLite goes on reading and writing it without a word, so each write compares the file with the one at its path before it
//! is acknowledged.

use std::fs::{File, Metadata, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Error;

#[derive(Debug, Clone)]
pub struct DatabaseFile {
    path: Arc<PathBuf>,
    /// Device and inode of the file that was opened.
    opened: (u64, u64),
    /// Whether it was missing at the last look, so that the log has it once.
    missing: Arc<AtomicBool>,
}

impl DatabaseFile {
    /// Remembers the file that was just opened at this path.
    pub fn opened_at(path: &Path) -> Result<Self, Error> {
        let metadata = std::fs::metadata(path).map_err(cannot("read the metadata of", path))?;
        Ok(Self { path: Arc::new(path.to_owned()), opened: identity(&metadata), missing: Arc::default() })
    }

    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Fails if another file, or none, is at the path now.
    pub fn check(&self) -> Result<(), Error> {
        let what = match std::fs::metadata(&*self.path) {
            Ok(metadata) if identity(&metadata) == self.opened => {
                if self.missing.swap(false, Ordering::Relaxed) {
                    tracing::info!(file = %self.path.display(), "the database file is back");
                }
                return Ok(());
            }
            Ok(_) => "replaced",
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "deleted",
            Err(error) => return Err(cannot("read the metadata of", &self.path)(error)),
        };
        let error = Error::DatabaseFileGone { file: self.path.display().to_string(), what };
        if !self.missing.swap(true, Ordering::Relaxed) {
            tracing::error!("{error}");
        }
        Err(error)
    }

    /// What changes when the file is copied: a restored backup is another file than the one that was lost. An inode can be
    /// used again, but not with the same time of creation.
    pub fn place(&self) -> Result<String, Error> {
        let metadata = std::fs::metadata(&*self.path).map_err(cannot("read the metadata of", &self.path))?;
        let created = metadata.created().ok().map(chrono::DateTime::<chrono::Utc>::from);
        let created = created.and_then(|created| created.timestamp_nanos_opt()).unwrap_or_default();
        Ok(format!("file {} {created}", metadata.ino()))
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Held while a process opens the database and brings its schema to the newest version. Others that start meanwhile wait.
/// It ends with the process.
pub async fn lock_for_start(database: &Path) -> Result<File, Error> {
    let mut path = database.as_os_str().to_owned();
    path.push(".start-lock");
    let path = PathBuf::from(path);
    let locked = landfall_core::blocking::run(move || {
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(cannot("create", &path))?;
        let locked = match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                tracing::info!("another process opens or upgrades the database; waiting for it");
                file.lock()
            }
            Err(TryLockError::Error(error)) => Err(error),
            Ok(()) => Ok(()),
        };
        match locked {
            // Some network file systems have no locks. SQLite is not safe there either.
            Err(error) if error.kind() != std::io::ErrorKind::Unsupported => {
                Err(cannot("lock", &path)(error))
            }
            _ => Ok(file),
        }
    });
    locked.await.map_err(|error| Error::Internal(error.to_string()))?
}

fn cannot<'p>(verb: &'p str, path: &'p Path) -> impl FnOnce(std::io::Error) -> Error + use<'p> {
    move |source| Error::Storage { what: format!("{verb} {}", path.display()), source: source.into() }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::{Db, Error, Tx, Write, args};

    /// A change during which the file is deleted.
    struct LoseFile(PathBuf);

    impl Write for LoseFile {
        type Output = ();

        async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
            let sql = "INSERT INTO secrets (name, value) VALUES ('a', $1)";
            tx.execute(sql, args![vec![1_u8]]).await?;
            std::fs::remove_file(&self.0).expect("it is there");
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_change_is_not_acknowledged_if_its_file_is_lost_before_the_commit() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.db");
        let db = Db::open(&format!("sqlite://{}", file.display()), 2).await.expect("it opens");
        let lost = db.write(LoseFile(file)).await;
        assert!(matches!(lost, Err(Error::DatabaseFileGone { what: "deleted", .. })), "{lost:?}");
    }
}
