//! Dead letters: list and group them, retry one or many, discard one.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::files::Retry;
use super::request::{InPath, Page, Params, Received, batch_id, file_id, includes_all_users};
use crate::app::App;
use crate::http::error::ApiError;
use crate::intake::delete;
use crate::intake::idempotency::Idempotent;
use crate::queue::dead_letter::{self, DeadLetter, Filter, Group, Place};
use crate::queue::operations::{Operation, OperationView, RetryAll};
use crate::records::fingerprint::is_fingerprint;
use landfall_core::caller::Caller;
use landfall_core::failure::Code;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::refusal::{Refusal, RefusalCode};

/// How many files are retried before the response is sent. The others are retried after it.
const MAX_BEFORE_RESPONSE: usize = 1_000;

/// The filter for dead letters, as the client sends it.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Wanted {
    #[schema(value_type = Option<Code>)]
    code: Option<String>,
    #[schema(value_type = Option<Stage>)]
    stage: Option<String>,
    #[schema(value_type = Option<Uuid>)]
    batch_id: Option<String>,
    #[schema(pattern = "^[0-9a-f]{16}$")]
    fingerprint: Option<String>,
    /// `all`: the dead letters of all users, for administrators.
    #[schema(pattern = "^(own|all)$")]
    scope: Option<String>,
}

impl Wanted {
    fn filter(self, caller: &Caller) -> Result<Filter, Refusal> {
        let refuse = |message: String| Err(Refusal::new(RefusalCode::InvalidRequest, message));
        if let Some(code) = self.code.as_deref().filter(|code| Code::parse(code).is_none()) {
            return refuse(format!("code: {code:?} is not the code of a failure"));
        }
        if let Some(Err(error)) = self.stage.as_deref().map(str::parse::<Stage>) {
            return refuse(format!("stage: {error}"));
        }
        if self.fingerprint.as_deref().is_some_and(|text| !is_fingerprint(text)) {
            return refuse("fingerprint: must be 16 hexadecimal digits in lower case".to_owned());
        }
        Ok(Filter {
            of_user: (!includes_all_users(caller, self.scope.as_deref())?).then(|| caller.user.clone()),
            code: self.code,
            stage: self.stage,
            batch_id: self.batch_id.as_deref().map(batch_id).transpose()?,
            fingerprint: self.fingerprint,
        })
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<i64>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
    #[param(value_type = Option<Code>)]
    code: Option<String>,
    #[param(value_type = Option<Stage>)]
    stage: Option<String>,
    #[param(value_type = Option<Uuid>)]
    batch_id: Option<String>,
    #[param(pattern = "^[0-9a-f]{16}$")]
    fingerprint: Option<String>,
    /// `all`: the dead letters of all users, for administrators.
    #[param(pattern = "^(own|all)$")]
    scope: Option<String>,
}

impl ListParams {
    fn wanted(self) -> Wanted {
        let Self { code, stage, batch_id, fingerprint, scope, .. } = self;
        Wanted { code, stage, batch_id, fingerprint, scope }
    }
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterList {
    entries: Vec<DeadLetter>,
    next_cursor: Option<String>,
}

/// The caller's dead letters, newest first.
#[utoipa::path(
    get, path = "/dlq", operation_id = "listDeadLetters", tag = "dead letters", params(ListParams),
    responses((status = 200, body = DeadLetterList), (status = "4XX", description = "BATCH_NOT_FOUND"))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<DeadLetterList>, ApiError> {
    let page: Page<Place> = Page::new(params.limit, params.cursor.as_deref())?;
    let filter = params.wanted().filter(&caller)?;
    let entries = dead_letter::list(&mut app.db.read().await?, &filter, page.after, page.limit).await?;
    let next = page.next(&entries, |entry: &DeadLetter| entry.place().to_string());
    Ok(Json(DeadLetterList { entries, next_cursor: next }))
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct GroupList {
    groups: Vec<Group>,
}

/// The causes, the most frequent first. They have no pages, so a cursor is refused.
#[utoipa::path(
    get, path = "/dlq/groups", operation_id = "groupDeadLetters", tag = "dead letters", params(ListParams),
    responses((status = 200, body = GroupList), (status = "4XX", description = "BATCH_NOT_FOUND"))
)]
pub async fn groups(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<GroupList>, ApiError> {
    if params.cursor.is_some() {
        let message = "Groups have no pages: the largest are shown, up to the limit";
        return Err(Refusal::new(RefusalCode::InvalidRequest, message).into());
    }
    let page: Page<Place> = Page::new(params.limit, None)?;
    let filter = params.wanted().filter(&caller)?;
    let groups = dead_letter::groups(&mut app.db.read().await?, &filter, page.limit).await?;
    Ok(Json(GroupList { groups }))
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retried {
    success: bool,
    file_id: Uuid,
    status: Status,
}

/// Retries a dead letter from the stage that failed.
#[utoipa::path(
    post, path = "/dlq/{fileId}/retry", operation_id = "retryDeadLetter", tag = "dead letters",
    responses(
        (status = 200, body = Retried),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED INVALID_STATE STORAGE_UNAVAILABLE")
    )
)]
pub async fn retry(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<Retried>, ApiError> {
    let retry = Retry { only_failed: true, ..Retry::default() };
    let file = retry.carry_out(&app, caller, file_id(&id)?).await?;
    Ok(Json(Retried { success: true, file_id: file.id, status: file.status }))
}

/// Retries all that match. Returns the progress so far, which for small numbers is the end.
#[utoipa::path(
    post, path = "/dlq/retry-all", operation_id = "retryDeadLetters", tag = "dead letters",
    request_body = Option<Wanted>,
    responses(
        (status = 200, body = OperationView),
        (status = "4XX", description = "BATCH_NOT_FOUND FORBIDDEN IDEMPOTENCY_KEY_REUSED")
    )
)]
pub async fn retry_all(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<OperationView>, ApiError> {
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let wanted: Wanted = received.json_or_default()?;
    let filter = wanted.filter(&caller)?;
    let now = app.clock.now();
    let change = RetryAll { id: app.clock.new_id(), user: caller.user.clone(), filter, now };
    let id = app.db.write(Idempotent { key: received.key(&caller)?, now, change }).await?;
    app.operations().advance_up_to(id, MAX_BEFORE_RESPONSE).await?;
    let operation = Operation::find_for(&mut app.db.read().await?, &caller, id).await?;
    Ok(Json(operation.into()))
}

/// Discards a dead letter: deletes the file.
#[utoipa::path(
    delete, path = "/dlq/{fileId}", operation_id = "discardDeadLetter", tag = "dead letters",
    responses((status = 204), (status = "4XX", description = "FILE_NOT_FOUND INVALID_STATE STORAGE_UNAVAILABLE"))
)]
pub async fn discard(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<StatusCode, ApiError> {
    delete::discard(&app.db, &app.blobs, &caller, file_id(&id)?, app.clock.now()).await?;
    Ok(StatusCode::NO_CONTENT)
}
