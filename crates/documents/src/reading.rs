//! The result of the first step of reading, and what OCR adds to it.

use std::collections::BTreeSet;

use crate::error::{Error, ErrorKind};
use crate::has_words;
use crate::missing::{self, PageCount};
use landfall_core::text::{Extracted, Place, TextBox};
use landfall_core::warning::{Warning, WarningCode};

/// The most characters of a heading. Callers repeat headings, so a long one is cut.
const MAX_HEADING: usize = 200;

/// A smaller picture in a text is a logo or a symbol, in bytes.
const MIN_ILLUSTRATION: usize = 20_000;

/// What was found in a document without OCR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The text, which may be empty.
    pub extracted: Extracted,
    /// The pictures that may contain words, in the order of the document. At most
    /// [`Limits::pictures`](crate::Limits::pictures).
    pub pictures: Vec<Picture>,
    /// The pages, and how many of them were not read.
    pub pages: PageCount,
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
    /// The words of each picture, in their order; `None` for a picture that could not be read. Pictures at the end
    /// that are missing here were not read either.
    Words(Vec<Option<String>>),
}

impl Reading {
    pub(crate) fn of(extracted: Extracted) -> Self {
        Self { extracted, pictures: Vec::new(), pages: PageCount::default() }
    }

    pub(crate) fn of_picture(bytes: &[u8]) -> Self {
        let pictures = vec![Picture { text_offset: 0, page: None, bytes: bytes.to_vec() }];
        Self { pictures, ..Self::of(Extracted::plain(String::new())) }
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
        let mut why_empty = why_empty.to_owned();
        for warning in &self.extracted.warnings {
            why_empty.push_str(". ");
            why_empty.push_str(&warning.message);
        }
        let not_read = self.not_read(&recognised);
        let illustrations = self.illustrations_not_read(&recognised);
        let mut extracted = match &recognised {
            Recognised::Words(words) => merge(self.extracted, &self.pictures, words),
            Recognised::NotInstalled => self.extracted,
        };
        clean(&mut extracted);
        if !has_words(&extracted.text) {
            return Err(Error::new(ErrorKind::NoText, why_empty));
        }
        extracted.warnings.extend(not_recognised(&recognised, &not_read, self.pages)?);
        extracted.warnings.extend(missing::pictures_not_recognised(
            illustrations,
            &extracted.text,
            &recognised,
        ));
        extracted.warnings = Warning::bounded(extracted.warnings);
        Ok(extracted)
    }

    /// The pages of the pictures that OCR did not read.
    fn not_read(&self, recognised: &Recognised) -> BTreeSet<i64> {
        self.pictures_not_read(recognised).filter_map(|picture| picture.page).collect()
    }

    /// How many large pictures of a document without pages OCR did not read.
    fn illustrations_not_read(&self, recognised: &Recognised) -> usize {
        let large = |picture: &&Picture| picture.page.is_none() && picture.bytes.len() >= MIN_ILLUSTRATION;
        self.pictures_not_read(recognised).filter(large).count()
    }

    fn pictures_not_read<'a>(&'a self, recognised: &'a Recognised) -> impl Iterator<Item = &'a Picture> {
        let was_read = move |number: usize| match recognised {
            Recognised::NotInstalled => false,
            Recognised::Words(words) => words.get(number).is_some_and(Option::is_some),
        };
        let pictures = self.pictures.iter().enumerate();
        pictures.filter(move |(number, _)| !was_read(*number)).map(|(_, picture)| picture)
    }
}

/// The warning about pages that OCR should have read; an error if less than half of the document was read for that.
fn not_recognised(
    recognised: &Recognised,
    not_read: &BTreeSet<i64>,
    count: PageCount,
) -> Result<Option<Warning>, Error> {
    let what_to_do = match recognised {
        // A page with a photograph is not missing, and without OCR there is no telling it from a scan.
        Recognised::NotInstalled => {
            "The program tesseract, which reads the text in pictures, is not installed on the server: ask its operator"
        }
        Recognised::Words(_) => {
            let missing = not_read.len() + count.without_picture;
            if missing > 0 && count.is_mostly_missing(missing) {
                return Err(too_little_recognised(missing, count.total));
            }
            "OCR failed on it, or its time was over. Split the file, or ask the operator for a longer EXTRACT_TIMEOUT_MS"
        }
    };
    let Some(first) = not_read.first() else { return Ok(None) };
    let which = missing::pages("page", not_read, count.total);
    let is = if not_read.len() == 1 { "is a picture" } else { "are pictures" };
    let message = format!("{which} {is} whose text was not read, so it is missing. {what_to_do}");
    Ok(Some(Warning::new(WarningCode::OcrIncomplete, message).on_page(Some(*first))))
}

fn too_little_recognised(missing: usize, total: usize) -> Error {
    let message = format!(
        "OCR could not read enough of this file: {missing} of {total} pages are pictures that it failed on or had no time \
         for. Split the file, or ask the operator for a longer EXTRACT_TIMEOUT_MS"
    );
    Error::new(ErrorKind::Damaged, message)
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
fn merge(extracted: Extracted, pictures: &[Picture], words: &[Option<String>]) -> Extracted {
    const GAP: &str = "\n\n";
    let mut merged = Extracted::plain(String::new());
    let mut places = extracted.places.into_iter().peekable();
    let mut boxes = extracted.boxes.into_iter().peekable();
    let mut copied = 0;
    let mut copy = |merged: &mut Extracted, end: usize| {
        if copied < end && !merged.text.is_empty() && !extracted.text[copied..].starts_with('\n') {
            merged.text.push_str(GAP);
        }
        let (from, start) = (copied, merged.text.len());
        while let Some(place) = places.next_if(|place| place.start < end) {
            merged.places.push(Place { start: start + (place.start - from), ..place });
        }
        while let Some(of_text) = boxes.next_if(|of_text| of_text.start < end) {
            let shifted = |offset: usize| start + (offset - from);
            let (start, end) = (shifted(of_text.start), shifted(of_text.end));
            merged.boxes.push(TextBox { start, end, ..of_text });
        }
        merged.text.push_str(&extracted.text[copied..end]);
        copied = end;
    };
    for (picture, words) in pictures.iter().zip(words) {
        let words = words.as_deref().unwrap_or_default().trim();
        if !has_words(words) {
            continue;
        }
        copy(&mut merged, picture.text_offset);
        if !merged.text.is_empty() {
            merged.text.push_str(GAP);
        }
        if picture.page.is_some() {
            merged.places.push(Place {
                start: merged.text.len(),
                page: picture.page,
                heading: None,
                level: None,
            });
        }
        merged.text.push_str(words);
    }
    copy(&mut merged, extracted.text.len());
    Extracted { markup: extracted.markup, warnings: extracted.warnings, ..merged }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(text_offset: usize, page: i64) -> Picture {
        Picture { text_offset, page: Some(page), bytes: Vec::new() }
    }

    fn page(start: usize, page: i64) -> Place {
        Place { start, page: Some(page), heading: None, level: None }
    }

    #[test]
    fn the_words_of_a_picture_are_inserted_where_the_picture_is() {
        let text = "two\n\nfour".to_owned();
        let extracted = Extracted { places: vec![page(0, 2), page(5, 4)], ..Extracted::plain(text) };
        let pictures = vec![picture(0, 1), picture(3, 3), picture(9, 5), picture(9, 6)];
        let words = ["one\n", "three", " - ", "six"].map(|words| Some(words.to_owned())).to_vec();
        let reading = Reading { pictures, ..Reading::of(extracted) };
        let whole = reading.finish(Recognised::Words(words)).unwrap();
        assert_eq!(whole.warnings, []);
        assert_eq!(whole.text, "one\n\ntwo\n\nthree\n\nfour\n\nsix");
        let seen: Vec<_> =
            whole.places.iter().map(|place| (place.page.unwrap(), &whole.text[place.start..][..3])).collect();
        assert_eq!(seen, [(1, "one"), (2, "two"), (3, "thr"), (4, "fou"), (6, "six")]);
    }

    #[test]
    fn a_picture_without_words_says_what_would_help() {
        let reading =
            || Reading { pictures: vec![picture(0, 1)], ..Reading::of(Extracted::plain(String::new())) };
        let failure = reading().finish(Recognised::NotInstalled).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::NoText);
        assert!(failure.message().contains("tesseract"));
        let failure = reading().finish(Recognised::Words(vec![Some(" \n".to_owned())])).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::NoText);
        assert!(failure.message().contains("OCR_LANGUAGES"));
    }

    /// A document with text on its first page, and pictures on the others.
    fn scanned(pages: i64) -> Reading {
        let count = PageCount { total: usize::try_from(pages).unwrap(), ..PageCount::default() };
        let pictures = (2..=pages).map(|page| picture(4, page)).collect();
        Reading { pictures, pages: count, ..Reading::of(Extracted::plain("text".to_owned())) }
    }

    #[test]
    fn pages_that_ocr_did_not_read_are_named() {
        let finish = |words: &[Option<&str>]| {
            let words = words.iter().map(|words| words.map(str::to_owned)).collect();
            scanned(6).finish(Recognised::Words(words))
        };
        let [warning] = &finish(&[Some("two"), None, Some(""), Some("five")]).unwrap().warnings[..] else {
            panic!("one warning")
        };
        assert_eq!((warning.code, warning.page), (WarningCode::OcrIncomplete, Some(3)));
        assert!(warning.message.starts_with("Pages 3, 6 of 6 are pictures"), "{}", warning.message);
        assert_eq!(
            finish(&[Some("two"), Some("three"), Some("four"), Some(""), Some("six")]).unwrap().warnings,
            []
        );
        let error = finish(&[Some("two")]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(error.message().contains("4 of 6 pages"), "{error}");
    }

    #[test]
    fn without_ocr_the_pages_that_may_be_scans_are_named() {
        let extracted = scanned(6).finish(Recognised::NotInstalled).unwrap();
        assert_eq!(extracted.warnings.len(), 1);
        let message = &extracted.warnings[0].message;
        assert!(
            message.starts_with("Pages 2–6 of 6 are pictures") && message.contains("tesseract"),
            "{message}"
        );
    }
}
