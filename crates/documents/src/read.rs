//! Gets the text out of a document.
//!
//! What a document is, its bytes say; its name and declared type only choose among the kinds of text. One that claims
//! to be something else than it is ends with a sentence about that.
//!
//! There are two steps, because the first one may run where no other program can be started: [`read`] computes and
//! answers a [`Reading`], the text and the pictures that only OCR can read. Whoever may run programs has them read
//! (`stages/ocr.rs`), and [`Reading::finish`] puts both together or says why there is no text.

use std::ops::ControlFlow;

use crate::error::{Error, ErrorKind};
use crate::formats::{csv, docx, email, html, json, markdown, odf, pdf, pptx, rtf, sheets, text, xml};
use crate::kind::{self, Kind, TextKind};
use crate::limits::{Bounds, Limits};
use crate::reading::Reading;

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
    progress: &dyn Fn() -> ControlFlow<()>,
) -> Result<Reading, Error> {
    let bytes = document.bytes;
    let bounds = Bounds { limits, progress };
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

fn read_text(bytes: &[u8], kind: TextKind, bounds: Bounds<'_>) -> Result<Reading, Error> {
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
pub(crate) fn most_text(bytes: usize) -> usize {
    4 * bytes + (1 << 20)
}

pub(crate) fn too_much_text() -> Error {
    Error::new(ErrorKind::Invalid, "There is far more text in this file than its size can hold")
}

pub(crate) fn protected() -> Error {
    Error::new(ErrorKind::Invalid, "This file is protected by a password. Upload a copy without one")
}

/// Whether there is anything to find.
pub(crate) fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    use landfall_core::text::Extracted;

    fn read(bytes: &[u8], name: &str, content_type: Option<&str>) -> Result<Extracted, Error> {
        let document = Document { bytes, name, content_type };
        super::read(document, &Limits::default(), &|| ControlFlow::Continue(()))?
            .finish(crate::Recognised::NotInstalled)
    }

    fn code(bytes: &[u8], name: &str) -> ErrorKind {
        read(bytes, name, None).unwrap_err().kind
    }

    #[test]
    fn a_document_that_lies_about_its_kind_is_found_out() {
        assert_eq!(code(b"just text", "report.pdf"), ErrorKind::NotPdf);
        assert_eq!(read(b"just text", "r", Some("application/pdf")).unwrap_err().kind, ErrorKind::NotPdf);
        assert_eq!(code(b"\x1F\x8B\x08\0....", "notes.txt"), ErrorKind::UnsupportedType);
        assert_eq!(code(b"\x89PNG\r\n\x1a\n....", "notes.txt"), ErrorKind::NoText);
        assert_eq!(code(b"PK\x03\x04\x14\0\x06\0", "notes.md"), ErrorKind::Damaged);
        assert_eq!(code(&[0, 1, 2, 3, 0, 0, 5], "notes.txt"), ErrorKind::UnsupportedType);
    }

    #[test]
    fn an_unsupported_type_names_what_is_supported() {
        assert!(read(b"7z\xBC\xAF\x27\x1C", "a.7z", None).unwrap_err().message.contains("Markdown"));
    }

    #[test]
    fn a_document_without_text_is_not_ready_for_anything() {
        assert_eq!(code(b" \n\t \r\n", "a.txt"), ErrorKind::NoText);
        assert_eq!(code(b"--- *** ...", "a.md"), ErrorKind::NoText);
        assert_eq!(
            code(b"<html><body><script>var x = 1</script></body></html>", "a.html"),
            ErrorKind::NoText
        );
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
