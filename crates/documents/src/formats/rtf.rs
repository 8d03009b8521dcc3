//! RTF: the words between the control words, decoded by the code pages of the fonts.

mod captures;
mod characters;
mod destinations;
mod interpreter;
mod styles;
mod tokens;
mod writer;

use std::collections::HashSet;

use crate::error::Error;
use crate::flow::Flow;
use crate::has_words;
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;
use characters::named_character;
use interpreter::{Interpreter, Opening};
use tokens::{Token, Tokens};

pub const MARK: &[u8] = b"{\\rtf";
/// Tokens between two reports of progress.
const PROGRESS_EVERY: usize = 4_096;

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    let mut interpreter = Interpreter::new(bounds);
    let mut tokens = Tokens { rest: bytes };
    let mut read = 0_usize;
    while let Some(token) = tokens.next() {
        read += 1;
        if read.is_multiple_of(PROGRESS_EVERY) {
            bounds.report_progress()?;
            interpreter.check()?;
        }
        interpret(token, &mut interpreter, &mut tokens)?;
    }
    let is_cut = interpreter.has_open_groups();
    let (headers, mut body, footers) = interpreter.finish()?;
    if is_cut {
        body.extracted.warnings.push(missing::truncated("document"));
    }
    with_margins(headers, body, footers, bounds)
}

fn interpret<'a>(
    token: Token<'a>,
    interpreter: &mut Interpreter<'_>,
    tokens: &mut Tokens<'a>,
) -> Result<(), Error> {
    match token {
        Token::Open => interpreter.open(),
        Token::Close => interpreter.close(),
        Token::Word(name, _) if interpreter.skip > 0 && named_character(name).is_some() => {
            interpreter.skip -= 1;
            Ok(())
        }
        Token::Word(name, number) => {
            interpreter.flush();
            interpreter.skip = 0;
            let result = interpreter.control(name, number, tokens);
            interpreter.group.opening = Opening::More;
            result
        }
        Token::Symbol(b'*') if interpreter.group.opening == Opening::Nothing => {
            interpreter.group.opening = Opening::OptionalMark;
            Ok(())
        }
        Token::Symbol(symbol) if interpreter.skip > 0 && !matches!(symbol, b'\r' | b'\n') => {
            interpreter.skip -= 1;
            Ok(())
        }
        Token::Symbol(symbol) => {
            interpreter.flush();
            interpreter.skip = 0;
            interpreter.symbol(symbol)
        }
        Token::Byte(byte) => {
            interpreter.bytes(&[byte]);
            Ok(())
        }
        Token::Text(text) => {
            interpreter.bytes(text);
            Ok(())
        }
    }
}

/// Headers stand before the body and footers after it. The same words are written once.
fn with_margins(
    headers: Vec<Reading>,
    body: Reading,
    footers: Vec<Reading>,
    bounds: Bounds<'_>,
) -> Result<Reading, Error> {
    let mut seen = HashSet::new();
    let mut is_new =
        |margin: &Reading| has_words(&margin.extracted.text) && seen.insert(margin.extracted.text.clone());
    let headers: Vec<Reading> = headers.into_iter().filter(&mut is_new).collect();
    let footers: Vec<Reading> = footers.into_iter().filter(&mut is_new).collect();
    if headers.is_empty() && footers.is_empty() {
        return Ok(body);
    }
    let mut flow = Flow::new(bounds.limits);
    for reading in headers.into_iter().chain([body]).chain(footers) {
        flow.embed(reading);
        flow.check()?;
    }
    flow.finish_reading(PageCount::default())
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::error::ErrorKind;
    use crate::limits::Limits;
    use landfall_core::text::Extracted;

    fn read(source: &[u8]) -> Result<Extracted, Error> {
        let limits = Limits::default();
        let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
        super::read(source, bounds).map(|reading| reading.extracted)
    }

    fn text(source: &[u8]) -> String {
        read(source).unwrap().text
    }

    #[test]
    fn words_are_read_and_formatting_is_not() {
        let source =
            br"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss Arial;}}{\colortbl;\red0\green0\blue0;}
{\stylesheet{\s1 heading;}}{\info{\title Secret}}{\*\generator Word;}{\header Top}
\pard\outlinelevel0 Tides\par\pard High {\b wa}ter at caf\'e9 \{noon\}.\line Next\~line\tab cell\par
{\field{\*\fldinst HYPERLINK x}{\fldrslt a link}}{\pict\bin5 }}}}}}\v hidden\v0  shown}";
        let extracted = read(source).unwrap();
        assert_eq!(
            extracted.text,
            "Top\n\n# Tides\n\nHigh water at café {noon}.\nNext line\tcell\n\n[a link](x) shown"
        );
        assert_eq!(extracted.places[0].heading.as_deref(), Some("Tides"));
    }

    #[test]
    fn unicode_replaces_its_fallback() {
        assert_eq!(
            text(br"{\rtf1\uc1 \u1055?\u1088?\u1080? ok \u-10179?\u-8704? {\uc0\u8364 5}}"),
            "При ok 😀 €5"
        );
    }

    #[test]
    fn without_a_fallback_nothing_else_is_skipped() {
        assert_eq!(
            text(br"{\rtf1 Price {\u8364}Hundred and {\u8217}Sword}"),
            "Price \u{20AC}Hundred and \u{2019}Sword"
        );
        assert_eq!(text(br"{\rtf1\uc1 Wort\u8211\par Nextword}"), "Wort\u{2013}\n\nNextword");
        assert_eq!(text(br"{\rtf1\uc2 a\u8211{b}c\u8211\'96\'96d}"), "a\u{2013}bc\u{2013}d");
        assert_eq!(
            text(br"{\rtf1 \u8220\ldblquote so\u8221\rdblquote , a\u8209\_b}"),
            "\u{201C}so\u{201D}, a\u{2011}b"
        );
    }

    #[test]
    fn half_a_character_is_dropped_alone() {
        assert_eq!(text(br"{\rtf1\uc0\u-8704 \u65 \u66 \u67 \u68 end}"), "ABCDend");
        assert_eq!(
            text(br"{\rtf1\uc0\u-10179 \u65 \u-10179 b\u-8704 c\u-10179 \u-10179 \u-8704 }"),
            "Abc\u{1F600}"
        );
    }

    #[test]
    fn each_font_has_its_own_code_page() {
        let source =
            b"{\\rtf1\\ansi{\\fonttbl{\\f0\\fcharset0 A;}{\\f1\\fcharset204 B;}{\\f2\\fcharset128 C;}}\
            \\f1 \\'cf\\'f0\\'e8 {\\f2 \\'93\\'fa\\'96\\'7b} \\'e2}";
        assert_eq!(text(source), "При 日本 в");
    }

    #[test]
    fn groups_that_nest_without_end_are_refused() {
        let source = [MARK, &b"{".repeat(100_000)[..]].concat();
        assert_eq!(read(&source).unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn a_file_that_breaks_off_gives_what_it_has() {
        assert_eq!(text(br"{\rtf1 Half a {\b sent"), "Half a sent");
        assert_eq!(text(br"{\rtf1 Odd}} end \'"), "Odd end");
    }
}
