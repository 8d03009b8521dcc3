//! Operations on many files: their progress, and a way to stop them.

use axum::Json;
use axum::extract::State;
use uuid::Uuid;

use super::request::{InPath, Paging, Params, operation_id};
use crate::app::App;
use crate::http::error::ApiError;
use crate::queue::operations::{Operation, Stop};
use landfall_api::operations::{OperationList, OperationQuery, OperationView};
use landfall_core::caller::Caller;

/// Retries of many dead letters, newest first.
#[utoipa::path(
    get, path = "/operations", operation_id = "listOperations", tag = "dead letters", params(OperationQuery),
    responses((status = 200, body = OperationList))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<OperationQuery>,
) -> Result<Json<OperationList>, ApiError> {
    let paging: Paging<Uuid> = Paging::new(query.limit, query.cursor.as_deref())?;
    let reach = caller.reach(query.scope.unwrap_or_default())?;
    let before = paging.after.unwrap_or(Uuid::max());
    let operations = Operation::list(&mut app.db.read().await?, &reach, before, paging.fetched()).await?;
    Ok(Json(paging.page(operations, |row| row.id.to_string()).map(OperationView::from)))
}

/// The progress of an operation.
#[utoipa::path(
    get, path = "/operations/{operationId}", operation_id = "showOperation", tag = "dead letters",
    responses((status = 200, body = OperationView), (status = "4XX", description = "OPERATION_NOT_FOUND"))
)]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<OperationView>, ApiError> {
    let operation = Operation::find_for(&mut app.db.read().await?, &caller, operation_id(&id)?).await?;
    Ok(Json(operation.into()))
}

/// Stops an operation. Files that were already retried stay retried.
#[utoipa::path(
    post, path = "/operations/{operationId}/stop", operation_id = "stopOperation", tag = "dead letters",
    responses((status = 200, body = OperationView), (status = "4XX", description = "OPERATION_NOT_FOUND"))
)]
pub async fn stop(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<OperationView>, ApiError> {
    let stop = Stop { caller, operation: operation_id(&id)?, now: app.clock.now() };
    Ok(Json(app.db.write(stop).await?.into()))
}
