//! What the fuzz targets share. Each target reads its bytes as a document of one format, with small limits.
//!
//! `make fuzz MINUTES=5` runs them all; `cargo fuzz run pdf` runs one.

use std::io::{Cursor, Write};
use std::ops::ControlFlow;

use landfall_documents::{Document, Limits, Recognised};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Reads the bytes as a document with this name. An error is as good as a text; a panic, too much memory and too much time
/// are findings.
pub fn read(name: &str, bytes: &[u8]) {
    let limits = Limits {
        text_bytes: 4 << 20,
        unpacked_bytes: 16 << 20,
        picture_bytes: 4 << 20,
        picture_pixels: 1_000_000,
        pictures: 10,
        pages: 100,
        ..Limits::default()
    };
    let document = Document { bytes, name, content_type: None };
    let reading = landfall_documents::read(document, &limits, &|| ControlFlow::Continue(()));
    let Ok(extracted) = reading.and_then(|reading| reading.finish(Recognised::NotInstalled)) else { return };
    let text = &extracted.text;
    assert!(!text.contains('\0'), "the text contains a NUL");
    for place in &extracted.places {
        assert!(text.is_char_boundary(place.start), "a place is inside a character");
    }
    for one in &extracted.boxes {
        assert!(text.is_char_boundary(one.start) && text.is_char_boundary(one.end) && one.start <= one.end);
    }
}

/// What begins a file of an archive: this, its path, and the end of the line.
const FILE: &[u8] = b"\n=== ";

/// Reads an archive of the files that the bytes list. A damaged archive would be refused before any reader sees it, so the
/// archive is made here.
pub fn read_packed(name: &str, bytes: &[u8]) {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let starts: Vec<usize> = memchr::memmem::find_iter(bytes, FILE).collect();
    for (at, start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(bytes.len());
        let file = &bytes[start + FILE.len()..end];
        let line = file.iter().position(|byte| *byte == b'\n').unwrap_or(file.len());
        let path = String::from_utf8_lossy(&file[..line]);
        // A path that is there twice is refused by the writer; the first one stays.
        if archive.start_file(path, options).is_ok() {
            archive.write_all(file.get(line + 1..).unwrap_or_default()).expect("memory");
        }
    }
    read(name, &archive.finish().expect("an archive in memory").into_inner());
}

/// A target that reads its bytes as a document with this name.
#[macro_export]
macro_rules! reads {
    ($name:literal) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $crate::read($name, bytes));
    };
    (packed $name:literal) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $crate::read_packed($name, bytes));
    };
}
