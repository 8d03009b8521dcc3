//! SQLite's one writer: all changes that wait are applied in one transaction, each undone alone if it fails, and
//! acknowledged after the commit. A sync of the disk then serves many changes instead of one.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use sqlx::SqlitePool;
use tokio::sync::mpsc;
use tracing::Instrument;

use crate::Error;
use crate::change::{Change, carry_out};
use crate::faults::{Faults, Step};
use crate::hooks::Hooks;
use crate::wake::Wake;
use crate::{Durability, Held, Tx};

/// Changes that may wait for the writer before whoever brings another has to wait as well.
const QUEUE: usize = 1_024;
/// Changes in one transaction. More would gain nothing and keep the first waiting.
const GROUP: usize = 256;

#[derive(Clone)]
pub struct Writer {
    queue: mpsc::Sender<Job>,
    pool: SqlitePool,
}

/// A change, and what it happens in: what is said on the way is said of whoever wanted it.
struct Job {
    change: Box<dyn Change>,
    span: tracing::Span,
}

impl Job {
    /// Whatever it does, only it fails.
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
    pub fn start(pool: SqlitePool, faults: Faults, wake: Wake) -> Self {
        let (queue, jobs) = mpsc::channel(QUEUE);
        tokio::spawn(run(pool.clone(), faults, jobs, wake));
        Self { queue, pool }
    }

    /// Lets a change wait for its turn. It is dropped if that never comes.
    pub async fn submit(&self, change: Box<dyn Change>) -> Result<(), Error> {
        let job = Job { change, span: tracing::Span::current() };
        self.queue.send(job).await.map_err(|_| Error::Closed)
    }

    /// The writer's own pool of one connection, for the migrations that run before any change.
    pub fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }
}

async fn run(pool: SqlitePool, faults: Faults, jobs: mpsc::Receiver<Job>, wake: Wake) {
    let mut queue = Queue { jobs, waiting: VecDeque::new() };
    // A connection begins with what it was opened with.
    let mut syncs = Durability::Synced;
    while queue.wait().await {
        let needs = queue.durability();
        if syncs != needs {
            syncs = match set_durability(&pool, needs).await {
                Ok(()) => needs,
                Err(error) => {
                    tracing::error!(%error, "the writer's connection failed");
                    replace_connection(&pool).await;
                    Durability::Synced
                }
            };
        }
        if let Err((error, told)) = commit_group(&pool, &faults, &wake, syncs, &mut queue).await {
            tracing::error!(%error, "a group of writes was not committed");
            for applied in told {
                applied.acknowledge(Err(error.again()), &wake);
            }
            // Another program's lock says nothing about our connection.
            if !error.is_a_lock() {
                replace_connection(&pool).await;
                syncs = Durability::Synced;
            }
        }
        wake.committed();
    }
}

/// The changes that wait, in their order.
struct Queue {
    jobs: mpsc::Receiver<Job>,
    waiting: VecDeque<Job>,
}

impl Queue {
    /// Resolves when there is one, or with `false` when there will be none any more.
    async fn wait(&mut self) -> bool {
        if self.waiting.is_empty() {
            let Some(first) = self.jobs.recv().await else { return false };
            self.waiting.push_back(first);
        }
        self.look();
        true
    }

    fn look(&mut self) {
        while self.waiting.len() < GROUP
            && let Ok(job) = self.jobs.try_recv()
        {
            self.waiting.push_back(job);
        }
    }

    /// What all that wait here can rely on.
    fn durability(&self) -> Durability {
        self.waiting.iter().map(|job| job.change.durability()).max().unwrap_or(Durability::Synced)
    }

    /// The next, if it can rely on a commit that syncs so much.
    fn next(&mut self, syncs: Durability) -> Option<Job> {
        self.look();
        self.waiting.pop_front_if(|job| job.change.durability() <= syncs)
    }
}

async fn set_durability(pool: &SqlitePool, durability: Durability) -> Result<(), sqlx::Error> {
    let sql = match durability {
        Durability::Unsynced => "PRAGMA synchronous = NORMAL",
        Durability::Synced => "PRAGMA synchronous = FULL",
    };
    sqlx::query(sql).execute(pool).await.map(drop)
}

/// Closes the writer's connection, so that the next group begins on a fresh one. After a failed commit (a full disk,
/// say) nobody can tell what state the old one is in.
async fn replace_connection(pool: &SqlitePool) {
    if let Ok(connection) = pool.acquire().await
        && let Err(error) = connection.close().await
    {
        tracing::warn!(%error, "the writer's connection did not close well");
    }
}

/// Applies all that wait and can rely on a commit that syncs so much. On an error nothing of the group stands, and
/// those who were not told are handed back with it. (A job that never ran is dropped, and its caller is told that it was
/// not begun.)
async fn commit_group(
    pool: &SqlitePool,
    faults: &Faults,
    wake: &Wake,
    syncs: Durability,
    queue: &mut Queue,
) -> Result<(), (Error, Vec<Applied>)> {
    let mut group = Vec::new();
    let Some(mut first) = queue.next(syncs) else { return Ok(()) };
    let mut tx = match begin(pool, faults).await {
        Ok(tx) => tx,
        Err(error) => {
            // Nor would it go better for those who came in the meantime: each would wait as long again.
            queue.look();
            queue.waiting.clear();
            return Err((error, group));
        }
    };
    // The first needs no savepoint: if it fails, there is nothing else to keep.
    match first.carry_out(&mut tx).await {
        Ok(hooks) => group.push(Applied { change: first.change, hooks }),
        Err(failure) => {
            let undone = tx.rollback().await;
            first.change.acknowledge(Err(failure));
            return undone.map_err(|error| (error, group));
        }
    }
    let mut applied = 1;
    while applied < GROUP
        && let Some(job) = queue.next(syncs)
    {
        applied += 1;
        if let Err(error) = apply_one(&mut tx, job, &mut group).await {
            return Err((error, group));
        }
    }
    if let Err(error) = tx.commit().await {
        return Err((error, group));
    }
    for applied in group {
        applied.acknowledge(Ok(()), wake);
    }
    Ok(())
}

async fn begin(pool: &SqlitePool, faults: &Faults) -> Result<Tx, Error> {
    faults.inject(Step::Begin).await?;
    Ok(Tx::new(Held::SqliteTransaction(pool.begin_with("BEGIN IMMEDIATE").await?), faults))
}

/// Runs one job in its savepoint, and adds it to the group. One that fails is undone and told at once: there is nothing to
/// wait for. On an error the transaction is lost, and with it the job.
async fn apply_one(tx: &mut Tx, mut job: Job, group: &mut Vec<Applied>) -> Result<(), Error> {
    if let Err(error) = tx.script("SAVEPOINT change").await {
        job.change.acknowledge(Err(error.again()));
        return Err(error);
    }
    match job.carry_out(tx).await {
        Ok(hooks) => {
            group.push(Applied { change: job.change, hooks });
            tx.script("RELEASE change").await
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

    /// Answers how much the commit that it is part of will sync: 1 is NORMAL, 2 is FULL.
    struct HowMuch(Durability);

    impl Write for HowMuch {
        type Output = i64;

        fn durability(&self) -> Durability {
            self.0
        }

        async fn apply(&self, tx: &mut Tx) -> Result<i64, Error> {
            tx.number("PRAGMA synchronous", args![]).await
        }
    }

    #[tokio::test]
    async fn what_is_promised_is_synced_and_only_that() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&format!("sqlite://{}/a.db", folder.path().display()), 4).await.unwrap();
        for (durability, level) in [
            (Durability::Synced, 2),
            (Durability::Unsynced, 1),
            (Durability::Unsynced, 1),
            (Durability::Synced, 2),
        ] {
            assert_eq!(db.write(HowMuch(durability)).await.unwrap(), level);
        }
        // Whatever shares its commit with others: nothing that is promised is synced less.
        let both = (0..50).map(|_| async {
            tokio::join!(db.write(HowMuch(Durability::Unsynced)), db.write(HowMuch(Durability::Synced)))
        });
        for (_, promised) in futures_util::future::join_all(both).await {
            assert_eq!(promised.unwrap(), 2);
        }
    }
}
