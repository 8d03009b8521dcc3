//! The states and the transitions between them.

use std::collections::BTreeSet;

use landfall_core::lifecycle::{Stage, Status, Transition};
use proptest::prelude::*;

fn edges() -> BTreeSet<(Status, Status)> {
    Transition::all().iter().flat_map(|move_| move_.from().iter().map(|from| (*from, move_.to()))).collect()
}

#[test]
fn the_document_draws_exactly_the_existing_transitions() {
    let document = include_str!("../../docs/lifecycle.md");
    let drawn: BTreeSet<(Status, Status)> = document
        .lines()
        .filter_map(|line| line.trim().split_once(" --> "))
        // The text after a colon is the label of the transition.
        .map(|(from, to)| (from, to.split(':').next().unwrap_or(to)))
        .filter(|(from, to)| *from != "[*]" && *to != "[*]")
        .map(|(from, to)| (from.parse().expect("a state"), to.parse().expect("a state")))
        .collect();
    assert_eq!(drawn, edges());
}

#[test]
fn every_state_leads_to_a_terminal_one_and_only_users_lead_out_of_those() {
    for status in Status::ALL {
        let mut reached = BTreeSet::from([status]);
        loop {
            let more: BTreeSet<_> =
                edges().into_iter().filter(|(from, _)| reached.contains(from)).map(|(_, to)| to).collect();
            if more.is_subset(&reached) {
                break;
            }
            reached.extend(more);
        }
        assert!(reached.iter().any(|status| status.is_terminal()), "{status} is a dead end");
    }
    for transition in Transition::all() {
        let leaves_rest = transition.from().iter().any(|from| from.is_terminal());
        assert_eq!(
            leaves_rest,
            matches!(transition, Transition::Revive | Transition::Delete),
            "{transition:?}"
        );
    }
}

#[test]
fn nothing_leaves_deleted_and_nothing_is_ready_without_embedding() {
    assert!(edges().iter().all(|(from, _)| *from != Status::Deleted));
    let into_ready: Vec<_> = edges().into_iter().filter(|(_, to)| *to == Status::Ready).collect();
    assert_eq!(into_ready, [(Status::Embedding, Status::Ready)]);
}

proptest! {
    #[test]
    fn a_random_walk_follows_the_table(steps in proptest::collection::vec(0..Transition::all().len(), 1..200)) {
        let all = Transition::all();
        let mut status = Status::Registered;
        let mut finished: Vec<Stage> = Vec::new();
        for step in steps {
            let transition = all[step];
            match status.apply(transition) {
                Ok(next) => {
                    prop_assert!(edges().contains(&(status, next)));
                    if let Transition::Advance(stage) | Transition::HandOver(stage) = transition {
                        finished.push(stage);
                    }
                    // Ready means that the last finished stage is the last stage of the pipeline.
                    if next == Status::Ready {
                        prop_assert_eq!(finished.last(), Some(&Stage::Embed));
                    }
                    status = next;
                }
                Err(invalid) => {
                    prop_assert!(!transition.from().contains(&status));
                    prop_assert_eq!(invalid.from, status);
                }
            }
        }
    }
}

#[test]
fn the_document_lists_exactly_the_existing_failures() {
    use landfall_core::failure::Code;
    let document = include_str!("../../docs/errors.md");
    let listed: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = Code::ALL
        .iter()
        .map(|code| {
            let circuit = code.service().map_or(String::new(), |service| format!("{} ", service.name()));
            let (retried, class) = (code.retry().label(), code.class().name());
            format!("| `{code}` | {retried} | `{class}` | {circuit}| {} |", code.meaning())
        })
        .collect();
    assert_eq!(listed, expected);
}
