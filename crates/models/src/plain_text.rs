//! Markdown as plain text: without the marks of headings, tables and links, which the readers of documents write.
//!
//! Nothing else is a mark here: a star or a bracket in a document is most likely a star or a bracket.

use crate::chunk::units::{Fence, is_heading};
use crate::wording::{is_rule, push_without_addresses};

const MAX_ADDRESS: usize = 2_048;

/// Headings and code without their marks, cells of tables between tabs, links as their text. Markers of lists stay.
pub fn plain_text(markdown: &str) -> String {
    let mut plain = String::with_capacity(markdown.len());
    let mut lines = markdown.lines().peekable();
    let mut fence: Option<Fence> = None;
    let mut is_in_table = false;
    while let Some(line) = lines.next() {
        let content = line.trim();
        if let Some(open) = fence {
            if open.is_closed_by(content) {
                fence = None;
            } else {
                push_line(line, &mut plain);
            }
            continue;
        }
        fence = Fence::opened_by(content);
        if fence.is_some() {
            continue;
        }
        let has_bar = content.contains('|');
        if has_bar && !is_in_table && lines.peek().is_some_and(|below| is_rule(below.trim())) {
            is_in_table = true;
            lines.next();
            push_row(content, &mut plain);
        } else if has_bar && is_in_table {
            push_row(content, &mut plain);
        } else {
            is_in_table = false;
            push_prose(line, &mut plain);
        }
    }
    plain.truncate(plain.trim_end().len());
    plain
}

fn push_line(line: &str, plain: &mut String) {
    plain.push_str(line);
    plain.push('\n');
}

fn push_prose(line: &str, plain: &mut String) {
    let content = line.trim_start();
    let content = if is_heading(content) {
        content.trim_start_matches('#').trim_start()
    } else {
        plain.push_str(&line[..line.len() - content.len()]);
        // A word that only looks like a mark.
        content.strip_prefix('\\').filter(|word| word.starts_with(['#', '`', '~'])).unwrap_or(content)
    };
    push_without_addresses(content, MAX_ADDRESS, plain);
    plain.push('\n');
}

fn push_row(row: &str, plain: &mut String) {
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').filter(|rest| !rest.ends_with('\\')).unwrap_or(row);
    let mut cell = String::new();
    let mut is_escaped = false;
    for character in row.chars() {
        match character {
            '|' if is_escaped => {
                cell.pop();
                cell.push('|');
            }
            '|' => {
                push_without_addresses(cell.trim(), MAX_ADDRESS, plain);
                plain.push('\t');
                cell.clear();
            }
            other => cell.push(other),
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    push_without_addresses(cell.trim(), MAX_ADDRESS, plain);
    plain.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_headings_tables_links_and_code_are_left_out() {
        let markdown = "# Handbook\n\nSee [the rules](https://example.org/rules) and ![a map]().\n\n- one\n  1. inner\n\n\
            | Port | Tide | |\n| --- | --- | --- |\n| Hull | a\\|b | |\n| | [4](https://example.org) | x |\n\n\
            ```sh\n# a comment\n| no | row |\n| --- | --- |\n```\n\n\\# no heading, `Vec<String>`, 2*3*4 and a | b\n> quoted";
        let plain = "Handbook\n\nSee the rules and a map.\n\n- one\n  1. inner\n\n\
            Port\tTide\t\nHull\ta|b\t\n\t4\tx\n\n\
            # a comment\n| no | row |\n| --- | --- |\n\n# no heading, `Vec<String>`, 2*3*4 and a | b\n> quoted";
        assert_eq!(plain_text(markdown), plain);
    }

    #[test]
    fn many_marks_take_no_long() {
        for marks in ["](", "[", "![](", "|\n|-|\n", "```\n", "\\|"] {
            let text = marks.repeat(200_000);
            assert!(plain_text(&text).len() <= text.len());
        }
    }
}
