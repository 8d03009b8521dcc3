//! How the parts of an Office document (DOCX, PPTX, XLSX) refer to one another.

pub mod chart;
pub mod diagram;
pub mod math;
pub mod objects;

use std::collections::{HashMap, HashSet};

use crate::archive::Archive;
use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::limits::Bounds;
use crate::missing;
use landfall_core::warning::Warning;

/// A smaller picture is a logo or a symbol, in bytes.
const MIN_PICTURE: u64 = 20_000;
/// A document with fewer characters than this for each of its pictures is made of pictures.
const CHARACTERS_PER_PICTURE: usize = 400;

/// A reference from one part to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// The last word of its type, which is the same in every edition of the standard: `slide`, `notesSlide`,
    /// `styles`.
    pub kind: String,
    /// The name of the part in the archive.
    pub target: String,
}

/// What a part refers to, by the ids that it uses for it.
#[derive(Debug, Default)]
pub struct References {
    pub inside: HashMap<String, Relation>,
    /// Addresses outside of the document, such as those of links.
    pub outside: HashMap<String, String>,
}

/// What a part refers to inside the document. References to the outside are left out.
pub fn relations(
    archive: &mut Archive<'_>,
    part: &str,
    bounds: Bounds<'_>,
) -> Result<HashMap<String, Relation>, Error> {
    Ok(references(archive, part, bounds)?.inside)
}

pub fn references(archive: &mut Archive<'_>, part: &str, bounds: Bounds<'_>) -> Result<References, Error> {
    let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
    let name =
        if folder.is_empty() { format!("_rels/{file}.rels") } else { format!("{folder}/_rels/{file}.rels") };
    let mut references = References::default();
    let Some(source) = archive.text(&name)? else { return Ok(references) };
    let mut elements = Elements::new(&source, bounds);
    while let Some(piece) = elements.next()? {
        if let Piece::Open(element) = piece
            && element.name() == "Relationship"
            && let (Some(id), Some(kind), Some(target)) =
                (element.attribute("Id"), element.attribute("Type"), element.attribute("Target"))
        {
            if element.attribute("TargetMode").as_deref() == Some("External") {
                references.outside.insert(id, target);
            } else {
                let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
                references.inside.insert(id, Relation { kind, target: resolve(folder, &target) });
            }
        }
    }
    Ok(references)
}

/// The main part of the document, whatever it is called.
pub fn main_part(archive: &mut Archive<'_>, bounds: Bounds<'_>) -> Result<Option<String>, Error> {
    let relations = relations(archive, "", bounds)?;
    Ok(relations
        .into_values()
        .find(|relation| relation.kind == "officeDocument")
        .map(|relation| relation.target))
}

/// The charts, the embedded files and the pictures that are not read, of a document with this text. `read` are the parts
/// that were read.
fn not_read_beside(
    read: &HashSet<String>,
    archive: &mut Archive<'_>,
    text: &str,
    bounds: Bounds<'_>,
) -> Result<Vec<Warning>, Error> {
    let mut parts = archive.parts();
    let in_folder = |folder: &str| {
        let is_in = |name: &str| name.rsplit_once('/').is_some_and(|(above, _)| above.ends_with(folder));
        parts.iter().filter(move |(name, _)| is_in(name)).map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    // In a workbook the figures of a chart are cells.
    let mut charts = in_folder("word/charts");
    charts.extend(in_folder("ppt/charts"));
    charts.retain(|name| file_name(name).starts_with("chart"));
    let mut embedded = in_folder("/embeddings");
    embedded.retain(|name| !read.contains(name));
    for chart in &charts {
        // The workbook behind a chart is a part of the chart.
        let behind: Vec<String> =
            relations(archive, chart, bounds)?.into_values().map(|relation| relation.target).collect();
        embedded.retain(|name| !behind.contains(name));
    }
    charts.retain(|name| !read.contains(name));
    parts.retain(|(name, _)| !read.contains(name));
    let names: Vec<String> = embedded.iter().map(|name| file_name(name).to_owned()).collect();
    let mut warnings = Vec::new();
    warnings.extend(missing::parts_not_read("embedded file", names.len(), &names));
    warnings.extend(missing::parts_not_read("chart", charts.len(), &[]));
    warnings.extend(pictures_not_read(&parts, text));
    Ok(warnings)
}

/// The pictures of a packed document, if it is made of them. Pictures beside much text are illustrations.
pub fn pictures_not_read(parts: &[(String, u64)], text: &str) -> Option<Warning> {
    let is_picture = |name: &str| {
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        let pictures = ["png", "jpg", "jpeg", "tif", "tiff", "bmp", "gif"];
        (name.contains("/media/") || name.starts_with("Pictures/"))
            && extension.is_some_and(|extension| pictures.contains(&extension.as_str()))
    };
    let pictures = parts.iter().filter(|(name, size)| *size >= MIN_PICTURE && is_picture(name)).count();
    let characters = text.chars().filter(|character| !character.is_whitespace()).count();
    let is_made_of_pictures = characters < pictures.saturating_mul(CHARACTERS_PER_PICTURE);
    missing::parts_not_read("picture", pictures, &[]).filter(|_| is_made_of_pictures)
}

/// Whether a description says something: many are only the name of a file, or what the program put there.
pub fn describes(description: &str) -> bool {
    const PICTURES: [&str; 11] =
        ["png", "jpg", "jpeg", "gif", "bmp", "tif", "tiff", "emf", "wmf", "svg", "webp"];
    let description = description.trim();
    let extension = description.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let is_file = extension.is_some_and(|extension| PICTURES.contains(&extension.as_str()));
    let word = description.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end().to_ascii_lowercase();
    !is_file && !matches!(word.as_str(), "" | "picture" | "image" | "graphic" | "chart" | "diagram" | "shape")
}

fn file_name(part: &str) -> &str {
    part.rsplit_once('/').map_or(part, |(_, name)| name)
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
    fn a_description_says_more_than_what_it_is_of() {
        assert!(describes("A boat at low tide"));
        for empty in ["", " ", "Picture", "image 12", "C:\\boats\\boat.PNG"] {
            assert!(!describes(empty), "{empty}");
        }
    }

    #[test]
    fn a_reference_leads_to_a_part_and_never_above_the_archive() {
        assert_eq!(resolve("ppt/slides", "../notesSlides/n1.xml"), "ppt/notesSlides/n1.xml");
        assert_eq!(resolve("word", "styles.xml"), "word/styles.xml");
        assert_eq!(resolve("word", "/word/document2.xml"), "word/document2.xml");
        assert_eq!(resolve("word", "../../../etc/passwd"), "etc/passwd");
    }
}
