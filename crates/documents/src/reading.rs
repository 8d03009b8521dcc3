//! What was found in a document, and what OCR adds to it.

use crate::error::{Error, ErrorKind};
use crate::has_words;
use landfall_core::text::{Extracted, Markup, Place};

/// The longest heading that is worth keeping with each chunk below it.
const LONGEST_HEADING: usize = 200;

/// What was found without running another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// May be empty.
    pub extracted: Extracted,
    /// In the order of the document. At most [`Limits::pictures`](super::Limits) of them.
    pub pictures: Vec<Picture>,
}

/// A picture that words may be seen in: a file of a format that tesseract reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Where in the extracted text its words belong.
    pub text_offset: usize,
    pub page: Option<i64>,
    pub bytes: Vec<u8>,
}

/// What OCR made of the pictures of a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recognised {
    /// Nobody looked at them.
    NotInstalled,
    /// The words of each, in their order.
    Words(Vec<String>),
}

impl Reading {
    pub fn of(extracted: Extracted) -> Self {
        Self { extracted, pictures: Vec::new() }
    }

    pub fn of_picture(bytes: &[u8]) -> Self {
        let extracted = Extracted { text: String::new(), markup: Markup::Plain, places: Vec::new() };
        Self { extracted, pictures: vec![Picture { text_offset: 0, page: None, bytes: bytes.to_vec() }] }
    }

    /// Takes out what nobody can store or wants to see.
    #[must_use]
    pub fn tidied(mut self) -> Self {
        tidy(&mut self.extracted);
        self
    }

    /// The whole text, if there is any.
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
        tidy(&mut extracted);
        if !has_words(&extracted.text) {
            return Err(Error::new(ErrorKind::NoText, why_empty));
        }
        Ok(extracted)
    }
}

fn tidy(extracted: &mut Extracted) {
    // PostgreSQL cannot store a NUL in a text, and no reader misses one. JSON can spell one out.
    if extracted.text.contains('\0') {
        extracted.text = extracted.text.replace('\0', " ");
    }
    for place in &mut extracted.places {
        place.heading = place
            .heading
            .take()
            .map(|heading| heading.chars().filter(|c| *c != '\0').take(LONGEST_HEADING).collect());
    }
}

/// Puts the words of each picture where it stands.
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
    fn the_words_of_a_picture_stand_where_the_picture_stands() {
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
        assert_eq!(failure.kind, ErrorKind::NoText);
        assert!(failure.message.contains("tesseract"));
        let failure = reading().finish(Recognised::Words(vec![" \n".to_owned()])).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::NoText);
        assert!(failure.message.contains("OCR_LANGUAGES"));
    }
}
