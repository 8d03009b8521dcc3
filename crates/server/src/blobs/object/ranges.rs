//! Reads an object in ranges. So no request lasts long, a connection that breaks costs one range, and memory is bounded by what
//! the connection has received.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt, try_unfold};
use object_store::path::Path;
use object_store::{GetOptions, GetRange};
use tokio_util::io::StreamReader;

use super::{Objects, failed, is_missing};
use crate::blobs::{BlobReader, Revision};
use landfall_core::clock::Clock;
use landfall_store::Error;

const RANGE: u64 = 8 << 20;
/// How often in a row a range may fail before the reader gives up.
const MAX_FAILURES: u32 = 4;
const BACKOFF: Duration = Duration::from_millis(200);

impl Objects {
    /// Streams a range of a blob, which must have this revision. The first bytes are asked for before this returns.
    pub(super) async fn stream(
        &self,
        key: &str,
        revision: Revision,
        range: Range<u64>,
    ) -> Result<BlobReader, Error> {
        let size = range.end - range.start;
        let mut ranges = Ranges {
            objects: self.clone(),
            path: self.blob_path(key),
            key: key.to_owned(),
            revision,
            next: range.start,
            end: range.end,
            failures: 0,
            current: None,
        };
        ranges.current = Some(ranges.request().await?);
        let bytes = try_unfold(ranges, |mut ranges| async move {
            let next = ranges.next().await.map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>(next.map(|bytes| (bytes, ranges)))
        });
        Ok(BlobReader::new(size, StreamReader::new(Box::pin(bytes))))
    }
}

struct Ranges {
    objects: Objects,
    path: Path,
    key: String,
    revision: Revision,
    next: u64,
    end: u64,
    failures: u32,
    current: Option<BoxStream<'static, object_store::Result<Bytes>>>,
}

impl Ranges {
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        while self.next < self.end {
            let mut current = match self.current.take() {
                Some(current) => current,
                None => match self.request().await {
                    Ok(current) => current,
                    Err(error @ Error::Storage { .. }) => {
                        self.failed(error).await?;
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            match current.next().await {
                Some(Ok(bytes)) if bytes.is_empty() => self.current = Some(current),
                Some(Ok(bytes)) => {
                    self.next += bytes.len() as u64;
                    self.failures = 0;
                    self.current = Some(current);
                    return Ok(Some(bytes));
                }
                // The range is over. If it ended early, the next request goes on behind what came.
                None => {}
                Some(Err(error)) => self.failed(failed("read", &self.key, error)).await?,
            }
        }
        Ok(None)
    }

    /// Asks for the next range.
    async fn request(&mut self) -> Result<BoxStream<'static, object_store::Result<Bytes>>, Error> {
        let range = self.next..self.end.min(self.next + RANGE);
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: self.revision.etag.clone(),
            version: self.revision.version.clone(),
            ..GetOptions::default()
        };
        let key = || self.key.clone();
        match self.objects.store().objects().get_opts(&self.path, options).await {
            // A store that ignores the condition still says what it returns.
            Ok(got) if self.revision.etag.is_some() && got.meta.e_tag != self.revision.etag => {
                Err(Error::BlobChanged { key: key() })
            }
            Ok(got) => Ok(got.into_stream()),
            Err(object_store::Error::Precondition { .. } | object_store::Error::NotModified { .. }) => {
                Err(Error::BlobChanged { key: key() })
            }
            Err(error) if is_missing(&error) => Err(self.objects.missing_or_changed(&self.key).await),
            Err(error) => Err(failed("read", &self.key, error)),
        }
    }

    /// Waits before the next attempt, or gives up.
    async fn failed(&mut self, error: Error) -> Result<(), Error> {
        self.failures += 1;
        if self.failures > MAX_FAILURES {
            return Err(error);
        }
        tracing::debug!(key = self.key, %error, "a range of a blob is read again");
        Clock::System.sleep(BACKOFF * self.failures).await;
        Ok(())
    }
}
