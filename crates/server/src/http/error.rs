//! How everything that goes wrong is answered: one form, a code, a sentence. What is not the caller's business is
//! logged and not said.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::Map;

use landfall_api::refusal::{RefusalBody, RefusalView};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;

/// Why a handler has no answer: what the caller is told.
#[derive(Debug)]
pub struct ApiError(pub Refusal);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Refusal { code, message, retryable, details } = self.0;
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let details = details.unwrap_or_else(|| Map::new().into());
        let error = RefusalBody { code: code.code().to_owned(), message, retryable, details };
        (status, Json(RefusalView { error })).into_response()
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

/// An error that is not the caller's is logged here, and hidden from the caller.
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

/// What the caller learns of an error that is not theirs.
fn hidden(error: &Error) -> Refusal {
    match error {
        Error::Storage { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            Refusal::new(RefusalCode::StorageFull, "The storage is full").retryable()
        }
        Error::Storage { .. } => {
            Refusal::new(RefusalCode::StorageUnavailable, "The storage does not answer").retryable()
        }
        // Sending the same again would be no use.
        Error::Database(_) if error.is_about_the_data() => internal(),
        Error::Database(_) | Error::GroupNotCommitted(_) | Error::Migration(_) | Error::Closed => {
            Refusal::new(RefusalCode::DatabaseUnavailable, "The database does not answer").retryable()
        }
        Error::StorageNotOurs(_) | Error::Internal(_) | Error::Refused(_) => internal(),
    }
}

fn internal() -> Refusal {
    Refusal::new(RefusalCode::Internal, "Something unexpected went wrong; it has been logged")
}

pub fn unexpected() -> Response {
    tracing::error!("a request handler panicked");
    ApiError(internal()).into_response()
}
