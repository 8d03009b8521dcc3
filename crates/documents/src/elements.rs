//! Reads the elements of an XML text one after the other, with a limit on their depth.
//!
//! It builds no tree and expands only the five entities that XML itself defines. So a text can neither grow while it
//! is read nor make the reader fetch anything.

use std::borrow::Cow;

use quick_xml::escape::{resolve_xml_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use crate::error::{Error, ErrorKind};
use crate::limits::Bounds;

/// Elements between two reports of progress.
const PROGRESS_EVERY: usize = 4_096;

pub enum Piece<'a> {
    Open(Element<'a>),
    /// Also follows the opening of an empty element.
    Close(String),
    Words(Cow<'a, str>),
}

pub struct Element<'a>(BytesStart<'a>);

impl Element<'_> {
    /// The name without its prefix. Each document chooses its own prefixes.
    pub fn name(&self) -> &str {
        local(self.0.name().into_inner())
    }

    /// The prefix, to tell apart equal names of two vocabularies.
    pub fn prefix(&self) -> &str {
        self.0.name().into_inner().split_once(':').map_or("", |(prefix, _)| prefix)
    }

    /// An attribute by its name without prefix.
    pub fn attribute(&self, name: &str) -> Option<String> {
        self.find(|attribute| local(attribute) == name)
    }

    /// An attribute that has a prefix, by its name without the prefix.
    pub fn prefixed_attribute(&self, name: &str) -> Option<String> {
        self.find(|attribute| attribute.rsplit_once(':').is_some_and(|(_, local)| local == name))
    }

    fn find(&self, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let mut attributes = self.0.attributes();
        let attribute =
            attributes.with_checks(false).flatten().find(|attribute| wanted(attribute.key.into_inner()))?;
        Some(unescape(&attribute.value).map_or_else(|_| attribute.value.to_string(), Cow::into_owned))
    }
}

pub struct Elements<'a> {
    source: &'a str,
    reader: Reader<&'a [u8]>,
    /// Where the piece that was read last begins.
    before: usize,
    bounds: Bounds<'a>,
    depth: usize,
    read: usize,
}

impl<'a> Elements<'a> {
    pub fn new(source: &'a str, bounds: Bounds<'a>) -> Self {
        let mut reader = Reader::from_str(source);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.allow_dangling_amp = true;
        config.check_comments = false;
        Self { source, reader, before: 0, bounds, depth: 0, read: 0 }
    }

    pub fn next(&mut self) -> Result<Option<Piece<'a>>, Error> {
        loop {
            self.read += 1;
            if self.read.is_multiple_of(PROGRESS_EVERY) {
                self.bounds.report_progress()?;
            }
            self.before = self.position();
            let event = self.reader.read_event().map_err(|error| {
                let at = self.reader.error_position();
                let message = format!("This file is damaged: its XML breaks at byte {at}");
                Error::new(ErrorKind::Damaged, message).with_detail(error)
            })?;
            return Ok(Some(match event {
                Event::Start(start) => {
                    self.depth += 1;
                    if self.depth > self.bounds.limits.depth {
                        return Err(self.bounds.limits.too_deep());
                    }
                    Piece::Open(Element(start))
                }
                Event::End(end) => {
                    self.depth = self.depth.saturating_sub(1);
                    Piece::Close(local(end.name().into_inner()).to_owned())
                }
                Event::Text(text) => Piece::Words(text.into_inner()),
                Event::CData(text) => Piece::Words(text.into_inner()),
                Event::GeneralRef(reference) => Piece::Words(resolve(&reference)),
                Event::Eof => return Ok(None),
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {
                    continue;
                }
            }));
        }
    }

    /// Whether elements are open that were not closed. At the end of the text, it breaks off.
    pub fn has_open(&self) -> bool {
        self.depth > 0
    }

    /// What is after the piece that was read last. It closes elements that it does not open.
    pub fn rest(&self) -> &'a str {
        self.source.get(self.position()..).unwrap_or_default()
    }

    /// Reads on although elements are closed that were not opened, as in the rest of another text.
    pub fn allow_any_close(mut self) -> Self {
        self.reader.config_mut().check_end_names = false;
        self.reader.config_mut().allow_unmatched_ends = true;
        self
    }

    /// Skips the rest of the element that was opened last, and returns what is in it.
    pub fn take_inside(&mut self) -> Result<&'a str, Error> {
        let start = self.position();
        self.skip()?;
        Ok(self.source.get(start..self.before).unwrap_or_default())
    }

    fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    /// Skips the rest of the element that was opened last.
    pub fn skip(&mut self) -> Result<(), Error> {
        let outside = self.depth.saturating_sub(1);
        while self.depth > outside {
            if self.next()?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// An entity that the document defines becomes a space. Expanding such entities can turn a kilobyte into a gigabyte.
fn resolve(reference: &BytesRef<'_>) -> Cow<'static, str> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Cow::Owned(character.to_string());
    }
    let name: &str = reference;
    Cow::Borrowed(resolve_xml_entity(name).unwrap_or(" "))
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}
