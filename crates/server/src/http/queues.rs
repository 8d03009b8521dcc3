//! The stages of the queue, for administrators: status, pause and resume.

use axum::Json;
use axum::extract::State;

use super::request::{InPath, Params, require_operator};
use crate::app::App;
use crate::http::error::ApiError;
use crate::queue::pause::{Pause, Resume};
use crate::queue::probe::Probe;
use crate::reports::queue_status;
use landfall_api::queues::{CircuitView, MAX_HOURS, QueueStatus, QueueStatusQuery, StagePause};
use landfall_core::caller::Caller;
use landfall_core::lifecycle::Stage;
use landfall_core::refusal::{Refusal, RefusalCode};

/// The status of the queue.
///
/// Throughput, the waiting and running files of each stage, the workers, the circuits of the services, and the
/// schedules.
#[utoipa::path(
    get, path = "/api/v2/admin/queue-status", operation_id = "showQueueStatus", tag = "administration",
    params(QueueStatusQuery), responses((status = 200, body = QueueStatus))
)]
pub async fn status(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<QueueStatusQuery>,
) -> Result<Json<QueueStatus>, ApiError> {
    require_operator(&caller)?;
    if query.hours.is_some_and(|hours| !(1..=MAX_HOURS).contains(&hours)) {
        let message = format!("hours must be from 1 to {MAX_HOURS}");
        return Err(Refusal::new(RefusalCode::InvalidRequest, message).into());
    }
    Ok(Json(queue_status::load(&mut app.db.snapshot().await?, query.hours, app.clock.now()).await?))
}

/// Pauses a stage.
///
/// No process claims files for it from now on. Files that are being worked on finish, and the others wait until the
/// stage is resumed.
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
///
/// The files that wait for it are claimed at once. A stage that is not paused stays as it is.
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

/// Tries a service at once whose circuit is open.
///
/// The files that have waited the longest go to it. Any other circuit stays as it is.
#[utoipa::path(
    post, path = "/api/v2/admin/circuits/{service}/probe", operation_id = "probeCircuit", tag = "administration",
    responses((status = 200, body = CircuitView), (status = "4XX", description = "CIRCUIT_NOT_FOUND"))
)]
pub async fn probe(
    State(app): State<App>,
    caller: Caller,
    InPath(service): InPath<String>,
) -> Result<Json<CircuitView>, ApiError> {
    require_operator(&caller)?;
    let service = service.parse().map_err(|error| {
        Refusal::new(RefusalCode::CircuitNotFound, format!("There is no such service: {error}"))
    })?;
    let probe = Probe { service, breaker: app.config.queue.breaker, now: app.clock.now() };
    Ok(Json(app.db.write(probe).await?.view(service, true)))
}

/// The name of a stage, or of its queue.
fn parse(name: &str) -> Result<Stage, Refusal> {
    name.strip_prefix("file-")
        .unwrap_or(name)
        .parse()
        .map_err(|error| Refusal::new(RefusalCode::QueueNotFound, format!("There is no such queue: {error}")))
}
