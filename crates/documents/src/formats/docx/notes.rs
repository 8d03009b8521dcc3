//! Footnotes, endnotes and comments: parts of small texts, each with an id.

use std::collections::HashMap;

use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::formats::office::References;
use crate::limits::Bounds;

/// The notes of one part.
#[derive(Default)]
pub struct Notes {
    notes: HashMap<String, Note>,
    pub references: References,
}

pub struct Note {
    /// The paragraphs, as XML.
    pub source: String,
    pub author: Option<String>,
}

impl Notes {
    /// `name` is the element of one note.
    pub fn read(source: &str, name: &str, references: References, bounds: Bounds<'_>) -> Result<Self, Error> {
        let mut notes = HashMap::new();
        let mut elements = Elements::new(source, bounds);
        while let Some(piece) = elements.next()? {
            let Piece::Open(element) = piece else { continue };
            // The lines above the notes are among them.
            let is_line = element.attribute("type").is_some_and(|kind| kind != "normal");
            if element.name() == name
                && !is_line
                && let Some(id) = element.attribute("id")
            {
                let author = element.attribute("author");
                let source = elements.take_inside()?.to_owned();
                notes.insert(id, Note { source, author });
            }
        }
        Ok(Self { notes, references })
    }

    /// Returns each note once, even if it is referred to several times.
    pub fn take(&mut self, id: &str) -> Option<Note> {
        self.notes.remove(id)
    }
}
