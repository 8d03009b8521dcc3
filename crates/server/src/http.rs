//! The API: its routes, authorization, and responses.

mod archive;
mod audit_log;
mod audit_trail;
mod auth_failures;
mod batches;
mod blockers;
pub mod client_address;
mod connections;
mod console;
mod cors;
mod dashboard;
mod dlq;
mod document;
mod error;
mod events;
mod file_lists;
pub mod file_view;
mod files;
mod headers;
mod health;
mod host;
mod in_progress;
mod jobs;
mod keys;
mod maintenance;
mod metrics;
mod notifications;
mod operations;
mod orphans;
mod per_address;
mod per_minute;
mod permissions;
mod queues;
mod reindex;
mod request;
mod s3_requests;
mod search;
mod sessions;
pub mod settings;
mod sign_in;
mod storage_events;
mod stuck;
mod tenants;
mod tus;
mod uploads;
mod webhooks;
mod write_limits;

use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use serde_json::Value;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use connections::{Tls, serve, serve_with};

use crate::app::App;
use crate::config::Origins;
use crate::http::audit_trail::AuditTrail;
use crate::http::auth_failures::AuthFailures;
use crate::http::client_address::Arrival;
use crate::http::error::ApiError;
use crate::http::metrics::Listener;
use crate::http::per_address::PerAddress;
use crate::http::write_limits::WriteLimits;
use crate::telemetry::metrics as counted;
use crate::telemetry::spans;
use landfall_core::clock::Stopwatch;
use landfall_core::refusal::{Refusal, RefusalCode};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Every route is made from a handler that describes it.
fn limited_routes() -> OpenApiRouter<App> {
    let uploads = OpenApiRouter::new()
        .routes(routes!(batches::open, batches::list))
        .routes(routes!(batches::show))
        .routes(routes!(uploads::register_in_batch))
        .routes(routes!(batches::close))
        .routes(routes!(batches::cancel))
        .routes(routes!(uploads::confirm_in_batch))
        .routes(routes!(file_lists::list))
        .routes(routes!(file_lists::counts))
        .routes(routes!(uploads::register))
        .routes(routes!(files::show, files::change, files::delete))
        .routes(routes!(uploads::fresh_url))
        .routes(routes!(s3_requests::sign))
        .routes(routes!(uploads::confirm))
        .routes(routes!(files::cancel))
        .routes(routes!(files::retry))
        .routes(routes!(files::history))
        .routes(routes!(files::text))
        .routes(routes!(files::result))
        .routes(routes!(files::chunks))
        .routes(routes!(events::ticket))
        .routes(routes!(dlq::list))
        .routes(routes!(dlq::groups))
        .routes(routes!(dlq::retry_all))
        .routes(routes!(dlq::discard))
        .routes(routes!(dlq::retry))
        .routes(routes!(dashboard::show))
        .routes(routes!(blockers::show))
        .routes(routes!(stuck::list))
        .routes(routes!(stuck::retry_all))
        .routes(routes!(stuck::retry))
        .routes(routes!(operations::start, operations::list))
        .routes(routes!(operations::show))
        .routes(routes!(operations::stop))
        .routes(routes!(orphans::report))
        .routes(routes!(tenants::quota));
    OpenApiRouter::with_openapi(document::Base::openapi())
        .nest("/api/v2/uploads", uploads)
        .routes(routes!(jobs::list))
        .routes(routes!(jobs::show))
        .routes(routes!(jobs::retry))
        .routes(routes!(notifications::list))
        .routes(routes!(notifications::read_all))
        .routes(routes!(notifications::read))
        .routes(routes!(webhooks::register, webhooks::list))
        .routes(routes!(webhooks::show, webhooks::change, webhooks::remove))
        .routes(routes!(webhooks::rotate_secret))
        .routes(routes!(webhooks::test))
        .routes(routes!(webhooks::deliveries))
        .routes(routes!(webhooks::redeliver))
        .routes(routes!(keys::create, keys::list))
        .routes(routes!(keys::revoke))
        .routes(routes!(search::search))
        .routes(routes!(tenants::list))
        .routes(routes!(tenants::set_quota))
        .routes(routes!(settings::show))
        .routes(routes!(queues::status))
        .routes(routes!(queues::pause))
        .routes(routes!(queues::resume))
        .routes(routes!(queues::probe))
        .routes(routes!(audit_log::list))
        .routes(routes!(maintenance::list))
        .routes(routes!(maintenance::run))
        .routes(routes!(maintenance::history))
        .routes(routes!(maintenance::cleanup_failures))
        .routes(routes!(reindex::show, reindex::start, reindex::stop))
        .routes(routes!(storage_events::take))
        .routes(routes!(sign_in::show, sign_in::begin))
        .routes(routes!(sign_in::login))
        .routes(routes!(sign_in::callback))
        .routes(routes!(sign_in::logout))
        .routes(routes!(sign_in::issue_link))
        .routes(routes!(sign_in::open_link))
        .routes(routes!(console::open))
        .routes(routes!(console::asset))
        .routes(routes!(document::document))
        .routes(routes!(document::docs))
        .routes(routes!(document::asset))
        .merge(health_and_metrics())
}

fn health_and_metrics() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::show))
}

/// An upload may take any time; only a stall ends it. Event streams have no end.
fn streaming_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(events::stream))
        .routes(routes!(uploads::receive))
        .routes(routes!(files::download))
        .routes(routes!(archive::archive))
        .routes(routes!(jobs::download))
        .routes(routes!(audit_log::export))
        .merge(resumable_routes())
}

/// Uploads that come in several requests.
fn resumable_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(tus::create, tus::describe))
        .routes(routes!(tus::offset, tus::append, tus::terminate, tus::overridden, tus::describe_one))
        .layer(middleware::from_fn(tus::versioned))
}

/// The addresses of the console's screens, which the console reads itself: all get the same page. They are not for programs, so the
/// description leaves them out.
fn console_addresses() -> Router<App> {
    Router::new().route("/console", get(console::open)).route("/console/{*screen}", get(console::open))
}

/// The OpenAPI description of all routes.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> =
        LazyLock::new(|| document::complete(limited_routes().merge(streaming_routes()).into_openapi()));
    &DOCUMENT
}

/// All routes for clients.
pub fn router(app: App) -> Router {
    let (limit, address) = (app.config.http.request_timeout, app.config.http.bind_address);
    let limited = limited(limited_routes(), limit, Listener::Clients(address));
    let in_progress = PerAddress::new(app.config.http.max_connections_per_address);
    let routes = with_fallbacks(Router::from(streaming_routes()).merge(limited).merge(console_addresses()))
        .layer(middleware::from_fn_with_state(app.clone(), host::check))
        .layer(middleware::from_fn_with_state(in_progress, in_progress::limit))
        .layer(Extension(WriteLimits::new(app.clock.clone(), app.config.http.writes_per_user)));
    let origins = app.config.http.origins.clone();
    framed(routes, &app, origins).with_state(app)
}

/// The routes that every process serves about itself, whatever its role, on the address for monitoring.
pub fn monitoring_router(app: App, address: IpAddr) -> Router {
    let routes =
        limited(health_and_metrics(), app.config.http.request_timeout, Listener::Monitoring(address));
    framed(with_fallbacks(routes), &app, Origins::None).with_state(app)
}

fn limited(routes: OpenApiRouter<App>, limit: Duration, listener: Listener) -> Router<App> {
    Router::from(routes).layer(Extension(listener)).layer(middleware::from_fn_with_state(limit, time_limit))
}

fn with_fallbacks(routes: Router<App>) -> Router<App> {
    routes.fallback(async || ApiError(Refusal::nothing_here()).into_response()).method_not_allowed_fallback(
        async || {
            ApiError(Refusal::new(RefusalCode::MethodNotAllowed, "This address does not support the method"))
                .into_response()
        },
    )
}

fn framed(routes: Router<App>, app: &App, origins: Origins) -> Router<App> {
    let http = &app.config.http;
    let failures = AuthFailures::new(app.clock.clone(), http.auth_failures_per_minute);
    routes
        .layer(CatchPanicLayer::custom(|_| error::unexpected()))
        .layer(middleware::from_fn_with_state(AuditTrail::new(app.clone()), audit_trail::follow))
        .layer(middleware::from_fn_with_state(failures, auth_failures::limit))
        // Around all that may refuse, so that a page can read every refusal.
        .layer(middleware::from_fn_with_state(origins, cors::allow))
        .layer(middleware::from_fn(frame))
        .layer(middleware::from_fn_with_state(http.trusted_proxies.clone(), client_address::add))
}

/// Gives each request an id, logs its outcome, and adds the headers that all responses have.
async fn frame(mut request: Request, next: Next) -> Response {
    let id = request
        .headers()
        .get(&REQUEST_ID)
        .filter(|id| id.len() <= 128 && id.to_str().is_ok())
        .cloned()
        .unwrap_or_else(|| {
            HeaderValue::from_str(&landfall_core::random::new_uuid().to_string())
                .expect("an id is plain text")
        });
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let path = matched.as_ref().map_or("", MatchedPath::as_str);
    let span = spans::request(id.to_str().unwrap_or_default(), request.method(), path, request.headers());
    let this = span.clone();
    let https = Arrival::of(&request).https;
    async move {
        let (method, stopwatch) = (request.method().clone(), Stopwatch::start());
        let mut response = next.run(request).await;
        let path = matched.as_ref().map(MatchedPath::as_str);
        let status = response.status().as_u16();
        counted::request_served(method.as_str(), path, status, stopwatch.elapsed());
        spans::responded(&this, status);
        tracing::debug!("request finished");
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, id);
        headers::add(headers, https);
        response
    }
    .instrument(span)
    .await
}

async fn time_limit(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            ApiError(Refusal::new(RefusalCode::RequestTimeout, "The request took too long").retryable())
                .into_response()
        }
    }
}
