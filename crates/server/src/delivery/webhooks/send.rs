//! One attempt to deliver: a signed request and its outcome.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use url::Url;
use uuid::Uuid;

use super::signature::{self, Secret};
use super::target::{TargetCheck, Unreachable};
use crate::outbound::response;
use landfall_core::clock::{Stopwatch, Time};

/// How many bytes of a response are read and kept.
const MAX_READ: usize = 1_024;

/// Takes the requests of webhooks in a simulation, which has no network. It answers the status, or what went wrong.
pub trait Receiver: Send + Sync {
    fn receive<'a>(&'a self, url: &'a str, id: Uuid, body: &'a str) -> BoxFuture<'a, Result<u16, String>>;
}

#[derive(Clone)]
pub struct Sender {
    http: reqwest::Client,
    /// In place of the network.
    receiver: Option<Arc<dyn Receiver>>,
    target: TargetCheck,
    timeout: Duration,
}

/// The request to send.
pub struct Message<'a> {
    pub id: Uuid,
    pub url: &'a str,
    pub secrets: &'a [Secret],
    pub body: &'a str,
}

/// The result of an attempt.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// `None` if there was no response.
    pub status: Option<StatusCode>,
    pub excerpt: Option<String>,
    /// A message for people, unless it succeeded.
    pub error: Option<String>,
    pub retry_after: Option<Duration>,
    pub duration: Duration,
}

impl Outcome {
    /// Of an attempt that got no response.
    pub(super) fn failed(error: String) -> Self {
        Self { status: None, excerpt: None, error: Some(error), retry_after: None, duration: Duration::ZERO }
    }

    pub fn is_good(&self) -> bool {
        self.status.is_some_and(|status| status.is_success())
    }

    /// Whether the endpoint asks to receive nothing more.
    pub fn is_gone(&self) -> bool {
        self.status == Some(StatusCode::GONE)
    }
}

impl Sender {
    pub fn new(target: TargetCheck, timeout: Duration) -> Self {
        let http = crate::outbound::client_for_user_urls(target.clone());
        Self { http, receiver: None, target, timeout }
    }

    #[must_use]
    pub fn to(self, receiver: Option<Arc<dyn Receiver>>) -> Self {
        Self { receiver, ..self }
    }

    /// Sends it once. `now` is the time in the signature.
    pub async fn send(&self, message: &Message<'_>, now: Time) -> Outcome {
        let watch = Stopwatch::start();
        if let Some(receiver) = &self.receiver {
            let answered =
                tokio::time::timeout(self.timeout, receiver.receive(message.url, message.id, message.body));
            let mut outcome = match answered.await {
                Ok(Ok(status)) => answer(StatusCode::from_u16(status).unwrap_or_default()),
                Ok(Err(error)) => Outcome::failed(error),
                Err(_) => Outcome::failed(self.too_late()),
            };
            outcome.duration = watch.elapsed();
            return outcome;
        }
        let mut outcome = match TargetCheck::parse(message.url) {
            Ok(url) => self.post(url, message, now).await,
            Err(refusal) => Outcome::failed(refusal.message),
        };
        outcome.duration = watch.elapsed();
        outcome
    }

    async fn post(&self, url: Url, message: &Message<'_>, now: Time) -> Outcome {
        if let Err(error) = self.target.check_number(&url) {
            return Outcome::failed(error.to_string());
        }
        let timestamp = now.timestamp();
        let signature = signature::header(message.secrets, message.id, timestamp, message.body);
        let request = self
            .http
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", message.id.to_string())
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", signature)
            .timeout(self.timeout)
            .body(message.body.to_owned());
        match request.send().await {
            Ok(response) => read(response).await,
            Err(error) => Outcome::failed(self.describe(&error)),
        }
    }

    fn too_late(&self) -> String {
        format!("there was no answer within {} ms", self.timeout.as_millis())
    }

    fn describe(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            return self.too_late();
        }
        // The last cause has the useful message; those before it repeat the address.
        let mut cause: &dyn std::error::Error = error;
        while let Some(next) = cause.source() {
            if let Some(unreachable) = next.downcast_ref::<Unreachable>() {
                return unreachable.to_string();
            }
            cause = next;
        }
        if error.is_connect() { format!("no connection: {cause}") } else { cause.to_string() }
    }
}

async fn read(response: reqwest::Response) -> Outcome {
    let status = response.status();
    let retry_after = (!status.is_success()).then(|| response::retry_after(&response)).flatten();
    // The status decides. A body that ends early does not matter.
    let body = response::read(response, MAX_READ).await.map(|(body, _)| body).unwrap_or_default();
    // PostgreSQL cannot store a NUL.
    let excerpt = String::from_utf8_lossy(&body).replace('\0', "\u{fffd}");
    Outcome { excerpt: (!excerpt.is_empty()).then_some(excerpt), retry_after, ..answer(status) }
}

/// The outcome of an answer with this status.
fn answer(status: StatusCode) -> Outcome {
    let error = if status.is_success() {
        None
    } else if status.is_redirection() {
        Some(format!("the endpoint answered {}: redirects are not followed", status.as_u16()))
    } else {
        Some(format!("the endpoint answered {}", status.as_u16()))
    };
    Outcome { status: Some(status), excerpt: None, error, retry_after: None, duration: Duration::ZERO }
}
