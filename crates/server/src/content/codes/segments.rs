//! The statements about the tables `code_segments` and `coded_files`: the packed codes, and which files they are of.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::Scope;
use super::cache::Listed;
use super::packed::Packed;
use landfall_store::{Arg, Error, Rows, Tx, args};

/// A condition that is true for the ids in a list, and its argument. One argument for any number of ids: a statement has
/// few forms then.
pub fn among(tx: &Tx, column: &str, place: usize, ids: &[i64]) -> (String, Arg) {
    let list = if tx.is_postgres() {
        format!(
            "{column} = ANY (ARRAY(SELECT CAST(v AS BIGINT)
                                   FROM jsonb_array_elements_text(CAST(CAST(${place} AS TEXT) AS JSONB)) AS v))"
        )
    } else {
        format!("{column} IN (SELECT value FROM json_each(${place}))")
    };
    (list, Arg::from(json(ids)))
}

/// `[1,2,3]`
pub fn json(ids: &[i64]) -> String {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    format!("[{}]", ids.join(","))
}

/// The segments of a scope, and how many files of the owner are not coded. One statement, so that both are of the same
/// moment.
pub async fn list(tx: &mut Tx, scope: &Scope) -> Result<(Vec<Listed>, i64), Error> {
    let mut listed: Vec<Listed> = tx
        .rows(
            "SELECT id, stamp, entries FROM code_segments WHERE tenant_id = $1 AND user_id = $2 AND model = $3
             UNION ALL
             SELECT CAST(-1 AS BIGINT), CAST(0 AS BIGINT), COUNT(*) FROM uncoded_files
             WHERE tenant_id = $1 AND user_id = $2",
            args![&scope.tenant, &scope.user, &scope.model],
        )
        .await?;
    let uncoded = listed.iter().filter(|one| one.id < 0).map(|one| one.entries).sum();
    listed.retain(|one| one.id >= 0);
    // In the order of the table.
    listed.sort_unstable_by_key(|one| one.id);
    Ok((listed, uncoded))
}

#[derive(landfall_store::FromRow)]
struct Row {
    id: i64,
    stamp: i64,
    chunks: Vec<u8>,
    codes: Vec<u8>,
}

/// The segments with these ids that exist, each with its stamp.
pub async fn load(tx: &mut Tx, ids: &[i64]) -> Result<Vec<(i64, i64, Packed)>, Error> {
    let (among, ids) = among(tx, "id", 1, ids);
    let sql = format!("SELECT id, stamp, chunks, codes FROM code_segments WHERE {among} ORDER BY id");
    let rows: Vec<Row> = tx.rows(sql, vec![ids]).await?;
    let read = |row: Row| Ok((row.id, row.stamp, Packed::read(row.id, &row.chunks, row.codes)?));
    rows.into_iter().map(read).collect()
}

/// A page of all segments, behind `after`.
pub async fn page(tx: &mut Tx, after: i64, limit: i64) -> Result<Vec<(i64, Scope)>, Error> {
    let rows: Vec<(i64, String, String, String)> = tx
        .rows(
            "SELECT id, tenant_id, user_id, model FROM code_segments WHERE id > $1 ORDER BY id LIMIT $2",
            args![after, limit],
        )
        .await?;
    Ok(rows.into_iter().map(|(id, tenant, user, model)| (id, Scope { tenant, user, model })).collect())
}

/// A segment and how many entries are noted for it.
pub async fn read(tx: &mut Tx, id: i64) -> Result<Option<(i64, Packed)>, Error> {
    let row: Option<(i64, Vec<u8>, Vec<u8>)> =
        tx.row("SELECT entries, chunks, codes FROM code_segments WHERE id = $1", args![id]).await?;
    row.map(|(entries, chunks, codes)| Ok((entries, Packed::read(id, &chunks, codes)?))).transpose()
}

/// The files whose codes are in a segment, and how many of them.
pub async fn files_in(tx: &mut Tx, segment: i64) -> Result<Vec<(Uuid, i64)>, Error> {
    tx.rows("SELECT file_id, entries FROM coded_files WHERE segment = $1", args![segment]).await
}

/// Locks these segments in the order of their ids, so that two transactions do not wait for each other. Returns the scope
/// of each that exists.
pub async fn lock(tx: &mut Tx, ids: &[i64]) -> Result<BTreeMap<i64, Scope>, Error> {
    let how = tx.for_update();
    lock_with(tx, ids, how).await
}

/// The same without waiting: a segment that another transaction holds is left out.
pub async fn try_lock(tx: &mut Tx, ids: &[i64]) -> Result<BTreeMap<i64, Scope>, Error> {
    let how = tx.skip_locked();
    lock_with(tx, ids, how).await
}

async fn lock_with(tx: &mut Tx, ids: &[i64], how: &str) -> Result<BTreeMap<i64, Scope>, Error> {
    let (among, ids) = among(tx, "id", 1, ids);
    let sql =
        format!("SELECT id, tenant_id, user_id, model FROM code_segments WHERE {among} ORDER BY id {how}");
    let rows: Vec<(i64, String, String, String)> = tx.rows(sql, vec![ids]).await?;
    Ok(rows.into_iter().map(|(id, tenant, user, model)| (id, Scope { tenant, user, model })).collect())
}

/// Segments of the scope with fewer entries than `full`, the oldest first.
pub async fn small(tx: &mut Tx, scope: &Scope, full: usize) -> Result<Vec<(i64, i64)>, Error> {
    tx.rows(
        "SELECT id, entries FROM code_segments
         WHERE tenant_id = $1 AND user_id = $2 AND model = $3 AND entries < $4 ORDER BY id",
        args![&scope.tenant, &scope.user, &scope.model, full],
    )
    .await
}

/// Returns the id of the new segment.
pub async fn insert(tx: &mut Tx, scope: &Scope, packed: Packed) -> Result<i64, Error> {
    let (entries, chunks) = (packed.len(), packed.chunk_bytes());
    tx.number(
        "INSERT INTO code_segments (tenant_id, user_id, model, entries, stamp, chunks, codes)
         VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id",
        args![
            &scope.tenant,
            &scope.user,
            &scope.model,
            entries,
            landfall_core::random::random::<i64>(),
            chunks,
            packed.codes
        ],
    )
    .await
}

/// Replaces the content of a segment that the transaction has locked. A segment without entries is removed.
pub async fn replace(tx: &mut Tx, id: i64, packed: Packed) -> Result<(), Error> {
    if packed.is_empty() {
        return tx.execute("DELETE FROM code_segments WHERE id = $1", args![id]).await.map(drop);
    }
    let (entries, chunks) = (packed.len(), packed.chunk_bytes());
    tx.execute(
        "UPDATE code_segments SET entries = $2, stamp = $3, chunks = $4, codes = $5 WHERE id = $1",
        args![id, entries, landfall_core::random::random::<i64>(), chunks, packed.codes],
    )
    .await
    .map(drop)
}

/// The segments that hold codes of these files.
pub async fn of_files(
    tx: &mut Tx,
    files: impl IntoIterator<Item = &Uuid>,
) -> Result<Vec<(Uuid, i64)>, Error> {
    let mut found = Vec::new();
    for part in rows_of(files).batches() {
        let (values, args) = part.into_values(tx);
        let sql = format!(
            "SELECT file_id, segment FROM coded_files WHERE file_id IN (SELECT * FROM ({values}) AS v)"
        );
        found.extend(tx.rows::<(Uuid, i64)>(sql, args).await?);
    }
    Ok(found)
}

/// Notes how many codes of which file are in a segment.
pub async fn add_files(tx: &mut Tx, segment: i64, files: &[(Uuid, usize)]) -> Result<(), Error> {
    let mut rows = Rows::default();
    for (file, entries) in files {
        rows.push(args![*file, segment, *entries]);
    }
    tx.insert("coded_files (file_id, segment, entries)", rows, "").await
}

/// Forgets where the codes of these files are. The transaction has locked and changed all their segments.
pub async fn remove_files(tx: &mut Tx, files: impl IntoIterator<Item = &Uuid>) -> Result<(), Error> {
    for part in rows_of(files).batches() {
        let (values, args) = part.into_values(tx);
        let sql = format!("DELETE FROM coded_files WHERE file_id IN (SELECT * FROM ({values}) AS v)");
        tx.execute(sql, args).await?;
    }
    Ok(())
}

/// The entries of some segments are in another one now. The transaction has locked them; they are removed.
pub async fn merge_into(tx: &mut Tx, segment: i64, merged: &[i64]) -> Result<(), Error> {
    let (of_merged, ids) = among(tx, "segment", 1, merged);
    let sql = format!(
        "INSERT INTO coded_files (file_id, segment, entries)
         SELECT file_id, CAST($2 AS BIGINT), CAST(SUM(entries) AS BIGINT) FROM coded_files
         WHERE {of_merged} GROUP BY file_id"
    );
    tx.execute(sql, vec![ids.clone(), segment.into()]).await?;
    tx.execute(format!("DELETE FROM coded_files WHERE {of_merged}"), vec![ids.clone()]).await?;
    let (among, _) = among(tx, "id", 1, merged);
    tx.execute(format!("DELETE FROM code_segments WHERE {among}"), vec![ids]).await.map(drop)
}

/// Removes all codes of a scope.
pub async fn remove_scope(tx: &mut Tx, scope: &Scope) -> Result<(), Error> {
    let sql = format!(
        "SELECT id FROM code_segments WHERE tenant_id = $1 AND user_id = $2 AND model = $3 ORDER BY id {}",
        tx.for_update()
    );
    let held: Vec<(i64,)> = tx.rows(sql, args![&scope.tenant, &scope.user, &scope.model]).await?;
    let ids: Vec<i64> = held.into_iter().map(|(id,)| id).collect();
    let (of_scope, list) = among(tx, "segment", 1, &ids);
    tx.execute(format!("DELETE FROM coded_files WHERE {of_scope}"), vec![list.clone()]).await?;
    let (among, _) = among(tx, "id", 1, &ids);
    tx.execute(format!("DELETE FROM code_segments WHERE {among}"), vec![list]).await?;
    // What says where codes are that do not exist.
    let lost = "DELETE FROM coded_files WHERE segment NOT IN (SELECT id FROM code_segments)";
    tx.execute(lost, args![]).await.map(drop)
}

pub(super) fn rows_of<'a>(files: impl IntoIterator<Item = &'a Uuid>) -> Rows {
    let mut rows = Rows::default();
    for file in files {
        rows.push(args![*file]);
    }
    rows
}
