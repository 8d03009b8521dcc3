//! How the parts of an Office document (DOCX, PPTX, XLSX) refer to one another.

use std::collections::HashMap;

use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::limits::Bounds;

/// A reference from one part to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// The last word of its type, which is the same in every edition of the standard: `slide`, `notesSlide`,
    /// `styles`.
    pub kind: String,
    /// The name of the part in the archive.
    pub target: String,
}

/// What a part refers to, by the ids that it uses for it. References to the outside are left out.
pub fn relations(
    archive: &mut Archive<'_>,
    part: &str,
    bounds: Bounds<'_>,
) -> Result<HashMap<String, Relation>, Error> {
    let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
    let name =
        if folder.is_empty() { format!("_rels/{file}.rels") } else { format!("{folder}/_rels/{file}.rels") };
    let mut relations = HashMap::new();
    let Some(source) = archive.text(&name)? else { return Ok(relations) };
    let mut elements = Elements::new(&source, bounds);
    while let Some(piece) = elements.next()? {
        if let Piece::Open(element) = piece
            && element.name() == "Relationship"
            && element.attribute("TargetMode").as_deref() != Some("External")
            && let (Some(id), Some(kind), Some(target)) =
                (element.attribute("Id"), element.attribute("Type"), element.attribute("Target"))
        {
            let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
            relations.insert(id, Relation { kind, target: resolve(folder, &target) });
        }
    }
    Ok(relations)
}

/// The main part of the document, whatever it is called.
pub fn main_part(archive: &mut Archive<'_>, bounds: Bounds<'_>) -> Result<Option<String>, Error> {
    let relations = relations(archive, "", bounds)?;
    Ok(relations
        .into_values()
        .find(|relation| relation.kind == "officeDocument")
        .map(|relation| relation.target))
}

/// A name relative to a folder, as one from the top.
fn resolve(folder: &str, target: &str) -> String {
    let mut segments: Vec<&str> = if target.starts_with('/') {
        Vec::new()
    } else {
        folder.split('/').filter(|s| !s.is_empty()).collect()
    };
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_leads_to_a_part_and_never_above_the_archive() {
        assert_eq!(resolve("ppt/slides", "../notesSlides/n1.xml"), "ppt/notesSlides/n1.xml");
        assert_eq!(resolve("word", "styles.xml"), "word/styles.xml");
        assert_eq!(resolve("word", "/word/document2.xml"), "word/document2.xml");
        assert_eq!(resolve("word", "../../../etc/passwd"), "etc/passwd");
    }
}
