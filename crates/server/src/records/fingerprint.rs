//! What failures of one cause have in common: the stage, the code, and the shape of the message.
//!
//! The shape is the message without what differs from file to file: numbers, ids, names, paths, whatever is quoted. It
//! decides nothing but which dead letters stand together in a list; what is done about a failure, its code says.

use std::iter::Peekable;
use std::str::Chars;

use sha2::{Digest, Sha256};

use landfall_core::failure::Failure;
use landfall_core::lifecycle::Stage;

/// Bytes of the hash. A thousand causes among which two have the same are not to be expected in this universe.
const LENGTH: usize = 8;

/// Stands for a number, an id, or anything else with digits in it.
const NUMBER: &str = "#";
const PATH: &str = "/";
const QUOTED: &str = "…";

pub fn fingerprint(stage: Stage, failure: &Failure) -> String {
    let mut hash = Sha256::new();
    for part in [stage.name(), failure.code.name(), &shape(&failure.message)] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hex::encode(&hash.finalize()[..LENGTH])
}

/// Whether a text can be the fingerprint of anything.
pub fn is_fingerprint(text: &str) -> bool {
    text.len() == 2 * LENGTH && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The words of a message, with a sign in the place of each that differs from file to file. A list of them is one sign,
/// however long it is.
fn shape(message: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in without_quotes(message).split_whitespace() {
        let word = in_general(word);
        let repeated = words.last().is_some_and(|last| *last == word && is_sign(&word));
        if !word.is_empty() && !repeated {
            words.push(word);
        }
    }
    words.join(" ")
}

fn is_sign(word: &str) -> bool {
    [NUMBER, PATH, QUOTED].contains(&word)
}

fn in_general(word: &str) -> String {
    if word == QUOTED {
        return QUOTED.to_owned();
    }
    if word.contains(['/', '\\']) {
        return PATH.to_owned();
    }
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    if word.contains(|c: char| c.is_numeric()) || is_hexadecimal(word) {
        NUMBER.to_owned()
    } else if word.contains('.') {
        // A file's name, or a machine's.
        PATH.to_owned()
    } else {
        word.to_lowercase()
    }
}

fn is_hexadecimal(word: &str) -> bool {
    word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The message with a sign for each part that it quotes.
fn without_quotes(message: &str) -> String {
    let mut rest = message.chars().peekable();
    let mut text = String::with_capacity(message.len());
    let mut before = ' ';
    while let Some(c) = rest.next() {
        match closing(c) {
            // The one in "doesn't" opens nothing.
            Some(close) if !before.is_alphanumeric() && skip_quoted(&mut rest, close) => {
                text.push(' ');
                text.push_str(QUOTED);
                text.push(' ');
                before = close;
            }
            _ => {
                text.push(c);
                before = c;
            }
        }
    }
    text
}

const fn closing(open: char) -> Option<char> {
    match open {
        '"' | '\'' | '`' => Some(open),
        '“' | '„' => Some('”'),
        '‘' => Some('’'),
        '«' => Some('»'),
        _ => None,
    }
}

/// Goes on behind the quoted part, if there is one. A message that was cut short may have lost the end of it; but an
/// apostrophe without a second one is only an apostrophe.
fn skip_quoted(rest: &mut Peekable<Chars<'_>>, close: char) -> bool {
    let mut ahead = rest.clone();
    while let Some(c) = ahead.next() {
        let ends_a_word = ahead.peek().is_none_or(|next| !next.is_alphanumeric());
        if c == close && ends_a_word {
            *rest = ahead;
            return true;
        }
    }
    if matches!(close, '\'' | '’') {
        return false;
    }
    *rest = ahead;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_core::failure::Code;

    #[test]
    fn what_differs_from_file_to_file_is_left_out_of_the_shape() {
        for (message, expected) in [
            ("Page 17 of 300 cannot be read", "page # of # cannot be read"),
            ("took longer than its limit of 2.5 s", "took longer than its limit of # s"),
            ("no object 01890000-0000-7000-8000-000000000000 here", "no object # here"),
            ("checksum deadbeefcafe is wrong", "checksum # is wrong"),
            ("at offset 0x7f3a", "at offset #"),
            ("cannot open /var/lib/a b.pdf", "cannot open /"),
            ("cannot open C:\\temp\\x", "cannot open /"),
            ("https://gateway.example/v1 answered 503", "/ answered #"),
            ("report.final.docx is damaged", "/ is damaged"),
            ("the sheet \"Crew, 2026\" has no end", "the sheet … has no end"),
            ("unexpected `}` in 'a b' and “c”", "unexpected … in … and …"),
            ("pages 3, 5, 7 and 11", "pages # and #"),
        ] {
            assert_eq!(shape(message), expected, "{message}");
        }
    }

    #[test]
    fn an_apostrophe_quotes_nothing() {
        assert_eq!(shape("It doesn't end, and won't"), "it doesn't end and won't");
        assert_eq!(shape("the files' owner"), "the files owner");
    }

    #[test]
    fn a_quote_that_was_cut_short_goes_to_the_end() {
        assert_eq!(shape("strange: \"abc def…"), "strange …");
        assert_eq!(shape("\""), "…");
        assert_eq!(shape("'"), "");
    }

    #[test]
    fn stage_code_and_shape_make_the_fingerprint_and_nothing_else() {
        let of = |stage, code, message: &str| fingerprint(stage, &Failure::new(code, message));
        let one = of(Stage::Extract, Code::ParseError, "Page 1 is damaged");
        assert_eq!(one, of(Stage::Extract, Code::ParseError, "Page 999 is damaged"));
        assert_ne!(one, of(Stage::Chunk, Code::ParseError, "Page 1 is damaged"));
        assert_ne!(one, of(Stage::Extract, Code::NoText, "Page 1 is damaged"));
        assert_ne!(one, of(Stage::Extract, Code::ParseError, "Page 1 is missing"));
        // Rows of another day and of another process have it too.
        assert_eq!(one, "cc1d88429a7e60ad");
        assert!(is_fingerprint(&one));
    }

    #[test]
    fn only_what_looks_like_one_is_a_fingerprint() {
        for text in ["", "0123", "0123456789ABCDEF", "0123456789abcde\0", "0123456789abcdef0"] {
            assert!(!is_fingerprint(text), "{text:?}");
        }
    }
}
