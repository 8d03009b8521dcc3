//! Re-embedding the files of another model, for operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::request::require_operator;
use crate::app::App;
use crate::http::error::ApiError;
use crate::stages::reindex::background;
use crate::stages::reindex::rows::Stop;
use landfall_api::reindex::ReindexView;
use landfall_core::caller::Caller;

/// How far the re-embedding is.
///
/// While none runs, `remaining` says how many files were embedded with another model.
#[utoipa::path(
    get, path = "/api/v2/admin/reindex", operation_id = "showReindex", tag = "administration",
    responses((status = 200, body = ReindexView))
)]
pub async fn show(State(app): State<App>, caller: Caller) -> Result<Json<ReindexView>, ApiError> {
    require_operator(&caller)?;
    Ok(Json(background::view(&app.db, &app.embedder).await?))
}

/// Starts to re-embed all files of another model.
///
/// A process of the server does it in the background, and another one goes on if that process ends.
#[utoipa::path(
    post, path = "/api/v2/admin/reindex", operation_id = "startReindex", tag = "administration",
    responses((status = 202, body = ReindexView), (status = "4XX", description = "JOB_RUNNING"))
)]
pub async fn start(
    State(app): State<App>,
    caller: Caller,
) -> Result<(StatusCode, Json<ReindexView>), ApiError> {
    require_operator(&caller)?;
    background::start(&app.db, &app.embedder, &app.clock, caller.user).await?;
    Ok((StatusCode::ACCEPTED, Json(background::view(&app.db, &app.embedder).await?)))
}

/// Stops the re-embedding.
///
/// Files that have new vectors keep them. It can be started again, and then goes on with the others.
#[utoipa::path(
    delete, path = "/api/v2/admin/reindex", operation_id = "stopReindex", tag = "administration",
    responses((status = 200, body = ReindexView))
)]
pub async fn stop(State(app): State<App>, caller: Caller) -> Result<Json<ReindexView>, ApiError> {
    require_operator(&caller)?;
    app.db.write(Stop { by: caller.user, now: app.clock.now() }).await?;
    Ok(Json(background::view(&app.db, &app.embedder).await?))
}
