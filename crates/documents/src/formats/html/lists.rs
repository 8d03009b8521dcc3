//! The markers of list items.

use super::Attributes;
use crate::formats::numerals::Numerals;

/// An open list.
pub struct List {
    /// The next number and how it is written; `None` for a list with bullets.
    number: Option<(i64, Style)>,
    pub has_open_item: bool,
    /// Whether the page has items without a list around them.
    pub is_implied: bool,
}

#[derive(Clone, Copy)]
enum Style {
    Decimal,
    Letters,
    Roman,
    CapitalLetters,
    CapitalRoman,
}

impl List {
    pub fn new(element: &str, attributes: Attributes<'_>) -> Self {
        let style = match attributes.get("type").map(str::trim) {
            Some("a") => Style::Letters,
            Some("A") => Style::CapitalLetters,
            Some("i") => Style::Roman,
            Some("I") => Style::CapitalRoman,
            _ => style_of(attributes.get("style").unwrap_or_default()),
        };
        let start = attributes.number("start").unwrap_or(1);
        Self { number: (element == "ol").then_some((start, style)), has_open_item: false, is_implied: false }
    }

    pub fn implied() -> Self {
        Self { number: None, has_open_item: false, is_implied: true }
    }

    /// The marker of the next item.
    pub fn marker(&mut self, item: Attributes<'_>) -> String {
        let Some((number, style)) = &mut self.number else { return "-".to_owned() };
        if let Some(value) = item.number("value") {
            *number = value;
        }
        let marker = format!("{}.", written(*number, *style));
        *number = number.saturating_add(1);
        marker
    }
}

fn style_of(css: &str) -> Style {
    let has = |value: &str| css.contains(value);
    if has("lower-alpha") || has("lower-latin") {
        Style::Letters
    } else if has("upper-alpha") || has("upper-latin") {
        Style::CapitalLetters
    } else if has("lower-roman") {
        Style::Roman
    } else if has("upper-roman") {
        Style::CapitalRoman
    } else {
        Style::Decimal
    }
}

fn written(number: i64, style: Style) -> String {
    let in_style = match style {
        Style::Decimal => None,
        Style::Letters => letters(number),
        Style::CapitalLetters => letters(number).map(|letters| letters.to_uppercase()),
        Style::Roman => roman(number),
        Style::CapitalRoman => roman(number).map(|roman| roman.to_uppercase()),
    };
    in_style.unwrap_or_else(|| number.to_string())
}

/// a, b, … z, aa, ab, …
fn letters(number: i64) -> Option<String> {
    let mut number = u64::try_from(number).ok().filter(|number| *number > 0)?;
    let mut letters = Vec::new();
    while number > 0 {
        number -= 1;
        letters.push(char::from(b"abcdefghijklmnopqrstuvwxyz"[usize::try_from(number % 26).ok()?]));
        number /= 26;
    }
    Some(letters.iter().rev().collect())
}

fn roman(number: i64) -> Option<String> {
    u32::try_from(number).ok().map(|number| Numerals::LowerRoman.write(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_browsers_do() {
        let letters: Vec<String> = [1, 26, 27, 52, 703].map(|n| written(n, Style::Letters)).to_vec();
        assert_eq!(letters, ["a", "z", "aa", "az", "aaa"]);
        let roman: Vec<String> = [4, 9, 14, 1994, 4000].map(|n| written(n, Style::CapitalRoman)).to_vec();
        assert_eq!(roman, ["IV", "IX", "XIV", "MCMXCIV", "4000"]);
        assert_eq!(written(0, Style::Letters), "0");
        assert_eq!(written(-3, Style::Roman), "-3");
    }
}
