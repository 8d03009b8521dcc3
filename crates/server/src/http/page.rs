//! The web page: its markup, its style and its script are files of their own, so that its policy forbids inline code.

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{AppendHeaders, Html, IntoResponse};

use crate::app::App;

/// The page loads nothing from other servers and connects only to this one, and to the object store that takes its uploads. Text
/// never becomes markup or code.
fn policy(store: Option<&str>) -> String {
    let store = store.map(|origin| format!(" {origin}")).unwrap_or_default();
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'{store}; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// The web page, which shows all of this.
#[utoipa::path(
    get, path = "/", operation_id = "openPage", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "text/html"))
)]
pub async fn page(State(app): State<App>) -> impl IntoResponse {
    let store = if app.config.intake.is_direct { app.blobs.client_origin().await } else { None };
    let policy = HeaderValue::from_str(&policy(store.as_deref())).ok();
    let headers = policy.map(|policy| [(header::CONTENT_SECURITY_POLICY, policy)]);
    (AppendHeaders(headers.into_iter().flatten()), Html(include_str!("page/page.html")))
}

/// The style of the web page.
#[utoipa::path(
    get, path = "/assets/page.css", operation_id = "showStyle", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "text/css"))
)]
pub async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("page/page.css"))
}

/// The script of the web page.
#[utoipa::path(
    get, path = "/assets/page.js", operation_id = "showScript", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "text/javascript"))
)]
pub async fn script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("page/page.js"))
}
