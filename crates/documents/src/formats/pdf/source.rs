//! The glyphs of a page, as the library finds them.

use std::collections::HashSet;

use pdf_oxide::PdfDocument;
use pdf_oxide::extractors::TextExtractor;
use pdf_oxide::fonts::FontInfo;
use pdf_oxide::layout::TextChar;

use super::{dingbats, fonts, garbage};

/// The text that a part of a page stands for. The library takes its bytes for codes of the font that is in use, which gives
/// other letters. So it gets a name that the library does not know, and the glyphs are read as they are.
const REPLACEMENT: &[u8] = b"/ActualText";
const UNKNOWN: &[u8] = b"/ActualTexx";

/// The glyphs that the instructions of a page draw.
pub fn glyphs(
    document: &PdfDocument,
    page: usize,
    instructions: &mut [u8],
) -> Result<Vec<TextChar>, pdf_oxide::Error> {
    let object = document.get_page(page)?;
    if !PdfDocument::may_contain_text_public(instructions) {
        return Ok(Vec::new());
    }
    hide_replacements(instructions);
    let mut extractor = TextExtractor::new();
    extractor.set_page_index(u32::try_from(page).unwrap_or(u32::MAX));
    if let Some(resources) = object.as_dict().and_then(|page| page.get("Resources")) {
        fonts::correct(document, resources);
        extractor.set_resources(resources.clone());
        extractor.set_document(document);
        // Without its fonts the text of the page may still be readable.
        _ = document.load_fonts_public(resources, &mut extractor);
    }
    let mut glyphs = extractor.extract_owned(instructions)?;
    dingbats::replace(&mut glyphs);
    garbage::replace(&mut glyphs, &unmapped_fonts(&extractor));
    Ok(glyphs)
}

/// The fonts of the page that do not say which letters their glyphs are.
fn unmapped_fonts(extractor: &TextExtractor<'_>) -> HashSet<String> {
    let fonts = extractor.get_font_set();
    let is_unmapped = |font: &FontInfo| !font.best_mapping_provenance().is_from_file();
    let mapped: HashSet<&str> = fonts
        .iter()
        .filter(|(_, font)| !is_unmapped(font))
        .map(|(_, font)| font.base_font.as_str())
        .collect();
    let unmapped = fonts.iter().filter(|(_, font)| is_unmapped(font)).map(|(_, font)| &font.base_font);
    unmapped.filter(|name| !mapped.contains(name.as_str())).cloned().collect()
}

fn hide_replacements(content: &mut [u8]) {
    let found: Vec<usize> = memchr::memmem::find_iter(content, REPLACEMENT).collect();
    for at in found {
        content[at..at + UNKNOWN.len()].copy_from_slice(UNKNOWN);
    }
}
