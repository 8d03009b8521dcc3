//! The HTTP clients of the program, and the cryptography behind its `https`.

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
    // Already there if another part of the program was first.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")))
}
