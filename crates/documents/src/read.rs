//! Recognises a document and calls the reader of its format.

use std::cell::Cell;
use std::ops::ControlFlow;

use crate::error::{Error, ErrorKind};
use crate::formats::{
    cms, code, csv, doc, docx, email, epub, html, iwork, json, latex, markdown, mbox, notebook, odf, outline,
    outlook, pdf, ppt, pptx, rtf, sheets, subtitles, text, tnef, xml, zip,
};
use crate::kind::{self, Kind, TextKind};
use crate::limits::{Bounds, Limits};
use crate::missing;
use crate::reading::Reading;

/// The bytes of a document, and how they were named.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// The whole document.
    pub bytes: &'a [u8],
    /// The name of the file; may be empty.
    pub name: &'a str,
    /// The declared media type.
    pub content_type: Option<&'a str>,
}

/// Reads a document on the calling thread.
///
/// The bytes decide what kind of document it is. The name and the declared type decide only between kinds of text,
/// such as Markdown and CSV; and a file that is named a PDF and is none is [`ErrorKind::NotPdf`].
///
/// `progress` is called regularly during the work. If it returns `Break`, the reader stops with
/// [`ErrorKind::Stopped`].
pub fn read(
    document: Document<'_>,
    limits: &Limits,
    progress: &dyn Fn() -> ControlFlow<()>,
) -> Result<Reading, Error> {
    let embedded = Cell::new(0);
    read_within(document, Bounds { embedded: Some(&embedded), ..Bounds::new(limits, progress) })
}

/// Reads a document as [`read`] does, unless it is an archive of files: then returns `None`, and
/// [`archive_members`](crate::archive_members) unpacks them.
pub fn read_unless_archive(
    document: Document<'_>,
    limits: &Limits,
    progress: &dyn Fn() -> ControlFlow<()>,
) -> Result<Option<Reading>, Error> {
    let embedded = Cell::new(0);
    let bounds = Bounds { embedded: Some(&embedded), ..Bounds::new(limits, progress) };
    bounds.report_progress()?;
    match kind::recognise(document, bounds)? {
        Kind::Archive => Ok(None),
        kind => read_as(kind, document, bounds).map(Some),
    }
}

/// Reads a document, which may be inside another one.
pub(crate) fn read_within(document: Document<'_>, bounds: Bounds<'_>) -> Result<Reading, Error> {
    bounds.report_progress()?;
    read_as(kind::recognise(document, bounds)?, document, bounds)
}

fn read_as(kind: Kind<'_>, document: Document<'_>, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let bytes = document.bytes;
    let mut reading = match kind {
        Kind::Pdf => pdf::read(bytes, bounds),
        Kind::Docx { mut archive, main_part } => docx::read(&mut archive, &main_part, bounds),
        Kind::Doc => doc::read(bytes, bounds),
        Kind::Pptx { mut archive, main_part } => pptx::read(&mut archive, &main_part, bounds),
        Kind::Xlsx { mut archive, main_part } => sheets::read_xlsx(&mut archive, &main_part, bounds),
        Kind::Xlsb { mut archive, main_part } => sheets::read_xlsb(&mut archive, &main_part, bounds),
        Kind::Xls => sheets::read_xls(bytes, bounds),
        Kind::Ppt => ppt::read(bytes, bounds),
        // It counts as a document inside this one, so that there is an end to what is encrypted again.
        Kind::Opened(bytes) => {
            let inside = bounds.of_embedded().ok_or_else(protected)?;
            return read_within(Document { bytes: &bytes, ..document }, inside);
        }
        Kind::OpenDocument { mut archive } => odf::read(&mut archive, bounds),
        Kind::FlatOpenDocument => odf::read_flat(&text::decode(bytes)?, bounds),
        Kind::Rtf => rtf::read(bytes, bounds),
        Kind::Email => email::read(bytes, bounds),
        Kind::Mailbox => mbox::read(bytes, bounds),
        Kind::OutlookMessage => outlook::read(bytes, bounds),
        Kind::Tnef => tnef::read(bytes, bounds),
        Kind::Cms => cms::read(document, bounds),
        Kind::Epub { mut archive } => epub::read(&mut archive, bounds),
        Kind::IWork { mut archive } => iwork::read(&mut archive, bounds),
        Kind::Archive => zip::read(bytes, bounds),
        Kind::Picture => Ok(Reading::of_picture(bytes)),
        Kind::Text(kind) => read_text(bytes, kind, bounds),
    }?;
    let undecodable = missing::undecodable(&reading.extracted)?;
    reading.extracted.warnings.extend(undecodable);
    Ok(reading)
}

fn read_text(bytes: &[u8], kind: TextKind, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let decoded = text::decode(bytes)?;
    let extracted = match kind {
        TextKind::Html => return html::read(&decoded, bounds),
        TextKind::Plain | TextKind::Xml if html::looks_like(xml::after_declaration(&decoded)) => {
            return html::read(&decoded, bounds);
        }
        TextKind::Plain if xml::looks_like(&decoded) => xml::extract(&decoded, bounds)?,
        TextKind::Xml => xml::extract(&decoded, bounds)?,
        TextKind::Plain => text::extract(decoded),
        TextKind::Markdown => markdown::extract(decoded),
        TextKind::Csv { delimiter } => csv::extract(&decoded, delimiter, bounds)?,
        TextKind::Json => json::extract(&decoded)?,
        TextKind::Notebook => return notebook::read(&decoded, bounds),
        TextKind::Subtitles => subtitles::extract(&decoded, bounds)?,
        TextKind::Latex => latex::extract(&decoded, bounds)?,
        TextKind::AsciiDoc => outline::ascii_doc(&decoded),
        TextKind::ReStructuredText => outline::re_structured_text(&decoded),
        TextKind::Org => outline::org(&decoded),
        TextKind::Code { language } => code::extract(&decoded, language),
    };
    if extracted.text.len() > bounds.limits.text_bytes {
        return Err(bounds.limits.too_much_text());
    }
    Ok(Reading::of(extracted))
}

/// The most text that a JSON document of this many bytes may yield.
pub(crate) fn max_text(bytes: usize) -> usize {
    4 * bytes + (1 << 20)
}

pub(crate) fn too_much_text() -> Error {
    Error::new(ErrorKind::Invalid, "There is far more text in this file than its size can hold")
}

pub(crate) fn protected() -> Error {
    Error::new(ErrorKind::Invalid, "This file is protected by a password. Upload a copy without one")
}

/// Whether there is a letter or a digit.
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

    fn kind(bytes: &[u8], name: &str) -> ErrorKind {
        read(bytes, name, None).unwrap_err().kind()
    }

    #[test]
    fn a_document_is_recognised_by_its_bytes_also_if_its_name_is_wrong() {
        assert_eq!(kind(b"just text", "report.pdf"), ErrorKind::NotPdf);
        assert_eq!(read(b"just text", "r", Some("application/pdf")).unwrap_err().kind(), ErrorKind::NotPdf);
        assert_eq!(kind(b"\x1F\x8B\x08\0....", "notes.txt"), ErrorKind::UnsupportedType);
        assert_eq!(kind(b"\x89PNG\r\n\x1a\n....", "notes.txt"), ErrorKind::NoText);
        assert_eq!(kind(b"PK\x03\x04\x14\0\x06\0", "notes.md"), ErrorKind::Damaged);
        assert_eq!(kind(&[0, 1, 2, 3, 0, 0, 5], "notes.txt"), ErrorKind::UnsupportedType);
    }

    #[test]
    fn an_unsupported_type_names_what_is_supported() {
        assert!(read(b"7z\xBC\xAF\x27\x1C", "a.7z", None).unwrap_err().message().contains("Markdown"));
    }

    #[test]
    fn a_document_without_letters_or_digits_has_no_text() {
        assert_eq!(kind(b" \n\t \r\n", "a.txt"), ErrorKind::NoText);
        assert_eq!(kind(b"--- *** ...", "a.md"), ErrorKind::NoText);
        assert_eq!(
            kind(b"<html><body><script>var x = 1</script></body></html>", "a.html"),
            ErrorKind::NoText
        );
    }

    #[test]
    fn a_web_page_is_recognised_without_its_extension() {
        let page = read(b"<!DOCTYPE html><p>Hello <b>there</b></p>", "download", None).unwrap();
        assert_eq!(page.text, "Hello there");
    }

    #[test]
    fn a_text_may_begin_with_the_magic_bytes_of_a_program() {
        assert_eq!(
            read(b"MZ is how DOS programs begin", "a.txt", None).unwrap().text,
            "MZ is how DOS programs begin"
        );
    }
}
