//! A database and a folder that belong to one test.

use sqlx::Connection;
use sqlx_postgres::PgConnection;
use tempfile::TempDir;
use uuid::Uuid;

use super::{folder, template};

/// Where `make test` says that PostgreSQL is.
const POSTGRES: &str = "LANDFALL_TEST_DATABASE_URL";

pub struct TestDb {
    pub url: String,
    pub folder: TempDir,
}

impl TestDb {
    /// A database with the schema and nothing else in it.
    pub fn sqlite() -> Self {
        let folder = folder::temporary();
        let file = folder.path().join("landfall.db");
        template::copy_to_file(&file);
        Self { url: format!("sqlite://{}", file.display()), folder }
    }

    /// The same on the server that `make test` started. A plain `cargo test` has none and stays on SQLite.
    pub async fn postgres() -> Option<Self> {
        let Some(server) = server() else {
            eprintln!("not run on PostgreSQL: {POSTGRES} is not set; `make test` starts one");
            return None;
        };
        let name = new_name();
        template::copy_to_database(&server, &name).await;
        Some(Self { url: template::address(&server, &name), folder: folder::temporary() })
    }

    /// A connection of another program to the SQLite database.
    pub fn sqlite_connection(&self) -> rusqlite::Connection {
        let file = self.url.strip_prefix("sqlite://").expect("it is on SQLite");
        rusqlite::Connection::open(file).expect("the database opens")
    }

    /// Another database that has nothing in it, not even the schema.
    pub async fn another(&self) -> String {
        if self.url.starts_with("sqlite:") {
            return format!("sqlite://{}/{}.db", self.folder.path().display(), new_name());
        }
        Self::create("").await
    }

    /// A copy of all that is in the database now, which nobody may use meanwhile; answers where it is.
    pub async fn back_up(&self) -> String {
        let Some(file) = self.url.strip_prefix("sqlite://") else {
            let name = url::Url::parse(&self.url).expect("a URL").path().trim_start_matches('/').to_owned();
            return Self::create(&format!("TEMPLATE {name}")).await;
        };
        let copy = format!("{}/{}.db", self.folder.path().display(), new_name());
        // What was not copied into its place yet is beside it.
        for ending in ["", "-wal"] {
            let from = format!("{file}{ending}");
            if std::path::Path::new(&from).exists() {
                std::fs::copy(from, format!("{copy}{ending}")).expect("it can be copied");
            }
        }
        format!("sqlite://{copy}")
    }

    async fn create(options: &str) -> String {
        let server = server().expect("it was there before");
        let mut connection = PgConnection::connect(&server).await.expect("PostgreSQL answers");
        let name = new_name();
        let sql = format!("CREATE DATABASE {name} {options}");
        template::execute(&mut connection, &sql).await.expect("a database");
        template::address(&server, &name)
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

fn server() -> Option<String> {
    std::env::var(POSTGRES).ok()
}

/// A name that no other database has.
fn new_name() -> String {
    format!("test_{}", Uuid::new_v4().simple())
}
