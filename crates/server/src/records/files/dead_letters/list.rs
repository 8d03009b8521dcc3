//! Dead letters one by one, newest first.

use uuid::Uuid;

use super::Filter;
use crate::records::cursor::Cursor;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::reason;
use landfall_store::Error;
use landfall_store::{Arg, Tx, args};

/// The columns of a file that describe it as a dead letter.
#[derive(Debug, landfall_store::FromRow)]
pub struct DeadLetter {
    pub id: Uuid,
    pub tenant_id: String,
    pub user_id: String,
    pub file_name: String,
    pub batch_id: Option<Uuid>,
    #[row(try_from = "String")]
    pub error_stage: Stage,
    pub error_code: String,
    pub error_message: String,
    pub attempt: i64,
    pub failed_at: Time,
    pub deletion_warned_at: Option<Time>,
    /// Set if it was retried before and failed again.
    pub retried_at: Option<Time>,
    pub retried_by: Option<String>,
}

impl DeadLetter {
    /// As clients see it. `deletion_at` is when it will be deleted.
    pub fn view(self, deletion_at: Time) -> landfall_api::dead_letters::DeadLetter {
        let error = self.reason();
        let row = self;
        landfall_api::dead_letters::DeadLetter {
            file_id: row.id,
            tenant_id: row.tenant_id,
            user_id: row.user_id,
            file_name: row.file_name,
            batch_id: row.batch_id,
            stage: row.error_stage,
            code: row.error_code,
            error,
            attempts: row.attempt,
            failed_at: row.failed_at,
            deletion_at,
            retried_at: row.retried_at,
            retried_by: row.retried_by,
        }
    }
}

impl DeadLetter {
    /// Why it failed, for its owner.
    pub fn reason(&self) -> String {
        reason::sentences(&self.error_code, &self.error_message, Status::Failed)
    }

    pub const fn place(&self) -> Cursor {
        Cursor { at: self.failed_at, id: self.id }
    }
}

/// A page of dead letters, starting behind `after` if it is given.
pub async fn list(
    tx: &mut Tx,
    filter: &Filter,
    after: Option<Cursor>,
    limit: i64,
    offset: i64,
) -> Result<Vec<DeadLetter>, Error> {
    let mut arguments = args![limit, offset];
    let mut condition = filter.condition("files", &mut arguments);
    if let Some(after) = after {
        arguments.extend([Arg::from(after.at), Arg::from(after.id)]);
        let (at, id) = (arguments.len() - 1, arguments.len());
        condition.push_str(&format!(" AND (failed_at, id) < (${at}, ${id})"));
    }
    tx.rows(
        format!(
            "SELECT id, tenant_id, user_id, file_name, batch_id, error_stage, error_code, error_message, attempt, failed_at, retried_at,
                    retried_by, deletion_warned_at
             FROM files WHERE {condition} ORDER BY failed_at DESC, id DESC LIMIT $1 OFFSET $2"
        ),
        arguments,
    )
    .await
}
