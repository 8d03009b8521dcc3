//! A database for one scenario, removed at its end.

use std::path::Path;
use std::str::FromStr;

use landfall_store::Db;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use sqlx_postgres::{PgConnectOptions, PgConnection};
use tempfile::TempDir;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    pub fn is_available(self) -> bool {
        self == Self::Sqlite || server().is_some()
    }
}

/// Where `scripts/with-postgres` runs its server.
fn server() -> Option<String> {
    std::env::var("LANDFALL_TEST_DATABASE_URL").ok()
}

pub struct Fresh {
    pub url: String,
    pub folder: TempDir,
    created: Option<String>,
}

impl Fresh {
    pub async fn create(kind: Kind, name: &str) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("landfall-bench-").tempdir()?;
        if kind == Kind::Sqlite {
            let url = format!("sqlite://{}/{name}.db", folder.path().display());
            return Ok(Self { url, folder, created: None });
        }
        let server = server().ok_or_else(|| anyhow::anyhow!("LANDFALL_TEST_DATABASE_URL is not set"))?;
        let name = format!("bench_{}_{name}", std::process::id());
        let mut connection = PgConnection::connect(&server).await?;
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await?;
        let url = PgConnectOptions::from_str(&server)?.database(&name).to_url_lossy();
        Ok(Self { url: url.to_string(), folder, created: Some(name) })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub async fn open(&self, connections: u32) -> anyhow::Result<Db> {
        let db = Db::open(&self.url, connections).await?;
        landfall_server::content::index::install(&db).await?;
        Ok(db)
    }

    pub async fn remove(self, db: Db) -> anyhow::Result<()> {
        db.close().await;
        if let (Some(name), Some(server)) = (self.created, server()) {
            let mut connection = PgConnection::connect(&server).await?;
            sqlx::raw_sql(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)")))
                .execute(&mut connection)
                .await?;
        }
        self.folder.close()?;
        Ok(())
    }
}

/// The parent process of the PostgreSQL server, if it runs on this machine.
pub async fn postmaster(db: &Db) -> anyhow::Result<Option<i64>> {
    if !db.is_postgres() {
        return Ok(None);
    }
    let backend = db.read().await?.number("SELECT pg_backend_pid()::bigint", vec![]).await?;
    Ok(super::measure::cpu_of(backend)
        .filter(|process| process.name.starts_with("postgres"))
        .map(|process| process.parent))
}

/// The server processes for the connections of this database.
pub async fn backends(db: &Db) -> anyhow::Result<Vec<i64>> {
    if !db.is_postgres() {
        return Ok(Vec::new());
    }
    let found: Vec<(i64,)> = db
        .read()
        .await?
        .rows(
            "SELECT pid::bigint FROM pg_stat_activity
             WHERE datname = current_database() AND backend_type = 'client backend'",
            vec![],
        )
        .await?;
    Ok(found.into_iter().map(|(process,)| process).collect())
}
