//! Fonts that do not say which letters their glyphs are, or say it wrong.
//!
//! The library then returns the numbers of the glyphs as if they were characters: `70HWDO` for `TMetal`. Whether a run is
//! language is decided by its pairs of letters: in the languages of Europe a few pairs make up most of a text.

use std::collections::{HashMap, HashSet};

use pdf_oxide::layout::TextChar;

/// The most frequent pairs of letters of English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish and Polish.
const PAIRS: &str = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de \
    hi ri ro ic ne ea ra ce li ch ll be ma si om ur ei ie sc un ge ue qu ai la el os ad ta do da ci no di il ss la pr us \
    et em ut am ac tr pe po ca so lo mo pa sa so su tu ul ol im ir id ig ho we wi ke va vi nu fo fr gr br pl cl cr sp sh \
    wa wh ev ep ap op up ag og ab ob bl bi bo ba by ly ty ry my pi ph rt rs rd rn rm rk ls ld lt ct pt ft ck tt ff ns nc \
    oo ee au eu oe ae ia ua aa ij zi cz rz sz ow ny ku ki mi ni wy za zu je go fi fe fa du na sk ej ko";
/// Runs with fewer pairs say too little.
const MIN_PAIRS: usize = 12;
/// The share of frequent pairs that a language has at least. The codes of glyphs have about one in five.
const LANGUAGE: f64 = 0.42;
/// A font that says what its letters are is believed unless its text is as far from any language as this.
const MIN_PAIRS_OF_MAPPED: usize = 80;
const NO_LANGUAGE: f64 = 0.16;
/// In most TrueType fonts the glyphs are in the order of ASCII, from the space as number 3 on.
const GLYPH_ORDER: u32 = 29;

/// Replaces the characters that are no language. `unmapped` are the names of the fonts without a mapping.
pub fn replace(glyphs: &mut [TextChar], unmapped: &HashSet<String>) {
    let mut runs: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, glyph) in glyphs.iter().enumerate() {
        runs.entry(glyph.font_name.as_str()).or_default().push(at);
    }
    let verdicts: Vec<(Vec<usize>, Verdict)> = runs
        .into_iter()
        .map(|(name, run)| {
            let verdict = judge(&run_text(glyphs, &run), unmapped.contains(name));
            (run, verdict)
        })
        .collect();
    for (run, verdict) in verdicts {
        for at in run {
            let character = &mut glyphs[at].char;
            match verdict {
                Verdict::Language => {}
                Verdict::GlyphOrder => *character = shifted(*character),
                Verdict::Unknown if character.is_whitespace() => {}
                Verdict::Unknown => *character = char::REPLACEMENT_CHARACTER,
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The characters are what they seem to be.
    Language,
    /// They are the numbers of glyphs in the usual order.
    GlyphOrder,
    Unknown,
}

/// The characters of one font, with a space where there is a gap.
fn run_text(glyphs: &[TextChar], run: &[usize]) -> String {
    let mut text = String::new();
    let mut last: Option<&TextChar> = None;
    for glyph in run.iter().map(|at| &glyphs[*at]) {
        let is_next = last.is_some_and(|last| {
            let gap = glyph.origin_x - last.origin_x - last.advance_width;
            (glyph.origin_y - last.origin_y).abs() < 0.1 * glyph.font_size.abs()
                && gap < 0.3 * glyph.font_size.abs()
        });
        if !is_next {
            text.push(' ');
        }
        text.push(glyph.char);
        last = Some(glyph);
    }
    text
}

fn judge(text: &str, is_unmapped: bool) -> Verdict {
    let (pairs, share) = language(text);
    if !is_unmapped {
        let is_garbage = pairs >= MIN_PAIRS_OF_MAPPED && share < NO_LANGUAGE;
        return if is_garbage { Verdict::Unknown } else { Verdict::Language };
    }
    // The numbers of the glyphs of ASCII are all below that of the letter b. Some letters with accents are above it.
    let is_low = 6 * text.chars().filter(|c| *c > '\u{61}').count() < text.chars().count();
    let (shifted_pairs, shifted_share) = language(&text.chars().map(shifted).collect::<String>());
    if is_low && shifted_pairs >= MIN_PAIRS && shifted_share >= LANGUAGE && shifted_share > share {
        Verdict::GlyphOrder
    } else if pairs >= MIN_PAIRS && share >= LANGUAGE {
        Verdict::Language
    } else {
        Verdict::Unknown
    }
}

fn shifted(character: char) -> char {
    match character {
        '\u{3}'..='\u{61}' => char::from_u32(character as u32 + GLYPH_ORDER).unwrap_or(character),
        other => other,
    }
}

/// How many pairs of Latin letters there are, and the share of frequent ones. A digit or a sign between letters makes a pair
/// that no language has. Text in other scripts has no pairs.
fn language(text: &str) -> (usize, f64) {
    let frequent: HashSet<&str> = PAIRS.split_whitespace().collect();
    let (mut pairs, mut good) = (0_u32, 0_u32);
    for word in text.split(char::is_whitespace) {
        let lower = word.to_ascii_lowercase();
        for pair in lower.as_bytes().windows(2) {
            let letters = pair.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
            let digits = pair.iter().filter(|byte| byte.is_ascii_digit()).count();
            if letters == 2 || letters == 1 && digits == 1 {
                pairs += 1;
                good += u32::from(std::str::from_utf8(pair).is_ok_and(|pair| frequent.contains(pair)));
            }
        }
    }
    (pairs as usize, f64::from(good) / f64::from(pairs.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENTENCES: &[&str] = &[
        "The harbour closes at low tide and opens again in the morning.",
        "Der Hafen schließt bei Ebbe und öffnet am Morgen wieder.",
        "Le port ferme à marée basse et ouvre de nouveau le matin.",
        "El puerto cierra con la marea baja y abre de nuevo por la mañana.",
        "Il porto chiude con la bassa marea e riapre la mattina.",
        "De haven sluit bij eb en gaat in de ochtend weer open.",
        "Port jest zamykany podczas odpływu i otwierany ponownie rano.",
    ];

    /// The text as numbers of glyphs.
    fn codes(text: &str) -> String {
        let code =
            |c: char| if c.is_ascii_graphic() { char::from_u32(c as u32 - GLYPH_ORDER).unwrap() } else { c };
        text.chars().map(code).collect()
    }

    #[test]
    fn language_is_told_from_the_numbers_of_glyphs() {
        for sentence in SENTENCES {
            assert_eq!(judge(sentence, true), Verdict::Language, "{sentence}");
            assert_eq!(judge(&codes(sentence), true), Verdict::GlyphOrder, "{sentence}");
        }
        assert_eq!(judge("70HWDO6KDIW", true), Verdict::Unknown);
        assert_eq!(judge("Zqxv kjwq xzvk qjxz wvkq zxjq", true), Verdict::Unknown);
    }

    #[test]
    fn a_font_with_a_mapping_is_believed_unless_its_text_is_far_from_any_language() {
        assert_eq!(judge("AB-1234 XK9 Q7 ZX-88 RTX4090 WV", false), Verdict::Language);
        assert_eq!(judge(&"Zqxv kjwq xzvk qjxz wvkq zxjq ".repeat(10), false), Verdict::Unknown);
        assert_eq!(judge(&SENTENCES.concat(), false), Verdict::Language);
        assert_eq!(judge("Гавань закрывается во время отлива", false), Verdict::Language);
    }
}
