//! Events as they are stored, in the order of their ids: for those who follow them.

use crate::records::{epochs, reach};
use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_store::{Error, Tx, args};
use serde_json::Value;
use uuid::Uuid;

/// A stored event.
#[derive(Debug, Clone, PartialEq, landfall_store::FromRow)]
pub struct StoredEvent {
    pub id: i64,
    pub at: Time,
    pub kind: String,
    /// Empty, like the user, if the event does not belong to a user's files.
    #[row(rename = "tenant_id")]
    pub tenant: String,
    #[row(rename = "user_id")]
    pub user: String,
    #[row(rename = "file_id")]
    pub file: Option<Uuid>,
    #[row(rename = "batch_id")]
    pub batch: Option<Uuid>,
    #[row(rename = "from_state")]
    pub from: Option<String>,
    #[row(rename = "to_state")]
    pub to: Option<String>,
    pub stage: Option<String>,
    pub attempt: Option<i64>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub data: Option<Value>,
    pub actor_kind: Option<String>,
    pub actor_name: Option<String>,
    pub epoch: Option<Uuid>,
}

fn columns() -> String {
    format!(
        "id, at, kind, tenant_id, user_id, file_id, batch_id, from_state, to_state, stage, attempt,
         error_code, error_message, data, actor_kind, actor_name, {}",
        epochs::OF_EVENT
    )
}

/// The events after `after`, up to `up_to`.
pub async fn between(tx: &mut Tx, after: i64, up_to: i64, limit: i64) -> Result<Vec<StoredEvent>, Error> {
    let columns = columns();
    let sql = format!("SELECT {columns} FROM events WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3");
    tx.rows(sql, args![after, up_to, limit]).await
}

/// The same of some owners.
pub async fn between_of(
    tx: &mut Tx,
    reach: &Reach,
    after: i64,
    up_to: i64,
    limit: i64,
) -> Result<Vec<StoredEvent>, Error> {
    let mut arguments = args![after, up_to, limit];
    let (columns, whose) = (columns(), reach::condition(reach, &mut arguments));
    let sql =
        format!("SELECT {columns} FROM events WHERE id > $1 AND id <= $2 AND {whose} ORDER BY id LIMIT $3");
    tx.rows(sql, arguments).await
}

/// How many events there are in that range, counted up to `most`, and the last of those that were counted.
pub async fn count_between(
    tx: &mut Tx,
    after: i64,
    up_to: i64,
    most: i64,
) -> Result<(i64, Option<i64>), Error> {
    let counted = tx
        .row(
            "SELECT COUNT(*), MAX(id) FROM
                 (SELECT id FROM events WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) AS next",
            args![after, up_to, most],
        )
        .await?;
    Ok(counted.unwrap_or_default())
}

/// When the first event after that one was written, if there is one.
pub async fn first_after(tx: &mut Tx, position: i64) -> Result<Option<Time>, Error> {
    let first: Option<(Time,)> =
        tx.row("SELECT at FROM events WHERE id > $1 ORDER BY id LIMIT 1", args![position]).await?;
    Ok(first.map(|(at,)| at))
}
