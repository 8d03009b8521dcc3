//! Whether this process is alive, and whether it can do its work.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::app::App;
use crate::queue::worker::Ailment;
use crate::reports::probes::Probed;
use landfall_api::health::{Alive, Check, CheckResult, Readiness, Verdict};

/// Whether a path is one of those that say how this process is. They are available to every host, and without a slot.
pub fn is_monitoring(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/metrics")
}

/// Whether this process is alive.
///
/// Depends on nothing: a process that responds is alive, and a restart would fix nothing.
#[utoipa::path(
    get, path = "/healthz", operation_id = "isAlive", tag = "health", security(()),
    responses((status = 200, body = Alive))
)]
pub async fn alive() -> Json<Alive> {
    Json(Alive { status: "ok".to_owned() })
}

/// Whether this process can do its work.
///
/// Names every check, so that an operator knows which one failed.
#[utoipa::path(
    get, path = "/readyz", operation_id = "isReady", tag = "health", security(()),
    responses(
        (status = 200, body = Readiness),
        (status = 503, description = "It cannot do its work", content((Readiness = "application/json")))
    )
)]
pub async fn ready(State(app): State<App>) -> (StatusCode, Json<Readiness>) {
    let Probed { database, storage, disk } = app.probes.probe().await;
    let mut checks =
        vec![("database", database), ("storage", storage), ("disk", disk), ("heartbeat", heartbeat(&app))];
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
        .chain(clock(&app).map(|check| ("clock".to_owned(), check)))
        .collect();
    let (code, status) = if ready {
        (StatusCode::OK, Verdict::Ready)
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, Verdict::NotReady)
    };
    (code, Json(Readiness { status, checks }))
}

/// A process that was declared dead can finish neither its uploads nor its work.
fn heartbeat(app: &App) -> Result<(), String> {
    match app.liveness.silent_for() {
        None => Ok(()),
        Some(silence) => Err(format!("The heartbeat was last renewed {} s ago", silence.num_seconds())),
    }
}

/// A machine whose clock differs from the database's stays ready, because everything goes by the database's.
fn clock(app: &App) -> Option<Check> {
    let time = app.liveness.time();
    let message = time.skew().map(|skew| skew.to_string());
    time.is_shared().then_some(Check { status: CheckResult::Ok, message })
}

fn worker(app: &App) -> Result<(), String> {
    match app.worker.as_ref().and_then(crate::queue::worker::Worker::ailment) {
        None => Ok(()),
        Some(Ailment::NotRunning) => Err("The worker is not running".to_owned()),
        Some(Ailment::Hangs(since)) => {
            Err(format!("The worker last polled the queue {} s ago", since.num_seconds()))
        }
    }
}
