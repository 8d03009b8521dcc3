//! The smallest parts of a Markdown text that a chunk keeps whole: rows of tables, items of lists, paragraphs.
//!
//! Reads the text line by line and keeps one unit at a time, because a text may have millions of them.

use crate::wording::is_rule;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// In bytes of the text, without white space around it.
    pub start: usize,
    pub end: usize,
    pub kind: Kind,
    /// The column that it begins at. What follows an item and begins further right is in the item.
    pub column: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Heading,
    /// The first row of a table, and the line below it.
    Header,
    /// Another row, with the place of its header.
    Row {
        header: (usize, usize),
    },
    /// An item of a list, without the items in it.
    Item,
    /// A paragraph, or a block of code.
    Prose,
}

impl Kind {
    /// Whether it means little without what follows.
    pub const fn is_introduction(self) -> bool {
        matches!(self, Self::Heading | Self::Header)
    }
}

pub struct Units<'a> {
    text: &'a str,
    /// Where the next line begins.
    next: usize,
    /// The unit that further lines may belong to.
    open: Option<Unit>,
    /// The header of the table that the last line was in.
    table: Option<(usize, usize)>,
    /// What ends the block of code that the last line was in.
    fence: Option<Fence>,
    after_blank: bool,
}

/// The line that begins a block of code.
#[derive(Clone, Copy)]
pub(crate) struct Fence {
    mark: u8,
    length: usize,
}

/// A line, without the white space and the marks of quotations before it.
#[derive(Clone, Copy)]
struct Line<'a> {
    start: usize,
    end: usize,
    content: &'a str,
    column: usize,
}

impl<'a> Units<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, next: 0, open: None, table: None, fence: None, after_blank: false }
    }

    /// The line that begins at this byte, and where the one after it begins.
    fn line(&self, from: usize) -> Option<(Line<'a>, usize)> {
        let rest = self.text.get(from..).filter(|rest| !rest.is_empty())?;
        let length = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let whole = &rest[..length];
        let content = whole.trim_start_matches([' ', '\t', '>']);
        let before = whole.len() - content.len();
        let column = whole[..before].bytes().map(|byte| if byte == b'\t' { 4 } else { 1 }).sum();
        let content = content.trim();
        let start = from + before;
        Some((Line { start, end: start + content.len(), content, column }, from + length))
    }

    /// Takes a line. Returns the unit that ended before it.
    fn take(&mut self, line: Line<'a>) -> Option<Unit> {
        if let Some(fence) = self.fence {
            self.extend(line);
            if fence.is_closed_by(line.content) {
                self.fence = None;
                // What follows is not a part of the code.
                self.after_blank = self.open.is_some_and(|open| open.kind == Kind::Prose);
            }
            return None;
        }
        if line.content.is_empty() {
            self.after_blank = true;
            self.table = None;
            return None;
        }
        let after_blank = std::mem::take(&mut self.after_blank);
        if let Some(header) = self.table.filter(|_| line.content.contains('|')) {
            return self.begin(line, Kind::Row { header });
        }
        self.table = None;
        if is_heading(line.content) {
            return self.begin(line, Kind::Heading);
        }
        if line.content.contains('|')
            && let Some((below, after)) = self.line(self.next)
            && is_rule(below.content)
        {
            self.next = after;
            self.table = Some((line.start, below.end));
            return self.begin(Line { end: below.end, ..line }, Kind::Header);
        }
        if is_item(line.content) {
            return self.begin(line, Kind::Item);
        }
        self.fence = Fence::opened_by(line.content);
        if self.continues(line, after_blank) {
            self.extend(line);
            return None;
        }
        self.begin(line, Kind::Prose)
    }

    /// Whether a line of words belongs to the open unit.
    fn continues(&self, line: Line<'_>, after_blank: bool) -> bool {
        self.open.is_some_and(|open| match open.kind {
            Kind::Item => line.column > open.column || (!after_blank && self.fence.is_none()),
            Kind::Prose => !after_blank && self.fence.is_none(),
            Kind::Heading | Kind::Header | Kind::Row { .. } => false,
        })
    }

    fn extend(&mut self, line: Line<'_>) {
        match &mut self.open {
            Some(open) => open.end = open.end.max(line.end),
            None => self.open = Some(unit(line, Kind::Prose)),
        }
    }

    fn begin(&mut self, line: Line<'_>, kind: Kind) -> Option<Unit> {
        self.open.replace(unit(line, kind))
    }
}

fn unit(line: Line<'_>, kind: Kind) -> Unit {
    Unit { start: line.start, end: line.end, kind, column: line.column }
}

impl Iterator for Units<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        while let Some((line, after)) = self.line(self.next) {
            self.next = after;
            if let Some(ended) = self.take(line) {
                return Some(ended);
            }
        }
        self.open.take()
    }
}

pub(crate) fn is_heading(content: &str) -> bool {
    let level = content.bytes().take_while(|byte| *byte == b'#').count();
    (1..=6).contains(&level) && content[level..].starts_with([' ', '\t'])
}

/// `- `, `* `, `+ `, and numbers such as `1. ` and `12) `.
fn is_item(content: &str) -> bool {
    let (marker, rest) = content.split_once([' ', '\t']).unwrap_or((content, ""));
    if matches!(marker, "-" | "*" | "+") {
        return !rest.is_empty();
    }
    let Some(number) = marker.strip_suffix(['.', ')']) else { return false };
    (1..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

impl Fence {
    pub(crate) fn opened_by(content: &str) -> Option<Self> {
        let mark = *content.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = content.bytes().take_while(|byte| *byte == mark).count();
        let is_fence = length >= 3 && !(mark == b'`' && content[length..].contains('`'));
        is_fence.then_some(Self { mark, length })
    }

    pub(crate) fn is_closed_by(self, content: &str) -> bool {
        content.len() >= self.length && content.bytes().all(|byte| byte == self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Vec<(&str, Kind)> {
        Units::new(text).map(|unit| (&text[unit.start..unit.end], unit.kind)).collect()
    }

    #[test]
    fn items_paragraphs_and_headings_are_units() {
        let text =
            "# Hours\n\nFrom nine\nto five.\n\n- one\n  more\n\n  and more\n  - inner\n- two\nlazy\n\nAfter.";
        let (heading, item, prose) = (Kind::Heading, Kind::Item, Kind::Prose);
        assert_eq!(
            units(text),
            [
                ("# Hours", heading),
                ("From nine\nto five.", prose),
                ("- one\n  more\n\n  and more", item),
                ("- inner", item),
                ("- two\nlazy", item),
                ("After.", prose),
            ]
        );
    }

    #[test]
    fn each_row_is_a_unit_that_knows_its_header() {
        let text = "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n\nx | y\n--|--\n5 | 6\n\nor | not";
        let row = |header| Kind::Row { header };
        let second = text.find("x | y").expect("it is there");
        assert_eq!(
            units(text),
            [
                ("| a | b |\n| --- | --- |", Kind::Header),
                ("| 1 | 2 |", row((0, 23))),
                ("| 3 | 4 |", row((0, 23))),
                ("x | y\n--|--", Kind::Header),
                ("5 | 6", row((second, second + 11))),
                ("or | not", Kind::Prose),
            ]
        );
    }

    #[test]
    fn code_is_one_unit_whatever_it_looks_like() {
        let code = "```sh\n# a comment\n\n- no item\n| no | row |\n| --- | --- |\n```";
        let text = format!("{code}\nAfter.\n\n1. step\n\n   {code}\n\n2. next");
        let found = units(&text);
        assert_eq!(found[0], (code, Kind::Prose));
        assert_eq!(found[1], ("After.", Kind::Prose));
        assert!(found[2].0.starts_with("1. step") && found[2].0.ends_with("```"), "{found:?}");
        assert_eq!(found[3], ("2. next", Kind::Item));
    }
}
