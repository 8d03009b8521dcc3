//! The dashboard of the caller's files.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;

use super::request::{Params, includes_all_users};
use crate::app::App;
use crate::http::error::ApiError;
use crate::reports::dashboard::{self, Dashboard};
use landfall_core::caller::Caller;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ShowParams {
    /// `all`: the files of all users, for administrators.
    #[param(pattern = "^(own|all)$")]
    scope: Option<String>,
}

/// The state of the caller's files at this moment.
#[utoipa::path(
    get, path = "/dashboard", operation_id = "showDashboard", tag = "files", params(ShowParams),
    responses((status = 200, body = Dashboard))
)]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ShowParams>,
) -> Result<Json<Dashboard>, ApiError> {
    let user = (!includes_all_users(&caller, params.scope.as_deref())?).then_some(caller.user.as_str());
    let (detection, first_stage) = (&app.stuck_files.detection, app.config.intake.first_stage);
    let mut tx = app.db.snapshot().await?;
    Ok(Json(dashboard::load(&mut tx, user, detection, first_stage, app.clock.now()).await?))
}
