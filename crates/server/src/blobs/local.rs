//! A folder as storage: bytes are written to `incoming`, synced, then linked into `blobs`. No symbolic link below the folder is
//! followed (`blobs/beneath.rs`).

pub mod appending;
mod upload;

use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tokio::fs;
use tokio::io::AsyncSeekExt;
use uuid::Uuid;

use super::beneath::{self, Missing};
use super::{BlobInfo, BlobReader, Revision, Unfinished};
use landfall_core::clock::Time;
use landfall_store::Error;
pub use upload::Upload;
use upload::{Draft, Durable};

/// Stands beside the blobs, not among them.
const MARK: &str = "database.json";
/// Written and removed again, to see whether there is room.
const PROBE: &str = "probe";
const PROBE_BYTES: usize = 4_096;
/// Held while the mark is compared and replaced.
const MARK_LOCK: &str = "database.json.lock";
/// A valid mark is much shorter.
const MAX_MARK_BYTES: u64 = 4_096;
const WRITE_BUFFER: usize = 256 * 1024;
/// How often a folder may be removed between its creation and the link into it.
const MAX_LINK_ATTEMPTS: u32 = 100;

/// The folders below the root.
const BLOBS: &str = "blobs";
/// On the same file system as the blobs, because a hard link needs that.
const INCOMING: &str = "incoming";

#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
    durable: Durable,
}

impl Folder {
    pub async fn open(root: PathBuf) -> Result<Self, Error> {
        let folder = Self { root, durable: Durable::default() };
        folder
            .run("create", "", |root| {
                let mut make = std::fs::DirBuilder::new();
                make.recursive(true).mode(0o700).create(root)?;
                for path in [BLOBS, INCOMING] {
                    beneath::folder(root, path, Missing::Create)?;
                }
                beneath::sync(root, "")
            })
            .await?;
        Ok(folder)
    }

    pub async fn receive(&self, owner: Uuid, key: &str) -> Result<Upload, Error> {
        let path = incoming_path(owner, key);
        let created = path.clone();
        let create = move |root: &Path| {
            let mut draft = Draft::new(root, created);
            draft.create().map(|()| draft)
        };
        let draft = self.run("create", &path, create).await?;
        Ok(Upload::new(key, self, draft))
    }

    /// The same, but the entry in `incoming` is made with the bytes.
    pub fn receive_whole(&self, owner: Uuid, key: &str) -> Upload {
        Upload::new(key, self, Draft::new(&self.root, incoming_path(owner, key)))
    }

    pub async fn head(&self, key: &str) -> Result<Option<BlobInfo>, Error> {
        let path = blob_path(key);
        let found = self.try_run(&path, "read the metadata of", beneath::metadata).await?;
        found.map(|found| info(key.to_owned(), &found)).transpose()
    }

    pub async fn read_range(&self, key: &str, range: Range<u64>) -> Result<BlobReader, Error> {
        let path = blob_path(key);
        let opened = self.try_run(&path, "open", beneath::open).await?;
        let Some(file) = opened else { return Err(Error::BlobMissing { key: key.to_owned() }) };
        let mut file = fs::File::from_std(file);
        let shown = self.root.join(&path);
        let metadata = file.metadata().await.map_err(cannot("read the metadata of", &shown))?;
        let end = range.end.min(metadata.len());
        let start = range.start.min(end);
        if start > 0 {
            file.seek(std::io::SeekFrom::Start(start)).await.map_err(cannot("read", &shown))?;
        }
        Ok(BlobReader::new(end - start, file))
    }

    pub async fn remove(&self, key: &str) -> Result<(), Error> {
        let path = blob_path(key);
        self.try_run(&path, "remove", beneath::remove).await?;
        if let Some((folder, _)) = path.rsplit_once('/').filter(|(folder, _)| *folder != BLOBS) {
            // Fails if another blob of the same file is in the folder. Then the folder is still needed.
            drop(self.try_run(folder, "remove", beneath::remove_folder).await);
        }
        Ok(())
    }

    pub async fn unfinished(&self) -> Result<Vec<Unfinished>, Error> {
        let names = self.run("list", INCOMING, |root| beneath::names(root, INCOMING)).await?;
        let unfinished = names.into_iter().filter_map(|(name, _)| {
            let (owner, key) = name.split_once('.')?;
            Some(Unfinished { owner: Uuid::parse_str(owner).ok()?, key: key.replace('.', "/") })
        });
        Ok(unfinished.collect())
    }

    pub async fn forget_unfinished(&self, owner: Uuid, key: &str) -> Result<(), Error> {
        self.try_run(&incoming_path(owner, key), "remove", beneath::remove).await.map(drop)
    }

    /// Runs a call of the file system on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        verb: &'static str,
        path: &str,
        call: impl FnOnce(&Path) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let (root, shown) = (self.root.clone(), self.root.join(path));
        blocking(move || call(&root).map_err(cannot(verb, &shown))).await
    }

    /// The same for a call with a path. `None` if there is nothing under it.
    async fn try_run<T: Send + 'static>(
        &self,
        path: &str,
        verb: &'static str,
        call: fn(&Path, &str) -> std::io::Result<T>,
    ) -> Result<Option<T>, Error> {
        let owned = path.to_owned();
        let called = move |root: &Path| match call(root, &owned) {
            Err(error) if is_absent(&error) => Ok(None),
            done => done.map(Some),
        };
        self.run(verb, path, called).await
    }

    /// Where a walk over the blobs below `prefix` begins, after the key `after`.
    pub fn position(&self, prefix: &str, after: Option<&str>) -> Position {
        Position {
            root: self.root.clone(),
            after: after.map(str::to_owned),
            start: Some(prefix.trim_matches('/').to_owned()),
            open: Vec::new(),
        }
    }

    pub async fn mark(&self) -> Result<Option<String>, Error> {
        let path = self.root.join(MARK);
        let read = blocking(move || read_mark(&path).map_err(cannot("read", &path)));
        read.await
    }

    pub async fn replace_mark(&self, expected: Option<&str>, mark: &str) -> Result<bool, Error> {
        let (root, expected, mark) = (self.root.clone(), expected.map(str::to_owned), mark.to_owned());
        let replaced = blocking(move || {
            let path = root.join(MARK);
            replace_mark(&root, expected.as_deref(), &mark).map_err(cannot("write", &path))
        });
        let replaced = replaced.await?;
        if replaced {
            sync_folder(&self.root).await?;
        }
        Ok(replaced)
    }

    /// Whether the blobs are there, and whether the storage can be written.
    pub async fn check(&self) -> Result<(), Error> {
        self.run("open", BLOBS, |root| beneath::folder(root, BLOBS, Missing::Fail)).await?;
        // A name of its own, so that two processes do not meet.
        let path = format!("{PROBE}-{}", std::process::id());
        self.run("write", PROBE, move |root| write_probe(root, &path)).await
    }
}

/// Writes, syncs and removes a page.
fn write_probe(root: &Path, path: &str) -> std::io::Result<()> {
    // What a killed process left.
    match beneath::remove(root, path) {
        Err(error) if !is_absent(&error) => return Err(error),
        _ => {}
    }
    let mut probe = beneath::create(root, path)?;
    let written = probe.write_all(&[0; PROBE_BYTES]).and_then(|()| probe.sync_all());
    written.and(beneath::remove(root, path))
}

/// The name of an unfinished upload says which process receives it and which key it is for.
fn incoming_path(owner: Uuid, key: &str) -> String {
    format!("{INCOMING}/{}.{}", owner.simple(), key.replace('/', "."))
}

fn blob_path(key: &str) -> String {
    debug_assert!(key.split('/').all(|segment| segment != ".."), "a key stays inside the folder");
    format!("{BLOBS}/{key}")
}

fn read_mark(path: &Path) -> std::io::Result<Option<String>> {
    use std::io::Read;
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_MARK_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// A file system has no compare-and-set, so a lock makes one of the comparison and the rename.
fn replace_mark(root: &Path, expected: Option<&str>, mark: &str) -> std::io::Result<bool> {
    let lock =
        std::fs::File::options().create(true).truncate(false).write(true).open(root.join(MARK_LOCK))?;
    // Released when the file is closed, which also happens when the process dies.
    match lock.lock() {
        // Some network file systems have no locks. There, two processes that start at the same moment may both win.
        Err(error) if error.kind() != ErrorKind::Unsupported => return Err(error),
        _ => {}
    }
    let path = root.join(MARK);
    if read_mark(&path)?.as_deref() != expected {
        return Ok(false);
    }
    let draft = root.join(format!("{MARK}.{}", landfall_core::random::new_uuid().simple()));
    let written = std::fs::File::create_new(&draft)
        .and_then(|mut file| {
            file.write_all(mark.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&draft, &path));
    if let Err(error) = written {
        // The draft has a random name, so nothing else would remove it.
        drop(std::fs::remove_file(&draft));
        return Err(error);
    }
    Ok(true)
}

fn cannot_write(source: std::io::Error) -> Error {
    failed("write an upload".to_owned(), source)
}

/// Where a walk over the blobs is: for each level, the names that are still to be visited, in their order.
///
/// So it holds the names of one folder per level. A file's folder has few; one of the 256 above it has a 256th of all.
pub struct Position {
    root: PathBuf,
    /// Keys up to this one are skipped.
    after: Option<String>,
    /// The key of the folder to begin in, as long as the walk has not begun.
    start: Option<String>,
    open: Vec<OpenFolder>,
}

struct OpenFolder {
    /// What the keys of its entries begin with: nothing, or a key and a slash.
    prefix: String,
    /// From the last to the first. The name of a folder ends with a slash: only so do names compare like whole keys.
    names: Vec<String>,
}

impl Position {
    /// The next blobs and where they end.
    pub async fn walk(self, limit: usize) -> Result<(Vec<BlobInfo>, Self), Error> {
        blocking(move || self.walk_now(limit)).await
    }

    fn walk_now(mut self, limit: usize) -> Result<(Vec<BlobInfo>, Self), Error> {
        let mut page = Vec::new();
        if let Some(start) = self.start.take() {
            self.enter(if start.is_empty() { start } else { start + "/" })?;
        }
        while page.len() < limit
            && let Some(folder) = self.open.last_mut()
        {
            let Some(name) = folder.names.pop() else {
                self.open.pop();
                continue;
            };
            let key = format!("{}{name}", folder.prefix);
            if self.is_over(&key) {
                continue;
            }
            if key.ends_with('/') {
                self.enter(key)?;
                continue;
            }
            let path = blob_path(&key);
            match beneath::metadata(&self.root, &path) {
                Ok(found) => page.push(info(key, &found)?),
                // Removed since its folder was read, or a link, which is no blob.
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(cannot("read the metadata of", &self.root.join(path))(error)),
            }
        }
        Ok((page, self))
    }

    /// Whether the walk is past this blob, or past all that is in this folder.
    fn is_over(&self, key: &str) -> bool {
        let Some(after) = &self.after else { return false };
        key <= after.as_str() && !(key.ends_with('/') && after.starts_with(key))
    }

    fn enter(&mut self, prefix: String) -> Result<(), Error> {
        let path = blob_path(&prefix);
        match read_names(&self.root, &path) {
            Ok(names) => {
                self.open.push(OpenFolder { prefix, names });
                Ok(())
            }
            // Removed since the folder above it was read, or nothing is stored below the prefix.
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(cannot("list", &self.root.join(path))(error)),
        }
    }
}

fn read_names(root: &Path, path: &str) -> std::io::Result<Vec<String>> {
    let entries = beneath::names(root, path)?.into_iter();
    let mut names: Vec<String> =
        entries.map(|(name, is_folder)| if is_folder { name + "/" } else { name }).collect();
    names.sort_unstable_by(|one, other| other.cmp(one));
    Ok(names)
}

fn info(key: String, found: &rustix::fs::Stat) -> Result<BlobInfo, Error> {
    let written = Time::from_timestamp(found.st_mtime, u32::try_from(found.st_mtime_nsec).unwrap_or(0));
    let unknown = || Error::Internal(format!("the time of the blob {key} is not one"));
    let (written_at, size) = (written.ok_or_else(unknown)?, u64::try_from(found.st_size).unwrap_or(0));
    Ok(BlobInfo { key, size, written_at, revision: Revision::default() })
}

/// Whether there is nothing under a name. A name below a file, instead of a folder, has nothing either.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

async fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = fs::File::open(path).await.map_err(cannot("open", path))?;
    folder.sync_all().await.map_err(cannot("sync", path))
}

/// Runs calls of the file system on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = landfall_core::blocking::run(work).await;
    done.unwrap_or_else(|panic| Err(Error::Internal(format!("the storage panicked: {panic}"))))
}

fn cannot(verb: &str, path: &Path) -> impl Fn(std::io::Error) -> Error {
    let what = format!("{verb} {}", path.display());
    move |source| failed(what.clone(), source)
}

fn failed(what: String, source: std::io::Error) -> Error {
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Error::StorageFull { what, source: source.into() }
        }
        _ => Error::Storage { what, source: source.into() },
    }
}
