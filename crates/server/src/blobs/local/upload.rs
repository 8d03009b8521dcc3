//! An upload into a folder, from its first byte to a blob that is on disk.

use std::collections::HashSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Folder, MAX_LINK_ATTEMPTS, WRITE_BUFFER, blob_path, blocking, cannot, cannot_write, is_absent};
use crate::blobs::beneath::{self, Step};
use landfall_store::Error;

/// The bytes of one upload.
///
/// They are written to `incoming` when they fill a buffer. What is left at the end is written, linked and synced in one call,
/// because each call goes to another thread and back.
pub struct Upload {
    key: String,
    folder: Folder,
    /// `None` while a call has it.
    draft: Option<Draft>,
}

impl Upload {
    pub(super) fn new(key: &str, folder: &Folder, draft: Draft) -> Self {
        Self { key: key.to_owned(), folder: folder.clone(), draft: Some(draft) }
    }

    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let draft = self.draft.as_mut().ok_or_else(interrupted)?;
        draft.waiting.extend_from_slice(bytes);
        if draft.waiting.len() < WRITE_BUFFER {
            return Ok(());
        }
        self.call(Draft::write).await
    }

    /// Makes the bytes a blob that is on disk.
    pub async fn publish(&mut self) -> Result<(), Error> {
        let (target, durable) = (blob_path(&self.key), self.folder.durable.clone());
        let (key, shown) = (self.key.clone(), self.folder.root.join(&target));
        self.call(move |draft| {
            draft.write()?;
            // From here on the blob may exist, also if the link reports an error.
            draft.on_drop = OnDrop::Leave;
            let way = match link(&draft.root, &draft.path, &target) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    // The blob belongs to another upload. An entry of ours would let a sweep take it for unfinished.
                    draft.on_drop = OnDrop::Remove;
                    return Err(Error::BlobExists { key });
                }
                linked => linked.map_err(cannot("store", &shown))?,
            };
            // Only now: a file system with a journal writes the names to disk together with the bytes.
            draft.sync().map_err(cannot_write)?;
            durable.sync(&target, &way).map_err(cannot("sync", &shown))
        })
        .await
    }

    /// Whether there may be a blob. `publish` may have failed before it, or after it.
    pub fn may_be_stored(&self) -> bool {
        // A call that did not end has the draft.
        self.draft.as_ref().is_none_or(|draft| draft.on_drop == OnDrop::Leave)
    }

    pub async fn finish(mut self) {
        if let Some(mut draft) = self.draft.take() {
            draft.on_drop = OnDrop::Remove;
            let removed = blocking(move || {
                drop(draft);
                Ok(())
            });
            drop(removed.await);
        }
    }

    /// Runs a call of the file system with the draft.
    async fn call(
        &mut self,
        call: impl FnOnce(&mut Draft) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let mut draft = self.draft.take().ok_or_else(interrupted)?;
        let (draft, done) = blocking(move || {
            let done = call(&mut draft);
            Ok((draft, done))
        })
        .await?;
        self.draft = Some(draft);
        done
    }
}

fn interrupted() -> Error {
    Error::Internal("an upload goes on after a call that did not end".to_owned())
}

/// The file of an upload in `incoming`, with what is still to be written to it.
pub(super) struct Draft {
    root: PathBuf,
    path: String,
    /// `None` until there is something to write.
    file: Option<File>,
    /// What has arrived and is not in the file yet.
    waiting: Vec<u8>,
    on_drop: OnDrop,
}

#[derive(PartialEq, Eq)]
enum OnDrop {
    Remove,
    Leave,
}

impl Draft {
    pub(super) fn new(root: &Path, path: String) -> Self {
        Self { root: root.to_owned(), path, file: None, waiting: Vec::new(), on_drop: OnDrop::Remove }
    }

    /// Makes the entry in `incoming`.
    pub(super) fn create(&mut self) -> std::io::Result<()> {
        self.file = Some(beneath::create(&self.root, &self.path)?);
        Ok(())
    }

    /// Writes what waits, into an entry that is made if there is none yet.
    fn write(&mut self) -> Result<(), Error> {
        if self.file.is_none() {
            self.create().map_err(cannot("create", &self.root.join(&self.path)))?;
        }
        let file = self.file.as_mut().ok_or_else(interrupted)?;
        file.write_all(&self.waiting).map_err(cannot_write)?;
        self.waiting.clear();
        Ok(())
    }

    fn sync(&self) -> std::io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_all)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.on_drop == OnDrop::Remove
            && self.file.is_some()
            && let Err(error) = beneath::remove(&self.root, &self.path)
            // Another process that took this one for dead may have removed it already.
            && !is_absent(&error)
        {
            let path = self.root.join(&self.path);
            tracing::warn!(path = %path.display(), %error, "the entry of an unfinished upload could not be removed");
        }
    }
}

/// Links the bytes to the name of the blob, and returns the folders on the way to it. The removal of the file's previous blob
/// may remove the folder at any time before it has the new one in it.
pub(super) fn link(root: &Path, from: &str, to: &str) -> std::io::Result<Vec<Step>> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match beneath::link(root, from, to) {
            Err(error) if error.kind() == ErrorKind::NotFound && attempts < MAX_LINK_ATTEMPTS => {}
            linked => return linked,
        }
    }
}

/// The folders that are known to survive a power cut, because this process has synced the folders above them. Those of single
/// files are not among them, so they are few.
#[derive(Debug, Clone, Default)]
pub(super) struct Durable(Arc<Mutex<HashSet<String>>>);

impl Durable {
    /// Makes the name of a blob durable, and the names of the folders on the way to it: each is an entry of the folder
    /// above.
    pub(super) fn sync(&self, path: &str, way: &[Step]) -> std::io::Result<()> {
        let mut below = path;
        let mut synced = Vec::new();
        for (step, depth) in way.iter().rev().zip(0..) {
            // The entry of the blob and that of its folder are new. Further up nearly all are old.
            let is_old = depth >= 2 && !way[way.len() - depth].is_new && self.has(below);
            if !is_old {
                rustix::fs::fsync(&step.folder)?;
                synced.extend((depth >= 2).then(|| below.to_owned()));
            }
            below = below.rsplit_once('/').map_or("", |(above, _)| above);
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(synced);
        Ok(())
    }

    fn has(&self, folder: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(folder)
    }
}
