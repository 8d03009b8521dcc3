//! Where the server listens, and the limits of its connections.

use std::time::Duration;

use super::declared::group;
use super::reader::{Reader, milliseconds, one_of};
use super::{HttpConfig, Networks, Origins, Role, TlsFiles, rate_limits, telemetry};

group! { "Server" {
    BIND_ADDRESS = "127.0.0.1": "The address to listen on; any address other than loopback needs `JWT_SECRET`, `OIDC_ISSUER` or `JWT_JWKS_URL`, and `TLS_CERT` with `TLS_KEY` or `TRUSTED_PROXIES`."
    PORT = "3002": "The port to listen on; 0 picks a free one."
    PUBLIC_URL = "": "The URL at which clients reach the server, such as `https://files.example.com`; links and upload URLs begin with it, and requests for another host are refused."
    CORS_ORIGINS = "": "The origins whose pages may use the API from a browser, such as `https://app.example.com`, with commas between them, also with the session of a person who is signed in; `*` allows all, without sessions."
    TLS_CERT = "": "The file with the server's certificate and those of its issuers (PEM), to serve `https`; it is read again when it changes."
    TLS_KEY = "": "The file with the key of the certificate (PEM)."
    TRUSTED_PROXIES = "": "The proxies in front of the server, as networks (`10.0.0.0/8`), addresses, or the names `loopback` and `private`; only their `X-Forwarded-For` and `X-Forwarded-Proto` are believed."
    ROLE = "all": "What this process does: `all`, `api` (only serves requests), `worker` (only processes files) or `maintenance` (only background tasks: recovery, cleanup, webhooks)."
    MAX_CONNECTIONS = "4096": "The maximum number of open connections; further ones get only `/healthz`, `/readyz` and `/metrics`, and `SERVER_BUSY` for all else."
    MAX_CONNECTIONS_PER_ADDRESS = "512": "The maximum number of open connections of one client address (of one /64 network with IPv6); behind a proxy of `TRUSTED_PROXIES`, of its requests in progress."
    WRITE_TIMEOUT_MS = "30000": "How long a client may read nothing of a response before the server closes its connection."
    UPLOAD_STALL_MS = "60000": "How long an upload may send no bytes before the server closes it."
    AUTH_FAILURES_PER_MINUTE = "20": "How many tokens of one client address may be wrong within a minute before further wrong ones get `TOO_MANY_AUTH_FAILURES`; valid ones are always accepted."
} }

const MAX_BODY_BYTES: usize = 2 << 20;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// How often the files of the certificate are compared with what is in use.
const TLS_CHECK_INTERVAL: Duration = Duration::from_secs(10);

pub(super) fn read(read: &mut Reader) -> HttpConfig {
    let (metrics_address, metrics_token) = telemetry::read_metrics(read);
    HttpConfig {
        bind_address: read.parse(BIND_ADDRESS, "an IP address"),
        port: read.parse(PORT, "a port from 0 to 65535"),
        public_url: read.url(PUBLIC_URL),
        origins: read.with(CORS_ORIGINS, Origins::parse),
        tls: read_tls(read),
        tls_check_interval: TLS_CHECK_INTERVAL,
        trusted_proxies: read.with(TRUSTED_PROXIES, Networks::parse),
        metrics_address,
        metrics_token,
        max_connections: read.at_least(MAX_CONNECTIONS, 1),
        max_connections_per_address: read.at_least(MAX_CONNECTIONS_PER_ADDRESS, 1),
        write_timeout: read.with(WRITE_TIMEOUT_MS, milliseconds),
        auth_failures_per_minute: read.at_least(AUTH_FAILURES_PER_MINUTE, 1),
        writes_per_user: rate_limits::read_writes(read),
        max_body_bytes: MAX_BODY_BYTES,
        request_timeout: REQUEST_TIMEOUT,
        header_timeout: HEADER_TIMEOUT,
        upload_stall: read.with(UPLOAD_STALL_MS, milliseconds),
    }
}

fn read_tls(read: &mut Reader) -> Option<TlsFiles> {
    let (cert, key) = (read.text(TLS_CERT), read.text(TLS_KEY));
    match (cert.is_empty(), key.is_empty()) {
        (true, true) => return None,
        (false, true) => read.complain(TLS_CERT, "set together with TLS_KEY"),
        (true, false) => read.complain(TLS_KEY, "set together with TLS_CERT"),
        (false, false) => {}
    }
    Some(TlsFiles { cert: cert.into(), key: key.into() })
}

/// Tokens and documents must not cross a network in plain text.
pub(super) fn check_exposure(read: &mut Reader, http: &HttpConfig, role: Role) {
    let serves = matches!(role, Role::All | Role::Api);
    if serves && !http.bind_address.is_loopback() && http.tls.is_none() && http.trusted_proxies.is_empty() {
        read.complain(
            BIND_ADDRESS,
            "a loopback address such as 127.0.0.1 as long as nothing encrypts the connections of other machines: set \
             TLS_CERT and TLS_KEY, or set TRUSTED_PROXIES to the addresses of the proxy that does it",
        );
    }
}

pub(super) fn read_role(read: &mut Reader) -> Role {
    read.with(ROLE, |text| {
        let roles = [
            ("all", Role::All),
            ("api", Role::Api),
            ("worker", Role::Worker),
            ("maintenance", Role::Maintenance),
        ];
        one_of(text, &roles)
    })
}
