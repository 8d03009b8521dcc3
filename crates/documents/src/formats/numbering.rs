//! List numbers and bullets, counted as Word counts them.

use std::collections::{HashMap, HashSet};

use super::numerals::{self, Numerals};

/// Lists have nine levels.
pub const LEVELS: usize = 9;

/// The lists of a document, and how far each has counted.
#[derive(Default)]
pub struct Numbering {
    /// The levels of the lists, by the id of the abstract list.
    lists: HashMap<String, List>,
    /// The lists as paragraphs refer to them.
    instances: HashMap<String, Instance>,
    counters: HashMap<String, [Option<u32>; LEVELS]>,
    /// The levels that have begun at a number of their own.
    restarted: HashSet<(String, usize)>,
}

#[derive(Default)]
pub struct List {
    pub levels: [Level; LEVELS],
    /// The style whose list this one is.
    pub style_link: Option<String>,
    /// The style that has the levels of this list.
    pub levels_of: Option<String>,
}

#[derive(Clone, Default)]
pub struct Level {
    pub numerals: Numerals,
    /// Such as `%1.%2`.
    pub text: String,
    pub start: Option<u32>,
    /// The level from which on this one begins again; 0 for never.
    pub restart: Option<usize>,
    /// All numbers are written as 1, 2, 3.
    pub all_decimal: bool,
    /// The style of the paragraphs on this level.
    pub style: Option<String>,
}

#[derive(Default)]
pub struct Instance {
    pub list: String,
    pub overrides: HashMap<usize, Override>,
}

#[derive(Default)]
pub struct Override {
    pub start: Option<u32>,
    pub level: Option<Level>,
}

impl Numbering {
    /// The level of a list that belongs to a style.
    pub fn level_of_style(&self, instance: &str, style: &str) -> Option<usize> {
        let list = self.lists.get(&self.instances.get(instance)?.list)?;
        list.levels.iter().position(|level| level.style.as_deref() == Some(style))
    }

    /// Counts one paragraph of a list. Returns its marker, which is empty if the level shows none; `None` if there is
    /// no such list.
    pub fn count(&mut self, instance: &str, level: usize) -> Option<String> {
        let level = level.min(LEVELS - 1);
        let of_instance = self.instances.get(instance)?;
        let list = self.lists.get(&of_instance.list)?;
        let levels: Vec<&Level> = (0..LEVELS)
            .map(|at| {
                of_instance.overrides.get(&at).and_then(|o| o.level.as_ref()).unwrap_or(&list.levels[at])
            })
            .collect();
        let counters = self.counters.entry(of_instance.list.clone()).or_default();
        let start = |at: usize| levels[at].start.unwrap_or(1);
        // A level that was passed over counts as begun.
        for (above, counter) in counters.iter_mut().enumerate().take(level) {
            counter.get_or_insert_with(|| start(above));
        }
        let restart = of_instance.overrides.get(&level).and_then(|overridden| overridden.start);
        counters[level] = match (restart, counters[level]) {
            (Some(number), _) if self.restarted.insert((instance.to_owned(), level)) => Some(number),
            (_, Some(number)) => Some(number.saturating_add(1)),
            (_, None) => Some(start(level)),
        };
        for deeper in level + 1..LEVELS {
            if levels[deeper].restart.is_none_or(|from| level < from) {
                counters[deeper] = None;
            }
        }
        let numbers: Vec<u32> = (0..LEVELS).map(|at| counters[at].unwrap_or_else(|| start(at))).collect();
        Some(levels[level].marker(&numbers, &levels))
    }

    /// A list as paragraphs refer to it.
    pub fn instance(&mut self, id: &str) -> &mut Instance {
        self.instances.entry(id.to_owned()).or_default()
    }

    pub fn list(&mut self, id: &str) -> &mut List {
        self.lists.entry(id.to_owned()).or_default()
    }

    /// A list may take its levels from the list of a style.
    pub fn resolve_links(&mut self) {
        let by_style: HashMap<String, [Level; LEVELS]> = self
            .lists
            .values()
            .filter_map(|list| Some((list.style_link.clone()?, list.levels.clone())))
            .collect();
        for list in self.lists.values_mut() {
            if let Some(levels) = list.levels_of.as_ref().and_then(|style| by_style.get(style)) {
                list.levels.clone_from(levels);
            }
        }
    }
}

impl Level {
    fn marker(&self, numbers: &[u32], levels: &[&Self]) -> String {
        if self.numerals == Numerals::Bullet {
            return if self.text.trim().is_empty() { String::new() } else { numerals::BULLET.to_owned() };
        }
        let mut marker = String::new();
        let mut rest = self.text.as_str();
        while let Some(at) = rest.find('%') {
            marker.push_str(&rest[..at]);
            let digit = rest[at + 1..].chars().next().and_then(|digit| digit.to_digit(10));
            match digit.and_then(|digit| usize::try_from(digit).ok()) {
                Some(digit @ 1..=LEVELS) => {
                    let numerals =
                        if self.all_decimal { Numerals::Decimal } else { levels[digit - 1].numerals };
                    marker.push_str(&numerals.write(numbers[digit - 1]));
                    rest = &rest[at + 2..];
                }
                _ => {
                    marker.push('%');
                    rest = &rest[at + 1..];
                }
            }
        }
        marker.push_str(rest);
        marker.trim().to_owned()
    }
}
