//! Whether the bytes of a PDF go on to its end, and what is known about what comes after them.

use pdf_oxide::PdfDocument;
use pdf_oxide::object::ObjectRef;

/// Mail programs add a few lines after the end.
const MAX_OFFSET: usize = 2_048;
const END: &[u8] = b"%%EOF";

/// How the bytes of a PDF end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Whole,
    BreaksOff(Declared),
}

/// What the beginning says about the whole file, if it was made for the web: there, the first page comes first.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Declared {
    pub bytes: Option<usize>,
    pub pages: Option<usize>,
}

impl Ending {
    pub fn of(bytes: &[u8]) -> Self {
        let last = &bytes[bytes.len().saturating_sub(MAX_OFFSET)..];
        let has_end = has_end_mark(last) || has_table(last, bytes.len());
        // A program that edits such a file makes it longer and leaves the old numbers in it.
        match linearized(bytes).filter(|declared| declared.bytes.is_some_and(|length| length > bytes.len())) {
            Some(declared) => Self::BreaksOff(declared),
            None if has_end => Self::Whole,
            None => Self::BreaksOff(Declared::default()),
        }
    }
}

/// Whether the mark of the end is in these last bytes. Where objects follow, it is the end of an earlier revision.
fn has_end_mark(last: &[u8]) -> bool {
    memchr::memmem::rfind(last, END).is_some_and(|at| !has_objects(&last[at..]))
}

fn has_objects(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b" obj").is_some()
}

/// Whether these last bytes say where the table of all objects begins. They come after it, so only the last mark is
/// missing, which some programs do not write.
fn has_table(last: &[u8], length: usize) -> bool {
    const MARK: &[u8] = b"startxref";
    let Some(at) = memchr::memmem::rfind(last, MARK) else { return false };
    let rest = last[at + MARK.len()..].trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let offset: Option<usize> =
        std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok());
    digits < rest.len() && offset.is_some_and(|offset| offset > 0 && offset < length) && !has_objects(rest)
}

/// The dictionary at the beginning of a file that was made for the web.
fn linearized(bytes: &[u8]) -> Option<Declared> {
    const MAX_START: usize = 1_024;
    let start = &bytes[..bytes.len().min(MAX_START)];
    let rest = &start[memchr::memmem::find(start, b"/Linearized")?..];
    let dictionary = &rest[..memchr::memmem::find(rest, b">>")?];
    Some(Declared { bytes: number(dictionary, b"/L "), pages: number(dictionary, b"/N ") })
}

fn number(dictionary: &[u8], key: &[u8]) -> Option<usize> {
    let rest = dictionary[memchr::memmem::find(dictionary, key)? + key.len()..].trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// Whether the list of all pages is in the bytes. Where it is not, the library makes one of the pages that it finds.
///
/// A list that stands before the end of an earlier revision may not have the pages of the last one.
pub fn has_list_of_pages(document: &PdfDocument, bytes: &[u8]) -> bool {
    if memchr::memmem::find(bytes, END).is_some_and(|at| has_objects(&bytes[at..])) {
        return false;
    }
    list_of_pages(document).is_some_and(|(root, is_whole)| {
        let mark = format!("{} {} obj", root.id, root.r#gen);
        let found = memchr::memmem::find_iter(bytes, mark.as_bytes());
        is_whole && found.into_iter().any(|at| at == 0 || !bytes[at - 1].is_ascii_digit())
    })
}

/// The root of the tree of pages, and whether it is the root also by its own account.
fn list_of_pages(document: &PdfDocument) -> Option<(ObjectRef, bool)> {
    let catalog = document.catalog().ok()?;
    let root = catalog.as_dict()?.get("Pages")?.as_reference()?;
    let pages = document.load_object(root).ok()?;
    Some((root, !pages.as_dict()?.contains_key("Parent")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_its_end_breaks_off() {
        assert_eq!(Ending::of(b"%PDF-1.4 ... %%EOF\r\n-- \r\nSent by mail"), Ending::Whole);
        assert_eq!(Ending::of(b"%PDF-1.4 ..."), Ending::BreaksOff(Declared::default()));
        assert_eq!(Ending::of(b"%PDF-1.4 ... startxref\n9\n%%"), Ending::Whole);
        assert_eq!(Ending::of(b"%PDF-1.4 ... startxref\n9"), Ending::BreaksOff(Declared::default()));
        // A revision was added, and breaks off.
        let revised = b"%PDF-1.4 ... startxref\n9\n%%EOF\n7 0 obj <</Type/Page>> endobj 8 0 obj <<";
        assert_eq!(Ending::of(revised), Ending::BreaksOff(Declared::default()));
        let far = [&b"%PDF-1.4 %%EOF"[..], &[b'x'; 3_000]].concat();
        assert_eq!(Ending::of(&far), Ending::BreaksOff(Declared::default()));
    }

    #[test]
    fn a_file_for_the_web_says_how_long_it_is() {
        let bytes = b"%PDF-1.4\n1 0 obj <</Linearized 1/L 5000/H [ 1 2 ]/O 7/E 300/N 20/T 9>> endobj %%EOF";
        let declared = Declared { bytes: Some(5_000), pages: Some(20) };
        assert_eq!(Ending::of(bytes), Ending::BreaksOff(declared));
        let mut whole = bytes.to_vec();
        whole.resize(5_000, b' ');
        whole.extend(b"%%EOF");
        assert_eq!(Ending::of(&whole), Ending::Whole);
    }
}
