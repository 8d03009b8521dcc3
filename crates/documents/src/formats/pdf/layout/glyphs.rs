//! The glyphs of a page, turned so that text runs to the right and lines go down.

use std::collections::BTreeMap;

use landfall_core::text::Area;
use pdf_oxide::layout::{FontWeight, TextChar};

use super::rules::Rule;
use super::{accents, turns};
use crate::formats::pdf::right_to_left::{self, Brackets};

/// Text that is turned by less than this, in degrees, is not turned: a scan is never quite straight.
const STRAIGHT: f32 = 8.0;
/// Directions that differ by less than a tenth of a degree are the same one.
const TENTHS: f32 = 10.0;
/// The sizes that a glyph may have. Others are errors of the document.
const SIZES: std::ops::RangeInclusive<f32> = 0.5..=2_000.0;

/// A field that is higher than this share of the size of its label has room for several lines.
const MAX_LINE: f32 = 2.5;
/// Pairs of a field and a glyph that are compared to find the labels of fields.
const MAX_COMPARED: usize = 50_000_000;

/// What the names of bold fonts contain, of italic ones, and of those whose glyphs all have one width.
const BOLD: &[&str] = &["Bold", "bold", "Black", "Heavy", "Demi", "-Medi", "CMBX", "SFBX", "CMSSBX"];
const ITALIC: &[&str] = &["Italic", "italic", "Oblique", "CMTI", "SFTI", "-Ital"];
const MONO: &[&str] = &["Mono", "Courier", "Consol", "CMTT", "SFTT", "Typewriter", "Menlo"];

/// A glyph in the coordinates of its sheet: `x` along the line, `y` down.
#[derive(Debug, Clone, Copy, Default)]
pub struct Glyph {
    pub character: char,
    pub x: f32,
    pub width: f32,
    /// Its baseline.
    pub y: f32,
    pub size: f32,
    pub bold: bool,
    pub italic: bool,
    pub mono: bool,
    /// How far the next glyph is from this one where the document does not move it.
    pub advance: f32,
}

impl Glyph {
    pub fn end(&self) -> f32 {
        self.x + self.width
    }
}

/// The glyphs of a page that are written in the same direction.
pub struct Sheet {
    pub frame: Frame,
    pub glyphs: Vec<Glyph>,
}

impl Sheet {
    /// Whether its columns and cells are read from the right.
    pub fn is_from_right(&self) -> bool {
        right_to_left::are_right_to_left(self.glyphs.iter().map(|glyph| glyph.character))
    }
}

/// The page: its visible box in the coordinates of the file, and how it is turned when it is shown.
#[derive(Debug, Clone, Copy)]
pub struct Paper {
    pub left: f32,
    pub bottom: f32,
    pub width: f32,
    pub height: f32,
    /// Clockwise, one of 0, 90, 180 and 270.
    pub turn: i32,
}

/// A text that is shown in a rectangle of the file, without a place for each glyph.
#[derive(Debug)]
pub struct TextField {
    pub x0: f32,
    pub y0: f32,
    pub x1: f32,
    pub y1: f32,
    pub text: String,
}

impl Paper {
    /// Where a rectangle of the file is on the page as it is shown.
    pub fn area(self, x0: f32, y0: f32, x1: f32, y1: f32) -> Area {
        let frame = Frame::new(to_f32(self.turn), self, false);
        let (ax, ay) = frame.on_sheet(x0, y0);
        let (bx, by) = frame.on_sheet(x1, y1);
        frame.area(ax.min(bx), ay.min(by), ax.max(bx), ay.max(by))
    }

    /// Whether a place is on the page, or just beside it. What is farther away is never seen.
    fn has(&self, x: f32, y: f32) -> bool {
        const BESIDE: f32 = 3.0;
        let is_within = |at: f32, length: f32| -BESIDE < at && at < length + BESIDE;
        is_within(x - self.left, self.width) && is_within(y - self.bottom, self.height)
    }
}

/// The direction of the text of a sheet.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    sin: f32,
    cos: f32,
    paper: Paper,
    /// Where the upper edge of the sheet is, and how high it is, in its own coordinates.
    top: f32,
    height: f32,
    is_upright: bool,
    pub brackets: Brackets,
}

impl Frame {
    /// `degrees` is the direction of the text in the file, counter-clockwise.
    fn new(degrees: f32, paper: Paper, is_vertical: bool) -> Self {
        let is = |other: f32| (degrees.rem_euclid(360.0) - other).abs() < 0.01;
        let (sin, cos) = match () {
            () if is(0.0) => (0.0, 1.0),
            () if is(90.0) => (1.0, 0.0),
            () if is(180.0) => (0.0, -1.0),
            () if is(270.0) => (-1.0, 0.0),
            () => degrees.to_radians().sin_cos(),
        };
        let is_upright = !is_vertical && is(to_f32(paper.turn));
        let mut frame =
            Self { sin, cos, paper, top: 0.0, height: 1.0, is_upright, brackets: Brackets::AsStored };
        let corners = [(0.0, 0.0), (paper.width, 0.0), (0.0, paper.height), (paper.width, paper.height)];
        let across = corners.map(|(x, y)| frame.on_sheet(paper.left + x, paper.bottom + y).1);
        frame.top = across.into_iter().fold(f32::INFINITY, f32::min);
        frame.height = across.into_iter().fold(f32::NEG_INFINITY, f32::max) - frame.top;
        frame
    }

    /// Whether text in both runs in the same direction.
    fn is_like(&self, other: &Self) -> bool {
        (self.sin - other.sin).abs() < 0.001
            && (self.cos - other.cos).abs() < 0.001
            && self.is_upright == other.is_upright
    }

    fn on_sheet(&self, x: f32, y: f32) -> (f32, f32) {
        (x * self.cos + y * self.sin, x * self.sin - y * self.cos)
    }

    fn to_file(self, x: f32, y: f32) -> (f32, f32) {
        (x * self.cos + y * self.sin, x * self.sin - y * self.cos)
    }

    /// A ruled line in the coordinates of the sheet, if it is level or upright there.
    pub fn turned(&self, rule: Rule) -> Option<Rule> {
        let (x0, y0) = self.on_sheet(rule.x0, rule.y0);
        let (x1, y1) = self.on_sheet(rule.x1, rule.y1);
        let rule = Rule { x0: x0.min(x1), x1: x0.max(x1), y0: y0.min(y1), y1: y0.max(y1) };
        (rule.x1 - rule.x0 < 2.0 || rule.y1 - rule.y0 < 2.0).then_some(rule)
    }

    pub fn is_turned(&self) -> bool {
        self.cos.abs() < 0.999
    }

    /// Where a rectangle of the sheet is on the page as it is shown.
    pub fn area(&self, left: f32, top: f32, right: f32, bottom: f32) -> Area {
        let corners = [(left, top), (right, top), (left, bottom), (right, bottom)].map(|(x, y)| {
            let (x, y) = self.to_file(x, y);
            let x = (x - self.paper.left) / self.paper.width;
            let y = 1.0 - (y - self.paper.bottom) / self.paper.height;
            match self.paper.turn {
                90 => (1.0 - y, x),
                180 => (1.0 - x, 1.0 - y),
                270 => (y, 1.0 - x),
                _ => (x, y),
            }
        });
        let least = |of: fn(&(f32, f32)) -> f32| corners.iter().map(of).fold(f32::INFINITY, f32::min);
        let most = |of: fn(&(f32, f32)) -> f32| corners.iter().map(of).fold(f32::NEG_INFINITY, f32::max);
        Area {
            left: parts(least(|corner| corner.0)),
            top: parts(least(|corner| corner.1)),
            right: parts(most(|corner| corner.0)),
            bottom: parts(most(|corner| corner.1)),
        }
    }

    /// Whether a line is so near the upper or lower edge of the page that it may be a running head.
    pub fn is_at_edge(&self, baseline: f32) -> bool {
        const EDGE: f32 = 0.17;
        let share = (baseline - self.top) / self.height;
        self.is_upright && !(EDGE..=1.0 - EDGE).contains(&share)
    }
}

fn parts(share: f32) -> u16 {
    let parts = (share.clamp(0.0, 1.0) * f32::from(Area::SIDE)).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to SIDE")]
    let parts = parts as u16;
    parts
}

/// The directions of writing on a page, the one with the most glyphs first.
pub fn sheets(glyphs: &[TextChar], paper: Paper) -> Vec<Sheet> {
    let mut turned: BTreeMap<i32, Vec<&TextChar>> = BTreeMap::new();
    for glyph in glyphs {
        if paper.has(glyph.origin_x, glyph.origin_y) && SIZES.contains(&glyph.font_size.abs()) {
            turned.entry(direction(glyph.rotation_degrees)).or_default().push(glyph);
        }
    }
    let mut sheets: Vec<Sheet> = Vec::new();
    for (tenths, glyphs) in turned {
        let degrees = to_f32(tenths) / TENTHS;
        let frame = turns::written(degrees, &glyphs, |degrees| Frame::new(degrees, paper, false));
        let mut glyphs = turns::in_frame_of_all(&glyphs, &frame);
        accents::join(&mut glyphs);
        let mut frame = frame;
        if is_vertical(&glyphs) {
            frame = Frame::new(degrees - 90.0, paper, true);
            glyphs = glyphs.iter().map(stood_up).collect();
        }
        frame.brackets = right_to_left::brackets(&mut glyphs);
        // The library may say two directions of what is one.
        match sheets.iter_mut().find(|sheet| sheet.frame.is_like(&frame)) {
            Some(sheet) => sheet.glyphs.extend(glyphs),
            None => sheets.push(Sheet { frame, glyphs }),
        }
    }
    sheets.sort_by_key(|sheet| std::cmp::Reverse(sheet.glyphs.len()));
    sheets
}

/// Adds the text of fields to the upright text of the page.
pub fn add_fields(sheets: &mut Vec<Sheet>, paper: Paper, fields: &[TextField]) {
    if fields.is_empty() {
        return;
    }
    let at = sheets.iter().position(|sheet| sheet.frame.is_upright).unwrap_or_else(|| {
        sheets.push(Sheet { frame: Frame::new(to_f32(paper.turn), paper, false), glyphs: Vec::new() });
        sheets.len() - 1
    });
    let Sheet { frame, glyphs } = &mut sheets[at];
    let drawn = glyphs.len();
    let looks_at_labels = drawn.saturating_mul(fields.len()) <= MAX_COMPARED;
    for field in fields {
        if paper.has(field.x0, field.y0) {
            add_field(field, frame, glyphs, if looks_at_labels { drawn } else { 0 });
        }
    }
}

/// The baseline of the label of a field of one line: of the nearest glyph beside it. There is none if the page draws something
/// in the field, such as a line of underscores: the value would be mixed with it.
fn baseline_beside(glyphs: &[Glyph], left: f32, right: f32, top: f32, bottom: f32) -> Option<f32> {
    let distance = |glyph: &Glyph| (left - glyph.end()).max(glyph.x - right);
    let is_level = |glyph: &&Glyph| {
        let middle = glyph.y - 0.3 * glyph.size;
        top < middle && middle < bottom && !glyph.character.is_whitespace()
    };
    let level = || glyphs.iter().filter(is_level);
    let nearest = level().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let has_one_line = bottom - top < MAX_LINE * nearest.size;
    (distance(nearest) > -1.0 && has_one_line).then_some(nearest.y)
}

/// The first `drawn` glyphs are those that the page draws itself.
fn add_field(field: &TextField, frame: &Frame, glyphs: &mut Vec<Glyph>, drawn: usize) {
    let (ax, ay) = frame.on_sheet(field.x0, field.y0);
    let (bx, by) = frame.on_sheet(field.x1, field.y1);
    let (left, right, top, bottom) = (ax.min(bx), ax.max(bx), ay.min(by), ay.max(by));
    let lines: Vec<&str> = field.text.lines().filter(|line| !line.trim().is_empty()).collect();
    let number = f32::from(u16::try_from(lines.len()).unwrap_or(u16::MAX));
    let step = ((bottom - top) / number.max(1.0)).clamp(2.0, 14.0);
    let size = 0.75 * step;
    let mut y = top + ((bottom - top) - step * number).max(0.0) / 2.0;
    // The value stands on the line of its label.
    if lines.len() == 1
        && let Some(baseline) = baseline_beside(&glyphs[..drawn], left, right, top, bottom)
    {
        y = baseline - 0.75 * step;
    }
    for line in lines {
        y += step;
        let length: f32 = line.chars().map(usual_width).sum::<f32>() * size;
        let scale = ((right - left) / length.max(0.1)).min(1.0);
        let mut x = left;
        for character in line.chars() {
            let width = usual_width(character) * size * scale;
            let y = y - 0.25 * step;
            glyphs.push(Glyph { character, x, width, y, size, ..Glyph::default() });
            x += width;
        }
    }
}

/// The direction in tenths of a degree.
fn direction(degrees: f32) -> i32 {
    if !degrees.is_finite() {
        return 0;
    }
    let quarter = (degrees / 90.0).round() * 90.0;
    let degrees = if (degrees - quarter).abs() < STRAIGHT { quarter } else { degrees };
    #[expect(clippy::cast_possible_truncation, reason = "an angle")]
    let tenths = (degrees * TENTHS).round() as i32;
    tenths.rem_euclid(3_600)
}

/// What the name of the last font says about its glyphs. Most glyphs have the same font as the one before.
#[derive(Default)]
pub struct Looks {
    name: String,
    bold: bool,
    italic: bool,
    mono: bool,
}

impl Looks {
    fn look_at(&mut self, name: &str) {
        if self.name != name {
            name.clone_into(&mut self.name);
            self.bold = BOLD.iter().any(|part| name.contains(part));
            self.italic = ITALIC.iter().any(|part| name.contains(part));
            self.mono = MONO.iter().any(|part| name.contains(part));
        }
    }
}

/// A glyph, or the letters of a ligature.
pub fn in_frame(
    glyph: &TextChar,
    frame: &Frame,
    is_turned: bool,
    looks: &mut Looks,
) -> impl Iterator<Item = Glyph> + use<> {
    let (x, y) = frame.on_sheet(glyph.origin_x, glyph.origin_y);
    looks.look_at(&glyph.font_name);
    let letters = match glyph.char {
        '\u{FB00}' => "ff",
        '\u{FB01}' => "fi",
        '\u{FB02}' => "fl",
        '\u{FB03}' => "ffi",
        '\u{FB04}' => "ffl",
        _ => "",
    };
    // A soft hyphen that is drawn is a hyphen.
    let character = if glyph.char == '\u{AD}' { '-' } else { glyph.char };
    let one = letters.is_empty().then_some(character);
    // The library knows no width of turned glyphs.
    let width = if is_turned { 0.0 } else { glyph.advance_width.abs() };
    let width =
        if letters.len() > 1 { width / f32::from(u8::try_from(letters.len()).unwrap_or(1)) } else { width };
    let whole = Glyph {
        character,
        x,
        width,
        y,
        size: glyph.font_size.abs(),
        bold: glyph.font_weight >= FontWeight::SemiBold || looks.bold,
        italic: glyph.is_italic || looks.italic,
        mono: looks.mono,
        advance: glyph.rendered_advance,
    };
    let mut x = whole.x;
    letters.chars().chain(one).map(move |character| {
        // Only the last letter of a ligature is followed by the next glyph.
        let letter = Glyph { character, x, advance: whole.advance - (x - whole.x), ..whole };
        x += width;
        letter
    })
}

pub fn usual_width(character: char) -> f32 {
    match character {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.26,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | ' ' | '-' | '/' => 0.33,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.85,
        'A'..='Z' => 0.68,
        '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' => 1.0,
        _ => 0.54,
    }
}

fn is_east_asian(character: char) -> bool {
    matches!(character, '\u{3000}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}')
}

/// Whether characters stand below one another rather than beside one another, as in vertical Chinese and Japanese.
fn is_vertical(glyphs: &[Glyph]) -> bool {
    let mut cells: Vec<(i32, i32)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for glyph in glyphs.iter().filter(|glyph| is_east_asian(glyph.character)) {
        // A third of the size is finer than the step to the next character, and coarser than errors.
        let step = glyph.size / 3.0;
        #[expect(clippy::cast_possible_truncation, reason = "a place on a page, in thirds of characters")]
        let cell = ((glyph.x / step).round() as i32, (glyph.y / step).round() as i32);
        cells.push(cell);
        *places.entry(cell).or_insert(0) += 1;
    }
    let near = |cell: (i32, i32), (dx, dy): (i32, i32)| {
        let steps = [(3, 0), (3, 1), (3, -1), (4, 0), (2, 0)];
        steps.iter().any(|(along, across)| {
            let moved = (cell.0 + dx * along + dy * across, cell.1 + dy * along + dx * across);
            places.contains_key(&moved)
        })
    };
    let beside = cells.iter().filter(|cell| near(**cell, (1, 0))).count();
    let below = cells.iter().filter(|cell| near(**cell, (0, 1))).count();
    cells.len() >= 8 && 2 * cells.len() > glyphs.len() && below > 2 * beside
}

/// A glyph of a vertical column, as if the page were turned by a quarter to the left: columns become lines.
fn stood_up(glyph: &Glyph) -> Glyph {
    Glyph { x: glyph.y - glyph.size, y: -glyph.x, width: glyph.size, ..*glyph }
}

#[expect(clippy::cast_precision_loss, reason = "an angle")]
fn to_f32(degrees: i32) -> f32 {
    degrees as f32
}
