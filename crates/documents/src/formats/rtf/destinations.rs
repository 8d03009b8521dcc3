//! What the control words of RTF do to paragraphs, tables, fields and notes.

use super::captures::{self, Capture, Kind};
use super::interpreter::{Interpreter, Table};
use super::styles::Style;
use super::writer::{Anchored, Properties, Writer};
use crate::error::Error;
use crate::flow::{Gap, InnerEnd};
use crate::formats::fields::{hyperlink, is_page_number};
use crate::formats::inline::{self, Inline};
use crate::missing::PageCount;
use crate::reading::Reading;

/// The most headers or footers that are kept.
const MAX_MARGINS: usize = 200;
/// The most cells of a row.
const MAX_EDGES: usize = 1_000;
/// A line in a margin with the number of the page and fewer letters than this is nothing but this number.
const MIN_LETTERS_WITH_PAGE_NUMBER: usize = 13;

impl Interpreter<'_> {
    pub fn destination(&mut self, name: &str, number: Option<i32>) -> Result<(), Error> {
        if let Some(kind) = captures::kind(name) {
            self.begin_capture(kind);
            return Ok(());
        }
        if self.group.table == Table::Styles {
            self.define_style(name, number);
            return Ok(());
        }
        match name {
            "stylesheet" => self.group.table = Table::Styles,
            "par" | "sect" | "page" => self.end_paragraph()?,
            "pard" => self.properties = Properties::default(),
            "s" => self.properties.style = number.unwrap_or(0),
            "intbl" => self.properties.in_table = true,
            "ls" => self.properties.list = number.unwrap_or(0),
            "ilvl" => self.properties.list_level = number.unwrap_or(0),
            "li" => self.properties.left = number.unwrap_or(0),
            "fi" => self.properties.first_line = number.unwrap_or(0),
            "outlinelevel" => self.properties.outline_level = number,
            "trowd" => self.edges.clear(),
            "cellx" if self.edges.len() < MAX_EDGES => self.edges.extend(number),
            "cell" => {
                let paragraph = std::mem::take(&mut self.paragraph);
                self.writer.end_cell(paragraph)?;
            }
            "nestcell" | "nestrow" => {
                let paragraph = std::mem::take(&mut self.paragraph);
                let end = if name == "nestrow" { InnerEnd::Row } else { InnerEnd::Cell };
                self.writer.end_inner(paragraph, end);
            }
            "row" => self.end_row(),
            "line" => self.gap(Gap::Line),
            "tab" => self.gap(Gap::Tab),
            "fldrslt" => self.begin_result(),
            "chpgn" if self.body.is_some() => self.paragraph.has_page_number = true,
            name => self.named_character(name),
        }
        Ok(())
    }

    pub fn end_paragraph(&mut self) -> Result<(), Error> {
        let paragraph = std::mem::take(&mut self.paragraph);
        if let Some(capture) = self.captures.last_mut().filter(|capture| !capture.is_margin()) {
            capture.paragraphs.push(paragraph.content);
            return Ok(());
        }
        let letters = || inline::raw(&paragraph.content).chars().filter(|c| c.is_alphabetic()).count();
        if paragraph.has_page_number && letters() < MIN_LETTERS_WITH_PAGE_NUMBER {
            return Ok(());
        }
        let role = self.styles.role(self.properties);
        self.writer.paragraph(paragraph, self.properties, role)
    }

    fn end_row(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        // The left edge of the first cell is left of all others.
        let edges: Vec<i32> = match self.edges.first() {
            Some(_) => [i32::MIN / 2].into_iter().chain(self.edges.iter().copied()).collect(),
            None => Vec::new(),
        };
        self.writer.end_row(paragraph, &edges);
    }

    fn begin_result(&mut self) {
        let instruction = std::mem::take(&mut self.instruction);
        if let Some(target) = hyperlink(&instruction) {
            self.group.is_link = true;
            self.paragraph.content.push(Inline::BeginLink(target));
        } else if self.body.is_some() && is_page_number(&instruction) {
            self.paragraph.has_page_number = true;
            self.group.hidden = true;
        }
    }

    fn define_style(&mut self, name: &str, number: Option<i32>) {
        match name {
            "s" => self.begin_style(number.unwrap_or(0)),
            // Styles of characters, sections and tables.
            "cs" | "ds" | "ts" => self.group.hidden = true,
            "sbasedon" => self.style.1.based_on = number,
            "outlinelevel" => self.style.1.outline_level = number,
            _ => {}
        }
    }

    fn begin_style(&mut self, number: i32) {
        self.style = (number, Style::default());
        self.begin_capture(Kind::Style);
    }

    fn begin_capture(&mut self, kind: Kind) {
        if kind == Kind::Marker || kind == Kind::Instruction {
            // An empty one replaces the one before it too.
            self.instruction.clear();
        }
        self.binary.clear();
        let outside = std::mem::take(&mut self.paragraph);
        let capture = Capture {
            kind,
            depth: self.depth(),
            outside,
            properties: self.properties,
            paragraphs: Vec::new(),
        };
        if capture.is_margin() && self.body.is_none() {
            self.body = Some(std::mem::replace(&mut self.writer, Writer::new(self.bounds)));
            self.properties = Properties::default();
        }
        self.captures.push(capture);
    }

    /// The captured group is over: what was in it goes where it belongs.
    pub fn end_capture(&mut self) -> Result<(), Error> {
        let Some(kind) = self.captures.last().map(|capture| capture.kind) else { return Ok(()) };
        if matches!(kind, Kind::Header | Kind::Footer) {
            return self.end_margin(kind);
        }
        let Some(capture) = self.captures.pop() else { return Ok(()) };
        let inside = std::mem::replace(&mut self.paragraph, capture.outside);
        self.properties = capture.properties;
        let mut paragraphs = capture.paragraphs;
        match kind {
            Kind::Text | Kind::Comment => {
                paragraphs.push(inside.content);
                self.paragraph.anchored.extend(inside.anchored);
                if kind == Kind::Comment {
                    let author = std::mem::take(&mut self.author);
                    let mark = match author.trim() {
                        "" => "Comment: ".to_owned(),
                        author => format!("Comment ({author}): "),
                    };
                    paragraphs[0].insert(0, Inline::Words(mark));
                }
                self.paragraph.anchored.push(Anchored::Text(paragraphs));
            }
            Kind::Author => self.author = inline::raw(&inside.content),
            Kind::Marker => self.paragraph.marker = Some(inline::raw(&inside.content)),
            Kind::Instruction => self.instruction = inline::raw(&inside.content),
            Kind::Style => {
                let (number, mut style) = std::mem::take(&mut self.style);
                style.name = inline::raw(&inside.content);
                self.styles.insert(number, style);
            }
            Kind::Picture => {
                let bytes = std::mem::take(&mut self.binary);
                self.paragraph.anchored.push(Anchored::Picture(bytes));
            }
            Kind::Object => {
                let bytes = std::mem::take(&mut self.binary);
                let document = captures::embedded_document(&bytes).unwrap_or(&bytes).to_vec();
                self.paragraph.anchored.push(Anchored::Object(document));
            }
            Kind::Header | Kind::Footer => {}
        }
        Ok(())
    }

    fn end_margin(&mut self, kind: Kind) -> Result<(), Error> {
        if !inline::is_blank(&self.paragraph.content) || !self.paragraph.anchored.is_empty() {
            self.end_paragraph()?;
        }
        if let Some(capture) = self.captures.pop() {
            self.paragraph = capture.outside;
            self.properties = capture.properties;
        }
        let Some(body) = self.body.take() else { return Ok(()) };
        self.writer.finish()?;
        let writer = std::mem::replace(&mut self.writer, body);
        let margin: Reading = writer.flow.finish_reading(PageCount::default())?;
        let margins = if kind == Kind::Header { &mut self.headers } else { &mut self.footers };
        if margins.len() < MAX_MARGINS {
            margins.push(margin);
        }
        Ok(())
    }

    /// Whether the text is a picture or an object, in hexadecimal digits.
    pub fn is_binary(&self) -> bool {
        self.captures.last().is_some_and(|capture| matches!(capture.kind, Kind::Picture | Kind::Object))
    }
}

impl Capture {
    fn is_margin(&self) -> bool {
        matches!(self.kind, Kind::Header | Kind::Footer)
    }
}
