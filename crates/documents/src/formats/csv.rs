//! CSV and TSV: one table, whatever separates its cells.

use ::csv::ReaderBuilder;

use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use landfall_core::text::Extracted;

/// Rows between two reports of progress.
const PROGRESS_EVERY: usize = 4_096;
/// The lines that are looked at to find what separates the cells.
const SAMPLE: usize = 20;
/// In Markdown the first row says how wide a table is. A wider row is written with its own width.
const MAX_COLUMNS: usize = 1_000;

/// Reads a table. The delimiter is the one that the name of the file promises.
pub fn extract(source: &str, delimiter: u8, bounds: Bounds<'_>) -> Result<Extracted, Error> {
    let (declared, source) = declared_delimiter(source);
    let delimiter = declared.unwrap_or_else(|| usual_delimiter(source, delimiter));
    let mut rows = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        // Real tables have rows of different lengths.
        .flexible(true)
        .from_reader(source.as_bytes());
    let mut flow = Flow::new(bounds.limits);
    let mut width = None;
    let mut line = String::new();
    for (number, row) in rows.records().enumerate() {
        if number.is_multiple_of(PROGRESS_EVERY) {
            bounds.report_progress()?;
        }
        let row = row.map_err(|error| {
            let message = format!("This table is damaged: its row {} cannot be read", number + 1);
            Error::new(ErrorKind::Damaged, message).with_detail(error)
        })?;
        let Some(last) = last_cell(&row) else { continue };
        // The first row may have a title alone; the table is as wide as the rows at its beginning.
        let is_first = width.is_none();
        let width = *width.get_or_insert_with(|| width_of(source, delimiter).max(last + 1));
        line.clear();
        line.push('|');
        for column in 0..width.max(last + 1) {
            line.push(' ');
            write_cell(row.get(column).unwrap_or_default(), &mut line);
            line.push('|');
        }
        flow.widen(Gap::Line);
        flow.verbatim(&line);
        if is_first {
            flow.widen(Gap::Line);
            flow.verbatim(&format!("|{}", " --- |".repeat(width)));
        }
        flow.check()?;
    }
    flow.finish()
}

fn write_cell(cell: &str, line: &mut String) {
    let start = line.len();
    for word in cell.split_whitespace() {
        line.push_str(&word.replace('|', "\\|"));
        line.push(' ');
    }
    // Markdown has no cells of blanks.
    debug_assert!(line.len() == start || line.ends_with(' '), "a blank follows each word");
}

/// The last cell with words.
fn last_cell(row: &::csv::StringRecord) -> Option<usize> {
    (0..row.len()).rev().find(|column| row.get(*column).is_some_and(|cell| !cell.trim().is_empty()))
}

/// The columns of the first rows.
fn width_of(source: &str, delimiter: u8) -> usize {
    let mut rows = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(source.as_bytes());
    let rows = rows.records().take(SAMPLE).flatten();
    rows.filter_map(|row| last_cell(&row)).max().map_or(0, |last| (last + 1).min(MAX_COLUMNS))
}

/// Excel writes `sep=;` as the first line of some tables.
fn declared_delimiter(source: &str) -> (Option<u8>, &str) {
    let (first, rest) = source.split_once('\n').unwrap_or((source, ""));
    match first.trim_end_matches('\r').strip_prefix("sep=").map(str::as_bytes) {
        Some([delimiter]) => (Some(*delimiter), rest),
        _ => (None, source),
    }
}

/// The delimiter that cuts the first lines into the same number of cells. Where numbers have decimal commas, values are
/// separated by semicolons.
fn usual_delimiter(source: &str, promised: u8) -> u8 {
    let lines: Vec<&str> = source.lines().filter(|line| !line.trim().is_empty()).take(SAMPLE).collect();
    let score = |delimiter: u8| {
        let counts: Vec<usize> = lines.iter().map(|line| outside_quotes(line, delimiter)).collect();
        let most = counts.iter().max().copied().unwrap_or(0);
        let same = counts.iter().filter(|count| **count == most).count();
        let is_in_each = counts.iter().all(|count| *count > 0);
        // A delimiter that is in each line as often counts for more than one that is often in one line.
        (most > 0, same * 2 > counts.len(), is_in_each, delimiter == promised, same, most)
    };
    let found = [b';', b',', b'\t', b'|'].into_iter().max_by_key(|delimiter| score(*delimiter));
    found.filter(|delimiter| score(*delimiter).0).unwrap_or(promised)
}

fn outside_quotes(line: &str, delimiter: u8) -> usize {
    let mut is_quoted = false;
    let mut count = 0;
    for byte in line.bytes() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            byte if byte == delimiter && !is_quoted => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    fn text(source: &str, delimiter: u8) -> String {
        let limits = Limits::default();
        let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
        extract(source, delimiter, bounds).unwrap().text
    }

    #[test]
    fn a_table_is_a_table_whatever_separates_its_cells() {
        let expected = "| a | b |\n| --- | --- |\n| x, y | 2 |";
        assert_eq!(text("a,b\n\"x, y\",2\n", b','), expected);
        assert_eq!(text("a;b\nx, y;2\n", b','), expected);
        assert_eq!(text("a\tb\r\nx, y\t2\r\n", b','), expected);
        assert_eq!(text("a|b\nx, y|2\n", b','), expected);
        assert_eq!(text("a,b\n\"x, y\",2\n", b'\t'), expected);
        assert_eq!(text("sep=;\na;b\nx, y;2", b','), expected);
        assert_eq!(text("a;b\n1,5;2\n3,5;4\n", b','), "| a | b |\n| --- | --- |\n| 1,5 | 2 |\n| 3,5 | 4 |");
    }

    #[test]
    fn empty_cells_are_kept_and_empty_rows_are_not() {
        assert_eq!(
            text("a,b,c\n\n,,\n1,,3\n4\n", b','),
            "| a | b | c |\n| --- | --- | --- |\n| 1 | | 3 |\n| 4 | | |"
        );
        assert_eq!(text("Title\na,b\n1,2,,\n", b','), "| Title | |\n| --- | --- |\n| a | b |\n| 1 | 2 |");
        assert_eq!(text("a|b,\"c\nd\"\n", b','), "| a\\|b | c d |\n| --- | --- |");
    }

    #[test]
    fn a_wide_row_does_not_widen_the_others() {
        let wide = format!("a,b\n{}\n1,2\n", vec!["x"; 5_000].join(","));
        let text = text(&format!("{}{}", "1,2\n".repeat(100), wide), b',');
        assert!(text.len() < 30_000, "{}", text.len());
    }
}
