//! Writes the text of a document as Markdown (GFM), with the place of each page and heading.
//!
//! A reader says what it comes upon: words, gaps, headings, lists, tables, links. The flow writes the marks, keeps the
//! limit of the text, and collects the pictures that only OCR can read.

mod blocks;
mod table;

use crate::error::Error;
use crate::limits::Limits;
use crate::missing::PageCount;
use crate::reading::{Picture, Reading};
use blocks::Blocks;
use landfall_core::text::{Area, Extracted, Markup, Place, TextBox};
use landfall_core::warning::Warning;
pub use table::InnerEnd;
use table::Table;

/// The gap before the next word. Of two gaps the wider one counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    #[default]
    None,
    Space,
    /// A tab in a paragraph. Cells of tables are [`Flow::begin_cell`].
    Tab,
    Line,
    Paragraph,
}

pub struct Flow {
    text: String,
    places: Vec<Place>,
    boxes: Vec<TextBox>,
    gap: Gap,
    /// The place of the next word, if a new one begins there.
    next_place: Option<(Option<i64>, Option<String>)>,
    heading: Option<Heading>,
    /// The open list items and quotations.
    blocks: Blocks,
    /// The open table. What is written goes into its cells.
    table: Option<Table>,
    /// Where each open link begins, and where it leads.
    links: Vec<Link>,
    pictures: Vec<Picture>,
    picture_bytes: usize,
    warnings: Vec<Warning>,
    limits: Limits,
}

/// A heading that is being written.
struct Heading {
    level: u8,
    /// Where it begins, once there is a word.
    begun: Option<usize>,
    /// Its words without marks.
    plain: String,
}

struct Link {
    target: String,
    /// Where its words begin, once there is a word.
    start: Option<usize>,
}

impl Flow {
    pub fn new(limits: &Limits) -> Self {
        Self {
            text: String::new(),
            places: Vec::new(),
            boxes: Vec::new(),
            gap: Gap::None,
            next_place: None,
            heading: None,
            blocks: Blocks::default(),
            table: None,
            links: Vec::new(),
            pictures: Vec::new(),
            picture_bytes: 0,
            warnings: Vec::new(),
            limits: *limits,
        }
    }

    /// Adds words. White space between them counts as one space.
    pub fn words(&mut self, words: &str) {
        if words.starts_with(char::is_whitespace) {
            self.widen(Gap::Space);
        }
        for (number, word) in words.split_whitespace().enumerate() {
            if number > 0 {
                self.widen(Gap::Space);
            }
            self.write(word, true);
        }
        if words.ends_with(char::is_whitespace) {
            self.widen(Gap::Space);
        }
    }

    /// Adds words with their white space, as they are.
    pub fn verbatim(&mut self, words: &str) {
        if !words.is_empty() {
            self.write(words, false);
        }
    }

    pub fn widen(&mut self, gap: Gap) {
        match &mut self.table {
            Some(table) => table.widen(gap),
            None => self.gap = self.gap.max(gap),
        }
    }

    /// What follows is on this page, and under this heading if there is one. A page without words gets no place.
    /// The heading itself is not written.
    pub fn place(&mut self, page: Option<i64>, heading: Option<String>) {
        self.widen(Gap::Paragraph);
        self.next_place = Some((page, heading));
    }

    /// What follows, up to [`Flow::end_heading`], is a heading of this level: 1 to 6, others are brought into this range.
    pub fn begin_heading(&mut self, level: u8) {
        if self.table.is_none() && self.heading.is_none() {
            self.widen(Gap::Paragraph);
            self.heading = Some(Heading { level: level.clamp(1, 6), begun: None, plain: String::new() });
        }
    }

    pub fn end_heading(&mut self) {
        let Some(Heading { level, begun, plain }) = self.heading.take() else { return };
        let Some(start) = begun else { return };
        let heading = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        self.places.push(Place { start, page: None, heading: Some(heading), level: Some(level) });
        self.widen(Gap::Paragraph);
    }

    /// Whether what is written is a heading, which is on one line.
    pub fn is_in_heading(&self) -> bool {
        self.heading.is_some()
    }

    /// What follows, up to [`Flow::end_item`], is an item of a list. Lists are nested by items in items. The marker is a
    /// bullet, or a number as the document shows it: `1.`, `b)`, `2.3`.
    pub fn begin_item(&mut self, marker: &str) {
        if let Some(table) = &mut self.table {
            table.widen(Gap::Line);
            if !blocks::is_bullet(marker) {
                table.write(marker);
                table.widen(Gap::Space);
            }
            return;
        }
        let is_first = self.blocks.begins_list();
        self.widen(if is_first && !self.blocks.is_in_item() { Gap::Paragraph } else { Gap::Line });
        self.blocks.begin_item(marker);
    }

    pub fn end_item(&mut self) {
        if self.table.is_none() {
            self.blocks.end_item();
            self.widen(Gap::Line);
        }
    }

    /// The list ends: what follows is a paragraph of its own.
    pub fn end_list(&mut self) {
        if self.table.is_none() {
            self.blocks.end_list();
            self.widen(if self.blocks.is_in_item() { Gap::Line } else { Gap::Paragraph });
        }
    }

    pub fn begin_quote(&mut self) {
        if self.table.is_none() {
            self.widen(Gap::Paragraph);
            self.blocks.begin_quote();
        }
    }

    pub fn end_quote(&mut self) {
        if self.table.is_none() {
            self.blocks.end_quote();
            self.widen(Gap::Paragraph);
        }
    }

    /// Tables in a table become words of its cell, with slashes between their cells and semicolons between their rows.
    pub fn begin_table(&mut self) {
        match &mut self.table {
            Some(table) => table.begin_inner(),
            None => {
                self.gap = self.gap.max(Gap::Paragraph);
                self.table = Some(Table::default());
            }
        }
    }

    pub fn begin_row(&mut self) {
        if let Some(table) = &mut self.table {
            table.begin_row();
        }
    }

    pub fn begin_cell(&mut self) {
        if let Some(table) = &mut self.table {
            table.begin_cell();
        }
    }

    /// A cell or a row of a table in the open cell has ended, where the format does not say when that table begins.
    pub fn end_of_inner(&mut self, end: InnerEnd) {
        if let Some(table) = &mut self.table {
            table.end_of_inner(end);
        }
    }

    /// Cells without words, such as those that a wide cell covers.
    pub fn empty_cells(&mut self, number: usize) {
        if let Some(table) = &mut self.table {
            table.empty_cells(number, self.limits.cells);
        }
    }

    pub fn end_table(&mut self) {
        let Some(table) = &mut self.table else { return };
        if table.end_inner() {
            return;
        }
        let table = self.table.take().unwrap_or_default();
        for (number, line) in table.lines().into_iter().enumerate() {
            self.widen(if number == 0 { Gap::Paragraph } else { Gap::Line });
            self.write(&line, false);
        }
        self.widen(Gap::Paragraph);
    }

    /// What follows, up to [`Flow::end_link`], leads to an address.
    pub fn begin_link(&mut self, target: &str) {
        self.links.push(Link { target: target.trim().to_owned(), start: None });
    }

    pub fn end_link(&mut self) {
        let Some(Link { target, start }) = self.links.pop() else { return };
        let text = match &mut self.table {
            Some(table) => table.cell(),
            None => &mut self.text,
        };
        let Some(start) = start.filter(|start| *start < text.len() && text.is_char_boundary(*start)) else {
            return;
        };
        let Some(target) = address(&target).filter(|target| text[start..] != *target) else { return };
        text.insert(start, '[');
        text.push_str("](");
        text.push_str(&target);
        text.push(')');
    }

    /// The description of a picture, in its place.
    pub fn alt_text(&mut self, description: &str) {
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        if !description.is_empty() {
            self.verbatim(&format!("![{}]()", description.replace(['[', ']'], " ")));
        }
    }

    /// A block of code with its lines as they are.
    pub fn code_block(&mut self, language: &str, code: &str) {
        let code = code.trim_matches('\n');
        if code.trim().is_empty() {
            return;
        }
        if self.table.is_some() {
            return self.words(code);
        }
        let fence = if code.contains("```") { "~~~~" } else { "```" };
        self.widen(Gap::Paragraph);
        self.verbatim(&format!("{fence}{language}"));
        for line in code.lines() {
            self.widen(Gap::Line);
            // An empty line is a part of the code too.
            self.write(line, false);
        }
        self.widen(Gap::Line);
        self.verbatim(fence);
        self.widen(Gap::Paragraph);
    }

    /// A picture that only OCR can read; its words belong here. Returns whether it is within the limits.
    pub fn picture(&mut self, page: Option<i64>, bytes: &[u8]) -> bool {
        if self.pictures.len() >= self.limits.pictures
            || self.picture_bytes + bytes.len() > self.limits.picture_bytes
        {
            return false;
        }
        self.picture_bytes += bytes.len();
        self.pictures.push(Picture { text_offset: self.text.len(), page, bytes: bytes.to_vec() });
        true
    }

    /// Whether another picture may be within the limits.
    pub fn has_room_for_picture(&self) -> bool {
        self.pictures.len() < self.limits.pictures && self.picture_bytes < self.limits.picture_bytes
    }

    pub fn has_pictures(&self) -> bool {
        !self.pictures.is_empty()
    }

    /// The words from this byte of the text on are in this area of a page.
    pub fn boxed(&mut self, start: usize, page: i64, area: Area) {
        // The gap before the words is not in the area.
        let start = start + self.text.get(start..).map_or(0, |text| text.len() - text.trim_start().len());
        if start < self.text.len() {
            self.boxes.push(TextBox { start, end: self.text.len(), page, area });
        }
    }

    /// Where the next word will begin, with the gap and the marks before it.
    pub fn next_start(&mut self) -> usize {
        self.open_line();
        self.text.len()
    }

    /// Adds what was read of another document, in its place.
    pub fn embed(&mut self, reading: Reading) {
        let Reading { extracted, pictures, .. } = reading;
        if self.table.is_some() || self.blocks.is_in_item() {
            return self.words(&extracted.text);
        }
        self.widen(Gap::Paragraph);
        if !extracted.text.is_empty() {
            self.open_line();
        }
        let start = self.text.len();
        for picture in pictures {
            // Its pages are not those of this document.
            if self.picture(None, &picture.bytes)
                && let Some(last) = self.pictures.last_mut()
            {
                last.text_offset = start + picture.text_offset;
            }
        }
        if self.is_full() {
            return;
        }
        let places = extracted.places.into_iter().filter(|place| place.heading.is_some());
        self.places.extend(places.map(|place| Place { start: start + place.start, page: None, ..place }));
        self.text.push_str(extracted.text.trim_end());
        self.warnings.extend(extracted.warnings.into_iter().map(|warning| warning.on_page(None)));
        self.widen(Gap::Paragraph);
    }

    pub fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Whether the text exceeds the limit. Then nothing more is added, and [`Flow::finish`] returns an error.
    pub fn is_full(&self) -> bool {
        self.text.len() + self.table.as_ref().map_or(0, Table::len) > self.limits.text_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The number of bytes so far.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn check(&self) -> Result<(), Error> {
        if self.is_full() { Err(self.limits.too_much_text()) } else { Ok(()) }
    }

    pub fn finish(self) -> Result<Extracted, Error> {
        Ok(self.finish_reading(PageCount::default())?.extracted)
    }

    /// The text with the pictures for OCR. Everything that is still open ends here.
    pub fn finish_reading(mut self, pages: PageCount) -> Result<Reading, Error> {
        self.end_heading();
        while self.table.is_some() {
            self.end_table();
        }
        self.check()?;
        let extracted = Extracted {
            text: self.text,
            markup: Markup::Markdown,
            places: self.places,
            boxes: self.boxes,
            warnings: self.warnings,
        };
        Ok(Reading { extracted, pictures: self.pictures, pages })
    }

    fn write(&mut self, word: &str, is_prose: bool) {
        if self.is_full() {
            return;
        }
        if let Some(table) = &mut self.table {
            let start = table.write(word);
            for link in &mut self.links {
                link.start.get_or_insert(start);
            }
            return;
        }
        let has_gap = self.gap > Gap::None;
        let begins_line = self.open_line();
        if let Some(heading) = &mut self.heading {
            if has_gap {
                heading.plain.push(' ');
            }
            heading.plain.push_str(word);
        }
        let start = self.text.len();
        for link in &mut self.links {
            link.start.get_or_insert(start);
        }
        if is_prose && begins_line && blocks::looks_like_mark(word) {
            self.text.push('\\');
        }
        self.text.push_str(word);
    }

    /// Writes the gap and the marks before a word. Returns whether the word begins a line.
    fn open_line(&mut self) -> bool {
        let gap = std::mem::take(&mut self.gap);
        let begins_line = self.text.is_empty() || gap >= Gap::Line || self.blocks.has_new();
        if !self.text.is_empty() {
            match gap {
                Gap::None => {}
                Gap::Space => self.text.push(' '),
                Gap::Tab => self.text.push('\t'),
                Gap::Line => self.text.push('\n'),
                Gap::Paragraph => {
                    self.text.push('\n');
                    self.text.push_str(self.blocks.prefix_of_empty_line());
                    self.text.push('\n');
                }
            }
        }
        let line_start = self.text.len();
        if begins_line {
            self.blocks.write_prefix(&mut self.text);
        }
        if let Some((page, heading)) = self.next_place.take() {
            self.places.push(Place { start: line_start, page, heading, level: None });
        }
        if let Some(heading) = self.heading.as_mut().filter(|heading| heading.begun.is_none()) {
            let start = self.text.len();
            self.text.extend(std::iter::repeat_n('#', usize::from(heading.level)));
            self.text.push(' ');
            heading.begun = Some(start);
            return false;
        }
        begins_line
    }
}

/// An address as a link has it; `None` if it leads nowhere for a reader of the text. Spaces, bars and brackets without
/// their other half would end the link.
fn address(target: &str) -> Option<String> {
    let begins =
        |scheme: &str| target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if target.is_empty()
        || target.starts_with('#')
        || begins("javascript:")
        || begins("data:")
        || begins("cid:")
    {
        return None;
    }
    let is_balanced = target.matches('(').count() == target.matches(')').count();
    let mut address = String::with_capacity(target.len());
    for character in target.chars() {
        match character {
            ' ' => address.push_str("%20"),
            '<' => address.push_str("%3C"),
            '>' => address.push_str("%3E"),
            '|' => address.push_str("%7C"),
            '(' if !is_balanced => address.push_str("%28"),
            ')' if !is_balanced => address.push_str("%29"),
            character if character.is_control() => {}
            character => address.push(character),
        }
    }
    Some(address)
}

#[cfg(test)]
mod tests;
