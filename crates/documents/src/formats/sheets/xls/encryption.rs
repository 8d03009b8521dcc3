//! Workbooks that are encrypted with Excel's default password: RC4 over the data of the records.

use md5::{Digest, Md5};
use sha1::Sha1;

use super::records::{u16_at, u32_at};
use super::{damaged, kind};
use crate::error::Error;
use crate::formats::password;

/// Each block of the stream has its own key.
const BLOCK: usize = 1_024;
/// Records that are never encrypted: where the stream begins, and what one needs to decrypt it.
const PLAIN: [u16; 7] = [kind::BEGIN, kind::PASSWORD, 0x0194, 0x0195, 0x00E1, 0x0196, 0x0138];

/// The stream as it is read; an error if it has a password of its own.
pub fn decrypted(mut stream: Vec<u8>) -> Result<Vec<u8>, Error> {
    let Some(parameters) = parameters(&stream) else { return Ok(stream) };
    let keys = Keys::of(parameters).ok_or_else(crate::protected)?;
    let mut key_stream = KeyStream { keys, block: None };
    let mut at = 0;
    while let Some((record, length)) = u16_at(&stream, at).zip(u16_at(&stream, at + 2)) {
        let data = at + 4;
        let end = data + usize::from(length);
        if end > stream.len() {
            break;
        }
        // Where a sheet begins must be known to skip to it.
        let from = if record == kind::SHEET { (data + 4).min(end) } else { data };
        if !PLAIN.contains(&record) {
            for (position, byte) in (from..).zip(&mut stream[from..end]) {
                *byte ^= key_stream.at(position).ok_or_else(|| damaged("no key"))?;
            }
        }
        at = end;
    }
    Ok(stream)
}

/// The record that says how the stream is encrypted. It is one of the first.
fn parameters(stream: &[u8]) -> Option<&[u8]> {
    let mut records = super::Records::new(stream);
    records.by_ref().take(20).find(|record| record.kind == kind::PASSWORD).map(|record| record.data)
}

enum Keys {
    /// Of Excel 97: five bytes of a hash.
    Md5([u8; 5]),
    /// Of Excel 2002: a hash, and how many bytes of the next one are the key.
    Sha1(Vec<u8>, usize),
}

impl Keys {
    /// The keys of the default password, if it is the right one.
    fn of(parameters: &[u8]) -> Option<Self> {
        if u16_at(parameters, 0)? != 1 {
            return None;
        }
        let keys = match u16_at(parameters, 2)? {
            1 => Self::of_excel_97(parameters.get(6..22)?),
            _ => Self::of_excel_2002(parameters)?,
        };
        let (verifier, hash) = match &keys {
            Self::Md5(_) => (parameters.get(22..38)?, parameters.get(38..54)?),
            Self::Sha1(..) => {
                let verifier = verifier(parameters)?;
                (verifier.get(20..36)?, verifier.get(40..60)?)
            }
        };
        let mut cipher = keys.cipher(0);
        let verifier: Vec<u8> = verifier.iter().map(|byte| byte ^ cipher.next()).collect();
        let found: Vec<u8> = hash.iter().map(|byte| byte ^ cipher.next()).collect();
        let expected = match &keys {
            Self::Md5(_) => Md5::digest(&verifier).to_vec(),
            Self::Sha1(..) => Sha1::digest(&verifier).to_vec(),
        };
        (found == expected).then_some(keys)
    }

    fn of_excel_97(salt: &[u8]) -> Self {
        let password = Md5::digest(password::default_in_utf16());
        let mut hash = Md5::new();
        for _ in 0..16 {
            hash.update(&password[..5]);
            hash.update(salt);
        }
        let hash = hash.finalize();
        Self::Md5([hash[0], hash[1], hash[2], hash[3], hash[4]])
    }

    fn of_excel_2002(parameters: &[u8]) -> Option<Self> {
        // After the version: flags, the size of the header, and the header, whose fifth number is the size of the key.
        let bits = usize::try_from(u32_at(parameters, 14 + 16)?).ok()?;
        let length = if bits == 0 { 5 } else { bits / 8 };
        let salt = verifier(parameters)?.get(4..20)?;
        let hash = Sha1::new().chain_update(salt).chain_update(password::default_in_utf16()).finalize();
        (1..=16).contains(&length).then(|| Self::Sha1(hash.to_vec(), length))
    }

    fn cipher(&self, block: u32) -> Rc4 {
        match self {
            Self::Md5(hash) => {
                Rc4::new(&Md5::new().chain_update(hash).chain_update(block.to_le_bytes()).finalize())
            }
            Self::Sha1(hash, length) => {
                let key = Sha1::new().chain_update(hash).chain_update(block.to_le_bytes()).finalize();
                let mut key = key[..*length].to_vec();
                if *length == 5 {
                    key.resize(16, 0);
                }
                Rc4::new(&key)
            }
        }
    }
}

/// What a password is compared with, after the header.
fn verifier(parameters: &[u8]) -> Option<&[u8]> {
    let header = usize::try_from(u32_at(parameters, 10)?).ok()?;
    parameters.get(14_usize.checked_add(header)?..)
}

/// The bytes of the key for each position of the stream. Positions are asked for in their order.
struct KeyStream {
    keys: Keys,
    /// The number of the block, its cipher, and the position of its next byte.
    block: Option<(usize, Rc4, usize)>,
}

impl KeyStream {
    fn at(&mut self, position: usize) -> Option<u8> {
        let number = position / BLOCK;
        if self.block.as_ref().is_none_or(|(block, ..)| *block != number) {
            self.block = Some((number, self.keys.cipher(u32::try_from(number).ok()?), number * BLOCK));
        }
        let (_, cipher, next) = self.block.as_mut()?;
        while *next < position {
            cipher.next();
            *next += 1;
        }
        *next += 1;
        Some(cipher.next())
    }
}

struct Rc4 {
    state: [u8; 256],
    i: u8,
    j: u8,
}

impl Rc4 {
    fn new(key: &[u8]) -> Self {
        let mut state: [u8; 256] = std::array::from_fn(|n| u8::try_from(n).unwrap_or(0));
        let mut j = 0_u8;
        for (n, byte) in (0..256).zip(key.iter().cycle()) {
            j = j.wrapping_add(state[n]).wrapping_add(*byte);
            state.swap(n, usize::from(j));
        }
        Self { state, i: 0, j: 0 }
    }

    fn next(&mut self) -> u8 {
        self.i = self.i.wrapping_add(1);
        let first = self.state[usize::from(self.i)];
        self.j = self.j.wrapping_add(first);
        let second = self.state[usize::from(self.j)];
        self.state.swap(usize::from(self.i), usize::from(self.j));
        self.state[usize::from(first.wrapping_add(second))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cipher_is_rc4() {
        let mut cipher = Rc4::new(b"Key");
        let encrypted: Vec<u8> = b"Plaintext".iter().map(|byte| byte ^ cipher.next()).collect();
        assert_eq!(encrypted, [0xBB, 0xF3, 0x16, 0xE8, 0xD9, 0x40, 0xAF, 0x0A, 0xD3]);
    }
}
