//! What lies on a page beside its text: values of form fields, links, and notes of readers.

use std::collections::HashMap;

use landfall_core::text::Area;
use pdf_oxide::PdfDocument;
use pdf_oxide::object::Object;

use super::layout::glyphs::{Paper, TextField};
use super::outline;

/// The most annotations of one page.
const MAX_ANNOTATIONS: usize = 5_000;
/// The most characters of a value or a note.
const MAX_CHARACTERS: usize = 20_000;
/// How far a field inherits from the fields above it.
const MAX_PARENTS: usize = 8;
/// Flags of annotations and fields.
const HIDDEN: i64 = 2;
const PASSWORD: i64 = 1 << 13;

type Dictionary = HashMap<String, Object>;

#[derive(Debug, Default)]
pub struct Annotations {
    pub fields: Vec<TextField>,
    pub links: Vec<Link>,
    pub notes: Vec<String>,
}

/// An area that leads to an address.
#[derive(Debug)]
pub struct Link {
    pub area: Area,
    pub target: String,
}

pub fn of_page(document: &PdfDocument, page: usize, paper: Paper) -> Annotations {
    let mut found = Annotations::default();
    let page = document.get_page(page).ok();
    let list = page.as_ref().and_then(Object::as_dict).and_then(|page| member(document, page, "Annots"));
    let Some(Object::Array(list)) = list else { return found };
    for annotation in list.iter().take(MAX_ANNOTATIONS) {
        let Ok(annotation) = document.resolve_object(annotation) else { continue };
        if let Some(annotation) = annotation.as_dict() {
            found.add(document, annotation, paper);
        }
    }
    found
}

impl Annotations {
    fn add(&mut self, document: &PdfDocument, annotation: &Dictionary, paper: Paper) {
        let flags = annotation.get("F").and_then(Object::as_integer).unwrap_or(0);
        let kind = member(document, annotation, "Subtype");
        let Some(kind) = kind.as_ref().and_then(Object::as_name) else { return };
        let Some([x0, y0, x1, y1]) = rectangle(document, annotation) else { return };
        if flags & HIDDEN != 0 {
            return;
        }
        let field = |text: String| TextField { x0, y0, x1, y1, text };
        match kind {
            "Link" => {
                let target = target(document, annotation);
                self.links.extend(target.map(|target| Link { area: paper.area(x0, y0, x1, y1), target }));
            }
            "Widget" => self.fields.extend(value(document, annotation).map(field)),
            "FreeText" => self.fields.extend(text(document, annotation, "Contents").map(field)),
            "Text" | "Highlight" | "Underline" | "StrikeOut" | "Squiggly" | "Caret" | "Ink" | "Square"
            | "Circle" | "Line" | "Polygon" | "PolyLine" | "Stamp" => {
                self.notes.extend(text(document, annotation, "Contents"));
            }
            _ => {}
        }
    }
}

fn rectangle(document: &PdfDocument, annotation: &Dictionary) -> Option<[f32; 4]> {
    let Object::Array(sides) = member(document, annotation, "Rect")? else { return None };
    let mut rectangle = [0.0; 4];
    for (side, object) in rectangle.iter_mut().zip(&sides) {
        *side = match document.resolve_object(object).ok()? {
            #[expect(clippy::cast_precision_loss, reason = "a place on a page")]
            Object::Integer(number) => number as f32,
            #[expect(clippy::cast_possible_truncation, reason = "a place on a page")]
            Object::Real(number) => number as f32,
            _ => return None,
        };
    }
    let [x0, y0, x1, y1] = rectangle;
    let is_placed = sides.len() == 4 && rectangle.iter().all(|side| side.is_finite());
    is_placed.then(|| [x0.min(x1), y0.min(y1), x0.max(x1), y0.max(y1)])
}

fn target(document: &PdfDocument, annotation: &Dictionary) -> Option<String> {
    let action = member(document, annotation, "A")?;
    text(document, action.as_dict()?, "URI")
}

/// What a form field shows.
fn value(document: &PdfDocument, widget: &Dictionary) -> Option<String> {
    let kind = inherited(document, widget, "FT")?;
    let flags = inherited(document, widget, "Ff").and_then(|flags| flags.as_integer()).unwrap_or(0);
    match kind.as_name()? {
        "Tx" if flags & PASSWORD != 0 => None,
        "Tx" | "Ch" => match inherited(document, widget, "V")? {
            Object::Array(values) => {
                let values = values.iter().filter_map(|value| document.resolve_object(value).ok());
                let values: Vec<String> = values.filter_map(|value| string(&value)).collect();
                (!values.is_empty()).then(|| values.join(", "))
            }
            value => string(&value),
        },
        "Btn" => {
            let state = member(document, widget, "AS")?;
            (state.as_name()? != "Off").then(|| "☒".to_owned())
        }
        _ => None,
    }
}

fn inherited(document: &PdfDocument, field: &Dictionary, name: &str) -> Option<Object> {
    let mut field = field.clone();
    for _ in 0..MAX_PARENTS {
        if let Some(found) = member(document, &field, name) {
            return Some(found);
        }
        let parent = member(document, &field, "Parent")?;
        field.clone_from(parent.as_dict()?);
    }
    None
}

fn text(document: &PdfDocument, dictionary: &Dictionary, name: &str) -> Option<String> {
    string(&member(document, dictionary, name)?)
}

fn string(value: &Object) -> Option<String> {
    let Object::String(bytes) = value else { return None };
    let text: String = outline::decode_lines(bytes).chars().take(MAX_CHARACTERS).collect();
    (!text.trim().is_empty()).then_some(text)
}

fn member(document: &PdfDocument, dictionary: &Dictionary, name: &str) -> Option<Object> {
    document.resolve_object(dictionary.get(name)?).ok().filter(|object| !object.is_null())
}
