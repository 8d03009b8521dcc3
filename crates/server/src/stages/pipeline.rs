//! The real stages: bytes from the storage, text from the bytes, chunks from the text, vectors from the chunks.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_documents::{self as documents, ArchiveLimits, ErrorKind, Member, Reading, Recognised};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio_util::io::ReaderStream;
use tracing::Instrument;

use super::cores::{Cores, UserCores};
use super::embed::Embedder;
use super::gateway::{Gateway, GatewayConfig};
use super::{Job, Output, Work, database_failed, excused, scan, storage_failed};
use crate::blobs::{BlobReader, Blobs, Integrity, Pin};
use crate::content::{artifacts, chunks};
use crate::records::files;
use crate::telemetry::spans;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;
use landfall_core::text::Extracted;
use landfall_documents::ocr::Ocr;
use landfall_documents::sandbox::{Content, Document, Pool};
use landfall_models::chunk;
use landfall_models::chunk::ChunkConfig;
use landfall_models::wording::wording;
use landfall_store::Db;
use landfall_store::Error;

/// The maximum size of a response of the operator's extraction service.
const MAX_CONVERTED_BYTES: usize = 64 << 20;

/// The configuration of the stages.
#[derive(Debug, Clone)]
pub struct PipelineConfig {
    pub chunks: ChunkConfig,
    /// The languages for OCR, unless it is off.
    pub ocr_languages: Option<String>,
    /// How long OCR of one document may take.
    pub ocr_timeout: Duration,
    /// Folders and files that the programs that read documents must not see.
    pub hidden: Vec<PathBuf>,
    pub clamd: Option<scan::Address>,
    pub gateway: Option<GatewayConfig>,
    pub archives: ArchiveLimits,
}

pub struct Pipeline {
    db: Db,
    blobs: Blobs,
    /// Reads documents, each in a process of its own, which may crash.
    readers: Pool,
    ocr: Option<Ocr>,
    chunks: ChunkConfig,
    embedder: Embedder,
    clamd: Option<scan::Address>,
    gateway: Option<Gateway>,
    archives: ArchiveLimits,
    cores: Cores,
}

impl Pipeline {
    pub fn new(db: Db, blobs: Blobs, readers: Pool, config: PipelineConfig, embedder: Embedder) -> Self {
        let PipelineConfig { chunks, ocr_languages, ocr_timeout, hidden, clamd, gateway, archives } = config;
        let gateway = gateway.map(|gateway| Gateway::new(gateway, MAX_CONVERTED_BYTES));
        let ocr = ocr_languages.and_then(|languages| Ocr::find(readers.program(), &languages)).map(|ocr| {
            let beside_database = folder_of_database(&db);
            hidden.iter().chain(&beside_database).fold(ocr, |ocr, path| ocr.hiding(path)).within(ocr_timeout)
        });
        let cores = Cores::of_this_machine();
        Self { db, blobs, readers, ocr, chunks, embedder, clamd, gateway, archives, cores }
    }

    fn cores(&self, job: &Job) -> UserCores {
        self.cores.of_user(job.file.tenant_user())
    }

    async fn scan(&self, job: &Job) -> Result<Output, Failure> {
        let Some(clamd) = &self.clamd else {
            // A process without a scanner does not claim this stage; if it did, it must not let a file pass.
            return Err(Failure::new(Code::ScannerUnavailable, "This process has no virus scanner"));
        };
        let (document, integrity) = self.open(job).await?;
        let scanned = scan::scan(clamd, document, || job.made_progress()).await;
        of_right_bytes(&integrity, scanned)?;
        Ok(Output::Nothing)
    }

    async fn extract(&self, job: &Job) -> Result<Output, Failure> {
        if let Some(gateway) = &self.gateway {
            return self.convert(gateway, job).await;
        }
        let (blob, integrity) = self.open(job).await?;
        let content = {
            let uploaded = as_uploaded(job, blob.size());
            let document = uploaded.borrowed();
            // Held while another process reads the document on this core.
            let _turn = self.cores(job).turn(|| job.made_progress()).await;
            let reading = self.readers.read_or_list(&document, blob, &self.archives);
            reading.instrument(spans::read_document()).await.map_err(unread)
        };
        match of_right_bytes(&integrity, content)? {
            Content::Document(reading) => self.finish(job, *reading).await.map(Output::Extracted),
            Content::Archive(contents) => Ok(Output::Archive(contents)),
        }
    }

    /// Unpacks an archive that was recognised before.
    async fn unpack_archive(&self, job: &Job, members: mpsc::Sender<Member>) -> Result<(), Failure> {
        let (blob, integrity) = self.open(job).await?;
        let uploaded = as_uploaded(job, blob.size());
        let document = uploaded.borrowed();
        let _turn = self.cores(job).turn(|| job.made_progress()).await;
        let unpacked = self.readers.unpack(&document, blob, &self.archives, &members);
        let unpacked = unpacked.instrument(spans::read_document()).await.map_err(unread);
        of_right_bytes(&integrity, unpacked).map(drop)
    }

    /// The bytes of a file, which are compared with what arrived while they are read.
    async fn open(&self, job: &Job) -> Result<(BlobReader, Integrity), Failure> {
        let no_bytes = || Failure::new(Code::IoError, "This file has no bytes in the storage").permanent();
        let pin = Pin::of(&job.file).ok_or_else(no_bytes)?;
        self.blobs.read_pinned(&pin).await.map_err(io_error)
    }

    /// Has the operator's service extract the text of a document.
    async fn convert(&self, gateway: &Gateway, job: &Job) -> Result<Output, Failure> {
        let mapping = {
            let mut tx = self.db.read().await.map_err(|error| database_failed(&error))?;
            files::mapping(&mut tx, job.file.id).await.map_err(|error| database_failed(&error))?
        };
        let (document, integrity) = self.open(job).await?;
        let converted = gateway.convert(&job.file, mapping.as_ref(), ReaderStream::new(document)).await;
        let converted = of_right_bytes(&integrity, converted)?;
        job.made_progress();
        // The response of a service is read with the same care as an upload.
        let (body, kind) = (&converted.body[..], Some(converted.content_type.as_str()));
        let extracted = self.read(job, body, body.len() as u64, converted.name, kind).await?;
        Ok(Output::Converted(converted, extracted))
    }

    /// Extracts the text of a document.
    async fn read(
        &self,
        job: &Job,
        bytes: impl AsyncRead + Unpin,
        size: u64,
        name: &str,
        content_type: Option<&str>,
    ) -> Result<Extracted, Failure> {
        let label = job.file.id.to_string();
        let document = Document { label: &label, owner: &job.file.tenant_id, name, content_type, size };
        let reading = {
            // Held while another process reads the document on this core.
            let _turn = self.cores(job).turn(|| job.made_progress()).await;
            self.readers.read(&document, bytes).instrument(spans::read_document()).await.map_err(unread)?
        };
        self.finish(job, reading).await
    }

    /// Adds what OCR finds in the pictures, if there are some and it is installed.
    async fn finish(&self, job: &Job, reading: Reading) -> Result<Extracted, Failure> {
        let Some(ocr) = self.ocr.as_ref().filter(|_| !reading.pictures.is_empty()) else {
            return reading.finish(Recognised::NotInstalled).map_err(unread);
        };
        let pictures = reading.pictures.iter().map(|picture| &picture.bytes[..]);
        // The timeout of the stage is for a picture: a long document has many of them, and is not stuck.
        let cores = self.cores(job);
        let recognised = ocr.recognise_all(pictures, || cores.turn(|| job.made_progress()));
        let span = spans::recognise_pictures(reading.pictures.len());
        let (words, failed) = recognised.instrument(span).await;
        match (reading.finish(Recognised::Words(words)), failed) {
            // If OCR fails on one page of many, that page has no text. If no other text was found, its error is the
            // cause.
            (Err(no_text), Some(error)) if no_text.kind() == ErrorKind::NoText => {
                tracing::info!(%error, fileId = %job.file.id, "OCR could not read the pictures of a document");
                let message =
                    "There is no text in this file beside pictures, and its pictures could not be read";
                Err(Failure::new(Code::ParseError, message))
            }
            (ending, _) => ending.map_err(unread),
        }
    }

    async fn chunk(&self, job: &Job) -> Result<Output, Failure> {
        let loaded;
        let extracted: &Extracted = match job.carried.as_deref() {
            Some(Output::Extracted(extracted) | Output::Converted(_, extracted)) => extracted,
            _ => {
                let mut tx = self.db.read().await.map_err(|error| database_failed(&error))?;
                loaded = artifacts::load_text(&mut tx, job.file.id)
                    .await
                    .map_err(|error| database_failed(&error))?
                    .ok_or_else(|| {
                        Failure::new(Code::IoError, "The extracted text of this file is gone").permanent()
                    })?;
                &loaded
            }
        };
        let (extracted, config, cancelled) = (extracted.clone(), self.chunks, job.cancelled.clone());
        let (tokens, progress) = (self.embedder.tokens().clone(), job.progress_reporter());
        let chunks = self
            .compute(job, move || {
                chunk::chunk(&extracted, config, &tokens, || {
                    progress.made();
                    if cancelled.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })
            })
            .await?;
        Ok(Output::Chunked(chunks))
    }

    async fn embed(&self, job: &Job) -> Result<Output, Failure> {
        let texts: Vec<String> = match job.carried.as_deref() {
            Some(Output::Chunked(chunks)) => {
                chunks.iter().map(|chunk| wording(&chunk.text).into_owned()).collect()
            }
            _ => {
                let mut tx = self.db.read().await.map_err(|error| database_failed(&error))?;
                let chunks = chunks::load(&mut tx, job.file.id, -1, i64::MAX)
                    .await
                    .map_err(|error| database_failed(&error))?;
                chunks.iter().map(|chunk| wording(&chunk.text).into_owned()).collect()
            }
        };
        if texts.is_empty() {
            return Err(Failure::new(Code::NoText, "There is no text in this file"));
        }
        let (tenant, cores) = (&job.file.tenant_id, self.cores(job));
        let embedded =
            self.embedder.embed(tenant, &texts, &cores, &job.cancelled, || job.made_progress()).await?;
        Ok(Output::Embedded(embedded))
    }

    /// Runs computation on a thread of its own.
    async fn compute<T: Send + 'static>(
        &self,
        job: &Job,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        self.cores(job).run(|| job.made_progress(), work).await
    }
}

impl Work for Pipeline {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        async move {
            let done = match job.stage {
                Stage::Scan => self.scan(job).await,
                Stage::Extract => self.extract(job).await,
                Stage::Chunk => self.chunk(job).await,
                Stage::Embed => self.embed(job).await,
            };
            done.map_err(|failure| excused(&self.blobs, failure))
        }
        .boxed()
    }

    fn unpack<'a>(
        &'a self,
        job: &'a Job,
        members: mpsc::Sender<Member>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        async move {
            let unpacked = self.unpack_archive(job, members).await;
            unpacked.map_err(|failure| excused(&self.blobs, failure))
        }
        .boxed()
    }

    fn says_well(&self, service: Service) -> BoxFuture<'_, Option<bool>> {
        async move {
            match (service, &self.gateway) {
                (Service::Gateway, Some(gateway)) => gateway.says_well().await,
                _ => None,
            }
        }
        .boxed()
    }
}

/// A file as the reader gets it.
struct AsUploaded<'a> {
    label: String,
    job: &'a Job,
    size: u64,
}

fn as_uploaded(job: &Job, size: u64) -> AsUploaded<'_> {
    AsUploaded { label: job.file.id.to_string(), job, size }
}

impl AsUploaded<'_> {
    fn borrowed(&self) -> Document<'_> {
        let file = &self.job.file;
        Document {
            label: &self.label,
            owner: &file.tenant_id,
            name: &file.file_name,
            content_type: file.content_type.as_deref(),
            size: self.size,
        }
    }
}

/// The failure for a document that could not be read.
fn unread(error: documents::Error) -> Failure {
    if let Some(detail) = error.detail() {
        tracing::info!(detail, kind = error.kind().name(), "a document cannot be read");
    }
    let code = match error.kind() {
        ErrorKind::UnsupportedType => Code::UnsupportedType,
        ErrorKind::NotPdf => Code::NotPdf,
        ErrorKind::TooLarge => Code::TooLarge,
        ErrorKind::OutOfMemory => Code::MemoryError,
        ErrorKind::Damaged => Code::ParseError,
        ErrorKind::Invalid => Code::ValidationError,
        ErrorKind::NoText => Code::NoText,
        ErrorKind::Stopped | ErrorKind::TimedOut => Code::StageTimeout,
        ErrorKind::ComputingLimit => return Failure::new(Code::StageTimeout, error.message()).permanent(),
        ErrorKind::Killed => Code::WorkerLost,
        ErrorKind::NotStarted => Code::IoError,
        ErrorKind::Source => return storage_failed(&error),
        // One that a later version of the library adds; a test finds it.
        _ => Code::Unknown,
    };
    Failure::new(code, error.message())
}

/// The folder of a SQLite database, which contains other files as well.
fn folder_of_database(db: &Db) -> Option<PathBuf> {
    let file = std::path::absolute(db.sqlite_file()?).ok()?;
    Some(file.parent()?.to_owned())
}

/// What came of a stage, unless the bytes that it read were not those that arrived.
fn of_right_bytes<T>(integrity: &Integrity, outcome: Result<T, Failure>) -> Result<T, Failure> {
    if integrity.is_broken() {
        tracing::error!("the stored bytes of a file are not those that were uploaded");
        let message = "The stored bytes of this file are not those that were uploaded: the disk or a program has changed them";
        return Err(Failure::new(Code::BlobDamaged, message));
    }
    outcome
}

fn io_error(error: Error) -> Failure {
    let failure = storage_failed(&error);
    match error {
        // The storage works. Another attempt would find as little.
        Error::BlobMissing { .. } => {
            Failure::new(Code::IoError, "The bytes of this file are gone from the storage. Upload it again")
                .permanent()
        }
        Error::BlobChanged { .. } => {
            let message = "The object in the object store was replaced after this file was confirmed";
            Failure::new(Code::BlobChanged, message)
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_core::failure::Retry;

    #[test]
    fn a_document_over_the_computing_limit_is_not_retried_and_a_slow_one_once() {
        let failure = |kind| unread(documents::Error::new(kind, "x"));
        let (computes, slow) = (failure(ErrorKind::ComputingLimit), failure(ErrorKind::TimedOut));
        assert_eq!((computes.code, computes.retry), (Code::StageTimeout, Retry::Never));
        assert_eq!((slow.code, slow.retry), (Code::StageTimeout, Retry::Once));
    }

    #[test]
    fn every_kind_of_error_has_a_code() {
        for kind in ErrorKind::ALL {
            assert_ne!(unread(documents::Error::new(*kind, "x")).code, Code::Unknown, "{kind:?}");
        }
    }
}
