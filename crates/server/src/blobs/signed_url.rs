//! Upload URLs for the local storage. A URL is valid for one file, one method and one size, and it expires. A client that
//! has the URL needs no token.

use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::Sha256;
use uuid::Uuid;

use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};

#[derive(Clone)]
pub struct UrlSigner {
    key: [u8; 32],
    /// Keys that signed before. What they signed is valid until it expires.
    previous: Vec<[u8; 32]>,
}

/// The query of a signed URL.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Signature {
    size: i64,
    /// In milliseconds since 1970.
    expires: i64,
    signature: String,
}

impl Signature {
    pub const fn has_expired(&self, now: Time) -> bool {
        now.timestamp_millis() > self.expires
    }
}

impl UrlSigner {
    pub fn new(key: [u8; 32], previous: Vec<[u8; 32]>) -> Self {
        Self { key, previous }
    }

    /// The path and query of the URL.
    pub fn sign_upload(&self, file: Uuid, size: i64, expires: Time) -> String {
        let expires = expires.timestamp_millis();
        let signature = hex::encode(mac(&self.key, "PUT", file, size, expires).finalize().into_bytes());
        format!("/api/v2/uploads/blobs/{file}?size={size}&expires={expires}&signature={signature}")
    }

    /// The size that the URL was signed for.
    pub fn verify_upload(&self, file: Uuid, signed: &Signature) -> Result<i64, Refusal> {
        let wrong = || {
            let fresh = format!("/api/v2/uploads/files/{file}/upload-url");
            let message = format!(
                "This upload URL is not one that this server issued, or the server has another secret since. Ask for a \
                 fresh one with POST {fresh}"
            );
            Refusal::new(RefusalCode::InvalidSignature, message)
        };
        let bytes = hex::decode(&signed.signature).map_err(|_| wrong())?;
        let is_by =
            |key: &[u8; 32]| mac(key, "PUT", file, signed.size, signed.expires).verify_slice(&bytes).is_ok();
        if std::iter::once(&self.key).chain(&self.previous).any(is_by) {
            Ok(signed.size)
        } else {
            Err(wrong())
        }
    }
}

fn mac(key: &[u8; 32], method: &str, file: Uuid, size: i64, expires: i64) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(format!("{method}\n{file}\n{size}\n{expires}").as_bytes());
    mac
}
