//! Writes the paragraphs and tables of a text: the body, a header, a note, a text box.

use std::collections::HashMap;

use super::lists::Lists;
use super::notes::Notes;
use super::paragraph::{Anchored, Fields, Paragraph, is_hidden};
use super::styles::{Style, Styles};
use super::tables::Tables;
use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::formats::inline::{self, Inline};
use crate::formats::numerals::BULLET;
use crate::formats::office::References;
use crate::formats::office::objects::Objects;
use crate::limits::Bounds;

/// Text boxes and notes inside one another. Deeper ones are left out.
const MAX_INSIDE: usize = 8;
/// How many paragraphs are looked at to find out whether a list goes on after them.
const LOOK_AHEAD: usize = 12;
/// A line in a margin with the number of the page and fewer letters than this is nothing but this number.
const MIN_LETTERS_WITH_PAGE_NUMBER: usize = 13;

pub struct Body<'a> {
    pub flow: Flow,
    pub styles: Styles,
    pub lists: Lists,
    /// Footnotes, endnotes and comments, by the kind of their part.
    pub notes: HashMap<String, Notes>,
    pub fields: Fields,
    pub objects: Objects,
    pub bounds: Bounds<'a>,
    tables: Tables,
    /// Words of a paragraph that goes on in the next one.
    carried: Vec<Inline>,
    /// Lines of code, or of a font for code, that were not written yet.
    code: Vec<Code>,
    in_quote: bool,
    /// How many text boxes and notes are open.
    inside: usize,
}

struct Code {
    raw: String,
    content: Vec<Inline>,
    /// Whether its style says that it is code; otherwise only its font does.
    is_certain: bool,
}

impl<'a> Body<'a> {
    pub fn new(bounds: Bounds<'a>) -> Self {
        Self {
            flow: Flow::new(bounds.limits),
            styles: Styles::default(),
            lists: Lists::default(),
            notes: HashMap::new(),
            fields: Fields::default(),
            objects: Objects::default(),
            bounds,
            tables: Tables::default(),
            carried: Vec::new(),
            code: Vec::new(),
            in_quote: false,
            inside: 0,
        }
    }

    /// Reads a whole text. `references` are those of the part that it is in.
    pub fn read(
        &mut self,
        archive: &mut Archive<'_>,
        source: &str,
        references: &References,
    ) -> Result<(), Error> {
        let mut elements = Elements::new(source, self.bounds);
        // Whether the paragraphs up to the next item belong to the open one.
        let mut list_goes_on = None;
        while let Some(piece) = elements.next()? {
            match piece {
                Piece::Open(element) => match element.name() {
                    "p" => {
                        let address = |id: &str| references.outside.get(id).cloned();
                        let paragraph = Paragraph::read(&mut elements, &mut self.fields, &address)?;
                        self.paragraph(archive, paragraph, references, &elements, &mut list_goes_on)?;
                        self.flow.check()?;
                    }
                    "tbl" => {
                        self.end_blocks();
                        let is_frame = self.tables.is_frame(&elements, self.bounds);
                        self.tables.begin(is_frame, &mut self.flow);
                    }
                    "altChunk" => {
                        self.end_blocks();
                        let id = element.prefixed_attribute("id").unwrap_or_default();
                        self.part(archive, &id, references)?;
                    }
                    name if is_hidden(name) => elements.skip()?,
                    _ => self.tables.set(&element, &mut self.flow),
                },
                Piece::Close(name) => match name.as_str() {
                    "tbl" => {
                        self.end_blocks();
                        self.tables.end(&mut self.flow);
                    }
                    "tc" => self.tables.end_cell(&mut self.flow)?,
                    _ => {}
                },
                Piece::Words(_) => {}
            }
        }
        if !self.carried.is_empty() {
            let content = std::mem::take(&mut self.carried);
            self.plain(&content);
        }
        self.end_blocks();
        self.flow.check()
    }

    fn paragraph(
        &mut self,
        archive: &mut Archive<'_>,
        mut paragraph: Paragraph<'_>,
        references: &References,
        elements: &Elements<'_>,
        list_goes_on: &mut Option<bool>,
    ) -> Result<(), Error> {
        if !self.carried.is_empty() {
            let own = std::mem::replace(&mut paragraph.content, std::mem::take(&mut self.carried));
            paragraph.content.extend(own);
        }
        if paragraph.goes_on {
            self.carried = std::mem::take(&mut paragraph.content);
        }
        let style = paragraph.style.as_deref().map(|id| self.styles.get(id)).unwrap_or_default();
        let anchored = std::mem::take(&mut paragraph.anchored);
        self.write(&paragraph, &style, elements, list_goes_on, !anchored.is_empty());
        for anchor in anchored {
            self.anchored(archive, anchor, references)?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        paragraph: &Paragraph<'_>,
        style: &Style,
        elements: &Elements<'_>,
        list_goes_on: &mut Option<bool>,
        has_anchored: bool,
    ) {
        let mut item = self.lists.item(paragraph, style);
        // A paragraph without words has a number too, so it is counted.
        let marker = item
            .as_ref()
            .and_then(|item| self.lists.numbering.count(&item.list, item.level))
            .unwrap_or_default();
        // Such a list is one of its own, of which this is the first level.
        if let Some(item) = item.as_mut().filter(|item| item.level == 0) {
            item.level = style.list_depth();
        }
        if inline::is_blank(&paragraph.content) || is_page_number(paragraph) {
            if has_anchored {
                self.end_code();
            } else if let Some(Code { raw, .. }) = self.code.last_mut() {
                raw.push('\n');
            }
            return;
        }
        if self.tables.is_in_cell() {
            self.flow.widen(Gap::Space);
            if !marker.is_empty() {
                self.flow.begin_item(&marker);
            }
            inline::write(&paragraph.content, &mut self.flow, false);
            self.flow.widen(Gap::Space);
            return;
        }
        let heading = paragraph.heading.or(style.heading()).filter(|level| *level > 0);
        let is_code = heading.is_none() && item.is_none() && is_code(paragraph, style);
        if !is_code {
            self.end_code();
        }
        if heading.is_some() || is_code || !style.is_quote() {
            self.end_quote();
        }
        if let Some(level) = heading {
            self.heading(level, &marker, &paragraph.content);
        } else if is_code {
            self.lists.open.end(&mut self.flow);
            let content = paragraph.content.clone();
            self.code.push(Code {
                raw: inline::raw(&paragraph.content),
                content,
                is_certain: style.is_code(),
            });
        } else if let Some(item) = item.as_ref().filter(|_| marker.is_empty() && self.lists.open.is_open()) {
            // An item without a marker goes on with the one before it, as some programs write its second paragraph.
            *list_goes_on = None;
            self.lists.open.end_from(item.level + 1, &mut self.flow);
            self.flow.widen(Gap::Paragraph);
            inline::write(&paragraph.content, &mut self.flow, true);
        } else if let Some(item) = item.filter(|_| !marker.is_empty()) {
            *list_goes_on = None;
            self.lists.open.begin(item, &marker, &mut self.flow);
            inline::write(&paragraph.content, &mut self.flow, true);
        } else {
            if self.lists.open.is_open() && !*list_goes_on.get_or_insert_with(|| self.list_goes_on(elements))
            {
                self.lists.open.end(&mut self.flow);
            }
            if style.is_quote() && !self.in_quote {
                self.in_quote = true;
                self.flow.begin_quote();
            }
            self.plain(&paragraph.content);
        }
    }

    fn heading(&mut self, level: u8, marker: &str, content: &[Inline]) {
        self.lists.open.end(&mut self.flow);
        self.flow.begin_heading(level);
        if marker != BULLET && !marker.is_empty() {
            self.flow.words(marker);
            self.flow.widen(Gap::Space);
        }
        inline::write(content, &mut self.flow, false);
        self.flow.end_heading();
    }

    fn plain(&mut self, content: &[Inline]) {
        let gap = if self.tables.is_in_cell() { Gap::Space } else { Gap::Paragraph };
        self.flow.widen(gap);
        inline::write(content, &mut self.flow, true);
        self.flow.widen(gap);
    }

    fn anchored(
        &mut self,
        archive: &mut Archive<'_>,
        anchored: Anchored<'_>,
        references: &References,
    ) -> Result<(), Error> {
        match anchored {
            Anchored::TextBox(source) => self.text_inside(archive, source, references, ""),
            Anchored::Note(kind, id) => self.note(archive, kind, &id),
            Anchored::Comment(id) => self.note(archive, "comments", &id),
            Anchored::Part(id) => self.part(archive, &id, references),
        }
    }

    fn note(&mut self, archive: &mut Archive<'_>, kind: &str, id: &str) -> Result<(), Error> {
        let Some(notes) = self.notes.get_mut(kind) else { return Ok(()) };
        let Some(note) = notes.take(id) else { return Ok(()) };
        let references = std::mem::take(&mut notes.references);
        let mark = match (kind, note.author.as_deref().map(str::trim)) {
            ("comments", None | Some("")) => "Comment:".to_owned(),
            ("comments", Some(author)) => format!("Comment ({author}):"),
            _ => String::new(),
        };
        let result = self.text_inside(archive, &note.source, &references, &mark);
        if let Some(notes) = self.notes.get_mut(kind) {
            notes.references = references;
        }
        result
    }

    /// Writes a text of its own after the paragraph, with this before its first word.
    fn text_inside(
        &mut self,
        archive: &mut Archive<'_>,
        source: &str,
        references: &References,
        mark: &str,
    ) -> Result<(), Error> {
        if self.inside >= MAX_INSIDE {
            return Ok(());
        }
        self.end_code();
        self.inside += 1;
        let open = std::mem::take(&mut self.lists.open);
        let carried = std::mem::take(&mut self.carried);
        let fields = std::mem::take(&mut self.fields);
        self.fields.without_page_numbers = fields.without_page_numbers;
        if !mark.is_empty() {
            self.carried.push(Inline::Words(format!("{mark} ")));
        }
        let result = self.read(archive, source, references);
        self.fields = fields;
        self.carried = carried;
        self.lists.open = open;
        self.inside -= 1;
        result
    }

    /// Reads a picture, a chart, a diagram or an embedded document.
    fn part(&mut self, archive: &mut Archive<'_>, id: &str, references: &References) -> Result<(), Error> {
        let Some(relation) = references.inside.get(id) else { return Ok(()) };
        self.end_code();
        self.objects.related(archive, relation, None, &mut self.flow, self.bounds)
    }

    /// Whether the next item after this paragraph is inside the item that is open.
    fn list_goes_on(&self, elements: &Elements<'_>) -> bool {
        let mut ahead = Elements::new(elements.rest(), self.bounds).allow_any_close();
        let mut seen = 0;
        while seen < LOOK_AHEAD
            && let Ok(Some(piece)) = ahead.next()
        {
            let Piece::Open(element) = piece else { continue };
            match element.name() {
                "tbl" => return false,
                "p" => {
                    let paragraph = Paragraph::read(&mut ahead, &mut Fields::default(), &|_| None);
                    let Ok(paragraph) = paragraph else { return false };
                    let style = paragraph.style.as_deref().map(|id| self.styles.get(id)).unwrap_or_default();
                    if paragraph.heading.or(style.heading()).is_some_and(|level| level > 0) {
                        return false;
                    }
                    if let Some(item) = self.lists.item(&paragraph, &style) {
                        return self.lists.open.goes_on_with(&item);
                    }
                    seen += 1;
                }
                _ => {}
            }
        }
        false
    }

    /// Ends what a table or the end of the text ends.
    fn end_blocks(&mut self) {
        self.end_code();
        self.end_quote();
        self.lists.open.end(&mut self.flow);
    }

    fn end_quote(&mut self) {
        if std::mem::take(&mut self.in_quote) {
            self.flow.end_quote();
        }
    }

    /// Writes the lines of code. Of lines that only look like code by their font, half must have a sign of code.
    fn end_code(&mut self) {
        let code = std::mem::take(&mut self.code);
        if code.is_empty() {
            return;
        }
        let signs = code.iter().filter(|line| line.is_certain || has_code_signs(&line.raw)).count();
        if 2 * signs >= code.len() {
            let lines: Vec<&str> = code.iter().map(|line| line.raw.as_str()).collect();
            self.flow.code_block("", &lines.join("\n"));
        } else {
            for line in code {
                self.plain(&line.content);
            }
        }
    }
}

/// Whether it has the number of a page and little else.
fn is_page_number(paragraph: &Paragraph<'_>) -> bool {
    let letters = || inline::raw(&paragraph.content).chars().filter(|c| c.is_alphabetic()).count();
    paragraph.has_page_number && letters() < MIN_LETTERS_WITH_PAGE_NUMBER
}

fn is_code(paragraph: &Paragraph<'_>, style: &Style) -> bool {
    style.is_code() || paragraph.monospaced.is_some_and(|monospaced| monospaced || style.is_monospaced())
}

fn has_code_signs(line: &str) -> bool {
    line.contains(['=', ';', '{', '}', '<', '>']) || line.contains("()") || line.contains("):")
}
