//! A bucket of an object store as storage: S3 and what speaks its API, Azure, Google Cloud Storage.
//!
//! Blobs are the objects below `blobs/`. An upload that comes through this server has an entry below `incoming/` until the row
//! of its file knows the blob, as in a folder. The entry names the multipart upload, so that another process can abort it.

mod appending;
mod aws_profile;
mod azure_sas;
mod cors;
mod direct;
mod explain;
mod multipart_listing;
mod part_writer;
mod ranges;
mod sigv4;
mod store;
mod trial;
mod upload;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use tokio::sync::{Mutex, Semaphore};
use uuid::Uuid;

pub use appending::Appending;
pub use cors::rules as cors_rules;
pub use direct::{Declared, DirectUpload, Download, PartsRequest};
pub use multipart_listing::{AbandonedParts, Marker};
pub use upload::Upload;

use super::place::{Bucket, StorageConfig, StoreKind};
use super::{BlobInfo, BlobReader, Pin, Revision, Unfinished};
use crate::outbound;
use landfall_core::clock::{Clock, Time};
use landfall_store::Error;
use part_writer::MAX_ATTEMPTS;
pub use store::MadeStore;
use store::Store;

const BLOBS: &str = "blobs";
const INCOMING: &str = "incoming";
/// Beside the blobs, not among them. Each time that it is written it ends with another id, so that the process whose answer was
/// lost recognises what it wrote.
const MARK: &str = "database-mark";
const PROBE: &str = "probe";
/// How long one written probe shows that the bucket can be written.
const PROBE_INTERVAL: chrono::TimeDelta = chrono::TimeDelta::minutes(1);
/// A valid mark is much shorter.
const MAX_MARK_BYTES: u64 = 4_096;
/// What a store returns in one page at the most.
const MAX_PAGE: usize = 1_000;
/// The minimum of S3 is 5 MiB. An upload has 10,000 parts at the most.
const MIN_PART: u64 = 8 << 20;
const MAX_PARTS: u64 = 9_000;
/// How many parts this process holds in memory at the same time, over all uploads.
const PARTS_IN_MEMORY: usize = 3;

#[derive(Clone)]
pub struct Objects {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    /// Signs URLs for the address where clients reach the store.
    public: Store,
    bucket: Bucket,
    options: Vec<(String, String)>,
    /// For the requests that the client library does not have. A simulation makes none.
    http: LazyLock<reqwest::Client>,
    spool: PathBuf,
    part_size: u64,
    parts_in_memory: Semaphore,
    /// When a probe was last written.
    probed_at: Mutex<Option<Time>>,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Objects").field(&self.inner.bucket).finish()
    }
}

impl Objects {
    pub async fn open(bucket: &Bucket, config: &StorageConfig) -> Result<Self, Error> {
        let spool = config.spool.clone();
        tokio::fs::create_dir_all(&spool).await.map_err(|error| Error::Storage {
            what: format!("create {}", spool.display()),
            source: error.into(),
        })?;
        // The library's own client takes the cryptography that this one brings.
        let http = LazyLock::new(outbound::client_without_redirects as fn() -> _);
        LazyLock::force(&http);
        let store = Store::open(bucket, None)?;
        let public = match &bucket.public_endpoint {
            Some(endpoint) => Store::open(bucket, Some(endpoint))?,
            None => store.clone(),
        };
        let part_size = MIN_PART.max(config.max_file_bytes.div_ceil(MAX_PARTS));
        let inner = Inner {
            store,
            public,
            bucket: bucket.clone(),
            options: store::options_of(bucket)?,
            http,
            spool,
            part_size,
            parts_in_memory: Semaphore::new(PARTS_IN_MEMORY),
            probed_at: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A bucket that a simulation made.
    pub fn made(store: Arc<dyn MadeStore>) -> Self {
        let store = Store::Made(store);
        let bucket = Bucket {
            kind: StoreKind::Gcs,
            name: "simulated".to_owned(),
            prefix: String::new(),
            options: Vec::new(),
            public_endpoint: None,
        };
        let inner = Inner {
            public: store.clone(),
            store,
            bucket,
            options: Vec::new(),
            http: LazyLock::new(outbound::client_without_redirects),
            spool: std::env::temp_dir(),
            part_size: MIN_PART,
            parts_in_memory: Semaphore::new(PARTS_IN_MEMORY),
            probed_at: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub fn bucket(&self) -> &Bucket {
        &self.inner.bucket
    }

    fn store(&self) -> &Store {
        &self.inner.store
    }

    fn path(&self, below: &str) -> Path {
        let prefix = &self.inner.bucket.prefix;
        Path::from(if prefix.is_empty() { below.to_owned() } else { format!("{prefix}/{below}") })
    }

    fn blob_path(&self, key: &str) -> Path {
        self.path(&format!("{BLOBS}/{key}"))
    }

    /// The key of the blob that an object of the bucket is, if it is one.
    pub fn key_of(&self, object: &str) -> Option<String> {
        let below = match self.inner.bucket.prefix.as_str() {
            "" => object,
            prefix => object.strip_prefix(prefix)?.strip_prefix('/')?,
        };
        below.strip_prefix(BLOBS)?.strip_prefix('/').map(str::to_owned)
    }

    pub async fn receive(&self, owner: Uuid, key: &str) -> Result<Upload, Error> {
        Upload::begin(self, owner, key).await
    }

    pub async fn head(&self, key: &str) -> Result<Option<BlobInfo>, Error> {
        match self.store().objects().head(&self.blob_path(key)).await {
            Ok(found) => Ok(Some(info(key.to_owned(), &found))),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(failed("read the metadata of", key, error)),
        }
    }

    /// The whole blob, in exactly this state.
    pub async fn read_pinned(&self, pin: &Pin) -> Result<BlobReader, Error> {
        if pin.size == 0 {
            return match self.head(&pin.key).await? {
                None => Err(Error::BlobMissing { key: pin.key.clone() }),
                Some(found) if found.size > 0 => Err(Error::BlobChanged { key: pin.key.clone() }),
                Some(_) => Ok(BlobReader::new(0, tokio::io::empty())),
            };
        }
        self.stream(&pin.key, pin.revision.clone(), 0..pin.size).await
    }

    /// Fails if the store has no longer exactly these bytes.
    pub async fn must_be_unchanged(&self, pin: &Pin) -> Result<(), Error> {
        let options = GetOptions {
            head: true,
            if_match: pin.revision.etag.clone(),
            version: pin.revision.version.clone(),
            ..GetOptions::default()
        };
        match self.store().objects().get_opts(&self.blob_path(&pin.key), options).await {
            Ok(found) if found.meta.size == pin.size => Ok(()),
            Ok(_) | Err(object_store::Error::Precondition { .. }) => {
                Err(Error::BlobChanged { key: pin.key.clone() })
            }
            Err(error) if is_missing(&error) => Err(self.missing_or_changed(&pin.key).await),
            Err(error) => Err(failed("read the metadata of", &pin.key, error)),
        }
    }

    /// The version that was confirmed is gone. Where another one has taken its place, that is said.
    async fn missing_or_changed(&self, key: &str) -> Error {
        match self.head(key).await {
            Ok(Some(_)) => Error::BlobChanged { key: key.to_owned() },
            Ok(None) => Error::BlobMissing { key: key.to_owned() },
            Err(error) => error,
        }
    }

    pub async fn read_range(&self, key: &str, range: std::ops::Range<u64>) -> Result<BlobReader, Error> {
        let Some(found) = self.head(key).await? else {
            return Err(Error::BlobMissing { key: key.to_owned() });
        };
        let end = range.end.min(found.size);
        let start = range.start.min(end);
        if start == end {
            return Ok(BlobReader::new(0, tokio::io::empty()));
        }
        self.stream(key, found.revision, start..end).await
    }

    pub async fn remove(&self, key: &str) -> Result<(), Error> {
        self.delete(&self.blob_path(key)).await
    }

    async fn delete(&self, path: &Path) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            match self.store().objects().delete(path).await {
                // The library does not repeat it if the answer is lost, but nothing is removed twice.
                Err(object_store::Error::Generic { .. }) if attempt < MAX_ATTEMPTS => attempt += 1,
                Err(error) if !is_missing(&error) => return Err(failed("remove", path.as_ref(), error)),
                _ => return Ok(()),
            }
        }
    }

    /// A page of the blobs below `prefix` after the key `after`, and the token of the next page.
    ///
    /// The token is of the store: where it cannot begin behind a key, the first page may begin before `after`.
    pub async fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        token: Option<String>,
        limit: usize,
    ) -> Result<(Vec<BlobInfo>, Option<String>), Error> {
        let below = match prefix {
            "" => format!("{BLOBS}/"),
            prefix => format!("{BLOBS}/{prefix}/"),
        };
        let offset = after.filter(|_| token.is_none() && self.can_begin_behind_a_key());
        let options = PaginatedListOptions {
            offset: offset.map(|key| self.blob_path(key).to_string()),
            max_keys: Some(limit.min(MAX_PAGE)),
            page_token: token,
            ..PaginatedListOptions::default()
        };
        let below = self.prefixed(&below);
        let listed = self.store().pages().list_paginated(Some(&below), options).await;
        let listed = listed.map_err(|error| failed("list", &below, error))?;
        let blobs = listed.result.objects.iter().filter_map(|object| {
            let key = self.key_of(object.location.as_ref())?;
            after.is_none_or(|after| *key > *after).then(|| info(key, object))
        });
        Ok((blobs.collect(), listed.page_token))
    }

    /// A prefix with its slash at the end, which a `Path` would lose.
    fn prefixed(&self, below: &str) -> String {
        match self.inner.bucket.prefix.as_str() {
            "" => below.to_owned(),
            prefix => format!("{prefix}/{below}"),
        }
    }

    /// Azure's emulator ignores the key that a listing is to begin behind.
    fn can_begin_behind_a_key(&self) -> bool {
        !matches!(self.store(), Store::Azure(_))
    }

    pub async fn unfinished(&self) -> Result<Vec<Unfinished>, Error> {
        let (below, mut unfinished, mut token) = (self.prefixed(&format!("{INCOMING}/")), Vec::new(), None);
        loop {
            let options = PaginatedListOptions { page_token: token, ..PaginatedListOptions::default() };
            let listed = self.store().pages().list_paginated(Some(&below), options).await;
            let listed = listed.map_err(|error| failed("list", &below, error))?;
            unfinished.extend(listed.result.objects.iter().filter_map(|object| {
                let (owner, key) = object.location.filename()?.split_once('.')?;
                Some(Unfinished { owner: Uuid::parse_str(owner).ok()?, key: key.replace('.', "/") })
            }));
            token = listed.page_token;
            if token.is_none() {
                return Ok(unfinished);
            }
        }
    }

    pub async fn forget_unfinished(&self, owner: Uuid, key: &str) -> Result<(), Error> {
        let entry = self.entry_path(owner, key);
        if let Some(id) = self.text(&entry).await?.map(|(text, _)| text).filter(|text| !text.is_empty()) {
            self.abort(key, &id).await?;
        }
        self.delete(&entry).await
    }

    fn entry_path(&self, owner: Uuid, key: &str) -> Path {
        self.path(&format!("{INCOMING}/{}.{}", owner.simple(), key.replace('/', ".")))
    }

    /// Removes the parts of an upload that will not be completed.
    pub async fn abort(&self, key: &str, id: &str) -> Result<(), Error> {
        match self.store().parts().abort_multipart(&self.blob_path(key), &id.to_owned()).await {
            Err(error) if !is_missing(&error) => Err(failed("abort the upload of", key, error)),
            _ => Ok(()),
        }
    }

    pub async fn mark(&self) -> Result<Option<String>, Error> {
        Ok(self.text(&self.path(MARK)).await?.map(|(text, _)| mark_in(&text).to_owned()))
    }

    pub async fn replace_mark(&self, expected: Option<&str>, mark: &str) -> Result<bool, Error> {
        let path = self.path(MARK);
        let found = self.text(&path).await?;
        if found.as_ref().map(|(text, _)| mark_in(text)) != expected {
            return Ok(false);
        }
        let mode = match found {
            Some((_, version)) => PutMode::Update(version),
            None => PutMode::Create,
        };
        let written = format!("{mark}\n{}", landfall_core::random::new_uuid());
        let put =
            self.store().objects().put_opts(&path, written.clone().into(), PutOptions::from(mode)).await;
        match put {
            Ok(_) => Ok(true),
            // Another process was faster. Or this one was, and the answer to it was lost.
            Err(error) => {
                let is_ours = self.text(&path).await?.is_some_and(|(text, _)| text == written);
                let is_lost = matches!(
                    error,
                    object_store::Error::Precondition { .. }
                        | object_store::Error::AlreadyExists { .. }
                        | object_store::Error::NotModified { .. }
                );
                if is_ours || is_lost { Ok(is_ours) } else { Err(failed("write", MARK, error)) }
            }
        }
    }

    /// A small object and its state. `None` if there is none.
    async fn text(&self, path: &Path) -> Result<Option<(String, UpdateVersion)>, Error> {
        let got = match self.store().objects().get_opts(path, GetOptions::default()).await {
            Ok(got) => got,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(failed("read", path.as_ref(), error)),
        };
        let version = UpdateVersion { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
        if got.meta.size > MAX_MARK_BYTES {
            let source = format!("it has {} bytes, which is too many", got.meta.size).into();
            return Err(Error::Storage { what: format!("read {path}"), source });
        }
        let bytes = got.bytes().await.map_err(|error| failed("read", path.as_ref(), error))?;
        Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), version)))
    }

    /// Whether the bucket can be read, and written: the latter at most once a minute, because a write has its price.
    pub async fn check(&self) -> Result<(), Error> {
        self.text(&self.path(MARK)).await?;
        let (mut probed_at, now) = (self.inner.probed_at.lock().await, Clock::System.now());
        if probed_at.is_none_or(|at| now - at > PROBE_INTERVAL || now < at) {
            let put = self.store().objects().put(&self.path(PROBE), PutPayload::from_static(b"probe")).await;
            put.map_err(|error| failed("write", PROBE, error))?;
            *probed_at = Some(now);
        }
        Ok(())
    }
}

fn mark_in(text: &str) -> &str {
    text.rsplit_once('\n').map_or(text, |(mark, _)| mark)
}

fn info(key: String, found: &ObjectMeta) -> BlobInfo {
    let revision = Revision { etag: found.e_tag.clone(), version: found.version.clone() };
    BlobInfo { key, size: found.size, written_at: found.last_modified, revision }
}

/// Whether the store says that there is no such object. A bucket that does not exist is another matter.
fn is_missing(error: &object_store::Error) -> bool {
    match error {
        object_store::Error::NotFound { source, .. } => {
            let said = source.to_string();
            !said.contains("NoSuchBucket") && !said.contains("ContainerNotFound")
        }
        _ => false,
    }
}

fn failed(verb: &str, what: &str, error: object_store::Error) -> Error {
    Error::Storage { what: format!("{verb} {what}"), source: Box::new(error) }
}
