//! PPT: the presentations of PowerPoint before 2007. Each slide is a page with its title as the heading.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use office_oxide::ppt::{PptDocument, PptError, SlideText, TableBlock, TextRun, TextType};

use super::presentation;
use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;

/// Deeper paragraphs are items of this level.
const MAX_LEVEL: usize = 8;

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    // The library may panic on damaged files. Nothing that it held is used after that.
    let document = catch_unwind(AssertUnwindSafe(|| PptDocument::from_reader(Cursor::new(bytes))));
    let document = match document {
        Ok(Ok(document)) => document,
        Ok(Err(PptError::Encrypted)) => return Err(crate::protected()),
        Ok(Err(error)) => return Err(damaged(error)),
        Err(_) => return Err(damaged("the library panicked")),
    };
    bounds.report_progress()?;
    if document.slides.len() > bounds.limits.pages {
        return Err(bounds.limits.too_many_pages());
    }
    let mut flow = Flow::new(bounds.limits);
    if !document.text_complete() {
        flow.warn(missing::truncated("presentation"));
    }
    let mut left_out = 0;
    for (slide, number) in document.slides.iter().zip(1..) {
        write_slide(slide, number, &mut flow);
        left_out += slide.ole_object_refs.len();
        flow.check()?;
        bounds.report_progress()?;
    }
    if let Some(warning) = missing::parts_not_read("embedded object", left_out, &[]) {
        flow.warn(warning);
    }
    flow.finish_reading(PageCount { total: document.slides.len(), ..PageCount::default() })
}

fn write_slide(slide: &SlideText, number: i64, flow: &mut Flow) {
    let is_title = |run: &&TextRun| matches!(run.text_type, TextType::Title | TextType::CenterTitle);
    let title = slide.text_runs.iter().find(is_title);
    let words = title.map(|title| title.text.clone()).unwrap_or_default();
    // Only the first slide of a presentation has a title in the middle, or a subtitle.
    let is_centred = |run: &TextRun| matches!(run.text_type, TextType::CenterTitle | TextType::CenterBody);
    let is_first = title.is_some() && slide.text_runs.iter().any(is_centred);
    presentation::begin_slide(flow, number, &words, is_first, slide.hidden);
    let is_title = |run: &TextRun| title.is_some_and(|title| std::ptr::eq(title, run));
    let is_notes = |run: &&TextRun| run.text_type == TextType::Notes;
    for run in slide.text_runs.iter().filter(|run| !is_title(run) && !is_notes(run)) {
        write_run(run, flow);
    }
    for table in &slide.tables {
        write_table(table, flow);
    }
    for run in slide.text_runs.iter().filter(is_notes) {
        write_run(run, flow);
    }
}

/// The body of a slide is a list. Other text is one if some of its paragraphs are on a lower level.
fn write_run(run: &TextRun, flow: &mut Flow) {
    // The number and the date of a slide say nothing about it.
    if matches!(run.placeholder_role.as_deref(), Some("sldNum" | "dt")) {
        return;
    }
    let has_levels =
        || run.para_formats.iter().any(|span| span.format.indent_level.is_some_and(|level| level > 0));
    let is_list = matches!(run.text_type, TextType::Body | TextType::HalfBody | TextType::QuarterBody)
        || run.text_type == TextType::Other && has_levels();
    let mut list = presentation::List::default();
    let mut start = 0;
    flow.widen(Gap::Paragraph);
    for paragraph in run.text.split('\r') {
        let level = level(run, start);
        start += paragraph.chars().count() + 1;
        if paragraph.trim().is_empty() {
            continue;
        }
        if is_list {
            list.begin_item(flow, level, "-");
        }
        for (number, line) in paragraph.split('\u{B}').enumerate() {
            if number > 0 {
                flow.widen(Gap::Line);
            }
            write_words(run, line, flow);
        }
        flow.widen(if is_list { Gap::Line } else { Gap::Paragraph });
    }
    list.end(flow);
    flow.widen(Gap::Paragraph);
}

fn write_words(run: &TextRun, words: &str, flow: &mut Flow) {
    match &run.hyperlink {
        Some(target) => {
            flow.begin_link(target);
            flow.words(words);
            flow.end_link();
        }
        None => flow.words(words),
    }
}

/// The level of the paragraph that begins with this character.
fn level(run: &TextRun, start: usize) -> usize {
    let span =
        run.para_formats.iter().find(|span| (span.start..span.end.max(span.start + 1)).contains(&start));
    span.and_then(|span| span.format.indent_level).map_or(0, |level| usize::from(level).min(MAX_LEVEL))
}

fn write_table(table: &TableBlock, flow: &mut Flow) {
    flow.begin_table();
    for row in &table.rows {
        flow.begin_row();
        for cell in row {
            flow.begin_cell();
            for run in cell {
                flow.words(&run.text);
                flow.widen(Gap::Space);
            }
        }
    }
    flow.end_table();
}

fn damaged(detail: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Damaged, "This presentation is damaged and cannot be read").with_detail(detail)
}
