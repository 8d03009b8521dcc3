//! Signs requests according to Standard Webhooks (<https://www.standardwebhooks.com>): a receiver with the secret
//! can verify that a message comes from us, is unchanged, and when it was sent.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

const BYTES: usize = 32;

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// What the form for its owner begins with.
    pub const PREFIX: &str = "whsec_";

    pub fn random() -> Self {
        Self(landfall_core::random::random::<[u8; BYTES]>().to_vec())
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.clone()
    }

    /// The form that is shown to its owner, once.
    pub fn reveal(&self) -> String {
        format!("{}{}", Self::PREFIX, BASE64_STANDARD.encode(&self.0))
    }

    /// Reads the form for its owner.
    pub fn parse(text: &str) -> Option<Self> {
        BASE64_STANDARD.decode(text.strip_prefix(Self::PREFIX)?).ok().map(Self)
    }

    fn sign(&self, message: Uuid, timestamp: i64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(format!("{message}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Secret {
    /// Debug output must not contain the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The header `webhook-signature`: one signature for each secret. A receiver needs to verify only one of them.
pub fn header(secrets: &[Secret], message: Uuid, timestamp: i64, body: &str) -> String {
    let signatures: Vec<String> =
        secrets.iter().map(|secret| secret.sign(message, timestamp, body)).collect();
    signatures.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_equals_that_of_other_implementations() {
        // Computed with Python's hmac over "{id}.{timestamp}.{body}".
        let secret = Secret::from(BASE64_STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let message = Uuid::parse_str("0189d5c2-0000-7000-8000-000000000000").unwrap();
        assert_eq!(
            header(std::slice::from_ref(&secret), message, 1_614_265_330, r#"{"test": 2432232314}"#),
            "v1,CY7vinS3IrzuGnZixGOioNOqaUXhfon7cZt8J4Rj5bc="
        );
        assert_eq!(secret.reveal(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    }

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::random();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
