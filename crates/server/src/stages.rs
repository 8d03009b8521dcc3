//! What is done to a file: the interface between the queue, which decides when, and the stages, which know how.

pub mod cores;
pub mod embed;
pub mod gateway;
pub mod pipeline;
pub mod reindex;
pub mod scan;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::content::artifacts::Converted;
use crate::records::file::File;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage;
use landfall_core::text::{Chunk, Embedded, Extracted};

/// Does the work of the stages. The real one is [`pipeline::Pipeline`]; tests script their own.
pub trait Work: Send + Sync + 'static {
    /// Runs one stage. Dropping the answer's future stops the work.
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>>;
}

/// One attempt at one stage.
pub struct Job {
    pub file: File,
    pub stage: Stage,
    /// What the stage before produced, when the same worker carries the file on.
    pub carried: Option<Arc<Output>>,
    /// Set when nobody waits for the work any more.
    pub cancelled: CancellationToken,
    progress: watch::Sender<()>,
}

impl Job {
    pub fn new(file: File, stage: Stage, carried: Option<Arc<Output>>) -> Self {
        Self { file, stage, carried, cancelled: CancellationToken::new(), progress: watch::Sender::new(()) }
    }

    /// Says that a part of the work is done; the stage's time begins anew.
    pub fn made_progress(&self) {
        self.progress.send_replace(());
    }

    /// Says the same from another thread.
    pub fn progress_reporter(&self) -> Progress {
        Progress(self.progress.clone())
    }

    pub fn progress(&self) -> watch::Receiver<()> {
        self.progress.subscribe()
    }
}

pub struct Progress(watch::Sender<()>);

impl Progress {
    pub fn made(&self) {
        self.0.send_replace(());
    }
}

/// What a stage produced.
#[derive(Debug)]
pub enum Output {
    Nothing,
    Extracted(Extracted),
    /// What the operator's own service made of the document, and the text in that.
    Converted(Converted, Extracted),
    Chunked(Vec<Chunk>),
    Embedded(Embedded),
}

impl Output {
    /// The number of chunks, from the stage that makes them.
    pub fn chunk_count(&self) -> Option<i64> {
        match self {
            Self::Chunked(chunks) => i64::try_from(chunks.len()).ok(),
            _ => None,
        }
    }
}

/// The storage would not give a stage the bytes that it needs. Said in one way, whoever asked for them.
fn storage_failed(error: &dyn std::fmt::Display) -> Failure {
    tracing::warn!(%error, "the storage failed a stage");
    Failure::new(Code::IoError, "The bytes of this file could not be read from the storage")
}
