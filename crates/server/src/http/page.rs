//! The web page.

use axum::http::header;
use axum::response::{Html, IntoResponse};

/// The page loads nothing from other servers and connects only to this one.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The web page, which shows all of this.
#[utoipa::path(
    get, path = "/", operation_id = "openPage", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "text/html"))
)]
pub async fn page() -> impl IntoResponse {
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(include_str!("page.html")))
}
