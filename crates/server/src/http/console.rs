//! The web console: the files that `web/` is built into, which are part of this program.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{LazyLock, OnceLock};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::GzEncoder;
use include_dir::{Dir, include_dir};

use super::request::InPath;
use crate::app::App;
use crate::http::error::ApiError;
use landfall_core::refusal::Refusal;

static DIST: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/src/http/console/dist");

/// The name of a built file has a hash of its content: it never changes.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const FOR_AN_HOUR: HeaderValue = HeaderValue::from_static("public, max-age=3600");
/// A script may be a worker, which has the policy of its own response.
const ASSET_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; script-src 'self'; frame-ancestors 'none'");
/// Below this the frame of a compressed response costs more than it saves.
const WORTH_COMPRESSING: usize = 512;

/// The console loads nothing from other servers and connects only to this one, and to the object store that takes its uploads. Text
/// never becomes markup or code. It shows originals: images and pages, which get no permission at all, from addresses that it
/// makes itself (`blob:`). Style elements need the nonce; only the console's own workers become scripts.
fn policy(nonce: &str, store: Option<&str>) -> String {
    let store = store.map(|origin| format!(" {origin}")).unwrap_or_default();
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'{store}; \
         img-src 'self' data: blob:; frame-src blob:; worker-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types landfall-workers"
    )
}

/// The web console.
///
/// One page without data: it asks the API for everything that it shows. It has addresses of its own below `/console`, which it reads
/// itself.
#[utoipa::path(
    get, path = "/", operation_id = "openConsole", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "text/html"))
)]
pub async fn open(State(app): State<App>) -> Response {
    static PAGE: LazyLock<&str> = LazyLock::new(|| {
        let page = DIST.get_file("index.html").expect("the console is built");
        page.contents_utf8().expect("it is text")
    });
    let store = if app.config.intake.is_direct { app.blobs.client_origin().await } else { None };
    let nonce = URL_SAFE_NO_PAD.encode(landfall_core::random::random::<[u8; 16]>());
    let policy = policy(&nonce, store.as_deref());
    let page =
        PAGE.replacen("<head>", &format!("<head>\n    <meta name=\"style-nonce\" content=\"{nonce}\" />"), 1);
    let headers = HeaderValue::from_str(&policy).map(|policy| [(header::CONTENT_SECURITY_POLICY, policy)]);
    match headers {
        Ok(headers) => (headers, Html(page)).into_response(),
        // The address of the store has characters that no header has.
        Err(_) => Html(page).into_response(),
    }
}

struct Asset {
    bytes: &'static [u8],
    kind: HeaderValue,
    is_hashed: bool,
    compressed: OnceLock<Option<Bytes>>,
}

impl Asset {
    /// Compressed when it is first asked for, if that makes it smaller.
    fn compressed(&self) -> Option<Bytes> {
        let compress = || {
            if self.bytes.len() < WORTH_COMPRESSING {
                return None;
            }
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(self.bytes).ok()?;
            let small = encoder.finish().ok()?;
            (small.len() < self.bytes.len()).then(|| Bytes::from(small))
        };
        self.compressed.get_or_init(compress).clone()
    }
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

fn assets() -> &'static BTreeMap<&'static str, Asset> {
    static ASSETS: LazyLock<BTreeMap<&'static str, Asset>> = LazyLock::new(|| {
        let folder = DIST.get_dir("assets").expect("the console is built");
        let named = folder.files().filter_map(|file| {
            let name = file.path().file_name()?.to_str()?;
            let asset = Asset {
                bytes: file.contents(),
                kind: HeaderValue::from_static(kind_of(name)),
                // All but the icon, whose address is in every page.
                is_hashed: name.contains('-'),
                compressed: OnceLock::new(),
            };
            Some((name, asset))
        });
        named.collect()
    });
    &ASSETS
}

/// A file of the console.
///
/// It is part of the program, and its name changes with its content, so that browsers can keep it.
#[utoipa::path(
    get, path = "/assets/{consoleFile}", operation_id = "showConsoleAsset", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "*/*"), (status = "4XX", description = "NOT_FOUND"))
)]
pub async fn asset(InPath(name): InPath<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    let asset = assets().get(name.as_str()).ok_or_else(Refusal::nothing_here)?;
    let caching = if asset.is_hashed { FOR_EVER } else { FOR_AN_HOUR };
    let common = [
        (header::CONTENT_TYPE, asset.kind.clone()),
        (header::CACHE_CONTROL, caching),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
        (header::CONTENT_SECURITY_POLICY, ASSET_POLICY),
    ];
    if accepts_gzip(&headers)
        && let Some(small) = asset.compressed()
    {
        return Ok(
            (common, [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))], small).into_response()
        );
    }
    Ok((common, asset.bytes).into_response())
}

/// Whether a client that names its encodings takes gzip: `gzip;q=0` refuses it.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| {
        let (name, parameters) = part.split_once(';').unwrap_or((part, ""));
        let is_refused = matches!(parameters.trim().strip_prefix("q="), Some("0" | "0.0" | "0.00" | "0.000"));
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_clients_that_take_it() {
        for (accepted, expected) in [
            ("gzip, deflate, br, zstd", true),
            ("GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("br", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted.parse().unwrap())]);
            assert_eq!(accepts_gzip(&headers), expected, "{accepted}");
        }
    }

    #[test]
    fn the_page_names_only_files_that_exist() {
        let page = DIST.get_file("index.html").unwrap().contents_utf8().unwrap();
        let named: Vec<&str> =
            page.split("/assets/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(named.len() >= 3, "a script, a style and the icon: {named:?}");
        for name in named {
            assert!(assets().contains_key(name), "{name}");
        }
        assert!(!page.contains("http://") && !page.contains("https://"), "it loads nothing from elsewhere");
    }

    /// A person on a slow network waits for these before the first screen appears.
    #[test]
    fn the_first_load_is_small() {
        let page = DIST.get_file("index.html").unwrap().contents_utf8().unwrap();
        let named = page.split("/assets/").skip(1).filter_map(|rest| rest.split('"').next());
        let size: usize = named
            .filter_map(|name| assets().get(name))
            .map(|asset| asset.compressed().map_or(asset.bytes.len(), |small| small.len()))
            .sum();
        assert!(size < 200_000, "{size} bytes");
    }
}
