//! The HTTP clients of the program, and the cryptography for `https`.

pub(crate) mod response;

use std::sync::LazyLock;
use std::time::Duration;

pub fn client() -> reqwest::Client {
    builder().build().expect("a client without special settings can always be built")
}

/// A client for a server on this machine: it goes through no proxy and follows no redirects, so that nothing it sends leaves
/// the machine.
pub fn client_for_this_machine() -> reqwest::Client {
    let builder = builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    builder.build().expect("a client without special settings can always be built")
}

/// A client that follows no redirects: for requests that carry a key or a person's text.
pub fn client_without_redirects() -> reqwest::Client {
    let builder = builder().redirect(reqwest::redirect::Policy::none());
    builder.build().expect("a client without special settings can always be built")
}

/// A client for addresses that users enter: it connects only to the addresses that `names` resolves, through no
/// proxy, and follows no redirects.
pub fn client_for_user_urls(names: impl reqwest::dns::Resolve + 'static) -> reqwest::Client {
    let builder = builder().redirect(reqwest::redirect::Policy::none()).no_proxy().dns_resolver(names);
    builder.build().expect("a client without special settings can always be built")
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(TRUST.config.clone())
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")))
}

/// Warns in the log if `https` will not work. A machine without trusted certificates can still call services by
/// `http`.
pub fn warn_about_missing_certificates() {
    for what in &TRUST.complaints {
        tracing::warn!(error = what, "some of the machine's trusted certificates could not be read");
    }
    if TRUST.is_empty {
        tracing::warn!("this machine has no trusted certificates: every https request will fail");
    }
}

/// The certificates that all clients trust: those of the machine.
struct Trust {
    config: rustls::ClientConfig,
    is_empty: bool,
    complaints: Vec<String>,
}

/// Reading them is the slowest part of the start, so it is done once for all clients.
static TRUST: LazyLock<Trust> = LazyLock::new(|| {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    // An error means that another part of the program installed it first.
    drop(rustls::crypto::ring::default_provider().install_default());
    let is_empty = roots.is_empty();
    let mut config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let complaints = found.errors.iter().map(ToString::to_string).collect();
    Trust { config, is_empty, complaints }
});
