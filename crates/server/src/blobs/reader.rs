//! A blob as a stream of bytes.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf, Take};

/// Yields exactly [`Self::size`] bytes, or an error: a stream that ends too early is one.
pub struct BlobReader {
    size: u64,
    /// Limited to the bytes that are still to come.
    bytes: Take<Pin<Box<dyn AsyncRead + Send>>>,
}

impl BlobReader {
    pub(super) fn new(size: u64, bytes: impl AsyncRead + Send + 'static) -> Self {
        let bytes: Pin<Box<dyn AsyncRead + Send>> = Box::pin(bytes);
        Self { size, bytes: bytes.take(size) }
    }

    /// The number of bytes that this reader yields in all.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl AsyncRead for BlobReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.bytes).poll_read(context, buffer))?;
        let is_at_end = buffer.filled().len() == before && buffer.remaining() > 0;
        if is_at_end && self.bytes.limit() > 0 {
            let message = format!("the blob ended {} bytes too early", self.bytes.limit());
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, message)));
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
}
