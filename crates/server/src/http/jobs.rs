//! The same files in the shape of an older API, which calls them jobs: their fields, their states, their refusals, and
//! downloads of what was made of them.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use uuid::Uuid;

use super::files::{self, find};
use super::request::{InPath, Paging, Params, file_id};
use crate::app::App;
use crate::content::artifacts;
use crate::http::error::ApiError;
use crate::records::events;
use crate::records::file::File;
use crate::records::files::listing::{Listing, Position, Sorting, Wanted};
use landfall_api::jobs::{JobList, JobQuery, JobState, JobStatus, JobView, RetriedJob};
use landfall_core::caller::{Caller, Reach};
use landfall_core::clock::Time;
use landfall_core::lifecycle::Status;
use landfall_core::reason;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Tx;

/// The caller's files as jobs, newest first.
///
/// A job has the id of its file. Use `cursor` for the next page; `offset` is for clients that count pages.
#[utoipa::path(
    get, path = "/api/jobs", operation_id = "listJobs", tag = "jobs", params(JobQuery),
    responses((status = 200, body = JobList))
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(query): Params<JobQuery>,
) -> Result<Json<JobList>, ApiError> {
    let paging: Paging<Position> = Paging::with_offset(query.limit, query.cursor.as_deref(), query.offset)?;
    let states = query.status.map_or(&[] as &[Status], JobStatus::states).to_vec();
    let wanted = Wanted { states, ..Wanted::all_of(Reach::User(caller.owner())) };
    let sorting = Sorting::default();
    if paging.after.as_ref().is_some_and(|after| !after.is_sorted_by(sorting.by)) {
        return Err(Refusal::new(RefusalCode::InvalidCursor, "This cursor is not valid").into());
    }
    let listing = Listing::new(&wanted, sorting, paging.after.as_ref());
    let mut tx = app.db.read().await?;
    let found = listing.first(&mut tx, paging.fetched(), paging.offset).await?;
    let ids: Vec<Uuid> = found.iter().map(|file| file.id).collect();
    let attempts = attempts(&mut tx, &ids).await?;
    let (now, most) = (app.clock.now(), app.config.queue.retry.max_attempts);
    Ok(Json(paging.page(found, |file| file.id.to_string()).map(|file| view(file, &attempts, most, now))))
}

/// One file as a job.
///
/// The state has a word of the older API: `uploading`, `queued`, `processing`, `complete`, `failed` or `cancelled`.
#[utoipa::path(
    get, path = "/api/jobs/{fileId}", operation_id = "showJob", tag = "jobs",
    responses((status = 200, body = JobView), (status = "4XX", description = "FORBIDDEN"))
)]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<JobView>, ApiError> {
    let mut tx = app.db.read().await?;
    let file = find(&mut tx, &caller, &id).await.map_err(older_refusal)?;
    let attempts = attempts(&mut tx, &[file.id]).await?;
    Ok(Json(view(file, &attempts, app.config.queue.retry.max_attempts, app.clock.now())))
}

/// The attempts at the stage of each file that took the most. A row counts only those at its present stage.
async fn attempts(tx: &mut Tx, files: &[Uuid]) -> Result<HashMap<Uuid, i64>, ApiError> {
    let by_stage = events::attempts(tx, files).await?;
    Ok(by_stage.into_iter().map(|(file, stages)| (file, stages.into_values().max().unwrap_or(0))).collect())
}

fn view(file: File, attempts: &HashMap<Uuid, i64>, max_attempts: u32, now: Time) -> JobView {
    let said = file.error_message.as_deref().unwrap_or_default();
    let error_message = file.error_code.as_ref().map(|code| reason::sentences(code, said, file.status));
    JobView {
        id: file.id,
        file_name: file.file_name,
        file_size: file.size_bytes,
        status: JobStatus::of(file.status),
        attempt_count: file.attempt.max(if file.status == Status::Ready {
            attempts.get(&file.id).copied().unwrap_or(0)
        } else {
            0
        }),
        max_attempts,
        error_code: file.error_code,
        error_message,
        last_attempt_at: file.error_at.max(file.claimed_at).max(file.ready_at),
        retry_after: file.run_after.filter(|at| *at > now),
        is_dead_letter: file.status == Status::Failed,
        can_download: file.status == Status::Ready,
        created_at: file.created_at,
        updated_at: file.updated_at,
        queued_at: file.confirmed_at,
        completed_at: file.ready_at.filter(|_| file.status == Status::Ready),
        failed_at: file.failed_at,
    }
}

/// What the operator's extraction service made of a file; where there is none, the bytes as they were uploaded.
///
/// The response is an attachment, with the content type that the service declared or that was declared at the
/// registration.
#[utoipa::path(
    get, path = "/api/jobs/{fileId}/download", operation_id = "downloadJob", tag = "jobs",
    responses(
        (status = 200, body = Vec<u8>, content_type = "*/*",
            headers(("Content-Disposition" = String, description = "An attachment with the file's name"))),
        (status = "4XX", description = "FORBIDDEN FILE_NOT_FOUND INVALID_STATE UPLOAD_MISSING STORAGE_UNAVAILABLE \
            FILE_DAMAGED")
    )
)]
pub async fn download(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Response, ApiError> {
    let mut tx = app.db.read().await?;
    let file = find(&mut tx, &caller, &id).await.map_err(older_refusal)?;
    if let Some((content_type, body)) = artifacts::load_converted(&mut tx, file.id).await? {
        return Ok(files::result_of(&file, &content_type, body));
    }
    drop(tx);
    if file.status != Status::Ready {
        let message = "This job is not complete, so it has no result to download";
        return Err(Refusal::new(RefusalCode::InvalidState, message).into());
    }
    files::bytes_of(&app, &file).await
}

/// Retries a file that failed.
///
/// It begins at the stage that failed. A job in any other state is refused with `INVALID_STATE`.
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
    let job = JobState { id: file.id, status: JobStatus::of(file.status) };
    Ok(Json(RetriedJob { message: "Job queued for retry".to_owned(), job }))
}

fn older_refusal(error: ApiError) -> ApiError {
    match error {
        ApiError(refusal)
            if refusal.message == Refusal::no_such_file().message
                || refusal.code == RefusalCode::FileDeleted =>
        {
            Refusal::new(RefusalCode::Forbidden, "Not authorized").into()
        }
        ApiError(refusal) if refusal.code.code() == "INVALID_STATE" => {
            Refusal { message: "Only failed jobs can be retried".to_owned(), ..refusal }.into()
        }
        other => other,
    }
}
