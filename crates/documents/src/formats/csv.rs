//! CSV: a line for each row, with tabs between the cells.

use ::csv::ReaderBuilder;

use crate::error::{Error, ErrorKind};
use crate::limits::Bounds;
use landfall_core::text::Extracted;

/// Rows between two reports of progress.
const PROGRESS_EVERY: usize = 4_096;

pub fn extract(source: &str, delimiter: u8, bounds: Bounds<'_>) -> Result<Extracted, Error> {
    let mut rows = ReaderBuilder::new()
        .delimiter(if delimiter == b',' { usual_delimiter(source) } else { delimiter })
        .has_headers(false)
        // Real tables have rows of different lengths.
        .flexible(true)
        .from_reader(source.as_bytes());
    let mut text = String::with_capacity(source.len());
    for (number, row) in rows.records().enumerate() {
        if number.is_multiple_of(PROGRESS_EVERY) {
            bounds.report_progress()?;
        }
        let row = row.map_err(|error| {
            let message = format!("This table is damaged: its row {} cannot be read", number + 1);
            Error::new(ErrorKind::Damaged, message).with_detail(error)
        })?;
        let cells: Vec<&str> = row.iter().map(str::trim).filter(|cell| !cell.is_empty()).collect();
        if !cells.is_empty() {
            text.push_str(&cells.join("\t"));
            text.push('\n');
        }
    }
    Ok(Extracted::plain(text))
}

/// Where numbers have decimal commas, values are separated by semicolons.
fn usual_delimiter(source: &str) -> u8 {
    let first = source.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let count = |delimiter| first.matches(delimiter).count();
    if count(';') > count(',') { b';' } else { b',' }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    fn text(source: &str, delimiter: u8) -> String {
        let bounds = Bounds { limits: &Limits::default(), progress: &|| ControlFlow::Continue(()) };
        extract(source, delimiter, bounds).unwrap().text
    }

    #[test]
    fn rows_become_lines_whatever_separates_their_cells() {
        assert_eq!(text("a,b\n\"x, y\",2\n", b','), "a\tb\nx, y\t2\n");
        assert_eq!(text("a;b\n1,5;2\n", b','), "a\tb\n1,5\t2\n");
        assert_eq!(text("a\tb\n1\t\t2\n", b'\t'), "a\tb\n1\t2\n");
    }
}
