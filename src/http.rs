//! The API: who may ask what, and how it is answered.

mod batches;
mod connections;
mod dashboard;
mod dlq;
mod error;
mod events;
mod files;
mod health;
mod jobs;
mod maintenance;
mod metrics;
mod notifications;
mod operations;
mod orphans;
mod page;
mod queues;
mod request;
mod search;
mod stuck;
mod tenants;
mod uploads;
mod webhooks;

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;

pub use connections::serve;

use crate::app::App;
use crate::clock::Stopwatch;
use crate::error::Refusal;
use crate::observe::metrics as counted;
use crate::observe::spans;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// All that is answered to those who reach the server where it serves clients.
pub fn router(app: App) -> Router {
    let uploads = Router::new()
        .route("/batches", post(batches::open).get(batches::list))
        .route("/batches/{id}", get(batches::show))
        .route("/batches/{id}/upload-urls", post(uploads::register_in_batch))
        .route("/batches/{id}/close", post(batches::close))
        .route("/batches/{id}/cancel", post(batches::cancel))
        .route("/batches/{id}/files/{file}/confirm", post(uploads::confirm_in_batch))
        .route("/files", get(files::list))
        .route("/files/init", post(uploads::register))
        .route("/files/{id}", get(files::show).delete(files::delete))
        .route("/files/{id}/upload-url", post(uploads::fresh_url))
        .route("/files/{id}/confirm", post(uploads::confirm))
        .route("/files/{id}/cancel", post(files::cancel))
        .route("/files/{id}/retry", post(files::retry))
        .route("/files/{id}/history", get(files::history))
        .route("/files/{id}/text", get(files::text))
        .route("/files/{id}/result", get(files::result))
        .route("/files/{id}/chunks", get(files::chunks))
        .route("/events/ticket", post(events::ticket))
        .route("/dlq", get(dlq::list))
        .route("/dlq/groups", get(dlq::groups))
        .route("/dlq/retry-all", post(dlq::retry_all))
        .route("/dlq/{id}", delete(dlq::discard))
        .route("/dlq/{id}/retry", post(dlq::retry))
        .route("/dashboard", get(dashboard::show))
        .route("/stuck", get(stuck::list))
        .route("/stuck/retry-all", post(stuck::retry_all))
        .route("/stuck/{id}/retry", post(stuck::retry))
        .route("/operations", get(operations::list))
        .route("/operations/{id}", get(operations::show))
        .route("/operations/{id}/stop", post(operations::stop))
        .route("/orphans", get(orphans::report))
        .route("/quota", get(tenants::quota));
    let limited = Router::new()
        .nest("/api/v2/uploads", uploads)
        .route("/api/jobs", get(jobs::list))
        .route("/api/jobs/{id}", get(jobs::show))
        .route("/api/jobs/{id}/retry", post(jobs::retry))
        .route("/api/v2/notifications", get(notifications::list))
        .route("/api/v2/notifications/read-all", post(notifications::read_all))
        .route("/api/v2/notifications/{id}/read", post(notifications::read))
        .route("/api/v2/webhooks", post(webhooks::register).get(webhooks::list))
        .route("/api/v2/webhooks/{id}", get(webhooks::show).patch(webhooks::change).delete(webhooks::remove))
        .route("/api/v2/webhooks/{id}/rotate-secret", post(webhooks::rotate_secret))
        .route("/api/v2/webhooks/{id}/test", post(webhooks::test))
        .route("/api/v2/webhooks/{id}/deliveries", get(webhooks::deliveries))
        .route("/api/v2/webhooks/{id}/deliveries/{delivery}/redeliver", post(webhooks::redeliver))
        .route("/api/v2/search", post(search::search))
        .route("/api/v2/admin/tenants/{id}/quota", put(tenants::set_quota))
        .route("/api/v2/admin/queue-status", get(queues::status))
        .route("/api/v2/admin/queues/{stage}/pause", post(queues::pause))
        .route("/api/v2/admin/queues/{stage}/resume", post(queues::resume))
        .route("/api/v2/admin/jobs", get(maintenance::list))
        .route("/api/v2/admin/jobs/{name}/run", post(maintenance::run))
        .merge(health_and_metrics(app.config.http.bind_address))
        .route("/", get(page::page))
        .layer(middleware::from_fn_with_state(app.config.http.request_timeout, time_limit));
    // Bytes take as long as they take; only a standstill ends them. Events never end.
    let streaming = Router::new()
        .route("/api/v2/uploads/events", get(events::stream))
        .route("/api/v2/uploads/blobs/{id}", put(uploads::receive))
        .route("/api/v2/uploads/files/{id}/download", get(files::download))
        .route("/api/jobs/{id}/download", get(jobs::download));
    framed(streaming.merge(limited)).with_state(app)
}

/// What any process answers for itself, whatever its role, on the address that there is for that.
pub fn monitoring_router(app: App, address: IpAddr) -> Router {
    let limit = app.config.http.request_timeout;
    let routes = health_and_metrics(address).layer(middleware::from_fn_with_state(limit, time_limit));
    framed(routes).with_state(app)
}

fn health_and_metrics(address: IpAddr) -> Router<App> {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::show).layer(Extension(metrics::ListensOn(address))))
}

fn framed(routes: Router<App>) -> Router<App> {
    routes
        .fallback(async || Refusal::new(404, "NOT_FOUND", "There is nothing at this address").into_response())
        .method_not_allowed_fallback(async || {
            Refusal::new(405, "METHOD_NOT_ALLOWED", "This address does not take that method").into_response()
        })
        .layer(CatchPanicLayer::custom(|_| error::unexpected()))
        .layer(middleware::from_fn(frame))
}

/// Names each request, logs how it went, and says what no answer should be taken for.
async fn frame(mut request: Request, next: Next) -> Response {
    let id = request
        .headers()
        .get(&REQUEST_ID)
        .filter(|id| id.len() <= 128 && id.to_str().is_ok())
        .cloned()
        .unwrap_or_else(|| {
            HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()).expect("an id is plain text")
        });
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let path = matched.as_ref().map_or("", MatchedPath::as_str);
    let span = spans::request(id.to_str().unwrap_or_default(), request.method(), path, request.headers());
    let this = span.clone();
    async move {
        let (method, stopwatch) = (request.method().clone(), Stopwatch::start());
        let mut response = next.run(request).await;
        let path = matched.as_ref().map(MatchedPath::as_str);
        let status = response.status().as_u16();
        counted::answered(method.as_str(), path, status, stopwatch.elapsed());
        spans::answered(&this, status);
        tracing::debug!("answered");
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, id);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }
    .instrument(span)
    .await
}

async fn time_limit(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            Refusal::new(503, "REQUEST_TIMEOUT", "The request took too long").retryable().into_response()
        }
    }
}
