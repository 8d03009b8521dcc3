//! Which bytes exactly a file has.

use super::Checksum;
use crate::records::file::File;

/// What an object store calls one state of an object. A folder has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revision {
    pub etag: Option<String>,
    /// Where the bucket keeps versions.
    pub version: Option<String>,
}

/// A blob as the row of its file knows it. Who reads it gets exactly these bytes, or an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub key: String,
    pub size: u64,
    pub checksum: Option<Checksum>,
    pub revision: Revision,
}

impl Pin {
    /// The blob of a file. `None` while its bytes are not there.
    pub fn of(file: &File) -> Option<Self> {
        Some(Self {
            key: file.blob_key.clone()?,
            size: file.size_bytes.unsigned_abs(),
            checksum: Checksum::of(file.blob_sha256.as_deref(), file.md5.as_deref()),
            revision: Revision { etag: file.blob_etag.clone(), version: file.blob_version.clone() },
        })
    }
}
