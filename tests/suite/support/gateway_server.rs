//! An operator's own extraction service: a real HTTP server, scripted by the test.

use std::ops::Deref;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::script::Gate;
use super::scripted_service::{self, ScriptedService};

/// A request that it received.
#[derive(Clone)]
pub struct Call {
    pub key: String,
    pub body: String,
    pub traceparent: Option<String>,
}

#[derive(Clone)]
pub enum Reply {
    ApiResponse(u16, &'static str, &'static str),
    RetryAfter(&'static str),
    Redirect(String),
    /// This status, as soon as the gate opens.
    Gated(Gate, u16),
    Never,
}

#[derive(Clone, Default)]
pub struct GatewayServer {
    script: ScriptedService<Reply, Call>,
    /// The reply to a document that contains this text.
    reply_to_text: Arc<Mutex<Option<(&'static str, Reply)>>>,
    /// The status with which it says how it is.
    pub says: Arc<AtomicU16>,
}

impl Deref for GatewayServer {
    type Target = ScriptedService<Reply, Call>;

    fn deref(&self) -> &Self::Target {
        &self.script
    }
}

async fn convert(State(gateway): State<GatewayServer>, headers: HeaderMap, body: Bytes) -> Response {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    let body = String::from_utf8_lossy(&body).into_owned();
    let is_bad = |part: &str| body.contains(part);
    let bad = gateway.reply_to_text.lock().unwrap().clone().filter(|(part, _)| is_bad(part));
    let traceparent = headers.get("traceparent").map(|value| value.to_str().unwrap().to_owned());
    let _open = gateway.record(Call { key, body, traceparent });
    let reply = match bad {
        Some((_, reply)) => gateway.next().unwrap_or(reply),
        None => gateway.reply(),
    };
    match reply {
        Reply::ApiResponse(status, kind, body) => {
            (StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, kind)], body).into_response()
        }
        Reply::RetryAfter(seconds) => {
            (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, seconds)]).into_response()
        }
        Reply::Redirect(to) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response(),
        Reply::Gated(gate, status) => {
            gate.wait().await;
            StatusCode::from_u16(status).unwrap().into_response()
        }
        Reply::Never => std::future::pending().await,
    }
}

async fn health(State(gateway): State<GatewayServer>) -> StatusCode {
    let says = gateway.says.load(Ordering::SeqCst);
    StatusCode::from_u16(says).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
}

impl GatewayServer {
    /// Gives these replies, one after the other.
    pub async fn serve(replies: impl IntoIterator<Item = Reply>) -> (Self, String) {
        let gateway = Self::default();
        for reply in replies {
            gateway.then(reply);
        }
        let router = Router::new()
            .route("/convert", post(convert))
            .route("/health", get(health))
            .with_state(gateway.clone());
        let url = format!("{}/convert", scripted_service::serve(router).await);
        (gateway, url)
    }

    /// Sets the reply to every document that contains this text.
    pub fn reply_to_text(&self, part: &'static str, reply: Reply) {
        *self.reply_to_text.lock().unwrap() = Some((part, reply));
    }
}
