//! Groups whose text is not written where it stands: notes, text boxes, markers of items, instructions of fields.

use super::writer::{Paragraph, Properties};
use crate::formats::inline::Inline;

/// A group that is captured up to its end.
pub struct Capture {
    pub kind: Kind,
    /// How many groups are open in it.
    pub depth: usize,
    /// The paragraph around it.
    pub outside: Paragraph,
    /// The properties of the paragraph around it.
    pub properties: Properties,
    /// The paragraphs in it that are complete.
    pub paragraphs: Vec<Vec<Inline>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A footnote or a text box.
    Text,
    Comment,
    /// The name of the author of the next comment.
    Author,
    /// The number or bullet of a list item.
    Marker,
    Instruction,
    /// The definition of a style.
    Style,
    Picture,
    Object,
    Header,
    Footer,
}

/// The kind of a group by its first control word.
pub fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "footnote" | "shptxt" => Kind::Text,
        "annotation" => Kind::Comment,
        "atnauthor" => Kind::Author,
        "listtext" | "pntext" => Kind::Marker,
        "fldinst" => Kind::Instruction,
        "pict" => Kind::Picture,
        "objdata" => Kind::Object,
        "header" | "headerl" | "headerr" | "headerf" => Kind::Header,
        "footer" | "footerl" | "footerr" | "footerf" => Kind::Footer,
        _ => return None,
    })
}

/// Groups that a program may skip if it does not know them, and that are read here.
pub fn is_known_option(name: &str) -> bool {
    matches!(name, "shpinst" | "shppict" | "moMath" | "moMathPara") || kind(name).is_some()
}

/// Groups whose content is not text of the document.
pub fn is_hidden(destination: &str) -> bool {
    matches!(
        destination,
        "colortbl"
            | "info"
            | "sp"
            | "xe"
            | "tc"
            | "ftnsep"
            | "ftnsepc"
            | "aftnsep"
            | "aftnsepc"
            | "nonshppict"
            | "nonesttables"
            | "filetbl"
            | "mmathPict"
    )
}

/// Bytes that are written as pairs of hexadecimal digits.
pub fn from_hexadecimal(text: &[u8]) -> Vec<u8> {
    let mut digits = text
        .iter()
        .filter_map(|byte| char::from(*byte).to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok());
    let mut bytes = Vec::with_capacity(text.len() / 2);
    while let (Some(high), Some(low)) = (digits.next(), digits.next()) {
        bytes.push(high << 4 | low);
    }
    bytes
}

/// The document in an object, behind its class and two names.
pub fn embedded_document(object: &[u8]) -> Option<&[u8]> {
    let mut rest = object.get(8..)?;
    for _ in 0..3 {
        let length = usize::try_from(u32::from_le_bytes(*rest.first_chunk()?)).ok()?;
        rest = rest.get(4..)?.get(length..)?;
    }
    let length = usize::try_from(u32::from_le_bytes(*rest.first_chunk()?)).ok()?;
    let bytes = &rest[4..];
    Some(&bytes[..length.min(bytes.len())])
}
