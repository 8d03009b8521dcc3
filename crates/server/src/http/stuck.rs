//! Stuck files: list them and the reasons, and retry them.

use axum::Json;
use axum::extract::State;
use uuid::Uuid;

use super::request::{InPath, Params, file_id};
use crate::app::App;
use crate::http::error::ApiError;
use crate::intake::confirm;
use crate::records::file::File;
use crate::recovery::stuck_files;
use crate::recovery::stuck_files::by_hand::RetryStuck;
use landfall_api::stuck::{RetriedAll, RetriedStuck, RetryQuery, StuckList, StuckQuery, StuckView};
use landfall_api::uploads::ConfirmRequest;
use landfall_core::caller::Caller;
use landfall_core::lifecycle::Status;
use landfall_core::refusal::{Refusal, RefusalCode};

const DEFAULT_SHOWN: usize = 50;
const MAX_SHOWN: usize = 1_000;

/// The stuck files, those without progress for the longest time first, and their number.
///
/// A stuck file should move and does not. `reason` and `message` say why.
#[utoipa::path(
    get, path = "/stuck", operation_id = "listStuckFiles", tag = "stuck", params(StuckQuery),
    responses((status = 200, body = StuckList))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<StuckQuery>,
) -> Result<Json<StuckList>, ApiError> {
    let limit = query.limit.unwrap_or(DEFAULT_SHOWN);
    if !(1..=MAX_SHOWN).contains(&limit) {
        let message = format!("limit must be from 1 to {MAX_SHOWN}");
        return Err(Refusal::new(RefusalCode::InvalidRequest, message).into());
    }
    let reach = caller.reach(query.scope.unwrap_or_default())?;
    let now = app.clock.now();
    let mut tx = app.db.snapshot().await?;
    let (mut shown, mut total): (Vec<StuckView>, usize) = (Vec::new(), 0);
    let mut after = Some(Uuid::nil());
    while let Some(last) = after {
        let (stuck, next) = app.stuck_files.detection.scan(&mut tx, &reach, last, now).await?;
        after = next;
        total += stuck.len();
        shown.extend(stuck.into_iter().map(|stuck| stuck.view(now)));
        // Only as many as are shown are kept in memory.
        shown.sort_by_key(|file| file.updated_at);
        shown.truncate(limit);
    }
    let without_workers = stuck_files::without_workers(&mut tx, &reach, now).await?;
    Ok(Json(StuckList { files: shown, total, without_workers }))
}

/// Recovers one stuck file.
///
/// It goes back to the queue at the stage that it was at. A file that has ended, or is not in the queue yet, is
/// refused.
#[utoipa::path(
    post, path = "/stuck/{fileId}/retry", operation_id = "retryStuckFile", tag = "stuck",
    responses(
        (status = 200, body = RetriedStuck),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED 400/INVALID_STATE INVALID_STATE UPLOAD_MISSING \
            UPLOAD_CHANGED SIZE_MISMATCH STORAGE_UNAVAILABLE")
    )
)]
pub async fn retry(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<RetriedStuck>, ApiError> {
    let (id, now) = (file_id(&id)?, app.clock.now());
    let file = File::find_for(&mut app.db.read().await?, &caller, id).await?;
    let retried = if file.status == Status::Uploaded {
        // The bytes are there; only the owner's confirmation is missing.
        let request = ConfirmRequest::default();
        let confirmed =
            confirm::confirm(&app.db, &app.blobs, &caller, id, None, &request, &app.clock).await?;
        RetriedStuck {
            success: true,
            file_id: id,
            previous_status: file.status,
            new_status: confirmed.status,
            retry_count: file.retry_count,
        }
    } else {
        app.db.write(RetryStuck { caller, file: id, now }).await?
    };
    Ok(Json(retried))
}

/// Recovers all stuck files.
///
/// Each goes back to the queue at the stage that it was at. Files that moved in the meantime are skipped.
#[utoipa::path(
    post, path = "/stuck/retry-all", operation_id = "retryStuckFiles", tag = "stuck", params(RetryQuery),
    responses((status = 200, body = RetriedAll))
)]
pub async fn retry_all(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<RetryQuery>,
) -> Result<Json<RetriedAll>, ApiError> {
    let reach = caller.reach(query.scope.unwrap_or_default())?;
    Ok(Json(app.stuck_files.retry_all(&caller, &reach, app.clock.now()).await?))
}
