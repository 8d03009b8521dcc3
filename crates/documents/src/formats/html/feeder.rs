//! Hands a page to the tokenizer without the attributes of its tags.
//!
//! The tokenizer compares each attribute of a tag with all before it, so a tag of a megabyte can take it hours. Nothing
//! that a person reads stands in an attribute: they are passed over here, each byte once.
//!
//! Whether a `<` begins a tag, only the tokenizer knows: in a script or a comment it does not. It speaks whenever
//! something has come to its end, so as long as it is silent it is still in what began at the `<` before.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, TokenSink, Tokenizer, TokenizerOpts};

use crate::error::Error;
use crate::limits::Bounds;

/// How much of a page is read between two looks at whether anybody still waits.
const PORTION: usize = 64 * 1024;

/// Whoever listens to the tokenizer.
pub trait Reader: TokenSink<Handle = ()> {
    /// Whether it heard anything but complaints since it was last asked.
    fn take_heard(&self) -> bool;
    fn check(&self) -> Result<(), Error>;
}

pub struct Feeder<'a, R: Reader> {
    tokenizer: Tokenizer<R>,
    input: BufferQueue,
    rest: &'a str,
    bounds: Bounds<'a>,
    /// How much was left when somebody last looked whether anybody still waits.
    looked_at: usize,
}

impl<'a, R: Reader> Feeder<'a, R> {
    pub fn new(source: &'a str, reader: R, bounds: Bounds<'a>) -> Self {
        Self {
            tokenizer: Tokenizer::new(reader, TokenizerOpts::default()),
            input: BufferQueue::default(),
            rest: source,
            bounds,
            looked_at: source.len(),
        }
    }

    pub fn run(mut self) -> Result<R, Error> {
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
                    // The one thing that ends without a word.
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

    /// What the `<` that was just fed begins, if it begins anything.
    fn begun(&self) -> Begun {
        match self.rest.as_bytes() {
            [b'/', b'>', ..] => Begun::Nothing,
            [b'/', letter, ..] | [letter, ..] if letter.is_ascii_alphabetic() => Begun::Tag,
            _ => Begun::Other,
        }
    }

    /// Feeds what looks like a tag, up to its end if it is one.
    fn tag(&mut self) -> Result<Tag, Error> {
        if self.rest.starts_with('/') && self.feed(1)? {
            return Ok(Tag::NotOne);
        }
        loop {
            let ends = |byte| matches!(byte, b'>' | b'/' | b'<') || is_space(byte);
            let length = self.rest.bytes().position(ends).unwrap_or(self.rest.len());
            if self.feed(length)? {
                return Ok(Tag::NotOne);
            }
            match self.rest.bytes().next() {
                // In a name, unless it was none: then the tokenizer has just said so.
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
        let (length, end) = attributes(from_its_name.as_bytes());
        self.rest = &from_its_name[length..];
        self.push(end);
        self.tokenizer.sink.take_heard();
        Ok(Tag::Fed)
    }

    /// Feeds so many bytes and says whether the tokenizer spoke.
    fn feed(&mut self, length: usize) -> Result<bool, Error> {
        let (mut now, rest) = self.rest.split_at(length);
        while !now.is_empty() {
            let (portion, after) = now.split_at(now.floor_char_boundary(PORTION));
            self.push(portion);
            now = after;
            if self.looked_at.saturating_sub(now.len() + rest.len()) >= PORTION {
                self.looked_at = now.len() + rest.len();
                self.bounds.report_progress()?;
                self.tokenizer.sink.check()?;
            }
        }
        self.rest = rest;
        Ok(self.tokenizer.sink.take_heard())
    }

    fn push(&self, text: &str) {
        self.input.push_back(StrTendril::from_slice(text));
        // It pauses only for scripts, of which we run none.
        drop(self.tokenizer.feed(&self.input));
    }
}

enum Begun {
    Tag,
    /// A comment, a declaration, or nothing at all.
    Other,
    /// `</>`, which browsers leave out.
    Nothing,
}

#[derive(PartialEq, Eq)]
enum Tag {
    Fed,
    /// It was text: the tokenizer is in a script, or the like.
    NotOne,
    /// It was text up to another `<`.
    AnotherBegan,
}

/// How long a tag is from the end of its name, and how it ends without its attributes.
fn attributes(bytes: &[u8]) -> (usize, &'static str) {
    let mut at = 0;
    let skip = |at: &mut usize, passed: fn(u8) -> bool| {
        *at += bytes[*at..].iter().take_while(|byte| passed(**byte)).count();
    };
    loop {
        let before = at;
        skip(&mut at, |byte| is_space(byte) || byte == b'/');
        match bytes.get(at) {
            None => return (bytes.len(), ""),
            Some(b'>') => {
                let closes_itself = bytes[before..at].ends_with(b"/");
                return (at + 1, if closes_itself { " />" } else { " >" });
            }
            Some(_) => at += 1,
        }
        skip(&mut at, |byte| !is_space(byte) && !matches!(byte, b'/' | b'>' | b'='));
        skip(&mut at, is_space);
        if bytes.get(at) != Some(&b'=') {
            continue;
        }
        at += 1;
        skip(&mut at, is_space);
        match bytes.get(at) {
            Some(quote @ (b'"' | b'\'')) => {
                let Some(length) = memchr::memchr(*quote, &bytes[at + 1..]) else {
                    return (bytes.len(), "");
                };
                at += length + 2;
            }
            _ => skip(&mut at, |byte| !is_space(byte) && byte != b'>'),
        }
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
    struct Seen {
        heard: Cell<bool>,
        tags: Cell<usize>,
        attributes: Cell<usize>,
    }

    impl TokenSink for Seen {
        type Handle = ();

        fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
            self.heard.set(self.heard.get() || !matches!(token, Token::ParseError(_)));
            if let Token::TagToken(tag) = token {
                self.tags.set(self.tags.get() + 1);
                self.attributes.set(self.attributes.get() + tag.attrs.len());
            }
            TokenSinkResult::Continue
        }
    }

    impl Reader for Seen {
        fn take_heard(&self) -> bool {
            self.heard.take()
        }

        fn check(&self) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn the_tokenizer_sees_no_attribute() {
        let page =
            "<p a b='>'><br c/></p d=e>x &am<i f></><b g><u<s h=\"i\"><!-- <a j> --><a k>< <a l><em\nm>";
        let bounds = Bounds { limits: &Limits::default(), progress: &|| ControlFlow::Continue(()) };
        let seen = Feeder::new(page, Seen::default(), bounds).run().expect("read");
        assert_eq!((seen.tags.get(), seen.attributes.get()), (9, 0));
    }
}
