//! Lets a service of the operator extract the text of documents, instead of the built-in readers.
//!
//! It receives the document and responds with a text, a page or a structure, which is kept as the file's result.

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

/// The maximum length of the service's error message in ours.
const MAX_REASON_LENGTH: usize = 300;
/// How long the service may take to say that it is well.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);
/// The content types that a gateway may respond with, and a file name of that type for the built-in readers.
const RESPONSE_TYPES: &[(&str, &str)] = &[
    ("text/plain", "result.txt"),
    ("text/markdown", "result.md"),
    ("text/html", "result.html"),
    ("application/xml", "result.xml"),
    ("text/xml", "result.xml"),
];

const JSON: &str = "application/json";

#[derive(Clone)]
pub struct GatewayConfig {
    pub url: String,
    /// Where the service says whether it is well.
    pub health_url: Option<String>,
    pub timeout: Duration,
}

impl std::fmt::Debug for GatewayConfig {
    /// Without the address, which may contain a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayConfig").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

#[derive(Clone)]
pub struct Gateway {
    client: reqwest::Client,
    url: String,
    health_url: Option<String>,
    timeout: Duration,
    max_bytes: usize,
}

impl Gateway {
    /// `max_bytes` limits the size of a response.
    pub fn new(config: GatewayConfig, max_bytes: usize) -> Self {
        let GatewayConfig { url, health_url, timeout } = config;
        Self { client: crate::outbound::client_without_redirects(), url, health_url, timeout, max_bytes }
    }

    /// Whether the service says that it is well; `None` if it cannot be asked.
    pub async fn says_well(&self) -> Option<bool> {
        let url = self.health_url.as_ref()?;
        let response = self.client.get(url).timeout(HEALTH_TIMEOUT).send().await;
        Some(response.is_ok_and(|response| response.status().is_success()))
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
        let part = match file.content_type.as_deref().and_then(sendable) {
            Some(content_type) => part.mime_str(content_type).expect("it was tried"),
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
        let response = self
            .client
            .post(&self.url)
            .headers(traces::headers())
            .header("idempotency-key", idempotency_key(file))
            .timeout(self.timeout)
            .multipart(form)
            .send()
            .await
            .map_err(unreachable)?;
        spans::responded(&Span::current(), response.status().as_u16());
        if !response.status().is_success() {
            return Err(refused(response).await);
        }
        self.read(response).await
    }

    async fn read(&self, response: Response) -> Result<Converted, Failure> {
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let known = RESPONSE_TYPES.iter().find(|(known, _)| *known == kind);
        if known.is_none() && kind != JSON {
            let kind = if kind.is_empty() { "no content type" } else { &kind };
            return Err(Failure::new(
                Code::Gateway4xx,
                format!(
                    "The extraction service returned {kind} instead of text, Markdown, HTML, XML or JSON"
                ),
            ));
        }
        let (body, all) = response::read(response, self.max_bytes).await.map_err(unreachable)?;
        if !all {
            let message = "The extraction service returned a response above the size limit";
            return Err(Failure::new(Code::ValidationError, message));
        }
        match known {
            Some((_, name)) => Ok(Converted { name, content_type, body: body.into() }),
            None => from_json(&body),
        }
    }
}

/// A content type that a request can have: that of the file, or without the parameters if they are malformed. If
/// neither can be sent, the document is sent without one, so that it does not fail for it.
fn sendable(content_type: &str) -> Option<&str> {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    [content_type, essence].into_iter().find(|kind| Part::text("").mime_str(kind).is_ok())
}

/// The document in an answer that is JSON: `{"markdown": "…"}` or `{"text": "…"}`, whatever else it has.
fn from_json(body: &[u8]) -> Result<Converted, Failure> {
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let kinds = [("markdown", "result.md", "text/markdown"), ("text", "result.txt", "text/plain")];
    let found = kinds.into_iter().find_map(|(field, name, kind)| Some((json[field].as_str()?, name, kind)));
    let Some((text, name, kind)) = found else {
        let message = "The extraction service returned JSON without a text in its field markdown or text";
        return Err(Failure::new(Code::Gateway4xx, message));
    };
    let content_type = format!("{kind}; charset=utf-8");
    Ok(Converted { name, content_type, body: text.to_owned().into_bytes().into() })
}

/// The same for each call of one attempt. After a retry by a person and after a wait for the service the attempts are
/// counted again, and a service that keeps its responses by their key must not repeat an old one.
fn idempotency_key(file: &File) -> String {
    match file.generation {
        0 => format!("{}-{}", file.id, file.attempt),
        generation => format!("{}-{generation}.{}", file.id, file.attempt),
    }
}

async fn refused(response: Response) -> Failure {
    let status = response.status();
    let retry_after = response::retry_after(&response);
    let (code, what) = match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => (Code::GatewayTimeout, "took too long"),
        StatusCode::TOO_MANY_REQUESTS => (Code::GatewayUnavailable, "is busy"),
        StatusCode::SERVICE_UNAVAILABLE => (Code::GatewayUnavailable, "is not available"),
        status if status.is_client_error() => (Code::Gateway4xx, "refused this file"),
        // A document is never sent on to another address.
        status if status.is_redirection() => (
            Code::Gateway4xx,
            "is not where EXTRACT_GATEWAY_URL says. The operator must correct that setting",
        ),
        _ => (Code::Gateway5xx, "failed"),
    };
    let reason = if code == Code::Gateway4xx { reason(response).await } else { String::new() };
    let failure = Failure::new(code, format!("The extraction service {what} ({status}){reason}"));
    let failure = Failure { retry_after, ..failure };
    if code == Code::GatewayUnavailable { failure.unavailable() } else { failure }
}

/// The error message of the gateway, shortened: the operator may know what it means.
async fn reason(response: Response) -> String {
    const MAX_BYTES: usize = 64 * 1024;
    // A body that ends early is ignored; the status is enough.
    let (body, _) = response::read(response, MAX_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let said = said_in(&json).unwrap_or(&text);
    let words: Vec<&str> = said.split_whitespace().collect();
    let is_of_a_sentence = |c: &char| !c.is_control() && !matches!(c, '{' | '}' | '[' | ']');
    let text: String = words.join(" ").chars().filter(is_of_a_sentence).take(MAX_REASON_LENGTH).collect();
    if text.is_empty() { text } else { format!(": {}", text.trim_end_matches('.')) }
}

/// The message in an error that is JSON, where the usual frameworks have it.
fn said_in(json: &serde_json::Value) -> Option<&str> {
    let error = &json["error"];
    [&error["message"], error, &json["message"], &json["detail"], &json["title"]]
        .into_iter()
        .find_map(|it| it.as_str())
}

fn unreachable(error: reqwest::Error) -> Failure {
    // Without the address, which may contain a key.
    let error = error.without_url();
    tracing::warn!(%error, "a stage failed because of the extraction service");
    if error.is_connect() {
        Failure::new(Code::GatewayUnavailable, "The extraction service cannot be reached").not_reached()
    } else if error.is_timeout() {
        Failure::new(Code::GatewayTimeout, "The extraction service took too long")
    } else {
        Failure::new(Code::GatewayUnavailable, "The extraction service cannot be reached")
    }
}
