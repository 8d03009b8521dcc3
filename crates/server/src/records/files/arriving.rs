//! The upload that a file receives at this moment. There is at most one, so that what is under way never needs more room
//! than was reserved for the file. A small one that comes at once is not noted: it needs its room for a moment only.

use std::collections::HashSet;

use landfall_core::clock::Time;
use landfall_store::{Error, FromRow, Rows, Tx, args};
use uuid::Uuid;

/// An upload that begins.
#[derive(Debug)]
pub struct Beginning {
    pub file: Uuid,
    pub upload: Uuid,
    pub worker: Uuid,
    pub now: Time,
}

/// Notes uploads of different files. Returns the files that have their upload noted: of the others another upload arrives, in
/// another process that is known. A process asks only if a file receives none in itself, so a row of its own is of an upload
/// whose end could not be written.
pub async fn begin(tx: &mut Tx, uploads: impl Iterator<Item = Beginning>) -> Result<HashSet<Uuid>, Error> {
    let mut rows = Rows::default();
    for Beginning { file, upload, worker, now } in uploads {
        rows.push(args![file, upload, worker, now]);
    }
    let (values, arguments) = rows.into_values(tx);
    let sql = format!(
        "INSERT INTO arriving_uploads (file_id, upload_id, worker_id, started_at)
         SELECT * FROM ({values}) AS v WHERE column1 IS NOT NULL
         ON CONFLICT (file_id) DO UPDATE
         SET upload_id = excluded.upload_id, worker_id = excluded.worker_id, started_at = excluded.started_at
         WHERE arriving_uploads.worker_id = excluded.worker_id
            OR NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = arriving_uploads.worker_id)
         RETURNING file_id"
    );
    let noted: Vec<(Uuid,)> = tx.rows(sql, arguments).await?;
    Ok(noted.into_iter().map(|(file,)| file).collect())
}

/// An upload that is noted.
#[derive(Debug, FromRow)]
pub struct Noted {
    pub file_id: Uuid,
    pub upload_id: Uuid,
    pub worker_id: Uuid,
    /// Whether its process counts.
    pub is_known: bool,
}

/// The uploads that are noted for these files.
pub async fn of(tx: &mut Tx, files: impl Iterator<Item = Uuid>) -> Result<Vec<Noted>, Error> {
    let mut rows = Rows::default();
    for file in files {
        rows.push(args![file]);
    }
    let (values, arguments) = rows.into_values(tx);
    let sql = format!(
        "SELECT a.file_id, a.upload_id, a.worker_id,
                EXISTS (SELECT 1 FROM workers w WHERE w.id = a.worker_id) AS is_known
         FROM arriving_uploads a WHERE a.file_id IN (SELECT * FROM ({values}) AS v)"
    );
    tx.rows(sql, arguments).await
}

/// Uploads are over, each named by its file and its id.
pub async fn end(tx: &mut Tx, uploads: impl Iterator<Item = (Uuid, Uuid)>) -> Result<(), Error> {
    let mut rows = Rows::default();
    for (file, upload) in uploads {
        rows.push(args![file, upload]);
    }
    let (values, arguments) = rows.named("over", &["file", "upload"], tx);
    // No two uploads have one id, so it does not matter which file each of them is compared with.
    let sql = format!(
        "WITH {values} DELETE FROM arriving_uploads
         WHERE file_id IN (SELECT file FROM over) AND upload_id IN (SELECT upload FROM over)"
    );
    tx.execute(sql, arguments).await.map(drop)
}
