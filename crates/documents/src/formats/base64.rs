//! Base64, as flat files and mails write bytes.

/// The bytes. White space is skipped, and what is no base64 ends them.
pub fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut number) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        number += 6;
        if number >= 8 {
            number -= 8;
            bytes.push((bits >> number).to_le_bytes()[0]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_decoded_whatever_their_number() {
        for (text, bytes) in
            [("dGlk\n ZXM=", "tides"), ("dGlkZQ==", "tide"), ("dGlk", "tid"), ("", ""), ("dG!k", "t")]
        {
            assert_eq!(decode(text), bytes.as_bytes(), "{text}");
        }
    }
}
