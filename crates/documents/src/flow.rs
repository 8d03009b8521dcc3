//! Builds the text: words with the right gaps between them, and the place of each page and heading.

use crate::error::Error;
use crate::limits::Limits;
use landfall_core::text::{Extracted, Place};

/// The gap before the next word. Of two gaps the wider one counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    #[default]
    None,
    Space,
    Cell,
    Line,
    Paragraph,
}

impl Gap {
    const fn characters(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Space => " ",
            Self::Cell => "\t",
            Self::Line => "\n",
            Self::Paragraph => "\n\n",
        }
    }
}

pub struct Flow {
    text: String,
    places: Vec<Place>,
    gap: Gap,
    /// The place of the next word, if a new one begins there.
    next_place: Option<(Option<i64>, Option<String>)>,
    heading: Heading,
    limits: Limits,
}

#[derive(Clone, Copy)]
enum Heading {
    None,
    Begun,
    From(usize),
}

impl Flow {
    pub fn new(limits: &Limits) -> Self {
        Self {
            text: String::new(),
            places: Vec::new(),
            gap: Gap::None,
            next_place: None,
            heading: Heading::None,
            limits: *limits,
        }
    }

    /// Adds words. White space between them counts as one space.
    pub fn words(&mut self, words: &str) {
        if words.starts_with(char::is_whitespace) {
            self.widen(Gap::Space);
        }
        for (number, word) in words.split_whitespace().enumerate() {
            if number > 0 {
                self.widen(Gap::Space);
            }
            self.write(word);
        }
        if words.ends_with(char::is_whitespace) {
            self.widen(Gap::Space);
        }
    }

    /// Adds words with their white space.
    pub fn verbatim(&mut self, words: &str) {
        if !words.is_empty() {
            self.write(words);
        }
    }

    pub fn widen(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// What follows is on this page, and under this heading if there is one. A page without words gets no place.
    pub fn place(&mut self, page: Option<i64>, heading: Option<String>) {
        self.widen(Gap::Paragraph);
        self.next_place = Some((page, heading));
    }

    /// What follows, up to [`Flow::end_heading`], is a heading.
    pub fn begin_heading(&mut self) {
        self.heading = Heading::Begun;
    }

    pub fn end_heading(&mut self) {
        if let Heading::From(start) = std::mem::replace(&mut self.heading, Heading::None) {
            let heading = self.text[start..].trim();
            if !heading.is_empty() {
                let heading = Some(heading.to_owned());
                self.places.push(Place { start, page: None, heading });
            }
        }
    }

    /// Whether the text exceeds the limit. Then nothing more is added, and [`Flow::finish`] returns an error.
    pub fn is_full(&self) -> bool {
        self.text.len() > self.limits.text_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The number of bytes so far.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn check(&self) -> Result<(), Error> {
        if self.is_full() { Err(self.limits.too_much_text()) } else { Ok(()) }
    }

    pub fn finish(self) -> Result<Extracted, Error> {
        self.check()?;
        Ok(Extracted { places: self.places, ..Extracted::plain(self.text) })
    }

    fn write(&mut self, word: &str) {
        if self.is_full() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str(self.gap.characters());
        }
        self.gap = Gap::None;
        let start = self.text.len();
        if let Some((page, heading)) = self.next_place.take() {
            self.places.push(Place { start, page, heading });
        }
        if matches!(self.heading, Heading::Begun) {
            self.heading = Heading::From(start);
        }
        self.text.push_str(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_gaps_the_wider_counts_and_there_is_none_at_the_edges() {
        let mut flow = Flow::new(&Limits::default());
        flow.widen(Gap::Paragraph);
        flow.words(" one two\n");
        flow.widen(Gap::Paragraph);
        flow.widen(Gap::Line);
        flow.words("three ");
        assert_eq!(flow.finish().unwrap().text, "one two\n\nthree");
    }

    #[test]
    fn a_page_begins_with_its_first_word() {
        let mut flow = Flow::new(&Limits::default());
        flow.place(Some(1), None);
        flow.words("one");
        flow.place(Some(2), None);
        flow.place(Some(3), Some("Tides".to_owned()));
        flow.words("three");
        let extracted = flow.finish().unwrap();
        assert_eq!(extracted.text, "one\n\nthree");
        let places: Vec<_> =
            extracted.places.iter().map(|p| (p.start, p.page, p.heading.as_deref())).collect();
        assert_eq!(places, [(0, Some(1), None), (5, Some(3), Some("Tides"))]);
    }

    #[test]
    fn a_text_beyond_the_limit_is_refused() {
        let limits = Limits { text_bytes: 1_000, ..Limits::default() };
        let mut flow = Flow::new(&limits);
        for _ in 0..1_000 {
            flow.words("again and again ");
        }
        assert!(flow.len() < 1_100);
        assert_eq!(flow.finish().unwrap_err().kind(), crate::ErrorKind::TooLarge);
    }
}
