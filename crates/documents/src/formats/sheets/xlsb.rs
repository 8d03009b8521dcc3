//! XLSB: the same parts as in XLSX, each as a stream of binary records instead of XML.

mod records;

use std::collections::HashMap;

use super::grid::Count;
use super::number_format::Epoch;
use super::strings::Strings;
use super::styles::{Styles, error, truth};
use super::xls::short_number;
use super::xlsx::Drawings;
use super::{Comment, Sheet, Workbook, cell_name, damaged, header_footer};
use crate::archive::Archive;
use crate::error::Error;
use crate::formats::office::objects::Objects;
use crate::formats::office::{self, References, Relation};
use crate::limits::Bounds;
use crate::reading::Reading;
use records::{Fields, Records};

/// The kinds of records that are read.
mod kind {
    pub const ROW: u16 = 0;
    pub const SHORT_NUMBER: u16 = 2;
    pub const ERROR: u16 = 3;
    pub const TRUTH: u16 = 4;
    pub const NUMBER: u16 = 5;
    pub const STRING: u16 = 6;
    pub const SHARED_STRING: u16 = 7;
    pub const FORMULA_STRING: u16 = 8;
    pub const FORMULA_NUMBER: u16 = 9;
    pub const FORMULA_TRUTH: u16 = 10;
    pub const FORMULA_ERROR: u16 = 11;
    pub const SHARED_ITEM: u16 = 19;
    pub const FORMAT: u16 = 44;
    pub const STYLE: u16 = 47;
    pub const RICH_STRING: u16 = 62;
    pub const WORKBOOK: u16 = 153;
    pub const SHEET: u16 = 156;
    pub const HEADER_FOOTER: u16 = 479;
    pub const LINK: u16 = 494;
    pub const BEGIN_CELL_STYLES: u16 = 617;
    pub const END_CELL_STYLES: u16 = 618;
    pub const AUTHOR: u16 = 632;
    pub const COMMENT: u16 = 635;
    pub const COMMENT_TEXT: u16 = 637;
}

pub fn read(archive: &mut Archive<'_>, main_part: &str, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let relations = office::relations(archive, main_part, bounds)?;
    let mut shared = Shared { styles: Styles::default(), strings: Strings::default() };
    for relation in relations.values() {
        match relation.kind.as_str() {
            "styles" => shared.read_styles(&archive.bytes(&relation.target)?.unwrap_or_default(), bounds)?,
            "sharedStrings" => {
                shared.read_strings(&archive.bytes(&relation.target)?.unwrap_or_default(), bounds)?;
            }
            _ => {}
        }
    }
    let main = archive.bytes(main_part)?.ok_or_else(|| damaged("the workbook is missing"))?;
    let sheets = shared.sheets(&main, bounds)?;
    let mut workbook = Workbook::new(bounds);
    let mut count = Count::new(bounds);
    let mut objects = Objects::default();
    for (name, relation, is_hidden) in sheets {
        let number = workbook.begin_sheet();
        let Some(Relation { target, .. }) = relations.get(&relation) else {
            workbook.is_unreadable(number, damaged("a sheet without a part"))?;
            continue;
        };
        let references = office::references(archive, target, bounds)?;
        let mut sheet = Sheet { name, is_hidden, ..Sheet::default() };
        match archive.bytes(target)? {
            Some(bytes) => shared.read_sheet(&bytes, &references, &mut sheet, &mut count, bounds)?,
            None => workbook.is_unreadable(number, damaged("the part of a sheet is missing"))?,
        }
        for relation in references.inside.values().filter(|relation| relation.kind == "comments") {
            sheet.comments = comments(&archive.bytes(&relation.target)?.unwrap_or_default(), bounds)?;
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

/// What all sheets of a workbook share.
struct Shared {
    styles: Styles,
    strings: Strings,
}

impl Shared {
    fn read_styles(&mut self, bytes: &[u8], bounds: Bounds<'_>) -> Result<(), Error> {
        let mut is_in_cells = false;
        for (kind, data) in Records::new(bytes) {
            let mut fields = Fields(data);
            match kind {
                kind::FORMAT => {
                    if let Some((id, code)) = fields.u16().zip(fields.string()) {
                        self.styles.define(u32::from(id), &code);
                    }
                }
                kind::BEGIN_CELL_STYLES => is_in_cells = true,
                kind::END_CELL_STYLES => is_in_cells = false,
                kind::STYLE if is_in_cells => {
                    fields.skip(2);
                    self.styles.add(u32::from(fields.u16().unwrap_or(0)));
                }
                _ => {}
            }
        }
        bounds.report_progress()
    }

    fn read_strings(&mut self, bytes: &[u8], bounds: Bounds<'_>) -> Result<(), Error> {
        for (kind, data) in Records::new(bytes) {
            if kind == kind::SHARED_ITEM {
                let mut fields = Fields(data);
                fields.skip(1);
                self.strings.push(&fields.string().unwrap_or_default());
                self.strings.end();
            }
        }
        bounds.report_progress()
    }

    /// The name of each sheet, its relation, and whether it is hidden.
    fn sheets(&mut self, bytes: &[u8], bounds: Bounds<'_>) -> Result<Vec<(String, String, bool)>, Error> {
        let mut sheets = Vec::new();
        for (kind, data) in Records::new(bytes) {
            let mut fields = Fields(data);
            match kind {
                kind::WORKBOOK if fields.u32().is_some_and(|flags| flags & 1 == 1) => {
                    self.styles.epoch = Epoch::Year1904;
                }
                kind::SHEET => {
                    if sheets.len() >= bounds.limits.pages {
                        return Err(bounds.limits.too_many_pages());
                    }
                    let is_hidden = fields.u32().is_some_and(|state| state != 0);
                    fields.skip(4);
                    let (relation, name) = (fields.string(), fields.string());
                    sheets.push((name.unwrap_or_default(), relation.unwrap_or_default(), is_hidden));
                }
                _ => {}
            }
        }
        Ok(sheets)
    }

    fn read_sheet(
        &self,
        bytes: &[u8],
        references: &References,
        sheet: &mut Sheet,
        count: &mut Count<'_>,
        bounds: Bounds<'_>,
    ) -> Result<(), Error> {
        let mut row = 0;
        for (kind, data) in Records::new(bytes) {
            let mut fields = Fields(data);
            match kind {
                kind::ROW => row = fields.u32().unwrap_or(row),
                kind::SHORT_NUMBER..=kind::FORMULA_ERROR | kind::RICH_STRING => {
                    count.cell()?;
                    let cell = fields.cell().filter(|(column, _)| row < 1 << 20 && *column < 1 << 14);
                    let Some((column, style)) = cell else { continue };
                    if let Some(value) = self.value(kind, style, fields) {
                        sheet.grid.add((row, column), &value, bounds)?;
                    }
                }
                kind::LINK => link(fields, &references.outside, sheet),
                kind::HEADER_FOOTER => {
                    fields.skip(2);
                    for number in 0..6 {
                        let words = header_footer::words(&fields.string().unwrap_or_default());
                        let running = if number % 2 == 0 { &mut sheet.headers } else { &mut sheet.footers };
                        running.extend(words);
                    }
                }
                _ => {}
            }
        }
        bounds.report_progress()
    }
    /// The value of a cell, which follows its place.
    fn value(&self, kind: u16, style: usize, mut fields: Fields<'_>) -> Option<String> {
        Some(match kind {
            kind::SHORT_NUMBER => self.styles.number(style, short_number(fields.u32()?)),
            kind::NUMBER | kind::FORMULA_NUMBER => self.styles.number(style, fields.f64()?),
            kind::TRUTH | kind::FORMULA_TRUTH => truth(fields.u8()? != 0).to_owned(),
            kind::ERROR | kind::FORMULA_ERROR => error(fields.u8()?).to_owned(),
            kind::SHARED_STRING => {
                let index = usize::try_from(fields.u32()?).ok()?;
                self.styles.words(style, self.strings.get(index)?).into_owned()
            }
            kind::RICH_STRING => {
                fields.skip(1);
                self.styles.words(style, &fields.string()?).into_owned()
            }
            kind::STRING | kind::FORMULA_STRING => self.styles.words(style, &fields.string()?).into_owned(),
            _ => return None,
        })
    }
}

fn link(mut fields: Fields<'_>, links: &HashMap<String, String>, sheet: &mut Sheet) {
    let Some((at, _)) = fields.range() else { return };
    if let Some(target) = fields.string().and_then(|id| links.get(&id)) {
        sheet.grid.link(at, target);
    }
}

fn comments(bytes: &[u8], bounds: Bounds<'_>) -> Result<Vec<Comment>, Error> {
    let mut authors: Vec<String> = Vec::new();
    let mut comments: Vec<Comment> = Vec::new();
    for (kind, data) in Records::new(bytes) {
        let mut fields = Fields(data);
        match kind {
            kind::AUTHOR => authors.push(fields.string().unwrap_or_default()),
            kind::COMMENT => {
                let author = fields.u32().and_then(|author| usize::try_from(author).ok());
                let author = author.and_then(|author| authors.get(author)).cloned().unwrap_or_default();
                let at = fields.range().map_or((0, 0), |(first, _)| first);
                comments.push(Comment {
                    cell: cell_name(at),
                    author,
                    words: String::new(),
                    answers: Vec::new(),
                });
            }
            kind::COMMENT_TEXT => {
                fields.skip(1);
                if let Some(comment) = comments.last_mut() {
                    comment.words = fields.string().unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    bounds.report_progress()?;
    comments.retain(|comment| !comment.words.trim().is_empty());
    Ok(comments)
}
