//! Characters of fonts that have symbols in the place of letters.

/// The character that a font shows for a code; `None` if it is not known.
pub fn character(font: &str, code: u32) -> Option<char> {
    // Fonts of symbols have their characters in an area for private use.
    let low = if (0xF000..=0xF0FF).contains(&code) { code - 0xF000 } else { code };
    let known = if font.eq_ignore_ascii_case("symbol") {
        symbol(low)
    } else if font.to_ascii_lowercase().starts_with("wingdings") {
        wingdings(low)
    } else {
        None
    };
    known.or_else(|| (low == code).then(|| char::from_u32(code)).flatten())
}

/// The Greek letters and signs of the font Symbol.
fn symbol(code: u32) -> Option<char> {
    const CAPITALS: &str = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ";
    const SMALL: &str = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ";
    Some(match code {
        0x41..=0x5A => CAPITALS.chars().nth(usize::try_from(code - 0x41).ok()?)?,
        0x61..=0x7A => SMALL.chars().nth(usize::try_from(code - 0x61).ok()?)?,
        0xA3 => '≤',
        0xA5 => '∞',
        0xAC => '←',
        0xAE => '→',
        0xB0 => '°',
        0xB1 => '±',
        0xB3 => '≥',
        0xB4 => '×',
        0xB7 => '•',
        0xB8 => '÷',
        0xB9 => '≠',
        0xBB => '≈',
        0xC5 => '⊕',
        0xC7 => '∩',
        0xC8 => '∪',
        0xCE => '∈',
        0xD2 => '®',
        0xD3 => '©',
        0xD4 => '™',
        0xD6 => '√',
        0xDE => '⇒',
        0xE5 => '∑',
        0xF2 => '∫',
        0x20..=0x40 => char::from_u32(code)?,
        _ => return None,
    })
}

/// Boxes, ticks and arrows of the font Wingdings.
fn wingdings(code: u32) -> Option<char> {
    Some(match code {
        0x22 => '✂',
        0x28 => '☎',
        0x2A => '✉',
        0x4A => '☺',
        0x6C | 0x9F | 0xB7 => '•',
        0x6E | 0xA7 => '▪',
        0x6F | 0x70 | 0xA8 => '☐',
        0x76 => '❖',
        0xAB => '★',
        0xD8 => '➢',
        0xDF => '←',
        0xE0 | 0xE8 => '→',
        0xF0 => '⇨',
        0xFB | 0xFD => '☒',
        0xFC => '✓',
        0xFE => '☑',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_the_characters_that_they_show() {
        assert_eq!(character("Symbol", 0xF061), Some('α'));
        assert_eq!(character("Symbol", 0x57), Some('Ω'));
        assert_eq!(character("Wingdings", 0xF0FE), Some('☑'));
        assert_eq!(character("Arial", 0x41), Some('A'));
        assert_eq!(character("Wingdings 3", 0xF001), None);
    }
}
