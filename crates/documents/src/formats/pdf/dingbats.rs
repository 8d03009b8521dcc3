//! Fonts of pictures: what such a font says about its glyphs are often their numbers, which are no letters of the text.

use pdf_oxide::layout::TextChar;

use crate::formats::symbols;

/// What the names of these fonts contain, in small letters.
const NAMES: &[&str] = &["dingbats", "wingdings", "webdings"];

/// The sign that stands for those of which only the number is known: most signs in a text are bullets.
pub const BULLET: char = '•';

/// Whether a font has pictures in the place of letters.
pub fn is_font(name: &str) -> bool {
    family(name).is_some()
}

/// Replaces letters and control characters in fonts of pictures by the signs that they show, as far as that is known. Digits are often
/// shown in circles, and stay.
pub fn replace(glyphs: &mut [TextChar]) {
    let mut last = (String::new(), None);
    for glyph in glyphs {
        // Most glyphs have the same font as the one before.
        if glyph.font_name != last.0 {
            last = (glyph.font_name.clone(), family(&glyph.font_name));
        }
        if let Some(family) = last.1 {
            glyph.char = sign(family, glyph.char);
        }
    }
}

fn family(font: &str) -> Option<&'static str> {
    let font = font.to_ascii_lowercase();
    NAMES.iter().find(|name| font.contains(**name)).copied()
}

fn sign(family: &str, character: char) -> char {
    let is_code = matches!(character, 'A'..='Z' | 'a'..='z' | '\u{80}'..='\u{FF}' | '\u{1}'..='\u{8}')
        && !character.is_whitespace();
    let known = symbols::character(family, u32::from(character));
    match known {
        _ if !is_code => character,
        Some(known) if known != character => known,
        _ => BULLET,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_a_font_of_pictures_are_signs() {
        let of = |font: &str, character| family(font).map(|family| sign(family, character));
        assert_eq!(of("ABCDEF+Wingdings", 'ü'), Some('✓'));
        assert_eq!(of("ABCDEF+Wingdings-Regular", '\u{84}'), Some('•'));
        assert_eq!(of("AllumiStd-DingbatsTwo", 'y'), Some('•'));
        assert_eq!(of("ZapfDingbats", '✔'), Some('✔'), "a font that says what its glyphs are");
        assert_eq!(of("Wingdings", ' '), Some(' '));
        assert_eq!(of("ZapfDingbats", '2'), Some('2'), "digits in circles are digits");
        assert_eq!(of("Helvetica", 'y'), None);
    }
}
