//! The text of a Word document. It is saved in pieces, each in one of two encodings.

use encoding_rs::WINDOWS_1252;

use super::fib::{damaged, positions, u16_at, u32_at};
use crate::error::Error;
use crate::limits::Bounds;

pub struct Pieces {
    /// All texts of the document, in UTF-16.
    pub units: Vec<u16>,
    pieces: Vec<Piece>,
}

struct Piece {
    /// The first of its characters.
    start: u32,
    /// Where it is in the file.
    place: u32,
    bytes_each: u32,
}

impl Pieces {
    /// Reads the pieces. Those of a damaged file overlap, so the sum of their lengths is checked first.
    pub fn read(table: &[u8], document: &[u8], bounds: Bounds<'_>) -> Result<Self, Error> {
        let table = piece_table(table).ok_or_else(damaged)?;
        let (starts, values) = positions(table, 8);
        let length = starts.last().and_then(|length| usize::try_from(*length).ok()).unwrap_or(0);
        if length > bounds.limits.text_bytes {
            return Err(bounds.limits.too_much_text());
        }
        bounds.report_progress()?;
        Self::read_pieces(&starts, values, document).ok_or_else(damaged)
    }

    fn read_pieces(starts: &[u32], values: &[u8], document: &[u8]) -> Option<Self> {
        let mut whole = Self { units: Vec::new(), pieces: Vec::new() };
        for (number, value) in
            values.as_chunks::<8>().0.iter().enumerate().take(starts.len().saturating_sub(1))
        {
            let length = usize::try_from(starts[number + 1].checked_sub(starts[number])?).ok()?;
            let place = u32_at(value, 2)?;
            let is_short = place & 0x4000_0000 != 0;
            let place = if is_short { (place & 0x3FFF_FFFF) / 2 } else { place };
            let bytes_each = if is_short { 1 } else { 2 };
            let from = usize::try_from(place).ok()?;
            let end = from.saturating_add(length.saturating_mul(bytes_each as usize)).min(document.len());
            let bytes = document.get(from..end).unwrap_or_default();
            whole.pieces.push(Piece { start: u32::try_from(whole.units.len()).ok()?, place, bytes_each });
            whole.add(bytes, is_short);
        }
        Some(whole)
    }

    fn add(&mut self, bytes: &[u8], is_short: bool) {
        if is_short {
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
            self.units.extend(text.encode_utf16());
        } else {
            self.units.extend(bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit)));
        }
    }

    /// Where a character is in the file.
    pub fn place(&self, character: u32) -> u32 {
        let at = self.pieces.partition_point(|piece| piece.start <= character);
        let Some(piece) = at.checked_sub(1).and_then(|at| self.pieces.get(at)) else { return 0 };
        piece.place.saturating_add((character - piece.start).saturating_mul(piece.bytes_each))
    }
}

/// The table of pieces, after the changes that a fast save has added.
fn piece_table(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        match bytes.first()? {
            1 => bytes = bytes.get(3 + usize::from(u16_at(bytes, 1)?)..)?,
            2 => {
                let length = usize::try_from(u32_at(bytes, 1)?).ok()?;
                let rest = bytes.get(5..)?;
                return Some(&rest[..length.min(rest.len())]);
            }
            _ => return None,
        }
    }
}
