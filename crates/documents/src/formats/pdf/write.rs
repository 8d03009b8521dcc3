//! Writes the pages as Markdown.

use std::collections::HashSet;
use std::ops::Range;

use landfall_core::text::Area;

use super::annotations::Link;
use super::layout::blocks::{self, Block};
use super::layout::{Page, PageLine, Part, Table};
use super::outline::Outline;
use super::styles::Styles;
use super::unmapped;
use crate::flow::{Flow, Gap};

/// Items that are indented by more than this share of their size are items of an item.
const NESTED: f32 = 0.8;
/// Lists in one another.
const MAX_NESTED: usize = 8;

/// Writes pages with the styles of the whole document.
pub struct Writer {
    styles: Styles,
    outline: Outline,
    /// The words with a hyphen inside a line, in small letters: one that is divided at its hyphen keeps it.
    compounds: HashSet<String>,
    /// The left edges of the open items.
    items: Vec<f32>,
    /// The end and the size of the paragraph before, if it may go on in the next column.
    open: Option<(char, f32)>,
    /// The links of the page.
    links: Vec<Link>,
}

impl Writer {
    pub fn new<'p>(outline: Outline, pages: impl Iterator<Item = &'p Page> + Clone) -> Self {
        let mut styles = Styles::default();
        let mut compounds = HashSet::new();
        let lines = || {
            pages.clone().flat_map(|page| &page.parts).filter_map(|part| match part {
                Part::Lines(lines) => Some(lines),
                Part::Table(_) => None,
            })
        };
        for line in lines().flatten() {
            styles.count(line);
            compounds.extend(line.text.split_whitespace().filter_map(compound));
        }
        styles.decide();
        for lines in lines() {
            for block in blocks::paragraphs(lines.clone(), |line| outline.depth(line).is_some()) {
                styles.add_level(&block);
            }
        }
        Self { styles, outline, compounds, items: Vec::new(), open: None, links: Vec::new() }
    }

    pub fn write(&mut self, page: Page, number: i64, flow: &mut Flow) {
        self.open = None;
        self.links = page.links;
        for part in page.parts {
            match part {
                Part::Lines(lines) => {
                    let blocks = blocks::paragraphs(lines, |line| self.outline.depth(line).is_some());
                    for (at, block) in blocks.iter().enumerate() {
                        self.write_block(block, at == 0, number, flow);
                    }
                }
                Part::Table(table) => {
                    self.end_list(flow);
                    write_table(&table, number, flow);
                }
            }
        }
        self.end_list(flow);
        for note in &page.notes {
            flow.begin_quote();
            flow.words(note);
            flow.end_quote();
        }
    }

    fn write_block(&mut self, block: &Block, is_first: bool, page: i64, flow: &mut Flow) {
        if let Some(level) = self.styles.level(block, &self.outline) {
            self.end_list(flow);
            self.open = None;
            flow.begin_heading(level);
            self.write_lines(block, 0, page, flow, true);
            flow.end_heading();
            return;
        }
        if let Some((marker, length)) = &block.marker {
            self.open = None;
            self.begin_item(block, marker, flow);
            self.write_lines(block, *length, page, flow, true);
            return;
        }
        self.end_list(flow);
        let goes_on = self.goes_on(block, is_first);
        flow.widen(if goes_on { Gap::Space } else { Gap::Paragraph });
        self.write_lines(block, 0, page, flow, false);
        let last = block.lines.last().and_then(|line| line.text.chars().next_back());
        self.open = last.map(|last| (last, block.size()));
    }

    /// Whether the first paragraph of a column goes on with the last one of the column before.
    fn goes_on(&mut self, block: &Block, is_first: bool) -> bool {
        let Some((last, size)) = self.open.take() else { return false };
        let begins = block.lines.first().is_some_and(|line| line.text.starts_with(char::is_lowercase));
        let is_entry = block.lines.first().is_some_and(|line| line.is_entry);
        is_first
            && begins
            && !is_entry
            && (last.is_alphanumeric() || last == ',')
            && (size - block.size()).abs() < 0.5
    }

    /// Writes the lines of a block from this byte of the first one on.
    fn write_lines(&self, block: &Block, from: usize, page: i64, flow: &mut Flow, is_joined: bool) {
        for (number, line) in block.lines.iter().enumerate() {
            let start = if number == 0 { from } else { 0 };
            let next = block.lines.get(number + 1);
            let is_divided = next.is_some_and(|next| blocks::is_divided(&line.text, &next.text));
            let is_compound = is_divided && next.is_some_and(|next| self.is_compound(&line.text, &next.text));
            let hyphen = line.text.chars().next_back().filter(|_| is_divided && !is_compound);
            let end = line.text.len() - hyphen.map_or(0, char::len_utf8);
            self.write_line(line, start..end.max(start), page, flow);
            if next.is_some_and(|next| !blocks::is_seamless(&line.text, &next.text)) && !is_divided {
                let is_broken = !is_joined && block.breaks.get(number).copied().unwrap_or(false);
                flow.widen(if is_broken { Gap::Line } else { Gap::Space });
            }
        }
    }

    /// Whether the word that is divided at the end of a line has its hyphen elsewhere too.
    fn is_compound(&self, line: &str, next: &str) -> bool {
        let start = line.split_whitespace().next_back().unwrap_or_default();
        let end = next.split_whitespace().next().unwrap_or_default();
        start.eq_ignore_ascii_case("self-")
            || compound(&format!("{start}{end}")).is_some_and(|word| self.compounds.contains(&word))
    }

    fn write_line(&self, line: &PageLine, range: Range<usize>, page: i64, flow: &mut Flow) {
        if unmapped::removed(&line.text[range.clone()]).trim().is_empty() {
            return;
        }
        let begin = flow.next_start();
        let linked: Vec<(usize, Option<&str>)> = self.linked(line);
        let mut at = range.start;
        while at < range.end {
            // The words up to the next one with another link.
            let link = linked.iter().rfind(|(start, _)| *start <= at).and_then(|(_, link)| *link);
            let next = linked.iter().find(|(start, other)| *start > at && *other != link);
            let end = next.map_or(range.end, |(start, _)| (*start).min(range.end));
            let words = unmapped::removed(&line.text[at..end]);
            if let Some(target) = link {
                flow.begin_link(target);
                flow.words(words.trim_end());
                flow.end_link();
                flow.words(&words[words.trim_end().len()..]);
            } else {
                flow.words(&words);
            }
            at = end;
        }
        flow.boxed(begin, page, line.area);
    }

    /// Where each word of a line leads, if any of them does.
    fn linked(&self, line: &PageLine) -> Vec<(usize, Option<&str>)> {
        let Area { left, right, top, bottom } = line.area;
        let middle = u16::midpoint(top, bottom);
        let near: Vec<&Link> = self
            .links
            .iter()
            .filter(|link| (link.area.top..=link.area.bottom).contains(&middle))
            .filter(|link| link.area.left <= right && left <= link.area.right)
            .collect();
        if near.is_empty() {
            return Vec::new();
        }
        let on_page = |x: f32| {
            let share = (x - line.left) / (line.right - line.left).max(0.1);
            f32::from(left) + share * f32::from(right - left)
        };
        let ends = line.words.iter().skip(1).map(|(_, x)| *x).chain([line.right]);
        let words =
            line.words.iter().zip(ends).map(|((start, x), end)| (*start, on_page(f32::midpoint(*x, end))));
        let link_at = |x: f32| {
            near.iter().find(|link| (f32::from(link.area.left)..=f32::from(link.area.right)).contains(&x))
        };
        words.map(|(start, x)| (start, link_at(x).map(|link| link.target.as_str()))).collect()
    }

    fn begin_item(&mut self, block: &Block, marker: &str, flow: &mut Flow) {
        let left = block.lines.first().map_or(0.0, |line| line.left);
        let size = block.size();
        while self.items.last().is_some_and(|last| left < last + NESTED * size) {
            self.items.pop();
            flow.end_item();
        }
        while self.items.len() >= MAX_NESTED {
            self.items.pop();
            flow.end_item();
        }
        self.items.push(left);
        flow.begin_item(marker);
    }

    fn end_list(&mut self, flow: &mut Flow) {
        if self.items.is_empty() {
            return;
        }
        for _ in self.items.drain(..) {
            flow.end_item();
        }
        flow.end_list();
    }
}

/// A word with a hyphen in it, in small letters and without the marks around it.
fn compound(word: &str) -> Option<String> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.contains(['-', '\u{2010}']).then(|| word.to_lowercase().replace('\u{2010}', "-"))
}

fn write_table(table: &Table, page: i64, flow: &mut Flow) {
    let start = flow.len();
    flow.begin_table();
    for row in &table.rows {
        flow.begin_row();
        for cell in row {
            flow.begin_cell();
            flow.words(&unmapped::removed(cell));
        }
    }
    flow.end_table();
    if let Some(area) = table.area {
        flow.boxed(start, page, area);
    }
}
