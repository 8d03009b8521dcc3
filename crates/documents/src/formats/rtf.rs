//! RTF: the words between the control words, decoded by the code pages of the fonts.

use std::collections::HashMap;

use encoding_rs::{Encoding, WINDOWS_1252};

use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing;
use crate::reading::Reading;

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
            interpreter.flow.check()?;
        }
        match token {
            Token::Open => {
                interpreter.flush();
                interpreter.skip = 0;
                if interpreter.groups.len() > bounds.limits.depth {
                    return Err(bounds.limits.too_deep());
                }
                interpreter.groups.push(interpreter.group);
                interpreter.group.opening = Opening::Nothing;
            }
            Token::Close => {
                interpreter.flush();
                interpreter.skip = 0;
                // Damaged files have a closing brace too many; the text before it is good.
                interpreter.group = interpreter.groups.pop().unwrap_or(interpreter.group);
            }
            Token::Word(name, _) if interpreter.skip > 0 && named_character(name).is_some() => {
                interpreter.skip -= 1;
            }
            Token::Word(name, number) => {
                interpreter.flush();
                interpreter.skip = 0;
                interpreter.control(name, number, &mut tokens);
                interpreter.group.opening = Opening::More;
            }
            Token::Symbol(b'*') if interpreter.group.opening == Opening::Nothing => {
                interpreter.group.opening = Opening::OptionalMark;
            }
            Token::Symbol(symbol) if interpreter.skip > 0 && !matches!(symbol, b'\r' | b'\n') => {
                interpreter.skip -= 1;
            }
            Token::Symbol(symbol) => {
                interpreter.flush();
                interpreter.skip = 0;
                interpreter.symbol(symbol);
            }
            Token::Byte(byte) => interpreter.bytes(&[byte]),
            Token::Text(text) => interpreter.bytes(text),
        }
    }
    interpreter.flush();
    interpreter.flow.end_heading();
    let mut extracted = interpreter.flow.finish()?;
    if !interpreter.groups.is_empty() {
        extracted.warnings.push(missing::truncated("document"));
    }
    extracted.warnings.extend(missing::parts_not_read("embedded object", interpreter.objects, &[]));
    Ok(Reading::of(extracted))
}

/// The state that a group inherits and that ends with it.
#[derive(Clone, Copy)]
struct Group {
    hidden: bool,
    /// The text has the format "hidden".
    invisible: bool,
    /// The group defines fonts, and its text is their names.
    fonts: bool,
    encoding: &'static Encoding,
    /// How many fallback characters for old programs follow a Unicode character.
    fallback: usize,
    opening: Opening,
}

/// How much of a group has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    Nothing,
    /// The mark that a program may skip the group if it does not know it.
    OptionalMark,
    More,
}

impl Group {
    fn shows_nothing(&self) -> bool {
        self.hidden || self.invisible
    }
}

struct Interpreter {
    flow: Flow,
    group: Group,
    groups: Vec<Group>,
    /// Bytes that may be a part of a character.
    pending: Vec<u8>,
    /// The first half of a character that UTF-16 writes as two.
    surrogate: Option<u16>,
    /// Fallback characters that are still to be skipped. They end with their group, and before a control word that is
    /// no character: not every program writes a fallback.
    skip: usize,
    font: i32,
    default_font: Option<i32>,
    font_encodings: HashMap<i32, &'static Encoding>,
    document_encoding: &'static Encoding,
    /// Embedded objects, which are not read.
    objects: usize,
}

impl Interpreter {
    fn new(bounds: Bounds<'_>) -> Self {
        Self {
            flow: Flow::new(bounds.limits),
            group: Group {
                hidden: false,
                invisible: false,
                fonts: false,
                encoding: WINDOWS_1252,
                fallback: 1,
                opening: Opening::More,
            },
            groups: Vec::new(),
            pending: Vec::new(),
            surrogate: None,
            skip: 0,
            font: 0,
            default_font: None,
            font_encodings: HashMap::new(),
            document_encoding: WINDOWS_1252,
            objects: 0,
        }
    }

    fn control(&mut self, name: &str, number: Option<i32>, tokens: &mut Tokens<'_>) {
        if self.group.opening == Opening::OptionalMark && name != "shpinst" {
            self.group.hidden = true;
        }
        match name {
            "bin" => tokens.skip(usize::try_from(number.unwrap_or(0)).unwrap_or(0)),
            "fonttbl" => {
                self.group.hidden = true;
                self.group.fonts = true;
            }
            "ansicpg" => {
                self.document_encoding = code_page(number.unwrap_or(1252));
                self.group.encoding = self.document_encoding;
            }
            "deff" => self.default_font = number,
            "f" if self.group.fonts => self.font = number.unwrap_or(0),
            "fcharset" if self.group.fonts => {
                if let Some(encoding) = charset(number.unwrap_or(0)) {
                    self.font_encodings.insert(self.font, encoding);
                }
            }
            "f" => self.use_font(number),
            "plain" => {
                self.group.invisible = false;
                self.use_font(self.default_font);
            }
            "uc" => self.group.fallback = usize::try_from(number.unwrap_or(1)).unwrap_or(1),
            "u" => self.unicode(number.unwrap_or(0)),
            "v" | "deleted" => self.group.invisible = number != Some(0),
            name if is_hidden(name) => {
                self.group.hidden = true;
                self.objects += usize::from(name == "objdata");
            }
            _ if self.group.shows_nothing() => {}
            "par" | "sect" | "page" => {
                self.flow.end_heading();
                self.flow.widen(Gap::Paragraph);
            }
            "line" | "row" | "nestrow" => self.flow.widen(Gap::Line),
            "tab" | "cell" | "nestcell" => self.flow.widen(Gap::Cell),
            "outlinelevel" if number.is_some_and(|level| level < 9) => self.flow.begin_heading(),
            "footnote" => self.flow.widen(Gap::Space),
            name => {
                if let Some(character) = named_character(name) {
                    self.flow.verbatim(character);
                }
            }
        }
    }

    fn symbol(&mut self, symbol: u8) {
        if self.group.shows_nothing() {
            return;
        }
        match symbol {
            b'~' => self.flow.widen(Gap::Space),
            b'_' => self.flow.verbatim("-"),
            b'{' | b'}' | b'\\' => self.flow.verbatim(&char::from(symbol).to_string()),
            b'\n' | b'\r' => self.flow.widen(Gap::Paragraph),
            _ => {}
        }
    }

    fn bytes(&mut self, mut bytes: &[u8]) {
        self.group.opening = Opening::More;
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        bytes = &bytes[skipped..];
        if !bytes.is_empty() {
            self.surrogate = None;
        }
        if !self.group.shows_nothing() {
            self.pending.extend_from_slice(bytes);
        }
    }

    fn unicode(&mut self, number: i32) {
        self.skip = self.group.fallback;
        if self.group.shows_nothing() {
            return;
        }
        // Numbers above 32767 are written as negative ones.
        let Ok(unit) = u16::try_from(number & 0xFFFF) else { return };
        let first_half = self.surrogate.take();
        if is_first_half(unit) {
            self.surrogate = Some(unit);
            return;
        }
        // One half without the other is dropped, and nothing else with it.
        let character = char::from_u32(unit.into()).or_else(|| {
            let halves = [first_half?, unit];
            char::decode_utf16(halves).next()?.ok()
        });
        match character {
            Some(character) if character.is_whitespace() => self.flow.widen(Gap::Space),
            Some(character) => self.flow.verbatim(character.encode_utf8(&mut [0; 4])),
            None => {}
        }
    }

    fn use_font(&mut self, font: Option<i32>) {
        let encoding = font.and_then(|font| self.font_encodings.get(&font).copied());
        self.group.encoding = encoding.unwrap_or(self.document_encoding);
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            let (text, _) = self.group.encoding.decode_without_bom_handling(&self.pending);
            self.flow.words(&text);
            self.pending.clear();
        }
    }
}

/// Whether it is a high surrogate of UTF-16.
const fn is_first_half(unit: u16) -> bool {
    matches!(unit, 0xD800..=0xDBFF)
}

/// Groups whose content is not text of the document.
fn is_hidden(destination: &str) -> bool {
    matches!(
        destination,
        "colortbl"
            | "stylesheet"
            | "info"
            | "pict"
            | "objdata"
            | "header"
            | "headerl"
            | "headerr"
            | "headerf"
            | "footer"
            | "footerl"
            | "footerr"
            | "footerf"
            | "fldinst"
            | "listtext"
            | "pntext"
            | "sp"
            | "xe"
            | "tc"
            | "ftnsep"
            | "ftnsepc"
            | "aftnsep"
            | "aftnsepc"
    )
}

fn named_character(name: &str) -> Option<&'static str> {
    Some(match name {
        "emdash" => "—",
        "endash" => "–",
        "lquote" => "‘",
        "rquote" => "’",
        "ldblquote" => "“",
        "rdblquote" => "”",
        "bullet" => "•",
        _ => return None,
    })
}

fn code_page(number: i32) -> &'static Encoding {
    let label = match number {
        874 => "windows-874".to_owned(),
        932 => "shift_jis".to_owned(),
        936 => "gbk".to_owned(),
        949 => "euc-kr".to_owned(),
        950 => "big5".to_owned(),
        10_000 => "macintosh".to_owned(),
        65_001 => "utf-8".to_owned(),
        number => format!("windows-{number}"),
    };
    Encoding::for_label(label.as_bytes()).unwrap_or(WINDOWS_1252)
}

/// The encoding of a font, by the numbers that Windows gives to them.
fn charset(number: i32) -> Option<&'static Encoding> {
    Some(code_page(match number {
        0 => 1252,
        77 => 10_000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        _ => return None,
    }))
}

enum Token<'a> {
    Open,
    Close,
    Word(&'a str, Option<i32>),
    Symbol(u8),
    /// A byte spelled out as `\'hh`.
    Byte(u8),
    Text(&'a [u8]),
}

struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let (first, rest) = self.rest.split_first()?;
            match first {
                b'{' | b'}' => {
                    self.rest = rest;
                    return Some(if *first == b'{' { Token::Open } else { Token::Close });
                }
                // Line breaks mean nothing.
                b'\r' | b'\n' | 0 => self.rest = rest,
                b'\\' => {
                    self.rest = rest;
                    return self.control();
                }
                _ => {
                    let ends = |byte: &u8| matches!(byte, b'{' | b'}' | b'\\' | b'\r' | b'\n' | 0);
                    let length = self.rest.iter().position(ends).unwrap_or(self.rest.len());
                    return Some(Token::Text(self.take(length)));
                }
            }
        }
    }

    fn control(&mut self) -> Option<Token<'a>> {
        let letters = self.rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        if letters == 0 {
            let symbol = *self.take(1).first()?;
            if symbol != b'\'' {
                return Some(Token::Symbol(symbol));
            }
            let digits = std::str::from_utf8(self.take(2)).ok();
            // If they are no number, both characters are dropped.
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            return Some(byte.map_or(Token::Symbol(b' '), Token::Byte));
        }
        let name = std::str::from_utf8(self.take(letters)).unwrap_or_default();
        let sign = usize::from(self.rest.first() == Some(&b'-'));
        let digits = self.rest.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
        let number = if digits == 0 {
            None
        } else {
            std::str::from_utf8(self.take(sign + digits)).ok().and_then(|digits| digits.parse().ok())
        };
        if self.rest.first() == Some(&b' ') {
            self.take(1);
        }
        Some(Token::Word(name, number))
    }

    fn skip(&mut self, length: usize) {
        self.take(length);
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::error::ErrorKind;
    use crate::limits::Limits;
    use landfall_core::text::Extracted;

    fn read(source: &[u8]) -> Result<Extracted, Error> {
        let bounds = Bounds { limits: &Limits::default(), progress: &|| ControlFlow::Continue(()) };
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
        assert_eq!(extracted.text, "Tides\n\nHigh water at café {noon}.\nNext line\tcell\n\na link shown");
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
