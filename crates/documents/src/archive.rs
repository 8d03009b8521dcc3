//! Unpacks the parts of a packed document (DOCX, PPTX, XLSX, ODT are ZIP archives) within the limits.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::{Error, ErrorKind};
use crate::limits::Bounds;

/// How much is unpacked between two checks of the limits.
const BATCH_SIZE: usize = 64 * 1024;

pub struct Archive<'a> {
    parts: ZipArchive<Cursor<&'a [u8]>>,
    bounds: Bounds<'a>,
    /// How many bytes may still be unpacked.
    budget: u64,
}

impl<'a> Archive<'a> {
    pub fn open(bytes: &'a [u8], bounds: Bounds<'a>) -> Result<Self, Error> {
        // The directory is read as a whole, so its declared length is checked first.
        if declared_entries(bytes).is_some_and(|entries| entries > bounds.limits.archive_entries as u64) {
            return Err(too_many_parts(bounds));
        }
        let parts = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        if parts.len() > bounds.limits.archive_entries {
            return Err(too_many_parts(bounds));
        }
        Ok(Self { parts, bounds, budget: bounds.limits.unpacked_bytes })
    }

    /// Returns a part as text; `None` if there is no such part.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, Error> {
        Ok(self.bytes(name)?.map(xml_text))
    }

    /// Whether there is such a part.
    pub fn has(&self, name: &str) -> bool {
        self.parts.index_for_name(name).is_some()
    }

    /// Returns a part as it is; `None` if there is no such part.
    pub fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(index) = self.parts.index_for_name(name) else { return Ok(None) };
        let mut bytes = Vec::new();
        self.unpack(index, |batch| bytes.extend_from_slice(batch))?;
        Ok(Some(bytes))
    }

    /// The names of all parts, with the sizes that they declare.
    pub fn parts(&mut self) -> Vec<(String, u64)> {
        let number = self.parts.len();
        let part = |index| {
            let part = self.parts.by_index_raw(index).ok()?;
            Some((part.name().ok()?.into_owned(), part.size()))
        };
        (0..number).filter_map(part).collect()
    }

    /// Returns a part that the format requires.
    pub fn required_text(&mut self, name: &str) -> Result<String, Error> {
        self.text(name)?.ok_or_else(|| {
            Error::new(ErrorKind::Damaged, format!("This file is damaged: its part {name} is missing"))
        })
    }

    fn unpack(&mut self, index: usize, mut take: impl FnMut(&[u8])) -> Result<(), Error> {
        let mut part = self.parts.by_index(index).map_err(damaged)?;
        let packed = part.compressed_size();
        let limits = self.bounds.limits;
        let mut unpacked = 0_u64;
        let mut batch = vec![0; BATCH_SIZE];
        loop {
            self.bounds.report_progress()?;
            let length = part.read(&mut batch).map_err(cannot_be_unpacked)?;
            if length == 0 {
                return Ok(());
            }
            unpacked += length as u64;
            self.budget = self.budget.saturating_sub(length as u64);
            let is_bomb =
                unpacked > limits.suspicious_bytes && unpacked / packed.max(1) > limits.unpacked_ratio;
            if self.budget == 0 || is_bomb {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "This file unpacks to far more than a document holds, so it is not read any further",
                ));
            }
            take(&batch[..length]);
        }
    }
}

fn too_many_parts(bounds: Bounds<'_>) -> Error {
    let limit = bounds.limits.archive_entries;
    Error::new(ErrorKind::Invalid, format!("This file is packed from more than {limit} parts"))
}

fn damaged(error: ZipError) -> Error {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => {
            Error::new(ErrorKind::Invalid, "This file is protected by a password. Upload a copy without one")
        }
        error => cannot_be_unpacked(error),
    }
}

fn cannot_be_unpacked(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Damaged, "This file is damaged: its parts cannot be unpacked").with_detail(error)
}

/// The number of parts that the record at the end of the archive declares.
pub fn declared_entries(bytes: &[u8]) -> Option<u64> {
    const END: &[u8] = b"PK\x05\x06";
    const END_64: &[u8] = b"PK\x06\x06";
    // A comment of up to 64 KiB may follow it.
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

/// The parts are usually UTF-8; the standard allows UTF-16. An invalid byte becomes a replacement character.
fn xml_text(bytes: Vec<u8>) -> String {
    match encoding_rs::Encoding::for_bom(&bytes) {
        Some((encoding, _)) => encoding.decode(&bytes).0.into_owned(),
        None => String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}
