//! The recovery jobs, for administrators: when each ran and will run, and a way to run one now.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::request::{InPath, Params, require_admin};
use crate::app::App;
use crate::http::error::ApiError;
use crate::recovery::runs::{self, Run};
use landfall_api::maintenance::{JobList, JobRun, RunQuery, RunView};
use landfall_core::caller::Caller;

/// How long a request waits for the end of a run. After that the response says that it is still running.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

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

/// Runs a job now. Returns its result, or that it is still running.
#[utoipa::path(
    post, path = "/api/v2/admin/jobs/{jobName}/run", operation_id = "runMaintenanceJob", tag = "administration",
    params(RunQuery),
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
    Params(query): Params<RunQuery>,
) -> Result<Response, ApiError> {
    require_admin(&caller)?;
    let started = match query.force {
        Some(true) => app.jobs.run_by_force(&name, &caller.user).await?,
        _ => app.jobs.run_by_hand(&name, &caller.user).await?,
    };
    let ended = tokio::time::timeout(RESPONSE_TIMEOUT, started.ended).await.is_ok();
    let run = Run::find(&mut app.db.read().await?, started.run).await?.map(RunView::from);
    let status = if ended { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(JobRun { name, run })).into_response())
}
