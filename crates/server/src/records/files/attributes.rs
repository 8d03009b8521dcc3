//! The table `file_attributes`: what clients noted about files, for searches that are narrowed by it.

use landfall_store::{Error, Rows, Tx, args};
use serde_json::Value;
use uuid::Uuid;

/// The text under which a value is found. `None`: it is no value of an attribute.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Adds the attributes of new files, each with its tenant and user.
pub(super) async fn add<'a>(
    tx: &mut Tx,
    files: impl Iterator<Item = ((&'a str, &'a str), Uuid, &'a Value)>,
) -> Result<(), Error> {
    let mut rows = Rows::default();
    for ((tenant, user), file, attributes) in files {
        for (name, value) in attributes.as_object().into_iter().flatten() {
            if let Some(value) = text(value) {
                rows.push(args![tenant, user, name, value, file]);
            }
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    tx.insert("file_attributes (tenant_id, user_id, name, value, file_id)", rows, "").await
}

/// Replaces the attributes of a file that the transaction holds.
pub async fn replace(tx: &mut Tx, owner: (&str, &str), file: Uuid, attributes: &Value) -> Result<(), Error> {
    remove(tx, file).await?;
    add(tx, std::iter::once((owner, file, attributes))).await?;
    tx.execute("UPDATE files SET attributes = $2 WHERE id = $1", args![file, attributes.clone()])
        .await
        .map(drop)
}

/// Removes the attributes of a file from searches.
pub async fn remove(tx: &mut Tx, file: Uuid) -> Result<(), Error> {
    tx.execute("DELETE FROM file_attributes WHERE file_id = $1", args![file]).await.map(drop)
}
