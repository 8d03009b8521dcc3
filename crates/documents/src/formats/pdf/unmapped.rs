//! Characters of which a PDF has only the shape: its font does not say which letters they are.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::ending::Ending;
use crate::error::{Error, ErrorKind};
use crate::missing;
use landfall_core::warning::{Warning, WarningCode};

/// A page is worth a warning if at least one character in this many is unmapped, and at least so many are. A single
/// symbol without a name is usual.
const WORTH_DIVISOR: usize = 50;
const WORTH_NUMBER: usize = 3;
/// Symbols in the area for private use are usual as bullets; if they are one character in this many, they are letters.
const PRIVATE_DIVISOR: usize = 10;

/// How many characters of a document are unmapped, and on which pages that is worth a warning.
#[derive(Debug, Default)]
pub struct Unmapped {
    unmapped: usize,
    total: usize,
    pages: BTreeSet<i64>,
    /// Pages of mostly unmapped characters, which are left to OCR.
    recognised: BTreeSet<i64>,
}

impl Unmapped {
    /// Notes a page that is left to OCR.
    pub fn recognise(&mut self, page: i64) {
        self.recognised.insert(page);
    }

    /// Counts the unmapped characters of the texts of a page.
    pub fn count<'t>(&mut self, texts: impl Iterator<Item = &'t str>, page: i64) {
        let (mut unmapped, mut alone, mut private, mut total) = (0, 0, 0, 0);
        for word in texts.flat_map(str::split_whitespace) {
            let here = word.chars().filter(|character| is_unmapped(*character)).count();
            let characters = word.chars().count();
            unmapped += here;
            alone += if is_bullet(word) { here } else { 0 };
            private += word.chars().filter(|character| is_private(*character)).count();
            total += characters;
        }
        if private * PRIVATE_DIVISOR >= total {
            unmapped += private;
        }
        self.unmapped += unmapped;
        self.total += total;
        // A symbol that stands alone is a bullet. If there is little else, it is not.
        let letters = if 2 * unmapped > total { unmapped } else { unmapped - alone };
        if letters >= WORTH_NUMBER && letters * WORTH_DIVISOR >= total {
            self.pages.insert(page);
        }
    }

    fn left_to_ocr(&self, pages: usize) -> Option<Warning> {
        let first = self.recognised.first()?;
        let which = missing::pages("page", &self.recognised, pages).to_lowercase();
        let message = format!(
            "The fonts of {which} do not say which letters their characters are. OCR reads them as pictures, which is less \
             exact. Export the file again with its fonts embedded"
        );
        Some(Warning::new(WarningCode::CharactersUnmapped, message).on_page(Some(*first)))
    }

    /// The warning about a document of so many pages; an error if most characters are unmapped.
    pub fn finish(self, pages: usize, ending: Ending) -> Result<Option<Warning>, Error> {
        let Some(first) = self.pages.first() else { return Ok(self.left_to_ocr(pages)) };
        let Self { unmapped, total, .. } = self;
        let what =
            format!("{unmapped} of {total} characters of this PDF have no mapping to letters in its fonts");
        let what_to_do = match ending {
            Ending::Whole => "Export it again with its fonts embedded, or upload a scan of it",
            Ending::BreaksOff(_) => "Upload the whole file again",
        };
        if 2 * unmapped > total {
            return Err(Error::new(
                ErrorKind::Damaged,
                format!("This PDF cannot be read: {what}. {what_to_do}"),
            ));
        }
        let which = missing::pages("page", &self.pages, pages);
        let message =
            format!("{what}. They are missing in the text of {}. {what_to_do}", which.to_lowercase());
        Ok(Some(Warning::new(WarningCode::CharactersUnmapped, message).on_page(Some(*first))))
    }
}

/// Whether most characters of these texts are unmapped.
pub fn are_most<'t>(texts: impl Iterator<Item = &'t str>) -> bool {
    let (mut unmapped, mut total) = (0, 0);
    for character in texts.flat_map(str::chars).filter(|character| !character.is_whitespace()) {
        total += 1;
        unmapped += usize::from(is_unmapped(character) || is_private(character));
    }
    2 * unmapped > total
}

/// A text without its unmapped characters.
pub fn removed(text: &str) -> Cow<'_, str> {
    if text.contains(is_unmapped) { Cow::Owned(text.replace(is_unmapped, "")) } else { Cow::Borrowed(text) }
}

/// Whether there is a letter or a digit in these texts.
pub fn has_words<'t>(mut texts: impl Iterator<Item = &'t str>) -> bool {
    texts.any(crate::has_words)
}

/// The library returns a control character, or the replacement character, for a glyph that has no mapping.
fn is_unmapped(character: char) -> bool {
    // Programs number glyphs without a name in the last two planes, which are for private use.
    matches!(character, char::REPLACEMENT_CHARACTER | '\u{F0000}'..)
        || character.is_control() && !character.is_whitespace()
}

/// Whether it is one unmapped symbol that stands alone. Some programs write it twice, to make it bold.
fn is_bullet(word: &str) -> bool {
    let mut characters = word.chars();
    let Some(first) = characters.next() else { return false };
    let is_repeated = first != char::REPLACEMENT_CHARACTER && characters.clone().all(|next| next == first);
    is_unmapped(first) && (is_repeated || characters.next().is_none())
}

fn is_private(character: char) -> bool {
    matches!(character, '\u{E000}'..='\u{F8FF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(pages: &[&str]) -> Result<Option<Warning>, Error> {
        let mut unmapped = Unmapped::default();
        for (text, page) in pages.iter().zip(1..) {
            unmapped.count(std::iter::once(*text), page);
        }
        unmapped.finish(pages.len(), Ending::Whole)
    }

    #[test]
    fn unmapped_characters_are_removed_and_pages_with_many_are_named() {
        assert_eq!(removed("e\u{FFFD}cient\n\u{3}t"), "ecient\nt");
        let good = "The harbour closes at low tide. ".repeat(10);
        let page = format!("{good}\u{FFFD}\u{FFFD}\u{FFFD}\u{1}\u{2}\u{3}");
        let warning = ending(&[&good, &page, &good]).unwrap().unwrap();
        assert_eq!((warning.code, warning.page), (WarningCode::CharactersUnmapped, Some(2)));
        assert!(warning.message.starts_with("6 of 786 characters"), "{}", warning.message);
        assert!(warning.message.contains("page 2 of 3"), "{}", warning.message);
    }

    #[test]
    fn a_single_symbol_or_some_bullets_are_no_reason_to_warn() {
        let good = "The harbour closes at low tide. ".repeat(10);
        assert_eq!(ending(&[&format!("{good}\u{FFFD}\u{FFFD}")]).unwrap(), None);
        assert_eq!(ending(&[&format!("{good}{}", "\u{F0B7}".repeat(20))]).unwrap(), None);
        assert_eq!(ending(&[&format!("{good}{}", "\u{84}\u{84} item\n".repeat(20))]).unwrap(), None);
    }

    #[test]
    fn a_document_of_mostly_unmapped_characters_is_refused() {
        for bad in ["\u{FFFD}", "\u{1}", "\u{E123}"] {
            let error = ending(&[&format!("good{}", bad.repeat(5))]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged);
            assert!(error.message().contains("5 of 9 characters"), "{error}");
        }
    }
}
