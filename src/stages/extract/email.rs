//! EML: who wrote to whom when about what, what they wrote, and the names of what they attached.

use mail_parser::{Address, Message, MessageParser, MimeHeaders, PartType};

use super::flow::{Flow, Gap};
use super::limits::Bounds;
use super::{Reading, html};
use crate::failure::{Code, Failure};
use crate::stages::Place;

/// Attachments whose names are kept.
const MOST_ATTACHMENTS: usize = 1_000;
/// Headers that a message begins with. Two of them are no coincidence.
const USUAL_HEADERS: &[&str] = &[
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "mime-version",
    "received",
    "return-path",
    "content-type",
];

/// Whether a text begins with the headers of a message.
pub fn looks_like(text: &str) -> bool {
    let headers = text.lines().take(50).take_while(|line| !line.is_empty());
    let mut usual = 0;
    for line in headers {
        if line.starts_with([' ', '\t']) {
            continue;
        }
        let Some((name, _)) = line.split_once(':') else { return false };
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return false;
        }
        usual += usize::from(USUAL_HEADERS.contains(&name.to_ascii_lowercase().as_str()));
    }
    usual >= 3
}

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Failure> {
    let message = MessageParser::default()
        .parse(bytes)
        .ok_or_else(|| Failure::new(Code::ParseError, "This e-mail is damaged and cannot be read"))?;
    let mut flow = Flow::new(bounds.limits);
    flow.place(None, message.subject().map(str::to_owned));
    write_headers(&message, &mut flow);
    let mut places = Vec::new();
    for part in &message.text_body {
        bounds.go_on()?;
        flow.widen(Gap::Paragraph);
        match message.part(*part).map(|part| &part.body) {
            Some(PartType::Text(text)) => flow.verbatim(text.replace("\r\n", "\n").trim()),
            Some(PartType::Html(page)) => {
                let page = html::extract(page, bounds)?;
                let gap = if flow.is_empty() { 0 } else { 2 };
                let start = flow.len() + gap;
                places.extend(
                    page.places.into_iter().map(|place| Place { start: place.start + start, ..place }),
                );
                flow.verbatim(&page.text);
            }
            _ => {}
        }
        flow.check()?;
    }
    flow.widen(Gap::Paragraph);
    for attachment in message.attachments().take(MOST_ATTACHMENTS) {
        let name = match &attachment.body {
            PartType::Message(attached) => attached.subject().or(attachment.attachment_name()),
            _ => attachment.attachment_name(),
        };
        if let Some(name) = name {
            line(&mut flow, "Attachment", name);
        }
    }
    let mut extracted = flow.finish()?;
    extracted.places.extend(places);
    Ok(Reading::of(extracted))
}

fn write_headers(message: &Message<'_>, flow: &mut Flow) {
    line(flow, "Subject", message.subject().unwrap_or_default());
    for (name, people) in [("From", message.from()), ("To", message.to()), ("Cc", message.cc())] {
        line(flow, name, &people.map(names).unwrap_or_default());
    }
    if let Some(date) = message.date() {
        line(flow, "Date", &date.to_rfc3339());
    }
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
    use tokio_util::sync::CancellationToken;

    use super::super::limits::Limits;
    use super::*;

    fn read(message: &str) -> crate::stages::Extracted {
        let bounds =
            Bounds { limits: &Limits::default(), cancelled: &CancellationToken::new(), progress: &|| () };
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
    fn a_message_is_told_from_a_text_with_colons() {
        assert!(looks_like("Return-Path: <a@b>\nReceived: from x\n by y\nSubject: s\n\nHello"));
        assert!(!looks_like("To: do\n- buy rope"));
        assert!(!looks_like("Subject: the tide\nis high: very\n\nx"));
    }
}
