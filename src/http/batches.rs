//! Batches.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::files::stop_work;
use super::request::{Page, PageParams, Params, Received, batch_id};
use crate::app::App;
use crate::batch::{self, Batch, BatchView};
use crate::error::Error;
use crate::file::Caller;
use crate::intake::batches::{CloseBatch, NewBatch, OpenBatch, OpenedBatch};
use crate::intake::cancel_batch::CancelBatch;
use crate::intake::idempotency::Idempotent;

pub async fn open(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<OpenedBatch>), Error> {
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let batch: NewBatch = received.json()?;
    batch.check()?;
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
                timeout: app.config.intake.batch_timeout,
            },
        })
        .await?;
    Ok((StatusCode::CREATED, Json(opened)))
}

pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<BatchView>, Error> {
    let mut tx = app.db.read().await?;
    let batch = Batch::find_for(&mut tx, &caller, batch_id(&id)?).await?;
    let progress = batch::progress(&mut tx, batch.id).await?;
    Ok(Json(BatchView::new(batch, Some(progress))))
}

pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<PageParams>,
) -> Result<Json<Value>, Error> {
    let page: Page<Uuid> = Page::new(params.limit, params.cursor.as_deref())?;
    let before = page.after.unwrap_or(Uuid::max());
    let batches = Batch::list_for(&mut app.db.read().await?, &caller, before, page.limit).await?;
    let next = page.next(&batches, |batch| batch.id.to_string());
    let batches: Vec<BatchView> = batches.into_iter().map(|batch| BatchView::new(batch, None)).collect();
    Ok(Json(json!({ "batches": batches, "nextCursor": next })))
}

pub async fn close(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<BatchView>, Error> {
    let change = CloseBatch { caller, id: batch_id(&id)?, now: app.clock.now() };
    Ok(Json(BatchView::new(app.db.write(change).await?, None)))
}

pub async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<BatchView>, Error> {
    let change = CancelBatch { caller, batch: batch_id(&id)?, now: app.clock.now() };
    let cancelled = app.db.write(change).await?;
    for file in cancelled.stopped {
        stop_work(&app, file);
    }
    if cancelled.leaves_blobs {
        app.wake.blob_to_remove();
    }
    let progress = batch::progress(&mut app.db.read().await?, cancelled.batch.id).await?;
    Ok(Json(BatchView::new(cancelled.batch, Some(progress))))
}
