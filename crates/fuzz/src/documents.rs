//! The readers of documents, one target for each format, and the protocol of the process that they run in.

use std::io::{Cursor, Write};
use std::ops::ControlFlow;

use landfall_documents::sandbox::fuzzing;
use landfall_documents::{ArchiveLimits, Document, Limits, Recognised};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::Target;

/// A target that reads its bytes as a document with the name of a file.
macro_rules! reads {
    ($target:literal, $file:literal) => {
        Target { name: $target, run: |bytes| read($file, bytes) }
    };
}

/// A target that packs the files which its bytes list, and reads the archive.
macro_rules! reads_packed {
    ($target:literal, $file:literal) => {
        Target { name: $target, run: |bytes| read_packed($file, bytes) }
    };
}

pub(crate) const TARGETS: &[Target] = &[
    reads!("asciidoc", "a.adoc"),
    reads!("csv", "a.csv"),
    reads!("doc", "a.doc"),
    reads_packed!("docx", "a.docx"),
    reads!("eml", "a.eml"),
    reads_packed!("epub", "a.epub"),
    reads!("fodt", "a.fodt"),
    reads!("html", "a.html"),
    reads_packed!("iwork", "a.pages"),
    reads!("json", "a.json"),
    reads!("latex", "a.tex"),
    reads!("markdown", "a.md"),
    reads!("mbox", "a.mbox"),
    reads!("mhtml", "a.mhtml"),
    reads!("msg", "a.msg"),
    reads!("notebook", "a.ipynb"),
    reads_packed!("odp", "a.odp"),
    reads_packed!("ods", "a.ods"),
    reads_packed!("odt", "a.odt"),
    reads!("org", "a.org"),
    reads!("p7m", "a.p7m"),
    reads!("pdf", "a.pdf"),
    reads!("picture", "a.png"),
    reads!("plain", "a.txt"),
    reads!("ppt", "a.ppt"),
    reads_packed!("pptx", "a.pptx"),
    reads!("rst", "a.rst"),
    reads!("rtf", "a.rtf"),
    reads!("subtitles", "a.srt"),
    reads!("tnef", "winmail.dat"),
    reads!("xls", "a.xls"),
    reads_packed!("xlsb", "a.xlsb"),
    reads_packed!("xlsx", "a.xlsx"),
    reads!("xml", "a.xml"),
    reads!("zip", "a.zip"),
    reads_packed!("zip_of_files", "a.zip"),
    Target { name: "zip_members", run: unpack },
    Target { name: "sandbox_request", run: fuzzing::read_request },
    Target { name: "sandbox_response", run: fuzzing::read_response },
];

/// Reads the bytes as a document with this name. An error is as good as a text.
fn read(name: &str, bytes: &[u8]) {
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
        let is_part = one.start <= one.end && text.get(one.start..one.end).is_some();
        assert!(is_part, "a box is not a part of the text");
    }
}

/// What begins a file of an archive: this, its path, and the end of the line.
const FILE: &[u8] = b"\n=== ";

/// Reads an archive of the files that the bytes list. A damaged archive would be refused before any reader sees its files, so
/// a whole one is made here.
fn read_packed(name: &str, bytes: &[u8]) {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let starts: Vec<usize> = memchr::memmem::find_iter(bytes, FILE).collect();
    for (at, start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(bytes.len());
        let file = &bytes[start + FILE.len()..end];
        let line = memchr::memchr(b'\n', file).unwrap_or(file.len());
        let path = String::from_utf8_lossy(&file[..line]);
        // The writer refuses a path that it has already. The first one stays.
        if archive.start_file(path, options).is_ok() {
            archive.write_all(file.get(line + 1..).unwrap_or_default()).expect("memory");
        }
    }
    read(name, &archive.finish().expect("an archive in memory").into_inner());
}

/// Unpacks the bytes as an archive whose files become documents of their own.
fn unpack(bytes: &[u8]) {
    let limits = ArchiveLimits { total_bytes: 16 << 20, member_bytes: 4 << 20, ..ArchiveLimits::default() };
    let goes_on = || ControlFlow::Continue(());
    // An archive that cannot be unpacked is an error, which is an answer.
    _ = landfall_documents::archive_members(bytes, &limits, &goes_on, &mut |_| Ok(()));
}
