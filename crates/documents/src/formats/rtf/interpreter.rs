//! The state of the reader of RTF: groups, fonts and the text that is being read.

use std::collections::HashMap;

use encoding_rs::{Encoding, WINDOWS_1252};

use super::captures::{self, Capture, Kind};
use super::characters::{charset, code_page, named_character};
use super::styles::{Style, Styles};
use super::tokens::Tokens;
use super::writer::{Paragraph, Properties, Writer};
use crate::error::Error;
use crate::flow::Gap;
use crate::formats::inline::Inline;
use crate::limits::Bounds;
use crate::missing::PageCount;
use crate::reading::Reading;

/// The state that a group inherits and that ends with it.
#[derive(Clone, Copy)]
pub struct Group {
    pub hidden: bool,
    /// The text has the format "hidden".
    pub invisible: bool,
    pub table: Table,
    pub encoding: &'static Encoding,
    /// How many fallback characters for old programs follow a Unicode character.
    pub fallback: usize,
    pub opening: Opening,
    /// Whether it is the result of a field that is a link.
    pub is_link: bool,
}

/// What a group defines, whose text is then the names of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Table {
    None,
    Fonts,
    Styles,
}

/// How much of a group has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    Nothing,
    /// The mark that a program may skip the group if it does not know it.
    OptionalMark,
    More,
}

impl Group {
    pub fn shows_nothing(&self) -> bool {
        self.hidden || self.invisible
    }
}

pub struct Interpreter<'a> {
    pub group: Group,
    /// Fallback characters that are still to be skipped. They end with their group, and before a control word that is
    /// no character: not every program writes a fallback.
    pub skip: usize,
    pub bounds: Bounds<'a>,
    pub writer: Writer<'a>,
    /// The writer of the body, while that of a header or a footer is used.
    pub body: Option<Writer<'a>>,
    pub paragraph: Paragraph,
    pub properties: Properties,
    pub captures: Vec<Capture>,
    /// The instruction of the field whose result comes next.
    pub instruction: String,
    /// The author of the next comment.
    pub author: String,
    /// The right edges of the cells of the next row.
    pub edges: Vec<i32>,
    pub styles: Styles,
    pub style: (i32, Style),
    pub headers: Vec<Reading>,
    pub footers: Vec<Reading>,
    groups: Vec<Group>,
    /// Bytes that may be a part of a character.
    pending: Vec<u8>,
    /// Bytes of a picture or an object that are not written in digits.
    pub binary: Vec<u8>,
    /// The first half of a character that UTF-16 writes as two.
    surrogate: Option<u16>,
    font: i32,
    default_font: Option<i32>,
    font_encodings: HashMap<i32, &'static Encoding>,
    document_encoding: &'static Encoding,
}

impl<'a> Interpreter<'a> {
    pub fn new(bounds: Bounds<'a>) -> Self {
        Self {
            group: Group {
                hidden: false,
                invisible: false,
                table: Table::None,
                encoding: WINDOWS_1252,
                fallback: 1,
                opening: Opening::More,
                is_link: false,
            },
            skip: 0,
            bounds,
            writer: Writer::new(bounds),
            body: None,
            paragraph: Paragraph::default(),
            properties: Properties::default(),
            captures: Vec::new(),
            instruction: String::new(),
            author: String::new(),
            edges: Vec::new(),
            styles: Styles::default(),
            style: (0, Style::default()),
            headers: Vec::new(),
            footers: Vec::new(),
            groups: Vec::new(),
            pending: Vec::new(),
            binary: Vec::new(),
            surrogate: None,
            font: 0,
            default_font: None,
            font_encodings: HashMap::new(),
            document_encoding: WINDOWS_1252,
        }
    }

    pub fn check(&self) -> Result<(), Error> {
        self.writer.flow.check()
    }

    pub fn has_open_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    pub fn finish(mut self) -> Result<(Vec<Reading>, Reading, Vec<Reading>), Error> {
        self.flush();
        while !self.captures.is_empty() {
            self.end_capture()?;
        }
        self.end_paragraph()?;
        self.writer.finish()?;
        let mut reading = self.writer.flow.finish_reading(PageCount::default())?;
        let warnings = self.writer.objects.finish_flat(&reading.extracted.text);
        reading.extracted.warnings.extend(warnings);
        Ok((self.headers, reading, self.footers))
    }

    pub fn open(&mut self) -> Result<(), Error> {
        self.flush();
        self.skip = 0;
        if self.groups.len() > self.bounds.limits.depth {
            return Err(self.bounds.limits.too_deep());
        }
        self.groups.push(self.group);
        self.group.opening = Opening::Nothing;
        self.group.is_link = false;
        Ok(())
    }

    pub fn close(&mut self) -> Result<(), Error> {
        self.flush();
        self.skip = 0;
        if std::mem::take(&mut self.group.is_link) {
            self.paragraph.content.push(Inline::EndLink);
        }
        // Damaged files have a closing brace too many; the text before it is good.
        self.group = self.groups.pop().unwrap_or(self.group);
        if self.captures.last().is_some_and(|capture| self.groups.len() < capture.depth) {
            self.end_capture()?;
        }
        Ok(())
    }

    /// How many groups are open.
    pub fn depth(&self) -> usize {
        self.groups.len()
    }

    pub fn control(&mut self, name: &str, number: Option<i32>, tokens: &mut Tokens<'_>) -> Result<(), Error> {
        if self.group.opening == Opening::OptionalMark && !captures::is_known_option(name) {
            self.group.hidden = true;
        }
        match name {
            "bin" => {
                let bytes = tokens.take(usize::try_from(number.unwrap_or(0)).unwrap_or(0));
                if self.is_binary() {
                    self.binary.extend_from_slice(bytes);
                }
            }
            "fonttbl" => {
                self.group.hidden = true;
                self.group.table = Table::Fonts;
            }
            "ansicpg" => {
                self.document_encoding = code_page(number.unwrap_or(1252));
                self.group.encoding = self.document_encoding;
            }
            "deff" => self.default_font = number,
            "f" if self.group.table == Table::Fonts => self.font = number.unwrap_or(0),
            "fcharset" if self.group.table == Table::Fonts => {
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
            name if captures::is_hidden(name) => self.group.hidden = true,
            // It stands among the properties of its row, which are not read.
            "nestrow" if !self.group.invisible => return self.destination(name, number),
            _ if self.group.shows_nothing() => {}
            _ => return self.destination(name, number),
        }
        Ok(())
    }

    pub fn symbol(&mut self, symbol: u8) -> Result<(), Error> {
        if self.group.shows_nothing() {
            return Ok(());
        }
        match symbol {
            b'~' => self.words(" "),
            b'_' => self.words("-"),
            b'{' | b'}' | b'\\' => self.words(&char::from(symbol).to_string()),
            b'\n' | b'\r' => return self.end_paragraph(),
            _ => {}
        }
        Ok(())
    }

    pub fn bytes(&mut self, mut bytes: &[u8]) {
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

    pub fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        if self.is_binary() {
            let bytes = captures::from_hexadecimal(&pending);
            self.binary.extend(bytes);
        } else {
            let (text, _) = self.group.encoding.decode_without_bom_handling(&pending);
            self.words(&text);
        }
        self.pending = pending;
        self.pending.clear();
    }

    pub fn words(&mut self, words: &str) {
        let in_style = self.captures.last().is_some_and(|capture| capture.kind == Kind::Style);
        if self.group.table == Table::Styles && !in_style {
            return;
        }
        match self.paragraph.content.last_mut() {
            Some(Inline::Words(last)) => last.push_str(words),
            _ => self.paragraph.content.push(Inline::Words(words.to_owned())),
        }
    }

    pub fn gap(&mut self, gap: Gap) {
        self.paragraph.content.push(Inline::Gap(gap));
    }

    pub fn named_character(&mut self, name: &str) {
        if let Some(character) = named_character(name) {
            self.words(character);
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
        if let Some(character) = character {
            self.words(character.encode_utf8(&mut [0; 4]));
        }
    }

    fn use_font(&mut self, font: Option<i32>) {
        let encoding = font.and_then(|font| self.font_encodings.get(&font).copied());
        self.group.encoding = encoding.unwrap_or(self.document_encoding);
    }
}

/// Whether it is a high surrogate of UTF-16.
const fn is_first_half(unit: u16) -> bool {
    matches!(unit, 0xD800..=0xDBFF)
}
