//! What Outlook's formats have in common: properties of messages, and their bodies.

mod compressed_rtf;
mod encapsulated_html;

use encoding_rs::{Encoding, UTF_16LE, WINDOWS_1252};
use mail_parser::DateTime;

use super::{html, rtf, text};
use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::has_words;
use crate::limits::Bounds;
use crate::reading::Reading;

/// Identifiers of properties.
pub mod property {
    pub const SUBJECT: u16 = 0x0037;
    pub const SENT_AT: u16 = 0x0039;
    pub const AUTHOR_NAME: u16 = 0x0042;
    pub const AUTHOR_ADDRESS: u16 = 0x0065;
    pub const RECIPIENT_KIND: u16 = 0x0C15;
    pub const SENDER_NAME: u16 = 0x0C1A;
    pub const SENDER_ADDRESS: u16 = 0x0C1F;
    pub const SHOWN_CC: u16 = 0x0E03;
    pub const SHOWN_TO: u16 = 0x0E04;
    pub const DELIVERED_AT: u16 = 0x0E06;
    pub const BODY: u16 = 0x1000;
    pub const COMPRESSED_RTF: u16 = 0x1009;
    pub const HTML: u16 = 0x1013;
    pub const DISPLAY_NAME: u16 = 0x3001;
    pub const ADDRESS: u16 = 0x3003;
    pub const ATTACHED: u16 = 0x3701;
    pub const SHORT_NAME: u16 = 0x3704;
    pub const LONG_NAME: u16 = 0x3707;
    pub const MEDIA_TYPE: u16 = 0x370E;
    pub const CONTENT_ID: u16 = 0x3712;
    pub const SMTP_ADDRESS: u16 = 0x39FE;
    pub const INTERNET_CODE_PAGE: u16 = 0x3FDE;
    pub const CODE_PAGE: u16 = 0x3FFD;
    pub const SENDER_SMTP: u16 = 0x5D01;
}

/// The bodies of a message, as far as it has them.
#[derive(Default)]
pub struct Bodies {
    pub plain: Option<String>,
    pub html: Option<String>,
    /// Packed as Outlook does it.
    pub rtf: Option<Vec<u8>>,
}

impl Bodies {
    /// The body with the most structure that has words.
    pub fn read(self, pictures: html::Pictures<'_>, bounds: Bounds<'_>) -> Result<Option<Reading>, Error> {
        let rtf = self.rtf.as_deref().and_then(compressed_rtf::unpack).unwrap_or_default();
        let page = self.html.or_else(|| encapsulated_html::unpack(&rtf));
        if let Some(page) = page {
            let reading = html::read_with_pictures(&page, pictures, bounds)?;
            if has_words(&reading.extracted.text) || !reading.pictures.is_empty() {
                return Ok(Some(reading));
            }
        } else if rtf.starts_with(rtf::MARK) {
            let reading = rtf::read(&rtf, bounds)?;
            if has_words(&reading.extracted.text) {
                return Ok(Some(reading));
            }
        }
        let plain = self.plain.map(|plain| plain.replace("\r\n", "\n").trim().to_owned());
        Ok(plain.filter(|plain| has_words(plain)).map(|plain| Reading::of(text::extract(plain))))
    }
}

/// A line of the headers.
pub fn header(flow: &mut Flow, name: &str, words: &str) {
    if !words.trim().is_empty() {
        flow.widen(Gap::Line);
        flow.words(&format!("{name}: {words}"));
    }
}

/// `Name <address>`.
pub fn person(name: Option<String>, address: Option<String>) -> String {
    let address = address.filter(|address| address.contains('@'));
    match (name.filter(|name| !name.trim().is_empty()), address) {
        (Some(name), Some(address)) if name != address => format!("{name} <{address}>"),
        (name, address) => address.or(name).unwrap_or_default(),
    }
}

/// A time as Windows counts it: tenths of microseconds since 1601.
pub fn time(ticks: u64) -> Option<String> {
    const TO_1970: i64 = 11_644_473_600;
    let seconds = i64::try_from(ticks / 10_000_000).ok()? - TO_1970;
    let is_plausible = (0..32_503_680_000).contains(&seconds);
    is_plausible.then(|| DateTime::from_timestamp(seconds).to_rfc3339())
}

/// The text of two-byte characters.
pub fn utf16(bytes: &[u8]) -> String {
    UTF_16LE.decode_without_bom_handling(bytes).0.trim_end_matches('\0').to_owned()
}

/// The text in a code page.
pub fn in_code_page(bytes: &[u8], code_page: u32) -> String {
    encoding(code_page).decode(bytes).0.trim_end_matches('\0').to_owned()
}

pub fn encoding(code_page: u32) -> &'static Encoding {
    let label = match code_page {
        874 => "windows-874".to_owned(),
        932 => "shift_jis".to_owned(),
        936 | 20_936 => "gbk".to_owned(),
        949 | 51_949 => "euc-kr".to_owned(),
        950 => "big5".to_owned(),
        1200 => "utf-16le".to_owned(),
        20_866 => "koi8-r".to_owned(),
        21_866 => "koi8-u".to_owned(),
        28_591..=28_606 => format!("iso-8859-{}", code_page - 28_590),
        50_220..=50_222 => "iso-2022-jp".to_owned(),
        51_932 | 20_932 => "euc-jp".to_owned(),
        54_936 => "gb18030".to_owned(),
        65_001 => "utf-8".to_owned(),
        number => format!("windows-{number}"),
    };
    Encoding::for_label(label.as_bytes()).unwrap_or(WINDOWS_1252)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_people_are_written_as_in_other_mails() {
        assert_eq!(time(134_168_922_000_000_000).as_deref(), Some("2026-03-02T02:30:00Z"));
        assert_eq!(time(0), None);
        assert_eq!(time(u64::MAX), None);
        let person = |name: &str, address: &str| person(Some(name.to_owned()), Some(address.to_owned()));
        assert_eq!(person("Ann", "a@b.c"), "Ann <a@b.c>");
        assert_eq!(person("a@b.c", "a@b.c"), "a@b.c");
        assert_eq!(person("Ann", "/O=EXCHANGE/CN=ANN"), "Ann");
    }
}
