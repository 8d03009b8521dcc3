//! The versions of the schema: one set of texts, with the parts that differ filled in for each database.
//!
//! A database remembers which texts it was made with. It is brought to the newest version in one transaction, so that an
//! upgrade happens as a whole or not at all. A database that this program does not know is left as it is.

use std::borrow::Cow;

use sqlx::migrate::{AppliedMigration, Migrate, MigrateError, Migration, MigrationType};
use sqlx::{AssertSqlSafe, Connection, SqlSafeStr, SqlitePool};
use sqlx_postgres::PgPool;

use crate::Error;
use crate::origin::{self, Origin};
use crate::{Backend, Db};

/// Those that were released are frozen: a test compares the text of each with its hash.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "files", include_str!("../../../migrations/0001_files.sql")),
    (2, "blame", include_str!("../../../migrations/0002_blame.sql")),
    (3, "origins", include_str!("../../../migrations/0003_origins.sql")),
    (4, "expiry", include_str!("../../../migrations/0004_expiry.sql")),
    (5, "warnings", include_str!("../../../migrations/0005_warnings.sql")),
    (6, "visibility", include_str!("../../../migrations/0006_visibility.sql")),
    (7, "tenants", include_str!("../../../migrations/0007_tenants.sql")),
    (8, "api_keys", include_str!("../../../migrations/0008_api_keys.sql")),
    (9, "audit_log", include_str!("../../../migrations/0009_audit_log.sql")),
    (10, "sessions", include_str!("../../../migrations/0010_sessions.sql")),
    (11, "secrets_and_blobs", include_str!("../../../migrations/0011_secrets_and_blobs.sql")),
    (12, "object_storage", include_str!("../../../migrations/0012_object_storage.sql")),
    (13, "resumable_uploads", include_str!("../../../migrations/0013_resumable_uploads.sql")),
    (14, "files_by_md5", include_str!("../../../migrations/0014_files_by_md5.sql")),
];
/// Where the database remembers which migrations it has. sqlx made it, and knows it by this name.
pub const TABLE: &str = "_sqlx_migrations";
/// The version of this program.
pub const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Why a database cannot be used with this program.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error(
        "The database was last written by {} and has schema version {database}. This is Landfall {PROGRAM}, which knows \
         versions up to {program}, so it changed nothing: run {}, or restore the backup from before the upgrade",
        named(written_by.as_deref(), "a newer Landfall"),
        at_least(written_by.as_deref())
    )]
    Newer { database: i64, program: i64, written_by: Option<String> },
    #[error(
        "Migration {version} of the database is another one than that of this program. The database was last written by {}, \
         and this is Landfall {PROGRAM}, so it changed nothing: run the Landfall that wrote it, or restore a backup that was \
         made with a release",
        named(written_by.as_deref(), "a Landfall that was never released, or a changed one")
    )]
    Changed { version: i64, written_by: Option<String> },
    #[error(
        "This is the database of another program: it has the tables {tables} and none of Landfall's. Landfall {PROGRAM} \
         changed nothing: check DATABASE_URL, and give Landfall a database of its own"
    )]
    Foreign { tables: String },
    #[error(
        "{file} is not an SQLite database, or it is damaged. Landfall {PROGRAM} changed nothing: check DATABASE_URL, or \
         restore the database from a backup"
    )]
    NotADatabase { file: String },
    #[error(
        "database schema: rows of the table {table} would refer to what is not there, so nothing was changed"
    )]
    Dangling { table: String },
    #[error("database schema: {0}")]
    Failed(#[from] MigrateError),
}

fn named(version: Option<&str>, unknown: &str) -> String {
    version
        .map_or_else(|| format!("{unknown} (it does not say which)"), |version| format!("Landfall {version}"))
}

fn at_least(version: Option<&str>) -> String {
    version.map_or_else(
        || "the newer Landfall that upgraded the database".to_owned(),
        |version| format!("Landfall {version} or a newer one"),
    )
}

/// Brings the schema to this program's version. One process does it, and the others wait for it.
pub async fn run(db: &Db) -> Result<(), Error> {
    let migrations = migrations(identity(db));
    match &db.backend {
        Backend::Sqlite { writer, .. } => run_on_sqlite(writer.pool(), &migrations).await,
        Backend::Postgres { pool, .. } => run_on_postgres(pool, &migrations).await,
    }
}

async fn run_on_sqlite(pool: &SqlitePool, migrations: &[Migration]) -> Result<(), Error> {
    let mut connection = pool.acquire().await?;
    // SQLite changes some things about a table only by way of a new one. With foreign keys, the end of the old table would
    // take all rows with it that refer to it. They are checked at the end instead.
    sqlx::query("PRAGMA foreign_keys = OFF").execute(&mut *connection).await?;
    // The lock for writing at once: two processes that have both read cannot both go on to write.
    let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
    let origin = origin::of_sqlite(&mut tx).await?;
    if migrate(&mut *tx, migrations, &origin).await? > 0 {
        let dangling = "SELECT \"table\" FROM pragma_foreign_key_check LIMIT 1";
        if let Some((table,)) = sqlx::query_as(dangling).fetch_optional(&mut *tx).await? {
            return Err(SchemaError::Dangling { table }.into());
        }
    }
    origin::note_on_sqlite(&mut tx, newest(migrations)).await?;
    tx.commit().await?;
    sqlx::query("PRAGMA foreign_keys = ON").execute(&mut *connection).await?;
    Ok(())
}

async fn run_on_postgres(pool: &PgPool, migrations: &[Migration]) -> Result<(), Error> {
    // A connection of its own: sqlx's lock is the session's, and so it also ends where this fails.
    let mut connection = pool.acquire().await?.detach();
    connection.lock().await.map_err(SchemaError::from)?;
    let mut tx = connection.begin().await?;
    let origin = origin::of_postgres(&mut tx).await?;
    migrate(&mut *tx, migrations, &origin).await?;
    origin::note_on_postgres(&mut tx, newest(migrations)).await?;
    tx.commit().await?;
    connection.close().await?;
    Ok(())
}

/// Returns how many migrations the database did not have yet.
async fn migrate(
    connection: &mut impl Migrate,
    migrations: &[Migration],
    origin: &Origin,
) -> Result<usize, SchemaError> {
    connection.ensure_migrations_table(TABLE).await?;
    let applied = connection.list_applied_migrations(TABLE).await?;
    check(&applied, migrations, origin)?;
    let missing = &migrations[applied.len()..];
    for migration in missing {
        tracing::info!(version = migration.version, name = &*migration.description, "migrating the database");
        connection.apply(TABLE, migration).await?;
    }
    Ok(missing.len())
}

fn newest(migrations: &[Migration]) -> i64 {
    migrations.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// The database must have been made with the first of these migrations, however many.
fn check(applied: &[AppliedMigration], known: &[Migration], origin: &Origin) -> Result<(), SchemaError> {
    let same = |(applied, known): &(&AppliedMigration, &Migration)| {
        applied.version == known.version && applied.checksum == known.checksum
    };
    let changed = applied.iter().zip(known).find(|pair| !same(pair)).map(|(applied, _)| applied.version);
    let is_foreign =
        if applied.is_empty() { !origin.tables.is_empty() } else { changed.is_some() && !origin.is_ours() };
    if is_foreign {
        return Err(SchemaError::Foreign { tables: origin.some_tables() });
    }
    let database = applied.iter().map(|migration| migration.version).max().unwrap_or(0);
    let (program, written_by) = (newest(known), origin.written_by());
    if database > program {
        return Err(SchemaError::Newer { database, program, written_by });
    }
    match changed {
        Some(version) => Err(SchemaError::Changed { version, written_by }),
        None => Ok(()),
    }
}

fn migrations(identity: &str) -> Vec<Migration> {
    let migration = |&(version, name, text): &(i64, &'static str, &str)| {
        let sql = AssertSqlSafe(text.replace("{{identity}}", identity)).into_sql_str();
        Migration::new(version, Cow::Borrowed(name), MigrationType::Simple, sql, false)
    };
    MIGRATIONS.iter().map(migration).collect()
}

fn identity(db: &Db) -> &'static str {
    if db.is_postgres() {
        "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
    } else {
        // AUTOINCREMENT: the id of a deleted row is never used again.
        "INTEGER PRIMARY KEY AUTOINCREMENT"
    }
}

#[cfg(test)]
mod tests {
    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
    use sqlx_postgres::PgConnection;

    use super::*;

    const PORTS: &str = "CREATE TABLE ports (id BIGINT PRIMARY KEY);
        CREATE TABLE ships (id BIGINT PRIMARY KEY, port BIGINT NOT NULL REFERENCES ports (id) ON DELETE CASCADE);
        INSERT INTO ports VALUES (1); INSERT INTO ships VALUES (7, 1);";

    fn made_of(texts: &[(i64, &'static str)]) -> Vec<Migration> {
        let migration = |&(version, text): &(i64, &'static str)| {
            Migration::new(version, "made".into(), MigrationType::Simple, text.into_sql_str(), false)
        };
        texts.iter().map(migration).collect()
    }

    fn applied(migrations: &[Migration]) -> Vec<AppliedMigration> {
        let applied = |m: &Migration| AppliedMigration { version: m.version, checksum: m.checksum.clone() };
        migrations.iter().map(applied).collect()
    }

    fn with_tables(names: &[&str]) -> Origin {
        Origin { tables: names.iter().map(|&name| name.to_owned()).collect(), ..Origin::default() }
    }

    fn ours() -> Origin {
        with_tables(&["database_identity", "files"])
    }

    #[test]
    fn a_database_of_another_program_is_recognised() {
        let known = made_of(&[(1, "a"), (2, "b")]);
        let other = applied(&made_of(&[(1, "x"), (2, "y"), (3, "z"), (20_260_101, "w")]));
        for (applied, tables) in [(&[][..], &["invoices"][..]), (&other, &["invoices"]), (&other, &[])] {
            let refused = check(applied, &known, &with_tables(tables));
            assert!(matches!(refused, Err(SchemaError::Foreign { .. })), "{refused:?}");
        }
        assert!(check(&[], &known, &with_tables(&[])).is_ok(), "an empty database is taken");
    }

    #[test]
    fn a_database_of_any_earlier_version_is_known() {
        let known = made_of(&[(1, "a"), (2, "b"), (3, "c")]);
        let made = |versions| if versions == 0 { with_tables(&[]) } else { ours() };
        for versions in 0..=known.len() {
            assert!(check(&applied(&known[..versions]), &known, &made(versions)).is_ok());
        }
    }

    #[test]
    fn a_database_of_a_later_version_is_not() {
        let known = made_of(&[(1, "a"), (2, "b")]);
        for later in [made_of(&[(1, "a"), (2, "b"), (3, "c"), (4, "d")]), made_of(&[(1, "a"), (4, "d")])] {
            let refused = check(&applied(&later), &known, &ours());
            assert!(
                matches!(refused, Err(SchemaError::Newer { database: 4, program: 2, .. })),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn a_database_that_was_made_otherwise_is_not() {
        let known = made_of(&[(1, "a"), (2, "b"), (3, "c")]);
        for (other, changed) in [
            (made_of(&[(1, "A"), (2, "b")]), 1),
            (made_of(&[(1, "a"), (2, "B"), (3, "c")]), 2),
            // It has the third without the second.
            (made_of(&[(1, "a"), (3, "c")]), 3),
        ] {
            let refused = check(&applied(&other), &known, &ours());
            let is_right = matches!(refused, Err(SchemaError::Changed { version, .. }) if version == changed);
            assert!(is_right, "{refused:?}");
        }
    }

    #[test]
    fn versions_are_counted_from_one_without_gaps() {
        let versions: Vec<i64> = MIGRATIONS.iter().map(|(version, ..)| *version).collect();
        assert_eq!(versions, (1..).take(MIGRATIONS.len()).collect::<Vec<i64>>());
    }

    async fn sqlite(folder: &tempfile::TempDir) -> SqlitePool {
        let file = folder.path().join("ports.db");
        let options = SqliteConnectOptions::new().filename(file).create_if_missing(true).foreign_keys(true);
        SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options.journal_mode(SqliteJournalMode::Wal))
            .await
            .expect("a database")
    }

    /// A fresh database on the server that `make test` starts; a plain `cargo test` has none.
    async fn postgres() -> Option<PgPool> {
        let server = std::env::var("LANDFALL_TEST_DATABASE_URL").ok()?;
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&server).await.expect("PostgreSQL answers");
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::query(create).execute(&mut connection).await.expect("a fresh database");
        let mut url = url::Url::parse(&server).expect("a URL");
        url.set_path(&name);
        Some(PgPool::connect(url.as_str()).await.expect("PostgreSQL answers"))
    }

    #[tokio::test]
    async fn an_upgrade_happens_as_a_whole_or_not_at_all() {
        let first = made_of(&[(1, PORTS)]);
        let broken = made_of(&[(1, PORTS), (2, "CREATE TABLE crews (id BIGINT)"), (3, "CREATE nonsense")]);
        let good = made_of(&[(1, PORTS), (2, "CREATE TABLE crews (id BIGINT)")]);
        let versions = "SELECT CAST(COUNT(*) AS BIGINT) FROM _sqlx_migrations";

        let folder = tempfile::tempdir().expect("a folder");
        let pool = sqlite(&folder).await;
        run_on_sqlite(&pool, &first).await.expect("it is made");
        assert!(run_on_sqlite(&pool, &broken).await.is_err());
        assert_eq!(sqlx::query_scalar::<_, i64>(versions).fetch_one(&pool).await.expect("a number"), 1);
        // The first program still knows it, and a fixed one upgrades it.
        run_on_sqlite(&pool, &first).await.expect("it is known");
        run_on_sqlite(&pool, &good).await.expect("it is upgraded");

        let Some(pool) = postgres().await else { return };
        run_on_postgres(&pool, &first).await.expect("it is made");
        assert!(run_on_postgres(&pool, &broken).await.is_err());
        let count = sqlx_core::query_scalar::query_scalar::<_, i64>(versions).fetch_one(&pool).await;
        assert_eq!(count.expect("a number"), 1);
        run_on_postgres(&pool, &first).await.expect("it is known");
        run_on_postgres(&pool, &good).await.expect("it is upgraded");
    }

    #[tokio::test]
    async fn of_two_processes_that_start_at_once_one_migrates() {
        let migrations = made_of(&[(1, PORTS), (2, "CREATE TABLE crews (id BIGINT)")]);
        // Several times: without the lock it would still go well now and then.
        for _ in 0..20 {
            let folder = tempfile::tempdir().expect("a folder");
            let (one, other) = (sqlite(&folder).await, sqlite(&folder).await);
            run_on_sqlite(&one, &migrations[..1]).await.expect("it is made");
            let both = tokio::join!(run_on_sqlite(&one, &migrations), run_on_sqlite(&other, &migrations));
            assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
        }

        let Some(pool) = postgres().await else { return };
        let both = tokio::join!(run_on_postgres(&pool, &migrations), run_on_postgres(&pool, &migrations));
        assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
    }

    #[tokio::test]
    async fn a_table_that_others_refer_to_can_be_replaced() {
        const REPLACED: &str = "CREATE TABLE ports_2 (id BIGINT PRIMARY KEY, name TEXT);
            INSERT INTO ports_2 (id) SELECT id FROM ports; DROP TABLE ports; ALTER TABLE ports_2 RENAME TO ports;";
        let folder = tempfile::tempdir().expect("a folder");
        let pool = sqlite(&folder).await;
        run_on_sqlite(&pool, &made_of(&[(1, PORTS), (2, REPLACED)])).await.expect("it is upgraded");
        let ships = "SELECT COUNT(*) FROM ships";
        assert_eq!(sqlx::query_scalar::<_, i64>(ships).fetch_one(&pool).await.expect("a number"), 1);
        // From now on they hold again.
        sqlx::query("DELETE FROM ports").execute(&pool).await.expect("it is deleted");
        assert_eq!(sqlx::query_scalar::<_, i64>(ships).fetch_one(&pool).await.expect("a number"), 0);
    }

    #[tokio::test]
    async fn one_that_would_leave_rows_that_refer_to_nothing_is_undone() {
        let folder = tempfile::tempdir().expect("a folder");
        let pool = sqlite(&folder).await;
        let lossy = made_of(&[(1, PORTS), (2, "DELETE FROM ports")]);
        run_on_sqlite(&pool, &made_of(&[(1, PORTS)])).await.expect("it is made");
        let refused = run_on_sqlite(&pool, &lossy).await.expect_err("it is refused").to_string();
        assert!(refused.contains("rows of the table ships"), "{refused}");
        let ports = "SELECT COUNT(*) FROM ports";
        assert_eq!(sqlx::query_scalar::<_, i64>(ports).fetch_one(&pool).await.expect("a number"), 1);
    }
}
