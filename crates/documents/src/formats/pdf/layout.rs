//! The layout of a page: its glyphs become words, lines, columns, tables and paragraphs in reading order.
//!
//! The library knows where each glyph is. Everything else is built from that, for each direction of writing on its own:
//!
//! 1. [`glyphs`] turns the page so that its text runs to the right, [`accents`] joins accents with their letters, and [`words`]
//!    joins glyphs to words;
//! 2. [`rules`] finds the tables that are drawn with lines, [`bands`] those with level lines only;
//! 3. [`order`] cuts what remains into columns, in the order in which they are read;
//! 4. [`lines`] joins the words of a column to lines, [`grid`] finds the tables among them;
//! 5. [`blocks`] joins lines to paragraphs, headings and items of lists.

mod accents;
mod bands;
pub mod blocks;
pub mod glyphs;
pub mod grid;
pub mod lines;
pub mod order;
pub mod path;
pub mod rules;
mod turns;
pub mod words;

use landfall_core::text::Area;

use super::annotations::Link;
use glyphs::{Frame, Sheet};
use lines::Line;
use rules::Rule;

/// What is on a page, in reading order.
#[derive(Debug, Default)]
pub struct Page {
    pub parts: Vec<Part>,
    pub links: Vec<Link>,
    /// What readers wrote on the page.
    pub notes: Vec<String>,
    /// All glyphs, also those beside the page.
    pub glyphs: usize,
}

impl Page {
    /// All its texts, in their order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let parts = self.parts.iter();
        parts
            .flat_map(|part| -> Box<dyn Iterator<Item = &str>> {
                match part {
                    Part::Lines(lines) => Box::new(lines.iter().map(|line| line.text.as_str())),
                    Part::Table(table) => Box::new(table.rows.iter().flatten().map(String::as_str)),
                }
            })
            .chain(self.notes.iter().map(String::as_str))
    }
}

#[derive(Debug)]
pub enum Part {
    Lines(Vec<PageLine>),
    Table(Table),
}

/// A line of text, with its place on the page as it is shown.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct PageLine {
    pub text: String,
    pub area: Area,
    /// In the direction of the text, from its left and from its top.
    pub left: f32,
    pub right: f32,
    pub baseline: f32,
    pub size: f32,
    pub bold: bool,
    pub italic: bool,
    pub mono: bool,
    /// Whether it is read from the right.
    pub from_right: bool,
    /// Whether it is of an entry of a form, which is a paragraph of its own.
    pub is_entry: bool,
    /// Whether it is at the upper or lower edge of the page, where running heads are.
    pub at_edge: bool,
    /// How wide its first word is, with the gap after it.
    pub first_word: f32,
    /// The left edge of each word and where it begins in the text.
    pub words: Vec<(usize, f32)>,
}

/// The rows of a table, each with its cells.
#[derive(Debug, Default)]
pub struct Table {
    pub rows: Vec<Vec<String>>,
    pub area: Option<Area>,
}

/// Arranges the glyphs of a page.
pub fn arrange(sheets: Vec<Sheet>, rules: &[Rule]) -> Page {
    let mut page = Page::default();
    for sheet in sheets {
        let frame = sheet.frame;
        let rules: Vec<Rule> = rules.iter().filter_map(|rule| frame.turned(*rule)).collect();
        let from_right = sheet.is_from_right();
        let words = words::join(sheet);
        let (tables, pieces) = rules::take_tables(words, &rules);
        let mut tables: Vec<Option<rules::Ruled>> = tables.into_iter().map(Some).collect();
        for region in order::regions(pieces, from_right) {
            arrange_region(region, &mut tables, &frame, from_right, &mut page);
        }
    }
    page
}

fn arrange_region(
    pieces: Vec<words::Piece>,
    tables: &mut [Option<rules::Ruled>],
    frame: &Frame,
    from_right: bool,
    page: &mut Page,
) {
    let mut open: Vec<Line> = Vec::new();
    for line in lines::join(pieces) {
        let Some(table) = line.table else {
            open.push(line);
            continue;
        };
        // Each row of a ruled table is a line; the first one stands for the whole table.
        if let Some(ruled) = tables.get_mut(table).and_then(Option::take) {
            flush(&mut open, frame, from_right, page);
            page.parts.push(Part::Table(ruled.read(frame, from_right)));
        }
    }
    flush(&mut open, frame, from_right, page);
}

fn flush(open: &mut Vec<Line>, frame: &Frame, from_right: bool, page: &mut Page) {
    for part in grid::find(std::mem::take(open), from_right) {
        page.parts.push(match part {
            grid::Found::Lines(lines) => {
                Part::Lines(lines.into_iter().map(|line| line.on_page(frame)).collect())
            }
            grid::Found::Entry(lines) => {
                let lines = lines.into_iter().map(|line| line.on_page(frame));
                Part::Lines(lines.map(|line| PageLine { is_entry: true, ..line }).collect())
            }
            grid::Found::Table(table) => Part::Table(table.on_page(frame, from_right)),
        });
    }
}
