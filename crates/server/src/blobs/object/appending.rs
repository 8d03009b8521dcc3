//! An upload that is written in several requests, perhaps by several processes: parts of a multipart upload. What is too small for
//! a part at the end of a request waits as an object of its own, the rest, below `incoming/`.
//!
//! The store keeps no list of what counts: the row of the upload does. So what a process sent and did not get to note is not part
//! of the upload.

use futures_util::StreamExt;
use object_store::ObjectStoreExt;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::AsyncReadExt;

use super::part_writer::{PartWriter, Parts};
use super::{INCOMING, Objects, failed};
use crate::blobs::Revision;
use crate::blobs::resumable::Hashes;
use landfall_store::Error;

/// What the names of the rests begin with, where those of other uploads have the id of a process.
const APPENDING: &str = "appending.";
const READ_BUFFER: usize = 256 * 1024;

/// What the row of an upload has of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct State {
    /// The multipart upload.
    id: Option<String>,
    /// What the store called each of its parts.
    parts: Vec<String>,
    /// The object with the rest, if there is one.
    rest: Option<String>,
    /// Those before it, which are not needed any more.
    old_rests: Vec<String>,
    /// The blob may have been made of it.
    finishing: bool,
}

impl State {
    fn of(stored: Option<&Value>) -> Result<Self, Error> {
        let Some(stored) = stored else { return Ok(Self::default()) };
        let read = serde_json::from_value(stored.clone());
        read.map_err(|error| Error::Internal(format!("the state of an upload cannot be read: {error}")))
    }
}

pub struct Appending {
    objects: Objects,
    key: String,
    writer: PartWriter,
    /// As it was noted last.
    noted: State,
    is_published: bool,
}

impl Objects {
    /// Opens an upload to write to its end. `length`: how many bytes it will have.
    pub async fn append(&self, key: &str, stored: Option<&Value>, length: u64) -> Result<Appending, Error> {
        let mut state = State::of(stored)?;
        for rest in std::mem::take(&mut state.old_rests) {
            // What replaced it is noted.
            self.delete(&self.rest_path(key, &rest)).await?;
        }
        let is_published = state.finishing && self.head(key).await?.is_some_and(|found| found.size == length);
        let parts = Parts { id: state.id.clone(), done: state.parts.clone() };
        let mut writer = PartWriter::new(self.clone(), key, parts);
        if let Some(rest) = state.rest.as_ref().filter(|_| !is_published) {
            let path = self.rest_path(key, rest);
            let got = self.store().objects().get(&path).await;
            let mut bytes = got.map_err(|error| failed("read", path.as_ref(), error))?.into_stream();
            while let Some(part) = bytes.next().await {
                writer.write(&part.map_err(|error| failed("read", path.as_ref(), error))?).await?;
            }
        }
        Ok(Appending { objects: self.clone(), key: key.to_owned(), writer, noted: state, is_published })
    }

    /// How many bytes of an upload are here, of which so many were noted.
    pub async fn appended(&self, key: &str, stored: Option<&Value>, noted: u64) -> Result<u64, Error> {
        if State::of(stored)?.finishing
            && let Some(found) = self.head(key).await?
        {
            return Ok(found.size);
        }
        Ok(noted)
    }

    /// Removes what is here of an upload. A blob that was made of it stays.
    pub async fn discard_appended(&self, key: &str, stored: Option<&Value>) -> Result<(), Error> {
        if let Some(id) = State::of(stored)?.id {
            self.abort(key, &id).await?;
        }
        for (_, rest) in self.rests(&format!("{}.", key.replace('/', "."))).await? {
            self.delete(&self.rest_path(key, &rest)).await?;
        }
        Ok(())
    }

    /// The keys of all uploads of which a rest is here.
    pub async fn all_appended(&self) -> Result<Vec<String>, Error> {
        let mut keys: Vec<String> = self.rests("").await?.into_iter().map(|(key, _)| key).collect();
        keys.dedup();
        Ok(keys)
    }

    /// The rests whose names begin so, each with the key of its upload.
    async fn rests(&self, prefix: &str) -> Result<Vec<(String, String)>, Error> {
        let below = self.prefixed(&format!("{INCOMING}/{APPENDING}{prefix}"));
        let (mut found, mut token) = (Vec::new(), None);
        loop {
            let options = PaginatedListOptions { page_token: token, ..PaginatedListOptions::default() };
            let listed = self.store().pages().list_paginated(Some(&below), options).await;
            let listed = listed.map_err(|error| failed("list", &below, error))?;
            found.extend(listed.result.objects.iter().filter_map(|object| {
                let (key, rest) = object.location.filename()?.strip_prefix(APPENDING)?.rsplit_once('.')?;
                Some((key.replace('.', "/"), rest.to_owned()))
            }));
            token = listed.page_token;
            if token.is_none() {
                return Ok(found);
            }
        }
    }

    fn rest_path(&self, key: &str, rest: &str) -> Path {
        self.path(&format!("{INCOMING}/{APPENDING}{}.{rest}", key.replace('/', ".")))
    }
}

impl Appending {
    /// Whether it is a blob already, because the process that made it one did not get to note that.
    pub fn is_published(&self) -> bool {
        self.is_published
    }

    /// Adds the bytes of the blob from `from` up to `to` to the checksums.
    pub async fn hash(&self, mut hashes: Hashes, from: u64, to: u64) -> Result<Hashes, Error> {
        let mut bytes = self.objects.read_range(&self.key, from..to).await?;
        let mut buffer = vec![0; READ_BUFFER];
        loop {
            let read = bytes.read(&mut buffer).await.map_err(|error| Error::Storage {
                what: format!("read {}", self.key),
                source: error.into(),
            })?;
            if read == 0 {
                return Ok(hashes);
            }
            hashes.update(&buffer[..read]);
        }
    }

    /// How many bytes fit into the part that is being made.
    pub fn room(&self) -> u64 {
        self.objects.inner.part_size - self.writer.waiting()
    }

    /// Whether the store has all bytes in whole parts.
    pub fn is_between_parts(&self) -> bool {
        self.writer.waiting() == 0 && !self.writer.parts().done.is_empty()
    }

    /// Begins the multipart upload if so many more bytes make the first part. Returns whether it did. That is noted before a part
    /// is sent, because only what is noted can be removed.
    pub async fn begin_parts(&mut self, bytes: usize) -> Result<bool, Error> {
        if self.writer.parts().id.is_some() || (bytes as u64) < self.room() {
            return Ok(false);
        }
        self.noted.id = Some(self.writer.begin().await?);
        Ok(true)
    }

    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.writer.write(bytes).await
    }

    /// What was noted last.
    pub fn noted(&self) -> Value {
        serde_json::json!(self.noted)
    }

    /// What is to be noted of the whole parts that the store has.
    pub fn note_parts(&mut self) -> Value {
        let Parts { id, done } = self.writer.parts().clone();
        let mut old_rests = std::mem::take(&mut self.noted.old_rests);
        old_rests.extend(self.noted.rest.take());
        self.noted = State { id, parts: done, rest: None, old_rests, finishing: false };
        self.noted()
    }

    /// The same with what is too small for a part, which is kept.
    pub async fn note_all(&mut self) -> Result<Value, Error> {
        let mut rest = None;
        if self.writer.waiting() > 0 {
            let name = landfall_core::random::new_uuid().simple().to_string();
            self.writer.put_rest(&self.objects.rest_path(&self.key, &name)).await?;
            rest = Some(name);
        }
        self.note_parts();
        self.noted.rest = rest;
        Ok(self.noted())
    }

    /// Takes away what was not noted.
    pub async fn take_back(&mut self) -> Result<(), Error> {
        let opened = self.objects.append(&self.key, Some(&self.noted()), u64::MAX).await?;
        self.writer = opened.writer;
        Ok(())
    }

    /// From now on the blob may exist.
    pub fn note_finishing(&mut self) -> Value {
        self.noted.finishing = true;
        self.noted()
    }

    pub async fn publish(&mut self, size: u64, md5: &str) -> Result<Revision, Error> {
        if self.is_published {
            let found = self.objects.head(&self.key).await?;
            return found.map(|found| found.revision).ok_or(Error::BlobMissing { key: self.key.clone() });
        }
        let revision = self.writer.complete(size, md5).await?;
        self.is_published = true;
        Ok(revision)
    }
}
