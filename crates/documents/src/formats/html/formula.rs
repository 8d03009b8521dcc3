//! A formula of a page, which is MathML, while its tags and words arrive.

use crate::elements::{Elements, Piece};
use crate::formats::mathml;
use crate::limits::Bounds;

/// A longer formula is read as words.
const MAX_SOURCE: usize = 64 << 10;

/// The formula as XML, and its words.
pub struct Formula {
    source: String,
    words: String,
}

impl Formula {
    pub fn new() -> Self {
        Self { source: "<math>".to_owned(), words: String::new() }
    }

    /// Whether an element is part of a formula. Others end it, as in browsers.
    pub fn has(element: &str) -> bool {
        matches!(
            element,
            "semantics"
                | "none"
                | "mi"
                | "mn"
                | "mo"
                | "ms"
                | "mtext"
                | "mspace"
                | "mrow"
                | "mfrac"
                | "msqrt"
                | "mroot"
                | "mstyle"
                | "merror"
                | "mpadded"
                | "mphantom"
                | "mfenced"
                | "menclose"
                | "msub"
                | "msup"
                | "msubsup"
                | "munder"
                | "mover"
                | "munderover"
                | "mmultiscripts"
                | "mprescripts"
                | "mtable"
                | "mtr"
                | "mlabeledtr"
                | "mtd"
                | "maction"
        )
    }

    pub fn open(&mut self, element: &str) {
        self.add(&["<", element, ">"]);
    }

    pub fn close(&mut self, element: &str) {
        self.add(&["</", element, ">"]);
    }

    pub fn words(&mut self, words: &str) {
        self.words.push_str(words);
        self.add(&[&words.replace('&', "&amp;").replace('<', "&lt;")]);
    }

    fn add(&mut self, parts: &[&str]) {
        if self.source.len() <= MAX_SOURCE {
            self.source.extend(parts.iter().copied());
        }
    }

    /// The formula as LaTeX, or its words if it cannot be read as a formula.
    pub fn finish(mut self, bounds: Bounds<'_>) -> Result<String, String> {
        let is_whole = self.source.len() <= MAX_SOURCE;
        self.source.push_str("</math>");
        let mut elements = Elements::new(&self.source, bounds);
        let latex = match elements.next() {
            Ok(Some(Piece::Open(_))) if is_whole => mathml::read(&mut elements).unwrap_or_default(),
            _ => String::new(),
        };
        if latex.is_empty() { Err(self.words) } else { Ok(latex) }
    }
}
