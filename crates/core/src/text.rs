//! The text of a document, on its way through the stages.

use serde::{Deserialize, Serialize};

use crate::warning::Warning;

/// The text of a document, with what is known about its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    pub text: String,
    pub markup: Markup,
    /// The headings and pages in the text, in their order.
    pub places: Vec<Place>,
    /// Where parts of the text are on their pages, in the order of the text, if the reader knows that.
    pub boxes: Vec<TextBox>,
    /// What is missing of the document. They are kept with the file; a text that is loaded again has none.
    pub warnings: Vec<Warning>,
}

impl Extracted {
    /// A text without pages, headings and warnings.
    pub fn plain(text: String) -> Self {
        Self { text, markup: Markup::Plain, places: Vec::new(), boxes: Vec::new(), warnings: Vec::new() }
    }
}

/// How the structure of a text is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Markup {
    Plain,
    Markdown,
}

impl Markup {
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain; charset=utf-8",
            Self::Markdown => "text/markdown; charset=utf-8",
        }
    }
}

/// The page and heading of the text from this byte on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub start: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// The level of the heading, from 1. `None` if the reader does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
}

/// Where a part of the text is on its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextBox {
    /// In bytes of the text.
    pub start: usize,
    pub end: usize,
    pub page: i64,
    pub area: Area,
}

/// A part of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageArea {
    /// From 1.
    pub page: i64,
    pub area: Area,
}

/// A rectangle on a page as it is shown, in parts of 10,000 of its width and height, from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    pub left: u16,
    pub top: u16,
    pub right: u16,
    pub bottom: u16,
}

impl Area {
    /// The length of each side of a page.
    pub const SIDE: u16 = 10_000;

    /// The smallest rectangle that contains both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }

    /// Whether it is on the page and has no negative side.
    pub fn is_well_formed(self) -> bool {
        self.left <= self.right
            && self.top <= self.bottom
            && self.right <= Self::SIDE
            && self.bottom <= Self::SIDE
    }
}

/// A part of a document that a search returns as one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub text: String,
    pub page: Option<i64>,
    pub heading: Option<String>,
    /// The headings that it is under, from the top of the document down to its own.
    pub headings: Vec<String>,
    /// Where it is on its pages, if the reader knows that.
    pub places: Vec<PageArea>,
    /// In characters of the extracted text. A header row that is repeated from the beginning of its table is not counted.
    pub char_start: usize,
    pub char_end: usize,
    pub tokens: usize,
}

/// A vector for each chunk, in the chunks' order.
#[derive(Debug, Clone)]
pub struct Embedded {
    /// Model, revision and dimensions: only vectors of the same ones can be compared.
    pub model: String,
    pub vectors: Vec<Vec<f32>>,
}
