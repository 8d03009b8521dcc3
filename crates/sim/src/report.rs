//! What many histories reached, and what none of them did.

use std::collections::BTreeMap;

use landfall_core::lifecycle::{Status, Transition};

use crate::history::Verdict;
use crate::trace::short;

/// The faults and moments that the simulator can make happen.
const MOMENTS: [&str; 27] = [
    "undisturbed",
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
    "clock jump",
    "patience over",
    "batch completed",
    "batch expired",
    "batch cancelled",
];

#[derive(Debug, Default)]
pub struct Coverage {
    reached: BTreeMap<String, u64>,
    /// The steps that were made, and whether a process died right before one of its kind.
    steps_made: BTreeMap<String, bool>,
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
        for (steps, died) in [(&verdict.made, false), (&verdict.died_before, true)] {
            for step in steps {
                *self.steps_made.entry(kind_of(step)).or_default() |= died;
            }
        }
    }

    /// A line for each thing that was reached, and the statements before which no process ever died.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.reached.iter().map(|(what, times)| format!("{times:>9}  {what}")).collect();
        let spared: Vec<&String> =
            self.steps_made.iter().filter(|(_, died)| !**died).map(|(step, _)| step).collect();
        let all = self.steps_made.len();
        lines.push(format!(
            "{all} kinds of database steps and requests; no process died before {}:",
            spared.len()
        ));
        lines.extend(spared.into_iter().map(|step| format!("           {}", short(step))));
        lines
    }

    /// What no history reached: faults and moments, states in which no file ever was, and ways from one state to another.
    pub fn never(&self) -> Vec<String> {
        let states = Status::ALL.iter().filter(|status| {
            let arrives = format!("→ {}", status.name());
            !self.reached.keys().any(|what| what.ends_with(&arrives))
        });
        let mut ways: Vec<String> = Transition::all()
            .into_iter()
            .flat_map(|way| way.from().iter().map(move |from| format!("{from} → {}", way.to())))
            .filter(|way| !self.reached.contains_key(way))
            .collect();
        ways.sort_unstable();
        ways.dedup();
        let moments = MOMENTS.iter().filter(|what| !self.reached.contains_key(**what));
        moments
            .map(|what| (*what).to_owned())
            .chain(states.map(|status| format!("a file {}", status.name())))
            .chain(ways)
            .collect()
    }
}

/// A step without what differs from one time to the next: the name of an object below its folder, and the number of rows in a statement.
fn kind_of(step: &str) -> String {
    let request = step.split_once(' ').filter(|_| step.starts_with(|first: char| first.is_ascii_lowercase()));
    if let Some((verb, object)) = request {
        return format!("{verb} {}", object.split('/').next().unwrap_or_default());
    }
    let rows = step.split_once("VALUES (").and_then(|(before, rows)| Some((before, rows.split_once(')')?)));
    let Some((before, (row, mut after))) = rows else { return step.to_owned() };
    let again = format!(",({row})");
    while let Some(rest) = after.strip_prefix(&again) {
        after = rest;
    }
    format!("{before}VALUES ({row}){after}")
}

#[cfg(test)]
mod tests {
    use super::kind_of;

    #[test]
    fn steps_of_a_kind_differ_by_ids_and_numbers_of_rows_alone() {
        assert_eq!(kind_of("put incoming/0a/4711"), kind_of("put incoming/ff/12"));
        assert_ne!(kind_of("put incoming/0a/4711"), kind_of("get incoming/0a/4711"));
        assert_ne!(kind_of("put incoming/0a/4711"), kind_of("put blobs/0a/4711"));
        assert_eq!(kind_of("get database-mark"), "get database-mark");
        let insert =
            |rows: &str| format!("INSERT INTO t (a, b) SELECT * FROM (VALUES {rows}) AS v WHERE a > 0");
        assert_eq!(kind_of(&insert("(?,?),(?,?),(?,?)")), insert("(?,?)"));
        assert_eq!(kind_of(&insert("(?,?)")), insert("(?,?)"));
        for unchanged in ["begin", "DELETE FROM t WHERE id = $1", "INSERT INTO t (a) VALUES ($1) RETURNING a"]
        {
            assert_eq!(kind_of(unchanged), unchanged);
        }
    }
}
