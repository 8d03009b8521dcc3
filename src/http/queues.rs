//! The queue's stages, for administrators: how they stand, held up and let go.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};

use super::request::require_admin;
use crate::app::App;
use crate::error::{Error, Refusal};
use crate::file::Caller;
use crate::lifecycle::Stage;
use crate::observe::queue_status::{self, QueueStatus};
use crate::queue::pause::{Pause, Resume};

pub async fn status(State(app): State<App>, caller: Caller) -> Result<Json<QueueStatus>, Error> {
    require_admin(&caller)?;
    queue_status::look(&mut app.db.snapshot().await?, app.clock.now()).await.map(Json)
}

pub async fn pause(
    State(app): State<App>,
    caller: Caller,
    Path(stage): Path<String>,
) -> Result<Json<Value>, Error> {
    require_admin(&caller)?;
    let stage = parse(&stage)?;
    app.db.write(Pause { stage, by: caller.user, now: app.clock.now() }).await?;
    // Every worker that looks again learns of it.
    app.wake.new_work();
    Ok(Json(json!({ "stage": stage, "paused": true })))
}

pub async fn resume(
    State(app): State<App>,
    caller: Caller,
    Path(stage): Path<String>,
) -> Result<Json<Value>, Error> {
    require_admin(&caller)?;
    let stage = parse(&stage)?;
    app.db.write(Resume { stage }).await?;
    app.wake.new_work();
    Ok(Json(json!({ "stage": stage, "paused": false })))
}

/// The name of a stage, alone or as the queues are called.
fn parse(name: &str) -> Result<Stage, Refusal> {
    name.strip_prefix("file-")
        .unwrap_or(name)
        .parse()
        .map_err(|error| Refusal::new(404, "QUEUE_NOT_FOUND", format!("There is no such queue: {error}")))
}
