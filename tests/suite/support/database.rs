//! A database and a folder that belong to one test.

use std::path::Path;

use sqlx::{AssertSqlSafe, Connection};
use sqlx_postgres::PgConnection;
use tempfile::TempDir;
use uuid::Uuid;

/// Where `make test` says that PostgreSQL is.
const POSTGRES: &str = "LANDFALL_TEST_DATABASE_URL";

pub struct TestDb {
    pub url: String,
    pub folder: TempDir,
}

impl TestDb {
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { url: format!("sqlite://{}/landfall.db", folder.path().display()), folder }
    }

    /// A fresh database on the server that `make test` started. A plain `cargo test` has none and stays on SQLite.
    pub async fn postgres() -> Option<Self> {
        let Ok(server) = std::env::var(POSTGRES) else {
            eprintln!("not run on PostgreSQL: {POSTGRES} is not set; `make test` starts one");
            return None;
        };
        let name = format!("test_{}", Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&server).await.expect("PostgreSQL answers");
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut connection)
            .await
            .expect("a fresh database");
        let mut url = url::Url::parse(&server).expect("a URL");
        url.set_path(&name);
        Some(Self { url: url.to_string(), folder: tempfile::tempdir().expect("a temporary folder") })
    }

    /// Another database that has nothing in it.
    pub async fn another(&self) -> String {
        if self.url.starts_with("sqlite:") {
            return format!("sqlite://{}/{}.db", self.folder.path().display(), Uuid::new_v4().simple());
        }
        self.create("").await
    }

    /// A copy of all that is in the database now, which nobody may use meanwhile; answers where it is.
    pub async fn back_up(&self) -> String {
        let Some(file) = self.url.strip_prefix("sqlite://") else {
            let name = url::Url::parse(&self.url).expect("a URL").path().trim_start_matches('/').to_owned();
            return self.create(&format!("TEMPLATE {name}")).await;
        };
        let copy = format!("{}/{}.db", self.folder.path().display(), Uuid::new_v4().simple());
        // What was not copied into its place yet is beside it.
        for ending in ["", "-wal"] {
            let from = format!("{file}{ending}");
            if std::path::Path::new(&from).exists() {
                std::fs::copy(from, format!("{copy}{ending}")).expect("it can be copied");
            }
        }
        format!("sqlite://{copy}")
    }

    async fn create(&self, options: &str) -> String {
        let server = std::env::var(POSTGRES).expect("it was there before");
        let name = format!("test_{}", Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&server).await.expect("PostgreSQL answers");
        let sql = format!("CREATE DATABASE {name} {options}");
        sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.expect("a database");
        let mut url = url::Url::parse(&server).expect("a URL");
        url.set_path(&name);
        url.to_string()
    }

    /// The same for a test that commits thousands of times and pulls no plug: nothing waits for a disk. It must not have
    /// been used yet.
    pub fn without_syncs(self) -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.expect("a temporary folder");
        if self.url.starts_with("sqlite:") {
            return Self { url: format!("sqlite://{}/landfall.db", folder.path().display()), folder };
        }
        let mut url = url::Url::parse(&self.url).expect("a URL");
        url.query_pairs_mut().append_pair("options", "-c synchronous_commit=off");
        Self { url: url.to_string().replace('+', "%20"), folder }
    }

    /// The settings of every process that a test starts on this database.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("DATABASE_URL", self.url.clone()),
            ("DATABASE_CONNECTIONS", "6".to_owned()),
            ("DATA_DIR", self.folder.path().display().to_string()),
            ("PORT", "0".to_owned()),
        ]
    }
}
