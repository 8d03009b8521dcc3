//! EML: the headers, the body, and the names of the attachments.

use std::collections::HashSet;

use mail_parser::{Address, DateTime, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use super::{html, text};
use crate::error::{Error, ErrorKind};
use crate::flow::{Flow, Gap};
use crate::has_words;
use crate::limits::Bounds;
use crate::missing;
use crate::reading::Reading;
use landfall_core::text::{Extracted, Place};

/// Attachments whose names are kept.
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
        has_sender |= name == "from" && value.contains('@');
        has_date |= name == "date" && DateTime::parse_rfc822(value).is_some_and(|date| date.is_valid());
    }
    by_machine || has_sender && has_date
}

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    let message = MessageParser::default()
        .parse(bytes)
        .ok_or_else(|| Error::new(ErrorKind::Damaged, "This e-mail is damaged and cannot be read"))?;
    let mut flow = Flow::new(bounds.limits);
    flow.place(None, message.subject().map(str::to_owned));
    write_headers(&message, &mut flow);
    let mut places = Vec::new();
    for body in bodies(&message, bounds)? {
        flow.widen(Gap::Paragraph);
        let gap = if flow.is_empty() { 0 } else { 2 };
        let start = flow.len() + gap;
        places.extend(body.places.into_iter().map(|place| Place { start: place.start + start, ..place }));
        flow.verbatim(&body.text);
        flow.check()?;
    }
    flow.widen(Gap::Paragraph);
    for attachment in message.attachments().take(MAX_ATTACHMENTS) {
        if let Some(name) = name_of(attachment) {
            line(&mut flow, "Attachment", name);
        }
    }
    let mut extracted = flow.finish()?;
    extracted.places.extend(places);
    if breaks_off(&message, bytes) {
        extracted.warnings.push(missing::truncated("e-mail"));
    }
    let not_read: Vec<String> = message
        .attachments()
        .filter(|part| !is_decoration(part))
        .map(|part| name_of(part).unwrap_or("a file without a name").to_owned())
        .collect();
    extracted.warnings.extend(missing::parts_not_read("attachment", not_read.len(), &not_read));
    Ok(Reading::of(extracted))
}

/// The name of an attachment; of a message, its subject.
fn name_of<'m>(attachment: &'m MessagePart<'_>) -> Option<&'m str> {
    match &attachment.body {
        PartType::Message(attached) => attached.subject().or(attachment.attachment_name()),
        _ => attachment.attachment_name(),
    }
}

/// Whether it is a picture that the body shows, such as a logo, or no file at all.
fn is_decoration(attachment: &MessagePart<'_>) -> bool {
    let is_file = attachment.attachment_name().is_some() || attachment.is_message() || attachment.is_binary();
    if !is_file {
        return true;
    }
    let is_picture = attachment.content_type().is_some_and(|kind| kind.ctype().eq_ignore_ascii_case("image"));
    is_picture && attachment.content_id().is_some()
}

/// Whether the mark at the end of a message of several parts is missing.
fn breaks_off(message: &Message<'_>, bytes: &[u8]) -> bool {
    let boundary = message.content_type().and_then(|kind| kind.attribute("boundary"));
    boundary
        .is_some_and(|boundary| memchr::memmem::rfind(bytes, format!("--{boundary}--").as_bytes()).is_none())
}

/// The bodies of the message. Of a plain text and an HTML alternative, the text, unless the HTML has more words.
fn bodies(message: &Message<'_>, bounds: Bounds<'_>) -> Result<Vec<Extracted>, Error> {
    let read = |parts: &[u32]| -> Result<Vec<Extracted>, Error> {
        parts.iter().filter_map(|part| body(message, *part, bounds).transpose()).collect()
    };
    let text_parts: HashSet<u32> = message.text_body.iter().copied().collect();
    let only_pages: Vec<u32> =
        message.html_body.iter().copied().filter(|part| !text_parts.contains(part)).collect();
    let texts = read(&message.text_body)?;
    let pages = read(&only_pages)?;
    let (text, page) = (joined(&texts), joined(&pages));
    if !has_more_words(&page, &text) {
        Ok(texts)
    } else if text.len() * STUB_DIVISOR < page.len() || !has_words(&text) {
        read(&message.html_body)
    } else {
        Ok(texts.into_iter().chain(pages).collect())
    }
}

fn body(message: &Message<'_>, part: u32, bounds: Bounds<'_>) -> Result<Option<Extracted>, Error> {
    bounds.report_progress()?;
    Ok(match message.part(part).map(|part| &part.body) {
        Some(PartType::Text(text)) => Some(text::extract(text.replace("\r\n", "\n").trim().to_owned())),
        Some(PartType::Html(page)) => Some(html::extract(page, bounds)?),
        _ => None,
    })
}

fn joined(bodies: &[Extracted]) -> String {
    bodies.iter().map(|body| body.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// Whether most words of an HTML body are missing in the text.
fn has_more_words(page: &str, text: &str) -> bool {
    let words = |text: &str| -> HashSet<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (page, text) = (words(page), words(text));
    page.difference(&text).count() * 2 > page.len()
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

/// Whether a header is one of the usual ones, which are written already.
fn is_written(name: &str) -> bool {
    ["subject", "from", "to", "cc", "date"].iter().any(|written| name.eq_ignore_ascii_case(written))
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

    fn read(message: &str) -> Extracted {
        let bounds = Bounds { limits: &Limits::default(), progress: &|| ControlFlow::Continue(()) };
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
        assert!(extracted.text[place.start..].starts_with("Storm"));
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
