//! Office documents that are encrypted with Excel's default password, so that people open them without being asked.
//!
//! Excel does this to workbooks that are protected against changes only.

use aes::cipher::{Array, BlockCipherDecrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use sha1::{Digest, Sha1};
use sha2::{Sha256, Sha384, Sha512};

use super::base64;
use super::compound::Container;
use crate::elements::{Elements, Piece};
use crate::limits::Bounds;

/// The password that Excel tries before it asks for one.
pub const DEFAULT: &str = "VelvetSweatshop";

/// Excel hashes the password 100,000 times. A document that asks for far more only wants to keep us busy.
const MAX_ROUNDS: u32 = 200_000;
/// The rounds of the encryption of Office 2007.
const STANDARD_ROUNDS: u32 = 50_000;
/// The bytes of the package that are encrypted together since Office 2010.
const SEGMENT: usize = 4_096;
const BLOCK: usize = 16;

/// The document in a container, if the default password opens it.
pub fn opened(container: &Container<'_>, bounds: Bounds<'_>) -> Option<Vec<u8>> {
    let info = container.stream("EncryptionInfo")?;
    let package = container.stream("EncryptedPackage")?;
    let size = usize::try_from(u64::from_le_bytes(*package.first_chunk()?)).ok()?;
    let encrypted = package.get(8..)?;
    let version = (u16_at(&info, 0)?, u16_at(&info, 2)?);
    let mut document = match version {
        (4, 4) => Agile::read(std::str::from_utf8(info.get(8..)?).ok()?, bounds)?.decrypt(encrypted)?,
        (2..=4, 2) => standard(&info, encrypted)?,
        _ => return None,
    };
    document.truncate(size);
    Some(document)
}

/// The password as it is hashed.
pub fn default_in_utf16() -> Vec<u8> {
    DEFAULT.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "SHA1" | "SHA-1" => Self::Sha1,
            "SHA256" | "SHA-256" => Self::Sha256,
            "SHA384" | "SHA-384" => Self::Sha384,
            "SHA512" | "SHA-512" => Self::Sha512,
            _ => return None,
        })
    }

    fn of(self, first: &[u8], second: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => hash::<Sha1>(first, second),
            Self::Sha256 => hash::<Sha256>(first, second),
            Self::Sha384 => hash::<Sha384>(first, second),
            Self::Sha512 => hash::<Sha512>(first, second),
        }
    }

    /// The password with its salt, hashed many times.
    fn of_password(self, salt: &[u8], rounds: u32) -> Vec<u8> {
        let start = self.of(salt, &default_in_utf16());
        (0..rounds).fold(start, |hash, round| self.of(&round.to_le_bytes(), &hash))
    }
}

fn hash<D: Digest>(first: &[u8], second: &[u8]) -> Vec<u8> {
    D::new().chain_update(first).chain_update(second).finalize().to_vec()
}

/// The encryption since Office 2010, whose parameters are in XML.
#[derive(Default)]
struct Agile {
    data: Parameters,
    key: Parameters,
    rounds: u32,
    verifier: Vec<u8>,
    verifier_hash: Vec<u8>,
    encrypted_key: Vec<u8>,
}

#[derive(Default)]
struct Parameters {
    salt: Vec<u8>,
    hash: Option<Hash>,
    key_bytes: usize,
}

impl Agile {
    fn read(source: &str, bounds: Bounds<'_>) -> Option<Self> {
        let mut agile = Self::default();
        let mut elements = Elements::new(source, bounds);
        while let Some(piece) = elements.next().ok()? {
            let Piece::Open(element) = piece else { continue };
            let bytes = |name: &str| element.attribute(name).map(|text| base64::decode(&text));
            let parameters = || {
                let is_cbc = element.attribute("cipherChaining").as_deref() == Some("ChainingModeCBC");
                let is_aes = element.attribute("cipherAlgorithm").as_deref() == Some("AES");
                let bits: usize = element.attribute("keyBits")?.parse().ok()?;
                (is_cbc && is_aes).then_some(Parameters {
                    salt: bytes("saltValue")?,
                    hash: Hash::parse(&element.attribute("hashAlgorithm")?),
                    key_bytes: bits / 8,
                })
            };
            match element.name() {
                "keyData" => agile.data = parameters()?,
                "encryptedKey" => {
                    agile.key = parameters()?;
                    agile.rounds = element.attribute("spinCount")?.parse().ok()?;
                    agile.verifier = bytes("encryptedVerifierHashInput")?;
                    agile.verifier_hash = bytes("encryptedVerifierHashValue")?;
                    agile.encrypted_key = bytes("encryptedKeyValue")?;
                }
                _ => {}
            }
        }
        (agile.rounds <= MAX_ROUNDS).then_some(agile)
    }

    fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>> {
        const VERIFIER: [u8; 8] = [0xFE, 0xA7, 0xD2, 0x76, 0x3B, 0x4B, 0x9E, 0x79];
        const VERIFIER_HASH: [u8; 8] = [0xD7, 0xAA, 0x0F, 0x6D, 0x30, 0x61, 0x34, 0x4E];
        const KEY: [u8; 8] = [0x14, 0x6E, 0x0B, 0xE7, 0xAB, 0xAC, 0xD0, 0xD6];
        let hash = self.key.hash?;
        let password = hash.of_password(&self.key.salt, self.rounds);
        let open = |block: &[u8], encrypted: &[u8]| {
            let key = resized(hash.of(&password, block), self.key.key_bytes);
            Cipher::new(&key)?.decrypt_chained(&resized(self.key.salt.clone(), BLOCK), encrypted)
        };
        let expected = open(&VERIFIER_HASH, &self.verifier_hash)?;
        let found = hash.of(&open(&VERIFIER, &self.verifier)?, &[]);
        if !expected.starts_with(&found) {
            return None;
        }
        let mut key = open(&KEY, &self.encrypted_key)?;
        key.truncate(self.data.key_bytes);
        let cipher = Cipher::new(&key)?;
        let mut document = Vec::with_capacity(encrypted.len());
        for (number, segment) in (0_u32..).zip(encrypted.chunks(SEGMENT)) {
            let start = resized(self.data.hash?.of(&self.data.salt, &number.to_le_bytes()), BLOCK);
            document.extend(cipher.decrypt_chained(&start, segment)?);
        }
        Some(document)
    }
}

/// A hash as a key of this length.
fn resized(mut hash: Vec<u8>, length: usize) -> Vec<u8> {
    hash.resize(length.min(64), 0x36);
    hash
}

/// The encryption of Office 2007: AES block by block.
fn standard(info: &[u8], encrypted: &[u8]) -> Option<Vec<u8>> {
    let header = usize::try_from(u32_at(info, 8)?).ok()?;
    let key_bytes = usize::try_from(u32_at(info, 12 + 16)?).ok()? / 8;
    let verifier = info.get(12_usize.checked_add(header)?..)?;
    let salt = verifier.get(4..20)?;
    let password = Hash::Sha1.of_password(salt, STANDARD_ROUNDS);
    let password = Hash::Sha1.of(&password, &[0; 4]);
    let derived = |pad: u8| {
        let mut block = [pad; 64];
        block.iter_mut().zip(&password).for_each(|(byte, other)| *byte ^= other);
        Hash::Sha1.of(&block, &[])
    };
    let key = [derived(0x36), derived(0x5C)].concat();
    let cipher = Cipher::new(key.get(..key_bytes)?)?;
    let found = Hash::Sha1.of(&cipher.decrypt_blocks(verifier.get(20..36)?), &[]);
    if !cipher.decrypt_blocks(verifier.get(40..72)?).starts_with(&found) {
        return None;
    }
    Some(cipher.decrypt_blocks(encrypted))
}

enum Cipher {
    Aes128(Box<Aes128>),
    Aes192(Box<Aes192>),
    Aes256(Box<Aes256>),
}

impl Cipher {
    fn new(key: &[u8]) -> Option<Self> {
        Some(match key.len() {
            16 => Self::Aes128(Box::new(Aes128::new_from_slice(key).ok()?)),
            24 => Self::Aes192(Box::new(Aes192::new_from_slice(key).ok()?)),
            32 => Self::Aes256(Box::new(Aes256::new_from_slice(key).ok()?)),
            _ => return None,
        })
    }

    fn decrypt_block(&self, block: &[u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = Array::from(*block);
        match self {
            Self::Aes128(cipher) => cipher.decrypt_block(&mut block),
            Self::Aes192(cipher) => cipher.decrypt_block(&mut block),
            Self::Aes256(cipher) => cipher.decrypt_block(&mut block),
        }
        block.into()
    }

    /// Each block on its own. An incomplete one at the end is left out.
    fn decrypt_blocks(&self, encrypted: &[u8]) -> Vec<u8> {
        encrypted.as_chunks().0.iter().flat_map(|block| self.decrypt_block(block)).collect()
    }

    /// Each block with the one before it.
    fn decrypt_chained(&self, start: &[u8], encrypted: &[u8]) -> Option<Vec<u8>> {
        let mut before: [u8; BLOCK] = start.try_into().ok()?;
        let mut document = Vec::with_capacity(encrypted.len());
        for block in encrypted.as_chunks().0 {
            let decrypted = self.decrypt_block(block);
            document.extend(decrypted.iter().zip(before).map(|(byte, other)| byte ^ other));
            before = *block;
        }
        Some(document)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}
