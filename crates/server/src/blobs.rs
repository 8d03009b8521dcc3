//! Where bytes live.
//!
//! A key is made of ids only; the name that a person gave the file stays in its row and never becomes a path.

mod local;
pub mod signed_url;

use std::path::PathBuf;

use tokio::fs;
use uuid::Uuid;

pub use local::{Incoming, Listed, Listing, Stored};

use landfall_store::Error;

/// The storage. (A folder for now; other kinds come in behind the same calls.)
#[derive(Debug, Clone)]
pub struct Blobs {
    folder: local::Folder,
}

impl Blobs {
    pub async fn open(folder: PathBuf) -> Result<Self, Error> {
        Ok(Self { folder: local::Folder::open(folder).await? })
    }

    /// The key for one upload of a file. Another upload of the same file gets another.
    pub fn key(file: Uuid, upload: Uuid) -> String {
        format!("{}/{}", Self::folder_of(file), upload.simple())
    }

    fn folder_of(file: Uuid) -> String {
        // The last characters of a v7 id are random: they spread files over 256 folders.
        let id = file.simple().to_string();
        format!("{}/{id}", &id[30..])
    }

    /// The file that a key belongs to.
    pub fn file_of(key: &str) -> Option<Uuid> {
        key.split('/').nth(1).and_then(|id| Uuid::parse_str(id).ok())
    }

    /// Begins to take in bytes that are to be found under `key`. An upload that is dropped before [`Incoming::keep`]
    /// leaves nothing behind; from then on it has the name of something unfinished until [`Incoming::finish`]. `owner` is the process that takes them in, so that what it leaves when it is killed can
    /// be told from what another still writes.
    pub async fn receive(&self, owner: Uuid, key: &str) -> Result<Incoming, Error> {
        self.folder.receive(owner, key).await
    }

    /// How long the blob is, or `None` where there is none.
    pub async fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        self.folder.size(key).await
    }

    pub async fn open_file(&self, key: &str) -> Result<fs::File, Error> {
        self.folder.open_file(key).await
    }

    pub async fn read(&self, key: &str) -> Result<Vec<u8>, Error> {
        self.folder.read(key).await
    }

    /// Removes the blob. One that is not there is removed already.
    pub async fn remove(&self, key: &str) -> Result<(), Error> {
        self.folder.remove(key).await
    }

    /// Uploads that were not seen to their end yet: whose they are, and the keys they are to have.
    pub async fn unfinished(&self) -> Result<Vec<(Uuid, String)>, Error> {
        self.folder.unfinished().await
    }

    /// Forgets an upload that a process had not seen to its end. What it may have stored is not touched.
    pub async fn forget_unfinished(&self, owner: Uuid, key: &str) -> Result<(), Error> {
        self.folder.forget_unfinished(owner, key).await
    }

    /// The keys of everything that is stored for a file.
    pub async fn keys_of(&self, file: Uuid) -> Result<Vec<String>, Error> {
        self.folder.keys_below(&Self::folder_of(file)).await
    }

    /// All that is stored, a page at a time, so that memory does not grow with its number.
    pub fn list(&self) -> Listing {
        self.folder.list()
    }

    /// What the storage has been told of the database that it belongs to.
    pub async fn mark(&self) -> Result<Option<String>, Error> {
        self.folder.mark().await
    }

    pub async fn set_mark(&self, mark: &str) -> Result<(), Error> {
        self.folder.set_mark(mark).await
    }

    /// Whether the storage answers.
    pub async fn check(&self) -> Result<(), Error> {
        self.folder.check().await
    }
}
