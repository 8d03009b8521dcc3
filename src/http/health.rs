//! Whether this process lives, and whether it can do its work.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::app::App;
use crate::db::args;
use crate::error::Error;

pub async fn alive() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

pub async fn ready(State(app): State<App>) -> (StatusCode, Json<Value>) {
    let database = database(&app).await;
    let storage = app.blobs.check().await;
    let status =
        if database.is_ok() && storage.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let say = |result: &Result<(), Error>| if result.is_ok() { "ok" } else { "unavailable" };
    (status, Json(json!({ "database": say(&database), "storage": say(&storage) })))
}

async fn database(app: &App) -> Result<(), Error> {
    app.db.read().await?.number("SELECT COUNT(*) FROM workers", args![]).await.map(drop)
}
