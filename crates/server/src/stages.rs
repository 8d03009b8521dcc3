//! The stages of a file: the interface between the queue, which decides when a stage runs, and the code that runs
//! it.

pub mod cores;
pub mod embed;
pub mod gateway;
pub mod pipeline;
pub mod reindex;
pub mod scan;

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::blobs::Blobs;
use crate::content::artifacts::Converted;
use crate::records::file::File;
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Failure, Retry};
use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;
use landfall_core::text::{Chunk, Embedded, Extracted};
use landfall_core::warning::Warning;
use landfall_documents::{Contents, Member};
use landfall_store::Error;

/// Runs the stages. The real implementation is [`pipeline::Pipeline`]; tests script their own.
pub trait Work: Send + Sync + 'static {
    /// Runs one stage. Dropping the returned future stops the work.
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>>;

    /// Unpacks the archive that `job` is for, and sends each of its files.
    fn unpack<'a>(
        &'a self,
        _job: &'a Job,
        _members: mpsc::Sender<Member>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        let failure = Failure::new(Code::UnsupportedType, "Archives are not unpacked here");
        std::future::ready(Err(failure)).boxed()
    }

    /// What a service says about itself, where it can be asked.
    fn says_well(&self, _service: Service) -> BoxFuture<'_, Option<bool>> {
        std::future::ready(None).boxed()
    }
}

/// One attempt at one stage.
pub struct Job {
    pub file: Arc<File>,
    pub stage: Stage,
    /// The output of the stage before, if the same worker continues with the file.
    pub carried: Option<Arc<Output>>,
    /// Cancelled when the result is not needed any more.
    pub cancelled: CancellationToken,
    progress: watch::Sender<()>,
}

impl Job {
    pub fn new(file: Arc<File>, stage: Stage, carried: Option<Arc<Output>>) -> Self {
        Self { file, stage, carried, cancelled: CancellationToken::new(), progress: watch::Sender::new(()) }
    }

    /// Reports that a part of the work is done; the timeout of the stage starts again.
    pub fn made_progress(&self) {
        self.progress.send_replace(());
    }

    /// The same from another thread.
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
    /// The response of the operator's extraction service, and the text in it.
    Converted(Converted, Extracted),
    Chunked(Vec<Chunk>),
    Embedded(Embedded),
    /// The file is an archive of files. It has no text of its own yet.
    Archive(Contents),
    /// The stage goes on later: it waits for other files. The attempt does not count.
    Waits {
        until: Time,
        /// Why, for the history.
        reason: String,
    },
}

impl Output {
    /// What is missing of the text, from the stage that extracts it.
    pub fn warnings(&self) -> Option<&[Warning]> {
        match self {
            Self::Extracted(extracted) | Self::Converted(_, extracted) => Some(&extracted.warnings),
            _ => None,
        }
    }

    /// The number of chunks, from the stage that makes them.
    pub fn chunk_count(&self) -> Option<i64> {
        match self {
            Self::Chunked(chunks) => i64::try_from(chunks.len()).ok(),
            _ => None,
        }
    }
}

/// The failure of a stage that the database did not serve.
pub fn database_failed(error: &Error) -> Failure {
    tracing::warn!(%error, "a stage failed because of the database");
    let failure = Failure::new(Code::DbError, "The database could not be read");
    if error.database_is_away() { failure.at_no_cost() } else { failure }
}

/// An object store that does not answer says nothing about the file, which waits for it: a few files cannot open the
/// circuit of the storage, and would fail in an outage of seconds. A disk may be unable to read just this file.
pub fn excused(blobs: &Blobs, failure: Failure) -> Failure {
    let is_storage = failure.code == Code::IoError && failure.retry == Retry::Once;
    if is_storage && blobs.is_remote() { failure.at_no_cost() } else { failure }
}

/// The storage did not return the bytes that a stage needs. The message is the same for all stages.
pub fn storage_failed(error: &dyn std::fmt::Display) -> Failure {
    tracing::warn!(%error, "a stage failed because of the storage");
    Failure::new(Code::IoError, "The bytes of this file could not be read from the storage")
}
