//! Files that are stuck: which, why, and tried again.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::request::{Params, everybodys, file_id};
use crate::app::App;
use crate::error::{Error, Refusal};
use crate::file::{Caller, File};
use crate::intake::confirm::{self, Belief};
use crate::lifecycle::Status;
use crate::recovery::stuck_files::{self, RetriedAll, RetriedStuck, RetryStuck, StuckView};

const DEFAULT_SHOWN: usize = 50;
const MOST_SHOWN: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    limit: Option<usize>,
    /// `all`: everybody's, for administrators.
    scope: Option<String>,
}

/// Those that have stood still for longest first, and how many there are.
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Value>, Error> {
    let limit = params.limit.unwrap_or(DEFAULT_SHOWN);
    if !(1..=MOST_SHOWN).contains(&limit) {
        let message = format!("limit must be from 1 to {MOST_SHOWN}");
        return Err(Refusal::new(400, "INVALID_REQUEST", message).into());
    }
    let user = (!everybodys(&caller, params.scope.as_deref())?).then_some(caller.user.as_str());
    let now = app.clock.now();
    let mut tx = app.db.snapshot().await?;
    let (mut shown, mut total): (Vec<StuckView>, usize) = (Vec::new(), 0);
    let mut after = Some(Uuid::nil());
    while let Some(last) = after {
        let (stuck, next) = app.stuck_files.detection.look(&mut tx, user, last, now).await?;
        after = next;
        total += stuck.len();
        shown.extend(stuck.into_iter().map(|stuck| StuckView::new(stuck, now)));
        // What cannot be among the first is not kept, however many there are.
        shown.sort_by_key(|file| file.updated_at);
        shown.truncate(limit);
    }
    let without_workers = stuck_files::without_workers(&mut tx, user, now).await?;
    Ok(Json(json!({ "files": shown, "total": total, "withoutWorkers": without_workers })))
}

pub async fn retry(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<RetriedStuck>, Error> {
    let (id, now) = (file_id(&id)?, app.clock.now());
    let file = File::find_for(&mut app.db.read().await?, &caller, id).await?;
    let retried = if file.status == Status::Uploaded {
        // All that it lacks is its owner's word.
        let confirmed =
            confirm::confirm(&app.db, &app.blobs, &caller, id, None, &Belief::default(), now).await?;
        RetriedStuck {
            success: true,
            file_id: id,
            previous_status: file.status,
            new_status: confirmed.status,
            retry_count: file.retry_count,
        }
    } else {
        app.db.write(RetryStuck { caller, file: id, now }).await?
    };
    app.wake.new_work();
    Ok(Json(retried))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryParams {
    scope: Option<String>,
}

pub async fn retry_all(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<RetryParams>,
) -> Result<Json<RetriedAll>, Error> {
    let user = (!everybodys(&caller, params.scope.as_deref())?).then_some(caller.user.as_str());
    app.stuck_files.retry_all(user, app.clock.now()).await.map(Json)
}
