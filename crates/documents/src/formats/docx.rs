//! DOCX: paragraphs, lists, tables and everything that is anchored in them, in the order of the document.

mod body;
mod lists;
mod notes;
mod numbering;
mod paragraph;
mod styles;
mod tables;

use std::collections::HashSet;

use super::office::{self, References};
use crate::archive::Archive;
use crate::error::Error;
use crate::flow::Flow;
use crate::has_words;
use crate::limits::Bounds;
use crate::missing::PageCount;
use crate::reading::Reading;
use body::Body;
use notes::Notes;
use styles::Styles;

/// The most headers and footers that are read. A document with more has them for each of many sections.
const MAX_MARGINS: usize = 200;

pub fn read(archive: &mut Archive<'_>, main_part: &str, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let references = office::references(archive, main_part, bounds)?;
    let mut body = Body::new(bounds);
    read_parts(archive, &references, &mut body, bounds)?;
    let source = archive.required_text(main_part)?;
    let mut seen = HashSet::new();
    read_margins(archive, &references, "header", &mut body, &mut seen)?;
    body.read(archive, &source, &references)?;
    read_margins(archive, &references, "footer", &mut body, &mut seen)?;
    let Body { flow, objects, .. } = body;
    let mut reading = flow.finish_reading(PageCount::default())?;
    let warnings = objects.finish(archive, &reading.extracted.text, bounds)?;
    reading.extracted.warnings.extend(warnings);
    Ok(reading)
}

/// Reads the parts that say what the body means, and the notes.
fn read_parts(
    archive: &mut Archive<'_>,
    references: &References,
    body: &mut Body<'_>,
    bounds: Bounds<'_>,
) -> Result<(), Error> {
    for relation in references.inside.values() {
        let note = match relation.kind.as_str() {
            "styles" | "numbering" => "",
            "footnotes" => "footnote",
            "endnotes" => "endnote",
            "comments" => "comment",
            _ => continue,
        };
        let Some(source) = archive.text(&relation.target)? else { continue };
        match relation.kind.as_str() {
            "styles" => body.styles = Styles::read(&source, bounds)?,
            "numbering" => body.lists.numbering = numbering::read(&source, bounds)?,
            kind => {
                let references = office::references(archive, &relation.target, bounds)?;
                let notes = Notes::read(&source, note, references, bounds)?;
                body.notes.insert(kind.to_owned(), notes);
            }
        }
    }
    Ok(())
}

/// Writes the headers or the footers. The same words are written once.
fn read_margins(
    archive: &mut Archive<'_>,
    references: &References,
    kind: &str,
    body: &mut Body<'_>,
    seen: &mut HashSet<String>,
) -> Result<(), Error> {
    let of_kind = references.inside.values().filter(|relation| relation.kind == kind);
    let mut parts: Vec<&str> = of_kind.map(|relation| relation.target.as_str()).collect();
    // By number, so that the tenth comes after the ninth.
    parts.sort_by_key(|part| (part.len(), *part));
    parts.dedup();
    body.fields.without_page_numbers = true;
    for part in parts.into_iter().take(MAX_MARGINS) {
        let Some(source) = archive.text(part)? else { continue };
        let references = office::references(archive, part, body.bounds)?;
        let of_body = std::mem::replace(&mut body.flow, Flow::new(body.bounds.limits));
        body.read(archive, &source, &references)?;
        let of_margin = std::mem::replace(&mut body.flow, of_body).finish_reading(PageCount::default())?;
        let is_new = !has_words(&of_margin.extracted.text) || seen.insert(of_margin.extracted.text.clone());
        if is_new {
            body.flow.embed(of_margin);
            body.flow.check()?;
        }
    }
    body.fields.without_page_numbers = false;
    Ok(())
}
