//! A folder as storage: bytes are written to `incoming`, synced, then linked into `blobs`.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tokio::fs;
use tokio::io::{AsyncSeekExt, AsyncWriteExt, BufWriter};
use uuid::Uuid;

use super::{BlobInfo, BlobReader, Unfinished};
use landfall_core::clock::Time;
use landfall_store::Error;

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

#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
    blobs: PathBuf,
    /// On the same file system as the blobs, because a hard link needs that.
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

    pub async fn receive(&self, owner: Uuid, key: &str) -> Result<Upload, Error> {
        let path = self.incoming_path(owner, key);
        let file = fs::File::create_new(&path).await.map_err(cannot("create", &path))?;
        Ok(Upload {
            key: key.to_owned(),
            blobs: self.blobs.clone(),
            target: self.path(key),
            entry: Entry { path, on_drop: OnDrop::Remove },
            writer: BufWriter::with_capacity(WRITE_BUFFER, file),
        })
    }

    /// The name of an unfinished upload says which process receives it and which key it is for.
    fn incoming_path(&self, owner: Uuid, key: &str) -> PathBuf {
        self.incoming.join(format!("{}.{}", owner.simple(), key.replace('/', ".")))
    }

    fn path(&self, key: &str) -> PathBuf {
        debug_assert!(key.split('/').all(|segment| segment != ".."), "a key stays inside the folder");
        self.blobs.join(key)
    }

    pub async fn head(&self, key: &str) -> Result<Option<BlobInfo>, Error> {
        let path = self.path(key);
        match fs::metadata(&path).await {
            Ok(metadata) if metadata.is_file() => Ok(Some(info(key.to_owned(), &path, &metadata)?)),
            Ok(_) => Ok(None),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(cannot("read the metadata of", &path)(error)),
        }
    }

    pub async fn read_range(&self, key: &str, range: Range<u64>) -> Result<BlobReader, Error> {
        let missing = || Error::BlobMissing { key: key.to_owned() };
        let path = self.path(key);
        let mut file = match fs::File::open(&path).await {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Err(missing()),
            Err(error) => return Err(cannot("open", &path)(error)),
        };
        let metadata = file.metadata().await.map_err(cannot("read the metadata of", &path))?;
        // A folder can be opened too.
        if !metadata.is_file() {
            return Err(missing());
        }
        let end = range.end.min(metadata.len());
        let start = range.start.min(end);
        if start > 0 {
            file.seek(std::io::SeekFrom::Start(start)).await.map_err(cannot("read", &path))?;
        }
        Ok(BlobReader::new(end - start, file))
    }

    pub async fn remove(&self, key: &str) -> Result<(), Error> {
        let path = self.path(key);
        match fs::remove_file(&path).await {
            Err(error) if !is_absent(&error) => return Err(cannot("remove", &path)(error)),
            _ => {}
        }
        if let Some(parent) = path.parent().filter(|parent| *parent != self.blobs) {
            // Fails if another blob of the same file is in the folder. Then the folder is still needed.
            drop(fs::remove_dir(parent).await);
        }
        Ok(())
    }

    pub async fn unfinished(&self) -> Result<Vec<Unfinished>, Error> {
        let mut unfinished = Vec::new();
        let mut entries = fs::read_dir(&self.incoming).await.map_err(cannot("list", &self.incoming))?;
        while let Some(entry) = entries.next_entry().await.map_err(cannot("list", &self.incoming))? {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some((owner, key)) = name.split_once('.')
                && let Ok(owner) = Uuid::parse_str(owner)
            {
                unfinished.push(Unfinished { owner, key: key.replace('.', "/") });
            }
        }
        Ok(unfinished)
    }

    pub async fn forget_unfinished(&self, owner: Uuid, key: &str) -> Result<(), Error> {
        let path = self.incoming_path(owner, key);
        match fs::remove_file(&path).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(cannot("remove", &path)(error)),
            _ => Ok(()),
        }
    }

    /// Where a walk over the blobs below `prefix` begins, after the key `after`.
    pub fn position(&self, prefix: &str, after: Option<&str>) -> Position {
        Position {
            root: self.blobs.clone(),
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
        fs::metadata(&self.blobs).await.map_err(cannot("read the metadata of", &self.blobs))?;
        let probe = self.root.join(PROBE);
        fs::write(&probe, [0; PROBE_BYTES]).await.map_err(cannot("write", &probe))?;
        match fs::remove_file(&probe).await {
            // Another process has removed it.
            Err(error) if error.kind() != ErrorKind::NotFound => Err(cannot("remove", &probe)(error)),
            _ => Ok(()),
        }
    }
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
    use std::io::Write;
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
    let draft = root.join(format!("{MARK}.{}", Uuid::new_v4().simple()));
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

/// The bytes of one upload in `incoming`.
pub struct Upload {
    key: String,
    blobs: PathBuf,
    target: PathBuf,
    entry: Entry,
    writer: BufWriter<fs::File>,
}

impl Upload {
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.writer.write_all(bytes).await.map_err(cannot_write)
    }

    pub async fn publish(&mut self) -> Result<(), Error> {
        self.writer.flush().await.map_err(cannot_write)?;
        self.writer.get_ref().sync_all().await.map_err(cannot_write)?;
        let parent = self.target.parent().unwrap_or(&self.blobs).to_owned();
        // From here on the blob may exist, also if the link reports an error or this future is dropped.
        self.entry.on_drop = OnDrop::Leave;
        match link(&self.entry.path, &self.target, &parent).await {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // The blob belongs to another upload. An entry of ours would let a sweep take it for unfinished.
                self.entry.on_drop = OnDrop::Remove;
                return Err(Error::BlobExists { key: self.key.clone() });
            }
            linked => linked.map_err(cannot("store", &self.target))?,
        }
        // The name of the file is an entry of its folder, and that folder's name is an entry of the folder above it.
        for folder in [parent.as_path(), parent.parent().unwrap_or(&parent), self.blobs.as_path()] {
            sync_folder(folder).await?;
        }
        Ok(())
    }

    pub async fn finish(mut self) {
        self.entry.on_drop = OnDrop::Remove;
        match fs::remove_file(&self.entry.path).await {
            Err(error) if error.kind() != ErrorKind::NotFound => warn_of_entry(&self.entry.path, &error),
            _ => {}
        }
        self.entry.on_drop = OnDrop::Leave;
    }
}

/// Links the bytes to the name of the blob. The removal of the file's previous blob may remove the folder at any time
/// before it has the new one in it.
async fn link(from: &Path, to: &Path, parent: &Path) -> std::io::Result<()> {
    let mut attempts = 0;
    loop {
        fs::create_dir_all(parent).await?;
        attempts += 1;
        match fs::hard_link(from, to).await {
            Err(error) if error.kind() == ErrorKind::NotFound && attempts < MAX_LINK_ATTEMPTS => {}
            linked => return linked,
        }
    }
}

fn cannot_write(source: std::io::Error) -> Error {
    failed("write an upload".to_owned(), source)
}

/// The entry of an unfinished upload.
struct Entry {
    path: PathBuf,
    on_drop: OnDrop,
}

#[derive(PartialEq, Eq)]
enum OnDrop {
    Remove,
    Leave,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.on_drop == OnDrop::Remove
            && let Err(error) = std::fs::remove_file(&self.path)
            // Another process that took this one for dead may have removed it already.
            && error.kind() != ErrorKind::NotFound
        {
            warn_of_entry(&self.path, &error);
        }
    }
}

fn warn_of_entry(path: &Path, error: &std::io::Error) {
    tracing::warn!(path = %path.display(), %error, "the entry of an unfinished upload could not be removed");
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
            let path = self.root.join(&key);
            match std::fs::symlink_metadata(&path) {
                Ok(metadata) => page.push(info(key, &path, &metadata)?),
                // Removed since its folder was read.
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(cannot("read the metadata of", &path)(error)),
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
        let path = self.root.join(&prefix);
        match read_names(&path) {
            Ok(names) => {
                self.open.push(OpenFolder { prefix, names });
                Ok(())
            }
            // Removed since the folder above it was read, or nothing is stored below the prefix.
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(cannot("list", &path)(error)),
        }
    }
}

fn read_names(path: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let mut name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => name.push('/'),
            Ok(_) => {}
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(error),
        }
        names.push(name);
    }
    names.sort_unstable_by(|one, other| other.cmp(one));
    Ok(names)
}

fn info(key: String, path: &Path, metadata: &std::fs::Metadata) -> Result<BlobInfo, Error> {
    let written = metadata.modified().map_err(cannot("read the metadata of", path))?;
    Ok(BlobInfo { key, size: metadata.len(), written_at: Time::from(written) })
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
    let done = tokio::task::spawn_blocking(work).await;
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
