//! An upload that comes through this server into the bucket.

use std::time::Duration;

use object_store::path::Path;
use object_store::{MultipartId, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::part_writer::{MAX_ATTEMPTS, PartWriter, Parts};
use super::{Objects, failed};
use crate::blobs::Revision;
use landfall_core::clock::Clock;
use landfall_store::Error;

/// Between two attempts to remove what is left of an upload. It doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// How many uploads are tried again at a time. A store that is down for long leaves more to the next start.
static REMOVALS: Semaphore = Semaphore::const_new(1_024);

pub struct Upload {
    objects: Objects,
    entry: Path,
    writer: PartWriter,
    /// Whether the entry names the multipart upload.
    has_named_parts: bool,
    is_published: bool,
    on_drop: OnDrop,
}

#[derive(PartialEq, Eq)]
enum OnDrop {
    Remove,
    Leave,
}

impl Upload {
    pub(super) async fn begin(objects: &Objects, owner: Uuid, key: &str) -> Result<Self, Error> {
        let entry = objects.entry_path(owner, key);
        let mut attempt = 1;
        loop {
            let create = PutOptions::from(PutMode::Create);
            match objects.store().objects().put_opts(&entry, PutPayload::new(), create).await {
                Ok(_) => break,
                // The answer to the first attempt was lost.
                Err(object_store::Error::AlreadyExists { .. }) if attempt > 1 => break,
                Err(error @ object_store::Error::AlreadyExists { .. }) => {
                    return Err(failed("begin the upload of", key, error));
                }
                Err(error) if attempt == MAX_ATTEMPTS => {
                    // The store may have the entry all the same.
                    tokio::spawn(Leftover { objects: objects.clone(), parts: None, entry }.remove());
                    return Err(failed("begin the upload of", key, error));
                }
                Err(_) => attempt += 1,
            }
        }
        Ok(Self {
            objects: objects.clone(),
            entry,
            writer: PartWriter::new(objects.clone(), key, Parts::default()),
            has_named_parts: false,
            is_published: false,
            on_drop: OnDrop::Remove,
        })
    }

    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        // Before the first part is sent, so that no part is without an entry that leads to it.
        if !self.has_named_parts && self.writer.waiting() + bytes.len() as u64 >= self.objects.inner.part_size
        {
            let id = self.writer.begin().await?;
            let put = self.objects.store().objects().put(&self.entry, id.into()).await;
            put.map_err(|error| failed("name the parts in", self.entry.as_ref(), error))?;
            self.has_named_parts = true;
        }
        self.writer.write(bytes).await
    }

    pub async fn publish(&mut self, size: u64, md5: &str) -> Result<Revision, Error> {
        // From here on the blob may exist, also if this future is dropped.
        self.on_drop = OnDrop::Leave;
        let completed = self.writer.complete(size, md5).await;
        self.is_published = completed.is_ok();
        if let Err(Error::BlobExists { .. }) = completed {
            // The blob belongs to another upload. An entry of ours would let a sweep take it for unfinished.
            self.on_drop = OnDrop::Remove;
        }
        completed
    }

    pub async fn finish(mut self) {
        self.on_drop = OnDrop::Leave;
        // What was not published leaves its parts.
        let parts = self.writer.unfinished().filter(|_| !self.is_published);
        let leftover = Leftover { objects: self.objects.clone(), parts, entry: self.entry.clone() };
        if let Err(error) = leftover.try_to_remove().await {
            warn_of_entry(&self.entry, &error);
            tokio::spawn(leftover.remove());
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.on_drop == OnDrop::Leave {
            return;
        }
        // Outside of a runtime the process is about to end, and others clean up after it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (objects, entry) = (self.objects.clone(), self.entry.clone());
        runtime.spawn(Leftover { objects, parts: self.writer.unfinished(), entry }.remove());
    }
}

/// What is left in the store of an upload that has ended.
struct Leftover {
    objects: Objects,
    /// The key and the multipart upload of parts that no blob will have.
    parts: Option<(String, MultipartId)>,
    entry: Path,
}

impl Leftover {
    /// Removes it, and tries again until the store answers: no other process removes it while this one lives.
    async fn remove(self) {
        let permit = REMOVALS.try_acquire();
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.try_to_remove().await {
            warn_of_entry(&self.entry, &error);
            if permit.is_err() {
                break;
            }
            Clock::System.sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The entry last, because it leads to the parts.
    async fn try_to_remove(&self) -> Result<(), Error> {
        if let Some((key, id)) = &self.parts {
            self.objects.abort(key, id).await?;
        }
        self.objects.delete(&self.entry).await
    }
}

fn warn_of_entry(entry: &Path, error: &Error) {
    tracing::warn!(%entry, %error, "the entry of an unfinished upload could not be removed");
}
