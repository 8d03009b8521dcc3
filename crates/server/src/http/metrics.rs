//! `/metrics`, for Prometheus.
//!
//! The metrics cover the files of all users, so a request needs `METRICS_TOKEN` or an administrator's token. A
//! server that only its own machine can reach and that has no `METRICS_TOKEN` needs none, unless the request came
//! through a proxy, which may have forwarded it from anywhere.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::health;
use super::request::{bearer, require_operator};
use crate::app::App;
use crate::http::error::ApiError;
use crate::reports::scrape::{self, Exposition};
use crate::telemetry::metrics;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;

/// How long the database may take before it counts as down. Prometheus gives up after ten seconds.
const TIMEOUT: Duration = Duration::from_secs(5);
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The address of the listener that received the request.
#[derive(Debug, Clone, Copy)]
pub struct ListensOn(pub IpAddr);

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
    Extension(ListensOn(address)): Extension<ListensOn>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    admit(&app, address, &headers).await?;
    let mut exposition = Exposition::default();
    let (database, storage) = tokio::join!(facts(&app, &mut exposition), app.blobs.check());
    if let Err(error) = &database {
        tracing::warn!(error, "the metrics of the database are left out");
    }
    let clock_ahead = app.liveness.time().ahead();
    scrape::of_process(app.db.kind(), database.is_ok(), storage.is_ok(), clock_ahead, &mut exposition);
    let mut text = exposition.into_text();
    text.push_str(&metrics::recorder().render());
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

async fn facts(app: &App, to: &mut Exposition) -> Result<(), String> {
    let read = async {
        health::database(app).await?;
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

async fn admit(app: &App, address: IpAddr, headers: &HeaderMap) -> Result<(), Refusal> {
    let wanted = app.config.http.metrics_token.as_deref();
    let Some(token) = bearer(headers) else {
        let came_by_proxy = ["forwarded", "x-forwarded-for", "x-real-ip", "via"]
            .iter()
            .any(|name| headers.contains_key(*name));
        return if wanted.is_none() && address.is_loopback() && !came_by_proxy {
            Ok(())
        } else {
            let message = "Send the METRICS_TOKEN or an administrator's token: Authorization: Bearer …";
            Err(Refusal::new(RefusalCode::Unauthenticated, message))
        };
    };
    // Hashes are compared, so that the time of the comparison reveals nothing about the token.
    if wanted.is_some_and(|wanted| Sha256::digest(wanted) == Sha256::digest(token)) {
        return Ok(());
    }
    require_operator(&app.auth.verify(token, app.clock.now()).await?)
}
