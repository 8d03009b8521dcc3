//! The form of all error responses: a code and a message. Details that are not for the caller are only logged.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Map;

use crate::reports::probes::DATABASE_FILE_GONE;
use landfall_api::refusal::{RefusalBody, RefusalView};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;

/// In the extensions of a response that refuses for lack of permission, whatever its status says.
#[derive(Debug, Clone, Copy)]
pub struct NotPermitted;

/// The refusal that a handler returns.
#[derive(Debug)]
pub struct ApiError(pub Refusal);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Refusal { code, message, retryable, retry_after, details, is_not_permitted } = self.0;
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let details = details.unwrap_or_else(|| Map::new().into());
        let error = RefusalBody { code: code.code().to_owned(), message, retryable, details };
        let mut response = (status, Json(RefusalView { error })).into_response();
        response.extensions_mut().insert(code);
        if let Some(wait) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        }
        if is_not_permitted {
            response.extensions_mut().insert(NotPermitted);
        }
        response
    }
}

/// `Retry-After` has no fractions, and a client that comes too early only comes twice.
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

/// An error that the caller did not cause is logged here, and hidden from the caller.
impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self(match error {
            Error::Refused(refusal) => refusal,
            other => {
                tracing::error!(error = %other, "a request failed");
                hidden(&other)
            }
        })
    }
}

/// The key is made of ids, so it tells the caller nothing but which object the operator has to look at.
fn blob_changed(key: &str) -> Refusal {
    let message = format!(
        "The object {key} in the object store was replaced after this file was confirmed, so it is not read. Upload the file \
         again, or ask the operator to restore the object"
    );
    Refusal::new(RefusalCode::BlobChanged, message)
}

/// What the caller learns about an error that it did not cause.
fn hidden(error: &Error) -> Refusal {
    match error {
        Error::StorageFull { .. } => {
            Refusal::new(RefusalCode::StorageFull, "The storage is full").retryable()
        }
        Error::BlobChanged { key } => blob_changed(key),
        Error::Storage { .. } | Error::BlobMissing { .. } | Error::BlobExists { .. } => {
            Refusal::new(RefusalCode::StorageUnavailable, "The storage does not answer").retryable()
        }
        // The same request would fail again.
        Error::Database(_) | Error::Sqlite(_) | Error::Unreadable { .. } if error.is_about_the_data() => {
            internal()
        }
        Error::Database(_)
        | Error::Sqlite(_)
        | Error::Unreadable { .. }
        | Error::DatabaseTls(_)
        | Error::GroupNotCommitted(_)
        | Error::Migration(_)
        | Error::Closed => {
            Refusal::new(RefusalCode::DatabaseUnavailable, "The database does not answer").retryable()
        }
        Error::DatabaseFileGone { .. } => {
            Refusal::new(RefusalCode::DatabaseFileGone, DATABASE_FILE_GONE).retryable()
        }
        Error::StorageMismatch(_) | Error::Internal(_) | Error::Refused(_) => internal(),
    }
}

fn internal() -> Refusal {
    Refusal::new(RefusalCode::Internal, "Something unexpected went wrong; it has been logged")
}

pub fn unexpected() -> Response {
    tracing::error!("a request handler panicked");
    ApiError(internal()).into_response()
}
