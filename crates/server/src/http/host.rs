//! Which hosts a request may be for.
//!
//! A page of another site can make a browser send requests to this server under that site's name, if the site lets its
//! name resolve to this server's address (DNS rebinding). The browser then sees one site, and gives the page the
//! responses. Such a request names a host that is not this server's, so it is refused. And what this server writes into
//! a URL is never what a stranger has sent.
//!
//! Probes of orchestrators and Prometheus call by the address of a machine, so health and metrics are for any host.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use url::Url;

use super::client_address::{Arrival, Way};
use super::error::ApiError;
use super::health;
use crate::app::App;
use crate::config::HttpConfig;
use landfall_core::refusal::{Refusal, RefusalCode};

pub async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let arrival = Arrival::of(&request);
    if health::is_monitoring(request.uri().path())
        || is_ours(&app.config.http, arrival, request.uri(), request.headers())
    {
        return next.run(request).await;
    }
    let message = match &app.config.http.public_url {
        Some(url) => format!("This host is not served here; use {url}"),
        None => "This host is not served here. If it is the server's, the operator must set PUBLIC_URL to the URL that \
             clients use"
            .to_owned(),
    };
    ApiError(Refusal::new(RefusalCode::UnknownHost, message)).into_response()
}

/// The URL by which the client reached this server. The host was checked.
pub fn base_url(http: &HttpConfig, arrival: Arrival, headers: &HeaderMap) -> String {
    if let Some(url) = &http.public_url {
        return url.clone();
    }
    let scheme = if arrival.https { "https" } else { "http" };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    host.map_or_else(
        || format!("{scheme}://{}:{}", http.bind_address, http.port),
        |host| format!("{scheme}://{host}"),
    )
}

fn is_ours(http: &HttpConfig, arrival: Arrival, uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let named = hosts.next().and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    let (Some(named), None) = (named, hosts.next()) else { return false };
    // A request may also name its host in its first line, as for a proxy.
    let is_ours = |host: &Authority| match &http.public_url {
        Some(url) => is_at(url, host) || is_local_call(arrival, host),
        None => match address_of(host.host()) {
            // No name, so no name that could resolve to something else.
            Some(address) => {
                !http.bind_address.is_loopback() || address.is_loopback() || address == http.bind_address
            }
            None => is_localhost(host.host()),
        },
    };
    is_ours(&named) && uri.authority().is_none_or(is_ours)
}

/// Whether the host is that of `PUBLIC_URL`. A port that is the usual one may be left out.
fn is_at(url: &str, host: &Authority) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let Some(expected) = url.host_str() else { return false };
    let usual = if url.scheme() == "https" { 443 } else { 80 };
    expected.eq_ignore_ascii_case(host.host().trim_end_matches('.'))
        && url.port_or_known_default() == Some(host.port_u16().unwrap_or(usual))
}

/// A program on this machine, such as the command line, that calls this machine.
fn is_local_call(arrival: Arrival, host: &Authority) -> bool {
    let by_name =
        is_localhost(host.host()) || address_of(host.host()).is_some_and(|address| address.is_loopback());
    by_name && arrival.peer.is_loopback() && matches!(arrival.way, Way::Direct | Way::Silent)
}

fn is_localhost(host: &str) -> bool {
    host.trim_end_matches('.').eq_ignore_ascii_case("localhost")
}

fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical())
}
