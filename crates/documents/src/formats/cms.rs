//! S/MIME and other signed files (`.p7m`): the document that is signed.
//!
//! The format is a tree of tagged values. Only the way to the content is followed. Signatures are not verified: the
//! text is the same with or without them.

use super::base64;
use crate::Document;
use crate::error::{Error, ErrorKind};
use crate::limits::Bounds;
use crate::read::read_within;
use crate::reading::Reading;

/// Values nested in one another on the way to the content.
const MAX_DEPTH: usize = 32;
const SEQUENCE: u8 = 0x30;
const OBJECT: u8 = 0x06;
const OCTETS: u8 = 0x04;
const EXPLICIT_0: u8 = 0xA0;
const CONSTRUCTED: u8 = 0x20;

const SIGNED: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02];
const ENVELOPED: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x03];
const ENCRYPTED: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x06];
const AUTH_ENVELOPED: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x10, 0x01, 0x17];
const ALL: &[&[u8]] = &[SIGNED, ENVELOPED, ENCRYPTED, AUTH_ENVELOPED];

/// Whether these bytes are signed or encrypted content.
pub fn looks_like(bytes: &[u8]) -> bool {
    content_type(bytes).is_some_and(|kind| ALL.contains(&kind))
}

/// The bytes of a file that writes them in base64, with or without the lines of PEM around them.
pub fn unwrapped(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    Some(base64::decode(&text)).filter(|bytes| looks_like(bytes))
}

/// Whether the content is readable only with a key.
pub fn is_encrypted(bytes: &[u8]) -> bool {
    content_type(bytes).is_some_and(|kind| kind != SIGNED && ALL.contains(&kind))
}

/// Reads the document that is signed. Its name is that of the file without `.p7m`.
pub fn read(document: Document<'_>, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let unwrapped = unwrapped(document.bytes);
    let document = Document { bytes: unwrapped.as_deref().unwrap_or(document.bytes), ..document };
    if is_encrypted(document.bytes) {
        return Err(Error::new(
            ErrorKind::Invalid,
            "This file is encrypted (S/MIME). Open it with your key, save a copy that is not encrypted, and upload that",
        ));
    }
    let content = content(document.bytes).ok_or_else(|| {
        Error::new(
            ErrorKind::NoText,
            "This file is only a signature. The document that it signs is in another file: upload that one",
        )
    })?;
    let name = document.name;
    let is_signed =
        name.len() > 4 && name.get(name.len() - 4..).is_some_and(|end| end.eq_ignore_ascii_case(".p7m"));
    let name = if is_signed { &name[..name.len() - 4] } else { "" };
    // What is signed may be signed again.
    let Some(inside) = bounds.of_embedded() else { return Err(bounds.limits.too_deep()) };
    read_within(Document { bytes: &content, name, content_type: None }, inside)
}

fn content_type(bytes: &[u8]) -> Option<&[u8]> {
    let mut values = Values(Values(bytes).next()?.only(SEQUENCE)?.content);
    Some(values.next()?.only(OBJECT)?.content)
}

/// The content of `SignedData`, which may be in pieces.
fn content(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut message = Values(Values(bytes).next()?.only(SEQUENCE)?.content);
    message.next()?;
    let signed = Values(message.next()?.only(EXPLICIT_0)?.content).next()?.only(SEQUENCE)?;
    let mut fields = Values(signed.content);
    // The version and the algorithms are before it.
    fields.next()?;
    fields.next()?;
    let mut encapsulated = Values(fields.next()?.only(SEQUENCE)?.content);
    encapsulated.next()?;
    let mut content = Vec::new();
    for value in Values(encapsulated.next()?.only(EXPLICIT_0)?.content) {
        collect(value, &mut content, 0);
    }
    Some(content)
}

fn collect(value: Value<'_>, content: &mut Vec<u8>, depth: usize) {
    if value.tag == OCTETS {
        content.extend_from_slice(value.content);
    } else if value.tag & CONSTRUCTED != 0 && depth < MAX_DEPTH {
        for inner in Values(value.content) {
            collect(inner, content, depth + 1);
        }
    }
}

#[derive(Clone, Copy)]
struct Value<'a> {
    tag: u8,
    content: &'a [u8],
}

impl Value<'_> {
    fn only(self, tag: u8) -> Option<Self> {
        (self.tag == tag).then_some(self)
    }
}

/// The values one after the other.
struct Values<'a>(&'a [u8]);

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let (value, rest) = value(self.0, MAX_DEPTH)?;
        self.0 = rest;
        // Two zeros end a value that has no length.
        (value.tag != 0).then_some(value)
    }
}

/// The first value, and what is after it. One without a length goes on to its end mark. A file that breaks off has as
/// much content as is there.
fn value(bytes: &[u8], depth: usize) -> Option<(Value<'_>, &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let tag = *tag;
    match first {
        0x80 => {
            let end = indefinite_length(rest, depth.checked_sub(1)?)?;
            let after = rest.get(end + 2..).unwrap_or_default();
            Some((Value { tag, content: &rest[..end] }, after))
        }
        0..0x80 => Some(split(tag, rest, usize::from(*first))),
        _ => {
            let digits = usize::from(first & 0x7F);
            let length = rest.get(..digits).filter(|_| digits <= 4)?;
            let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            Some(split(tag, &rest[digits..], length))
        }
    }
}

fn split(tag: u8, rest: &[u8], length: usize) -> (Value<'_>, &[u8]) {
    let (content, after) = rest.split_at(length.min(rest.len()));
    (Value { tag, content }, after)
}

/// Where the values end that end with a mark. Each level reads its values once more, and there are few levels.
fn indefinite_length(bytes: &[u8], depth: usize) -> Option<usize> {
    let mut rest = bytes;
    while !rest.is_empty() {
        if rest.starts_with(&[0, 0]) {
            return Some(bytes.len() - rest.len());
        }
        rest = value(rest, depth)?.1;
    }
    Some(bytes.len())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82, length[0], length[1]], content].concat()
    }

    /// The same without a length.
    fn open(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, 0x80], content, &[0, 0]].concat()
    }

    fn message(kind: &[u8], content: &[u8], wrap: fn(u8, &[u8]) -> Vec<u8>) -> Vec<u8> {
        let data = [&tagged(OBJECT, &[1, 2, 3])[..], &wrap(EXPLICIT_0, content)].concat();
        let fields =
            [tagged(2, &[1]), tagged(0x31, &[]), wrap(SEQUENCE, &data), tagged(0x31, b"sig")].concat();
        let inner = [&tagged(OBJECT, kind)[..], &wrap(EXPLICIT_0, &wrap(SEQUENCE, &fields))].concat();
        wrap(SEQUENCE, &inner)
    }

    fn read(bytes: &[u8], name: &str) -> Result<String, Error> {
        let limits = Limits::default();
        let embedded = Cell::new(0);
        let bounds =
            Bounds { embedded: Some(&embedded), ..Bounds::new(&limits, &|| ControlFlow::Continue(())) };
        super::read(Document { bytes, name, content_type: None }, bounds)
            .map(|reading| reading.extracted.text)
    }

    #[test]
    fn the_signed_document_is_read() {
        let whole = message(SIGNED, &tagged(OCTETS, b"a,b\n1,2\n"), tagged);
        assert!(looks_like(&whole));
        let as_table = read(&whole, "x.csv.p7m").unwrap();
        assert!(as_table.contains('1') && as_table != "a,b\n1,2\n", "{as_table}");
        let pieces = [tagged(OCTETS, b"in two "), tagged(OCTETS, b"pieces")].concat();
        let in_pieces = message(SIGNED, &open(OCTETS | CONSTRUCTED, &pieces), open);
        assert_eq!(read(&in_pieces, "x.txt.p7m").unwrap(), "in two pieces");
        let in_base64 = landfall_test_documents::base64(&in_pieces);
        let pem = format!("-----BEGIN PKCS7-----\n{in_base64}\n-----END PKCS7-----\n");
        for text in [in_base64, pem] {
            assert!(unwrapped(text.as_bytes()).is_some());
            assert_eq!(read(text.as_bytes(), "x.txt.p7m").unwrap(), "in two pieces");
        }
        for length in 0..in_pieces.len() {
            drop(read(&in_pieces[..length], "x.p7m"));
        }
    }

    #[test]
    fn an_encrypted_file_is_refused_and_a_bare_signature_too() {
        let failure = read(&message(ENVELOPED, b"", tagged), "x.p7m").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Invalid);
        assert!(failure.message().contains("encrypted"), "{failure}");
        let bare = tagged(SEQUENCE, &[tagged(OBJECT, SIGNED), tagged(EXPLICIT_0, b"")].concat());
        assert_eq!(read(&bare, "x.p7s").unwrap_err().kind(), ErrorKind::NoText);
    }

    #[test]
    fn values_without_end_are_bounded() {
        let deep = [SEQUENCE, 0x80].repeat(1_000_000);
        assert!(!looks_like(&deep));
    }
}
