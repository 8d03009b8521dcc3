//! SQLite's one writer: all changes that wait are applied in one transaction, each undone alone if it fails, and
//! acknowledged after the commit. A sync of the disk then serves many changes instead of one.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::SqlitePool;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::Instrument;

use super::{Durability, Held, Tx, Write, carry_out};
use crate::error::Error;
use crate::observe::aftermath::Aftermath;

/// Changes that may wait for the writer before whoever brings another has to wait as well.
const QUEUE: usize = 1_024;
/// Changes in one transaction. More would gain nothing and keep the first waiting.
const GROUP: usize = 256;

#[derive(Clone)]
pub struct Writer {
    queue: mpsc::Sender<Job>,
    pool: SqlitePool,
}

/// A change with the way back to whoever waits for it.
struct Job {
    durability: Durability,
    apply: Apply,
}

/// Answers what to do with the change, and how to tell.
type Apply = Box<dyn for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Applied> + Send>;

struct Applied {
    keep: bool,
    acknowledge: Box<dyn FnOnce(Result<(), Error>) + Send>,
}

impl Writer {
    pub fn start(pool: SqlitePool, commits: watch::Sender<()>) -> Self {
        let (queue, jobs) = mpsc::channel(QUEUE);
        tokio::spawn(run(pool.clone(), jobs, commits));
        Self { queue, pool }
    }

    pub async fn submit<W: Write>(&self, change: W) -> Result<W::Answer, Error> {
        let (reply, answer) = oneshot::channel();
        let durability = change.durability();
        let span = tracing::Span::current();
        let apply: Apply = Box::new(move |tx| {
            async move {
                let applied = AssertUnwindSafe(carry_out(&change, tx)).catch_unwind().await;
                let result = applied.unwrap_or_else(|_| {
                    tx.aftermath = Aftermath::default();
                    Err(Error::Internal("a write panicked; it changed nothing".to_owned()))
                });
                Applied {
                    keep: result.is_ok(),
                    acknowledge: Box::new(move |committed| {
                        let result = result.and_then(|(answer, counts)| {
                            committed.map(|()| {
                                counts.publish();
                                answer
                            })
                        });
                        // Nobody waits any more: the change stands all the same.
                        drop(reply.send(result));
                    }),
                }
            }
            // What is said on the way is said of whoever wanted the change.
            .instrument(span)
            .boxed()
        });
        self.queue.send(Job { durability, apply }).await.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::GroupNotCommitted("it could not be begun".into()))?
    }

    /// The writer's own pool of one connection, for the migrations that run before any change.
    pub fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }
}

async fn run(pool: SqlitePool, jobs: mpsc::Receiver<Job>, commits: watch::Sender<()>) {
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
        if let Err((error, told)) = commit_group(&pool, syncs, &mut queue).await {
            tracing::error!(%error, "a group of writes was not committed");
            for acknowledge in told {
                acknowledge(Err(error.again()));
            }
            // Another program's lock says nothing about our connection.
            if !error.is_a_lock() {
                replace_connection(&pool).await;
                syncs = Durability::Synced;
            }
        }
        commits.send_replace(());
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
        self.waiting.iter().map(|job| job.durability).max().unwrap_or(Durability::Synced)
    }

    /// The next, if it can rely on a commit that syncs so much.
    fn next(&mut self, syncs: Durability) -> Option<Job> {
        self.look();
        self.waiting.pop_front_if(|job| job.durability <= syncs)
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

type Acknowledge = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// Applies all that wait and can rely on a commit that syncs so much. On an error nothing of the group stands, and
/// those who were not told are handed back with it. (A job that never ran drops its reply, and its caller is told that it was
/// not begun.)
async fn commit_group(
    pool: &SqlitePool,
    syncs: Durability,
    queue: &mut Queue,
) -> Result<(), (Error, Vec<Acknowledge>)> {
    let mut told: Vec<Acknowledge> = Vec::new();
    let Some(first) = queue.next(syncs) else { return Ok(()) };
    let mut tx = match pool.begin_with("BEGIN IMMEDIATE").await {
        Ok(transaction) => Tx::new(Held::SqliteTransaction(transaction)),
        Err(error) => {
            // Nor would it go better for those who came in the meantime: each would wait as long again.
            queue.look();
            queue.waiting.clear();
            return Err((error.into(), told));
        }
    };
    // The first needs no savepoint: if it fails, there is nothing else to keep.
    let first = (first.apply)(&mut tx).await;
    if !first.keep {
        let undone = tx.rollback().await;
        (first.acknowledge)(Ok(()));
        return undone.map_err(|error| (error, told));
    }
    told.push(first.acknowledge);
    let mut applied = 1;
    while applied < GROUP
        && let Some(job) = queue.next(syncs)
    {
        applied += 1;
        match apply_one(&mut tx, job).await {
            Ok(acknowledge) => told.extend(acknowledge),
            Err((error, acknowledge)) => {
                told.push(acknowledge);
                return Err((error, told));
            }
        }
    }
    if let Err(error) = tx.commit().await {
        return Err((error, told));
    }
    for acknowledge in told {
        acknowledge(Ok(()));
    }
    Ok(())
}

/// Runs one job in its savepoint. A job that fails is undone and told at once: there is nothing to wait for.
async fn apply_one(tx: &mut Tx, job: Job) -> Result<Option<Acknowledge>, (Error, Acknowledge)> {
    let savepoint = tx.script("SAVEPOINT change").await;
    let applied = (job.apply)(tx).await;
    let end = match (&savepoint, applied.keep) {
        (Err(_), _) => return Err((savepoint.expect_err("just matched"), applied.acknowledge)),
        (Ok(()), true) => tx.script("RELEASE change").await,
        (Ok(()), false) => tx.script("ROLLBACK TO change; RELEASE change").await,
    };
    match end {
        Err(error) => Err((error, applied.acknowledge)),
        Ok(()) if applied.keep => Ok(Some(applied.acknowledge)),
        Ok(()) => {
            (applied.acknowledge)(Ok(()));
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::db::{Db, Durability, Tx, Write, args};
    use crate::error::Error;

    /// Answers how much the commit that it is part of will sync: 1 is NORMAL, 2 is FULL.
    struct HowMuch(Durability);

    impl Write for HowMuch {
        type Answer = i64;

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
