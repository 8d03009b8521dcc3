//! The web page: its markup, its style and its script are files of their own, so that its policy forbids inline code.

use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};

use super::request::InPath;
use crate::http::error::ApiError;
use landfall_core::refusal::Refusal;

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

/// A file of the web page.
#[utoipa::path(
    get, path = "/assets/{asset}", operation_id = "showAsset", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "*/*"), (status = "4XX", description = "NOT_FOUND"))
)]
pub async fn asset(InPath(asset): InPath<String>) -> Result<Response, ApiError> {
    let (kind, text) = match asset.as_str() {
        "page.css" => ("text/css; charset=utf-8", include_str!("page/page.css")),
        "page.js" => ("text/javascript; charset=utf-8", include_str!("page/page.js")),
        _ => return Err(Refusal::nothing_here().into()),
    };
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
