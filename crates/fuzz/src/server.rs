//! What the server reads of its operator and of strangers: settings, tokens, cursors, upload URLs, requests.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::LazyLock;

use axum::extract::Query;
use axum::http::Uri;
use landfall_core::clock::Time;
use landfall_server::auth::{self, Auth};
use landfall_server::blobs::signed_url::{Signature, UrlSigner};
use landfall_server::config::{Config, Variables};
use landfall_server::records::cursor::Cursor;
use uuid::Uuid;

use crate::{Target, requests};

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "cursor", run: cursor },
    Target { name: "request", run: requests::run },
    Target { name: "settings", run: settings },
    Target { name: "token", run: token },
    Target { name: "upload_url", run: upload_url },
];

/// A secret of the right strength for the tests.
pub(crate) const SECRET: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0";

/// Reads `NAME=VALUE` lines as the settings of a server.
fn settings(bytes: &[u8]) {
    let mut variables = Variables::default();
    for line in String::from_utf8_lossy(bytes).lines() {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        variables.set(name, value);
    }
    if let Err(error) = Config::from_variables(variables) {
        assert!(!error.0.is_empty(), "settings are refused without a reason");
    }
}

/// A cursor that is accepted is written as it was read.
fn cursor(bytes: &[u8]) {
    let Ok(cursor) = String::from_utf8_lossy(bytes).parse::<Cursor>() else { return };
    assert_eq!(cursor.to_string().parse::<Cursor>().ok(), Some(cursor));
}

/// Verifies the bytes as a token. None that this server did not sign is accepted.
fn token(bytes: &[u8]) {
    static AUTH: LazyLock<Auth> = LazyLock::new(|| {
        let mut variables = Variables::default();
        variables.set("JWT_SECRET", SECRET);
        let config = Config::from_variables(variables).expect("the settings are right");
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Auth::new(&config.auth, Path::new("/nonexistent"), address).expect("it has a secret")
    });
    static VALID: LazyLock<String> = LazyLock::new(|| {
        auth::sign(SECRET.as_bytes(), &requests::claims("anna", None)).expect("it is signed")
    });
    let text = String::from_utf8_lossy(bytes);
    // Most changes to a token break its signature. Those of its claims are tried with a signature that is right.
    let signed = text.strip_prefix("claims:").and_then(|claims| {
        let claims = serde_json::from_str(claims).ok()?;
        auth::sign(SECRET.as_bytes(), &claims).ok()
    });
    let presented = signed.as_deref().unwrap_or(&text);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let accepted = runtime.block_on(AUTH.verify(presented, Time::UNIX_EPOCH));
    if signed.is_none() && accepted.is_ok() {
        assert_eq!(presented, *VALID, "a token was accepted that was not signed");
    }
}

/// Verifies the bytes as the query of an upload URL. None that this server did not sign is accepted.
fn upload_url(bytes: &[u8]) {
    let query = String::from_utf8_lossy(bytes);
    let Ok(uri) = format!("/api/v2/uploads/blobs/x?{query}").parse::<Uri>() else { return };
    let Ok(Query(signature)) = Query::<Signature>::try_from_uri(&uri) else { return };
    let signer = UrlSigner::new([7; 32], vec![[9; 32]]);
    if signer.verify_upload(Uuid::nil(), &signature).is_ok() {
        let issued = signer.sign_upload(Uuid::nil(), 12, Time::UNIX_EPOCH);
        let (_, mark) = issued.split_once("signature=").expect("it is signed");
        assert!(
            query.to_ascii_lowercase().contains(mark),
            "a query was accepted that was not signed: {query}"
        );
    }
}
