//! PDF: the text of each page, and the pictures of pages without text.

mod outline;
mod pictures;
mod right_to_left;

use std::panic::{AssertUnwindSafe, catch_unwind};

use pdf_oxide::PdfDocument;

use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::has_words;
use crate::limits::Bounds;
use crate::reading::Reading;

/// After this many unreadable pages in a row, the rest is taken as missing.
const MAX_MISSING_PAGES: usize = 50;

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    // The library panics on some damaged files. Nothing that it held is used after that.
    catch_unwind(AssertUnwindSafe(|| read_document(bytes, bounds))).unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::Damaged,
            "This PDF is damaged: the reader came upon something impossible in it",
        ))
    })
}

fn read_document(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    let document = PdfDocument::from_bytes(bytes.to_vec()).map_err(damaged)?;
    if document.is_encrypted() && !document.is_authenticated() {
        return Err(Error::new(
            ErrorKind::Invalid,
            "This PDF is protected by a password. Upload a copy without one",
        ));
    }
    let pages = count_pages(&document, bounds)?;
    let mut flow = Flow::new(bounds.limits);
    let mut pictures = pictures::Pictures::new(bounds.limits);
    let mut missing = 0;
    let mut last_error = None;
    for page in 0..pages {
        bounds.report_progress()?;
        let text = match page_text(&document, page) {
            Ok(text) => text,
            Err(error) => {
                missing += 1;
                last_error = Some(error);
                if missing > MAX_MISSING_PAGES {
                    break;
                }
                continue;
            }
        };
        missing = 0;
        let number = i64::try_from(page + 1).unwrap_or(i64::MAX);
        if has_words(&text) {
            flow.place(Some(number), None);
            flow.verbatim(text.trim());
            flow.check()?;
        } else {
            flow.widen(Gap::Paragraph);
            pictures.take_from(&document, page, flow.len());
        }
    }
    if flow.is_empty() && pictures.is_empty() {
        if let Some(error) = last_error {
            return Err(damaged(error));
        }
        if let Some(what) = visible_damage(bytes, pages) {
            return Err(Error::new(ErrorKind::Damaged, format!("This PDF is damaged: {what}")));
        }
    }
    let mut extracted = flow.finish()?;
    outline::add_headings(&document, &mut extracted);
    Ok(Reading { extracted, pictures: pictures.finish() })
}

fn page_text(document: &PdfDocument, page: usize) -> Result<String, pdf_oxide::Error> {
    let text = document.extract_text(page)?;
    if right_to_left::is_right_to_left(&text) {
        Ok(right_to_left::assemble(&document.extract_chars(page)?))
    } else {
        Ok(text)
    }
}

/// The number of pages. The declared number may be false.
fn count_pages(document: &PdfDocument, bounds: Bounds<'_>) -> Result<usize, Error> {
    let limit = bounds.limits.pages;
    let pages = document.page_count().map_err(damaged)?;
    if pages > limit && document.get_page(limit).is_ok() {
        return Err(bounds.limits.too_many_pages());
    }
    Ok(pages.min(limit))
}

/// The damage of a document in which the library found nothing, if it has any.
fn visible_damage(bytes: &[u8], pages: usize) -> Option<&'static str> {
    const END: &[u8] = b"%%EOF";
    // Mail programs add a few lines after the end.
    const MAX_OFFSET: usize = 2_048;
    let last = &bytes[bytes.len().saturating_sub(MAX_OFFSET)..];
    if memchr::memmem::rfind(last, END).is_none() {
        Some("it breaks off before its end")
    } else if pages == 0 {
        Some("none of its pages can be found")
    } else {
        None
    }
}

fn damaged(error: pdf_oxide::Error) -> Error {
    Error::new(ErrorKind::Damaged, "This PDF is damaged and cannot be read").with_detail(error)
}
