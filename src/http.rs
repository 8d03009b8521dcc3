//! The API: who may ask what, and how it is answered.

mod batches;
mod connections;
mod dlq;
mod document;
mod error;
mod files;
mod health;
mod jobs;
mod maintenance;
mod notifications;
mod operations;
mod orphans;
mod page;
mod queues;
mod refusals;
mod request;
mod search;
mod stuck;
mod tenants;
mod uploads;

use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use connections::serve;
pub use refusals::KNOWN as KNOWN_REFUSALS;

use crate::app::App;
use crate::error::Refusal;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Every route is made of a handler that describes it.
fn limited_routes() -> OpenApiRouter<App> {
    let uploads = OpenApiRouter::new()
        .routes(routes!(batches::open, batches::list))
        .routes(routes!(batches::show))
        .routes(routes!(uploads::register_in_batch))
        .routes(routes!(batches::close))
        .routes(routes!(batches::cancel))
        .routes(routes!(uploads::confirm_in_batch))
        .routes(routes!(files::list))
        .routes(routes!(uploads::register))
        .routes(routes!(files::show, files::delete))
        .routes(routes!(uploads::fresh_url))
        .routes(routes!(uploads::confirm))
        .routes(routes!(files::cancel))
        .routes(routes!(files::retry))
        .routes(routes!(files::history))
        .routes(routes!(files::text))
        .routes(routes!(files::result))
        .routes(routes!(files::chunks))
        .routes(routes!(dlq::list))
        .routes(routes!(dlq::groups))
        .routes(routes!(dlq::retry_all))
        .routes(routes!(dlq::discard))
        .routes(routes!(dlq::retry))
        .routes(routes!(stuck::list))
        .routes(routes!(stuck::retry_all))
        .routes(routes!(stuck::retry))
        .routes(routes!(operations::list))
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
        .routes(routes!(search::search))
        .routes(routes!(tenants::set_quota))
        .routes(routes!(queues::status))
        .routes(routes!(queues::pause))
        .routes(routes!(queues::resume))
        .routes(routes!(maintenance::list))
        .routes(routes!(maintenance::run))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(page::page))
        .routes(routes!(document::document))
        .routes(routes!(document::docs))
        .routes(routes!(document::asset))
}

/// Bytes take as long as they take; only a standstill ends them.
fn streaming_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(uploads::receive))
        .routes(routes!(files::download))
        .routes(routes!(jobs::download))
}

/// The description of all routes, as OpenAPI has it.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> =
        LazyLock::new(|| document::complete(limited_routes().merge(streaming_routes()).into_openapi()));
    &DOCUMENT
}

pub fn router(app: App) -> Router {
    let limited = Router::from(limited_routes())
        .layer(middleware::from_fn_with_state(app.config.http.request_timeout, time_limit));
    Router::from(streaming_routes())
        .merge(limited)
        .fallback(async || Refusal::nothing_here().into_response())
        .method_not_allowed_fallback(async || {
            Refusal::new(405, "METHOD_NOT_ALLOWED", "This address does not take that method").into_response()
        })
        .layer(CatchPanicLayer::custom(|_| error::unexpected()))
        .layer(middleware::from_fn(frame))
        .with_state(app)
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
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default(), method = %request.method(), path);
    async move {
        let mut response = next.run(request).await;
        tracing::debug!(status = response.status().as_u16(), "answered");
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
