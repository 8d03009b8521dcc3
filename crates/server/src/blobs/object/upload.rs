//! An upload that comes through this server into the bucket.

use std::time::Duration;

use object_store::path::Path;
use object_store::{ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::part_writer::{MAX_ATTEMPTS, PartWriter, Parts};
use super::{Objects, failed};
use crate::blobs::Revision;
use landfall_core::clock::Clock;
use landfall_store::Error;

/// Between two attempts to remove an entry. It doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// How many entries are tried again at a time. A store that is down for long leaves more to the next start.
static REMOVALS: Semaphore = Semaphore::const_new(1_024);

pub struct Upload {
    objects: Objects,
    entry: Path,
    writer: PartWriter,
    /// Whether the entry names the multipart upload.
    has_named_parts: bool,
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
                    tokio::spawn(remove_entry(objects.clone(), entry));
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
        if let Err(Error::BlobExists { .. }) = completed {
            // The blob belongs to another upload. An entry of ours would let a sweep take it for unfinished.
            self.on_drop = OnDrop::Remove;
        }
        completed
    }

    pub async fn finish(mut self) {
        self.on_drop = OnDrop::Leave;
        if let Err(error) = self.objects.delete(&self.entry).await {
            warn_of_entry(&self.entry, &error);
            tokio::spawn(remove_entry(self.objects.clone(), self.entry.clone()));
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
        let nothing = PartWriter::new(objects.clone(), "", Parts::default());
        let writer = std::mem::replace(&mut self.writer, nothing);
        runtime.spawn(async move {
            match writer.abort().await {
                Ok(()) => remove_entry(objects, entry).await,
                // It leads to the parts.
                Err(error) => warn_of_entry(&entry, &error),
            }
        });
    }
}

/// Removes an entry, and tries again until the store answers: no other process removes it while this one lives.
async fn remove_entry(objects: Objects, entry: Path) {
    let permit = REMOVALS.try_acquire();
    let mut pause = FIRST_PAUSE;
    while let Err(error) = objects.delete(&entry).await {
        warn_of_entry(&entry, &error);
        if permit.is_err() {
            break;
        }
        Clock::System.sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn warn_of_entry(entry: &Path, error: &Error) {
    tracing::warn!(%entry, %error, "the entry of an unfinished upload could not be removed");
}
