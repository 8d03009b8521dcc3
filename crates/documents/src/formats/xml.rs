//! XML of any vocabulary: the text between the tags, a line for each element that has text.

use encoding_rs::Encoding;

use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing;
use landfall_core::text::Extracted;

const DECLARATION: &str = "<?xml";

pub fn looks_like(text: &str) -> bool {
    text.trim_start().starts_with(DECLARATION)
}

/// The text after the declaration, which may be a web page.
pub fn after_declaration(text: &str) -> &str {
    let text = text.trim_start();
    if looks_like(text) { text.split_once("?>").map_or("", |(_, rest)| rest) } else { text }
}

/// The encoding that the declaration names, which counts for more than a guess.
pub fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes[..bytes.len().min(200)].trim_ascii_start();
    let declaration = std::str::from_utf8(start.split(|byte| *byte == b'>').next()?).ok()?;
    let rest = declaration.strip_prefix(DECLARATION)?.split_once("encoding")?.1.trim_start();
    let rest = rest.strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    Encoding::for_label(rest[1..].split(quote).next()?.as_bytes())
}

pub fn extract(source: &str, bounds: Bounds<'_>) -> Result<Extracted, Error> {
    let mut flow = Flow::new(bounds.limits);
    // For each open element: whether it has text of its own. Then the elements in it are parts of a sentence.
    let mut in_sentence = vec![false];
    let mut elements = Elements::new(source, bounds);
    while let Some(piece) = elements.next()? {
        let sentence = in_sentence.last().copied().unwrap_or(false);
        match piece {
            Piece::Open(_) => {
                flow.widen(if sentence { Gap::None } else { Gap::Line });
                in_sentence.push(false);
            }
            Piece::Close(_) => {
                in_sentence.pop();
                let outside = in_sentence.last().copied().unwrap_or(false);
                flow.widen(if outside { Gap::None } else { Gap::Line });
            }
            Piece::Words(words) => {
                if !words.trim().is_empty()
                    && let Some(sentence) = in_sentence.last_mut()
                {
                    *sentence = true;
                }
                flow.words(&words);
                flow.check()?;
            }
        }
    }
    let mut extracted = flow.finish()?;
    if elements.has_open() {
        extracted.warnings.push(missing::truncated("document"));
    }
    Ok(extracted)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::error::ErrorKind;
    use crate::limits::Limits;

    fn read(source: &str) -> Result<Extracted, Error> {
        extract(source, Bounds::new(&Limits::default(), &|| ControlFlow::Continue(())))
    }

    #[test]
    fn each_element_is_a_line_and_a_sentence_stays_together() {
        let source = "<?xml version='1.0'?><a><b>one</b><c>two <i>and</i> a <i>h</i>alf</c><d><![CDATA[x < y]]></d></a>";
        assert_eq!(read(source).unwrap().text, "one\ntwo and a half\nx < y");
    }

    #[test]
    fn characters_that_are_spelled_out_are_read() {
        assert_eq!(read("<a>caf&#233; &amp; th&#xE9; &lt;3</a>").unwrap().text, "café & thé <3");
    }

    #[test]
    fn entities_that_the_document_defines_are_never_expanded() {
        let mut bomb = "<!DOCTYPE a [<!ENTITY e0 \"boom\">".to_owned();
        for level in 1..30 {
            bomb.push_str(&format!("<!ENTITY e{level} \"{}\">", format!("&e{};", level - 1).repeat(10)));
        }
        bomb.push_str("<!ENTITY file SYSTEM \"file:///etc/passwd\">]><a>before &e29; &file; after</a>");
        assert_eq!(read(&bomb).unwrap().text, "before after");
    }

    #[test]
    fn elements_that_nest_without_end_are_refused() {
        assert_eq!(read(&"<a>".repeat(100_000)).unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn an_error_names_the_byte() {
        let failure = read("<a><b>text</a>").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Damaged);
        assert!(failure.message().contains("byte"), "{}", failure.message());
    }

    #[test]
    fn the_encoding_is_the_one_that_is_declared() {
        let source = "<?xml version=\"1.0\" encoding='ISO-8859-5'?><a/>";
        assert_eq!(declared_encoding(source.as_bytes()).unwrap().name(), "ISO-8859-5");
        assert!(declared_encoding(b"<?xml version='1.0'?><a encoding='koi8-r'/>").is_none());
        assert!(declared_encoding(b"encoding='koi8-r'").is_none());
    }
}
