//! The strings of a workbook: in UTF-16 or its lower half since Excel 97, and before in the code page of the machine.

use super::super::strings::Strings;
use super::records::{u16_at, u32_at};
use crate::error::Error;
use crate::limits::Bounds;

const FIRST_IN_UNICODE: u16 = 0x0600;

#[derive(Clone, Copy)]
pub struct Encoding {
    is_unicode: bool,
    code_page: &'static encoding_rs::Encoding,
}

impl Encoding {
    pub fn of_version(version: u16) -> Self {
        Self { is_unicode: version >= FIRST_IN_UNICODE, code_page: encoding_rs::WINDOWS_1252 }
    }

    pub fn set_code_page(&mut self, number: u16) {
        let label = match number {
            932 => "shift_jis".to_owned(),
            936 => "gbk".to_owned(),
            949 => "euc-kr".to_owned(),
            950 => "big5".to_owned(),
            866 => "ibm866".to_owned(),
            10_000 | 0x8000 => "macintosh".to_owned(),
            874 | 1_250..=1_258 => format!("windows-{number}"),
            _ => return,
        };
        if let Some(encoding) = encoding_rs::Encoding::for_label(label.as_bytes()) {
            self.code_page = encoding;
        }
    }

    /// A string whose length is in one byte.
    pub fn short(self, data: &[u8]) -> String {
        let length = usize::from(data.first().copied().unwrap_or(0));
        self.characters(data.get(1..).unwrap_or_default(), length)
    }

    /// A string whose length is in two bytes.
    pub fn long(self, data: &[u8]) -> String {
        let length = usize::from(u16_at(data, 0).unwrap_or(0));
        self.characters(data.get(2..).unwrap_or_default(), length)
    }

    /// The lengths of formats, headers and footers have grown to two bytes.
    pub fn format(self, data: &[u8]) -> String {
        if self.is_unicode { self.long(data) } else { self.short(data) }
    }

    fn characters(self, data: &[u8], length: usize) -> String {
        if !self.is_unicode {
            return self
                .code_page
                .decode_without_bom_handling(&data[..length.min(data.len())])
                .0
                .into_owned();
        }
        let Some((flags, characters)) = data.split_first() else { return String::new() };
        let mut text = String::new();
        push(characters, length, flags & 1 == 1, &mut text);
        text
    }
}

/// Adds so many characters of one or two bytes each. Returns how many there were.
fn push(bytes: &[u8], length: usize, is_wide: bool, text: &mut String) -> usize {
    if is_wide {
        let units = bytes.as_chunks().0.iter().take(length).map(|unit| u16::from_le_bytes(*unit));
        let number = units.len();
        text.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        number
    } else {
        let number = length.min(bytes.len());
        text.extend(bytes[..number].iter().map(|byte| char::from(*byte)));
        number
    }
}

/// The words of a box, which are in the records that continue its own. Each says how wide its characters are.
pub fn of_box(parts: &[&[u8]], length: usize) -> String {
    let mut text = String::new();
    let mut left = length;
    for part in parts {
        let Some((flags, characters)) = part.split_first() else { continue };
        if left == 0 {
            break;
        }
        left -= push(characters, left, flags & 1 == 1, &mut text);
    }
    text
}

/// The strings that cells share. A string may go on in the next record, which begins with the width of its characters.
pub fn shared_strings(parts: &[&[u8]], strings: &mut Strings, bounds: Bounds<'_>) -> Result<(), Error> {
    let mut reader = Parts { parts, part: 0, at: 8 };
    let mut number = 0_usize;
    // The declared number may be wrong.
    while let Some(text) = reader.string() {
        strings.push(&text);
        strings.end();
        number += 1;
        if number.is_multiple_of(4_096) {
            bounds.report_progress()?;
        }
    }
    Ok(())
}

struct Parts<'a> {
    parts: &'a [&'a [u8]],
    part: usize,
    at: usize,
}

impl Parts<'_> {
    /// What is left of this record, or else the next one.
    fn rest(&mut self) -> Option<&[u8]> {
        while self.at >= self.parts.get(self.part)?.len() {
            self.part += 1;
            self.at = 0;
        }
        self.parts[self.part].get(self.at..)
    }

    fn string(&mut self) -> Option<String> {
        let rest = self.rest()?;
        let length = usize::from(u16_at(rest, 0)?);
        let flags = *rest.get(2)?;
        let mut used = 3;
        // Where formats change, and how the string is pronounced.
        let mut formats = 0;
        let mut pronounced = 0;
        if flags & 8 != 0 {
            formats = usize::from(u16_at(rest, used)?);
            used += 2;
        }
        if flags & 4 != 0 {
            pronounced = usize::try_from(u32_at(rest, used)?).ok()?;
            used += 4;
        }
        self.at += used;
        let mut text = String::new();
        let mut left = length;
        let mut is_wide = flags & 1 == 1;
        while left > 0 {
            if self.at >= self.parts.get(self.part)?.len() {
                self.part += 1;
                is_wide = self.parts.get(self.part)?.first()? & 1 == 1;
                self.at = 1;
            }
            let read = push(&self.parts[self.part][self.at..], left, is_wide, &mut text);
            if read == 0 {
                return None;
            }
            left -= read;
            self.at += if is_wide { 2 * read } else { read };
        }
        self.skip(4 * formats + pronounced);
        Some(text)
    }

    fn skip(&mut self, mut length: usize) {
        while length > 0 {
            let Some(rest) = self.rest() else { return };
            let step = length.min(rest.len());
            self.at += step;
            length -= step;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    #[test]
    fn a_shared_string_goes_on_in_the_next_record_with_characters_of_another_width() {
        let first = [&[0; 8][..], &[3, 0, 0], b"ebb", &[4, 0, 8, 1, 0], b"ti"].concat();
        let second = [&[1][..], &[0xE9, 0, b'e', 0], &[0; 4], &[1, 0, 0, b'x']].concat();
        let mut strings = Strings::default();
        let limits = Limits::default();
        let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
        shared_strings(&[&first, &second], &mut strings, bounds).unwrap();
        assert_eq!([0, 1, 2, 3].map(|n| strings.get(n)), [Some("ebb"), Some("tiée"), Some("x"), None]);
        for length in 0..first.len() {
            shared_strings(&[&first[..length], &second], &mut Strings::default(), bounds).unwrap();
        }
    }

    #[test]
    fn strings_of_old_workbooks_are_in_a_code_page() {
        let mut encoding = Encoding::of_version(0x0500);
        encoding.set_code_page(1_251);
        assert_eq!(encoding.short(&[3, 0xC4, 0xEE, 0xEC]), "Дом");
        assert_eq!(Encoding::of_version(0x0600).long(&[2, 0, 1, 0x14, 0x04, 0x3E, 0x04]), "До");
    }
}
