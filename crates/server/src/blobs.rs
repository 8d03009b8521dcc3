//! The storage of the uploaded bytes.
//!
//! Everything that reads or changes blobs calls [`Blobs`]. The backend behind it is private: a folder, or a bucket of an object
//! store. The calls ask only for what both have: whole objects that are never overwritten, sizes, streams, ranges, listings
//! in key order, and one small object that is replaced by compare-and-set. `tests/suite/storage_contract.rs` tests what each
//! backend must keep. What only object stores have, requests that clients send there themselves, is in [`direct`].
//!
//! A key is made of ids only. The name that the client gave the file stays in its row and never becomes a path.

mod beneath;
mod checked;
pub mod direct;
mod incoming;
mod listing;
mod local;
mod object;
mod pin;
mod place;
mod reader;
pub mod resumable;
pub mod signed_url;
pub mod trial;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

pub use checked::{Checksum, Integrity};
pub use incoming::{Incoming, Stored};
pub use listing::Listing;
pub use object::MadeStore;
pub use pin::{Pin, Revision};
pub use place::{Bucket, Place, StorageConfig, StoreKind};
pub use reader::BlobReader;
pub use resumable::{Appending, Saved, Unsaved};

use landfall_core::clock::Time;
use landfall_store::Error;

#[derive(Debug, Clone)]
pub struct Blobs {
    backend: Backend,
}

#[derive(Debug, Clone)]
enum Backend {
    Local(local::Folder),
    Objects(object::Objects),
}

/// What the storage knows of a blob without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobInfo {
    pub key: String,
    pub size: u64,
    /// When its last byte was written.
    pub written_at: Time,
    pub revision: Revision,
}

/// An upload that is still arriving, or that arrived and is not yet known to its file's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The process that receives it.
    pub owner: Uuid,
    pub key: String,
}

impl Blobs {
    /// Opens the storage that is configured.
    pub async fn connect(config: &StorageConfig) -> Result<Self, Error> {
        match &config.place {
            Place::Folder(folder) => Self::open(folder).await,
            Place::Objects(bucket) => {
                Ok(Self { backend: Backend::Objects(object::Objects::open(bucket, config).await?) })
            }
        }
    }

    /// A storage that a simulation made.
    pub fn made(store: Arc<dyn MadeStore>) -> Self {
        Self { backend: Backend::Objects(object::Objects::made(store)) }
    }

    /// Opens the storage in a local folder, which is created if it does not exist.
    pub async fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let folder = local::Folder::open(folder.into()).await?;
        Ok(Self { backend: Backend::Local(folder) })
    }

    /// Whether the blobs are in an object store, and not in a folder.
    pub fn is_remote(&self) -> bool {
        matches!(self.backend, Backend::Objects(_))
    }

    /// The key for one upload of a file. Each upload of the same file has its own key.
    pub fn key(file: Uuid, upload: Uuid) -> String {
        format!("{}/{}", Self::prefix_of(file), upload.simple())
    }

    fn prefix_of(file: Uuid) -> String {
        // The last characters of a v7 id are random: they spread the files over 256 prefixes.
        let id = file.simple().to_string();
        format!("{}/{id}", &id[30..])
    }

    /// The file that a key belongs to.
    pub fn file_of(key: &str) -> Option<Uuid> {
        key.split('/').nth(1).and_then(|id| Uuid::parse_str(id).ok())
    }

    /// Begins an upload that is to become the blob `key`.
    ///
    /// The upload is listed as unfinished, with `owner` as the process that receives it, until [`Incoming::finish`].
    /// If that process is killed, another one finds the entry and cleans up. An upload that is dropped before
    /// [`Incoming::publish`] leaves nothing behind.
    pub async fn receive(&self, owner: Uuid, key: &str) -> Result<Incoming, Error> {
        if !is_made_of_ids(key) {
            return Err(Error::Internal(format!("{key:?} is not a key for an upload")));
        }
        match &self.backend {
            Backend::Local(folder) => Ok(Incoming::local(folder.receive(owner, key).await?)),
            Backend::Objects(objects) => Ok(Incoming::objects(objects.receive(owner, key).await?)),
        }
    }

    /// The same for bytes that are all here already. In a folder, all of it is done in one call at the end.
    pub async fn receive_whole(&self, owner: Uuid, key: &str) -> Result<Incoming, Error> {
        match &self.backend {
            Backend::Local(folder) if is_made_of_ids(key) => {
                Ok(Incoming::local(folder.receive_whole(owner, key)))
            }
            _ => self.receive(owner, key).await,
        }
    }

    /// The size and the time of a blob. `None` if there is no such blob.
    pub async fn head(&self, key: &str) -> Result<Option<BlobInfo>, Error> {
        match &self.backend {
            Backend::Local(folder) => folder.head(key).await,
            Backend::Objects(objects) => objects.head(key).await,
        }
    }

    /// The size of a blob in bytes. `None` if there is no such blob.
    pub async fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        Ok(self.head(key).await?.map(|blob| blob.size))
    }

    /// Streams a whole blob. Fails with [`Error::BlobMissing`] if there is no such blob.
    pub async fn read(&self, key: &str) -> Result<BlobReader, Error> {
        self.read_range(key, 0..u64::MAX).await
    }

    /// Streams a whole blob, exactly the bytes that the row of its file names. Where they are others, this fails with
    /// [`Error::BlobChanged`], or the stream fails before its last bytes and the second value says why.
    pub async fn read_pinned(&self, pin: &Pin) -> Result<(BlobReader, Integrity), Error> {
        let blob = match &self.backend {
            Backend::Local(folder) => folder.read_range(&pin.key, 0..u64::MAX).await?,
            Backend::Objects(objects) => objects.read_pinned(pin).await?,
        };
        if blob.size() != pin.size {
            return Ok((BlobReader::of_wrong_size(pin.size), Integrity::broken()));
        }
        Ok(match pin.checksum.clone() {
            Some(checksum) => {
                let (checker, integrity) = checked::Checker::new(checksum);
                (blob.checked(checker), integrity)
            }
            None => (blob, Integrity::default()),
        })
    }

    /// Streams the bytes of a blob that lie in `range`. A range that goes beyond the end is cut there, so that the reader
    /// may have fewer bytes, or none. Fails with [`Error::BlobMissing`] if there is no such blob.
    pub async fn read_range(&self, key: &str, range: Range<u64>) -> Result<BlobReader, Error> {
        match &self.backend {
            Backend::Local(folder) => folder.read_range(key, range).await,
            Backend::Objects(objects) => objects.read_range(key, range).await,
        }
    }

    /// Removes a blob. To remove one that does not exist is no error.
    pub async fn remove(&self, key: &str) -> Result<(), Error> {
        match &self.backend {
            Backend::Local(folder) => folder.remove(key).await,
            Backend::Objects(objects) => objects.remove(key).await,
        }
    }

    /// Lists the blobs whose keys begin with `prefix` and come after `after`, in the order of their keys (bytewise), a
    /// page at a time.
    ///
    /// `prefix` is made of whole segments: `ab` covers `ab/c` but not `abc`. The empty prefix covers every blob.
    pub fn list(&self, prefix: &str, after: Option<&str>) -> Listing {
        match &self.backend {
            Backend::Local(folder) => Listing::local(folder.clone(), prefix, after),
            Backend::Objects(objects) => Listing::objects(objects.clone(), prefix, after),
        }
    }

    /// The keys of all blobs of a file, in their order.
    pub async fn keys_of(&self, file: Uuid) -> Result<Vec<String>, Error> {
        let page = self.list(&Self::prefix_of(file), None).next_page(usize::MAX).await?;
        Ok(page.into_iter().map(|blob| blob.key).collect())
    }

    /// All uploads that are not finished, of all processes.
    pub async fn unfinished(&self) -> Result<Vec<Unfinished>, Error> {
        match &self.backend {
            Backend::Local(folder) => folder.unfinished().await,
            Backend::Objects(objects) => objects.unfinished().await,
        }
    }

    /// Removes the entry of an unfinished upload, with bytes that were not published. A published blob stays.
    pub async fn forget_unfinished(&self, owner: Uuid, key: &str) -> Result<(), Error> {
        match &self.backend {
            Backend::Local(folder) => folder.forget_unfinished(owner, key).await,
            Backend::Objects(objects) => objects.forget_unfinished(owner, key).await,
        }
    }

    /// Opens an upload that is written in several requests, to write to its end. `saved` is how far it was noted to be, `unsaved`
    /// what becomes of bytes behind that, and `length` how many it will have. `None` while another one writes to it.
    pub async fn append(
        &self,
        key: &str,
        saved: &Saved,
        unsaved: Unsaved,
        length: u64,
    ) -> Result<Option<Appending>, Error> {
        if !is_made_of_ids(key) {
            return Err(Error::Internal(format!("{key:?} is not a key for an upload")));
        }
        match &self.backend {
            Backend::Local(folder) => Appending::local(folder, key, saved, unsaved).await,
            Backend::Objects(objects) => Appending::objects(objects, key, saved, length).await.map(Some),
        }
    }

    /// How many bytes of such an upload are here while no one writes to it.
    pub async fn appended(&self, key: &str, saved: &Saved) -> Result<u64, Error> {
        match &self.backend {
            Backend::Local(folder) => folder.appended(key).await,
            Backend::Objects(objects) => objects.appended(key, saved.stored.as_ref(), saved.offset).await,
        }
    }

    /// Streams the bytes of such an upload that was sealed and has `size` of them, from a position on.
    pub async fn read_appended(&self, key: &str, from: u64, size: u64) -> Result<BlobReader, Error> {
        match &self.backend {
            Backend::Local(folder) => folder.read_appended(key, from, size).await,
            Backend::Objects(objects) => objects.read_range(key, from..size).await,
        }
    }

    /// Removes what is here of such an upload. A blob that was made of it stays.
    pub async fn discard_appended(&self, key: &str, stored: Option<&Value>) -> Result<(), Error> {
        match &self.backend {
            Backend::Local(folder) => folder.discard_appended(key).await,
            Backend::Objects(objects) => objects.discard_appended(key, stored).await,
        }
    }

    /// The keys of all such uploads of which something is here that is not in a listing of blobs.
    pub async fn all_appended(&self) -> Result<Vec<String>, Error> {
        match &self.backend {
            Backend::Local(folder) => folder.all_appended().await,
            Backend::Objects(objects) => objects.all_appended().await,
        }
    }

    /// The mark of the database that the storage belongs to.
    pub async fn mark(&self) -> Result<Option<String>, Error> {
        match &self.backend {
            Backend::Local(folder) => folder.mark().await,
            Backend::Objects(objects) => objects.mark().await,
        }
    }

    /// Replaces the mark if it is still `expected`, and returns whether it was.
    ///
    /// A reader, or a restart after a power cut, finds the old mark or the new one, never a part of one.
    pub async fn replace_mark(&self, expected: Option<&str>, mark: &str) -> Result<bool, Error> {
        match &self.backend {
            Backend::Local(folder) => folder.replace_mark(expected, mark).await,
            Backend::Objects(objects) => objects.replace_mark(expected, mark).await,
        }
    }

    /// Checks that the storage can be reached.
    pub async fn check(&self) -> Result<(), Error> {
        match &self.backend {
            Backend::Local(folder) => folder.check().await,
            Backend::Objects(objects) => objects.check().await,
        }
    }
}

/// Whether every backend can store the key as it is: segments of letters, digits, `-` and `_`.
fn is_made_of_ids(key: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    key.split('/').all(|segment| !segment.is_empty() && segment.bytes().all(is_plain))
}
