//! The simulator itself: it repeats a history exactly, finds faults that are brought back, and finds none where there is none.
//!
//! It runs as a program, because each history needs a process with one thread.

use std::process::{Command, Output};

use landfall_core::mutants::Mutant;

/// How many histories the tests run: what takes an unoptimised build some seconds. `LANDFALL_TEST_SIMULATED` asks for another number.
const SEEDS: &str = "100";
/// Within so many seeds each fault must be found.
const MOST_SEEDS: &str = "400";
/// The faults that the simulator is known to find, each with the seed from which on it is looked for.
const FOUND: [(Mutant, u32); 15] = [
    (Mutant::SuspicionWithoutIsolation, 1),
    (Mutant::KeyIgnored, 1),
    (Mutant::SkippedEvent, 1),
    (Mutant::LostWake, 1),
    (Mutant::DeadWorkerKept, 1),
    (Mutant::ForgottenRefund, 1),
    (Mutant::SkippedDelivery, 1),
    (Mutant::StaleBatch, 1),
    (Mutant::GhostInIndex, 1),
    (Mutant::DoubleRefund, 1),
    (Mutant::DeleteBeforeRow, 1),
    (Mutant::ForgottenUpload, 1),
    (Mutant::ChargedOutage, 1),
    // One in a thousand histories shows these, so the search begins shortly before seeds that are known to.
    (Mutant::UnfencedSettle, 4_300),
    (Mutant::UnboundedExcuse, 3_600),
];

fn simulate(options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_landfall-sim")).args(options).output().expect("the simulator runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_seed_repeats_its_history_exactly() {
    for seed in ["3", "5", "6"] {
        let (one, other) = (simulate(&["--seed", seed]), simulate(&["--seed", seed]));
        assert_eq!(said(&one), said(&other), "seed {seed}");
        assert!(said(&one).contains("hash "), "{}", said(&one));
    }
}

/// The lines of a run, each with a seed and its hash.
fn hashes(options: &[&str]) -> Vec<String> {
    let output = simulate(options);
    assert!(output.status.success(), "{}", said(&output));
    said(&output).lines().filter(|line| line.starts_with("seed ")).map(str::to_owned).collect()
}

/// A block is 32 seeds: these are one and the beginning of the next.
#[test]
fn a_history_is_the_same_alone_and_among_others() {
    let mut among_others = hashes(&["--first", "32", "--seeds", "40", "--jobs", "1", "--brief"]);
    among_others.sort_unstable();
    assert_eq!(among_others.len(), 40);
    // From the middle of a block on, and two blocks at once.
    let from_the_middle = hashes(&["--first", "45", "--seeds", "27", "--jobs", "2", "--brief"]);
    assert_eq!(from_the_middle.len(), 27);
    let alone =
        ["32", "33", "39", "47", "56", "63", "64", "69"].map(|seed| hashes(&["--seed", seed, "--brief"]));
    for line in from_the_middle.iter().chain(alone.iter().flatten()) {
        assert!(among_others.binary_search(line).is_ok(), "{line} is not in {among_others:?}");
    }
}

#[test]
fn histories_that_once_failed_do_not_fail_again() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/regressions");
    let output = simulate(&["--regressions", folder]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn without_a_fault_in_the_server_none_is_found() {
    let seeds = std::env::var("LANDFALL_TEST_SIMULATED").unwrap_or_else(|_| SEEDS.to_owned());
    let output = simulate(&["--seeds", &seeds, "--no-shrinking", "--keep-going"]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn each_fault_that_is_brought_back_is_found() {
    let missed: Vec<&str> = FOUND
        .iter()
        .map(|(mutant, first)| (mutant.name(), first.to_string()))
        .filter(|(name, first)| {
            let options =
                ["--mutant", *name, "--first", first.as_str(), "--seeds", MOST_SEEDS, "--no-shrinking"];
            simulate(&options).status.code() != Some(1)
        })
        .map(|(name, _)| name)
        .collect();
    assert!(missed.is_empty(), "the simulator does not find {missed:?}");
}
