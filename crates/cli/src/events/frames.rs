//! Parses server-sent events from the bytes of a response.

/// Far longer than any event of the server.
const MAX_BYTES: usize = 1024 * 1024;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub id: Option<String>,
    pub event: String,
    pub data: String,
}

#[derive(Default)]
pub struct Frames {
    rest: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
#[error("an event is too long")]
pub struct TooLong;

impl Frames {
    /// Adds bytes and returns the frames that they complete. Comments are skipped.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, TooLong> {
        self.rest.extend_from_slice(bytes);
        let mut frames = Vec::new();
        while let Some(end) = memchr::memmem::find(&self.rest, b"\n\n") {
            let text = String::from_utf8_lossy(&self.rest[..end]).into_owned();
            self.rest.drain(..end + 2);
            frames.extend(parse(&text));
        }
        if self.rest.len() > MAX_BYTES { Err(TooLong) } else { Ok(frames) }
    }
}

fn parse(text: &str) -> Option<Frame> {
    let mut frame = Frame::default();
    for line in text.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => frame.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut frame.event),
            "data" => frame.data.push_str(value),
            // A comment, or a field that is not used here.
            _ => {}
        }
    }
    (!frame.data.is_empty()).then_some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_parsed_however_the_bytes_are_split() {
        let bytes = b": \n\nid: 7\nevent: file:status-changed\ndata: {\"a\": \"\xc3\xa4: b\"}\n\nid: 8\nevent: x\ndata: {}\n\n";
        let expected = [("7", "file:status-changed", "{\"a\": \"\u{e4}: b\"}"), ("8", "x", "{}")];
        for size in 1..bytes.len() {
            let mut frames = Frames::default();
            let found: Vec<Frame> =
                bytes.chunks(size).flat_map(|part| frames.push(part).expect("short enough")).collect();
            let found: Vec<_> = found
                .iter()
                .map(|frame| {
                    (frame.id.as_deref().unwrap_or_default(), frame.event.as_str(), frame.data.as_str())
                })
                .collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_endless_event_is_an_error() {
        assert!(Frames::default().push(&vec![b'x'; MAX_BYTES + 1]).is_err());
    }
}
