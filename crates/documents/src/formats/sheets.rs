//! Spreadsheets: each sheet is a section under its name, with its cells as tables and what is drawn on it below.

mod grid;
mod header_footer;
mod number_format;
mod strings;
mod styles;
mod xls;
mod xlsb;
mod xlsx;

use std::collections::{BTreeSet, HashSet};

use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::has_words;
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;
use grid::Grid;

pub use xls::read as read_xls;
pub use xlsb::read as read_xlsb;
pub use xlsx::read as read_xlsx;

/// The level of the heading of a sheet. The workbook itself would be the first.
const LEVEL: u8 = 2;

/// What is on a sheet beside its drawings.
#[derive(Default)]
struct Sheet {
    name: String,
    is_hidden: bool,
    grid: Grid,
    headers: Vec<String>,
    footers: Vec<String>,
    comments: Vec<Comment>,
}

/// A note or a comment, with the answers to it.
struct Comment {
    /// The cell, as in `B2`.
    cell: String,
    author: String,
    words: String,
    answers: Vec<(String, String)>,
}

/// Writes the sheets of a workbook.
struct Workbook<'a> {
    flow: Flow,
    bounds: Bounds<'a>,
    /// Headers and footers that were written. Most workbooks have the same on each sheet.
    running: HashSet<String>,
    total: usize,
    unreadable: BTreeSet<i64>,
}

impl<'a> Workbook<'a> {
    fn new(bounds: Bounds<'a>) -> Self {
        Self {
            flow: Flow::new(bounds.limits),
            bounds,
            running: HashSet::new(),
            total: 0,
            unreadable: BTreeSet::new(),
        }
    }

    /// Counts a sheet. Its number is used for the warning if it cannot be read.
    fn begin_sheet(&mut self) -> i64 {
        self.total += 1;
        i64::try_from(self.total).unwrap_or(i64::MAX)
    }

    /// Remembers that a sheet is damaged. Other errors are of the whole workbook.
    fn is_unreadable(&mut self, number: i64, error: Error) -> Result<(), Error> {
        if error.kind() != ErrorKind::Damaged {
            return Err(error);
        }
        self.unreadable.insert(number);
        Ok(())
    }

    /// Writes a sheet. `drawings` writes what is drawn on it. A sheet without anything has no heading.
    fn write_sheet(
        &mut self,
        mut sheet: Sheet,
        has_drawings: bool,
        drawings: impl FnOnce(&mut Flow) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let is_new = |running: &mut HashSet<String>, words: &String| running.insert(words.clone());
        sheet.headers.retain(|words| is_new(&mut self.running, words));
        sheet.footers.retain(|words| is_new(&mut self.running, words));
        let flow = &mut self.flow;
        if sheet.grid.is_empty()
            && !has_drawings
            && sheet.comments.is_empty()
            && sheet.headers.is_empty()
            && sheet.footers.is_empty()
        {
            return Ok(());
        }
        flow.begin_heading(LEVEL);
        flow.words(&sheet.name);
        if sheet.is_hidden {
            flow.words(" (hidden)");
        }
        flow.end_heading();
        write_paragraphs(flow, &sheet.headers);
        sheet.grid.write(flow, self.bounds)?;
        flow.widen(Gap::Paragraph);
        drawings(flow)?;
        flow.widen(Gap::Paragraph);
        write_comments(flow, &sheet.comments);
        write_paragraphs(flow, &sheet.footers);
        flow.check()
    }

    fn finish(mut self) -> Result<Reading, Error> {
        let count = PageCount { total: self.total, unreadable: self.unreadable.len(), without_picture: 0 };
        // A sheet has a name and is not a page.
        if let Some(warning) = missing::unreadable_pages("sheet", &self.unreadable, count)? {
            self.flow.warn(warning.on_page(None));
        }
        self.flow.finish_reading(PageCount::default())
    }
}

fn write_paragraphs(flow: &mut Flow, paragraphs: &[String]) {
    for words in paragraphs {
        flow.widen(Gap::Paragraph);
        flow.words(words);
    }
    flow.widen(Gap::Paragraph);
}

fn write_comments(flow: &mut Flow, comments: &[Comment]) {
    for Comment { cell, author, words, answers } in comments {
        flow.begin_item("-");
        write_comment(flow, &format!("{cell}: "), author, words);
        for (author, words) in answers {
            flow.begin_item("-");
            write_comment(flow, "", author, words);
            flow.end_item();
        }
        flow.end_item();
    }
    flow.end_list();
}

/// Excel writes the name of the author before a note, but people delete it.
fn write_comment(flow: &mut Flow, cell: &str, author: &str, words: &str) {
    flow.words(cell);
    let author = author.trim();
    if has_words(author) && !words.trim_start().starts_with(author) {
        flow.words(&format!("{author}: "));
    }
    flow.words(words);
}

/// The name of a cell, as in `B2`.
fn cell_name((row, column): grid::Position) -> String {
    let mut letters = Vec::new();
    let mut rest = column + 1;
    while rest > 0 {
        letters.push(char::from(b'A' + u8::try_from((rest - 1) % 26).unwrap_or(0)));
        rest = (rest - 1) / 26;
    }
    format!("{}{}", letters.into_iter().rev().collect::<String>(), row + 1)
}

/// The place of a cell by its name; `None` if it is no cell.
fn cell_position(name: &str) -> Option<grid::Position> {
    let mut column = 0_u32;
    let mut row = 0_u32;
    for character in name.chars().filter(|character| *character != '$') {
        match character {
            'A'..='Z' | 'a'..='z' if row == 0 => {
                let letter = u32::from(character.to_ascii_uppercase()) - u32::from('A') + 1;
                column = column.checked_mul(26)?.checked_add(letter)?;
            }
            '0'..='9' => row = row.checked_mul(10)?.checked_add(character.to_digit(10)?)?,
            _ => return None,
        }
    }
    let (row, column) = (row.checked_sub(1)?, column.checked_sub(1)?);
    // The largest sheet that Excel has.
    (row < 1 << 20 && column < 1 << 14).then_some((row, column))
}

fn damaged(detail: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Damaged, "This spreadsheet is damaged and cannot be read").with_detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_names() {
        for (name, position) in
            [("A1", (0, 0)), ("Z9", (8, 25)), ("AA10", (9, 26)), ("XFD1048576", (1_048_575, 16_383))]
        {
            assert_eq!(cell_position(name), Some(position));
            assert_eq!(cell_name(position), name);
        }
        assert_eq!(cell_position("$B$2"), Some((1, 1)));
        for wrong in ["", "A", "1", "A0", "XFE1", "A1048577", "1A", "ZZZZZZZZZZ1", "A99999999999", "é1"] {
            assert_eq!(cell_position(wrong), None, "{wrong}");
        }
    }
}
