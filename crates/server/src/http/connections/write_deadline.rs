//! A connection that fails when its client does not read what is written to it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::telemetry::metrics as counted;
use landfall_core::clock::Clock;

/// What a client must read in each period in which it keeps the server waiting. Without it, a client could hold a
/// connection for days by reading a byte now and then.
const MIN_PROGRESS: usize = 16 * 1024;

pub struct WriteDeadline<S> {
    inner: S,
    limit: Duration,
    /// Runs while the client keeps the server waiting.
    waiting: Option<Waiting>,
}

struct Waiting {
    deadline: Pin<Box<dyn Future<Output = ()> + Send>>,
    written: usize,
}

impl<S> WriteDeadline<S> {
    pub fn new(inner: S, limit: Duration) -> Self {
        Self { inner, limit, waiting: None }
    }

    /// The result of a write, or a failure where the client has kept the server waiting for too long.
    fn check(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => {
                let limit = self.limit;
                let waiting = self.waiting.get_or_insert_with(|| Waiting {
                    deadline: Box::pin(Clock::System.sleep(limit)),
                    written: 0,
                });
                ready!(waiting.deadline.as_mut().poll(context));
                counted::connection_stalled();
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
            }
            Poll::Ready(Ok(count)) => {
                if let Some(waiting) = &mut self.waiting {
                    waiting.written += count;
                    if waiting.written >= MIN_PROGRESS {
                        self.waiting = None;
                    }
                }
                Poll::Ready(Ok(count))
            }
            failed @ Poll::Ready(Err(_)) => failed,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteDeadline<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write(context, bytes);
        this.check(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write_vectored(context, parts);
        this.check(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    /// A flush follows when all there is was written, so the client keeps nothing waiting any more.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.inner).poll_flush(context);
        if flushed.is_ready() {
            this.waiting = None;
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteDeadline<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_read(context, into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const SOON: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(1024);
        let mut connection = WriteDeadline::new(ours, SOON);
        let error = connection.write_all(&[0; 2048]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_reads_too_little_is_given_up() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let mut connection = WriteDeadline::new(ours, SOON);
        let reading = tokio::spawn(async move {
            let mut few = [0; MIN_PROGRESS / 2];
            theirs.read_exact(&mut few).await.map(|_| theirs)
        });
        let error = connection.write_all(&vec![0; 2 * MIN_PROGRESS]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        reading.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_client_that_reads_everything_is_kept_waiting_for_nothing() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let mut connection = WriteDeadline::new(ours, Duration::from_hours(1));
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).await.map(|_| all.len())
        });
        connection.write_all(&vec![0; 100_000]).await.unwrap();
        connection.flush().await.unwrap();
        assert!(connection.waiting.is_none(), "the time between two responses is not the client's fault");
        drop(connection);
        assert_eq!(reading.await.unwrap().unwrap(), 100_000);
    }
}
