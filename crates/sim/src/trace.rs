//! What happened in a history: a hash over all of it, the story for people, and what was reached.

use std::collections::{BTreeMap, BTreeSet};

/// A hash whose result depends on nothing but what it was given. Eight bytes at a time: it runs over the text of each statement.
#[derive(Debug, Clone, Copy)]
pub struct Hash(u64);

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add_number(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // With the length, so that two texts differ where one goes on with zeros.
        self.add_number(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    fn add_number(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// How much is kept of a history beside its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    Nothing,
    Statements,
    Story,
}

pub struct Trace {
    hash: Hash,
    /// `None` where only the hash is wanted.
    story: Option<Vec<String>>,
    /// How often each state, transition and fault was reached.
    pub reached: BTreeMap<String, u64>,
    pub steps: u64,
    /// How often each step was made, where that is wanted.
    counted: Option<BTreeMap<String, u64>>,
    /// The steps before which a process died.
    died_before: Vec<String>,
    /// The statements of those who judge.
    looked_with: BTreeSet<String>,
}

impl Trace {
    pub fn new(detail: Detail) -> Self {
        let hash = Hash(0xcbf2_9ce4_8422_2325);
        Self {
            hash,
            story: (detail == Detail::Story).then(Vec::new),
            reached: BTreeMap::new(),
            steps: 0,
            counted: (detail >= Detail::Statements).then(BTreeMap::new),
            died_before: Vec::new(),
            looked_with: BTreeSet::new(),
        }
    }

    /// A database step, a request to the object store: part of the hash, too much for a story.
    pub fn note(&mut self, now: u64, process: u32, what: &str) {
        self.steps += 1;
        self.hash.add_number(now);
        self.hash.add_number(u64::from(process));
        self.hash.add(what.as_bytes());
        if let Some(counted) = &mut self.counted {
            match counted.get_mut(what) {
                Some(times) => *times += 1,
                None => drop(counted.insert(what.to_owned(), 1)),
            }
        }
    }

    pub fn is_counted(&self) -> bool {
        self.counted.is_some()
    }

    /// A statement of those who judge, which is no part of the history.
    pub fn looks_with(&mut self, what: &str) {
        if !self.looked_with.contains(what) {
            self.looked_with.insert(what.to_owned());
        }
    }

    pub fn statements_of_judges(&mut self) -> Vec<String> {
        std::mem::take(&mut self.looked_with).into_iter().collect()
    }

    pub fn dies_before(&mut self, what: &str) {
        if self.counted.is_some() {
            self.died_before.push(what.to_owned());
        }
    }

    /// The steps that were made, if they were counted, and those before which a process died.
    pub fn steps_made(&mut self) -> (Vec<String>, Vec<String>) {
        let made = self.counted.iter().flat_map(BTreeMap::keys).cloned().collect();
        (made, std::mem::take(&mut self.died_before))
    }

    /// The steps that were made most often.
    pub fn most_often(&self) -> Vec<String> {
        let mut counted: Vec<(&String, &u64)> = self.counted.iter().flatten().collect();
        counted.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
        let line = |(step, times): (&String, &u64)| format!("{times:>7} × {}", short(step));
        counted.into_iter().take(15).map(line).collect()
    }

    pub fn tell(&mut self, now: u64, line: impl FnOnce() -> String) {
        let line = line();
        self.hash.add_number(now);
        self.hash.add(line.as_bytes());
        if let Some(story) = &mut self.story {
            #[expect(clippy::cast_precision_loss, reason = "it is shown with three digits")]
            story.push(format!("{:>9.3} s  {line}", now as f64 / 1_000.0));
        }
    }

    pub fn reached(&mut self, what: &str) {
        match self.reached.get_mut(what) {
            Some(times) => *times += 1,
            None => drop(self.reached.insert(what.to_owned(), 1)),
        }
    }

    pub fn hash(&self) -> u64 {
        self.hash.0
    }

    pub fn story(&mut self) -> Vec<String> {
        self.story.take().unwrap_or_default()
    }
}

/// The beginning of a statement, in one line.
pub fn short(step: &str) -> String {
    step.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(110).collect()
}
