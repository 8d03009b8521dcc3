//! Operations on many files: their progress, and a way to stop them.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use uuid::Uuid;

use super::file_lists;
use super::request::{InPath, Paging, Params, Received, operation_id};
use crate::app::App;
use crate::http::error::ApiError;
use crate::intake::idempotency::Idempotent;
use crate::operations::{Files, Operation, Start, Stop};
use crate::records::files::dead_letters::Filter;
use crate::records::files::listing::Wanted;
use landfall_api::file_queries::MAX_FILE_IDS;
use landfall_api::operations::{OperationList, OperationQuery, OperationRequest, OperationView};
use landfall_core::caller::{Caller, Reach, Role};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_core::states::OperationAction;

/// Retries, cancels or deletes many files, in the background.
///
/// Only files that exist when the operation begins are touched, and of these only those whose state allows the action. Each
/// file is compared with the filter when its turn comes.
#[utoipa::path(
    post, path = "/operations", operation_id = "startOperation", tag = "files", request_body = OperationRequest,
    responses(
        (status = 202, body = OperationView),
        (status = "4XX", description = "BATCH_NOT_FOUND FORBIDDEN INVALID_FILE_COUNT IDEMPOTENCY_KEY_REUSED")
    )
)]
pub async fn start(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<OperationView>), ApiError> {
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let OperationRequest { action, filter, file_ids } = received.json()?;
    let (reach, files, total) = match (filter, file_ids) {
        (Some(filter), None) => {
            let mut tx = app.db.snapshot().await?;
            let wanted = file_lists::wanted(&mut tx, &caller, &filter, None).await?;
            must_allow(action, &wanted)?;
            let wanted = wanted.that_allow(action);
            let counts = file_lists::count(&mut tx, &wanted).await?;
            (wanted.reach, Files::Matching(filter), (!counts.is_capped).then_some(counts.total))
        }
        (None, Some(mut ids)) => {
            ids.sort_unstable();
            ids.dedup();
            if ids.is_empty() || ids.len() > MAX_FILE_IDS {
                let message = format!("fileIds: from 1 to {MAX_FILE_IDS} ids");
                return Err(Refusal::new(RefusalCode::InvalidFileCount, message).into());
            }
            let total = i64::try_from(ids.len()).ok();
            (widest_reach(&caller), Files::Named(ids), total)
        }
        _ => {
            let message = "Send exactly one of filter and fileIds";
            return Err(Refusal::new(RefusalCode::InvalidRequest, message).into());
        }
    };
    let now = app.clock.now();
    let (id, user, filter) = (app.clock.new_id(), caller.owner(), Filter::of(reach));
    let change = Start { id, user, action, filter, files, total, now };
    let id = app.db.write(Idempotent { key: received.key(&caller)?, now, change }).await?;
    let operation = Operation::find_for(&mut app.db.read().await?, &caller, id).await?;
    Ok((StatusCode::ACCEPTED, Json(operation.into())))
}

/// Refuses states that the action is never possible in.
fn must_allow(action: OperationAction, wanted: &Wanted) -> Result<(), Refusal> {
    let allowed = action.states();
    if wanted.states.is_empty() || wanted.states.iter().any(|status| allowed.contains(status)) {
        return Ok(());
    }
    let allowed: Vec<&str> = allowed.iter().map(|status| status.name()).collect();
    let message = format!("status: to {action} is possible for files that are {}", allowed.join(", "));
    Err(Refusal::new(RefusalCode::InvalidRequest, message))
}

/// Whose files a caller may change one by one.
fn widest_reach(caller: &Caller) -> Reach {
    match caller.role {
        Role::Member => Reach::User(caller.owner()),
        Role::TenantAdmin => Reach::Tenant(caller.tenant.clone()),
        Role::Operator => Reach::All,
    }
}

/// Operations on many files, newest first.
///
/// Operations that ended stay in the list for a while.
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
///
/// `endedAt` is null while it goes on. It survives a crash of the server.
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

/// Stops an operation.
///
/// What was done to files stays done. Stopping an operation that has ended changes nothing.
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
