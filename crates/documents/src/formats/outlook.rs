//! MSG: a message as Outlook stores it, with its attachments.
//!
//! Each property of a message is a stream whose name has the number and the type of the property. Attachments and
//! recipients are folders with properties of their own.

use std::cell::RefCell;
use std::collections::HashMap;

use super::compound::{Container, Entry};
use super::mapi::{self, Bodies, property};
use crate::Document;
use crate::embedded::Embedded;
use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;
use crate::missing::PageCount;
use crate::reading::Reading;

/// Attachments that are looked at.
const MAX_ATTACHMENTS: usize = 1_000;
/// Recipients that are written.
const MAX_RECIPIENTS: usize = 1_000;
/// Bytes before the properties of fixed size of a message, of a message in a message, and of an attachment.
const HEADER: usize = 32;
const HEADER_OF_INNER: usize = 24;
const HEADER_OF_PART: usize = 8;

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    let container = Container::open(bytes)
        .ok_or_else(|| Error::new(ErrorKind::Damaged, "This message is damaged and cannot be read"))?;
    read_message(&container, container.top(), HEADER, bounds)
}

fn read_message(
    container: &Container<'_>,
    entries: Vec<Entry>,
    header: usize,
    bounds: Bounds<'_>,
) -> Result<Reading, Error> {
    bounds.report_progress()?;
    let message = Properties::read(container, entries, header);
    let attachments: Vec<Properties<'_, '_>> =
        message.parts("__ATTACH_VERSION").take(MAX_ATTACHMENTS).collect();
    let mut flow = Flow::new(bounds.limits);
    let subject = message.text(property::SUBJECT).unwrap_or_default();
    flow.place(None, Some(subject.clone()).filter(|subject| !subject.is_empty()));
    write_headers(&message, &subject, &mut flow);
    let pictures = RefCell::new(pictures(&attachments));
    let take = |address: &str| pictures.borrow_mut().remove(address);
    if let Some(body) = message.bodies().read(&take, bounds)? {
        flow.embed(body);
        flow.check()?;
    }
    let mut embedded = Embedded::default();
    for attachment in &attachments {
        let id = attachment.text(property::CONTENT_ID).map(|id| format!("cid:{id}"));
        let is_shown = id.is_some_and(|id| !pictures.borrow().contains_key(&id)) && attachment.is_picture();
        if !is_shown {
            write_attachment(attachment, &mut embedded, &mut flow, bounds)?;
        }
    }
    if let Some(warning) = embedded.finish("attachment") {
        flow.warn(warning);
    }
    flow.finish_reading(PageCount::default())
}

fn write_headers(message: &Properties<'_, '_>, subject: &str, flow: &mut Flow) {
    let first = |properties: [u16; 3]| properties.into_iter().find_map(|property| message.text(property));
    let address = first([property::SENDER_SMTP, property::SENDER_ADDRESS, property::AUTHOR_ADDRESS]);
    let name = first([property::SENDER_NAME, property::AUTHOR_NAME, property::AUTHOR_ADDRESS]);
    let (to, cc) = recipients(message);
    let date = message.fixed(property::SENT_AT).or_else(|| message.fixed(property::DELIVERED_AT));
    mapi::header(flow, "Subject", subject);
    mapi::header(flow, "From", &mapi::person(name, address));
    let shown = |property| message.text(property).unwrap_or_default();
    mapi::header(flow, "To", &if to.is_empty() { shown(property::SHOWN_TO) } else { to });
    mapi::header(flow, "Cc", &if cc.is_empty() { shown(property::SHOWN_CC) } else { cc });
    mapi::header(flow, "Date", &date.and_then(mapi::time).unwrap_or_default());
}

/// The people that the message is to, and those who get a copy.
fn recipients(message: &Properties<'_, '_>) -> (String, String) {
    const COPY: u64 = 2;
    const BLIND_COPY: u64 = 3;
    let (mut to, mut cc) = (Vec::new(), Vec::new());
    for person in message.parts("__RECIP_VERSION").take(MAX_RECIPIENTS) {
        let address = person.text(property::SMTP_ADDRESS).or_else(|| person.text(property::ADDRESS));
        let name = mapi::person(person.text(property::DISPLAY_NAME), address);
        match person.fixed(property::RECIPIENT_KIND).map(|kind| kind & 0xF) {
            Some(COPY) => cc.push(name),
            Some(BLIND_COPY) => {}
            _ => to.push(name),
        }
    }
    (to.join(", "), cc.join(", "))
}

/// The pictures that the body may show, by how it refers to them.
fn pictures(attachments: &[Properties<'_, '_>]) -> HashMap<String, Vec<u8>> {
    let picture = |attachment: &Properties<'_, '_>| {
        let id = attachment.text(property::CONTENT_ID).filter(|_| attachment.is_picture())?;
        Some((format!("cid:{id}"), attachment.bytes(property::ATTACHED)?))
    };
    attachments.iter().filter_map(picture).collect()
}

fn write_attachment(
    attachment: &Properties<'_, '_>,
    embedded: &mut Embedded,
    flow: &mut Flow,
    bounds: Bounds<'_>,
) -> Result<(), Error> {
    let name = attachment.name().unwrap_or_default();
    let title = if name.trim().is_empty() { "Attachment" } else { &name };
    let was_read = if let Some(inner) = attachment.folder(property::ATTACHED) {
        attached_message(attachment.container, inner, title, flow, bounds)?
    } else if let Some(bytes) = attachment.bytes(property::ATTACHED).filter(|bytes| !bytes.is_empty()) {
        let kind = attachment.text(property::MEDIA_TYPE);
        let document = Document { bytes: &bytes, name: &name, content_type: kind.as_deref() };
        // What it cannot read, it remembers.
        embedded.read_titled(title, document, flow, bounds)? || {
            write_name(flow, &name);
            true
        }
    } else {
        false
    };
    if !was_read {
        embedded.skip(&name);
        write_name(flow, &name);
    }
    flow.check()
}

fn write_name(flow: &mut Flow, name: &str) {
    flow.widen(Gap::Paragraph);
    mapi::header(flow, "Attachment", name);
}

/// A message in a message is a folder of the same container. Objects of other programs are folders too.
fn attached_message(
    container: &Container<'_>,
    folder: &Entry,
    title: &str,
    flow: &mut Flow,
    bounds: Bounds<'_>,
) -> Result<bool, Error> {
    let entries = container.inside(folder);
    let is_message = entries.iter().any(|entry| entry.name.starts_with("__properties_version"));
    let Some(inside) = bounds.of_embedded().filter(|_| is_message) else { return Ok(false) };
    let reading = read_message(container, entries, HEADER_OF_INNER, inside)?;
    flow.begin_heading(1);
    flow.words(title);
    flow.end_heading();
    flow.embed(reading);
    Ok(true)
}

/// The properties of a message, a recipient or an attachment.
struct Properties<'c, 'a> {
    container: &'c Container<'a>,
    /// By their names, in capitals.
    entries: HashMap<String, Entry>,
    /// The values of fixed size, by the number of the property.
    fixed: HashMap<u16, u64>,
}

impl<'c, 'a> Properties<'c, 'a> {
    fn read(container: &'c Container<'a>, entries: Vec<Entry>, header: usize) -> Self {
        let entries: HashMap<String, Entry> =
            entries.into_iter().map(|entry| (entry.name.to_ascii_uppercase(), entry)).collect();
        let list =
            entries.get("__PROPERTIES_VERSION1.0").map(|entry| container.read(entry)).unwrap_or_default();
        // Each has its type, its number, its flags and its value.
        let value = |property: &[u8; 16]| {
            let number = u16::from_le_bytes([property[2], property[3]]);
            let value = property.last_chunk().map_or(0, |value| u64::from_le_bytes(*value));
            (number, value)
        };
        let fixed = list.get(header..).unwrap_or_default().as_chunks().0.iter().map(value).collect();
        Self { container, entries, fixed }
    }

    /// Folders whose name begins like this, in the order of their names.
    fn parts(&self, name: &str) -> impl Iterator<Item = Self> {
        let mut parts: Vec<(&String, &Entry)> =
            self.entries.iter().filter(|(key, _)| key.starts_with(name)).collect();
        parts.sort_unstable_by_key(|(key, _)| *key);
        let read = |entry: &Entry| Self::read(self.container, self.container.inside(entry), HEADER_OF_PART);
        parts.into_iter().map(move |(_, entry)| read(entry))
    }

    fn fixed(&self, property: u16) -> Option<u64> {
        self.fixed.get(&property).copied()
    }

    fn entry(&self, property: u16, kind: &str) -> Option<&Entry> {
        self.entries.get(&format!("__SUBSTG1.0_{property:04X}{kind}"))
    }

    fn text(&self, property: u16) -> Option<String> {
        let stream = |kind| self.entry(property, kind).map(|entry| self.container.read(entry));
        stream("001F").map(|bytes| mapi::utf16(&bytes)).or_else(|| {
            stream("001E").map(|bytes| mapi::in_code_page(&bytes, self.code_page(property::CODE_PAGE)))
        })
    }

    fn bytes(&self, property: u16) -> Option<Vec<u8>> {
        self.entry(property, "0102").map(|entry| self.container.read(entry))
    }

    fn folder(&self, property: u16) -> Option<&Entry> {
        self.entry(property, "000D").filter(|entry| entry.is_folder)
    }

    fn code_page(&self, property: u16) -> u32 {
        self.fixed(property)
            .and_then(|page| u32::try_from(page & 0xFFFF_FFFF).ok())
            .filter(|page| *page > 0)
            .unwrap_or(1252)
    }

    fn bodies(&self) -> Bodies {
        let html = self.text(property::HTML).or_else(|| {
            let bytes = self.bytes(property::HTML)?;
            Some(mapi::in_code_page(&bytes, self.code_page(property::INTERNET_CODE_PAGE)))
        });
        Bodies { plain: self.text(property::BODY), html, rtf: self.bytes(property::COMPRESSED_RTF) }
    }

    fn name(&self) -> Option<String> {
        [property::LONG_NAME, property::SHORT_NAME, property::DISPLAY_NAME]
            .into_iter()
            .find_map(|property| self.text(property).filter(|name| !name.trim().is_empty()))
    }

    fn is_picture(&self) -> bool {
        let by_type = self.text(property::MEDIA_TYPE).is_some_and(|kind| kind.starts_with("image/"));
        let name = self.name().unwrap_or_default().to_ascii_lowercase();
        by_type || [".png", ".jpg", ".jpeg", ".gif"].iter().any(|end| name.ends_with(end))
    }
}
