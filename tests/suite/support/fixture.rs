//! What a released version left behind, as `scripts/make-upgrade-fixture` packed it.

use std::io::{Cursor, Read};

use landfall_core::clock::{ManualClock, Time};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection};
use sqlx_postgres::PgConnection;
use zip::ZipArchive;

use super::{Client, TestDb, TestServer};

const SQLITE: &[u8] = include_bytes!("../../fixtures/0.1.0/sqlite.zip");
const POSTGRES: &[u8] = include_bytes!("../../fixtures/0.1.0/postgres.zip");
const POSTGRES_DUMP: &[u8] = include_bytes!("../../fixtures/0.1.0/postgres.sql.gz");

pub struct Fixture {
    /// What the released version itself answered about all of it, before it was killed.
    pub expected: Value,
}

impl Fixture {
    /// Puts it where a server on this database looks for its data.
    pub async fn unpack(db: &TestDb) -> Self {
        let is_sqlite = db.url.starts_with("sqlite:");
        let packed = if is_sqlite { SQLITE } else { POSTGRES };
        let mut archive = archive(packed);
        for index in 0..archive.len() {
            let mut packed = archive.by_index(index).expect("an entry");
            let name = packed.enclosed_name().expect("a name without tricks");
            let Ok(name) = name.strip_prefix("data") else { continue };
            let path = db.folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
            let mut file = std::fs::File::create(path).expect("it can be made");
            std::io::copy(&mut packed, &mut file).expect("it can be unpacked");
        }
        if !is_sqlite {
            let mut sql = String::new();
            flate2::read::GzDecoder::new(POSTGRES_DUMP).read_to_string(&mut sql).expect("text");
            let mut connection = PgConnection::connect(&db.url).await.expect("PostgreSQL answers");
            // The dump brings its own schema, and the test's database has that of this version.
            let emptied = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
            sqlx::raw_sql(emptied).execute(&mut connection).await.expect("an empty database");
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.expect("the dump is restored");
        }
        Self { expected: expected(packed) }
    }

    /// A clock that shows when the released version was killed. By the real one, all its uploads have expired.
    pub fn clock(&self) -> ManualClock {
        let killed_at: Time = text(&self.expected["writtenAt"]).parse().expect("a time");
        ManualClock::starting_at(killed_at)
    }

    pub fn files(&self) -> impl Iterator<Item = &Value> {
        list(&self.expected["files"])
    }

    pub fn files_in<'a>(&'a self, states: &'a [&str]) -> impl Iterator<Item = &'a Value> {
        self.files().filter(|file| states.contains(&text(&file["status"])))
    }

    pub fn file(&self, name: &str) -> &Value {
        self.files().find(|file| file["name"] == name).expect("a file of that name")
    }

    /// A client for the user that this is of.
    pub fn client(&self, server: &TestServer, of: &Value) -> Client {
        let user = &self.expected["users"][text(&of["user"])];
        server.client_of(text(&user["user"]), text(&user["tenant"]))
    }
}

/// What the released version answered on each of the databases.
pub fn all_expected() -> [Value; 2] {
    [SQLITE, POSTGRES].map(expected)
}

fn expected(packed: &'static [u8]) -> Value {
    let mut archive = archive(packed);
    serde_json::from_reader(archive.by_name("expected.json").expect("it is there")).expect("JSON")
}

fn archive(packed: &'static [u8]) -> ZipArchive<Cursor<&'static [u8]>> {
    ZipArchive::new(Cursor::new(packed)).expect("an archive")
}

pub fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}
