//! One paragraph of a DOCX: its properties, its words, and what is anchored in it.

use super::styles::{heading_level, is_monospaced, is_on};
use crate::elements::{Element, Elements, Piece};
use crate::error::Error;
use crate::flow::Gap;
use crate::formats::fields::{hyperlink, is_page_number};
use crate::formats::inline::Inline;
use crate::formats::office::math;
use crate::formats::symbols;

/// Fields may be nested this deep. Deeper ones are read as words.
const MAX_FIELDS: usize = 32;

#[derive(Default)]
pub struct Paragraph<'s> {
    pub style: Option<String>,
    pub list: Option<String>,
    pub list_level: Option<usize>,
    pub heading: Option<u8>,
    /// Whether the end of the paragraph is deleted, so that it goes on in the next one.
    pub goes_on: bool,
    pub content: Vec<Inline>,
    pub anchored: Vec<Anchored<'s>>,
    /// Whether all its words are in a font of equally wide letters; `None` without words.
    pub monospaced: Option<bool>,
    /// Whether it has the number of a page.
    pub has_page_number: bool,
}

/// What belongs to a paragraph and is written after it.
pub enum Anchored<'s> {
    TextBox(&'s str),
    /// A footnote or an endnote, by the kind of its part and its id.
    Note(&'static str, String),
    Comment(String),
    /// A picture, a chart, a diagram or an embedded document, by the id of its relation.
    Part(String),
}

/// The open fields. A field may span paragraphs.
#[derive(Default)]
pub struct Fields {
    open: Vec<Field>,
    /// Whether numbers of pages are left out, because they differ on each page.
    pub without_page_numbers: bool,
}

#[derive(Default)]
struct Field {
    instruction: String,
    has_result: bool,
    is_link: bool,
    is_page_number: bool,
}

/// What the open run looks like.
#[derive(Default)]
struct Run {
    is_hidden: bool,
    is_monospaced: Option<bool>,
}

impl<'s> Paragraph<'s> {
    /// Reads up to the end of the paragraph that was opened last. `address` finds where a link leads.
    pub fn read(
        elements: &mut Elements<'s>,
        fields: &mut Fields,
        address: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let mut paragraph = Self::default();
        let mut run = Run::default();
        // For each open hyperlink whether it leads anywhere.
        let mut links = Vec::new();
        let mut nested = 0_usize;
        let mut in_text = false;
        let mut in_instruction = false;
        while let Some(piece) = elements.next()? {
            match piece {
                Piece::Open(element) => match element.name() {
                    "p" => nested += 1,
                    "pPr" => paragraph.read_properties(elements)?,
                    "r" => run = Run::default(),
                    "rPr" => run.read_properties(elements)?,
                    "t" => in_text = true,
                    "instrText" => in_instruction = true,
                    "hyperlink" => {
                        let target = element.prefixed_attribute("id").and_then(|id| address(&id));
                        links.push(target.is_some());
                        paragraph.content.extend(target.map(Inline::BeginLink));
                    }
                    "fldChar" => fields.step(element.attribute("fldCharType").as_deref(), &mut paragraph),
                    "fldSimple" => {
                        fields.step(Some("begin"), &mut paragraph);
                        fields.instruct(&element.attribute("instr").unwrap_or_default());
                        fields.step(Some("separate"), &mut paragraph);
                    }
                    "oMathPara" => {
                        let latex = math::read(elements)?;
                        paragraph.content.push(Inline::Display(latex));
                    }
                    "oMath" => {
                        let latex = math::read(elements)?;
                        paragraph.content.push(Inline::Equation(latex));
                    }
                    "txbxContent" => paragraph.anchored.push(Anchored::TextBox(elements.take_inside()?)),
                    name if is_hidden(name) => elements.skip()?,
                    _ => paragraph.open(&element, &run, fields),
                },
                Piece::Close(name) => match name.as_str() {
                    "p" if nested == 0 => break,
                    "p" => nested -= 1,
                    "t" => in_text = false,
                    "instrText" => in_instruction = false,
                    "hyperlink" if links.pop() == Some(true) => paragraph.content.push(Inline::EndLink),
                    "fldSimple" => fields.step(Some("end"), &mut paragraph),
                    _ => {}
                },
                Piece::Words(words) if in_instruction => fields.instruct(&words),
                Piece::Words(words) if in_text => paragraph.words(&words, &run, fields),
                Piece::Words(_) => {}
            }
        }
        Ok(paragraph)
    }

    fn open(&mut self, element: &Element<'_>, run: &Run, fields: &Fields) {
        let id = |name: &str| element.prefixed_attribute(name);
        match element.name() {
            "tab" | "ptab" => self.content.push(Inline::Gap(Gap::Tab)),
            "br" | "cr" => self.content.push(Inline::Gap(Gap::Line)),
            "noBreakHyphen" => self.words("-", run, fields),
            "sym" => {
                let code = element.attribute("char").and_then(|code| u32::from_str_radix(&code, 16).ok());
                let font = element.attribute("font").unwrap_or_default();
                let character = code.and_then(|code| symbols::character(&font, code));
                self.words(&character.map(String::from).unwrap_or_default(), run, fields);
            }
            "footnoteReference" => {
                self.anchored.extend(id("id").map(|id| Anchored::Note("footnotes", id)));
            }
            "endnoteReference" => self.anchored.extend(id("id").map(|id| Anchored::Note("endnotes", id))),
            "commentReference" => self.anchored.extend(id("id").map(Anchored::Comment)),
            "docPr" => {
                let text = |name: &str| element.attribute(name).filter(|text| !text.trim().is_empty());
                self.content.extend(text("descr").or_else(|| text("title")).map(Inline::AltText));
            }
            "shape" => {
                let alt = element.attribute("alt").filter(|alt| !alt.trim().is_empty());
                self.content.extend(alt.map(Inline::AltText));
            }
            // The words of WordArt in the old way of drawing.
            "textpath" => self.words(&element.attribute("string").unwrap_or_default(), run, fields),
            "blip" => self.anchored.extend(id("embed").map(Anchored::Part)),
            "imagedata" | "chart" | "OLEObject" => self.anchored.extend(id("id").map(Anchored::Part)),
            "relIds" => self.anchored.extend(id("dm").map(Anchored::Part)),
            _ => {}
        }
    }

    fn words(&mut self, words: &str, run: &Run, fields: &Fields) {
        if run.is_hidden || fields.hide_words() {
            return;
        }
        if !words.trim().is_empty() {
            let so_far = self.monospaced.unwrap_or(true);
            // A run without a font of its own has that of the style, which the caller knows.
            self.monospaced = Some(so_far && run.is_monospaced == Some(true));
        }
        match self.content.last_mut() {
            Some(Inline::Words(last)) => last.push_str(words),
            _ => self.content.push(Inline::Words(words.to_owned())),
        }
    }

    fn read_properties(&mut self, elements: &mut Elements<'_>) -> Result<(), Error> {
        let mut depth = 1;
        while depth > 0 {
            match elements.next()? {
                Some(Piece::Open(element)) => {
                    let value = || element.attribute("val");
                    match element.name() {
                        "pPrChange" | "sectPr" | "tabs" | "rPrChange" => {
                            elements.skip()?;
                            continue;
                        }
                        "pStyle" => self.style = value(),
                        "numId" => self.list = value(),
                        "ilvl" => self.list_level = value().and_then(|level| level.parse().ok()),
                        "outlineLvl" => self.heading = value().map(|level| heading_level(&level)),
                        "del" | "moveFrom" => self.goes_on = true,
                        _ => {}
                    }
                    depth += 1;
                }
                Some(Piece::Close(_)) => depth -= 1,
                Some(Piece::Words(_)) => {}
                None => break,
            }
        }
        Ok(())
    }
}

impl Run {
    fn read_properties(&mut self, elements: &mut Elements<'_>) -> Result<(), Error> {
        let mut depth = 1;
        while depth > 0 {
            match elements.next()? {
                Some(Piece::Open(element)) => {
                    match element.name() {
                        "rPrChange" => {
                            elements.skip()?;
                            continue;
                        }
                        "vanish" => self.is_hidden = is_on(&element),
                        "rFonts" => self.is_monospaced = Some(is_monospaced(&element)),
                        _ => {}
                    }
                    depth += 1;
                }
                Some(Piece::Close(_)) => depth -= 1,
                Some(Piece::Words(_)) => {}
                None => break,
            }
        }
        Ok(())
    }
}

/// `Fallback` repeats a drawing for old programs. Deleted words are still in the file. `rt` says how a word is
/// pronounced.
pub fn is_hidden(element: &str) -> bool {
    matches!(element, "Fallback" | "del" | "moveFrom" | "sdtPr" | "rt" | "ffData" | "sectPr" | "tblPrChange")
}

impl Fields {
    fn hide_words(&self) -> bool {
        self.open.iter().any(|field| !field.has_result || field.is_page_number)
    }

    fn instruct(&mut self, instruction: &str) {
        const MOST: usize = 4_096;
        if let Some(field) = self.open.last_mut().filter(|field| field.instruction.len() < MOST) {
            field.instruction.push_str(instruction);
        }
    }

    /// A field begins, its result begins, or it ends.
    fn step(&mut self, step: Option<&str>, paragraph: &mut Paragraph<'_>) {
        match step {
            Some("begin") if self.open.len() < MAX_FIELDS => self.open.push(Field::default()),
            Some("separate") => {
                let without_page_numbers = self.without_page_numbers;
                let Some(field) = self.open.last_mut() else { return };
                field.has_result = true;
                if let Some(target) = hyperlink(&field.instruction) {
                    field.is_link = true;
                    paragraph.content.push(Inline::BeginLink(target));
                } else if without_page_numbers && is_page_number(&field.instruction) {
                    field.is_page_number = true;
                    paragraph.has_page_number = true;
                }
            }
            Some("end") if self.open.pop().is_some_and(|field| field.is_link) => {
                paragraph.content.push(Inline::EndLink);
            }
            _ => {}
        }
    }
}
