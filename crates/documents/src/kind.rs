//! Recognises what kind of document some bytes are.

use std::path::Path;

use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::{Error, ErrorKind};
use crate::formats::{compound, email, office, rtf, text};
use crate::limits::Bounds;
use crate::{Document, protected};

const SUPPORTED: &str = "PDF, DOCX, PPTX, XLSX, XLS, ODT, ODS, ODP, RTF, EML, HTML, XML, Markdown, plain text, CSV, \
     TSV, JSON, and pictures (PNG, JPEG, TIFF, BMP, GIF, WebP) where tesseract is installed";

/// A kind of document that can be read, with what was opened to recognise it.
pub enum Kind<'a> {
    Pdf,
    Docx { archive: Archive<'a>, main_part: String },
    Pptx { archive: Archive<'a>, main_part: String },
    Xlsx { archive: Archive<'a> },
    Xls,
    OpenDocument { archive: Archive<'a> },
    Rtf,
    Email,
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
        return compound(bytes);
    }
    if bytes.starts_with(rtf::MARK) {
        return Ok(Kind::Rtf);
    }
    if is_picture(bytes) {
        return Ok(Kind::Picture);
    }
    // A text may begin with the same two letters by chance.
    if let Some((mark, what)) = UNSUPPORTED.iter().find(|(mark, _)| bytes.starts_with(mark))
        && (mark.len() > 2 || text::looks_binary(bytes))
    {
        return Err(unsupported(what));
    }
    if text::looks_binary(bytes) {
        return Err(unsupported("binary data"));
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
            _ => TextKind::Plain,
        }
    }

    fn is_email(&self) -> bool {
        self.extension == "eml" || self.content_type == "message/rfc822"
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
            "application/epub+zip" => Err(unsupported("an EPUB book")),
            open if OPEN_DOCUMENTS.iter().any(|kind| open.starts_with(kind)) => {
                Ok(Kind::OpenDocument { archive })
            }
            _ => Err(unsupported("a ZIP archive of a kind of its own")),
        };
    }
    let Some(main_part) = office::main_part(&mut archive, bounds)? else {
        return Err(unsupported("a ZIP archive"));
    };
    let content_type = office_type(&mut archive, &main_part, bounds)?;
    if content_type.contains("wordprocessingml") || content_type.contains("ms-word") {
        Ok(Kind::Docx { archive, main_part })
    } else if content_type.contains("presentationml") || content_type.contains("ms-powerpoint") {
        Ok(Kind::Pptx { archive, main_part })
    } else if content_type.contains("sheet.binary") {
        Err(unsupported("a binary Excel workbook (XLSB)"))
    } else if content_type.contains("spreadsheetml") || content_type.contains("ms-excel") {
        Ok(Kind::Xlsx { archive })
    } else {
        Err(unsupported("an Office document of an unknown kind"))
    }
}

/// The declared type of the main part.
fn office_type(archive: &mut Archive<'_>, main_part: &str, bounds: Bounds<'_>) -> Result<String, Error> {
    let source = archive.required_text("[Content_Types].xml")?;
    let mut elements = Elements::new(&source, bounds);
    while let Some(piece) = elements.next()? {
        if let Piece::Open(element) = piece
            && element.name() == "Override"
            && element.attribute("PartName").is_some_and(|name| name.trim_start_matches('/') == main_part)
        {
            return Ok(element.attribute("ContentType").unwrap_or_default());
        }
    }
    // Some programs declare only the extension; then the folder decides.
    Ok(match main_part.split('/').next() {
        Some("word") => "wordprocessingml",
        Some("ppt") => "presentationml",
        Some("xl") => "spreadsheetml",
        _ => "",
    }
    .to_owned())
}

/// The names at the top level of the container decide.
fn compound(bytes: &[u8]) -> Result<Kind<'_>, Error> {
    let names = compound::names(bytes);
    let has = |name: &str| names.contains(name);
    if names.is_empty() {
        return Err(Error::new(ErrorKind::Damaged, "This file is damaged: it does not say what is in it"));
    }
    if has("EncryptedPackage") {
        Err(protected())
    } else if has("WordDocument") {
        Err(unsupported("a Word document of before 2007 (save it as DOCX)"))
    } else if has("PowerPoint Document") {
        Err(unsupported("a PowerPoint presentation of before 2007 (save it as PPTX)"))
    } else if has("__nameid_version1.0") {
        Err(unsupported("an Outlook message (save it as EML)"))
    } else if has("Workbook") || has("Book") {
        Ok(Kind::Xls)
    } else {
        Err(unsupported("an old Office document"))
    }
}

/// Formats without a reader, by their magic bytes.
const UNSUPPORTED: &[(&[u8], &str)] = &[
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"RIFF", "a RIFF media file"),
    (b"\x1F\x8B", "a gzip archive"),
    (b"7z\xBC\xAF\x27\x1C", "a 7-Zip archive"),
    (b"Rar!\x1A\x07", "a RAR archive"),
    (b"\x7FELF", "a program"),
    (b"MZ", "a program"),
    (b"SQLite format 3\0", "a database"),
];

/// Whether the magic bytes are those of a picture that tesseract reads.
fn is_picture(bytes: &[u8]) -> bool {
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
