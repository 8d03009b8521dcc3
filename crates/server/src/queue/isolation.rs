//! A file that may be what kills its workers is worked on alone.
//!
//! When a worker dies, every file in its hand may be the cause. From then on each worker notes when it begins to work on
//! one of them. A file that was worked on at two deaths is claimed alone: the worker claims nothing more, finishes what it
//! has, and then takes this one file. If it dies again, this file may be the cause; after two such deaths the file fails.
//!
//! The death of a worker that worked on no such file shows that something else kills the workers: the deaths before it do
//! not count, nor does that of a worker which works on such a file at that time. Of workers that are found dead at once,
//! those without such a file are rescued first, so that the others are excused. Workers with such files do not excuse
//! each other: two documents that kill would never fail. A stage that is finished clears the file.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use landfall_core::clock::{Time, to_delta};
use landfall_core::failure::{Code, Failure};
use landfall_core::mutants::{self, Mutant};
use landfall_store::{Durability, Error, Tx, Write};
use uuid::Uuid;

use crate::records::file::File;
use crate::records::files::held;
use crate::records::moves::Death;

/// A file that was worked on at so many deaths is claimed alone.
const DEATHS_BEFORE_ISOLATION: i64 = 2;
/// A file fails after so many deaths of workers that worked on nothing else.
const DEATHS_ALONE: i64 = 2;
/// A file that is worked on alone fails after so many deaths in all, whatever excuses them. No file goes on for ever. It is
/// far more than processes that are killed again and again bring upon an innocent file.
const DEATHS_AT_MOST: i64 = 50;
/// How long a file waits after such a death before it is taken alone again.
pub const DELAY_ALONE: Duration = Duration::from_secs(5);
/// How long a worker does nothing but files that it works on alone, and then how long it does the others.
const TURN: Duration = Duration::from_secs(10);

/// What the death of the worker that holds this file says about it.
pub fn death_of_holder(file: &File) -> Death {
    if mutants::on(Mutant::SuspicionWithoutIsolation) {
        return Death { in_hand: 1, at_work: 1, alone: 1, ..Death::default() };
    }
    let at_work = i64::from(file.begun);
    Death {
        in_hand: 1,
        at_work,
        alone: if file.is_alone { at_work } else { 0 },
        isolates: file.deaths + at_work >= DEATHS_BEFORE_ISOLATION,
    }
}

/// Why a file fails when its worker has died, if it does.
pub fn verdict(file: &File, death: &Death) -> Option<Failure> {
    let message = if file.deaths_alone + death.alone >= DEATHS_ALONE {
        "The worker died twice while it worked on this file alone, so this file is what kills it. Retry it after an \
         upgrade, or upload the document in another form"
            .to_owned()
    } else if file.is_alone && file.deaths + death.at_work >= DEATHS_AT_MOST {
        format!(
            "{DEATHS_AT_MOST} workers died while they worked on this file. Others died at the same time, so it may not be the \
             cause. Retry it when the workers run steadily, or upload the document in another form"
        )
    } else {
        return None;
    };
    Some(Failure::new(Code::WorkerLost, message))
}

/// Notes that a worker begins to work on a file that another worker died with.
pub struct NoteBegun {
    pub file: Uuid,
    pub claim: Uuid,
}

impl Write for NoteBegun {
    /// Whether the claim still holds the file.
    type Output = bool;

    fn durability(&self) -> Durability {
        // A power cut that loses the note is no death that the file caused.
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        held::note_begun(tx, self.file, self.claim).await
    }
}

/// Whose turn it is in this worker: many files at once, or one alone.
#[derive(Default)]
pub struct Isolation(Mutex<State>);

enum State {
    /// Files share the worker. Before this time no file is taken alone.
    Shared { until: Option<Time> },
    /// A file waits to be taken alone, and nothing else is claimed.
    Draining { since: Option<Time> },
    /// One file is worked on alone.
    Alone { since: Time },
}

impl Default for State {
    fn default() -> Self {
        Self::Shared { until: None }
    }
}

/// What the next claim may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Many,
    OneAlone,
    /// Only look at what blocks the stages.
    Nothing,
}

impl Isolation {
    pub fn next(&self, nothing_in_hand: bool) -> Next {
        match *self.state() {
            State::Shared { .. } => Next::Many,
            State::Draining { .. } if nothing_in_hand => Next::OneAlone,
            State::Draining { .. } | State::Alone { .. } => Next::Nothing,
        }
    }

    /// Whether the worker would make way for a file that waits to be taken alone.
    pub fn would_make_way(&self, now: Time) -> bool {
        matches!(*self.state(), State::Shared { until } if until.is_none_or(|until| now >= until))
    }

    /// A claim saw that a file waits to be taken alone. Returns whether the worker now makes way for it.
    pub fn one_waits(&self, now: Time) -> bool {
        let makes_way = self.would_make_way(now);
        if makes_way {
            *self.state() = State::Draining { since: None };
        }
        makes_way
    }

    /// A claim saw that no file waits to be taken alone any more. Returns whether the worker had made way for one.
    pub fn none_waits(&self) -> bool {
        let mut state = self.state();
        let made_way = matches!(*state, State::Draining { .. });
        if made_way {
            *state = State::default();
        }
        made_way
    }

    /// A claim for a file alone ended, with one or with none.
    pub fn claimed(&self, one: bool, now: Time) {
        let mut state = self.state();
        let since = if let State::Draining { since: Some(since) } = *state { since } else { now };
        // What is not claimed now is not for this worker, or is blocked.
        *state =
            if one { State::Alone { since } } else { State::Shared { until: Some(now + to_delta(TURN)) } };
    }

    /// The file that was worked on alone has finished a stage, or has left.
    pub fn over(&self, now: Time) {
        let mut state = self.state();
        if let State::Alone { since } = *state {
            *state = if now - since < to_delta(TURN) {
                State::Draining { since: Some(since) }
            } else {
                State::Shared { until: Some(now + to_delta(TURN)) }
            };
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics while it holds this")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_timestamp(1_000_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn a_worker_makes_way_takes_one_alone_and_then_others_have_their_turn() {
        let isolation = Isolation::default();
        assert_eq!(isolation.next(false), Next::Many);
        assert!(isolation.one_waits(at(0)));
        assert_eq!(isolation.next(false), Next::Nothing);
        assert_eq!(isolation.next(true), Next::OneAlone);
        isolation.claimed(true, at(1));
        assert_eq!(isolation.next(false), Next::Nothing);
        isolation.over(at(2));
        assert_eq!(isolation.next(true), Next::OneAlone, "more of them may wait");
        isolation.claimed(true, at(2));
        isolation.over(at(30));
        assert_eq!(isolation.next(true), Next::Many);
        assert!(!isolation.one_waits(at(39)), "the others have their turn");
        assert!(isolation.one_waits(at(40)));
    }

    #[test]
    fn a_file_that_this_worker_cannot_take_does_not_hold_up_the_others() {
        let isolation = Isolation::default();
        isolation.one_waits(at(0));
        isolation.claimed(false, at(0));
        assert_eq!(isolation.next(true), Next::Many);
        assert!(!isolation.one_waits(at(1)));
    }
}
