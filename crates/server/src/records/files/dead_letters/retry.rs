//! Dead letters that an operation retries, page by page, and what became of those that it tried first.

use landfall_core::lifecycle::{Stage, Status};
use landfall_store::{Arg, Error, Tx, args};
use uuid::Uuid;

use super::Filter;
use crate::records::cursor::Cursor;
use crate::records::file::File;

/// The next dead letters that match, behind `cursor`, locked until the transaction ends.
///
/// A file that fails again is newer than it was, so the cursor does not reach it again. `retried_in` excludes it even
/// if the clock of the process that failed it is behind.
pub async fn lock_next(
    tx: &mut Tx,
    filter: &Filter,
    operation: Uuid,
    cursor: Cursor,
    most: usize,
) -> Result<Vec<File>, Error> {
    let (condition, arguments) = next(filter, operation, cursor, most);
    let lock = tx.for_update();
    tx.rows(format!("SELECT * FROM files WHERE {condition} {lock}"), arguments).await
}

/// The blobs of the same dead letters, of those that begin again with their bytes.
pub async fn next_blobs(
    tx: &mut Tx,
    filter: &Filter,
    operation: Uuid,
    cursor: Cursor,
    most: usize,
) -> Result<Vec<String>, Error> {
    let (condition, arguments) = next(filter, operation, cursor, most);
    let sql = format!("SELECT blob_key, next_stage FROM files WHERE {condition}");
    let found: Vec<(Option<String>, String)> = tx.rows(sql, arguments).await?;
    let needs_bytes = |stage: &str| matches!(stage.parse(), Ok(Stage::Scan | Stage::Extract));
    Ok(found.into_iter().filter(|(_, stage)| needs_bytes(stage)).filter_map(|(key, _)| key).collect())
}

/// The condition and the order of the next dead letters that match, behind `cursor`.
fn next(filter: &Filter, operation: Uuid, cursor: Cursor, most: usize) -> (String, Vec<Arg>) {
    let mut arguments = args![most, operation];
    let condition = filter.condition("files", &mut arguments);
    arguments.extend([Arg::from(cursor.at), Arg::from(cursor.id)]);
    let (at, id) = (arguments.len() - 1, arguments.len());
    let sql = format!(
        "{condition} AND (failed_at, id) < (${at}, ${id}) AND (retried_in IS NULL OR retried_in <> $2)
         ORDER BY failed_at DESC, id DESC LIMIT $1"
    );
    (sql, arguments)
}

/// What became of a file that was retried.
#[derive(Debug, landfall_store::FromRow)]
pub struct Fate {
    #[row(try_from = "String")]
    pub status: Status,
    pub error_fingerprint: Option<String>,
    pub error_message: Option<String>,
}

/// What became of these files. One whose row is gone is left out.
pub async fn fates(tx: &mut Tx, files: &[Uuid]) -> Result<Vec<Fate>, Error> {
    let mut fates = Vec::with_capacity(files.len());
    for file in files {
        let sql = "SELECT status, error_fingerprint, error_message FROM files WHERE id = $1";
        fates.extend(tx.row::<Fate>(sql, args![*file]).await?);
    }
    Ok(fates)
}
