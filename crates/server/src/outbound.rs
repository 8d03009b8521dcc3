//! The HTTP clients of the program, and the cryptography behind its `https`.

pub(crate) mod response;

use std::sync::LazyLock;
use std::time::Duration;

pub fn client() -> reqwest::Client {
    builder().build().expect("a client without special settings can always be built")
}

/// One that goes nowhere but where it is sent: for what carries a key or a person's text.
pub fn client_without_redirects() -> reqwest::Client {
    let builder = builder().redirect(reqwest::redirect::Policy::none());
    builder.build().expect("a client without special settings can always be built")
}

/// One for addresses that strangers name: it connects only to what `names` answers, by no proxy, and goes nowhere else.
pub fn client_for_strangers(names: impl reqwest::dns::Resolve + 'static) -> reqwest::Client {
    let builder = builder().redirect(reqwest::redirect::Policy::none()).no_proxy().dns_resolver(names);
    builder.build().expect("a client without special settings can always be built")
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(TRUST.config.clone())
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")))
}

/// Says in the log what keeps `https` from being trusted. A machine that trusts nobody can still speak to its neighbours by
/// `http`.
pub fn warn_of_missing_trust() {
    for what in &TRUST.complaints {
        tracing::warn!(error = what, "some of the certificates that this machine trusts could not be read");
    }
    if TRUST.is_empty {
        tracing::warn!("this machine has no certificates that it trusts: every call by https will fail");
    }
}

/// Whom all clients believe: those whom the machine believes.
struct Trust {
    config: rustls::ClientConfig,
    is_empty: bool,
    complaints: Vec<String>,
}

/// Reading them takes longer than anything else at the start, so it is done once for all clients.
static TRUST: LazyLock<Trust> = LazyLock::new(|| {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    // Already there if another part of the program was first.
    drop(rustls::crypto::ring::default_provider().install_default());
    let is_empty = roots.is_empty();
    let mut config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let complaints = found.errors.iter().map(ToString::to_string).collect();
    Trust { config, is_empty, complaints }
});
