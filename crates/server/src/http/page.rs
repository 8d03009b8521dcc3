//! The web page: its markup, its style and its script are files of their own, so that its policy forbids inline code.

use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse};

/// The page loads nothing from other servers and connects only to this one. Text never becomes markup or code.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);

/// The web page, which shows all of this.
#[utoipa::path(
    get, path = "/", operation_id = "openPage", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "text/html"))
)]
pub async fn page() -> impl IntoResponse {
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(include_str!("page/page.html")))
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
