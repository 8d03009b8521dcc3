//! Whether this process lives, and whether it can do its work.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::app::App;
use crate::queue::worker::Ailment;
use landfall_api::health::{Alive, Check, CheckResult, Readiness, Verdict};
use landfall_store::Error;
use landfall_store::{Tx, Write, args};

/// Whoever asks has little patience: what does not answer by then does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether this process lives.
///
/// Depends on nothing: a process that answers lives, and starting it again would mend nothing.
#[utoipa::path(
    get, path = "/healthz", operation_id = "isAlive", tag = "health", security(()),
    responses((status = 200, body = Alive))
)]
pub async fn alive() -> Json<Alive> {
    Json(Alive { status: "ok".to_owned() })
}

/// Whether it can do its work.
///
/// Names every check, so that whoever finds this red knows where to look.
#[utoipa::path(
    get, path = "/readyz", operation_id = "isReady", tag = "health", security(()),
    responses(
        (status = 200, body = Readiness),
        (status = 503, description = "It cannot", content((Readiness = "application/json")))
    )
)]
pub async fn ready(State(app): State<App>) -> (StatusCode, Json<Readiness>) {
    let (database, storage) =
        tokio::join!(in_time("database", database(&app)), in_time("storage", app.blobs.check()));
    let mut checks = vec![("database", database), ("storage", storage), ("heartbeat", heartbeat(&app))];
    if app.worker.is_some() {
        checks.push(("worker", worker(&app)));
    }
    let ready = checks.iter().all(|(_, check)| check.is_ok());
    let checks = checks
        .into_iter()
        .map(|(name, check)| {
            let status = if check.is_ok() { CheckResult::Ok } else { CheckResult::Failed };
            (name.to_owned(), Check { status, message: check.err() })
        })
        .collect();
    let (code, status) = if ready {
        (StatusCode::OK, Verdict::Ready)
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, Verdict::NotReady)
    };
    (code, Json(Readiness { status, checks }))
}

/// The sentence is for anybody who asks, so it says nothing of where and how.
async fn in_time(what: &str, check: impl Future<Output = Result<(), Error>>) -> Result<(), String> {
    match tokio::time::timeout(PATIENCE, check).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            tracing::warn!(check = what, %error, "not ready");
            Err(format!("The {what} is not available"))
        }
        Err(_) => {
            tracing::warn!(check = what, "not ready: no answer in time");
            Err(format!("The {what} did not answer within {} s", PATIENCE.as_secs()))
        }
    }
}

/// Reads, and goes the way of a change without changing anything.
pub async fn database(app: &App) -> Result<(), Error> {
    app.db.read().await?.number("SELECT COUNT(*) FROM workers", args![]).await?;
    app.db.write(Nothing).await
}

struct Nothing;

impl Write for Nothing {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute("UPDATE workers SET name = name WHERE 1 = 0", args![]).await.map(drop)
    }
}

/// A process that the others take for dead gets none of its uploads in and none of its work done.
fn heartbeat(app: &App) -> Result<(), String> {
    match app.liveness.silent_for() {
        None => Ok(()),
        Some(silence) => Err(format!("The heartbeat was last renewed {} s ago", silence.num_seconds())),
    }
}

fn worker(app: &App) -> Result<(), String> {
    match app.worker.as_ref().and_then(crate::queue::worker::Worker::ailment) {
        None => Ok(()),
        Some(Ailment::NotRunning) => Err("The worker is not running".to_owned()),
        Some(Ailment::Hangs(since)) => {
            Err(format!("The worker last looked at the queue {} s ago", since.num_seconds()))
        }
    }
}
