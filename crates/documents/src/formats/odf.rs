//! OpenDocument (ODT, ODS, ODP): texts, spreadsheets and presentations share one vocabulary. Flat files have all parts
//! in one.

mod body;
mod cells;
mod lists;
mod paragraphs;
mod styles;

use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::flow::Flow;
use crate::has_words;
use crate::limits::Bounds;
use crate::missing::PageCount;
use crate::protected;
use crate::reading::Reading;
use body::Body;

const CONTENT: &str = "content.xml";
const STYLES: &str = "styles.xml";
const MANIFEST: &str = "META-INF/manifest.xml";
/// The most headers and footers that are read.
const MAX_MARGINS: usize = 200;
/// A line in a margin with the number of the page and fewer letters than this is nothing but this number.
const MIN_LETTERS_WITH_PAGE_NUMBER: usize = 13;

/// Whether the text is a flat OpenDocument file.
pub fn looks_flat(text: &str) -> bool {
    const START: usize = 8_192;
    let start = &text[..text.floor_char_boundary(START)];
    let has_root = start.contains("<office:document ") || start.contains("<office:document\n");
    has_root && start.contains("opendocument")
}

pub fn read(archive: &mut Archive<'_>, bounds: Bounds<'_>) -> Result<Reading, Error> {
    if archive.text(MANIFEST)?.is_some_and(|manifest| manifest.contains("encryption-data")) {
        return Err(protected());
    }
    let content = archive.required_text(CONTENT)?;
    let styles = archive.text(STYLES)?.unwrap_or_default();
    read_parts(Some(archive), &content, &styles, bounds)
}

pub fn read_flat(source: &str, bounds: Bounds<'_>) -> Result<Reading, Error> {
    read_parts(None, source, source, bounds)
}

fn read_parts(
    archive: Option<&mut Archive<'_>>,
    content: &str,
    styles: &str,
    bounds: Bounds<'_>,
) -> Result<Reading, Error> {
    let margins = Margins::read(styles, bounds)?;
    let mut body = Body::new(archive, bounds);
    body.styles.add(styles, bounds)?;
    body.styles.add(content, bounds)?;
    write_margins(&mut body, &margins.headers)?;
    body.read(content)?;
    write_margins(&mut body, &margins.footers)?;
    body.finish_reading()
}

/// The headers and footers of the pages, each once.
#[derive(Default)]
struct Margins<'s> {
    headers: Vec<&'s str>,
    footers: Vec<&'s str>,
}

impl<'s> Margins<'s> {
    fn read(source: &'s str, bounds: Bounds<'s>) -> Result<Self, Error> {
        let mut margins = Self::default();
        let mut elements = Elements::new(source, bounds);
        while let Some(piece) = elements.next()? {
            let Piece::Open(element) = piece else { continue };
            let is_margin = element.prefix() == "style";
            let list = match element.name() {
                "header" | "header-left" | "header-first" if is_margin => &mut margins.headers,
                "footer" | "footer-left" | "footer-first" if is_margin => &mut margins.footers,
                "body" | "automatic-styles" => {
                    elements.skip()?;
                    continue;
                }
                _ => continue,
            };
            let is_shown = element.attribute("display").as_deref() != Some("false");
            let inside = elements.take_inside()?;
            if is_shown && list.len() < MAX_MARGINS && !list.contains(&inside) {
                list.push(inside);
            }
        }
        Ok(margins)
    }
}

fn write_margins(body: &mut Body<'_, '_>, margins: &[&str]) -> Result<(), Error> {
    let mut seen = Vec::new();
    for source in margins {
        let of_body = std::mem::replace(&mut body.flow, Flow::new(body.bounds.limits));
        body.in_margin = true;
        body.read(source)?;
        body.in_margin = false;
        let of_margin = std::mem::replace(&mut body.flow, of_body).finish_reading(PageCount::default())?;
        let text = &of_margin.extracted.text;
        let letters = || text.chars().filter(|c| c.is_alphabetic()).count();
        let is_page_number = source.contains(":page-number") && letters() < MIN_LETTERS_WITH_PAGE_NUMBER;
        if has_words(text) && !is_page_number && !seen.contains(text) {
            seen.push(text.clone());
            body.flow.embed(of_margin);
            body.flow.check()?;
        }
    }
    Ok(())
}
