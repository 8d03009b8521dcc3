//! A folder as storage: written beside, hashed on the way, synced, then moved into place.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};
use tokio::fs;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uuid::Uuid;

use landfall_core::clock::Time;
use landfall_store::Error;

/// Beside the blobs, not among them.
const MARK: &str = "database.json";
/// A mark is much shorter. Whatever is longer is none.
const LONGEST_MARK: u64 = 4_096;

#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
    blobs: PathBuf,
    /// On the same file system as the blobs, so that a move is one step.
    incoming: PathBuf,
}

impl Folder {
    pub async fn open(root: PathBuf) -> Result<Self, Error> {
        let (blobs, incoming) = (root.join("blobs"), root.join("incoming"));
        let folder = Self { root, blobs, incoming };
        for path in [&folder.blobs, &folder.incoming] {
            fs::create_dir_all(path).await.map_err(cannot("create", path))?;
        }
        sync_folder(&folder.root).await?;
        Ok(folder)
    }

    pub async fn receive(&self, owner: Uuid, key: &str) -> Result<Incoming, Error> {
        let path = self.incoming_path(owner, key);
        let file = fs::File::create_new(&path).await.map_err(cannot("create", &path))?;
        Ok(Incoming {
            blobs: self.blobs.clone(),
            target: self.path(key),
            name: IncomingName { path, kept: false },
            writer: tokio::io::BufWriter::with_capacity(256 * 1024, file),
            hash: Md5::new(),
            size: 0,
        })
    }

    /// The name that an upload has until it is seen to its end. It tells whose it is and where it belongs.
    fn incoming_path(&self, owner: Uuid, key: &str) -> PathBuf {
        self.incoming.join(format!("{}.{}", owner.simple(), key.replace('/', ".")))
    }

    fn path(&self, key: &str) -> PathBuf {
        debug_assert!(!key.contains(".."), "keys are made of ids");
        self.blobs.join(key)
    }

    pub async fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        let path = self.path(key);
        match fs::metadata(&path).await {
            Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(cannot("look at", &path)(error)),
        }
    }

    pub async fn open_file(&self, key: &str) -> Result<fs::File, Error> {
        let path = self.path(key);
        fs::File::open(&path).await.map_err(cannot("open", &path))
    }

    pub async fn read(&self, key: &str) -> Result<Vec<u8>, Error> {
        let path = self.path(key);
        fs::read(&path).await.map_err(cannot("read", &path))
    }

    pub async fn remove(&self, key: &str) -> Result<(), Error> {
        let path = self.path(key);
        match fs::remove_file(&path).await {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(cannot("remove", &path)(error)),
            _ => {}
        }
        if let Some(parent) = path.parent().filter(|parent| *parent != self.blobs) {
            // Another upload of the same file may still be in there: then the folder stays.
            drop(fs::remove_dir(parent).await);
        }
        Ok(())
    }

    pub async fn unfinished(&self) -> Result<Vec<(Uuid, String)>, Error> {
        let mut found = Vec::new();
        let mut entries = fs::read_dir(&self.incoming).await.map_err(cannot("list", &self.incoming))?;
        while let Some(entry) = entries.next_entry().await.map_err(cannot("list", &self.incoming))? {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some((owner, key)) = name.split_once('.')
                && let Ok(owner) = Uuid::parse_str(owner)
            {
                found.push((owner, key.replace('.', "/")));
            }
        }
        Ok(found)
    }

    pub async fn keys_below(&self, folder: &str) -> Result<Vec<String>, Error> {
        let mut below = Listing::of(&self.blobs, self.path(folder));
        let page = below.next_page(usize::MAX).await?;
        Ok(page.into_iter().map(|blob| blob.key).collect())
    }

    pub async fn forget_unfinished(&self, owner: Uuid, key: &str) -> Result<(), Error> {
        let path = self.incoming_path(owner, key);
        match fs::remove_file(&path).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(cannot("remove", &path)(error)),
            _ => Ok(()),
        }
    }

    pub fn list(&self) -> Listing {
        Listing::of(&self.blobs, self.blobs.clone())
    }

    pub async fn mark(&self) -> Result<Option<String>, Error> {
        let path = self.root.join(MARK);
        let file = match fs::File::open(&path).await {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot("open", &path)(error)),
        };
        let mut bytes = Vec::new();
        file.take(LONGEST_MARK).read_to_end(&mut bytes).await.map_err(cannot("read", &path))?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Whole or not at all: whoever reads it meanwhile, or after a power cut, finds the old mark or the new one.
    pub async fn set_mark(&self, mark: &str) -> Result<(), Error> {
        let (path, beside) =
            (self.root.join(MARK), self.root.join(format!("{MARK}.{}", Uuid::new_v4().simple())));
        let written = async {
            let mut file = fs::File::create_new(&beside).await?;
            file.write_all(mark.as_bytes()).await?;
            file.sync_all().await?;
            fs::rename(&beside, &path).await
        };
        if let Err(error) = written.await {
            // Nobody looks for it under that name.
            drop(fs::remove_file(&beside).await);
            return Err(cannot("write", &path)(error));
        }
        sync_folder(&self.root).await
    }

    pub async fn check(&self) -> Result<(), Error> {
        fs::metadata(&self.blobs).await.map(drop).map_err(cannot("look at", &self.blobs))
    }
}

/// Bytes on their way in.
///
/// They have the name of something unfinished until they are dropped or, once they are kept, until it is said that
/// they are finished: if the process dies before the row knows of them, whoever cleans up after it sees that name.
pub struct Incoming {
    blobs: PathBuf,
    target: PathBuf,
    name: IncomingName,
    writer: tokio::io::BufWriter<fs::File>,
    hash: Md5,
    size: u64,
}

/// What arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub size: u64,
    pub md5: String,
}

impl Incoming {
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        self.writer.write_all(bytes).await.map_err(cannot_write)
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Makes the bytes a blob. When this answers, they and their name are on disk, not merely on their way there.
    pub async fn keep(&mut self) -> Result<Stored, Error> {
        self.writer.flush().await.map_err(cannot_write)?;
        self.writer.get_ref().sync_all().await.map_err(cannot_write)?;
        let parent = self.target.parent().unwrap_or(&self.blobs).to_owned();
        fs::create_dir_all(&parent).await.map_err(cannot("create", &parent))?;
        let unfinished = self.name.path.clone();
        self.name.kept = true;
        fs::hard_link(unfinished, &self.target).await.map_err(cannot("store", &self.target))?;
        // The name of the file is an entry of its folder, and that folder's name one of the folder above it.
        for folder in [parent.as_path(), parent.parent().unwrap_or(&parent), self.blobs.as_path()] {
            sync_folder(folder).await?;
        }
        Ok(Stored { size: self.size, md5: hex::encode(self.hash.clone().finalize()) })
    }

    /// The row knows the bytes, or they are removed: nothing is unfinished any more.
    pub fn finish(mut self) {
        self.name.kept = false;
    }
}

fn cannot_write(source: std::io::Error) -> Error {
    Error::Storage { what: "write an upload".to_owned(), source }
}

/// The name of an upload that is under way, removed when it ends, unless it ended with bytes that nobody knows of.
struct IncomingName {
    path: PathBuf,
    kept: bool,
}

impl Drop for IncomingName {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = std::fs::remove_file(&self.path)
            // Whoever cleans up after a process that was taken for dead may have been faster.
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "the name of an upload could not be removed");
        }
    }
}

/// What is stored, as a listing finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub key: String,
    pub size: u64,
    /// When its last byte was written.
    pub written_at: Time,
}

/// Walks through the folder. It holds the folders that lead to where it is, and never more than a page of what is in
/// them, so that ten million blobs take no more memory than ten.
pub struct Listing {
    root: PathBuf,
    /// Where to begin, as long as it has not.
    start: Option<PathBuf>,
    open: Vec<fs::ReadDir>,
}

impl Listing {
    fn of(root: &Path, start: PathBuf) -> Self {
        Self { root: root.to_owned(), start: Some(start), open: Vec::new() }
    }

    /// The next blobs, at most so many; none at the end. What comes or goes meanwhile may be in it or not.
    pub async fn next_page(&mut self, most: usize) -> Result<Vec<Listed>, Error> {
        let mut page = Vec::new();
        if let Some(start) = self.start.take() {
            self.enter(&start).await?;
        }
        while page.len() < most
            && let Some(folder) = self.open.last_mut()
        {
            let Some(entry) = folder.next_entry().await.map_err(cannot("list", &self.root))? else {
                self.open.pop();
                continue;
            };
            let path = entry.path();
            let metadata = match entry.metadata().await {
                Ok(metadata) => metadata,
                // Removed since it was listed.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(cannot("look at", &path)(error)),
            };
            if metadata.is_dir() {
                self.enter(&path).await?;
            } else {
                let written = metadata.modified().map_err(cannot("look at", &path))?;
                page.push(Listed {
                    key: path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy().into_owned(),
                    size: metadata.len(),
                    written_at: Time::from(written),
                });
            }
        }
        Ok(page)
    }

    async fn enter(&mut self, folder: &Path) -> Result<(), Error> {
        match fs::read_dir(folder).await {
            Ok(entries) => {
                self.open.push(entries);
                Ok(())
            }
            // Removed since it was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(cannot("list", folder)(error)),
        }
    }
}

async fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = fs::File::open(path).await.map_err(cannot("open", path))?;
    folder.sync_all().await.map_err(cannot("sync", path))
}

fn cannot(verb: &str, path: &Path) -> impl Fn(std::io::Error) -> Error {
    let what = format!("{verb} {}", path.display());
    move |source| Error::Storage { what: what.clone(), source }
}
