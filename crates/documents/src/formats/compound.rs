//! The container of Office before 2007, and of every Office document that has a password: a file system in a file.
//!
//! Only the names at its top level are read, which say what it is.

use std::collections::HashSet;

pub const MARK: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";

/// Bytes of one entry of the directory.
const ENTRY: usize = 128;
/// Where the header lists the first sectors of the table, and how many.
const LISTED: (usize, usize) = (76, 109);

/// The names of the streams and folders at the top level, as far as they can be read.
pub fn names(bytes: &[u8]) -> HashSet<String> {
    read_names(bytes).unwrap_or_default()
}

fn read_names(bytes: &[u8]) -> Option<HashSet<String>> {
    let sectors = Sectors::open(bytes)?;
    let directory = sectors.chain(number(bytes, 48)?);
    let entry = |index: u32| {
        let at = usize::try_from(index).ok()?.checked_mul(ENTRY)?;
        directory.get(at..at.checked_add(ENTRY)?)
    };
    // The first entry is the top; those in it are a tree.
    let mut to_visit = vec![number(entry(0)?, 76)?];
    let mut visited = HashSet::new();
    let mut names = HashSet::new();
    while let Some(index) = to_visit.pop() {
        let Some(entry) = entry(index) else { continue };
        if visited.insert(index) {
            names.insert(name(entry));
            to_visit.extend([number(entry, 68)?, number(entry, 72)?]);
        }
    }
    Some(names)
}

fn name(entry: &[u8]) -> String {
    let units = entry[..64].as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit));
    char::decode_utf16(units.take_while(|unit| *unit != 0)).map(|c| c.unwrap_or('\u{FFFD}')).collect()
}

/// The sectors of the file, and the table of which one comes after which.
struct Sectors<'a> {
    bytes: &'a [u8],
    size: usize,
    /// The sectors that hold the table.
    table: Vec<u32>,
}

impl<'a> Sectors<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        let size = match bytes.get(30..32)? {
            [9, 0] => 512,
            [12, 0] => 4_096,
            _ => return None,
        };
        let mut sectors = Self { bytes, size, table: Vec::new() };
        let (at, most) = LISTED;
        sectors.table = (0..most).map_while(|n| number(bytes, at + 4 * n)).collect();
        // A large file lists the rest in sectors of their own, each ending with where the next one is.
        let mut next = number(bytes, 68)?;
        while sectors.table.len() * size < bytes.len()
            && let Some(sector) = sectors.sector(next)
        {
            let last = size - 4;
            sectors.table.extend((0..last).step_by(4).map_while(|at| number(sector, at)));
            next = number(sector, last)?;
        }
        Some(sectors)
    }

    fn sector(&self, index: u32) -> Option<&'a [u8]> {
        let at = usize::try_from(index).ok()?.checked_add(1)?.checked_mul(self.size)?;
        // The last one may be cut short.
        let end = at.checked_add(self.size)?.min(self.bytes.len());
        self.bytes.get(at..end).filter(|sector| !sector.is_empty())
    }

    /// The content of a chain of sectors. A chain with a cycle ends at the length of the file.
    fn chain(&self, first: u32) -> Vec<u8> {
        let mut content = Vec::new();
        let mut next = Some(first);
        while let Some(index) = next
            && content.len() < self.bytes.len()
            && let Some(sector) = self.sector(index)
        {
            content.extend_from_slice(sector);
            next = self.after(index);
        }
        content
    }

    fn after(&self, index: u32) -> Option<u32> {
        let index = usize::try_from(index).ok()?;
        let in_each = self.size / 4;
        let sector = self.sector(*self.table.get(index / in_each)?)?;
        number(sector, index % in_each * 4)
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A container of these entries, each with what is before, after and in it, and of other bytes.
    fn made(entries: &[(&str, [u32; 3])], other: &[u8]) -> Vec<u8> {
        const NONE: u32 = u32::MAX;
        const END: u32 = 0xFFFF_FFFE;
        let mut bytes = [MARK, &[0; 504]].concat();
        bytes[30] = 9;
        bytes[48..52].copy_from_slice(&1_u32.to_le_bytes());
        bytes[68..72].copy_from_slice(&END.to_le_bytes());
        for n in 0..LISTED.1 {
            let sector = if n == 0 { 0 } else { NONE };
            bytes[LISTED.0 + 4 * n..][..4].copy_from_slice(&sector.to_le_bytes());
        }
        // The directory is in two halves with the other bytes between them: only the table says so.
        let table = [0xFFFF_FFFD, 3, END, END];
        bytes.extend(table.into_iter().chain([NONE; 124]).flat_map(u32::to_le_bytes));
        let mut directory = Vec::new();
        for (name, links) in entries {
            let mut entry: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            entry.resize(ENTRY, 0);
            for (at, link) in [68, 72, 76].into_iter().zip(links) {
                entry[at..at + 4].copy_from_slice(&link.to_le_bytes());
            }
            directory.extend(entry);
        }
        directory.resize(1_024, 0xFF);
        let mut other = other.to_vec();
        other.resize(512, 0);
        [&bytes, &directory[..512], &other, &directory[512..]].concat()
    }

    #[test]
    fn only_names_at_the_top_level_count() {
        const NONE: u32 = u32::MAX;
        let mention: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let bytes = made(
            &[
                ("Root Entry", [NONE, NONE, 1]),
                ("Workbook", [2, 4, NONE]),
                ("MBD0001", [NONE, NONE, 3]),
                ("WordDocument", [NONE, NONE, NONE]),
                ("SummaryInformation", [1, NONE, NONE]),
            ],
            &mention,
        );
        let names = names(&bytes);
        let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        assert_eq!(sorted, ["MBD0001", "SummaryInformation", "Workbook"]);
    }

    #[test]
    fn a_container_that_is_damaged_has_the_names_that_are_left() {
        let bytes = made(&[("Root Entry", [u32::MAX, u32::MAX, 1]), ("Book", [1, 0, 0])], b"");
        assert!(names(&bytes).contains("Book"));
        for length in 0..bytes.len() {
            names(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xFF;
            names(&damaged);
        }
    }
}
