//! The schema that tests start from. It is created once and copied for each test.
//!
//! cargo-nextest runs every test in a process of its own, so the templates are where all of them find them: for SQLite a
//! file below `target`, for PostgreSQL a database on the server.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use landfall_server::content::index;
use landfall_store::Db;
use sqlx::{AssertSqlSafe, Connection};
use sqlx_postgres::PgConnection;

use super::folder;

/// What PostgreSQL says where the template is not there (`invalid_catalog_name`).
const NO_SUCH_DATABASE: &str = "3D000";

/// Writes a SQLite database with the schema to this file.
pub fn copy_to_file(file: &Path) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("test-databases");
    let template = folder.join(format!("{}.db", version()));
    let mut template = match File::open(&template) {
        Err(error) if error.kind() == ErrorKind::NotFound => create_file(&folder, &template),
        opened => opened.expect("the template can be read"),
    };
    let mut copy = File::create_new(file).expect("a new file");
    std::io::copy(&mut template, &mut copy).expect("the template can be copied");
}

/// Returns the template already opened, because the tests of another build may remove it as an old one.
fn create_file(folder: &Path, template: &Path) -> File {
    // One process creates it, the others wait. The lock is beside the folder, which is removed with all that is in it.
    let lock = File::create(folder.with_extension("lock")).expect("a file");
    lock.lock().expect("a lock");
    if let Ok(template) = File::open(template) {
        return template;
    }
    // Templates of older builds, and what a killed process did not finish.
    if folder.exists() {
        std::fs::remove_dir_all(folder).expect("it can be removed");
    }
    std::fs::create_dir(folder).expect("a folder");
    folder::remove_abandoned();

    let unfinished = folder.join("unfinished.db");
    let url = format!("sqlite://{}", unfinished.display());
    // The caller may be a test that runs on a runtime already.
    let created = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(create_schema(&url));
    });
    created.join().expect("the schema is created");
    assert!(!folder.join("unfinished.db-wal").exists(), "everything is in the file that is copied");
    std::fs::rename(&unfinished, template).expect("it can be renamed");
    File::open(template).expect("it was just created")
}

/// Creates a PostgreSQL database with the schema.
pub async fn copy_to_database(server: &str, name: &str) {
    let template = format!("landfall_template_{}", version());
    let mut connection = PgConnection::connect(server).await.expect("PostgreSQL answers");
    // To copy the files is faster than to write every page to the log, unless the server syncs each of them.
    let fsync: String = sqlx::query_scalar("SHOW fsync").fetch_one(&mut connection).await.expect("a setting");
    let strategy = if fsync == "off" { "FILE_COPY" } else { "WAL_LOG" };
    let copy = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY {strategy}");
    match execute(&mut connection, &copy).await {
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(NO_SUCH_DATABASE) => {
            // Held until the connection is closed, so that the tests of another build do not remove it before.
            let lock = "SELECT pg_advisory_lock(hashtext('landfall test template'))";
            execute(&mut connection, lock).await.expect("a lock");
            create_database(server, &mut connection, &template).await;
            execute(&mut connection, &copy).await.expect("a copy of the template");
        }
        copied => copied.expect("a copy of the template"),
    }
    connection.close().await.expect("a connection");
}

async fn create_database(server: &str, connection: &mut PgConnection, template: &str) {
    let found =
        "SELECT CAST(datname AS TEXT) FROM pg_database WHERE starts_with(datname, 'landfall_template_')";
    let found: Vec<String> = sqlx::query_scalar(found).fetch_all(&mut *connection).await.expect("a list");
    if found.iter().any(|name| name == template) {
        return;
    }
    // Templates of older builds, and what a killed process did not finish.
    for name in found {
        let sql = format!("DROP DATABASE {name} WITH (FORCE)");
        execute(connection, &sql).await.expect("it can be removed");
    }
    let unfinished = "landfall_template_unfinished";
    execute(connection, &format!("CREATE DATABASE {unfinished}")).await.expect("a database");
    create_schema(&address(server, unfinished)).await;
    for change in ["ALLOW_CONNECTIONS false".to_owned(), format!("RENAME TO {template}")] {
        let sql = format!("ALTER DATABASE {unfinished} {change}");
        execute(connection, &sql).await.expect("its connections are closed");
    }
}

/// The URL of another database on the same server.
pub fn address(server: &str, name: &str) -> String {
    let mut url = url::Url::parse(server).expect("a URL");
    url.set_path(name);
    url.to_string()
}

pub async fn execute(connection: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    sqlx::query(AssertSqlSafe(sql)).execute(connection).await.map(drop)
}

/// Everything that a server creates in an empty database and that is the same for all servers.
async fn create_schema(url: &str) {
    let db = Db::open(url, 1).await.expect("a new database");
    index::install(&db).await.expect("the tables of the index");
    db.close().await;
}

/// The name of a template. All that decides what is in one is part of the running program, so another build of it has
/// templates of its own.
fn version() -> String {
    let program = std::fs::metadata("/proc/self/exe").expect("the running program");
    let mut hasher = DefaultHasher::new();
    (program.dev(), program.ino(), program.size(), program.mtime(), program.mtime_nsec()).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
