//! Batches.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::request::{Params, Received, batch_id, cursor, page_size};
use crate::app::App;
use crate::batch::{self, Batch, BatchView};
use crate::error::Error;
use crate::file::Caller;
use crate::intake::batches::{CloseBatch, NewBatch, OpenBatch, OpenedBatch};
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListParams {
    limit: Option<i64>,
    cursor: Option<String>,
}

pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Value>, Error> {
    let limit = page_size(params.limit)?;
    let before = cursor(params.cursor.as_deref())?.unwrap_or(Uuid::max());
    let batches = Batch::list_for(&mut app.db.read().await?, &caller, before, limit).await?;
    let full = i64::try_from(batches.len()) == Ok(limit);
    let next = batches.last().filter(|_| full).map(|batch| batch.id);
    let batches: Vec<BatchView> = batches
        .into_iter()
        .map(|batch| BatchView::new(batch, None))
        .collect();
    Ok(Json(json!({ "batches": batches, "nextCursor": next })))
}

pub async fn close(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<BatchView>, Error> {
    let change = CloseBatch {
        caller,
        id: batch_id(&id)?,
        now: app.clock.now(),
    };
    Ok(Json(BatchView::new(app.db.write(change).await?, None)))
}
