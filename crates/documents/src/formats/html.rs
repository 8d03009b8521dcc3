//! HTML: the visible text of a page, one paragraph for each block, and its headings.
//!
//! The page is read as a sequence of tags and words. No tree is built: for a hostile page it can be a hundred times
//! the size of the page, and take quadratic time.

mod feeder;

use std::cell::{Cell, RefCell};

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{TagKind, Token, TokenSink, TokenSinkResult};

use feeder::{Feeder, Sink};

use super::xml;
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use landfall_core::text::Extracted;

pub fn looks_like(text: &str) -> bool {
    let start = text.trim_start();
    let start = &start.as_bytes()[..start.len().min(32)].to_ascii_lowercase();
    [&b"<!doctype html"[..], b"<html"].iter().any(|mark| start.starts_with(mark))
}

pub fn extract(source: &str, bounds: Bounds<'_>) -> Result<Extracted, Error> {
    let page = Page::new(Text::new(is_xhtml(source), bounds));
    Feeder::new(source, page, bounds).run()?.text.into_inner().flow.finish()
}

/// Whether the page is written in XML, which is declared before its content.
fn is_xhtml(source: &str) -> bool {
    const MAX_OFFSET: usize = 1_024;
    let start = source[..source.floor_char_boundary(MAX_OFFSET)].to_ascii_lowercase();
    let before_content = ["<head", "<body", "<title"].iter().filter_map(|mark| start.find(mark)).min();
    xml::looks_like(source) || start[..before_content.unwrap_or(start.len())].contains("xhtml")
}

struct Page {
    text: RefCell<Text>,
    /// Whether a token has arrived since the last call of `take_token_arrived`.
    token_arrived: Cell<bool>,
}

impl Page {
    fn new(text: Text) -> Self {
        Self { text: RefCell::new(text), token_arrived: Cell::new(false) }
    }
}

impl Sink for Page {
    fn take_token_arrived(&self) -> bool {
        self.token_arrived.take()
    }

    fn check(&self) -> Result<(), Error> {
        self.text.borrow().flow.check()
    }
}

impl TokenSink for Page {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut text = self.text.borrow_mut();
        self.token_arrived.set(self.token_arrived.get() || !matches!(token, Token::ParseError(_)));
        match token {
            Token::CharacterTokens(words) => text.words(&words),
            Token::TagToken(tag) if tag.kind == TagKind::EndTag => text.close(&tag.name),
            Token::TagToken(tag) => {
                let is_empty = tag.self_closing && text.may_close_itself(&tag.name);
                text.open(&tag.name);
                if is_empty {
                    text.close(&tag.name);
                    return TokenSinkResult::Continue;
                }
                // The content of these is not markup, and the tokenizer must be told so.
                return match &*tag.name {
                    "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                    "style" | "iframe" | "noembed" | "noframes" | "xmp" => {
                        TokenSinkResult::RawData(RawKind::Rawtext)
                    }
                    "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
                    "plaintext" => TokenSinkResult::Plaintext,
                    _ => TokenSinkResult::Continue,
                };
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

struct Text {
    flow: Flow,
    is_xhtml: bool,
    /// The outermost hidden element that is open, and how many of its name are nested in it.
    hidden: Option<(String, usize)>,
    preformatted: usize,
}

impl Text {
    fn new(is_xhtml: bool, bounds: Bounds<'_>) -> Self {
        Self { flow: Flow::new(bounds.limits), is_xhtml, hidden: None, preformatted: 0 }
    }

    /// Elements of XML may. In HTML the slash means nothing: `<script/>` begins a script.
    fn may_close_itself(&self, element: &str) -> bool {
        let in_drawing = self.hidden.as_ref().is_some_and(|(hidden, _)| hidden == "svg");
        self.is_xhtml || in_drawing || matches!(element, "svg" | "math")
    }

    fn open(&mut self, element: &str) {
        match &mut self.hidden {
            Some((hidden, depth)) if hidden == element => *depth += 1,
            Some(_) => return,
            None if is_hidden(element) => self.hidden = Some((element.to_owned(), 1)),
            None => {}
        }
        self.flow.widen(match element {
            "br" => Gap::Line,
            "td" | "th" => Gap::Space,
            _ => gap_around(element),
        });
        if element == "pre" {
            self.preformatted += 1;
        }
        if is_heading(element) {
            self.flow.begin_heading();
        }
    }

    fn close(&mut self, element: &str) {
        if let Some((hidden, depth)) = &mut self.hidden {
            if hidden == element {
                *depth -= 1;
                if *depth == 0 {
                    self.hidden = None;
                }
            }
            return;
        }
        if element == "pre" {
            self.preformatted = self.preformatted.saturating_sub(1);
        }
        if is_heading(element) {
            self.flow.end_heading();
        }
        self.flow.widen(gap_around(element));
    }

    fn words(&mut self, words: &str) {
        if self.hidden.is_some() {
        } else if self.preformatted > 0 {
            self.flow.verbatim(words);
        } else {
            self.flow.words(words);
        }
    }
}

fn is_hidden(element: &str) -> bool {
    matches!(element, "script" | "style" | "template" | "noscript" | "svg" | "iframe" | "object" | "noembed")
}

fn is_heading(element: &str) -> bool {
    matches!(element, "h1" | "h2" | "h3" | "h4" | "h5" | "h6")
}

fn gap_around(element: &str) -> Gap {
    match element {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "dl" | "table" | "pre"
        | "blockquote" | "section" | "article" | "header" | "footer" | "main" | "nav" | "aside"
        | "figure" | "form" | "hr" | "title" => Gap::Paragraph,
        "div" | "li" | "tr" | "dt" | "dd" | "figcaption" | "caption" | "address" | "option" | "body" => {
            Gap::Line
        }
        _ => Gap::None,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use html5ever::tendril::StrTendril;
    use html5ever::tokenizer::{BufferQueue, Tokenizer, TokenizerOpts};
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorKind;
    use crate::limits::Limits;
    use landfall_core::text::Place;

    fn read(page: &str) -> Extracted {
        let bounds = Bounds { limits: &Limits::default(), progress: &|| ControlFlow::Continue(()) };
        extract(page, bounds).expect("read")
    }

    #[test]
    fn a_page_becomes_its_visible_text() {
        let page = "<html><head><title>T</title><style>p{}</style></head><body><h1>Over <i>view</i></h1>
            <p>One&nbsp;two
            three.</p><ul><li>first<li>second</ul><table><tr><td>a</td><td>b</td></tr></table>
            <script>if (a < b) alert('<p>no</p>')</script></body></html>";
        let extracted = read(page);
        assert_eq!(extracted.text, "T\n\nOver view\n\nOne two three.\n\nfirst\nsecond\n\na b");
        assert_eq!(extracted.places, [Place { start: 3, page: None, heading: Some("Over view".to_owned()) }]);
    }

    #[test]
    fn a_word_with_markup_inside_stays_one_word() {
        assert_eq!(read("<p>un<b>believ</b>able</p>").text, "unbelievable");
    }

    #[test]
    fn elements_inside_a_hidden_one_are_hidden() {
        assert_eq!(read("<svg><g><svg>a</svg>b</g></svg>c<template><p>d</p></template>").text, "c");
    }

    #[test]
    fn an_element_that_closes_itself_hides_nothing_after_it() {
        assert_eq!(read("a <svg/>b <svg width=1 /> c<svg><svg/><style/><path/>x</svg>d").text, "a b cd");
        let body = "<head><title>T</title><script src='a.js'/><style/></head><body><iframe/>b</body></html>";
        for xhtml in [
            "<?xml version='1.0'?><html>",
            "<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN' 'x.dtd'><html>",
            "<html xmlns='http://www.w3.org/1999/xhtml'>",
        ] {
            assert_eq!(read(&format!("{xhtml}{body}")).text, "T\n\nb");
        }
        assert_eq!(read("<html><title>XHTML</title><script/>b</script>c").text, "XHTML\n\nc");
    }

    fn different_attributes(number: usize) -> String {
        (0..number).map(|number| format!("a{number} ")).collect()
    }

    #[test]
    fn a_tag_ends_where_a_browser_ends_it() {
        for (page, text) in [
            ("<p title='a > b' x=\"1 > 0\" y=/z>one</p>", "one"),
            ("<p a = 'b>c' d>one<p a=b'>two", "one\n\ntwo"),
            ("<p =\">one<p a=\"\"b=''>two", "one\n\ntwo"),
            ("<p/a/>one<br/>two<b<i a='>'>three", "one\ntwothree"),
            ("<!-- <p a='> --> one <!x '> two <? \" <b c='> three </ '> four", "one two three four"),
            ("a < b <3 </> <p a='>'>c &lt<p a='>'>d", "a < b <3\n\nc <\n\nd"),
            ("<script>if (a<b c='</script x='>'>one", "one"),
            ("<title>a <b c='> d</title e='>'>f", "a <b c='> d\n\nf"),
            ("<style>a</styles x='</style x='>'>one", "one"),
            ("one<p a='never closed>two", "one"),
        ] {
            assert_eq!(read(page).text, text, "{page}");
        }
    }

    #[test]
    fn a_page_that_is_slow_for_other_parsers_is_read_like_any_other() {
        for (page, words) in [
            ("<div>".repeat(300_000) + "end", 1),
            ("<div/>".repeat(300_000) + "end", 1),
            ("<b></x>".repeat(100_000) + "end", 1),
            ("<p><b id=1>x</p>".repeat(20_000), 20_000),
            (format!("<p {}>end", "a=1 ".repeat(20_000)), 1),
            (format!("<p {}>end", different_attributes(200_000)), 1),
            (format!("<p></p {}>end", different_attributes(50_000)), 1),
            (format!("</><p {}>end", different_attributes(50_000)), 1),
            (format!("&am<p {}>end", different_attributes(50_000)), 2),
            (format!("<script>x<x</script {}>end", different_attributes(50_000)), 1),
        ] {
            assert_eq!(read(&page).text.split_whitespace().count(), words);
        }
    }

    /// Reads a page without removing the attributes.
    fn read_whole(page: &str) -> String {
        let bounds = Bounds { limits: &Limits::default(), progress: &|| ControlFlow::Continue(()) };
        let tokenizer =
            Tokenizer::new(Page::new(Text::new(is_xhtml(page), bounds)), TokenizerOpts::default());
        let input = BufferQueue::default();
        input.push_back(StrTendril::from_slice(page));
        drop(tokenizer.feed(&input));
        tokenizer.end();
        tokenizer.sink.text.into_inner().flow.finish().expect("read").text
    }

    proptest! {
        #[test]
        fn a_page_reads_the_same_without_the_attributes_of_its_tags(
            pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40),
        ) {
            let page = pieces.concat();
            prop_assert_eq!(read(&page).text, read_whole(&page), "{}", page);
        }
    }

    const PIECES: &[&str] = &[
        "<",
        "</",
        "/",
        ">",
        "/>",
        "=",
        "'",
        "\"",
        " ",
        "\n",
        "\r",
        "a",
        "é",
        "<p",
        "<b ",
        "</b",
        "<svg",
        "</svg>",
        "<br",
        "<script",
        "</script",
        "<style>",
        "</style",
        "<title>",
        "</title>",
        "<!--",
        "-->",
        "--!>",
        "<!",
        "<!doctype",
        "<?",
        "<![CDATA[",
        "]]>",
        "&",
        "&lt",
        "&am",
        "&amp;",
        " href=",
        " x='y'",
        "<plaintext",
        "</>",
        "\0",
    ];

    #[test]
    fn a_reader_stops_if_the_caller_wants_it() {
        let bounds = Bounds { limits: &Limits::default(), progress: &|| ControlFlow::Break(()) };
        assert_eq!(extract("<p>a", bounds).unwrap_err().kind(), ErrorKind::Stopped);
    }
}
