//! EML: the headers, the body, and the attachments. Also MHTML, a web page that is stored as a message.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{Address, DateTime, Encoding, Message, MessageParser, MessagePart, MimeHeaders, PartType};

mod uuencode;

use super::{cms, html, text};
use crate::Document;
use crate::embedded::Embedded;
use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::has_words;
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;

/// Attachments that are looked at.
const MAX_ATTACHMENTS: usize = 1_000;
/// Other headers that are kept.
const MAX_HEADERS: usize = 100;
/// Headers that only programs write.
const MACHINE_HEADERS: &[&str] = &["message-id", "received", "mime-version"];
/// A plain text that is this many times shorter than the HTML beside it only says that the HTML cannot be shown.
const STUB_DIVISOR: usize = 3;

/// Whether a text begins with the headers of a message: one that only programs write, or at least an address and a
/// date. Memos of people also begin with `From:` and `Date:`.
pub fn looks_like(text: &str) -> bool {
    let (mut by_machine, mut has_sender, mut has_date) = (false, false, false);
    for line in text.lines().take(50).take_while(|line| !line.is_empty()) {
        if line.starts_with([' ', '\t']) {
            continue;
        }
        let Some((name, value)) = line.split_once(':') else { return false };
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return false;
        }
        let name = name.to_ascii_lowercase();
        by_machine |= MACHINE_HEADERS.contains(&name.as_str());
        by_machine |= name == "content-type" && value.contains('/');
        has_sender |= name == "from" && value.contains('@');
        has_date |= name == "date" && DateTime::parse_rfc822(value).is_some_and(|date| date.is_valid());
    }
    by_machine || has_sender && has_date
}

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    let message = MessageParser::default()
        .parse(bytes)
        .ok_or_else(|| Error::new(ErrorKind::Damaged, "This e-mail is damaged and cannot be read"))?;
    if is_encrypted(&message) {
        return Err(encrypted());
    }
    let pictures = Pictures::of(&message);
    let mut flow = Flow::new(bounds.limits);
    flow.place(None, message.subject().map(str::to_owned));
    if !is_saved_page(&message) {
        write_headers(&message, &mut flow);
    }
    for body in bodies(&message, &pictures, bounds)? {
        flow.embed(body);
        flow.check()?;
    }
    flow.widen(Gap::Paragraph);
    let mut embedded = Embedded::default();
    for (number, attachment) in message.attachments().enumerate() {
        if number < MAX_ATTACHMENTS {
            write_attachment(attachment, &pictures, &mut embedded, &mut flow, bounds)?;
        } else {
            embedded.skip(name_of(attachment).unwrap_or_default());
        }
    }
    if breaks_off(&message, bytes) {
        flow.warn(missing::truncated("e-mail"));
    }
    if let Some(warning) = embedded.finish("attachment") {
        flow.warn(warning);
    }
    flow.finish_reading(PageCount::default())
}

/// An attachment that can be read is under its name; of another one there is only the name.
fn write_attachment(
    part: &MessagePart<'_>,
    pictures: &Pictures<'_>,
    embedded: &mut Embedded,
    flow: &mut Flow,
    bounds: Bounds<'_>,
) -> Result<(), Error> {
    let kind = content_type(part);
    let is_picture = kind.starts_with("image/");
    if !is_file(part)
        || is_signature(&kind)
        || is_picture && part.content_id().is_some_and(|id| pictures.is_taken(id))
    {
        return Ok(());
    }
    // A picture of the body that the body does not show, such as a logo in its other alternative.
    if is_picture && part.content_id().is_some() {
        flow.picture(None, part.contents());
        return Ok(());
    }
    let name = name_of(part).unwrap_or_default();
    let unpacked = uuencode::decode(part.contents());
    let document = Document {
        bytes: unpacked.as_deref().unwrap_or(part.contents()),
        name: if part.is_message() { "" } else { name },
        content_type: Some(if part.is_message() { "message/rfc822" } else { &kind }),
    };
    let title = if name.trim().is_empty() { "Attachment" } else { name };
    let is_whole_message = kind.ends_with("pkcs7-mime") || kind.ends_with("ms-tnef");
    let opened = if is_whole_message {
        embedded.read(document, flow, bounds)?
    } else if part.contents().is_empty() {
        embedded.skip(name);
        false
    } else {
        embedded.read_titled(title, document, flow, bounds)?
    };
    if !opened && !name.is_empty() {
        flow.widen(Gap::Paragraph);
        line(flow, "Attachment", name);
    }
    flow.check()
}

/// The pictures that come with a message. Each is shown once.
struct Pictures<'m> {
    /// By their identifiers and addresses.
    left: RefCell<HashMap<String, &'m [u8]>>,
}

impl<'m> Pictures<'m> {
    fn of(message: &'m Message<'_>) -> Self {
        let pictures = message.parts.iter().filter(|part| content_type(part).starts_with("image/"));
        let named = |part: &'m MessagePart<'_>| {
            let id = part.content_id().map(|id| (format!("cid:{id}"), part.contents()));
            let location = part.content_location().map(|location| (location.to_owned(), part.contents()));
            id.into_iter().chain(location)
        };
        Self { left: RefCell::new(pictures.flat_map(named).collect()) }
    }

    fn take(&self, address: &str) -> Option<Vec<u8>> {
        self.left.borrow_mut().remove(address).map(<[u8]>::to_vec)
    }

    fn is_taken(&self, id: &str) -> bool {
        !self.left.borrow().contains_key(&format!("cid:{id}"))
    }
}

fn content_type(part: &MessagePart<'_>) -> String {
    part.content_type()
        .map(|kind| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or_default()).to_ascii_lowercase())
        .unwrap_or_default()
}

/// Whether the text is readable only with a key.
fn is_encrypted(message: &Message<'_>) -> bool {
    let Some(top) = message.parts.first() else { return false };
    match content_type(top).as_str() {
        "multipart/encrypted" => true,
        "application/pkcs7-mime" | "application/x-pkcs7-mime" => cms::is_encrypted(top.contents()),
        _ => false,
    }
}

pub fn encrypted() -> Error {
    Error::new(
        ErrorKind::Invalid,
        "This e-mail is encrypted. Open it in your mail program, save a copy that is not encrypted, and upload that",
    )
}

/// Whether it is a web page that a browser has saved as a message (MHTML).
fn is_saved_page(message: &Message<'_>) -> bool {
    let is_of_browser = message.header("Snapshot-Content-Location").is_some()
        || message.header_raw("From").is_some_and(|from| from.to_ascii_lowercase().contains("saved by"));
    is_of_browser && message.to().is_none()
}

/// The name of an attachment; of a message, its subject.
fn name_of<'m>(attachment: &'m MessagePart<'_>) -> Option<&'m str> {
    match &attachment.body {
        PartType::Message(attached) => attached.subject().or(attachment.attachment_name()),
        _ => attachment.attachment_name(),
    }
}

fn is_file(attachment: &MessagePart<'_>) -> bool {
    attachment.attachment_name().is_some() || attachment.is_message() || attachment.is_binary()
}

/// Whether it only proves who wrote the message.
fn is_signature(content_type: &str) -> bool {
    matches!(
        content_type,
        "application/pkcs7-signature" | "application/x-pkcs7-signature" | "application/pgp-signature"
    )
}

/// Whether the mark at the end of a message of several parts is missing.
fn breaks_off(message: &Message<'_>, bytes: &[u8]) -> bool {
    let boundary = message.content_type().and_then(|kind| kind.attribute("boundary"));
    boundary
        .is_some_and(|boundary| memchr::memmem::rfind(bytes, format!("--{boundary}--").as_bytes()).is_none())
}

/// The bodies of the message. Of a plain text and an HTML alternative, the text, unless the HTML has more words or
/// the structure of the same words.
fn bodies(message: &Message<'_>, pictures: &Pictures<'_>, bounds: Bounds<'_>) -> Result<Vec<Reading>, Error> {
    let read = |parts: &[u32]| -> Result<Vec<Reading>, Error> {
        parts.iter().filter_map(|part| body(message, *part, pictures, bounds).transpose()).collect()
    };
    let text_parts: HashSet<u32> = message.text_body.iter().copied().collect();
    let html_parts: HashSet<u32> = message.html_body.iter().copied().collect();
    let only_pages: Vec<u32> =
        message.html_body.iter().copied().filter(|part| !text_parts.contains(part)).collect();
    let texts = read(&message.text_body)?;
    let pages = read(&only_pages)?;
    if pages.is_empty() {
        return Ok(texts);
    }
    let (text, page) = (joined(&texts), joined(&pages));
    let has_both = text_parts.intersection(&html_parts).next().is_some();
    if !has_more_words(&page, &text) {
        let is_structured = !has_both && has_structure(&page) && !has_more_words(&text, &page);
        Ok(if is_structured { pages } else { texts })
    } else if !has_both && (text.len() * STUB_DIVISOR < page.len() || !has_words(&text)) {
        Ok(pages)
    } else {
        Ok(texts.into_iter().chain(pages).collect())
    }
}

fn body(
    message: &Message<'_>,
    part: u32,
    pictures: &Pictures<'_>,
    bounds: Bounds<'_>,
) -> Result<Option<Reading>, Error> {
    bounds.report_progress()?;
    let Some(part) = message.part(part) else { return Ok(None) };
    Ok(match &part.body {
        PartType::Text(text) => {
            let text = well_decoded(message, part, text);
            Some(Reading::of(text::extract(text.replace("\r\n", "\n").trim().to_owned())))
        }
        PartType::Html(page) => {
            let page = well_decoded(message, part, page);
            Some(html::read_with_pictures(&page, &|address| pictures.take(address), bounds)?)
        }
        _ => None,
    })
}

/// The text of a part. Some programs declare another character set than they use; then it is guessed.
fn well_decoded<'m>(message: &Message<'_>, part: &MessagePart<'_>, text: &'m str) -> Cow<'m, str> {
    let bad = |text: &str| text.matches(char::REPLACEMENT_CHARACTER).count();
    if bad(text) == 0 {
        return Cow::Borrowed(text);
    }
    let range = part.offset_body as usize..part.offset_end as usize;
    let raw = message.raw_message.get(range).unwrap_or_default();
    let bytes = match part.encoding {
        Encoding::None => Some(raw.to_vec()),
        Encoding::QuotedPrintable => quoted_printable_decode(raw),
        Encoding::Base64 => base64_decode(raw),
    };
    let guessed = bytes.and_then(|bytes| text::decode(&bytes).ok());
    guessed.filter(|guessed| bad(guessed) < bad(text)).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn joined(bodies: &[Reading]) -> String {
    bodies.iter().map(|body| body.extracted.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// Whether there are headings, lists or tables.
fn has_structure(markdown: &str) -> bool {
    let is_mark =
        |line: &str| ["# ", "## ", "### ", "- ", "1. ", "| "].iter().any(|mark| line.starts_with(mark));
    markdown.lines().any(is_mark)
}

/// Whether most words of a text are missing in the other.
fn has_more_words(text: &str, other: &str) -> bool {
    let words = |text: &str| -> HashSet<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (text, other) = (words(text), words(other));
    text.difference(&other).count() * 2 > text.len()
}

fn write_headers(message: &Message<'_>, flow: &mut Flow) {
    line(flow, "Subject", message.subject().unwrap_or_default());
    for (name, people) in [("From", message.from()), ("To", message.to()), ("Cc", message.cc())] {
        line(flow, name, &people.map(names).unwrap_or_default());
    }
    match message.date() {
        Some(date) if date.is_valid() => line(flow, "Date", &date.to_rfc3339()),
        _ => line(flow, "Date", message.header_raw("Date").unwrap_or_default()),
    }
    // Headers that a person has written are content; those that programs add are not.
    let by_machine = |name: &str| MACHINE_HEADERS.contains(&name.to_ascii_lowercase().as_str());
    if !message.headers_raw().any(|(name, _)| by_machine(name)) {
        let others = message.headers_raw().filter(|(name, _)| !is_written(name));
        for (name, value) in others.take(MAX_HEADERS) {
            line(flow, name, value);
        }
    }
}

/// Whether a header is one of the usual ones, which are written already, or is about the form of the content.
fn is_written(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "subject" | "from" | "to" | "cc" | "date") || name.starts_with("content-")
}

fn names(people: &Address<'_>) -> String {
    let one = |person: &mail_parser::Addr<'_>| match (person.name(), person.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (name, address) => name.or(address).unwrap_or_default().to_owned(),
    };
    people.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn line(flow: &mut Flow, name: &str, words: &str) {
    if !words.trim().is_empty() {
        flow.widen(Gap::Line);
        flow.words(&format!("{name}: {words}"));
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;
    use landfall_core::text::Extracted;

    fn read(message: &str) -> Extracted {
        let limits = Limits::default();
        let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
        super::read(message.as_bytes(), bounds).unwrap().extracted
    }

    #[test]
    fn a_message_is_its_headers_its_words_and_the_names_of_its_attachments() {
        let message = "From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\r\nTo: a@example.org, B <b@example.org>\r\n\
            Subject: The tide tables\r\nDate: Mon, 2 Mar 2026 09:30:00 +0100\r\nMIME-Version: 1.0\r\n\
            Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: multipart/alternative; boundary=y\r\n\r\n\
            --y\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
            High water at f=C3=BCnf.\r\n--y\r\nContent-Type: text/html\r\n\r\n<p>High water</p>\r\n--y--\r\n\
            --x\r\nContent-Type: application/pdf; name=tables.pdf\r\nContent-Disposition: attachment; filename=tables.pdf\r\n\
            Content-Transfer-Encoding: base64\r\n\r\nJVBERi0=\r\n--x--\r\n";
        let extracted = read(message);
        assert_eq!(
            extracted.text,
            "Subject: The tide tables\nFrom: Jürgen <j@example.org>\nTo: a@example.org, B <b@example.org>\n\
             Date: 2026-03-02T09:30:00+01:00\n\nHigh water at fünf.\n\nAttachment: tables.pdf"
        );
        assert_eq!(extracted.places[0].heading.as_deref(), Some("The tide tables"));
    }

    #[test]
    fn a_message_that_is_only_a_web_page_is_read_as_one() {
        let message = "From: a@example.org\r\nSubject: s\r\nContent-Type: text/html\r\n\r\n\
            <h1>Storm</h1><p>Stay <b>in</b> port</p><script>x</script>";
        let extracted = read(message);
        assert!(extracted.text.ends_with("Storm\n\nStay in port"), "{}", extracted.text);
        let place = extracted.places.last().unwrap();
        assert_eq!(place.heading.as_deref(), Some("Storm"));
        assert!(extracted.text[place.start..].starts_with("# Storm"));
    }

    #[test]
    fn of_two_alternatives_the_one_with_more_words_is_read() {
        let words_of = |text: &str, page: &str| {
            let message = format!(
                "From: a@example.org\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=y\r\n\r\n\
                 --y\r\nContent-Type: text/plain\r\n\r\n{text}\r\n--y\r\nContent-Type: text/html\r\n\r\n{page}\r\n--y--\r\n"
            );
            read(&message).text.split_once("\n\n").map(|(_, words)| words.to_owned()).unwrap_or_default()
        };
        let story = "The harbour closes at low tide, and ships wait outside until the water rises again.";
        let page = format!("<p>{story}</p>");
        assert_eq!(words_of(" ", &page), story);
        assert_eq!(words_of("Your program shows no HTML.", &page), story);
        assert_eq!(
            words_of("Your program shows no HTML.", "<p>Storm</p>"),
            "Your program shows no HTML.\n\nStorm"
        );
        assert_eq!(words_of(story, &page.replace(',', "<br>")), story);
        assert_eq!(words_of(story, "<img src=x>"), story);
    }

    #[test]
    fn a_memo_is_no_message_and_keeps_all_its_lines() {
        let memo = "TO: All staff\nFROM: Director Marlowe\nDATE: 5 March, afternoon\nRE: Project Phoenix\n\
            PROJECT: Bluebird\nSUBJECT: Lanterns\n\nPlease read.";
        assert!(!looks_like(memo));
        let text = read(memo).text;
        for line in memo.lines().filter(|line| !line.is_empty()) {
            let words = line.split_once(": ").map_or(line, |(_, words)| words);
            assert!(text.contains(words), "{words} in {text}");
        }
    }

    #[test]
    fn a_message_is_told_from_a_text_with_colons() {
        assert!(looks_like("Return-Path: <a@b>\nReceived: from x\n by y\nSubject: s\n\nHello"));
        assert!(looks_like("From: a@b.org\nDate: Mon, 2 Mar 2026 09:30:00 +0100\n\nHello"));
        assert!(!looks_like(
            "From: Marlowe\nTo: all\nDate: Mon, 2 Mar 2026 09:30:00 +0100\nSubject: s\n\nHello"
        ));
        assert!(!looks_like("To: do\n- buy rope"));
        assert!(!looks_like("Subject: the tide\nis high: very\n\nx"));
    }
}
