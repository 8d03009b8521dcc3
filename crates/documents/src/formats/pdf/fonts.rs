//! Which letters the glyphs of simple fonts are, where the library reads it wrong:
//!
//! - a ligature that is named after its letters, such as `T_h` or `f_f`: the library returns the first letter only;
//! - ligatures in fonts of TeX whose glyphs are drawn: their names are the codes, of which the library knows the letters only;
//! - the encoding that is built into a Type 1 font in the compact format: the library looks for it only in the other format,
//!   and takes the codes for ASCII, which gives `n` for the backslash of many fonts of TeX;
//! - the encoding that is built into any font of which the name has the word "Symbol": the library takes the codes for those of
//!   the font Symbol, which gives Greek letters for brackets;
//! - the codes of the encoding of Windows that have no letter there: PDF has bullets at them, and the library nothing;
//! - signs in fonts of pictures that the document says are control characters: the library leaves them out.
//!
//! The library remembers what it found for each code of a font, for as long as the document is open. So the right letters are
//! noted there before the text is read.

use std::collections::{HashMap, HashSet};

use pdf_oxide::PdfDocument;
use pdf_oxide::extractors::TextExtractor;
use pdf_oxide::fonts::cff_encoding::parse_cff_encoding;
use pdf_oxide::fonts::type1_encoding::parse_type1_encoding;
use pdf_oxide::fonts::{CharacterMapper, FontInfo, LazyCMap};
use pdf_oxide::object::{Object, ObjectRef};

use super::dingbats;

/// Drawings in one another, and the drawings of a page, whose fonts are looked at.
const MAX_DEPTH: usize = 4;
const MAX_DRAWINGS: usize = 200;
/// The codes of the encoding of Windows that are bullets in PDF.
const BULLETS_OF_WINDOWS: [u8; 6] = [0x7F, 0x81, 0x8D, 0x8F, 0x90, 0x9D];
/// The codes of a font of pictures that are looked at.
const MAX_CODE_OF_SIGNS: u32 = 0x3FF;
/// The most letters of a ligature.
const MAX_LETTERS: usize = 6;

type Dictionary = HashMap<String, Object>;

/// Notes the letters of the fonts of a page, and of the drawings on it.
pub fn correct(document: &PdfDocument, resources: &Object) {
    let mut seen = HashSet::new();
    visit(document, resources, MAX_DEPTH, &mut seen);
}

fn visit(document: &PdfDocument, resources: &Object, depth: usize, seen: &mut HashSet<ObjectRef>) {
    let Ok(resources) = document.resolve_object(resources) else { return };
    let Some(dictionary) = resources.as_dict() else { return };
    if let Some(fonts) = member(document, dictionary, "Font") {
        // The library keeps each font, so that this is the same one that the text is read with.
        let mut extractor = TextExtractor::new();
        if document.load_fonts_public(&resources, &mut extractor).is_ok() {
            for (name, font) in extractor.get_font_set() {
                let entry = fonts.as_dict().and_then(|fonts| member(document, fonts, &name));
                if let Some(entry) = entry.as_ref().and_then(Object::as_dict) {
                    correct_font(document, entry, &font);
                }
            }
        }
    }
    let Some(drawings) = member(document, dictionary, "XObject").filter(|_| depth > 0) else { return };
    for drawing in drawings.as_dict().into_iter().flat_map(HashMap::values) {
        let is_new = drawing.as_reference().is_some_and(|reference| seen.insert(reference));
        if !is_new || seen.len() > MAX_DRAWINGS {
            continue;
        }
        let Ok(Object::Stream { dict, .. }) = document.resolve_object(drawing) else { continue };
        if let Some(inner) = dict.get("Resources") {
            visit(document, inner, depth - 1, seen);
        }
    }
}

fn correct_font(document: &PdfDocument, entry: &Dictionary, font: &FontInfo) {
    let Ok(mut memo) = font.type0_unicode_memo.lock() else { return };
    // A font that has been used was corrected before.
    if !memo.is_empty() {
        return;
    }
    let map = font.to_unicode.as_ref().and_then(LazyCMap::get);
    if let (Some(map), true) = (&map, dingbats::is_font(&font.base_font)) {
        let is_control = |code: &u32| map.get(code).is_some_and(|text| text.chars().all(char::is_control));
        for code in (0..=MAX_CODE_OF_SIGNS).filter(is_control) {
            memo.insert(code, Some(dingbats::BULLET.to_string()));
        }
    }
    if font.subtype == "Type0" {
        return;
    }
    let is_mapped = |code: u8| map.as_ref().is_some_and(|map| map.get(&u32::from(code)).is_some());
    for (code, letter) in built_in(document, entry, font) {
        if !is_mapped(code) && !font.diff_glyph_names.contains_key(&code) {
            memo.insert(u32::from(code), Some(letter.to_string()));
        }
    }
    if encoding_name(document, entry).as_deref() == Some("WinAnsiEncoding") {
        for code in BULLETS_OF_WINDOWS.into_iter().filter(|code| !is_mapped(*code)) {
            if !font.diff_glyph_names.contains_key(&code) {
                memo.insert(u32::from(code), Some(dingbats::BULLET.to_string()));
            }
        }
    }
    let names = CharacterMapper::new();
    let is_drawn = font.subtype == "Type3";
    for (code, name) in &font.diff_glyph_names {
        let letters = ligature(&names, name)
            .or_else(|| of_tex(*code, name).filter(|_| is_drawn).map(str::to_owned))
            .filter(|_| !is_mapped(*code));
        if let Some(letters) = letters {
            memo.insert(u32::from(*code), Some(letters));
        }
    }
}

/// The name of the encoding that a document says for a font, maybe as the base of another one.
fn encoding_name(document: &PdfDocument, entry: &Dictionary) -> Option<String> {
    let encoding = member(document, entry, "Encoding")?;
    let base = encoding.as_dict().and_then(|encoding| member(document, encoding, "BaseEncoding"));
    base.as_ref().unwrap_or(&encoding).as_name().map(str::to_owned)
}

/// The encoding that is built into a font, where the document says no other.
fn built_in(document: &PdfDocument, entry: &Dictionary, font: &FontInfo) -> HashMap<u8, char> {
    let is_type1 = matches!(font.subtype.as_str(), "Type1" | "MMType1");
    let says_other = match member(document, entry, "Encoding") {
        Some(Object::Name(_)) => true,
        Some(Object::Dictionary(encoding)) => encoding.contains_key("BaseEncoding"),
        _ => false,
    };
    let program = font.embedded_font_data.as_ref().filter(|_| is_type1 && !says_other);
    let letters =
        program.and_then(|program| parse_cff_encoding(program).or_else(|| parse_type1_encoding(program)));
    letters.unwrap_or_default()
}

/// The letters of a glyph whose name joins theirs. What follows a dot says only how they look.
fn ligature(names: &CharacterMapper, name: &str) -> Option<String> {
    let name = name.split('.').next()?;
    let parts = name.split('_').count();
    if !(2..=MAX_LETTERS).contains(&parts) {
        return None;
    }
    name.split('_').map(|part| names.map_glyph_name(part)).collect()
}

/// The ligatures of TeX's own encoding, in fonts whose glyphs are drawn and named after their codes. The codes of the letters
/// are those of ASCII.
fn of_tex(code: u8, name: &str) -> Option<&'static str> {
    let number: u8 = name.strip_prefix('a')?.parse().ok()?;
    let letters = match code {
        11 => "ff",
        12 => "fi",
        13 => "fl",
        14 => "ffi",
        15 => "ffl",
        _ => return None,
    };
    (number == code).then_some(letters)
}

fn member(document: &PdfDocument, dictionary: &Dictionary, name: &str) -> Option<Object> {
    document.resolve_object(dictionary.get(name)?).ok().filter(|object| !object.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_font_of_tex_has_its_ligatures_at_their_codes() {
        assert_eq!(of_tex(11, "a11"), Some("ff"));
        assert_eq!(of_tex(14, "a14"), Some("ffi"));
        assert_eq!((of_tex(11, "a12"), of_tex(65, "a65"), of_tex(11, "alpha")), (None, None, None));
    }

    #[test]
    fn a_ligature_is_read_as_the_letters_that_its_name_joins() {
        let names = CharacterMapper::new();
        let letters = |name| ligature(&names, name);
        assert_eq!(letters("T_h").as_deref(), Some("Th"));
        assert_eq!(letters("f_f_i.alt").as_deref(), Some("ffi"));
        assert_eq!(letters("f"), None, "the library reads single letters right");
        assert_eq!(letters("f_nonsense"), None);
    }
}
