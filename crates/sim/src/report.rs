//! What many histories reached, and what none of them did.

use std::collections::BTreeMap;

use landfall_core::lifecycle::Status;

use crate::history::Verdict;

/// The faults and moments that the simulator can make happen.
const MOMENTS: [&str; 24] = [
    "slow step",
    "database answer lost",
    "storage throttled",
    "storage answer lost",
    "conditional put refused",
    "answer to a client lost",
    "slow stage",
    "receiver failed",
    "receiver answer lost",
    "crash before a step",
    "crash after a commit",
    "crash",
    "killed by a document",
    "could not start",
    "freeze",
    "no database",
    "no storage",
    "outage",
    "full disk",
    "lock lost",
    "skew",
    "batch completed",
    "batch expired",
    "batch cancelled",
];

#[derive(Debug, Default)]
pub struct Coverage {
    reached: BTreeMap<String, u64>,
    pub histories: u64,
    pub steps: u64,
}

impl Coverage {
    pub fn add(&mut self, verdict: &Verdict) {
        self.histories += 1;
        self.steps += verdict.steps;
        for (what, times) in &verdict.reached {
            *self.reached.entry(what.clone()).or_default() += times;
        }
    }

    /// A line for each thing that was reached.
    pub fn lines(&self) -> Vec<String> {
        self.reached.iter().map(|(what, times)| format!("{times:>9}  {what}")).collect()
    }

    /// What no history reached: faults and moments, and states in which no file ever was.
    pub fn never(&self) -> Vec<String> {
        let states = Status::ALL.iter().filter(|status| {
            let arrives = format!("→ {}", status.name());
            !self.reached.keys().any(|what| what.ends_with(&arrives))
        });
        let moments = MOMENTS.iter().filter(|what| !self.reached.contains_key(**what));
        moments
            .map(|what| (*what).to_owned())
            .chain(states.map(|status| format!("a file {}", status.name())))
            .collect()
    }
}
