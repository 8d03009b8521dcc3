//! The sentences about what is missing of a document, and when too much is missing.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};
use crate::reading::Recognised;
use landfall_core::text::Extracted;
use landfall_core::warning::{Warning, WarningCode};

/// The most ranges of pages in a message.
const MAX_RANGES: usize = 8;
/// The most names in a message, and the most characters of one.
const MAX_NAMES: usize = 5;
const MAX_NAME: usize = 60;

/// How many pages a document has, and how many of them were not read. All are 0 for a document without pages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCount {
    /// All pages.
    pub total: usize,
    /// Pages that are damaged or missing.
    pub unreadable: usize,
    /// Pages that only OCR could read, and whose pictures are not among those of the reading.
    pub without_picture: usize,
}

impl PageCount {
    /// Whether less than half of the pages were read, if these are missing in addition.
    pub(crate) fn is_mostly_missing(self, in_addition: usize) -> bool {
        2 * self.total.saturating_sub(self.unreadable + in_addition) < self.total
    }
}

/// `Page 3 of 20`, or `Pages 3–7, 9 of 20`. `what` is the word for one page.
pub(crate) fn pages(what: &str, numbers: &BTreeSet<i64>, total: usize) -> String {
    let ranges = ranges(numbers);
    let several = numbers.len() != 1;
    let mut first = what.chars();
    let what =
        first.next().map(|c| c.to_uppercase().collect::<String>() + first.as_str()).unwrap_or_default();
    format!("{what}{} {} of {total}", if several { "s" } else { "" }, shortened(&ranges, MAX_RANGES))
}

fn ranges(numbers: &BTreeSet<i64>) -> Vec<String> {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let text = |(first, last)| if first == last { format!("{first}") } else { format!("{first}–{last}") };
    ranges.into_iter().map(text).collect()
}

/// `1 attachment`, `2 attachments`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The verb of a sentence about so many.
pub(crate) fn were(number: usize) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

/// `a.zip, b.exe and 3 more`.
pub(crate) fn names(names: &[String]) -> String {
    let short = |name: &String| match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.clone(),
    };
    shortened(&names.iter().map(short).collect::<Vec<_>>(), MAX_NAMES)
}

fn shortened(items: &[String], most: usize) -> String {
    match items.len().checked_sub(most) {
        None | Some(0) => items.join(", "),
        Some(more) => format!("{} and {more} more", items[..most].join(", ")),
    }
}

/// Pages, slides or sheets that are damaged; an error if that is most of them. `what` is the word for one of them.
pub(crate) fn unreadable_pages(
    what: &str,
    unreadable: &BTreeSet<i64>,
    count: PageCount,
) -> Result<Option<Warning>, Error> {
    let Some(first) = unreadable.first() else { return Ok(None) };
    let which = pages(what, unreadable, count.total);
    if count.is_mostly_missing(0) {
        let message = format!(
            "This file is damaged: {} cannot be read. Export it again from the program that made it",
            which.to_lowercase()
        );
        return Err(Error::new(ErrorKind::Damaged, message));
    }
    let (is, their) = if unreadable.len() == 1 { ("is", "its") } else { ("are", "their") };
    let message = format!(
        "{which} {is} damaged, so {their} text is missing. Export the file again from the program that made it, and \
         upload it again"
    );
    Ok(Some(Warning::new(WarningCode::PagesUnreadable, message).on_page(Some(*first))))
}

/// Files or objects in the document that are not read, such as attachments. `what` is the word for one of them.
pub(crate) fn parts_not_read(what: &str, number: usize, of_names: &[String]) -> Option<Warning> {
    let named = if of_names.is_empty() { String::new() } else { format!(": {}", names(of_names)) };
    let message = format!(
        "{} in this file {} not read{named}. To find what is in there, upload it as a file of its own",
        count(number, what),
        were(number)
    );
    (number > 0).then(|| Warning::new(WarningCode::PartsNotRead, message))
}

/// Pictures that OCR did not read, of a document that is made of them. Pictures beside much text are illustrations.
pub(crate) fn pictures_not_recognised(number: usize, text: &str, recognised: &Recognised) -> Option<Warning> {
    const CHARACTERS_PER_PICTURE: usize = 400;
    let characters = text.chars().filter(|character| !character.is_whitespace()).count();
    if characters >= number.saturating_mul(CHARACTERS_PER_PICTURE) {
        return None;
    }
    let what_to_do = match recognised {
        Recognised::NotInstalled => {
            "The program tesseract, which reads the text in pictures, is not installed on the server: ask its operator"
        }
        Recognised::Words(_) => {
            "OCR failed on it, or its time was over. Split the file, or ask the operator for a longer EXTRACT_TIMEOUT_MS"
        }
    };
    let message = format!(
        "{} in this file {} not read, so the words in there are missing. {what_to_do}",
        count(number, "picture"),
        were(number)
    );
    Some(Warning::new(WarningCode::OcrIncomplete, message))
}

/// Replacement characters in the text; an error if they are most of it.
pub(crate) fn undecodable(extracted: &Extracted) -> Result<Option<Warning>, Error> {
    let bad = extracted.text.matches(char::REPLACEMENT_CHARACTER).count();
    if bad == 0 {
        return Ok(None);
    }
    let total = extracted.text.chars().filter(|c| !c.is_whitespace()).count();
    let what = format!("{bad} of {total} characters of this file could not be decoded");
    if 2 * bad > total {
        return Err(Error::new(ErrorKind::Damaged, format!("{what}. Save it as UTF-8 and upload it again")));
    }
    let message = format!("{what} and are shown as �. Save it as UTF-8 and upload it again");
    Ok(Some(Warning::new(WarningCode::CharactersUnmapped, message)))
}

/// A file that breaks off, of a format that does not say how much is missing.
pub(crate) fn truncated(what: &str) -> Warning {
    Warning::new(
        WarningCode::Truncated,
        format!(
            "This {what} breaks off before its end, so what comes after that is missing. Upload the whole file again"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_named_in_ranges() {
        let pages = |numbers: &[i64]| super::pages("page", &numbers.iter().copied().collect(), 20);
        assert_eq!(pages(&[3]), "Page 3 of 20");
        assert_eq!(pages(&[3, 4, 5, 6, 7, 9]), "Pages 3–7, 9 of 20");
        let odd: Vec<i64> = (0..10).map(|n| 2 * n + 1).collect();
        assert_eq!(pages(&odd), "Pages 1, 3, 5, 7, 9, 11, 13, 15 and 2 more of 20");
    }

    #[test]
    fn parts_are_counted_and_named() {
        let names: Vec<String> = (1..=7).map(|n| format!("{n}.zip")).collect();
        let message = |number| parts_not_read("attachment", number, &names[..number]).unwrap().message;
        assert!(message(1).starts_with("1 attachment in this file was not read: 1.zip. To"));
        assert!(message(7).starts_with(
            "7 attachments in this file were not read: 1.zip, 2.zip, 3.zip, 4.zip, 5.zip and 2 more. To"
        ));
        assert!(parts_not_read("attachment", 0, &[]).is_none());
    }

    #[test]
    fn half_of_the_pages_are_enough_and_less_are_not() {
        let ending = |total, lost: i64| {
            let unreadable = (1..=lost).collect();
            let count = PageCount { total, unreadable: usize::try_from(lost).unwrap(), without_picture: 0 };
            unreadable_pages("page", &unreadable, count)
        };
        assert_eq!(ending(4, 0).unwrap(), None);
        assert_eq!(ending(4, 2).unwrap().unwrap().page, Some(1));
        let error = ending(4, 3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(error.message().contains("pages 1–3 of 4 cannot be read"), "{error}");
        assert_eq!(ending(1, 1).unwrap_err().kind(), ErrorKind::Damaged);
    }

    #[test]
    fn characters_that_are_mostly_undecodable_are_no_text() {
        let ending = |text: &str| undecodable(&Extracted::plain(text.to_owned()));
        assert_eq!(ending("good").unwrap(), None);
        let warning = ending("caf\u{FFFD} au lait").unwrap().unwrap();
        assert!(warning.message.starts_with("1 of 10 characters"), "{}", warning.message);
        assert_eq!(ending("\u{FFFD}\u{FFFD} a").unwrap_err().kind(), ErrorKind::Damaged);
    }
}
