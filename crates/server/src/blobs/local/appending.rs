//! An upload that is written in several requests: a file in `incoming` that grows. The writer holds its lock, which the
//! system takes away when the process ends, whatever happened to it.

use std::fs::TryLockError;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tokio::fs;
use tokio::io::{AsyncSeekExt, AsyncWriteExt, BufWriter};

use super::upload::link;
use super::{Folder, INCOMING, WRITE_BUFFER, beneath, blob_path, cannot, cannot_write, is_absent};
use crate::blobs::BlobReader;
use crate::blobs::resumable::Hashes;
use landfall_store::Error;

/// What the names of such files begin with, where those of other uploads have the id of a process.
const APPENDING: &str = "appending.";
/// How much is read at a time.
const READ_BUFFER: usize = 1 << 20;
/// How often the file may be removed between its opening and its lock.
const MAX_OPENINGS: u32 = 100;

pub struct Appending {
    key: String,
    path: String,
    folder: Folder,
    writer: BufWriter<fs::File>,
}

/// An opened upload.
pub struct Opened {
    pub upload: Appending,
    pub size: u64,
    /// It is a blob already, so that all of it counts and nothing of it may change.
    pub is_published: bool,
}

impl Folder {
    /// Opens an upload to write to its end. `None` while another one writes to it.
    pub async fn append(&self, key: &str) -> Result<Option<Opened>, Error> {
        let path = path_of(key);
        let opened = path.clone();
        let opened = self.run("open", &path, move |root| open_locked(root, &opened)).await?;
        let Some(file) = opened else { return Ok(None) };
        let metadata = file.metadata().map_err(cannot_write)?;
        let (size, is_published) = (metadata.len(), metadata.nlink() > 1);
        let mut file = fs::File::from_std(file);
        file.seek(SeekFrom::End(0)).await.map_err(cannot_write)?;
        let writer = BufWriter::with_capacity(WRITE_BUFFER, file);
        let upload = Appending { key: key.to_owned(), path, folder: self.clone(), writer };
        Ok(Some(Opened { upload, size, is_published }))
    }

    /// How many bytes of an upload are here.
    pub async fn appended(&self, key: &str) -> Result<u64, Error> {
        let found = self.try_run(&path_of(key), "read the metadata of", beneath::metadata).await?;
        Ok(found.and_then(|found| u64::try_from(found.st_size).ok()).unwrap_or(0))
    }

    /// Streams the bytes of an upload from a position on.
    pub async fn read_appended(&self, key: &str, from: u64, size: u64) -> Result<BlobReader, Error> {
        let path = path_of(key);
        let opened = self.try_run(&path, "open", beneath::open).await?;
        let Some(file) = opened else { return Err(Error::BlobMissing { key: key.to_owned() }) };
        let mut file = fs::File::from_std(file);
        file.seek(SeekFrom::Start(from)).await.map_err(cannot("read", &self.root.join(&path)))?;
        Ok(BlobReader::new(size.saturating_sub(from), file))
    }

    /// Removes what is here of an upload. A blob that was made of it stays.
    pub async fn discard_appended(&self, key: &str) -> Result<(), Error> {
        self.try_run(&path_of(key), "remove", beneath::remove).await.map(drop)
    }

    /// The keys of all uploads of which something is here.
    pub async fn all_appended(&self) -> Result<Vec<String>, Error> {
        let names = self.run("list", INCOMING, |root| beneath::names(root, INCOMING)).await?;
        let keys = names.iter().filter_map(|(name, _)| name.strip_prefix(APPENDING));
        Ok(keys.map(|key| key.replace('.', "/")).collect())
    }
}

fn path_of(key: &str) -> String {
    format!("{INCOMING}/{APPENDING}{}", key.replace('/', "."))
}

/// Opens or creates the file, and locks it. `None` if another one has it.
fn open_locked(root: &Path, path: &str) -> std::io::Result<Option<std::fs::File>> {
    for _ in 0..MAX_OPENINGS {
        let (file, is_new) = match beneath::open_to_write(root, path) {
            Err(error) if error.kind() == ErrorKind::NotFound => match beneath::create_to_write(root, path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                created => (created?, true),
            },
            opened => (opened?, false),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            // Some network file systems have no locks. There the turn in the database alone keeps writers apart.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if is_new {
            beneath::sync(root, INCOMING)?;
        }
        // It may have been removed before it was locked.
        let own = file.metadata()?;
        match beneath::metadata(root, path) {
            Ok(found) if (found.st_dev, found.st_ino) == (own.dev(), own.ino()) => return Ok(Some(file)),
            Ok(_) => {}
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

impl Appending {
    /// Adds the bytes from `from` up to `to` to the checksums.
    pub async fn hash(&self, mut hashes: Hashes, from: u64, to: u64) -> Result<Hashes, Error> {
        let path = self.path.clone();
        self.folder
            .run("read", &self.path, move |root| {
                let mut file = beneath::open(root, &path)?;
                file.seek(SeekFrom::Start(from))?;
                let mut file = file.take(to - from);
                let mut buffer = vec![0; READ_BUFFER];
                let mut left = to - from;
                while left > 0 {
                    let read = file.read(&mut buffer)?;
                    if read == 0 {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                    hashes.update(&buffer[..read]);
                    left -= read as u64;
                }
                Ok(hashes)
            })
            .await
    }

    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.writer.write_all(bytes).await.map_err(cannot_write)
    }

    /// Makes all bytes durable.
    pub async fn sync(&mut self) -> Result<(), Error> {
        self.writer.flush().await.map_err(cannot_write)?;
        self.writer.get_ref().sync_data().await.map_err(cannot_write)
    }

    /// Takes away all bytes from `size` on.
    pub async fn cut(&mut self, size: u64) -> Result<(), Error> {
        self.writer.flush().await.map_err(cannot_write)?;
        let file = self.writer.get_mut();
        file.set_len(size).await.map_err(cannot_write)?;
        file.seek(SeekFrom::Start(size)).await.map(drop).map_err(cannot_write)
    }

    pub async fn publish(&mut self) -> Result<(), Error> {
        self.writer.flush().await.map_err(cannot_write)?;
        self.writer.get_ref().sync_all().await.map_err(cannot_write)?;
        let (from, to) = (self.path.clone(), blob_path(&self.key));
        let (shown, durable) = (to.clone(), self.folder.durable.clone());
        let published = self.folder.run("store", &shown, move |root| {
            let way = match link(root, &from, &to) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    // A process that ended before it was known to its row has published it.
                    let (own, found) = (beneath::metadata(root, &from)?, beneath::metadata(root, &to)?);
                    if (own.st_dev, own.st_ino) != (found.st_dev, found.st_ino) {
                        return Ok(false);
                    }
                    beneath::way(root, to.rsplit_once('/').map_or("", |(above, _)| above))?
                }
                linked => linked?,
            };
            durable.sync(&to, &way).map(|()| true)
        });
        if published.await? { Ok(()) } else { Err(Error::BlobExists { key: self.key.clone() }) }
    }
}
