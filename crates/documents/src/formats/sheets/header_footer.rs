//! The headers and footers of printed sheets, which are written with codes: `&LTides&CPage &P of &N`.

/// A part with a page number and no more words than these is only a page number: `Page &P of &N`.
const WORDS_OF_PAGES: usize = 2;

#[derive(Default)]
struct Part {
    words: String,
    has_page: bool,
}

/// The words of a header or footer, its parts from left to right. Page numbers, dates, and the names of the file and
/// of the sheet are left out.
pub fn words(source: &str) -> Vec<String> {
    let mut parts = vec![Part::default()];
    let mut rest = source;
    while let Some(at) = rest.find('&') {
        push(&mut parts, &rest[..at]);
        rest = &rest[at + 1..];
        let Some(code) = rest.chars().next() else { break };
        let mut taken = code.len_utf8();
        match code {
            '&' => push(&mut parts, "&"),
            'L' | 'C' | 'R' => parts.push(Part::default()),
            'P' | 'N' => {
                if let Some(part) = parts.last_mut() {
                    part.has_page = true;
                }
            }
            // A font: its name and its style in quotes.
            '"' => taken = rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            // A colour.
            'K' => {
                let is_of_colour = |c: &char| c.is_ascii_hexdigit() || matches!(c, '+' | '-');
                taken += rest[1..].chars().take(6).take_while(is_of_colour).count();
            }
            // A size.
            '0'..='9' => taken = rest.chars().take_while(char::is_ascii_digit).count(),
            _ => {}
        }
        rest = &rest[taken..];
    }
    push(&mut parts, rest);
    let parts = parts.into_iter().filter(|part| {
        part.words.chars().any(char::is_alphanumeric)
            && (!part.has_page || part.words.split_whitespace().count() > WORDS_OF_PAGES)
    });
    parts.map(|part| part.words.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn push(parts: &mut [Part], words: &str) {
    if let Some(part) = parts.last_mut() {
        part.words.push_str(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_read_without_the_codes() {
        let source = "&L&\"Arial,Bold\"&12Tides && currents&C&K00B0F0Draft&RPage &P of &N&D";
        assert_eq!(words(source), ["Tides & currents", "Draft"]);
        assert_eq!(words("&CReport of the harbour, page &P"), ["Report of the harbour, page"]);
        assert_eq!(words("&P&R&D &T&C&A"), Vec::<String>::new());
        for broken in ["&", "&\"Arial", "&K", "&é"] {
            words(broken);
        }
    }
}
