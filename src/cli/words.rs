//! How names, sizes and times look to a person at a terminal.

use chrono::{DateTime, Utc};

/// Text from elsewhere, with everything spelt out that a terminal would obey rather than show.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Characters that turn the direction of the text around them, separate lines, or show nothing.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
    let mut amount = bytes as f64 / 1_024.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        // What would be rounded up to 1024 is one of the next.
        if amount < 1_023.95 {
            break;
        }
        amount /= 1_024.0;
        unit = larger;
    }
    format!("{amount:.1} {unit}")
}

pub fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// "1 file", "2 files".
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Lines whose cells stand below one another. A cell wider than `WIDEST` is not cut; it pushes its own line aside.
pub fn table(rows: &[Vec<String>]) -> String {
    const WIDEST: usize = 48;
    let width = |column: usize| {
        let widths =
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count().min(WIDEST));
        widths.max().unwrap_or(0)
    };
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut lines = String::new();
    for row in rows {
        let line: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        lines.push_str(line.join("  ").trim_end());
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelt_out() {
        assert_eq!(printable("a\u{1b}[31m\nb\u{202e}c"), "a\\u{1b}[31m\\nb\\u{202e}c");
        assert_eq!(printable("报告 Ü.pdf"), "报告 Ü.pdf");
    }

    #[test]
    fn sizes_have_one_digit_after_the_point() {
        assert_eq!(size(1_023), "1023 B");
        assert_eq!(size(1_536), "1.5 KB");
        assert_eq!(size(1_048_575), "1.0 MB");
        assert_eq!(size(52_428_800), "50.0 MB");
    }

    #[test]
    fn cells_stand_below_one_another() {
        let rows = [["a", "long", ""], ["bbb", "x", "end"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "a    long\nbbb  x     end\n");
    }
}
