//! The statements about the table `indexed_files`: the model with which each file in the index was embedded, and the form of
//! its terms.

use landfall_store::{Error, Tx, args};
use uuid::Uuid;

use super::words;

/// Puts a file into the table. It must not be in it.
pub(super) async fn add(tx: &mut Tx, file: Uuid, model: &str) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO indexed_files (file_id, model, terms_format) VALUES ($1, $2, $3)",
        args![file, model, words::FORMAT],
    )
    .await
    .map(drop)
}

/// The file was embedded with another model.
pub(super) async fn set_model(tx: &mut Tx, file: Uuid, model: &str) -> Result<(), Error> {
    tx.execute("UPDATE indexed_files SET model = $2 WHERE file_id = $1", args![file, model]).await.map(drop)
}

/// The file is not in the index any more.
pub(super) async fn remove(tx: &mut Tx, file: Uuid) -> Result<(), Error> {
    tx.execute("DELETE FROM indexed_files WHERE file_id = $1", args![file]).await.map(drop)
}

/// How many files were embedded with which model.
pub async fn models(tx: &mut Tx) -> Result<Vec<(String, i64)>, Error> {
    tx.rows("SELECT model, COUNT(*) FROM indexed_files GROUP BY model ORDER BY model", args![]).await
}

/// A page of the files of a model, in the order of their ids, behind `after`.
pub async fn of_model(tx: &mut Tx, model: &str, after: Uuid, limit: i64) -> Result<Vec<Uuid>, Error> {
    let files: Vec<(Uuid,)> = tx
        .rows(
            "SELECT file_id FROM indexed_files WHERE model = $1 AND file_id > $2 ORDER BY file_id LIMIT $3",
            args![model, after, limit],
        )
        .await?;
    Ok(files.into_iter().map(|(file,)| file).collect())
}

/// The model that a file was embedded with.
pub async fn model_of(tx: &mut Tx, file: Uuid) -> Result<Option<String>, Error> {
    let model: Option<(String,)> =
        tx.row("SELECT model FROM indexed_files WHERE file_id = $1", args![file]).await?;
    Ok(model.map(|(model,)| model))
}

/// Whether a file is ready and was embedded with this model.
pub async fn is_ready_with(tx: &mut Tx, file: Uuid, model: &str) -> Result<bool, Error> {
    let found = tx
        .number(
            "SELECT COUNT(*) FROM indexed_files i JOIN files f ON f.id = i.file_id
             WHERE i.file_id = $1 AND i.model = $2 AND f.status = 'ready'",
            args![file, model],
        )
        .await?;
    Ok(found > 0)
}

/// A page of the files whose terms an earlier version made, in the order of their ids, behind `after`.
pub async fn with_old_terms(tx: &mut Tx, after: Uuid, limit: i64) -> Result<Vec<Uuid>, Error> {
    let files: Vec<(Uuid,)> = tx
        .rows(
            "SELECT file_id FROM indexed_files WHERE terms_format < $1 AND file_id > $2 ORDER BY file_id LIMIT $3",
            args![words::FORMAT, after, limit],
        )
        .await?;
    Ok(files.into_iter().map(|(file,)| file).collect())
}

/// Whether any file has terms of an earlier version.
pub async fn any_with_old_terms(tx: &mut Tx) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) FROM (SELECT 1 FROM indexed_files WHERE terms_format < $1 LIMIT 1) AS one";
    Ok(tx.number(sql, args![words::FORMAT]).await? > 0)
}

/// Whether an earlier version made the terms of a file.
pub(super) async fn has_old_terms(tx: &mut Tx, file: Uuid) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) FROM indexed_files WHERE file_id = $1 AND terms_format < $2";
    Ok(tx.number(sql, args![file, words::FORMAT]).await? > 0)
}

/// The file has terms of this version.
pub(super) async fn note_terms(tx: &mut Tx, file: Uuid) -> Result<(), Error> {
    set_format(tx, file, words::FORMAT).await
}

/// The terms of the file are made again.
pub(super) async fn forget_terms(tx: &mut Tx, file: Uuid) -> Result<(), Error> {
    set_format(tx, file, 0).await
}

async fn set_format(tx: &mut Tx, file: Uuid, format: i64) -> Result<(), Error> {
    tx.execute("UPDATE indexed_files SET terms_format = $2 WHERE file_id = $1", args![file, format])
        .await
        .map(drop)
}
