//! How many drawings a page consists of. A drawing ("form") may draw others, and each of them several times.
//!
//! The library follows every drawing as often as it is drawn. Thirty of them, each of which draws the next one twice, are a
//! thousand million. So they are counted first.

use std::collections::{HashMap, HashSet};

use pdf_oxide::PdfDocument;
use pdf_oxide::object::{Object, ObjectRef};

use super::streams::Streams;

/// More drawings are not counted.
const TOO_MANY: u64 = u64::MAX;
/// How deep the library follows them.
const MAX_DEPTH: usize = 100;

type Dictionary = HashMap<String, Object>;

/// The drawings of a document, as far as they are counted.
#[derive(Default)]
pub struct Forms {
    counted: HashMap<ObjectRef, u64>,
}

impl Forms {
    /// How many drawings the library would follow on a page, counted as often as they are drawn. A drawing that contains
    /// itself counts as more than any number.
    pub fn on_page(
        &mut self,
        document: &PdfDocument,
        streams: &Streams,
        page: usize,
        instructions: &[u8],
    ) -> u64 {
        let Ok(page_object) = document.get_page(page) else { return 0 };
        let Some(drawings) = page_object.as_dict().and_then(|page| drawings(document, page)) else {
            return 0;
        };
        self.below(document, streams, instructions, &drawings, &mut HashSet::new())
    }

    /// The drawings that this content draws, out of these.
    fn below(
        &mut self,
        document: &PdfDocument,
        streams: &Streams,
        content: &[u8],
        drawings: &Dictionary,
        path: &mut HashSet<ObjectRef>,
    ) -> u64 {
        let mut sum: u64 = 0;
        for (name, times) in drawn(content) {
            let name = String::from_utf8_lossy(name);
            let Some(Object::Reference(form)) = drawings.get(name.as_ref()) else { continue };
            let each = self.of_form(document, streams, *form, drawings, path);
            sum = sum.saturating_add(each.saturating_mul(times));
        }
        sum
    }

    /// The drawing and all that it draws.
    fn of_form(
        &mut self,
        document: &PdfDocument,
        streams: &Streams,
        form: ObjectRef,
        around: &Dictionary,
        path: &mut HashSet<ObjectRef>,
    ) -> u64 {
        if path.contains(&form) {
            return TOO_MANY;
        }
        if let Some(counted) = self.counted.get(&form) {
            return *counted;
        }
        if path.len() >= MAX_DEPTH {
            return 1;
        }
        let Ok(object) = document.load_object(form) else { return 1 };
        let Object::Stream { dict, .. } = &object else { return 1 };
        if dict.get("Subtype").and_then(Object::as_name) != Some("Form") {
            // A picture.
            return 1;
        }
        // The library skips what it cannot unpack.
        let Some(content) = streams.unpack(&object, form) else { return 1 };
        let has_own = dict.contains_key("Resources");
        let own = if has_own { drawings(document, dict) } else { None };
        path.insert(form);
        let inner = if has_own { own.as_ref() } else { Some(around) };
        let below = inner.map_or(0, |inner| self.below(document, streams, &content, inner, path));
        path.remove(&form);
        let all = below.saturating_add(1);
        // What one draws that has no names of its own depends on where it is drawn.
        if has_own {
            self.counted.insert(form, all);
        }
        all
    }
}

/// The drawings and pictures that have names in the resources of a page or a drawing.
fn drawings(document: &PdfDocument, owner: &Dictionary) -> Option<Dictionary> {
    let resources = document.resolve_object(owner.get("Resources")?).ok()?;
    let named = document.resolve_object(resources.as_dict()?.get("XObject")?).ok()?;
    named.as_dict().cloned()
}

/// How often each name is drawn: `/Name Do`.
fn drawn(content: &[u8]) -> HashMap<&[u8], u64> {
    let mut times = HashMap::new();
    for at in memchr::memmem::find_iter(content, b"Do") {
        let before = content[..at].trim_ascii_end();
        if content.get(at + 2).is_some_and(u8::is_ascii_alphanumeric) {
            continue;
        }
        // A name is short: a longer one is none.
        let start = before.len().saturating_sub(256);
        let Some(slash) = memchr::memrchr(b'/', &before[start..]) else { continue };
        let name = &before[start + slash + 1..];
        if !name.iter().any(u8::is_ascii_whitespace) {
            *times.entry(name).or_insert(0) += 1;
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_is_counted_as_often_as_it_is_drawn() {
        let drawn = drawn(b"q /A Do Q /B  Do\n/A Do /Does 1 Tf (Do) Tj /C\nDo");
        let times = |name: &[u8]| drawn.get(name).copied().unwrap_or_default();
        assert_eq!((times(b"A"), times(b"B"), times(b"C")), (2, 1, 1));
    }
}
