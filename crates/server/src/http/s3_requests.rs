//! Signs requests to the S3 API, for clients that send a large file in parts straight to the object store.

use axum::Json;
use axum::extract::{Request, State};

use super::request::{InPath, Received, file_id};
use crate::app::App;
use crate::blobs::direct::{Declared, PartsRequest};
use crate::http::error::ApiError;
use crate::intake::direct::GoDirect;
use crate::records::file::File;
use landfall_api::storage::{S3Method, S3Request, SignedS3Request};
use landfall_core::caller::Caller;
use landfall_core::refusal::{Refusal, RefusalCode};

const MAX_PART_NUMBER: u32 = 10_000;
const MAX_UPLOAD_ID: usize = 1_024;

/// Signs one request for the bytes of a registered file: to store the object, or to begin, send, list, complete or abort a
/// multipart upload of it.
///
/// Only where the object store speaks S3 and `UPLOAD_MODE` is `direct`. Each call also extends the life of the registration. When
/// the object is complete, confirm the file.
#[utoipa::path(
    post, path = "/files/{fileId}/s3-requests", operation_id = "signS3Request", tag = "uploads",
    request_body = S3Request,
    responses(
        (status = 200, body = SignedS3Request),
        (status = "4XX", description = "FILE_NOT_FOUND FILE_DELETED INVALID_STATE INVALID_REQUEST NO_DIRECT_UPLOADS")
    )
)]
pub async fn sign(
    State(app): State<App>,
    caller: Caller,
    InPath(id): InPath<String>,
    request: Request,
) -> Result<Json<SignedS3Request>, ApiError> {
    let id = file_id(&id)?;
    let received = Received::read(request, app.config.http.max_body_bytes).await?;
    let request: S3Request = received.json()?;
    let parts = parts_request(&request)?;
    // A stranger learns only that there is no such file.
    File::find_for(&mut app.db.read().await?, &caller, id).await?;
    if !app.config.intake.is_direct || !app.blobs.speaks_s3() {
        let message = "This server has no object store that speaks S3, or takes bytes in itself. Send the bytes to the upload \
            URL, or by tus";
        return Err(Refusal::new(RefusalCode::NoDirectUploads, message).into());
    }
    let window = app.config.intake.confirm_window;
    let file = app.db.write(GoDirect { caller, file: id, window, now: app.clock.now() }).await?;
    let ttl = app.config.intake.url_ttl;
    let signed = match parts {
        Some(parts) => app.blobs.sign_parts(id, &parts, ttl).await?,
        None => {
            let declared = Declared {
                size: file.size_bytes.unsigned_abs(),
                md5: file.declared_md5.as_deref(),
                sha256: file.declared_sha256.as_deref(),
            };
            app.blobs.sign_upload(id, &declared, ttl).await?
        }
    };
    let signed = signed.ok_or_else(Refusal::nothing_here)?;
    let headers = signed.headers.into_iter();
    // A browser sets the length itself, and refuses to let a script do it.
    let headers = headers.filter(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
    Ok(Json(SignedS3Request {
        url: signed.url,
        headers: headers.map(|(name, value)| (name, value.into())).collect(),
    }))
}

/// What the request is about. `None`: the whole object.
fn parts_request(request: &S3Request) -> Result<Option<PartsRequest>, Refusal> {
    let invalid = |message: &str| Refusal::new(RefusalCode::InvalidRequest, message);
    let upload = request.upload_id.clone().filter(|id| !id.is_empty());
    if upload.as_ref().is_some_and(|id| id.len() > MAX_UPLOAD_ID) {
        return Err(invalid("The uploadId is too long"));
    }
    Ok(Some(match (request.method, upload, request.part_number) {
        (S3Method::Put, None, None) => return Ok(None),
        (S3Method::Post, None, None) => PartsRequest::Begin,
        (S3Method::Put, Some(id), Some(number)) if (1..=MAX_PART_NUMBER).contains(&number) => {
            PartsRequest::Send { id, number }
        }
        (S3Method::Get, Some(id), None) => PartsRequest::List { id },
        (S3Method::Post, Some(id), None) => PartsRequest::Complete { id },
        (S3Method::Delete, Some(id), None) => PartsRequest::Abort { id },
        _ => {
            return Err(invalid(
                "Signed are: PUT; POST; and with an uploadId PUT with a partNumber from 1 to 10000, GET, POST and DELETE",
            ));
        }
    }))
}
