//! The headings of a PDF, from its outline: the list of chapters that readers show beside the pages.
//!
//! An entry names a page, not a line. So its words are searched in the text, and only an entry that is a line of its
//! own there becomes a heading.

use std::collections::{HashMap, HashSet};

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use pdf_oxide::PdfDocument;
use pdf_oxide::object::{Object, ObjectRef};

use landfall_core::text::{Extracted, Place};

/// The most entries that are read. An outline is a linked list, which may have a cycle.
const MAX_ENTRIES: usize = 5_000;

pub fn add_headings(document: &PdfDocument, extracted: &mut Extracted) {
    let mut titles: HashMap<String, String> =
        titles(document).into_iter().map(|title| (normalised(&title), title)).collect();
    titles.remove("");
    if titles.is_empty() {
        return;
    }
    let mut start = 0;
    for line in extracted.text.split_inclusive('\n') {
        if let Some(title) = titles.remove(&normalised(line)) {
            extracted.places.push(Place { start, page: None, heading: Some(title) });
        }
        start += line.len();
    }
    // A page that begins with a heading comes before it.
    extracted.places.sort_by_key(|place| (place.start, place.page.is_none()));
}

fn titles(document: &PdfDocument) -> Vec<String> {
    let mut titles = Vec::new();
    let mut visited = HashSet::new();
    let catalog = document.catalog().ok();
    let outlines = catalog.as_ref().and_then(|catalog| member(document, catalog, "Outlines"));
    let mut waiting: Vec<ObjectRef> = outlines.iter().filter_map(|root| reference(root, "First")).collect();
    while let Some(entry) = waiting.pop() {
        if visited.len() >= MAX_ENTRIES || !visited.insert(entry) {
            continue;
        }
        let Ok(object) = document.load_object(entry) else { continue };
        if let Some(Object::String(title)) = member(document, &object, "Title") {
            titles.push(decode(&title));
        }
        // The entries below come before the next one of the same level.
        waiting.extend(reference(&object, "Next"));
        waiting.extend(reference(&object, "First"));
    }
    titles
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

/// The text of a string.
pub fn decode(title: &[u8]) -> String {
    let encoding = match title {
        [0xFE, 0xFF, ..] => UTF_16BE,
        [0xFF, 0xFE, ..] => UTF_16LE,
        [0xEF, 0xBB, 0xBF, ..] => UTF_8,
        _ => WINDOWS_1252,
    };
    let (title, _, _) = encoding.decode(title);
    title.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A heading often has a number in the text and none in the outline, or the other way round.
fn normalised(line: &str) -> String {
    let words = line.split_whitespace().skip_while(|word| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_digit() || c == '.')
    });
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}
