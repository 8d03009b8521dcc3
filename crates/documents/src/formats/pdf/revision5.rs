//! Encryption with AES-256 of revision 5, as Acrobat 9 wrote it, for documents that need no password.
//!
//! The library takes the key that wraps the key of the document for the key of the document itself. It does this right for
//! revision 6, which differs only in how a password becomes a key. So the key is taken out here, wrapped again as revision 6
//! wraps it, and written over the old one. Nothing else of the file changes, and nothing is moved.

use std::ops::Range;

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// How far the dictionary may reach to each side of its `/UE`.
const REACH: usize = 4_096;
/// The places that are looked at.
const MAX_PLACES: usize = 16;
/// Attempts to find salts whose result has no characters that need an escape.
const MAX_SALTS: u64 = 64;
const BLOCK: usize = 16;

/// The file with the same key wrapped as in revision 6; `None` if it is not of revision 5, or needs a password.
pub fn as_revision_6(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut places = memchr::memmem::find_iter(bytes, b"/UE").take(MAX_PLACES);
    places.find_map(|place| rewritten(bytes, place))
}

fn rewritten(bytes: &[u8], place: usize) -> Option<Vec<u8>> {
    let from = place.saturating_sub(REACH);
    // Other dictionaries may stand inside this one, before the entry. So its object is looked for, or the trailer.
    let object = memchr::memmem::rfind(&bytes[from..place], b" obj");
    let trailer = memchr::memmem::rfind(&bytes[from..place], b"trailer");
    let start = from + object.max(trailer).unwrap_or(0);
    let entries = Entries::of(bytes, start, (place + REACH).min(bytes.len()));
    let revision = entries.revision?;
    let ((user, user_range), (wrapped, wrapped_range)) = (entries.user?, entries.wrapped?);
    let key = document_key(&user, &wrapped)?;
    for salt in 0..MAX_SALTS {
        let (user, wrapped) = wrap(&key, salt);
        let (Some(user), Some(wrapped)) =
            (as_string(&user, user_range.len()), as_string(&wrapped, wrapped_range.len()))
        else {
            continue;
        };
        let mut bytes = bytes.to_vec();
        bytes[revision] = b'6';
        bytes[user_range].copy_from_slice(&user);
        bytes[wrapped_range].copy_from_slice(&wrapped);
        return Some(bytes);
    }
    None
}

/// The key of a document that opens without a password.
fn document_key(user: &[u8], wrapped: &[u8]) -> Option<[u8; 32]> {
    let (check, salt, key_salt) = (user.get(..32)?, user.get(32..40)?, user.get(40..48)?);
    if Sha256::digest(salt).as_slice() != check {
        return None;
    }
    let cipher = Aes256::new_from_slice(Sha256::digest(key_salt).as_slice()).ok()?;
    let blocks = wrapped.get(..32)?.as_chunks::<BLOCK>().0;
    let mut key = [0; 32];
    let mut before = [0; BLOCK];
    for (plain, block) in key.as_chunks_mut::<BLOCK>().0.iter_mut().zip(blocks) {
        let mut decrypted = Array::from(*block);
        cipher.decrypt_block(&mut decrypted);
        *plain = xor(decrypted.into(), before);
        before = *block;
    }
    Some(key)
}

/// The entries `/U` and `/UE` of revision 6 for the empty password.
fn wrap(key: &[u8; 32], number: u64) -> (Vec<u8>, Vec<u8>) {
    let [salt, key_salt] = [2 * number, 2 * number + 1].map(|number| format!("{number:08}").into_bytes());
    let user = [&hash(&salt)[..], &salt, &key_salt].concat();
    (user, encrypt(&Aes256::new(&Array::from(hash(&key_salt))), [0; BLOCK], key))
}

/// The hash of revision 6 of the empty password with a salt (algorithm 2.B of ISO 32000-2).
fn hash(salt: &[u8]) -> [u8; 32] {
    let mut key = Sha256::digest(salt).to_vec();
    let mut round = 0_u32;
    loop {
        let (cipher_key, start) = (first::<16>(&key), first::<16>(&key[16..]));
        let encrypted = encrypt(&Aes128::new(&Array::from(cipher_key)), start, &key.repeat(64));
        // The remainder of the first 16 bytes as one number is that of their sum, as 256 leaves the remainder 1.
        let sum: u32 = encrypted[..BLOCK].iter().map(|byte| u32::from(*byte)).sum();
        key = match sum % 3 {
            0 => Sha256::digest(&encrypted).to_vec(),
            1 => Sha384::digest(&encrypted).to_vec(),
            _ => Sha512::digest(&encrypted).to_vec(),
        };
        round += 1;
        let last = encrypted.last().copied().unwrap_or_default();
        // The last byte is at most 255, so this ends.
        if round >= 64 && u32::from(last) <= round - 32 {
            return first(&key);
        }
    }
}

/// The first bytes of a hash, which has at least 32.
fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|at| bytes.get(at).copied().unwrap_or_default())
}

/// Each block with the one before it, without padding.
fn encrypt(
    cipher: &impl BlockCipherEncrypt<BlockSize = aes::cipher::consts::U16>,
    start: [u8; BLOCK],
    plain: &[u8],
) -> Vec<u8> {
    let mut encrypted = Vec::with_capacity(plain.len());
    let mut before = start;
    for block in plain.as_chunks::<BLOCK>().0 {
        let mut block = Array::from(xor(*block, before));
        cipher.encrypt_block(&mut block);
        before = block.into();
        encrypted.extend(before);
    }
    encrypted
}

fn xor(a: [u8; BLOCK], b: [u8; BLOCK]) -> [u8; BLOCK] {
    std::array::from_fn(|at| a[at] ^ b[at])
}

/// A string of the file that takes exactly this many bytes, with spaces after it; `None` if it is longer.
fn as_string(value: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut string = vec![b'('];
    for byte in value {
        // A carriage return in a string is read as a line feed.
        match byte {
            b'(' | b')' | b'\\' => string.extend([b'\\', *byte]),
            b'\r' => string.extend(b"\\r"),
            _ => string.push(*byte),
        }
    }
    string.push(b')');
    (string.len() <= length).then(|| {
        string.resize(length, b' ');
        string
    })
}

/// What the dictionary says, with the places of it in the file.
#[derive(Default)]
struct Entries {
    /// Where the digit 5 is.
    revision: Option<usize>,
    user: Option<(Vec<u8>, Range<usize>)>,
    wrapped: Option<(Vec<u8>, Range<usize>)>,
}

impl Entries {
    fn of(bytes: &[u8], start: usize, end: usize) -> Self {
        let mut entries = Self::default();
        let mut at = start;
        while at < end && !bytes[at..end].starts_with(b"endobj") {
            match bytes[at] {
                b'/' => {
                    let name_end = at + 1 + bytes[at + 1..end].iter().take_while(|b| is_regular(**b)).count();
                    let name = &bytes[at + 1..name_end];
                    let space = bytes[name_end..end].iter().take_while(|b| b.is_ascii_whitespace()).count();
                    at = name_end + space;
                    match name {
                        b"R" if bytes[at..end].starts_with(b"5") && !is_regular_at(bytes, at + 1) => {
                            entries.revision = Some(at);
                        }
                        b"U" | b"UE" => {
                            let Some((value, after)) = string(bytes, at, end) else { continue };
                            let entry = if name == b"U" { &mut entries.user } else { &mut entries.wrapped };
                            *entry = Some((value, at..after));
                            at = after;
                        }
                        _ => {}
                    }
                }
                b'(' => at = string(bytes, at, end).map_or(at + 1, |(_, after)| after),
                _ => at += 1,
            }
        }
        entries
    }
}

fn is_regular(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && byte != 0 && !b"()<>[]{}/%".contains(&byte)
}

fn is_regular_at(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(|byte| is_regular(*byte))
}

/// The string that begins here, and where it ends.
fn string(bytes: &[u8], start: usize, end: usize) -> Option<(Vec<u8>, usize)> {
    match bytes[..end].get(start)? {
        b'<' => hexadecimal(bytes, start, end),
        b'(' => literal(bytes, start, end),
        _ => None,
    }
}

fn hexadecimal(bytes: &[u8], start: usize, end: usize) -> Option<(Vec<u8>, usize)> {
    let length = memchr::memchr(b'>', &bytes[start..end])?;
    let digits = bytes[start + 1..start + length].iter().filter(|byte| !byte.is_ascii_whitespace());
    let digits: Option<Vec<u8>> =
        digits.map(|digit| u8::try_from(char::from(*digit).to_digit(16)?).ok()).collect();
    let value = digits?.chunks(2).map(|pair| 16 * pair[0] + pair.get(1).copied().unwrap_or(0)).collect();
    Some((value, start + length + 1))
}

fn literal(bytes: &[u8], start: usize, end: usize) -> Option<(Vec<u8>, usize)> {
    let mut value = Vec::new();
    let (mut at, mut depth) = (start + 1, 1);
    while at < end {
        let byte = bytes[at];
        at += 1;
        match byte {
            b'\\' => {
                let escaped = *bytes[..end].get(at)?;
                at += 1;
                match escaped {
                    b'n' => value.push(b'\n'),
                    b'r' => value.push(b'\r'),
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'f' => value.push(12),
                    b'0'..=b'7' => {
                        let more = bytes[at..end].iter().take(2).take_while(|b| matches!(b, b'0'..=b'7'));
                        let digits = 1 + more.count();
                        let octal = bytes[at - 1..at - 1 + digits].iter();
                        value.push(
                            octal.fold(0, |sum: u8, digit| sum.wrapping_mul(8).wrapping_add(digit - b'0')),
                        );
                        at += digits - 1;
                    }
                    // A line that is broken in the file only.
                    b'\r' => at += usize::from(bytes.get(at) == Some(&b'\n')),
                    b'\n' => {}
                    other => value.push(other),
                }
            }
            b'(' => {
                depth += 1;
                value.push(byte);
            }
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some((value, at));
                }
                value.push(byte);
            }
            b'\r' => {
                at += usize::from(bytes.get(at) == Some(&b'\n'));
                value.push(b'\n');
            }
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = *b"the key of this document, 32 byt";

    /// A file that opens without a password, with its strings as they are usual in files.
    fn file(as_text: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let user = [Sha256::digest(b"salt (1)").as_slice(), b"salt (1)", b"key\\salt"].concat();
        let cipher = Aes256::new(&Array::from(first::<32>(Sha256::digest(b"key\\salt").as_slice())));
        let wrapped = encrypt(&cipher, [0; BLOCK], &KEY);
        let (user, wrapped) = (as_text(&user), as_text(&wrapped));
        [
            &b"7 0 obj <</CF<</StdCF<</CFM/AESV3>>>>/O(/U)/R 5/U"[..],
            &user,
            b"/V 5 /UE ",
            &wrapped,
            b">>endobj",
        ]
        .concat()
    }

    fn literal_text(value: &[u8]) -> Vec<u8> {
        let mut text = vec![b'('];
        for byte in value {
            text.extend(format!("\\{byte:03o}").bytes());
        }
        text.push(b')');
        text
    }

    fn hexadecimal_text(value: &[u8]) -> Vec<u8> {
        let digits: String = value.iter().map(|byte| format!("{byte:02X}")).collect();
        format!("<{digits}>").into_bytes()
    }

    fn plain_text(value: &[u8]) -> Vec<u8> {
        as_string(value, 4 * value.len()).unwrap().trim_ascii_end().to_vec()
    }

    #[test]
    fn the_key_is_wrapped_again_in_the_same_place() {
        for as_text in [literal_text, hexadecimal_text, plain_text] {
            let file = file(as_text);
            let rewritten = as_revision_6(&file).unwrap();
            assert_eq!(rewritten.len(), file.len());
            assert!(rewritten.windows(5).any(|window| window == b"/R 6/"));
            let entries = Entries::of(&rewritten, 0, rewritten.len());
            let ((user, _), (wrapped, _)) = (entries.user.unwrap(), entries.wrapped.unwrap());
            assert_eq!(user[..32], hash(&user[32..40]));
            let expected = encrypt(&Aes256::new(&Array::from(hash(&user[40..48]))), [0; BLOCK], &KEY);
            assert_eq!(wrapped, expected);
        }
    }

    #[test]
    fn other_files_stay_as_they_are() {
        assert!(as_revision_6(b"%PDF-1.7 /UE").is_none());
        let file = file(hexadecimal_text);
        let with_password = String::from_utf8(file.clone()).unwrap().replacen("/U<", "/U<00", 1);
        assert!(as_revision_6(with_password.as_bytes()).is_none(), "the check is that of a password");
        let newer = String::from_utf8(file.clone()).unwrap().replace("/R 5", "/R 6");
        assert!(as_revision_6(newer.as_bytes()).is_none());
        for end in 0..file.len() {
            _ = as_revision_6(&file[..end]);
        }
    }
}
