//! What a database says about where it comes from, before anything in it is changed.

use rusqlite::{Connection, OptionalExtension, params};
use sqlx_postgres::PgConnection;

use crate::Error;
use crate::migrate::PROGRAM;

/// A table that every database of Landfall has, since its first migration.
const OURS: &str = "database_identity";
const VERSIONS: &str = "program_versions";
const LAST_VERSION: &str =
    "SELECT version, schema_version FROM program_versions ORDER BY number DESC LIMIT 1";

/// Tables, without those of sqlx, of the database itself and of its extensions.
const SQLITE_TABLES: &str = "SELECT name FROM sqlite_schema
     WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> '_sqlx_migrations' ORDER BY name";
const POSTGRES_TABLES: &str = "SELECT CAST(c.relname AS TEXT) FROM pg_class c
     WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
       AND c.relkind IN ('r', 'p') AND c.relname <> '_sqlx_migrations'
       AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
     ORDER BY 1";

const NOTE_ON_SQLITE: &str = "INSERT INTO program_versions (version, schema_version, since)
     VALUES ($1, $2, CAST(unixepoch('subsec') * 1000000 AS INTEGER))";
const NOTE_ON_POSTGRES: &str =
    "INSERT INTO program_versions (version, schema_version, since) VALUES ($1, $2, now())";

#[derive(Debug, Default)]
pub struct Origin {
    pub tables: Vec<String>,
    /// The version of Landfall that opened it last, and the schema that it had from then on.
    pub last: Option<(String, i64)>,
}

impl Origin {
    pub fn is_ours(&self) -> bool {
        self.has(OURS)
    }

    pub fn written_by(&self) -> Option<String> {
        self.last.as_ref().map(|(version, _)| version.clone())
    }

    /// The first few tables, for people.
    pub fn some_tables(&self) -> String {
        let more = if self.tables.len() > 3 { ", …" } else { "" };
        format!("{}{more}", self.tables.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", "))
    }

    fn has(&self, table: &str) -> bool {
        self.tables.iter().any(|name| name == table)
    }

    /// Whether this program has to be noted as the one that opened the database last.
    fn lacks(&self, schema_version: i64) -> bool {
        let noted = self.last.as_ref().map(|(version, schema)| (version.as_str(), *schema));
        self.has(VERSIONS) && noted != Some((PROGRAM, schema_version))
    }
}

pub fn of_sqlite(connection: &Connection) -> Result<Origin, Error> {
    let tables =
        connection.prepare(SQLITE_TABLES)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut origin = Origin { tables, last: None };
    if origin.has(VERSIONS) {
        let last = connection.query_row(LAST_VERSION, [], |row| Ok((row.get(0)?, row.get(1)?)));
        origin.last = last.optional()?;
    }
    Ok(origin)
}

/// Notes that this program has opened the database, unless it was also the last that did.
pub fn note_on_sqlite(connection: &Connection, schema_version: i64) -> Result<(), Error> {
    if of_sqlite(connection)?.lacks(schema_version) {
        connection.execute(NOTE_ON_SQLITE, params![PROGRAM, schema_version])?;
    }
    Ok(())
}

pub async fn of_postgres(connection: &mut PgConnection) -> Result<Origin, Error> {
    let tables: Vec<(String,)> = sqlx::query_as(POSTGRES_TABLES).fetch_all(&mut *connection).await?;
    let tables = tables.into_iter().map(|(name,)| name).collect();
    let mut origin = Origin { tables, last: None };
    if origin.has(VERSIONS) {
        origin.last = sqlx::query_as(LAST_VERSION).fetch_optional(connection).await?;
    }
    Ok(origin)
}

/// The same as [`note_on_sqlite`].
pub async fn note_on_postgres(connection: &mut PgConnection, schema_version: i64) -> Result<(), Error> {
    if of_postgres(connection).await?.lacks(schema_version) {
        sqlx::query(NOTE_ON_POSTGRES).bind(PROGRAM).bind(schema_version).execute(connection).await?;
    }
    Ok(())
}
