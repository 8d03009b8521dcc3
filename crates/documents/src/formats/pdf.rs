//! PDF: the text of each page, and the pictures of pages without text.

mod annotations;
mod attachments;
mod contents;
mod dingbats;
mod ending;
mod fonts;
mod forms;
mod garbage;
mod layout;
mod outline;
mod page_tree;
mod pictures;
mod render;
mod revision5;
mod right_to_left;
mod running;
mod skew;
mod source;
mod streams;
mod strokes;
mod styles;
mod unmapped;
mod write;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pdf_oxide::PdfDocument;
use pdf_oxide::extractors::text::set_preserve_unmapped_glyphs;

use crate::embedded::Embedded;
use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;
use annotations::Annotations;
use ending::{Declared, Ending};
use landfall_core::warning::{Warning, WarningCode};
use layout::Page;
use layout::glyphs::{self, Paper};
use outline::Outline;
use page_tree::PageTree;
use pictures::{OfPage, Pictures};
use render::Renderer;
use streams::Streams;
use unmapped::Unmapped;
use write::Writer;

/// After this many unreadable pages in a row, the rest is taken as missing.
const MAX_MISSING_PAGES: usize = 50;

/// A page with fewer bytes of text under a picture of the whole page is a scan with a stamp on it.
const MAX_STAMP: usize = 120;

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
    // Otherwise the library leaves them out, and they cannot be counted.
    set_preserve_unmapped_glyphs(true);
    let ending = Ending::of(bytes);
    let bytes = &revision5::as_revision_6(bytes).map_or(Cow::Borrowed(bytes), Cow::Owned)[..];
    let document = PdfDocument::from_bytes(bytes.to_vec()).map_err(|error| damaged(ending, error))?;
    if document.is_encrypted() && !document.is_authenticated() {
        return Err(Error::new(
            ErrorKind::Invalid,
            "This PDF is protected by a password. Upload a copy without one",
        ));
    }
    let mut pages = Pages::new(&document, ending, bounds);
    let tree = page_tree::check(&document, bytes.len(), bounds.limits)?;
    let number = count_pages(&document, tree, ending, bounds)?;
    pages.read_all(number)?;
    pages.write(&Renderer::new(bytes, number))?;
    pages.finish(bytes, number)
}

/// The pages of a document while they are read.
struct Pages<'a> {
    document: &'a PdfDocument,
    streams: Streams,
    ending: Ending,
    bounds: Bounds<'a>,
    flow: Flow,
    pictures: Pictures<'a>,
    unmapped: Unmapped,
    /// Pages that are damaged or missing, and those of which the end may be missing.
    unreadable: BTreeSet<i64>,
    cut: BTreeSet<i64>,
    /// Pages that only OCR could read, and whose pictures are not passed on.
    left_out: BTreeSet<i64>,
    last_error: Option<pdf_oxide::Error>,
    /// What was read so far, by page; `None` for a page that the library cannot read.
    pages: Vec<(usize, Option<Page>)>,
    text_bytes: usize,
}

impl<'a> Pages<'a> {
    fn new(document: &'a PdfDocument, ending: Ending, bounds: Bounds<'a>) -> Self {
        Self {
            document,
            streams: Streams::of(document),
            ending,
            bounds,
            flow: Flow::new(bounds.limits),
            pictures: Pictures::new(bounds.limits),
            unmapped: Unmapped::default(),
            unreadable: BTreeSet::new(),
            cut: BTreeSet::new(),
            left_out: BTreeSet::new(),
            last_error: None,
            pages: Vec::new(),
            text_bytes: 0,
        }
    }

    fn read_all(&mut self, pages: usize) -> Result<(), Error> {
        let mut missing_in_a_row = 0;
        for page in 0..pages {
            self.bounds.report_progress()?;
            missing_in_a_row = if self.read(page)? { 0 } else { missing_in_a_row + 1 };
            if missing_in_a_row > MAX_MISSING_PAGES {
                self.unreadable.extend((page..pages).map(page_number));
                break;
            }
        }
        Ok(())
    }

    /// Reads a page. Returns whether it is there at all.
    fn read(&mut self, page: usize) -> Result<bool, Error> {
        let number = page_number(page);
        // Unpacked once for all that looks at them. A page whose instructions cannot be unpacked has no text.
        let mut instructions = self.document.get_page_content_data(page).unwrap_or_default();
        if !self.pictures.can_be_followed(self.document, &self.streams, page, &instructions) {
            self.unreadable.insert(number);
            return Ok(true);
        }
        let content = match arranged(self.document, &self.streams, page, &mut instructions) {
            Ok(content) => content,
            Err(error) => {
                self.last_error = Some(error);
                self.pages.push((page, None));
                return Ok(false);
            }
        };
        self.text_bytes += content.texts().map(str::len).sum::<usize>().max(content.glyphs);
        if self.text_bytes > self.bounds.limits.text_bytes {
            return Err(self.bounds.limits.too_much_text());
        }
        self.pages.push((page, Some(content)));
        Ok(true)
    }

    /// Writes the pages. Heads that are repeated and the sizes of headings are known only after the last one.
    fn write(&mut self, renderer: &Renderer<'_>) -> Result<(), Error> {
        let mut pages = std::mem::take(&mut self.pages);
        running::remove_repeated(pages.iter_mut().filter_map(|(_, content)| content.as_mut()));
        let read = pages.iter().filter_map(|(_, content)| content.as_ref());
        let mut writer = Writer::new(Outline::of(self.document), read);
        for (page, content) in pages {
            self.bounds.report_progress()?;
            let number = page_number(page);
            let Some(content) = content else {
                if !self.draw(renderer, page) {
                    self.unreadable.insert(number);
                }
                continue;
            };
            if unmapped::are_most(content.texts()) && self.draw(renderer, page) {
                self.unmapped.recognise(number);
            } else if unmapped::has_words(content.texts()) {
                self.write_text(&mut writer, renderer, page, content)?;
            } else if !self.draw(renderer, page) {
                self.unmapped.count(content.texts(), number);
                self.take_pictures(page);
            }
        }
        Ok(())
    }

    fn write_text(
        &mut self,
        writer: &mut Writer,
        renderer: &Renderer<'_>,
        page: usize,
        content: Page,
    ) -> Result<(), Error> {
        let number = page_number(page);
        self.unmapped.count(content.texts(), number);
        let is_scan = content.texts().map(str::len).sum::<usize>() < MAX_STAMP
            && pictures::cover(self.document, page, paper(self.document, page));
        self.flow.place(Some(number), None);
        writer.write(content, number, &mut self.flow);
        self.flow.check()?;
        if self.ending != Ending::Whole && contents::are_cut(self.document, page) {
            self.cut.insert(number);
        }
        if is_scan {
            self.draw(renderer, page);
        }
        Ok(())
    }

    /// Passes a page on to OCR as it is shown. Returns whether it could be drawn and is within the limits.
    fn draw(&mut self, renderer: &Renderer<'_>, page: usize) -> bool {
        self.flow.widen(Gap::Paragraph);
        self.flow.has_room_for_picture()
            && contents::can_be_drawn(self.document, page)
            && renderer.draw(page).is_some_and(|picture| self.flow.picture(Some(page_number(page)), &picture))
    }

    /// Passes the pictures of a page that cannot be drawn on to OCR.
    fn take_pictures(&mut self, page: usize) {
        let number = page_number(page);
        match self.pictures.take_from(self.document, page, &mut self.flow) {
            OfPage::LeftOut => _ = self.left_out.insert(number),
            OfPage::None if contents::are_damaged(self.document, page) => {
                self.unreadable.insert(number);
            }
            OfPage::Taken | OfPage::None => {}
        }
    }

    fn finish(mut self, bytes: &[u8], pages: usize) -> Result<Reading, Error> {
        let declared = match self.ending {
            Ending::Whole => Declared::default(),
            Ending::BreaksOff(declared) => declared,
        };
        let total = pages.max(declared.pages.unwrap_or(0).min(self.bounds.limits.pages));
        self.unreadable.extend((pages..total).map(page_number));
        if self.flow.is_empty() && !self.flow.has_pictures() && self.left_out.is_empty() {
            if let Some(error) = self.last_error {
                return Err(damaged(self.ending, error));
            }
            if let Some(what) = visible_damage(self.ending, pages) {
                return Err(Error::new(ErrorKind::Damaged, format!("This PDF is damaged: {what}")));
            }
        }
        let count =
            PageCount { total, unreadable: self.unreadable.len(), without_picture: self.left_out.len() };
        let mut embedded = Embedded::default();
        attachments::read(self.document, &self.streams, &mut embedded, &mut self.flow, self.bounds)?;
        let mut reading = self.flow.finish_reading(count)?;
        let extracted = &mut reading.extracted;
        let lost = match self.ending {
            Ending::Whole => missing::unreadable_pages("page", &self.unreadable, count)?,
            Ending::BreaksOff(_) => {
                let lost = Lost { unreadable: &self.unreadable, cut: &self.cut, count, bytes: bytes.len() };
                Some(lost.warning(declared, ending::has_list_of_pages(self.document, bytes))?)
            }
        };
        extracted.warnings.extend(lost);
        extracted.warnings.extend(self.unmapped.finish(total, self.ending)?);
        extracted.warnings.extend(without_picture(&self.left_out, count, self.bounds));
        extracted.warnings.extend(embedded.finish("attachment"));
        Ok(reading)
    }
}

fn page_number(page: usize) -> i64 {
    i64::try_from(page + 1).unwrap_or(i64::MAX)
}

/// What a file that breaks off has lost.
struct Lost<'a> {
    unreadable: &'a BTreeSet<i64>,
    cut: &'a BTreeSet<i64>,
    count: PageCount,
    bytes: usize,
}

impl Lost<'_> {
    /// `is_listed`: whether the list of all pages is there, so that the number of pages is known.
    fn warning(&self, declared: Declared, is_listed: bool) -> Result<Warning, Error> {
        let total = self.count.total;
        let there = declared.bytes.map(|all| format!(" ({} of {all} bytes are there)", self.bytes));
        let there = there.unwrap_or_default();
        let readable = total - self.count.unreadable;
        if self.count.is_mostly_missing(0) {
            let message = format!(
                "This PDF breaks off before its end{there}: only {readable} of {total} pages can be read. Upload the \
                 whole file again"
            );
            return Err(Error::new(ErrorKind::Damaged, message));
        }
        let mut missing = Vec::new();
        if !self.unreadable.is_empty() {
            missing.push(format!("{} cannot be read", missing::pages("page", self.unreadable, total)));
        }
        if !self.cut.is_empty() {
            missing.push(format!("{} may be incomplete", missing::pages("page", self.cut, total)));
        }
        if !is_listed && declared.pages.is_none() {
            missing.push(format!(
                "{} {} found. Pages after page {total} are missing, and how many there were is not known",
                missing::count(total, "page"),
                missing::were(total)
            ));
        } else if missing.is_empty() {
            missing.push(if total == 1 {
                "Its only page was found, but characters or pictures on it may be missing".to_owned()
            } else {
                format!("All {total} pages were found, but characters or pictures on them may be missing")
            });
        }
        let message = format!(
            "This PDF breaks off before its end{there}. {}. Upload the whole file again",
            missing.join(". ")
        );
        let first = self.unreadable.first().or(self.cut.first()).copied();
        Ok(Warning::new(WarningCode::Truncated, message).on_page(first))
    }
}

/// Pages whose pictures are not passed on to OCR.
fn without_picture(left_out: &BTreeSet<i64>, count: PageCount, bounds: Bounds<'_>) -> Option<Warning> {
    let first = left_out.first()?;
    let message = format!(
        "{} cannot be read by OCR, so the text is missing: the pictures exceed the limits ({} pictures, {} MB, {} million \
         pixels each) or cannot be decoded. Split the file, or save its pictures as PNG or JPEG",
        missing::pages("page", left_out, count.total),
        bounds.limits.pictures,
        bounds.limits.picture_bytes >> 20,
        bounds.limits.picture_pixels / 1_000_000,
    );
    Some(Warning::new(WarningCode::OcrIncomplete, message).on_page(Some(*first)))
}

/// The text of a page in reading order.
fn arranged(
    document: &PdfDocument,
    streams: &Streams,
    page: usize,
    instructions: &mut [u8],
) -> Result<Page, pdf_oxide::Error> {
    let glyphs = source::glyphs(document, page, instructions)?;
    let paper = paper(document, page);
    let Annotations { fields, links, notes } = annotations::of_page(document, page, paper);
    if glyphs.is_empty() && fields.is_empty() {
        return Ok(Page { links, notes, ..Page::default() });
    }
    let rules = strokes::of_page(document, streams, page, instructions);
    let mut sheets = glyphs::sheets(&glyphs, paper);
    glyphs::add_fields(&mut sheets, paper, &fields);
    Ok(Page { links, notes, glyphs: glyphs.len(), ..layout::arrange(sheets, &rules) })
}

fn paper(document: &PdfDocument, page: usize) -> Paper {
    let turn = document.get_page_rotation(page).unwrap_or(0);
    let (x0, y0, x1, y1) = document.get_page_visible_box(page).unwrap_or((0.0, 0.0, 612.0, 792.0));
    let (width, height) = ((x1 - x0).abs(), (y1 - y0).abs());
    let is_page = width.is_finite() && height.is_finite() && width > 1.0 && height > 1.0;
    if is_page {
        Paper { left: x0.min(x1), bottom: y0.min(y1), width, height, turn }
    } else {
        Paper { left: 0.0, bottom: 0.0, width: 612.0, height: 792.0, turn }
    }
}

/// The number of pages. The declared number may be false.
fn count_pages(
    document: &PdfDocument,
    tree: PageTree,
    ending: Ending,
    bounds: Bounds<'_>,
) -> Result<usize, Error> {
    let limit = bounds.limits.pages;
    if tree.repeats && tree.pages > 0 {
        // The library would count some of them several times.
        return Ok(tree.pages);
    }
    let pages = document.page_count().map_err(|error| damaged(ending, error))?;
    if pages > limit && document.get_page(limit).is_ok() {
        return Err(bounds.limits.too_many_pages());
    }
    Ok(pages.min(limit))
}

/// The damage of a document in which the library found nothing, if it has any.
fn visible_damage(ending: Ending, pages: usize) -> Option<&'static str> {
    if ending != Ending::Whole {
        Some("it breaks off before its end. Upload the whole file again")
    } else if pages == 0 {
        Some("none of its pages can be found")
    } else {
        None
    }
}

fn damaged(ending: Ending, error: pdf_oxide::Error) -> Error {
    let message = match ending {
        Ending::Whole => "This PDF is damaged and cannot be read",
        Ending::BreaksOff(_) => {
            "This PDF is damaged: it breaks off before its end, and no page can be read. Upload the whole file again"
        }
    };
    Error::new(ErrorKind::Damaged, message).with_detail(error)
}
