//! Formats without a reader, named for what they are, with what would help.

/// What a file is, and what its owner can do.
pub struct Named {
    pub what: &'static str,
    pub help: &'static str,
}

/// A rule: the bytes at an offset.
struct Rule {
    offset: usize,
    mark: &'static [u8],
    what: &'static str,
    help: &'static str,
}

const PICTURE: &str = "Save the picture as JPEG or PNG and upload that";
const AUDIO: &str = "Upload a transcript of it, as text, SRT or VTT";
const VIDEO: &str = "Upload its subtitles (SRT, VTT) or a transcript";
const ARCHIVE: &str = "Unpack it and upload the files in it, or pack them as ZIP";
const PROGRAM: &str = "Upload the documents about it instead";
const DATA: &str = "Export the tables that matter as CSV or XLSX";
const FONT: &str = "There is no text in a font";
const DRAWING: &str = "Export it as PDF and upload that";

const fn rule(offset: usize, mark: &'static [u8], what: &'static str, help: &'static str) -> Rule {
    Rule { offset, mark, what, help }
}

/// The first that fits counts. Marks of fewer than four bytes count only if the file is no text.
const RULES: &[Rule] = &[
    rule(4, b"ftypheic", "a picture of a phone (HEIC)", PICTURE),
    rule(4, b"ftypheix", "a picture of a phone (HEIC)", PICTURE),
    rule(4, b"ftyphevc", "a picture of a phone (HEIC)", PICTURE),
    rule(4, b"ftypmif1", "a picture of a phone (HEIF)", PICTURE),
    rule(4, b"ftypmsf1", "a picture of a phone (HEIF)", PICTURE),
    rule(4, b"ftypavif", "a picture (AVIF)", PICTURE),
    rule(4, b"ftypavis", "a picture (AVIF)", PICTURE),
    rule(4, b"ftypM4A", "an audio file (M4A)", AUDIO),
    rule(4, b"ftypM4B", "an audio book (M4B)", AUDIO),
    rule(4, b"ftypqt", "a video (QuickTime)", VIDEO),
    rule(4, b"ftypcrx", "a raw picture of a camera (CR3)", PICTURE),
    rule(4, b"ftyp3g", "a video (3GP)", VIDEO),
    rule(4, b"ftyp", "a video (MP4)", VIDEO),
    rule(4, b"moov", "a video (QuickTime)", VIDEO),
    rule(0, b"\0\0\0\x0CJXL \r\n\x87\n", "a picture (JPEG XL)", PICTURE),
    rule(0, b"\xFF\x0A", "a picture (JPEG XL)", PICTURE),
    rule(0, b"\0\0\0\x0CjP  \r\n\x87\n", "a picture (JPEG 2000)", PICTURE),
    rule(0, b"\xFF\x4F\xFF\x51", "a picture (JPEG 2000)", PICTURE),
    rule(0, b"8BPS", "a Photoshop picture (PSD)", PICTURE),
    rule(0, b"gimp xcf", "a GIMP picture (XCF)", PICTURE),
    rule(0, b"\0\0\x01\0", "an icon (ICO)", PICTURE),
    rule(0, b"\x01\0\0\0\x58\0\0\0", "a drawing (EMF)", DRAWING),
    rule(0, b"\xD7\xCD\xC6\x9A", "a drawing (WMF)", DRAWING),
    rule(0, b"%!PS", "a PostScript file", DRAWING),
    rule(0, b"\xC5\xD0\xD3\xC6", "a PostScript drawing (EPS)", DRAWING),
    rule(0, b"AC10", "an AutoCAD drawing (DWG)", DRAWING),
    rule(0, b"AT&TFORM", "a DjVu document", DRAWING),
    rule(0, b"ITSF", "a Windows help file (CHM)", DRAWING),
    rule(60, b"BOOKMOBI", "a Kindle book (MOBI)", "Convert it to EPUB and upload that"),
    rule(0, b"ID3", "an audio file (MP3)", AUDIO),
    rule(0, b"\xFF\xFB", "an audio file (MP3)", AUDIO),
    rule(0, b"\xFF\xF3", "an audio file (MP3)", AUDIO),
    rule(0, b"\xFF\xF2", "an audio file (MP3)", AUDIO),
    rule(0, b"\xFF\xF1", "an audio file (AAC)", AUDIO),
    rule(0, b"\xFF\xF9", "an audio file (AAC)", AUDIO),
    rule(0, b"fLaC", "an audio file (FLAC)", AUDIO),
    rule(0, b"OggS", "an audio or video file (Ogg)", AUDIO),
    rule(0, b"MThd", "a music file (MIDI)", AUDIO),
    rule(0, b"#!AMR", "an audio file (AMR)", AUDIO),
    rule(0, b"FORM", "an audio file (AIFF)", AUDIO),
    rule(8, b"WAVEfmt", "an audio file (WAV)", AUDIO),
    rule(8, b"AVI LIST", "a video (AVI)", VIDEO),
    rule(0, b"RIFF", "a media file (RIFF)", VIDEO),
    rule(0, b"\x1A\x45\xDF\xA3", "a video (Matroska or WebM)", VIDEO),
    rule(0, b"FLV\x01", "a video (FLV)", VIDEO),
    rule(0, b"\x30\x26\xB2\x75\x8E\x66\xCF\x11", "a Windows audio or video file (WMA, WMV)", VIDEO),
    rule(0, b"\0\0\x01\xBA", "a video (MPEG)", VIDEO),
    rule(0, b"\0\0\x01\xB3", "a video (MPEG)", VIDEO),
    rule(0, b"PK\x05\x06", "an empty ZIP archive", "Upload the files themselves"),
    rule(0, b"PK\x07\x08", "a part of a ZIP archive", ARCHIVE),
    rule(0, b"7z\xBC\xAF\x27\x1C", "a 7-Zip archive", ARCHIVE),
    rule(0, b"Rar!\x1A\x07", "a RAR archive", ARCHIVE),
    rule(257, b"ustar", "a tar archive", ARCHIVE),
    rule(0, b"\x1F\x8B", "a gzip archive", ARCHIVE),
    rule(0, b"\x1F\x9D", "a compress archive (Z)", ARCHIVE),
    rule(0, b"BZh", "a bzip2 archive", ARCHIVE),
    rule(0, b"\xFD7zXZ\0", "an xz archive", ARCHIVE),
    rule(0, b"\x28\xB5\x2F\xFD", "a Zstandard archive", ARCHIVE),
    rule(0, b"\x04\x22\x4D\x18", "an LZ4 archive", ARCHIVE),
    rule(0, b"MSCF", "a Windows cabinet archive (CAB)", ARCHIVE),
    rule(0, b"xar!", "an archive of macOS (XAR)", ARCHIVE),
    rule(0, b"!<arch>\n", "a library or package (ar)", ARCHIVE),
    rule(0x8001, b"CD001", "a disk image (ISO)", ARCHIVE),
    rule(0, b"\x7FELF", "a program (Linux)", PROGRAM),
    rule(0, b"MZ", "a program (Windows)", PROGRAM),
    rule(0, b"\xCF\xFA\xED\xFE", "a program (macOS)", PROGRAM),
    rule(0, b"\xCE\xFA\xED\xFE", "a program (macOS)", PROGRAM),
    rule(0, b"\xCA\xFE\xBA\xBE", "a Java or macOS program", PROGRAM),
    rule(0, b"\0asm", "a program (WebAssembly)", PROGRAM),
    rule(0, b"L\0\0\0\x01\x14\x02\0", "a Windows shortcut (LNK)", "Upload the file that it points to"),
    rule(0, b"SQLite format 3\0", "a database (SQLite)", DATA),
    rule(4, b"Standard Jet DB", "a database (Microsoft Access)", DATA),
    rule(4, b"Standard ACE DB", "a database (Microsoft Access)", DATA),
    rule(0, b"PAR1", "a data file (Parquet)", DATA),
    rule(0, b"ARROW1", "a data file (Arrow)", DATA),
    rule(0, b"Obj\x01", "a data file (Avro)", DATA),
    rule(0, b"\x89HDF\r\n\x1A\n", "a data file (HDF5)", DATA),
    rule(0, b"\x93NUMPY", "a data file (NumPy)", DATA),
    rule(0, b"!BDN", "an Outlook mailbox (PST)", "Save the messages as MSG or EML and upload those"),
    rule(0, b"\xE4\x52\x5C\x7B\x8C\xD8\xA7\x4D", "a OneNote notebook", DRAWING),
    rule(0, b"bplist00", "a property list of macOS", PROGRAM),
    rule(0, b"wOFF", "a font (WOFF)", FONT),
    rule(0, b"wOF2", "a font (WOFF2)", FONT),
    rule(0, b"OTTO", "a font (OpenType)", FONT),
    rule(0, b"\0\x01\0\0\0", "a font (TrueType)", FONT),
    rule(0, b"ttcf", "a font collection (TrueType)", FONT),
    rule(0, b"-----BEGIN PGP MESSAGE", "an encrypted message (PGP)", "Decrypt it and upload the result"),
    rule(0, b"Salted__", "an encrypted file (OpenSSL)", "Decrypt it and upload the result"),
];

/// What a file is, by its magic bytes. `is_binary` is whether it is no text: a text may begin with some letters by
/// chance.
pub fn named(bytes: &[u8], is_binary: impl FnOnce() -> bool) -> Option<Named> {
    let fits = |rule: &&Rule| bytes.get(rule.offset..).is_some_and(|rest| rest.starts_with(rule.mark));
    let found = RULES.iter().find(fits)?;
    let is_sure = found.mark.iter().any(|byte| !(b' '..=b'~').contains(byte)) && found.mark.len() > 2
        || found.what.starts_with("an encrypted")
        || found.mark == b"%!PS";
    (is_sure || is_binary()).then_some(Named { what: found.what, help: found.help })
}

/// Whether these are letters in the code of IBM mainframes: its space is `@` elsewhere, and all its letters and
/// digits are beyond ASCII.
pub fn is_ebcdic(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(64 * 1024)];
    let count = |wanted: fn(u8) -> bool| sample.iter().filter(|byte| wanted(**byte)).count();
    let letters = count(
        |byte| matches!(byte, 0x81..=0x89 | 0x91..=0x99 | 0xA2..=0xA9 | 0xC1..=0xC9 | 0xD1..=0xD9 | 0xE2..=0xE9 | 0xF0..=0xF9),
    );
    let spaces = count(|byte| byte == 0x40);
    let ascii = count(|byte| byte == b' ' || byte.is_ascii_lowercase());
    sample.len() >= 8 && letters * 10 > sample.len() * 6 && spaces > 0 && ascii * 20 < sample.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_begin_with_the_letters_of_a_mark() {
        assert!(named(b"FORM 1040 of the year", || false).is_none());
        assert!(named(b"FORM\0\0\0\0AIFF", || true).is_some());
        assert!(named(b"ID3 is a tag", || false).is_none());
        assert!(named(b"....ftypes of trees", || false).is_none());
    }

    #[test]
    fn every_rule_is_reached() {
        for rule in RULES {
            let mut bytes = vec![0xEE; rule.offset];
            bytes.extend_from_slice(rule.mark);
            let found = named(&bytes, || true).map(|found| found.what);
            assert_eq!(found, Some(rule.what), "{:?}", rule.mark);
        }
    }

    #[test]
    fn letters_of_mainframes_are_told_from_others() {
        let hello = [0xC8, 0x85, 0x93, 0x93, 0x96, 0x40, 0xE6, 0x96, 0x99, 0x93, 0x84, 0x4B, 0x15];
        assert!(is_ebcdic(&hello.repeat(10)));
        assert!(!is_ebcdic("Все счастливые семьи @ похожи".as_bytes()));
        for (encoding, text) in [
            (encoding_rs::KOI8_R, "Все счастливые семьи похожи друг на друга @ счастье"),
            (encoding_rs::WINDOWS_1251, "Все счастливые семьи похожи@друг на друга"),
            (encoding_rs::SHIFT_JIS, "吾輩は猫である。名前はまだ無い@。"),
            (encoding_rs::EUC_KR, "우리 항구는 썰물 때 문을 닫고"),
            (encoding_rs::BIG5, "我們的港口在退潮時關閉@船隻在外面等待"),
        ] {
            assert!(!is_ebcdic(&encoding.encode(text).0), "{}", encoding.name());
        }
    }
}
