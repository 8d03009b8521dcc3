//! The strings that the cells of a workbook share.

use std::borrow::Cow;

use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::limits::Bounds;

/// All strings in one text, because there may be a million.
#[derive(Default)]
pub struct Strings {
    text: String,
    ends: Vec<usize>,
}

impl Strings {
    pub fn read(source: &str, bounds: Bounds<'_>) -> Result<Self, Error> {
        let mut strings = Self::default();
        let mut in_text = false;
        let mut elements = Elements::new(source, bounds);
        while let Some(piece) = elements.next()? {
            match piece {
                Piece::Open(element) => match element.name() {
                    "t" => in_text = true,
                    // How the words are pronounced, which repeats them.
                    "rPh" | "phoneticPr" => elements.skip()?,
                    _ => {}
                },
                Piece::Close(name) => match name.as_str() {
                    "t" => in_text = false,
                    "si" => strings.end(),
                    _ => {}
                },
                Piece::Words(words) => {
                    if in_text {
                        strings.push(&unescaped(&words));
                    }
                }
            }
        }
        Ok(strings)
    }

    pub fn push(&mut self, words: &str) {
        self.text.push_str(words);
    }

    /// The string ends; the next one follows.
    pub fn end(&mut self) {
        self.ends.push(self.text.len());
    }

    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.text[start..end])
    }
}

/// Excel writes characters that XML cannot have as `_x000D_`, and `_x005F_` for the line before such a name.
pub fn unescaped(words: &str) -> Cow<'_, str> {
    if !words.contains("_x") {
        return Cow::Borrowed(words);
    }
    let mut text = String::with_capacity(words.len());
    let mut rest = words;
    while let Some(at) = rest.find("_x") {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let code = rest.get(2..6).filter(|_| rest.as_bytes().get(6) == Some(&b'_'));
        match code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32) {
            Some(character) => {
                text.push(character);
                rest = &rest[7..];
            }
            None => {
                text.push_str("_x");
                rest = &rest[2..];
            }
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_written_as_codes_are_read() {
        assert_eq!(unescaped("one_x000D_\ntwo _x005F_x0041_"), "one\r\ntwo _x0041_");
        assert_eq!(unescaped("max_x _x12 _xé000_ _xZZZZ_ _x"), "max_x _x12 _xé000_ _xZZZZ_ _x");
    }
}
