//! A server between a client and Landfall that passes everything on. It counts bytes, holds them up, loses requests and
//! changes responses, as a test wants it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use serde_json::Value;
use tokio::sync::watch;

use super::scripted_service;

/// A request that came through.
#[derive(Debug, Clone)]
pub struct Passed {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
}

/// Replaces a response, or lets the request through.
type Answer = dyn Fn(&Passed) -> Option<Response> + Send + Sync;
/// Changes the JSON of a response.
type Rewrite = dyn Fn(&Passed, &mut Value) + Send + Sync;

pub struct Relay {
    pub url: String,
    shared: Arc<Shared>,
}

struct Shared {
    http: reqwest::Client,
    upstream: Mutex<String>,
    /// The bytes of files that were passed on.
    bytes: AtomicU64,
    /// How many of them may pass.
    room: watch::Sender<u64>,
    /// The request that brings the number of bytes to this is cut off, once.
    cut: AtomicU64,
    /// How often all requests were cut off that were under way.
    generation: AtomicU64,
    /// Requests with bytes of files: now, and the most at once.
    sending: watch::Sender<usize>,
    peak: AtomicUsize,
    /// So many of them have to be there before the first is passed on.
    together: AtomicUsize,
    /// Requests that could not be passed on.
    failed: AtomicUsize,
    requests: Mutex<Vec<Passed>>,
    answer: Mutex<Option<Arc<Answer>>>,
    rewrite: Mutex<Option<Arc<Rewrite>>>,
}

impl Relay {
    pub async fn to(upstream: &str) -> Self {
        let shared = Arc::new(Shared {
            http: landfall_server::outbound::client_without_redirects(),
            upstream: Mutex::new(upstream.to_owned()),
            bytes: AtomicU64::new(0),
            cut: AtomicU64::new(u64::MAX),
            generation: AtomicU64::new(0),
            room: watch::Sender::new(u64::MAX),
            sending: watch::Sender::new(0),
            peak: AtomicUsize::new(0),
            together: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            requests: Mutex::default(),
            answer: Mutex::default(),
            rewrite: Mutex::default(),
        });
        let url = scripted_service::serve(Router::new().fallback(pass_on).with_state(shared.clone())).await;
        Self { url, shared }
    }

    /// The server is somewhere else now.
    pub fn redirect(&self, upstream: &str) {
        upstream.clone_into(&mut self.shared.upstream.lock().unwrap());
    }

    /// Passes on so many bytes of files in all, and holds up the rest.
    pub fn hold_after(&self, bytes: u64) {
        self.shared.room.send_replace(bytes);
    }

    pub fn release(&self) {
        self.hold_after(u64::MAX);
    }

    /// Cuts the connection to the server off after so many bytes of files in all, once.
    pub fn cut_after(&self, bytes: u64) {
        self.shared.cut.store(bytes, Ordering::SeqCst);
    }

    /// Cuts off the requests that are under way. Bytes of a client that was killed may still be on their way to here.
    pub fn cut_all(&self) {
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        self.shared.room.send_modify(|_| {});
    }

    /// Lets nothing through before so many requests with bytes are there.
    pub fn gather(&self, requests: usize) {
        self.shared.together.store(requests, Ordering::SeqCst);
    }

    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::SeqCst)
    }

    /// The most requests with bytes that were there at once.
    pub fn peak(&self) -> usize {
        self.shared.peak.load(Ordering::SeqCst)
    }

    pub fn failed(&self) -> usize {
        self.shared.failed.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> Vec<Passed> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub fn answer(&self, answer: impl Fn(&Passed) -> Option<Response> + Send + Sync + 'static) {
        *self.shared.answer.lock().unwrap() = Some(Arc::new(answer));
    }

    pub fn rewrite(&self, rewrite: impl Fn(&Passed, &mut Value) + Send + Sync + 'static) {
        *self.shared.rewrite.lock().unwrap() = Some(Arc::new(rewrite));
    }
}

async fn pass_on(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let passed = Passed { method: parts.method, path, headers: parts.headers };
    shared.requests.lock().unwrap().push(passed.clone());
    let answer = shared.answer.lock().unwrap().clone();
    if let Some(response) = answer.and_then(|answer| answer(&passed)) {
        return response;
    }
    let _sending = matches!(passed.method, Method::PUT | Method::PATCH).then(|| Sending::begin(&shared));
    let url = format!("{}{}", shared.upstream.lock().unwrap(), passed.path);
    let mut outgoing = shared.http.request(passed.method.clone(), url);
    for (name, value) in &passed.headers {
        outgoing = outgoing.header(name, value);
    }
    if passed.headers.contains_key(header::CONTENT_LENGTH) {
        let shared = shared.clone();
        let counted = matches!(passed.method, Method::PUT | Method::PATCH);
        let generation = shared.generation.load(Ordering::SeqCst);
        let bytes = body.into_data_stream().then(move |part| {
            let shared = shared.clone();
            async move {
                let part = part?;
                if counted && !shared.let_through(&part, generation).await {
                    return Err(axum::Error::new("cut off"));
                }
                Ok::<Bytes, axum::Error>(part)
            }
        });
        outgoing = outgoing.body(reqwest::Body::wrap_stream(bytes));
    }
    match outgoing.send().await {
        Ok(response) => shared.pass_back(&passed, response).await,
        Err(_) => {
            shared.failed.fetch_add(1, Ordering::SeqCst);
            StatusCode::BAD_GATEWAY.into_response()
        }
    }
}

impl Shared {
    /// Returns false if the connection is to be cut off.
    async fn let_through(&self, part: &Bytes, generation: u64) -> bool {
        let together = self.together.load(Ordering::SeqCst);
        // The sender is there as long as this.
        drop(self.sending.subscribe().wait_for(|_| self.peak.load(Ordering::SeqCst) >= together).await);
        let after = self.bytes.load(Ordering::SeqCst) + part.len() as u64;
        let is_over = || self.generation.load(Ordering::SeqCst) != generation;
        drop(self.room.subscribe().wait_for(|room| *room >= after || is_over()).await);
        if is_over() {
            return false;
        }
        if after > self.cut.load(Ordering::SeqCst) {
            self.cut.store(u64::MAX, Ordering::SeqCst);
            return false;
        }
        self.bytes.fetch_add(part.len() as u64, Ordering::SeqCst);
        true
    }

    async fn pass_back(&self, passed: &Passed, response: reqwest::Response) -> Response {
        let (status, mut headers) = (response.status(), response.headers().clone());
        let rewrite = self.rewrite.lock().unwrap().clone();
        let body = match rewrite {
            Some(rewrite) => {
                let bytes = response.bytes().await.unwrap_or_default();
                match serde_json::from_slice(&bytes) {
                    Ok(mut value) => {
                        rewrite(passed, &mut value);
                        headers.remove(header::CONTENT_LENGTH);
                        Body::from(value.to_string())
                    }
                    Err(_) => Body::from(bytes),
                }
            }
            None => Body::from_stream(response.bytes_stream()),
        };
        let mut passed_back = Response::new(body);
        *passed_back.status_mut() = status;
        *passed_back.headers_mut() = headers;
        passed_back
    }
}

/// Counts a request while it runs.
struct Sending(Arc<Shared>);

impl Sending {
    fn begin(shared: &Arc<Shared>) -> Self {
        shared.sending.send_modify(|now| {
            *now += 1;
            shared.peak.fetch_max(*now, Ordering::SeqCst);
        });
        Self(shared.clone())
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.sending.send_modify(|now| *now -= 1);
    }
}
