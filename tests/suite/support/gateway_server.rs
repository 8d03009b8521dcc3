//! An operator's own extraction service: a real HTTP server that does what the test says.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use landfall::config::{Config, Variables};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What came in.
#[derive(Clone)]
pub struct Call {
    pub key: String,
    pub body: String,
    pub traceparent: Option<String>,
}

#[derive(Clone)]
pub enum Reply {
    Answer(u16, &'static str, &'static str),
    RetryAfter(&'static str),
    Redirect(String),
    Never,
}

#[derive(Clone, Default)]
pub struct GatewayServer {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    otherwise: Arc<Mutex<Option<Reply>>>,
    /// What it answers to a document with this in it.
    to_one_with: Arc<Mutex<Option<(&'static str, Reply)>>>,
    calls: Arc<Mutex<Vec<Call>>>,
    /// How many requests are being answered.
    pub open: watch::Sender<usize>,
}

struct Open(watch::Sender<usize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

async fn convert(State(script): State<GatewayServer>, headers: HeaderMap, body: Bytes) -> Response {
    script.open.send_modify(|open| *open += 1);
    let _open = Open(script.open.clone());
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    let body = String::from_utf8_lossy(&body).into_owned();
    let is_bad = |part: &str| body.contains(part);
    let bad = script.to_one_with.lock().unwrap().clone().filter(|(part, _)| is_bad(part));
    let traceparent = headers.get("traceparent").map(|value| value.to_str().unwrap().to_owned());
    script.calls.lock().unwrap().push(Call { key, body, traceparent });
    let reply = script.replies.lock().unwrap().pop_front();
    let reply = reply.or(bad.map(|(_, reply)| reply)).or_else(|| script.otherwise.lock().unwrap().clone());
    let reply = reply.expect("the test said what to answer");
    match reply {
        Reply::Answer(status, kind, body) => {
            (StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, kind)], body).into_response()
        }
        Reply::RetryAfter(seconds) => {
            (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, seconds)]).into_response()
        }
        Reply::Redirect(to) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response(),
        Reply::Never => std::future::pending().await,
    }
}

impl GatewayServer {
    /// Answers so, one call after the other.
    pub async fn serve(replies: impl IntoIterator<Item = Reply>) -> (Self, String) {
        let script = Self::default();
        script.replies.lock().unwrap().extend(replies);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/convert", listener.local_addr().unwrap());
        let router = Router::new().route("/convert", post(convert)).with_state(script.clone());
        tokio::spawn(async move {
            let settings = Config::from_variables(Variables::default()).expect("the defaults are good").http;
            landfall::http::serve(listener, router, &settings, CancellationToken::new()).await;
        });
        (script, url)
    }

    /// What it answers to every document with this in it.
    pub fn to_one_with(&self, part: &'static str, reply: Reply) {
        *self.to_one_with.lock().unwrap() = Some((part, reply));
    }

    /// What it answers when nothing else is said.
    pub fn otherwise(&self, reply: Reply) {
        *self.otherwise.lock().unwrap() = Some(reply);
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }
}
