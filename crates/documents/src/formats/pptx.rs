//! PPTX: each slide is a page with its title as the heading, followed by the speaker's notes and the comments.

mod comments;
mod lists;
mod masters;
mod parse;
mod shape;
mod write;

use std::collections::{BTreeSet, HashSet};

use super::office::objects::Objects;
use super::office::{self, References, Relation};
use super::presentation;
use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::has_words;
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;
use comments::Authors;
use masters::{Masters, Styles};
use parse::Part;
use shape::Shape;

pub fn read(archive: &mut Archive<'_>, main_part: &str, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let slides = slides(archive, main_part, bounds)?;
    let mut deck = Deck {
        authors: Authors::read(archive, main_part, bounds)?,
        flow: Flow::new(bounds.limits),
        bounds,
        masters: Masters::default(),
        objects: Objects::default(),
        running: HashSet::new(),
    };
    let mut unreadable = BTreeSet::new();
    for (slide, number) in slides.iter().zip(1..) {
        if !deck.read_slide(archive, slide, number)? {
            unreadable.insert(number);
        }
    }
    let pages = PageCount { total: slides.len(), unreadable: unreadable.len(), without_picture: 0 };
    let mut reading = deck.flow.finish_reading(pages)?;
    let warnings = &mut reading.extracted.warnings;
    warnings.extend(deck.objects.finish(archive, &reading.extracted.text, bounds)?);
    warnings.extend(missing::unreadable_pages("slide", &unreadable, pages)?);
    Ok(reading)
}

/// The parts of the slides in the order in which they are shown.
fn slides(archive: &mut Archive<'_>, main_part: &str, bounds: Bounds<'_>) -> Result<Vec<String>, Error> {
    let relations = office::relations(archive, main_part, bounds)?;
    let source = archive.required_text(main_part)?;
    let mut slides = Vec::new();
    let mut listed = HashSet::new();
    let mut elements = Elements::new(&source, bounds);
    while let Some(piece) = elements.next()? {
        if let Piece::Open(element) = piece
            && element.name() == "sldId"
            && let Some(Relation { kind, target }) = element.prefixed_attribute("id").and_then(|id| relations.get(&id))
            && kind == "slide"
            // Once each: a hostile list names the same slide many times.
            && listed.insert(target)
        {
            if slides.len() >= bounds.limits.pages {
                return Err(bounds.limits.too_many_pages());
            }
            slides.push(target.clone());
        }
    }
    Ok(slides)
}

/// A presentation while its slides are written.
struct Deck<'a> {
    flow: Flow,
    bounds: Bounds<'a>,
    authors: Authors,
    masters: Masters,
    objects: Objects,
    /// Headers and footers that were written. Most presentations have the same on each slide.
    running: HashSet<String>,
}

impl Deck<'_> {
    /// Writes a slide. Returns whether it could be read.
    fn read_slide(&mut self, archive: &mut Archive<'_>, part: &str, number: i64) -> Result<bool, Error> {
        let bounds = self.bounds;
        let Some(source) = archive.text(part)? else { return Ok(false) };
        let slide = match parse::part(&source, bounds) {
            Ok(slide) => slide,
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(false),
            Err(error) => return Err(error),
        };
        let references = office::references(archive, part, bounds)?;
        let styles = self.masters.of_slide(archive, &references, bounds)?;
        self.write_slide(archive, slide, &references, &styles, number)?;
        let mut relations: Vec<&Relation> = references.inside.values().collect();
        relations.sort_by(|a, b| a.target.cmp(&b.target));
        for relation in relations {
            let source = match relation.kind.as_str() {
                "notesSlide" | "comments" => archive.text(&relation.target)?,
                _ => None,
            };
            match source {
                Some(source) if relation.kind == "notesSlide" => {
                    let references = office::references(archive, &relation.target, bounds)?;
                    self.write_notes(archive, parse::part(&source, bounds)?, &references)?;
                }
                Some(source) => comments::write(&source, &self.authors, &mut self.flow, bounds)?,
                None => {}
            }
        }
        self.flow.check()?;
        Ok(true)
    }

    fn write_slide(
        &mut self,
        archive: &mut Archive<'_>,
        slide: Part,
        references: &References,
        styles: &Styles,
        number: i64,
    ) -> Result<(), Error> {
        let mut shapes = slide.shapes;
        for shape in &mut shapes {
            shape.area = shape.area.or_else(|| styles.area(shape));
        }
        let title = shapes.iter().position(Shape::is_title).map(|at| shapes.remove(at));
        let words = title.as_ref().map(Shape::words).unwrap_or_default();
        let is_of_presentation = title.as_ref().and_then(Shape::kind) == Some("ctrTitle");
        presentation::begin_slide(&mut self.flow, number, &words, is_of_presentation, slide.is_hidden);
        // A picture on a slide without words is taken for a scanned page.
        let has_text = has_words(&words) || shapes.iter().any(|shape| has_words(&shape.words()));
        let page = (!has_text).then_some(number);
        for shape in shape::in_reading_order(shapes) {
            self.write_shape(archive, &shape, references, styles, page)?;
        }
        Ok(())
    }

    fn write_notes(
        &mut self,
        archive: &mut Archive<'_>,
        notes: Part,
        references: &References,
    ) -> Result<(), Error> {
        for shape in notes.shapes.iter().filter(|shape| shape.kind() != Some("sldImg")) {
            self.write_shape(archive, shape, references, &Styles::default(), None)?;
        }
        Ok(())
    }

    fn write_shape(
        &mut self,
        archive: &mut Archive<'_>,
        shape: &Shape,
        references: &References,
        styles: &Styles,
        page: Option<i64>,
    ) -> Result<(), Error> {
        match shape.kind() {
            // The number and the date of a slide say nothing about it.
            Some("sldNum" | "dt") => return Ok(()),
            Some("ftr" | "hdr") if !self.running.insert(shape.words()) => return Ok(()),
            _ => {}
        }
        let flow = &mut self.flow;
        flow.widen(Gap::Paragraph);
        if office::describes(&shape.description) {
            flow.alt_text(&shape.description);
            flow.widen(Gap::Paragraph);
        }
        write::paragraphs(&shape.paragraphs, shape, &references.outside, styles, flow);
        if let Some(table) = &shape.table {
            write::table(table, shape, &references.outside, styles, flow);
        }
        for id in &shape.related {
            if let Some(relation) = references.inside.get(id) {
                self.objects.related(archive, relation, page, flow, self.bounds)?;
            }
        }
        flow.widen(Gap::Paragraph);
        flow.check()
    }
}
