//! A simulated object store: whole objects, conditional puts, listings that lag, answers that are lost.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{
    Attributes, CopyOptions, Error, Extensions, GetOptions, GetRange, GetResult, GetResultPayload,
    ListResult, MultipartId, MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};

use landfall_core::clock::{Clock, Time};

use crate::shared::{Life, Shared};

/// What is in the bucket.
#[derive(Debug, Default)]
pub struct Bucket {
    objects: Mutex<Objects>,
}

#[derive(Debug, Default)]
struct Objects {
    by_key: BTreeMap<String, Object>,
    written: u64,
}

#[derive(Debug, Clone)]
struct Object {
    bytes: Bytes,
    etag: String,
    at: Time,
    /// Milliseconds since the beginning, for the lag of listings.
    since: u64,
}

impl Bucket {
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys of all objects.
    pub fn keys(&self) -> Vec<String> {
        self.objects().by_key.keys().cloned().collect()
    }

    /// Takes an object that a client sends without the server, unless there is one already, as the address asks for.
    pub fn receive(&self, blob: &str, bytes: Vec<u8>, shared: &Shared) {
        let mut objects = self.objects();
        objects.written += 1;
        let (bytes, etag) = (bytes.into(), format!("\"{}\"", objects.written));
        let object = Object { bytes, etag, at: shared.time(), since: shared.now() };
        objects.by_key.entry(format!("blobs/{blob}")).or_insert(object);
    }

    /// What an object consists of.
    pub fn bytes(&self, key: &str) -> Option<Bytes> {
        self.objects().by_key.get(key).map(|object| object.bytes.clone())
    }
}

/// The bucket as one process reaches it. Without a life it is reached without faults.
#[derive(Clone)]
pub struct Storage {
    bucket: Arc<Bucket>,
    shared: Arc<Shared>,
    life: Option<Arc<Life>>,
}

impl Storage {
    pub fn new(bucket: &Arc<Bucket>, shared: &Arc<Shared>, life: Option<Arc<Life>>) -> Self {
        Self { bucket: bucket.clone(), shared: shared.clone(), life }
    }

    /// The way of a request to the store.
    async fn send(&self, what: &str, key: &str) -> Result<()> {
        let Some(life) = &self.life else { return Ok(()) };
        self.forever_if_over().await;
        self.shared.trace().note(self.shared.now(), life.process, &format!("{what} {key}"));
        Clock::System.sleep(Duration::from_millis(1 + self.shared.number(6))).await;
        self.forever_if_over().await;
        if life.cannot_reach_storage() {
            return Err(lost("the connection was refused"));
        }
        // The client library asks again by itself, so a caller only sees that it takes longer.
        if self.shared.happens(self.shared.plan.mix.throttled, "storage throttled") {
            Clock::System.sleep(Duration::from_millis(100 + self.shared.number(2_000))).await;
            self.forever_if_over().await;
        }
        Ok(())
    }

    /// The way of its answer.
    async fn answer(&self) -> Result<()> {
        if self.life.is_none() {
            return Ok(());
        }
        self.forever_if_over().await;
        if self.shared.happens(self.shared.plan.mix.lost_puts, "storage answer lost") {
            return Err(lost("the answer was lost"));
        }
        Ok(())
    }

    async fn forever_if_over(&self) {
        if self.life.as_ref().is_some_and(|life| life.is_over()) {
            std::future::pending::<()>().await;
        }
    }

    fn is_listed(&self, object: &Object) -> bool {
        self.life.is_none()
            || self.shared.is_calm()
            || object.since + self.shared.plan.mix.listing_lag <= self.shared.now()
    }

    fn put(&self, key: &str, bytes: Bytes, mode: &PutMode) -> Result<PutResult> {
        let mut objects = self.bucket.objects();
        let there = objects.by_key.get(key).map(|object| object.etag.clone());
        match (mode, &there) {
            (PutMode::Create, Some(_)) => {
                self.shared.trace().reached("conditional put refused");
                return Err(Error::AlreadyExists { path: key.to_owned(), source: "412".into() });
            }
            (PutMode::Update(version), _) if version.e_tag != there => {
                self.shared.trace().reached("conditional put refused");
                return Err(Error::Precondition { path: key.to_owned(), source: "412".into() });
            }
            _ => {}
        }
        objects.written += 1;
        let etag = format!("\"{}\"", objects.written);
        // By the clock of the store, whatever the process's own shows.
        let (at, since) = (self.shared.time(), self.shared.now());
        let object = Object { bytes, etag: etag.clone(), at, since };
        objects.by_key.insert(key.to_owned(), object);
        Ok(PutResult { e_tag: Some(etag), version: None, extensions: Extensions::default() })
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Storage")
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a simulated object store")
    }
}

fn lost(why: &str) -> Error {
    Error::Generic { store: "simulated", source: why.into() }
}

fn unused(operation: &str) -> Error {
    Error::NotImplemented { operation: operation.to_owned(), implementer: "the simulator".to_owned() }
}

fn meta(key: &str, object: &Object) -> ObjectMeta {
    ObjectMeta {
        location: Path::from(key),
        last_modified: object.at,
        size: object.bytes.len() as u64,
        e_tag: Some(object.etag.clone()),
        version: None,
    }
}

#[async_trait]
impl ObjectStore for Storage {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.send("put", location.as_ref()).await?;
        let put = self.put(location.as_ref(), payload.into(), &opts.mode);
        self.answer().await?;
        put
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(unused("put_multipart"))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let key = location.as_ref();
        self.send("get", key).await?;
        let found = self.bucket.objects().by_key.get(key).cloned();
        let object =
            found.ok_or_else(|| Error::NotFound { path: key.to_owned(), source: "NoSuchKey".into() })?;
        let meta = meta(key, &object);
        if options.if_match.as_ref().is_some_and(|wanted| *wanted != object.etag) {
            return Err(Error::Precondition { path: key.to_owned(), source: "412".into() });
        }
        let size = object.bytes.len() as u64;
        let range: Range<u64> = match &options.range {
            Some(GetRange::Bounded(range)) => range.start.min(size)..range.end.min(size),
            Some(_) => return Err(unused("get with such a range")),
            None => 0..size,
        };
        let slice = usize::try_from(range.start).unwrap_or(0)..usize::try_from(range.end).unwrap_or(0);
        let bytes = if options.head { Bytes::new() } else { object.bytes.slice(slice) };
        let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult {
            payload,
            meta,
            range,
            attributes: Attributes::default(),
            extensions: Extensions::default(),
        })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let storage = self.clone();
        locations
            .then(move |location| {
                let storage = storage.clone();
                async move {
                    let location = location?;
                    storage.send("delete", location.as_ref()).await?;
                    storage.bucket.objects().by_key.remove(location.as_ref());
                    storage.answer().await?;
                    Ok(location)
                }
            })
            .boxed()
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::iter([Err(unused("list"))]).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(unused("list_with_delimiter"))
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(unused("copy"))
    }
}

#[async_trait]
impl PaginatedListStore for Storage {
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        opts: PaginatedListOptions,
    ) -> Result<PaginatedListResult> {
        let prefix = prefix.unwrap_or_default();
        self.send("list", prefix).await?;
        let after = opts.page_token.or(opts.offset).unwrap_or_default();
        let limit = opts.max_keys.unwrap_or(1_000);
        let objects = self.bucket.objects();
        let listed = objects
            .by_key
            .iter()
            .filter(|(key, object)| key.starts_with(prefix) && **key > after && self.is_listed(object));
        let mut found: Vec<ObjectMeta> =
            listed.take(limit + 1).map(|(key, object)| meta(key, object)).collect();
        let has_more = found.len() > limit;
        found.truncate(limit);
        let page_token = has_more.then(|| found.last().map(|last| last.location.to_string())).flatten();
        let result =
            ListResult { common_prefixes: Vec::new(), objects: found, extensions: Extensions::default() };
        Ok(PaginatedListResult { result, page_token })
    }
}

/// The documents of a history are smaller than a part.
#[async_trait]
impl MultipartStore for Storage {
    async fn create_multipart(&self, _: &Path) -> Result<MultipartId> {
        Err(unused("create_multipart"))
    }

    async fn put_part(&self, _: &Path, _: &MultipartId, _: usize, _: PutPayload) -> Result<PartId> {
        Err(unused("put_part"))
    }

    async fn complete_multipart(&self, _: &Path, _: &MultipartId, _: Vec<PartId>) -> Result<PutResult> {
        Err(unused("complete_multipart"))
    }

    async fn abort_multipart(&self, _: &Path, _: &MultipartId) -> Result<()> {
        Err(unused("abort_multipart"))
    }
}

#[async_trait]
impl Signer for Storage {
    async fn signed_url(&self, _: http::Method, _: &Path, _: Duration) -> Result<url::Url> {
        Err(unused("signed_url"))
    }
}
