//! The recovery jobs, for administrators: when each ran and will run, and a way to run one now.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::request::{InPath, Paging, Params, require_operator};
use crate::app::App;
use crate::http::error::ApiError;
use crate::records::cleanup_failures;
use crate::records::cursor::Cursor;
use crate::recovery::runs::{self, Run};
use landfall_api::maintenance::{
    CleanupFailureList, CleanupFailureQuery, JobList, JobRun, RunList, RunQuery, RunView,
};
use landfall_api::page::PageQuery;
use landfall_core::caller::Caller;
use landfall_core::refusal::{Refusal, RefusalCode};

/// How long a request waits for the end of a run. After that the response says that it is still running.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

const DEFAULT_SHOWN: i64 = 50;
const MAX_SHOWN: i64 = 1_000;

/// The jobs, and when each ran and will run.
///
/// The times are in UTC. A job runs in one process at a time, whichever is first.
#[utoipa::path(
    get, path = "/api/v2/admin/jobs", operation_id = "listMaintenanceJobs", tag = "administration",
    responses((status = 200, body = JobList))
)]
pub async fn list(State(app): State<App>, caller: Caller) -> Result<Json<JobList>, ApiError> {
    require_operator(&caller)?;
    let jobs = runs::list(&mut app.db.read().await?).await?;
    Ok(Json(JobList { jobs }))
}

/// Runs a job now.
///
/// The response is 200 with the result, or 202 if the job still runs after some seconds: it goes on, and the list
/// of jobs shows its end. `force` ignores the safety limit of a job that has one.
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
    require_operator(&caller)?;
    let started = match query.force {
        Some(true) => app.jobs.run_by_force(&name, &caller.user).await?,
        _ => app.jobs.run_by_hand(&name, &caller.user).await?,
    };
    let ended = tokio::time::timeout(RESPONSE_TIMEOUT, started.ended).await.is_ok();
    let run = Run::find(&mut app.db.read().await?, started.run).await?.map(RunView::from);
    let status = if ended { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(JobRun { name, run })).into_response())
}

/// The runs of a job, the newest first.
///
/// Those of the last 30 days, and at most 500. A run whose process died is `interrupted`.
#[utoipa::path(
    get, path = "/api/v2/admin/jobs/{jobName}/runs", operation_id = "listMaintenanceRuns", tag = "administration",
    params(PageQuery), responses((status = 200, body = RunList), (status = "4XX", description = "JOB_NOT_FOUND"))
)]
pub async fn history(
    State(app): State<App>,
    caller: Caller,
    InPath(name): InPath<String>,
    Params(query): Params<PageQuery>,
) -> Result<Json<RunList>, ApiError> {
    require_operator(&caller)?;
    app.jobs.require(&name)?;
    let paging: Paging<Cursor> = Paging::new(query.limit, query.cursor.as_deref())?;
    let runs = runs::history(&mut app.db.read().await?, &name, paging.after, paging.fetched()).await?;
    Ok(Json(paging.page(runs, |run| run.place().to_string()).map(RunView::from)))
}

/// What could not be cleaned, with the last error of each, those that wait longest first.
///
/// Each is tried again by itself, and leaves the list when it is clean.
#[utoipa::path(
    get, path = "/api/v2/admin/cleanup-failures", operation_id = "listCleanupFailures", tag = "administration",
    params(CleanupFailureQuery), responses((status = 200, body = CleanupFailureList))
)]
pub async fn cleanup_failures(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<CleanupFailureQuery>,
) -> Result<Json<CleanupFailureList>, ApiError> {
    require_operator(&caller)?;
    let limit = query.limit.unwrap_or(DEFAULT_SHOWN);
    if !(1..=MAX_SHOWN).contains(&limit) {
        let message = format!("limit must be from 1 to {MAX_SHOWN}");
        return Err(Refusal::new(RefusalCode::InvalidRequest, message).into());
    }
    let mut tx = app.db.read().await?;
    let failures = cleanup_failures::list(&mut tx, limit).await?;
    let total = cleanup_failures::count(&mut tx).await?.into_iter().map(|(_, count)| count).sum();
    Ok(Json(CleanupFailureList { failures, total }))
}
