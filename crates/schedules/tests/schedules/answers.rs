//! What callers learnt of their changes, compared with what the database has.

use std::sync::atomic::Ordering;

use landfall_schedules::world::faults::Database;

/// What a caller learnt of its change, which keeps a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Done,
    Failed,
    /// It did not wait.
    None,
}

/// Each change was made once or not, and its answer says which. If the answer to a commit was lost, one that failed may stand.
pub fn assert_true(answers: impl IntoIterator<Item = (i64, Answer)>, kept: &[i64], database: &Database) {
    let lost_an_answer = database.lost_an_answer.load(Ordering::Relaxed);
    for (number, answer) in answers {
        let times = kept.iter().filter(|one| **one == number).count();
        let expected = match answer {
            Answer::Done => times == 1,
            Answer::Failed => times == 0 || (lost_an_answer && times == 1),
            Answer::None => times <= 1,
        };
        assert!(expected, "{number} was answered with {answer:?} and is there {times} times");
    }
}
