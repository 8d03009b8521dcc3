//! Whether this process lives, and whether it can do its work.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;

use crate::app::App;
use crate::db::{Tx, Write, args};
use crate::error::Error;

#[derive(Serialize, utoipa::ToSchema)]
pub struct Alive {
    status: &'static str,
}

/// Whether this process lives.
#[utoipa::path(
    get, path = "/healthz", operation_id = "isAlive", tag = "health", security(()),
    responses((status = 200, body = Alive))
)]
pub async fn alive() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

/// Each is `ok` or `unavailable`.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Readiness {
    database: &'static str,
    storage: &'static str,
}

/// Whether it can do its work.
#[utoipa::path(
    get, path = "/readyz", operation_id = "isReady", tag = "health", security(()),
    responses(
        (status = 200, body = Readiness),
        (status = 503, description = "It cannot", content((Readiness = "application/json")))
    )
)]
pub async fn ready(State(app): State<App>) -> (StatusCode, Json<Readiness>) {
    let database = database(&app).await;
    let storage = app.blobs.check().await;
    let status =
        if database.is_ok() && storage.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let say = |result: &Result<(), Error>| if result.is_ok() { "ok" } else { "unavailable" };
    (status, Json(Readiness { database: say(&database), storage: say(&storage) }))
}

/// Reads, and goes the way of a change without changing anything.
async fn database(app: &App) -> Result<(), Error> {
    app.db.read().await?.number("SELECT COUNT(*) FROM workers", args![]).await?;
    app.db.write(Nothing).await
}

struct Nothing;

impl Write for Nothing {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute("UPDATE workers SET name = name WHERE 1 = 0", args![]).await.map(drop)
    }
}
