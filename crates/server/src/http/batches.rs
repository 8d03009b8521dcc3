//! Batches.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use uuid::Uuid;

use super::files::stop_work;
use super::request::{InPath, Paging, Params, Received, batch_id};
use crate::app::App;
use crate::http::error::ApiError;
use crate::intake::batches::{self, CloseBatch, OpenBatch};
use crate::intake::cancel_batch::CancelBatch;
use crate::intake::idempotency::Idempotent;
use crate::records::batch::{self, Batch};
use landfall_api::batches::{BatchList, BatchView, NewBatch, OpenedBatch, Progress};
use landfall_api::page::PageQuery;
use landfall_core::caller::Caller;
use landfall_core::priority::Priority;

/// Opens a batch for a number of files.
///
/// The batch takes files until it has as many as it was opened for, is closed or cancelled, or expires.
#[utoipa::path(
    post, path = "/batches", operation_id = "openBatch", tag = "batches", request_body = NewBatch,
    responses(
        (status = 201, body = OpenedBatch),
        (status = "4XX", description = "INVALID_FILE_COUNT INVALID_METADATA INVALID_MAPPING TOO_MANY_BATCHES \
            TOO_MANY_REGISTRATIONS IDEMPOTENCY_KEY_REUSED")
    )
)]
pub async fn open(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<OpenedBatch>), ApiError> {
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let batch: NewBatch = received.json()?;
    batches::check(&batch)?;
    let now = app.clock.now();
    let opened = app
        .db
        .write(Idempotent {
            key: received.key(&caller)?,
            now,
            change: OpenBatch {
                caller,
                id: app.clock.new_id(),
                batch,
                now,
                config: app.config.intake.clone(),
            },
        })
        .await?;
    Ok((StatusCode::CREATED, Json(opened)))
}

/// A batch, and how many of its files are in each state.
///
/// `progress` counts the files in each state now, and `summary` what became of the promised files.
#[utoipa::path(
    get, path = "/batches/{batchId}", operation_id = "showBatch", tag = "batches",
    responses((status = 200, body = BatchView), (status = "4XX", description = "BATCH_NOT_FOUND"))
)]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<BatchView>, ApiError> {
    let mut tx = app.db.read().await?;
    let batch = Batch::find_for(&mut tx, &caller, batch_id(&id)?).await?;
    let progress = batch::progress(&mut tx, batch.id).await?;
    Ok(Json(view(batch, Some(progress))))
}

/// What a client stored with its batch is shown with the batch itself: in a list it could be very long.
fn listed(batch: Batch) -> BatchView {
    BatchView { metadata: None, ..view(batch, None) }
}

fn view(batch: Batch, progress: Option<Progress>) -> BatchView {
    BatchView {
        summary: batch.summary(),
        batch_id: batch.id,
        status: batch.status,
        file_count: batch.file_count,
        registered: batch.registered_files,
        progress,
        priority: Priority::from_rank(batch.priority),
        archive_file_id: batch.archive_id,
        metadata: batch.metadata,
        created_at: batch.created_at,
        expires_at: batch.expires_at,
        completed_at: batch.completed_at,
    }
}

/// The caller's batches, newest first.
///
/// They come without their metadata and without `progress`; one batch alone has both.
#[utoipa::path(
    get, path = "/batches", operation_id = "listBatches", tag = "batches", params(PageQuery),
    responses((status = 200, body = BatchList))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<PageQuery>,
) -> Result<Json<BatchList>, ApiError> {
    let paging: Paging<Uuid> = Paging::new(query.limit, query.cursor.as_deref())?;
    let before = paging.after.unwrap_or(Uuid::max());
    let batches = Batch::list_for(&mut app.db.read().await?, &caller, before, paging.fetched()).await?;
    Ok(Json(paging.page(batches, |batch| batch.id.to_string()).map(listed)))
}

/// Closes a batch for new files.
///
/// It is complete when all its files are. Repeating it is safe.
#[utoipa::path(
    post, path = "/batches/{batchId}/close", operation_id = "closeBatch", tag = "batches",
    responses((status = 200, body = BatchView), (status = "4XX", description = "BATCH_NOT_FOUND"))
)]
pub async fn close(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<BatchView>, ApiError> {
    let change = CloseBatch { caller, id: batch_id(&id)?, now: app.clock.now() };
    Ok(Json(view(app.db.write(change).await?, None)))
}

/// Cancels a batch.
///
/// Waiting and running files are cancelled, missing ones are deleted, and ready ones stay. Repeating it is safe; a
/// completed batch is refused.
#[utoipa::path(
    post, path = "/batches/{batchId}/cancel", operation_id = "cancelBatch", tag = "batches",
    responses((status = 200, body = BatchView), (status = "4XX", description = "BATCH_NOT_FOUND INVALID_STATE"))
)]
pub async fn cancel(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<BatchView>, ApiError> {
    let change = CancelBatch { caller, batch: batch_id(&id)?, now: app.clock.now() };
    let cancelled = app.db.write(change).await?;
    for file in cancelled.stopped {
        stop_work(&app, file);
    }
    let progress = batch::progress(&mut app.db.read().await?, cancelled.batch.id).await?;
    Ok(Json(view(cancelled.batch, Some(progress))))
}
