//! DOCX: paragraphs, tables, text boxes, equations and notes, in the order of the document.

mod styles;

use std::collections::HashMap;

use super::office;
use crate::archive::Archive;
use crate::elements::{Element, Elements, Piece};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::{Bounds, Limits};
use crate::reading::Reading;
use styles::Styles;

pub fn read(archive: &mut Archive<'_>, main_part: &str, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let mut styles = Styles::default();
    let mut notes = Notes::default();
    for relation in office::relations(archive, main_part, bounds)?.into_values() {
        match relation.kind.as_str() {
            "styles" => {
                if let Some(source) = archive.text(&relation.target)? {
                    styles = Styles::read(&source, bounds)?;
                }
            }
            "footnotes" | "endnotes" => {
                if let Some(source) = archive.text(&relation.target)? {
                    notes.read(&source, &relation.kind, bounds)?;
                }
            }
            _ => {}
        }
    }
    let source = archive.required_text(main_part)?;
    let mut body = Body::new(&styles, notes, bounds.limits);
    let mut elements = Elements::new(&source, bounds);
    while let Some(piece) = elements.next()? {
        match piece {
            Piece::Open(element) => {
                if is_hidden(element.name()) {
                    elements.skip()?;
                } else {
                    body.open(&element);
                }
            }
            Piece::Close(name) => {
                body.close(&name);
                body.flow.check()?;
            }
            Piece::Words(words) => body.words(&words),
        }
    }
    let mut extracted = body.flow.finish()?;
    extracted.warnings = office::not_read(archive, &extracted.text, bounds)?;
    Ok(Reading::of(extracted))
}

/// `Fallback` repeats a drawing for old programs. Deleted words are still in the file.
fn is_hidden(element: &str) -> bool {
    matches!(element, "Fallback" | "del" | "moveFrom" | "tabs" | "sectPr" | "rPrChange" | "pPrChange")
}

struct Body<'a> {
    flow: Flow,
    styles: &'a Styles,
    notes: Notes,
    /// Notes that the paragraph refers to; they stand below it.
    notes_here: Vec<String>,
    in_text: bool,
    in_heading: bool,
    /// The mark before the next part of an equation.
    equation_mark: Option<&'static str>,
    /// Tables inside one another.
    tables: usize,
}

impl<'a> Body<'a> {
    fn new(styles: &'a Styles, notes: Notes, limits: &Limits) -> Self {
        Self {
            flow: Flow::new(limits),
            styles,
            notes,
            notes_here: Vec::new(),
            in_text: false,
            in_heading: false,
            equation_mark: None,
            tables: 0,
        }
    }

    fn open(&mut self, element: &Element<'_>) {
        match element.name() {
            "p" => self.flow.widen(self.paragraph_gap()),
            "pStyle" if element.attribute("val").is_some_and(|style| self.styles.is_heading(&style)) => {
                self.begin_heading();
            }
            "outlineLvl" if styles::is_heading_level(element.attribute("val").as_deref()) => {
                self.begin_heading();
            }
            "t" => self.in_text = true,
            "tab" | "ptab" | "tc" => self.flow.widen(Gap::Cell),
            "br" | "cr" | "tr" => self.flow.widen(Gap::Line),
            "noBreakHyphen" => self.flow.words("-"),
            "tbl" => {
                self.flow.widen(Gap::Paragraph);
                self.tables += 1;
            }
            "footnoteReference" => self.refer("footnotes", element),
            "endnoteReference" => self.refer("endnotes", element),
            // As on one line: without marks, a fraction would look like one number.
            "oMath" => self.flow.widen(Gap::Space),
            "den" => self.equation_mark = Some("/"),
            "sup" => self.equation_mark = Some("^"),
            "sub" => self.equation_mark = Some("_"),
            _ => {}
        }
    }

    fn close(&mut self, element: &str) {
        match element {
            "t" => self.in_text = false,
            "p" => {
                if std::mem::take(&mut self.in_heading) {
                    self.flow.end_heading();
                }
                self.flow.widen(self.paragraph_gap());
                for note in std::mem::take(&mut self.notes_here) {
                    self.flow.words(&note);
                    self.flow.widen(self.paragraph_gap());
                }
            }
            "den" | "sup" | "sub" => self.equation_mark = None,
            "oMath" => self.flow.widen(Gap::Space),
            "tbl" => {
                self.tables = self.tables.saturating_sub(1);
                self.flow.widen(Gap::Paragraph);
            }
            "tr" => self.flow.widen(Gap::Line),
            _ => {}
        }
    }

    fn words(&mut self, words: &str) {
        if self.in_text {
            if let Some(mark) = self.equation_mark.take() {
                self.flow.verbatim(mark);
            }
            self.flow.words(words);
        }
    }

    /// A cell may have many paragraphs, and is still one cell on one line.
    fn paragraph_gap(&self) -> Gap {
        if self.tables > 0 { Gap::Space } else { Gap::Paragraph }
    }

    fn begin_heading(&mut self) {
        // In a table, the style of a heading is used for bold text.
        if self.tables == 0 && !self.in_heading {
            self.in_heading = true;
            self.flow.begin_heading();
        }
    }

    fn refer(&mut self, kind: &str, element: &Element<'_>) {
        if let Some(note) = element.attribute("id").and_then(|id| self.notes.take(kind, id)) {
            self.notes_here.push(note);
        }
    }
}

/// The footnotes and endnotes, by kind and id.
#[derive(Default)]
struct Notes(HashMap<(String, String), String>);

impl Notes {
    fn read(&mut self, source: &str, kind: &str, bounds: Bounds<'_>) -> Result<(), Error> {
        let mut elements = Elements::new(source, bounds);
        let mut note: Option<(String, String)> = None;
        let mut in_text = false;
        while let Some(piece) = elements.next()? {
            match piece {
                Piece::Open(element) if is_hidden(element.name()) => elements.skip()?,
                Piece::Open(element) => match element.name() {
                    "footnote" | "endnote" => {
                        note = element.attribute("id").map(|id| (id, String::new()));
                    }
                    "t" => in_text = true,
                    "p" | "br" | "tab" => {
                        if let Some((_, text)) = &mut note {
                            text.push(' ');
                        }
                    }
                    _ => {}
                },
                Piece::Close(name) => match name.as_str() {
                    "t" => in_text = false,
                    "footnote" | "endnote" => {
                        if let Some((id, text)) = note.take()
                            && !text.trim().is_empty()
                        {
                            self.0.insert((kind.to_owned(), id), text);
                        }
                    }
                    _ => {}
                },
                Piece::Words(words) => {
                    if in_text && let Some((_, text)) = &mut note {
                        text.push_str(&words);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns each note once, even if it is referred to several times.
    fn take(&mut self, kind: &str, id: String) -> Option<String> {
        self.0.remove(&(kind.to_owned(), id))
    }
}
