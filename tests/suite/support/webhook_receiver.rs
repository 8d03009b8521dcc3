//! An endpoint for webhooks: a real HTTP server, scripted by the test, that records its calls.

use std::ops::Deref;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::script::Gate;
use super::scripted_service::{self, ScriptedService};

/// A request that it received.
#[derive(Debug, Clone)]
pub struct Call {
    pub id: String,
    pub timestamp: i64,
    pub signature: String,
    pub body: String,
}

impl Call {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// Whether one of its signatures was made with this secret.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length");
        mac.update(format!("{}.{}.{}", self.id, self.timestamp, self.body).as_bytes());
        let expected = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
        self.signature.split(' ').any(|signature| signature == expected)
    }
}

#[derive(Clone)]
pub enum Reply {
    Status(u16),
    Says(u16, &'static str),
    RetryAfter(u16, &'static str),
    Redirect(String),
    /// A body without an end.
    Endless,
    Never,
    /// Waits at the gate, and then accepts.
    Block(Gate),
}

#[derive(Clone)]
pub struct Receiver {
    pub url: String,
    script: ScriptedService<Reply, Call>,
}

impl Deref for Receiver {
    type Target = ScriptedService<Reply, Call>;

    fn deref(&self) -> &Self::Target {
        &self.script
    }
}

async fn receive(
    State(script): State<ScriptedService<Reply, Call>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let header_of = |name: &str| headers[name].to_str().expect("text").to_owned();
    assert_eq!(header_of("content-type"), "application/json");
    let call = Call {
        id: header_of("webhook-id"),
        timestamp: header_of("webhook-timestamp").parse().expect("seconds"),
        signature: header_of("webhook-signature"),
        body: String::from_utf8(body.to_vec()).expect("text"),
    };
    let _open = script.record(call);
    let code = |status| StatusCode::from_u16(status).expect("a status");
    match script.reply() {
        Reply::Status(status) => code(status).into_response(),
        Reply::Says(status, text) => (code(status), text).into_response(),
        Reply::RetryAfter(status, wait) => (code(status), [(header::RETRY_AFTER, wait)]).into_response(),
        Reply::Redirect(to) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response(),
        Reply::Endless => {
            let piece = || Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 512]));
            Body::from_stream(futures_util::stream::repeat_with(piece)).into_response()
        }
        Reply::Never => std::future::pending().await,
        Reply::Block(gate) => {
            gate.wait().await;
            StatusCode::OK.into_response()
        }
    }
}

impl Receiver {
    /// Gives these replies one after the other, and accepts all calls after that.
    pub async fn serve(replies: impl IntoIterator<Item = Reply>) -> Self {
        let script = ScriptedService::default();
        for reply in replies {
            script.then(reply);
        }
        script.otherwise(Reply::Status(200));
        let router = Router::new().route("/hook", post(receive)).with_state(script.clone());
        Self { url: format!("{}/hook", scripted_service::serve(router).await), script }
    }

    /// Waits for so many calls, and returns them.
    pub async fn wait_for_calls(&self, count: usize) -> Vec<Call> {
        super::until(&format!("{count} calls"), async || self.calls().len() >= count).await;
        self.calls()
    }
}
