//! A blob as a stream of bytes.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::checked::Checker;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf, Take};

/// Yields exactly [`Self::size`] bytes, or an error: a stream that ends too early is one.
pub struct BlobReader {
    size: u64,
    /// Limited to the bytes that are still to come.
    bytes: Take<Pin<Box<dyn AsyncRead + Send>>>,
    /// Compares the bytes with their checksum. The last of them are yielded only if they are right.
    checker: Option<Checker>,
}

impl BlobReader {
    pub(super) fn new(size: u64, bytes: impl AsyncRead + Send + 'static) -> Self {
        let bytes: Pin<Box<dyn AsyncRead + Send>> = Box::pin(bytes);
        Self { size, bytes: bytes.take(size), checker: None }
    }

    /// A reader that fails at once, because the blob has another size than it must have.
    pub(super) fn of_wrong_size(expected: u64) -> Self {
        let nothing: Pin<Box<dyn AsyncRead + Send>> = Box::pin(tokio::io::empty());
        Self { size: expected, bytes: nothing.take(expected.max(1)), checker: None }
    }

    pub(super) fn checked(mut self, checker: Checker) -> Self {
        self.checker = Some(checker);
        self
    }

    /// The number of bytes that this reader yields in all.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl AsyncRead for BlobReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.bytes).poll_read(context, buffer))?;
        let is_at_end = buffer.filled().len() == before && buffer.remaining() > 0;
        if is_at_end && this.bytes.limit() > 0 {
            let message = format!("the blob ended {} bytes too early", this.bytes.limit());
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, message)));
        }
        if let Some(checker) = &mut this.checker {
            checker.update(&buffer.filled()[before..]);
            if this.bytes.limit() == 0 && !checker.end() {
                buffer.set_filled(before);
                let message = "the stored bytes are not those that were uploaded";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, message)));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for BlobReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobReader").field("size", &self.size).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use md5::Digest;

    use super::super::checked::Checksum;
    use super::*;

    async fn read(size: u64, bytes: &'static [u8]) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        BlobReader::new(size, bytes).read_to_end(&mut read).await?;
        Ok(read)
    }

    #[tokio::test]
    async fn a_stream_that_ends_too_early_is_an_error_and_one_that_goes_on_is_cut() {
        assert_eq!(read(5, b"12345").await.unwrap(), b"12345");
        assert_eq!(read(3, b"12345").await.unwrap(), b"123");
        assert_eq!(read(0, b"12345").await.unwrap(), b"");
        assert_eq!(read(6, b"12345").await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    /// What a reader with a checksum yields before its end or its error, and whether it found the bytes to be wrong.
    async fn read_checked(checksum: Checksum, bytes: &'static [u8]) -> (Vec<u8>, bool, bool) {
        let (checker, integrity) = Checker::new(checksum);
        let mut read = Vec::new();
        let mut reader = BlobReader::new(bytes.len() as u64, bytes).checked(checker);
        let ended = reader.read_to_end(&mut read).await.is_ok();
        (read, ended, integrity.is_broken())
    }

    #[tokio::test]
    async fn wrong_bytes_are_never_yielded_to_their_end() {
        let sha256 = || Checksum::Sha256(hex::encode(sha2::Sha256::digest(b"12345")));
        let md5 = || Checksum::Md5(hex::encode(md5::Md5::digest(b"12345")));
        for checksum in [sha256, md5] {
            assert_eq!(read_checked(checksum(), b"12345").await, (b"12345".to_vec(), true, false));
            let (read, ended, is_broken) = read_checked(checksum(), b"12346").await;
            assert!(read.len() < 5 && !ended && is_broken, "{read:?}");
        }
        let (_, ended, is_broken) = read_checked(sha256(), b"").await;
        assert!(!ended && is_broken, "nothing is not the right bytes either");
    }
}
