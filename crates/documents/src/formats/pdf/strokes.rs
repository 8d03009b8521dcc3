//! The straight lines that a page draws, which are those of its tables.
//!
//! The library's own call parses each instruction again from the last one that it knew, and took minutes for a page with
//! thousands of lines. Here only the instructions that matter are read, once, and a page with too many lines is left early.

use std::collections::HashMap;

use pdf_oxide::PdfDocument;
use pdf_oxide::object::Object;

use super::layout::path::Path;
use super::layout::rules::{MAX_RULES, Rule};
use super::streams::Streams;

/// Drawings in one another, and all bytes of instructions of one page.
const MAX_DEPTH: usize = 6;
const MAX_BYTES: usize = 64 << 20;
/// What a drawing counts beside its bytes: to find and unpack one takes time, also if it is empty.
const BYTES_OF_DRAWING: usize = 4 << 10;
/// States that are kept while another one is in use.
const MAX_STATES: usize = 256;
/// The most operands of an instruction that is read.
const MAX_OPERANDS: usize = 6;

/// The level and upright lines of a page, in the coordinates of the file. A page with too many has none: it is a drawing.
pub fn of_page(document: &PdfDocument, streams: &Streams, page: usize, instructions: &[u8]) -> Vec<Rule> {
    let page = document.get_page(page).ok();
    let resources = page.as_ref().and_then(|page| page.as_dict()?.get("Resources"));
    let mut strokes = Strokes { document, streams, rules: Vec::new(), bytes: 0 };
    let is_whole = strokes.run(instructions, resources, Matrix::NONE, MAX_DEPTH);
    if is_whole { strokes.rules } else { Vec::new() }
}

#[derive(Debug, Clone, Copy)]
struct Matrix([f32; 6]);

impl Matrix {
    const NONE: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// This one, and then the other.
    fn then(self, Self(other): Self) -> Self {
        let Self(this) = self;
        Self([
            this[0] * other[0] + this[1] * other[2],
            this[0] * other[1] + this[1] * other[3],
            this[2] * other[0] + this[3] * other[2],
            this[2] * other[1] + this[3] * other[3],
            this[4] * other[0] + this[5] * other[2] + other[4],
            this[4] * other[1] + this[5] * other[3] + other[5],
        ])
    }

    fn place(self, x: f32, y: f32) -> (f32, f32) {
        let Self(this) = self;
        (this[0] * x + this[2] * y + this[4], this[1] * x + this[3] * y + this[5])
    }
}

struct Strokes<'a> {
    document: &'a PdfDocument,
    streams: &'a Streams,
    rules: Vec<Rule>,
    bytes: usize,
}

impl Strokes<'_> {
    /// Returns whether there are not too many lines.
    fn run(&mut self, content: &[u8], resources: Option<&Object>, matrix: Matrix, depth: usize) -> bool {
        self.bytes += content.len() + BYTES_OF_DRAWING;
        if self.bytes > MAX_BYTES {
            return false;
        }
        let (mut matrix, mut states) = (matrix, Vec::new());
        let mut path = Path::default();
        let mut tokens = Tokens::new(content);
        while let Some(instruction) = tokens.next_instruction() {
            let numbers = &tokens.numbers;
            match (instruction, numbers.as_slice()) {
                (b"q", _) if states.len() < MAX_STATES => states.push(matrix),
                (b"Q", _) => matrix = states.pop().unwrap_or(matrix),
                (b"cm", given) => {
                    matrix = given.try_into().map_or(matrix, |given| Matrix(given).then(matrix));
                }
                (b"m", &[.., x, y]) => path.begin(matrix.place(x, y)),
                (b"l", &[.., x, y]) => path.line_to(matrix.place(x, y)),
                (b"c" | b"v" | b"y", &[.., x, y]) => path.curve_to(matrix.place(x, y)),
                (b"h", _) => path.close(),
                (b"re", &[.., x, y, width, height]) => {
                    path.rectangle(
                        [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
                            .map(|(x, y)| matrix.place(x, y)),
                    );
                }
                (b"s" | b"b" | b"b*", _) => {
                    path.close();
                    path.draw(&mut self.rules);
                }
                (b"S" | b"f" | b"F" | b"f*" | b"B" | b"B*", _) => path.draw(&mut self.rules),
                (b"n", _) => path = Path::default(),
                (b"Do", _) if depth > 0 => {
                    let form =
                        tokens.name.and_then(|name| form(self.document, self.streams, resources, name));
                    if let Some((form, content, inner)) = form {
                        let own = form.as_dict().and_then(|form| form.get("Resources")).cloned();
                        if !self.run(&content, own.as_ref().or(resources), inner.then(matrix), depth - 1) {
                            return false;
                        }
                    }
                }
                _ => {}
            }
            tokens.numbers.clear();
            if self.rules.len() > MAX_RULES || path.is_too_long() {
                return false;
            }
        }
        true
    }
}

/// A drawing by its name, with its instructions and its matrix.
fn form(
    document: &PdfDocument,
    streams: &Streams,
    resources: Option<&Object>,
    name: &[u8],
) -> Option<(Object, Vec<u8>, Matrix)> {
    let resolved = |object: &Object| document.resolve_object(object).ok();
    let resources = resolved(resources?)?;
    let drawings = resolved(resources.as_dict()?.get("XObject")?)?;
    let number = drawings.as_dict()?.get(std::str::from_utf8(name).ok()?)?.as_reference()?;
    let form = document.load_object(number).ok()?;
    let dictionary: &HashMap<String, Object> = form.as_dict()?;
    if dictionary.get("Subtype").and_then(Object::as_name) != Some("Form") {
        return None;
    }
    let mut matrix = Matrix::NONE;
    if let Some(Object::Array(numbers)) = dictionary.get("Matrix").and_then(resolved) {
        for (at, number) in matrix.0.iter_mut().zip(&numbers) {
            *at = match resolved(number)? {
                #[expect(clippy::cast_precision_loss, reason = "a place on a page")]
                Object::Integer(number) => number as f32,
                #[expect(clippy::cast_possible_truncation, reason = "a place on a page")]
                Object::Real(number) => number as f32,
                _ => return None,
            };
        }
    }
    let content = streams.unpack(&form, number)?;
    Some((form, content, matrix))
}

/// The instructions of a page, with the numbers and the last name before each.
struct Tokens<'a> {
    content: &'a [u8],
    at: usize,
    /// The last numbers.
    numbers: Vec<f32>,
    name: Option<&'a [u8]>,
}

impl<'a> Tokens<'a> {
    fn new(content: &'a [u8]) -> Self {
        Self { content, at: 0, numbers: Vec::with_capacity(MAX_OPERANDS + 1), name: None }
    }

    fn next_instruction(&mut self) -> Option<&'a [u8]> {
        loop {
            match *self.content.get(self.at)? {
                b'(' => self.skip_string(),
                b'%' => self.skip_to(|byte| matches!(byte, b'\r' | b'\n')),
                b'<' if self.content.get(self.at + 1) != Some(&b'<') => self.skip_to(|byte| byte == b'>'),
                b'/' => {
                    self.at += 1;
                    self.name = Some(self.regular());
                }
                b'0'..=b'9' | b'+' | b'-' | b'.' => {
                    let number = std::str::from_utf8(self.regular()).ok().and_then(|text| text.parse().ok());
                    if self.numbers.len() == MAX_OPERANDS {
                        self.numbers.remove(0);
                    }
                    self.numbers.push(number.filter(|number: &f32| number.is_finite()).unwrap_or(0.0));
                }
                byte if is_regular(byte) => {
                    let word = self.regular();
                    if word == b"ID" {
                        self.skip_picture();
                    } else {
                        return Some(word);
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    fn regular(&mut self) -> &'a [u8] {
        let rest = &self.content[self.at..];
        let length = rest.iter().position(|byte| !is_regular(*byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn skip_to(&mut self, is_end: impl Fn(u8) -> bool) {
        let rest = &self.content[self.at..];
        self.at += rest.iter().position(|byte| is_end(*byte)).unwrap_or(rest.len());
    }

    fn skip_string(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.content.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'(' => depth += 1,
                b')' if depth == 1 => return,
                b')' => depth -= 1,
                _ => {}
            }
        }
    }

    /// A picture among the instructions ends with the word `EI`.
    fn skip_picture(&mut self) {
        let is_space = |at: usize| self.content.get(at).is_none_or(u8::is_ascii_whitespace);
        let ends = memchr::memmem::find_iter(&self.content[self.at..], b"EI").map(|end| self.at + end);
        let end = ends.filter(|end| is_space(end - 1) && is_space(end + 2)).map(|end| end + 2).next();
        self.at = end.unwrap_or(self.content.len());
    }
}

fn is_regular(byte: u8) -> bool {
    !matches!(
        byte,
        0 | b'\t'
            | b'\n'
            | 12
            | b'\r'
            | b' '
            | b'('
            | b')'
            | b'<'
            | b'>'
            | b'['
            | b']'
            | b'{'
            | b'}'
            | b'/'
            | b'%'
    )
}
