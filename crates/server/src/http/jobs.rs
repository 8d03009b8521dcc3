//! The same files under the names of an older API, which calls them jobs. The responses are those of `files`; only
//! the refusal for another user's file and the response to a retry follow the older API.

use axum::Json;
use axum::extract::State;
use axum::response::Response;

use super::files;
use super::request::{InPath, Params, file_id};
use crate::app::App;
use crate::http::error::ApiError;
use landfall_api::files::{FileList, FileQuery, FileView};
use landfall_api::jobs::{JobState, RetriedJob};
use landfall_core::caller::Caller;
use landfall_core::refusal::{Refusal, RefusalCode};

/// The caller's files, newest first.
#[utoipa::path(
    get, path = "/api/jobs", operation_id = "listJobs", tag = "jobs", params(FileQuery),
    responses((status = 200, body = FileList), (status = "4XX", description = "BATCH_NOT_FOUND"))
)]
pub async fn list(
    state: State<App>,
    caller: Caller,
    query: Params<FileQuery>,
) -> Result<Json<FileList>, ApiError> {
    files::list(state, caller, query).await
}

/// One file.
#[utoipa::path(
    get, path = "/api/jobs/{fileId}", operation_id = "showJob", tag = "jobs",
    responses((status = 200, body = FileView), (status = "4XX", description = "FORBIDDEN"))
)]
pub async fn show(state: State<App>, caller: Caller, id: InPath<String>) -> Result<Json<FileView>, ApiError> {
    files::show(state, caller, id).await.map_err(older_refusal)
}

/// The bytes of a file as they were uploaded.
#[utoipa::path(
    get, path = "/api/jobs/{fileId}/download", operation_id = "downloadJob", tag = "jobs",
    responses(
        (status = 200, body = Vec<u8>, content_type = "*/*",
            headers(("Content-Disposition" = String, description = "An attachment with the file's name"))),
        (status = "4XX", description = "FORBIDDEN FILE_NOT_FOUND UPLOAD_MISSING STORAGE_UNAVAILABLE")
    )
)]
pub async fn download(state: State<App>, caller: Caller, id: InPath<String>) -> Result<Response, ApiError> {
    files::download(state, caller, id).await.map_err(older_refusal)
}

/// Retries a file that failed.
#[utoipa::path(
    post, path = "/api/jobs/{fileId}/retry", operation_id = "retryJob", tag = "jobs",
    responses(
        (status = 200, body = RetriedJob),
        (status = "4XX", description = "FORBIDDEN FILE_NOT_FOUND INVALID_STATE STORAGE_UNAVAILABLE")
    )
)]
pub async fn retry(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<RetriedJob>, ApiError> {
    let retried = match file_id(&id) {
        Ok(id) => files::retry_file(&app, caller, id, None, true).await,
        Err(refusal) => Err(refusal.into()),
    };
    let file = retried.map_err(older_refusal)?;
    let job = JobState { id: file.id, status: file.status };
    Ok(Json(RetriedJob { message: "Job queued for retry".to_owned(), job }))
}

fn older_refusal(error: ApiError) -> ApiError {
    match error {
        ApiError(refusal)
            if refusal == Refusal::no_such_file() || refusal.code == RefusalCode::FileDeleted =>
        {
            Refusal::new(RefusalCode::Forbidden, "Not authorized").into()
        }
        ApiError(refusal) if refusal.code.code() == "INVALID_STATE" => {
            Refusal { message: "Only failed jobs can be retried".to_owned(), ..refusal }.into()
        }
        other => other,
    }
}
