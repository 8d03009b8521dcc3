//! The stages of the queue, for administrators: status, pause and resume.

use axum::Json;
use axum::extract::State;

use super::request::{InPath, require_operator};
use crate::app::App;
use crate::http::error::ApiError;
use crate::queue::pause::{Pause, Resume};
use crate::reports::queue_status;
use landfall_api::queues::{QueueStatus, StagePause};
use landfall_core::caller::Caller;
use landfall_core::lifecycle::Stage;
use landfall_core::refusal::{Refusal, RefusalCode};

/// The status of the queue.
#[utoipa::path(
    get, path = "/api/v2/admin/queue-status", operation_id = "showQueueStatus", tag = "administration",
    responses((status = 200, body = QueueStatus))
)]
pub async fn status(State(app): State<App>, caller: Caller) -> Result<Json<QueueStatus>, ApiError> {
    require_operator(&caller)?;
    Ok(Json(queue_status::load(&mut app.db.snapshot().await?, app.clock.now()).await?))
}

/// Pauses a stage: no process claims files for it.
#[utoipa::path(
    post, path = "/api/v2/admin/queues/{stage}/pause", operation_id = "pauseQueue", tag = "administration",
    responses((status = 200, body = StagePause), (status = "4XX", description = "QUEUE_NOT_FOUND"))
)]
pub async fn pause(
    State(app): State<App>,
    caller: Caller,
    InPath(stage): InPath<String>,
) -> Result<Json<StagePause>, ApiError> {
    require_operator(&caller)?;
    let stage = parse(&stage)?;
    app.db.write(Pause { stage, by: caller.user, now: app.clock.now() }).await?;
    Ok(Json(StagePause { stage, paused: true }))
}

/// Resumes a stage.
#[utoipa::path(
    post, path = "/api/v2/admin/queues/{stage}/resume", operation_id = "resumeQueue", tag = "administration",
    responses((status = 200, body = StagePause), (status = "4XX", description = "QUEUE_NOT_FOUND"))
)]
pub async fn resume(
    State(app): State<App>,
    caller: Caller,
    InPath(stage): InPath<String>,
) -> Result<Json<StagePause>, ApiError> {
    require_operator(&caller)?;
    let stage = parse(&stage)?;
    app.db.write(Resume { stage }).await?;
    Ok(Json(StagePause { stage, paused: false }))
}

/// The name of a stage, or of its queue.
fn parse(name: &str) -> Result<Stage, Refusal> {
    name.strip_prefix("file-")
        .unwrap_or(name)
        .parse()
        .map_err(|error| Refusal::new(RefusalCode::QueueNotFound, format!("There is no such queue: {error}")))
}
