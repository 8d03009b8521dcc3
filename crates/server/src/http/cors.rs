//! Lets pages of the origins in `CORS_ORIGINS` use the API from a browser.
//!
//! A browser asks before it lets a page of another origin send anything but the simplest requests, and shows the page no response
//! that does not name its origin. A listed origin may also use cookies, so the session of a person who is signed in; `*` may not.
//! Nothing is allowed that a program with the same credentials could not do: each request is authorised by itself.

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::config::Origins;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// What a client may send beside what a browser allows by itself.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Content-MD5, Idempotency-Key, If-None-Match, If-Range, Last-Event-ID, Range, traceparent, \
     tracestate, Tus-Resumable, Upload-Checksum, Upload-Concat, Upload-Defer-Length, Upload-Length, Upload-Metadata, \
     Upload-Offset, X-CSRF-Token, X-HTTP-Method-Override, X-Request-Id, X-Requested-With",
);
/// What a page may read of a response beside what a browser allows by itself.
const RESPONSE_HEADERS: HeaderValue = HeaderValue::from_static(
    "Accept-Ranges, Content-Disposition, Content-Range, ETag, Location, Retry-After, Tus-Checksum-Algorithm, Tus-Extension, \
     Tus-Max-Size, Tus-Resumable, Tus-Version, Upload-Concat, Upload-Expires, Upload-Length, Upload-Metadata, \
     Upload-Offset, X-File-Id, X-Request-Id",
);
/// In seconds. Browsers remember the answer no longer than this.
const REMEMBERED: HeaderValue = HeaderValue::from_static("7200");
/// The part of signing in that a page needs: who is signed in.
const SESSION: &str = "/auth/session";

pub async fn allow(State(origins): State<Origins>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_api = path.starts_with("/api/") || path == SESSION;
    if origins == Origins::None || !is_api {
        return next.run(request).await;
    }
    let allowed = allowed(&origins, request.headers());
    let is_question =
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match (&allowed, is_question) {
        (Some(_), true) => StatusCode::NO_CONTENT.into_response(),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    // A cache must not give one origin what it has for another.
    headers.append(VARY, HeaderValue::from_static("Origin"));
    let Some(Allowed { origin, with_cookies }) = allowed else { return response };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if with_cookies {
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
    if is_question {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, REMEMBERED);
    } else {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
    }
    response
}

struct Allowed {
    origin: HeaderValue,
    with_cookies: bool,
}

fn allowed(origins: &Origins, headers: &HeaderMap) -> Option<Allowed> {
    let origin = headers.get(ORIGIN)?;
    match origins {
        Origins::None => None,
        Origins::Any => Some(Allowed { origin: HeaderValue::from_static("*"), with_cookies: false }),
        listed @ Origins::Listed(_) => {
            let is_listed = origin.to_str().is_ok_and(|origin| listed.trusts(origin));
            is_listed.then(|| Allowed { origin: origin.clone(), with_cookies: true })
        }
    }
}
