//! What the shapes of a slide inherit from its layout and its master: bullets and places.

use std::collections::HashMap;
use std::rc::Rc;

use super::lists::Bullet;
use super::parse::{self, Part};
use super::shape::{Area, Shape};
use crate::archive::Archive;
use crate::error::{Error, ErrorKind};
use crate::formats::office::{self, References};
use crate::limits::Bounds;

/// The layouts and masters that were read, by the names of their parts.
#[derive(Default)]
pub struct Masters {
    read: HashMap<String, (Rc<Part>, References)>,
}

/// What the shapes of one slide inherit. The notes of a slide inherit nothing.
#[derive(Default)]
pub struct Styles {
    layout: Option<Rc<Part>>,
    master: Option<Rc<Part>>,
}

impl Masters {
    pub fn of_slide(
        &mut self,
        archive: &mut Archive<'_>,
        slide: &References,
        bounds: Bounds<'_>,
    ) -> Result<Styles, Error> {
        let Some(part) = target(slide, "slideLayout") else { return Ok(Styles::default()) };
        self.read(archive, &part, bounds)?;
        let Some((layout, references)) = self.read.get(&part) else { return Ok(Styles::default()) };
        let layout = Some(Rc::clone(layout));
        let Some(part) = target(references, "slideMaster") else {
            return Ok(Styles { layout, master: None });
        };
        self.read(archive, &part, bounds)?;
        let master = self.read.get(&part).map(|(master, _)| Rc::clone(master));
        Ok(Styles { layout, master })
    }

    /// Reads a part once. A damaged one is as one that says nothing.
    fn read(&mut self, archive: &mut Archive<'_>, part: &str, bounds: Bounds<'_>) -> Result<(), Error> {
        if self.read.contains_key(part) {
            return Ok(());
        }
        let parsed = match archive.text(part)?.map(|source| parse::part(&source, bounds)).transpose() {
            Ok(parsed) => parsed.unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Damaged => Part::default(),
            Err(error) => return Err(error),
        };
        let references = office::references(archive, part, bounds)?;
        self.read.insert(part.to_owned(), (Rc::new(parsed), references));
        Ok(())
    }
}

fn target(references: &References, kind: &str) -> Option<String> {
    let mut found = references.inside.values().filter(|relation| relation.kind == kind);
    found.next().map(|relation| relation.target.clone())
}

impl Styles {
    /// The bullet of a paragraph of this level that does not say it by itself.
    pub fn bullet(&self, shape: &Shape, level: usize) -> Bullet {
        let own = shape.styles.get(level);
        let inherited = || {
            let placeholder = shape.placeholder.as_ref()?;
            let of_layout = self.in_layout(shape).and_then(|shape| shape.styles.get(level));
            let of_master = || self.in_master(shape).and_then(|shape| shape.styles.get(level));
            let of_text = || {
                let master = self.master.as_ref()?;
                match placeholder.kind.as_str() {
                    "title" | "ctrTitle" => master.titles.get(level),
                    "ftr" | "hdr" | "dt" | "sldNum" => None,
                    _ => master.bodies.get(level),
                }
            };
            of_layout.or_else(of_master).or_else(of_text)
        };
        own.or_else(inherited).cloned().unwrap_or(Bullet::None)
    }

    /// Where a placeholder is that does not say it by itself.
    pub fn area(&self, shape: &Shape) -> Option<Area> {
        let of_layout = self.in_layout(shape).and_then(|shape| shape.area);
        of_layout.or_else(|| self.in_master(shape).and_then(|shape| shape.area))
    }

    /// The placeholder of the layout with the same index, or else of the same kind.
    fn in_layout(&self, shape: &Shape) -> Option<&Shape> {
        let wanted = shape.placeholder.as_ref()?;
        let shapes = || self.layout.iter().flat_map(|layout| &layout.shapes);
        let same = |shape: &&Shape| {
            shape
                .placeholder
                .as_ref()
                .is_some_and(|found| found.index == wanted.index && !found.index.is_empty())
        };
        let of_same_kind = |shape: &&Shape| shape.kind() == Some(&wanted.kind);
        // A subtitle has no bullets, which other content has.
        let is_alike = |shape: &&Shape| {
            let kind = shape.kind().filter(|kind| *kind != "subTitle" && wanted.kind != "subTitle");
            kind.is_some_and(|kind| general(kind) == general(&wanted.kind))
        };
        shapes().find(same).or_else(|| shapes().find(of_same_kind)).or_else(|| shapes().find(is_alike))
    }

    fn in_master(&self, shape: &Shape) -> Option<&Shape> {
        let of_layout = self.in_layout(shape).and_then(Shape::kind);
        let wanted = general(of_layout.or(shape.kind())?);
        let mut shapes = self.master.iter().flat_map(|master| &master.shapes);
        shapes.find(|shape| shape.kind().is_some_and(|kind| general(kind) == wanted))
    }
}

/// A master has one title and one body, which all kinds of content take after.
fn general(kind: &str) -> &str {
    match kind {
        "ctrTitle" | "title" => "title",
        "ftr" | "hdr" | "dt" | "sldNum" => kind,
        _ => "body",
    }
}
