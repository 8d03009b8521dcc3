//! An upload that is written in several requests, perhaps by several processes, one after the other. Its checksums go on with it.

use md5::digest::common::hazmat::SerializableState;
use md5::{Digest, Md5};
use serde_json::Value;
use sha2::Sha256;

use super::incoming::Stored;
use super::local::{self, appending};
use super::{Revision, object};
use landfall_core::refusal::Refusal;
use landfall_store::Error;

/// After so many bytes they are made durable, so that no more is hashed, or after a power cut sent, once more.
const SAVE_EVERY: u64 = 64 << 20;

/// The checksums over the bytes so far.
#[derive(Debug, Clone, Default)]
pub struct Hashes {
    md5: Md5,
    sha256: Sha256,
}

impl Hashes {
    pub fn update(&mut self, bytes: &[u8]) {
        self.md5.update(bytes);
        self.sha256.update(bytes);
    }

    /// Their states, which another process can go on from.
    fn to_text(&self) -> String {
        format!("{}.{}", hex::encode(self.md5.serialize()), hex::encode(self.sha256.serialize()))
    }

    /// `None` if the text is of another version of the libraries, or of none.
    fn from_text(text: &str) -> Option<Self> {
        let (md5, sha256) = text.split_once('.')?;
        Some(Self { md5: state(md5)?, sha256: state(sha256)? })
    }

    fn stored(&self, size: u64) -> Stored {
        Stored {
            revision: Revision::default(),
            size,
            md5: hex::encode(self.md5.clone().finalize()),
            sha256: hex::encode(self.sha256.clone().finalize()),
        }
    }
}

fn state<H: SerializableState>(text: &str) -> Option<H> {
    let bytes = hex::decode(text).ok()?;
    H::deserialize(bytes.as_slice().try_into().ok()?).ok()
}

/// How far an upload is: what is durable, and what is needed to go on from there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Saved {
    pub offset: u64,
    /// The states of the checksums over these bytes; empty where there are none.
    pub hashes: String,
    /// What the storage needs beside.
    pub stored: Option<Value>,
}

/// What becomes of bytes that came after an upload was last saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsaved {
    /// They are right, so they need not be sent again.
    Keep,
    Discard,
}

/// Writes to the end of an upload. Dropped without [`Self::save`], the bytes may or may not be there.
pub struct Appending {
    upload: Upload,
    offset: u64,
    hashes: Hashes,
    /// As it was saved last.
    saved: (u64, Hashes),
    /// How far the parts of an object store reach, where that is known.
    in_parts: Option<(u64, Hashes)>,
}

enum Upload {
    Local(Box<appending::Appending>),
    Objects(Box<object::Appending>),
}

impl Appending {
    pub(super) async fn local(
        folder: &local::Folder,
        key: &str,
        saved: &Saved,
        unsaved: Unsaved,
    ) -> Result<Option<Self>, Error> {
        let Some(opened) = folder.append(key).await? else { return Ok(None) };
        let appending::Opened { mut upload, size, is_published } = opened;
        if size < saved.offset {
            let what = format!("go on with the upload {key}: {size} of its {} bytes are here", saved.offset);
            let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into();
            return Err(Error::Storage { what, source });
        }
        // States that cannot be read are made again from the bytes themselves.
        let (from, hashes) = match Hashes::from_text(&saved.hashes) {
            Some(hashes) => (saved.offset, hashes),
            None => (0, Hashes::default()),
        };
        let hashes = upload.hash(hashes, from, saved.offset).await?;
        let at_save = (saved.offset, hashes.clone());
        let (offset, hashes) = if size == saved.offset {
            at_save.clone()
        } else if unsaved == Unsaved::Keep || is_published {
            (size, upload.hash(hashes, saved.offset, size).await?)
        } else {
            upload.cut(saved.offset).await?;
            at_save.clone()
        };
        Ok(Some(Self {
            upload: Upload::Local(Box::new(upload)),
            offset,
            hashes,
            saved: at_save,
            in_parts: None,
        }))
    }

    pub(super) async fn objects(
        objects: &object::Objects,
        key: &str,
        saved: &Saved,
        length: u64,
    ) -> Result<Self, Error> {
        let hashes = match Hashes::from_text(&saved.hashes) {
            Some(hashes) => hashes,
            None if saved.offset == 0 => Hashes::default(),
            // The bytes are in parts, which cannot be read.
            None => return Err(Error::Internal(format!("the checksums of the upload {key} cannot be read"))),
        };
        let upload = objects.append(key, saved.stored.as_ref(), length).await?;
        let at_save = (saved.offset, hashes.clone());
        let (offset, hashes) = if upload.is_published() {
            (length, upload.hash(hashes, saved.offset, length).await?)
        } else {
            at_save.clone()
        };
        let upload = Upload::Objects(Box::new(upload));
        Ok(Self { upload, offset, hashes, saved: at_save, in_parts: None })
    }

    /// How many bytes there are.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Prepares for so many bytes more. Returns what is to be noted before they are written.
    pub async fn prepare(&mut self, bytes: usize) -> Result<Option<Saved>, Error> {
        match &mut self.upload {
            Upload::Local(_) => Ok(None),
            Upload::Objects(upload) => {
                let has_begun = upload.begin_parts(bytes).await?;
                let stored = upload.noted();
                Ok(has_begun.then(|| saved_at(&self.saved, Some(stored))))
            }
        }
    }

    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let now = match &mut self.upload {
                Upload::Local(upload) => {
                    upload.write(bytes).await?;
                    bytes.len()
                }
                Upload::Objects(upload) => {
                    let room = usize::try_from(upload.room()).unwrap_or(usize::MAX);
                    let now = bytes.len().min(room);
                    upload.write(&bytes[..now]).await?;
                    now
                }
            };
            let (now, later) = bytes.split_at(now);
            self.hashes.update(now);
            self.offset += now.len() as u64;
            if let Upload::Objects(upload) = &self.upload
                && upload.is_between_parts()
            {
                self.in_parts = Some((self.offset, self.hashes.clone()));
            }
            bytes = later;
        }
        Ok(())
    }

    /// Whether there are bytes that were not saved.
    pub fn is_unsaved(&self) -> bool {
        self.offset != self.saved.0
    }

    /// Whether so much came since the last time that it should be saved.
    pub fn is_due(&self) -> bool {
        match &self.upload {
            Upload::Local(_) => self.offset - self.saved.0 >= SAVE_EVERY,
            Upload::Objects(_) => self.in_parts.as_ref().is_some_and(|(offset, _)| *offset > self.saved.0),
        }
    }

    /// Makes bytes durable in the middle of a request, as many as it costs little for. Returns what is to be noted.
    pub async fn checkpoint(&mut self) -> Result<Saved, Error> {
        match &mut self.upload {
            Upload::Local(_) => self.save().await,
            Upload::Objects(upload) => {
                let stored = match self.in_parts.take() {
                    Some(in_parts) if in_parts.0 > self.saved.0 => {
                        self.saved = in_parts;
                        // More may have come since, but only whole parts can be sent.
                        upload.note_parts()
                    }
                    _ => upload.noted(),
                };
                Ok(saved_at(&self.saved, Some(stored)))
            }
        }
    }

    /// Makes all bytes durable. Returns what is to be noted.
    pub async fn save(&mut self) -> Result<Saved, Error> {
        let is_unsaved = self.is_unsaved();
        let stored = match &mut self.upload {
            Upload::Local(upload) => {
                upload.sync().await?;
                None
            }
            Upload::Objects(upload) if is_unsaved && !upload.is_published() => Some(upload.note_all().await?),
            Upload::Objects(upload) => Some(upload.noted()),
        };
        self.saved = (self.offset, self.hashes.clone());
        Ok(saved_at(&self.saved, stored))
    }

    /// Makes the bytes of a part of a file such that they can be read, once all are here. Returns what is to be noted before.
    pub fn begin_finishing(&mut self) -> Option<Saved> {
        match &mut self.upload {
            Upload::Local(_) => None,
            Upload::Objects(upload) if upload.is_published() => None,
            Upload::Objects(upload) => {
                let stored = upload.note_finishing();
                Some(saved_at(&self.saved, Some(stored)))
            }
        }
    }

    /// Makes bytes that are no file by themselves such that they can be read, after all of them have come.
    pub async fn seal(&mut self) -> Result<(), Error> {
        let Stored { size, md5, .. } = self.hashes.stored(self.offset);
        match &mut self.upload {
            Upload::Local(_) => Ok(()),
            Upload::Objects(upload) => upload.publish(size, &md5).await.map(drop),
        }
    }

    /// Takes away what was not saved. `length`: how many bytes it will have.
    pub async fn take_back(&mut self) -> Result<(), Error> {
        match &mut self.upload {
            Upload::Local(upload) => upload.cut(self.saved.0).await?,
            Upload::Objects(upload) => upload.take_back().await?,
        }
        (self.offset, self.hashes) = self.saved.clone();
        self.in_parts = None;
        Ok(())
    }

    /// Makes the bytes a blob that can be read, if `check` accepts them. When this returns, the blob is durable. Repeating it is
    /// safe, also in another process.
    pub async fn publish(
        &mut self,
        check: impl FnOnce(&Stored) -> Result<(), Refusal>,
    ) -> Result<Stored, Error> {
        let mut stored = self.hashes.stored(self.offset);
        check(&stored)?;
        match &mut self.upload {
            Upload::Local(upload) => upload.publish().await?,
            Upload::Objects(upload) => stored.revision = upload.publish(stored.size, &stored.md5).await?,
        }
        Ok(stored)
    }
}

fn saved_at((offset, hashes): &(u64, Hashes), stored: Option<Value>) -> Saved {
    Saved { offset: *offset, hashes: hashes.to_text(), stored }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_go_on_where_they_were_at_every_position() {
        let bytes: Vec<u8> = (0..300_u32).flat_map(u32::to_le_bytes).collect();
        let mut whole = Hashes::default();
        whole.update(&bytes);
        for position in 0..=bytes.len() {
            let mut first = Hashes::default();
            first.update(&bytes[..position]);
            let mut second = Hashes::from_text(&first.to_text()).expect("its own text");
            second.update(&bytes[position..]);
            assert_eq!(second.stored(0), whole.stored(0), "{position}");
        }
        for nonsense in ["", ".", "00.00", "x"] {
            assert!(Hashes::from_text(nonsense).is_none(), "{nonsense}");
        }
    }
}
