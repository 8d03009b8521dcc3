//! HTML: the visible text of a page, with its headings, lists, tables, links and code.
//!
//! The page is read as a sequence of tags and words. No tree is built: for a hostile page it can be a hundred times
//! the size of the page, and take quadratic time.

mod elements;
mod feeder;
mod formula;
mod lists;
mod survey;
mod tables;
mod text;

use std::cell::{Cell, RefCell};

use encoding_rs::Encoding;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult};

use feeder::{Feeder, Sink};
use survey::Survey;
use text::Text;

use super::xml;
use crate::error::Error;
use crate::limits::Bounds;
use crate::missing::PageCount;
use crate::reading::Reading;

/// Finds a picture of the page by its address.
pub type Pictures<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

pub fn looks_like(text: &str) -> bool {
    let start = text.trim_start();
    let start = &start.as_bytes()[..start.len().min(32)].to_ascii_lowercase();
    [&b"<!doctype html"[..], b"<html"].iter().any(|mark| start.starts_with(mark))
}

/// The encoding that the page declares at its beginning, which counts for more than a guess.
pub fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    const MAX_OFFSET: usize = 2_048;
    let start = bytes[..bytes.len().min(MAX_OFFSET)].to_ascii_lowercase();
    let mut tags = memchr::memmem::find_iter(&start, b"<meta");
    tags.find_map(|at| {
        let tag = start[at..].split(|byte| *byte == b'>').next()?;
        let value = &tag[memchr::memmem::find(tag, b"charset")? + b"charset".len()..];
        let value = value.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
        let value = value.iter().skip_while(|byte| matches!(byte, b'"' | b'\''));
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':');
        Encoding::for_label(&value.take_while(is_name).copied().collect::<Vec<_>>())
    })
}

pub fn read(source: &str, bounds: Bounds<'_>) -> Result<Reading, Error> {
    read_with_pictures(source, &|_| None, bounds)
}

/// Reads a page whose pictures come with it, as in a mail.
pub fn read_with_pictures(
    source: &str,
    pictures: Pictures<'_>,
    bounds: Bounds<'_>,
) -> Result<Reading, Error> {
    read_text(source, Text::new(is_xhtml(source), Survey::of(source, bounds)?, pictures, bounds), bounds)
}

/// Reads a page that is a part of a document. Its title is the name of a part, and no text.
pub fn read_part(source: &str, pictures: Pictures<'_>, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let text = Text::new(true, Survey::of(source, bounds)?, pictures, bounds).without_title();
    read_text(source, text, bounds)
}

fn read_text(source: &str, text: Text<'_>, bounds: Bounds<'_>) -> Result<Reading, Error> {
    let page = Feeder::new(source, Page::new(text), bounds).run()?;
    page.text.into_inner().finish()?.finish_reading(PageCount::default())
}

/// Whether the page is written in XML, which is declared before its content.
fn is_xhtml(source: &str) -> bool {
    const MAX_OFFSET: usize = 1_024;
    let start = source[..source.floor_char_boundary(MAX_OFFSET)].to_ascii_lowercase();
    let before_content = ["<head", "<body", "<title"].iter().filter_map(|mark| start.find(mark)).min();
    xml::looks_like(source) || start[..before_content.unwrap_or(start.len())].contains("xhtml")
}

struct Page<'a> {
    text: RefCell<Text<'a>>,
    /// Whether a token has arrived since the last call of `take_token_arrived`.
    token_arrived: Cell<bool>,
}

impl<'a> Page<'a> {
    fn new(text: Text<'a>) -> Self {
        Self { text: RefCell::new(text), token_arrived: Cell::new(false) }
    }
}

impl Sink for Page<'_> {
    fn take_token_arrived(&self) -> bool {
        self.token_arrived.take()
    }

    fn check(&self) -> Result<(), Error> {
        self.text.borrow().check()
    }
}

impl TokenSink for Page<'_> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut text = self.text.borrow_mut();
        self.token_arrived.set(self.token_arrived.get() || !matches!(token, Token::ParseError(_)));
        match token {
            Token::CharacterTokens(words) => text.words(&words),
            Token::TagToken(tag) if tag.kind == TagKind::EndTag => text.close(&tag.name),
            Token::TagToken(tag) => {
                let is_empty = tag.self_closing && text.may_close_itself(&tag.name);
                text.open(&tag.name, Attributes(&tag));
                if is_empty {
                    text.close(&tag.name);
                    return TokenSinkResult::Continue;
                }
                return content_of(&tag);
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// The content of some elements is not markup, and the tokenizer must be told so.
fn content_of(tag: &Tag) -> TokenSinkResult<()> {
    match &*tag.name {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "iframe" | "noembed" | "noframes" | "xmp" => TokenSinkResult::RawData(RawKind::Rawtext),
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

/// The attributes of a tag.
#[derive(Clone, Copy)]
struct Attributes<'a>(&'a Tag);

impl<'a> Attributes<'a> {
    fn get(self, name: &str) -> Option<&'a str> {
        self.0
            .attrs
            .iter()
            .find(|attribute| &*attribute.name.local == name)
            .map(|attribute| &*attribute.value)
    }

    fn is(self, name: &str, value: &str) -> bool {
        self.get(name).is_some_and(|found| found.trim().eq_ignore_ascii_case(value))
    }

    fn number(self, name: &str) -> Option<i64> {
        self.get(name)?.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests;
