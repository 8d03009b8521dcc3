//! Finds the tables of a page that only arrange it, before the page is read.
//!
//! Mails and old pages put whole pages with headings and lists into tables. Such a table is no table for a reader.

use std::cell::{Cell, RefCell};

use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult};

use super::elements::heading_level;
use super::feeder::{Feeder, Sink};
use super::{Attributes, content_of, is_xhtml};
use crate::error::Error;
use crate::limits::Bounds;

/// Tables in tables deeper than this are not told apart.
const MAX_DEPTH: usize = 100;
/// Tables after so many are tables.
const MAX_TABLES: usize = 100_000;

/// What is in one table, tables in it not counted.
#[derive(Default)]
struct Contents {
    /// It has header cells or a caption, or says that it holds data.
    is_data: bool,
    is_presentation: bool,
    has_no_border: bool,
    rows: usize,
    cells_of_row: usize,
    columns: usize,
    tables: usize,
    headings: usize,
    /// Lists, code, forms, rules.
    blocks: usize,
    paragraphs: usize,
    pictures: usize,
}

impl Contents {
    fn is_layout(&self) -> bool {
        let is_structured = self.tables + self.headings + self.blocks > 0;
        let is_one_column =
            self.columns <= 1 && (is_structured || self.rows <= 1 || self.paragraphs > self.rows);
        // A row of text or pictures, as mails have it.
        let is_row = self.rows <= 1 && self.paragraphs + self.pictures + self.blocks > 0;
        let is_frame = self.tables > 0 && (self.has_no_border || self.headings + self.blocks > 0);
        !self.is_data && (self.is_presentation || is_one_column || is_row || is_frame)
    }
}

#[derive(Default)]
pub struct Survey {
    tables: RefCell<Vec<Contents>>,
    open: RefCell<Vec<usize>>,
    is_xhtml: bool,
    /// Open drawings, in which elements may close themselves.
    drawings: Cell<usize>,
    token_arrived: Cell<bool>,
}

impl Survey {
    /// For each table of the page, in the order of their tags, whether it only arranges the page.
    pub fn of(source: &str, bounds: Bounds<'_>) -> Result<Vec<bool>, Error> {
        let is_table = |at: usize| {
            source.as_bytes()[at + 1..]
                .first_chunk::<5>()
                .is_some_and(|name| name.eq_ignore_ascii_case(b"table"))
        };
        if !memchr::memchr_iter(b'<', source.as_bytes()).any(is_table) {
            return Ok(Vec::new());
        }
        let survey =
            Feeder::new(source, Self { is_xhtml: is_xhtml(source), ..Self::default() }, bounds).run()?;
        Ok(survey.tables.into_inner().iter().map(Contents::is_layout).collect())
    }

    fn open(&self, tag: &Tag) {
        let (mut tables, mut open) = (self.tables.borrow_mut(), self.open.borrow_mut());
        let attributes = Attributes(tag);
        if &*tag.name == "table" && tables.len() < MAX_TABLES {
            if let Some(around) = open.last() {
                tables[*around].tables += 1;
            }
            if open.len() < MAX_DEPTH {
                open.push(tables.len());
            }
            tables.push(Contents {
                is_presentation: attributes.is("role", "presentation") || attributes.is("role", "none"),
                is_data: attributes.is("role", "table") || attributes.is("role", "grid"),
                has_no_border: attributes.is("border", "0"),
                ..Contents::default()
            });
            return;
        }
        let Some(table) = open.last().map(|open| &mut tables[*open]) else { return };
        match &*tag.name {
            "th" | "thead" | "caption" => table.is_data = true,
            "tr" => {
                table.rows += 1;
                table.cells_of_row = 0;
            }
            "ul" | "ol" | "dl" | "pre" | "form" | "hr" | "blockquote" => table.blocks += 1,
            "p" => table.paragraphs += 1,
            "img" => table.pictures += 1,
            name if heading_level(name).is_some() => table.headings += 1,
            _ => {}
        }
        if matches!(&*tag.name, "td" | "th") {
            table.cells_of_row += 1;
            table.columns = table.columns.max(table.cells_of_row);
        }
    }
}

impl Sink for Survey {
    fn take_token_arrived(&self) -> bool {
        self.token_arrived.take()
    }

    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl TokenSink for Survey {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        self.token_arrived.set(self.token_arrived.get() || !matches!(token, Token::ParseError(_)));
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                self.open(&tag);
                let in_drawing = self.drawings.get() > 0;
                let is_drawing = matches!(&*tag.name, "svg" | "math");
                if tag.self_closing && (self.is_xhtml || in_drawing || is_drawing) {
                    return TokenSinkResult::Continue;
                }
                self.drawings.set(self.drawings.get() + usize::from(&*tag.name == "svg"));
                content_of(&tag)
            }
            Token::TagToken(tag) => {
                match &*tag.name {
                    "table" => _ = self.open.borrow_mut().pop(),
                    "svg" => self.drawings.set(self.drawings.get().saturating_sub(1)),
                    _ => {}
                }
                TokenSinkResult::Continue
            }
            _ => TokenSinkResult::Continue,
        }
    }
}
