//! The parts of a packed document (DOCX, PPTX, XLSX, ODT are ZIP archives), unpacked with an eye on their size.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::{Error, ErrorKind};
use crate::limits::Bounds;

/// How much is unpacked between two looks at the limits.
const PORTION: usize = 64 * 1024;

pub struct Archive<'a> {
    parts: ZipArchive<Cursor<&'a [u8]>>,
    bounds: Bounds<'a>,
    /// What may still be unpacked.
    budget: u64,
}

impl<'a> Archive<'a> {
    pub fn open(bytes: &'a [u8], bounds: Bounds<'a>) -> Result<Self, Error> {
        // The directory is read as a whole, so its length is looked at first.
        if declared_entries(bytes).is_some_and(|entries| entries > bounds.limits.archive_entries as u64) {
            return Err(too_many_parts(bounds));
        }
        let parts = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        if parts.len() > bounds.limits.archive_entries {
            return Err(too_many_parts(bounds));
        }
        Ok(Self { parts, bounds, budget: bounds.limits.unpacked_bytes })
    }

    /// A part as text, if it is there.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, Error> {
        let Some(index) = self.parts.index_for_name(name) else { return Ok(None) };
        let mut bytes = Vec::new();
        self.unpack(index, |portion| bytes.extend_from_slice(portion))?;
        Ok(Some(xml_text(bytes)))
    }

    /// A part that the format cannot do without.
    pub fn required_text(&mut self, name: &str) -> Result<String, Error> {
        self.text(name)?.ok_or_else(|| {
            Error::new(ErrorKind::Damaged, format!("This file is damaged: its part {name} is missing"))
        })
    }

    /// Unpacks every part and keeps nothing, for readers that unpack by themselves and do not count.
    pub fn measure(&mut self) -> Result<(), Error> {
        for index in 0..self.parts.len() {
            self.unpack(index, |_| ())?;
        }
        Ok(())
    }

    fn unpack(&mut self, index: usize, mut take: impl FnMut(&[u8])) -> Result<(), Error> {
        let mut part = self.parts.by_index(index).map_err(damaged)?;
        let packed = part.compressed_size();
        let limits = self.bounds.limits;
        let mut unpacked = 0_u64;
        let mut portion = vec![0; PORTION];
        loop {
            self.bounds.report_progress()?;
            let length = part
                .read(&mut portion)
                .map_err(|error| Error::new(ErrorKind::Damaged, format!("This file is damaged: {error}")))?;
            if length == 0 {
                return Ok(());
            }
            unpacked += length as u64;
            self.budget = self.budget.saturating_sub(length as u64);
            let blown_up =
                unpacked > limits.suspicious_bytes && unpacked / packed.max(1) > limits.unpacked_ratio;
            if self.budget == 0 || blown_up {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "This file unpacks to far more than a document holds, so it is not read any further",
                ));
            }
            take(&portion[..length]);
        }
    }
}

fn too_many_parts(bounds: Bounds<'_>) -> Error {
    let most = bounds.limits.archive_entries;
    Error::new(ErrorKind::Invalid, format!("This file is packed from more than {most} parts"))
}

fn damaged(error: ZipError) -> Error {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => {
            Error::new(ErrorKind::Invalid, "This file is protected by a password")
        }
        error => Error::new(ErrorKind::Damaged, format!("This file is damaged: {error}")),
    }
}

/// The number of parts that the end of the archive speaks of.
fn declared_entries(bytes: &[u8]) -> Option<u64> {
    const END: &[u8] = b"PK\x05\x06";
    const END_64: &[u8] = b"PK\x06\x06";
    // A comment of up to 64 KiB may stand behind it.
    let tail = &bytes[bytes.len().saturating_sub(22 + 0xFFFF + 76)..];
    let at = |mark: &[u8], offset: usize, length: usize| {
        let start = tail.windows(4).rposition(|window| window == mark)? + offset;
        let field = tail.get(start..start + length)?;
        Some(field.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)))
    };
    match at(END, 10, 2)? {
        0xFFFF => at(END_64, 32, 8).or(Some(0xFFFF)),
        entries => Some(entries),
    }
}

/// The parts are UTF-8 by custom and may be UTF-16 by the standard. A byte that is neither costs one character.
fn xml_text(bytes: Vec<u8>) -> String {
    match encoding_rs::Encoding::for_bom(&bytes) {
        Some((encoding, _)) => encoding.decode(&bytes).0.into_owned(),
        None => String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}
