//! The search index: the words and the vector of every chunk of every ready file. The codes of the vectors are written and
//! removed with them (`codes`).
//!
//! The two databases differ here, so their statements are side by side. SQLite has the functions of sqlite-vec for
//! the vectors; PostgreSQL has pgvector, or plain arrays if the server does not have pgvector. The words are in
//! [`words`].

use super::{chunks, codes, indexed_files, words};
use uuid::Uuid;

use landfall_core::caller::TenantUser;
use landfall_core::text::Embedded;
use landfall_store::Error;
use landfall_store::{Arg, Db, Rows, Tx, Write, args};

/// As the first version created it; later changes follow.
const SQLITE: &str = "
    CREATE TABLE IF NOT EXISTS chunk_index (
        chunk_id  INTEGER PRIMARY KEY,
        file_id   UUID NOT NULL,
        user_id   TEXT NOT NULL,
        model     TEXT NOT NULL,
        embedding BLOB NOT NULL
    );
    CREATE INDEX IF NOT EXISTS chunk_index_by_user ON chunk_index (user_id, model);
    CREATE INDEX IF NOT EXISTS chunk_index_by_file ON chunk_index (file_id);
    -- The words of the first versions.
    CREATE VIRTUAL TABLE IF NOT EXISTS chunk_words USING fts5(
        text, owner, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2');";

const POSTGRES: &str = "
    CREATE TABLE IF NOT EXISTS chunk_index (
        chunk_id  BIGINT PRIMARY KEY,
        file_id   UUID NOT NULL,
        user_id   TEXT NOT NULL,
        model     TEXT NOT NULL,
        words     TSVECTOR NOT NULL,
        embedding landfall_embedding NOT NULL
    );
    CREATE INDEX IF NOT EXISTS chunk_index_by_user ON chunk_index (user_id, model);
    CREATE INDEX IF NOT EXISTS chunk_index_by_file ON chunk_index (file_id);
    CREATE INDEX IF NOT EXISTS chunk_index_by_word ON chunk_index USING GIN (words);";

/// The model with which each file in the index was embedded. It finds the files of another model without a scan of
/// all vectors.
const MODELS: &str = "
    CREATE TABLE indexed_files (
        file_id UUID PRIMARY KEY,
        model   TEXT NOT NULL
    );
    CREATE INDEX indexed_files_by_model ON indexed_files (model, file_id);
    INSERT INTO indexed_files (file_id, model) SELECT file_id, MIN(model) FROM chunk_index GROUP BY file_id;";

/// What was added to the index after the first version.
const WITH_TENANTS: &str = "
    ALTER TABLE chunk_index ADD COLUMN tenant_id TEXT NOT NULL DEFAULT '';
    UPDATE chunk_index SET tenant_id = COALESCE((SELECT f.tenant_id FROM files f WHERE f.id = chunk_index.file_id), '');
    DROP INDEX chunk_index_by_user;
    CREATE INDEX chunk_index_by_owner ON chunk_index (tenant_id, user_id, model);";

/// The type of a vector and the distance of two, if the server has pgvector.
const WITH_PGVECTOR: &str = "
    CREATE DOMAIN landfall_embedding AS vector;
    CREATE FUNCTION landfall_embedding(text) RETURNS vector LANGUAGE sql IMMUTABLE AS 'SELECT $1::vector';
    CREATE FUNCTION landfall_distance(vector, vector) RETURNS double precision LANGUAGE sql IMMUTABLE
        AS 'SELECT $1 <=> $2';";

/// The same without pgvector: slower, and as exact. The vectors have length one, so their product is the cosine.
pub const WITHOUT_PGVECTOR: &str = "
    CREATE DOMAIN landfall_embedding AS real[];
    CREATE FUNCTION landfall_embedding(text) RETURNS real[] LANGUAGE sql IMMUTABLE
        AS 'SELECT translate($1, ''[]'', ''{}'')::real[]';
    CREATE FUNCTION landfall_distance(real[], real[]) RETURNS double precision LANGUAGE sql IMMUTABLE
        AS 'SELECT 1 - sum(a::double precision * b) FROM unnest($1, $2) AS v(a, b)';";

/// The values of a vector as bytes. pgvector writes them one after the other. An array has a length before each, and is
/// written by a call for each, which took two fifths of the time of a search among a million chunks.
const BYTES_WITH_PGVECTOR: &str = "
    CREATE FUNCTION landfall_bytes(vector) RETURNS bytea LANGUAGE sql IMMUTABLE AS 'SELECT vector_send($1)';";
const BYTES_WITHOUT_PGVECTOR: &str = "
    CREATE FUNCTION landfall_bytes(real[]) RETURNS bytea LANGUAGE sql STABLE AS 'SELECT array_send($1)';";

/// Creates the tables of the index if they are missing.
pub async fn install(db: &Db) -> Result<(), Error> {
    db.write(Install).await
}

struct Install;

impl Write for Install {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        if !tx.is_postgres() {
            let columns = "SELECT name FROM pragma_table_info('chunk_index')";
            create(tx, SQLITE, columns).await?;
            let tables =
                tx.number("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'indexed_files'", args![]).await?;
            if tables == 0 {
                tx.script(MODELS).await?;
            }
            let terms =
                tx.number("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'chunk_terms'", args![]).await?;
            return if terms == 0 { tx.script(words::SQLITE).await } else { Ok(()) };
        }
        // One process at a time: `IF NOT EXISTS` alone fails when two processes start together.
        tx.script("SELECT pg_advisory_xact_lock(hashtext('landfall index'))").await?;
        let installed =
            tx.number("SELECT COUNT(*) FROM pg_type WHERE typname = 'landfall_embedding'", args![]).await?;
        if installed == 0 {
            let available = tx
                .number("SELECT COUNT(*) FROM pg_available_extensions WHERE name = 'vector'", args![])
                .await?;
            if available > 0 {
                tx.script("CREATE EXTENSION IF NOT EXISTS vector").await?;
                tx.script(WITH_PGVECTOR).await?;
            } else {
                tracing::warn!(
                    "this PostgreSQL server has no pgvector: vectors are compared without it, which is slower"
                );
                tx.script(WITHOUT_PGVECTOR).await?;
            }
        }
        let functions =
            tx.number("SELECT COUNT(*) FROM pg_proc WHERE proname = 'landfall_bytes'", args![]).await?;
        if functions == 0 {
            let base = "SELECT COUNT(*) FROM pg_type WHERE typname = 'landfall_embedding' AND typbasetype = 'real[]'::regtype";
            let are_arrays = tx.number(base, args![]).await? > 0;
            tx.script(if are_arrays { BYTES_WITHOUT_PGVECTOR } else { BYTES_WITH_PGVECTOR }).await?;
        }
        let columns = "SELECT CAST(column_name AS TEXT) FROM information_schema.columns
                       WHERE table_name = 'chunk_index' AND table_schema = current_schema()";
        create(tx, POSTGRES, columns).await?;
        let tables = tx
            .number(
                "SELECT COUNT(*) FROM pg_tables WHERE tablename = 'indexed_files' AND schemaname = current_schema()",
                args![],
            )
            .await?;
        if tables == 0 {
            tx.script(MODELS).await?;
        }
        let terms = tx
            .number(
                "SELECT COUNT(*) FROM pg_tables WHERE tablename = 'chunk_terms' AND schemaname = current_schema()",
                args![],
            )
            .await?;
        if terms == 0 { tx.script(words::POSTGRES).await } else { Ok(()) }
    }
}

/// Creates the tables, or adds what they lack. `columns` lists the columns of the vectors' table, if there is one.
async fn create(tx: &mut Tx, script: &'static str, columns: &str) -> Result<(), Error> {
    let columns: Vec<(String,)> = tx.rows(columns, args![]).await?;
    if columns.iter().any(|(name,)| name == "tenant_id") {
        return Ok(());
    }
    tx.script(script).await?;
    tx.script(WITH_TENANTS).await
}

/// Puts the chunks of a file into the index, in place of its earlier entries.
pub async fn replace(tx: &mut Tx, file: Uuid, owner: &TenantUser, embedded: &Embedded) -> Result<(), Error> {
    remove(tx, file).await?;
    let chunks = chunks::texts(tx, file).await?;
    if chunks.len() != embedded.vectors.len() {
        return Err(Error::Internal(format!(
            "file {file} has {} chunks and {} vectors",
            chunks.len(),
            embedded.vectors.len()
        )));
    }
    indexed_files::add(tx, file, &embedded.model).await?;
    let vectors = chunks.iter().zip(&embedded.vectors).map(|((id, _), vector)| (*id, &vector[..]));
    codes::add(tx, file, codes::Scope::new(owner, &embedded.model), vectors)?;
    let mut entries = Rows::default();
    for ((id, _), vector) in chunks.iter().zip(&embedded.vectors) {
        let vector =
            if tx.is_postgres() { vector_text(vector).into() } else { Arg::from(vector_bytes(vector)) };
        let mut entry = args![*id, file, &owner.tenant, &owner.user, &embedded.model];
        entry.push(vector);
        entries.push(entry);
    }
    if tx.is_postgres() {
        for part in entries.batches() {
            let (values, args) = part.into_values(tx);
            let sql = format!(
                "INSERT INTO chunk_index (chunk_id, file_id, tenant_id, user_id, model, embedding)
                 SELECT column1, column2, column3, column4, column5, landfall_embedding(column6)
                 FROM ({values}) AS v WHERE column1 IS NOT NULL"
            );
            tx.execute(sql, args).await?;
        }
    } else {
        tx.insert("chunk_index (chunk_id, file_id, tenant_id, user_id, model, embedding)", entries, "")
            .await?;
    }
    words::add(tx, file, owner, &chunks).await
}

/// Makes the terms of a file again, if an earlier version made them. The caller holds the file.
pub async fn refresh_terms(tx: &mut Tx, file: Uuid, owner: &TenantUser) -> Result<bool, Error> {
    if !indexed_files::has_old_terms(tx, file).await? {
        return Ok(false);
    }
    words::remove(tx, file).await?;
    let chunks = chunks::texts(tx, file).await?;
    words::add(tx, file, owner, &chunks).await?;
    indexed_files::note_terms(tx, file).await?;
    Ok(true)
}

/// Replaces the vectors of these chunks, which are all chunks of a file. Their words do not change.
pub async fn replace_vectors(
    tx: &mut Tx,
    file: Uuid,
    owner: &TenantUser,
    chunks: &[i64],
    embedded: &Embedded,
) -> Result<(), Error> {
    let mut rows = Rows::default();
    for (id, vector) in chunks.iter().zip(&embedded.vectors) {
        let vector =
            if tx.is_postgres() { vector_text(vector).into() } else { Arg::from(vector_bytes(vector)) };
        rows.push(vec![Arg::from(*id), Arg::from(&embedded.model), vector]);
    }
    let vector = if tx.is_postgres() { "landfall_embedding(v.column3)" } else { "v.column3" };
    let mut replaced = 0;
    for part in rows.batches() {
        let (values, args) = part.into_values(tx);
        let sql = format!(
            "UPDATE chunk_index SET model = v.column2, embedding = {vector} FROM ({values}) AS v
             WHERE chunk_index.chunk_id = v.column1"
        );
        replaced += tx.execute(sql, args).await?;
    }
    if usize::try_from(replaced) != Ok(chunks.len()) {
        return Err(Error::Internal(format!("file {file}: {replaced} of {} vectors replaced", chunks.len())));
    }
    codes::remove(tx, file, chunks.to_vec());
    let vectors = chunks.iter().zip(&embedded.vectors).map(|(id, vector)| (*id, &vector[..]));
    codes::add(tx, file, codes::Scope::new(owner, &embedded.model), vectors)?;
    indexed_files::set_model(tx, file, &embedded.model).await
}

/// Removes a file from the index. Its chunks must still exist.
pub async fn remove(tx: &mut Tx, file: Uuid) -> Result<(), Error> {
    words::remove(tx, file).await?;
    indexed_files::remove(tx, file).await?;
    let removed: Vec<(i64,)> =
        tx.rows("DELETE FROM chunk_index WHERE file_id = $1 RETURNING chunk_id", args![file]).await?;
    codes::remove(tx, file, removed.into_iter().map(|(chunk,)| chunk).collect());
    Ok(())
}

/// Removes the terms of a chunk that has no vector. A chunk with a vector and without terms gets them again with its
/// file. Returns whether something changed.
pub async fn fix_terms(tx: &mut Tx, chunk: i64) -> Result<bool, Error> {
    let file: Option<(Uuid,)> =
        tx.row("SELECT file_id FROM chunk_index WHERE chunk_id = $1", args![chunk]).await?;
    match file {
        Some((file,)) => indexed_files::forget_terms(tx, file).await.map(|()| true),
        None => words::remove_chunk(tx, chunk).await.map(|()| true),
    }
}

pub(super) fn vector_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// `[0.1,0.2]`, the text format of pgvector.
pub(super) fn vector_text(vector: &[f32]) -> String {
    let mut text = String::with_capacity(vector.len() * 12);
    text.push('[');
    for (number, value) in vector.iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        text.push_str(&value.to_string());
    }
    text.push(']');
    text
}
