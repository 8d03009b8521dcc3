//! XLS: the workbooks of Excel before 2007. A stream of records: first those of the workbook, then those of each sheet.

mod encryption;
mod records;
mod sheet;
mod text;

use super::grid::Count;
use super::number_format::Epoch;
use super::strings::Strings;
use super::styles::Styles;
use super::{Sheet, Workbook, damaged};
use crate::error::Error;
use crate::flow::Gap;
use crate::formats::compound::Container;
use crate::limits::Bounds;
use crate::reading::Reading;
use records::{Records, u16_at, u32_at};
use text::Encoding;

pub use records::short_number;

/// The kinds of records that are read.
mod kind {
    pub const FORMULA: u16 = 0x0006;
    pub const END: u16 = 0x000A;
    pub const HEADER: u16 = 0x0014;
    pub const FOOTER: u16 = 0x0015;
    pub const NOTE: u16 = 0x001C;
    pub const DATE_MODE: u16 = 0x0022;
    pub const PASSWORD: u16 = 0x002F;
    pub const CONTINUE: u16 = 0x003C;
    pub const CODE_PAGE: u16 = 0x0042;
    pub const OBJECT: u16 = 0x005D;
    pub const SHEET: u16 = 0x0085;
    pub const NUMBERS: u16 = 0x00BD;
    pub const RICH_LABEL: u16 = 0x00D6;
    pub const STYLE: u16 = 0x00E0;
    pub const SHARED_STRINGS: u16 = 0x00FC;
    pub const SHARED_LABEL: u16 = 0x00FD;
    pub const OBJECT_TEXT: u16 = 0x01B6;
    pub const LINK: u16 = 0x01B8;
    pub const NUMBER: u16 = 0x0203;
    pub const LABEL: u16 = 0x0204;
    pub const TRUTH_OR_ERROR: u16 = 0x0205;
    pub const STRING: u16 = 0x0207;
    pub const SHORT_NUMBER: u16 = 0x027E;
    pub const FORMAT: u16 = 0x041E;
    pub const BEGIN: u16 = 0x0809;
    pub const CHART_TEXT: u16 = 0x100D;
}

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    let container = Container::open(bytes).ok_or_else(|| damaged("no container"))?;
    let stream = ["Workbook", "Book"].into_iter().find_map(|name| container.stream(name));
    let stream = stream.filter(|stream| !stream.is_empty()).ok_or_else(|| damaged("no workbook"))?;
    let stream = encryption::decrypted(stream)?;
    let globals = Globals::read(&stream, bounds)?;
    let mut workbook = Workbook::new(bounds);
    let mut count = Count::new(bounds);
    for Listed { name, at, is_hidden, is_module } in &globals.sheets {
        if *is_module {
            continue;
        }
        let number = workbook.begin_sheet();
        let mut sheet = Sheet { name: name.clone(), is_hidden: *is_hidden, ..Sheet::default() };
        let Some(records) = stream.get(*at..).filter(|records| u16_at(records, 0) == Some(kind::BEGIN))
        else {
            workbook.is_unreadable(number, damaged("a sheet without records"))?;
            continue;
        };
        let words =
            sheet::Reader { globals: &globals, count: &mut count, bounds }.read(records, &mut sheet)?;
        workbook.write_sheet(sheet, !words.is_empty(), |flow| {
            for words in &words {
                flow.widen(Gap::Paragraph);
                flow.words(words);
            }
            flow.check()
        })?;
    }
    workbook.finish()
}

/// What all sheets of a workbook share.
struct Globals {
    encoding: Encoding,
    styles: Styles,
    strings: Strings,
    sheets: Vec<Listed>,
}

/// A sheet in the list of the workbook, and where its records are.
struct Listed {
    name: String,
    at: usize,
    is_hidden: bool,
    is_module: bool,
}

impl Globals {
    fn read(stream: &[u8], bounds: Bounds<'_>) -> Result<Self, Error> {
        let mut records = Records::new(stream);
        let first = records.next().filter(|record| record.kind == kind::BEGIN);
        let first = first.ok_or_else(|| damaged("the stream does not begin with its version"))?;
        let mut globals = Self {
            encoding: Encoding::of_version(u16_at(first.data, 0).unwrap_or(0)),
            styles: Styles::default(),
            strings: Strings::default(),
            sheets: Vec::new(),
        };
        while let Some(record) = records.next() {
            let data = record.data;
            match record.kind {
                kind::END => break,
                kind::CODE_PAGE => globals.encoding.set_code_page(u16_at(data, 0).unwrap_or(0)),
                kind::DATE_MODE if u16_at(data, 0) == Some(1) => globals.styles.epoch = Epoch::Year1904,
                kind::FORMAT => {
                    if let Some(id) = u16_at(data, 0) {
                        globals.styles.define(u32::from(id), &globals.encoding.format(&data[2..]));
                    }
                }
                kind::STYLE => globals.styles.add(u32::from(u16_at(data, 2).unwrap_or(0))),
                kind::SHEET => {
                    if globals.sheets.len() >= bounds.limits.pages {
                        return Err(bounds.limits.too_many_pages());
                    }
                    globals.sheets.extend(globals.sheet(data));
                }
                kind::SHARED_STRINGS => {
                    let parts = records.with_continuations(data);
                    text::shared_strings(&parts, &mut globals.strings, bounds)?;
                }
                _ => {}
            }
        }
        bounds.report_progress()?;
        Ok(globals)
    }

    fn sheet(&self, data: &[u8]) -> Option<Listed> {
        let at = usize::try_from(u32_at(data, 0)?).ok()?;
        let (state, sort) = (*data.get(4)?, *data.get(5)?);
        let name = self.encoding.short(data.get(6..)?);
        // 2 is a chart; 6 is a module of a program.
        Some(Listed { name, at, is_hidden: state & 3 != 0, is_module: sort == 6 })
    }
}
