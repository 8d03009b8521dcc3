//! A real embedding service on its own port, scripted by the test.
//!
//! The vector of a text counts its words, so texts with the same words are near one another; it knows synonyms of a
//! few words, so that a text can be found by meaning alone.

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::script::Gate;
use super::scripted_service::{self, ScriptedService};

const SYNONYMS: &[(&str, &str)] = &[("feline", "cat"), ("vessel", "ship"), ("timepiece", "clock")];

#[derive(Clone)]
pub enum Reply {
    Good,
    /// The right vectors in reverse order.
    Backwards,
    /// This body instead of the vectors.
    Body(String),
    /// The right vectors, after this change to the response.
    Changed(fn(&mut Value)),
    Refusal(u16, Option<(&'static str, String)>),
    /// Refuses, and repeats the key of the caller.
    Echo(u16),
    Hang,
    Wait(Gate),
    Endless,
}

#[derive(Clone)]
pub struct EmbeddingServer {
    pub url: String,
    inner: Arc<Inner>,
}

struct Inner {
    dimensions: usize,
    script: ScriptedService<Reply, EmbedRequest>,
    hanging: Semaphore,
    dropped: Semaphore,
}

impl Deref for EmbeddingServer {
    type Target = ScriptedService<Reply, EmbedRequest>;

    fn deref(&self) -> &Self::Target {
        &self.inner.script
    }
}

#[derive(Clone, Debug)]
pub struct EmbedRequest {
    pub texts: Vec<String>,
    pub model: String,
    pub dimensions: Option<u64>,
    pub authorization: Option<String>,
    pub traceparent: Option<String>,
}

impl EmbeddingServer {
    pub async fn start(dimensions: usize) -> Self {
        let script = ScriptedService::default();
        script.otherwise(Reply::Good);
        let inner =
            Arc::new(Inner { dimensions, script, hanging: Semaphore::new(0), dropped: Semaphore::new(0) });
        let router = Router::new().route("/v1/embeddings", post(answer)).with_state(inner.clone());
        Self { url: format!("{}/v1", scripted_service::serve(router).await), inner }
    }

    /// Resolves when a request hangs.
    pub async fn hanging(&self) {
        self.inner.hanging.acquire().await.expect("never closed").forget();
    }

    /// Resolves when the caller has dropped a hanging request.
    pub async fn dropped(&self) {
        self.inner.dropped.acquire().await.expect("never closed").forget();
    }
}

struct ReportDrop(Arc<Inner>);

impl Drop for ReportDrop {
    fn drop(&mut self) {
        self.0.dropped.add_permits(1);
    }
}

async fn answer(State(inner): State<Arc<Inner>>, headers: HeaderMap, body: String) -> Response {
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let texts: Vec<String> = serde_json::from_value(body["input"].clone()).expect("a list of texts");
    let authorization = headers.get("authorization").map(|value| value.to_str().expect("text").to_owned());
    let _open = inner.script.record(EmbedRequest {
        texts: texts.clone(),
        model: body["model"].as_str().expect("a name").to_owned(),
        dimensions: body["dimensions"].as_u64(),
        authorization: authorization.clone(),
        traceparent: headers.get("traceparent").map(|value| value.to_str().expect("text").to_owned()),
    });
    let mut good = vectors(&texts, inner.dimensions);
    match inner.script.reply() {
        Reply::Good => ok(good.to_string()),
        Reply::Backwards => {
            good["data"].as_array_mut().expect("a list").reverse();
            ok(good.to_string())
        }
        Reply::Changed(change) => {
            change(&mut good);
            ok(good.to_string())
        }
        Reply::Body(body) => ok(body),
        Reply::Refusal(status, header) => {
            let body = json!({ "error": { "message": "scripted refusal" } }).to_string();
            let mut response = Response::builder().status(status);
            if let Some((name, value)) = header {
                response = response.header(name, value);
            }
            response.body(Body::from(body)).expect("a response")
        }
        Reply::Echo(status) => {
            let said = format!("bad key: {}", authorization.unwrap_or_default());
            let body = json!({ "error": { "message": said } }).to_string();
            Response::builder().status(status).body(Body::from(body)).expect("a response")
        }
        Reply::Hang => {
            let _report_drop = ReportDrop(inner.clone());
            inner.hanging.add_permits(1);
            std::future::pending().await
        }
        Reply::Wait(gate) => {
            gate.wait().await;
            ok(good.to_string())
        }
        Reply::Endless => {
            let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 1 << 20]));
            Response::new(Body::from_stream(endless))
        }
    }
}

fn ok(body: String) -> Response {
    Response::builder().status(StatusCode::OK).body(Body::from(body)).expect("a response")
}

fn vectors(texts: &[String], dimensions: usize) -> Value {
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({ "object": "embedding", "index": index, "embedding": vector(text, dimensions) }))
        .collect();
    json!({ "object": "list", "data": data, "model": "tiny", "usage": { "total_tokens": 1 } })
}

fn vector(text: &str, dimensions: usize) -> Vec<f64> {
    // Not of length one, and never zero: some models are like that.
    let mut vector = vec![0.01; dimensions];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = SYNONYMS.iter().find(|(synonym, _)| *synonym == word).map_or(word, |(_, word)| word);
        let hash = word.bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        vector[hash % dimensions] += 1.0;
    }
    vector
}
