//! Writes the paragraphs and tables of an RTF.

use crate::error::Error;
use crate::flow::{Flow, Gap, InnerEnd};
use crate::formats::grid;
use crate::formats::inline::{self, Inline};
use crate::formats::items::{ListItem, OpenItems};
use crate::formats::numerals::BULLET;
use crate::formats::office::objects::Objects;
use crate::limits::Bounds;

/// The parts that a marker may consist of.
const MAX_PARTS: usize = 4;

/// A paragraph while it is read.
#[derive(Default)]
pub struct Paragraph {
    pub content: Vec<Inline>,
    pub marker: Option<String>,
    pub anchored: Vec<Anchored>,
    pub has_page_number: bool,
}

/// What is written after the paragraph that it is in.
pub enum Anchored {
    /// A note, a comment or a text box, as paragraphs.
    Text(Vec<Vec<Inline>>),
    Picture(Vec<u8>),
    Object(Vec<u8>),
}

/// The properties that a paragraph has until they are reset.
#[derive(Debug, Default, Clone, Copy)]
pub struct Properties {
    pub style: i32,
    pub in_table: bool,
    pub list: i32,
    pub list_level: i32,
    /// From 0.
    pub outline_level: Option<i32>,
    /// How far the paragraph is indented, and how much farther its first line.
    pub left: i32,
    pub first_line: i32,
}

/// What the styles say about a paragraph.
#[derive(Debug, Default, Clone, Copy)]
pub struct Role {
    pub heading: Option<u8>,
    pub is_quote: bool,
}

#[derive(Default)]
struct Row {
    cells: Vec<Paragraph>,
    edges: Vec<i32>,
}

pub struct Writer<'a> {
    pub flow: Flow,
    pub objects: Objects,
    bounds: Bounds<'a>,
    items: OpenItems,
    /// How far the open items are indented whose markers are part of the text.
    indents: Vec<i32>,
    rows: Vec<Row>,
    /// The cells of the open row, and the one that is open.
    cells: Vec<Paragraph>,
    cell: Paragraph,
    /// All cells so far.
    number_of_cells: usize,
}

impl<'a> Writer<'a> {
    pub fn new(bounds: Bounds<'a>) -> Self {
        Self {
            flow: Flow::new(bounds.limits),
            objects: Objects::default(),
            bounds,
            items: OpenItems::default(),
            indents: Vec::new(),
            rows: Vec::new(),
            cells: Vec::new(),
            cell: Paragraph::default(),
            number_of_cells: 0,
        }
    }

    /// A paragraph ends. In a table it is a part of the open cell.
    pub fn paragraph(
        &mut self,
        mut paragraph: Paragraph,
        mut properties: Properties,
        role: Role,
    ) -> Result<(), Error> {
        if properties.in_table {
            self.add_to_cell(paragraph);
            return Ok(());
        }
        self.end_table()?;
        if paragraph.marker.is_none() && role.heading.is_none() && properties.first_line < 0 {
            paragraph.marker = take_marker(&mut paragraph.content);
            if paragraph.marker.is_some() {
                properties.list_level = self.level_at(properties.left);
            }
        }
        if paragraph.marker.is_none() {
            self.indents.clear();
        }
        let marker = paragraph.marker.as_deref().unwrap_or_default().trim();
        let marker = if is_number(marker) { marker } else { BULLET };
        if inline::is_blank(&paragraph.content) {
            // It may still have pictures.
        } else if let Some(level) = role.heading {
            self.items.end(&mut self.flow);
            self.flow.begin_heading(level);
            if marker != BULLET {
                self.flow.words(marker);
                self.flow.widen(Gap::Space);
            }
            inline::write(&paragraph.content, &mut self.flow, false);
            self.flow.end_heading();
        } else if paragraph.marker.is_some() {
            let level = usize::try_from(properties.list_level).unwrap_or(0).min(8);
            let item = ListItem { list: properties.list.to_string(), level };
            self.items.begin(item, marker, &mut self.flow);
            inline::write(&paragraph.content, &mut self.flow, true);
        } else {
            self.items.end(&mut self.flow);
            if role.is_quote {
                self.flow.begin_quote();
            }
            self.flow.widen(Gap::Paragraph);
            inline::write(&paragraph.content, &mut self.flow, true);
            self.flow.widen(Gap::Paragraph);
            if role.is_quote {
                self.flow.end_quote();
            }
        }
        self.write_anchored(paragraph.anchored, Gap::Paragraph)
    }

    /// The level of an item that is indented so far, among those that are open.
    fn level_at(&mut self, left: i32) -> i32 {
        while self.indents.pop_if(|open| *open >= left).is_some() {}
        self.indents.push(left);
        i32::try_from(self.indents.len() - 1).unwrap_or(i32::MAX)
    }

    pub fn end_cell(&mut self, paragraph: Paragraph) -> Result<(), Error> {
        self.number_of_cells += 1;
        if self.number_of_cells > self.bounds.limits.cells {
            return Err(self.bounds.limits.too_many_cells());
        }
        self.add_to_cell(paragraph);
        self.cells.push(std::mem::take(&mut self.cell));
        Ok(())
    }

    /// A cell or a row of a table inside a cell ends.
    pub fn end_inner(&mut self, paragraph: Paragraph, end: InnerEnd) {
        self.add_to_cell(paragraph);
        self.cell.content.push(Inline::InnerEnd(end));
    }

    pub fn end_row(&mut self, paragraph: Paragraph, edges: &[i32]) {
        self.add_to_cell(paragraph);
        let mut cells = std::mem::take(&mut self.cells);
        let rest = std::mem::take(&mut self.cell);
        if !inline::is_blank(&rest.content) {
            cells.push(rest);
        }
        self.rows.push(Row { cells, edges: edges.to_vec() });
    }

    /// Writes what is still open.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.end_table()?;
        self.items.end(&mut self.flow);
        self.flow.check()
    }

    fn add_to_cell(&mut self, paragraph: Paragraph) {
        if let Some(marker) = paragraph.marker.as_deref().map(str::trim)
            && is_number(marker)
        {
            self.cell.content.push(Inline::Words(format!("{marker} ")));
        }
        self.cell.content.extend(paragraph.content);
        self.cell.content.push(Inline::Gap(Gap::Space));
        self.cell.anchored.extend(paragraph.anchored);
    }

    /// Columns are known when the table is: from then on it can be written.
    fn end_table(&mut self) -> Result<(), Error> {
        let rest = std::mem::take(&mut self.cell);
        if !self.cells.is_empty() || !inline::is_blank(&rest.content) {
            self.cell = rest;
            self.end_row(Paragraph::default(), &[]);
        }
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        self.items.end(&mut self.flow);
        let edges: Vec<Vec<i32>> = rows.iter().map(|row| row.edges.clone()).collect();
        self.flow.begin_table();
        for (row, spans) in rows.into_iter().zip(grid::spans(&edges)) {
            self.flow.begin_row();
            for (number, cell) in row.cells.into_iter().enumerate() {
                self.flow.begin_cell();
                inline::write(&cell.content, &mut self.flow, false);
                self.write_anchored(cell.anchored, Gap::Space)?;
                self.flow.empty_cells(spans.get(number).map_or(0, |span| span - 1));
            }
            self.flow.check()?;
        }
        self.flow.end_table();
        self.flow.check()
    }

    fn write_anchored(&mut self, anchored: Vec<Anchored>, gap: Gap) -> Result<(), Error> {
        for anchor in anchored {
            match anchor {
                Anchored::Text(paragraphs) => {
                    for paragraph in paragraphs.iter().filter(|paragraph| !inline::is_blank(paragraph)) {
                        self.flow.widen(gap);
                        inline::write(paragraph, &mut self.flow, gap == Gap::Paragraph);
                        self.flow.widen(gap);
                    }
                }
                Anchored::Picture(bytes) => {
                    self.objects.picture_bytes(&bytes, "a picture", None, &mut self.flow);
                }
                Anchored::Object(bytes) => {
                    self.objects.bytes(&bytes, "an embedded object", &mut self.flow, self.bounds)?;
                }
            }
        }
        self.flow.check()
    }
}

/// Whether a marker is a number. Word has the letter o as a bullet.
fn is_number(marker: &str) -> bool {
    marker != "o" && marker.chars().any(char::is_alphanumeric)
}

/// Takes the marker of an item out of its text, where programs write it as text: a bullet or a number, and a tab. Only the
/// first line of an item stands out to the left.
fn take_marker(content: &mut Vec<Inline>) -> Option<String> {
    let tab = content.iter().take(MAX_PARTS).position(|inline| matches!(inline, Inline::Gap(Gap::Tab)))?;
    let mut marker = String::new();
    for inline in &content[..tab] {
        let Inline::Words(words) = inline else { return None };
        marker.push_str(words);
    }
    let marker = marker.trim();
    let is_bullet = matches!(marker, "•" | "◦" | "▪" | "–" | "-" | "\u{B7}");
    let number = marker.strip_suffix(['.', ')']).map(|number| number.trim_start_matches('('));
    let is_short =
        |number: &str| (1..=4).contains(&number.len()) && number.chars().all(char::is_alphanumeric);
    if !is_bullet && !number.is_some_and(is_short) {
        return None;
    }
    let marker = marker.to_owned();
    content.drain(..=tab);
    Some(marker)
}
