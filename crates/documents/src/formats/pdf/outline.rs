//! The headings of a PDF, from its outline: the list of chapters that readers show beside the pages.
//!
//! An entry names a page, not a line. So its words are searched in the text, and only an entry that is a line of its
//! own there becomes a heading.

use std::collections::{HashMap, HashSet};

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use pdf_oxide::PdfDocument;
use pdf_oxide::object::{Object, ObjectRef};

/// The most entries that are read. An outline is a linked list, which may have a cycle.
const MAX_ENTRIES: usize = 5_000;

/// The titles of the chapters, each with its depth in the outline, from 0.
#[derive(Debug, Default)]
pub struct Outline {
    depths: HashMap<String, u8>,
}

impl Outline {
    /// How deep a title is in the outline; `None` if it is not there.
    pub fn depth(&self, title: &str) -> Option<u8> {
        if self.depths.is_empty() { None } else { self.depths.get(&normalised(title)).copied() }
    }

    pub fn of(document: &PdfDocument) -> Self {
        let mut depths = HashMap::new();
        let mut visited = HashSet::new();
        let catalog = document.catalog().ok();
        let outlines = catalog.as_ref().and_then(|catalog| member(document, catalog, "Outlines"));
        let first = outlines.iter().filter_map(|root| reference(root, "First"));
        let mut waiting: Vec<(ObjectRef, u8)> = first.map(|entry| (entry, 0)).collect();
        while let Some((entry, depth)) = waiting.pop() {
            if visited.len() >= MAX_ENTRIES || !visited.insert(entry) {
                continue;
            }
            let Ok(object) = document.load_object(entry) else { continue };
            if let Some(Object::String(title)) = member(document, &object, "Title") {
                depths.entry(normalised(&decode(&title))).or_insert(depth);
            }
            // The entries below come before the next one of the same level.
            waiting.extend(reference(&object, "Next").map(|next| (next, depth)));
            waiting.extend(reference(&object, "First").map(|first| (first, depth.saturating_add(1))));
        }
        depths.remove("");
        Self { depths }
    }
}

fn reference(object: &Object, name: &str) -> Option<ObjectRef> {
    match object.as_dict()?.get(name)? {
        Object::Reference(reference) => Some(*reference),
        _ => None,
    }
}

fn member(document: &PdfDocument, object: &Object, name: &str) -> Option<Object> {
    match object.as_dict()?.get(name)? {
        Object::Reference(reference) => document.load_object(*reference).ok(),
        direct => Some(direct.clone()),
    }
}

/// The text of a string, on one line.
pub fn decode(title: &[u8]) -> String {
    decode_lines(title).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of a string, with its lines.
pub fn decode_lines(text: &[u8]) -> String {
    let encoding = match text {
        [0xFE, 0xFF, ..] => UTF_16BE,
        [0xFF, 0xFE, ..] => UTF_16LE,
        [0xEF, 0xBB, 0xBF, ..] => UTF_8,
        _ => WINDOWS_1252,
    };
    let (text, _, _) = encoding.decode(text);
    text.into_owned()
}

/// A heading often has a number in the text and none in the outline, or the other way round.
fn normalised(line: &str) -> String {
    let words = line.split_whitespace().skip_while(|word| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_digit() || c == '.')
    });
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}
