//! The versions of the schema: one set of texts, with the parts that differ filled in for each database.
//!
//! A database remembers which texts it was made with. It is brought to the newest version in one transaction, so that an
//! upgrade happens as a whole or not at all. A database that this program does not know is left as it is.

use std::borrow::Cow;

use sqlx::migrate::{AppliedMigration, Migrate, MigrateError, Migration, MigrationType};
use sqlx::{AssertSqlSafe, Connection, SqlSafeStr, SqlitePool};
use sqlx_postgres::PgPool;

use crate::Error;
use crate::{Backend, Db};

/// Those that were released are frozen: a test compares the text of each with its hash.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "files", include_str!("../../../migrations/0001_files.sql")),
    (6, "visibility", include_str!("../../../migrations/0006_visibility.sql")),
];
/// Where the database remembers which migrations it has. sqlx made it, and knows it by this name.
const TABLE: &str = "_sqlx_migrations";

/// Why a database cannot be used with this program.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error(
        "The database has schema version {database}, and this program (Landfall {}) knows versions up to {program}, so it \
         changed nothing: run the newer Landfall that upgraded the database, or restore the backup from before the \
         upgrade",
        env!("CARGO_PKG_VERSION")
    )]
    Newer { database: i64, program: i64 },
    #[error(
        "Migration {version} of the database is another one than that of this program (Landfall {}), so it changed \
         nothing: run the Landfall that the database was made with, or restore a backup that was made with a release",
        env!("CARGO_PKG_VERSION")
    )]
    Changed { version: i64 },
    #[error(
        "database schema: rows of the table {table} would refer to what is not there, so nothing was changed"
    )]
    Dangling { table: String },
    #[error("database schema: {0}")]
    Failed(#[from] MigrateError),
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
    if migrate(&mut *tx, migrations).await? > 0 {
        let dangling = "SELECT \"table\" FROM pragma_foreign_key_check LIMIT 1";
        if let Some((table,)) = sqlx::query_as(dangling).fetch_optional(&mut *tx).await? {
            return Err(SchemaError::Dangling { table }.into());
        }
    }
    tx.commit().await?;
    sqlx::query("PRAGMA foreign_keys = ON").execute(&mut *connection).await?;
    Ok(())
}

async fn run_on_postgres(pool: &PgPool, migrations: &[Migration]) -> Result<(), Error> {
    // A connection of its own: sqlx's lock is the session's, and so it also ends where this fails.
    let mut connection = pool.acquire().await?.detach();
    connection.lock().await.map_err(SchemaError::from)?;
    let mut tx = connection.begin().await?;
    migrate(&mut *tx, migrations).await?;
    tx.commit().await?;
    connection.close().await?;
    Ok(())
}

/// Returns how many migrations the database did not have yet.
async fn migrate(connection: &mut impl Migrate, migrations: &[Migration]) -> Result<usize, SchemaError> {
    connection.ensure_migrations_table(TABLE).await?;
    let applied = connection.list_applied_migrations(TABLE).await?;
    check(&applied, migrations)?;
    let missing = &migrations[applied.len()..];
    for migration in missing {
        tracing::info!(version = migration.version, name = &*migration.description, "migrating the database");
        connection.apply(TABLE, migration).await?;
    }
    Ok(missing.len())
}

/// The database must have been made with the first of these migrations, however many.
fn check(applied: &[AppliedMigration], known: &[Migration]) -> Result<(), SchemaError> {
    let newest = |versions: &mut dyn Iterator<Item = i64>| versions.max().unwrap_or(0);
    let database = newest(&mut applied.iter().map(|migration| migration.version));
    let program = newest(&mut known.iter().map(|migration| migration.version));
    if database > program {
        return Err(SchemaError::Newer { database, program });
    }
    let same = |(applied, known): &(&AppliedMigration, &Migration)| {
        applied.version == known.version && applied.checksum == known.checksum
    };
    match applied.iter().zip(known).find(|pair| !same(pair)) {
        Some((applied, _)) => Err(SchemaError::Changed { version: applied.version }),
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

    #[test]
    fn a_database_of_any_earlier_version_is_known() {
        let known = made_of(&[(1, "a"), (2, "b"), (3, "c")]);
        for versions in 0..=known.len() {
            assert!(check(&applied(&known[..versions]), &known).is_ok());
        }
    }

    #[test]
    fn a_database_of_a_later_version_is_not() {
        let known = made_of(&[(1, "a"), (2, "b")]);
        for later in [made_of(&[(1, "a"), (2, "b"), (3, "c"), (4, "d")]), made_of(&[(1, "a"), (4, "d")])] {
            let refused = check(&applied(&later), &known);
            assert!(matches!(refused, Err(SchemaError::Newer { database: 4, program: 2 })), "{refused:?}");
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
            let refused = check(&applied(&other), &known);
            let is_right = matches!(refused, Err(SchemaError::Changed { version }) if version == changed);
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
