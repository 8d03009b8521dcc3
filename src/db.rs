//! Two databases, one SQL.
//!
//! A [`Tx`] speaks to SQLite or to PostgreSQL; the text of a statement is the same for both, with `$1` for its
//! arguments. Reads take a connection with [`Db::read`]. Writes are values: something that implements [`Write`] is
//! handed to [`Db::write`], which runs it in a transaction and answers after the commit. On SQLite one writer runs
//! all that wait in a single transaction, so that they share one sync of the disk; PostgreSQL does the same by itself.

mod args;
mod interference;
mod migrate;
mod tx;
mod writer;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{PgPool, SqlitePool};

pub use args::{Arg, Rows, args};
pub use interference::{Interference, Step};
pub use tx::{FromRows, Tx};

use crate::error::Error;
use interference::Between;
use tx::Link;
use writer::Writer;

/// Statements kept prepared on each connection. Bulk statements exist once for every number of rows they can have.
const PREPARED_STATEMENTS: usize = 1_024;
const BUSY_TIMEOUT: Duration = Duration::from_secs(15);
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// A change to the database: everything in it happens, or nothing.
///
/// It may be applied more than once (PostgreSQL asks for a repetition after a deadlock), each time on a clean slate.
pub trait Write: Send + Sync + 'static {
    type Answer: Send + 'static;

    /// What a power cut may take away again.
    fn durability(&self) -> Durability {
        Durability::Synced
    }

    fn apply(&self, tx: &mut Tx) -> impl Future<Output = Result<Self::Answer, Error>> + Send;
}

/// What it takes until a change is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// It is there for all to see and outlives this process, but perhaps not a power cut. Nobody was told of it, and
    /// without it the work is done again. It never outlives a change before it. (PostgreSQL syncs these as well.)
    Unsynced,
    /// It is on disk.
    Synced,
}

#[derive(Clone)]
pub struct Db {
    backend: Backend,
    between: Between,
}

#[derive(Clone)]
enum Backend {
    Sqlite { writer: Writer, readers: SqlitePool, file: PathBuf },
    Postgres { pool: PgPool },
}

impl Db {
    /// Opens the database that `url` names, creates or migrates its schema.
    pub async fn open(url: &str, connections: u32) -> Result<Self, Error> {
        Self::open_with(url, connections, None).await
    }

    /// The same with somebody who may get between this process and the database.
    pub async fn open_with(
        url: &str,
        connections: u32,
        interference: Option<Arc<dyn Interference>>,
    ) -> Result<Self, Error> {
        let between = Between(interference);
        let backend = if url.starts_with("sqlite:") {
            Self::open_sqlite(url, connections, &between).await?
        } else {
            Self::open_postgres(url, connections).await?
        };
        let db = Self { backend, between };
        migrate::run(&db).await?;
        Ok(db)
    }

    async fn open_sqlite(url: &str, connections: u32, between: &Between) -> Result<Backend, Error> {
        load_vector_functions();
        let options = SqliteConnectOptions::from_str(url)?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What was acknowledged survives a power cut.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .statement_cache_capacity(PREPARED_STATEMENTS)
            // As many rows as a bulk statement has: it then runs to its end without waiting for whoever reads them.
            .row_buffer_size(Rows::MOST)
            .pragma("cache_size", "-16000")
            // In pages. The same few change again and again, and are copied to their place once for all of it.
            .pragma("wal_autocheckpoint", "4000")
            .pragma("temp_store", "memory");
        let file = options.get_filename().to_owned();
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(|source| Error::Storage {
                what: format!("create the folder {}", folder.display()),
                source,
            })?;
        }
        let writing = SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            // One that fails is replaced; to ask it each time costs a trip to its thread.
            .test_before_acquire(false);
        let writer = Writer::start(writing.connect_with(options.clone()).await?, between.clone());
        let readers = SqlitePoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(options.pragma("query_only", "on"));
        Ok(Backend::Sqlite { writer, readers, file })
    }

    async fn open_postgres(url: &str, connections: u32) -> Result<Backend, Error> {
        let options = PgConnectOptions::from_str(url)?
            .application_name("landfall")
            .statement_cache_capacity(PREPARED_STATEMENTS);
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options)
            .await?;
        Ok(Backend::Postgres { pool })
    }

    /// A connection to read with. Each statement sees what was committed before it.
    pub async fn read(&self) -> Result<Tx, Error> {
        let link = match &self.backend {
            Backend::Sqlite { readers, .. } => Link::Sqlite(readers.acquire().await?),
            Backend::Postgres { pool } => Link::Postgres(pool.acquire().await?),
        };
        Ok(Tx::new(link, &self.between))
    }

    /// A connection whose statements all see the same moment.
    pub async fn snapshot(&self) -> Result<Tx, Error> {
        self.between.meet(Step::Begin).await?;
        let link = match &self.backend {
            Backend::Sqlite { readers, .. } => {
                let mut tx = readers.begin().await?;
                // SQLite picks its moment with the first read.
                sqlx::query("SELECT 1 FROM sqlite_schema LIMIT 1").execute(&mut *tx).await?;
                Link::SqliteTransaction(tx)
            }
            Backend::Postgres { pool } => Link::PostgresTransaction(
                pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?,
            ),
        };
        Ok(Tx::new(link, &self.between))
    }

    /// Applies a change; when this answers `Ok`, it is on disk, unless its durability asks for less.
    ///
    /// The change goes on when the caller stops waiting: half a transaction is never left on a connection.
    pub async fn write<W: Write>(&self, change: W) -> Result<W::Answer, Error> {
        match &self.backend {
            Backend::Sqlite { writer, .. } => writer.submit(change).await,
            Backend::Postgres { pool } => {
                let (pool, between) = (pool.clone(), self.between.clone());
                tokio::spawn(async move { write_postgres(&pool, &between, &change).await })
                    .await
                    .unwrap_or_else(|panic| Err(Error::Internal(format!("a write panicked: {panic}"))))
            }
        }
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.backend, Backend::Postgres { .. })
    }

    /// The file of a SQLite database.
    pub fn sqlite_file(&self) -> Option<&PathBuf> {
        match &self.backend {
            Backend::Sqlite { file, .. } => Some(file),
            Backend::Postgres { .. } => None,
        }
    }

    /// The pool of a PostgreSQL database, for what only it can do: advisory locks, `LISTEN` and `NOTIFY`.
    pub fn postgres(&self) -> Option<&PgPool> {
        match &self.backend {
            Backend::Sqlite { .. } => None,
            Backend::Postgres { pool } => Some(pool),
        }
    }

    /// What a claim adds to its `SELECT`, so that two processes on PostgreSQL pass one another by.
    pub fn skip_locked(&self) -> &'static str {
        if self.is_postgres() { "FOR UPDATE SKIP LOCKED" } else { "" }
    }

    pub async fn close(&self) {
        match &self.backend {
            Backend::Sqlite { writer, readers, .. } => {
                readers.close().await;
                writer.close().await;
            }
            Backend::Postgres { pool } => pool.close().await,
        }
    }
}

async fn write_postgres<W: Write>(pool: &PgPool, between: &Between, change: &W) -> Result<W::Answer, Error> {
    const TRIES: u32 = 8;
    let mut tries = 0;
    loop {
        tries += 1;
        between.meet(Step::Begin).await?;
        let mut tx = Tx::new(Link::PostgresTransaction(pool.begin().await?), between);
        let result = match change.apply(&mut tx).await {
            Ok(answer) => tx.commit().await.map(|()| answer),
            Err(error) => Err(error),
        };
        match result {
            Err(error) if error.asks_for_repetition() && tries < TRIES => {
                tracing::debug!(%error, tries, "transaction repeated");
                // Not all at the same moment again.
                let wait = rand::random_range(0..=20 * u64::from(tries));
                crate::clock::Clock::System.sleep(Duration::from_millis(wait)).await;
            }
            result => return result,
        }
    }
}

/// Makes sqlite-vec's functions part of every SQLite connection that is opened from now on.
fn load_vector_functions() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    type EntryPoint = unsafe extern "C" fn(
        *mut libsqlite3_sys::sqlite3,
        *mut *mut std::ffi::c_char,
        *const libsqlite3_sys::sqlite3_api_routines,
    ) -> std::ffi::c_int;
    ONCE.call_once(|| {
        // SAFETY: `sqlite3_vec_init` is an SQLite extension's entry point, whose C signature is `EntryPoint`; the
        // crate that binds it declares it without arguments, and a function pointer has one size whatever it takes.
        // The library is linked statically, so the pointer stays good; SQLite guards its list with a mutex.
        unsafe {
            let entry =
                std::mem::transmute::<unsafe extern "C" fn(), EntryPoint>(sqlite_vec::sqlite3_vec_init);
            libsqlite3_sys::sqlite3_auto_extension(Some(entry));
        }
    });
}
