//! How everything that goes wrong is answered: one form, a code, a sentence. What is not the caller's business is
//! logged and not said.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, Refusal};

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let details = self.details.unwrap_or_else(|| Map::new().into());
        let error = Reason { code: self.code, message: self.message, retryable: self.retryable, details };
        (status, Json(RefusalView { error })).into_response()
    }
}

/// A refusal as clients see it.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Refusal)]
pub struct RefusalView {
    #[schema(inline)]
    error: Reason,
}

#[derive(Serialize, utoipa::ToSchema)]
struct Reason {
    code: &'static str,
    /// For a person.
    message: String,
    /// Whether the same request may succeed later.
    retryable: bool,
    #[schema(value_type = Object)]
    details: Value,
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
