//! TNEF (`winmail.dat`): the body and the attachments of a message, as Outlook sends them to others by mistake.

use std::collections::HashMap;

use super::mapi::{self, Bodies, property};
use crate::Document;
use crate::embedded::Embedded;
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;

pub const MARK: &[u8] = b"\x78\x9F\x3E\x22";
const HEADER: usize = 6;
/// Properties of one message or attachment that are looked at.
const MAX_PROPERTIES: usize = 10_000;
const MAX_ATTACHMENTS: usize = 1_000;

/// Identifiers of attributes.
const CODE_PAGE: u32 = 0x0006_9007;
const BODY: u32 = 0x0002_800C;
const MESSAGE_PROPERTIES: u32 = 0x0006_9003;
const ATTACHMENT_BEGINS: u32 = 0x0006_9002;
const ATTACHMENT_TITLE: u32 = 0x0001_8010;
const ATTACHMENT_DATA: u32 = 0x0006_800F;
const ATTACHMENT_PROPERTIES: u32 = 0x0006_9005;

#[derive(Default)]
struct Attachment<'a> {
    title: String,
    data: &'a [u8],
    properties: HashMap<u16, Property<'a>>,
}

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    let mut flow = Flow::new(bounds.limits);
    let mut attachments: Vec<Attachment<'_>> = Vec::new();
    let mut message = HashMap::new();
    let mut code_page = 1252;
    let mut body = None;
    let mut attributes = Attributes(bytes.get(HEADER..).unwrap_or_default());
    for (identifier, data) in &mut attributes {
        bounds.report_progress()?;
        if identifier == ATTACHMENT_BEGINS && attachments.len() < MAX_ATTACHMENTS {
            attachments.push(Attachment::default());
        }
        match (identifier, attachments.last_mut()) {
            (CODE_PAGE, _) => code_page = data.first_chunk().map_or(1252, |page| u32::from_le_bytes(*page)),
            (BODY, _) => body = Some(data),
            (MESSAGE_PROPERTIES, _) => message = properties(data),
            (ATTACHMENT_TITLE, Some(last)) => last.title = mapi::in_code_page(data, code_page),
            (ATTACHMENT_DATA, Some(last)) => last.data = data,
            (ATTACHMENT_PROPERTIES, Some(last)) => last.properties = properties(data),
            _ => {}
        }
    }
    if !attributes.0.is_empty() {
        flow.warn(missing::truncated("file"));
    }
    let text = |property: u16| message.get(&property).map(|property: &Property<'_>| property.text(code_page));
    // A mail that this is attached to says the rest.
    if bounds.nesting == 0 {
        mapi::header(&mut flow, "Subject", &text(property::SUBJECT).unwrap_or_default());
    }
    let bodies = Bodies {
        plain: text(property::BODY).or_else(|| body.map(|body| mapi::in_code_page(body, code_page))),
        html: message.get(&property::HTML).map(|page| page.text(65_001)),
        rtf: message.get(&property::COMPRESSED_RTF).map(|rtf| rtf.data.to_vec()),
    };
    if let Some(body) = bodies.read(&|_| None, bounds)? {
        flow.embed(body);
        flow.check()?;
    }
    let mut embedded = Embedded::default();
    for attachment in &attachments {
        attachment.write(code_page, &mut embedded, &mut flow, bounds)?;
    }
    if let Some(warning) = embedded.finish("attachment") {
        flow.warn(warning);
    }
    flow.finish_reading(PageCount::default())
}

impl Attachment<'_> {
    fn write(
        &self,
        code_page: u32,
        embedded: &mut Embedded,
        flow: &mut Flow,
        bounds: Bounds<'_>,
    ) -> Result<(), Error> {
        /// Before an object there is the identifier of its kind.
        const KIND: usize = 16;
        let long = self.properties.get(&property::LONG_NAME).map(|name| name.text(code_page));
        let name = long.filter(|name| !name.is_empty()).unwrap_or_else(|| self.title.clone());
        let attached = self.properties.get(&property::ATTACHED).map_or(&[][..], |attached| attached.data);
        let inner = attached.get(KIND..).filter(|inner| inner.starts_with(MARK));
        let document = Document { bytes: inner.unwrap_or(self.data), name: &name, content_type: None };
        let title = if name.trim().is_empty() { "Attachment" } else { &name };
        if !embedded.read_titled(title, document, flow, bounds)? {
            flow.widen(Gap::Paragraph);
            mapi::header(flow, "Attachment", &name);
        }
        flow.check()
    }
}

/// The attributes one after the other: a level, an identifier, a length, the data and a checksum.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let identifier = u32::from_le_bytes(*self.0.get(1..)?.first_chunk()?);
        let length = usize::try_from(u32::from_le_bytes(*self.0.get(5..)?.first_chunk()?)).ok()?;
        let rest = self.0.get(9..)?;
        let data = rest.get(..length)?;
        self.0 = rest.get(length + 2..).unwrap_or_default();
        Some((identifier, data))
    }
}

struct Property<'a> {
    kind: u16,
    data: &'a [u8],
}

impl Property<'_> {
    fn text(&self, code_page: u32) -> String {
        const TWO_BYTES: u16 = 0x001F;
        if self.kind == TWO_BYTES { mapi::utf16(self.data) } else { mapi::in_code_page(self.data, code_page) }
    }
}

/// The properties as far as they can be read. Of several values of one property, the first.
fn properties(data: &[u8]) -> HashMap<u16, Property<'_>> {
    let mut properties = HashMap::new();
    let mut rest = Rest(data);
    let count = rest.number().unwrap_or(0).min(MAX_PROPERTIES);
    for _ in 0..count {
        let Some((number, property)) = rest.property() else { break };
        properties.entry(number).or_insert(property);
    }
    properties
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        let bytes = self.take(4)?;
        usize::try_from(u32::from_le_bytes(*bytes.first_chunk()?)).ok()
    }

    /// Data whose length is a multiple of four.
    fn padded(&mut self, length: usize) -> Option<&'a [u8]> {
        let data = self.take(length)?;
        self.take((4 - length % 4) % 4)?;
        Some(data)
    }

    fn property(&mut self) -> Option<(u16, Property<'a>)> {
        const SEVERAL: u16 = 0x1000;
        const NAMED: u16 = 0x8000;
        let head = self.take(4)?;
        let (kind, number) = (u16::from_le_bytes([head[0], head[1]]), u16::from_le_bytes([head[2], head[3]]));
        if number >= NAMED {
            self.take(16)?;
            if self.number()? == 0 {
                self.number()?;
            } else {
                let length = self.number()?;
                self.padded(length)?;
            }
        }
        let size = match kind & !SEVERAL {
            0x0002 | 0x0003 | 0x0004 | 0x000A | 0x000B => Some(4),
            0x0005..=0x0007 | 0x0014 | 0x0040 => Some(8),
            0x0048 => Some(16),
            _ => None,
        };
        let values = if kind & SEVERAL != 0 || size.is_none() { self.number()? } else { 1 };
        let mut first = None;
        for _ in 0..values {
            let length = match size {
                Some(size) => size,
                None => self.number()?,
            };
            let value = self.padded(length)?;
            first.get_or_insert(value);
        }
        Some((number, Property { kind, data: first.unwrap_or_default() }))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    fn attribute(identifier: u32, data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap();
        [&[1][..], &identifier.to_le_bytes(), &length.to_le_bytes(), data, &[0, 0]].concat()
    }

    fn variable(kind: u16, number: u16, data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap();
        let mut property = [
            &kind.to_le_bytes()[..],
            &number.to_le_bytes(),
            &1_u32.to_le_bytes(),
            &length.to_le_bytes(),
            data,
        ]
        .concat();
        property.resize(property.len().next_multiple_of(4), 0);
        property
    }

    #[test]
    fn the_body_and_the_attachments_are_read() {
        let named = [
            &0x0003_u16.to_le_bytes()[..],
            &0x8001_u16.to_le_bytes(),
            &[7; 16],
            &1_u32.to_le_bytes(),
            &6_u32.to_le_bytes(),
            b"abcdef\0\0",
            &9_u32.to_le_bytes(),
        ]
        .concat();
        let subject: Vec<u8> = "Tides".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let page = variable(0x0102, property::HTML, "<h1>H\u{f6}he</h1><p>now</p>".as_bytes());
        let list = [&3_u32.to_le_bytes()[..], &named, &variable(0x001F, property::SUBJECT, &subject), &page]
            .concat();
        let long_name =
            [&1_u32.to_le_bytes()[..], &variable(0x001E, property::LONG_NAME, b"list of tides.csv\0")]
                .concat();
        let bytes = [
            MARK,
            &[1, 0],
            &attribute(CODE_PAGE, &[0xE4, 4, 0, 0, 0, 0, 0, 0])[..],
            &attribute(MESSAGE_PROPERTIES, &list),
            &attribute(ATTACHMENT_BEGINS, &[0; 14]),
            &attribute(ATTACHMENT_TITLE, b"LISTOF~1.CSV\0"),
            &attribute(ATTACHMENT_DATA, b"a,b\n1,2\n"),
            &attribute(ATTACHMENT_PROPERTIES, &long_name),
            &attribute(ATTACHMENT_BEGINS, &[0; 14]),
            &attribute(ATTACHMENT_TITLE, b"x.bin\0"),
            &attribute(ATTACHMENT_DATA, &[0, 1, 2, 3]),
        ]
        .concat();
        let limits = Limits::default();
        let embedded = Cell::new(0);
        let bounds =
            Bounds { embedded: Some(&embedded), ..Bounds::new(&limits, &|| ControlFlow::Continue(())) };
        let extracted = read(&bytes, bounds).unwrap().extracted;
        assert!(
            extracted.text.starts_with("Subject: Tides\n\n# Höhe\n\nnow\n\n# list of tides.csv\n\n"),
            "{}",
            extracted.text
        );
        assert!(extracted.text.ends_with("\n\nAttachment: x.bin"), "{}", extracted.text);
        assert!(extracted.warnings[0].message.contains("x.bin"));
        for length in 0..bytes.len() {
            drop(read(&bytes[..length], bounds));
        }
    }

    #[test]
    fn numbers_that_lie_cost_nothing() {
        let list = [&u32::MAX.to_le_bytes()[..], &[2, 0x10, 1, 0], &u32::MAX.to_le_bytes(), &[0; 8]].concat();
        assert!(properties(&list).is_empty());
    }
}
