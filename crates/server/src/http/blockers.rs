//! Why files do not move.

use axum::Json;
use axum::extract::State;

use super::request::Params;
use crate::app::App;
use crate::http::error::ApiError;
use crate::reports::blockers::{self, Wanted};
use landfall_api::blockers::{BlockerQuery, BlockerReport};
use landfall_core::caller::Caller;

/// Why files do not move.
///
/// Each cause with its files, what would help, and whether the caller may do it; and how many files are at each stage.
#[utoipa::path(
    get, path = "/blockers", operation_id = "showBlockers", tag = "files", params(BlockerQuery),
    responses((status = 200, body = BlockerReport))
)]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<BlockerQuery>,
) -> Result<Json<BlockerReport>, ApiError> {
    let wanted = Wanted {
        reach: caller.reach(query.scope.unwrap_or_default())?,
        is_operator: caller.is_operator(),
        detection: &app.stuck_files.detection,
        limits: &app.config.queue.limits,
        first_stage: app.config.intake.first_stage,
        now: app.clock.now(),
    };
    Ok(Json(blockers::load(&mut app.db.snapshot().await?, &wanted).await?))
}
