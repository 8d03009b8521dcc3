//! The styles of a Word document.

use super::fib::u16_at;
use super::properties::Paragraph;

/// How many styles may inherit from one another. A longer chain is a cycle.
const MAX_CHAIN: usize = 16;
const NO_STYLE: u16 = 0x0FFF;
/// The numbers of built-in styles.
const TITLE: u16 = 62;

#[derive(Default)]
pub struct Styles<'a>(Vec<Option<Style<'a>>>);

struct Style<'a> {
    /// The number of a built-in style.
    built_in: u16,
    base: u16,
    changes: &'a [u8],
    name: String,
}

impl<'a> Styles<'a> {
    pub fn read(bytes: &'a [u8]) -> Self {
        Self::try_read(bytes).unwrap_or_default()
    }

    fn try_read(bytes: &'a [u8]) -> Option<Self> {
        let header = usize::from(u16_at(bytes, 0)?);
        let number = usize::from(u16_at(bytes, 2)?);
        let base_size = usize::from(u16_at(bytes, 4)?);
        let mut rest = bytes.get(2 + header..)?;
        let mut styles = Vec::new();
        for _ in 0..number {
            let Some(length) = u16_at(rest, 0).map(usize::from) else { break };
            let Some(style) = rest.get(2..2 + length) else { break };
            styles.push(Style::read(style, base_size));
            // Each begins at an even place.
            rest = rest.get(2 + length + length % 2..).unwrap_or_default();
        }
        Some(Self(styles))
    }

    /// The properties that a paragraph has by its style.
    pub fn paragraph(&self, style: u16) -> Paragraph {
        let mut paragraph = Paragraph { style, ..Paragraph::default() };
        let chain: Vec<&Style<'_>> = self.chain(style).collect();
        for style in chain.iter().rev() {
            paragraph.apply(style.changes);
        }
        paragraph
    }

    /// The level of a heading, from 1.
    pub fn heading(&self, style: u16) -> Option<u8> {
        self.chain(style).find_map(|style| match style.built_in {
            level @ 1..=9 => u8::try_from(level).ok(),
            TITLE => Some(1),
            _ => None,
        })
    }

    pub fn name(&self, style: u16) -> &str {
        self.get(style).map_or("", |style| style.name.as_str())
    }

    fn get(&self, style: u16) -> Option<&Style<'a>> {
        self.0.get(usize::from(style))?.as_ref()
    }

    fn chain(&self, style: u16) -> impl Iterator<Item = &Style<'a>> {
        let next = |style: &&Style<'a>| self.get(style.base).filter(|_| style.base != NO_STYLE);
        std::iter::successors(self.get(style), next).take(MAX_CHAIN)
    }
}

impl<'a> Style<'a> {
    fn read(bytes: &'a [u8], base_size: usize) -> Option<Self> {
        let built_in = u16_at(bytes, 0)? & 0x0FFF;
        let kind = u16_at(bytes, 2)?;
        let (kind, base) = (kind & 0xF, kind >> 4);
        let name_length = usize::from(u16_at(bytes, base_size)?);
        let name = bytes.get(base_size + 2..base_size + 2 + 2 * name_length)?;
        let units: Vec<u16> = name.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
        // A zero follows the name.
        let mut at = base_size + 2 + 2 * name_length + 2;
        at += at % 2;
        let is_paragraph = kind == 1;
        let changes = u16_at(bytes, at)
            .filter(|_| is_paragraph)
            .and_then(|length| bytes.get(at + 4..at + 2 + usize::from(length)))
            .unwrap_or_default();
        Some(Self { built_in, base, changes, name: String::from_utf16_lossy(&units).to_lowercase() })
    }
}
