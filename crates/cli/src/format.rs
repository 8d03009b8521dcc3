//! Formats names, sizes, times and tables for the terminal.

use chrono::{DateTime, Utc};

/// Escapes control characters and invisible characters, so that the terminal shows them instead of obeying them.
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

/// Reads `NAME=VALUE`.
pub fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Characters that change the direction of text, separate lines, or show nothing.
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
        // A number that would be rounded to 1024 is shown in the next unit.
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

/// A duration in its largest unit and the next smaller one.
pub fn span(ms: i64) -> String {
    const UNITS: [(&str, i64); 4] = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let ms = ms.max(0);
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    let seconds = ms / 1_000;
    let largest = UNITS.iter().position(|(_, length)| seconds >= *length).unwrap_or(UNITS.len() - 1);
    let (name, length) = UNITS[largest];
    let text = format!("{} {name}", seconds / length);
    match UNITS.get(largest + 1).map(|(name, next)| (name, seconds % length / next)) {
        Some((name, rest)) if rest > 0 => format!("{text} {rest} {name}"),
        _ => text,
    }
}

/// A number with commas between the thousands.
pub fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = if number < 0 { "-".to_owned() } else { String::new() };
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 file waits", "2,000 files wait".
pub fn files_wait(files: i64) -> String {
    if files == 1 { "1 file waits".to_owned() } else { format!("{} files wait", number(files)) }
}

/// "1 file", "2 files".
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Rows with aligned columns. A cell wider than `MAX_WIDTH` is not cut; it only moves the rest of its own line.
pub fn table(rows: &[Vec<String>]) -> String {
    const MAX_WIDTH: usize = 48;
    let width = |column: usize| {
        let widths =
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count().min(MAX_WIDTH));
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
    fn control_characters_are_escaped() {
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
    fn spans_have_two_units_at_most() {
        for (ms, shown) in [
            (-5, "0 ms"),
            (999, "999 ms"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (252_000, "4 min 12 s"),
            (7_260_000, "2 h 1 min"),
            (90_000_000_000, "1041 d 16 h"),
        ] {
            assert_eq!(span(ms), shown);
        }
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567, -1_000].map(number),
            ["0", "999", "1,000", "1,234,567", "-1,000"]
        );
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "long", ""], ["bbb", "x", "end"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "a    long\nbbb  x     end\n");
    }
}
