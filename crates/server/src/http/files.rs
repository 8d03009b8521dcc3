//! Files: their state and their content.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;
use uuid::Uuid;

use super::file_view::Surroundings;
use super::request::{InPath, Paging, Params, Received, file_id};
use crate::app::App;
use crate::blobs::direct::Download;
use crate::blobs::{Integrity, Pin};
use crate::content::{artifacts, chunks};
use crate::http::error::ApiError;
use crate::intake::attributes::ChangeAttributes;
use crate::intake::cancel::Cancel;
use crate::intake::delete as deletion;
use crate::queue::revive::{self, Revive};
use crate::records::events;
use crate::records::file::File;
use landfall_api::files::{
    ChunkList, ChunkView, FileChanges, FileView, History, RetryRequest, TextFormat, TextQuery,
};
use landfall_api::page::PageQuery;
use landfall_core::blocking;
use landfall_core::caller::Caller;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_core::text::Markup;
use landfall_models::plain_text::plain_text;
use landfall_store::Error;
use landfall_store::Tx;

/// A blob up to this size is compared with its checksum before the first byte is sent. A larger one is compared on the way.
pub const MAX_CHECKED_FIRST: u64 = 4 << 20;
/// How long a redirect to the object store can be followed.
const DOWNLOAD_TTL: Duration = Duration::from_mins(5);

/// One file: its state, what it waits for, and its last error.
///
/// `waitingFor` and `waitingMessage` say why a file does not move, and `retryAt` when it may go on.
#[utoipa::path(
    get, path = "/files/{fileId}", operation_id = "showFile", tag = "files",
    responses((status = 200, body = FileView), (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED"))
)]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<FileView>, ApiError> {
    let mut tx = app.db.read().await?;
    let file = find(&mut tx, &caller, &id).await?;
    view(&app, &mut tx, file).await.map(Json)
}

async fn view(app: &App, tx: &mut Tx, file: File) -> Result<FileView, ApiError> {
    let surroundings = Surroundings::load(tx, &file.tenant_user(), app, std::slice::from_ref(&file)).await?;
    surroundings.view(tx, file).await
}

/// The caller's file, unless it was deleted.
pub async fn find(tx: &mut Tx, caller: &Caller, id: &str) -> Result<File, ApiError> {
    let file = File::find_for(tx, caller, file_id(id)?).await?;
    if !caller.is(&file.tenant_id, &file.user_id) {
        tracing::info!(
            administrator = caller.user,
            fileId = %file.id,
            userId = file.user_id,
            tenantId = file.tenant_id,
            "an administrator read the file of another user"
        );
    }
    if file.status == Status::Deleted { Err(events::gone(tx, file.id).await?.into()) } else { Ok(file) }
}

/// Changes what the client noted about a file.
///
/// The attributes in the body take the place of all that the file has. A search can be narrowed by them.
#[utoipa::path(
    patch, path = "/files/{fileId}", operation_id = "changeFile", tag = "files", request_body = FileChanges,
    responses(
        (status = 200, body = FileView),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED INVALID_ATTRIBUTES")
    )
)]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    request: Request,
) -> Result<Json<FileView>, ApiError> {
    let id = file_id(&id)?;
    let changes: FileChanges = Received::read(request, app.config.http.max_body_bytes).await?.json()?;
    let file = app.db.write(ChangeAttributes::new(caller, id, changes.attributes)?).await?;
    view(&app, &mut app.db.read().await?, file).await.map(Json)
}

/// Deletes a file in any state.
///
/// Its bytes, text and index entries are removed, and its quota is free again. A second deletion changes nothing.
#[utoipa::path(
    delete, path = "/files/{fileId}", operation_id = "deleteFile", tag = "files",
    responses((status = 204), (status = "4XX", description = "FILE_NOT_FOUND STORAGE_UNAVAILABLE"))
)]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<StatusCode, ApiError> {
    let id = file_id(&id)?;
    deletion::delete(&app.db, &app.blobs, &caller, id, app.clock.now()).await?;
    stop_work(&app, id);
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels a file that waits or is being processed.
///
/// Work on it is stopped. It can be retried later, from the stage that it had reached.
#[utoipa::path(
    post, path = "/files/{fileId}/cancel", operation_id = "cancelFile", tag = "files",
    responses(
        (status = 200, body = FileView),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED INVALID_STATE")
    )
)]
pub async fn cancel(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Json<FileView>, ApiError> {
    let file = app.db.write(Cancel { caller, file: file_id(&id)?, now: app.clock.now() }).await?;
    stop_work(&app, file.id);
    view(&app, &mut app.db.read().await?, file).await.map(Json)
}

pub fn stop_work(app: &App, file: Uuid) {
    if let Some(worker) = &app.worker {
        worker.stop_file(file);
    }
}

/// Retries a file, for the routes of files, dead letters and jobs.
pub async fn retry_file(
    app: &App,
    caller: Caller,
    file: Uuid,
    from_stage: Option<Stage>,
    only_failed: bool,
) -> Result<File, ApiError> {
    let wish = Revive {
        caller,
        file,
        from_stage,
        first_stage: app.config.intake.first_stage,
        only_failed,
        now: app.clock.now(),
    };
    let file = revive::revive(&app.db, &app.blobs, wish).await?;
    Ok(file)
}

/// Retries a file that failed or was cancelled.
///
/// It begins at `fromStage`, or at the stage that it ended at. The attempts count from the beginning again.
#[utoipa::path(
    post, path = "/files/{fileId}/retry", operation_id = "retryFile", tag = "files",
    request_body = Option<RetryRequest>,
    responses(
        (status = 200, body = FileView),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED INVALID_STATE STAGE_NOT_REACHED NO_SCANNER \
            STORAGE_UNAVAILABLE")
    )
)]
pub async fn retry(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    request: Request,
) -> Result<Json<FileView>, ApiError> {
    let retry: RetryRequest =
        Received::read(request, app.config.http.max_body_bytes).await?.json_or_default()?;
    let file = retry_file(&app, caller, file_id(&id)?, retry.from_stage, false).await?;
    view(&app, &mut app.db.read().await?, file).await.map(Json)
}

/// Every step of a file, oldest first.
///
/// Each says who or what caused it, and why. A deleted file still has its history for a while.
#[utoipa::path(
    get, path = "/files/{fileId}/history", operation_id = "showHistory", tag = "files", params(PageQuery),
    responses((status = 200, body = History), (status = "4XX", description = "FILE_NOT_FOUND"))
)]
pub async fn history(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    Params(query): Params<PageQuery>,
) -> Result<Json<History>, ApiError> {
    let paging: Paging<i64> = Paging::new(query.limit, query.cursor.as_deref())?;
    let mut tx = app.db.read().await?;
    let file = File::find_for(&mut tx, &caller, file_id(&id)?).await?;
    let history = events::history(&mut tx, file.id, paging.after.unwrap_or(0), paging.fetched()).await?;
    Ok(Json(paging.page(history, |entry| entry.id.to_string())))
}

/// The text that was extracted from a file.
///
/// It is Markdown, with headings, lists, tables and links, unless the file is plain text. Places in the text, such as
/// `charStart`, are places in the Markdown.
#[utoipa::path(
    get, path = "/files/{fileId}/text", operation_id = "showText", tag = "files", params(TextQuery),
    responses(
        (status = 200, content((String = "text/plain"), (String = "text/markdown"))),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED NOT_EXTRACTED")
    )
)]
pub async fn text(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    Params(query): Params<TextQuery>,
) -> Result<Response, ApiError> {
    let mut tx = app.db.read().await?;
    let file = find(&mut tx, &caller, &id).await?;
    let extracted = artifacts::load_text(&mut tx, file.id).await?.ok_or_else(|| not_extracted(&file))?;
    drop(tx);
    let (markup, text) = match (extracted.markup, query.format.unwrap_or_default()) {
        // The text of a large document takes a moment.
        (Markup::Markdown, TextFormat::Plain) => {
            let rendered = blocking::run(move || plain_text(&extracted.text)).await;
            (Markup::Plain, rendered.map_err(|error| Error::Internal(error.to_string()))?)
        }
        (markup, _) => (markup, extracted.text),
    };
    Ok(([(header::CONTENT_TYPE, markup.content_type())], text).into_response())
}

fn not_extracted(file: &File) -> Refusal {
    let message = format!("This file is {}: its text is not extracted yet", file.status);
    Refusal::new(RefusalCode::NotExtracted, message)
}

/// The result of the extraction, as an attachment.
///
/// It is what the operator's extraction service returned, in its content type. It may be a page that another person
/// wrote, so a browser does not show it.
#[utoipa::path(
    get, path = "/files/{fileId}/result", operation_id = "showResult", tag = "files",
    responses(
        (status = 200, body = Vec<u8>, content_type = "*/*",
            headers(("Content-Disposition" = String,
                description = "An attachment with the file's name and the extension of what it is"))),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED NOT_EXTRACTED")
    )
)]
pub async fn result(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Response, ApiError> {
    let mut tx = app.db.read().await?;
    let file = find(&mut tx, &caller, &id).await?;
    let (content_type, body) =
        artifacts::load_result(&mut tx, file.id).await?.ok_or_else(|| not_extracted(&file))?;
    Ok(result_of(&file, &content_type, body))
}

/// What was made of a file, under its name with the extension of what it is.
pub fn result_of(file: &File, content_type: &str, body: Vec<u8>) -> Response {
    let stem = file.file_name.rsplit_once('.').map_or(file.file_name.as_str(), |(stem, _)| stem);
    let stem = if stem.is_empty() { "result" } else { stem };
    let name = format!("{stem}.{}", extension_of(content_type));
    (attachment(&name, Some(content_type)), body).into_response()
}

fn extension_of(content_type: &str) -> &'static str {
    match content_type.split(';').next().unwrap_or_default().trim() {
        "text/markdown" => "md",
        "text/html" => "html",
        "application/xml" | "text/xml" => "xml",
        _ => "txt",
    }
}

/// The chunks of a file, in their order.
///
/// Each is found as one by the search, and says where in the text it begins and ends.
#[utoipa::path(
    get, path = "/files/{fileId}/chunks", operation_id = "listChunks", tag = "files", params(PageQuery),
    responses((status = 200, body = ChunkList), (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED"))
)]
pub async fn chunks(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    Params(query): Params<PageQuery>,
) -> Result<Json<ChunkList>, ApiError> {
    let paging: Paging<i64> = Paging::new(query.limit, query.cursor.as_deref())?;
    let mut tx = app.db.read().await?;
    let file = find(&mut tx, &caller, &id).await?;
    let chunks = chunks::load(&mut tx, file.id, paging.after.unwrap_or(-1), paging.fetched()).await?;
    Ok(Json(paging.page(chunks, |chunk| chunk.ordinal.to_string()).map(ChunkView::from)))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DownloadQuery {
    /// Have the bytes sent by this server also where they are in an object store.
    #[serde(default)]
    proxy: bool,
}

/// The bytes of a file as they were uploaded. Always as an attachment: an upload is not a page of this server.
///
/// Where the bytes are in an object store, the response is a redirect to it, unless `proxy=true`.
#[utoipa::path(
    get, path = "/api/v2/uploads/files/{fileId}/download", operation_id = "downloadFile", tag = "files",
    params(DownloadQuery),
    responses(
        (status = 200, body = Vec<u8>, content_type = "*/*",
            headers(("Content-Disposition" = String, description = "An attachment with the file's name"))),
        (status = 302, headers(("Location" = String, description = "The address of the bytes in the object store"))),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED UPLOAD_MISSING STORAGE_UNAVAILABLE FILE_DAMAGED \
            BLOB_CHANGED")
    )
)]
pub async fn download(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    Params(query): Params<DownloadQuery>,
) -> Result<Response, ApiError> {
    let file = find(&mut app.db.read().await?, &caller, &id).await?;
    if app.config.intake.is_direct
        && !query.proxy
        && let Some(response) = redirect_to_store(&app, &file).await?
    {
        return Ok(response);
    }
    bytes_of(&app, &file).await
}

/// The address of the bytes in the object store, if the store has exactly those that were confirmed. `None` where the bytes
/// must go through this server.
async fn redirect_to_store(app: &App, file: &File) -> Result<Option<Response>, ApiError> {
    let Some(pin) = Pin::of(file) else { return Ok(None) };
    let [(_, content_type), (_, disposition), _] = attachment(&file.file_name, file.content_type.as_deref());
    let download = Download {
        disposition: disposition.to_str().unwrap_or("attachment"),
        content_type: content_type.to_str().unwrap_or("application/octet-stream"),
    };
    let signed = app.blobs.sign_download(&pin, &download, DOWNLOAD_TTL).await?;
    let Some(url) = signed.and_then(|url| HeaderValue::from_str(&url).ok()) else { return Ok(None) };
    // A signed address binds a version, where the bucket keeps versions, and otherwise only the key.
    app.blobs.must_be_unchanged(&pin).await.map_err(or_gone)?;
    // The address is this caller's, and expires.
    let headers = [(header::LOCATION, url), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok(Some((StatusCode::FOUND, headers).into_response()))
}

/// The storage works and has no such blob: the caller learns that.
fn or_gone(error: Error) -> Error {
    match error {
        Error::BlobMissing { .. } => {
            let message = "The bytes of this file are gone from the storage";
            Refusal::new(RefusalCode::FileNotFound, message).into()
        }
        other => other,
    }
}

pub async fn bytes_of(app: &App, file: &File) -> Result<Response, ApiError> {
    let missing = || Refusal::new(RefusalCode::UploadMissing, "The bytes of this file have not arrived yet");
    let pin = Pin::of(file).ok_or_else(missing)?;
    let (key, size) = (&pin.key, pin.size);
    let open = async || app.blobs.read_pinned(&pin).await.map_err(or_gone);
    let (mut blob, integrity) = open().await?;
    let body = if size <= MAX_CHECKED_FIRST {
        let mut bytes = Vec::new();
        let read = blob.read_to_end(&mut bytes).await;
        must_be_right(&integrity)?;
        read.map_err(|error| Error::Storage { what: format!("read {key}"), source: error.into() })?;
        Body::from(bytes)
    } else {
        // One that was found to be damaged may have been restored since.
        if file.blob_damaged_at.is_some() {
            let read = tokio::io::copy(&mut blob, &mut tokio::io::sink()).await;
            must_be_right(&integrity)?;
            read.map_err(|error| Error::Storage { what: format!("read {key}"), source: error.into() })?;
            (blob, _) = open().await?;
        }
        // If the bytes are wrong, the connection breaks off before the last of them.
        Body::from_stream(ReaderStream::with_capacity(blob, 64 * 1024))
    };
    let length = [(header::CONTENT_LENGTH, HeaderValue::from(file.size_bytes))];
    Ok((attachment(&file.file_name, file.content_type.as_deref()), length, body).into_response())
}

fn must_be_right(integrity: &Integrity) -> Result<(), Refusal> {
    if !integrity.is_broken() {
        return Ok(());
    }
    let message = "The stored bytes of this file are not those that were uploaded, so they are not sent. Upload the file again, \
        or ask the operator to restore the storage from a backup";
    Err(Refusal::new(RefusalCode::FileDamaged, message))
}

/// The headers for foreign content: to be saved, and never to be run as a page of this server.
fn attachment(name: &str, content_type: Option<&str>) -> [(HeaderName, HeaderValue); 3] {
    let content_type = content_type.and_then(|kind| HeaderValue::from_str(kind).ok());
    [
        (header::CONTENT_TYPE, content_type.unwrap_or(HeaderValue::from_static("application/octet-stream"))),
        (header::CONTENT_DISPOSITION, disposition(name)),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("sandbox; default-src 'none'; frame-ancestors 'none'"),
        ),
    ]
}

/// The name twice: in ASCII for old clients, and in full for all others (RFC 6266).
fn disposition(name: &str) -> HeaderValue {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%') { c } else { '_' })
        .collect();
    let mut exact = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            exact.push(char::from(byte));
        } else {
            exact.push_str(&format!("%{byte:02X}"));
        }
    }
    HeaderValue::from_str(&format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}"))
        .unwrap_or(HeaderValue::from_static("attachment"))
}
