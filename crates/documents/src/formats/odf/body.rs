//! Writes the text of an OpenDocument file: the body, a header, a note, an embedded object.

use std::collections::HashSet;

use super::cells::{self, Tables};
use super::lists::Lists;
use super::paragraphs::Paragraphs;
use super::styles::{Role, Styles};
use crate::archive::Archive;
use crate::elements::{Element, Elements, Piece};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::formats::mathml;
use crate::formats::office::objects::Objects;
use crate::limits::Bounds;
use crate::missing::PageCount;
use crate::reading::Reading;

/// Notes, text boxes and objects inside one another. Deeper ones are left out.
const MAX_INSIDE: usize = 8;
/// How far is looked ahead for the title of a hidden slide, in bytes.
const MAX_LOOK_AHEAD: usize = 256 << 10;

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Body<'a, 'z> {
    pub flow: Flow,
    pub styles: Styles,
    pub lists: Lists,
    pub tables: Tables,
    pub paragraphs: Paragraphs,
    pub bounds: Bounds<'a>,
    /// Whether it is a header or a footer that is read.
    pub in_margin: bool,
    /// Whether the open frame is the title of a slide.
    pub in_title: bool,
    /// Whether the open slide is hidden, and that is not written yet.
    is_hidden_slide: bool,
    archive: Option<&'a mut Archive<'z>>,
    objects: Objects,
    seen_objects: HashSet<String>,
    /// The objects of which it is known whether they are formulas.
    judged: HashSet<String>,
    is_spreadsheet: bool,
    pages: usize,
    inside: usize,
}

/// Whether the slide that begins here has a title.
fn has_title(rest: &str) -> bool {
    let rest = &rest[..rest.floor_char_boundary(MAX_LOOK_AHEAD)];
    let slide = rest.split("</draw:page>").next().unwrap_or(rest);
    slide.contains("presentation:class=\"title\"")
}

/// What belongs to a paragraph and is written after it.
enum Anchored<'s> {
    Text(&'s str),
    Comment(&'s str),
    Picture(String),
    Object(String),
    /// A picture of a flat file, in base64.
    Data(&'s str),
}

impl<'a, 'z> Body<'a, 'z> {
    pub fn new(archive: Option<&'a mut Archive<'z>>, bounds: Bounds<'a>) -> Self {
        Self {
            flow: Flow::new(bounds.limits),
            styles: Styles::default(),
            lists: Lists::default(),
            tables: Tables::default(),
            paragraphs: Paragraphs::default(),
            bounds,
            in_margin: false,
            in_title: false,
            is_hidden_slide: false,
            archive,
            objects: Objects::default(),
            seen_objects: HashSet::new(),
            judged: HashSet::new(),
            is_spreadsheet: false,
            pages: 0,
            inside: 0,
        }
    }

    pub fn finish_reading(self) -> Result<Reading, Error> {
        let mut reading = self.flow.finish_reading(PageCount::default())?;
        let text = &reading.extracted.text;
        let warnings = match self.archive {
            Some(archive) => self.objects.finish(archive, text, self.bounds)?,
            None => self.objects.finish_flat(text),
        };
        reading.extracted.warnings.extend(warnings);
        Ok(reading)
    }

    /// Reads a whole text.
    pub fn read(&mut self, source: &str) -> Result<(), Error> {
        let mut elements = Elements::new(source, self.bounds);
        let mut anchored = Vec::new();
        while let Some(piece) = elements.next()? {
            match piece {
                Piece::Open(element) if self.is_hidden(&element) => elements.skip()?,
                Piece::Open(element) => {
                    if !self.anchor(&element, &mut elements, &mut anchored)? {
                        self.open(&element, &mut elements)?;
                    }
                }
                Piece::Close(name) => self.close(&name)?,
                Piece::Words(words) => self.words(&words),
            }
            if self.paragraphs.open == 0 && !anchored.is_empty() {
                for anchor in anchored.drain(..) {
                    self.write_anchored(anchor)?;
                }
            }
        }
        self.end_blocks(Role::Text);
        self.lists.end_items(&mut self.flow);
        self.flow.check()
    }

    /// Keeps what is written after the paragraph that it is in. Returns whether it was such an element.
    fn anchor<'s>(
        &mut self,
        element: &Element<'_>,
        elements: &mut Elements<'s>,
        anchored: &mut Vec<Anchored<'s>>,
    ) -> Result<bool, Error> {
        let in_paragraph = self.paragraphs.open > 0;
        let href = || element.attribute("href").filter(|href| !href.is_empty());
        match element.name() {
            "note-body" => anchored.push(Anchored::Text(elements.take_inside()?)),
            "annotation" => anchored.push(Anchored::Comment(elements.take_inside()?)),
            "text-box" | "custom-shape" | "rect" | "ellipse" | "circle" | "polygon" | "path"
            | "connector"
                if in_paragraph =>
            {
                anchored.push(Anchored::Text(elements.take_inside()?));
            }
            "image" => {
                anchored.extend(href().map(Anchored::Picture));
                return Ok(false);
            }
            "object" | "object-ole" if element.prefix() == "draw" => {
                if let Some(target) = href()
                    && !(in_paragraph && self.formula(&target)?)
                {
                    anchored.push(Anchored::Object(target));
                }
                return Ok(false);
            }
            "binary-data" => anchored.push(Anchored::Data(elements.take_inside()?)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn open(&mut self, element: &Element<'_>, elements: &mut Elements<'_>) -> Result<(), Error> {
        match element.name() {
            "spreadsheet" => self.is_spreadsheet = true,
            "h" => {
                self.tables.fill_cell(&mut self.flow);
                self.begin_heading(element);
            }
            "p" | "footer-decl" | "header-decl" => {
                self.tables.fill_cell(&mut self.flow);
                self.begin_paragraph(element);
            }
            "s" => {
                let number = element.attribute("c").and_then(|number| number.parse().ok()).unwrap_or(1);
                self.gap(Gap::Space, number);
            }
            "tab" => self.gap(Gap::Tab, 1),
            "line-break" => self.gap(Gap::Line, 1),
            "a" => self.flow.begin_link(&element.attribute("href").unwrap_or_default()),
            "list" => {
                self.end_blocks(Role::Text);
                self.lists.begin_list(element);
            }
            "list-item" | "list-header" => self.lists.begin_item(element),
            "table" => self.begin_table(element),
            "table-row" => self.begin_row(element, elements)?,
            "table-cell" => self.begin_cell(element, elements)?,
            "covered-table-cell" => {
                self.tables.empty_cells(cells::repeated(element));
                elements.skip()?;
            }
            "page" if element.prefix() == "draw" => self.begin_page(element, elements)?,
            "frame" => self.begin_frame(element),
            "notes" => self.flow.widen(Gap::Paragraph),
            "title" | "desc" if element.prefix() == "svg" => self.alt_text(elements)?,
            "math" => {
                let latex = mathml::read(elements)?;
                if !latex.is_empty() {
                    self.flow.widen(Gap::Space);
                    self.flow.verbatim(&format!("${latex}$"));
                    self.flow.widen(Gap::Space);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, element: &str) -> Result<(), Error> {
        match element {
            "h" | "p" | "footer-decl" | "header-decl" => self.end_paragraph(),
            "a" => self.flow.end_link(),
            "list" => self.lists.end_list(&mut self.flow),
            "list-item" | "list-header" => self.lists.end_item(),
            "table" => self.tables.end(&mut self.flow),
            "table-cell" => self.tables.end_cell(&mut self.flow)?,
            "frame" if std::mem::take(&mut self.in_title) => {
                if std::mem::take(&mut self.is_hidden_slide) {
                    self.flow.words(" (hidden)");
                }
                self.flow.end_heading();
            }
            _ => {}
        }
        self.flow.check()
    }

    /// Deletions and declarations are not text, nor is the number of a note.
    fn is_hidden(&self, element: &Element<'_>) -> bool {
        match element.name() {
            "tracked-changes" | "note-citation" | "forms" | "scripts" | "automatic-styles" | "styles"
            | "master-styles" | "font-face-decls" | "sequence-decls" | "meta" | "settings" | "ruby-text" => {
                true
            }
            // Of a comment. In a text they are fields with words.
            "creator" | "date" | "date-string" | "creator-initials" => element.prefix() != "text",
            "page-number" | "page-count" | "sheet-name" => self.in_margin,
            "section" => element.attribute("display").as_deref() == Some("none"),
            "span" => self.styles.is_hidden(element.attribute("style-name").as_deref()),
            _ => false,
        }
    }

    fn begin_table(&mut self, element: &Element<'_>) {
        self.end_blocks(Role::Text);
        if !self.tables.is_open() {
            self.lists.end_items(&mut self.flow);
        }
        if self.is_spreadsheet && !self.tables.is_open() {
            self.flow.begin_heading(2);
            self.flow.words(&element.attribute("name").unwrap_or_default());
            if self.styles.is_hidden(element.attribute("style-name").as_deref()) {
                self.flow.words(" (hidden)");
            }
            self.flow.end_heading();
        }
        self.tables.fill_cell(&mut self.flow);
        self.tables.begin(&mut self.flow);
    }

    /// A row that is repeated is read as often as it is written, if there are words in it.
    fn begin_row(&mut self, element: &Element<'_>, elements: &mut Elements<'_>) -> Result<(), Error> {
        let repeated = cells::repeated(element);
        if repeated == 1 {
            self.tables.begin_row(&mut self.flow);
            return Ok(());
        }
        let inside = elements.take_inside()?;
        if has_content(inside) {
            for _ in 0..cells::written(repeated) {
                self.tables.count(self.bounds)?;
                self.tables.begin_row(&mut self.flow);
                self.read_inside(inside)?;
            }
        }
        Ok(())
    }

    fn begin_cell(&mut self, element: &Element<'_>, elements: &mut Elements<'_>) -> Result<(), Error> {
        let repeated = cells::repeated(element);
        let value = cells::value(element);
        if repeated == 1 {
            return self.tables.begin_cell(value, self.bounds);
        }
        let inside = elements.take_inside()?;
        if value.is_empty() && !has_content(inside) {
            self.tables.empty_cells(repeated);
            return Ok(());
        }
        for _ in 0..cells::written(repeated) {
            self.tables.begin_cell(value.clone(), self.bounds)?;
            self.read_inside(inside)?;
            self.tables.end_cell(&mut self.flow)?;
        }
        Ok(())
    }

    fn begin_page(&mut self, element: &Element<'_>, elements: &Elements<'_>) -> Result<(), Error> {
        self.lists.end_items(&mut self.flow);
        self.pages += 1;
        if self.pages > self.bounds.limits.pages {
            return Err(self.bounds.limits.too_many_pages());
        }
        let page = i64::try_from(self.pages).unwrap_or(i64::MAX);
        self.flow.place(Some(page), None);
        self.is_hidden_slide = self.styles.is_hidden(element.attribute("style-name").as_deref());
        if self.is_hidden_slide && !has_title(elements.rest()) {
            self.flow.begin_heading(2);
            self.flow.words(&format!("Slide {page} (hidden)"));
            self.flow.end_heading();
        }
        Ok(())
    }

    fn begin_frame(&mut self, element: &Element<'_>) {
        if self.paragraphs.open > 0 {
            return;
        }
        self.tables.fill_cell(&mut self.flow);
        if !self.tables.is_open() {
            self.lists.end_items(&mut self.flow);
        }
        self.flow.widen(Gap::Paragraph);
        if element.attribute("class").as_deref() == Some("title") {
            self.in_title = true;
            self.flow.begin_heading(2);
        }
    }

    fn alt_text(&mut self, elements: &mut Elements<'_>) -> Result<(), Error> {
        let mut text = String::new();
        loop {
            match elements.next()? {
                Some(Piece::Words(words)) => text.push_str(&words),
                Some(Piece::Open(_)) => elements.skip()?,
                Some(Piece::Close(_)) | None => break,
            }
        }
        self.flow.widen(Gap::Space);
        self.flow.alt_text(&text);
        self.flow.widen(Gap::Space);
        Ok(())
    }

    fn write_anchored(&mut self, anchored: Anchored<'_>) -> Result<(), Error> {
        let page = self.page();
        match anchored {
            Anchored::Text(source) => self.read_inside(source),
            Anchored::Comment(source) => self.comment(source),
            Anchored::Object(target) => self.object(&target),
            Anchored::Picture(target) => match &mut self.archive {
                Some(archive) => {
                    let part = target.trim_start_matches("./");
                    self.objects.picture(archive, part, page, &mut self.flow)
                }
                None => Ok(()),
            },
            Anchored::Data(base64) => {
                let bytes = crate::formats::base64::decode(base64);
                self.objects.picture_bytes(&bytes, "a picture", page, &mut self.flow);
                Ok(())
            }
        }
    }

    fn page(&self) -> Option<i64> {
        i64::try_from(self.pages).ok().filter(|page| *page > 0)
    }

    fn comment(&mut self, source: &str) -> Result<(), Error> {
        let mut author = String::new();
        let mut elements = Elements::new(source, self.bounds);
        while let Some(piece) = elements.next()? {
            if let Piece::Open(element) = piece
                && element.name() == "creator"
                && let Some(Piece::Words(words)) = elements.next()?
            {
                words.trim().clone_into(&mut author);
                break;
            }
        }
        self.tables.fill_cell(&mut self.flow);
        self.flow.widen(if self.tables.is_open() { Gap::Space } else { Gap::Paragraph });
        let mark = if author.is_empty() { "Comment:".to_owned() } else { format!("Comment ({author}):") };
        self.flow.words(&mark);
        self.flow.widen(Gap::Space);
        self.paragraphs.goes_on = true;
        self.read_inside(source)
    }

    /// Writes an object where it stands, if it is a formula.
    fn formula(&mut self, target: &str) -> Result<bool, Error> {
        let folder = folder(target);
        let Some(archive) = self.archive.as_mut().filter(|_| self.judged.insert(folder.clone())) else {
            return Ok(false);
        };
        let Some(content) = archive.text(&format!("{folder}/content.xml"))? else { return Ok(false) };
        let is_formula = content[..content.floor_char_boundary(1_024)].contains("<math");
        if is_formula {
            self.seen_objects.insert(folder);
            self.read_inside(&content)?;
        }
        Ok(is_formula)
    }

    /// Reads a chart, a formula or a document that is inside this one.
    fn object(&mut self, target: &str) -> Result<(), Error> {
        let folder = folder(target);
        let Some(archive) = &mut self.archive else { return Ok(()) };
        if !self.seen_objects.insert(folder.clone()) {
            return Ok(());
        }
        if let Some(content) = archive.text(&format!("{folder}/content.xml"))? {
            let was_spreadsheet = std::mem::take(&mut self.is_spreadsheet);
            self.flow.widen(Gap::Paragraph);
            let result = self.read_inside(&content);
            self.flow.widen(Gap::Paragraph);
            self.is_spreadsheet = was_spreadsheet;
            return result;
        }
        match archive.bytes(&folder)? {
            Some(bytes) => self.objects.bytes(&bytes, &folder, &mut self.flow, self.bounds),
            None => {
                self.objects.skip(&folder);
                Ok(())
            }
        }
    }

    /// Reads a text of its own.
    fn read_inside(&mut self, source: &str) -> Result<(), Error> {
        if self.inside >= MAX_INSIDE {
            return Ok(());
        }
        // A short text reports no progress by itself, and may be read often.
        self.bounds.report_progress()?;
        self.inside += 1;
        let lists = self.lists.set_aside();
        let result = self.read(source);
        self.lists.put_back(lists, &mut self.flow);
        self.inside -= 1;
        result
    }
}

/// The folder of an object. Some programs write its name with a slash at the end.
fn folder(target: &str) -> String {
    target.trim_start_matches("./").trim_end_matches('/').to_owned()
}

/// Whether there are words, pictures or objects in a row or a cell.
fn has_content(inside: &str) -> bool {
    [":p>", ":p ", ":h ", "value=", ":image", ":object"].iter().any(|mark| inside.contains(mark))
}
