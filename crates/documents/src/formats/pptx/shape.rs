//! The shapes of a slide, as they are read from its XML.

use super::lists::{Bullet, ListStyle};

/// A shape with what is in it.
#[derive(Debug, Default)]
pub struct Shape {
    /// The kind of placeholder that it fills; `None` if it is no placeholder.
    pub placeholder: Option<Placeholder>,
    pub area: Option<Area>,
    /// The number of the outermost group that it is in. Its shapes are read together.
    pub group: Option<usize>,
    /// The description of a picture or a drawing.
    pub description: String,
    pub paragraphs: Vec<Paragraph>,
    pub styles: ListStyle,
    pub table: Option<Table>,
    /// The ids of charts, diagrams, pictures and embedded documents.
    pub related: Vec<String>,
    /// Where a click on the shape leads, by the id of the link.
    pub link: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placeholder {
    /// Empty for the usual kind, which takes any content.
    pub kind: String,
    pub index: String,
}

/// Where a shape is on its slide.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

#[derive(Debug, Default)]
pub struct Paragraph {
    pub level: usize,
    pub bullet: Option<Bullet>,
    pub runs: Vec<Run>,
}

/// Words, with the id of the link that they are. A line break is a run of its own.
#[derive(Debug, Default)]
pub struct Run {
    pub words: String,
    pub link: Option<String>,
    pub is_break: bool,
}

/// The rows of cells, each with its paragraphs. A cell that another one covers is there and empty.
#[derive(Debug, Default)]
pub struct Table {
    pub rows: Vec<Vec<Vec<Paragraph>>>,
}

impl Shape {
    pub fn is_title(&self) -> bool {
        self.kind().is_some_and(|kind| matches!(kind, "title" | "ctrTitle"))
    }

    /// Whether there is nothing to read in it, and it says nothing about others.
    pub fn is_empty(&self) -> bool {
        self.placeholder.is_none()
            && self.paragraphs.is_empty()
            && self.table.is_none()
            && self.related.is_empty()
            && self.description.is_empty()
    }

    pub fn kind(&self) -> Option<&str> {
        self.placeholder.as_ref().map(|placeholder| placeholder.kind.as_str())
    }

    /// The words without their structure.
    pub fn words(&self) -> String {
        let runs = self.paragraphs.iter().flat_map(|paragraph| {
            let words = paragraph.runs.iter().map(|run| if run.is_break { " " } else { run.words.as_str() });
            words.chain([" "])
        });
        runs.collect::<String>().trim().to_owned()
    }
}

/// The shapes in the order in which they are read: that of the file, unless a shape lies above one that comes before
/// it. More shapes than this stay in their order.
const MAX_ORDERED: usize = 300;

pub fn in_reading_order(shapes: Vec<Shape>) -> Vec<Shape> {
    if shapes.len() > MAX_ORDERED {
        return shapes;
    }
    // A group with its shapes, or a shape of no group.
    let mut units: Vec<Vec<Shape>> = Vec::new();
    for shape in shapes {
        match units.last_mut().filter(|unit| shape.group.is_some() && unit[0].group == shape.group) {
            Some(unit) => unit.push(shape),
            None => units.push(vec![shape]),
        }
    }
    let of_unit = |unit: &Vec<Shape>| unit.iter().map(|shape| shape.area).reduce(around).flatten();
    let units = ordered(units, of_unit);
    units.into_iter().flat_map(|unit| ordered(unit, |shape| shape.area)).collect()
}

fn ordered<T>(mut left: Vec<T>, area: impl Fn(&T) -> Option<Area>) -> Vec<T> {
    let mut areas: Vec<Option<Area>> = left.iter().map(area).collect();
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        // The first one with none above it. Nothing lies above the uppermost one, so there always is one.
        let has_none_above = |at: &usize| {
            !areas.iter().enumerate().any(|(other, area)| other != *at && is_above(*area, areas[*at]))
        };
        let next = (0..left.len()).find(has_none_above).unwrap_or(0);
        areas.remove(next);
        ordered.push(left.remove(next));
    }
    ordered
}

/// The area around both.
fn around(a: Option<Area>, b: Option<Area>) -> Option<Area> {
    let (Some(a), Some(b)) = (a, b) else { return a.or(b) };
    let (left, top) = (a.left.min(b.left), a.top.min(b.top));
    let right = (a.left + a.width).max(b.left + b.width);
    let bottom = (a.top + a.height).max(b.top + b.height);
    Some(Area { left, top, width: right - left, height: bottom - top })
}

/// Whether an area lies wholly above another one, in the same column.
fn is_above(upper: Option<Area>, lower: Option<Area>) -> bool {
    let (Some(a), Some(b)) = (upper, lower) else { return false };
    let overlap = (a.left + a.width).min(b.left + b.width) - a.left.max(b.left);
    let narrower = a.width.min(b.width);
    a.top < b.top && a.top + a.height <= b.top + 0.1 * b.height && overlap > 0.5 * narrower
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(areas: &[(f64, f64, f64, f64)]) -> Vec<String> {
        let shapes = areas.iter().enumerate().map(|(number, (left, top, width, height))| Shape {
            area: Some(Area { left: *left, top: *top, width: *width, height: *height }),
            description: number.to_string(),
            ..Shape::default()
        });
        in_reading_order(shapes.collect()).into_iter().map(|shape| shape.description).collect()
    }

    #[test]
    fn a_shape_above_another_one_is_read_first_and_columns_stay_together() {
        assert_eq!(order(&[(0.0, 50.0, 100.0, 10.0), (0.0, 0.0, 100.0, 10.0)]), ["1", "0"]);
        let columns = [
            (0.0, 0.0, 40.0, 10.0),
            (0.0, 50.0, 40.0, 10.0),
            (60.0, 0.0, 40.0, 10.0),
            (60.0, 50.0, 40.0, 10.0),
        ];
        assert_eq!(order(&columns), ["0", "1", "2", "3"]);
        // A banner that was added last.
        let banner = [(0.0, 50.0, 40.0, 10.0), (60.0, 50.0, 40.0, 10.0), (0.0, 0.0, 100.0, 10.0)];
        assert_eq!(order(&banner), ["2", "0", "1"]);
        // One in front of the other.
        assert_eq!(order(&[(0.0, 0.0, 100.0, 100.0), (10.0, 10.0, 20.0, 20.0)]), ["0", "1"]);
    }

    #[test]
    fn the_shapes_of_a_group_are_read_together() {
        let shape = |name: &str, left, top, group| Shape {
            area: Some(Area { left, top, width: 40.0, height: 10.0 }),
            description: name.to_owned(),
            group,
            ..Shape::default()
        };
        // Only one of the two shapes of the group is below the table.
        let shapes = vec![
            shape("right", 60.0, 50.0, Some(1)),
            shape("left", 0.0, 50.0, Some(1)),
            shape("table", 0.0, 30.0, None),
        ];
        let names: Vec<String> =
            in_reading_order(shapes).into_iter().map(|shape| shape.description).collect();
        assert_eq!(names, ["table", "right", "left"]);
    }

    #[test]
    fn shapes_without_a_sensible_place_stay_where_they_are() {
        let nan = f64::NAN;
        assert_eq!(order(&[(nan, nan, nan, nan), (0.0, -5.0, -1.0, f64::INFINITY)]), ["0", "1"]);
    }
}
