//! HTML inside RTF: Outlook stores the page of a message so that a program for RTF can show it too.

use super::encoding;

/// Groups in one another.
const MAX_DEPTH: usize = 512;

/// The page; `None` if the RTF does not contain one.
pub fn unpack(rtf: &[u8]) -> Option<String> {
    const MARK: &[u8] = b"\\fromhtml";
    let start = &rtf[..rtf.len().min(4_096)];
    memchr::memmem::find(start, MARK)?;
    let mut unpacker =
        Unpacker { rest: rtf, page: String::new(), pending: Vec::new(), code_page: 1252, groups: Vec::new() };
    unpacker.run();
    unpacker.flush();
    Some(unpacker.page)
}

#[derive(Default, Clone, Copy)]
struct Group {
    /// What is shown only by programs for RTF.
    is_for_rtf: bool,
    /// Fonts, colours and the like.
    is_skipped: bool,
    /// The group has begun with `\*`.
    is_optional: bool,
    fallback: usize,
}

struct Unpacker<'a> {
    rest: &'a [u8],
    page: String,
    /// Bytes that may be a part of a character.
    pending: Vec<u8>,
    code_page: u32,
    groups: Vec<Group>,
}

impl<'a> Unpacker<'a> {
    fn run(&mut self) {
        let mut group = Group { fallback: 1, ..Group::default() };
        while let Some(first) = self.take(1).first() {
            match first {
                b'{' if self.groups.len() < MAX_DEPTH => self.groups.push(group),
                b'}' => {
                    self.flush();
                    let Some(outside) = self.groups.pop() else { return };
                    group = outside;
                }
                b'\\' => self.control(&mut group),
                b'\r' | b'\n' | 0 => {}
                byte => self.byte(*byte, group),
            }
        }
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn byte(&mut self, byte: u8, group: Group) {
        if !group.is_for_rtf && !group.is_skipped {
            self.pending.push(byte);
        }
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            let text = encoding(self.code_page).decode_without_bom_handling(&self.pending).0;
            self.page.push_str(&text);
            self.pending.clear();
        }
    }

    fn write(&mut self, text: &str, group: Group) {
        if !group.is_for_rtf && !group.is_skipped {
            self.flush();
            self.page.push_str(text);
        }
    }

    fn control(&mut self, group: &mut Group) {
        let letters = self.rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        if letters == 0 {
            return self.symbol(group);
        }
        let name = self.take(letters);
        let sign = usize::from(self.rest.first() == Some(&b'-'));
        let digits = self.rest.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
        let number = if digits == 0 { &[][..] } else { self.take(sign + digits) };
        let number: Option<i64> = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        if self.rest.first() == Some(&b' ') {
            self.take(1);
        }
        self.word(name, number, group);
    }

    fn word(&mut self, name: &[u8], number: Option<i64>, group: &mut Group) {
        let is_optional = std::mem::take(&mut group.is_optional);
        match name {
            // What is in it is written as any other text.
            b"htmltag" => {}
            _ if is_optional => group.is_skipped = true,
            b"htmlrtf" => group.is_for_rtf = number != Some(0),
            b"fonttbl" | b"colortbl" | b"stylesheet" | b"info" | b"pict" => group.is_skipped = true,
            b"ansicpg" => self.code_page = number.and_then(|page| u32::try_from(page).ok()).unwrap_or(1252),
            b"uc" => {
                group.fallback = number.and_then(|count| usize::try_from(count).ok()).unwrap_or(1).min(8);
            }
            b"par" | b"line" => self.write("\n", *group),
            b"tab" => self.write("\t", *group),
            b"lquote" => self.write("‘", *group),
            b"rquote" => self.write("’", *group),
            b"ldblquote" => self.write("“", *group),
            b"rdblquote" => self.write("”", *group),
            b"bullet" => self.write("•", *group),
            b"endash" => self.write("–", *group),
            b"emdash" => self.write("—", *group),
            b"u" => self.unicode(number.unwrap_or(0), *group),
            _ => {}
        }
    }

    fn symbol(&mut self, group: &mut Group) {
        match self.take(1).first() {
            Some(b'*') => group.is_optional = true,
            Some(b'\'') => {
                let digits = std::str::from_utf8(self.take(2)).ok();
                if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    self.byte(byte, *group);
                }
            }
            Some(b'~') => self.write("&nbsp;", *group),
            Some(b'_') => self.write("-", *group),
            Some(byte @ (b'{' | b'}' | b'\\')) => self.byte(*byte, *group),
            _ => {}
        }
    }

    /// A character by its number. UTF-16 writes some as two halves.
    fn unicode(&mut self, number: i64, group: Group) {
        let unit = u16::try_from(number & 0xFFFF).unwrap_or(0);
        let mut units = vec![unit];
        self.skip_fallback(group.fallback);
        if (0xD800..0xDC00).contains(&unit) && self.rest.starts_with(b"\\u") {
            let digits =
                self.rest[2..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
            let second = std::str::from_utf8(&self.rest[2..2 + digits])
                .ok()
                .and_then(|number| number.parse::<i64>().ok());
            if let Some(second) = second {
                self.take(2 + digits);
                if self.rest.first() == Some(&b' ') {
                    self.take(1);
                }
                self.skip_fallback(group.fallback);
                units.push(u16::try_from(second & 0xFFFF).unwrap_or(0));
            }
        }
        for character in char::decode_utf16(units).flatten() {
            self.write(character.encode_utf8(&mut [0; 4]), group);
        }
    }

    /// Skips the characters for programs that know no Unicode.
    fn skip_fallback(&mut self, number: usize) {
        for _ in 0..number {
            match self.rest {
                [b'\\', b'\'', ..] => _ = self.take(4),
                [b'\\' | b'{' | b'}', ..] | [] => return,
                _ => _ = self.take(1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_taken_out_of_the_rtf() {
        let rtf = br"{\rtf1\ansi\ansicpg1252\fromhtml1 \fbidi \deff0{\fonttbl{\f0 Arial;}}{\*\generator x;}
{\*\htmltag64 <p class=\{x\}>}\htmlrtf {\b \htmlrtf0 caf\'e9 \u8364?{\*\htmltag84 &nbsp;}\htmlrtf\'a0\htmlrtf0 \{a\}\par
\u55357?\u56832?{\*\mhtmltag64 <no>}{\*\htmltag72 </p>}\htmlrtf }\htmlrtf0 }";
        let page = unpack(rtf).unwrap();
        assert_eq!(page, "<p class={x}>café €&nbsp;{a}\n😀</p>");
        assert_eq!(unpack(br"{\rtf1\ansi plain}"), None);
        for length in 0..rtf.len() {
            unpack(&rtf[..length]);
        }
    }

    #[test]
    fn groups_without_end_are_bounded() {
        let mut rtf = br"{\rtf1\fromhtml1 ".to_vec();
        rtf.extend(b"{".repeat(1_000_000));
        assert!(unpack(&rtf).is_some());
    }
}
