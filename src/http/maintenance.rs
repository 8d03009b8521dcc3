//! The sweeps, for administrators: when each ran and will run, and one run now.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::request::{Params, require_admin};
use crate::app::App;
use crate::error::Error;
use crate::file::Caller;
use crate::recovery::runs::{self, RunView};

/// How long a run may take before it is answered that it goes on.
const WHILE_THE_CALLER_WAITS: Duration = Duration::from_secs(10);

pub async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Value>, Error> {
    require_admin(&caller)?;
    let jobs = runs::list(&mut app.db.read().await?).await?;
    Ok(Json(json!({ "jobs": jobs })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunParams {
    /// Also if that looks like a mistake.
    force: Option<bool>,
}

/// Answers what came of it, or that it is under way.
pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Params(params): Params<RunParams>,
) -> Result<Response, Error> {
    require_admin(&caller)?;
    let started = match params.force {
        Some(true) => app.jobs.run_by_force(&name, &caller.user).await?,
        _ => app.jobs.run_by_hand(&name, &caller.user).await?,
    };
    let ended = tokio::time::timeout(WHILE_THE_CALLER_WAITS, started.ended).await.is_ok();
    let run = RunView::find(&mut app.db.read().await?, started.run).await?;
    let status = if ended { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(json!({ "name": name, "run": run }))).into_response())
}
