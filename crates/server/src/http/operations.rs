//! Operations on many files: their progress, and a way to stop them.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::request::{InPath, Page, Params, includes_all_users, operation_id};
use crate::app::App;
use crate::http::error::ApiError;
use crate::queue::operations::{Operation, OperationView, Stop};
use landfall_core::caller::Caller;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<i64>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
    /// `all`: the operations of all users, for administrators.
    #[param(pattern = "^(own|all)$")]
    scope: Option<String>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationList {
    operations: Vec<OperationView>,
    next_cursor: Option<String>,
}

/// Retries of many dead letters, newest first.
#[utoipa::path(
    get, path = "/operations", operation_id = "listOperations", tag = "dead letters", params(ListParams),
    responses((status = 200, body = OperationList))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<OperationList>, ApiError> {
    let page: Page<Uuid> = Page::new(params.limit, params.cursor.as_deref())?;
    let user = (!includes_all_users(&caller, params.scope.as_deref())?).then_some(caller.user.as_str());
    let before = page.after.unwrap_or(Uuid::max());
    let operations = Operation::list(&mut app.db.read().await?, user, before, page.limit).await?;
    let next = page.next(&operations, |operation| operation.id.to_string());
    let operations = operations.into_iter().map(OperationView::from).collect();
    Ok(Json(OperationList { operations, next_cursor: next }))
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
