//! Reads the response of a process. A document may have taken the process over, so everything is checked: each
//! length, that text is UTF-8, that places are inside the text and in order, that warnings are few and short, that a
//! refusal is one that a reader may send.

use tokio::io::{AsyncRead, AsyncReadExt};

use super::archive_response::{self, Unpacking};
use super::confine::Protections;
use super::protocol::{
    CONTENTS, HELLO, MARKDOWN, MAX_CONTENTS, MAX_JSON, MEMBER, MISSING, Missing, NO_HEADING, NO_LEVEL,
    NO_PAGE, PICTURE, PLACES, PLAIN, PROGRESS, PROGRESS_EVERY_MS, REFUSAL, REFUSALS, Refusal, TEXT,
};
use super::{Content, SandboxConfig};
use crate::error::{Error, ErrorKind};
use crate::members::Contents;
use crate::missing::PageCount;
use crate::reading::{Picture, Reading};
use landfall_core::text::{Area, Extracted, Markup, Place, TextBox};
use landfall_core::warning::Warning;

/// The longest heading, in bytes: 200 characters of at most four bytes.
const MAX_HEADING: usize = 800;

/// The largest picture. A document can be a picture itself.
const MAX_PICTURE: u32 = 1 << 30;

/// Why there is no response.
#[derive(Debug)]
pub enum NoResponse {
    /// The process has closed its standard output: it has exited, or is about to.
    Closed,
    /// The process violated the protocol.
    Violation(&'static str),
}

/// Reads the first frame of a process.
pub async fn read_hello(from: &mut (impl AsyncRead + Unpin)) -> Result<Protections, NoResponse> {
    let (kind, length) = read_frame_header(from).await?;
    if kind != HELLO || length > MAX_JSON {
        return Err(NoResponse::Violation("the first frame is not a hello"));
    }
    let hello = read_content(from, length, &|| {}).await?;
    serde_json::from_slice(&hello).map_err(|_| NoResponse::Violation("the hello cannot be decoded"))
}

/// Reads the response to one document, and calls `progress` for each part that arrives. `unpacking` is what was wanted of
/// an archive.
pub async fn read_response(
    from: &mut (impl AsyncRead + Unpin),
    config: &SandboxConfig,
    unpacking: Option<Unpacking<'_>>,
    progress: &impl Fn(),
) -> Result<Result<Content, Error>, NoResponse> {
    let text = match read_first(from, config, unpacking, progress).await? {
        First::Refused(error) => return Ok(Err(error)),
        First::Archive(contents) => return Ok(Ok(Content::Archive(contents))),
        First::Text(text) => text,
    };
    let mut pictures = Vec::new();
    let mut missing = None;
    let mut room = config.limits.picture_bytes;
    let length = loop {
        match read_frame_header(from).await? {
            (PLACES, length) => break length,
            (PICTURE, length) => {
                // The reader stops only after the picture that reaches the limit, so that one is accepted.
                if pictures.len() >= config.limits.pictures || room == 0 || length > MAX_PICTURE {
                    return Err(NoResponse::Violation("more pictures than the limit"));
                }
                let picture = decode_picture(&read_content(from, length, progress).await?, &text, &pictures)?;
                room = room.saturating_sub(picture.bytes.len());
                pictures.push(picture);
            }
            (MISSING, length) if missing.is_none() && length <= MAX_JSON => {
                missing = Some(decode_missing(&read_content(from, length, progress).await?)?);
            }
            _ => return Err(NoResponse::Violation("the text is not followed by places")),
        }
    };
    if length as usize + text.len() > config.limits.text_bytes {
        return Err(NoResponse::Violation("the response is too long"));
    }
    let places = read_content(from, length, progress).await?;
    let (markup, places, boxes) = decode_places(&places, &text)?;
    let Missing { warnings, pages } = missing.unwrap_or_default();
    let extracted = Extracted { text, markup, places, boxes, warnings };
    Ok(Ok(Content::of(Reading { extracted, pictures, pages })))
}

fn decode_missing(bytes: &[u8]) -> Result<Missing, NoResponse> {
    let missing: Missing = serde_json::from_slice(bytes)
        .map_err(|_| NoResponse::Violation("what is missing cannot be decoded"))?;
    if missing.warnings.len() > Warning::MAX || !missing.warnings.iter().all(Warning::is_well_formed) {
        return Err(NoResponse::Violation("too many warnings, or one that is not a sentence"));
    }
    let PageCount { total, unreadable, without_picture } = missing.pages;
    if unreadable > total || without_picture > total {
        return Err(NoResponse::Violation("more pages are missing than there are"));
    }
    Ok(missing)
}

fn decode_picture(mut bytes: &[u8], text: &str, before: &[Picture]) -> Result<Picture, NoResponse> {
    const TRUNCATED: NoResponse = NoResponse::Violation("a picture is truncated");
    let offset = take(&mut bytes).map(u64::from_le_bytes).ok_or(TRUNCATED)?;
    let page = take(&mut bytes).map(i64::from_le_bytes).ok_or(TRUNCATED)?;
    let text_offset = usize::try_from(offset)
        .ok()
        .filter(|offset| text.is_char_boundary(*offset))
        .filter(|offset| before.last().is_none_or(|before| before.text_offset <= *offset))
        .ok_or(NoResponse::Violation("a picture is outside the text or out of order"))?;
    Ok(Picture { text_offset, page: decode_page(page)?, bytes: bytes.to_vec() })
}

fn decode_page(page: i64) -> Result<Option<i64>, NoResponse> {
    match page {
        NO_PAGE => Ok(None),
        0.. => Ok(Some(page)),
        _ => Err(NoResponse::Violation("a page number is negative")),
    }
}

enum First {
    Text(String),
    Archive(Contents),
    Refused(Error),
}

async fn read_first(
    from: &mut (impl AsyncRead + Unpin),
    config: &SandboxConfig,
    mut unpacking: Option<Unpacking<'_>>,
    progress: &impl Fn(),
) -> Result<First, NoResponse> {
    // Twice as many as a correct process can send before its timeout: it pauses between two.
    let mut reports_left = 100 + 2 * config.timeout.as_millis() / u128::from(PROGRESS_EVERY_MS);
    loop {
        let (kind, length) = read_frame_header(from).await?;
        progress();
        match kind {
            PROGRESS if length == 0 && reports_left > 0 => reports_left -= 1,
            PROGRESS => return Err(NoResponse::Violation("too many reports of progress")),
            MEMBER => {
                let unpacking = unpacking.as_mut().ok_or(archive_response::UNWANTED)?;
                unpacking.expect(length)?;
                let member = read_content(from, length, progress).await?;
                unpacking.take(member, progress).await?;
            }
            CONTENTS if length <= MAX_CONTENTS => {
                let contents = read_content(from, length, progress).await?;
                let unpacking = unpacking.as_ref().ok_or(archive_response::UNWANTED)?;
                return unpacking.contents(&contents).map(First::Archive);
            }
            TEXT if length as usize <= config.limits.text_bytes => {
                let bytes = read_content(from, length, progress).await?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| NoResponse::Violation("the text is not valid UTF-8"))?;
                // A reader replaces them, because PostgreSQL cannot store one in a text.
                if text.contains('\0') {
                    return Err(NoResponse::Violation("the text contains a NUL"));
                }
                return Ok(First::Text(text));
            }
            TEXT => return Err(NoResponse::Violation("the text is too long")),
            REFUSAL if length <= MAX_JSON => {
                let bytes = read_content(from, length, progress).await?;
                return decode_refusal(&bytes).map(First::Refused);
            }
            REFUSAL => return Err(NoResponse::Violation("the refusal is too long")),
            _ => return Err(NoResponse::Violation("a frame of an unknown kind")),
        }
    }
}

async fn read_frame_header(from: &mut (impl AsyncRead + Unpin)) -> Result<(u8, u32), NoResponse> {
    let mut header = [0; 5];
    from.read_exact(&mut header).await.map_err(|_| NoResponse::Closed)?;
    let [kind, length @ ..] = header;
    Ok((kind, u32::from_le_bytes(length)))
}

/// Allocates memory as bytes arrive: the announced length may be a lie.
async fn read_content(
    from: &mut (impl AsyncRead + Unpin),
    length: u32,
    progress: &impl Fn(),
) -> Result<Vec<u8>, NoResponse> {
    let length = length as usize;
    let mut content = Vec::with_capacity(length.min(64 * 1024));
    let mut rest = from.take(length as u64);
    while content.len() < length {
        match rest.read_buf(&mut content).await {
            Ok(0) | Err(_) => return Err(NoResponse::Closed),
            Ok(_) => progress(),
        }
    }
    Ok(content)
}

fn decode_refusal(bytes: &[u8]) -> Result<Error, NoResponse> {
    let violation = NoResponse::Violation("the refusal cannot be decoded");
    let Ok(Refusal { kind, message, detail }) = serde_json::from_slice(bytes) else { return Err(violation) };
    let kind = ErrorKind::parse(&kind)
        .filter(|kind| REFUSALS.contains(kind))
        .ok_or(NoResponse::Violation("the refusal has a kind that a reader may not send"))?;
    let message = message.replace(|c: char| c.is_control(), " ");
    if message.trim().is_empty() {
        return Err(violation);
    }
    let error = Error::new(kind, message);
    Ok(match detail {
        Some(detail) => error.with_detail(detail.replace(|c: char| c.is_control(), " ")),
        None => error,
    })
}

fn decode_places(mut bytes: &[u8], text: &str) -> Result<(Markup, Vec<Place>, Vec<TextBox>), NoResponse> {
    const TRUNCATED: NoResponse = NoResponse::Violation("the places are truncated");
    let [markup] = take(&mut bytes).ok_or(TRUNCATED)?;
    let markup = match markup {
        PLAIN => Markup::Plain,
        MARKDOWN => Markup::Markdown,
        _ => return Err(NoResponse::Violation("the markup is of an unknown kind")),
    };
    let number = take(&mut bytes).map(u32::from_le_bytes).ok_or(TRUNCATED)?;
    let mut places: Vec<Place> = Vec::new();
    for _ in 0..number {
        let start = take(&mut bytes).map(u64::from_le_bytes).ok_or(TRUNCATED)?;
        let page = take(&mut bytes).map(i64::from_le_bytes).ok_or(TRUNCATED)?;
        let [level] = take(&mut bytes).ok_or(TRUNCATED)?;
        let length = take(&mut bytes).map(u32::from_le_bytes).ok_or(TRUNCATED)?;
        let start = usize::try_from(start)
            .ok()
            .filter(|start| text.is_char_boundary(*start))
            .ok_or(NoResponse::Violation("a place is outside the text"))?;
        if places.last().is_some_and(|before| before.start > start) {
            return Err(NoResponse::Violation("the places are out of order"));
        }
        let heading = if length == NO_HEADING {
            None
        } else {
            let heading = bytes.split_off(..length as usize).ok_or(TRUNCATED)?;
            Some(decode_heading(heading)?)
        };
        let level = (level != NO_LEVEL).then_some(level);
        places.push(Place { start, page: decode_page(page)?, heading, level });
    }
    let mut boxes: Vec<TextBox> = Vec::new();
    while !bytes.is_empty() {
        let one = decode_box(&mut bytes, text).ok_or(NoResponse::Violation("a box is not on a page"))?;
        if boxes.last().is_some_and(|before| before.start > one.start) {
            return Err(NoResponse::Violation("the boxes are out of order"));
        }
        boxes.push(one);
    }
    Ok((markup, places, boxes))
}

fn decode_box(bytes: &mut &[u8], text: &str) -> Option<TextBox> {
    let offset = |bytes: &mut &[u8]| {
        let offset = usize::try_from(u64::from_le_bytes(take(bytes)?)).ok()?;
        text.is_char_boundary(offset).then_some(offset)
    };
    let (start, end) = (offset(bytes)?, offset(bytes)?);
    let page = i64::from_le_bytes(take(bytes)?);
    let mut side = || take(bytes).map(u16::from_le_bytes);
    let area = Area { left: side()?, top: side()?, right: side()?, bottom: side()? };
    (start <= end && page > 0 && area.is_well_formed()).then_some(TextBox { start, end, page, area })
}

fn decode_heading(bytes: &[u8]) -> Result<String, NoResponse> {
    let heading = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    heading
        .filter(|text| text.len() <= MAX_HEADING)
        .map(str::to_owned)
        .ok_or(NoResponse::Violation("a heading is too long or not valid text"))
}

pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    bytes.split_off(..N)?.try_into().ok()
}
