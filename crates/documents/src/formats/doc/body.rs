//! Writes the paragraphs, lists and tables of a Word document.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::fib::{Fib, Part, positions, u16_at, u32_at};
use super::pieces::Pieces;
use super::properties::{self, Characters, Paragraph, Run};
use super::styles::Styles;
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::formats::compound::Container;
use crate::formats::fields::{hyperlink, is_page_number};
use crate::formats::grid;
use crate::formats::inline::{self, Inline};
use crate::formats::items::{ListItem, OpenItems};
use crate::formats::numbering::Numbering;
use crate::formats::numerals::BULLET;
use crate::formats::office::objects::Objects;
use crate::has_words;
use crate::limits::Bounds;
use crate::missing::PageCount;
use crate::reading::Reading;

/// Fields may be nested this deep. Deeper ones are read as words.
const MAX_FIELDS: usize = 32;
/// A line in a margin with the number of the page and fewer letters than this is nothing but this number.
const MIN_LETTERS_WITH_PAGE_NUMBER: usize = 13;

pub struct Body<'a> {
    pub flow: Flow,
    pub pieces: &'a Pieces,
    pub paragraphs: Vec<Run<(u16, &'a [u8])>>,
    pub characters: Vec<Run<Characters>>,
    pub styles: Styles<'a>,
    pub numbering: Numbering,
    /// The stream with the pictures.
    pub data: Vec<u8>,
    pub bounds: Bounds<'a>,
    /// The properties by style, as far as they were needed.
    by_style: HashMap<u16, Paragraph>,
    /// The notes that a character refers to.
    notes: BTreeMap<u32, Note>,
    items: OpenItems,
    fields: Vec<Field>,
    objects: Objects,
    in_margin: bool,
}

struct Note {
    text: Range<u32>,
    mark: String,
}

#[derive(Default)]
struct Field {
    instruction: String,
    has_result: bool,
    is_link: bool,
    is_page_number: bool,
}

/// A paragraph between two characters of the text; the last one ends it.
struct Stretch {
    text: Range<u32>,
    mark: u16,
    properties: Paragraph,
}

/// What is in a paragraph.
#[derive(Default)]
struct Content {
    inline: Vec<Inline>,
    notes: Vec<u32>,
    pictures: Vec<u32>,
    has_page_number: bool,
}

impl<'a> Body<'a> {
    pub fn new(pieces: &'a Pieces, bounds: Bounds<'a>) -> Self {
        Self {
            flow: Flow::new(bounds.limits),
            pieces,
            paragraphs: Vec::new(),
            characters: Vec::new(),
            styles: Styles::default(),
            numbering: Numbering::default(),
            data: Vec::new(),
            bounds,
            by_style: HashMap::new(),
            notes: BTreeMap::new(),
            items: OpenItems::default(),
            fields: Vec::new(),
            objects: Objects::default(),
            in_margin: false,
        }
    }

    pub fn read(mut self, fib: &Fib<'_>, tables: &[u8], container: &Container<'_>) -> Result<Reading, Error> {
        let lengths = fib.lengths;
        let part = |part: Part| fib.part(part, tables);
        self.add_notes(part(Part::FootnoteReferences), part(Part::FootnoteTexts), lengths.body, 2);
        self.add_notes(part(Part::EndnoteReferences), part(Part::EndnoteTexts), lengths.before_endnotes(), 2);
        self.add_notes(
            part(Part::CommentReferences),
            part(Part::CommentTexts),
            lengths.before_comments(),
            30,
        );
        let margins = margins(part(Part::Headers), lengths.before_headers());
        let mut seen = HashSet::new();
        self.write_margins(&margins, 0, &mut seen)?;
        self.text(0..lengths.body)?;
        let boxes = lengths.before_text_boxes();
        self.text(boxes..boxes.saturating_add(lengths.text_boxes))?;
        self.write_objects(container)?;
        self.write_margins(&margins, 1, &mut seen)?;
        let mut reading = self.flow.finish_reading(PageCount::default())?;
        let warnings = self.objects.finish_flat(&reading.extracted.text);
        reading.extracted.warnings.extend(warnings);
        Ok(reading)
    }

    /// The texts of notes by the characters that refer to them. Each reference has a value of this size.
    fn add_notes(&mut self, references: &[u8], texts: &[u8], start: u32, size: usize) {
        let (references, values) = positions(references, size);
        let texts = texts_between(texts, start);
        let values = values.chunks_exact(size);
        for ((reference, text), value) in references.iter().zip(texts).zip(values) {
            // Only comments have more than a number: the initials of their authors.
            let mark = if size == 2 { String::new() } else { comment_mark(value) };
            self.notes.insert(*reference, Note { text, mark });
        }
    }

    fn write_margins(
        &mut self,
        margins: &[(usize, Range<u32>)],
        kind: usize,
        seen: &mut HashSet<String>,
    ) -> Result<(), Error> {
        self.in_margin = true;
        for (_, text) in margins.iter().filter(|(of, _)| *of == kind) {
            let of_body = std::mem::replace(&mut self.flow, Flow::new(self.bounds.limits));
            self.text(text.clone())?;
            let of_margin = std::mem::replace(&mut self.flow, of_body).finish_reading(PageCount::default())?;
            if has_words(&of_margin.extracted.text) && seen.insert(of_margin.extracted.text.clone()) {
                self.flow.embed(of_margin);
                self.flow.check()?;
            }
        }
        self.in_margin = false;
        Ok(())
    }

    /// Files that are packed into the document. Where they are shown is not read.
    fn write_objects(&mut self, container: &Container<'_>) -> Result<(), Error> {
        let top = container.top();
        let Some(pool) =
            top.iter().find(|entry| entry.is_folder && entry.name.eq_ignore_ascii_case("ObjectPool"))
        else {
            return Ok(());
        };
        for folder in container.inside(pool).iter().filter(|entry| entry.is_folder) {
            self.objects.folder(container, folder, &mut self.flow, self.bounds)?;
        }
        Ok(())
    }

    fn text(&mut self, text: Range<u32>) -> Result<(), Error> {
        let stretches = self.stretches(text);
        let mut rest = stretches.as_slice();
        while let Some(first) = rest.first() {
            let cells = rest.iter().take_while(|stretch| stretch.properties.in_table).count();
            if cells > 0 {
                self.items.end(&mut self.flow);
                self.table(&rest[..cells])?;
                rest = &rest[cells..];
            } else {
                self.paragraph(first, false)?;
                rest = &rest[1..];
            }
            self.flow.check()?;
        }
        self.items.end(&mut self.flow);
        self.fields.clear();
        Ok(())
    }

    /// Divides a text into its paragraphs.
    fn stretches(&mut self, text: Range<u32>) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let mut start = text.start;
        for at in text.clone() {
            let unit = usize::try_from(at).ok().and_then(|at| self.pieces.units.get(at).copied());
            let Some(unit) = unit else { break };
            let is_last = at + 1 == text.end;
            if matches!(unit, 0x0D | 0x07 | 0x0C) || is_last {
                let (style, changes) =
                    properties::at(&self.paragraphs, self.pieces.place(at)).copied().unwrap_or_default();
                let by_style = self.by_style.entry(style).or_insert_with(|| self.styles.paragraph(style));
                let mut properties = by_style.clone();
                properties.apply(changes);
                stretches.push(Stretch { text: start..at + 1, mark: unit, properties });
                start = at + 1;
            }
        }
        stretches
    }

    fn paragraph(&mut self, stretch: &Stretch, in_cell: bool) -> Result<(), Error> {
        let properties = &stretch.properties;
        let content = self.content(stretch.text.clone());
        let item = (!matches!(properties.list, 0 | 0x7FF | 0xF801..)).then(|| ListItem {
            list: properties.list.to_string(),
            level: usize::from(properties.list_level),
        });
        let marker =
            item.as_ref().and_then(|item| self.numbering.count(&item.list, item.level)).unwrap_or_default();
        let letters = || inline::raw(&content.inline).chars().filter(|c| c.is_alphabetic()).count();
        let is_number_of_page = content.has_page_number && letters() < MIN_LETTERS_WITH_PAGE_NUMBER;
        if !inline::is_blank(&content.inline) && !is_number_of_page {
            self.write(properties, &content.inline, item, &marker, in_cell);
        }
        for picture in content.pictures {
            self.picture(picture);
        }
        for reference in content.notes {
            self.note(reference, in_cell)?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        properties: &Paragraph,
        content: &[Inline],
        item: Option<ListItem>,
        marker: &str,
        in_cell: bool,
    ) {
        let of_style = self.styles.heading(properties.style);
        let heading = match properties.outline_level {
            Some(9) => None,
            Some(level) if of_style.is_none() => Some(level.saturating_add(1)),
            _ => of_style,
        };
        if in_cell {
            self.flow.widen(Gap::Space);
            if !marker.is_empty() {
                self.flow.begin_item(marker);
            }
            inline::write(content, &mut self.flow, false);
            self.flow.widen(Gap::Space);
        } else if let Some(level) = heading {
            self.items.end(&mut self.flow);
            self.flow.begin_heading(level);
            if marker != BULLET && !marker.is_empty() {
                self.flow.words(marker);
                self.flow.widen(Gap::Space);
            }
            inline::write(content, &mut self.flow, false);
            self.flow.end_heading();
        } else if let Some(item) = item.filter(|_| !marker.is_empty()) {
            self.items.begin(item, marker, &mut self.flow);
            inline::write(content, &mut self.flow, true);
        } else {
            self.items.end(&mut self.flow);
            let is_quote =
                matches!(self.styles.name(properties.style), "quote" | "intense quote" | "block text");
            if is_quote {
                self.flow.begin_quote();
            }
            self.flow.widen(Gap::Paragraph);
            inline::write(content, &mut self.flow, true);
            self.flow.widen(Gap::Paragraph);
            if is_quote {
                self.flow.end_quote();
            }
        }
    }

    fn table(&mut self, stretches: &[Stretch]) -> Result<(), Error> {
        let ends_row =
            |stretch: &&Stretch| stretch.properties.ends_row && stretch.properties.table_depth <= 1;
        let edges: Vec<Vec<i32>> =
            stretches.iter().filter(ends_row).map(|row| row.properties.edges.clone()).collect();
        let spans = grid::spans(&edges);
        let (mut row, mut cell) = (0, 0);
        let (mut row_is_open, mut cell_is_open) = (false, false);
        self.flow.begin_table();
        for stretch in stretches {
            if ends_row(&stretch) {
                (row, cell, row_is_open, cell_is_open) = (row + 1, 0, false, false);
                continue;
            }
            if !row_is_open {
                self.flow.begin_row();
                row_is_open = true;
            }
            if !cell_is_open {
                self.flow.begin_cell();
                cell_is_open = true;
            }
            self.paragraph(stretch, true)?;
            if stretch.mark == 0x07 && stretch.properties.table_depth <= 1 {
                let span = spans.get(row).and_then(|row| row.get(cell)).copied().unwrap_or(1);
                self.flow.empty_cells(span.saturating_sub(1));
                cell += 1;
                cell_is_open = false;
            }
            self.flow.check()?;
        }
        self.flow.end_table();
        Ok(())
    }

    /// The words of a paragraph, and what its characters refer to.
    fn content(&mut self, text: Range<u32>) -> Content {
        let mut content = Content::default();
        let mut words: Vec<u16> = Vec::new();
        let pieces = self.pieces;
        for at in text {
            let Some(unit) = usize::try_from(at).ok().and_then(|at| pieces.units.get(at).copied()) else {
                break;
            };
            let characters = properties::at(&self.characters, pieces.place(at)).copied().unwrap_or_default();
            match unit {
                0x13..=0x15 => {
                    content.flush(&mut words);
                    self.field(unit, &mut content);
                }
                _ if characters.is_hidden => {}
                _ if self.fields.last().is_some_and(|field| !field.has_result) => self.instruct(unit),
                _ if self.fields.iter().any(|field| field.is_page_number) => {}
                0x01 => content.pictures.extend(characters.picture),
                0x02 | 0x05 => content.notes.push(at),
                0x09 | 0x0B => {
                    content.flush(&mut words);
                    content.inline.push(Inline::Gap(if unit == 0x09 { Gap::Tab } else { Gap::Line }));
                }
                0x1E => words.push(u16::from(b'-')),
                0..0x20 => {}
                _ => words.push(unit),
            }
        }
        content.flush(&mut words);
        content
    }

    fn instruct(&mut self, unit: u16) {
        const MOST: usize = 4_096;
        if let Some(field) = self.fields.last_mut().filter(|field| field.instruction.len() < MOST) {
            field.instruction.push(char::from_u32(unit.into()).unwrap_or(' '));
        }
    }

    /// A field begins, its result begins, or it ends.
    fn field(&mut self, mark: u16, content: &mut Content) {
        match mark {
            0x13 if self.fields.len() < MAX_FIELDS => self.fields.push(Field::default()),
            0x14 => {
                let in_margin = self.in_margin;
                let Some(field) = self.fields.last_mut() else { return };
                field.has_result = true;
                if let Some(target) = hyperlink(&field.instruction) {
                    field.is_link = true;
                    content.inline.push(Inline::BeginLink(target));
                } else if in_margin && is_page_number(&field.instruction) {
                    field.is_page_number = true;
                    content.has_page_number = true;
                }
            }
            0x15 if self.fields.pop().is_some_and(|field| field.is_link) => {
                content.inline.push(Inline::EndLink);
            }
            _ => {}
        }
    }

    /// Writes a note after the paragraph that refers to it. Each is written once.
    fn note(&mut self, reference: u32, in_cell: bool) -> Result<(), Error> {
        let Some(Note { text, mark }) = self.notes.remove(&reference) else { return Ok(()) };
        let items = std::mem::take(&mut self.items);
        let fields = std::mem::take(&mut self.fields);
        self.flow.widen(if in_cell { Gap::Space } else { Gap::Paragraph });
        let mut mark = Some(mark).filter(|mark| !mark.is_empty());
        for stretch in self.stretches(text) {
            let mut content = self.content(stretch.text.clone());
            if inline::is_blank(&content.inline) {
                continue;
            }
            if let Some(mark) = mark.take() {
                content.inline.insert(0, Inline::Words(format!("{mark} ")));
            }
            self.flow.widen(if in_cell { Gap::Space } else { Gap::Paragraph });
            inline::write(&content.inline, &mut self.flow, !in_cell);
            self.flow.widen(if in_cell { Gap::Space } else { Gap::Paragraph });
        }
        (self.items, self.fields) = (items, fields);
        self.flow.check()
    }

    /// A picture in the text: a header, the drawing, and in it the file.
    fn picture(&mut self, at: u32) {
        let Some(bytes) = usize::try_from(at).ok().and_then(|at| self.data.get(at..)) else { return };
        let length = u32_at(bytes, 0).and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        let picture = &bytes[..length.min(bytes.len())];
        let marks: [&[u8]; 2] = [b"\x89PNG\r\n\x1A\n", b"\xFF\xD8\xFF"];
        let start = marks.iter().filter_map(|mark| memchr::memmem::find(picture, mark)).min();
        if let Some(start) = start {
            self.objects.picture_bytes(&picture[start..], "a picture", None, &mut self.flow);
        }
    }
}

impl Content {
    fn flush(&mut self, words: &mut Vec<u16>) {
        if !words.is_empty() {
            self.inline.push(Inline::Words(String::from_utf16_lossy(words)));
            words.clear();
        }
    }
}

/// The texts of headers (0) and footers (1). The first six are lines above notes; then each section has six.
fn margins(table: &[u8], start: u32) -> Vec<(usize, Range<u32>)> {
    const KINDS: [usize; 6] = [0, 0, 1, 1, 0, 1];
    let texts = texts_between(table, start).enumerate().skip(6);
    texts.filter(|(_, text)| !text.is_empty()).map(|(number, text)| (KINDS[number % 6], text)).collect()
}

/// The texts between the positions of a table, which ends where it is out of order: texts never overlap.
fn texts_between(table: &[u8], start: u32) -> impl Iterator<Item = Range<u32>> {
    let (positions, _) = positions(table, 0);
    let ordered = positions.windows(2).take_while(|pair| pair[0] <= pair[1]).count();
    (0..ordered).map(move |at| start.saturating_add(positions[at])..start.saturating_add(positions[at + 1]))
}

fn comment_mark(value: &[u8]) -> String {
    let length = usize::from(u16_at(value, 0).unwrap_or(0)).min(9);
    let units: Vec<u16> = (0..length).filter_map(|at| u16_at(value, 2 + 2 * at)).collect();
    match String::from_utf16_lossy(&units).trim() {
        "" => "Comment:".to_owned(),
        initials => format!("Comment ({initials}):"),
    }
}
