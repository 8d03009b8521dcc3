//! Writes an object whose size is not known yet: in one request if it is small, in parts if it is not.
//!
//! What arrives waits on disk until it is large enough for a part; the first few KiB need no file yet. A part is in memory only
//! while it is sent, and the process has only a few of them in memory at a time, however many uploads there are.

use std::io::{Read, Seek, Write};

use bytes::Bytes;
use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{MultipartId, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tempfile::SpooledTempFile;

use super::{Objects, failed};
use crate::blobs::{BlobInfo, Revision};
use landfall_store::Error;

/// How often a request is sent that the client library does not repeat by itself.
pub(super) const MAX_ATTEMPTS: u32 = 3;

/// How many bytes of an upload wait in memory. With more, all of them wait on disk.
const MAX_IN_MEMORY: usize = 16 * 1_024;

/// What is known of an object that is written in parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// The multipart upload, once it has begun.
    pub id: Option<MultipartId>,
    /// What the store called each part, in their order.
    pub done: Vec<String>,
}

pub struct PartWriter {
    objects: Objects,
    key: String,
    parts: Parts,
    /// On disk it is an unlinked file: it is gone when the process is.
    spool: Option<SpooledTempFile>,
    spooled: u64,
    written: u64,
}

impl PartWriter {
    pub fn new(objects: Objects, key: &str, parts: Parts) -> Self {
        Self { objects, key: key.to_owned(), parts, spool: None, spooled: 0, written: 0 }
    }

    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Takes the next bytes, and sends each part that is full.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let room = self.objects.inner.part_size - self.spooled;
            let (now, later) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            self.spool(now.to_vec()).await?;
            bytes = later;
            if self.spooled == self.objects.inner.part_size {
                self.send_part().await?;
            }
        }
        Ok(())
    }

    async fn spool(&mut self, bytes: Vec<u8>) -> Result<(), Error> {
        let (folder, length) = (self.objects.inner.spool.clone(), bytes.len() as u64);
        let spool = self.spool.take();
        let spool = on_disk(move || {
            let mut spool = spool.unwrap_or_else(|| tempfile::spooled_tempfile_in(MAX_IN_MEMORY, folder));
            spool.write_all(&bytes)?;
            Ok(spool)
        });
        self.spool = Some(spool.await?);
        self.spooled += length;
        self.written += length;
        Ok(())
    }

    /// The bytes that wait on disk, which are taken from there.
    async fn take_spooled(&mut self) -> Result<Bytes, Error> {
        let length = usize::try_from(self.spooled).unwrap_or(usize::MAX);
        let Some(mut spool) = self.spool.take() else { return Ok(Bytes::new()) };
        // Allocated here: each of the many threads that may block would keep an arena of this size for itself.
        let mut bytes = vec![0; length];
        let (spool, bytes) = on_disk(move || {
            spool.rewind()?;
            spool.read_exact(&mut bytes)?;
            spool.rewind()?;
            spool.set_len(0)?;
            Ok((spool, bytes))
        })
        .await?;
        self.spool = Some(spool);
        self.spooled = 0;
        Ok(bytes.into())
    }

    /// Stores what waits as an object of its own. It goes on waiting.
    pub async fn put_rest(&mut self, path: &Path) -> Result<(), Error> {
        let objects = self.objects.clone();
        let _in_memory = objects.inner.parts_in_memory.acquire().await.map_err(|_| Error::Closed)?;
        let length = usize::try_from(self.spooled).unwrap_or(usize::MAX);
        let Some(mut spool) = self.spool.take() else { return Ok(()) };
        let (spool, bytes) = on_disk(move || {
            let mut bytes = vec![0; length];
            spool.rewind()?;
            spool.read_exact(&mut bytes)?;
            Ok((spool, bytes))
        })
        .await?;
        self.spool = Some(spool);
        let put = objects.store().objects().put(path, PutPayload::from(bytes)).await;
        put.map(drop).map_err(|error| failed("store", path.as_ref(), error))
    }

    /// Sends what waits as the next part.
    pub async fn send_part(&mut self) -> Result<(), Error> {
        let objects = self.objects.clone();
        let path = objects.blob_path(&self.key);
        let _in_memory = objects.inner.parts_in_memory.acquire().await.map_err(|_| Error::Closed)?;
        let id = self.begin().await?;
        let payload = PutPayload::from(self.take_spooled().await?);
        let part = objects.store().parts().put_part(&path, &id, self.parts.done.len(), payload).await;
        let part = part.map_err(|error| failed("store a part of", &self.key, error))?;
        self.parts.done.push(part.content_id);
        Ok(())
    }

    /// The id of the multipart upload, which begins now if it has not.
    pub async fn begin(&mut self) -> Result<MultipartId, Error> {
        if let Some(id) = &self.parts.id {
            return Ok(id.clone());
        }
        let path = self.objects.blob_path(&self.key);
        let mut attempt = 1;
        loop {
            match self.objects.store().parts().create_multipart(&path).await {
                Ok(id) => {
                    self.parts.id = Some(id.clone());
                    return Ok(id);
                }
                // An upload whose answer was lost has no parts; the sweep of abandoned parts removes it.
                Err(error) if attempt == MAX_ATTEMPTS => {
                    return Err(failed("begin the upload of", &self.key, error));
                }
                Err(_) => attempt += 1,
            }
        }
    }

    /// How many bytes wait for the next part.
    pub fn waiting(&self) -> u64 {
        self.spooled
    }

    /// Makes the object. `size` and `md5` are those of all its bytes, to recognise it if the store's answer is lost.
    pub async fn complete(&mut self, size: u64, md5: &str) -> Result<Revision, Error> {
        if self.parts.id.is_none() {
            return self.put_whole(size, md5).await;
        }
        if self.spooled > 0 {
            self.send_part().await?;
        }
        // A multipart upload has no condition that all stores know. The key is this upload's own, so nothing can have come
        // between this look and the completion but an earlier attempt of the same.
        if let Some(found) = self.objects.head(&self.key).await? {
            return self.recognise(found, size, None).await;
        }
        let (path, id) = (self.objects.blob_path(&self.key), self.begin().await?);
        let done = self.parts.done.iter().map(|id| PartId { content_id: id.clone() }).collect();
        match self.objects.store().parts().complete_multipart(&path, &id, done).await {
            Ok(put) => Ok(Revision { etag: put.e_tag, version: put.version }),
            // The answer may have been lost after the store had done it.
            Err(error) => match self.objects.head(&self.key).await? {
                Some(found) => self.recognise(found, size, None).await,
                None => Err(failed("store", &self.key, error)),
            },
        }
    }

    async fn put_whole(&mut self, size: u64, md5: &str) -> Result<Revision, Error> {
        let objects = self.objects.clone();
        let path = objects.blob_path(&self.key);
        let _in_memory = objects.inner.parts_in_memory.acquire().await.map_err(|_| Error::Closed)?;
        let payload = PutPayload::from(self.take_spooled().await?);
        let mut attempt = 1;
        loop {
            let create = PutOptions::from(PutMode::Create);
            match objects.store().objects().put_opts(&path, payload.clone(), create).await {
                Ok(put) => return Ok(Revision { etag: put.e_tag, version: put.version }),
                // The library does not repeat what is not to be done twice. Whether it was done is found out here.
                Err(error) => match objects.head(&self.key).await? {
                    Some(found) => return self.recognise(found, size, Some(md5)).await,
                    None if attempt == MAX_ATTEMPTS => return Err(failed("store", &self.key, error)),
                    None => attempt += 1,
                },
            }
        }
    }

    /// Whether an object that is there already is this one: an earlier attempt stored it, and its answer was lost.
    async fn recognise(&self, found: BlobInfo, size: u64, md5: Option<&str>) -> Result<Revision, Error> {
        let exists = || Error::BlobExists { key: self.key.clone() };
        if found.size != size {
            return Err(exists());
        }
        if let Some(md5) = md5 {
            use md5::Digest;
            let read = self.objects.store().objects().get(&self.objects.blob_path(&self.key)).await;
            let read = read.map_err(|error| failed("read", &self.key, error))?;
            let bytes = read.bytes().await.map_err(|error| failed("read", &self.key, error))?;
            if hex::encode(md5::Md5::digest(&bytes)) != md5 {
                return Err(exists());
            }
        }
        Ok(found.revision)
    }

    /// The key and the multipart upload, if one has begun.
    pub fn unfinished(&self) -> Option<(String, MultipartId)> {
        Some((self.key.clone(), self.parts.id.clone()?))
    }
}

/// Runs calls of the file system on a thread that may block.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let done = landfall_core::blocking::run(work).await;
    let done = done.map_err(|panic| Error::Internal(format!("the spool of uploads panicked: {panic}")))?;
    done.map_err(|error| match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            Error::StorageFull { what: "keep a part of an upload on disk".to_owned(), source: error.into() }
        }
        _ => Error::Storage { what: "keep a part of an upload on disk".to_owned(), source: error.into() },
    })
}
