//! Stuck files: list them and the reasons, and retry them.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::request::{InPath, Params, file_id, includes_all_users};
use crate::app::App;
use crate::http::error::ApiError;
use crate::intake::confirm::{self, Belief};
use crate::records::file::File;
use crate::recovery::stuck_files;
use crate::recovery::stuck_files::by_hand::{RetriedAll, RetriedStuck, RetryStuck};
use crate::recovery::stuck_files::detection::StuckView;
use landfall_core::caller::Caller;
use landfall_core::lifecycle::Status;
use landfall_core::refusal::{Refusal, RefusalCode};

const DEFAULT_SHOWN: usize = 50;
const MAX_SHOWN: usize = 1_000;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// `all`: the files of all users, for administrators.
    #[param(pattern = "^(own|all)$")]
    scope: Option<String>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StuckList {
    files: Vec<StuckView>,
    total: usize,
    /// How many files wait at each stage that no process runs.
    without_workers: BTreeMap<&'static str, i64>,
}

/// The stuck files, those without progress for the longest time first, and their number.
#[utoipa::path(
    get, path = "/stuck", operation_id = "listStuckFiles", tag = "stuck", params(ListParams),
    responses((status = 200, body = StuckList))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<StuckList>, ApiError> {
    let limit = params.limit.unwrap_or(DEFAULT_SHOWN);
    if !(1..=MAX_SHOWN).contains(&limit) {
        let message = format!("limit must be from 1 to {MAX_SHOWN}");
        return Err(Refusal::new(RefusalCode::InvalidRequest, message).into());
    }
    let user = (!includes_all_users(&caller, params.scope.as_deref())?).then_some(caller.user.as_str());
    let now = app.clock.now();
    let mut tx = app.db.snapshot().await?;
    let (mut shown, mut total): (Vec<StuckView>, usize) = (Vec::new(), 0);
    let mut after = Some(Uuid::nil());
    while let Some(last) = after {
        let (stuck, next) = app.stuck_files.detection.look(&mut tx, user, last, now).await?;
        after = next;
        total += stuck.len();
        shown.extend(stuck.into_iter().map(|stuck| StuckView::new(stuck, now)));
        // Only as many as are shown are kept in memory.
        shown.sort_by_key(|file| file.updated_at);
        shown.truncate(limit);
    }
    let without_workers = stuck_files::without_workers(&mut tx, user, now).await?;
    Ok(Json(StuckList { files: shown, total, without_workers }))
}

/// Recovers one stuck file.
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
        let confirmed =
            confirm::confirm(&app.db, &app.blobs, &caller, id, None, &Belief::default(), now).await?;
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

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RetryParams {
    /// `all`: the files of all users, for administrators.
    #[param(pattern = "^(own|all)$")]
    scope: Option<String>,
}

/// Recovers all stuck files.
#[utoipa::path(
    post, path = "/stuck/retry-all", operation_id = "retryStuckFiles", tag = "stuck", params(RetryParams),
    responses((status = 200, body = RetriedAll))
)]
pub async fn retry_all(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<RetryParams>,
) -> Result<Json<RetriedAll>, ApiError> {
    let user = (!includes_all_users(&caller, params.scope.as_deref())?).then_some(caller.user.as_str());
    Ok(Json(app.stuck_files.retry_all(user, app.clock.now()).await?))
}
