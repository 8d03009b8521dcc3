//! The data of a server that is not running: nothing happens to it but what a test does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use landfall::app::{App, Replacements};
use landfall::audit::{Finding, audit};
use landfall::clock::{Clock, ManualClock, Time};
use landfall::db::{Arg, Db, FromRows, Interference, Tx, Write};
use landfall::error::Error;
use landfall::stages::Work;

use super::meddler::Meddler;
use super::{Script, TestDb, config};

/// Any statement, with its arguments.
pub struct Sql(pub String, pub Vec<Arg>);

impl Write for Sql {
    type Answer = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        tx.execute(self.0.clone(), self.1.clone()).await
    }
}

pub struct AtRest {
    pub app: App,
    pub clock: ManualClock,
    /// A connection that nobody meddles with.
    pub looking_on: Db,
    folder: PathBuf,
}

impl AtRest {
    pub async fn open(db: &TestDb, clock: &ManualClock, variables: &[(&'static str, String)]) -> Self {
        Self::open_with(db, clock, variables, Script::new(), None).await
    }

    /// The same with work that is done when the test lets it, and somebody between it and its database.
    pub async fn open_with(
        db: &TestDb,
        clock: &ManualClock,
        variables: &[(&'static str, String)],
        work: Arc<dyn Work>,
        meddler: Option<Arc<Meddler>>,
    ) -> Self {
        let replacements = Replacements {
            clock: Some(Clock::Manual(clock.clone())),
            work: Some(work),
            interference: meddler.map(|meddler| -> Arc<dyn Interference> { meddler }),
            // Without a program that reads documents, which nobody wants read.
            extractor: None,
        };
        let app = App::start(config(db, variables), replacements).await.expect("it opens");
        let looking_on = Db::open(&db.url, 2).await.expect("it opens");
        let folder = db.folder.path().join("blobs/blobs");
        Self { app, clock: clock.clone(), looking_on, folder }
    }

    pub fn now(&self) -> Time {
        self.app.clock.now()
    }

    /// Runs a statement that changes something.
    pub async fn sql(&self, sql: &str, args: Vec<Arg>) {
        let changed = self.app.db.write(Sql(sql.to_owned(), args)).await.expect("the statement runs");
        assert!(changed > 0, "{sql} changes something");
    }

    pub async fn rows<T: FromRows>(&self, sql: &str, args: Vec<Arg>) -> Vec<T> {
        self.app.db.read().await.expect("a connection").rows(sql, args).await.expect("an answer")
    }

    pub async fn number(&self, sql: &str) -> i64 {
        self.rows::<(i64,)>(sql, Vec::new()).await[0].0
    }

    /// Puts something into the storage behind the server's back, written at that time.
    pub fn store(&self, key: &str, text: &str, written_at: Time) {
        let path = self.folder.join(key);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(&path, text).expect("it can be written");
        self.age(key, written_at);
    }

    /// Makes a blob as old as that.
    pub fn age(&self, key: &str, written_at: Time) {
        let file = std::fs::File::options().write(true).open(self.folder.join(key)).expect("it is there");
        file.set_modified(SystemTime::from(written_at)).expect("it can be aged");
    }

    pub fn is_stored(&self, key: &str) -> bool {
        self.folder.join(key).exists()
    }

    pub async fn findings(&self) -> Vec<Finding> {
        let oldest = Clock::System.now() - chrono::TimeDelta::seconds(20);
        audit(&self.app.db, &self.app.blobs, oldest).await.expect("the audit runs").findings
    }

    pub async fn assert_books_balance(&self) {
        assert_eq!(self.findings().await, [], "the audit found something");
    }
}
