//! Attachments as mails had them before MIME.

/// The bytes of a file that is written as text between `begin 644 name` and `end`; `None` if it is not.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut lines = text.trim_ascii_start().split(|byte| *byte == b'\n');
    let first = lines.next()?.strip_prefix(b"begin ")?;
    let mode = first.iter().take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    if !(3..=4).contains(&mode) || first.get(mode) != Some(&b' ') {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for line in lines {
        let line = line.trim_ascii_end();
        if line == b"end" {
            break;
        }
        let Some((length, digits)) = line.split_first() else { continue };
        let start = bytes.len();
        for group in digits.chunks(4) {
            let digit = |at: usize| u32::from(group.get(at).map_or(0, |byte| byte.wrapping_sub(32) & 63));
            let bits = digit(0) << 18 | digit(1) << 12 | digit(2) << 6 | digit(3);
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
        }
        bytes.truncate(start + usize::from(length.wrapping_sub(32) & 63));
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_out_of_the_text() {
        let text = b"begin 644 tides.txt\r\n#2&EG\r\n%:\"!W870`\r\n`\r\nend\r\nafter";
        assert_eq!(decode(text).unwrap(), b"High wat");
        assert_eq!(decode(b"begin at noon"), None);
        assert_eq!(decode(b"begin 644"), None);
    }
}
