//! Reads requests: the caller, the body, the query, the ids in the path. An invalid part is refused with a code.

use std::marker::PhantomData;
use std::str::FromStr;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, MatchedPath, OptionalFromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use uuid::Uuid;

use crate::app::App;
use crate::auth::{Identity, api_keys};
use crate::http::audit_trail;
use crate::http::client_address::ClientAddress;
use crate::http::error::ApiError;
use crate::http::permissions::operation_of;
use crate::http::{sessions, write_limits};
use crate::intake::idempotency;
use landfall_api::page::{DEFAULT_LIMIT, MAX_LIMIT, MAX_OFFSET, Page};
use landfall_core::caller::{Caller, KeyScope};
use landfall_core::refusal::{Refusal, RefusalCode};

/// The caller with a token or an API key, or with the session of a browser if there is neither.
async fn identify(parts: &Parts, app: &App) -> Result<Option<Identity>, ApiError> {
    let now = app.clock.now();
    let identity = match bearer(&parts.headers) {
        Some(token) => Some(identify_bearer(app, token, &parts.extensions).await?),
        None => sessions::of_request(parts, app).await?.map(|session| session.identity(now)),
    };
    if let Some(identity) = &identity {
        audit_trail::note_caller(parts, app, identity).await?;
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        require_scope(identity, operation_of(&parts.method, route).scope)?;
    }
    Ok(identity)
}

/// The caller with a token or an API key.
pub async fn identify_bearer(app: &App, token: &str, extensions: &Extensions) -> Result<Identity, ApiError> {
    let now = app.clock.now();
    if token.starts_with(api_keys::PREFIX) {
        let from = extensions.get::<ClientAddress>().map(|ClientAddress(address)| address.to_string());
        return Ok(api_keys::identify(&app.db, token, from, now).await?);
    }
    Ok(app.auth.identify(token, now).await?)
}

pub fn require_scope(identity: &Identity, scope: KeyScope) -> Result<(), Refusal> {
    if identity.credential.allows(scope) {
        return Ok(());
    }
    let message = format!("This API key does not have the scope {scope}, which is needed here");
    Err(Refusal::new(RefusalCode::InsufficientScope, message))
}

/// The same, within the limit of what the caller may change.
async fn identity(parts: &mut Parts, app: &App) -> Result<Option<Identity>, ApiError> {
    let identity = identify(parts, app).await?;
    if let Some(identity) = &identity {
        write_limits::admit(parts, &identity.caller)?;
    }
    Ok(identity)
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(identity(parts, app).await?.ok_or_else(unauthenticated)?.caller)
    }
}

impl FromRequestParts<App> for Identity {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(identity(parts, app).await?.ok_or_else(unauthenticated)?)
    }
}

impl OptionalFromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Option<Self>, ApiError> {
        Ok(identity(parts, app).await?.map(|identity| identity.caller))
    }
}

pub fn unauthenticated() -> Refusal {
    Refusal::new(
        RefusalCode::Unauthenticated,
        "Send a token (Authorization: Bearer …), or sign in on the page",
    )
}

pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

pub fn require_operator(caller: &Caller) -> Result<(), Refusal> {
    if caller.is_operator() {
        Ok(())
    } else {
        Err(Refusal::new(RefusalCode::Forbidden, "This is for operators of the server"))
    }
}

/// A whole body, with the values that an idempotency key depends on.
pub struct Received {
    pub bytes: Bytes,
    path: String,
    key: Option<String>,
}

impl Received {
    pub async fn read(request: Request, limit: usize) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let key = match parts.headers.get("idempotency-key") {
            None => None,
            Some(key) => Some(
                key.to_str()
                    .map_err(|_| {
                        Refusal::new(RefusalCode::InvalidIdempotencyKey, "An Idempotency-Key is plain text")
                    })?
                    .to_owned(),
            ),
        };
        Ok(Self { bytes: read_body(body, limit).await?, path: parts.uri.path().to_owned(), key })
    }

    /// An object.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        if self.is_list() {
            // serde would also accept an array of the fields in their order, which no client intends.
            return Err(Refusal::new(
                RefusalCode::InvalidRequest,
                "The body is not valid: it must be an object",
            ));
        }
        serde_json::from_slice(&self.bytes).map_err(|error| unreadable(&error))
    }

    /// A list of objects.
    pub fn json_list<T: DeserializeOwned>(&self) -> Result<Vec<T>, Refusal> {
        let items: Vec<Object<T>> =
            serde_json::from_slice(&self.bytes).map_err(|error| unreadable(&error))?;
        Ok(items.into_iter().map(|Object(item)| item).collect())
    }

    pub fn is_list(&self) -> bool {
        self.bytes.trim_ascii_start().starts_with(b"[")
    }

    /// The same, but an empty body means the default.
    pub fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Refusal> {
        if self.bytes.is_empty() { Ok(T::default()) } else { self.json() }
    }

    pub fn key(&self, caller: &Caller) -> Result<Option<idempotency::Key>, Refusal> {
        let key = self.key.as_deref();
        key.map(|key| idempotency::Key::new(caller.owner(), key, &self.path, &self.bytes)).transpose()
    }
}

/// A value that must be written as an object. serde would also accept an array of its fields in their order.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                text.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    let code = if error.is_data() { RefusalCode::InvalidRequest } else { RefusalCode::InvalidJson };
    Refusal::new(code, format!("The body is not valid: {error}"))
}

async fn read_body(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Refusal::new(RefusalCode::BodyTooLarge, format!("The body may have at most {limit} bytes"))
                .into())
        }
        Err(_) => Err(Refusal::new(RefusalCode::BodyBroken, "The body ended early").retryable().into()),
    }
}

/// The query string.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(Refusal::new(
                RefusalCode::InvalidRequest,
                format!("The query is not valid: {}", cause(&rejection.body_text())),
            )
            .into()),
        }
    }
}

/// What is wrong with a query, without the words of the library before it.
fn cause(text: &str) -> &str {
    text.split_once("query string: ").map_or(text, |(_, cause)| cause)
}

/// The parameters in the path.
pub struct InPath<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for InPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match <Path<T> as FromRequestParts<S>>::from_request_parts(parts, state).await {
            Ok(Path(values)) => Ok(Self(values)),
            Err(rejection) => Err(Refusal::new(
                RefusalCode::InvalidRequest,
                format!("The path is not valid: {}", rejection.body_text()),
            )
            .into()),
        }
    }
}

/// An invalid id names nothing.
pub fn file_id(text: &str) -> Result<Uuid, Refusal> {
    Uuid::parse_str(text).map_err(|_| Refusal::no_such_file())
}

pub fn batch_id(text: &str) -> Result<Uuid, Refusal> {
    Uuid::parse_str(text).map_err(|_| Refusal::no_such_batch())
}

pub fn operation_id(text: &str) -> Result<Uuid, Refusal> {
    Uuid::parse_str(text).map_err(|_| Refusal::no_such_operation())
}

/// Which page of a list is asked for: its size, and the cursor of the last item of the page before, or how many items to
/// leave out.
pub struct Paging<C> {
    limit: i64,
    pub after: Option<C>,
    pub offset: i64,
}

impl<C: FromStr> Paging<C> {
    pub fn new(limit: Option<i64>, cursor: Option<&str>) -> Result<Self, Refusal> {
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Refusal::new(
                RefusalCode::InvalidRequest,
                format!("limit must be from 1 to {MAX_LIMIT}"),
            ));
        }
        let unknown = |_| Refusal::new(RefusalCode::InvalidCursor, "This cursor is not valid");
        let after = cursor.map(|text| text.parse().map_err(unknown)).transpose()?;
        Ok(Self { limit, after, offset: 0 })
    }

    /// The same for a list that can also be asked for by offset.
    pub fn with_offset(
        limit: Option<i64>,
        cursor: Option<&str>,
        offset: Option<i64>,
    ) -> Result<Self, Refusal> {
        let refuse = |message: String| Err(Refusal::new(RefusalCode::InvalidRequest, message));
        let paging = Self::new(limit, cursor)?;
        match offset {
            Some(_) if cursor.is_some() => refuse("Send a cursor or an offset, and not both".to_owned()),
            Some(offset) if !(0..=MAX_OFFSET).contains(&offset) => {
                refuse(format!("offset must be from 0 to {MAX_OFFSET}; use nextCursor to go further"))
            }
            offset => Ok(Self { offset: offset.unwrap_or_default(), ..paging }),
        }
    }

    pub const fn limit(&self) -> i64 {
        self.limit
    }

    /// How many items to load: one more than the page has, which says whether there is another page.
    pub const fn fetched(&self) -> i64 {
        self.limit + 1
    }

    /// The page with the first of these items. It has a cursor if there are more.
    pub fn page<T>(&self, mut items: Vec<T>, cursor: impl Fn(&T) -> String) -> Page<T> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next_cursor = items.last().filter(|_| has_more).map(cursor);
        Page { items, next_cursor }
    }
}
