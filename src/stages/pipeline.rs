//! The real stages: bytes from the storage, text out of them, chunks out of the text, vectors out of the chunks.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::cores::Cores;
use super::embed::Embedder;
use super::{Extracted, Job, Output, Work, artifacts, chunk, extract};
use crate::blobs::Blobs;
use crate::config::ChunkConfig;
use crate::db::Db;
use crate::error::Error;
use crate::failure::{Code, Failure};
use crate::lifecycle::Stage;

pub struct Pipeline {
    db: Db,
    blobs: Blobs,
    chunks: ChunkConfig,
    embedder: Embedder,
    cores: Cores,
}

impl Pipeline {
    pub fn new(db: Db, blobs: Blobs, chunks: ChunkConfig, embedder: Embedder) -> Self {
        Self { db, blobs, chunks, embedder, cores: Cores::of_this_machine() }
    }

    async fn extract(&self, job: &Job) -> Result<Output, Failure> {
        let key = job
            .file
            .blob_key
            .as_deref()
            .ok_or_else(|| Failure::new(Code::IoError, "This file has no bytes in the storage"))?;
        let bytes = self.blobs.read(key).await.map_err(io_error)?;
        let (name, content_type) = (job.file.file_name.clone(), job.file.content_type.clone());
        let cancelled = job.cancelled.clone();
        let extracted = self
            .compute(job, move || extract::extract(&bytes, &name, content_type.as_deref(), &cancelled))
            .await?;
        Ok(Output::Extracted(extracted))
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
        let (tokens, progress) = (self.embedder.tokens().clone(), job.progress_reporter());
        let chunks = self
            .compute(job, move || chunk::chunk(&extracted, config, &tokens, &cancelled, || progress.made()))
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
        let embedded =
            self.embedder.embed(&texts, &self.cores, &job.cancelled, || job.made_progress()).await?;
        Ok(Output::Embedded(embedded))
    }

    /// Runs what keeps a core busy on a thread of its own.
    async fn compute<T: Send + 'static>(
        &self,
        job: &Job,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        self.cores.run(|| job.made_progress(), work).await
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

fn io_error(error: Error) -> Failure {
    tracing::warn!(%error, "the storage failed a stage");
    Failure::new(Code::IoError, "The bytes of this file could not be read from the storage")
}

fn db_error(error: Error) -> Failure {
    tracing::warn!(%error, "the database failed a stage");
    Failure::new(Code::DbError, "The database could not be read")
}
