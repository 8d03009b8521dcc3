//! Dead letters: list and group them, retry one or many, discard one.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;

use super::files::retry_file;
use super::request::{InPath, Paging, Params, Received, batch_id, file_id};
use crate::app::App;
use crate::http::error::ApiError;
use crate::intake::delete;
use crate::intake::idempotency::Idempotent;
use crate::operations::{Operation, Start};
use crate::records::cursor::Cursor;
use crate::records::files::dead_letters::{self, Filter};
use crate::records::fingerprint::is_fingerprint;
use crate::recovery::orphan_cleanup::old_failures;
use landfall_api::dead_letters::{
    DeadLetter, DeadLetterFilter, DeadLetterList, DeadLetterQuery, GroupList, Retried,
};
use landfall_api::operations::OperationView;
use landfall_core::caller::Caller;
use landfall_core::failure::Code;
use landfall_core::refusal::{Refusal, RefusalCode};

/// How many files are retried before the response is sent. The others are retried after it.
const MAX_BEFORE_RESPONSE: usize = 1_000;

/// The filter of the queue for what the client asks for.
fn filter(wanted: DeadLetterFilter, caller: &Caller) -> Result<Filter, Refusal> {
    let refuse = |message: String| Err(Refusal::new(RefusalCode::InvalidRequest, message));
    if let Some(code) = wanted.code.as_deref().filter(|code| Code::parse(code).is_none()) {
        return refuse(format!("code: {code:?} is not the code of a failure"));
    }
    if wanted.fingerprint.as_deref().is_some_and(|text| !is_fingerprint(text)) {
        return refuse("fingerprint: must be 16 hexadecimal digits in lower case".to_owned());
    }
    Ok(Filter {
        code: wanted.code,
        stage: wanted.stage.map(|stage| stage.name().to_owned()),
        batch_id: wanted.batch_id.as_deref().map(batch_id).transpose()?,
        fingerprint: wanted.fingerprint,
        ..Filter::of(caller.reach(wanted.scope.unwrap_or_default())?)
    })
}

/// The caller's dead letters, newest first.
///
/// A dead letter is a file that failed permanently. It is deleted at `deletionAt` unless it is retried.
#[utoipa::path(
    get, path = "/dlq", operation_id = "listDeadLetters", tag = "dead letters", params(DeadLetterQuery),
    responses((status = 200, body = DeadLetterList), (status = "4XX", description = "BATCH_NOT_FOUND"))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<DeadLetterQuery>,
) -> Result<Json<DeadLetterList>, ApiError> {
    let paging: Paging<Cursor> = Paging::with_offset(query.limit, query.cursor.as_deref(), query.offset)?;
    let filter = filter(query.filter(), &caller)?;
    let (limit, offset) = (paging.fetched(), paging.offset);
    let rows = dead_letters::list(&mut app.db.read().await?, &filter, paging.after, limit, offset).await?;
    let (retention, now) = (app.config.cleaning.failed_files, app.clock.now());
    let view = |row: dead_letters::DeadLetter| -> DeadLetter {
        let at = old_failures::deletion_of_failed(row.failed_at, row.deletion_warned_at, retention, now);
        row.view(at)
    };
    Ok(Json(paging.page(rows, |row| row.place().to_string()).map(view)))
}

/// The causes of the dead letters, the most frequent first.
///
/// Failures with the same stage, code and kind of message have the same fingerprint. The list has no pages, so a
/// cursor is refused.
#[utoipa::path(
    get, path = "/dlq/groups", operation_id = "groupDeadLetters", tag = "dead letters", params(DeadLetterQuery),
    responses((status = 200, body = GroupList), (status = "4XX", description = "BATCH_NOT_FOUND"))
)]
pub async fn groups(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<DeadLetterQuery>,
) -> Result<Json<GroupList>, ApiError> {
    if query.cursor.is_some() || query.offset.is_some_and(|offset| offset != 0) {
        let message = "Groups have no pages: the largest are shown, up to the limit";
        return Err(Refusal::new(RefusalCode::InvalidRequest, message).into());
    }
    let paging: Paging<Cursor> = Paging::new(query.limit, None)?;
    let filter = filter(query.filter(), &caller)?;
    let mut tx = app.db.snapshot().await?;
    let groups = dead_letters::groups(&mut tx, &filter, paging.limit(), app.clock.now()).await?;
    Ok(Json(GroupList { groups }))
}

/// Retries a dead letter from the stage that failed.
///
/// The attempts count from the beginning again. A file that is no dead letter is refused with `INVALID_STATE`.
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
    let file = retry_file(&app, caller, file_id(&id)?, None, true).await?;
    Ok(Json(Retried { success: true, file_id: file.id, status: file.status }))
}

/// Retries all dead letters that match.
///
/// A few files go first; if they fail again, the operation stops. The response has the progress so far, which for
/// small numbers is the end.
#[utoipa::path(
    post, path = "/dlq/retry-all", operation_id = "retryDeadLetters", tag = "dead letters",
    request_body = Option<DeadLetterFilter>,
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
    let filter = filter(received.json_or_default()?, &caller)?;
    let now = app.clock.now();
    let change = Start::retry_all(app.clock.new_id(), caller.owner(), filter, now);
    let id = app.db.write(Idempotent { key: received.key(&caller)?, now, change }).await?;
    app.operations().advance_up_to(id, MAX_BEFORE_RESPONSE).await?;
    let operation = Operation::find_for(&mut app.db.read().await?, &caller, id).await?;
    Ok(Json(operation.into()))
}

/// Discards a dead letter.
///
/// The file and its bytes are deleted. Its history stays for a while.
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
