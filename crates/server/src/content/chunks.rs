//! The statements about the table `chunks`: the text of a file in pieces, in their order.

use landfall_api::files::{ChunkView, PlaceView};
use landfall_core::text::{Chunk, PageArea};
use landfall_store::{Error, Rows, Tx, args};
use uuid::Uuid;

/// Replaces the chunks of the file.
pub async fn keep(tx: &mut Tx, file: Uuid, chunks: &[Chunk]) -> Result<(), Error> {
    // The index refers to chunks, so its entries go first.
    super::index::remove(tx, file).await?;
    remove(tx, file).await?;
    let mut rows = Rows::default();
    for (ordinal, chunk) in chunks.iter().enumerate() {
        rows.push(args![
            file,
            ordinal,
            &chunk.text,
            chunk.page,
            chunk.heading.clone(),
            json(&chunk.headings)?,
            json(&chunk.places)?,
            chunk.char_start,
            chunk.char_end,
            chunk.tokens,
        ]);
    }
    let columns =
        "chunks (file_id, ordinal, text, page, heading, headings, places, char_start, char_end, tokens)";
    tx.insert(columns, rows, "").await
}

/// A list as it is stored: nothing, if it is empty.
fn json<T: serde::Serialize>(list: &[T]) -> Result<Option<serde_json::Value>, Error> {
    if list.is_empty() {
        return Ok(None);
    }
    serde_json::to_value(list).map(Some).map_err(|error| Error::Internal(error.to_string()))
}

/// Removes the chunks of a file. The index must not have it any more.
pub async fn remove(tx: &mut Tx, file: Uuid) -> Result<(), Error> {
    tx.execute("DELETE FROM chunks WHERE file_id = $1", args![file]).await.map(drop)
}

#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct StoredChunk {
    pub id: i64,
    pub ordinal: i64,
    pub text: String,
    pub page: Option<i64>,
    pub heading: Option<String>,
    headings: Option<serde_json::Value>,
    places: Option<serde_json::Value>,
    pub char_start: i64,
    pub char_end: i64,
    pub tokens: i64,
}

impl From<StoredChunk> for ChunkView {
    fn from(row: StoredChunk) -> Self {
        let StoredChunk {
            id: _,
            ordinal,
            text,
            page,
            heading,
            headings,
            places,
            char_start,
            char_end,
            tokens,
        } = row;
        let (headings, places) = (stored_headings(headings, heading.as_ref()), stored_places(places));
        Self { ordinal, text, page, heading, headings, places, char_start, char_end, tokens }
    }
}

/// The headings above a chunk. Earlier versions stored only its own.
pub fn stored_headings(headings: Option<serde_json::Value>, heading: Option<&String>) -> Vec<String> {
    headings
        .and_then(|headings| serde_json::from_value(headings).ok())
        .unwrap_or_else(|| heading.cloned().into_iter().collect())
}

/// Where a chunk is on its pages.
pub fn stored_places(places: Option<serde_json::Value>) -> Vec<PlaceView> {
    let places: Vec<PageArea> =
        places.and_then(|places| serde_json::from_value(places).ok()).unwrap_or_default();
    places.into_iter().map(PlaceView::from).collect()
}

/// Chunks of a file in their order, after `after`.
pub async fn load(tx: &mut Tx, file: Uuid, after: i64, limit: i64) -> Result<Vec<StoredChunk>, Error> {
    tx.rows(
        "SELECT id, ordinal, text, page, heading, headings, places, char_start, char_end, tokens FROM chunks
         WHERE file_id = $1 AND ordinal > $2 ORDER BY ordinal LIMIT $3",
        args![file, after, limit],
    )
    .await
}

/// The texts of a file's chunks in their order, with their ids.
pub async fn texts(tx: &mut Tx, file: Uuid) -> Result<Vec<(i64, String)>, Error> {
    tx.rows("SELECT id, text FROM chunks WHERE file_id = $1 ORDER BY ordinal", args![file]).await
}

/// The ids of a file's chunks in their order.
pub async fn ids(tx: &mut Tx, file: Uuid) -> Result<Vec<i64>, Error> {
    let ids: Vec<(i64,)> =
        tx.rows("SELECT id FROM chunks WHERE file_id = $1 ORDER BY ordinal", args![file]).await?;
    Ok(ids.into_iter().map(|(id,)| id).collect())
}
