//! Accents that are drawn upon letters, as many programs do whose fonts have no letters with accents: the two become one.

use unicode_normalization::char::compose;

use super::glyphs::Glyph;

/// How far the baselines of the two may differ, as a share of the size: accents of capital letters are raised.
const MAX_RAISED: f32 = 0.4;

/// Joins accents with the letters that they are drawn upon. The glyphs are in the order of the file: an accent is drawn just
/// before its letter, or just after it.
pub fn join(glyphs: &mut Vec<Glyph>) {
    if !glyphs.iter().any(|glyph| combining(glyph.character).is_some()) {
        return;
    }
    let mut joined: Vec<Glyph> = Vec::with_capacity(glyphs.len());
    let mut rest = glyphs.iter().copied().peekable();
    while let Some(glyph) = rest.next() {
        let Some(mark) = combining(glyph.character) else {
            joined.push(glyph);
            continue;
        };
        let after = rest.peek().and_then(|letter| with_mark(letter, &glyph, mark));
        let before = joined.last().and_then(|letter| with_mark(letter, &glyph, mark));
        match (after, before) {
            (Some(letter), _) => {
                rest.next();
                joined.push(letter);
            }
            (None, Some(letter)) => {
                joined.pop();
                joined.push(letter);
            }
            (None, None) => joined.push(glyph),
        }
    }
    *glyphs = joined;
}

/// The letter with its accent, if there is such a letter and the accent is upon it.
fn with_mark(letter: &Glyph, accent: &Glyph, mark: char) -> Option<Glyph> {
    let base = match letter.character {
        'ı' => 'i',
        'ȷ' => 'j',
        other => other,
    };
    let middle = accent.x + 0.5 * accent.width;
    let is_upon = letter.x - 0.05 * letter.size < middle
        && middle < letter.end() + 0.05 * letter.size
        && (letter.y - accent.y).abs() < MAX_RAISED * letter.size
        && accent.size < 1.5 * letter.size;
    if !is_upon {
        return None;
    }
    Some(Glyph { character: compose(base, mark)?, ..*letter })
}

/// The mark that an accent by itself stands for.
fn combining(character: char) -> Option<char> {
    Some(match character {
        '`' | '\u{2CB}' => '\u{300}',
        '´' | '\u{2CA}' => '\u{301}',
        '^' | 'ˆ' => '\u{302}',
        '~' | '˜' => '\u{303}',
        '¯' | '\u{2C9}' => '\u{304}',
        '˘' => '\u{306}',
        '˙' => '\u{307}',
        '¨' => '\u{308}',
        '˚' | '°' => '\u{30A}',
        '˝' => '\u{30B}',
        'ˇ' => '\u{30C}',
        '¸' => '\u{327}',
        '˛' => '\u{328}',
        '\u{300}'..='\u{36F}' => character,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glyph(character: char, x: f32, width: f32) -> Glyph {
        Glyph { character, x, width, size: 10.0, ..Glyph::default() }
    }

    fn joined(glyphs: &[Glyph]) -> String {
        let mut glyphs = glyphs.to_vec();
        join(&mut glyphs);
        glyphs.iter().map(|glyph| glyph.character).collect()
    }

    #[test]
    fn an_accent_upon_a_letter_becomes_part_of_it() {
        let [before, after] = [glyph('z', 0.0, 5.0), glyph('s', 10.0, 5.0)];
        let upon = glyph('´', 5.5, 4.0);
        // Just before its letter, as TeX draws it, or just after it.
        assert_eq!(joined(&[before, upon, glyph('n', 5.0, 5.0), after]), "zńs");
        assert_eq!(joined(&[before, glyph('n', 5.0, 5.0), upon, after]), "zńs");
        assert_eq!(joined(&[glyph('¨', 0.0, 3.0), glyph('ı', 0.0, 3.0)]), "ï");
        let raised = Glyph { y: -2.3, ..upon };
        assert_eq!(joined(&[raised, glyph('E', 5.0, 6.0)]), "É");
    }

    #[test]
    fn an_accent_beside_a_letter_stays_what_it_is() {
        assert_eq!(joined(&[glyph('n', 0.0, 5.0), glyph('~', 5.0, 5.0), glyph('n', 10.0, 5.0)]), "n~n");
        assert_eq!(joined(&[glyph('x', 0.0, 5.0), glyph('^', 5.5, 4.0), glyph('2', 10.0, 5.0)]), "x^2");
        // There is no such letter.
        assert_eq!(joined(&[glyph('´', 0.0, 3.0), glyph('7', 0.0, 5.0)]), "´7");
    }
}
