//! Plain text, in any encoding.

use chardetng::EncodingDetector;
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

use super::{html, xml};
use crate::error::{Error, ErrorKind};
use landfall_core::text::Extracted;

/// How much of a text is examined to guess its encoding.
const SAMPLE: usize = 256 * 1024;
/// At most one character in this many may be undecodable; otherwise the text is damaged.
const MAX_BAD_DIVISOR: usize = 20;

pub fn extract(text: String) -> Extracted {
    Extracted::plain(text)
}

/// The text without byte order marks, NULs and carriage returns before line feeds.
pub fn decode(bytes: &[u8]) -> Result<String, Error> {
    let (text, encoding, _) = guess(bytes).decode(bytes);
    if !is_mostly_good(&text) {
        let bad = text.matches('\u{FFFD}').count();
        return Err(Error::new(
            ErrorKind::Damaged,
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
    // It uses only ASCII bytes, so it is valid UTF-8 too.
    if is_iso_2022_jp(bytes) {
        return ISO_2022_JP;
    }
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    if let Some(encoding) = xml::declared_encoding(bytes).or_else(|| html::declared_encoding(bytes)) {
        return encoding;
    }
    if is_damaged_utf8(bytes) {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new();
    detector.feed(&bytes[..bytes.len().min(SAMPLE)], bytes.len() <= SAMPLE);
    detector.guess(None, true)
}

/// It switches alphabets by escape sequences that other texts do not have.
fn is_iso_2022_jp(bytes: &[u8]) -> bool {
    const SWITCHES: &[&[u8]] = &[b"\x1B$B", b"\x1B$@", b"\x1B(J"];
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let switches = memchr::memchr_iter(0x1B, sample);
    sample.is_ascii()
        && switches.map(|at| &sample[at..]).any(|rest| SWITCHES.iter().any(|switch| rest.starts_with(switch)))
        && is_mostly_good(&ISO_2022_JP.decode_without_bom_handling(sample).0)
}

fn is_mostly_good(text: &str) -> bool {
    let bad = text.matches('\u{FFFD}').count();
    // One may be a last character that was cut, also in a short text.
    bad <= 1 || bad * MAX_BAD_DIVISOR <= text.chars().count()
}

/// Whether it is UTF-8 except for a few bytes, or for the end of its last character. In other encodings few sequences
/// are valid UTF-8 by chance.
fn is_damaged_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0_usize, 0_usize);
    let mut left = bytes.len();
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        left -= chunk.valid().len() + chunk.invalid().len();
        let is_cut_off = left == 0 && matches!(chunk.invalid(), [0xC2..=0xDF] | [0xE0..=0xF4, ..]);
        bad += usize::from(!chunk.invalid().is_empty() && !is_cut_off);
    }
    good > 0 && bad * MAX_BAD_DIVISOR <= good
}

/// In Latin text in UTF-16 every second byte is zero.
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

/// Text has few control characters except those for layout, and no NUL outside UTF-16.
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
    fn a_page_is_read_in_the_encoding_that_it_declares() {
        for declaration in [
            "<meta charset=iso-8859-7>",
            "<META content='text/html; charset=\"ISO-8859-7\"' http-equiv=x>",
            "<html><head><title>x</title><meta charset='iso-8859-7'/>",
        ] {
            let page = format!("{declaration}<p>γη</p>");
            assert_eq!(decode(&encoding_rs::ISO_8859_7.encode(&page).0).unwrap(), page);
        }
        // What is declared without a tag, or is no encoding, is no declaration.
        assert_eq!(html::declared_encoding(b"charset=iso-8859-7 <p>"), None);
        assert_eq!(html::declared_encoding(b"<meta charset=nonsense>"), None);
    }

    #[test]
    fn a_few_bad_bytes_do_not_spoil_the_rest() {
        let good = "Größere Änderungen kosten fünf Prozent, süße Grüße aus Köln.\n".repeat(20);
        let one_bad = [good.as_bytes(), b"\xFF", good.as_bytes()].concat();
        assert_eq!(decode(&one_bad).unwrap(), format!("{good}\u{FFFD}{good}"));
        let one_line_of_latin_1 = [good.as_bytes(), b"caf\xE9 cr\xE8me\n", good.as_bytes()].concat();
        assert_eq!(decode(&one_line_of_latin_1).unwrap(), format!("{good}caf\u{FFFD} cr\u{FFFD}me\n{good}"));
        for whole in ["Grüße aus Köln für 5 €", "Größ", "猫である"] {
            let mut cut = whole.to_owned();
            cut.pop();
            assert_eq!(decode(&whole.as_bytes()[..whole.len() - 1]).unwrap(), cut + "\u{FFFD}");
        }
    }

    #[test]
    fn other_encodings_are_not_taken_for_damaged_utf8() {
        let samples = [
            (encoding_rs::GBK, "我们的港口在退潮时关闭，船只在外面等待，直到水位上升。"),
            (encoding_rs::BIG5, "我們的港口在退潮時關閉，船隻在外面等待，直到水位上升。"),
            (encoding_rs::EUC_KR, "우리 항구는 썰물 때 문을 닫고 배들은 물이 들어올 때까지 밖에서 기다린다."),
            (encoding_rs::EUC_JP, "吾輩は猫である。名前はまだ無い。"),
            (encoding_rs::IBM866, "Все счастливые семьи похожи друг на друга, работа начата."),
            (encoding_rs::WINDOWS_1251, "Все счастливые семьи похожи друг на друга."),
            (encoding_rs::WINDOWS_1252, "Größere Änderungen, déjà vu, 100 €"),
        ];
        for (encoding, text) in samples {
            assert!(!is_damaged_utf8(&encoding.encode(text).0), "{}", encoding.name());
        }
    }

    #[test]
    fn japanese_in_seven_bits_is_read() {
        let text = "吾輩は猫である。\nName: 灯台守\n";
        let bytes = ISO_2022_JP.encode(text).0.into_owned();
        assert!(bytes.is_ascii());
        assert_eq!(decode(&bytes).unwrap(), text);
        let page = format!("<meta charset=iso-2022-jp><p>{text}</p>");
        assert_eq!(decode(&ISO_2022_JP.encode(&page).0).unwrap(), page);
        let log = "\x1B[31mred\x1B(B\x1B[0m";
        assert_eq!(decode(log.as_bytes()).unwrap(), log);
    }

    #[test]
    fn marks_and_carriage_returns_are_not_part_of_the_text() {
        assert_eq!(decode(b"\xEF\xBB\xBFone\r\ntwo\r\n").unwrap(), "one\ntwo\n");
    }
}
