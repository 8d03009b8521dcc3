//! Whether the drawing instructions of a page, which contain its text, are all there.

use pdf_oxide::PdfDocument;
use pdf_oxide::object::Object;

/// Nested lists of streams. One level is usual.
const MAX_DEPTH: usize = 4;
/// Instructions that this library cannot unpack are given to the renderer up to this size. Larger ones may unpack without end.
const MAX_UNKNOWN: usize = 64 * 1024;

/// Whether a part of the page's instructions is missing, or none of them can be unpacked.
pub fn are_damaged(document: &PdfDocument, page: usize) -> bool {
    let Some(contents) = contents(document, page) else { return false };
    let mut streams = Vec::new();
    if !collect(document, &contents, &mut streams, MAX_DEPTH) {
        return true;
    }
    let packed: usize = streams.iter().map(|(_, packed)| packed).sum();
    packed > 0 && document.get_page_content_data(page).map_or(true, |data| data.trim_ascii().is_empty())
}

/// Whether the page can be drawn in the time that a document may take.
pub fn can_be_drawn(document: &PdfDocument, page: usize) -> bool {
    let Some(contents) = contents(document, page) else { return true };
    let mut streams = Vec::new();
    collect(document, &contents, &mut streams, MAX_DEPTH);
    let packed: usize = streams.iter().map(|(_, packed)| packed).sum();
    packed <= MAX_UNKNOWN || document.get_page_content_data(page).is_ok()
}

/// Whether a stream of the page's instructions is shorter than it says. Streams that say a wrong length are common, so
/// this means something only in a file that breaks off.
pub fn are_cut(document: &PdfDocument, page: usize) -> bool {
    let Some(contents) = contents(document, page) else { return false };
    let mut streams = Vec::new();
    let complete = collect(document, &contents, &mut streams, MAX_DEPTH);
    !complete || streams.iter().any(|(declared, packed)| declared.is_some_and(|declared| declared > *packed))
}

/// `None` for a page that is empty, or that cannot be found at all.
fn contents(document: &PdfDocument, page: usize) -> Option<Object> {
    let page = document.get_page(page).ok()?;
    page.as_dict()?.get("Contents").filter(|contents| !contents.is_null()).cloned()
}

/// Collects the declared length and the length of each stream. Returns whether all were found.
fn collect(
    document: &PdfDocument,
    object: &Object,
    streams: &mut Vec<(Option<usize>, usize)>,
    depth: usize,
) -> bool {
    match object {
        Object::Reference(reference) if depth > 0 => document
            .load_object(*reference)
            .is_ok_and(|object| collect(document, &object, streams, depth - 1)),
        Object::Array(items) => {
            let mut complete = true;
            for item in items.iter().filter(|item| !item.is_null()) {
                complete &= depth > 0 && collect(document, item, streams, depth - 1);
            }
            complete
        }
        Object::Stream { dict, data } => {
            let length = dict.get("Length").and_then(|length| document.resolve_object(length).ok());
            let declared = length.and_then(|length| usize::try_from(length.as_integer()?).ok());
            streams.push((declared, data.len()));
            true
        }
        _ => false,
    }
}
