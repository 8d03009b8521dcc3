//! The secret of the server. It is not in the database, and everything that the server signs or encrypts itself is
//! protected by a key that is derived from it.
//!
//! It is the setting `SECRET_KEY`; without that, `JWT_SECRET`; without that, a file in the data folder. All processes that
//! share a database must have the same one. The database keeps a fingerprint of it (`auth/agreement.rs`).

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use hkdf::Hkdf;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::Sha256;

use super::{AuthConfig, secret_file};
use landfall_store::Error;

/// The file in the data folder.
const FILE: &str = "secret-key";
/// Another program that derives keys from the same text gets other keys.
const SALT: &[u8] = b"landfall secret key 1";
/// What sealed bytes begin with.
const SEALED: &[u8] = b"LFS1";

/// Derives keys. A clone is cheap.
#[derive(Clone)]
pub struct SecretKey {
    inner: Arc<Inner>,
}

struct Inner {
    current: Root,
    /// Secrets that were in force before. They open what they sealed, and seal nothing.
    previous: Vec<Root>,
}

#[derive(Clone)]
struct Root(Hkdf<Sha256>);

/// Bytes that none of the keys can open: they were sealed with another secret, for another purpose, or are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CannotOpen;

impl SecretKey {
    pub fn new(secret: &str, previous: &[String]) -> Self {
        let previous = previous.iter().map(|secret| Root::new(secret)).collect();
        Self { inner: Arc::new(Inner { current: Root::new(secret), previous }) }
    }

    /// The secret of this process. It is generated in the data folder if none is configured.
    pub fn of(config: &AuthConfig, data_dir: &Path) -> Result<Self, Error> {
        let in_file = secret_file::find(data_dir, FILE)?;
        let configured = [config.secret_key.clone(), config.jwt_secret.clone()];
        let mut known: Vec<String> = configured.into_iter().flatten().chain(in_file).collect();
        if known.is_empty() {
            known.push(secret_file::read(data_dir, FILE, true)?);
        }
        let current = known.remove(0);
        // A server whose operator sets SECRET_KEY for the first time can still open what it sealed before.
        let previous: Vec<String> = config.secret_key_previous.clone().into_iter().chain(known).collect();
        Ok(Self::new(&current, &previous))
    }

    /// The key for one purpose. Each label has its own, and none says anything about another or about the secret.
    pub fn derive(&self, label: &str) -> [u8; 32] {
        self.inner.current.derive(label)
    }

    /// The keys for the same purpose of the secrets before, for what was signed with them.
    pub fn derive_previous(&self, label: &str) -> Vec<[u8; 32]> {
        self.inner.previous.iter().map(|root| root.derive(label)).collect()
    }

    /// Encrypts. Only the same label and the same `context` open it again, so that sealed bytes cannot be moved elsewhere.
    pub fn seal(&self, label: &str, context: &[u8], plain: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = landfall_core::random::random();
        let mut bytes = plain.to_vec();
        cipher(&self.derive(label))
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut bytes)
            .expect("what is sealed is far shorter than the cipher allows");
        [SEALED, &nonce, &bytes].concat()
    }

    /// Decrypts what was sealed with this secret or with one before it.
    pub fn open(&self, label: &str, context: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CannotOpen> {
        if let Ok(plain) = open(&self.derive(label), context, sealed) {
            return Ok(plain);
        }
        let mut keys = self.derive_previous(label).into_iter();
        keys.find_map(|key| open(&key, context, sealed).ok()).ok_or(CannotOpen)
    }

    /// Whether the current secret sealed this.
    pub fn sealed_this(&self, label: &str, context: &[u8], sealed: &[u8]) -> bool {
        open(&self.derive(label), context, sealed).is_ok()
    }
}

/// Whether these bytes are sealed, with whichever secret.
pub fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(SEALED) && bytes.len() >= SEALED.len() + NONCE_LEN + AES_256_GCM.tag_len()
}

impl Root {
    fn new(secret: &str) -> Self {
        Self(Hkdf::new(Some(SALT), secret.as_bytes()))
    }

    fn derive(&self, label: &str) -> [u8; 32] {
        let mut key = [0; 32];
        self.0.expand(label.as_bytes(), &mut key).expect("HKDF can make a key of this length");
        key
    }
}

fn cipher(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("the cipher takes a key of this length"))
}

fn open(key: &[u8; 32], context: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CannotOpen> {
    let rest = sealed.strip_prefix(SEALED).ok_or(CannotOpen)?;
    let (nonce, bytes) = rest.split_at_checked(NONCE_LEN).ok_or(CannotOpen)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| CannotOpen)?;
    let mut bytes = bytes.to_vec();
    let opened = cipher(key).open_in_place(nonce, Aad::from(context), &mut bytes).map_err(|_| CannotOpen)?;
    Ok(opened.to_vec())
}

impl fmt::Debug for SecretKey {
    /// Debug output must not contain the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::auth::DefaultTenant;
    use crate::auth::sessions::SessionConfig;

    fn config(secret_key: Option<&str>, previous: Option<&str>, jwt_secret: Option<&str>) -> AuthConfig {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        AuthConfig {
            secret_key: owned(secret_key),
            secret_key_previous: owned(previous),
            jwt_secret: owned(jwt_secret),
            provider: None,
            sessions: SessionConfig { lifetime: Duration::ZERO, idle: Duration::ZERO },
            default_tenant: DefaultTenant::default(),
        }
    }

    #[test]
    fn each_label_and_each_secret_has_a_key_of_its_own() {
        let key = SecretKey::new("one", &[]);
        assert_eq!(key.derive("a"), SecretKey::new("one", &[]).derive("a"), "in every process");
        assert_ne!(key.derive("a"), key.derive("b"));
        assert_ne!(key.derive("a"), SecretKey::new("two", &[]).derive("a"));
    }

    #[test]
    fn what_is_sealed_opens_only_for_its_label_and_its_context_and_only_unchanged() {
        let key = SecretKey::new("one", &[]);
        let sealed = key.seal("webhook", b"id", b"hush");
        assert!(is_sealed(&sealed));
        assert!(!sealed.windows(4).any(|part| part == b"hush"));
        assert_ne!(sealed, key.seal("webhook", b"id", b"hush"), "equal secrets do not look equal");
        assert_eq!(key.open("webhook", b"id", &sealed).unwrap(), b"hush");
        assert_eq!(key.open("webhook", b"other", &sealed), Err(CannotOpen));
        assert_eq!(key.open("other", b"id", &sealed), Err(CannotOpen));
        assert_eq!(SecretKey::new("two", &[]).open("webhook", b"id", &sealed), Err(CannotOpen));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(key.open("webhook", b"id", &changed), Err(CannotOpen), "byte {at}");
            assert_eq!(key.open("webhook", b"id", &sealed[..at]), Err(CannotOpen), "cut at {at}");
        }
    }

    #[test]
    fn a_previous_secret_opens_and_does_not_seal() {
        let old = SecretKey::new("one", &[]);
        let new = SecretKey::new("two", &["one".to_owned()]);
        let sealed = old.seal("webhook", b"id", b"hush");
        assert_eq!(new.open("webhook", b"id", &sealed).unwrap(), b"hush");
        assert!(!new.sealed_this("webhook", b"id", &sealed));
        assert_eq!(old.open("webhook", b"id", &new.seal("webhook", b"id", b"hush")), Err(CannotOpen));
    }

    #[test]
    fn the_setting_comes_before_the_secret_of_tokens_and_that_before_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |config: &AuthConfig| SecretKey::of(config, folder.path()).expect("a secret").derive("x");
        let own = of(&config(None, None, None));
        assert_eq!(own, of(&config(None, None, None)), "it is generated once");
        assert_eq!(of(&config(None, None, Some("jwt"))), SecretKey::new("jwt", &[]).derive("x"));
        assert_eq!(of(&config(Some("key"), None, Some("jwt"))), SecretKey::new("key", &[]).derive("x"));
        // What was sealed with the secrets that were in force before can still be opened.
        let key = SecretKey::of(&config(Some("key"), Some("old"), Some("jwt")), folder.path()).expect("one");
        let previous = key.derive_previous("x");
        let known = ["old", "jwt"].map(|secret| SecretKey::new(secret, &[]).derive("x"));
        assert_eq!(previous, [known[0], known[1], own]);
    }
}
