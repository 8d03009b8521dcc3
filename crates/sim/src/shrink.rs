//! Makes a failing history smaller: leaves out faults, files and kinds of small faults while it still fails.

use std::sync::Arc;

use crate::forks;
use crate::history::Verdict;
use crate::plan::{Mix, Plan, Without};
use crate::trace::Detail;
use crate::world::Ground;

/// The smallest history that was found to fail in the same way, and its verdict with the story.
pub fn shrink(failed: &Verdict, ground: &Arc<Ground>) -> (Without, Verdict) {
    let plan = Plan::draw(failed.seed, &Without::default());
    let mut without = Without::default();
    let fails = |without: &Without| {
        let verdict = forks::run_one(failed.seed, without, Detail::Nothing, ground);
        verdict.violations.first().map(|first| sort_of(first))
            == failed.violations.first().map(|first| sort_of(first))
    };
    // One round more than changes anything, because a later omission may make an earlier one possible.
    for _ in 0..3 {
        let before = without.clone();
        for kind in 0..Mix::NAMES.len() {
            try_without(&mut without, |without| without.kinds.insert(kind), fails);
        }
        for fault in 0..plan.faults.len() {
            try_without(&mut without, |without| without.faults.insert(fault), fails);
        }
        for file in 0..plan.files.len() {
            try_without(&mut without, |without| without.files.insert(file), fails);
        }
        if without == before {
            break;
        }
    }
    let verdict = forks::run_one(failed.seed, &without, Detail::Story, ground);
    (without, verdict)
}

fn try_without(
    without: &mut Without,
    leave_out: impl FnOnce(&mut Without) -> bool,
    fails: impl Fn(&Without) -> bool,
) {
    let mut less = without.clone();
    if leave_out(&mut less) && fails(&less) {
        *without = less;
    }
}

/// What a violation is about, without the names and numbers in it.
fn sort_of(violation: &str) -> String {
    let is_plain = |word: &&str| word.chars().all(|c| c.is_ascii_alphabetic() || c == ':');
    violation.split_whitespace().filter(is_plain).collect::<Vec<_>>().join(" ")
}
