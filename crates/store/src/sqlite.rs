//! SQLite: its connections, and one statement on one of them.
//!
//! SQLite computes on the thread that calls it. The writer has a thread of its own and calls it there; a reader's statement
//! runs on a thread for blocking work, so that a long one delays no other task.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::arguments::Arg;
use crate::row::{self, Columns, Row};
use crate::{Error, PREPARED_STATEMENTS};

const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often, and how many times, a connection of a start asks for a lock: for a minute. A process that is frozen in a
/// transaction has the lock until it goes on or ends, and a start that gave up would only be repeated.
const START_POLL: Duration = Duration::from_millis(25);
const START_POLLS: i32 = 2_400;
/// After a second the log says what the start waits for.
const SILENT_POLLS: i32 = 40;
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Of every connection.
const SETTINGS: &str = "
    PRAGMA journal_mode = WAL;
    -- An acknowledged change survives a power cut.
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    -- In pages. The same few pages change again and again; a late checkpoint copies each of them once.
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA temp_store = MEMORY;
    -- What is deleted or overwritten does not stay in the pages that are written anyway.
    PRAGMA secure_delete = FAST;";

/// Pages that the writer keeps, in KiB. It changes the same few again and again.
const WRITER_CACHE: u32 = 16_000;
/// Pages that each reader keeps, in KiB. There are many readers, and what one of them does not have, the system's own cache has.
const READER_CACHE: u32 = 4_000;

/// How many rows a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowMany {
    All,
    One,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// For a start: creates the file if there is none, and waits longer for a lock.
    Create,
    Write,
    Read,
}

/// The path in `sqlite://path` or `sqlite:path`.
pub fn path_in(url: &str) -> Result<PathBuf, Error> {
    let rest = url.strip_prefix("sqlite:").unwrap_or(url);
    let path = rest.strip_prefix("//").unwrap_or(rest);
    let refuse = |why: &str| Error::Internal(format!("DATABASE_URL is {url:?}: {why}"));
    let path = match path.split_once('?') {
        // The one way in which it is opened.
        None | Some((_, "" | "mode=rwc")) => path.split('?').next().unwrap_or(path),
        Some(_) => return Err(refuse("SQLite takes no parameters here")),
    };
    let path = percent_decode_str(path).decode_utf8().map_err(|_| refuse("the path is not UTF-8"))?;
    if path.is_empty() || path == ":memory:" {
        return Err(refuse("a database needs a file"));
    }
    Ok(PathBuf::from(path.into_owned()))
}

/// Opens a connection. Waits for the disk.
pub fn connect(path: &Path, purpose: Purpose) -> Result<Connection, Error> {
    // One thread at a time uses a connection, so it needs no lock of its own.
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if purpose == Purpose::Create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let connection = Connection::open_with_flags(path, flags)?;
    match purpose {
        Purpose::Create => connection.busy_handler(Some(wait_at_start))?,
        Purpose::Write | Purpose::Read => connection.busy_timeout(BUSY_TIMEOUT)?,
    }
    prepare(&connection)?;
    if purpose == Purpose::Read {
        connection.execute_batch(&format!("PRAGMA query_only = ON; PRAGMA cache_size = -{READER_CACHE}"))?;
    }
    Ok(connection)
}

/// Waits before a start asks for the lock again. Returns `false` when it has asked often enough.
fn wait_at_start(asked: i32) -> bool {
    if asked == SILENT_POLLS {
        tracing::warn!("another process has locked the database; waiting up to a minute for it");
    }
    #[expect(clippy::disallowed_methods, reason = "SQLite calls this on a thread that may block")]
    std::thread::sleep(START_POLL);
    asked < START_POLLS
}

/// From now on a lock is waited for as long as in a server that runs.
pub fn end_start(connection: &Connection) -> Result<(), Error> {
    Ok(connection.busy_timeout(BUSY_TIMEOUT)?)
}

/// Opens a database that is in memory only.
pub fn connect_in_memory() -> Result<Connection, Error> {
    let connection = Connection::open_in_memory()?;
    // A page that changes is copied before, and most changes are small.
    connection.execute_batch("PRAGMA page_size = 1024")?;
    prepare(&connection)?;
    // It is the only connection of many processes, and lives for a moment.
    connection.set_prepared_statement_cache_capacity(4 * PREPARED_STATEMENTS);
    // Without it, a statement is planned anew for new arguments that a partial index may depend on. Its tables are small.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Result<(), Error> {
    connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
    Ok(connection.execute_batch(&format!("{SETTINGS}PRAGMA cache_size = -{WRITER_CACHE};"))?)
}

/// Runs a statement and returns how many rows it changed.
pub fn execute(connection: &Connection, sql: &str, args: &[Arg]) -> Result<u64, Error> {
    let before = connection.total_changes();
    let mut statement = connection.prepare_cached(sql)?;
    bind(&mut statement, sql, args)?;
    let mut rows = statement.raw_query();
    while rows.next()?.is_some() {}
    // What foreign keys deleted with a row is in the total, and not in what the statement itself changed.
    Ok(if connection.total_changes() == before { 0 } else { connection.changes() })
}

/// Runs a query and passes each row on.
pub fn query(
    connection: &Connection,
    sql: &str,
    args: &[Arg],
    many: HowMany,
    each: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(sql)?;
    bind(&mut statement, sql, args)?;
    let columns = Columns::of(row::hash_of(sql));
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        each(&Row::of_sqlite(row, &columns))?;
        if many == HowMany::One {
            break;
        }
    }
    Ok(())
}

/// The same on the thread of the caller, which must not wait. Returns `false`, and passes no row on, where a connection would
/// have to be opened, and where another process has locked the database.
pub fn query_unless_locked(
    lease: &mut Lease,
    sql: &str,
    args: &[Arg],
    many: HowMany,
    each: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>,
) -> Result<bool, Error> {
    let Some(connection) = lease.opened() else { return Ok(false) };
    connection.busy_timeout(Duration::ZERO)?;
    let done = query(connection, sql, args, many, each);
    connection.busy_timeout(BUSY_TIMEOUT)?;
    match done {
        Err(error) if error.is_locked() => Ok(false),
        done => done.map(|()| true),
    }
}

/// `$3` is the third argument, wherever it stands. The first `?` is the first argument, and each further one the next.
fn bind(statement: &mut rusqlite::Statement<'_>, sql: &str, args: &[Arg]) -> Result<(), Error> {
    // A bulk statement has thousands of arguments, and asking for the name of each takes as long as binding it.
    let has_names = sql.contains('$');
    let mut unnamed = 0_usize;
    for place in 1..=statement.parameter_count() {
        let name = if has_names { statement.parameter_name(place) } else { None };
        let number: usize = match name {
            Some(name) => name[1..].parse().unwrap_or(0),
            None => {
                unnamed += 1;
                unnamed
            }
        };
        let arg = args.get(number.wrapping_sub(1));
        let arg = arg.ok_or_else(|| Error::Internal(format!("a statement has no argument {number}")))?;
        statement.raw_bind_parameter(place, arg)?;
    }
    Ok(())
}

/// The connections of one purpose. They are opened when they are needed, and kept.
#[derive(Clone)]
pub struct Pool(Arc<Kept>);

struct Kept {
    path: PathBuf,
    purpose: Purpose,
    idle: Mutex<Vec<Connection>>,
    room: Arc<Semaphore>,
    is_closed: AtomicBool,
    /// Whether its one connection is the database, which would be gone with it.
    is_database: bool,
}

impl Pool {
    pub fn new(path: &Path, purpose: Purpose, connections: u32) -> Self {
        let room = Arc::new(Semaphore::new(connections as usize));
        let (path, idle) = (path.to_owned(), Mutex::default());
        let is_closed = AtomicBool::new(false);
        Self(Arc::new(Kept { path, purpose, idle, room, is_closed, is_database: false }))
    }

    /// A database in memory: it is this connection, and all that use it take turns.
    pub fn of_database(connection: Connection) -> Self {
        Self(Arc::new(Kept {
            path: PathBuf::new(),
            purpose: Purpose::Write,
            idle: Mutex::new(vec![connection]),
            room: Arc::new(Semaphore::new(1)),
            is_closed: AtomicBool::new(false),
            is_database: true,
        }))
    }

    /// Waits until fewer connections are in use than there may be.
    pub async fn acquire(&self) -> Result<Lease, Error> {
        let room = match self.0.room.clone().try_acquire_owned() {
            Ok(room) => room,
            // Only a caller that waits needs a timer.
            Err(_) => tokio::time::timeout(ACQUIRE_TIMEOUT, self.0.room.clone().acquire_owned())
                .await
                .map_err(|_| Error::no_connection())?
                .map_err(|_| Error::Closed)?,
        };
        Ok(Lease { connection: None, pool: self.clone(), _room: room })
    }

    /// Parses and plans these statements on the connections that are open.
    pub fn prepare<'a>(&self, statements: impl Iterator<Item = &'a str>) {
        let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        for (sql, connection) in statements.flat_map(|sql| idle.iter().map(move |idle| (sql, idle))) {
            drop(connection.prepare_cached(sql));
        }
    }

    /// Runs this on the connection of a database in memory, which no one may use meanwhile.
    pub fn on_idle<T>(&self, run: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        run(idle.first().ok_or_else(Error::no_connection)?)
    }

    /// Whether a connection could be taken at once.
    pub fn is_free(&self) -> bool {
        self.0.room.available_permits() > 0
    }

    /// Adds a connection that was opened already.
    pub fn keep(&self, connection: Connection) {
        if !self.0.is_closed.load(Ordering::Acquire) {
            self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }

    /// Closes the connections that are not in use.
    pub fn empty(&self) {
        if self.0.is_database {
            return;
        }
        let idle = std::mem::take(&mut *self.0.idle.lock().unwrap_or_else(PoisonError::into_inner));
        drop(idle);
    }

    /// Waits until no connection is in use, and closes all of them.
    pub async fn close(&self, connections: u32) {
        if self.0.is_database {
            return;
        }
        self.0.is_closed.store(true, Ordering::Release);
        drop(self.0.room.acquire_many(connections).await);
        self.0.room.close();
        self.empty();
    }
}

/// A connection in use. It returns to its pool, and what was not committed is rolled back.
pub struct Lease {
    /// `None` until the first statement.
    connection: Option<Connection>,
    pool: Pool,
    _room: OwnedSemaphorePermit,
}

impl Lease {
    /// The connection, if it needs not be opened.
    fn opened(&mut self) -> Option<&mut Connection> {
        if self.connection.is_none() {
            self.connection = self.pool.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        }
        self.connection.as_mut()
    }

    pub fn connection(&mut self) -> Result<&mut Connection, Error> {
        if self.opened().is_none() {
            let kept = &self.pool.0;
            self.connection = Some(connect(&kept.path, kept.purpose)?);
        }
        Ok(self.connection.as_mut().expect("it was set"))
    }

    /// Runs a statement on a thread for blocking work. If the caller stops waiting, the statement still ends, and the
    /// connection returns to its pool.
    pub async fn run_elsewhere<T: Send + 'static>(
        slot: &mut Option<Self>,
        work: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let Some(mut lease) = slot.take() else {
            return Err(Error::Internal("an earlier statement of this connection was abandoned".to_owned()));
        };
        let done = landfall_core::blocking::run(move || {
            let result = lease.connection().and_then(work);
            (lease, result)
        });
        let (lease, result) = done.await.map_err(|_| Error::Internal("a statement panicked".to_owned()))?;
        *slot = Some(lease);
        result
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && (connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok())
        {
            self.pool.keep(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    #[test]
    fn arguments_are_bound_by_their_numbers_and_a_list_takes_the_first_ones() {
        let connection = Connection::open_in_memory().expect("a database");
        let sql = "SELECT $4 || $3 || v.column1 || v.column2 || $3 FROM (VALUES (?, ?)) AS v";
        let mut found = Vec::new();
        let each = &mut |row: &Row<'_>| {
            found.push(row.at::<String>(0)?);
            Ok(())
        };
        let (all, too_few) = (args!["a", "b", "c", "d"], args!["a"]);
        query(&connection, sql, &all, HowMany::All, each).expect("a row");
        assert_eq!(found, ["dcabc"]);
        assert!(query(&connection, sql, &too_few, HowMany::All, &mut |_| Ok(())).is_err());
    }

    #[test]
    fn a_url_names_a_file() {
        for (url, path) in [
            ("sqlite://data/landfall.db", "data/landfall.db"),
            ("sqlite:///srv/a%20b.db?mode=rwc", "/srv/a b.db"),
            ("sqlite:landfall.db", "landfall.db"),
        ] {
            assert_eq!(path_in(url).expect("a path"), Path::new(path));
        }
        for url in ["sqlite://", "sqlite::memory:", "sqlite://a.db?cache=shared", "sqlite://%ff.db"] {
            assert!(path_in(url).is_err(), "{url}");
        }
    }

    #[test]
    fn readers_keep_fewer_pages_in_memory_than_the_writer() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept: [i64; 3] = [Purpose::Create, Purpose::Write, Purpose::Read].map(|purpose| {
            let connection = connect(&folder.path().join("a.db"), purpose).expect("it opens");
            connection.query_row("PRAGMA cache_size", [], |row| row.get(0)).expect("a number of pages")
        });
        assert_eq!(kept, [-i64::from(WRITER_CACHE), -i64::from(WRITER_CACHE), -i64::from(READER_CACHE)]);
    }

    #[tokio::test]
    async fn a_look_up_leaves_a_locked_database_to_a_thread_that_may_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.db");
        // Without a log, a writer that has the lock keeps readers out.
        let other = Connection::open(&path).expect("it opens");
        other
            .execute_batch("CREATE TABLE a (b); INSERT INTO a VALUES (1); BEGIN EXCLUSIVE")
            .expect("it locks");
        let pool = Pool::new(&path, Purpose::Read, 1);
        let mut lease = pool.acquire().await.expect("a connection");
        let mut found = Vec::new();
        let look_up = |lease: &mut Lease, found: &mut Vec<i64>| {
            let each = &mut |row: &Row<'_>| {
                found.push(row.at(0)?);
                Ok(())
            };
            query_unless_locked(lease, "SELECT b FROM a", &[], HowMany::One, each).expect("no error")
        };
        assert!(!look_up(&mut lease, &mut found), "to open a connection may take time");
        pool.keep(Connection::open(&path).expect("it opens"));
        assert!(!look_up(&mut lease, &mut found), "it is locked");
        assert!(found.is_empty());
        other.execute_batch("COMMIT").expect("it lets go");
        assert!(look_up(&mut lease, &mut found));
        assert_eq!(found, [1]);
        let patience: i64 = lease
            .connection()
            .expect("it is open")
            .query_row("PRAGMA busy_timeout", [], |row| row.get(0))
            .expect("a number");
        assert_eq!(u128::try_from(patience), Ok(BUSY_TIMEOUT.as_millis()), "other statements wait again");
    }

    #[tokio::test]
    async fn a_connection_returns_to_its_pool_without_its_transaction() {
        let folder = tempfile::tempdir().expect("a folder");
        let pool = Pool::new(&folder.path().join("a.db"), Purpose::Create, 1);
        let mut lease = pool.acquire().await.expect("a connection");
        lease
            .connection()
            .expect("it opens")
            .execute_batch("CREATE TABLE a (b); BEGIN; INSERT INTO a VALUES (1)")
            .expect("it begins");
        drop(lease);
        let mut lease = pool.acquire().await.expect("the same connection");
        let left =
            lease.connection().expect("it is open").query_row("SELECT COUNT(*) FROM a", [], |row| row.get(0));
        assert_eq!(left, Ok(0));
    }

    #[tokio::test]
    async fn a_statement_that_its_caller_left_returns_the_connection() {
        let folder = tempfile::tempdir().expect("a folder");
        let pool = Pool::new(&folder.path().join("a.db"), Purpose::Create, 1);
        let (begun, is_begun) = tokio::sync::oneshot::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
        let mut slot = Some(pool.acquire().await.expect("a connection"));
        let statement = Lease::run_elsewhere(&mut slot, move |_| {
            begun.send(()).expect("the test waits");
            may_go_on.recv().expect("the test lets it go on");
            Ok(())
        });
        tokio::select! {
            _ = statement => panic!("it waits"),
            begun = is_begun => begun.expect("it begins"),
        }
        assert!(slot.is_none());
        go_on.send(()).expect("the statement waits");
        // The pool has one connection, so this waits for the statement to end.
        pool.acquire().await.expect("the connection came back");
    }
}
