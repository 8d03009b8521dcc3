//! The page for people.

use axum::http::header;
use axum::response::{Html, IntoResponse};

/// It loads nothing from elsewhere and talks to nobody but us.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page for people, which shows what all this does.
#[utoipa::path(
    get, path = "/", operation_id = "openPage", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "text/html"))
)]
pub async fn page() -> impl IntoResponse {
    ([(header::CONTENT_SECURITY_POLICY, POLICY)], Html(include_str!("page.html")))
}
