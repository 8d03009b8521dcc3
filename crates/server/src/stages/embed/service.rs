//! A model behind a service that speaks OpenAI's embeddings API, as many others do.
//!
//! What comes back is believed only as far as it can be checked: a vector for each text, in the order of their
//! indexes, all finite, in a body that is not longer than they need.

use reqwest::header::HeaderValue;
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tracing::{Instrument, Span};

use super::ServiceConfig;
use crate::outbound::response;
use crate::telemetry::{spans, traces};
use landfall_core::failure::{Code, Failure};
use landfall_models::of_length_one;

/// More dimensions than any model has that people embed documents with.
pub const MOST_DIMENSIONS: usize = 8_192;
/// The longest that a number of a vector is written, with what stands between two.
const BYTES_OF_A_NUMBER: usize = 32;
/// What else may be in an answer.
const BYTES_BESIDE: usize = 64 * 1024;
/// What is read of an answer that says no, and what is quoted of it.
const BYTES_OF_A_REFUSAL: usize = 16 * 1024;
const LONGEST_QUOTE: usize = 300;

pub struct Service {
    config: ServiceConfig,
    client: reqwest::Client,
    authorization: Option<HeaderValue>,
}

#[derive(Deserialize)]
struct Answer {
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
            // Whoever prints headers does not print this one.
            value.set_sensitive(true);
            Some(value)
        });
        Self { config: config.clone(), client: crate::outbound::client_without_redirects(), authorization }
    }

    /// Texts to a request.
    pub fn batch(&self) -> usize {
        self.config.batch
    }

    /// A vector of length one for each text, in their order.
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
        spans::answered(&Span::current(), response.status().as_u16());
        if response.status() != StatusCode::OK {
            return Err(self.refused(response).await);
        }
        let most = texts.len() * self.config.dimensions.unwrap_or(MOST_DIMENSIONS) * BYTES_OF_A_NUMBER
            + BYTES_BESIDE;
        let (bytes, all) = response::read(response, most).await.map_err(|error| self.unreachable(error))?;
        if !all {
            return Err(wrong("its answer is far longer than the vectors that it was asked for"));
        }
        self.check(texts.len(), &bytes)
    }

    fn check(&self, expected: usize, bytes: &[u8]) -> Result<Vec<Vec<f32>>, Failure> {
        let answer: Answer = serde_json::from_slice(bytes)
            .map_err(|error| wrong(&format!("its answer is not what an embeddings API answers ({error})")))?;
        let count = answer.data.len();
        if count != expected {
            return Err(wrong(&format!("it answered {count} vectors for {expected} texts")));
        }
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; expected];
        for item in answer.data {
            let length = item.embedding.len();
            let wanted = self.config.dimensions.unwrap_or(length);
            if length != wanted || !(1..=MOST_DIMENSIONS).contains(&length) {
                return Err(wrong(&format!(
                    "it answered a vector of {length} dimensions in place of {wanted}"
                )));
            }
            let place = vectors.get_mut(item.index).filter(|place| place.is_none()).ok_or_else(|| {
                wrong(&format!("it answered index {} twice or beyond the last", item.index))
            })?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "what does not fit becomes infinite and is refused"
            )]
            let vector = item.embedding.into_iter().map(|value| value as f32).collect();
            let vector = of_length_one(vector)
                .ok_or_else(|| wrong("it answered a vector that is zero or has a number that is none"))?;
            *place = Some(vector);
        }
        // As many as places, each place at most once: all are filled.
        Ok(vectors.into_iter().flatten().collect())
    }

    /// What an answer that is not a good one means for the file.
    async fn refused(&self, response: Response) -> Failure {
        let status = response.status();
        let retry_after = response::retry_after(&response);
        // A body that breaks off says nothing; the status says enough.
        let (body, _) = response::read(response, BYTES_OF_A_REFUSAL).await.unwrap_or_default();
        let said = self.quote(&body);
        let separator = if said.is_empty() { "" } else { ": " };
        let failure = Failure::new(
            Code::EmbedError,
            format!("The embedding service answered {status}{separator}{said}"),
        );
        let passes = status.is_server_error()
            || matches!(
                status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
            );
        // The same request would be refused again: its key, its model or its text must change first.
        if passes { Failure { retry_after, ..failure } } else { failure.for_good() }
    }

    /// What a service says of its refusal, in a few words and without our key: some repeat it.
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
        if said.len() > LONGEST_QUOTE {
            said.truncate(said.floor_char_boundary(LONGEST_QUOTE));
            said.push('…');
        }
        said.trim().to_owned()
    }

    fn unreachable(&self, error: reqwest::Error) -> Failure {
        let message = if error.is_timeout() {
            format!("The embedding service did not answer within {} s", self.config.timeout.as_secs_f64())
        } else if error.is_connect() {
            "The embedding service cannot be reached".to_owned()
        } else {
            "The connection to the embedding service broke".to_owned()
        };
        // Its address may have a secret in it.
        let error = error.without_url();
        tracing::warn!(error = &error as &dyn std::error::Error, "the embedding service failed");
        Failure::new(Code::EmbedError, message)
    }
}

fn wrong(what: &str) -> Failure {
    Failure::new(Code::EmbedError, format!("The embedding service failed: {what}"))
}
