//! The checksum of the bytes of one request.

use base64::Engine;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use landfall_core::refusal::{Refusal, RefusalCode};

/// As they are announced to clients.
pub const ALGORITHMS: &str = "sha1,md5,sha256";

/// The checksum that the bytes of a request must have.
#[derive(Debug, Clone)]
pub struct Expected {
    hash: Hash,
    expected: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Hash {
    Sha1(Sha1),
    Md5(Md5),
    Sha256(Sha256),
}

impl Expected {
    /// From the text of a header: the name of the algorithm and the checksum in base64.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let refuse = |message: String| Refusal::new(RefusalCode::UnsupportedChecksum, message);
        let (algorithm, value) = text.trim().split_once(' ').ok_or_else(|| {
            refuse("Upload-Checksum has an algorithm, a space, and the checksum in base64".to_owned())
        })?;
        let (hash, length) = match algorithm {
            "sha1" => (Hash::Sha1(Sha1::new()), 20),
            "md5" => (Hash::Md5(Md5::new()), 16),
            "sha256" => (Hash::Sha256(Sha256::new()), 32),
            other => {
                return Err(refuse(format!(
                    "Checksums are taken of these algorithms: {ALGORITHMS}; {} is none of them",
                    other.escape_debug()
                )));
            }
        };
        let expected = base64::engine::general_purpose::STANDARD.decode(value.trim()).ok();
        let expected = expected.filter(|bytes| bytes.len() == length);
        let expected = expected.ok_or_else(|| refuse(format!("This is no {algorithm} in base64")))?;
        Ok(Self { hash, expected })
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.hash {
            Hash::Sha1(hash) => hash.update(bytes),
            Hash::Md5(hash) => hash.update(bytes),
            Hash::Sha256(hash) => hash.update(bytes),
        }
    }

    /// Refuses bytes that are not those that were sent.
    pub fn compare(self) -> Result<(), Refusal> {
        let found = match self.hash {
            Hash::Sha1(hash) => hash.finalize().to_vec(),
            Hash::Md5(hash) => hash.finalize().to_vec(),
            Hash::Sha256(hash) => hash.finalize().to_vec(),
        };
        if found == self.expected {
            return Ok(());
        }
        let message =
            "The bytes do not have the checksum of Upload-Checksum, so they were not kept; send them again";
        Err(Refusal::new(RefusalCode::PieceChecksumMismatch, message).retryable())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_right(header: &str, bytes: &[u8]) -> bool {
        let mut expected = Expected::parse(header).expect("a good header");
        expected.update(bytes);
        expected.compare().is_ok()
    }

    #[test]
    fn bytes_are_compared_with_each_algorithm() {
        for header in [
            "sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=",
            "md5 XrY7u+Ae7tCTyyK7j1rNww==",
            "sha256 uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=",
        ] {
            assert!(is_right(header, b"hello world"), "{header}");
            assert!(!is_right(header, b"hello World"), "{header}");
        }
    }

    #[test]
    fn what_is_no_checksum_is_refused() {
        for header in
            ["", "sha1", "sha1 ", "crc32 AAAA", "md5 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", "sha1 nonsense!"]
        {
            let refusal = Expected::parse(header).expect_err(header);
            assert_eq!(refusal.code, RefusalCode::UnsupportedChecksum);
        }
    }
}
