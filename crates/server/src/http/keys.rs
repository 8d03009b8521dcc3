//! API keys: create, list, revoke.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use uuid::Uuid;

use super::request::{InPath, Paging, Params, Received};
use crate::app::App;
use crate::auth::Identity;
use crate::auth::api_keys::{ApiKey, CreateKey, KeyText, RevokeKey};
use crate::http::error::ApiError;
use landfall_api::keys::{CreatedKey, KeyList, KeyQuery, KeyView, NewKey};
use landfall_core::caller::Caller;
use landfall_core::refusal::{Refusal, RefusalCode};

/// Creates an API key.
///
/// The response is the only place where the key can be seen. A key acts for one user and reaches only what its
/// scopes allow.
#[utoipa::path(
    post, path = "/api/v2/keys", operation_id = "createKey", tag = "keys", request_body = NewKey,
    responses((status = 201, body = CreatedKey), (status = "4XX", description = "FORBIDDEN TOO_MANY_KEYS"))
)]
pub async fn create(
    State(app): State<App>,
    creator: Identity,
    request: Request,
) -> Result<(StatusCode, Json<CreatedKey>), ApiError> {
    // No idempotency key: its stored answer would contain the key.
    let wanted: NewKey = Received::read(request, app.config.http.max_body_bytes).await?.json()?;
    let (id, now) = (app.clock.new_id(), app.clock.now());
    let created = app.db.write(CreateKey { id, creator, wanted, key: KeyText::random(), now }).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

/// The API keys, newest first, without the keys themselves.
///
/// Revoked and expired ones stay in the list for a while.
#[utoipa::path(
    get, path = "/api/v2/keys", operation_id = "listKeys", tag = "keys", params(KeyQuery),
    responses((status = 200, body = KeyList))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<KeyQuery>,
) -> Result<Json<KeyList>, ApiError> {
    let paging: Paging<Uuid> = Paging::new(query.limit, query.cursor.as_deref())?;
    let reach = caller.reach(query.scope.unwrap_or_default())?;
    let before = paging.after.unwrap_or(Uuid::max());
    let found = ApiKey::list(&mut app.db.read().await?, &reach, before, paging.fetched()).await?;
    Ok(Json(paging.page(found, |key| key.id.to_string()).map(KeyView::from)))
}

/// Revokes an API key.
///
/// From now on it is refused. It stays in the list for a while, with who revoked it.
#[utoipa::path(
    delete, path = "/api/v2/keys/{keyId}", operation_id = "revokeKey", tag = "keys",
    responses((status = 204), (status = "4XX", description = "KEY_NOT_FOUND"))
)]
pub async fn revoke(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<StatusCode, ApiError> {
    let missing = |_| Refusal::new(RefusalCode::KeyNotFound, "There is no such API key");
    let key = Uuid::parse_str(&id).map_err(missing)?;
    app.db.write(RevokeKey { caller, key, now: app.clock.now() }).await?;
    Ok(StatusCode::NO_CONTENT)
}
