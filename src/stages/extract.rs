//! Gets the text out of a document.
//!
//! What a document is, its bytes say; its name and declared type only choose among the kinds of text. One that claims
//! to be something else than it is ends with a sentence about that.

mod csv;
mod html;
mod json;
mod markdown;
mod text;

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::Extracted;
use crate::failure::{Code, Failure};

const SUPPORTED: &str = "plain text, Markdown, HTML, CSV, TSV, JSON";

/// A kind of document that text can be got out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Markdown,
    Html,
    Csv { delimiter: u8 },
    Json,
}

/// The longest heading that is worth keeping with each chunk below it.
const LONGEST_HEADING: usize = 200;

/// Computes on the calling thread; looks now and then whether anybody still waits.
pub fn extract(
    bytes: &[u8],
    name: &str,
    content_type: Option<&str>,
    cancelled: &CancellationToken,
) -> Result<Extracted, Failure> {
    let claim = Claim::new(name, content_type);
    refuse_binary(bytes, &claim)?;
    let decoded = text::decode(bytes)?;
    let mut extracted = match claim.kind() {
        Kind::Text if html::looks_like(&decoded) => html::extract(&decoded, cancelled)?,
        Kind::Text => text::extract(decoded),
        Kind::Markdown => markdown::extract(decoded),
        Kind::Html => html::extract(&decoded, cancelled)?,
        Kind::Csv { delimiter } => csv::extract(&decoded, delimiter)?,
        Kind::Json => json::extract(&decoded)?,
    };
    // PostgreSQL cannot store a NUL in a text, and no reader misses one. JSON can spell one out.
    if extracted.text.contains('\0') {
        extracted.text = extracted.text.replace('\0', " ");
    }
    if extracted.text.len() > most_text(bytes.len()) {
        return Err(too_much_text());
    }
    if !extracted.text.chars().any(char::is_alphanumeric) {
        return Err(Failure::new(
            Code::NoText,
            "There is no text in this file: it has no letters and no digits",
        ));
    }
    for place in &mut extracted.places {
        place.heading = place
            .heading
            .take()
            .map(|heading| heading.chars().filter(|c| *c != '\0').take(LONGEST_HEADING).collect());
    }
    Ok(extracted)
}

/// The most text that so many bytes can honestly hold.
fn most_text(bytes: usize) -> usize {
    4 * bytes + (1 << 20)
}

fn too_much_text() -> Failure {
    Failure::new(Code::ValidationError, "There is far more text in this file than its size can hold")
}

/// What a document says it is.
struct Claim<'a> {
    extension: String,
    content_type: &'a str,
}

impl<'a> Claim<'a> {
    fn new(name: &str, content_type: Option<&'a str>) -> Self {
        let extension = Path::new(name).extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        let content_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        Self { extension: extension.unwrap_or_default(), content_type }
    }

    fn kind(&self) -> Kind {
        match (self.extension.as_str(), self.content_type) {
            ("md" | "markdown", _) | (_, "text/markdown") => Kind::Markdown,
            ("html" | "htm" | "xhtml", _) | (_, "text/html" | "application/xhtml+xml") => Kind::Html,
            ("csv", _) | (_, "text/csv") => Kind::Csv { delimiter: b',' },
            ("tsv", _) | (_, "text/tab-separated-values") => Kind::Csv { delimiter: b'\t' },
            ("json" | "jsonl" | "ndjson", _) | (_, "application/json" | "application/x-ndjson") => Kind::Json,
            _ => Kind::Text,
        }
    }

    fn is_pdf(&self) -> bool {
        self.extension == "pdf" || self.content_type == "application/pdf"
    }
}

/// Formats that begin with a mark of their own, and what people call them.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"\xD0\xCF\x11\xE0", "an old Office document"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xFF\xD8\xFF", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"RIFF", "a RIFF media file"),
    (b"\x1F\x8B", "a gzip archive"),
    (b"7z\xBC\xAF\x27\x1C", "a 7-Zip archive"),
    (b"\x7FELF", "a program"),
    (b"MZ", "a program"),
    (b"{\\rtf", "an RTF document"),
    (b"SQLite format 3\0", "a database"),
];

fn refuse_binary(bytes: &[u8], claim: &Claim<'_>) -> Result<(), Failure> {
    let unsupported = |what: &str| {
        Failure::new(
            Code::UnsupportedType,
            format!("This is {what}, which is not supported. Supported: {SUPPORTED}"),
        )
    };
    let signature = SIGNATURES.iter().find(|(mark, _)| bytes.starts_with(mark));
    if claim.is_pdf() && !bytes.starts_with(b"%PDF-") {
        return Err(Failure::new(Code::NotPdf, "The name or type says PDF, but it is not a PDF"));
    }
    // Two letters are a weak mark: a text may begin with them.
    if let Some((mark, what)) = signature
        && (mark.len() > 2 || text::looks_binary(bytes))
    {
        return Err(unsupported(what));
    }
    if text::looks_binary(bytes) { Err(unsupported("binary data")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], name: &str, content_type: Option<&str>) -> Result<Extracted, Failure> {
        extract(bytes, name, content_type, &CancellationToken::new())
    }

    fn code(bytes: &[u8], name: &str) -> Code {
        read(bytes, name, None).unwrap_err().code
    }

    #[test]
    fn a_document_that_lies_about_its_kind_is_found_out() {
        assert_eq!(code(b"just text", "report.pdf"), Code::NotPdf);
        assert_eq!(read(b"just text", "r", Some("application/pdf")).unwrap_err().code, Code::NotPdf);
        assert_eq!(code(b"\x89PNG\r\n\x1a\n....", "notes.txt"), Code::UnsupportedType);
        assert_eq!(code(b"PK\x03\x04\x14\0\x06\0", "notes.md"), Code::UnsupportedType);
        assert_eq!(code(&[0, 1, 2, 3, 0, 0, 5], "notes.txt"), Code::UnsupportedType);
    }

    #[test]
    fn an_unsupported_type_names_what_is_supported() {
        assert!(read(b"%PDF-1.7 ...", "a.pdf", None).unwrap_err().message.contains("Markdown"));
    }

    #[test]
    fn a_document_without_text_is_not_ready_for_anything() {
        assert_eq!(code(b" \n\t \r\n", "a.txt"), Code::NoText);
        assert_eq!(code(b"--- *** ...", "a.md"), Code::NoText);
        assert_eq!(code(b"<html><body><script>var x = 1</script></body></html>", "a.html"), Code::NoText);
    }

    #[test]
    fn a_web_page_without_a_telling_name_is_still_a_web_page() {
        let page = read(b"<!DOCTYPE html><p>Hello <b>there</b></p>", "download", None).unwrap();
        assert_eq!(page.text, "Hello there");
    }

    #[test]
    fn a_text_may_begin_like_a_program() {
        assert_eq!(
            read(b"MZ is how DOS programs begin", "a.txt", None).unwrap().text,
            "MZ is how DOS programs begin"
        );
    }
}
