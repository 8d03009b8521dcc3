//! What is said about paragraphs and characters of a Word document, in pages of 512 bytes.

use super::fib::{positions, u16_at, u32_at};

const PAGE: usize = 512;

/// The changes that a style or a paragraph makes, one after the other: a code and its value.
pub struct Changes<'a>(pub &'a [u8]);

impl<'a> Iterator for Changes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let code = u16_at(self.0, 0)?;
        let rest = &self.0[2..];
        let (skipped, length) = match (code, code >> 13) {
            // The definition of a table has its length in two bytes, and one too many.
            (0xD608, _) => (2, usize::from(u16_at(rest, 0)?).saturating_sub(1)),
            (_, 0 | 1) => (0, 1),
            (_, 2 | 4 | 5) => (0, 2),
            (_, 3) => (0, 4),
            (_, 7) => (0, 3),
            _ => (1, usize::from(*rest.first()?)),
        };
        let value = rest.get(skipped..skipped + length)?;
        self.0 = &rest[skipped + length..];
        Some((code, value))
    }
}

/// The properties of a paragraph.
#[derive(Debug, Default, Clone)]
pub struct Paragraph {
    pub style: u16,
    pub in_table: bool,
    /// Whether it ends a row, or a cell of a table inside another one.
    pub ends_row: bool,
    pub table_depth: u32,
    pub list: u16,
    pub list_level: u8,
    /// From 0; 9 is body text.
    pub outline_level: Option<u8>,
    /// The edges of the cells of the row that it ends.
    pub edges: Vec<i32>,
}

impl Paragraph {
    pub fn apply(&mut self, changes: &[u8]) {
        for (code, value) in Changes(changes) {
            let first = value.first().copied().unwrap_or(0);
            match code {
                0x2416 => self.in_table = first != 0,
                0x2417 => self.ends_row = first != 0,
                0x6649 => self.table_depth = u32_at(value, 0).unwrap_or(0),
                0x260A => self.list_level = first,
                0x460B => self.list = u16_at(value, 0).unwrap_or(0),
                0x2640 => self.outline_level = Some(first),
                0xD608 => self.edges = edges(value),
                _ => {}
            }
        }
    }
}

fn edges(definition: &[u8]) -> Vec<i32> {
    let number = usize::from(definition.first().copied().unwrap_or(0)) + 1;
    let edges = definition.get(1..).unwrap_or_default().as_chunks().0.iter().take(number);
    edges.map(|edge| i32::from(i16::from_le_bytes(*edge))).collect()
}

/// The properties of characters that matter for the text.
#[derive(Debug, Default, Clone, Copy)]
pub struct Characters {
    /// Hidden or deleted.
    pub is_hidden: bool,
    /// Where the picture is that the character stands for.
    pub picture: Option<u32>,
}

impl Characters {
    fn of(changes: &[u8]) -> Self {
        let mut characters = Self::default();
        for (code, value) in Changes(changes) {
            match code {
                0x083C | 0x0800 if value.first() == Some(&1) => characters.is_hidden = true,
                0x6A03 => characters.picture = u32_at(value, 0),
                _ => {}
            }
        }
        characters
    }
}

/// A stretch of the file with what is said about it.
pub struct Run<T> {
    start: u32,
    end: u32,
    value: T,
}

/// Finds what is said about a place in the file.
pub fn at<T>(runs: &[Run<T>], place: u32) -> Option<&T> {
    let run = runs.get(runs.partition_point(|run| run.start <= place).checked_sub(1)?)?;
    (place < run.end).then_some(&run.value)
}

/// The runs of paragraphs: their style, and the changes to it.
pub fn paragraphs<'a>(table: &[u8], document: &'a [u8]) -> Vec<Run<(u16, &'a [u8])>> {
    runs(table, document, 13, |page, offset| {
        let at = 2 * offset;
        let size = usize::from(*page.get(at)?);
        let (start, length) =
            if size == 0 { (at + 2, 2 * usize::from(*page.get(at + 1)?)) } else { (at + 1, 2 * size - 1) };
        let bytes = page.get(start..(start + length).min(page.len()))?;
        Some((u16_at(bytes, 0)?, bytes.get(2..)?))
    })
}

pub fn characters(table: &[u8], document: &[u8]) -> Vec<Run<Characters>> {
    let runs = runs(table, document, 1, |page, offset| {
        let length = usize::from(*page.get(2 * offset)?);
        page.get(2 * offset + 1..2 * offset + 1 + length).map(Characters::of)
    });
    // Most characters have nothing special.
    runs.into_iter().filter(|run| run.value.is_hidden || run.value.picture.is_some()).collect()
}

/// The runs on all pages, in order. Each has an entry of this size, whose first byte is where its value is.
fn runs<'a, T>(
    table: &[u8],
    document: &'a [u8],
    entry: usize,
    value: impl Fn(&'a [u8], usize) -> Option<T>,
) -> Vec<Run<T>> {
    let (_, pages) = positions(table, 4);
    let mut runs = Vec::new();
    // A page belongs to one place; a damaged file may name it often.
    for page in pages.as_chunks::<4>().0.iter().take(document.len() / PAGE) {
        let number = usize::try_from(u32::from_le_bytes(*page) & 0x003F_FFFF).unwrap_or(usize::MAX);
        let start = number.saturating_mul(PAGE);
        let Some(page) = document.get(start..start.saturating_add(PAGE)) else { continue };
        let number = usize::from(page[PAGE - 1]);
        for index in 0..number {
            let (Some(start), Some(end)) = (u32_at(page, 4 * index), u32_at(page, 4 * index + 4)) else {
                break;
            };
            let Some(offset) = page.get(4 * (number + 1) + entry * index) else { break };
            if *offset != 0
                && let Some(value) = value(page, usize::from(*offset))
            {
                runs.push(Run { start, end, value });
            }
        }
    }
    runs.sort_by_key(|run| run.start);
    runs
}
