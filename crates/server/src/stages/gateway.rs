//! Lets a service of the operator's get the text out of documents, in place of what is built in.
//!
//! It gets the document and answers with a text, a page or a structure, which is kept as the file's result.

use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use reqwest::header::CONTENT_TYPE;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Response, StatusCode};
use tracing::{Instrument, Span};

use crate::content::artifacts::Converted;
use crate::outbound::response;
use crate::records::file::File;
use crate::telemetry::{spans, traces};
use landfall_core::failure::{Code, Failure};

/// The longest part of a refusal that is shown to a person.
const LONGEST_REASON: usize = 300;
/// What a gateway may answer with, and the name that makes the built-in readers take it for what it is.
const ANSWERS: &[(&str, &str)] = &[
    ("text/plain", "result.txt"),
    ("text/markdown", "result.md"),
    ("text/html", "result.html"),
    ("application/xml", "result.xml"),
    ("text/xml", "result.xml"),
];

#[derive(Clone)]
pub struct GatewayConfig {
    pub url: String,
    pub timeout: Duration,
}

impl std::fmt::Debug for GatewayConfig {
    /// Without the address, which may hold a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayConfig").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

#[derive(Clone)]
pub struct Gateway {
    client: reqwest::Client,
    url: String,
    timeout: Duration,
    most_bytes: usize,
}

impl Gateway {
    /// `most_bytes` bounds what it may answer.
    pub fn new(url: String, timeout: Duration, most_bytes: usize) -> Self {
        Self { client: crate::outbound::client_without_redirects(), url, timeout, most_bytes }
    }

    /// Sends a document. Dropping the future drops the request.
    pub async fn convert(
        &self,
        file: &File,
        mapping: Option<&serde_json::Value>,
        document: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    ) -> Result<Converted, Failure> {
        let part = Part::stream_with_length(
            Body::wrap_stream(document),
            u64::try_from(file.size_bytes).unwrap_or_default(),
        )
        .file_name(file.file_name.clone());
        let part = match &file.content_type {
            Some(content_type) => part.mime_str(content_type).map_err(|_| {
                Failure::new(Code::Gateway4xx, "The content type of this file cannot be sent to the gateway")
            })?,
            None => part,
        };
        let mut form = Form::new().part("file", part);
        if let Some(mapping) = mapping {
            form = form.text("mapping", mapping.to_string());
        }
        let span = spans::ask_gateway();
        self.ask(file, form).instrument(span).await
    }

    async fn ask(&self, file: &File, form: Form) -> Result<Converted, Failure> {
        let answer = self
            .client
            .post(&self.url)
            .headers(traces::headers())
            .header("idempotency-key", format!("{}-{}", file.id, file.attempt))
            .timeout(self.timeout)
            .multipart(form)
            .send()
            .await
            .map_err(unreachable)?;
        spans::answered(&Span::current(), answer.status().as_u16());
        if !answer.status().is_success() {
            return Err(refused(answer).await);
        }
        self.read(answer).await
    }

    async fn read(&self, answer: Response) -> Result<Converted, Failure> {
        let content_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let Some((_, name)) = ANSWERS.iter().find(|(known, _)| *known == kind) else {
            let kind = if kind.is_empty() { "no content type" } else { &kind };
            return Err(Failure::new(
                Code::Gateway4xx,
                format!("The extraction service answered with {kind} instead of text, Markdown, HTML or XML"),
            ));
        };
        let (body, all) = response::read(answer, self.most_bytes).await.map_err(unreachable)?;
        if !all {
            let message = "The extraction service answered with far too much text";
            return Err(Failure::new(Code::ValidationError, message));
        }
        Ok(Converted { name, content_type, body: body.into() })
    }
}

async fn refused(answer: Response) -> Failure {
    let status = answer.status();
    let retry_after = response::retry_after(&answer);
    let (code, what) = match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => (Code::GatewayTimeout, "took too long"),
        StatusCode::TOO_MANY_REQUESTS => (Code::GatewayUnavailable, "is busy"),
        StatusCode::SERVICE_UNAVAILABLE => (Code::GatewayUnavailable, "is not available"),
        status if status.is_client_error() => (Code::Gateway4xx, "refused this file"),
        // A document goes nowhere but where it was sent.
        status if status.is_redirection() => (Code::Gateway4xx, "is not where EXTRACT_GATEWAY_URL says"),
        _ => (Code::Gateway5xx, "failed"),
    };
    let reason = if code == Code::Gateway4xx { reason(answer).await } else { String::new() };
    Failure { retry_after, ..Failure::new(code, format!("The extraction service {what} ({status}){reason}")) }
}

/// What the gateway says about it, cut short: its owner may know what it means.
async fn reason(answer: Response) -> String {
    const MOST: usize = 64 * 1024;
    // A body that breaks off says nothing; the status says enough.
    let (body, _) = response::read(answer, MOST).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text: String = words.join(" ").chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect();
    if text.is_empty() { text } else { format!(": {text}") }
}

fn unreachable(error: reqwest::Error) -> Failure {
    // Without the address, which may hold a key.
    let error = error.without_url();
    tracing::warn!(%error, "the extraction service failed a stage");
    if error.is_timeout() {
        Failure::new(Code::GatewayTimeout, "The extraction service took too long; will retry automatically")
    } else {
        Failure::new(
            Code::GatewayUnavailable,
            "The extraction service cannot be reached; will retry automatically",
        )
    }
}
