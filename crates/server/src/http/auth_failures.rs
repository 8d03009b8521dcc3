//! Wrong tokens and tickets: counted, limited for each client address, and named in the log.
//!
//! A credential is checked first, and only a wrong one is counted. So an attacker behind the same address as others locks
//! none of them out: a valid token is accepted at any time. The limit does not make a token harder to guess, which is
//! impossible anyway; it makes attempts cheap to refuse and visible.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::client_address::ClientAddress;
use super::error::ApiError;
use super::per_minute::PerMinute;
use crate::telemetry::metrics as counted;
use crate::telemetry::occasional::Occasional;
use landfall_core::clock::Clock;
use landfall_core::refusal::{Refusal, RefusalCode};

#[derive(Clone)]
pub struct AuthFailures {
    clock: Clock,
    wrong: PerMinute,
    lines: Arc<Occasional>,
}

impl AuthFailures {
    pub fn new(clock: Clock, limit: u32) -> Self {
        Self { wrong: PerMinute::new(clock.clone(), limit), clock, lines: Arc::default() }
    }
}

/// Counts the responses that refuse a credential, and replaces those that are too many for their address.
pub async fn limit(State(failures): State<AuthFailures>, request: Request, next: Next) -> Response {
    let address = request.extensions().get::<ClientAddress>().copied();
    let response = next.run(request).await;
    let Some(code) = response.extensions().get::<RefusalCode>().copied().filter(|code| code.status() == 401)
    else {
        return response;
    };
    counted::authentication_failed(code);
    // An expired credential was a valid one, and a request without any is no attempt.
    let is_wrong =
        matches!(code, RefusalCode::InvalidToken | RefusalCode::InvalidTicket | RefusalCode::InvalidLink);
    let (Some(ClientAddress(address)), true) = (address, is_wrong) else { return response };
    let Some(left) = failures.wrong.count(address) else { return response };
    if let Some(count) = failures.lines.count(failures.clock.now()) {
        tracing::warn!(%address, count, "an address sends wrong tokens, more than AUTH_FAILURES_PER_MINUTE");
    }
    let message = "Too many wrong tokens came from this address. A valid one is accepted at any time";
    let mut refused = ApiError(Refusal::new(RefusalCode::TooManyAuthFailures, message)).into_response();
    let seconds = left.num_seconds().max(0) + 1;
    refused.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    refused
}
