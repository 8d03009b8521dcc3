//! The text that a person sees on a page, a block a paragraph, with the headings it stands under.
//!
//! The page is read as a sequence of tags and words, not built into a tree: what a tree-builder makes of a hostile page
//! can be a hundred times its size, and take the square of its time.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use super::flow::{Flow, Gap};
use super::limits::Bounds;
use crate::failure::Failure;
use crate::stages::Extracted;

/// How much of a page is read between two looks at whether anybody still waits.
const PORTION: usize = 64 * 1024;

pub fn looks_like(text: &str) -> bool {
    let start = text.trim_start();
    let start = &start.as_bytes()[..start.len().min(32)].to_ascii_lowercase();
    [&b"<!doctype html"[..], b"<html"].iter().any(|mark| start.starts_with(mark))
}

pub fn extract(source: &str, bounds: Bounds<'_>) -> Result<Extracted, Failure> {
    let tokenizer = Tokenizer::new(Page(RefCell::new(Text::new(bounds))), TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut rest = source;
    while !rest.is_empty() {
        bounds.go_on()?;
        tokenizer.sink.0.borrow().flow.check()?;
        let (portion, after) = rest.split_at(rest.floor_char_boundary(PORTION));
        input.push_back(StrTendril::from_slice(portion));
        // It pauses only for scripts, of which we run none.
        drop(tokenizer.feed(&input));
        rest = after;
    }
    tokenizer.end();
    tokenizer.sink.0.into_inner().flow.finish()
}

struct Page(RefCell<Text>);

impl TokenSink for Page {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut text = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(words) => text.words(&words),
            Token::TagToken(tag) if tag.kind == TagKind::EndTag => text.close(&tag.name),
            Token::TagToken(tag) => {
                text.open(&tag.name);
                // What is in these is not markup; the reader must be told, or it takes a script for tags.
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
    /// The element we are in that shows nothing, and how many of its kind.
    hidden: Option<(String, usize)>,
    preformatted: usize,
}

impl Text {
    fn new(bounds: Bounds<'_>) -> Self {
        Self { flow: Flow::new(bounds.limits), hidden: None, preformatted: 0 }
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
    use tokio_util::sync::CancellationToken;

    use super::super::limits::Limits;
    use super::*;
    use crate::failure::Code;
    use crate::stages::Place;

    fn read(page: &str) -> Extracted {
        let bounds =
            Bounds { limits: &Limits::default(), cancelled: &CancellationToken::new(), progress: &|| () };
        extract(page, bounds).expect("read")
    }

    #[test]
    fn a_page_becomes_what_a_person_reads_on_it() {
        let page = "<html><head><title>T</title><style>p{}</style></head><body><h1>Over <i>view</i></h1>
            <p>One&nbsp;two
            three.</p><ul><li>first<li>second</ul><table><tr><td>a</td><td>b</td></tr></table>
            <script>if (a < b) alert('<p>no</p>')</script></body></html>";
        let extracted = read(page);
        assert_eq!(extracted.text, "T\n\nOver view\n\nOne two three.\n\nfirst\nsecond\n\na b");
        assert_eq!(extracted.places, [Place { start: 3, page: None, heading: Some("Over view".to_owned()) }]);
    }

    #[test]
    fn words_that_only_markup_divides_stay_one_word() {
        assert_eq!(read("<p>un<b>believ</b>able</p>").text, "unbelievable");
    }

    #[test]
    fn what_is_hidden_in_what_is_hidden_stays_hidden() {
        assert_eq!(read("<svg><g><svg>a</svg>b</g></svg>c<template><p>d</p></template>").text, "c");
    }

    #[test]
    fn a_page_made_to_hurt_a_parser_is_read_like_any_other() {
        for (page, words) in [
            ("<div>".repeat(300_000) + "end", 1),
            ("<div/>".repeat(300_000) + "end", 1),
            ("<b></x>".repeat(100_000) + "end", 1),
            ("<p><b id=1>x</p>".repeat(20_000), 20_000),
            (format!("<p {}>end", "a=1 ".repeat(20_000)), 1),
        ] {
            assert_eq!(read(&page).text.split_whitespace().count(), words);
        }
    }

    #[test]
    fn a_reader_that_nobody_waits_for_stops() {
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let bounds = Bounds { limits: &Limits::default(), cancelled: &cancelled, progress: &|| () };
        assert_eq!(extract("<p>a", bounds).unwrap_err().code, Code::StageTimeout);
    }
}
