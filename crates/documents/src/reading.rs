//! The result of the first step of reading, and what OCR adds to it.

use crate::error::{Error, ErrorKind};
use crate::has_words;
use landfall_core::text::{Extracted, Markup, Place};

/// The most characters of a heading. Callers repeat headings, so a long one is cut.
const MAX_HEADING: usize = 200;

/// What was found in a document without OCR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The text, which may be empty.
    pub extracted: Extracted,
    /// The pictures that may contain words, in the order of the document. At most
    /// [`Limits::pictures`](crate::Limits::pictures).
    pub pictures: Vec<Picture>,
}

/// A picture that may contain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Where its words belong in the extracted text, in bytes.
    pub text_offset: usize,
    /// The page that it is on, from 1.
    pub page: Option<i64>,
    /// A file in a format that tesseract reads.
    pub bytes: Vec<u8>,
}

/// The result of OCR on the pictures of a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recognised {
    /// There is no OCR.
    NotInstalled,
    /// The words of each picture, in their order. Missing ones at the end count as empty.
    Words(Vec<String>),
}

impl Reading {
    pub(crate) fn of(extracted: Extracted) -> Self {
        Self { extracted, pictures: Vec::new() }
    }

    pub(crate) fn of_picture(bytes: &[u8]) -> Self {
        let extracted = Extracted { text: String::new(), markup: Markup::Plain, places: Vec::new() };
        Self { extracted, pictures: vec![Picture { text_offset: 0, page: None, bytes: bytes.to_vec() }] }
    }

    /// Without NULs and overlong headings.
    #[cfg(feature = "sandbox")]
    #[must_use]
    pub(crate) fn cleaned(mut self) -> Self {
        clean(&mut self.extracted);
        self
    }

    /// Returns the whole text, with the words of each picture where the picture is; or
    /// [`ErrorKind::NoText`] if there is no letter and no digit in it.
    pub fn finish(self, recognised: Recognised) -> Result<Extracted, Error> {
        let why_empty = match (&recognised, self.pictures.is_empty()) {
            (_, true) => "There is no text in this file: it has no letters and no digits",
            (Recognised::NotInstalled, false) => {
                "There is no text in this file, only pictures. Text in pictures is read where the program tesseract \
                 is installed on the server"
            }
            (Recognised::Words(_), false) => {
                "There is no text in this file, only pictures, and OCR found no words in them. A sharper scan may help, \
                 or another language in OCR_LANGUAGES"
            }
        };
        let mut extracted = match recognised {
            Recognised::Words(words) => merge(self.extracted, &self.pictures, &words),
            Recognised::NotInstalled => self.extracted,
        };
        clean(&mut extracted);
        if !has_words(&extracted.text) {
            return Err(Error::new(ErrorKind::NoText, why_empty));
        }
        Ok(extracted)
    }
}

fn clean(extracted: &mut Extracted) {
    // Databases such as PostgreSQL cannot store a NUL in a text. JSON can contain one as an escape.
    if extracted.text.contains('\0') {
        extracted.text = extracted.text.replace('\0', " ");
    }
    for place in &mut extracted.places {
        place.heading = place
            .heading
            .take()
            .map(|heading| heading.chars().filter(|c| *c != '\0').take(MAX_HEADING).collect());
    }
}

/// Inserts the words of each picture at its offset.
fn merge(extracted: Extracted, pictures: &[Picture], words: &[String]) -> Extracted {
    const GAP: &str = "\n\n";
    let mut merged = Extracted { text: String::new(), markup: Markup::Plain, places: Vec::new() };
    let mut places = extracted.places.into_iter().peekable();
    let mut copied = 0;
    let mut copy = |merged: &mut Extracted, end: usize| {
        if copied < end && !merged.text.is_empty() && !extracted.text[copied..].starts_with('\n') {
            merged.text.push_str(GAP);
        }
        let (from, start) = (copied, merged.text.len());
        while let Some(place) = places.next_if(|place| place.start < end) {
            merged.places.push(Place { start: start + (place.start - from), ..place });
        }
        merged.text.push_str(&extracted.text[copied..end]);
        copied = end;
    };
    for (picture, words) in pictures.iter().zip(words) {
        let words = words.trim();
        if !has_words(words) {
            continue;
        }
        copy(&mut merged, picture.text_offset);
        if !merged.text.is_empty() {
            merged.text.push_str(GAP);
        }
        if picture.page.is_some() {
            merged.places.push(Place { start: merged.text.len(), page: picture.page, heading: None });
        }
        merged.text.push_str(words);
    }
    copy(&mut merged, extracted.text.len());
    Extracted { markup: extracted.markup, ..merged }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(text_offset: usize, page: i64) -> Picture {
        Picture { text_offset, page: Some(page), bytes: Vec::new() }
    }

    fn page(start: usize, page: i64) -> Place {
        Place { start, page: Some(page), heading: None }
    }

    #[test]
    fn the_words_of_a_picture_are_inserted_where_the_picture_is() {
        let text = "two\n\nfour".to_owned();
        let extracted = Extracted { text, markup: Markup::Plain, places: vec![page(0, 2), page(5, 4)] };
        let pictures = vec![picture(0, 1), picture(3, 3), picture(9, 5), picture(9, 6)];
        let words = ["one\n", "three", " - ", "six"].map(str::to_owned).to_vec();
        let whole = Reading { extracted, pictures }.finish(Recognised::Words(words)).unwrap();
        assert_eq!(whole.text, "one\n\ntwo\n\nthree\n\nfour\n\nsix");
        let seen: Vec<_> =
            whole.places.iter().map(|place| (place.page.unwrap(), &whole.text[place.start..][..3])).collect();
        assert_eq!(seen, [(1, "one"), (2, "two"), (3, "thr"), (4, "fou"), (6, "six")]);
    }

    #[test]
    fn a_picture_without_words_says_what_would_help() {
        let reading = || Reading {
            extracted: Extracted { text: String::new(), markup: Markup::Plain, places: Vec::new() },
            pictures: vec![picture(0, 1)],
        };
        let failure = reading().finish(Recognised::NotInstalled).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::NoText);
        assert!(failure.message().contains("tesseract"));
        let failure = reading().finish(Recognised::Words(vec![" \n".to_owned()])).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::NoText);
        assert!(failure.message().contains("OCR_LANGUAGES"));
    }
}
