//! The headers that every response has, so that a browser gives nothing of this server to another page.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// A response that is not a page loads nothing and runs nothing, even where a browser shows it as one.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");
/// The page uses none of these.
const PERMISSIONS: HeaderValue = HeaderValue::from_static(
    "accelerometer=(), browsing-topics=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), \
     hid=(), magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), \
     screen-wake-lock=(), serial=(), usb=()",
);
/// Two years, as the lists of browsers ask for. Only this host: what else is below its name is not ours to decide.
const TRANSPORT: HeaderValue = HeaderValue::from_static("max-age=63072000");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");
const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Adds them. A response that has its own policy or caching keeps it.
pub fn add(headers: &mut HeaderMap, came_by_https: bool) {
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(POLICY);
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(PERMISSIONS_POLICY, PERMISSIONS);
    headers.insert(CROSS_ORIGIN_OPENER_POLICY, SAME_ORIGIN);
    headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, SAME_ORIGIN);
    if came_by_https {
        headers.insert(STRICT_TRANSPORT_SECURITY, TRANSPORT);
    }
}
