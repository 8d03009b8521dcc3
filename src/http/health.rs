//! Whether this process lives, and whether it can do its work.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::app::App;
use crate::db::{Tx, Write, args};
use crate::error::Error;

pub async fn alive() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

pub async fn ready(State(app): State<App>) -> (StatusCode, Json<Value>) {
    let database = database(&app).await;
    let storage = storage(&app).await;
    let status =
        if database.is_ok() && storage.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let say = |result: &Result<(), Error>| if result.is_ok() { "ok" } else { "unavailable" };
    (status, Json(json!({ "database": say(&database), "storage": say(&storage) })))
}

/// Reads, and goes the way of a change without changing anything.
pub async fn database(app: &App) -> Result<(), Error> {
    app.db.read().await?.number("SELECT COUNT(*) FROM workers", args![]).await?;
    app.db.write(Nothing).await
}

pub async fn storage(app: &App) -> Result<(), Error> {
    app.blobs.check().await
}

struct Nothing;

impl Write for Nothing {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute("UPDATE workers SET name = name WHERE 1 = 0", args![]).await.map(drop)
    }
}
