//! Changes that wait for the same row are made together, by whichever task came first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use landfall_schedules::world::{self, Run, faults::Database};
use landfall_store::{Db, Error, Joint, Tx, args};
use shuttle::future::{block_on, spawn};
use shuttle::rand::{Rng, thread_rng};

use crate::answers::{self, Answer};

/// Keeps a number. One that is refused refuses all that are made with it.
struct Keep {
    number: i64,
    is_refused: bool,
    most: Arc<AtomicUsize>,
}

impl Joint for Keep {
    /// Its own number.
    type Output = i64;

    fn key(&self) -> &'static str {
        "numbers"
    }

    async fn apply_all(these: &[&Self], tx: &mut Tx) -> Result<Vec<i64>, Error> {
        these[0].most.fetch_max(these.len(), Ordering::Relaxed);
        for one in these {
            tx.execute("INSERT INTO together (number) VALUES ($1)", args![one.number]).await?;
            if one.is_refused {
                return Err(Error::Internal("this change is refused".to_owned()));
            }
        }
        Ok(these.iter().map(|one| one.number).collect())
    }
}

async fn kept(db: &Db) -> Vec<i64> {
    let mut tx = db.read().await.expect("a connection");
    let rows: Vec<(i64,)> = tx.rows("SELECT number FROM together", args![]).await.expect("rows");
    rows.into_iter().map(|(number,)| number).collect()
}

#[test]
fn every_change_is_made_once_or_not_and_its_answer_is_true() {
    static MOST: AtomicUsize = AtomicUsize::new(0);
    static FAILED: AtomicUsize = AtomicUsize::new(0);
    world::check(600, || {
        block_on(async {
            let database = Database::failing(0);
            let db = world::connect(Some(database.clone()));
            let tables = vec!["CREATE TABLE IF NOT EXISTS together (number BIGINT)", "DELETE FROM together"];
            db.write(Run(tables)).await.expect("the database works");
            if thread_rng().gen_bool(0.5) {
                database.one_in.store(25, Ordering::Relaxed);
            }
            let most = Arc::new(AtomicUsize::new(0));
            let callers: Vec<_> = (0..5)
                .map(|caller| spawn(call(db.clone(), database.clone(), caller, most.clone())))
                .collect();
            let mut answers = Vec::new();
            for caller in callers {
                answers.extend(caller.await.expect("the caller ends"));
            }
            database.recover();
            // What nobody waits for any more is before this one in the queue.
            let last = Keep { number: -1, is_refused: false, most: most.clone() };
            assert_eq!(db.write_jointly(last).await.expect("the database works again"), -1);
            answers::assert_true(answers, &kept(&db).await, &database);
            MOST.fetch_max(most.load(Ordering::Relaxed), Ordering::Relaxed);
            FAILED.fetch_add(database.failed.load(Ordering::Relaxed), Ordering::Relaxed);
        });
    });
    assert!(MOST.load(Ordering::Relaxed) > 2, "some schedules had several changes made together");
    assert!(FAILED.load(Ordering::Relaxed) > 100, "some schedules had a database that failed");
}

/// Three changes of one caller, one after the other.
async fn call(db: Db, database: Arc<Database>, caller: i64, most: Arc<AtomicUsize>) -> Vec<(i64, Answer)> {
    let mut answers = Vec::new();
    for step in 0..3 {
        let number = caller * 10 + step;
        let (is_refused, leaves) = (thread_rng().gen_bool(0.1), thread_rng().gen_bool(0.2));
        let written = db.write_jointly(Keep { number, is_refused, most: most.clone() });
        let answer = if leaves { written.now_or_never() } else { Some(written.await) };
        answers.push((
            number,
            match answer {
                None => Answer::None,
                Some(Ok(output)) => {
                    assert_eq!(output, number, "each gets its own output");
                    assert!(!is_refused, "a change that was refused was acknowledged");
                    Answer::Done
                }
                Some(Err(error)) => {
                    let has_reason = is_refused || database.failed.load(Ordering::Relaxed) > 0;
                    assert!(has_reason, "a change failed that has nothing wrong: {error}");
                    Answer::Failed
                }
            },
        ));
    }
    answers
}
