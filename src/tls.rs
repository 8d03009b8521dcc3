//! The one HTTP client of the program, and the cryptography behind its `https`.

use std::time::Duration;

pub fn client() -> reqwest::Client {
    // Already there if another part of the program was first.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")))
        .build()
        .expect("a client without special settings can always be built")
}
