//! The writer of SQLite: changes of many callers share transactions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use landfall_schedules::world::{self, Run, faults::Database};
use landfall_store::wake::Signal;
use landfall_store::{CommitHook, Db, Durability, Error, Tx, Write, args};
use shuttle::future::{block_on, spawn};
use shuttle::rand::{Rng, thread_rng};

use crate::answers::{self, Answer};

/// The numbers whose commits were announced.
#[derive(Debug, Default, Clone)]
struct Announced(Arc<Mutex<Vec<i64>>>);

impl Announced {
    fn all(&self) -> Vec<i64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort_unstable();
        all
    }
}

/// Announces numbers after the commit.
#[derive(Default)]
struct Announce(Vec<i64>, Announced);

impl CommitHook for Announce {
    fn after_commit(self: Box<Self>) {
        self.1.0.lock().unwrap_or_else(PoisonError::into_inner).extend(&self.0);
    }
}

/// Keeps a number, or fails after it has kept it.
struct Keep {
    number: i64,
    fails: bool,
    durability: Durability,
    announced: Announced,
}

impl Write for Keep {
    /// How much its commit syncs: 1 is NORMAL, 2 is FULL.
    type Output = i64;

    fn durability(&self) -> Durability {
        self.durability
    }

    async fn apply(&self, tx: &mut Tx) -> Result<i64, Error> {
        tx.execute("INSERT INTO kept (number) VALUES ($1)", args![self.number]).await?;
        *tx.hook::<Announce>() = Announce(vec![self.number], self.announced.clone());
        tx.signal(Signal::Work);
        if self.fails {
            return Err(Error::Internal("this change fails".to_owned()));
        }
        tx.number("PRAGMA synchronous", args![]).await
    }
}

async fn prepare(db: &Db) {
    let statements = vec!["CREATE TABLE IF NOT EXISTS kept (number BIGINT NOT NULL)", "DELETE FROM kept"];
    db.write(Run(statements)).await.expect("the database works");
    // As a new connection has it; this one is left by the schedule before.
    let mut tx = db.read().await.expect("a connection");
    tx.execute("PRAGMA synchronous = FULL", args![]).await.expect("the database works");
}

async fn kept(db: &Db) -> Vec<i64> {
    let mut tx = db.read().await.expect("a connection");
    let rows: Vec<(i64,)> = tx.rows("SELECT number FROM kept ORDER BY number", args![]).await.expect("rows");
    rows.into_iter().map(|(number,)| number).collect()
}

#[test]
fn every_change_is_answered_once_and_the_answer_is_true() {
    static MOST: AtomicUsize = AtomicUsize::new(0);
    static FAILED: AtomicUsize = AtomicUsize::new(0);
    world::check(600, || {
        block_on(async {
            let database = Database::failing(0);
            let db = world::connect(Some(database.clone()));
            prepare(&db).await;
            if thread_rng().gen_bool(0.7) {
                database.one_in.store(25, Ordering::Relaxed);
            }
            let announced = Announced::default();
            let callers: Vec<_> = (0..4)
                .map(|caller| spawn(call(db.clone(), database.clone(), caller, announced.clone())))
                .collect();
            let mut answers = BTreeMap::new();
            for caller in callers {
                answers.extend(caller.await.expect("the caller ends"));
            }
            database.recover();
            // The changes that nobody waits for are before this one in the queue.
            db.write(Run(Vec::new())).await.expect("the database works again");
            let (kept, announced) = (kept(&db).await, announced.all());
            let lost_an_answer = database.lost_an_answer.load(Ordering::Relaxed);
            answers::assert_true(answers, &kept, &database);
            if lost_an_answer {
                assert!(announced.iter().all(|one| kept.contains(one)), "{announced:?} of {kept:?}");
            } else {
                assert_eq!(announced, kept, "what is committed is announced, each once");
            }
            MOST.fetch_max(database.most.load(Ordering::Relaxed), Ordering::Relaxed);
            FAILED.fetch_add(database.failed.load(Ordering::Relaxed), Ordering::Relaxed);
        });
    });
    assert!(MOST.load(Ordering::Relaxed) > 2, "some schedules had several changes in one transaction");
    assert!(FAILED.load(Ordering::Relaxed) > 100, "some schedules had a database that failed");
}

/// Three changes of one caller, one after the other.
async fn call(db: Db, database: Arc<Database>, caller: i64, announced: Announced) -> Vec<(i64, Answer)> {
    let mut answers = Vec::new();
    for step in 0..3 {
        let number = caller * 10 + step;
        let (fails, leaves, synced) =
            (thread_rng().gen_bool(0.2), thread_rng().gen_bool(0.2), thread_rng().gen_bool(0.5));
        let durability = if synced { Durability::Synced } else { Durability::Unsynced };
        let written = db.write(Keep { number, fails, durability, announced: announced.clone() });
        let answer = if leaves { written.now_or_never() } else { Some(written.await) };
        answers.push((
            number,
            match answer {
                None => Answer::None,
                Some(Ok(level)) => {
                    assert!(!fails, "a change that failed was acknowledged");
                    // After a failure the writer opens a new connection. A database in memory has only one, which stays as it was.
                    let is_as_opened = database.failed.load(Ordering::Relaxed) == 0;
                    assert!(level == 2 || !synced || !is_as_opened, "a promise was committed without a sync");
                    Answer::Done
                }
                Some(Err(error)) => {
                    let has_reason = fails || database.failed.load(Ordering::Relaxed) > 0;
                    assert!(has_reason, "a change failed that has nothing wrong: {error}");
                    Answer::Failed
                }
            },
        ));
    }
    answers
}

#[test]
fn whoever_waits_for_commits_misses_none() {
    world::check(600, || {
        block_on(async {
            let db = world::connect(Some(Database::failing(0)));
            prepare(&db).await;
            let follower = spawn({
                let db = db.clone();
                async move {
                    let mut signal = db.wake().events();
                    // It would wait for ever for a commit that it was not told of.
                    loop {
                        signal.mark_unchanged();
                        if kept(&db).await.len() == 6 {
                            return;
                        }
                        signal.changed().await.expect("the writer lives");
                    }
                }
            });
            let worker = spawn({
                let db = db.clone();
                async move {
                    while kept(&db).await.len() < 6 {
                        db.wake().wait(Signal::Work).await;
                    }
                }
            });
            let callers = (0..3).map(|caller| {
                let db = db.clone();
                spawn(async move {
                    for number in [caller, caller + 10] {
                        let announced = Announced::default();
                        let keep = Keep { number, fails: false, durability: Durability::Unsynced, announced };
                        db.write(keep).await.expect("the database works");
                    }
                })
            });
            for caller in callers.collect::<Vec<_>>() {
                caller.await.expect("the caller ends");
            }
            follower.await.expect("the follower saw all of them");
            worker.await.expect("the worker saw all of them");
        });
    });
}
