//! Which paragraphs are items of a list, and their markers.

use crate::elements::Element;
use crate::formats::numerals::Numerals;

/// Levels of a list.
pub const LEVELS: usize = 9;

/// What stands before a paragraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bullet {
    None,
    Character,
    /// The kind of number, such as `arabicPeriod`, and the first one.
    Number(String, u32),
}

impl Bullet {
    /// An element of the properties of a paragraph that says what its bullet is.
    pub fn of(element: &Element<'_>) -> Option<Self> {
        match element.name() {
            "buNone" => Some(Self::None),
            "buChar" | "buBlip" => Some(Self::Character),
            "buAutoNum" => {
                let start = element.attribute("startAt").and_then(|start| start.parse().ok()).unwrap_or(1);
                Some(Self::Number(element.attribute("type").unwrap_or_default(), start))
            }
            _ => None,
        }
    }
}

/// The bullets of each level that a shape, a layout or a master says.
#[derive(Debug, Clone, Default)]
pub struct ListStyle([Option<Bullet>; LEVELS]);

impl ListStyle {
    pub fn get(&self, level: usize) -> Option<&Bullet> {
        self.0.get(level).and_then(Option::as_ref)
    }

    pub fn set(&mut self, level: usize, bullet: Bullet) {
        if let Some(place) = self.0.get_mut(level) {
            *place = Some(bullet);
        }
    }

    /// The level of an element such as `lvl1pPr`, from 0.
    pub fn level_of(element: &str) -> Option<usize> {
        element.strip_prefix("lvl")?.strip_suffix("pPr")?.parse::<usize>().ok()?.checked_sub(1)
    }
}

/// The numbers of the paragraphs of one shape.
#[derive(Default)]
pub struct Counters([Option<(String, u32)>; LEVELS]);

impl Counters {
    /// The marker of the next paragraph; `None` if it is no item.
    pub fn marker(&mut self, level: usize, bullet: &Bullet) -> Option<String> {
        let level = level.min(LEVELS - 1);
        let before = self.0[level].take();
        self.0[level..].fill(None);
        let (kind, start) = match bullet {
            Bullet::None => return None,
            Bullet::Character => return Some("-".to_owned()),
            Bullet::Number(kind, start) => (kind, *start),
        };
        let number = match before {
            Some((same, number)) if same == *kind => number.saturating_add(1),
            _ => start,
        };
        self.0[level] = Some((kind.clone(), number));
        Some(numbered(kind, number))
    }
}

/// A number of a kind such as `alphaLcParenR`: its numerals, and the marks around it.
fn numbered(kind: &str, number: u32) -> String {
    let numerals = if kind.starts_with("alphaLc") {
        Numerals::LowerLetter
    } else if kind.starts_with("alphaUc") {
        Numerals::UpperLetter
    } else if kind.starts_with("romanLc") {
        Numerals::LowerRoman
    } else if kind.starts_with("romanUc") {
        Numerals::UpperRoman
    } else if kind.starts_with("circleNum") {
        Numerals::Circled
    } else {
        Numerals::Decimal
    };
    let number = numerals.write(number);
    if kind.ends_with("ParenBoth") {
        format!("({number})")
    } else if kind.ends_with("ParenR") {
        format!("{number})")
    } else if kind.ends_with("Plain") {
        number
    } else {
        format!("{number}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_as_powerpoint_counts_them() {
        let number = |kind: &str, start| Bullet::Number(kind.to_owned(), start);
        let mut counters = Counters::default();
        let mut marker = |level, bullet: &Bullet| counters.marker(level, bullet).unwrap_or_default();
        let arabic = number("arabicPeriod", 3);
        let letters = number("alphaLcParenR", 1);
        assert_eq!(marker(0, &arabic), "3.");
        assert_eq!(marker(1, &letters), "a)");
        assert_eq!(marker(1, &letters), "b)");
        assert_eq!(marker(0, &arabic), "4.");
        // A level begins again below the next item.
        assert_eq!(marker(1, &letters), "a)");
        assert_eq!(marker(0, &Bullet::Character), "-");
        assert_eq!(marker(0, &arabic), "3.");
        assert_eq!(marker(0, &Bullet::None), "");
        assert_eq!(marker(0, &number("romanUcParenBoth", 4)), "(IV)");
        assert_eq!(marker(99, &number("arabicPlain", u32::MAX)), "4294967295");
    }
}
