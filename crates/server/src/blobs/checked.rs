//! The bytes of a blob are those that arrived, or reading them fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use md5::{Digest, Md5};
use sha2::Sha256;

/// What the bytes of a blob must hash to, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    Sha256(String),
    /// Of an upload from before SHA-256 was kept.
    Md5(String),
}

impl Checksum {
    /// The strongest that is known.
    pub fn of(sha256: Option<&str>, md5: Option<&str>) -> Option<Self> {
        let sha256 = sha256.map(|sha256| Self::Sha256(sha256.to_owned()));
        sha256.or_else(|| md5.map(|md5| Self::Md5(md5.to_owned())))
    }
}

/// Says whether a reader met bytes that are not those that arrived. It outlives the reader, which is often given away.
#[derive(Debug, Clone, Default)]
pub struct Integrity(Arc<AtomicBool>);

impl Integrity {
    pub fn is_broken(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn broken() -> Self {
        let integrity = Self::default();
        integrity.set_broken();
        integrity
    }

    fn set_broken(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Hashes bytes as they are read, and compares at their end.
pub(super) struct Checker {
    hash: Hash,
    expected: String,
    integrity: Integrity,
    has_ended: bool,
}

enum Hash {
    Sha256(Sha256),
    Md5(Md5),
}

impl Checker {
    pub fn new(checksum: Checksum) -> (Self, Integrity) {
        let integrity = Integrity::default();
        let (hash, expected) = match checksum {
            Checksum::Sha256(expected) => (Hash::Sha256(Sha256::new()), expected),
            Checksum::Md5(expected) => (Hash::Md5(Md5::new()), expected),
        };
        let checker = Self { hash, expected, integrity: integrity.clone(), has_ended: false };
        (checker, integrity)
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.hash {
            Hash::Sha256(hash) => hash.update(bytes),
            Hash::Md5(hash) => hash.update(bytes),
        }
    }

    /// All bytes were read. Returns whether they are the right ones.
    pub fn end(&mut self) -> bool {
        if self.has_ended {
            return !self.integrity.is_broken();
        }
        self.has_ended = true;
        let found = match &mut self.hash {
            Hash::Sha256(hash) => hex::encode(hash.finalize_reset()),
            Hash::Md5(hash) => hex::encode(hash.finalize_reset()),
        };
        if self.expected != found {
            self.integrity.set_broken();
        }
        !self.integrity.is_broken()
    }
}
