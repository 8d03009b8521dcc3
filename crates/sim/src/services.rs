//! The simulated services: scanner, extraction gateway, embeddings. They are slow, down, or fail with some documents.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::AsyncReadExt;

use landfall_core::clock::Clock;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;
use landfall_core::text::{Chunk, Embedded, Extracted};
use landfall_models::LocalModel;
use landfall_server::blobs::{Blobs, Pin};
use landfall_server::content::{artifacts, chunks};
use landfall_server::stages::embed::Embedder;
use landfall_server::stages::{Job, Output, Work, excused};
use landfall_store::{Db, Error};

use crate::plan::{FilePlan, Kind, Outages};
use crate::shared::Life;

pub const MODEL: &str = "simulated";
pub const DIMENSIONS: usize = 8;

/// A model whose vectors follow from the texts.
pub struct Model;

impl LocalModel for Model {
    fn vectors(
        &self,
        texts: &[&str],
        _is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Vec<f32>>>, Failure> {
        Ok(Some(texts.iter().map(|text| vector(text)).collect()))
    }
}

pub fn embedder() -> Embedder {
    Embedder::with_model(Model, MODEL, DIMENSIONS)
}

/// One direction out of a few.
fn vector(text: &str) -> Vec<f32> {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let direction = usize::try_from(hasher.finish() % DIMENSIONS as u64).unwrap_or(0);
    (0..DIMENSIONS).map(|place| if place == direction { 1.0 } else { 0.0 }).collect()
}

/// The stages of one life of a process.
pub struct Stages {
    pub life: Arc<Life>,
    pub db: Db,
    pub blobs: Blobs,
}

impl Stages {
    async fn work(&self, job: &Job) -> Result<Output, Failure> {
        let shared = &self.life.shared;
        let kind = self.planned(job).map_or(Kind::Innocent, |file| file.kind);
        let mut takes = 1 + shared.number(20);
        if shared.happens(shared.plan.mix.slow_stages, "slow stage") {
            takes += shared.number(8_000);
        }
        Clock::System.sleep(Duration::from_millis(takes)).await;
        if kind == Kind::Kills && self.planned(job).is_some_and(|file| file.kills_at() == job.stage) {
            self.life.end("killed by a document");
            std::future::pending::<()>().await;
        }
        match job.stage {
            Stage::Scan => self.scan(job, kind).await,
            Stage::Extract => self.extract(job, kind).await,
            Stage::Chunk => self.chunk(job, kind).await,
            Stage::Embed => self.embed(job).await,
        }
    }

    fn planned(&self, job: &Job) -> Option<&FilePlan> {
        self.life.shared.plan.files.iter().find(|file| file.name == job.file.file_name)
    }

    fn is_down(&self, service: Service) -> Result<(), Failure> {
        let shared = &self.life.shared;
        if shared.plan.calls(service) && shared.is_down(service) {
            let failure = Failure::new(Code::of_outage(service), format!("{} is down", service.title()));
            return Err(if shared.plan.outages == Outages::NotAvailable {
                failure.unavailable()
            } else {
                failure.not_reached()
            });
        }
        Ok(())
    }

    async fn bytes(&self, job: &Job) -> Result<Vec<u8>, Failure> {
        let gone = || Failure::new(Code::IoError, "The bytes are gone").permanent();
        let pin = Pin::of(&job.file).ok_or_else(gone)?;
        let read = async {
            let (mut reader, _integrity) = self.blobs.read_pinned(&pin).await?;
            let mut bytes = Vec::new();
            let read = reader.read_to_end(&mut bytes).await;
            read.map_err(|error| Error::Storage { what: "read".to_owned(), source: error.into() })?;
            Ok(bytes)
        };
        read.await.map_err(|error| match error {
            Error::BlobMissing { .. } => gone(),
            error => Failure::new(Code::IoError, error.to_string()),
        })
    }

    async fn scan(&self, job: &Job, kind: Kind) -> Result<Output, Failure> {
        self.bytes(job).await?;
        self.is_down(Service::Scanner)?;
        match kind {
            Kind::Infected => Err(Failure::new(Code::Infected, "It is infected")),
            _ => Ok(Output::Nothing),
        }
    }

    async fn extract(&self, job: &Job, kind: Kind) -> Result<Output, Failure> {
        let bytes = self.bytes(job).await?;
        self.is_down(Service::Gateway)?;
        match kind {
            Kind::Damaged => Err(Failure::new(Code::ParseError, "It is damaged")),
            Kind::BreaksGateway => Err(Failure::new(Code::Gateway5xx, "The extraction service failed (500)")),
            _ => Ok(Output::Extracted(Extracted::plain(String::from_utf8_lossy(&bytes).into_owned()))),
        }
    }

    async fn chunk(&self, job: &Job, kind: Kind) -> Result<Output, Failure> {
        let text = match job.carried.as_deref() {
            Some(Output::Extracted(extracted) | Output::Converted(_, extracted)) => extracted.text.clone(),
            _ => {
                let mut tx = self.db.read().await.map_err(db_error)?;
                let loaded = artifacts::load_text(&mut tx, job.file.id).await.map_err(db_error)?;
                let gone = || Failure::new(Code::IoError, "The extracted text is gone").permanent();
                loaded.ok_or_else(gone)?.text
            }
        };
        if kind == Kind::Empty {
            return Err(Failure::new(Code::NoText, "There is no text in this file"));
        }
        let char_end = text.chars().count();
        let chunk = Chunk {
            text,
            page: None,
            heading: None,
            headings: Vec::new(),
            places: Vec::new(),
            char_start: 0,
            char_end,
            tokens: 8,
        };
        Ok(Output::Chunked(vec![chunk]))
    }

    async fn embed(&self, job: &Job) -> Result<Output, Failure> {
        let texts: Vec<String> = match job.carried.as_deref() {
            Some(Output::Chunked(chunks)) => chunks.iter().map(|chunk| chunk.text.clone()).collect(),
            _ => {
                let mut tx = self.db.read().await.map_err(db_error)?;
                let chunks = chunks::load(&mut tx, job.file.id, -1, i64::MAX).await.map_err(db_error)?;
                chunks.into_iter().map(|chunk| chunk.text).collect()
            }
        };
        self.is_down(Service::Embeddings)?;
        let vectors = texts.iter().map(|text| vector(text)).collect();
        Ok(Output::Embedded(Embedded { model: format!("{MODEL}/{DIMENSIONS}"), vectors }))
    }
}

fn db_error(error: Error) -> Failure {
    let failure = Failure::new(Code::DbError, "The database could not be read");
    if error.database_is_away() { failure.at_no_cost() } else { failure }
}

impl Work for Stages {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        async move {
            let outcome = self.work(job).await.map_err(|failure| excused(&self.blobs, failure));
            self.life.shared.tell(|| {
                let how = outcome.as_ref().map_or_else(|failure| failure.code.name(), |_| "done");
                let (process, stage) = (self.life.process, job.stage.name());
                format!("process {process} works on {}: {stage} {how}", job.file.file_name)
            });
            outcome
        }
        .boxed()
    }
}
