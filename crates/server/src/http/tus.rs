//! Resumable uploads by the protocol tus 1.0 (<https://tus.io/protocols/resumable-upload>): what its headers mean, and its statuses.

mod metadata;

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use uuid::Uuid;

use super::client_address::Arrival;
use super::host::base_url;
use super::request::{InPath, require_scope};
use crate::app::App;
use crate::auth::Identity;
use crate::http::error::ApiError;
use crate::intake::announce::{self, check_size};
use crate::intake::idempotency;
use crate::intake::resumable::Progress;
use crate::intake::resumable::checksum::{ALGORITHMS, Expected};
use crate::intake::resumable::create::{Beginning, MAX_PARTS};
use crate::intake::resumable::receive::Piece;
use crate::records::resumable::Kind;
use landfall_core::caller::{Caller, KeyScope};
use landfall_core::clock::{Clock, Time};
use landfall_core::refusal::{Refusal, RefusalCode};
use metadata::Metadata;

/// Where uploads are.
const PATH: &str = "/api/v2/uploads/tus";
const VERSION: HeaderValue = HeaderValue::from_static("1.0.0");
const EXTENSIONS: HeaderValue =
    HeaderValue::from_static("creation,creation-with-upload,expiration,checksum,termination,concatenation");
/// The content type of bytes that belong to an upload.
const PIECE: &str = "application/offset+octet-stream";
/// What a client may say about a file.
const MAX_METADATA_BYTES: usize = 64 * 1024;
/// How long the response to the joining of parts waits for its end. Large ones are joined after it.
const WAIT_FOR_JOIN: Duration = Duration::from_secs(10);

pub const TUS_RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
pub const TUS_VERSION: HeaderName = HeaderName::from_static("tus-version");
pub const TUS_EXTENSION: HeaderName = HeaderName::from_static("tus-extension");
pub const TUS_MAX_SIZE: HeaderName = HeaderName::from_static("tus-max-size");
pub const TUS_CHECKSUM_ALGORITHM: HeaderName = HeaderName::from_static("tus-checksum-algorithm");
pub const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
pub const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
pub const UPLOAD_DEFER_LENGTH: HeaderName = HeaderName::from_static("upload-defer-length");
pub const UPLOAD_METADATA: HeaderName = HeaderName::from_static("upload-metadata");
pub const UPLOAD_CONCAT: HeaderName = HeaderName::from_static("upload-concat");
pub const UPLOAD_CHECKSUM: HeaderName = HeaderName::from_static("upload-checksum");
pub const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
pub const METHOD_OVERRIDE: HeaderName = HeaderName::from_static("x-http-method-override");
/// The id of the file that an upload becomes, for all other routes.
pub const FILE_ID: HeaderName = HeaderName::from_static("x-file-id");

/// Adds what every response has.
pub async fn versioned(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(TUS_RESUMABLE, VERSION);
    if response.status() == StatusCode::PRECONDITION_FAILED {
        response.headers_mut().insert(TUS_VERSION, VERSION);
    }
    response
}

/// What resumable uploads can do here.
///
/// It needs no token. The headers have the version of tus, its extensions, and the largest size.
#[utoipa::path(
    options, path = "/api/v2/uploads/tus", operation_id = "describeUploads", tag = "uploads", security(()),
    responses((status = 204, description = "Success", headers(
        ("Tus-Version" = String), ("Tus-Extension" = String), ("Tus-Max-Size" = i64),
        ("Tus-Checksum-Algorithm" = String),
    )))
)]
pub async fn describe(State(app): State<App>) -> Response {
    let headers = [
        (TUS_VERSION, VERSION),
        (TUS_EXTENSION, EXTENSIONS),
        (TUS_MAX_SIZE, HeaderValue::from(app.config.intake.max_file_bytes)),
        (TUS_CHECKSUM_ALGORITHM, HeaderValue::from_static(ALGORITHMS)),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// The same for the address of one upload.
///
/// It needs no token, and has the same headers as that of all uploads.
#[utoipa::path(
    options, path = "/api/v2/uploads/tus/{uploadId}", operation_id = "describeUpload", tag = "uploads", security(()),
    responses((status = 204, description = "Success"))
)]
pub async fn describe_one(app: State<App>) -> Response {
    describe(app).await
}

/// Registers a file and begins its resumable upload, with its first bytes if the request has some.
///
/// `Upload-Metadata` has pairs of a name and a value in base64: `filename` (or `name`), `filetype` (or `type`), `batch` (the id of a
/// batch), `mapping` and `attributes` (JSON), `md5` and `sha256`. With `Upload-Concat: partial` the bytes are a part of a file; `Upload-Concat: final;`
/// and the addresses of the parts makes a file of them.
#[utoipa::path(
    post, path = "/api/v2/uploads/tus", operation_id = "createUpload", tag = "uploads",
    params(
        ("Tus-Resumable" = String, Header, description = "1.0.0"),
        ("Upload-Length" = Option<i64>, Header, description = "The size of the file in bytes. Not with Upload-Concat: final"),
        ("Upload-Metadata" = Option<String>, Header, description = "What the file is called, and so on"),
        ("Upload-Concat" = Option<String>, Header, description = "partial, or final; and the addresses of the parts"),
        ("Upload-Checksum" = Option<String>, Header, description = "The checksum of the bytes in this request"),
    ),
    request_body(content = Option<Vec<u8>>, content_type = "application/offset+octet-stream"),
    responses(
        (status = 201, description = "Success", headers(
            ("Location" = String, description = "The address of the upload"),
            ("Upload-Offset" = i64, description = "How many bytes have arrived"),
            ("Upload-Expires" = String, description = "When the upload is given up if no bytes come"),
            ("X-File-Id" = String, description = "The id of the file"),
        )),
        (status = "4XX", description = "UNSUPPORTED_TUS_VERSION INVALID_UPLOAD_HEADER INVALID_METADATA INVALID_FILE_NAME \
            INVALID_FILE_SIZE INVALID_CONTENT_TYPE INVALID_MD5 INVALID_SHA256 INVALID_MAPPING INVALID_ATTRIBUTES TOO_LARGE BATCH_NOT_FOUND BATCH_NOT_ACTIVE \
            BATCH_FULL QUOTA_EXCEEDED TOO_MANY_REGISTRATIONS STORAGE_FULL STORAGE_UNAVAILABLE IDEMPOTENCY_KEY_REUSED \
            UNSUPPORTED_MEDIA_TYPE UNSUPPORTED_CHECKSUM PIECE_CHECKSUM_MISMATCH CHECKSUM_MISMATCH UPLOAD_NOT_FOUND \
            INVALID_STATE UPLOAD_BROKEN UPLOAD_STALLED UPLOAD_TOO_SLOW UPLOAD_LOCKED UPLOAD_INTERRUPTED FILE_DELETED \
            OFFSET_MISMATCH")
    )
)]
pub async fn create(State(app): State<App>, caller: Caller, request: Request) -> Result<Response, ApiError> {
    let base = base_url(&app.config.http, Arrival::of(&request), request.headers());
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    require_version(headers)?;
    let content = has_piece(headers)?;
    let checksum = checksum(headers)?;
    app.disk.require_room().await?;
    let concat = text(headers, &UPLOAD_CONCAT)?;
    let (id, length) = match concat {
        None => create_whole(&app, &caller, headers).await?,
        Some("partial") => create_part(&app, &caller, headers).await?,
        Some(concat) => return join(&app, &caller, headers, concat, &base).await,
    };
    let uploads = &app.resumables;
    let begun = if content {
        let piece = Piece { offset: 0, length: content_length(headers), checksum };
        uploads.receive(&caller, id, piece, body.into_data_stream()).await
    } else {
        // An empty file is whole.
        uploads.begun(&caller, id).await
    };
    let location = location(&base, id);
    let mut response = match begun {
        Ok(progress) => {
            let mut response = (StatusCode::CREATED, progress_headers(&progress)).into_response();
            if !content && length > 0 {
                response.headers_mut().remove(UPLOAD_OFFSET);
            }
            response
        }
        // The upload exists, and the client may go on with it.
        Err(error) => ApiError::from(error).into_response(),
    };
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

async fn create_whole(app: &App, caller: &Caller, headers: &HeaderMap) -> Result<(Uuid, i64), ApiError> {
    let length = upload_length(headers)?;
    let metadata = Metadata::of(headers)?;
    let (batch, announcement) = metadata.announcement(length)?;
    let announced = announce::check(announcement, app.config.intake.max_file_bytes)?;
    let beginning = Beginning {
        caller: caller.clone(),
        batch,
        announced,
        metadata: metadata.text,
        concat: None,
        parts: Vec::new(),
        key: idempotency_key(caller, headers, length)?,
    };
    Ok((app.resumables.create(beginning).await?, length))
}

async fn create_part(app: &App, caller: &Caller, headers: &HeaderMap) -> Result<(Uuid, i64), ApiError> {
    let length = upload_length(headers)?;
    check_size(length, app.config.intake.max_file_bytes)?;
    let metadata = Metadata::of(headers)?.text;
    let key = idempotency_key(caller, headers, length)?;
    Ok((app.resumables.create_part(caller, length, metadata, key).await?, length))
}

async fn join(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    concat: &str,
    base: &str,
) -> Result<Response, ApiError> {
    if headers.contains_key(UPLOAD_LENGTH) {
        return Err(wrong("Upload-Length is not sent with the parts that a file is joined from").into());
    }
    let parts = parts_in(concat)?;
    let length = app.resumables.measure(caller, &parts).await?;
    let metadata = Metadata::of(headers)?;
    let (batch, announcement) = metadata.announcement(length)?;
    let announced = announce::check(announcement, app.config.intake.max_file_bytes)?;
    let beginning = Beginning {
        caller: caller.clone(),
        batch,
        announced,
        metadata: metadata.text,
        concat: Some(concat.to_owned()),
        parts,
        key: idempotency_key(caller, headers, length)?,
    };
    let uploads = &app.resumables;
    let id = uploads.create(beginning).await?;
    let this = uploads.clone();
    let joining = uploads.tasks.spawn(async move { this.join(id).await });
    tokio::select! {
        joined = joining => if let Ok(Err(error)) = joined {
            // The file is registered and its parts are here. It is tried again until the file expires.
            tracing::warn!(fileId = %id, %error, "the parts of an upload could not be joined yet");
        },
        () = Clock::System.sleep(WAIT_FOR_JOIN) => {}
    }
    let mut response = StatusCode::CREATED.into_response();
    response.headers_mut().insert(header::LOCATION, location(base, id));
    response.headers_mut().insert(FILE_ID, plain(&id.to_string()));
    Ok(response)
}

/// How far an upload is.
///
/// A request that still sends bytes to it is ended.
#[utoipa::path(
    head, path = "/api/v2/uploads/tus/{uploadId}", operation_id = "uploadOffset", tag = "uploads",
    params(("Tus-Resumable" = String, Header, description = "1.0.0")),
    responses(
        (status = 200, description = "Success", headers(
            ("Upload-Offset" = i64, description = "How many bytes have arrived and are safe"),
            ("Upload-Length" = i64, description = "How many there are in all"),
            ("Upload-Metadata" = String, description = "As it was sent"),
            ("Upload-Expires" = String, description = "When the upload is given up if no bytes come"),
            ("X-File-Id" = String, description = "The id of the file"),
        )),
        (status = "4XX", description = "UNSUPPORTED_TUS_VERSION UPLOAD_NOT_FOUND FILE_DELETED UPLOAD_LOCKED \
            UPLOAD_INTERRUPTED CHECKSUM_MISMATCH STORAGE_UNAVAILABLE STORAGE_FULL INVALID_STATE UPLOAD_MISSING \
            UPLOAD_CHANGED SIZE_MISMATCH")
    )
)]
pub async fn offset(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    require_version(&headers)?;
    let progress = app.resumables.status(&caller, upload_id(&id)?).await?;
    let mut response = (StatusCode::OK, progress_headers(&progress)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(UPLOAD_LENGTH, HeaderValue::from(progress.length));
    let concat = match progress.kind {
        Kind::Part => Some("partial"),
        _ => progress.concat.as_deref(),
    };
    for (name, value) in [(UPLOAD_METADATA, progress.metadata.as_deref()), (UPLOAD_CONCAT, concat)] {
        if let Some(value) = value {
            headers.insert(name, plain(value));
        }
    }
    Ok(response)
}

/// The next bytes of an upload.
///
/// With the last of them the file is in the queue. Bytes that arrived stay when the connection breaks.
#[utoipa::path(
    patch, path = "/api/v2/uploads/tus/{uploadId}", operation_id = "appendToUpload", tag = "uploads",
    params(
        ("Tus-Resumable" = String, Header, description = "1.0.0"),
        ("Upload-Offset" = i64, Header, description = "Where the bytes begin: how many have arrived before"),
        ("Upload-Checksum" = Option<String>, Header, description = "An algorithm and the checksum in base64. Bytes with another one are not kept"),
    ),
    request_body(content = Vec<u8>, content_type = "application/offset+octet-stream"),
    responses(
        (status = 204, description = "Success", headers(
            ("Upload-Offset" = i64, description = "How many bytes have arrived and are safe"),
            ("Upload-Expires" = String, description = "When the upload is given up if no more bytes come"),
            ("X-File-Id" = String, description = "The id of the file"),
        )),
        (status = "4XX", description = "UNSUPPORTED_TUS_VERSION INVALID_UPLOAD_HEADER UNSUPPORTED_MEDIA_TYPE \
            UNSUPPORTED_CHECKSUM UPLOAD_NOT_FOUND FILE_DELETED JOINED_UPLOAD OFFSET_MISMATCH TOO_LARGE \
            PIECE_CHECKSUM_MISMATCH CHECKSUM_MISMATCH UPLOAD_LOCKED UPLOAD_BROKEN UPLOAD_STALLED UPLOAD_TOO_SLOW \
            UPLOAD_INTERRUPTED STORAGE_UNAVAILABLE STORAGE_FULL INVALID_STATE UPLOAD_MISSING UPLOAD_CHANGED SIZE_MISMATCH")
    )
)]
pub async fn append(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    require_version(&headers)?;
    append_to(&app, &caller, upload_id(&id)?, &headers, body).await
}

async fn append_to(
    app: &App,
    caller: &Caller,
    id: Uuid,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    if !is_piece(headers) {
        return Err(not_a_piece().into());
    }
    let offset = number(headers, &UPLOAD_OFFSET)?.ok_or_else(|| wrong("Upload-Offset is missing"))?;
    let piece = Piece {
        offset: u64::try_from(offset).unwrap_or_default(),
        length: content_length(headers),
        checksum: checksum(headers)?,
    };
    let progress = app.resumables.receive(caller, id, piece, body.into_data_stream()).await?;
    Ok((StatusCode::NO_CONTENT, progress_headers(&progress)).into_response())
}

/// Ends an upload.
///
/// Its bytes are removed and its room is free again. If it is complete, its file is deleted, for which an API key
/// needs the scope `manage`.
#[utoipa::path(
    delete, path = "/api/v2/uploads/tus/{uploadId}", operation_id = "terminateUpload", tag = "uploads",
    params(("Tus-Resumable" = String, Header, description = "1.0.0")),
    responses(
        (status = 204, description = "Success"),
        (status = "4XX", description = "UNSUPPORTED_TUS_VERSION UPLOAD_NOT_FOUND FILE_NOT_FOUND FILE_DELETED UPLOAD_LOCKED \
            UPLOAD_INTERRUPTED STORAGE_UNAVAILABLE INVALID_STATE")
    )
)]
pub async fn terminate(
    State(app): State<App>,
    identity: Identity,
    InPath(id): InPath<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    require_version(&headers)?;
    terminate_one(&app, &identity, upload_id(&id)?).await
}

async fn terminate_one(app: &App, identity: &Identity, id: Uuid) -> Result<Response, ApiError> {
    let may_delete = require_scope(identity, KeyScope::Manage);
    app.resumables.terminate(&identity.caller, id, may_delete).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The method of `X-HTTP-Method-Override`, for clients that can only send a POST.
///
/// The request is handled as one of that method, with its headers and its body.
#[utoipa::path(
    post, path = "/api/v2/uploads/tus/{uploadId}", operation_id = "overrideMethod", tag = "uploads",
    params(
        ("Tus-Resumable" = String, Header, description = "1.0.0"),
        ("X-HTTP-Method-Override" = String, Header, description = "PATCH, HEAD or DELETE"),
        ("Upload-Offset" = Option<i64>, Header, description = "For PATCH"),
        ("Upload-Checksum" = Option<String>, Header, description = "For PATCH"),
    ),
    request_body(content = Option<Vec<u8>>, content_type = "application/offset+octet-stream"),
    responses(
        (status = 200, description = "The response to a HEAD"),
        (status = 204, description = "The response to a PATCH or DELETE"),
        (status = "4XX", description = "METHOD_NOT_ALLOWED UNSUPPORTED_TUS_VERSION INVALID_UPLOAD_HEADER \
            UNSUPPORTED_MEDIA_TYPE UNSUPPORTED_CHECKSUM UPLOAD_NOT_FOUND FILE_NOT_FOUND FILE_DELETED JOINED_UPLOAD \
            OFFSET_MISMATCH TOO_LARGE PIECE_CHECKSUM_MISMATCH CHECKSUM_MISMATCH UPLOAD_LOCKED UPLOAD_BROKEN UPLOAD_STALLED \
            UPLOAD_TOO_SLOW UPLOAD_INTERRUPTED STORAGE_UNAVAILABLE STORAGE_FULL INVALID_STATE UPLOAD_MISSING \
            UPLOAD_CHANGED SIZE_MISMATCH")
    )
)]
pub async fn overridden(
    State(app): State<App>,
    identity: Identity,
    InPath(id): InPath<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    require_version(&headers)?;
    let method = headers.get(METHOD_OVERRIDE).and_then(|method| Method::from_bytes(method.as_bytes()).ok());
    match method {
        Some(Method::PATCH) => append_to(&app, &identity.caller, upload_id(&id)?, &headers, body).await,
        Some(Method::DELETE) => terminate_one(&app, &identity, upload_id(&id)?).await,
        Some(Method::HEAD) => offset(State(app), identity.caller, InPath(id), headers).await,
        _ => {
            let message = "A POST to an upload needs X-HTTP-Method-Override: PATCH, HEAD or DELETE";
            Err(Refusal::new(RefusalCode::MethodNotAllowed, message).into())
        }
    }
}

/// An invalid id names nothing.
fn upload_id(text: &str) -> Result<Uuid, Refusal> {
    Uuid::parse_str(text).map_err(|_| Refusal::no_such_upload())
}

fn wrong(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::InvalidUploadHeader, message)
}

fn require_version(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.get(TUS_RESUMABLE) == Some(&VERSION) {
        return Ok(());
    }
    let message = "This server speaks tus 1.0.0; send the header Tus-Resumable: 1.0.0";
    Err(Refusal::new(RefusalCode::UnsupportedTusVersion, message))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        return Err(wrong(format!("{name} is there twice")));
    }
    first.map(|value| value.to_str().map_err(|_| wrong(format!("{name} is not plain text")))).transpose()
}

/// A number of bytes.
fn number(headers: &HeaderMap, name: &HeaderName) -> Result<Option<i64>, Refusal> {
    let Some(text) = text(headers, name)? else { return Ok(None) };
    let number = text.parse::<i64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    number.map(Some).ok_or_else(|| wrong(format!("{name} is not a number of bytes")))
}

fn upload_length(headers: &HeaderMap) -> Result<i64, Refusal> {
    if headers.contains_key(UPLOAD_DEFER_LENGTH) {
        return Err(wrong("The length of an upload must be known when it begins: send Upload-Length"));
    }
    number(headers, &UPLOAD_LENGTH)?.ok_or_else(|| wrong("Upload-Length is missing"))
}

/// How many bytes the request has, if it says so. A request that says nothing at all has none.
fn content_length(headers: &HeaderMap) -> Option<u64> {
    if !headers.contains_key(header::CONTENT_LENGTH) && !headers.contains_key(header::TRANSFER_ENCODING) {
        return Some(0);
    }
    headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
}

fn is_piece(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == PIECE)
}

/// Whether the request that begins an upload has bytes of it.
fn has_piece(headers: &HeaderMap) -> Result<bool, Refusal> {
    let is_empty = content_length(headers) == Some(0);
    match is_piece(headers) {
        true => Ok(!is_empty),
        false if is_empty => Ok(false),
        false => Err(not_a_piece()),
    }
}

fn not_a_piece() -> Refusal {
    let message = format!("The bytes of an upload have the Content-Type {PIECE}");
    Refusal::new(RefusalCode::UnsupportedMediaType, message)
}

fn checksum(headers: &HeaderMap) -> Result<Option<Expected>, Refusal> {
    text(headers, &UPLOAD_CHECKSUM)?.map(Expected::parse).transpose()
}

/// The parts in the text of `Upload-Concat`.
fn parts_in(concat: &str) -> Result<Vec<Uuid>, Refusal> {
    let addresses = concat.strip_prefix("final;").ok_or_else(|| {
        wrong("Upload-Concat is partial, or final; and the addresses of the parts with spaces between them")
    })?;
    let mut parts = Vec::new();
    for address in addresses.split_ascii_whitespace() {
        let path = address
            .split_once("://")
            .map_or(address, |(_, rest)| rest.find('/').map_or("", |at| &rest[at..]));
        let id = path.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('/'));
        let id = id.and_then(|id| Uuid::parse_str(id.trim_end_matches('/')).ok());
        parts.push(id.ok_or_else(Refusal::no_such_upload)?);
    }
    let mut distinct = parts.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if parts.is_empty() || parts.len() > MAX_PARTS || distinct.len() != parts.len() {
        return Err(wrong(format!("A file is joined from 1 to {MAX_PARTS} parts, each of them once")));
    }
    Ok(parts)
}

/// The headers that all responses about an upload have.
fn progress_headers(progress: &Progress) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(offset) = progress.offset {
        headers.insert(UPLOAD_OFFSET, HeaderValue::from(offset));
    }
    if let Some(at) = progress.expires_at {
        headers.insert(UPLOAD_EXPIRES, plain(&http_date(at)));
    }
    if progress.kind != Kind::Part {
        headers.insert(FILE_ID, plain(&progress.id.to_string()));
    }
    headers
}

fn http_date(at: Time) -> String {
    httpdate::fmt_http_date(at.into())
}

fn location(base: &str, id: Uuid) -> HeaderValue {
    plain(&format!("{base}{PATH}/{id}"))
}

/// What is known to be plain text.
fn plain(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The same key with the same request creates one upload.
fn idempotency_key(
    caller: &Caller,
    headers: &HeaderMap,
    length: i64,
) -> Result<Option<idempotency::Key>, Refusal> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key
        .to_str()
        .map_err(|_| Refusal::new(RefusalCode::InvalidIdempotencyKey, "An Idempotency-Key is plain text"))?;
    let value = |name| headers.get(name).map_or(&b""[..], HeaderValue::as_bytes);
    let request = [length.to_string().as_bytes(), value(UPLOAD_METADATA), value(UPLOAD_CONCAT)].join(&0);
    idempotency::Key::new(caller.owner(), key, PATH, &request).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_by_their_addresses() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let text = format!("final;{PATH}/{one} https://files.example.com{PATH}/{other}");
        assert_eq!(parts_in(&text).expect("good"), [one, other]);
        for bad in ["final;", "finale", &format!("final;{PATH}/{one} {PATH}/{one}"), "final;/elsewhere/x"] {
            assert!(parts_in(bad).is_err(), "{bad}");
        }
    }
}
