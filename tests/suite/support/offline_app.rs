//! The data of a server that is not running: only the test changes it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use landfall_core::clock::{Clock, ManualClock, Time};
use landfall_server::app::{App, Replacements};
use landfall_server::audit::{Finding, audit};
use landfall_server::records::totals;
use landfall_server::stages::Work;
use landfall_store::Error;
use landfall_store::{Arg, Db, FaultInjector, FromRow, Tx, Write};

use super::fault_injector::PlannedFaults;
use super::{Script, TestDb, config};

/// Any statement, with its arguments.
pub struct Sql(pub String, pub Vec<Arg>);

impl Write for Sql {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        tx.execute(self.0.clone(), self.1.clone()).await
    }
}

/// How often an action is repeated that got no connection. Each time it waits for half a second or longer.
const TRIES: usize = 100;

/// Repeats an action that got no connection, as clients and sweeps do: on a machine that is too busy, PostgreSQL may take
/// longer to answer than Landfall lets a request wait.
pub async fn patiently<T>(action: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..TRIES {
        match action().await {
            Err(Error::Database(sqlx::Error::PoolTimedOut)) => {}
            answer => return answer,
        }
    }
    action().await
}

/// Keeps a blob from being removed.
pub struct Obstruction {
    path: PathBuf,
    hidden: PathBuf,
}

impl Obstruction {
    pub fn remove(self) {
        std::fs::remove_dir_all(&self.path).expect("it is there");
        std::fs::rename(&self.hidden, &self.path).expect("it is there");
    }
}

/// Recounts the files of all users, after a test has changed some directly in the database.
pub struct Recount;

impl Write for Recount {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let users: Vec<(String,)> = tx.rows("SELECT DISTINCT user_id FROM files", Vec::new()).await?;
        for (user,) in users {
            totals::recount_named(tx, &user).await?;
        }
        Ok(())
    }
}

pub struct OfflineApp {
    pub app: App,
    pub clock: ManualClock,
    /// A connection without injected faults.
    pub observer: Db,
    folder: PathBuf,
}

impl OfflineApp {
    pub async fn open(db: &TestDb, clock: &ManualClock, variables: &[(&'static str, String)]) -> Self {
        Self::open_with(db, clock, variables, Script::new(), None).await
    }

    /// The same with the stages of the test, and with faults in its database connection.
    pub async fn open_with(
        db: &TestDb,
        clock: &ManualClock,
        variables: &[(&'static str, String)],
        work: Arc<dyn Work>,
        fault_injector: Option<Arc<PlannedFaults>>,
    ) -> Self {
        let replacements = Replacements {
            clock: Some(Clock::Manual(clock.clone())),
            work: Some(work),
            faults: fault_injector.map(|fault_injector| -> Arc<dyn FaultInjector> { fault_injector }),
            // Without a program that reads documents: these tests read none.
            ..Replacements::default()
        };
        let app = Box::pin(App::start(config(db, variables), replacements)).await.expect("it opens");
        let observer = Db::open(&db.url, 2).await.expect("it opens");
        let folder = db.folder.path().join("blobs/blobs");
        Self { app, clock: clock.clone(), observer, folder }
    }

    pub fn now(&self) -> Time {
        self.app.clock.now()
    }

    /// Runs a statement that changes something.
    pub async fn sql(&self, sql: &str, args: Vec<Arg>) {
        let write = async || self.app.db.write(Sql(sql.to_owned(), args.clone())).await;
        let changed = patiently(write).await.expect("the statement runs");
        assert!(changed > 0, "{sql} changes something");
    }

    /// The same for a statement that moves files; then they are recounted.
    pub async fn move_files(&self, sql: &str, args: Vec<Arg>) {
        self.sql(sql, args).await;
        patiently(async || self.app.db.write(Recount).await).await.expect("they are counted");
    }

    pub async fn rows<T: FromRow>(&self, sql: &str, args: Vec<Arg>) -> Vec<T> {
        let mut tx = patiently(async || self.app.db.read().await).await.expect("a connection");
        tx.rows(sql, args).await.expect("an answer")
    }

    pub async fn number(&self, sql: &str) -> i64 {
        self.rows::<(i64,)>(sql, Vec::new()).await[0].0
    }

    /// Puts a blob directly into the storage, with that modification time.
    pub fn store(&self, key: &str, text: &str, written_at: Time) {
        let path = self.folder.join(key);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(&path, text).expect("it can be written");
        self.age(key, written_at);
    }

    /// Sets the modification time of a blob.
    pub fn age(&self, key: &str, written_at: Time) {
        let file = std::fs::File::options().write(true).open(self.folder.join(key)).expect("it is there");
        file.set_modified(SystemTime::from(written_at)).expect("it can be aged");
    }

    pub fn is_stored(&self, key: &str) -> bool {
        self.folder.join(key).exists()
    }

    /// Everything in the storage, including unfinished uploads, with path and length.
    pub fn stored(&self) -> BTreeMap<PathBuf, u64> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.folder.parent().expect("a folder").to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("it can be listed") {
                let entry = entry.expect("an entry");
                if entry.file_type().expect("a type").is_dir() {
                    folders.push(entry.path());
                } else {
                    found.insert(entry.path(), entry.metadata().expect("it is there").len());
                }
            }
        }
        found
    }

    /// Makes the removal of a blob fail until the obstruction is removed.
    pub fn obstruct(&self, key: &str) -> Obstruction {
        let (path, hidden) = (self.folder.join(key), self.folder.join("../hidden"));
        std::fs::rename(&path, &hidden).expect("it is there");
        // A folder that is not empty cannot be removed like a blob.
        std::fs::create_dir_all(path.join("in-the-way")).expect("it can be made");
        Obstruction { path, hidden }
    }

    pub async fn findings(&self) -> Vec<Finding> {
        let oldest = Clock::System.now() - chrono::TimeDelta::seconds(20);
        audit(&self.app.db, &self.app.blobs, oldest).await.expect("the audit runs").findings
    }

    pub async fn assert_audit_clean(&self) {
        assert_eq!(self.findings().await, [], "the audit found something");
    }
}
