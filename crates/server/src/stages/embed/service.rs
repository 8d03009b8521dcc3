//! A model behind a service with OpenAI's embeddings API, which many services have.
//!
//! A response is checked: one vector for each text, in the order of their indexes, all numbers finite, in a body of
//! limited size.

use reqwest::header::HeaderValue;
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tracing::{Instrument, Span};

use super::ServiceConfig;
use crate::outbound::response;
use crate::telemetry::{spans, traces};
use landfall_core::failure::{Code, Failure};
use landfall_models::normalized;

/// More dimensions than any common embedding model has.
pub const MAX_DIMENSIONS: usize = 8_192;
/// The maximum length of a number in JSON, with its separator.
const BYTES_PER_NUMBER: usize = 32;
/// Space for everything else in a response.
const EXTRA_BYTES: usize = 64 * 1024;
/// How much of an error response is read, and how much of it is quoted.
const MAX_ERROR_BYTES: usize = 16 * 1024;
const MAX_QUOTE_LENGTH: usize = 300;

pub struct Service {
    config: ServiceConfig,
    client: reqwest::Client,
    authorization: Option<HeaderValue>,
}

#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f64>,
}

impl Service {
    pub fn new(config: &ServiceConfig) -> Self {
        let authorization = config.api_key.as_ref().and_then(|key| {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}")).ok()?;
            // Debug output of headers hides this value.
            value.set_sensitive(true);
            Some(value)
        });
        Self { config: config.clone(), client: crate::outbound::client_without_redirects(), authorization }
    }

    /// Texts in one request.
    pub fn batch(&self) -> usize {
        self.config.batch
    }

    /// A normalized vector for each text, in their order.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        self.ask(texts).instrument(spans::ask_embeddings(texts.len())).await
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let mut body = json!({ "model": self.config.model, "input": texts });
        if let Some(dimensions) = self.config.dimensions {
            body["dimensions"] = dimensions.into();
        }
        let mut request =
            self.client.post(self.config.endpoint.clone()).timeout(self.config.timeout).json(&body);
        request = request.headers(traces::headers());
        if let Some(authorization) = &self.authorization {
            request = request.header(reqwest::header::AUTHORIZATION, authorization);
        }
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        spans::responded(&Span::current(), response.status().as_u16());
        if response.status() != StatusCode::OK {
            return Err(self.refused(response).await);
        }
        let max_bytes =
            texts.len() * self.config.dimensions.unwrap_or(MAX_DIMENSIONS) * BYTES_PER_NUMBER + EXTRA_BYTES;
        let (bytes, all) =
            response::read(response, max_bytes).await.map_err(|error| self.unreachable(error))?;
        if !all {
            return Err(wrong("its response is far longer than the requested vectors"));
        }
        self.check(texts.len(), &bytes)
    }

    fn check(&self, expected: usize, bytes: &[u8]) -> Result<Vec<Vec<f32>>, Failure> {
        let response: EmbeddingsResponse = serde_json::from_slice(bytes)
            .map_err(|error| wrong(&format!("its response is not that of an embeddings API ({error})")))?;
        let count = response.data.len();
        if count != expected {
            return Err(wrong(&format!("it returned {count} vectors for {expected} texts")));
        }
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; expected];
        for item in response.data {
            let length = item.embedding.len();
            let wanted = self.config.dimensions.unwrap_or(length);
            if length != wanted || !(1..=MAX_DIMENSIONS).contains(&length) {
                return Err(wrong(&format!(
                    "it returned a vector of {length} dimensions in place of {wanted}"
                )));
            }
            let place = vectors.get_mut(item.index).filter(|place| place.is_none()).ok_or_else(|| {
                wrong(&format!("it returned index {} twice or beyond the last", item.index))
            })?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "what does not fit becomes infinite and is rejected"
            )]
            let vector = item.embedding.into_iter().map(|value| value as f32).collect();
            let vector = normalized(vector)
                .ok_or_else(|| wrong("it returned a vector that is zero or has an invalid number"))?;
            *place = Some(vector);
        }
        // There are as many items as texts, and each index occurs at most once: all are filled.
        Ok(vectors.into_iter().flatten().collect())
    }

    /// The failure for an error response.
    async fn refused(&self, response: Response) -> Failure {
        let status = response.status();
        let retry_after = response::retry_after(&response);
        // A body that ends early is ignored; the status is enough.
        let (body, _) = response::read(response, MAX_ERROR_BYTES).await.unwrap_or_default();
        let said = self.quote(&body);
        let separator = if said.is_empty() { "" } else { ": " };
        let failure = Failure::new(
            Code::EmbedError,
            format!("The embedding service returned {status}{separator}{said}"),
        );
        let passes = status.is_server_error()
            || matches!(
                status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
            );
        let failure = Failure { retry_after, ..failure };
        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => failure.unavailable(),
            _ if passes => failure,
            // The same request would fail again: its key, its model or its text must change first.
            _ => failure.permanent(),
        }
    }

    /// The error message of the service, shortened and without our key, which some services repeat.
    fn quote(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let error = &parsed["error"];
        let said = error["message"].as_str().or(error.as_str()).unwrap_or(&text);
        let mut said = match &self.config.api_key {
            Some(key) => said.replace(key.as_str(), "***"),
            None => said.to_owned(),
        };
        said.retain(|c| !c.is_control());
        if said.len() > MAX_QUOTE_LENGTH {
            said.truncate(said.floor_char_boundary(MAX_QUOTE_LENGTH));
            said.push('…');
        }
        said.trim().to_owned()
    }

    fn unreachable(&self, error: reqwest::Error) -> Failure {
        let (connected, timed_out) = (!error.is_connect(), error.is_timeout());
        let message = if !connected {
            "The embedding service cannot be reached".to_owned()
        } else if timed_out {
            format!("The embedding service did not respond within {} s", self.config.timeout.as_secs_f64())
        } else {
            "The connection to the embedding service broke".to_owned()
        };
        // The address may contain a secret.
        let error = error.without_url();
        tracing::warn!(error = &error as &dyn std::error::Error, "the embedding service failed");
        let failure = Failure::new(Code::EmbedError, message);
        if connected { failure } else { failure.not_reached() }
    }
}

fn wrong(what: &str) -> Failure {
    Failure::new(Code::EmbedError, format!("The embedding service failed: {what}"))
}
