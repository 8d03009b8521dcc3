//! The HTTP clients of the program, and the cryptography behind its `https`.

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
        .tls_backend_preconfigured(TRUST.clone())
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")))
}

/// Whom all clients believe: those whom the machine believes. Reading them takes longer than anything else at the start,
/// so it is done once for all clients.
static TRUST: LazyLock<rustls::ClientConfig> = LazyLock::new(|| {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some of the certificates that this machine trusts could not be read");
    }
    // A machine without any can still speak to its neighbours by `http`; whoever calls `https` there is told why not.
    roots.add_parsable_certificates(found.certs);
    // Already there if another part of the program was first.
    drop(rustls::crypto::ring::default_provider().install_default());
    rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
});
