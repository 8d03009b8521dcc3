//! The tree of pages, walked before the library does it.
//!
//! The library counts pages by walking the tree without remembering where it was. In a tree that contains a part of itself
//! twice, the number of its steps doubles with each level. So the walk is done here first, with a bound on its steps, and a
//! document for which the library would need more is refused.

use std::collections::HashSet;

use pdf_oxide::PdfDocument;
use pdf_oxide::object::{Object, ObjectRef};

use crate::error::{Error, ErrorKind};
use crate::limits::Limits;

/// The nodes that a tree may have beside a few for each page that is allowed.
const FURTHER_NODES: usize = 10_000;
/// How deep the library goes where it counts.
const COUNTED_DEPTH: usize = 50;
/// Objects that the library may look at to find the pages of a document whose list is empty. It looks at all objects for
/// each page.
const SEARCHED_OBJECTS: usize = 20_000_000;
/// The bytes that an object takes at least, on the average.
const OBJECT_BYTES: usize = 64;

/// What is in the tree of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageTree {
    /// Pages, each counted once.
    pub pages: usize,
    /// Whether a part of the tree is there more than once, so that a walk would count its pages again.
    pub repeats: bool,
}

/// Walks the tree. Refuses a document that has too many pages, or that would keep the library busy for too long.
pub fn check(document: &PdfDocument, bytes: usize, limits: &Limits) -> Result<PageTree, Error> {
    let Some(root) = root(document) else { return Ok(PageTree { pages: 0, repeats: false }) };
    let most_nodes = limits.pages.saturating_mul(4).saturating_add(FURTHER_NODES);
    let tree = walk(document, root, most_nodes, limits)?;
    if tree.repeats && !is_counted_within(document, root, most_nodes.saturating_mul(10)) {
        return Err(repeated());
    }
    if tree.pages == 0 {
        check_search(document, bytes, limits)?;
    }
    Ok(tree)
}

fn root(document: &PdfDocument) -> Option<ObjectRef> {
    document.catalog().ok()?.as_dict()?.get("Pages")?.as_reference()
}

/// Visits each node once, in the order in which the library does.
fn walk(
    document: &PdfDocument,
    root: ObjectRef,
    most_nodes: usize,
    limits: &Limits,
) -> Result<PageTree, Error> {
    let mut tree = PageTree { pages: 0, repeats: false };
    let mut visited = HashSet::new();
    let mut parents = HashSet::new();
    let mut waiting = vec![(root, 1)];
    while let Some((node, depth)) = waiting.pop() {
        if !visited.insert(node) {
            // A page that is listed twice costs nothing.
            tree.repeats |= parents.contains(&node);
            continue;
        }
        if visited.len() > most_nodes {
            let message = "The list of pages of this PDF has far more entries than pages. Export it again from the program \
                           that made it";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        // The library goes down a level of its stack for each level of the tree.
        if depth > limits.depth {
            return Err(limits.too_deep());
        }
        match children(document, node) {
            Node::Page => tree.pages += 1,
            Node::Parent(below) => {
                parents.insert(node);
                waiting.extend(below.into_iter().rev().map(|child| (child, depth + 1)));
            }
            Node::Other => {}
        }
        if tree.pages > limits.pages {
            return Err(limits.too_many_pages());
        }
    }
    Ok(tree)
}

/// Whether a walk that remembers nothing ends after so many steps.
fn is_counted_within(document: &PdfDocument, root: ObjectRef, steps: usize) -> bool {
    let mut left = steps;
    let mut waiting = vec![(root, 0)];
    while let Some((node, depth)) = waiting.pop() {
        let Node::Parent(below) = children(document, node) else { continue };
        let Some(rest) = left.checked_sub(below.len() + 1) else { return false };
        left = rest;
        if depth < COUNTED_DEPTH {
            waiting.extend(below.into_iter().map(|child| (child, depth + 1)));
        }
    }
    true
}

enum Node {
    Page,
    Parent(Vec<ObjectRef>),
    Other,
}

fn children(document: &PdfDocument, node: ObjectRef) -> Node {
    let Ok(object) = document.load_object(node) else { return Node::Other };
    let Some(dictionary) = object.as_dict() else { return Node::Other };
    match (dictionary.get("Type").and_then(Object::as_name), dictionary.get("Kids")) {
        (Some("Page"), _) => Node::Page,
        (_, Some(Object::Array(below))) => {
            Node::Parent(below.iter().filter_map(Object::as_reference).collect())
        }
        _ => Node::Other,
    }
}

/// Where the list has no pages, the library looks for them among all objects, once for each page.
fn check_search(document: &PdfDocument, bytes: usize, limits: &Limits) -> Result<(), Error> {
    let most = SEARCHED_OBJECTS / (bytes / OBJECT_BYTES).max(1);
    if most < limits.pages && document.get_page(most).is_ok() {
        let message = "This PDF is damaged: its list of pages is empty, and it has too many pages to find them without \
                       it. Export it again from the program that made it";
        return Err(Error::new(ErrorKind::Damaged, message));
    }
    Ok(())
}

fn repeated() -> Error {
    let message = "The list of pages of this PDF contains itself, or the same part many times over. Export it again from \
                   the program that made it";
    Error::new(ErrorKind::Invalid, message)
}
