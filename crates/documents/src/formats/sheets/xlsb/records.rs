//! The records of a part: a kind and a length, each in as many bytes as it needs, and so many bytes.

use super::super::grid::Position;

/// The records one after the other. A part that breaks off ends with its last whole record.
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    pub fn new(part: &'a [u8]) -> Self {
        Self { rest: part }
    }

    /// A number in up to `most` bytes of seven bits each.
    fn number(&mut self, most: u32) -> Option<u32> {
        let mut number = 0;
        for position in 0..most {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u32::from(byte & 0x7F) << (7 * position);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(number)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let kind = u16::try_from(self.number(2)?).ok()?;
        let length = usize::try_from(self.number(4)?).ok()?;
        let (data, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some((kind, data))
    }
}

/// The fields of a record, read one after the other.
#[derive(Clone, Copy)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(field)
    }

    pub fn skip(&mut self, length: usize) {
        self.0 = self.0.get(length..).unwrap_or_default();
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|field| field[0])
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take(2)?.first_chunk().map(|field| u16::from_le_bytes(*field))
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk().map(|field| u32::from_le_bytes(*field))
    }

    pub fn f64(&mut self) -> Option<f64> {
        self.take(8)?.first_chunk().map(|field| f64::from_le_bytes(*field))
    }

    /// The column and the style of a cell.
    pub fn cell(&mut self) -> Option<(u32, usize)> {
        let column = self.u32()?;
        let style = self.u32()? & 0x00FF_FFFF;
        Some((column, usize::try_from(style).ok()?))
    }

    /// The first and the last cell of a range.
    pub fn range(&mut self) -> Option<(Position, Position)> {
        let (first_row, last_row) = (self.u32()?, self.u32()?);
        let (first_column, last_column) = (self.u32()?, self.u32()?);
        Some(((first_row, first_column), (last_row, last_column)))
    }

    /// A string with its length before it, which may say that there is none.
    pub fn string(&mut self) -> Option<String> {
        let length = self.u32()?;
        if length == u32::MAX {
            return Some(String::new());
        }
        let bytes = self.take(usize::try_from(length).ok()?.checked_mul(2)?)?;
        let units = bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
        Some(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_lengths_take_as_many_bytes_as_they_need() {
        let part = [&[7, 1, 9][..], &[0x9C, 0x01, 0x80, 0x01], &[5; 128], &[1, 4, 0]].concat();
        let found: Vec<(u16, usize)> = Records::new(&part).map(|(kind, data)| (kind, data.len())).collect();
        // The last one breaks off.
        assert_eq!(found, [(7, 1), (156, 128)]);
    }
}
