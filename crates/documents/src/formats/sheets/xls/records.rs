//! The records of a stream: a kind, a length, and so many bytes.

use super::kind;

#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    pub kind: u16,
    pub data: &'a [u8],
}

/// The records one after the other. A stream that breaks off ends with its last whole record.
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    pub fn new(stream: &'a [u8]) -> Self {
        Self { rest: stream }
    }

    fn peek(&self) -> Option<Record<'a>> {
        let kind = u16_at(self.rest, 0)?;
        let length = usize::from(u16_at(self.rest, 2)?);
        Some(Record { kind, data: self.rest.get(4..4 + length)? })
    }

    /// A record with the records that continue it.
    pub fn with_continuations(&mut self, first: &'a [u8]) -> Vec<&'a [u8]> {
        let mut parts = vec![first];
        while let Some(record) = self.peek().filter(|record| record.kind == kind::CONTINUE) {
            parts.push(record.data);
            self.next();
        }
        parts
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let record = self.peek()?;
        self.rest = &self.rest[4 + record.data.len()..];
        Some(record)
    }
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

pub fn f64_at(bytes: &[u8], at: usize) -> Option<f64> {
    bytes.get(at..)?.first_chunk().map(|bytes| f64::from_le_bytes(*bytes))
}

/// A number in four bytes: the upper half of a float or a whole number, and whether it is in hundredths.
pub fn short_number(packed: u32) -> f64 {
    let value = if packed & 2 == 0 {
        f64::from_bits(u64::from(packed & !3) << 32)
    } else {
        f64::from(packed.cast_signed() >> 2)
    };
    if packed & 1 == 0 { value } else { value / 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the numbers are exact")]
    fn short_numbers_are_floats_or_whole_numbers_or_hundredths() {
        assert_eq!(short_number(0x3FF0_0000), 1.0);
        assert_eq!(short_number(0x3FF0_0001), 0.01);
        assert_eq!(short_number(1_234 << 2 | 2), 1_234.0);
        assert_eq!(short_number(1_234 << 2 | 3), 12.34);
        assert_eq!(short_number((-5_i32 << 2).cast_unsigned() | 2), -5.0);
    }
}
