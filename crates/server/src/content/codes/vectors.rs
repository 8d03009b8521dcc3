//! Reads vectors from the index. The distances of a few are computed here, in the same way for both databases.

use uuid::Uuid;

use super::Scope;
use super::segments::{among, json};
use crate::content::index::{vector_bytes, vector_text};
use landfall_store::{Arg, Error, Tx, args};

/// A chunk, whose vector it is, and the vector.
pub struct Indexed {
    pub chunk: i64,
    pub scope: Scope,
    pub vector: Vec<f32>,
}

/// The vector of `i` as bytes, which [`decode`] reads.
fn bytes(tx: &Tx) -> &'static str {
    if tx.is_postgres() { "landfall_bytes(i.embedding)" } else { "i.embedding" }
}

/// In pgvector's binary format: the number of values, and two bytes of zero.
const HEADER_OF_PGVECTOR: usize = 4;
/// In PostgreSQL's binary format of an array: three numbers, and two for its only dimension.
const HEADER_OF_ARRAY: usize = 20;

fn decode(tx: &Tx, bytes: &[u8]) -> Vec<f32> {
    if tx.is_postgres() {
        decode_of_postgres(bytes)
    } else {
        bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
    }
}

/// PostgreSQL sends the highest byte first.
fn decode_of_postgres(bytes: &[u8]) -> Vec<f32> {
    // An array begins with the number of its dimensions in four bytes, a vector with that of its values in two.
    if bytes.starts_with(&[0, 0]) {
        // The length and the value of each element.
        let elements = bytes.get(HEADER_OF_ARRAY..).unwrap_or_default().as_chunks::<8>().0;
        elements.iter().map(|[_, _, _, _, value @ ..]| f32::from_be_bytes(*value)).collect()
    } else {
        let values = bytes.get(HEADER_OF_PGVECTOR..).unwrap_or_default().as_chunks().0;
        values.iter().map(|value| f32::from_be_bytes(*value)).collect()
    }
}

/// A page of a file's vectors in the order of their chunks, behind `after`.
pub async fn of_file(tx: &mut Tx, file: Uuid, after: i64, limit: usize) -> Result<Vec<Indexed>, Error> {
    let sql = format!(
        "SELECT i.chunk_id, i.tenant_id, i.user_id, i.model, {} FROM chunk_index i
         WHERE i.file_id = $1 AND i.chunk_id > $2 ORDER BY i.chunk_id LIMIT $3",
        bytes(tx)
    );
    let rows: Vec<(i64, String, String, String, Vec<u8>)> = tx.rows(sql, args![file, after, limit]).await?;
    let read = |(chunk, tenant, user, model, bytes): (i64, String, String, String, Vec<u8>)| Indexed {
        chunk,
        scope: Scope { tenant, user, model },
        vector: decode(tx, &bytes),
    };
    Ok(rows.into_iter().map(read).collect())
}

/// The condition on the scope of entries that are chosen by their ids. `|| ''` hides the tenant from the index of the
/// owners: PostgreSQL without fresh statistics would otherwise walk all entries of the owner.
const IN_SCOPE: &str = "AND i.tenant_id || '' = $2 AND i.user_id = $3 AND i.model = $4";

/// The entries `i` of these chunks, as a part of a statement up to its first condition, and the first argument.
fn chosen(tx: &Tx, chunks: &[i64], joined: &str) -> (String, Arg) {
    if tx.is_postgres() {
        let (among, ids) = among(tx, "i.chunk_id", 1, chunks);
        return (format!("chunk_index i {joined} WHERE {among}"), ids);
    }
    // CROSS JOIN: SQLite would otherwise walk all vectors of the owner.
    let entries = "json_each($1) wanted CROSS JOIN chunk_index i ON i.chunk_id = wanted.value";
    (format!("{entries} {joined} WHERE TRUE"), Arg::from(json(chunks)))
}

/// The file and the vector of those of these chunks that are in the scope.
pub async fn of_chunks(
    tx: &mut Tx,
    scope: &Scope,
    chunks: &[i64],
) -> Result<Vec<(i64, Uuid, Vec<f32>)>, Error> {
    let (chosen, ids) = chosen(tx, chunks, "");
    let sql = format!("SELECT i.chunk_id, i.file_id, {} FROM {chosen} {IN_SCOPE}", bytes(tx));
    let mut arguments = vec![ids];
    arguments.extend(args![&scope.tenant, &scope.user, &scope.model]);
    let rows: Vec<(i64, Uuid, Vec<u8>)> = tx.rows(sql, arguments).await?;
    Ok(rows.into_iter().map(|(chunk, file, bytes)| (chunk, file, decode(tx, &bytes))).collect())
}

/// The files with vectors of this scope.
pub async fn files_of(tx: &mut Tx, scope: &Scope) -> Result<Vec<Uuid>, Error> {
    let files: Vec<(Uuid,)> = tx
        .rows(
            "SELECT DISTINCT file_id FROM chunk_index WHERE tenant_id = $1 AND user_id = $2 AND model = $3",
            args![&scope.tenant, &scope.user, &scope.model],
        )
        .await?;
    Ok(files.into_iter().map(|(file,)| file).collect())
}

/// Adds the conditions of a search to a statement, in place of `{narrowed}`, and their arguments to its arguments.
pub type Narrow<'a> = &'a (dyn Fn(&str, Vec<Arg>) -> (String, Vec<Arg>) + Sync);

/// The distances of those of these chunks that are in the scope and fulfil the conditions.
pub async fn distances(
    tx: &mut Tx,
    scope: &Scope,
    vector: &[f32],
    chunks: &[i64],
    narrow: Option<Narrow<'_>>,
) -> Result<Vec<(i64, f64)>, Error> {
    let files = if narrow.is_some() { "JOIN files f ON f.id = i.file_id" } else { "" };
    let (chosen, ids) = chosen(tx, chunks, files);
    let sql = format!("SELECT i.chunk_id, {} FROM {chosen} {IN_SCOPE} {{narrowed}}", bytes(tx));
    let mut arguments = vec![ids];
    arguments.extend(args![&scope.tenant, &scope.user, &scope.model]);
    let (sql, arguments) = match narrow {
        Some(narrow) => narrow(&sql, arguments),
        None => (sql.replace("{narrowed}", ""), arguments),
    };
    let rows: Vec<(i64, Vec<u8>)> = tx.rows(sql, arguments).await?;
    Ok(rows.into_iter().map(|(chunk, bytes)| (chunk, distance(vector, &decode(tx, &bytes)))).collect())
}

/// The cosine distance, from 0 to 2. A vector that cannot be compared is the farthest.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let length = product(a, a).sqrt() * product(b, b).sqrt();
    if a.len() == b.len() && length > 0.0 { 1.0 - product(a, b) / length } else { 2.0 }
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Which vectors are compared one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Those of the scope that fulfil the conditions.
    All,
    /// Of these, those of files without codes.
    Uncoded,
}

/// The nearest of many vectors. The database computes all distances.
pub async fn compare_all(
    tx: &mut Tx,
    scope: &Scope,
    vector: &[f32],
    compared: Compared,
    narrow: Option<Narrow<'_>>,
    limit: usize,
) -> Result<Vec<(i64, f64)>, Error> {
    let (distance, vector) = if tx.is_postgres() {
        ("landfall_distance(i.embedding, landfall_embedding($1))", Arg::from(vector_text(vector)))
    } else {
        ("vec_distance_cosine(i.embedding, $1)", Arg::from(vector_bytes(vector)))
    };
    // The joins begin with the files where these are few. SQLite keeps the order of a CROSS JOIN, and would without a hint
    // walk all vectors of the owner for each file.
    let of_file = format!("chunk_index i {}", tx.indexed_by("chunk_index_by_file"));
    let from = match (compared, narrow.is_some()) {
        (Compared::All, false) => "chunk_index i".to_owned(),
        (Compared::All, true) => format!("files f CROSS JOIN {of_file}"),
        (Compared::Uncoded, false) => format!("uncoded_files u CROSS JOIN {of_file}"),
        (Compared::Uncoded, true) => format!("uncoded_files u CROSS JOIN files f CROSS JOIN {of_file}"),
    };
    let mut joined = String::new();
    if narrow.is_some() {
        joined.push_str(" AND f.id = i.file_id AND f.tenant_id = $2 AND f.user_id = $3");
    }
    if compared == Compared::Uncoded {
        joined.push_str(" AND u.file_id = i.file_id AND u.tenant_id = $2 AND u.user_id = $3");
        if narrow.is_some() {
            joined.push_str(" AND f.id = u.file_id");
        }
    }
    let sql = format!(
        "SELECT i.chunk_id, {distance} AS distance FROM {from}
         WHERE i.tenant_id = $2 AND i.user_id = $3 AND i.model = $4 {joined} {{narrowed}}
         ORDER BY distance, i.chunk_id LIMIT $5"
    );
    let mut arguments = vec![vector];
    arguments.extend(args![&scope.tenant, &scope.user, &scope.model, limit]);
    let (sql, arguments) = match narrow {
        Some(narrow) => narrow(&sql, arguments),
        None => (sql.replace("{narrowed}", ""), arguments),
    };
    tx.rows(sql, arguments).await
}

/// How many chunks the files have that fulfil the conditions, as far as `limit` files.
pub async fn count_narrowed(
    tx: &mut Tx,
    scope: &Scope,
    narrow: Narrow<'_>,
    limit: usize,
) -> Result<i64, Error> {
    let (sql, arguments) = narrow(
        "SELECT CAST(COALESCE(SUM(chunk_count), 0) AS BIGINT) FROM
             (SELECT f.chunk_count FROM files f WHERE f.tenant_id = $1 AND f.user_id = $2 AND f.status = 'ready'
                  {narrowed} LIMIT $3) AS narrowed",
        args![&scope.tenant, &scope.user, limit],
    );
    tx.number(sql, arguments).await
}
