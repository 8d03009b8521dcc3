//! mbox: a mailbox of messages, each after a line that begins with `From `.

use super::email;
use crate::error::{Error, ErrorKind};
use crate::flow::Flow;
use crate::limits::Bounds;
use crate::missing::{self, PageCount};
use crate::reading::Reading;

const MARK: &[u8] = b"From ";
/// Messages that are read. Further ones are counted.
const MAX_MESSAGES: usize = 20_000;
/// The heading of a message without a subject.
const NO_SUBJECT: &str = "(no subject)";

/// Whether a text begins with the line before a message, and headers after it.
pub fn looks_like(bytes: &[u8]) -> bool {
    starts_message(bytes)
}

pub fn read(bytes: &[u8], bounds: Bounds<'_>) -> Result<Reading, Error> {
    let mut flow = Flow::new(bounds.limits);
    let mut not_read = Vec::new();
    let mut too_many = 0;
    for (number, message) in messages(bytes).enumerate() {
        bounds.report_progress()?;
        if number >= MAX_MESSAGES {
            too_many += 1;
            continue;
        }
        match email::read(&unquoted(message), bounds) {
            Ok(reading) => {
                let subject = reading.extracted.places.first().and_then(|place| place.heading.clone());
                flow.begin_heading(1);
                flow.words(
                    subject.as_deref().filter(|subject| !subject.trim().is_empty()).unwrap_or(NO_SUBJECT),
                );
                flow.end_heading();
                flow.embed(reading);
                flow.check()?;
            }
            Err(error) if matches!(error.kind(), ErrorKind::Stopped | ErrorKind::TooLarge) => {
                return Err(error);
            }
            Err(_) => not_read.push(format!("message {}", number + 1)),
        }
    }
    let number = not_read.len() + too_many;
    if let Some(warning) = missing::parts_not_read("message", number, &not_read) {
        flow.warn(warning);
    }
    flow.finish_reading(PageCount::default())
}

/// The messages without the lines before them.
fn messages(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let now = rest.take()?;
        let start = memchr::memchr(b'\n', now)? + 1;
        let end = memchr::memmem::find_iter(now, b"\nFrom ")
            .map(|at| at + 1)
            .find(|at| *at >= start && follows_empty_line(now, *at) && starts_message(&now[*at..]));
        rest = end.map(|end| &now[end..]);
        Some(&now[start..end.unwrap_or(now.len())])
    })
}

fn follows_empty_line(bytes: &[u8], at: usize) -> bool {
    bytes[..at].ends_with(b"\n\n") || bytes[..at].ends_with(b"\n\r\n")
}

/// Whether a line with a sender and a year, and then a header, begins here.
fn starts_message(bytes: &[u8]) -> bool {
    let mut lines = bytes.splitn(3, |byte| *byte == b'\n');
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else { return false };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let name = second.iter().take_while(|byte| is_name(byte)).count();
    // A mailbox may quote the headers' line too.
    first.starts_with(MARK)
        && first.len() < 1_000
        && first.windows(4).any(|window| window.iter().all(u8::is_ascii_digit))
        && name > 1
        && second.get(name) == Some(&b':')
}

/// Lines of a message that begin with `From ` are stored with `>` before them.
fn unquoted(message: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(message.len());
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        let quotes = line.iter().take_while(|byte| **byte == b'>').count();
        let is_quoted = quotes > 0 && line[quotes..].starts_with(MARK);
        text.extend_from_slice(&line[usize::from(is_quoted)..]);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    #[test]
    fn each_message_is_under_its_subject() {
        let mailbox = b"From a@b.c Mon Mar  2 09:30:00 2026\nFrom: a@b.c\nSubject: Tides\nMessage-ID: <1@b>\n\n\
            High.\n\n>From here on it falls.\nFrom there too.\n\nFrom d@e.f Tue Mar  3 09:30:00 2026\nFrom: d@e.f\n\
            Message-ID: <2@b>\nContent-Type: multipart/encrypted; boundary=x\n\n--x--\n\n\
            From g@h.i Tue Mar  3 09:30:00 2026\nFrom: g@h.i\nMessage-ID: <3@b>\n\nLow.\n";
        assert!(looks_like(mailbox));
        assert!(!looks_like(b"From the sea in 2026\nwe came: all of us\n"));
        let limits = Limits::default();
        let reading = read(mailbox, Bounds::new(&limits, &|| ControlFlow::Continue(()))).unwrap();
        assert_eq!(
            reading.extracted.text,
            "# Tides\n\nSubject: Tides\nFrom: a@b.c\n\nHigh.\n\nFrom here on it falls.\nFrom there too.\n\n\
             # (no subject)\n\nFrom: g@h.i\n\nLow."
        );
        assert!(
            reading.extracted.warnings[0].message.contains("1 message in this file was not read: message 2")
        );
    }

    #[test]
    fn a_mailbox_of_many_empty_messages_is_read_in_one_pass() {
        let mailbox = "From a@b 2026\nX-A: b\n\n".repeat(100_000);
        let limits = Limits::default();
        let reading = read(mailbox.as_bytes(), Bounds::new(&limits, &|| ControlFlow::Continue(()))).unwrap();
        assert!(reading.extracted.warnings[0].message.starts_with("80000 messages"));
    }
}
