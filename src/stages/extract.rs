//! Gets the text out of a document.
//!
//! What a document is, its bytes say; its name and declared type only choose among the kinds of text. One that claims
//! to be something else than it is ends with a sentence about that.
//!
//! There are two steps, because the first one may run where no other program can be started: [`read`] computes and
//! answers a [`Reading`], the text and the pictures that only OCR can read. Whoever may run programs has them read
//! (`stages/ocr.rs`), and [`Reading::finish`] puts both together or says why there is no text.

mod archive;
mod compound;
mod csv;
mod docx;
mod elements;
mod email;
mod flow;
mod html;
mod json;
mod kind;
mod limits;
mod markdown;
mod odf;
mod office;
mod pdf;
mod pptx;
mod reading;
mod rtf;
mod sheets;
mod text;
mod xml;

use tokio_util::sync::CancellationToken;

use crate::failure::{Code, Failure};
use kind::{Kind, TextKind};
use limits::Bounds;
pub use limits::{DEFAULT_MAX_CELLS, DEFAULT_MAX_PAGES, DEFAULT_MAX_TEXT_MB, Limits};
pub use reading::{Picture, Reading, Recognised};

/// The bytes of a document and what was said about them.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub bytes: &'a [u8],
    pub name: &'a str,
    pub content_type: Option<&'a str>,
}

/// Computes on the calling thread; looks now and then whether anybody still waits, and tells `progress`.
pub fn read(
    document: Document<'_>,
    limits: &Limits,
    cancelled: &CancellationToken,
    progress: &dyn Fn(),
) -> Result<Reading, Failure> {
    let bytes = document.bytes;
    let bounds = Bounds { limits, cancelled, progress };
    bounds.go_on()?;
    match kind::recognise(document, bounds)? {
        Kind::Pdf => pdf::read(bytes, bounds),
        Kind::Docx { mut archive, main_part } => docx::read(&mut archive, &main_part, bounds),
        Kind::Pptx { mut archive, main_part } => pptx::read(&mut archive, &main_part, bounds),
        Kind::Xlsx { mut archive } => sheets::read_xlsx(bytes, &mut archive, bounds),
        Kind::Xls => sheets::read_xls(bytes, bounds),
        Kind::OpenDocument { mut archive } => odf::read(&mut archive, bounds),
        Kind::Rtf => rtf::read(bytes, bounds),
        Kind::Email => email::read(bytes, bounds),
        Kind::Picture => Ok(Reading::of_picture(bytes)),
        Kind::Text(kind) => read_text(bytes, kind, bounds),
    }
}

fn read_text(bytes: &[u8], kind: TextKind, bounds: Bounds<'_>) -> Result<Reading, Failure> {
    let decoded = text::decode(bytes)?;
    let extracted = match kind {
        TextKind::Plain | TextKind::Xml if html::looks_like(xml::after_declaration(&decoded)) => {
            html::extract(&decoded, bounds)?
        }
        TextKind::Plain if xml::looks_like(&decoded) => xml::extract(&decoded, bounds)?,
        TextKind::Xml => xml::extract(&decoded, bounds)?,
        TextKind::Plain => text::extract(decoded),
        TextKind::Markdown => markdown::extract(decoded),
        TextKind::Html => html::extract(&decoded, bounds)?,
        TextKind::Csv { delimiter } => csv::extract(&decoded, delimiter, bounds)?,
        TextKind::Json => json::extract(&decoded)?,
    };
    if extracted.text.len() > bounds.limits.text_bytes {
        return Err(bounds.limits.too_much_text());
    }
    Ok(Reading::of(extracted))
}

/// The most text that so many bytes can honestly hold.
fn most_text(bytes: usize) -> usize {
    4 * bytes + (1 << 20)
}

fn too_much_text() -> Failure {
    Failure::new(Code::ValidationError, "There is far more text in this file than its size can hold")
}

fn protected() -> Failure {
    Failure::new(Code::ValidationError, "This file is protected by a password. Upload a copy without one")
}

/// Whether there is anything to find.
fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::stages::Extracted;

    fn read(bytes: &[u8], name: &str, content_type: Option<&str>) -> Result<Extracted, Failure> {
        let document = Document { bytes, name, content_type };
        super::read(document, &Limits::default(), &CancellationToken::new(), &|| ())?
            .finish(Recognised::NotInstalled)
    }

    fn code(bytes: &[u8], name: &str) -> Code {
        read(bytes, name, None).unwrap_err().code
    }

    #[test]
    fn a_document_that_lies_about_its_kind_is_found_out() {
        assert_eq!(code(b"just text", "report.pdf"), Code::NotPdf);
        assert_eq!(read(b"just text", "r", Some("application/pdf")).unwrap_err().code, Code::NotPdf);
        assert_eq!(code(b"\x1F\x8B\x08\0....", "notes.txt"), Code::UnsupportedType);
        assert_eq!(code(b"\x89PNG\r\n\x1a\n....", "notes.txt"), Code::NoText);
        assert_eq!(code(b"PK\x03\x04\x14\0\x06\0", "notes.md"), Code::ParseError);
        assert_eq!(code(&[0, 1, 2, 3, 0, 0, 5], "notes.txt"), Code::UnsupportedType);
    }

    #[test]
    fn an_unsupported_type_names_what_is_supported() {
        assert!(read(b"7z\xBC\xAF\x27\x1C", "a.7z", None).unwrap_err().message.contains("Markdown"));
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
