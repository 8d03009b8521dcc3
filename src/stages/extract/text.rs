//! Plain text in whatever encoding it was written.

use chardetng::EncodingDetector;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::xml;
use crate::failure::{Code, Failure};
use crate::stages::{Extracted, Markup};

/// How much of a text is looked at to guess its encoding.
const SAMPLE: usize = 256 * 1024;
/// The share of characters that may be undecodable before the text is taken for damaged: one in this many.
const ONE_BAD_IN: usize = 20;

pub fn extract(text: String) -> Extracted {
    Extracted { text, markup: Markup::Plain, places: Vec::new() }
}

/// The text, without what no text has: byte order marks, NULs, carriage returns before line feeds.
pub fn decode(bytes: &[u8]) -> Result<String, Failure> {
    let (text, encoding, _) = guess(bytes).decode(bytes);
    let bad = text.matches('\u{FFFD}').count();
    if bad > 0 && bad * ONE_BAD_IN > text.chars().count() {
        return Err(Failure::new(
            Code::ParseError,
            format!("The text cannot be read: {bad} characters are not valid {}", encoding.name()),
        ));
    }
    Ok(text.replace("\r\n", "\n").replace(['\0', '\u{FEFF}'], ""))
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding;
    }
    if let Some(encoding) = utf16_without_mark(bytes) {
        return encoding;
    }
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    if let Some(encoding) = xml::declared_encoding(bytes) {
        return encoding;
    }
    let mut detector = EncodingDetector::new();
    detector.feed(&bytes[..bytes.len().min(SAMPLE)], bytes.len() <= SAMPLE);
    detector.guess(None, true)
}

/// Latin text in UTF-16 is every second byte zero, which nothing else is.
fn utf16_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = &bytes[..bytes.len().min(SAMPLE) & !1];
    let pairs = sample.len() / 2;
    if pairs < 2 {
        return None;
    }
    let zeros = |offset: usize| sample.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count();
    let (high_first, low_first) = (zeros(0), zeros(1));
    if high_first * 10 > pairs * 7 && low_first * 10 < pairs {
        Some(UTF_16BE)
    } else if low_first * 10 > pairs * 7 && high_first * 10 < pairs {
        Some(UTF_16LE)
    } else {
        None
    }
}

/// Text has no control characters but those that lay it out, and no NUL outside UTF-16.
pub fn looks_binary(bytes: &[u8]) -> bool {
    if Encoding::for_bom(bytes).is_some() || utf16_without_mark(bytes).is_some() {
        return false;
    }
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let control = sample.iter().filter(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31)).count();
    sample.contains(&0) || control * 50 > sample.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_the_encoding_it_was_written_in() {
        let sentence = "Größere Änderungen kosten fünf Prozent, süße Grüße aus Köln";
        let utf16le: Vec<u8> = sentence.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf16be: Vec<u8> =
            [0xFE, 0xFF].into_iter().chain(sentence.encode_utf16().flat_map(u16::to_be_bytes)).collect();
        let windows = encoding_rs::WINDOWS_1252.encode(sentence).0.into_owned();
        for bytes in [sentence.as_bytes().to_vec(), utf16le, utf16be, windows] {
            assert!(!looks_binary(&bytes));
            assert_eq!(decode(&bytes).unwrap(), sentence);
        }
    }

    #[test]
    fn eastern_encodings_are_read_too() {
        let japanese = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。";
        let shift_jis = encoding_rs::SHIFT_JIS.encode(japanese).0.into_owned();
        assert_eq!(decode(&shift_jis).unwrap(), japanese);
        let russian =
            "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.";
        let koi8 = encoding_rs::KOI8_R.encode(russian).0.into_owned();
        assert_eq!(decode(&koi8).unwrap(), russian);
    }

    #[test]
    fn marks_and_carriage_returns_are_not_part_of_the_text() {
        assert_eq!(decode(b"\xEF\xBB\xBFone\r\ntwo\r\n").unwrap(), "one\ntwo\n");
    }
}
