//! Whole requests, answered by the router of a real server with an empty database and no worker.
//!
//! The bytes are several requests, one after the other, so that one can use what another has made. Each begins with a line
//! `=== METHOD PATH`; headers follow up to an empty line, and then the body. `Authorization: anna` becomes a token of Anna.

use std::sync::{LazyLock, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use landfall_core::clock::Time;
use landfall_server::app::{App, Replacements};
use landfall_server::auth::{self, TokenClaims};
use landfall_server::config::{Config, Variables};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

use crate::server::SECRET;

/// What begins a request.
const REQUEST: &[u8] = b"=== ";
/// Bounds the time of one input.
const MOST_REQUESTS: usize = 8;
/// Bytes of an answer that are read. An event stream has no end.
const MOST_ANSWER: usize = 1 << 20;

struct Server {
    runtime: Runtime,
    router: Router,
    _folder: TempDir,
}

/// Answers the requests, and fails if one of them is the server's fault.
pub(crate) fn run(bytes: &[u8]) {
    static SERVER: LazyLock<Mutex<Server>> = LazyLock::new(|| Mutex::new(Server::start()));
    // A panic in the server is caught by its router; the lock is only poisoned by a failed assertion of another test.
    let server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let starts: Vec<usize> = memchr::memmem::find_iter(bytes, REQUEST).collect();
    for (at, start) in starts.iter().take(MOST_REQUESTS).enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(bytes.len());
        if let Some(request) = parse(&bytes[start + REQUEST.len()..end]) {
            server.answer(request);
        }
    }
}

impl Server {
    fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().to_str().expect("a path in text");
        let mut variables = Variables::default();
        let settings = [
            ("DATA_DIR", path),
            ("JWT_SECRET", SECRET),
            ("ROLE", "api"),
            // The limits would refuse most of what is to be tried.
            ("WRITES_PER_USER", "1000000/1s"),
            ("AUTH_FAILURES_PER_MINUTE", "1000000"),
        ];
        for (name, value) in settings {
            variables.set(name, value);
        }
        let config = Config::from_variables(variables).expect("the settings are right");
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let app = runtime.block_on(Box::pin(App::start(config, Replacements::default()))).expect("it starts");
        Self { runtime, router: landfall_server::http::router(app), _folder: folder }
    }

    fn answer(&self, request: Request<Body>) {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let status = self.runtime.block_on(async {
            let Ok(response) = self.router.clone().oneshot(request).await;
            let status = response.status();
            let is_stream = response
                .headers()
                .get(header::CONTENT_TYPE)
                .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
            if !is_stream {
                // More than that is an answer too.
                _ = Limited::new(response.into_body(), MOST_ANSWER).collect().await;
            }
            status
        });
        // 503 and 507 tell that the machine is too busy or too full, which a search may cause.
        let excused =
            [StatusCode::SERVICE_UNAVAILABLE, StatusCode::INSUFFICIENT_STORAGE, StatusCode::NOT_IMPLEMENTED];
        assert!(
            !status.is_server_error() || excused.contains(&status),
            "{method} {uri} was answered {status}"
        );
    }
}

/// The request that the bytes describe; `None` if no client could send it.
fn parse(bytes: &[u8]) -> Option<Request<Body>> {
    let end = memchr::memmem::find(bytes, b"\n\n").unwrap_or(bytes.len());
    let body = bytes.get(end + 2..).unwrap_or_default();
    let mut lines = bytes[..end].split(|byte| *byte == b'\n');
    let (method, path) = std::str::from_utf8(lines.next()?).ok()?.split_once(' ')?;
    let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).ok()?).uri(path);
    let mut has_host = false;
    for line in lines {
        let colon = memchr::memchr(b':', line)?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = line[colon + 1..].trim_ascii();
        has_host |= name == header::HOST;
        let value = match (name == header::AUTHORIZATION).then(|| token_of(value)).flatten() {
            Some(token) => HeaderValue::from_str(&token).ok()?,
            None => HeaderValue::from_bytes(value).ok()?,
        };
        request = request.header(name, value);
    }
    if !has_host {
        request = request.header(header::HOST, "localhost:3000");
    }
    request.body(Body::from(body.to_vec())).ok()
}

/// The header of a person whom the requests know.
fn token_of(name: &[u8]) -> Option<String> {
    let claims = match name {
        b"anna" => claims("anna", None),
        b"admin" => claims("admin", Some("admin")),
        _ => return None,
    };
    Some(format!("Bearer {}", auth::sign(SECRET.as_bytes(), &claims).expect("it is signed")))
}

/// The claims of a token that does not expire.
pub(crate) fn claims(user: &str, role: Option<&str>) -> TokenClaims {
    let exp = Time::MAX_UTC.timestamp();
    TokenClaims { sub: user.to_owned(), tenant: Some("acme".to_owned()), role: role.map(str::to_owned), exp }
}
