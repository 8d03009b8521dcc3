//! PPTX: each slide is a page with its title as the heading, followed by the speaker's notes.

use std::collections::{BTreeSet, HashSet};

use super::office::{self, Relation};
use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;

pub fn read(archive: &mut Archive<'_>, main_part: &str, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let slides = slides(archive, main_part, bounds)?;
    let mut flow = Flow::new(bounds.limits);
    let mut unreadable = BTreeSet::new();
    for (slide, number) in slides.iter().zip(1..) {
        let Some(source) = archive.text(slide)? else {
            unreadable.insert(number);
            continue;
        };
        let title = title(&source, bounds)?.unwrap_or_else(|| format!("Slide {number}"));
        flow.place(Some(number), Some(title));
        write_text(&source, &mut flow, Shapes::All, bounds)?;
        for relation in office::relations(archive, slide, bounds)?.into_values() {
            let shapes = match relation.kind.as_str() {
                "notesSlide" => Shapes::Notes,
                "diagramData" => Shapes::All,
                _ => continue,
            };
            if let Some(source) = archive.text(&relation.target)? {
                flow.widen(Gap::Paragraph);
                write_text(&source, &mut flow, shapes, bounds)?;
            }
        }
    }
    let pages = PageCount { total: slides.len(), unreadable: unreadable.len(), without_picture: 0 };
    let mut extracted = flow.finish()?;
    extracted.warnings = office::not_read(archive, &extracted.text, bounds)?;
    extracted.warnings.extend(missing::unreadable_pages("slide", &unreadable, pages)?);
    Ok(Reading { pages, ..Reading::of(extracted) })
}

/// The parts of the slides in the order in which they are shown.
fn slides(archive: &mut Archive<'_>, main_part: &str, bounds: Bounds<'_>) -> Result<Vec<String>, Error> {
    let relations = office::relations(archive, main_part, bounds)?;
    let source = archive.required_text(main_part)?;
    let mut slides = Vec::new();
    let mut listed = HashSet::new();
    let mut elements = Elements::new(&source, bounds);
    while let Some(piece) = elements.next()? {
        if let Piece::Open(element) = piece
            && element.name() == "sldId"
            && let Some(Relation { kind, target }) = element.prefixed_attribute("id").and_then(|id| relations.get(&id))
            && kind == "slide"
            // Once each: a hostile list names the same slide many times.
            && listed.insert(target)
        {
            if slides.len() >= bounds.limits.pages {
                return Err(bounds.limits.too_many_pages());
            }
            slides.push(target.clone());
        }
    }
    Ok(slides)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shapes {
    All,
    /// The speaker's notes, without the picture and number of the slide.
    Notes,
    Title,
}

impl Shapes {
    fn include(self, placeholder: &str) -> bool {
        match self {
            Self::All => true,
            Self::Notes => !matches!(placeholder, "sldNum" | "sldImg" | "hdr" | "ftr" | "dt"),
            Self::Title => is_title(placeholder),
        }
    }
}

fn is_title(placeholder: &str) -> bool {
    matches!(placeholder, "title" | "ctrTitle")
}

fn title(source: &str, bounds: Bounds<'_>) -> Result<Option<String>, Error> {
    let mut flow = Flow::new(bounds.limits);
    write_text(source, &mut flow, Shapes::Title, bounds)?;
    let title = flow.finish()?.text.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok((!title.is_empty()).then_some(title))
}

fn write_text(source: &str, flow: &mut Flow, shapes: Shapes, bounds: Bounds<'_>) -> Result<(), Error> {
    let mut elements = Elements::new(source, bounds);
    let mut in_text = false;
    let mut included = shapes != Shapes::Title;
    let mut rows = 0_usize;
    while let Some(piece) = elements.next()? {
        match piece {
            Piece::Open(element) => match element.name() {
                // It repeats a drawing for old programs.
                "Fallback" => elements.skip()?,
                "sp" => included = shapes != Shapes::Title,
                "ph" => included = shapes.include(element.attribute("type").as_deref().unwrap_or_default()),
                "t" => in_text = true,
                "p" => flow.widen(if rows > 0 { Gap::Space } else { Gap::Line }),
                "br" => flow.widen(Gap::Line),
                "txBody" if rows == 0 => flow.widen(Gap::Paragraph),
                "tr" => {
                    flow.widen(Gap::Line);
                    rows += 1;
                }
                "tc" => flow.widen(Gap::Cell),
                _ => {}
            },
            Piece::Close(name) => match name.as_str() {
                "t" => in_text = false,
                "tr" => {
                    rows = rows.saturating_sub(1);
                    flow.widen(Gap::Line);
                }
                "tbl" => flow.widen(Gap::Paragraph),
                "sp" => included = shapes != Shapes::Title,
                _ => {}
            },
            Piece::Words(words) => {
                if in_text && included {
                    flow.words(&words);
                    flow.check()?;
                }
            }
        }
    }
    Ok(())
}
