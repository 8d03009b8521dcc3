//! Two databases, one SQL.
//!
//! A [`Tx`] speaks to SQLite or to PostgreSQL; the text of a statement is the same for both, with `$1` for its
//! arguments. Reads take a connection with [`Db::read`]. Writes are values: something that implements [`Write`] is
//! handed to [`Db::write`], which runs it in a transaction and answers after the commit. On SQLite one writer runs
//! all that wait in a single transaction, so that they share one sync of the disk; PostgreSQL does the same by itself.

//!
//! This crate may use `landfall-core` and no other crate of ours.

// One statement: its arguments, and the connection that it runs on.
mod arguments;
mod tx;
// A change on its way to the commit, and what follows it.
mod change;
mod hooks;
mod writer;
pub mod wake;
// The database itself.
mod error;
mod faults;
mod migrate;
mod outage;
pub mod locks;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx_postgres::{PgConnectOptions, PgPool, PgPoolOptions};

pub use arguments::{Arg, Rows};
pub use error::Error;
pub use faults::{FaultInjector, Step};
pub use hooks::CommitHook;
use tx::Held;
pub use tx::{FromRows, Tx};

use change::{Change, carry_out};
use faults::Faults;
use outage::Outage;
use tracing::Instrument;
use wake::Wake;
use writer::Writer;

/// Statements kept prepared on each connection. Bulk statements exist once for every number of rows they can have.
const PREPARED_STATEMENTS: usize = 1_024;
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// A change to the database: everything in it happens, or nothing.
///
/// It may be applied more than once (PostgreSQL asks for a repetition after a deadlock), each time on a clean slate.
pub trait Write: Send + Sync + 'static {
    type Output: Send + 'static;

    /// What a power cut may take away again.
    fn durability(&self) -> Durability {
        Durability::Synced
    }

    fn apply(&self, tx: &mut Tx) -> impl Future<Output = Result<Self::Output, Error>> + Send;
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
    wake: Wake,
    faults: Faults,
}

#[derive(Clone)]
enum Backend {
    Sqlite { writer: Writer, readers: SqlitePool, file: PathBuf },
    Postgres { pool: PgPool, outage: Outage },
}

impl Db {
    /// Opens the database that `url` names, creates or migrates its schema.
    pub async fn open(url: &str, connections: u32) -> Result<Self, Error> {
        Self::open_with(url, connections, None).await
    }

    /// The same with an injector of faults, for tests.
    pub async fn open_with(
        url: &str,
        connections: u32,
        faults: Option<Arc<dyn FaultInjector>>,
    ) -> Result<Self, Error> {
        let faults = Faults(faults);
        let wake = Wake::default();
        let backend = if url.starts_with("sqlite:") {
            Self::open_sqlite(url, connections, &faults, &wake).await?
        } else {
            Self::open_postgres(url, connections).await?
        };
        let db = Self { backend, wake, faults };
        migrate::run(&db).await?;
        if let Some(pool) = db.postgres() {
            db.wake.connect(pool);
        }
        Ok(db)
    }

    async fn open_sqlite(
        url: &str,
        connections: u32,
        faults: &Faults,
        wake: &Wake,
    ) -> Result<Backend, Error> {
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
                source: source.into(),
            })?;
        }
        let writing = SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            // One that fails is replaced; to ask it each time costs a trip to its thread.
            .test_before_acquire(false);
        let writing = writing.connect_with(options.clone()).await?;
        let writer = Writer::start(writing, faults.clone(), wake.clone());
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
        Ok(Backend::Postgres { pool, outage: Outage::none() })
    }

    /// A connection to read with. Each statement sees what was committed before it.
    pub async fn read(&self) -> Result<Tx, Error> {
        let held = match &self.backend {
            Backend::Sqlite { readers, .. } => Held::Sqlite(readers.acquire().await?),
            Backend::Postgres { pool, outage } => {
                Held::Postgres(Box::pin(outage.outwait(pool, pool.acquire())).await?)
            }
        };
        Ok(Tx::new(held, &self.faults))
    }

    /// A connection whose statements all see the same moment.
    pub async fn snapshot(&self) -> Result<Tx, Error> {
        self.faults.inject(Step::Begin).await?;
        let held = match &self.backend {
            Backend::Sqlite { readers, .. } => {
                let mut tx = readers.begin().await?;
                // SQLite picks its moment with the first read.
                sqlx::query("SELECT 1 FROM sqlite_schema LIMIT 1").execute(&mut *tx).await?;
                Held::SqliteTransaction(tx)
            }
            Backend::Postgres { pool, outage } => {
                let begin = pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
                Held::PostgresTransaction(Box::pin(outage.outwait(pool, begin)).await?)
            }
        };
        Ok(Tx::new(held, &self.faults))
    }

    /// Applies a change; when this answers `Ok`, it is on disk, unless its durability asks for less.
    ///
    /// The change goes on when the caller stops waiting: half a transaction is never left on a connection.
    pub async fn write<W: Write>(&self, write: W) -> Result<W::Output, Error> {
        let (change, answered) = change::of(write);
        match &self.backend {
            Backend::Sqlite { writer, .. } => {
                writer.submit(change).await?;
                answered.await.map_err(|_| Error::GroupNotCommitted("it could not be begun".into()))?
            }
            Backend::Postgres { pool, outage } => {
                self.spawn_on_postgres(pool.clone(), outage.clone(), change);
                answered.await.map_err(|_| Error::Internal("a write panicked".to_owned()))?
            }
        }
    }

    fn spawn_on_postgres(&self, pool: PgPool, outage: Outage, mut change: Box<dyn Change>) {
        let (faults, wake) = (self.faults.clone(), self.wake.clone());
        let written = async move {
            let outcome = write_postgres(&pool, &outage, &faults, &wake, &mut *change).await;
            if outcome.is_ok() {
                wake.committed();
            }
            change.acknowledge(outcome);
        };
        tokio::spawn(written.in_current_span());
    }

    /// What wakes tasks after a commit.
    pub fn wake(&self) -> &Wake {
        &self.wake
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
            Backend::Postgres { pool, .. } => Some(pool),
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
            Backend::Postgres { pool, .. } => pool.close().await,
        }
    }
}

async fn write_postgres(
    pool: &PgPool,
    outage: &Outage,
    faults: &Faults,
    wake: &Wake,
    change: &mut dyn Change,
) -> Result<(), Error> {
    const TRIES: u32 = 8;
    let mut tries = 0;
    loop {
        tries += 1;
        faults.inject(Step::Begin).await?;
        let begun = Box::pin(outage.outwait(pool, pool.begin())).await?;
        let mut tx = Tx::new(Held::PostgresTransaction(begun), faults);
        let result = match carry_out(change, &mut tx).await {
            Ok(hooks) => tx.commit().await.map(|()| hooks.after_commit(wake)),
            Err(error) => Err(error),
        };
        match result {
            Err(error) if error.asks_for_repetition() && tries < TRIES => {
                tracing::debug!(%error, tries, "transaction repeated");
                // Not all at the same moment again.
                let wait = rand::random_range(0..=20 * u64::from(tries));
                landfall_core::clock::Clock::System.sleep(Duration::from_millis(wait)).await;
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
