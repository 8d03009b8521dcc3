//! The session of a browser: its cookie, and the protection against pages of other sites that use it.
//!
//! A browser sends a cookie with requests that other pages cause. So a request with a session that changes something must
//! come from a page of this server (`Origin`) and carry what only such a page can know (`X-CSRF-Token`). A WebSocket must
//! come from one too: a page of another site could read it. A page of an origin in `CORS_ORIGINS` counts as one of this server,
//! except that it cannot sign a person in. A request with a token is not affected, because no browser adds a
//! token by itself, and its cookie is not looked at.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use url::Url;

use crate::app::App;
use crate::auth::code_flow::{ATTEMPT_LIFETIME, Attempt};
use crate::auth::sessions::{Session, SessionId};
use crate::http::client_address::Arrival;
use crate::http::error::ApiError;
use crate::http::host::base_url;
use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};

pub const CSRF_TOKEN: HeaderName = HeaderName::from_static("x-csrf-token");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Where clients reach this server: its origin, which the names of cookies depend on.
pub struct Site {
    pub base: String,
    is_https: bool,
    port: u16,
}

impl FromRequestParts<App> for Site {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        Ok(Self::of(app, parts))
    }
}

impl Site {
    fn of(app: &App, parts: &Parts) -> Self {
        let base = base_url(&app.config.http, Arrival::in_extensions(&parts.extensions), &parts.headers);
        let url = Url::parse(&base).ok();
        let port = url.as_ref().and_then(Url::port_or_known_default).unwrap_or_default();
        Self { is_https: url.is_some_and(|url| url.scheme() == "https"), port, base }
    }

    /// With `__Host-` a browser takes the cookie from this host alone and over https. Without https, servers on several
    /// ports of one machine share their cookies, so each has a name of its own.
    fn name(&self, what: &str) -> String {
        if self.is_https {
            format!("__Host-landfall-{what}")
        } else {
            format!("landfall-{what}-{}", self.port)
        }
    }

    fn cookie(&self, what: &str, value: &str, seconds: i64) -> HeaderValue {
        let secure = if self.is_https { "; Secure" } else { "" };
        let name = self.name(what);
        let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::from_str(&text).expect("a cookie of ours is plain text")
    }

    pub fn session_cookie(&self, session: &Session, now: Time) -> HeaderValue {
        self.cookie("session", session.id.text(), (session.expires_at - now).num_seconds().max(1))
    }

    pub fn no_session_cookie(&self) -> HeaderValue {
        self.cookie("session", "", 0)
    }

    pub fn attempt_cookie(&self, attempt: &Attempt) -> HeaderValue {
        self.cookie("sign-in", &attempt.to_text(), ATTEMPT_LIFETIME.num_seconds())
    }

    pub fn no_attempt_cookie(&self) -> HeaderValue {
        self.cookie("sign-in", "", 0)
    }

    pub fn attempt(&self, headers: &HeaderMap) -> Option<Attempt> {
        Attempt::from_text(cookie(headers, &self.name("sign-in"))?)
    }

    fn session_id(&self, headers: &HeaderMap) -> Option<SessionId> {
        cookie(headers, &self.name("session")).filter(|text| !text.is_empty()).map(SessionId::from_cookie)
    }

    /// Whether a page of this server, or no page at all, caused the request.
    fn is_origin_of(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else {
            // Browsers that do not say the origin of a request say where it comes from.
            return headers.get(FETCH_SITE).is_none_or(|site| site == "same-origin" || site == "none");
        };
        let Some(origin) = origin.to_str().ok().and_then(|origin| Url::parse(origin).ok()) else {
            return false;
        };
        Url::parse(&self.base).is_ok_and(|base| base.origin() == origin.origin() && origin.has_host())
    }
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// The session of the browser, if it sent a cookie: an error if the session has ended, or if another site sent the request.
pub async fn of_request(parts: &Parts, app: &App) -> Result<Option<Session>, ApiError> {
    let site = Site::of(app, parts);
    let Some(id) = site.session_id(&parts.headers) else { return Ok(None) };
    let changes = !parts.method.is_safe();
    let is_upgrade = parts.headers.contains_key(header::UPGRADE);
    let is_trusted = parts.headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let is_trusted = is_trusted.is_some_and(|origin| app.config.http.origins.trusts(origin));
    if (changes || is_upgrade) && !is_trusted && !site.is_origin_of(&parts.headers) {
        return Err(cross_site("it comes from a page of another site").into());
    }
    if is_upgrade && !parts.headers.contains_key(header::ORIGIN) {
        return Err(cross_site("it does not say where it comes from (Origin)").into());
    }
    if changes && parts.headers.get(CSRF_TOKEN).is_none_or(|token| token != id.csrf_token().as_str()) {
        return Err(
            cross_site("the header X-CSRF-Token is missing or wrong; GET /auth/session has it").into()
        );
    }
    let now = app.clock.now();
    let sessions = app.sessions();
    let mut session = sessions
        .find(id, now)
        .await?
        .ok_or_else(|| Refusal::new(RefusalCode::SessionExpired, "The session has ended; sign in again"))?;
    if changes {
        sessions.renew(&mut session, now).await?;
    }
    Ok(Some(session))
}

fn cross_site(why: &str) -> Refusal {
    let message = format!("This request uses a session, and {why}");
    Refusal::new(RefusalCode::CrossSiteRequest, message)
}

impl Site {
    /// The session of a browser that asks who is signed in, or signs in. One that has ended is none.
    pub async fn current(&self, app: &App, headers: &HeaderMap) -> Result<Option<Session>, ApiError> {
        let Some(id) = self.session_id(headers) else { return Ok(None) };
        Ok(app.sessions().find(id, app.clock.now()).await?)
    }

    /// Refuses a request that another site caused, for the routes that begin a session.
    pub fn require_own_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if self.is_origin_of(headers) {
            Ok(())
        } else {
            let message = "A page of another site must not sign a person in here";
            Err(Refusal::new(RefusalCode::CrossSiteRequest, message))
        }
    }
}
