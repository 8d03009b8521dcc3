//! The dashboard of the caller's files.

use axum::Json;
use axum::extract::State;

use super::request::Params;
use crate::app::App;
use crate::http::error::ApiError;
use crate::reports::dashboard;
use landfall_api::dashboard::{Dashboard, DashboardQuery};
use landfall_core::caller::Caller;

/// The state of the caller's files at this moment.
///
/// The counts are exact at the time of the request.
#[utoipa::path(
    get, path = "/dashboard", operation_id = "showDashboard", tag = "files", params(DashboardQuery),
    responses((status = 200, body = Dashboard))
)]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<DashboardQuery>,
) -> Result<Json<Dashboard>, ApiError> {
    let reach = caller.reach(query.scope.unwrap_or_default())?;
    let (detection, first_stage) = (&app.stuck_files.detection, app.config.intake.first_stage);
    let in_full = caller.is_operator();
    let mut tx = app.db.snapshot().await?;
    Ok(Json(dashboard::load(&mut tx, &reach, in_full, detection, first_stage, app.clock.now()).await?))
}
