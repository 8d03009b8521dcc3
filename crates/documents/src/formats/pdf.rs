//! PDF: the text of each page, and the pictures of pages that have none.

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

/// So many pages one after the other that cannot be read are pages that are not there.
const MOST_MISSING_PAGES: usize = 50;

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    // The library panics over some damaged files. Nothing of what it held then is used again.
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
                if missing > MOST_MISSING_PAGES {
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

/// The number of pages, which the document may have made up.
fn count_pages(document: &PdfDocument, bounds: Bounds<'_>) -> Result<usize, Error> {
    let most = bounds.limits.pages;
    let pages = document.page_count().map_err(damaged)?;
    if pages > most && document.get_page(most).is_ok() {
        return Err(bounds.limits.too_many_pages());
    }
    Ok(pages.min(most))
}

/// What is wrong with a document that the library made the best of. Without it nothing was found because nothing is there.
fn visible_damage(bytes: &[u8], pages: usize) -> Option<&'static str> {
    const END: &[u8] = b"%%EOF";
    // Behind the end stand no more than a few lines of whoever sent it.
    const FARTHEST: usize = 2_048;
    let last = &bytes[bytes.len().saturating_sub(FARTHEST)..];
    if memchr::memmem::rfind(last, END).is_none() {
        Some("it breaks off before its end")
    } else if pages == 0 {
        Some("none of its pages can be found")
    } else {
        None
    }
}

fn damaged(error: pdf_oxide::Error) -> Error {
    Error::new(ErrorKind::Damaged, format!("This PDF is damaged and cannot be read: {error}"))
}
