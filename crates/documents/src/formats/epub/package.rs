//! The package document of a book: which parts are its chapters, and in which order.

use std::collections::HashMap;

use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::{Error, ErrorKind};
use crate::limits::Bounds;

/// The authors that are named at most.
const MAX_AUTHORS: usize = 20;

#[derive(Default)]
pub struct Package {
    /// The first of its titles; further ones are subtitles and short forms.
    pub title: Option<String>,
    pub authors: Vec<String>,
    /// The paths of the chapters, in the order of reading.
    pub chapters: Vec<String>,
    /// The paths of the tables of contents.
    pub contents: Vec<String>,
}

impl Package {
    pub fn read(archive: &mut Archive<'_>, bounds: Bounds<'_>) -> Result<Self, Error> {
        let container = archive.required_text("META-INF/container.xml")?;
        let path = root_file(&container, bounds)?.ok_or_else(|| {
            Error::new(ErrorKind::Damaged, "This book is damaged: it does not say what is in it")
        })?;
        let source = archive.required_text(&path)?;
        let mut package = Self::default();
        let mut parts: HashMap<String, String> = HashMap::new();
        let mut elements = Elements::new(&source, bounds);
        // The words of the open title or author.
        let mut words: Option<String> = None;
        while let Some(piece) = elements.next()? {
            let element = match piece {
                Piece::Open(element) => element,
                Piece::Words(more) => {
                    if let Some(words) = &mut words {
                        words.push_str(&more);
                    }
                    continue;
                }
                Piece::Close(name) => {
                    if let Some(words) = words.take() {
                        package.add_name(&name, &words);
                    }
                    continue;
                }
            };
            match element.name() {
                "title" | "creator" if element.prefix() == "dc" => words = Some(String::new()),
                "item" => {
                    let (Some(id), Some(href)) = (element.attribute("id"), element.attribute("href")) else {
                        continue;
                    };
                    let part = resolve(&path, &href);
                    let is_contents =
                        element.attribute("media-type").is_some_and(|kind| kind.contains("dtbncx"))
                            || element.attribute("properties").is_some_and(|list| {
                                list.split_whitespace().any(|property| property == "nav")
                            });
                    if is_contents {
                        package.contents.push(part.clone());
                    }
                    parts.insert(id, part);
                }
                "itemref" => {
                    let part = element.attribute("idref").and_then(|id| parts.remove(&id));
                    // The table of contents says what the headings say.
                    package.chapters.extend(part.filter(|part| !package.contents.contains(part)));
                }
                _ => {}
            }
        }
        if package.chapters.len() > bounds.limits.pages {
            return Err(bounds.limits.too_many_pages());
        }
        Ok(package)
    }

    fn add_name(&mut self, element: &str, words: &str) {
        let name = words.split_whitespace().collect::<Vec<_>>().join(" ");
        if name.is_empty() {
            return;
        }
        match element {
            "title" => _ = self.title.get_or_insert(name),
            _ if self.authors.len() < MAX_AUTHORS && !self.authors.contains(&name) => self.authors.push(name),
            _ => {}
        }
    }
}

fn root_file(container: &str, bounds: Bounds<'_>) -> Result<Option<String>, Error> {
    let mut elements = Elements::new(container, bounds);
    while let Some(piece) = elements.next()? {
        if let Piece::Open(element) = piece
            && element.name() == "rootfile"
        {
            return Ok(element.attribute("full-path"));
        }
    }
    Ok(None)
}

/// The path of a part that another one refers to, without the place in it.
pub fn resolve(from: &str, reference: &str) -> String {
    let reference = reference.split(['#', '?']).next().unwrap_or_default();
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> =
        if reference.starts_with('/') { Vec::new() } else { folder.split('/').collect() };
    for part in reference.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    decode_percent(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/"))
}

fn decode_percent(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code =
            after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_from_where_they_are() {
        for (from, reference, path) in [
            ("OEBPS/content.opf", "text/one.xhtml#a", "OEBPS/text/one.xhtml"),
            ("content.opf", "one%20two.xhtml", "one two.xhtml"),
            ("OEBPS/text/one.xhtml", "../images/a.png", "OEBPS/images/a.png"),
            ("OEBPS/a.opf", "/b.xhtml", "b.xhtml"),
            ("a.opf", "../../../b.xhtml", "b.xhtml"),
            ("a.opf", "100%.xhtml", "100%.xhtml"),
        ] {
            assert_eq!(resolve(from, reference), path);
        }
    }
}
