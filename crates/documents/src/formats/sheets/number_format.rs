//! Numbers as Excel shows them: the format codes of cells, such as `#,##0.00;[Red]-#,##0.00`, `[h]:mm` or `# ?/?`.

mod date;
mod decimal;
mod number;
mod parse;

use parse::{Condition, Kind, Section};

/// A longer code is not one that Excel writes.
const MAX_CODE: usize = 1_000;

/// The epoch of dates: most workbooks count the days from 1900, some from 1904.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Epoch {
    #[default]
    Year1900,
    Year1904,
}

/// A format code, ready to be used for any number of cells.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberFormat {
    sections: Vec<Section>,
}

impl NumberFormat {
    pub fn new(code: &str) -> Self {
        if code.len() > MAX_CODE {
            return Self::general();
        }
        Self { sections: parse::sections(code) }
    }

    /// What a cell without a format has.
    pub fn general() -> Self {
        Self { sections: Vec::new() }
    }

    /// One of the formats that a workbook does not spell out.
    pub fn built_in(id: u32) -> Self {
        built_in_code(id).map_or_else(Self::general, Self::new)
    }

    pub fn number(&self, value: f64, epoch: Epoch) -> String {
        if !value.is_finite() {
            return String::new();
        }
        let Some((section, shows_sign)) = self.section_of(value) else { return number::general(value) };
        let text = match section.kind {
            Kind::General => section.around(&number::general(if shows_sign { value } else { value.abs() })),
            Kind::Text => section.around(&number::general(value)),
            // A day that the calendar does not have is shown as its number.
            Kind::Date => date::format(section, value, epoch).unwrap_or_else(|| number::general(value)),
            Kind::Number => number::format(section, value.abs(), shows_sign && value < 0.0),
        };
        text.trim().to_owned()
    }

    /// Words in a cell; most formats leave them as they are.
    pub fn words(&self, words: &str) -> Option<String> {
        let section = match &self.sections[..] {
            [.., section] if section.kind == Kind::Text => section,
            _ => return None,
        };
        (section.tokens.len() > 1).then(|| section.around(words))
    }

    /// The section for a number, and whether a minus is shown. The section for negative numbers shows its own.
    fn section_of(&self, value: f64) -> Option<(&Section, bool)> {
        // With four sections, or with `@` in it, the last one is for words.
        let is_for_words = |(at, section): (usize, &Section)| at == 3 || at > 0 && section.kind == Kind::Text;
        let sections: Vec<&Section> = self
            .sections
            .iter()
            .enumerate()
            .filter(|section| !is_for_words(*section))
            .map(|(_, section)| section)
            .collect();
        if sections.iter().any(|section| section.condition.is_some()) {
            return sections
                .iter()
                .find(|section| section.condition.is_none_or(|condition| condition.holds(value)))
                .or(sections.last())
                .map(|section| (*section, !section.condition.is_some_and(Condition::is_of_negatives)));
        }
        match sections[..] {
            [] => None,
            [only] => Some((only, true)),
            [_, negative, ..] if value < 0.0 => Some((negative, false)),
            [_, _, zero, ..] if value == 0.0 => Some((zero, false)),
            [positive, ..] => Some((positive, false)),
        }
    }
}

/// The codes that Excel has for the ids below 164. Those of the short date are of the United States.
fn built_in_code(id: u32) -> Option<&'static str> {
    Some(match id {
        1 => "0",
        2 => "0.00",
        3 => "#,##0",
        4 => "#,##0.00",
        5 | 6 => "$#,##0_);($#,##0)",
        7 | 8 => "$#,##0.00_);($#,##0.00)",
        9 => "0%",
        10 => "0.00%",
        11 => "0.00E+00",
        12 => "# ?/?",
        13 => "# ??/??",
        14 => "m/d/yyyy",
        15 => "d-mmm-yy",
        16 => "d-mmm",
        17 => "mmm-yy",
        18 => "h:mm AM/PM",
        19 => "h:mm:ss AM/PM",
        22 => "m/d/yyyy h:mm",
        // Those of East Asia, whose eras and names depend on the language of the program.
        27..=31 | 36 | 50..=54 | 57 | 58 => "yyyy/m/d",
        20 | 32 | 34 | 55 => "h:mm",
        21 | 33 | 35 | 56 => "h:mm:ss",
        37 | 38 => "#,##0_);(#,##0)",
        39 | 40 => "#,##0.00_);(#,##0.00)",
        41 => "_(* #,##0_);_(* (#,##0);_(* \"-\"_);_(@_)",
        42 => "_($* #,##0_);_($* (#,##0);_($* \"-\"_);_(@_)",
        43 => "_(* #,##0.00_);_(* (#,##0.00);_(* \"-\"??_);_(@_)",
        44 => "_($* #,##0.00_);_($* (#,##0.00);_($* \"-\"??_);_(@_)",
        45 => "mm:ss",
        46 => "[h]:mm:ss",
        47 => "mm:ss.0",
        48 => "##0.0E+0",
        49 => "@",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
