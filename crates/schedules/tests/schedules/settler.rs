//! The settler: endings of many files share transactions, and endings of one file may be written as one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use landfall_core::clock::Clock;
use landfall_schedules::queue::breaker::BreakerConfig;
use landfall_schedules::queue::settle::Settlement;
use landfall_schedules::queue::settler::Settler;
use landfall_schedules::world::{self, Run, faults::Database};
use landfall_store::args;
use shuttle::future::{block_on, spawn};
use shuttle::rand::{Rng, thread_rng};

static TOGETHER: AtomicUsize = AtomicUsize::new(0);
static APART: AtomicUsize = AtomicUsize::new(0);

const BREAKER: BreakerConfig = BreakerConfig {
    threshold: 5,
    timeout: Duration::from_secs(30),
    probes: 1,
    patience: Duration::from_hours(24),
};

#[test]
fn every_ending_is_written_once_and_in_its_order() {
    world::check(600, || {
        block_on(async {
            let database = Database::failing(0);
            let db = world::connect(Some(database.clone()));
            let statements = vec![
                "CREATE TABLE IF NOT EXISTS endings (id INTEGER PRIMARY KEY, file BIGINT NOT NULL, stage BIGINT NOT NULL)",
                "DELETE FROM endings",
            ];
            db.write(Run(statements)).await.expect("the database works");
            if thread_rng().gen_bool(0.5) {
                database.one_in.store(40, Ordering::Relaxed);
            }
            let settler = Settler::start(db.clone(), Clock::System, BREAKER, "worker".to_owned());
            // What the database refuses fails by itself; the others share its transactions.
            let refused: Vec<bool> = (0..4).map(|_| thread_rng().gen_bool(0.2)).collect();
            let files: Vec<_> = (0..4)
                .zip(&refused)
                .map(|(file, refused)| spawn(carry(settler.clone(), file, *refused)))
                .collect();
            let mut answers = BTreeMap::new();
            for file in files {
                answers.extend(file.await.expect("the file ends"));
            }
            database.recover();
            let lost_an_answer = database.lost_an_answer.load(Ordering::Relaxed);
            let rows: Vec<(i64, i64)> = {
                let mut tx = db.read().await.expect("a connection");
                tx.rows("SELECT file, stage FROM endings ORDER BY id", args![]).await.expect("rows")
            };
            for ((file, stage), written) in &answers {
                let times = rows.iter().filter(|row| **row == (*file, *stage)).count();
                let expected =
                    if *written { times == 1 } else { times == 0 || (lost_an_answer && times == 1) };
                assert!(expected, "{file} at {stage}: answered {written}, written {times} times");
                let is_refused = refused[usize::try_from(*file).expect("a small number")];
                let has_reason = is_refused || database.failed.load(Ordering::Relaxed) > 0;
                assert!(*written || has_reason, "{file} at {stage} was not written and has nothing wrong");
            }
            for file in 0..4 {
                let stages: Vec<i64> = rows.iter().filter(|row| row.0 == file).map(|row| row.1).collect();
                assert!(stages.is_sorted(), "the stages of {file} are in order: {stages:?}");
            }
        });
    });
    assert!(TOGETHER.load(Ordering::Relaxed) > 0, "some endings were written as one");
    assert!(APART.load(Ordering::Relaxed) > 0, "some endings came too late for that");
}

/// Ends three stages of a file, each before it knows that the last was written, as a worker does. Returns for each whether
/// the settler says that it is written.
async fn carry(settler: Settler, file: i64, is_refused: bool) -> Vec<((i64, i64), bool)> {
    let ending = |stage| Settlement { file, finished_before: Vec::new(), stage, is_refused };
    let mut answers = Vec::new();
    let mut receipt = settler.hand_in(ending(0)).await;
    let mut waiting = vec![0];
    for stage in 1..3 {
        if receipt.add(&ending(stage)) {
            TOGETHER.fetch_add(1, Ordering::Relaxed);
            waiting.push(stage);
            continue;
        }
        APART.fetch_add(1, Ordering::Relaxed);
        let written = receipt.written().await.is_ok_and(|held| held.is_some());
        answers.extend(waiting.drain(..).map(|stage| ((file, stage), written)));
        receipt = settler.hand_in(ending(stage)).await;
        waiting.push(stage);
    }
    let written = receipt.written().await.is_ok_and(|held| held.is_some());
    answers.extend(waiting.into_iter().map(|stage| ((file, stage), written)));
    answers
}
