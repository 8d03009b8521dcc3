//! An upload on its way into the storage. Size and checksum are counted here, the same for every backend.

use md5::{Digest, Md5};

use super::local;
use landfall_core::refusal::Refusal;
use landfall_store::Error;

/// Receives the bytes of one upload.
///
/// It has an entry among the unfinished uploads from the beginning. Dropped before [`Self::publish`], it takes its bytes
/// and its entry away. Once it is published, the entry stays until [`Self::finish`]: if the process dies before the
/// file's row knows the blob, another process finds the entry and cleans up.
pub struct Incoming {
    upload: Upload,
    hash: Md5,
    size: u64,
}

enum Upload {
    Local(local::Upload),
}

/// What arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub size: u64,
    /// In hexadecimal digits.
    pub md5: String,
}

impl Incoming {
    pub(super) fn local(upload: local::Upload) -> Self {
        Self { upload: Upload::Local(upload), hash: Md5::new(), size: 0 }
    }

    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match &mut self.upload {
            Upload::Local(upload) => upload.write(bytes).await?,
        }
        self.hash.update(bytes);
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
        let stored = Stored { size: self.size, md5: hex::encode(self.hash.clone().finalize()) };
        check(&stored)?;
        match &mut self.upload {
            Upload::Local(upload) => upload.publish().await?,
        }
        Ok(stored)
    }

    /// Removes the entry among the unfinished uploads, once the file's row knows the blob or the blob is removed again.
    ///
    /// An entry that cannot be removed is logged and left. It is cleaned up when this process has ended.
    pub async fn finish(self) {
        match self.upload {
            Upload::Local(upload) => upload.finish().await,
        }
    }
}
