//! An upload on its way into the storage. Size and checksum are counted here, the same for every backend.

use md5::{Digest, Md5};
use sha2::Sha256;

use super::{Revision, local, object};
use crate::records::file::StoredBytes;
use landfall_core::refusal::Refusal;
use landfall_store::Error;

/// Receives the bytes of one upload.
///
/// It has an entry among the unfinished uploads from the beginning, or, if all its bytes are there before it begins, from the time
/// that the first of them are written. Dropped before [`Self::publish`], it takes its bytes and its entry away. Once it is published,
/// the entry stays until [`Self::finish`]: if the process dies before the file's row knows the blob, another process finds the entry
/// and cleans up.
pub struct Incoming {
    upload: Upload,
    md5: Md5,
    sha256: Sha256,
    size: u64,
}

enum Upload {
    Local(Box<local::Upload>),
    Objects(Box<object::Upload>),
}

/// What arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub size: u64,
    /// Both in hexadecimal digits.
    pub md5: String,
    pub sha256: String,
    /// What an object store calls exactly these bytes.
    pub revision: Revision,
}

impl Stored {
    /// As the row of its file has it.
    pub fn under(self, key: String) -> StoredBytes {
        let Revision { etag, version } = self.revision;
        StoredBytes { key, md5: Some(self.md5), sha256: Some(self.sha256), etag, version }
    }
}

impl Incoming {
    pub(super) fn local(upload: local::Upload) -> Self {
        Self { upload: Upload::Local(Box::new(upload)), md5: Md5::new(), sha256: Sha256::new(), size: 0 }
    }

    pub(super) fn objects(upload: object::Upload) -> Self {
        Self { upload: Upload::Objects(Box::new(upload)), md5: Md5::new(), sha256: Sha256::new(), size: 0 }
    }

    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match &mut self.upload {
            Upload::Local(upload) => upload.write(bytes).await?,
            Upload::Objects(upload) => upload.write(bytes).await?,
        }
        self.md5.update(bytes);
        self.sha256.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// The number of bytes that have arrived so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Makes the bytes a blob that can be read, if `check` accepts them. When this returns, the blob is durable.
    ///
    /// Bytes that `check` refuses are never visible under the key. A blob is never overwritten: if the key has one, this
    /// fails with [`Error::BlobExists`].
    pub async fn publish(
        &mut self,
        check: impl FnOnce(&Stored) -> Result<(), Refusal>,
    ) -> Result<Stored, Error> {
        let md5 = hex::encode(self.md5.clone().finalize());
        let sha256 = hex::encode(self.sha256.clone().finalize());
        let mut stored = Stored { size: self.size, md5, sha256, revision: Revision::default() };
        check(&stored)?;
        match &mut self.upload {
            Upload::Local(upload) => upload.publish().await?,
            Upload::Objects(upload) => stored.revision = upload.publish(stored.size, &stored.md5).await?,
        }
        Ok(stored)
    }

    /// Whether the storage may have the blob, also if [`Self::publish`] failed. Otherwise this can be dropped.
    pub fn may_be_stored(&self) -> bool {
        match &self.upload {
            Upload::Local(upload) => upload.may_be_stored(),
            Upload::Objects(_) => true,
        }
    }

    /// Removes the entry among the unfinished uploads, once the file's row knows the blob or the blob is removed again.
    ///
    /// If the storage does not remove the entry, that is logged. An object store is asked again until it answers; an entry
    /// in a folder is cleaned up when this process has ended.
    pub async fn finish(self) {
        match self.upload {
            Upload::Local(upload) => upload.finish().await,
            Upload::Objects(upload) => upload.finish().await,
        }
    }
}
