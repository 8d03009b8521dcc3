//! `/metrics`, for Prometheus.
//!
//! The metrics cover the files of all users, so a request needs `METRICS_TOKEN` or an administrator's token. Where there
//! is no `METRICS_TOKEN`, a program on this machine needs none, if the request cannot have come from elsewhere: it came to
//! an address for monitoring that only this machine can reach, or straight to a server that only this machine can reach
//! and that has no proxy in front of it. `TRUSTED_PROXIES` and `PUBLIC_URL` say that there is one, whether or not it adds
//! a header.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{Extension, Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::client_address::{Arrival, Way};
use super::request::{bearer, identify_bearer, require_operator, require_scope};
use crate::app::App;
use crate::config::HttpConfig;
use crate::http::error::ApiError;
use crate::reports::scrape::{self, Exposition};
use crate::telemetry::metrics;
use landfall_core::caller::KeyScope;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;

/// How long the database may take before it counts as down. Prometheus gives up after ten seconds.
const TIMEOUT: Duration = Duration::from_secs(5);
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The listener that received the request, and its address.
#[derive(Debug, Clone, Copy)]
pub enum Listener {
    Clients(IpAddr),
    Monitoring(IpAddr),
}

/// The metrics of this process and of all users' files, for Prometheus.
///
/// Needs `METRICS_TOKEN` or an administrator's token. A server that only its own machine can reach needs none.
#[utoipa::path(
    get, path = "/metrics", operation_id = "showMetrics", tag = "health", security((), ("token" = [])),
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = "4XX", description = "UNAUTHENTICATED INVALID_TOKEN TOKEN_EXPIRED AUTH_UNAVAILABLE FORBIDDEN \
            REQUEST_TIMEOUT INTERNAL")
    )
)]
pub async fn show(
    State(app): State<App>,
    Extension(listener): Extension<Listener>,
    Extension(arrival): Extension<Arrival>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    admit(&app, listener, arrival, &parts).await?;
    let mut exposition = Exposition::default();
    let (database, probed, free) =
        tokio::join!(facts(&app, &mut exposition), app.probes.probe(), app.disk.free());
    if let Err(error) = &database {
        tracing::warn!(error, "the metrics of the database are left out");
    }
    let clock_ahead = app.liveness.time().ahead();
    let (database_up, storage_up) = (database.is_ok(), probed.storage.is_ok());
    scrape::of_process(app.db.kind(), database_up, storage_up, clock_ahead, free.ok(), &mut exposition);
    let mut text = exposition.into_text();
    text.push_str(&metrics::recorder().render());
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

async fn facts(app: &App, to: &mut Exposition) -> Result<(), String> {
    app.probes.probe().await.database?;
    let read = async {
        let mut tx = app.db.snapshot().await?;
        let mut facts = Exposition::default();
        let now = app.clock.now();
        scrape::facts(&mut tx, &app.stuck_files.detection, now, &mut facts).await?;
        scrape::event_lag(&mut tx, app.fan_out.delivered_up_to(), now, &mut facts).await?;
        Ok::<_, Error>(facts)
    };
    match tokio::time::timeout(TIMEOUT, read).await {
        Ok(Ok(facts)) => *to = facts,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("no response within {} s", TIMEOUT.as_secs())),
    }
    Ok(())
}

async fn admit(app: &App, listener: Listener, arrival: Arrival, parts: &Parts) -> Result<(), ApiError> {
    let wanted = app.config.http.metrics_token.as_deref();
    let Some(token) = bearer(&parts.headers) else {
        return if wanted.is_none() && is_from_here(&app.config.http, listener, arrival) {
            Ok(())
        } else {
            let message = "Send the METRICS_TOKEN or an administrator's token: Authorization: Bearer …";
            Err(Refusal::new(RefusalCode::Unauthenticated, message).into())
        };
    };
    // Hashes are compared, so that the time of the comparison reveals nothing about the token.
    if wanted.is_some_and(|wanted| Sha256::digest(wanted) == Sha256::digest(token)) {
        return Ok(());
    }
    let identity = identify_bearer(app, token, &parts.extensions).await?;
    require_scope(&identity, KeyScope::Admin)?;
    Ok(require_operator(&identity.caller)?)
}

/// Whether the request can only have come from a program on this machine.
fn is_from_here(http: &HttpConfig, listener: Listener, arrival: Arrival) -> bool {
    let (address, has_proxy) = match listener {
        Listener::Clients(address) => {
            (address, http.public_url.is_some() || !http.trusted_proxies.is_empty())
        }
        // Not what a proxy for clients leads to.
        Listener::Monitoring(address) => (address, false),
    };
    address.is_loopback() && arrival.peer.is_loopback() && arrival.way != Way::UnknownProxy && !has_proxy
}
