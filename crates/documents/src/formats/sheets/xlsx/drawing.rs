//! What is drawn on a sheet: text boxes, charts, pictures and embedded documents.

use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::formats::office::objects::Objects;
use crate::formats::office::{self, References, Relation, chart, describes};
use crate::limits::Bounds;

/// The drawings of one sheet, and the documents that are embedded in it.
#[derive(Default)]
pub struct Drawings {
    /// Each with what it refers to.
    drawings: Vec<(String, References)>,
    documents: Vec<Relation>,
}

impl Drawings {
    pub fn read(archive: &mut Archive<'_>, sheet: &References, bounds: Bounds<'_>) -> Result<Self, Error> {
        let mut drawings = Self::default();
        let mut relations: Vec<&Relation> = sheet.inside.values().collect();
        relations.sort_by(|a, b| a.target.cmp(&b.target));
        for relation in relations {
            match relation.kind.as_str() {
                "drawing" => {
                    if let Some(source) = archive.text(&relation.target)? {
                        let references = office::references(archive, &relation.target, bounds)?;
                        drawings.drawings.push((source, references));
                    }
                }
                "package" | "oleObject" => drawings.documents.push(relation.clone()),
                _ => {}
            }
        }
        Ok(drawings)
    }

    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
            && !self.drawings.iter().any(|(source, _)| {
                ["<a:t>", "<a:t ", "descr=", "chart", "blip", "relIds"]
                    .iter()
                    .any(|mark| source.contains(mark))
            })
    }

    pub fn write(
        &self,
        archive: &mut Archive<'_>,
        objects: &mut Objects,
        flow: &mut Flow,
        bounds: Bounds<'_>,
    ) -> Result<(), Error> {
        for (source, references) in &self.drawings {
            write(source, references, archive, objects, flow, bounds)?;
        }
        for document in &self.documents {
            objects.related(archive, document, None, flow, bounds)?;
        }
        Ok(())
    }
}

fn write(
    source: &str,
    references: &References,
    archive: &mut Archive<'_>,
    objects: &mut Objects,
    flow: &mut Flow,
    bounds: Bounds<'_>,
) -> Result<(), Error> {
    let mut in_text = false;
    let mut elements = Elements::new(source, bounds);
    while let Some(piece) = elements.next()? {
        match piece {
            Piece::Open(element) => match element.name() {
                // It repeats a drawing for old programs.
                "Fallback" => elements.skip()?,
                "sp" | "pic" | "graphicFrame" | "txBody" => flow.widen(Gap::Paragraph),
                "cNvPr" => {
                    if let Some(description) = element.attribute("descr").filter(|text| describes(text)) {
                        flow.alt_text(&description);
                        flow.widen(Gap::Paragraph);
                    }
                }
                "p" | "br" => flow.widen(Gap::Line),
                "t" => in_text = true,
                "chart" | "blip" | "relIds" => {
                    let id = ["id", "embed", "dm"].iter().find_map(|name| element.prefixed_attribute(name));
                    if let Some(relation) = id.and_then(|id| references.inside.get(&id)) {
                        related(relation, archive, objects, flow, bounds)?;
                    }
                }
                _ => {}
            },
            Piece::Close(name) => match name.as_str() {
                "t" => in_text = false,
                "sp" | "pic" | "graphicFrame" => flow.widen(Gap::Paragraph),
                _ => {}
            },
            Piece::Words(words) => {
                if in_text {
                    flow.words(&words);
                    flow.check()?;
                }
            }
        }
    }
    Ok(())
}

fn related(
    relation: &Relation,
    archive: &mut Archive<'_>,
    objects: &mut Objects,
    flow: &mut Flow,
    bounds: Bounds<'_>,
) -> Result<(), Error> {
    match relation.kind.as_str() {
        "chart" | "chartEx" => match archive.text(&relation.target)? {
            Some(source) => chart::write_names(&source, flow, bounds),
            None => Ok(()),
        },
        _ => objects.related(archive, relation, None, flow, bounds),
    }
}
