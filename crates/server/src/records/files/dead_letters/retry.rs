//! Dead letters that an operation retries, page by page, and what became of those that it tried first.

use landfall_core::lifecycle::Status;
use landfall_store::{Arg, Error, Tx, args};
use uuid::Uuid;

use super::{Filter, Place};
use crate::records::file::File;

/// The next dead letters that match, behind `cursor`, locked until the transaction ends.
///
/// A file that fails again is newer than it was, so the cursor does not reach it again. `retried_in` excludes it even
/// if the clock of the process that failed it is behind.
pub async fn lock_next(
    tx: &mut Tx,
    filter: &Filter,
    operation: Uuid,
    cursor: Place,
    most: usize,
) -> Result<Vec<File>, Error> {
    let mut arguments = args![most, operation];
    let condition = filter.condition("files", &mut arguments);
    arguments.extend([Arg::from(cursor.failed_at), Arg::from(cursor.id)]);
    let (at, id) = (arguments.len() - 1, arguments.len());
    let lock = tx.for_update();
    tx.rows(
        format!(
            "SELECT * FROM files WHERE {condition} AND (failed_at, id) < (${at}, ${id})
               AND (retried_in IS NULL OR retried_in <> $2)
             ORDER BY failed_at DESC, id DESC LIMIT $1 {lock}"
        ),
        arguments,
    )
    .await
}

/// What became of a file that was retried.
#[derive(Debug, sqlx::FromRow)]
pub struct Fate {
    #[sqlx(try_from = "String")]
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
