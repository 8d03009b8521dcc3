//! Unpacks RTF as Outlook packs it.

/// What every packed text may refer to.
const BEFORE: &[u8] =
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \
\\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \
\\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";
const WINDOW: usize = 4_096;
const PACKED: &[u8] = b"LZFu";
const NOT_PACKED: &[u8] = b"MELA";
const HEADER: usize = 16;

/// The RTF, as far as it can be unpacked. It is at most nine times as long as the packed text.
pub fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    let (header, mut rest) = bytes.split_at_checked(HEADER)?;
    match &header[8..12] {
        NOT_PACKED => return Some(rest.to_vec()),
        PACKED => {}
        _ => return None,
    }
    let mut window = [0; WINDOW];
    window[..BEFORE.len()].copy_from_slice(BEFORE);
    let mut at = BEFORE.len();
    let mut text = Vec::with_capacity(rest.len() * 2);
    let mut write = |byte: u8, window: &mut [u8; WINDOW], at: &mut usize| {
        window[*at] = byte;
        *at = (*at + 1) % WINDOW;
        text.push(byte);
    };
    'all: while let Some((flags, after)) = rest.split_first() {
        rest = after;
        for bit in 0..8 {
            if flags >> bit & 1 == 0 {
                let Some((byte, after)) = rest.split_first() else { break 'all };
                rest = after;
                write(*byte, &mut window, &mut at);
                continue;
            }
            let Some((pair, after)) = rest.split_first_chunk() else { break 'all };
            rest = after;
            let reference = usize::from(u16::from_be_bytes(*pair));
            let (mut from, length) = (reference >> 4, (reference & 0xF) + 2);
            if from == at {
                break 'all;
            }
            for _ in 0..length {
                let byte = window[from];
                write(byte, &mut window, &mut at);
                from = (from + 1) % WINDOW;
            }
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_text_that_refers_to_itself_is_unpacked() {
        let packed = [
            0x2d, 0x00, 0x00, 0x00, 0x2b, 0x00, 0x00, 0x00, 0x4c, 0x5a, 0x46, 0x75, 0xf1, 0xc5, 0xc7, 0xa7,
            0x03, 0x00, 0x0a, 0x00, 0x72, 0x63, 0x70, 0x67, 0x31, 0x32, 0x35, 0x42, 0x32, 0x0a, 0xf3, 0x20,
            0x68, 0x65, 0x6c, 0x09, 0x00, 0x20, 0x62, 0x77, 0x05, 0xb0, 0x6c, 0x64, 0x7d, 0x0a, 0x80, 0x0f,
            0xa0,
        ];
        assert_eq!(unpack(&packed).unwrap(), b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n");
        for length in 0..packed.len() {
            unpack(&packed[..length]);
        }
    }
}
