//! Feeds a page to the tokenizer with the few attributes that matter.
//!
//! The tokenizer compares each attribute of a tag with all before it, so a tag of a megabyte can take it hours. So
//! attributes are skipped here, each byte once, except the first one of each name in [`KEPT`].
//!
//! Only the tokenizer knows whether a `<` begins a tag: in a script or a comment it does not. It emits a token
//! whenever something ends. As long as it emits none, it is still inside what the last `<` began.

use std::ops::Range;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, TokenSink, Tokenizer, TokenizerOpts};

use crate::error::Error;
use crate::limits::Bounds;

/// How many bytes of a page are read between two reports of progress.
const PROGRESS_EVERY: usize = 64 * 1024;

/// The attributes that readers look at.
const KEPT: &[&str] = &[
    "alt", "border", "checked", "class", "colspan", "hidden", "href", "open", "role", "rowspan", "src",
    "start", "style", "type", "value",
];
/// A longer attribute is skipped, except a source, which may be a picture.
const MAX_ATTRIBUTE: usize = 8 * 1024;

/// Receives the tokens.
pub trait Sink: TokenSink<Handle = ()> {
    /// Whether a token other than a parse error has arrived since the last call.
    fn take_token_arrived(&self) -> bool;
    /// An error if the text exceeds a limit.
    fn check(&self) -> Result<(), Error>;
}

pub struct Feeder<'a, S: Sink> {
    tokenizer: Tokenizer<S>,
    input: BufferQueue,
    rest: &'a str,
    bounds: Bounds<'a>,
    /// How much was left at the last report of progress.
    left_at_report: usize,
}

impl<'a, S: Sink> Feeder<'a, S> {
    pub fn new(source: &'a str, sink: S, bounds: Bounds<'a>) -> Self {
        Self {
            tokenizer: Tokenizer::new(sink, TokenizerOpts::default()),
            input: BufferQueue::default(),
            rest: source,
            bounds,
            left_at_report: source.len(),
        }
    }

    pub fn run(mut self) -> Result<S, Error> {
        self.bounds.report_progress()?;
        let mut in_something = false;
        while let Some(at) = memchr::memchr(b'<', self.rest.as_bytes()) {
            in_something &= !self.feed(at + 1)?;
            while !in_something {
                match self.begun() {
                    Begun::Tag => {
                        if self.tag()? == Tag::AnotherBegan {
                            continue;
                        }
                    }
                    // This ends without a token.
                    Begun::Nothing => _ = self.feed("/>".len())?,
                    Begun::Other => in_something = true,
                }
                break;
            }
        }
        self.feed(self.rest.len())?;
        self.tokenizer.end();
        Ok(self.tokenizer.sink)
    }

    /// What the `<` that was just fed begins.
    fn begun(&self) -> Begun {
        match self.rest.as_bytes() {
            [b'/', b'>', ..] => Begun::Nothing,
            [b'/', letter, ..] | [letter, ..] if letter.is_ascii_alphabetic() => Begun::Tag,
            _ => Begun::Other,
        }
    }

    /// Feeds what looks like a tag, up to its end if it is one.
    fn tag(&mut self) -> Result<Tag, Error> {
        let is_end = self.rest.starts_with('/');
        if is_end && self.feed(1)? {
            return Ok(Tag::NotOne);
        }
        loop {
            let ends = |byte| matches!(byte, b'>' | b'/' | b'<') || is_space(byte);
            let length = self.rest.bytes().position(ends).unwrap_or(self.rest.len());
            if self.feed(length)? {
                return Ok(Tag::NotOne);
            }
            match self.rest.bytes().next() {
                // Part of the name, unless the tokenizer emits a token: then it was no tag.
                Some(b'<') => {
                    if self.feed(1)? {
                        return Ok(Tag::AnotherBegan);
                    }
                }
                None => return Ok(Tag::Fed),
                Some(_) => break,
            }
        }
        let from_its_name = self.rest;
        let at_end = from_its_name.starts_with('>');
        if self.feed(1)? || at_end {
            return Ok(if at_end { Tag::Fed } else { Tag::NotOne });
        }
        let Attributes { length, end, kept } = attributes(from_its_name.as_bytes());
        self.rest = &from_its_name[length..];
        if !is_end && !end.is_empty() {
            for range in kept.into_iter().flatten() {
                self.push(" ");
                self.push(&from_its_name[range]);
            }
        }
        self.push(end);
        self.tokenizer.sink.take_token_arrived();
        Ok(Tag::Fed)
    }

    /// Feeds this many bytes and returns whether the tokenizer emitted a token.
    fn feed(&mut self, length: usize) -> Result<bool, Error> {
        let (mut now, rest) = self.rest.split_at(length);
        while !now.is_empty() {
            let (batch, after) = now.split_at(now.floor_char_boundary(PROGRESS_EVERY));
            self.push(batch);
            now = after;
            if self.left_at_report.saturating_sub(now.len() + rest.len()) >= PROGRESS_EVERY {
                self.left_at_report = now.len() + rest.len();
                self.bounds.report_progress()?;
                self.tokenizer.sink.check()?;
            }
        }
        self.rest = rest;
        Ok(self.tokenizer.sink.take_token_arrived())
    }

    fn push(&self, text: &str) {
        self.input.push_back(StrTendril::from_slice(text));
        // It pauses only to let scripts run, and none are run here.
        drop(self.tokenizer.feed(&self.input));
    }
}

enum Begun {
    Tag,
    /// A comment, a declaration, or nothing at all.
    Other,
    /// `</>`, which browsers ignore.
    Nothing,
}

#[derive(PartialEq, Eq)]
enum Tag {
    Fed,
    /// It was text, for example in a script.
    NotOne,
    /// It was text up to another `<`.
    AnotherBegan,
}

/// The rest of a tag after its name.
struct Attributes {
    length: usize,
    /// The end of the tag without its attributes; empty if the page ends before.
    end: &'static str,
    /// Where each of [`KEPT`] is.
    kept: [Option<Range<usize>>; KEPT.len()],
}

fn attributes(bytes: &[u8]) -> Attributes {
    let mut kept = [const { None }; KEPT.len()];
    let mut at = 0;
    let skip = |at: &mut usize, skipped: fn(u8) -> bool| {
        *at += bytes[*at..].iter().take_while(|byte| skipped(**byte)).count();
    };
    loop {
        let before = at;
        skip(&mut at, |byte| is_space(byte) || byte == b'/');
        let start = at;
        match bytes.get(at) {
            None => return Attributes { length: bytes.len(), end: "", kept },
            Some(b'>') => {
                let closes_itself = bytes[before..at].ends_with(b"/");
                return Attributes { length: at + 1, end: if closes_itself { " />" } else { " >" }, kept };
            }
            Some(_) => at += 1,
        }
        skip(&mut at, |byte| !is_space(byte) && !matches!(byte, b'/' | b'>' | b'='));
        let name = start..at;
        skip(&mut at, is_space);
        if bytes.get(at) != Some(&b'=') {
            keep(&mut kept, bytes, name.clone(), name);
            continue;
        }
        at += 1;
        skip(&mut at, is_space);
        match bytes.get(at) {
            Some(quote @ (b'"' | b'\'')) => {
                let Some(length) = memchr::memchr(*quote, &bytes[at + 1..]) else {
                    return Attributes { length: bytes.len(), end: "", kept };
                };
                at += length + 2;
            }
            _ => skip(&mut at, |byte| !is_space(byte) && byte != b'>'),
        }
        keep(&mut kept, bytes, name, start..at);
    }
}

/// Remembers where an attribute is, if it is the first of a name that is kept.
fn keep(kept: &mut [Option<Range<usize>>], bytes: &[u8], name: Range<usize>, whole: Range<usize>) {
    let name = &bytes[name];
    if let Some(number) = KEPT.iter().position(|kept| kept.as_bytes().eq_ignore_ascii_case(name))
        && kept[number].is_none()
        && (whole.len() <= MAX_ATTRIBUTE || KEPT[number] == "src")
    {
        kept[number] = Some(whole);
    }
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0C')
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use std::cell::Cell;

    use html5ever::tokenizer::{Token, TokenSinkResult};

    use super::*;
    use crate::limits::Limits;

    #[derive(Default)]
    struct Counter {
        token_arrived: Cell<bool>,
        tags: Cell<usize>,
        attributes: Cell<usize>,
    }

    impl TokenSink for Counter {
        type Handle = ();

        fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
            self.token_arrived.set(self.token_arrived.get() || !matches!(token, Token::ParseError(_)));
            if let Token::TagToken(tag) = token {
                self.tags.set(self.tags.get() + 1);
                self.attributes.set(self.attributes.get() + tag.attrs.len());
            }
            TokenSinkResult::Continue
        }
    }

    impl Sink for Counter {
        fn take_token_arrived(&self) -> bool {
            self.token_arrived.take()
        }

        fn check(&self) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn the_tokenizer_sees_only_the_first_attribute_of_each_name_that_is_kept() {
        let page = "<p a HREF='>' href=y><br c/></p href=e>x &am<i f></><b alt><u<s h=\"i\"><!-- <a j> --><a k>< \
                    <a l><em\nhidden>";
        let limits = Limits::default();
        let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
        let counter = Feeder::new(page, Counter::default(), bounds).run().expect("read");
        assert_eq!((counter.tags.get(), counter.attributes.get()), (9, 3));
    }
}
