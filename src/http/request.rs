//! Reads requests: the caller, the body, the query, the ids in the path. What cannot be read is refused with a code.

use std::str::FromStr;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, OptionalFromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::app::App;
use crate::auth::Identity;
use crate::error::{Error, Refusal};
use crate::file::Caller;
use crate::intake::idempotency;

impl FromRequestParts<App> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let token = bearer(&parts.headers).ok_or_else(unauthenticated)?;
        app.auth.verify(token, app.clock.now()).await
    }
}

impl FromRequestParts<App> for Identity {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let token = bearer(&parts.headers).ok_or_else(unauthenticated)?;
        app.auth.identify(token, app.clock.now()).await
    }
}

impl OptionalFromRequestParts<App> for Identity {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Option<Self>, Refusal> {
        match bearer(&parts.headers) {
            Some(token) => app.auth.identify(token, app.clock.now()).await.map(Some),
            None => Ok(None),
        }
    }
}

impl OptionalFromRequestParts<App> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Option<Self>, Refusal> {
        match bearer(&parts.headers) {
            Some(token) => app.auth.verify(token, app.clock.now()).await.map(Some),
            None => Ok(None),
        }
    }
}

pub fn unauthenticated() -> Refusal {
    Refusal::new(401, "UNAUTHENTICATED", "Send a token: Authorization: Bearer …")
}

pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

pub fn require_admin(caller: &Caller) -> Result<(), Refusal> {
    if caller.admin { Ok(()) } else { Err(Refusal::new(403, "FORBIDDEN", "This is for administrators")) }
}

/// A body that was read whole, and what belongs to it for an idempotency key.
pub struct Received {
    pub bytes: Bytes,
    path: String,
    key: Option<String>,
}

impl Received {
    pub async fn read(request: Request, limit: usize) -> Result<Self, Error> {
        let (parts, body) = request.into_parts();
        let key = match parts.headers.get("idempotency-key") {
            None => None,
            Some(key) => Some(
                key.to_str()
                    .map_err(|_| {
                        Refusal::new(400, "INVALID_IDEMPOTENCY_KEY", "An Idempotency-Key is plain text")
                    })?
                    .to_owned(),
            ),
        };
        Ok(Self { bytes: read_body(body, limit).await?, path: parts.uri.path().to_owned(), key })
    }

    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        serde_json::from_slice(&self.bytes).map_err(|error| {
            let code = if error.is_data() { "INVALID_REQUEST" } else { "INVALID_JSON" };
            Refusal::new(400, code, format!("The body cannot be read: {error}"))
        })
    }

    /// The same, where an empty body stands for the default.
    pub fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Refusal> {
        if self.bytes.is_empty() { Ok(T::default()) } else { self.json() }
    }

    pub fn key(&self, caller: &Caller) -> Result<Option<idempotency::Key>, Refusal> {
        let key = self.key.as_deref();
        key.map(|key| idempotency::Key::new(&caller.user, key, &self.path, &self.bytes)).transpose()
    }
}

async fn read_body(body: Body, limit: usize) -> Result<Bytes, Error> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Refusal::new(413, "BODY_TOO_LARGE", format!("A body has at most {limit} bytes here")).into())
        }
        Err(_) => Err(Refusal::new(400, "BODY_BROKEN", "The body broke off").retryable().into()),
    }
}

/// The query string.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(Refusal::new(
                400,
                "INVALID_REQUEST",
                format!("The query cannot be read: {}", rejection.body_text()),
            )),
        }
    }
}

/// An id that is not one names nothing.
pub fn file_id(text: &str) -> Result<Uuid, Refusal> {
    Uuid::parse_str(text).map_err(|_| Refusal::no_such_file())
}

pub fn batch_id(text: &str) -> Result<Uuid, Refusal> {
    Uuid::parse_str(text).map_err(|_| Refusal::no_such_batch())
}

pub fn operation_id(text: &str) -> Result<Uuid, Refusal> {
    Uuid::parse_str(text).map_err(|_| Refusal::no_such_operation())
}

/// Whether a list is to have everybody's, which is for administrators, or only the caller's own.
pub fn everybodys(caller: &Caller, scope: Option<&str>) -> Result<bool, Refusal> {
    match scope {
        None | Some("own") => Ok(false),
        Some("all") => require_admin(caller).map(|()| true),
        Some(_) => Err(Refusal::new(400, "INVALID_REQUEST", "scope must be own or all")),
    }
}

/// Which part of a list is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageParams {
    pub limit: Option<i64>,
    pub cursor: Option<String>,
}

/// A part of a list: how many to answer, and where the last part ended.
pub struct Page<C> {
    pub limit: i64,
    pub after: Option<C>,
}

impl<C: FromStr> Page<C> {
    pub fn new(limit: Option<i64>, cursor: Option<&str>) -> Result<Self, Refusal> {
        const DEFAULT: i64 = 50;
        const MOST: i64 = 200;
        let limit = limit.unwrap_or(DEFAULT);
        if !(1..=MOST).contains(&limit) {
            return Err(Refusal::new(400, "INVALID_REQUEST", format!("limit must be from 1 to {MOST}")));
        }
        let unknown = |_| Refusal::new(400, "INVALID_CURSOR", "This cursor is not one of ours");
        let after = cursor.map(|text| text.parse().map_err(unknown)).transpose()?;
        Ok(Self { limit, after })
    }

    /// Where this part ended, if there may be more.
    pub fn next<T>(&self, items: &[T], cursor: impl Fn(&T) -> String) -> Option<String> {
        let full = i64::try_from(items.len()) == Ok(self.limit);
        items.last().filter(|_| full).map(cursor)
    }
}
