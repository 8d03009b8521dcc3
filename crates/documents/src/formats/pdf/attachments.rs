//! The files that are attached to a PDF.

use std::collections::HashSet;

use pdf_oxide::PdfDocument;
use pdf_oxide::object::{Object, ObjectRef};

use super::outline;
use super::streams::Streams;
use crate::embedded::Embedded;
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::read::Document;

/// The most nodes of the tree of names that are visited, and the most names that are read.
const MAX_NODES: usize = 1_000;
const MAX_NAMES: usize = 10_000;

/// Reads the attached files, after the text of the pages.
pub fn read(
    document: &PdfDocument,
    streams: &Streams,
    embedded: &mut Embedded,
    flow: &mut Flow,
    bounds: Bounds<'_>,
) -> Result<(), Error> {
    for (name, file) in files(document) {
        bounds.report_progress()?;
        match contents(document, streams, &file) {
            Some(bytes) => {
                flow.widen(Gap::Paragraph);
                let attached = Document { bytes: &bytes, name: &name, content_type: None };
                embedded.read(attached, flow, bounds)?;
            }
            None => embedded.skip(&name),
        }
    }
    Ok(())
}

/// The bytes of an attached file.
fn contents(document: &PdfDocument, streams: &Streams, file: &Object) -> Option<Vec<u8>> {
    let versions = member(document, file, "EF")?;
    let versions = versions.as_dict()?;
    let (_, bytes) = ["F", "UF"].iter().find_map(|name| streams.load(document, versions.get(*name)?))?;
    Some(bytes).filter(|bytes| !bytes.is_empty())
}

/// The name of each attached file, and its description.
fn files(document: &PdfDocument) -> Vec<(String, Object)> {
    let mut names: Vec<(String, Object)> = Vec::new();
    let catalog = document.catalog().ok();
    let tree = catalog.and_then(|catalog| member(document, &catalog, "Names"));
    let mut waiting: Vec<Object> =
        tree.and_then(|names| member(document, &names, "EmbeddedFiles")).into_iter().collect();
    // The tree may have a cycle.
    let mut visited: HashSet<ObjectRef> = HashSet::new();
    while let Some(node) = waiting.pop() {
        if let Some(Object::Array(below)) = member(document, &node, "Kids") {
            for child in below.iter().rev().filter_map(Object::as_reference) {
                if visited.len() < MAX_NODES && visited.insert(child) {
                    waiting.extend(document.load_object(child).ok());
                }
            }
        }
        // Pairs of a key and a file.
        if let Some(Object::Array(pairs)) = member(document, &node, "Names") {
            let files = pairs.as_chunks().0.iter().take(MAX_NAMES - names.len());
            names.extend(files.map(|[key, file]| {
                let file = document.resolve_object(file).unwrap_or(Object::Null);
                (name(document, key, &file), file)
            }));
        }
    }
    names
}

fn name(document: &PdfDocument, key: &Object, file: &Object) -> String {
    let name = ["UF", "F"].iter().find_map(|field| member(document, file, field));
    let name = name.as_ref().and_then(Object::as_string).or(key.as_string());
    name.map(outline::decode)
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "a file without a name".to_owned())
}

fn member(document: &PdfDocument, object: &Object, name: &str) -> Option<Object> {
    document.resolve_object(object.as_dict()?.get(name)?).ok()
}
