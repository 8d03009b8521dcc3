//! The comments on a slide, of both generations, with the names of their authors.

use std::collections::HashMap;

use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::formats::office;
use crate::limits::Bounds;

/// The names of the authors, by their ids.
#[derive(Default)]
pub struct Authors(HashMap<String, String>);

impl Authors {
    pub fn read(archive: &mut Archive<'_>, main_part: &str, bounds: Bounds<'_>) -> Result<Self, Error> {
        let mut authors = Self::default();
        for relation in office::relations(archive, main_part, bounds)?.values() {
            if !matches!(relation.kind.as_str(), "commentAuthors" | "authors") {
                continue;
            }
            let Some(source) = archive.text(&relation.target)? else { continue };
            let mut elements = Elements::new(&source, bounds);
            while let Some(piece) = elements.next()? {
                if let Piece::Open(element) = piece
                    && matches!(element.name(), "cmAuthor" | "author")
                    && let Some((id, name)) = element.attribute("id").zip(element.attribute("name"))
                {
                    authors.0.insert(id, name);
                }
            }
        }
        Ok(authors)
    }
}

/// A comment, or an answer to the one before it.
#[derive(Default)]
struct Comment {
    author: String,
    words: String,
    answers: Vec<Comment>,
}

pub fn write(source: &str, authors: &Authors, flow: &mut Flow, bounds: Bounds<'_>) -> Result<(), Error> {
    flow.widen(Gap::Paragraph);
    for comment in read(source, authors, bounds)? {
        flow.begin_item("-");
        comment.write(flow);
        for answer in &comment.answers {
            flow.begin_item("-");
            answer.write(flow);
            flow.end_item();
        }
        flow.end_item();
        flow.check()?;
    }
    flow.end_list();
    Ok(())
}

impl Comment {
    fn write(&self, flow: &mut Flow) {
        if !self.author.is_empty() {
            flow.words(&format!("{}: ", self.author));
        }
        flow.words(&self.words);
    }
}

/// The words of a newer comment come after the answers to it.
fn read(source: &str, authors: &Authors, bounds: Bounds<'_>) -> Result<Vec<Comment>, Error> {
    let mut comments: Vec<Comment> = Vec::new();
    let mut is_answer = false;
    let mut in_text = false;
    let mut elements = Elements::new(source, bounds);
    while let Some(piece) = elements.next()? {
        match piece {
            Piece::Open(element) => {
                let author = || {
                    let id = element.attribute("authorId").unwrap_or_default();
                    authors.0.get(&id).cloned().unwrap_or_default()
                };
                match element.name() {
                    "cm" => comments.push(Comment { author: author(), ..Comment::default() }),
                    "reply" => {
                        is_answer = true;
                        if let Some(comment) = comments.last_mut() {
                            comment.answers.push(Comment { author: author(), ..Comment::default() });
                        }
                    }
                    // `text` is of the older comments, `t` of the newer ones.
                    "text" | "t" => in_text = true,
                    "p" | "br" => {
                        if let Some(words) = open(&mut comments, is_answer) {
                            words.push(' ');
                        }
                    }
                    _ => {}
                }
            }
            Piece::Close(name) => match name.as_str() {
                "reply" => is_answer = false,
                "text" | "t" => in_text = false,
                _ => {}
            },
            Piece::Words(words) if in_text => {
                if let Some(open) = open(&mut comments, is_answer) {
                    open.push_str(&words);
                }
            }
            Piece::Words(_) => {}
        }
    }
    comments.retain(|comment| !comment.words.trim().is_empty() || !comment.answers.is_empty());
    Ok(comments)
}

/// The words of the comment or the answer that is open.
fn open(comments: &mut [Comment], is_answer: bool) -> Option<&mut String> {
    let comment = comments.last_mut()?;
    if is_answer {
        comment.answers.last_mut().map(|answer| &mut answer.words)
    } else {
        Some(&mut comment.words)
    }
}
