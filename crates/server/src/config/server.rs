//! Where the server listens, and the limits of its connections.

use std::time::Duration;

use super::declared::group;
use super::reader::{Reader, milliseconds, one_of};
use super::{HttpConfig, Role, telemetry};

group! { "Server" {
    BIND_ADDRESS = "127.0.0.1": "The address to listen on; any address other than loopback needs `JWT_SECRET`, `OIDC_ISSUER` or `JWT_JWKS_URL`."
    PORT = "3002": "The port to listen on; 0 picks a free one."
    PUBLIC_URL = "": "The URL at which clients reach the server, if that is not the address it listens on (behind a proxy)."
    ROLE = "all": "What this process does: `all`, `api` (only serves requests), `worker` (only processes files) or `maintenance` (only background tasks: recovery, cleanup, webhooks)."
    MAX_CONNECTIONS = "4096": "The maximum number of open connections; further ones wait to be accepted."
    UPLOAD_STALL_MS = "60000": "How long an upload may send no bytes before the server closes it."
} }

const MAX_BODY_BYTES: usize = 2 << 20;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) fn read(read: &mut Reader) -> HttpConfig {
    let (metrics_address, metrics_token) = telemetry::read_metrics(read);
    HttpConfig {
        bind_address: read.parse(BIND_ADDRESS, "an IP address"),
        port: read.parse(PORT, "a port from 0 to 65535"),
        public_url: read.url(PUBLIC_URL),
        metrics_address,
        metrics_token,
        max_connections: read.at_least(MAX_CONNECTIONS, 1),
        max_body_bytes: MAX_BODY_BYTES,
        request_timeout: REQUEST_TIMEOUT,
        header_timeout: HEADER_TIMEOUT,
        upload_stall: read.with(UPLOAD_STALL_MS, milliseconds),
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
