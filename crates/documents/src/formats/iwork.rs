//! Pages, Numbers and Keynote: the preview that these programs store beside the document.

use crate::Document;
use crate::archive::Archive;
use crate::embedded::Embedded;
use crate::error::{Error, ErrorKind};
use crate::flow::Flow;
use crate::limits::Bounds;
use crate::missing::PageCount;
use crate::reading::Reading;
use landfall_core::warning::{Warning, WarningCode};

const MARKS: &[&str] = &["Index/Document.iwa", "Index.zip", "buildVersionHistory.plist", "index.apxl"];
/// All pages, or the first one as a picture.
const PDF: &str = "QuickLook/Preview.pdf";
const PICTURES: &[&str] = &["preview.jpg", "QuickLook/Thumbnail.jpg", "preview-web.jpg"];

pub fn looks_like(archive: &Archive<'_>) -> bool {
    MARKS.iter().any(|mark| archive.has(mark))
}

pub fn read(archive: &mut Archive<'_>, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let mut flow = Flow::new(bounds.limits);
    if let Some(bytes) = archive.bytes(PDF)? {
        let document = Document { bytes: &bytes, name: PDF, content_type: None };
        if Embedded::default().read(document, &mut flow, bounds)? {
            flow.warn(only_preview("its preview", "What the preview leaves out is missing"));
            return flow.finish_reading(PageCount::default());
        }
    }
    for name in PICTURES {
        if let Some(bytes) = archive.bytes(name)? {
            flow.picture(None, &bytes);
            flow.warn(only_preview("a picture of its first page", "The other pages are missing"));
            return flow.finish_reading(PageCount::default());
        }
    }
    Err(Error::new(
        ErrorKind::UnsupportedType,
        "This is a document of Pages, Numbers or Keynote without a preview, which is not supported. Export it as PDF, DOCX, \
         XLSX or PPTX and upload that",
    ))
}

fn only_preview(what: &str, missing: &str) -> Warning {
    let message = format!(
        "Of this document of Pages, Numbers or Keynote only {what} was read. {missing}. Export it as PDF, DOCX, XLSX or \
         PPTX and upload that"
    );
    Warning::new(WarningCode::PartsNotRead, message)
}
