//! What is done to a file: the interface between the queue, which decides when, and the stages, which know how.

pub(crate) mod answers;
pub mod artifacts;
pub mod chunk;
pub mod cores;
pub mod embed;
pub mod extract;
pub mod gateway;
pub mod ocr;
pub mod pipeline;
pub mod sandbox;
pub mod scan;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::failure::{Code, Failure};
use crate::file::File;
use crate::lifecycle::Stage;

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

/// A document in the form that the operator's own service put it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// A name that tells what the body is.
    pub name: &'static str,
    pub content_type: String,
    pub body: bytes::Bytes,
}

/// The text of a document, with what is known about its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    pub text: String,
    pub markup: Markup,
    /// The headings and pages in the text, in their order.
    pub places: Vec<Place>,
}

/// How the structure of a text can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Markup {
    Plain,
    Markdown,
}

impl Markup {
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain; charset=utf-8",
            Self::Markdown => "text/markdown; charset=utf-8",
        }
    }
}

/// From this byte of the text on, this is where we are in the document.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Place {
    pub start: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
}

/// A piece of a document that is found as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub text: String,
    pub page: Option<i64>,
    pub heading: Option<String>,
    /// In characters of the extracted text.
    pub char_start: usize,
    pub char_end: usize,
    pub tokens: usize,
}

/// A vector for each chunk, in the chunks' order.
#[derive(Debug, Clone)]
pub struct Embedded {
    /// Model, revision and dimensions: only vectors of the same ones can be compared.
    pub model: String,
    pub vectors: Vec<Vec<f32>>,
}

/// The storage would not give a stage the bytes that it needs. Said in one way, whoever asked for them.
fn storage_failed(error: &dyn std::fmt::Display) -> Failure {
    tracing::warn!(%error, "the storage failed a stage");
    Failure::new(Code::IoError, "The bytes of this file could not be read from the storage")
}
