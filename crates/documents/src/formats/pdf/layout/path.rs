//! The straight lines of what a page draws at once.

use super::rules::{MAX_RULES, Rule, SHORT};

/// A rectangle that is thinner than this is a line.
const THIN: f32 = 2.5;

/// What is drawn at once. Its places are those of the file.
#[derive(Debug, Default)]
pub struct Path {
    lines: Vec<((f32, f32), (f32, f32))>,
    start: (f32, f32),
    at: (f32, f32),
}

impl Path {
    pub fn begin(&mut self, at: (f32, f32)) {
        (self.start, self.at) = (at, at);
    }

    pub fn line_to(&mut self, to: (f32, f32)) {
        self.lines.push((self.at, to));
        self.at = to;
    }

    pub fn curve_to(&mut self, to: (f32, f32)) {
        self.at = to;
    }

    pub fn close(&mut self) {
        if self.at != self.start {
            self.line_to(self.start);
        }
    }

    /// The corners in their order. A rectangle that is thin is one line.
    pub fn rectangle(&mut self, [a, b, c, d]: [(f32, f32); 4]) {
        let is_short =
            |(ax, ay): (f32, f32), (bx, by): (f32, f32)| (ax - bx).abs().max((ay - by).abs()) < THIN;
        self.lines.extend(match (is_short(a, b), is_short(a, d)) {
            (true, _) => vec![(a, d)],
            (false, true) => vec![(a, b)],
            (false, false) => vec![(a, b), (d, c), (a, d), (b, c)],
        });
        (self.start, self.at) = (a, a);
    }

    /// Whether it is part of a drawing.
    pub fn is_too_long(&self) -> bool {
        self.lines.len() > MAX_RULES
    }

    /// Adds its level and upright lines, and begins anew.
    pub fn draw(&mut self, rules: &mut Vec<Rule>) {
        for (from, to) in self.lines.drain(..) {
            push(rules, from, to);
        }
    }
}

fn push(rules: &mut Vec<Rule>, (x0, y0): (f32, f32), (x1, y1): (f32, f32)) {
    let is_finite = [x0, y0, x1, y1].into_iter().all(f32::is_finite);
    let (width, height) = ((x1 - x0).abs(), (y1 - y0).abs());
    if is_finite && (width < 1.0 && height >= SHORT || height < 1.0 && width >= SHORT) {
        rules.push(Rule { x0: x0.min(x1), y0: y0.min(y1), x1: x0.max(x1), y1: y0.max(y1) });
    }
}
