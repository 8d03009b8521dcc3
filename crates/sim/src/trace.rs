//! What happened in a history: a hash over all of it, the story for people, and what was reached.

use std::collections::BTreeMap;

/// FNV-1a, whose result depends on nothing but what it was given.
#[derive(Debug, Clone, Copy)]
pub struct Hash(u64);

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

pub struct Trace {
    hash: Hash,
    /// `None` where only the hash is wanted.
    story: Option<Vec<String>>,
    /// How often each state, transition and fault was reached.
    pub reached: BTreeMap<String, u64>,
    pub steps: u64,
    /// How often each step was made, where the story is wanted.
    counted: BTreeMap<String, u64>,
}

impl Trace {
    pub fn new(is_told: bool) -> Self {
        let hash = Hash(0xcbf2_9ce4_8422_2325);
        Self {
            hash,
            story: is_told.then(Vec::new),
            reached: BTreeMap::new(),
            steps: 0,
            counted: BTreeMap::new(),
        }
    }

    /// A database step, a request to the object store: part of the hash, too much for a story.
    pub fn note(&mut self, now: u64, process: u32, what: &str) {
        self.steps += 1;
        self.hash.add(&now.to_le_bytes());
        self.hash.add(&process.to_le_bytes());
        self.hash.add(what.as_bytes());
        if self.story.is_some() {
            let short: String =
                what.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(110).collect();
            *self.counted.entry(short).or_default() += 1;
        }
    }

    /// The steps that were made most often.
    pub fn most_often(&self) -> Vec<String> {
        let mut counted: Vec<(&String, &u64)> = self.counted.iter().collect();
        counted.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
        counted.into_iter().take(15).map(|(step, times)| format!("{times:>7} × {step}")).collect()
    }

    pub fn tell(&mut self, now: u64, line: impl FnOnce() -> String) {
        let line = line();
        self.hash.add(&now.to_le_bytes());
        self.hash.add(line.as_bytes());
        if let Some(story) = &mut self.story {
            #[expect(clippy::cast_precision_loss, reason = "it is shown with three digits")]
            story.push(format!("{:>9.3} s  {line}", now as f64 / 1_000.0));
        }
    }

    pub fn reached(&mut self, what: &str) {
        *self.reached.entry(what.to_owned()).or_default() += 1;
    }

    pub fn hash(&self) -> u64 {
        self.hash.0
    }

    pub fn story(&mut self) -> Vec<String> {
        self.story.take().unwrap_or_default()
    }
}
