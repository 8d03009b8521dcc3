//! One SQL for two databases.
//!
//! A [`Tx`] is a connection to SQLite or PostgreSQL; the text of a statement is the same for both, with `$1` for
//! its arguments. Reads take a connection with [`Db::read`]. Writes are values: a type that implements [`Write`] is
//! passed to [`Db::write`], which runs it in a transaction and returns after the commit. On SQLite one writer runs
//! all waiting changes in a single transaction, so that they share one sync of the disk; PostgreSQL does the same
//! by itself.

//!
//! This crate may use `landfall-core` and `landfall-sync`, and no other crate of ours.

// One statement: its arguments, the connection that it runs on, and the rows that it returns.
mod arguments;
mod row;
mod sqlite;
mod dialect;
mod tx;
// A change until its commit, and what follows the commit.
mod change;
mod hooks;
mod joint;
mod writer;
pub mod wake;
// The database itself.
mod beginning;
mod database_file;
mod error;
mod faults;
mod migrate;
mod origin;
mod outage;
mod place;
mod sample;
mod simulated;
mod time;
mod tls;
pub mod locks;

// The derived code names this crate.
extern crate self as landfall_store;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use sqlx::Connection as _;
use sqlx_postgres::{PgConnectOptions, PgPool, PgPoolOptions};

pub use arguments::{Arg, Rows, places};
pub use error::Error;
pub use faults::{FaultInjector, Step};
pub use hooks::CommitHook;
pub use joint::{Joint, apply_alone};
pub use landfall_store_macros::{FromColumn, FromRow};
pub use migrate::SchemaError;
pub use row::{FromColumn, FromRow, Json, PostgresRow, Row, SqliteValue, Unreadable};
pub use simulated::SimulatedDatabase;
use tx::Held;
pub use tx::Tx;

use change::{Change, carry_out};
use database_file::{DatabaseFile, lock_for_start};
use faults::Faults;
use joint::Queues;
use outage::Outage;
use simulated::SimulatedProcess;
use sqlite::{Lease, Pool, Purpose};
use tracing::Instrument;
use wake::Wake;
use writer::Writer;

/// Statements kept prepared on each connection. On SQLite a bulk statement exists once for each padded number of rows.
const PREPARED_STATEMENTS: usize = 1_024;
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection to PostgreSQL that was used so recently is taken without asking whether it still works. The pool asked when
/// the connection came back, and each further question is a round trip for every transaction.
const TRUSTED_FOR: Duration = Duration::from_millis(100);

/// A change to the database: all of it is committed, or nothing.
///
/// It may be applied more than once (PostgreSQL asks for a retry after a deadlock), each time from the start.
pub trait Write: Send + Sync + 'static {
    type Output: Send + 'static;

    /// Whether a power cut may undo the change.
    fn durability(&self) -> Durability {
        Durability::Synced
    }

    fn apply(&self, tx: &mut Tx) -> impl Future<Output = Result<Self::Output, Error>> + Send;
}

/// What must happen before a change is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Of no use once this process has ended. PostgreSQL does not wait for the disk either.
    Ephemeral,
    /// Committed and visible, and it survives a crash of this process, but perhaps not a power cut. For changes
    /// that no client was told about and whose loss only means that work is repeated. It never survives without the
    /// changes before it. (PostgreSQL syncs these as well.)
    Unsynced,
    /// It is on disk.
    Synced,
}

#[derive(Clone)]
pub struct Db {
    backend: Backend,
    wake: Wake,
    faults: Faults,
    queues: Queues,
}

#[derive(Clone)]
enum Backend {
    Sqlite { writer: Writer, readers: Pool, connections: u32, file: DatabaseFile },
    Simulated { writer: Writer, process: SimulatedProcess },
    Postgres { pool: PgPool, outage: Outage },
}

impl Db {
    /// Opens the database at `url`, and creates or migrates its schema.
    pub async fn open(url: &str, connections: u32) -> Result<Self, Error> {
        Self::open_with(url, connections, None).await
    }

    /// The same with a fault injector, for tests.
    pub async fn open_with(
        url: &str,
        connections: u32,
        faults: Option<Arc<dyn FaultInjector>>,
    ) -> Result<Self, Error> {
        let faults = Faults(faults);
        let wake = Wake::default();
        if url.starts_with("sqlite:") {
            return Self::open_sqlite(url, connections, faults, wake).await;
        }
        let backend = Self::open_postgres(url, connections).await?;
        if let Backend::Postgres { pool, .. } = &backend {
            migrate::run_on_postgres(pool).await?;
        }
        Ok(Self { backend, wake, faults, queues: Queues::default() })
    }

    async fn open_sqlite(url: &str, connections: u32, faults: Faults, wake: Wake) -> Result<Self, Error> {
        load_vector_functions();
        let path = sqlite::path_in(url)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|source| Error::Storage {
                what: format!("create the folder {}", folder.display()),
                source: source.into(),
            })?;
        }
        let starting = lock_for_start(&path).await?;
        let opened = {
            let path = path.clone();
            landfall_core::blocking::run(move || {
                let mut connection = sqlite::connect(&path, Purpose::Create)?;
                migrate::run_on_sqlite(&mut connection)?;
                Ok::<_, Error>(connection)
            })
        };
        let opened = opened.await.map_err(|error| Error::Internal(error.to_string()))?;
        let opened = opened.map_err(|error| explain(error, &path))?;
        let file = DatabaseFile::opened_at(&path)?;
        let writing = Pool::new(&path, Purpose::Write, 1);
        writing.keep(opened);
        let writer = Writer::start(writing, file.clone(), faults.clone(), wake.clone())?;
        let readers = Pool::new(&path, Purpose::Read, connections);
        drop(starting);
        let backend = Backend::Sqlite { writer, readers, connections, file };
        Ok(Self { backend, wake, faults, queues: Queues::default() })
    }

    async fn open_postgres(url: &str, connections: u32) -> Result<Backend, Error> {
        let options = PgConnectOptions::from_str(url)?
            .application_name("landfall")
            .statement_cache_capacity(PREPARED_STATEMENTS);
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .before_acquire(|connection, used| {
                Box::pin(async move {
                    if used.idle_for > TRUSTED_FOR {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_with(options.clone())
            .await
            .map_err(|error| match tls::explain(&error, &options) {
                Some(why) => Error::DatabaseTls(why),
                None => error.into(),
            })?;
        Ok(Backend::Postgres { pool, outage: Outage::none() })
    }

    /// A connection to read with. Each statement sees all commits before it.
    pub async fn read(&self) -> Result<Tx, Error> {
        let held = match &self.backend {
            Backend::Sqlite { readers, file, .. } => {
                file.check()?;
                Held::SqliteReader(Some(readers.acquire().await?))
            }
            Backend::Simulated { process, .. } => Held::SimulatedReader(process.pool().clone()),
            Backend::Postgres { pool, outage } => {
                Held::Postgres(Box::pin(outage.acquire(pool, pool.acquire())).await?)
            }
        };
        Ok(Tx::new(held, &self.faults))
    }

    /// The same for statements that find few rows by an index. On SQLite they run where they are called, because a thread for
    /// blocking work would cost more than they do. They do not wait for locks, but for a disk that stands still.
    pub async fn look_up(&self) -> Result<Tx, Error> {
        let mut tx = self.read().await?;
        tx.is_look_up = true;
        Ok(tx)
    }

    /// A connection whose statements all see the same state of the database.
    pub async fn snapshot(&self) -> Result<Tx, Error> {
        self.faults.inject(Step::Begin).await?;
        let held = match &self.backend {
            Backend::Sqlite { readers, file, .. } => {
                file.check()?;
                let mut lease = Some(readers.acquire().await?);
                // SQLite takes its snapshot at the first read.
                let begin = "BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1";
                Lease::run_elsewhere(&mut lease, move |connection| Ok(connection.execute_batch(begin)?))
                    .await?;
                Held::SqliteReader(lease)
            }
            Backend::Simulated { process, .. } => {
                let mut lease = process.pool().acquire().await?;
                lease.connection()?.execute_batch("BEGIN")?;
                Held::SqliteReader(Some(lease))
            }
            Backend::Postgres { pool, outage } => {
                let begin = pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
                Held::PostgresTransaction(Box::pin(outage.acquire(pool, begin)).await?)
            }
        };
        Ok(Tx::new(held, &self.faults))
    }

    /// Applies a change. When this returns `Ok`, the change is on disk, unless its durability asks for less.
    ///
    /// The change continues when the caller stops waiting: a connection never keeps half a transaction.
    pub async fn write<W: Write>(&self, write: W) -> Result<W::Output, Error> {
        let (change, outcome) = change::of(write);
        match &self.backend {
            Backend::Sqlite { writer, file, .. } => {
                file.check()?;
                writer.submit(change).await?;
                outcome.await.map_err(|_| not_begun())?
            }
            Backend::Simulated { writer, .. } => {
                writer.submit(change).await?;
                outcome.await.map_err(|_| not_begun())?
            }
            Backend::Postgres { pool, outage } => {
                self.spawn_on_postgres(pool.clone(), outage.clone(), change);
                outcome.await.map_err(|_| Error::Internal("a write panicked".to_owned()))?
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

    /// The changes that wait to be made together with others.
    fn queues(&self) -> &Queues {
        &self.queues
    }

    /// What wakes tasks after a commit.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Starts to pass signals to and from the other processes that share the database. This takes a connection of the pool
    /// for as long as it is open, so a command that ends by itself does without.
    pub fn connect_wake(&self) {
        if let Some(pool) = self.postgres() {
            self.wake.connect(pool);
        }
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.backend, Backend::Postgres { .. })
    }

    /// Empties the log of a SQLite database into its file, so that what was overwritten is not left in the log.
    pub async fn empty_log(&self) -> Result<(), Error> {
        if let Backend::Sqlite { file, .. } = &self.backend {
            let path = file.path().clone();
            let emptied = landfall_core::blocking::run(move || {
                let connection = sqlite::connect(&path, Purpose::Write)?;
                sqlite::execute(&connection, "PRAGMA wal_checkpoint(TRUNCATE)", &[])
            });
            emptied.await.map_err(|error| Error::Internal(error.to_string()))??;
        }
        Ok(())
    }

    /// The file of a SQLite database.
    pub fn sqlite_file(&self) -> Option<&PathBuf> {
        match &self.backend {
            Backend::Sqlite { file, .. } => Some(file.path()),
            Backend::Simulated { .. } | Backend::Postgres { .. } => None,
        }
    }

    /// The process on a simulated database that this is.
    pub(crate) fn simulated_process(&self) -> Option<&SimulatedProcess> {
        match &self.backend {
            Backend::Simulated { process, .. } => Some(process),
            Backend::Sqlite { .. } | Backend::Postgres { .. } => None,
        }
    }

    /// The pool of a PostgreSQL database, for what only it can do: advisory locks, `LISTEN` and `NOTIFY`.
    pub fn postgres(&self) -> Option<&PgPool> {
        match &self.backend {
            Backend::Sqlite { .. } | Backend::Simulated { .. } => None,
            Backend::Postgres { pool, .. } => Some(pool),
        }
    }

    /// A start is over. Until then a change on SQLite waits for a minute if another process has locked the database, and
    /// from now on for ten seconds, because clients wait for it.
    pub async fn end_start(&self) -> Result<(), Error> {
        match &self.backend {
            Backend::Sqlite { writer, .. } => writer.end_start().await,
            Backend::Simulated { .. } | Backend::Postgres { .. } => Ok(()),
        }
    }

    pub async fn close(&self) {
        match &self.backend {
            Backend::Sqlite { writer, readers, connections, .. } => {
                readers.close(*connections).await;
                writer.close().await;
            }
            Backend::Simulated { .. } => {}
            Backend::Postgres { pool, .. } => pool.close().await,
        }
    }
}

fn not_begun() -> Error {
    Error::GroupNotCommitted("the transaction could not begin".into())
}

/// Why a SQLite database could not be opened.
fn explain(error: Error, path: &Path) -> Error {
    let file = path.display().to_string();
    match error.sqlite_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => SchemaError::NotADatabase { file }.into(),
        Some(rusqlite::ErrorCode::DatabaseBusy) => SchemaError::Locked { file }.into(),
        _ => error,
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
        let begin = match change.durability() {
            Durability::Ephemeral => "BEGIN; SET LOCAL synchronous_commit = off",
            Durability::Unsynced | Durability::Synced => "BEGIN",
        };
        let begun = Box::pin(outage.acquire(pool, pool.begin_with(begin))).await?;
        let mut tx = Tx::new(Held::PostgresTransaction(begun), faults);
        let result = match carry_out(change, &mut tx).await {
            Ok(hooks) => match tx.commit().await {
                Ok(()) => {
                    hooks.after_commit(wake);
                    Ok(())
                }
                // It may be committed all the same, and a signal without a reason does no harm.
                Err(error) => {
                    hooks.send_signals(wake);
                    Err(error)
                }
            },
            Err(error) => Err(error),
        };
        match result {
            Err(error) if error.is_transaction_conflict() && tries < TRIES => {
                tracing::debug!(%error, tries, "transaction retried");
                // A random delay, so that the transactions do not collide again.
                let wait = landfall_core::random::Source.random_range(0..=20 * u64::from(tries));
                landfall_core::clock::Clock::System.sleep(Duration::from_millis(wait)).await;
            }
            result => return result,
        }
    }
}

/// Makes the functions of sqlite-vec available in every SQLite connection that is opened from now on.
fn load_vector_functions() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    type EntryPoint = unsafe extern "C" fn(
        *mut rusqlite::ffi::sqlite3,
        *mut *mut std::ffi::c_char,
        *const rusqlite::ffi::sqlite3_api_routines,
    ) -> std::ffi::c_int;
    ONCE.call_once(|| {
        // SAFETY: `sqlite3_vec_init` is the entry point of an SQLite extension, whose C signature is `EntryPoint`;
        // the crate that binds it declares it without arguments, and all function pointers have one size. The
        // library is linked statically, so the pointer stays valid; SQLite guards its list with a mutex.
        unsafe {
            let entry =
                std::mem::transmute::<unsafe extern "C" fn(), EntryPoint>(sqlite_vec::sqlite3_vec_init);
            rusqlite::ffi::sqlite3_auto_extension(Some(entry));
        }
    });
}
