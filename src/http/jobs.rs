//! The same files under the names of an older API, whose clients call them jobs. What they see is what `files` answers;
//! only who may not see a file is told so differently, and a retry is answered in that API's own words.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::files::{self, Retry};
use super::request::file_id;
use crate::app::App;
use crate::error::{Error, Refusal};
use crate::file::{Caller, FileView};

pub use super::files::list;

pub async fn show(state: State<App>, caller: Caller, id: Path<String>) -> Result<Json<FileView>, Error> {
    files::show(state, caller, id).await.map_err(in_its_words)
}

pub async fn download(state: State<App>, caller: Caller, id: Path<String>) -> Result<Response, Error> {
    files::download(state, caller, id).await.map_err(in_its_words)
}

pub async fn retry(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Error> {
    let retry = Retry { only_failed: true, ..Retry::default() };
    let retried = match file_id(&id) {
        Ok(id) => retry.carry_out(&app, caller, id).await,
        Err(refusal) => Err(refusal.into()),
    };
    let file = retried.map_err(in_its_words)?;
    Ok(Json(json!({ "message": "Job queued for retry", "job": { "id": file.id, "status": file.status } })))
}

fn in_its_words(error: Error) -> Error {
    match error {
        Error::Refused(refusal) if refusal == Refusal::no_such_file() || refusal == Refusal::gone() => {
            Refusal::new(403, "FORBIDDEN", "Not authorized").into()
        }
        Error::Refused(refusal) if refusal.code == "INVALID_STATE" => {
            Refusal { message: "Only failed jobs can be retried".to_owned(), ..refusal }.into()
        }
        other => other,
    }
}
