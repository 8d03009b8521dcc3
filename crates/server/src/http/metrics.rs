//! `/metrics`, for Prometheus.
//!
//! It tells of everybody's files, so it is not for everybody: whoever asks sends `METRICS_TOKEN` or an administrator's
//! token. A server that only its own machine can reach and that has no `METRICS_TOKEN` asks for none, unless the request
//! came by a proxy, which may have brought it from anywhere.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::health;
use super::request::{bearer, require_admin};
use crate::app::App;
use crate::http::error::ApiError;
use crate::reports::scrape::{self, Exposition};
use crate::telemetry::metrics;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;

/// How long the database may take before it counts as down. Prometheus gives up after ten seconds.
const PATIENCE: Duration = Duration::from_secs(5);
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Where the listener is that a request came to.
#[derive(Debug, Clone, Copy)]
pub struct ListensOn(pub IpAddr);

/// The metrics of this process and of everybody's files, for Prometheus.
///
/// With the `METRICS_TOKEN` or an administrator's token. A server that only its own machine can reach asks for none.
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
        tracing::warn!(error, "what the database knows is left out of the metrics");
    }
    scrape::of_process(app.db.kind(), database.is_ok(), storage.is_ok(), &mut exposition);
    let mut text = exposition.into_text();
    text.push_str(&metrics::recorder().render());
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

async fn facts(app: &App, to: &mut Exposition) -> Result<(), String> {
    let look = async {
        health::database(app).await?;
        let mut tx = app.db.snapshot().await?;
        let mut facts = Exposition::default();
        let now = app.clock.now();
        scrape::facts(&mut tx, &app.stuck_files.detection, now, &mut facts).await?;
        scrape::event_lag(&mut tx, app.fan_out.told_up_to(), now, &mut facts).await?;
        Ok::<_, Error>(facts)
    };
    match tokio::time::timeout(PATIENCE, look).await {
        Ok(Ok(facts)) => *to = facts,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("no answer within {} s", PATIENCE.as_secs())),
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
    // Hashes are compared, so that the time it takes says nothing about the token.
    if wanted.is_some_and(|wanted| Sha256::digest(wanted) == Sha256::digest(token)) {
        return Ok(());
    }
    require_admin(&app.auth.verify(token, app.clock.now()).await?)
}
