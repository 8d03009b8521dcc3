//! EPUB: the title and the authors of a book, and its chapters in their order, with the titles of its table of contents.

mod package;

use std::collections::HashMap;

use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::formats::html;
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;
use package::Package;

pub fn read(archive: &mut Archive<'_>, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let package = Package::read(archive, bounds)?;
    if is_encrypted(archive, &package)? {
        return Err(Error::new(
            ErrorKind::Invalid,
            "This book is protected against copying (DRM). Upload a copy without the protection",
        ));
    }
    let titles = titles(archive, &package, bounds)?;
    let mut flow = Flow::new(bounds.limits);
    let mut not_read = Vec::new();
    let mut is_titled = false;
    for chapter in &package.chapters {
        bounds.report_progress()?;
        let Some(source) = archive.text(chapter)? else {
            not_read.push(chapter.clone());
            continue;
        };
        let reading = read_chapter(&source, chapter, archive, bounds)?;
        if !is_titled && has_content(&reading) {
            is_titled = true;
            write_title(&package, &reading.extracted.text, &mut flow);
        }
        let has_heading = reading.extracted.places.iter().any(|place| place.heading.is_some());
        if let Some(title) = titles.get(chapter).filter(|_| !has_heading && has_content(&reading)) {
            flow.begin_heading(1);
            flow.words(title);
            flow.end_heading();
        }
        flow.embed(reading);
        flow.check()?;
    }
    if let Some(warning) = missing::parts_not_read("chapter", not_read.len(), &not_read) {
        flow.warn(warning);
    }
    flow.finish_reading(PageCount::default())
}

/// Writes the title and the authors, unless the first part of the book has them: many books begin with a page for that.
fn write_title(package: &Package, first: &str, flow: &mut Flow) {
    let first = first.to_lowercase();
    let is_new = |name: &&String| !first.contains(&name.to_lowercase());
    if let Some(title) = package.title.as_ref().filter(is_new) {
        flow.begin_heading(1);
        flow.words(title);
        flow.end_heading();
    }
    let authors: Vec<&str> = package.authors.iter().filter(is_new).map(String::as_str).collect();
    if !authors.is_empty() {
        flow.widen(Gap::Paragraph);
        flow.words(&authors.join(", "));
        flow.widen(Gap::Paragraph);
    }
}

fn has_content(reading: &Reading) -> bool {
    !reading.extracted.text.is_empty() || !reading.pictures.is_empty()
}

/// Reads one chapter. Its pictures are parts of the book.
fn read_chapter(
    source: &str,
    chapter: &str,
    archive: &mut Archive<'_>,
    bounds: Bounds<'_>,
) -> Result<Reading, Error> {
    let archive = std::cell::RefCell::new(archive);
    let picture = |address: &str| {
        let path = package::resolve(chapter, address);
        let is_picture =
            [".png", ".jpg", ".jpeg", ".gif"].iter().any(|end| path.to_ascii_lowercase().ends_with(end));
        if is_picture { archive.borrow_mut().bytes(&path).ok().flatten() } else { None }
    };
    html::read_part(source, &picture, bounds)
}

/// Whether a chapter is encrypted. Many books encrypt only their fonts.
fn is_encrypted(archive: &mut Archive<'_>, package: &Package) -> Result<bool, Error> {
    let Some(list) = archive.text("META-INF/encryption.xml")? else { return Ok(false) };
    Ok(package.chapters.iter().any(|chapter| list.contains(&format!("\"{chapter}\""))))
}

/// The title of each chapter, by its path.
fn titles(
    archive: &mut Archive<'_>,
    package: &Package,
    bounds: Bounds<'_>,
) -> Result<HashMap<String, String>, Error> {
    let mut titles = HashMap::new();
    for contents in &package.contents {
        let Some(source) = archive.text(contents)? else { continue };
        let mut elements = Elements::new(&source, bounds);
        let mut label = String::new();
        let mut target = None;
        // A table of contents that is damaged has the titles up to there.
        while let Ok(Some(piece)) = elements.next() {
            match piece {
                Piece::Open(element) => match element.name() {
                    "navLabel" => label.clear(),
                    "content" => {
                        let path = element.attribute("src").map(|source| package::resolve(contents, &source));
                        add(&mut titles, path, &label);
                    }
                    "a" => {
                        label.clear();
                        target = element.attribute("href").map(|source| package::resolve(contents, &source));
                    }
                    _ => {}
                },
                Piece::Close(name) if name == "a" => add(&mut titles, target.take(), &label),
                Piece::Close(_) => {}
                Piece::Words(words) => label.push_str(&words),
            }
        }
    }
    Ok(titles)
}

fn add(titles: &mut HashMap<String, String>, path: Option<String>, label: &str) {
    let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(path) = path.filter(|_| !label.is_empty()) {
        titles.entry(path).or_insert(label);
    }
}
