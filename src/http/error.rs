//! How everything that goes wrong is answered: one form, a code, a sentence. What is not the caller's business is
//! logged and not said.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::error::{Error, Refusal};

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = json!({ "error": {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            "details": self.details.unwrap_or_else(|| json!({})),
        }});
        (status, Json(body)).into_response()
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let refusal = match self {
            Self::Refused(refusal) => refusal,
            other => {
                tracing::error!(error = %other, "a request failed");
                hidden(&other)
            }
        };
        refusal.into_response()
    }
}

/// What the caller learns of an error that is not theirs.
fn hidden(error: &Error) -> Refusal {
    match error {
        Error::Storage { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            Refusal::new(507, "STORAGE_FULL", "The storage is full").retryable()
        }
        Error::Storage { .. } => {
            Refusal::new(503, "STORAGE_UNAVAILABLE", "The storage does not answer").retryable()
        }
        // Sending the same again would be no use.
        Error::Database(_) if error.is_about_the_data() => internal(),
        Error::Database(_) | Error::GroupNotCommitted(_) | Error::Migration(_) | Error::Closed => {
            Refusal::new(503, "DATABASE_UNAVAILABLE", "The database does not answer").retryable()
        }
        Error::StorageNotOurs(_) | Error::Internal(_) | Error::Refused(_) => internal(),
    }
}

fn internal() -> Refusal {
    Refusal::new(500, "INTERNAL", "Something unexpected went wrong; it has been logged")
}

pub fn unexpected() -> Response {
    tracing::error!("a request handler panicked");
    internal().into_response()
}
