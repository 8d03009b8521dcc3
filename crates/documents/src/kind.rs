//! Recognises what kind of document some bytes are.

mod extensions;
mod unsupported;

use std::path::Path;

use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::{Error, ErrorKind};
use crate::formats::{cms, compound, email, iwork, mbox, odf, office, password, rtf, text, tnef};
use crate::limits::Bounds;
use crate::members;
use crate::{Document, protected};

const SUPPORTED: &str = "PDF, DOCX, DOC, PPTX, PPT, XLSX, XLSB, XLS, ODT, ODS, ODP, RTF, EML, MSG, MBOX, EPUB, HTML, XML, Markdown, \
     plain text, source code, CSV, TSV, JSON, Jupyter notebooks, LaTeX, subtitles, ZIP archives \
     of these, and pictures (PNG, JPEG, TIFF, BMP, GIF, WebP) where tesseract is installed";

/// A kind of document that can be read, with what was opened to recognise it.
pub enum Kind<'a> {
    Pdf,
    Docx {
        archive: Archive<'a>,
        main_part: String,
    },
    Doc,
    Pptx {
        archive: Archive<'a>,
        main_part: String,
    },
    Xlsx {
        archive: Archive<'a>,
        main_part: String,
    },
    Xlsb {
        archive: Archive<'a>,
        main_part: String,
    },
    Xls,
    Ppt,
    /// A document that the default password of Excel opens.
    Opened(Vec<u8>),
    OpenDocument {
        archive: Archive<'a>,
    },
    FlatOpenDocument,
    Rtf,
    Email,
    Mailbox,
    OutlookMessage,
    Tnef,
    Cms,
    Epub {
        archive: Archive<'a>,
    },
    IWork {
        archive: Archive<'a>,
    },
    Archive,
    Picture,
    Text(TextKind),
}

/// The kinds of text. The name and the declared type decide between them, because their bytes look alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    Plain,
    Markdown,
    Html,
    Xml,
    Csv { delimiter: u8 },
    Json,
    Notebook,
    Subtitles,
    Latex,
    AsciiDoc,
    ReStructuredText,
    Org,
    Code { language: &'static str },
}

pub fn recognise<'a>(document: Document<'a>, bounds: Bounds<'a>) -> Result<Kind<'a>, Error> {
    let bytes = document.bytes;
    let declared = Declared::new(document);
    if is_pdf(bytes, &declared) {
        return Ok(Kind::Pdf);
    }
    if declared.is_pdf() {
        return Err(Error::new(ErrorKind::NotPdf, "The name or type says PDF, but it is not a PDF"));
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return packed(bytes, bounds);
    }
    if bytes.starts_with(compound::MARK) {
        return compound(bytes, bounds);
    }
    if bytes.starts_with(rtf::MARK) {
        return Ok(Kind::Rtf);
    }
    if is_picture(bytes) {
        return Ok(Kind::Picture);
    }
    if bytes.starts_with(tnef::MARK) {
        return Ok(Kind::Tnef);
    }
    if cms::looks_like(bytes) || declared.is_signed() && cms::unwrapped(bytes).is_some() {
        return Ok(Kind::Cms);
    }
    if let Some(named) = unsupported::named(bytes, || text::looks_binary(bytes)) {
        return Err(unsupported_with_help(named.what, named.help));
    }
    if unsupported::is_ebcdic(bytes) {
        return Err(unsupported_with_help(
            "text of a mainframe (EBCDIC)",
            "Convert it to UTF-8 and upload that",
        ));
    }
    if text::looks_binary(bytes) {
        // A mail may carry bytes that are no text, in an attachment or by a fault of some server.
        if email::looks_like(&String::from_utf8_lossy(start(bytes))) {
            return Ok(Kind::Email);
        }
        return Err(unsupported("binary data"));
    }
    if mbox::looks_like(bytes) {
        return Ok(Kind::Mailbox);
    }
    if odf::looks_flat(&text::decode(start(bytes))?) {
        return Ok(Kind::FlatOpenDocument);
    }
    Ok(match declared.text_kind() {
        TextKind::Plain if declared.is_email() || email::looks_like(&text::decode(start(bytes))?) => {
            Kind::Email
        }
        kind => Kind::Text(kind),
    })
}

/// The beginning of a text, which is enough to recognise it.
fn start(bytes: &[u8]) -> &[u8] {
    const LENGTH: usize = 4_096;
    &bytes[..bytes.len().min(LENGTH)]
}

/// What the name and the declared type say about a document.
struct Declared<'a> {
    extension: String,
    content_type: &'a str,
}

impl<'a> Declared<'a> {
    fn new(document: Document<'a>) -> Self {
        let extension =
            Path::new(document.name).extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        let content_type =
            document.content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        Self { extension: extension.unwrap_or_default(), content_type }
    }

    fn text_kind(&self) -> TextKind {
        match (self.extension.as_str(), self.content_type) {
            ("md" | "markdown", _) | (_, "text/markdown") => TextKind::Markdown,
            ("html" | "htm" | "xhtml", _) | (_, "text/html" | "application/xhtml+xml") => TextKind::Html,
            ("xml", _) | (_, "application/xml" | "text/xml") => TextKind::Xml,
            ("csv", _) | (_, "text/csv") => TextKind::Csv { delimiter: b',' },
            ("tsv", _) | (_, "text/tab-separated-values") => TextKind::Csv { delimiter: b'\t' },
            ("json" | "jsonl" | "ndjson", _) | (_, "application/json" | "application/x-ndjson") => {
                TextKind::Json
            }
            (extension, _) => extensions::text_kind(extension).unwrap_or_else(|| self.kind_of_type()),
        }
    }

    fn kind_of_type(&self) -> TextKind {
        match self.content_type {
            "application/x-ipynb+json" => TextKind::Notebook,
            "text/vtt" | "application/x-subrip" => TextKind::Subtitles,
            "application/x-tex" | "text/x-tex" => TextKind::Latex,
            _ => TextKind::Plain,
        }
    }

    fn is_email(&self) -> bool {
        self.extension == "eml" || self.content_type == "message/rfc822"
    }

    fn is_signed(&self) -> bool {
        matches!(self.extension.as_str(), "p7m" | "p7s" | "p7b") || self.content_type.ends_with("pkcs7-mime")
    }

    fn is_pdf(&self) -> bool {
        self.extension == "pdf" || self.content_type == "application/pdf"
    }
}

/// Mail programs and printers put a few lines before a PDF. They are skipped only if the file is declared as a PDF.
fn is_pdf(bytes: &[u8], declared: &Declared<'_>) -> bool {
    const MARK: &[u8] = b"%PDF-";
    const MAX_OFFSET: usize = 1_024;
    bytes.trim_ascii_start().starts_with(MARK)
        || declared.is_pdf()
            && bytes[..bytes.len().min(MAX_OFFSET)].windows(MARK.len()).any(|window| window == MARK)
}

/// Texts, spreadsheets and presentations. The types of their templates begin with these.
const OPEN_DOCUMENTS: &[&str] = &[
    "application/vnd.oasis.opendocument.text",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.oasis.opendocument.presentation",
];

/// The kind of an archive is that of its main part.
fn packed<'a>(bytes: &'a [u8], bounds: Bounds<'a>) -> Result<Kind<'a>, Error> {
    let mut archive = Archive::open(bytes, bounds)?;
    if let Some(mime_type) = archive.text("mimetype")? {
        return match mime_type.trim() {
            "application/epub+zip" => Ok(Kind::Epub { archive }),
            open if OPEN_DOCUMENTS.iter().any(|kind| open.starts_with(kind)) => {
                Ok(Kind::OpenDocument { archive })
            }
            _ => Err(unsupported("a ZIP archive of a kind of its own")),
        };
    }
    match packed_otherwise(&archive)? {
        Some(Packed::Epub) => return Ok(Kind::Epub { archive }),
        Some(Packed::IWork) => return Ok(Kind::IWork { archive }),
        Some(Packed::Files) => return Ok(Kind::Archive),
        None => {}
    }
    let Some(main_part) = office::main_part(&mut archive, bounds)? else {
        return Err(unsupported("a ZIP archive of a kind of its own"));
    };
    let content_type = office_type(&mut archive, &main_part, bounds)?;
    if content_type.contains("wordprocessingml") || content_type.contains("ms-word") {
        Ok(Kind::Docx { archive, main_part })
    } else if content_type.contains("presentationml") || content_type.contains("ms-powerpoint") {
        Ok(Kind::Pptx { archive, main_part })
    } else if content_type.contains("sheet.binary") {
        Ok(Kind::Xlsb { archive, main_part })
    } else if content_type.contains("spreadsheetml") || content_type.contains("ms-excel") {
        Ok(Kind::Xlsx { archive, main_part })
    } else {
        Err(unsupported("an Office document of an unknown kind"))
    }
}

/// What an archive is that is no Office document; `None` if it may be one.
enum Packed {
    Epub,
    IWork,
    Files,
}

fn packed_otherwise(archive: &Archive<'_>) -> Result<Option<Packed>, Error> {
    if archive.has("META-INF/container.xml") {
        return Ok(Some(Packed::Epub));
    }
    if iwork::looks_like(archive) {
        return Ok(Some(Packed::IWork));
    }
    if archive.has("AndroidManifest.xml") || archive.has("META-INF/MANIFEST.MF") {
        let help = "Upload the documents about it instead";
        return Err(unsupported_with_help("a program (Java or Android)", help));
    }
    Ok((!members::is_document(archive)).then_some(Packed::Files))
}

/// The declared type of the main part.
fn office_type(archive: &mut Archive<'_>, main_part: &str, bounds: Bounds<'_>) -> Result<String, Error> {
    let source = archive.required_text("[Content_Types].xml")?;
    let extension = main_part.rsplit_once('.').map_or("", |(_, extension)| extension);
    let mut of_extension = None;
    let mut elements = Elements::new(&source, bounds);
    while let Some(piece) = elements.next()? {
        let Piece::Open(element) = piece else { continue };
        let is = |name: &str, wanted: &str| {
            element
                .attribute(name)
                .is_some_and(|name| name.trim_start_matches('/').eq_ignore_ascii_case(wanted))
        };
        if element.name() == "Override" && is("PartName", main_part) {
            return Ok(element.attribute("ContentType").unwrap_or_default());
        }
        if element.name() == "Default" && is("Extension", extension) {
            of_extension = element.attribute("ContentType");
        }
    }
    // Some programs declare only the extension. If its type does not say what it is, the folder decides.
    Ok(match (main_part.split('/').next(), of_extension) {
        (_, Some(declared)) if declared.contains("application/vnd.") => declared,
        (Some("xl"), _) if extension.eq_ignore_ascii_case("bin") => "sheet.binary".to_owned(),
        (Some("word"), _) => "wordprocessingml".to_owned(),
        (Some("ppt"), _) => "presentationml".to_owned(),
        (Some("xl"), _) => "spreadsheetml".to_owned(),
        _ => String::new(),
    })
}

/// The names at the top level of the container decide.
fn compound<'a>(bytes: &'a [u8], bounds: Bounds<'a>) -> Result<Kind<'a>, Error> {
    let names = compound::names(bytes);
    // Some programs write the names in capitals.
    let has = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    if names.is_empty() {
        return Err(Error::new(ErrorKind::Damaged, "This file is damaged: it does not say what is in it"));
    }
    if has("EncryptedPackage") {
        let container = compound::Container::open(bytes);
        let document = container.and_then(|container| password::opened(&container, bounds));
        document.map(Kind::Opened).ok_or_else(protected)
    } else if has("WordDocument") {
        Ok(Kind::Doc)
    } else if has("PowerPoint Document") {
        Ok(Kind::Ppt)
    } else if has("__nameid_version1.0") {
        Ok(Kind::OutlookMessage)
    } else if has("Workbook") || has("Book") {
        Ok(Kind::Xls)
    } else {
        Err(unsupported("an old Office document"))
    }
}

/// Whether the magic bytes are those of a picture that tesseract reads.
pub fn is_picture(bytes: &[u8]) -> bool {
    const MARKS: &[&[u8]] =
        &[b"\x89PNG\r\n\x1A\n", b"\xFF\xD8\xFF", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*"];
    MARKS.iter().any(|mark| bytes.starts_with(mark))
        || bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP")
        // Two letters are not enough; every bitmap also has four zeros here.
        || bytes.starts_with(b"BM") && bytes.get(6..10) == Some(&[0; 4])
}

fn unsupported(what: &str) -> Error {
    Error::new(
        ErrorKind::UnsupportedType,
        format!("This is {what}, which is not supported. Supported: {SUPPORTED}"),
    )
}

/// The same with what its owner can do.
fn unsupported_with_help(what: &str, help: &str) -> Error {
    Error::new(
        ErrorKind::UnsupportedType,
        format!("This is {what}, which is not supported. {help}. Supported: {SUPPORTED}"),
    )
}
