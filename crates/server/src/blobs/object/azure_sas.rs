//! Signs URLs for Azure (a service SAS for one blob).
//!
//! The client library signs uploads with the permission to write, which overwrites. The permission to create does not. It needs
//! the account's key; without one, as with workload identity, the library signs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use object_store::azure::AzureConfigKey;
use sha2::Sha256;
use url::Url;

use landfall_core::clock::Time;

const VERSION: &str = "2020-12-06";
/// The clock of the store may be behind.
const TOLERANCE: chrono::TimeDelta = chrono::TimeDelta::minutes(5);
/// The published account and key of Azure's emulator.
const EMULATOR: (&str, &str) = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
);

/// An account with its key.
pub struct Account {
    name: String,
    key: Vec<u8>,
}

impl Account {
    /// `None` where the server is not given the key.
    pub fn of(options: &[(String, String)]) -> Option<Self> {
        let option = |wanted: AzureConfigKey| {
            let is_wanted =
                |name: &str| name.to_ascii_lowercase().parse::<AzureConfigKey>().ok() == Some(wanted);
            options.iter().find(|(name, _)| is_wanted(name)).map(|(_, value)| value.as_str())
        };
        let is_emulator = option(AzureConfigKey::UseEmulator) == Some("true");
        let or = |value: &'static str| is_emulator.then_some(value);
        let name = option(AzureConfigKey::AccountName).or(or(EMULATOR.0))?;
        let key = option(AzureConfigKey::AccessKey).or(or(EMULATOR.1))?;
        Some(Self { name: name.to_owned(), key: STANDARD.decode(key).ok()? })
    }

    /// Signs the address of a blob. `disposition` and `content_type` are what a download has in its headers.
    pub fn sign(&self, url: &mut Url, blob: &Blob<'_>, until: Time, now: Time) {
        let time = |time: Time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string();
        let (start, end) = (time(now - TOLERANCE), time(until));
        let resource = format!("/blob/{}/{}/{}", self.name, blob.container, blob.path);
        let disposition = blob.disposition.unwrap_or_default();
        let content_type = blob.content_type.unwrap_or_default();
        // Permissions, start, expiry, resource, identifier, address, protocol, version, kind of resource, snapshot,
        // encryption scope, then the headers: cache control, disposition, encoding, language, type.
        let fields = [
            blob.permissions,
            &start,
            &end,
            &resource,
            "",
            "",
            "",
            VERSION,
            "b",
            "",
            "",
            "",
            disposition,
            "",
            "",
            content_type,
        ];
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes a key of any length");
        mac.update(fields.join("\n").as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let mut query = url.query_pairs_mut();
        query.clear();
        for (name, value) in [
            ("sp", blob.permissions),
            ("st", &start),
            ("se", &end),
            ("sv", VERSION),
            ("sr", "b"),
            ("rscd", disposition),
            ("rsct", content_type),
            ("sig", &signature),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
    }
}

/// What a URL is for.
pub struct Blob<'a> {
    pub container: &'a str,
    pub path: &'a str,
    /// `c` creates and never overwrites, `r` reads.
    pub permissions: &'a str,
    pub disposition: Option<&'a str>,
    pub content_type: Option<&'a str>,
}
