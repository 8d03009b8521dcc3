//! The spans of the log and the traces, with their names and fields, in one place.
//!
//! A field has the same name as in the API. Fields that begin with `otel.` are only for the traces.

use axum::http::{HeaderMap, Method};
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::traces::{self, TracedFile};
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage;

/// A request. `path` is the route and not the address, which may contain a signature.
pub fn request(id: &str, method: &Method, path: &str, headers: &HeaderMap) -> Span {
    let span = info_span!(
        "request", otel.name = format!("{method} {path}"), otel.kind = "server", otel.status_code = Empty,
        requestId = id, %method, path, status = Empty,
    );
    traces::continue_from(headers, &span);
    span
}

/// The status of a response, ours or that of a service that we called.
pub fn responded(span: &Span, status: u16) {
    span.record("status", status);
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
}

/// What a request does to a file that it has found.
pub fn in_request(name: &'static str, file: &TracedFile<'_>) -> Span {
    let span = info_span!(
        "file", otel.name = name, fileId = %file.id, batchId = file.batch.map(tracing::field::display),
    );
    traces::follow_in_request(file, &span);
    span
}

/// One attempt at a stage, from when a worker has the file until its outcome is written.
pub fn attempt(file: &TracedFile<'_>, stage: Stage, worker: &str) -> Span {
    let span = info_span!(
        parent: None, "stage", otel.name = stage.name(), otel.kind = "consumer", otel.status_code = Empty,
        fileId = %file.id, batchId = file.batch.map(tracing::field::display), stage = stage.name(), attempt = file.attempt, worker,
        outcome = Empty, errorCode = Empty,
    );
    traces::follow(file, &span);
    span
}

pub fn ended(span: &Span, outcome: &str, code: Option<Code>) {
    span.record("outcome", outcome);
    if let Some(code) = code {
        span.record("errorCode", code.name());
        span.record("otel.status_code", "ERROR");
    }
}

/// The wait for the commit that writes the outcome, together with others.
pub fn settle() -> Span {
    info_span!("settle")
}

/// A document in the process that reads it.
pub fn read_document() -> Span {
    info_span!("read document")
}

pub fn recognise_pictures(pictures: usize) -> Span {
    info_span!("recognise pictures", pictures)
}

pub fn ask_gateway() -> Span {
    info_span!("ask the extraction service", otel.kind = "client", otel.status_code = Empty, status = Empty)
}

pub fn ask_embeddings(texts: usize) -> Span {
    info_span!(
        "ask the embedding service",
        otel.kind = "client",
        otel.status_code = Empty,
        texts,
        status = Empty,
    )
}
