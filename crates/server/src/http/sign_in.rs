//! People sign in on the page and out again. `docs/signing-in.md` has the whole of it.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};

use super::request::{Params, Received, bearer, require_operator, unauthenticated};
use super::sessions::{self, Site};
use crate::app::App;
use crate::auth::Credential;
use crate::auth::code_flow::{Attempt, Returned};
use crate::auth::sessions::{Origin, Session};
use crate::auth::{Identity, is_name};
use crate::http::error::ApiError;
use landfall_api::sessions::{
    CallbackQuery, IssueLink, LoggedOut, LoginQuery, Logout, OpenLink, OpenedLink, SessionDetails,
    SessionView, SignInLink, SignInWays,
};
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};

const MAX_RETURN_LENGTH: usize = 1_000;

/// Who is signed in in this browser.
///
/// It also says that the person is there, so the idle time begins again.
#[utoipa::path(
    get, path = "/auth/session", operation_id = "showSession", tag = "sign-in", security(()),
    responses(
        (status = 200, body = SessionView),
        (status = "4XX", description = "DATABASE_UNAVAILABLE DATABASE_FILE_GONE REQUEST_TIMEOUT INTERNAL")
    )
)]
pub async fn show(
    State(app): State<App>,
    site: Site,
    headers: HeaderMap,
) -> Result<Json<SessionView>, ApiError> {
    let mut session = site.current(&app, &headers).await?;
    // A page of another site cannot keep a session alive.
    if let Some(session) = &mut session
        && site.require_own_origin(&headers).is_ok()
    {
        app.sessions().renew(session, app.clock.now()).await?;
    }
    Ok(Json(SessionView { session: session.as_ref().map(details), ways: ways(&app) }))
}

fn ways(app: &App) -> SignInWays {
    let provider = app.auth.provider();
    SignInWays {
        provider: provider.is_some_and(|provider| provider.config.client.is_some()),
        link: provider.is_none(),
        token: provider.is_none_or(|provider| !provider.config.audiences.is_empty()),
    }
}

fn details(session: &Session) -> SessionDetails {
    let Caller { tenant, user, role } = session.caller.clone();
    SessionDetails {
        tenant_id: tenant,
        user_id: user,
        role,
        expires_at: session.expires_at,
        idle_until: session.idle_until,
        csrf_token: session.id.csrf_token(),
    }
}

/// Begins a session with a token.
///
/// The token is sent in `Authorization`. The session ends with the token at the latest, and the response sets its
/// cookie.
#[utoipa::path(
    post, path = "/auth/session", operation_id = "beginSession", tag = "sign-in",
    responses((status = 200, body = SessionView), (status = "4XX", description = "ANOTHER_SESSION"))
)]
pub async fn begin(State(app): State<App>, site: Site, headers: HeaderMap) -> Result<Response, ApiError> {
    // A session is no token: it cannot begin another one.
    let token = bearer(&headers).ok_or_else(unauthenticated)?;
    let Identity { caller, until, .. } = app.auth.identify(token, app.clock.now()).await?;
    site.require_own_origin(&headers)?;
    let session = sign_in(&app, &site, &headers, &caller, Origin::Token, until).await?;
    let view = SessionView { session: Some(details(&session)), ways: ways(&app) };
    let cookie = site.session_cookie(&session, app.clock.now());
    Ok(([(header::SET_COOKIE, cookie)], Json(view)).into_response())
}

/// Begins a session for a person. It replaces one of the same person and never that of another.
async fn sign_in(
    app: &App,
    site: &Site,
    headers: &HeaderMap,
    caller: &Caller,
    origin: Origin,
    until: Time,
) -> Result<Session, ApiError> {
    let before = site.current(app, headers).await?;
    if let Some(other) = before.as_ref().filter(|before| before.caller.owner() != caller.owner()) {
        let message = format!(
            "{} is signed in in this browser. Sign out first, to sign in as {}",
            other.caller.user, caller.user
        );
        return Err(Refusal::new(RefusalCode::AnotherSession, message).into());
    }
    let replaces = before.map(|before| before.id);
    Ok(app.sessions().begin(caller, origin, until, replaces, app.clock.now()).await?)
}

/// Sends the browser to the identity provider.
///
/// The provider sends it back to `/auth/callback`. `returnTo` is the page to show after that.
#[utoipa::path(
    get, path = "/auth/login", operation_id = "logIn", tag = "sign-in", security(()), params(LoginQuery),
    responses(
        (status = 303, description = "To the identity provider, or back to the page with what went wrong"),
        (status = "4XX", description = "SIGN_IN_UNAVAILABLE SIGN_IN_REFUSED AUTH_UNAVAILABLE")
    )
)]
pub async fn login(
    State(app): State<App>,
    site: Site,
    headers: HeaderMap,
    Params(query): Params<LoginQuery>,
) -> Result<Response, ApiError> {
    let begun = async {
        let provider = app.auth.provider().ok_or_else(no_provider)?;
        let return_to = query.return_to.as_deref().filter(|path| is_path(path)).unwrap_or("/");
        let attempt = Attempt::new(return_to, app.clock.now());
        let url = provider.sign_in_url(&attempt, &redirect_uri(&site), app.clock.now()).await?;
        Ok::<_, Refusal>((attempt, url))
    };
    match begun.await {
        Ok((attempt, url)) => Ok(go(url.as_str(), vec![site.attempt_cookie(&attempt)])),
        Err(refusal) => for_person(&headers, refusal, Vec::new()),
    }
}

/// The identity provider sends the browser back here.
///
/// It checks what the provider says, begins a session, and sends the browser on to the page.
#[utoipa::path(
    get, path = "/auth/callback", operation_id = "finishLogin", tag = "sign-in", security(()), params(CallbackQuery),
    responses(
        (status = 303, description = "Back to the page: signed in, or with what went wrong"),
        (status = "4XX", description = "SIGN_IN_UNAVAILABLE SIGN_IN_EXPIRED SIGN_IN_REFUSED ANOTHER_SESSION \
            AUTH_UNAVAILABLE DATABASE_UNAVAILABLE DATABASE_FILE_GONE REQUEST_TIMEOUT INTERNAL")
    )
)]
pub async fn callback(
    State(app): State<App>,
    site: Site,
    headers: HeaderMap,
    Params(query): Params<CallbackQuery>,
) -> Result<Response, ApiError> {
    let attempt = site.attempt(&headers);
    let CallbackQuery { code, state, error, iss } = query;
    let returned = Returned { code, state, error, iss };
    let now = app.clock.now();
    let signed_in = async {
        let provider = app.auth.provider().ok_or_else(no_provider)?;
        let caller = provider.signed_in(attempt.as_ref(), &returned, &redirect_uri(&site), now).await?;
        sign_in(&app, &site, &headers, &caller, Origin::Provider, Time::MAX_UTC).await
    };
    match signed_in.await {
        Ok(session) => {
            let path = attempt.as_ref().map(|attempt| attempt.return_to.as_str());
            let path = path.filter(|path| is_path(path)).unwrap_or("/");
            Ok(go(path, vec![site.session_cookie(&session, now), site.no_attempt_cookie()]))
        }
        // An attempt that goes on in another tab is left alone.
        Err(ApiError(refusal)) if refusal.code == RefusalCode::SignInExpired => {
            for_person(&headers, refusal, Vec::new())
        }
        Err(ApiError(refusal)) => for_person(&headers, refusal, vec![site.no_attempt_cookie()]),
    }
}

/// Ends the session of this browser.
///
/// With `everywhere` it also ends the person's sessions in all other browsers. `providerUrl` signs out of the
/// identity provider too.
#[utoipa::path(
    post, path = "/auth/logout", operation_id = "logOut", tag = "sign-in", request_body = Option<Logout>,
    responses((status = 200, body = LoggedOut), (status = "4XX", description = "INVALID_REQUEST"))
)]
pub async fn logout(State(app): State<App>, site: Site, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let session = sessions::of_request(&parts, &app).await?.ok_or_else(|| {
        let message = "There is no session to end; a token is valid until it expires";
        Refusal::new(RefusalCode::Unauthenticated, message)
    })?;
    let received = Received::read(Request::from_parts(parts, body), app.config.http.max_body_bytes).await?;
    let Logout { everywhere } = received.json_or_default()?;
    let ended = app.sessions().end(&session, everywhere).await?;
    let provider_url = match app.auth.provider() {
        Some(provider) => provider.sign_out_url(&format!("{}/", site.base), app.clock.now()).await,
        None => None,
    };
    let view = LoggedOut { ended, provider_url: provider_url.map(String::from) };
    Ok(([(header::SET_COOKIE, site.no_session_cookie())], Json(view)).into_response())
}

/// Issues a link that signs a person in once.
///
/// It needs an operator's token; a session is not enough. The link expires soon.
#[utoipa::path(
    post, path = "/auth/links", operation_id = "issueLink", tag = "sign-in", request_body = IssueLink,
    responses((status = 200, body = SignInLink), (status = "4XX", description = "FORBIDDEN SIGN_IN_UNAVAILABLE"))
)]
pub async fn issue_link(
    State(app): State<App>,
    site: Site,
    Identity { caller, credential, .. }: Identity,
    request: Request,
) -> Result<Json<SignInLink>, ApiError> {
    // Not with a session: a browser that was left open must not give a stranger more sessions.
    if credential == Credential::Session {
        return Err(unauthenticated().into());
    }
    require_operator(&caller)?;
    if app.auth.provider().is_some() {
        return Err(links_unavailable().into());
    }
    let wanted: IssueLink = Received::read(request, app.config.http.max_body_bytes).await?.json()?;
    if !is_name(&wanted.tenant_id) || !is_name(&wanted.user_id) {
        let message = "A user and a tenant have a name of 1 to 255 bytes without a NUL in it";
        return Err(Refusal::new(RefusalCode::InvalidRequest, message).into());
    }
    let person = Caller { tenant: wanted.tenant_id, user: wanted.user_id, role: wanted.role };
    let link = app.links().issue(&person, app.clock.now()).await?;
    // Behind the #, where neither logs nor other sites see it.
    let url = format!("{}/#open={}", site.base, link.code);
    Ok(Json(SignInLink { url, expires_at: link.expires_at }))
}

/// Says whom a link signs in and, once the person has confirmed it, does so.
///
/// Without `confirm` the link stays valid, so a program that only looks at it does not use it up.
#[utoipa::path(
    post, path = "/auth/links/open", operation_id = "openLink", tag = "sign-in", security(()), request_body = OpenLink,
    responses(
        (status = 200, body = OpenedLink),
        (status = "4XX", description = "INVALID_LINK TOO_MANY_AUTH_FAILURES ANOTHER_SESSION CROSS_SITE_REQUEST SIGN_IN_UNAVAILABLE \
            DATABASE_UNAVAILABLE DATABASE_FILE_GONE REQUEST_TIMEOUT INTERNAL")
    )
)]
pub async fn open_link(
    State(app): State<App>,
    site: Site,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    site.require_own_origin(&headers)?;
    if app.auth.provider().is_some() {
        return Err(links_unavailable().into());
    }
    let OpenLink { code, confirm } = Received::read(request, app.config.http.max_body_bytes).await?.json()?;
    let now = app.clock.now();
    let caller = app.links().show(&code, now).await?;
    let view = |session: Option<&Session>| {
        let Caller { tenant, user, role } = caller.clone();
        Json(OpenedLink { tenant_id: tenant, user_id: user, role, session: session.map(details) })
    };
    if !confirm {
        return Ok(view(None).into_response());
    }
    // Before the link is used up: the person may sign out and open it again.
    let before = site.current(&app, &headers).await?;
    if before.is_none_or(|before| before.caller.owner() == caller.owner()) {
        app.links().redeem(&code, now).await?;
    }
    let session = sign_in(&app, &site, &headers, &caller, Origin::Link, Time::MAX_UTC).await?;
    let cookie = site.session_cookie(&session, now);
    Ok(([(header::SET_COOKIE, cookie)], view(Some(&session))).into_response())
}

fn redirect_uri(site: &Site) -> String {
    format!("{}/auth/callback", site.base)
}

/// Whether this is a path of this server. A browser reads a backslash as a slash, and two of them as another host.
fn is_path(text: &str) -> bool {
    text.len() <= MAX_RETURN_LENGTH
        && text.starts_with('/')
        && !text.starts_with("//")
        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

fn go(to: &str, cookies: Vec<HeaderValue>) -> Response {
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    let cookies: Vec<_> = cookies.into_iter().map(|cookie| (header::SET_COOKIE, cookie)).collect();
    (StatusCode::SEE_OTHER, [(header::LOCATION, to)], AppendHeaders(cookies)).into_response()
}

/// A person in a browser goes back to the page, which says what went wrong. A program gets the refusal.
fn for_person(
    headers: &HeaderMap,
    refusal: Refusal,
    cookies: Vec<HeaderValue>,
) -> Result<Response, ApiError> {
    let accepts = headers.get(header::ACCEPT).and_then(|kinds| kinds.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        return Ok(go(&format!("/#sign-in-failed={}", refusal.code.code()), cookies));
    }
    Err(refusal.into())
}

fn no_provider() -> Refusal {
    let message =
        "This server has no identity provider: sign in with a link of `landfall open` or with a token";
    Refusal::new(RefusalCode::SignInUnavailable, message)
}

fn links_unavailable() -> Refusal {
    let message = "People sign in with the identity provider of this server, and not with links";
    Refusal::new(RefusalCode::SignInUnavailable, message)
}

#[cfg(test)]
mod tests {
    use super::is_path;

    #[test]
    fn the_way_back_is_a_path_of_this_server() {
        for good in ["/", "/#signed-in", "/api/docs/index.html?x=1"] {
            assert!(is_path(good), "{good}");
        }
        for bad in [
            "",
            "x",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a b",
            "/\u{e9}",
            "/\t/evil.example",
        ] {
            assert!(!is_path(bad), "{bad}");
        }
        assert!(!is_path(&format!("/{}", "x".repeat(1_000))));
    }
}
