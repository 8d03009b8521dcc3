//! The single writer of SQLite: all waiting changes are applied in one transaction, each is rolled back alone if it
//! fails, and they are acknowledged after the commit. One sync of the disk then serves many changes.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use landfall_sync::mpsc;
use tracing::Instrument;

use crate::Error;
use crate::args;
use crate::change::{Change, carry_out};
use crate::database_file::DatabaseFile;
use crate::faults::{Faults, Step};
use crate::hooks::Hooks;
use crate::sqlite::{self, Lease, Pool};
use crate::wake::Wake;
use crate::{Durability, Held, Tx};

/// The number of changes that may wait for the writer. Further callers wait until there is room.
const QUEUE_SIZE: usize = 1_024;
/// The maximum number of changes in one transaction. More would only delay the first.
const MAX_GROUP: usize = 256;

#[derive(Clone)]
pub struct Writer {
    queue: mpsc::Sender<QueuedChange>,
    pool: Pool,
}

/// A change that waits, with the caller's span, in which it runs.
struct QueuedChange {
    change: Box<dyn Change>,
    span: tracing::Span,
}

impl QueuedChange {
    /// An error or panic affects only this change.
    async fn carry_out(&mut self, tx: &mut Tx) -> Result<Hooks, Error> {
        let applied = AssertUnwindSafe(carry_out(&mut *self.change, tx)).catch_unwind();
        applied.instrument(self.span.clone()).await.unwrap_or_else(|_| {
            tx.hooks = Hooks::default();
            Err(Error::Internal("a write panicked; it changed nothing".to_owned()))
        })
    }
}

/// A change that is applied and not committed yet.
struct Applied {
    change: Box<dyn Change>,
    hooks: Hooks,
}

impl Applied {
    fn acknowledge(self, committed: Result<(), Error>, wake: &Wake) {
        if committed.is_ok() {
            self.hooks.after_commit(wake);
        }
        self.change.acknowledge(committed);
    }
}

impl Writer {
    /// Starts the writer's thread, which ends when the queue is closed. `pool` has one connection.
    pub fn start(pool: Pool, file: DatabaseFile, faults: Faults, wake: Wake) -> Result<Self, Error> {
        let (queue, jobs) = mpsc::channel(QUEUE_SIZE);
        let opened = Opened { pool: pool.clone(), file: Some(file), faults };
        let runtime = tokio::runtime::Handle::current();
        std::thread::Builder::new()
            .name("landfall-writer".to_owned())
            .spawn(move || runtime.block_on(run(opened, jobs, wake)))
            .map_err(|source| Error::Storage {
                what: "start the writer's thread".to_owned(),
                source: source.into(),
            })?;
        Ok(Self { queue, pool })
    }

    /// Starts the writer of a process that shares a simulated database, as a task: a simulation has one thread.
    pub fn start_simulated(pool: Pool, faults: Faults, wake: Wake) -> Self {
        let (queue, jobs) = mpsc::channel(QUEUE_SIZE);
        let opened = Opened { pool: pool.clone(), file: None, faults };
        landfall_sync::spawn(run(opened, jobs, wake));
        Self { queue, pool }
    }

    /// Puts a change into the queue. If the writer stops first, the change is dropped.
    pub async fn submit(&self, change: Box<dyn Change>) -> Result<(), Error> {
        let job = QueuedChange { change, span: tracing::Span::current() };
        self.queue.send(job).await.map_err(|_| Error::Closed)
    }

    /// From now on a change waits for the lock of another process as long as in a server that runs.
    pub async fn end_start(&self) -> Result<(), Error> {
        sqlite::end_start(self.pool.acquire().await?.connection()?)
    }

    pub async fn close(&self) {
        self.pool.close(1).await;
    }
}

/// What the writer writes to.
struct Opened {
    pool: Pool,
    /// `None` if the database is in memory.
    file: Option<DatabaseFile>,
    faults: Faults,
}

impl Opened {
    fn check(&self) -> Result<(), Error> {
        self.file.as_ref().map_or(Ok(()), DatabaseFile::check)
    }
}

async fn run(database: Opened, jobs: mpsc::Receiver<QueuedChange>, wake: Wake) {
    let pool = &database.pool;
    let mut queue = Queue { jobs, waiting: VecDeque::new() };
    // A new connection has the durability that it was opened with.
    let mut syncs = Durability::Synced;
    while queue.wait().await {
        let needs = queue.durability();
        // What is in memory is never synced.
        if syncs != needs && database.file.is_none() {
            syncs = needs;
        }
        if syncs != needs {
            syncs = match set_durability(pool, needs).await {
                Ok(()) => needs,
                Err(error) => {
                    tracing::error!(%error, "the writer's connection failed");
                    pool.empty();
                    Durability::Synced
                }
            };
        }
        if let Err((error, unacknowledged)) = commit_group(&database, &wake, syncs, &mut queue).await {
            tracing::error!(%error, "a group of writes was not committed");
            for applied in unacknowledged {
                applied.acknowledge(Err(error.again()), &wake);
            }
            // A lock of another program says nothing about our connection. A file that is gone is lost with its last
            // connection.
            if !error.is_locked() && !matches!(error, Error::DatabaseFileGone { .. }) {
                // After a failed commit (a full disk, for example) the state of the connection is unknown.
                pool.empty();
                syncs = Durability::Synced;
            }
        }
        wake.committed();
    }
}

/// The waiting changes, in their order.
struct Queue {
    jobs: mpsc::Receiver<QueuedChange>,
    waiting: VecDeque<QueuedChange>,
}

impl Queue {
    /// Resolves with `true` when a change waits, or with `false` when the queue is closed.
    async fn wait(&mut self) -> bool {
        if self.waiting.is_empty() {
            let Some(first) = self.jobs.recv().await else { return false };
            self.waiting.push_back(first);
        }
        self.receive();
        true
    }

    fn receive(&mut self) {
        while self.waiting.len() < MAX_GROUP
            && let Ok(job) = self.jobs.try_recv()
        {
            self.waiting.push_back(job);
        }
    }

    /// The strictest durability among the waiting changes.
    fn durability(&self) -> Durability {
        let strictest = self.waiting.iter().map(|job| job.change.durability()).max();
        // SQLite has no more than these two.
        strictest.unwrap_or(Durability::Synced).max(Durability::Unsynced)
    }

    /// The next change, if a commit with this durability is enough for it.
    fn next(&mut self, syncs: Durability) -> Option<QueuedChange> {
        self.receive();
        self.waiting.pop_front_if(|job| job.change.durability() <= syncs)
    }
}

async fn set_durability(pool: &Pool, durability: Durability) -> Result<(), Error> {
    let sql = match durability {
        Durability::Ephemeral | Durability::Unsynced => "PRAGMA synchronous = NORMAL",
        Durability::Synced => "PRAGMA synchronous = FULL",
    };
    sqlite::execute(pool.acquire().await?.connection()?, sql, &[]).map(drop)
}

/// Applies all waiting changes for which a commit with this durability is enough. On an error the whole group is
/// rolled back, and the changes that were not acknowledged are returned with it. (A change that never ran is
/// dropped, and its caller learns that it was not begun.)
async fn commit_group(
    database: &Opened,
    wake: &Wake,
    syncs: Durability,
    queue: &mut Queue,
) -> Result<(), (Error, Vec<Applied>)> {
    let mut group = Vec::new();
    let Some(mut first) = queue.next(syncs) else { return Ok(()) };
    let mut tx = match begin(&database.pool, &database.faults).await {
        Ok(tx) => tx,
        Err(error) => {
            // The changes that arrived in the meantime would fail in the same way, each after as long a wait.
            queue.receive();
            queue.waiting.clear();
            return Err((error, group));
        }
    };
    // The first needs no savepoint: if it fails, the transaction is empty.
    match first.carry_out(&mut tx).await {
        Ok(hooks) => group.push(Applied { change: first.change, hooks }),
        Err(failure) => {
            let undone = tx.rollback().await;
            first.change.acknowledge(Err(failure));
            return undone.map_err(|error| (error, group));
        }
    }
    let mut applied = 1;
    while applied < MAX_GROUP
        && let Some(job) = queue.next(syncs)
    {
        applied += 1;
        if let Err(error) = apply_one(&mut tx, job, &mut group).await {
            return Err((error, group));
        }
    }
    // What went into a file that is gone is not kept, so it is not acknowledged.
    if let Err(error) = tx.commit().await.and_then(|()| database.check()) {
        return Err((error, group));
    }
    for applied in group {
        applied.acknowledge(Ok(()), wake);
    }
    Ok(())
}

async fn begin(pool: &Pool, faults: &Faults) -> Result<Tx, Error> {
    faults.inject(Step::Begin).await?;
    let mut lease: Lease = pool.acquire().await?;
    sqlite::execute(lease.connection()?, "BEGIN IMMEDIATE", &[])?;
    Ok(Tx::new(Held::SqliteWriter(lease), faults))
}

/// Runs one change in its savepoint, and adds it to the group. A change that fails is rolled back and acknowledged
/// at once. On an error of the transaction itself the whole group is lost.
async fn apply_one(tx: &mut Tx, mut job: QueuedChange, group: &mut Vec<Applied>) -> Result<(), Error> {
    if let Err(error) = tx.execute("SAVEPOINT change", args![]).await {
        job.change.acknowledge(Err(error.again()));
        return Err(error);
    }
    match job.carry_out(tx).await {
        Ok(hooks) => {
            group.push(Applied { change: job.change, hooks });
            tx.execute("RELEASE change", args![]).await.map(drop)
        }
        Err(failure) => {
            let undone = tx.script("ROLLBACK TO change; RELEASE change").await;
            job.change.acknowledge(Err(failure));
            undone
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Error;
    use crate::{Db, Durability, Tx, Write, args};

    /// Returns how much its commit will sync: 1 is NORMAL, 2 is FULL.
    struct ReadSyncLevel(Durability);

    impl Write for ReadSyncLevel {
        type Output = i64;

        fn durability(&self) -> Durability {
            self.0
        }

        async fn apply(&self, tx: &mut Tx) -> Result<i64, Error> {
            tx.number("PRAGMA synchronous", args![]).await
        }
    }

    #[tokio::test]
    async fn only_promised_changes_are_synced() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&format!("sqlite://{}/a.db", folder.path().display()), 4).await.unwrap();
        for (durability, level) in [
            (Durability::Synced, 2),
            (Durability::Unsynced, 1),
            (Durability::Unsynced, 1),
            (Durability::Synced, 2),
        ] {
            assert_eq!(db.write(ReadSyncLevel(durability)).await.unwrap(), level);
        }
        // A synced change that shares its commit with unsynced ones is synced.
        let both = (0..50).map(|_| async {
            tokio::join!(
                db.write(ReadSyncLevel(Durability::Unsynced)),
                db.write(ReadSyncLevel(Durability::Synced))
            )
        });
        for (_, promised) in futures_util::future::join_all(both).await {
            assert_eq!(promised.unwrap(), 2);
        }
    }
}
