//! Dead letters one by one, newest first.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use super::{Filter, Place};
use landfall_store::Error;
use landfall_store::{Arg, Tx, args};

/// A dead letter as clients see it.
#[derive(Debug, Serialize, sqlx::FromRow, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    #[sqlx(rename = "id")]
    pub file_id: Uuid,
    pub file_name: String,
    pub batch_id: Option<Uuid>,
    #[sqlx(rename = "error_stage")]
    #[schema(value_type = landfall_core::lifecycle::Stage)]
    pub stage: String,
    #[sqlx(rename = "error_code")]
    #[schema(value_type = landfall_core::failure::Code)]
    pub code: String,
    #[sqlx(rename = "error_message")]
    pub error: String,
    #[sqlx(rename = "attempt")]
    pub attempts: i64,
    pub failed_at: DateTime<Utc>,
    /// It was retried before, and failed again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retried_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retried_by: Option<String>,
}

impl DeadLetter {
    pub const fn place(&self) -> Place {
        Place { failed_at: self.failed_at, id: self.file_id }
    }
}

/// A page of them: those behind `after`, if it is given.
pub async fn list(
    tx: &mut Tx,
    filter: &Filter,
    after: Option<Place>,
    limit: i64,
) -> Result<Vec<DeadLetter>, Error> {
    let mut arguments = args![limit];
    let mut condition = filter.condition("files", &mut arguments);
    if let Some(after) = after {
        arguments.extend([Arg::from(after.failed_at), Arg::from(after.id)]);
        let (at, id) = (arguments.len() - 1, arguments.len());
        condition.push_str(&format!(" AND (failed_at, id) < (${at}, ${id})"));
    }
    tx.rows(
        format!(
            "SELECT id, file_name, batch_id, error_stage, error_code, error_message, attempt, failed_at, retried_at,
                    retried_by
             FROM files WHERE {condition} ORDER BY failed_at DESC, id DESC LIMIT $1"
        ),
        arguments,
    )
    .await
}
