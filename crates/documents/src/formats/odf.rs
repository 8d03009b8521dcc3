//! OpenDocument (ODT, ODS, ODP): texts, spreadsheets and presentations share one vocabulary.

use super::office;
use crate::archive::Archive;
use crate::elements::{Element, Elements, Piece};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing;
use crate::protected;
use crate::reading::Reading;

const CONTENT: &str = "content.xml";
const MANIFEST: &str = "META-INF/manifest.xml";

pub fn read(archive: &mut Archive<'_>, bounds: Bounds<'_>) -> Result<Reading, Error> {
    if archive.text(MANIFEST)?.is_some_and(|manifest| manifest.contains("encryption-data")) {
        return Err(protected());
    }
    let source = archive.required_text(CONTENT)?;
    let mut body = Body::new(bounds);
    let mut elements = Elements::new(&source, bounds);
    while let Some(piece) = elements.next()? {
        match piece {
            Piece::Open(element) if is_hidden(element.name()) => elements.skip()?,
            Piece::Open(element) => body.open(&element)?,
            Piece::Close(name) => {
                body.close(&name);
                body.flow.check()?;
            }
            Piece::Words(words) => body.words(&words),
        }
    }
    let mut extracted = body.flow.finish()?;
    extracted.warnings.extend(missing::parts_not_read("embedded object", body.objects, &[]));
    extracted.warnings.extend(office::pictures_not_read(&archive.parts(), &extracted.text));
    Ok(Reading::of(extracted))
}

/// Deletions, comments and declarations are not text, nor is the number of a note.
fn is_hidden(element: &str) -> bool {
    matches!(
        element,
        "tracked-changes"
            | "annotation"
            | "note-citation"
            | "forms"
            | "scripts"
            | "automatic-styles"
            | "font-face-decls"
            | "sequence-decls"
            | "binary-data"
    )
}

struct Body<'a> {
    flow: Flow,
    bounds: Bounds<'a>,
    /// Nested paragraphs: a text box is inside a paragraph.
    paragraphs: usize,
    notes: usize,
    tables: usize,
    is_spreadsheet: bool,
    pages: usize,
    cells: usize,
    in_title: bool,
    /// Embedded documents, charts and formulas.
    objects: usize,
}

impl<'a> Body<'a> {
    fn new(bounds: Bounds<'a>) -> Self {
        Self {
            flow: Flow::new(bounds.limits),
            bounds,
            paragraphs: 0,
            notes: 0,
            tables: 0,
            is_spreadsheet: false,
            pages: 0,
            cells: 0,
            in_title: false,
            objects: 0,
        }
    }

    fn open(&mut self, element: &Element<'_>) -> Result<(), Error> {
        match element.name() {
            "spreadsheet" => self.is_spreadsheet = true,
            "h" => {
                self.begin_paragraph();
                if self.tables == 0 {
                    self.flow.begin_heading();
                }
            }
            "p" => self.begin_paragraph(),
            "s" => self.flow.widen(Gap::Space),
            "tab" => self.flow.widen(Gap::Cell),
            "line-break" | "table-row" => self.flow.widen(Gap::Line),
            "note-body" => {
                self.flow.widen(Gap::Space);
                self.notes += 1;
            }
            "table" => {
                self.tables += 1;
                if self.is_spreadsheet {
                    self.flow.place(None, element.attribute("name"));
                } else {
                    self.flow.widen(Gap::Paragraph);
                }
            }
            // A cell may be repeated a million times; it is read once.
            "table-cell" => {
                self.cells += 1;
                if self.cells > self.bounds.limits.cells {
                    return Err(self.bounds.limits.too_many_cells());
                }
                self.flow.widen(Gap::Cell);
            }
            "page" if element.prefix() == "draw" => {
                self.pages += 1;
                if self.pages > self.bounds.limits.pages {
                    return Err(self.bounds.limits.too_many_pages());
                }
                let page = i64::try_from(self.pages).unwrap_or(i64::MAX);
                self.flow.place(Some(page), Some(format!("Slide {page}")));
            }
            "frame" => {
                self.flow.widen(Gap::Paragraph);
                if element.attribute("class").as_deref() == Some("title") {
                    self.in_title = true;
                    self.flow.begin_heading();
                }
            }
            "notes" => self.flow.widen(Gap::Paragraph),
            "object" | "object-ole" if element.prefix() == "draw" => self.objects += 1,
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, element: &str) {
        match element {
            "h" => {
                self.flow.end_heading();
                self.end_paragraph();
            }
            "p" => self.end_paragraph(),
            "note-body" => {
                self.notes = self.notes.saturating_sub(1);
                self.flow.widen(Gap::Space);
            }
            "table" => {
                self.tables = self.tables.saturating_sub(1);
                self.flow.widen(Gap::Paragraph);
            }
            "frame" if std::mem::take(&mut self.in_title) => self.flow.end_heading(),
            _ => {}
        }
    }

    /// White space between the elements is not text.
    fn words(&mut self, words: &str) {
        if self.paragraphs > 0 {
            self.flow.words(words);
        }
    }

    fn begin_paragraph(&mut self) {
        self.paragraphs += 1;
        self.flow.widen(self.paragraph_gap());
    }

    fn end_paragraph(&mut self) {
        self.paragraphs = self.paragraphs.saturating_sub(1);
        self.flow.widen(self.paragraph_gap());
    }

    /// A cell may have many paragraphs but is on one line; a note is in the middle of a sentence.
    fn paragraph_gap(&self) -> Gap {
        if self.tables > 0 || self.notes > 0 || self.in_title { Gap::Space } else { Gap::Paragraph }
    }
}
