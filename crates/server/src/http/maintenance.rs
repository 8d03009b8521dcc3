//! The recovery jobs, for administrators: when each ran and will run, and a way to run one now.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::request::{InPath, Params, require_admin};
use crate::app::App;
use crate::http::error::ApiError;
use crate::recovery::runs::{self, JobView, RunView};
use landfall_core::caller::Caller;

/// How long a request waits for the end of a run. After that the response says that it is still running.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Serialize, utoipa::ToSchema)]
pub struct JobList {
    jobs: Vec<JobView>,
}

/// The jobs, and when each ran and will run.
#[utoipa::path(
    get, path = "/api/v2/admin/jobs", operation_id = "listMaintenanceJobs", tag = "administration",
    responses((status = 200, body = JobList))
)]
pub async fn list(State(app): State<App>, caller: Caller) -> Result<Json<JobList>, ApiError> {
    require_admin(&caller)?;
    let jobs = runs::list(&mut app.db.read().await?).await?;
    Ok(Json(JobList { jobs }))
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct JobRun {
    name: String,
    run: Option<RunView>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunParams {
    /// Ignore the safety limit.
    force: Option<bool>,
}

/// Runs a job now. Returns its result, or that it is still running.
#[utoipa::path(
    post, path = "/api/v2/admin/jobs/{jobName}/run", operation_id = "runMaintenanceJob", tag = "administration",
    params(RunParams),
    responses(
        (status = 200, body = JobRun, description = "It has ended"),
        (status = 202, body = JobRun, description = "It is still running"),
        (status = "4XX", description = "JOB_NOT_FOUND JOB_RUNNING NOTHING_TO_FORCE")
    )
)]
pub async fn run(
    State(app): State<App>,
    caller: Caller,
    InPath(name): InPath<String>,
    Params(params): Params<RunParams>,
) -> Result<Response, ApiError> {
    require_admin(&caller)?;
    let started = match params.force {
        Some(true) => app.jobs.run_by_force(&name, &caller.user).await?,
        _ => app.jobs.run_by_hand(&name, &caller.user).await?,
    };
    let ended = tokio::time::timeout(RESPONSE_TIMEOUT, started.ended).await.is_ok();
    let run = RunView::find(&mut app.db.read().await?, started.run).await?;
    let status = if ended { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(JobRun { name, run })).into_response())
}
