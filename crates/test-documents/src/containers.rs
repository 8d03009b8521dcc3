//! Documents that hold others: books, messages of Outlook, signed files.

/// A value of the format of signed files.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x82, length[0], length[1]], content].concat()
}

/// A file that is signed (`.p7m`), without its signature.
pub fn signed(content: &[u8]) -> Vec<u8> {
    let data = [tagged(6, &[42]), tagged(0xA0, &tagged(4, content))].concat();
    let fields = [tagged(2, &[1]), tagged(0x31, &[]), tagged(0x30, &data)].concat();
    let kind = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02];
    tagged(0x30, &[tagged(6, &kind), tagged(0xA0, &tagged(0x30, &fields))].concat())
}

/// Bytes as mails write them.
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits =
            group.iter().chain(&[0; 3]).take(3).fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        for at in 0..4 {
            let digit = char::from(DIGITS[bits >> (18 - 6 * at) & 63]);
            text.push(if at <= group.len() { digit } else { '=' });
        }
    }
    text
}

/// Text in two bytes for each character.
pub fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The stream of properties of fixed size: their numbers and values.
pub fn fixed_properties(header: usize, values: &[(u16, u64)]) -> Vec<u8> {
    let mut list = vec![0; header];
    for (number, value) in values {
        list.extend([0x40, 0]);
        list.extend(number.to_le_bytes());
        list.extend([6, 0, 0, 0]);
        list.extend(value.to_le_bytes());
    }
    list
}

/// A message of Outlook from Ann about the tides, with the stream of its body and further streams.
pub fn outlook(body: (&str, &[u8]), others: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut streams = vec![
        ("__nameid_version1.0/x".to_owned(), Vec::new()),
        (
            "__properties_version1.0".to_owned(),
            fixed_properties(32, &[(0x0039, 134_168_922_000_000_000), (0x3FDE, 1252)]),
        ),
        ("__substg1.0_0037001F".to_owned(), utf16("The tides")),
        ("__substg1.0_0C1A001F".to_owned(), utf16("Ann")),
        ("__substg1.0_0C1F001F".to_owned(), utf16("a@b.c")),
        ("__substg1.0_0E04001F".to_owned(), utf16("Bob; Cat")),
        (body.0.to_owned(), body.1.to_vec()),
    ];
    streams.extend(others.iter().map(|(name, content)| ((*name).to_owned(), content.clone())));
    let streams: Vec<(&str, &[u8])> =
        streams.iter().map(|(name, content)| (name.as_str(), &content[..])).collect();
    crate::compound_of(&streams)
}

/// A book (EPUB) of these chapters, the last one first, and of these other parts.
pub fn book(chapters: &[(&str, &str)], others: &[(&str, &str)]) -> Vec<u8> {
    let items: String =
        (0..).zip(chapters).map(|(n, (name, _))| format!("<item id='i{n}' href='{name}'/>")).collect();
    // The spine has another order than the manifest.
    let spine: String = (0..chapters.len()).rev().map(|n| format!("<itemref idref='i{n}'/>")).collect();
    let package = format!(
        "<package><manifest>{items}<item id='ncx' href='toc.ncx' media-type='application/x-dtbncx+xml'/></manifest>\
         <spine>{spine}</spine></package>"
    );
    let mut parts = vec![
        ("mimetype".to_owned(), "application/epub+zip".to_owned()),
        ("META-INF/container.xml".to_owned(), "<c><rootfile full-path='O/p.opf'/></c>".to_owned()),
        ("O/p.opf".to_owned(), package),
    ];
    parts.extend(chapters.iter().map(|(name, page)| (format!("O/{name}"), (*page).to_owned())));
    parts.extend(others.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())));
    let parts: Vec<(&str, &[u8])> =
        parts.iter().map(|(name, part)| (name.as_str(), part.as_bytes())).collect();
    crate::archive(&parts)
}
