//! What the stages produced, kept with the file so that a later attempt starts where the last one ended.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use landfall_core::clock::Time;
use landfall_core::text::{Extracted, Markup, Place, TextBox};
use landfall_store::Error;
use landfall_store::{Rows, Tx, args};

const TEXT: &str = "text";
const RESULT: &str = "result";

/// A document as the operator's extraction service returned it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// A file name whose extension matches the body.
    pub name: &'static str,
    pub content_type: String,
    pub body: bytes::Bytes,
}

#[derive(Serialize, Deserialize)]
struct TextMeta {
    markup: Markup,
    places: Vec<Place>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    boxes: Vec<TextBox>,
}

pub async fn keep_text(tx: &mut Tx, file: Uuid, extracted: &Extracted, now: Time) -> Result<(), Error> {
    let meta = TextMeta {
        markup: extracted.markup,
        places: extracted.places.clone(),
        boxes: extracted.boxes.clone(),
    };
    let meta = serde_json::to_value(meta).map_err(|error| Error::Internal(error.to_string()))?;
    let body = extracted.text.clone().into_bytes();
    keep(tx, file, TEXT, extracted.markup.content_type(), body, Some(meta), now).await
}

pub async fn keep_result(tx: &mut Tx, file: Uuid, converted: &Converted, now: Time) -> Result<(), Error> {
    keep(tx, file, RESULT, &converted.content_type, converted.body.to_vec(), None, now).await
}

/// Removes the result of the operator's extraction service.
pub async fn forget_result(tx: &mut Tx, file: Uuid) -> Result<(), Error> {
    tx.execute("DELETE FROM artifacts WHERE file_id = $1 AND name = $2", args![file, RESULT]).await.map(drop)
}

/// Stores an artifact. It replaces the last one of its name.
async fn keep(
    tx: &mut Tx,
    file: Uuid,
    name: &str,
    content_type: &str,
    body: Vec<u8>,
    meta: Option<serde_json::Value>,
    now: Time,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO artifacts (file_id, name, content_type, body, meta, created_at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (file_id, name) DO UPDATE SET content_type = excluded.content_type, body = excluded.body,
             meta = excluded.meta, created_at = excluded.created_at",
        args![file, name, content_type, body, meta, now],
    )
    .await
    .map(drop)
}

/// The result of the extraction, with its content type: the response of the operator's service, or otherwise the
/// text.
pub async fn load_result(tx: &mut Tx, file: Uuid) -> Result<Option<(String, Vec<u8>)>, Error> {
    for name in [RESULT, TEXT] {
        let sql = "SELECT content_type, body FROM artifacts WHERE file_id = $1 AND name = $2";
        if let Some(found) = tx.row(sql, args![file, name]).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What the operator's extraction service made of a file, with its content type.
pub async fn load_converted(tx: &mut Tx, file: Uuid) -> Result<Option<(String, Vec<u8>)>, Error> {
    let sql = "SELECT content_type, body FROM artifacts WHERE file_id = $1 AND name = $2";
    tx.row(sql, args![file, RESULT]).await
}

/// The content types of what the operator's extraction service made of these files, where it made something of them.
pub async fn result_types(tx: &mut Tx, files: &[Uuid]) -> Result<HashMap<Uuid, String>, Error> {
    let mut rows = Rows::default();
    for file in files {
        rows.push(args![*file]);
    }
    if rows.is_empty() {
        return Ok(HashMap::new());
    }
    let (values, mut arguments) = rows.named("v", &["id"], tx);
    arguments.push(RESULT.into());
    let sql = format!(
        "WITH {values} SELECT a.file_id, a.content_type FROM artifacts a JOIN v ON v.id = a.file_id WHERE a.name = ${}",
        arguments.len()
    );
    let found: Vec<(Uuid, String)> = tx.rows(sql, arguments).await?;
    Ok(found.into_iter().collect())
}

pub async fn load_text(tx: &mut Tx, file: Uuid) -> Result<Option<Extracted>, Error> {
    let row: Option<(Vec<u8>, serde_json::Value)> = tx
        .row("SELECT body, meta FROM artifacts WHERE file_id = $1 AND name = $2", args![file, TEXT])
        .await?;
    let Some((body, meta)) = row else { return Ok(None) };
    let unreadable = |what: String| Error::Internal(format!("the text of file {file} is unreadable: {what}"));
    let meta: TextMeta = serde_json::from_value(meta).map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(body).map_err(|error| unreadable(error.to_string()))?;
    let TextMeta { markup, places, boxes } = meta;
    Ok(Some(Extracted { markup, places, boxes, ..Extracted::plain(text) }))
}

/// Removes all that the stages produced of a file.
pub async fn remove(tx: &mut Tx, file: Uuid) -> Result<(), Error> {
    tx.execute("DELETE FROM artifacts WHERE file_id = $1", args![file]).await.map(drop)
}
