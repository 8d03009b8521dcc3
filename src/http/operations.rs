//! Operations on many files: how far they are, and no further.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::request::{Page, Params, everybodys, operation_id};
use crate::app::App;
use crate::error::Error;
use crate::file::Caller;
use crate::queue::operations::{Operation, OperationView, Stop};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    limit: Option<i64>,
    cursor: Option<String>,
    /// `all`: everybody's, for administrators.
    scope: Option<String>,
}

pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Value>, Error> {
    let page: Page<Uuid> = Page::new(params.limit, params.cursor.as_deref())?;
    let user = (!everybodys(&caller, params.scope.as_deref())?).then_some(caller.user.as_str());
    let before = page.after.unwrap_or(Uuid::max());
    let operations = Operation::list(&mut app.db.read().await?, user, before, page.limit).await?;
    let next = page.next(&operations, |operation| operation.id.to_string());
    let operations: Vec<OperationView> = operations.into_iter().map(OperationView::from).collect();
    Ok(Json(json!({ "operations": operations, "nextCursor": next })))
}

pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<OperationView>, Error> {
    let operation = Operation::find_for(&mut app.db.read().await?, &caller, operation_id(&id)?).await?;
    Ok(Json(operation.into()))
}

pub async fn stop(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<OperationView>, Error> {
    let stop = Stop { caller, operation: operation_id(&id)?, now: app.clock.now() };
    Ok(Json(app.db.write(stop).await?.into()))
}
