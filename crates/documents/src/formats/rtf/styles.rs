//! The styles of an RTF, which are told by their names.

use std::collections::HashMap;

use super::writer::{Properties, Role};

/// How many styles may inherit from one another. A longer chain is a cycle.
const MAX_CHAIN: usize = 16;

#[derive(Default)]
pub struct Styles(HashMap<i32, Style>);

#[derive(Debug, Default, Clone)]
pub struct Style {
    pub based_on: Option<i32>,
    pub outline_level: Option<i32>,
    pub name: String,
}

impl Styles {
    pub fn insert(&mut self, number: i32, mut style: Style) {
        style.name = style.name.trim().trim_end_matches(';').trim().to_lowercase();
        self.0.insert(number, style);
    }

    /// What a paragraph is by its properties and its style.
    pub fn role(&self, properties: Properties) -> Role {
        let style = self.0.get(&properties.style);
        let next = |style: &&Style| self.0.get(&style.based_on?);
        let mut chain = std::iter::successors(style, next).take(MAX_CHAIN);
        let heading = match properties.outline_level {
            Some(level) => level_of_outline(level),
            None => chain.find_map(|style| {
                level_of_name(&style.name).or_else(|| style.outline_level.and_then(level_of_outline))
            }),
        };
        let is_quote = style
            .is_some_and(|style| matches!(style.name.as_str(), "quote" | "intense quote" | "quotations"));
        Role { heading, is_quote }
    }
}

fn level_of_outline(level: i32) -> Option<u8> {
    u8::try_from(level).ok().filter(|level| *level < 9).map(|level| level + 1)
}

fn level_of_name(name: &str) -> Option<u8> {
    if name == "title" {
        return Some(1);
    }
    name.strip_prefix("heading ").and_then(|level| level.trim().parse().ok())
}
