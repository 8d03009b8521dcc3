//! Reads the shapes of a slide, a layout, a master or a page of notes.

use super::lists::{Bullet, ListStyle};
use super::shape::{Area, Paragraph, Placeholder, Run, Shape, Table};
use crate::elements::{Element, Elements, Piece};
use crate::error::{Error, ErrorKind};
use crate::limits::Bounds;

/// The shapes of one slide. A hostile slide has millions of empty ones.
const MAX_SHAPES: usize = 50_000;

/// How a group maps the places of its shapes to those around it.
#[derive(Clone, Copy, Default)]
struct Group {
    outer: Area,
    inner: Area,
}

/// A part with its shapes.
#[derive(Default)]
pub struct Part {
    pub shapes: Vec<Shape>,
    /// The bullets of titles, bodies and other text, of a master.
    pub titles: ListStyle,
    pub bodies: ListStyle,
    pub is_hidden: bool,
}

pub fn part(source: &str, bounds: Bounds<'_>) -> Result<Part, Error> {
    let mut parser = Parser::default();
    let mut elements = Elements::new(source, bounds);
    while let Some(piece) = elements.next()? {
        match piece {
            Piece::Open(element) => {
                if parser.open(&element) == Next::Skip {
                    elements.skip()?;
                }
            }
            Piece::Close(name) => parser.close(&name),
            Piece::Words(words) => parser.words(&words),
        }
        if parser.part.shapes.len() > MAX_SHAPES {
            let message =
                format!("There are more than {MAX_SHAPES} shapes on a slide of this presentation, the limit");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        if parser.cells > bounds.limits.cells {
            return Err(bounds.limits.too_many_cells());
        }
    }
    Ok(parser.part)
}

#[derive(PartialEq, Eq)]
enum Next {
    Read,
    Skip,
}

/// Whose bullets the elements that follow describe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Styled {
    Shape,
    Titles,
    Bodies,
    /// Text that has none by itself.
    Others,
}

#[derive(Default)]
struct Parser {
    part: Part,
    groups: Vec<Group>,
    /// How many groups there were that are in no other one.
    outermost: usize,
    shape: Option<Shape>,
    paragraph: Option<Paragraph>,
    /// The style whose levels are being read, and the level.
    styled: Option<(Styled, Option<usize>)>,
    is_in_properties: bool,
    is_in_place: bool,
    in_text: bool,
    /// Fields that are open, such as the number of the slide. Their values are not read.
    fields: usize,
    link: Option<String>,
    cells: usize,
}

impl Parser {
    fn open(&mut self, element: &Element<'_>) -> Next {
        match element.name() {
            // It repeats a drawing for old programs. A sound or a timing has no words.
            "Fallback" | "timing" | "transition" => return Next::Skip,
            "sld" => {
                self.part.is_hidden = matches!(element.attribute("show").as_deref(), Some("0" | "false"));
            }
            "grpSp" => {
                self.outermost += usize::from(self.groups.is_empty());
                self.groups.push(Group::default());
            }
            "sp" | "pic" | "graphicFrame" | "cxnSp" => {
                self.end_shape();
                self.shape = Some(Shape::default());
            }
            "xfrm" => self.is_in_place = true,
            "off" | "ext" | "chOff" | "chExt" if self.is_in_place => self.place(element),
            "cNvPr" => {
                if let Some(shape) = &mut self.shape {
                    shape.description = element.attribute("descr").unwrap_or_default();
                }
            }
            "ph" => {
                if let Some(shape) = &mut self.shape {
                    shape.placeholder = Some(Placeholder {
                        kind: element.attribute("type").unwrap_or_default(),
                        index: element.attribute("idx").unwrap_or_default(),
                    });
                }
            }
            "titleStyle" => self.styled = Some((Styled::Titles, None)),
            "bodyStyle" => self.styled = Some((Styled::Bodies, None)),
            "otherStyle" => self.styled = Some((Styled::Others, None)),
            "lstStyle" => self.styled = Some((Styled::Shape, None)),
            // The preview of an embedded document is not read.
            "oleObj" | "chart" | "relIds" | "blip" => return self.relate(element),
            _ => self.open_text(element),
        }
        Next::Read
    }

    fn open_text(&mut self, element: &Element<'_>) {
        match element.name() {
            "tbl" => {
                if let Some(shape) = &mut self.shape {
                    shape.table = Some(Table::default());
                }
            }
            "tr" => {
                self.cells += 1;
                if let Some(table) = self.table() {
                    table.rows.push(Vec::new());
                }
            }
            "tc" => {
                self.cells += 1;
                if let Some(row) = self.table().and_then(|table| table.rows.last_mut()) {
                    row.push(Vec::new());
                }
            }
            "p" => self.paragraph = Some(Paragraph::default()),
            "pPr" => {
                self.is_in_properties = true;
                if let Some(paragraph) = &mut self.paragraph {
                    let level = element.attribute("lvl").and_then(|level| level.parse().ok());
                    paragraph.level = level.unwrap_or(0);
                }
            }
            "fld" if self.fields > 0 || is_of_slide(element) => self.fields += 1,
            "hlinkClick" => self.click(element),
            "br" => self.add(Run { is_break: true, ..Run::default() }),
            "t" => self.in_text = true,
            name => {
                if let Some((_, level)) = &mut self.styled
                    && let Some(named) = ListStyle::level_of(name)
                {
                    *level = Some(named);
                } else if let Some(bullet) = Bullet::of(element) {
                    self.bullet(bullet);
                }
            }
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "sp" | "pic" | "graphicFrame" | "cxnSp" => self.end_shape(),
            "grpSp" => _ = self.groups.pop(),
            "xfrm" => self.is_in_place = false,
            "titleStyle" | "bodyStyle" | "otherStyle" | "lstStyle" => self.styled = None,
            "pPr" => self.is_in_properties = false,
            "fld" => self.fields = self.fields.saturating_sub(1),
            "t" => self.in_text = false,
            "r" => self.link = None,
            "p" => self.end_paragraph(),
            _ => {}
        }
    }

    fn words(&mut self, words: &str) {
        if self.in_text && self.fields == 0 {
            self.add(Run { words: words.to_owned(), link: self.link.clone(), is_break: false });
        }
    }

    fn add(&mut self, run: Run) {
        let Some(paragraph) = &mut self.paragraph else { return };
        match paragraph.runs.last_mut() {
            Some(last) if last.is_break && run.is_break => {}
            Some(last) if !last.is_break && !run.is_break && last.link == run.link => {
                last.words.push_str(&run.words);
            }
            _ => paragraph.runs.push(run),
        }
    }

    fn table(&mut self) -> Option<&mut Table> {
        self.shape.as_mut()?.table.as_mut()
    }

    fn end_paragraph(&mut self) {
        let Some(paragraph) = self.paragraph.take().filter(|paragraph| !paragraph.runs.is_empty()) else {
            return;
        };
        let Some(shape) = &mut self.shape else { return };
        match &mut shape.table {
            Some(table) => {
                if let Some(cell) = table.rows.last_mut().and_then(|row| row.last_mut()) {
                    cell.push(paragraph);
                }
            }
            None => shape.paragraphs.push(paragraph),
        }
    }

    fn end_shape(&mut self) {
        let Some(mut shape) = self.shape.take().filter(|shape| !shape.is_empty()) else { return };
        shape.group = (!self.groups.is_empty()).then_some(self.outermost);
        if let Some(area) = &mut shape.area {
            for group in self.groups.iter().rev() {
                *area = group.outside(*area);
            }
        }
        self.part.shapes.push(shape);
    }

    fn bullet(&mut self, bullet: Bullet) {
        match (self.styled, &mut self.paragraph) {
            (Some((styled, Some(level))), _) => match styled {
                Styled::Titles => self.part.titles.set(level, bullet),
                Styled::Bodies => self.part.bodies.set(level, bullet),
                Styled::Shape => {
                    if let Some(shape) = &mut self.shape {
                        shape.styles.set(level, bullet);
                    }
                }
                Styled::Others => {}
            },
            (None, Some(paragraph)) if self.is_in_properties => paragraph.bullet = Some(bullet),
            _ => {}
        }
    }

    /// A link of the words of a run, or of the shape.
    fn click(&mut self, element: &Element<'_>) {
        let id = element.prefixed_attribute("id").filter(|id| !id.is_empty());
        if self.paragraph.is_some() {
            self.link = id;
        } else if let Some(shape) = &mut self.shape {
            shape.link = id;
        }
    }

    fn relate(&mut self, element: &Element<'_>) -> Next {
        let id = match element.name() {
            "relIds" => element.prefixed_attribute("dm"),
            "blip" => element.prefixed_attribute("embed"),
            _ => element.prefixed_attribute("id"),
        };
        if let Some((shape, id)) = self.shape.as_mut().zip(id) {
            shape.related.push(id);
        }
        if element.name() == "oleObj" { Next::Skip } else { Next::Read }
    }

    fn place(&mut self, element: &Element<'_>) {
        let number =
            |name: &str| element.attribute(name).and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0);
        let area = match (&mut self.shape, self.groups.last_mut()) {
            (Some(shape), _) => shape.area.get_or_insert_default(),
            (None, Some(group)) if element.name().starts_with("ch") => &mut group.inner,
            (None, Some(group)) => &mut group.outer,
            (None, None) => return,
        };
        if element.name().ends_with("ff") {
            (area.left, area.top) = (number("x"), number("y"));
        } else {
            (area.width, area.height) = (number("cx"), number("cy"));
        }
    }
}

/// Whether the value of a field changes from slide to slide or from day to day.
fn is_of_slide(field: &Element<'_>) -> bool {
    field.attribute("type").is_some_and(|kind| kind == "slidenum" || kind.starts_with("datetime"))
}

impl Group {
    /// The place of a shape of the group, as seen from outside of the group.
    fn outside(self, area: Area) -> Area {
        let scale = |outer: f64, inner: f64| if inner > 0.0 { outer / inner } else { 1.0 };
        let (x, y) = (scale(self.outer.width, self.inner.width), scale(self.outer.height, self.inner.height));
        Area {
            left: self.outer.left + (area.left - self.inner.left) * x,
            top: self.outer.top + (area.top - self.inner.top) * y,
            width: area.width * x,
            height: area.height * y,
        }
    }
}
