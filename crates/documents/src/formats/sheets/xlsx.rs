//! XLSX: the workbook, its sheets in their order, and the parts that belong to each.

mod comments;
mod drawing;
mod worksheet;

use std::collections::HashMap;

use super::grid::Count;
use super::number_format::Epoch;
use super::strings::Strings;
use super::styles::Styles;
use super::{Sheet, Workbook, cell_position, damaged};
use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::formats::office::objects::Objects;
use crate::formats::office::{self, References, Relation};
use crate::limits::Bounds;
use crate::reading::Reading;

pub use drawing::Drawings;

pub fn read(archive: &mut Archive<'_>, main_part: &str, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let relations = office::relations(archive, main_part, bounds)?;
    let mut context = Context { bounds, ..Context::read(archive, &relations, bounds)? };
    let source = archive.required_text(main_part)?;
    let list = sheets(&source, &mut context.styles, bounds)?;
    let mut workbook = Workbook::new(bounds);
    let mut objects = Objects::default();
    for Listed { name, relation, is_hidden } in list {
        let number = workbook.begin_sheet();
        let Some(Relation { target, kind }) = relation.and_then(|id| relations.get(&id)) else {
            workbook.is_unreadable(number, damaged("a sheet without a part"))?;
            continue;
        };
        // A chart may be a sheet of its own, and a macro too.
        if !matches!(kind.as_str(), "worksheet" | "chartsheet" | "dialogsheet") {
            continue;
        }
        let mut sheet = Sheet { name, is_hidden, ..Sheet::default() };
        let references = office::references(archive, target, bounds)?;
        if let Err(error) = context.read_sheet(archive, target, &references, &mut sheet) {
            workbook.is_unreadable(number, error)?;
        }
        let drawings = Drawings::read(archive, &references, bounds)?;
        workbook.write_sheet(sheet, !drawings.is_empty(), |flow| {
            drawings.write(archive, &mut objects, flow, bounds)
        })?;
    }
    let mut reading = workbook.finish()?;
    reading.extracted.warnings.extend(objects.finish(archive, &reading.extracted.text, bounds)?);
    Ok(reading)
}

/// A sheet in the list of the workbook.
struct Listed {
    name: String,
    relation: Option<String>,
    is_hidden: bool,
}

fn sheets(source: &str, styles: &mut Styles, bounds: Bounds<'_>) -> Result<Vec<Listed>, Error> {
    let mut sheets = Vec::new();
    let mut elements = Elements::new(source, bounds);
    while let Some(piece) = elements.next()? {
        let Piece::Open(element) = piece else { continue };
        match element.name() {
            "workbookPr" => {
                let is_true = |value: String| matches!(value.as_str(), "1" | "true" | "on");
                if element.attribute("date1904").is_some_and(is_true) {
                    styles.epoch = Epoch::Year1904;
                }
            }
            "sheet" => {
                if sheets.len() >= bounds.limits.pages {
                    return Err(bounds.limits.too_many_pages());
                }
                let state = element.attribute("state");
                sheets.push(Listed {
                    name: element.attribute("name").unwrap_or_default(),
                    relation: element.prefixed_attribute("id"),
                    is_hidden: matches!(state.as_deref(), Some("hidden" | "veryHidden")),
                });
            }
            _ => {}
        }
    }
    Ok(sheets)
}

/// What all sheets of a workbook share.
struct Context<'a> {
    bounds: Bounds<'a>,
    styles: Styles,
    strings: Strings,
    /// The authors of threaded comments, by their ids.
    persons: HashMap<String, String>,
    count: Count<'a>,
}

impl<'a> Context<'a> {
    fn read(
        archive: &mut Archive<'_>,
        relations: &HashMap<String, Relation>,
        bounds: Bounds<'a>,
    ) -> Result<Self, Error> {
        let mut context = Self {
            bounds,
            styles: Styles::default(),
            strings: Strings::default(),
            persons: HashMap::new(),
            count: Count::new(bounds),
        };
        for relation in relations.values() {
            let part = match relation.kind.as_str() {
                "styles" | "sharedStrings" | "person" => archive.text(&relation.target)?,
                _ => None,
            };
            let Some(source) = part else { continue };
            match relation.kind.as_str() {
                "styles" => context.styles = Styles::read(&source, bounds)?,
                "sharedStrings" => context.strings = Strings::read(&source, bounds)?,
                _ => context.persons.extend(comments::persons(&source, bounds)?),
            }
        }
        Ok(context)
    }

    fn read_sheet(
        &mut self,
        archive: &mut Archive<'_>,
        part: &str,
        references: &References,
        sheet: &mut Sheet,
    ) -> Result<(), Error> {
        let source = archive.text(part)?.ok_or_else(|| damaged("the part of a sheet is missing"))?;
        let mut reader = worksheet::Reader {
            styles: &self.styles,
            strings: &self.strings,
            links: &references.outside,
            count: &mut self.count,
            bounds: self.bounds,
        };
        reader.read(&source, sheet)?;
        self.read_tables(archive, references, sheet)?;
        sheet.comments = comments::read(archive, references, &self.persons, self.bounds)?;
        Ok(())
    }

    /// The names of tables, unless Excel chose them.
    fn read_tables(
        &self,
        archive: &mut Archive<'_>,
        references: &References,
        sheet: &mut Sheet,
    ) -> Result<(), Error> {
        for relation in references.inside.values().filter(|relation| relation.kind == "table") {
            let Some(source) = archive.text(&relation.target)? else { continue };
            let mut elements = Elements::new(&source, self.bounds);
            while let Some(piece) = elements.next()? {
                let Piece::Open(element) = piece else { continue };
                if element.name() != "table" {
                    continue;
                }
                let name = element.attribute("displayName").unwrap_or_default();
                let range = element.attribute("ref").unwrap_or_default();
                let first = range.split(':').next().and_then(cell_position);
                let is_chosen =
                    !name.trim_end_matches(|c: char| c.is_ascii_digit()).eq_ignore_ascii_case("table");
                if let Some(at) = first.filter(|_| is_chosen && !name.is_empty()) {
                    sheet.grid.name(at, name);
                }
                break;
            }
        }
        Ok(())
    }
}
