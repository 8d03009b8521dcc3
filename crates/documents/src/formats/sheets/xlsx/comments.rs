//! The notes of a sheet, and the threads of comments of newer versions of Excel.

use std::collections::HashMap;

use super::super::{Comment, cell_position};
use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::formats::office::References;
use crate::limits::Bounds;

pub fn read(
    archive: &mut Archive<'_>,
    references: &References,
    persons: &HashMap<String, String>,
    bounds: Bounds<'_>,
) -> Result<Vec<Comment>, Error> {
    let mut comments = Vec::new();
    let mut parts = |kind: &str| -> Result<Vec<String>, Error> {
        let mut targets: Vec<&String> = references
            .inside
            .values()
            .filter(|relation| relation.kind == kind)
            .map(|relation| &relation.target)
            .collect();
        targets.sort();
        targets.into_iter().filter_map(|target| archive.text(target).transpose()).collect()
    };
    for source in parts("threadedComment")? {
        comments.extend(threads(&source, persons, bounds)?);
    }
    for source in parts("comments")? {
        let notes = notes(&source, bounds)?;
        // For old programs a thread is repeated as a note.
        comments.extend(notes.into_iter().filter(|note| !note.author.starts_with("tc={")));
    }
    comments.sort_by_key(|comment| cell_position(&comment.cell));
    Ok(comments)
}

fn notes(source: &str, bounds: Bounds<'_>) -> Result<Vec<Comment>, Error> {
    let mut authors: Vec<String> = Vec::new();
    let mut comments: Vec<Comment> = Vec::new();
    let mut in_author = false;
    let mut in_text = false;
    let mut elements = Elements::new(source, bounds);
    while let Some(piece) = elements.next()? {
        match piece {
            Piece::Open(element) => match element.name() {
                "author" => {
                    authors.push(String::new());
                    in_author = true;
                }
                "comment" => {
                    let author = element.attribute("authorId").and_then(|id| id.parse::<usize>().ok());
                    comments.push(Comment {
                        cell: element.attribute("ref").unwrap_or_default(),
                        author: author.and_then(|id| authors.get(id)).cloned().unwrap_or_default(),
                        words: String::new(),
                        answers: Vec::new(),
                    });
                }
                "t" => in_text = true,
                "rPh" => elements.skip()?,
                _ => {}
            },
            Piece::Close(name) => match name.as_str() {
                "author" => in_author = false,
                "t" => in_text = false,
                _ => {}
            },
            Piece::Words(words) => {
                if in_author && let Some(author) = authors.last_mut() {
                    author.push_str(&words);
                } else if in_text && let Some(comment) = comments.last_mut() {
                    comment.words.push_str(&words);
                }
            }
        }
    }
    comments.retain(|comment| !comment.words.trim().is_empty());
    Ok(comments)
}

/// The comments with their answers, which name the comment that they answer.
fn threads(
    source: &str,
    persons: &HashMap<String, String>,
    bounds: Bounds<'_>,
) -> Result<Vec<Comment>, Error> {
    let mut comments: Vec<Comment> = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    // The comment that is open: which one it is, and whether it is an answer to it.
    let mut open: Option<(usize, bool)> = None;
    let mut in_text = false;
    let mut elements = Elements::new(source, bounds);
    while let Some(piece) = elements.next()? {
        match piece {
            Piece::Open(element) => match element.name() {
                "threadedComment" => {
                    let person = element.attribute("personId").unwrap_or_default();
                    let author = persons.get(&person).cloned().unwrap_or_default();
                    let parent = element.attribute("parentId").and_then(|id| by_id.get(&id).copied());
                    if let Some(parent) = parent {
                        comments[parent].answers.push((author, String::new()));
                        open = Some((parent, true));
                    } else {
                        by_id.insert(element.attribute("id").unwrap_or_default(), comments.len());
                        open = Some((comments.len(), false));
                        comments.push(Comment {
                            cell: element.attribute("ref").unwrap_or_default(),
                            author,
                            words: String::new(),
                            answers: Vec::new(),
                        });
                    }
                }
                "text" => in_text = true,
                _ => {}
            },
            Piece::Close(name) if name == "text" => in_text = false,
            Piece::Words(words) if in_text => {
                if let Some((index, is_answer)) = open {
                    let comment = &mut comments[index];
                    match comment.answers.last_mut().filter(|_| is_answer) {
                        Some((_, answer)) => answer.push_str(&words),
                        None => comment.words.push_str(&words),
                    }
                }
            }
            Piece::Close(_) | Piece::Words(_) => {}
        }
    }
    Ok(comments)
}

/// The names of the persons who comment, by their ids.
pub fn persons(source: &str, bounds: Bounds<'_>) -> Result<HashMap<String, String>, Error> {
    let mut persons = HashMap::new();
    let mut elements = Elements::new(source, bounds);
    while let Some(piece) = elements.next()? {
        if let Piece::Open(element) = piece
            && element.name() == "person"
            && let Some((id, name)) = element.attribute("id").zip(element.attribute("displayName"))
        {
            persons.insert(id, name);
        }
    }
    Ok(persons)
}
