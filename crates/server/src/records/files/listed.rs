//! The table `listed_files`: what lists of files are sorted by. It has a row for each file that is not deleted, with values
//! that never change, so that no move of a file writes into the indexes of the lists.

use landfall_store::{Error, Rows, Tx, args};
use uuid::Uuid;

use super::uploads::{NewFile, Registration};

const COLUMNS: &str = "id, tenant_id, user_id, file_name, size_bytes, created_at";

/// The rows of new files, which are added in one statement.
#[derive(Debug, Default)]
pub(super) struct New(Rows);

impl New {
    pub(super) fn push(&mut self, common: &Registration<'_>, file: &NewFile<'_>) {
        self.0.push(args![file.id, common.tenant, common.user, file.name, file.size, common.now]);
    }

    pub(super) async fn add(self, tx: &mut Tx) -> Result<(), Error> {
        tx.insert(&format!("listed_files ({COLUMNS})"), self.0, "").await
    }
}

/// Removes the rows of files that are deleted: at most [`Rows::MAX`].
pub async fn remove(tx: &mut Tx, files: impl Iterator<Item = Uuid>) -> Result<(), Error> {
    let mut ids = Rows::default();
    for file in files {
        ids.push(args![file]);
    }
    let (values, arguments) = ids.into_values(tx);
    let sql = format!("DELETE FROM listed_files WHERE id IN (SELECT * FROM ({values}) AS v)");
    tx.execute(sql, arguments).await.map(drop)
}

/// Writes the row of a file anew if it is not as the row in `files`. Returns whether it was not. The transaction holds the
/// file, if there is one.
pub async fn renew(tx: &mut Tx, file: Uuid) -> Result<bool, Error> {
    let removed = tx
        .execute(
            "DELETE FROM listed_files WHERE id = $1 AND NOT EXISTS (
                 SELECT 1 FROM files f WHERE f.id = $1 AND f.deleted_at IS NULL
                   AND f.tenant_id = listed_files.tenant_id AND f.user_id = listed_files.user_id
                   AND f.file_name = listed_files.file_name AND f.size_bytes = listed_files.size_bytes
                   AND f.created_at = listed_files.created_at)",
            args![file],
        )
        .await?;
    let sql = format!(
        "INSERT INTO listed_files ({COLUMNS}) SELECT {COLUMNS} FROM files WHERE id = $1 AND deleted_at IS NULL
         ON CONFLICT (id) DO NOTHING"
    );
    Ok(removed + tx.execute(sql, args![file]).await? > 0)
}
