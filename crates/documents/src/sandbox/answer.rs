//! What a process answered. A document may have taken it over, so everything is checked and nothing is believed: how
//! long things are, that text is text, that places are in it and in their order, that a refusal is one it may speak.

use tokio::io::{AsyncRead, AsyncReadExt};

use super::SandboxConfig;
use super::confine::Protections;
use super::protocol::{
    HELLO, MARKDOWN, MAX_JSON, NO_HEADING, NO_PAGE, PICTURE, PLACES, PLAIN, PROGRESS, PROGRESS_EVERY_MS,
    REFUSAL, REFUSALS, Refusal, TEXT,
};
use crate::error::{Error, ErrorKind};
use crate::reading::{Picture, Reading};
use landfall_core::text::{Extracted, Markup, Place};

/// The longest heading, in bytes: 200 characters of at most four.
const LONGEST_HEADING: usize = 800;

/// The largest picture: a file may be one itself.
const LARGEST_PICTURE: u32 = 1 << 30;

/// Why there is no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// There is nothing more to read: the process has ended, or is about to.
    Ended,
    /// It does not keep to the rules, and says what it did not keep to.
    Nonsense(&'static str),
}

/// Reads the first thing that a process says.
pub async fn read_hello(from: &mut (impl AsyncRead + Unpin)) -> Result<Protections, NoAnswer> {
    let (kind, length) = read_frame_header(from).await?;
    if kind != HELLO || length > MAX_JSON {
        return Err(NoAnswer::Nonsense("it did not begin with a greeting"));
    }
    let greeting = read_content(from, length, &|| {}).await?;
    serde_json::from_slice(&greeting).map_err(|_| NoAnswer::Nonsense("its greeting is not readable"))
}

/// Reads the answer to one document, and calls `progress` for every sign of it.
pub async fn read_answer(
    from: &mut (impl AsyncRead + Unpin),
    config: &SandboxConfig,
    progress: &impl Fn(),
) -> Result<Result<Reading, Error>, NoAnswer> {
    let text = match read_first(from, config, progress).await? {
        First::Refused(failure) => return Ok(Err(failure)),
        First::Text(text) => text,
    };
    let mut pictures = Vec::new();
    let mut room = config.limits.picture_bytes;
    let length = loop {
        match read_frame_header(from).await? {
            (PLACES, length) => break length,
            (PICTURE, length) => {
                // The one that reaches the limit is still let in by those who count honestly.
                if pictures.len() >= config.limits.pictures || room == 0 || length > LARGEST_PICTURE {
                    return Err(NoAnswer::Nonsense("it has more pictures than there can be"));
                }
                let picture = decode_picture(&read_content(from, length, progress).await?, &text, &pictures)?;
                room = room.saturating_sub(picture.bytes.len());
                pictures.push(picture);
            }
            _ => return Err(NoAnswer::Nonsense("its text was not followed by places")),
        }
    };
    if length as usize + text.len() > config.limits.text_bytes {
        return Err(NoAnswer::Nonsense("its answer is too long"));
    }
    let places = read_content(from, length, progress).await?;
    let (markup, places) = decode_places(&places, &text)?;
    Ok(Ok(Reading { extracted: Extracted { text, markup, places }, pictures }))
}

fn decode_picture(mut bytes: &[u8], text: &str, before: &[Picture]) -> Result<Picture, NoAnswer> {
    const CUT_SHORT: NoAnswer = NoAnswer::Nonsense("a picture is cut short");
    let offset = take(&mut bytes).map(u64::from_le_bytes).ok_or(CUT_SHORT)?;
    let page = take(&mut bytes).map(i64::from_le_bytes).ok_or(CUT_SHORT)?;
    let text_offset = usize::try_from(offset)
        .ok()
        .filter(|offset| text.is_char_boundary(*offset))
        .filter(|offset| before.last().is_none_or(|before| before.text_offset <= *offset))
        .ok_or(NoAnswer::Nonsense("a picture is not in its place"))?;
    Ok(Picture { text_offset, page: decode_page(page)?, bytes: bytes.to_vec() })
}

fn decode_page(page: i64) -> Result<Option<i64>, NoAnswer> {
    match page {
        NO_PAGE => Ok(None),
        0.. => Ok(Some(page)),
        _ => Err(NoAnswer::Nonsense("a page has a negative number")),
    }
}

enum First {
    Text(String),
    Refused(Error),
}

async fn read_first(
    from: &mut (impl AsyncRead + Unpin),
    config: &SandboxConfig,
    progress: &impl Fn(),
) -> Result<First, NoAnswer> {
    // Twice as many as an honest process can send in its time: it waits a while between two.
    let mut signs_left = 100 + 2 * config.timeout.as_millis() / u128::from(PROGRESS_EVERY_MS);
    loop {
        let (kind, length) = read_frame_header(from).await?;
        progress();
        match kind {
            PROGRESS if length == 0 && signs_left > 0 => signs_left -= 1,
            PROGRESS => return Err(NoAnswer::Nonsense("it sent more signs of progress than there can be")),
            TEXT if length as usize <= config.limits.text_bytes => {
                let bytes = read_content(from, length, progress).await?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| NoAnswer::Nonsense("its text is not valid UTF-8"))?;
                // PostgreSQL cannot store one, and an honest process sends none.
                if text.contains('\0') {
                    return Err(NoAnswer::Nonsense("its text contains a NUL"));
                }
                return Ok(First::Text(text));
            }
            TEXT => return Err(NoAnswer::Nonsense("its text is too long")),
            REFUSAL if length <= MAX_JSON => {
                let bytes = read_content(from, length, progress).await?;
                return decode_refusal(&bytes).map(First::Refused);
            }
            REFUSAL => return Err(NoAnswer::Nonsense("its refusal is too long")),
            _ => return Err(NoAnswer::Nonsense("it sent something of no known kind")),
        }
    }
}

async fn read_frame_header(from: &mut (impl AsyncRead + Unpin)) -> Result<(u8, u32), NoAnswer> {
    let mut header = [0; 5];
    from.read_exact(&mut header).await.map_err(|_| NoAnswer::Ended)?;
    let [kind, length @ ..] = header;
    Ok((kind, u32::from_le_bytes(length)))
}

/// Memory is taken as bytes arrive, not as they are announced.
async fn read_content(
    from: &mut (impl AsyncRead + Unpin),
    length: u32,
    progress: &impl Fn(),
) -> Result<Vec<u8>, NoAnswer> {
    let length = length as usize;
    let mut content = Vec::with_capacity(length.min(64 * 1024));
    let mut rest = from.take(length as u64);
    while content.len() < length {
        match rest.read_buf(&mut content).await {
            Ok(0) | Err(_) => return Err(NoAnswer::Ended),
            Ok(_) => progress(),
        }
    }
    Ok(content)
}

fn decode_refusal(bytes: &[u8]) -> Result<Error, NoAnswer> {
    let nonsense = NoAnswer::Nonsense("its refusal is not readable");
    let Ok(Refusal { kind, message }) = serde_json::from_slice(bytes) else { return Err(nonsense) };
    let kind = ErrorKind::parse(&kind)
        .filter(|kind| REFUSALS.contains(kind))
        .ok_or(NoAnswer::Nonsense("its refusal has a code that is not its own"))?;
    let message = message.replace(|c: char| c.is_control(), " ");
    if message.trim().is_empty() { Err(nonsense) } else { Ok(Error::new(kind, message)) }
}

fn decode_places(mut bytes: &[u8], text: &str) -> Result<(Markup, Vec<Place>), NoAnswer> {
    const CUT_SHORT: NoAnswer = NoAnswer::Nonsense("its places are cut short");
    let [markup] = take(&mut bytes).ok_or(CUT_SHORT)?;
    let markup = match markup {
        PLAIN => Markup::Plain,
        MARKDOWN => Markup::Markdown,
        _ => return Err(NoAnswer::Nonsense("its markup is of no known kind")),
    };
    let mut places: Vec<Place> = Vec::new();
    while !bytes.is_empty() {
        let start = take(&mut bytes).map(u64::from_le_bytes).ok_or(CUT_SHORT)?;
        let page = take(&mut bytes).map(i64::from_le_bytes).ok_or(CUT_SHORT)?;
        let length = take(&mut bytes).map(u32::from_le_bytes).ok_or(CUT_SHORT)?;
        let start = usize::try_from(start)
            .ok()
            .filter(|start| text.is_char_boundary(*start))
            .ok_or(NoAnswer::Nonsense("a place is not in its text"))?;
        if places.last().is_some_and(|before| before.start > start) {
            return Err(NoAnswer::Nonsense("its places are out of order"));
        }
        let heading = if length == NO_HEADING {
            None
        } else {
            let heading = bytes.split_off(..length as usize).ok_or(CUT_SHORT)?;
            Some(decode_heading(heading)?)
        };
        places.push(Place { start, page: decode_page(page)?, heading });
    }
    Ok((markup, places))
}

fn decode_heading(bytes: &[u8]) -> Result<String, NoAnswer> {
    let heading = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    heading
        .filter(|text| text.len() <= LONGEST_HEADING)
        .map(str::to_owned)
        .ok_or(NoAnswer::Nonsense("a heading is too long or not text"))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    bytes.split_off(..N)?.try_into().ok()
}
