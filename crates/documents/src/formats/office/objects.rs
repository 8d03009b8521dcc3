//! What is inside an Office document beside its words: documents, pictures, charts and diagrams.

use std::collections::HashSet;

use super::{Relation, chart, diagram, file_name, not_read_beside, pictures_not_read};
use crate::archive::Archive;
use crate::embedded::Embedded;
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::formats::compound::{self, Container, Entry};
use crate::limits::Bounds;
use crate::read::Document;
use landfall_core::warning::Warning;

/// A smaller picture is a bullet or a line, in bytes.
const MIN_PICTURE: usize = 1_500;
/// A picture with a shorter side than this many pixels has no line of text.
const MIN_SIDE: u32 = 16;

/// Reads the parts that a document refers to, each where it is referred to.
#[derive(Default)]
pub struct Objects {
    embedded: Embedded,
    /// The parts that were read. The same logo may be on every page.
    seen: HashSet<String>,
    /// Pictures that OCR cannot read, or that are too many.
    left_out: Vec<(String, u64)>,
}

impl Objects {
    /// Reads a document that is embedded, where the flow is now.
    pub fn document(
        &mut self,
        archive: &mut Archive<'_>,
        part: &str,
        flow: &mut Flow,
        bounds: Bounds<'_>,
    ) -> Result<(), Error> {
        if !self.seen.insert(part.to_owned()) {
            return Ok(());
        }
        let Some(bytes) = archive.bytes(part)? else { return Ok(()) };
        self.bytes(&bytes, file_name(part), flow, bounds)
    }

    /// Reads the bytes of an embedded document, which may be wrapped as an OLE object.
    pub fn bytes(
        &mut self,
        bytes: &[u8],
        name: &str,
        flow: &mut Flow,
        bounds: Bounds<'_>,
    ) -> Result<(), Error> {
        flow.widen(Gap::Paragraph);
        match unwrapped(bytes) {
            Some((inner_name, inner)) => {
                let name = if inner_name.is_empty() { name } else { &inner_name };
                self.embedded.read(Document { bytes: &inner, name, content_type: None }, flow, bounds)?;
            }
            None => _ = self.embedded.read(Document { bytes, name, content_type: None }, flow, bounds)?,
        }
        flow.widen(Gap::Paragraph);
        Ok(())
    }

    /// Reads an object of an old Office document, which is a folder of its container.
    pub fn folder(
        &mut self,
        container: &Container<'_>,
        folder: &Entry,
        flow: &mut Flow,
        bounds: Bounds<'_>,
    ) -> Result<(), Error> {
        let inside = container.inside(folder);
        let stream = |name: &str| {
            let found =
                inside.iter().find(|entry| !entry.is_folder && entry.name.eq_ignore_ascii_case(name))?;
            Some(container.read(found)).filter(|content| !content.is_empty())
        };
        match packed(stream) {
            Some((name, bytes)) => {
                let name = if name.is_empty() { folder.name.clone() } else { name };
                self.bytes(&bytes, &name, flow, bounds)
            }
            None => {
                self.skip(&folder.name);
                Ok(())
            }
        }
    }

    /// Remembers a document that cannot be read.
    pub fn skip(&mut self, name: &str) {
        self.embedded.skip(name);
    }

    /// Passes a picture on to OCR.
    pub fn picture(
        &mut self,
        archive: &mut Archive<'_>,
        part: &str,
        page: Option<i64>,
        flow: &mut Flow,
    ) -> Result<(), Error> {
        if !self.seen.insert(part.to_owned()) {
            return Ok(());
        }
        let Some(bytes) = archive.bytes(part)? else { return Ok(()) };
        self.picture_bytes(&bytes, part, page, flow);
        Ok(())
    }

    /// Passes a picture on to OCR that is no part of its own.
    pub fn picture_bytes(&mut self, bytes: &[u8], part: &str, page: Option<i64>, flow: &mut Flow) {
        let may_have_words = bytes.len() >= MIN_PICTURE && !is_small(bytes);
        if may_have_words && !(crate::kind::is_picture(bytes) && flow.picture(page, bytes)) {
            self.seen.remove(part);
            self.left_out.push((part.to_owned(), bytes.len() as u64));
        }
    }

    /// Writes a chart.
    pub fn chart(
        &mut self,
        archive: &mut Archive<'_>,
        part: &str,
        flow: &mut Flow,
        bounds: Bounds<'_>,
    ) -> Result<(), Error> {
        self.seen.insert(part.to_owned());
        match archive.text(part)? {
            Some(source) => chart::write(&source, flow, bounds),
            None => Ok(()),
        }
    }

    /// Writes a SmartArt diagram by its data.
    pub fn diagram(
        &mut self,
        archive: &mut Archive<'_>,
        part: &str,
        flow: &mut Flow,
        bounds: Bounds<'_>,
    ) -> Result<(), Error> {
        self.seen.insert(part.to_owned());
        match archive.text(part)? {
            Some(source) => diagram::write(&source, flow, bounds),
            None => Ok(()),
        }
    }

    /// Reads whatever a relation leads to, if it is one of these.
    pub fn related(
        &mut self,
        archive: &mut Archive<'_>,
        relation: &Relation,
        page: Option<i64>,
        flow: &mut Flow,
        bounds: Bounds<'_>,
    ) -> Result<(), Error> {
        match relation.kind.as_str() {
            "chart" | "chartEx" => self.chart(archive, &relation.target, flow, bounds),
            "diagramData" => self.diagram(archive, &relation.target, flow, bounds),
            "image" => self.picture(archive, &relation.target, page, flow),
            "package" | "oleObject" | "aFChunk" => self.document(archive, &relation.target, flow, bounds),
            _ => Ok(()),
        }
    }

    /// The warnings about what was not read, of a document with this text.
    pub fn finish(
        self,
        archive: &mut Archive<'_>,
        text: &str,
        bounds: Bounds<'_>,
    ) -> Result<Vec<Warning>, Error> {
        let mut warnings: Vec<Warning> = self.embedded.finish("embedded file").into_iter().collect();
        warnings.extend(not_read_beside(&self.seen, archive, text, bounds)?);
        Ok(warnings)
    }

    /// The same for a file without parts.
    pub fn finish_flat(self, text: &str) -> Vec<Warning> {
        let pictures = pictures_not_read(&self.left_out, text);
        self.embedded.finish("embedded file").into_iter().chain(pictures).collect()
    }
}

/// The document in an OLE object, with its name if it has one; `None` if the bytes are the document.
fn unwrapped(bytes: &[u8]) -> Option<(String, Vec<u8>)> {
    if !bytes.starts_with(compound::MARK) {
        return None;
    }
    let container = Container::open(bytes)?;
    packed(|name| container.stream(name).filter(|content| !content.is_empty()))
}

/// The file that is packed into an object with these streams.
fn packed(stream: impl Fn(&str) -> Option<Vec<u8>>) -> Option<(String, Vec<u8>)> {
    if let Some(native) = stream("\u{1}Ole10Native") {
        return native_file(&native);
    }
    let whole = ["Package", "EmbeddedOdf", "package_stream", "CONTENTS"].into_iter().find_map(stream)?;
    Some((String::new(), whole))
}

/// A file that was put into a document as it is: its name, two paths, and its bytes.
fn native_file(stream: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut rest = stream.get(6..)?;
    let mut text = || {
        let length = rest.iter().position(|byte| *byte == 0)?;
        let (text, after) = rest.split_at(length);
        rest = &after[1..];
        Some(String::from_utf8_lossy(text).into_owned())
    };
    let name = text()?;
    text()?;
    let path_length = usize::try_from(u32::from_le_bytes(*rest.get(4..)?.first_chunk()?)).ok()?;
    let data = rest.get(8_usize.checked_add(path_length)?..)?;
    let length = usize::try_from(u32::from_le_bytes(*data.first_chunk()?)).ok()?;
    let bytes = data.get(4..)?;
    Some((name, bytes[..length.min(bytes.len())].to_vec()))
}

/// Whether the picture says that it has few pixels.
fn is_small(bytes: &[u8]) -> bool {
    let sides = match bytes {
        [0x89, b'P', b'N', b'G', ..] => {
            let side = |at: usize| bytes.get(at..)?.first_chunk().map(|side| u32::from_be_bytes(*side));
            side(16).zip(side(20))
        }
        _ => None,
    };
    sides.is_some_and(|(width, height)| width.min(height) < MIN_SIDE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_out_of_its_wrapping() {
        let native: Vec<u8> = [
            &[0_u8; 6][..],
            b"notes.txt\0C:\\notes.txt\0\0\0\x03\0",
            &6_u32.to_le_bytes(),
            b"C:\\tmp",
            &4_u32.to_le_bytes(),
            b"tide and more",
        ]
        .concat();
        let object = landfall_test_documents::compound_of(&[("\u{1}Ole10Native", &native)]);
        assert_eq!(unwrapped(&object), Some(("notes.txt".to_owned(), b"tide".to_vec())));
        for length in 0..native.len() {
            native_file(&native[..length]);
        }
        let object = landfall_test_documents::compound_of(&[("PACKAGE", b"PK inside")]);
        assert_eq!(unwrapped(&object), Some((String::new(), b"PK inside".to_vec())));
        let document = landfall_test_documents::compound_of(&[("WordDocument", b"words")]);
        assert_eq!(unwrapped(&document), None);
    }
}
