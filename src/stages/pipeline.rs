//! The real stages: bytes from the storage, text out of them, chunks out of the text, vectors out of the chunks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::embed::Embedder;
use super::sandbox::pool::{Document, Pool};
use super::{Embedded, Extracted, Job, Output, Work, artifacts, chunk};
use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::config::ChunkConfig;
use crate::db::Db;
use crate::error::Error;
use crate::failure::{Code, Failure};
use crate::lifecycle::Stage;

/// How often work that waits for a core says so.
const SIGN_OF_WAITING: Duration = Duration::from_millis(500);
/// Chunks that are embedded between two signs of progress.
const EMBED_BATCH: usize = 32;

pub struct Pipeline {
    db: Db,
    blobs: Blobs,
    /// What reads documents, each in a process that may die of it.
    readers: Pool,
    chunks: ChunkConfig,
    embedder: Embedder,
    /// Computing on more threads than there are cores only makes everything else wait.
    computing: Arc<Semaphore>,
}

impl Pipeline {
    pub fn new(db: Db, blobs: Blobs, readers: Pool, chunks: ChunkConfig, embedder: Embedder) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { db, blobs, readers, chunks, embedder, computing: Arc::new(Semaphore::new(cores)) }
    }

    async fn extract(&self, job: &Job) -> Result<Output, Failure> {
        let key = job
            .file
            .blob_key
            .as_deref()
            .ok_or_else(|| Failure::new(Code::IoError, "This file has no bytes in the storage"))?;
        let blob = self.blobs.open_file(key).await.map_err(io_error)?;
        let size = blob.metadata().await.map_err(|source| io_error(unreadable(key, source)))?.len();
        let document = Document {
            file: job.file.id,
            tenant: &job.file.tenant_id,
            name: &job.file.file_name,
            content_type: job.file.content_type.as_deref(),
            size,
        };
        // Held while the document is read, for that is done by another process on one of the same cores.
        let _turn = self.turn(job).await;
        self.readers.extract(&document, blob).await.map(Output::Extracted)
    }

    async fn chunk(&self, job: &Job) -> Result<Output, Failure> {
        let loaded;
        let extracted: &Extracted = match job.carried.as_deref() {
            Some(Output::Extracted(extracted)) => extracted,
            _ => {
                let mut tx = self.db.read().await.map_err(db_error)?;
                loaded = artifacts::load_text(&mut tx, job.file.id)
                    .await
                    .map_err(db_error)?
                    .ok_or_else(|| Failure::new(Code::IoError, "The extracted text of this file is gone"))?;
                &loaded
            }
        };
        let (extracted, config, cancelled) = (extracted.clone(), self.chunks, job.cancelled.clone());
        let progress = job.progress_reporter();
        let chunks = self
            .compute(job, move || chunk::chunk(&extracted, config, &cancelled, || progress.made()))
            .await?;
        Ok(Output::Chunked(chunks))
    }

    async fn embed(&self, job: &Job) -> Result<Output, Failure> {
        let texts: Vec<String> = match job.carried.as_deref() {
            Some(Output::Chunked(chunks)) => chunks.iter().map(|chunk| chunk.text.clone()).collect(),
            _ => {
                let mut tx = self.db.read().await.map_err(db_error)?;
                let chunks =
                    artifacts::load_chunks(&mut tx, job.file.id, -1, i64::MAX).await.map_err(db_error)?;
                chunks.into_iter().map(|chunk| chunk.text).collect()
            }
        };
        if texts.is_empty() {
            return Err(Failure::new(Code::NoText, "There is no text in this file"));
        }
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(EMBED_BATCH) {
            let (embedder, batch, cancelled) = (self.embedder.clone(), batch.to_vec(), job.cancelled.clone());
            vectors.extend(self.compute(job, move || embedder.embed(&batch, &cancelled)).await?);
            // The limit is for a batch: a long document takes many of them, and is not stuck.
            job.made_progress();
        }
        Ok(Output::Embedded(Embedded { model: self.embedder.model().to_owned(), vectors }))
    }

    /// Runs what keeps a core busy on a thread of its own, as many at once as there are cores.
    async fn compute<T: Send + 'static>(
        &self,
        job: &Job,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = self.turn(job).await;
        tokio::task::spawn_blocking(move || {
            // Held until the work really ends, also when nobody waits for it any more.
            let _turn = turn;
            work()
        })
        .await
        .unwrap_or_else(|_| Err(Failure::new(Code::Unknown, "The stage met an unexpected error")))
    }

    /// A turn at keeping a core busy.
    async fn turn(&self, job: &Job) -> OwnedSemaphorePermit {
        let mut turn = Box::pin(self.computing.clone().acquire_owned());
        let permit = loop {
            tokio::select! {
                permit = &mut turn => break permit.expect("never closed"),
                // To wait for one's turn is not to take too long.
                () = Clock::System.sleep(SIGN_OF_WAITING) => job.made_progress(),
            }
        };
        job.made_progress();
        permit
    }
}

impl Work for Pipeline {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        async move {
            match job.stage {
                // Fails closed: a file that was to be scanned is not let past for want of a scanner.
                Stage::Scan => Err(Failure::new(Code::Unscannable, "No virus scanner is configured")),
                Stage::Extract => self.extract(job).await,
                Stage::Chunk => self.chunk(job).await,
                Stage::Embed => self.embed(job).await,
            }
        }
        .boxed()
    }
}

fn unreadable(key: &str, source: std::io::Error) -> Error {
    Error::Storage { what: format!("look at {key}"), source }
}

fn io_error(error: Error) -> Failure {
    tracing::warn!(%error, "the storage failed a stage");
    Failure::new(Code::IoError, "The bytes of this file could not be read from the storage")
}

fn db_error(error: Error) -> Failure {
    tracing::warn!(%error, "the database failed a stage");
    Failure::new(Code::DbError, "The database could not be read")
}
