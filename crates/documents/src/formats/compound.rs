//! The container of Office before 2007, and of every Office document that has a password: a file system in a file.

use std::cell::Cell;
use std::collections::HashSet;

pub const MARK: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";

/// Bytes of one entry of the directory.
const ENTRY: usize = 128;
/// Where the header lists the first sectors of the table, and how many.
const LISTED: (usize, usize) = (76, 109);
/// Bytes of a sector in which short streams are kept.
const SHORT_SECTOR: usize = 64;
/// All streams together may be read this many times as long as the file. Streams of a damaged file overlap.
const MAX_READ: usize = 8;

/// The names of the streams and folders at the top level, as far as they can be read.
pub fn names(bytes: &[u8]) -> HashSet<String> {
    let container = Container::open(bytes);
    container
        .map(|container| container.top().into_iter().map(|entry| entry.name).collect())
        .unwrap_or_default()
}

/// A stream or a folder.
#[derive(Debug, Clone)]
pub struct Entry {
    pub name: String,
    pub is_folder: bool,
    first: u32,
    size: usize,
    /// Its first entry, if it is a folder.
    inside: u32,
}

pub struct Container<'a> {
    sectors: Sectors<'a>,
    directory: Vec<u8>,
    /// The content of the short streams, and which of its sectors comes after which.
    short: Vec<u8>,
    short_table: Vec<u8>,
    /// Streams below this size are short.
    short_below: usize,
    /// How many bytes may still be read.
    budget: Cell<usize>,
}

impl<'a> Container<'a> {
    pub fn open(bytes: &'a [u8]) -> Option<Self> {
        let sectors = Sectors::open(bytes)?;
        let directory = sectors.chain(number(bytes, 48)?);
        let short_table = number(bytes, 60).map(|first| sectors.chain(first)).unwrap_or_default();
        let short_below = number(bytes, 56).and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
        let budget = Cell::new(bytes.len().saturating_mul(MAX_READ));
        let mut container = Self { sectors, directory, short: Vec::new(), short_table, short_below, budget };
        let top = container.entry(0)?;
        container.short = container.sectors.chain(top.first);
        Some(container)
    }

    /// What is at the top level.
    pub fn top(&self) -> Vec<Entry> {
        self.entry(0).map(|top| self.inside(&top)).unwrap_or_default()
    }

    /// What is in a folder. Its entries are a tree, which may have cycles in a damaged file.
    pub fn inside(&self, folder: &Entry) -> Vec<Entry> {
        let mut to_visit = vec![folder.inside];
        let mut visited = HashSet::new();
        let mut entries = Vec::new();
        while let Some(index) = to_visit.pop() {
            let Some(entry) = self.entry(index) else { continue };
            if visited.insert(index) {
                let bytes = self.bytes_of(index).unwrap_or_default();
                to_visit.extend([number(bytes, 72), number(bytes, 68)].into_iter().flatten());
                entries.push(entry);
            }
        }
        entries
    }

    /// A stream at the top level, by its name in upper or lower case.
    pub fn stream(&self, name: &str) -> Option<Vec<u8>> {
        let top = self.top();
        top.iter()
            .find(|entry| !entry.is_folder && entry.name.eq_ignore_ascii_case(name))
            .map(|entry| self.read(entry))
    }

    /// The content of a stream. It is empty when the streams together are longer than the file could hold.
    pub fn read(&self, stream: &Entry) -> Vec<u8> {
        let mut content = if stream.size < self.short_below {
            self.read_short(stream.first, stream.size)
        } else {
            self.sectors.chain_up_to(stream.first, stream.size.min(self.budget.get()))
        };
        content.truncate(stream.size);
        let left = self.budget.get().checked_sub(content.len());
        self.budget.set(left.unwrap_or(0));
        if left.is_some() { content } else { Vec::new() }
    }

    fn read_short(&self, first: u32, size: usize) -> Vec<u8> {
        let mut content = Vec::new();
        let mut next = Some(first);
        while let Some(index) = next.and_then(|index| usize::try_from(index).ok())
            && content.len() < size
            && let Some(at) = index.checked_mul(SHORT_SECTOR)
            && let Some(rest) = self.short.get(at..)
            && !rest.is_empty()
        {
            content.extend_from_slice(&rest[..rest.len().min(SHORT_SECTOR)]);
            next = index.checked_mul(4).and_then(|at| number(&self.short_table, at));
        }
        content
    }

    fn bytes_of(&self, index: u32) -> Option<&[u8]> {
        let at = usize::try_from(index).ok()?.checked_mul(ENTRY)?;
        self.directory.get(at..at.checked_add(ENTRY)?)
    }

    fn entry(&self, index: u32) -> Option<Entry> {
        let bytes = self.bytes_of(index)?;
        Some(Entry {
            name: name(bytes),
            is_folder: matches!(bytes[66], 1 | 5),
            first: number(bytes, 116)?,
            size: usize::try_from(number(bytes, 120)?).ok()?,
            inside: number(bytes, 76)?,
        })
    }
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
        self.chain_up_to(first, self.bytes.len())
    }

    /// The content of a chain, up to the end of the sector in which this length is reached.
    fn chain_up_to(&self, first: u32, length: usize) -> Vec<u8> {
        let mut content = Vec::new();
        let mut next = Some(first);
        while let Some(index) = next
            && content.len() < length.min(self.bytes.len())
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

    #[test]
    fn streams_are_read_whether_they_are_short_or_long() {
        let long: Vec<u8> = (0..9_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let streams: [(&str, &[u8]); 4] =
            [("WORDDOCUMENT", &long), ("short", b"tides"), ("none", b""), ("other", &long[..200])];
        let bytes = landfall_test_documents::compound_of(&streams);
        let container = Container::open(&bytes).unwrap();
        for (name, content) in streams {
            assert_eq!(container.stream(&name.to_lowercase()).unwrap(), content, "{name}");
        }
        assert_eq!(container.stream("missing"), None);
    }

    #[test]
    fn streams_that_overlap_do_not_multiply() {
        let bytes = landfall_test_documents::compound_of(&[("a", &[7; 5_000])]);
        let container = Container::open(&bytes).unwrap();
        let read: usize = (0..10_000).map(|_| container.stream("a").unwrap().len()).sum();
        assert!(read <= MAX_READ * bytes.len(), "{read}");
    }
}
