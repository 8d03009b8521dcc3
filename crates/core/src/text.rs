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
    /// What is missing of the document. They are kept with the file; a text that is loaded again has none.
    pub warnings: Vec<Warning>,
}

impl Extracted {
    /// A text without pages, headings and warnings.
    pub fn plain(text: String) -> Self {
        Self { text, markup: Markup::Plain, places: Vec::new(), warnings: Vec::new() }
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
}

/// A part of a document that a search returns as one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub text: String,
    pub page: Option<i64>,
    pub heading: Option<String>,
    /// In characters of the extracted text.
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
