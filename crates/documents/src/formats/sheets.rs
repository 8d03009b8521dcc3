//! Spreadsheets: each sheet is a section under its name, each row a line, with tabs between the cells.

use std::collections::BTreeSet;
use std::io::Cursor;

use calamine::{Data, DataRef, ExcelDateTime, Range, Reader, SheetType, Xls, Xlsx};

use super::office;
use crate::archive::Archive;
use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;
use landfall_core::text::Extracted;

/// Cells between two reports of progress.
const PROGRESS_EVERY: usize = 4_096;

pub fn read_xlsx(bytes: &[u8], archive: &mut Archive<'_>, bounds: Bounds<'_>) -> Result<Reading, Error> {
    // The library unpacks without limits, so the limits are checked first.
    archive.measure()?;
    let mut workbook: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(damaged)?;
    let mut flow = Flow::new(bounds.limits);
    let mut count = Count::new(bounds);
    let mut sheets = Sheets::of(&workbook);
    for sheet in workbook.sheet_names() {
        flow.place(None, Some(sheet.clone()));
        let mut last_row = None;
        let Ok(mut cells) = workbook.worksheet_cells_reader(&sheet) else {
            sheets.is_unreadable(&sheet);
            continue;
        };
        // Cell by cell: the declared size of a sheet may be a billion times its content.
        while let Some(cell) = cells.next_cell().map_err(damaged)? {
            count.cell()?;
            let row = cell.get_position().0;
            flow.widen(if last_row == Some(row) { Gap::Cell } else { Gap::Line });
            last_row = Some(row);
            match cell.get_value() {
                DataRef::Int(number) => flow.words(&number.to_string()),
                DataRef::Float(number) => flow.words(&number.to_string()),
                DataRef::SharedString(words) => flow.words(words),
                DataRef::Bool(value) => flow.words(truth(*value)),
                DataRef::DateTime(time) => flow.words(&date(time)),
                DataRef::String(words) | DataRef::DateTimeIso(words) | DataRef::DurationIso(words) => {
                    flow.words(words);
                }
                // An error of a formula is not text.
                DataRef::Error(_) | DataRef::Empty => {}
            }
            flow.check()?;
        }
    }
    let mut extracted = flow.finish()?;
    extracted.warnings = office::not_read(archive, &extracted.text, bounds)?;
    sheets.finish(extracted)
}

/// The format of Excel before 2007.
pub fn read_xls(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    let mut workbook: Xls<_> = Xls::new(Cursor::new(bytes)).map_err(|error| match error {
        calamine::XlsError::Password => crate::protected(),
        error => damaged(error),
    })?;
    let mut flow = Flow::new(bounds.limits);
    let mut count = Count::new(bounds);
    let mut sheets = Sheets::of(&workbook);
    for sheet in workbook.sheet_names() {
        flow.place(None, Some(sheet.clone()));
        match workbook.worksheet_range(&sheet) {
            Ok(range) => write_range(&range, &mut flow, &mut count)?,
            Err(_) => sheets.is_unreadable(&sheet),
        }
    }
    sheets.finish(flow.finish()?)
}

/// The sheets of a workbook, and those that cannot be read.
struct Sheets {
    /// The sheets that have cells. A chart may be a sheet of its own, and a macro too.
    names: Vec<String>,
    unreadable: BTreeSet<i64>,
}

impl Sheets {
    fn of<R: std::io::Read + std::io::Seek>(workbook: &impl Reader<R>) -> Self {
        let sheets = workbook.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
        Self { names: sheets.map(|sheet| sheet.name.clone()).collect(), unreadable: BTreeSet::new() }
    }

    fn is_unreadable(&mut self, sheet: &str) {
        let number = self.names.iter().position(|name| name == sheet);
        self.unreadable.extend(number.and_then(|number| i64::try_from(number + 1).ok()));
    }

    fn finish(self, mut extracted: Extracted) -> Result<Reading, Error> {
        let count =
            PageCount { total: self.names.len(), unreadable: self.unreadable.len(), without_picture: 0 };
        let warning = missing::unreadable_pages("sheet", &self.unreadable, count)?;
        // A sheet has a name and is not a page.
        extracted.warnings.extend(warning.map(|warning| warning.on_page(None)));
        Ok(Reading::of(extracted))
    }
}

fn write_range(range: &Range<Data>, flow: &mut Flow, count: &mut Count<'_>) -> Result<(), Error> {
    for row in range.rows() {
        flow.widen(Gap::Line);
        for cell in row {
            // The library fills the gaps between cells with empty ones.
            if *cell == Data::Empty {
                count.empty_cell()?;
            } else {
                count.cell()?;
            }
            flow.widen(Gap::Cell);
            match cell {
                Data::Int(number) => flow.words(&number.to_string()),
                Data::Float(number) => flow.words(&number.to_string()),
                Data::String(words) | Data::DateTimeIso(words) | Data::DurationIso(words) => {
                    flow.words(words);
                }
                Data::Bool(value) => flow.words(truth(*value)),
                Data::DateTime(time) => flow.words(&date(time)),
                Data::Error(_) | Data::Empty => {}
            }
        }
        flow.check()?;
    }
    Ok(())
}

struct Count<'a> {
    bounds: Bounds<'a>,
    cells: usize,
    empty: usize,
}

impl<'a> Count<'a> {
    fn new(bounds: Bounds<'a>) -> Self {
        Self { bounds, cells: 0, empty: 0 }
    }

    fn cell(&mut self) -> Result<(), Error> {
        self.cells += 1;
        if self.cells > self.bounds.limits.cells {
            return Err(self.bounds.limits.too_many_cells());
        }
        if self.cells.is_multiple_of(PROGRESS_EVERY) { self.bounds.report_progress() } else { Ok(()) }
    }

    /// Empty cells have no limit of their own; the memory limits them.
    fn empty_cell(&mut self) -> Result<(), Error> {
        self.empty += 1;
        if self.empty.is_multiple_of(PROGRESS_EVERY) { self.bounds.report_progress() } else { Ok(()) }
    }
}

fn truth(value: bool) -> &'static str {
    if value { "TRUE" } else { "FALSE" }
}

/// A time of day, or a date with its time.
fn date(time: &ExcelDateTime) -> String {
    if time.is_duration() {
        return time.as_f64().to_string();
    }
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    if time.as_f64() < 1.0 {
        format!("{hour:02}:{minute:02}:{second:02}")
    } else {
        format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }
}

fn damaged(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Damaged, "This spreadsheet is damaged and cannot be read").with_detail(error)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use calamine::Cell;

    use super::*;
    use crate::limits::Limits;

    #[test]
    fn only_cells_with_something_in_them_count() {
        let read = |cells: u32| {
            let limits = Limits { cells: 2, ..Limits::default() };
            let bounds = Bounds { limits: &limits, progress: &|| ControlFlow::Continue(()) };
            let at = |row| Cell::new((row, row % 7), Data::String(format!("cell{row}")));
            let range = Range::from_sparse((0..cells).map(|n| at(1_000 * n)).collect());
            let mut flow = Flow::new(bounds.limits);
            write_range(&range, &mut flow, &mut Count::new(bounds))?;
            flow.finish()
        };
        assert_eq!(read(2).unwrap().text, "cell0\ncell1000");
        assert_eq!(read(3).unwrap_err().kind(), ErrorKind::TooLarge);
    }
}
