//! The statements about the table `chunks`: the text of a file in pieces, in their order.

use landfall_api::files::ChunkView;
use landfall_core::text::Chunk;
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
            chunk.char_start,
            chunk.char_end,
            chunk.tokens,
        ]);
    }
    tx.insert("chunks (file_id, ordinal, text, page, heading, char_start, char_end, tokens)", rows, "").await
}

/// Removes the chunks of a file. The index must not have it any more.
pub async fn remove(tx: &mut Tx, file: Uuid) -> Result<(), Error> {
    tx.execute("DELETE FROM chunks WHERE file_id = $1", args![file]).await.map(drop)
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub struct StoredChunk {
    pub id: i64,
    pub ordinal: i64,
    pub text: String,
    pub page: Option<i64>,
    pub heading: Option<String>,
    pub char_start: i64,
    pub char_end: i64,
    pub tokens: i64,
}

impl From<StoredChunk> for ChunkView {
    fn from(row: StoredChunk) -> Self {
        let StoredChunk { id: _, ordinal, text, page, heading, char_start, char_end, tokens } = row;
        Self { ordinal, text, page, heading, char_start, char_end, tokens }
    }
}

/// Chunks of a file in their order, after `after`.
pub async fn load(tx: &mut Tx, file: Uuid, after: i64, limit: i64) -> Result<Vec<StoredChunk>, Error> {
    tx.rows(
        "SELECT id, ordinal, text, page, heading, char_start, char_end, tokens FROM chunks
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
