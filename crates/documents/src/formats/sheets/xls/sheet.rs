//! The records of a sheet: cells, links, notes, text boxes, charts, header and footer.

use std::collections::HashMap;

use super::super::grid::{Count, Position};
use super::super::styles::{error, truth};
use super::super::{Comment, Sheet, cell_name, header_footer};
use super::records::{Record, Records, f64_at, short_number, u16_at, u32_at};
use super::{Globals, kind, text};
use crate::error::Error;
use crate::limits::Bounds;

/// The kind of an object that is the box of a note.
const NOTE_OBJECT: u16 = 0x19;
/// The address of a link as a URL.
const URL_MONIKER: [u8; 16] =
    [0xE0, 0xC9, 0xEA, 0x79, 0xF9, 0xBA, 0xCE, 0x11, 0x8C, 0x82, 0x00, 0xAA, 0x00, 0x4B, 0xA9, 0x0B];

pub struct Reader<'r, 'a> {
    pub globals: &'r Globals,
    pub count: &'r mut Count<'a>,
    pub bounds: Bounds<'a>,
}

/// What was read of the objects on a sheet.
#[derive(Default)]
struct Objects {
    /// The number and the kind of the object whose text follows.
    open: Option<(u16, u16)>,
    /// The words of the boxes of notes, by the numbers of the objects.
    notes: HashMap<u16, String>,
    /// The words of other boxes and of charts.
    words: Vec<String>,
}

impl Reader<'_, '_> {
    /// Reads a sheet up to its end. Returns the words of its boxes and charts.
    pub fn read(&mut self, stream: &[u8], sheet: &mut Sheet) -> Result<Vec<String>, Error> {
        let mut objects = Objects::default();
        // A chart has its own beginning and end among the records of its sheet.
        let mut depth = 0_usize;
        // The cell of the formula whose string follows.
        let mut formula = None;
        let mut notes = Vec::new();
        let mut records = Records::new(stream);
        while let Some(record) = records.next() {
            let data = record.data;
            match record.kind {
                kind::BEGIN => depth += 1,
                kind::END => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        break;
                    }
                }
                kind::CHART_TEXT => {
                    objects.words.push(self.globals.encoding.short(data.get(2..).unwrap_or_default()));
                }
                _ if depth > 1 => {}
                kind::FORMULA => formula = self.formula(data, sheet)?,
                kind::STRING => {
                    if let Some((at, style)) = formula.take() {
                        self.words(at, style, &self.globals.encoding.long(data), sheet)?;
                    }
                }
                kind::HEADER => self.running(data, &mut sheet.headers),
                kind::FOOTER => self.running(data, &mut sheet.footers),
                kind::LINK => link(data, sheet),
                kind::NOTE => notes.push(data),
                kind::OBJECT => objects.open = object(data),
                kind::OBJECT_TEXT => {
                    let length = usize::from(u16_at(data, 10).unwrap_or(0));
                    let parts = records.with_continuations(data);
                    objects.add(text::of_box(&parts[1..], length));
                }
                _ => self.cell(record, sheet)?,
            }
        }
        sheet.comments = notes.into_iter().filter_map(|note| self.note(note, &mut objects.notes)).collect();
        objects.words.retain(|words| !words.trim().is_empty());
        Ok(objects.words)
    }

    fn cell(&mut self, record: Record<'_>, sheet: &mut Sheet) -> Result<(), Error> {
        let data = record.data;
        let Some((at, style)) = place(data) else { return Ok(()) };
        match record.kind {
            kind::SHARED_LABEL => {
                let index = u32_at(data, 6).and_then(|index| usize::try_from(index).ok());
                let words = index.and_then(|index| self.globals.strings.get(index)).unwrap_or_default();
                self.words(at, style, words, sheet)
            }
            kind::LABEL | kind::RICH_LABEL => {
                self.words(at, style, &self.globals.encoding.long(data.get(6..).unwrap_or_default()), sheet)
            }
            kind::NUMBER => self.number(at, style, f64_at(data, 6), sheet),
            kind::SHORT_NUMBER => self.number(at, style, u32_at(data, 6).map(short_number), sheet),
            kind::NUMBERS => {
                let numbers = data.get(4..).unwrap_or_default();
                for (column, number) in (at.1..).zip(numbers.as_chunks::<6>().0) {
                    let style = usize::from(u16_at(number, 0).unwrap_or(0));
                    self.number((at.0, column), style, u32_at(number, 2).map(short_number), sheet)?;
                }
                Ok(())
            }
            kind::TRUTH_OR_ERROR => {
                let (value, is_error) = (data.get(6).copied().unwrap_or(0), data.get(7) == Some(&1));
                self.truth_or_error(at, value, is_error, sheet)
            }
            _ => Ok(()),
        }
    }

    /// Returns the cell if its value is a string, which follows.
    fn formula(&mut self, data: &[u8], sheet: &mut Sheet) -> Result<Option<(Position, usize)>, Error> {
        let Some((at, style)) = place(data) else { return Ok(None) };
        let Some(value) = data.get(6..14) else { return Ok(None) };
        if value[6..] != [0xFF, 0xFF] {
            self.number(at, style, f64_at(value, 0), sheet)?;
            return Ok(None);
        }
        match value[0] {
            0 => return Ok(Some((at, style))),
            1 => self.truth_or_error(at, value[2], false, sheet)?,
            2 => self.truth_or_error(at, value[2], true, sheet)?,
            _ => {}
        }
        Ok(None)
    }

    fn number(
        &mut self,
        at: Position,
        style: usize,
        value: Option<f64>,
        sheet: &mut Sheet,
    ) -> Result<(), Error> {
        self.count.cell()?;
        match value {
            Some(value) => sheet.grid.add(at, &self.globals.styles.number(style, value), self.bounds),
            None => Ok(()),
        }
    }

    fn words(&mut self, at: Position, style: usize, words: &str, sheet: &mut Sheet) -> Result<(), Error> {
        self.count.cell()?;
        sheet.grid.add(at, &self.globals.styles.words(style, words), self.bounds)
    }

    fn truth_or_error(
        &mut self,
        at: Position,
        value: u8,
        is_error: bool,
        sheet: &mut Sheet,
    ) -> Result<(), Error> {
        self.count.cell()?;
        sheet.grid.add(at, if is_error { error(value) } else { truth(value != 0) }, self.bounds)
    }

    fn running(&self, data: &[u8], running: &mut Vec<String>) {
        if !data.is_empty() {
            running.extend(header_footer::words(&self.globals.encoding.format(data)));
        }
    }

    fn note(&self, data: &[u8], boxes: &mut HashMap<u16, String>) -> Option<Comment> {
        let at = (u32::from(u16_at(data, 0)?), u32::from(u16_at(data, 2)?));
        let words = boxes.remove(&u16_at(data, 6)?).filter(|words| !words.trim().is_empty())?;
        let author = self.globals.encoding.long(data.get(8..)?);
        Some(Comment { cell: cell_name(at), author, words, answers: Vec::new() })
    }
}

impl Objects {
    fn add(&mut self, words: String) {
        match self.open.take() {
            Some((number, NOTE_OBJECT)) => _ = self.notes.insert(number, words),
            _ => self.words.push(words),
        }
    }
}

/// The place and the style of a cell.
fn place(data: &[u8]) -> Option<(Position, usize)> {
    let at = (u32::from(u16_at(data, 0)?), u32::from(u16_at(data, 2)?));
    Some((at, usize::from(u16_at(data, 4)?)))
}

/// The number and the kind of an object.
fn object(data: &[u8]) -> Option<(u16, u16)> {
    Some((u16_at(data, 6)?, u16_at(data, 4)?))
}

fn link(data: &[u8], sheet: &mut Sheet) {
    if let Some((at, target)) = read_link(data) {
        sheet.grid.link(at, &target);
    }
}

/// The first cell of a link and its address. Links to files and to cells have none.
fn read_link(data: &[u8]) -> Option<(Position, String)> {
    const HAS_MONIKER: u32 = 0x01;
    const HAS_DISPLAY: u32 = 0x10;
    const HAS_FRAME: u32 = 0x80;
    const IS_STRING: u32 = 0x100;
    let at = (u32::from(u16_at(data, 0)?), u32::from(u16_at(data, 4)?));
    let flags = u32_at(data, 28)?;
    let mut rest = data.get(32..)?;
    for part in [HAS_DISPLAY, HAS_FRAME] {
        if flags & part != 0 {
            let length = usize::try_from(u32_at(rest, 0)?).ok()?;
            rest = rest.get(length.checked_mul(2)?.checked_add(4)?..)?;
        }
    }
    if flags & HAS_MONIKER == 0 {
        return None;
    }
    let (length, characters) = if flags & IS_STRING != 0 {
        (usize::try_from(u32_at(rest, 0)?).ok()?, rest.get(4..)?)
    } else if rest.starts_with(&URL_MONIKER) {
        (usize::try_from(u32_at(rest, 16)?).ok()? / 2, rest.get(20..)?)
    } else {
        return None;
    };
    let units = characters.as_chunks().0.iter().take(length).map(|unit| u16::from_le_bytes(*unit));
    let target: String =
        char::decode_utf16(units.take_while(|unit| *unit != 0)).map(|c| c.unwrap_or('\u{FFFD}')).collect();
    Some((at, target))
}
