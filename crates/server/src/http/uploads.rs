//! Uploads: register, send the bytes, confirm.

use std::pin::pin;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::{Either, select};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::client_address::Arrival;
use super::host::base_url;
use super::request::{InPath, Params, Received, batch_id, file_id};
use crate::app::App;
use crate::blobs::direct::Declared;
use crate::blobs::signed_url::Signature;
use crate::http::error::ApiError;
use crate::intake::announce::{self, parse_md5};
use crate::intake::confirm;
use crate::intake::direct;
use crate::intake::idempotency::Idempotent;
use crate::intake::register::{Register, Reissue, Tickets};
use crate::intake::upload::{Upload, WHOLE_WITHIN, awaiting_bytes};
use crate::telemetry::traces;
use landfall_api::uploads::{
    Announcement, ConfirmRequest, Confirmed, NewFileOrList, OneOrMany, UploadTicket, UploadTicketOrList,
    Uploaded,
};
use landfall_core::caller::Caller;
use landfall_core::lifecycle::Status;
use landfall_core::refusal::{Refusal, RefusalCode};

const MAX_FILES_PER_REQUEST: usize = 1_000;

/// Reserves room for one file and returns the address for its bytes.
///
/// Send the bytes to `uploadUrl` with `method` and `headers`, and then confirm. The room is released if the bytes
/// do not come in time.
#[utoipa::path(
    post, path = "/files/init", operation_id = "registerFile", tag = "uploads", request_body = Announcement,
    responses(
        (status = 201, body = UploadTicket),
        (status = "4XX", description = "INVALID_FILE_NAME INVALID_FILE_SIZE INVALID_CONTENT_TYPE INVALID_MD5 \
            INVALID_SHA256 INVALID_ATTRIBUTES INVALID_MAPPING TOO_LARGE QUOTA_EXCEEDED TOO_MANY_REGISTRATIONS STORAGE_FULL IDEMPOTENCY_KEY_REUSED")
    )
)]
pub async fn register(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    register_files(&app, caller, None, request).await
}

/// Reserves room for one file of a batch, or for a list of up to 1000.
///
/// Either all files of the list are registered or none. The response is one ticket or a list of them, as the body
/// was.
#[utoipa::path(
    post, path = "/batches/{batchId}/upload-urls", operation_id = "registerFilesInBatch", tag = "uploads",
    request_body = NewFileOrList,
    responses(
        (status = 201, body = UploadTicketOrList),
        (status = "4XX", description = "BATCH_NOT_FOUND BATCH_NOT_ACTIVE BATCH_FULL INVALID_FILE_COUNT \
            INVALID_FILE_NAME INVALID_FILE_SIZE INVALID_CONTENT_TYPE INVALID_MD5 INVALID_SHA256 INVALID_ATTRIBUTES INVALID_MAPPING TOO_LARGE \
            QUOTA_EXCEEDED TOO_MANY_REGISTRATIONS STORAGE_FULL IDEMPOTENCY_KEY_REUSED")
    )
)]
pub async fn register_in_batch(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    request: Request,
) -> Result<Response, ApiError> {
    register_files(&app, caller, Some(batch_id(&id)?), request).await
}

/// One file, or, for a batch, a list of them.
async fn register_files(
    app: &App,
    caller: Caller,
    batch: Option<Uuid>,
    request: Request,
) -> Result<Response, ApiError> {
    app.disk.require_room().await?;
    let base = base_url(&app.config.http, Arrival::of(&request), request.headers());
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let many = batch.is_some() && received.is_list();
    let announced: Vec<Announcement> = if many { received.json_list()? } else { vec![received.json()?] };
    if announced.is_empty() || announced.len() > MAX_FILES_PER_REQUEST {
        return Err(Refusal::new(
            RefusalCode::InvalidFileCount,
            format!("A list has 1 to {MAX_FILES_PER_REQUEST} files"),
        )
        .into());
    }
    let files = announced
        .into_iter()
        .enumerate()
        .map(|(index, announcement)| {
            let checked = announce::check(announcement, app.config.intake.max_file_bytes);
            checked.map(|file| (app.clock.new_id(), file)).map_err(|refusal| at_index(refusal, index, many))
        })
        .collect::<Result<Vec<_>, Refusal>>()?;
    let now = app.clock.now();
    let direct = app.config.intake.is_direct.then(|| app.blobs.max_direct()).flatten();
    let direct = direct.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let expected: Vec<Expected> = files
        .iter()
        .map(|(_, file)| Expected {
            is_direct: direct.is_some_and(|limit| file.size <= limit),
            size: file.size,
            md5: file.md5.clone(),
            sha256: file.sha256.clone(),
        })
        .collect();
    let tickets = Tickets::for_files(&files, &app.signer, &app.config.intake, now);
    let writing = app.db.write_jointly(Idempotent {
        key: received.key(&caller)?,
        now,
        change: Register {
            caller,
            batch,
            priority: None,
            files,
            now,
            config: app.config.intake.clone(),
            tickets: tickets.clone(),
            direct,
            trace: traces::current(),
        },
    });
    let answer = async |tickets: &[UploadTicket]| {
        let mut addressed = Vec::with_capacity(tickets.len());
        for (ticket, expected) in tickets.iter().zip(&expected) {
            addressed.push(address(app, ticket.clone(), expected, &base).await?);
        }
        let answer = if many { OneOrMany::Many(addressed) } else { OneOrMany::One(addressed.remove(0)) };
        Ok::<_, ApiError>((StatusCode::CREATED, Json(answer)).into_response())
    };
    // The answer to 1,000 files takes milliseconds, so it is made while they are written.
    let early = async {
        tokio::task::yield_now().await;
        answer(&tickets).await
    };
    match select(pin!(writing), pin!(early)).await {
        Either::Left((written, early)) => {
            let given = written?;
            if given.are(&tickets) { early.await } else { answer(&given).await }
        }
        Either::Right((early, writing)) => {
            let given = writing.await?;
            if given.are(&tickets) { early } else { answer(&given).await }
        }
    }
}

/// Adds the position in the list.
fn at_index(mut refusal: Refusal, index: usize, many: bool) -> Refusal {
    if many {
        refusal.message = format!("File {index}: {}", refusal.message);
        let details = refusal.details.get_or_insert_with(|| json!({}));
        details["index"] = json!(index);
    }
    refusal
}

/// A fresh URL for a file whose bytes are not confirmed yet.
///
/// It also extends the life of the registration.
#[utoipa::path(
    post, path = "/files/{fileId}/upload-url", operation_id = "freshUploadUrl", tag = "uploads",
    responses(
        (status = 200, body = UploadTicket),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED INVALID_STATE")
    )
)]
pub async fn fresh_url(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    Extension(arrival): Extension<Arrival>,
    headers: HeaderMap,
) -> Result<Json<UploadTicket>, ApiError> {
    let (ticket, file) = app
        .db
        .write(Reissue {
            caller,
            file: file_id(&id)?,
            now: app.clock.now(),
            window: app.config.intake.confirm_window,
            url_ttl: app.config.intake.url_ttl,
            signer: app.signer.clone(),
        })
        .await?;
    let base = base_url(&app.config.http, arrival, &headers);
    let expected = Expected {
        is_direct: file.is_direct,
        size: file.size_bytes,
        md5: file.declared_md5,
        sha256: file.declared_sha256,
    };
    Ok(Json(address(&app, ticket, &expected, &base).await?))
}

/// The bytes that a client may send to an address.
struct Expected {
    /// Whether they go straight to the object store.
    is_direct: bool,
    size: i64,
    md5: Option<String>,
    sha256: Option<String>,
}

/// Adds where the bytes go: to the object store, or to this server.
async fn address(
    app: &App,
    mut ticket: UploadTicket,
    expected: &Expected,
    base: &str,
) -> Result<UploadTicket, ApiError> {
    if expected.is_direct {
        let Expected { size, md5, sha256, .. } = expected;
        let declared = Declared { size: size.unsigned_abs(), md5: md5.as_deref(), sha256: sha256.as_deref() };
        return Ok(direct::readdress(&app.blobs, ticket, &declared, app.config.intake.url_ttl).await?);
    }
    ticket.upload_url.insert_str(0, base);
    Ok(ticket)
}

/// The bytes of a file. The signature in the URL is the authorization.
///
/// The URL is in the response to a registration, and is valid for one file, one size and a limited time.
#[utoipa::path(
    put, path = "/api/v2/uploads/blobs/{fileId}", operation_id = "sendBytes", tag = "uploads", security(()),
    params(
        Signature,
        ("Content-MD5" = Option<String>, Header, description = "The MD5 that the bytes must have"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, body = Uploaded, headers(("ETag" = String, description = "The MD5 of the bytes"))),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED INVALID_STATE INVALID_SIGNATURE \
            UPLOAD_URL_EXPIRED SIZE_MISMATCH CHECKSUM_MISMATCH INVALID_MD5 UPLOAD_BROKEN UPLOAD_STALLED \
            UPLOAD_TOO_SLOW UPLOAD_IN_PROGRESS UPLOAD_INTERRUPTED STORAGE_UNAVAILABLE STORAGE_FULL DATABASE_FILE_GONE DATABASE_UNAVAILABLE INTERNAL")
    )
)]
pub async fn receive(
    State(app): State<App>,
    InPath(id): InPath<String>,
    Params(signature): Params<Signature>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let id = file_id(&id)?;
    let size = app.signer.verify_upload(id, &signature)?;
    if signature.has_expired(app.clock.now()) {
        // A fresh URL helps only while the bytes are awaited. Otherwise the refusal says what else is the matter.
        awaiting_bytes(&mut app.db.read().await?, id).await?;
        return Err(url_expired(id).into());
    }
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<i64>().ok());
    if let Some(length) = announced
        && length != size
    {
        // Refused before any byte is read.
        let message = format!("{size} bytes were declared, but Content-Length is {length}");
        return Err(Refusal::new(RefusalCode::SizeMismatch, message).retryable().into());
    }
    let md5 = match headers.get("content-md5") {
        Some(value) => Some(parse_md5(value.to_str().unwrap_or_default())?),
        None => None,
    };
    let upload = Upload {
        db: app.db.clone(),
        blobs: app.blobs.clone(),
        clock: app.clock.clone(),
        owner: app.liveness.identity().id,
        tasks: app.uploads.clone(),
        arrivals: app.arrivals.clone(),
        disk: app.disk.clone(),
        confirm_window: app.config.intake.confirm_window,
        stall: app.config.http.upload_stall,
        min_rate: app.config.intake.min_rate,
        whole_within: WHOLE_WITHIN,
        file: id,
        size,
        md5,
    };
    let stored = upload.receive(body.into_data_stream()).await?;
    let etag = [(header::ETAG, format!("\"{}\"", stored.md5))];
    let response = Uploaded { file_id: id, status: Status::Uploaded, size: stored.size, md5: stored.md5 };
    Ok((etag, Json(response)).into_response())
}

fn url_expired(file: Uuid) -> Refusal {
    let fresh = format!("/api/v2/uploads/files/{file}/upload-url");
    let message = format!(
        "This upload URL has expired. Ask for a fresh one with POST {fresh}, and send the bytes there"
    );
    Refusal::new(RefusalCode::UploadUrlExpired, message).details(json!({ "freshUrl": fresh }))
}

/// Confirms an upload.
///
/// If the bytes are there and match what was declared, the file is in the queue after this. Repeating it is safe.
#[utoipa::path(
    post, path = "/files/{fileId}/confirm", operation_id = "confirmFile", tag = "uploads",
    request_body = Option<ConfirmRequest>,
    responses(
        (status = 200, body = Confirmed),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED UPLOAD_MISSING UPLOAD_CHANGED SIZE_MISMATCH \
            CHECKSUM_MISMATCH INVALID_FILE_SIZE INVALID_MD5 STORAGE_UNAVAILABLE")
    )
)]
pub async fn confirm(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    request: Request,
) -> Result<Json<Confirmed>, ApiError> {
    confirm_file(&app, &caller, file_id(&id)?, None, request).await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InBatch {
    batch_id: String,
    file_id: String,
}

/// Confirms a file of a batch.
///
/// The same as confirming the file by itself, and refused if the file is not in this batch.
#[utoipa::path(
    post, path = "/batches/{batchId}/files/{fileId}/confirm", operation_id = "confirmFileInBatch",
    tag = "uploads", request_body = Option<ConfirmRequest>,
    responses(
        (status = 200, body = Confirmed),
        (status = "4XX", description = "BATCH_NOT_FOUND FILE_NOT_FOUND FILE_DELETED UPLOAD_MISSING \
            UPLOAD_CHANGED SIZE_MISMATCH CHECKSUM_MISMATCH INVALID_FILE_SIZE INVALID_MD5 STORAGE_UNAVAILABLE")
    )
)]
pub async fn confirm_in_batch(
    State(app): State<App>,
    caller: Caller,
    InPath(InBatch { batch_id: batch, file_id: file }): InPath<InBatch>,
    request: Request,
) -> Result<Json<Confirmed>, ApiError> {
    confirm_file(&app, &caller, file_id(&file)?, Some(batch_id(&batch)?), request).await
}

async fn confirm_file(
    app: &App,
    caller: &Caller,
    id: Uuid,
    batch: Option<Uuid>,
    request: Request,
) -> Result<Json<Confirmed>, ApiError> {
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let request: ConfirmRequest = received.json_or_default()?;
    let confirmed = confirm::confirm(&app.db, &app.blobs, caller, id, batch, &request, &app.clock).await?;
    Ok(Json(Confirmed { file_id: confirmed.file_id, status: confirmed.status }))
}
