//! Tokens of an identity provider: which are accepted, and how its keys are fetched. The issuer here is scripted, so that it can
//! be slow, down, or wrong; `provider_sign_in.rs` has a real one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use chrono::TimeDelta;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use landfall_core::clock::{Clock, ManualClock};
use landfall_server::auth::jwks;
use landfall_server::config::{Config, Variables};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::browser::Browser;
use crate::support::{ApiResponse, Client, Setup, TestDb, TestServer, config, manual_clock, until};

const QUOTA: &str = "/api/v2/uploads/quota";
const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "landfall";

/// An issuer with keys that a test can replace, and that answers only while its gate is open.
struct Issuer {
    base: String,
    keys: Arc<Mutex<Vec<Value>>>,
    fetches: Arc<AtomicUsize>,
    gate: watch::Sender<bool>,
    is_down: Arc<Mutex<bool>>,
}

impl Issuer {
    async fn start(keys: Vec<Value>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let issuer = Self {
            base,
            keys: Arc::new(Mutex::new(keys)),
            fetches: Arc::default(),
            gate: watch::Sender::new(true),
            is_down: Arc::default(),
        };
        let (keys, fetches, is_down) = (issuer.keys.clone(), issuer.fetches.clone(), issuer.is_down.clone());
        let gate = issuer.gate.subscribe();
        let answer = move || {
            let (keys, fetches, is_down, mut gate) =
                (keys.clone(), fetches.clone(), is_down.clone(), gate.clone());
            async move {
                fetches.fetch_add(1, Ordering::SeqCst);
                gate.wait_for(|open| *open).await.expect("the issuer is there");
                if *is_down.lock().unwrap() {
                    return StatusCode::SERVICE_UNAVAILABLE.into_response();
                }
                let keys = keys.lock().unwrap().clone();
                Json(json!({ "keys": keys })).into_response()
            }
        };
        let routes = axum::Router::new().route("/jwks", get(answer));
        tokio::spawn(async move {
            let db = TestDb::sqlite();
            let stop = tokio_util::sync::CancellationToken::new();
            landfall_server::http::serve(listener, routes, &config(&db, &[]).http, stop).await;
        });
        issuer
    }

    fn setup(&self) -> Setup {
        let setup = Setup::default().with("ROLE", "api").with("JWT_JWKS_URL", format!("{}/jwks", self.base));
        setup.with("JWT_ISSUER", ISSUER).with("JWT_AUDIENCE", format!("other, {AUDIENCE}"))
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

fn key(pem: &str) -> EncodingKey {
    EncodingKey::from_ec_pem(pem.as_bytes()).unwrap()
}

fn published(pem: &str, id: &str) -> Value {
    let mut jwk = Jwk::from_encoding_key(&key(pem), Algorithm::ES256).unwrap();
    jwk.common.key_id = Some(id.to_owned());
    serde_json::to_value(jwk).unwrap()
}

/// A token that is right in every way, with some claims replaced; null takes one away.
fn claims(now: i64, changed: Value) -> Value {
    let mut claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "tenant": "acme", "iat": now,
        "nbf": now, "exp": now + 3_600 });
    for (name, value) in changed.as_object().unwrap() {
        claims[name] = value.clone();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        }
    }
    claims
}

fn header(id: &str) -> Header {
    Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::ES256) }
}

fn token(id: &str, pem: &str, claims: &Value) -> String {
    jsonwebtoken::encode(&header(id), claims, &key(pem)).unwrap()
}

async fn ask(server: &TestServer, token: &str) -> ApiResponse {
    Client::new(server.base.clone(), token.to_owned()).get(QUOTA).await
}

fn seconds(count: i64) -> Duration {
    TimeDelta::seconds(count).to_std().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_must_name_the_issuer_the_audience_and_the_present() {
    let issuer = Issuer::start(vec![published(EC_KEY, "a")]).await;
    let db = TestDb::sqlite();
    let clock = manual_clock();
    let server = issuer.setup().clock(&clock).start(&db).await;
    let now = server.app.clock.now().timestamp();
    let with = |changed: Value| token("a", EC_KEY, &claims(now, changed));
    for good in [
        json!({}),
        json!({ "aud": ["x", AUDIENCE] }),
        json!({ "aud": "other" }),
        json!({ "nbf": null, "iat": null }),
        json!({ "nbf": now + 59, "iat": now + 59 }),
        json!({ "exp": now - 59 }),
        json!({ "exp": f64::from(i32::MAX) + 0.5 }),
        json!({ "typ": "Bearer" }),
    ] {
        assert_eq!(ask(&server, &with(good.clone())).await.ok()["tenantId"], "acme", "{good}");
    }
    for bad in [
        json!({ "iss": null }),
        json!({ "iss": "https://payroll.example" }),
        json!({ "iss": format!("{ISSUER}/") }),
        json!({ "iss": [ISSUER] }),
        json!({ "aud": null }),
        json!({ "aud": "payroll" }),
        json!({ "aud": [] }),
        json!({ "aud": format!("{AUDIENCE} ") }),
        json!({ "aud": { "landfall": true } }),
        json!({ "exp": null }),
        json!({ "exp": "never" }),
        json!({ "nbf": now + 61 }),
        json!({ "iat": now + 61 }),
        json!({ "iat": "today" }),
        json!({ "sub": null }),
        json!({ "sub": 7 }),
        // ID tokens, refresh tokens and logout tokens of the same issuer.
        json!({ "at_hash": "x" }),
        json!({ "typ": "ID" }),
        json!({ "typ": "Refresh" }),
        json!({ "events": {} }),
        // Never the tenant that is called like the user.
        json!({ "tenant": null }),
        json!({ "tenant": "" }),
        json!({ "tenant": ["acme", "evilcorp"] }),
    ] {
        ask(&server, &with(bad.clone())).await.refused(401, "INVALID_TOKEN");
    }
    ask(&server, &with(json!({ "exp": now - 60 }))).await.refused(401, "TOKEN_EXPIRED");
    // Administrators of other programs are none here.
    let admin = Client::new(server.base.clone(), with(json!({ "role": "admin" })));
    admin.get("/api/v2/admin/queue-status").await.refused(403, "FORBIDDEN");
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_header_of_a_token_must_fit_its_key_and_ask_for_nothing_unknown() {
    let mut encryption = published(OTHER_KEY, "enc");
    encryption["use"] = json!("enc");
    let mut unrelated = published(OTHER_KEY, "ops");
    unrelated["key_ops"] = json!(["encrypt"]);
    let broken = json!({ "kty": "EC", "crv": "P-256", "kid": "broken" });
    let secret = json!({ "kty": "oct", "kid": "oct", "k": "c2VjcmV0", "alg": "HS256" });
    let keys = vec![broken, secret, encryption, unrelated, published(EC_KEY, "a")];
    let issuer = Issuer::start(keys).await;
    let db = TestDb::sqlite();
    let server = issuer.setup().start(&db).await;
    let good = claims(Clock::System.now().timestamp(), json!({}));
    let sign = |header: Header, key: &EncodingKey| jsonwebtoken::encode(&header, &good, key).unwrap();
    ask(&server, &token("a", EC_KEY, &good)).await.ok();
    for kind in ["JWT", "at+jwt", "application/at+jwt", "AT+JWT"] {
        ask(&server, &sign(Header { typ: Some(kind.to_owned()), ..header("a") }, &key(EC_KEY))).await.ok();
    }
    for kind in ["logout+jwt", "dpop+jwt", "secevent+jwt", "JWE"] {
        let typed = Header { typ: Some(kind.to_owned()), ..header("a") };
        ask(&server, &sign(typed, &key(EC_KEY))).await.refused(401, "INVALID_TOKEN");
    }
    let critical = Header { crit: Some(vec!["exp".to_owned()]), ..header("a") };
    ask(&server, &sign(critical, &key(EC_KEY))).await.refused(401, "INVALID_TOKEN");
    for id in ["enc", "ops", "broken"] {
        ask(&server, &token(id, OTHER_KEY, &good)).await.refused(401, "INVALID_TOKEN");
    }
    ask(&server, &token("a", OTHER_KEY, &good)).await.refused(401, "INVALID_TOKEN");
    // What is published is no secret, and what is signed with it is not signed.
    for (id, text) in [("a", "whatever is published"), ("oct", "secret")] {
        let forged = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::HS256) };
        ask(&server, &sign(forged, &EncodingKey::from_secret(text.as_bytes())))
            .await
            .refused(401, "INVALID_TOKEN");
    }
    // Without an id there is only one key that fits.
    ask(&server, &sign(Header { kid: None, ..header("a") }, &key(EC_KEY))).await.ok();
    ask(&server, "eyJhbGciOiJub25lIn0.e30.").await.refused(401, "INVALID_TOKEN");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_for_user_tenant_and_role_are_configurable() {
    let issuer = Issuer::start(vec![published(EC_KEY, "a")]).await;
    let db = TestDb::sqlite();
    let server = issuer
        .setup()
        .with("JWT_USER_CLAIM", "preferred_username")
        .with("JWT_TENANT_CLAIM", "org.name")
        .with("JWT_ROLE_CLAIM", "realm_access.roles")
        .with("JWT_OPERATOR_ROLES", "landfall-operator, root")
        .with("JWT_ADMIN_ROLES", "landfall-admin")
        .with("DEFAULT_TENANT", "everyone")
        .start(&db)
        .await;
    let now = Clock::System.now().timestamp();
    let client = |changed: Value| Client::new(server.base.clone(), token("a", EC_KEY, &claims(now, changed)));
    let ada = |roles: Value| {
        client(
            json!({ "preferred_username": "ada", "org": { "name": "acme" }, "realm_access": { "roles": roles } }),
        )
    };
    let status = "/api/v2/admin/queue-status";
    assert_eq!(ada(json!([])).get(QUOTA).await.ok()["tenantId"], "acme");
    ada(json!(["landfall-admin"])).get(status).await.refused(403, "FORBIDDEN");
    ada(json!(["landfall-admin"])).get("/api/v2/uploads/files?scope=tenant").await.ok();
    ada(json!(["x"])).get("/api/v2/uploads/files?scope=tenant").await.refused(403, "FORBIDDEN");
    ada(json!(["x", "root"])).get(status).await.ok();
    ada(json!("root")).get(status).await.ok();
    let without = client(json!({ "preferred_username": "ada", "tenant": "evilcorp" }));
    assert_eq!(without.get(QUOTA).await.ok()["tenantId"], "everyone");
    client(json!({})).get(QUOTA).await.refused(401, "INVALID_TOKEN");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slow_issuer_delays_only_tokens_with_an_unknown_key() {
    let issuer = Issuer::start(vec![published(EC_KEY, "a")]).await;
    let db = TestDb::sqlite();
    let clock = manual_clock();
    let server = Arc::new(issuer.setup().clock(&clock).start(&db).await);
    let now = server.app.clock.now().timestamp();
    let good = token("a", EC_KEY, &claims(now, json!({})));
    ask(&server, &good).await.ok();
    clock.advance(seconds(11));
    issuer.gate.send_replace(false);
    let unknown: Vec<_> = (0..5)
        .map(|number| {
            let (server, token) =
                (server.clone(), token(&format!("new-{number}"), OTHER_KEY, &claims(now, json!({}))));
            tokio::spawn(async move { ask(&server, &token).await })
        })
        .collect();
    until("the issuer is asked", async || issuer.fetches() == 2).await;
    // They are answered while the issuer is not.
    for _ in 0..3 {
        ask(&server, &good).await.ok();
    }
    assert!(!unknown[0].is_finished());
    // A client that gives up does not interrupt the fetch that the others wait for.
    unknown[0].abort();
    issuer.keys.lock().unwrap().push(published(OTHER_KEY, "new-1"));
    issuer.gate.send_replace(true);
    let mut outcomes = Vec::new();
    for asked in unknown.into_iter().skip(1) {
        outcomes.push(asked.await.unwrap().status);
    }
    assert_eq!(outcomes, [200, 401, 401, 401]);
    assert_eq!(issuer.fetches(), 2, "one request for all of them");
    // Invented keys cause no more of them, until a while later.
    for number in 0..20 {
        let invented = token(&format!("x-{number}"), OTHER_KEY, &claims(now, json!({})));
        ask(&server, &invented).await.refused(401, "INVALID_TOKEN");
    }
    assert_eq!(issuer.fetches(), 2);
    clock.advance(seconds(10));
    ask(&server, &token("y", OTHER_KEY, &claims(now, json!({})))).await.refused(401, "INVALID_TOKEN");
    assert_eq!(issuer.fetches(), 3);
}

async fn wait_for_fetches(issuer: &Issuer, clock: &ManualClock, count: usize) {
    // The task that fetches may not sleep yet when the clock is advanced, so it is advanced until it was woken.
    until("the keys are fetched in the background", async || {
        if issuer.fetches() >= count {
            return true;
        }
        clock.advance(seconds(1));
        false
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_renewed_in_the_background_and_kept_for_a_while_when_the_issuer_is_down() {
    let issuer = Issuer::start(vec![published(EC_KEY, "a")]).await;
    let db = TestDb::sqlite();
    let clock = manual_clock();
    let server = issuer.setup().clock(&clock).start(&db).await;
    let day = server.app.clock.now().timestamp() + 86_400;
    let valid = |id: &str, pem: &str| token(id, pem, &claims(day - 86_400, json!({ "exp": day })));
    until("the keys are fetched at the start", async || issuer.fetches() == 1).await;
    ask(&server, &valid("a", EC_KEY)).await.ok();

    // Rotated: the new key is known before the first token with it, and the withdrawn one is not accepted any more.
    *issuer.keys.lock().unwrap() = vec![published(OTHER_KEY, "b")];
    clock.advance(jwks::REFRESH_INTERVAL);
    wait_for_fetches(&issuer, &clock, 2).await;
    until("the new key is known", async || ask(&server, &valid("b", OTHER_KEY)).await.status == 200).await;
    assert_eq!(issuer.fetches(), 2);
    ask(&server, &valid("a", EC_KEY)).await.refused(401, "INVALID_TOKEN");

    // Down: the known keys stay, and no longer than their time.
    *issuer.is_down.lock().unwrap() = true;
    clock.advance((jwks::MAX_AGE - TimeDelta::minutes(10)).to_std().unwrap());
    ask(&server, &valid("b", OTHER_KEY)).await.ok();
    clock.advance(seconds(600));
    ask(&server, &valid("b", OTHER_KEY)).await.refused(503, "AUTH_UNAVAILABLE");
    *issuer.is_down.lock().unwrap() = false;
    clock.advance(seconds(20));
    until("it is back", async || ask(&server, &valid("b", OTHER_KEY)).await.status == 200).await;
}

#[test]
fn settings_that_would_accept_foreign_tokens_stop_the_start() {
    let refused = |variables: &[(&str, &str)]| {
        let mut given = Variables::default();
        for (name, value) in variables {
            given.set(name, *value);
        }
        Config::from_variables(given).map(drop).err().map_or_else(String::new, |error| error.to_string())
    };
    let keys = ("JWT_JWKS_URL", "https://issuer.example/jwks");
    let (issuer, audience) = (("JWT_ISSUER", ISSUER), ("JWT_AUDIENCE", AUDIENCE));
    let openid = ("OIDC_ISSUER", "https://login.example");
    assert_eq!(refused(&[keys, issuer, audience]), "");
    assert_eq!(refused(&[openid]), "");
    assert_eq!(refused(&[openid, audience, ("OIDC_CLIENT_ID", "x"), ("OIDC_CLIENT_SECRET", "y")]), "");
    assert_eq!(refused(&[("OIDC_ISSUER", "http://localhost:9000/")]), "");
    for (variables, named) in [
        (vec![keys], "JWT_ISSUER"),
        (vec![keys], "JWT_AUDIENCE"),
        (vec![keys, issuer], "JWT_AUDIENCE"),
        (vec![keys, audience], "JWT_ISSUER"),
        (vec![keys, issuer, ("JWT_AUDIENCE", " , ")], "JWT_AUDIENCE"),
        (vec![("JWT_JWKS_URL", "http://issuer.example/jwks"), issuer, audience], "https://"),
        (vec![("OIDC_ISSUER", "http://login.example")], "https://"),
        (vec![("OIDC_ISSUER", "login.example")], "https://"),
        (vec![openid, keys, issuer, audience], "JWT_JWKS_URL"),
        (vec![openid, issuer], "JWT_ISSUER"),
        (vec![openid, ("JWT_SECRET", "f4nTSm7uC1mYkXr9qLz2VbWd8EoJh5Gp")], "OIDC_ISSUER"),
        (vec![("OIDC_CLIENT_ID", "x")], "OIDC_ISSUER"),
        (vec![openid, ("OIDC_CLIENT_SECRET", "x")], "OIDC_CLIENT_ID"),
        (vec![openid, ("OIDC_SCOPES", "profile")], "openid"),
        (vec![openid, ("OIDC_CLIENT_ID", "x"), ("BIND_ADDRESS", "0.0.0.0")], "PUBLIC_URL"),
    ] {
        let said = refused(&variables);
        assert!(said.contains(named), "{variables:?}: {said}");
    }
}

/// A provider whose answers a test chooses.
#[derive(Clone)]
struct Scripted {
    base: String,
    description: Arc<Mutex<Value>>,
    /// The status and body of the token endpoint and of the userinfo endpoint.
    tokens: Arc<Mutex<(u16, Value)>>,
    user_info: Arc<Mutex<(u16, Value)>>,
}

impl Scripted {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let description = json!({ "issuer": base, "jwks_uri": format!("{base}/jwks"),
            "authorization_endpoint": format!("{base}/auth"), "token_endpoint": format!("{base}/token"),
            "userinfo_endpoint": format!("{base}/userinfo") });
        let provider = Self {
            base,
            description: Arc::new(Mutex::new(description)),
            tokens: Arc::default(),
            user_info: Arc::default(),
        };
        let (description, tokens, user_info) =
            (provider.description.clone(), provider.tokens.clone(), provider.user_info.clone());
        let answer = |(status, body): (u16, Value)| (StatusCode::from_u16(status).unwrap(), Json(body));
        let routes = axum::Router::new()
            .route(
                "/.well-known/openid-configuration",
                get(async move || Json(description.lock().unwrap().clone())),
            )
            .route("/jwks", get(async || Json(json!({ "keys": [published(EC_KEY, "a")] }))))
            .route("/token", axum::routing::post(async move || answer(tokens.lock().unwrap().clone())))
            .route("/userinfo", get(async move || answer(user_info.lock().unwrap().clone())));
        tokio::spawn(async move {
            let db = TestDb::sqlite();
            let stop = tokio_util::sync::CancellationToken::new();
            landfall_server::http::serve(listener, routes, &config(&db, &[]).http, stop).await;
        });
        provider
    }

    fn setup(&self) -> Setup {
        let setup = Setup::default().with("ROLE", "api").with("OIDC_ISSUER", &self.base);
        setup.with("OIDC_CLIENT_ID", "landfall").with("JWT_ADMIN_ROLES", "boss")
    }

    /// Signs in with an ID token that is right but for these claims. The code of the refusal, or nothing.
    async fn sign_in(&self, server: &TestServer, typ: &str, changed: Value) -> (String, Value) {
        let mut browser = Browser::new(&server.base);
        let sent = browser.send(browser.request(Method::GET, "/auth/login")).await;
        let to = url::Url::parse(sent.headers()["location"].to_str().unwrap()).unwrap();
        let asked: std::collections::HashMap<_, _> = to.query_pairs().into_owned().collect();
        assert_eq!((asked["code_challenge_method"].as_str(), asked["code_challenge"].len()), ("S256", 43));
        let mut claims = claims(
            Clock::System.now().timestamp(),
            json!({ "iss": self.base, "aud": "landfall",
            "role": "boss", "nonce": asked["nonce"] }),
        );
        for (name, value) in changed.as_object().unwrap() {
            claims[name] = value.clone();
            if value.is_null() {
                claims.as_object_mut().unwrap().remove(name);
            }
        }
        let header = Header { typ: Some(typ.to_owned()), ..header("a") };
        let id_token = jsonwebtoken::encode(&header, &claims, &key(EC_KEY)).unwrap();
        *self.tokens.lock().unwrap() = (200, json!({ "id_token": id_token, "access_token": "x" }));
        self.come_back(browser, &asked["state"]).await
    }

    async fn come_back(&self, mut browser: Browser, state: &str) -> (String, Value) {
        let path = format!("/auth/callback?code=x&state={state}");
        let answer = browser.api(browser.request(Method::GET, &path)).await;
        (answer.code().to_owned(), browser.session().await)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_token_must_answer_this_attempt_of_this_client() {
    let provider = Scripted::start().await;
    let db = TestDb::sqlite();
    let server = provider.setup().start(&db).await;
    let now = Clock::System.now().timestamp();
    for good in [
        json!({}),
        json!({ "aud": ["landfall"] }),
        json!({ "aud": ["landfall", "other"], "azp": "landfall" }),
        json!({ "at_hash": "x" }),
    ] {
        let (code, session) = provider.sign_in(&server, "JWT", good.clone()).await;
        assert_eq!(
            (code.as_str(), &session["userId"], &session["role"]),
            ("", &json!("ada"), &json!("tenant_admin")),
            "{good}"
        );
    }
    for bad in [
        json!({ "nonce": null }),
        json!({ "nonce": "of another attempt" }),
        json!({ "aud": "payroll" }),
        json!({ "aud": null }),
        json!({ "aud": ["landfall", "other"] }),
        json!({ "azp": "payroll" }),
        json!({ "azp": 7 }),
        json!({ "iss": ISSUER }),
        json!({ "exp": now - 61 }),
        json!({ "exp": null }),
        json!({ "nbf": now + 120 }),
        json!({ "sub": 7 }),
        json!({ "tenant": "" }),
    ] {
        let (code, session) = provider.sign_in(&server, "JWT", bad.clone()).await;
        assert_eq!((code.as_str(), session), ("SIGN_IN_REFUSED", Value::Null), "{bad}");
    }
    assert_eq!(provider.sign_in(&server, "at+jwt", json!({})).await.0, "SIGN_IN_REFUSED", "an access token");

    // Claims that the ID token does not have come from the userinfo endpoint, if they are of the same person.
    let without = json!({ "tenant": null, "role": null });
    for (answer, expected) in [
        ((200, json!({ "sub": "ada", "tenant": "globex", "role": "boss", "iss": "x" })), ""),
        ((200, json!({ "sub": "eve", "tenant": "globex", "role": "boss" })), "SIGN_IN_REFUSED"),
        ((200, json!({ "tenant": "globex" })), "SIGN_IN_REFUSED"),
        ((200, json!("rubbish")), "SIGN_IN_REFUSED"),
        ((403, json!({ "sub": "ada", "tenant": "globex" })), "SIGN_IN_REFUSED"),
        ((200, json!({ "sub": "ada" })), "SIGN_IN_REFUSED"),
    ] {
        *provider.user_info.lock().unwrap() = answer.clone();
        let (code, session) = provider.sign_in(&server, "JWT", without.clone()).await;
        assert_eq!(code, expected, "{answer:?}");
        assert_eq!(session["tenantId"].as_str(), expected.is_empty().then_some("globex"), "{answer:?}");
    }
    // What the ID token says is not replaced.
    *provider.user_info.lock().unwrap() = (200, json!({ "sub": "ada", "tenant": "globex", "role": "boss" }));
    let (_, session) = provider.sign_in(&server, "JWT", json!({ "role": null })).await;
    assert_eq!((&session["tenantId"], &session["role"]), (&json!("acme"), &json!("tenant_admin")));

    for answer in [
        (400, json!({ "error": "invalid_grant" })),
        (500, json!("x")),
        (200, json!({})),
        (200, json!({ "id_token": "x" })),
    ] {
        let mut browser = Browser::new(&server.base);
        let sent = browser.send(browser.request(Method::GET, "/auth/login")).await;
        let to = url::Url::parse(sent.headers()["location"].to_str().unwrap()).unwrap();
        let state = to.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
        *provider.tokens.lock().unwrap() = answer.clone();
        assert_eq!(
            provider.come_back(browser, &state).await,
            ("SIGN_IN_REFUSED".to_owned(), Value::Null),
            "{answer:?}"
        );
    }
    // People only sign in here: without JWT_AUDIENCE no token of the provider is accepted.
    let access = token("a", EC_KEY, &claims(now, json!({ "iss": provider.base, "aud": "landfall" })));
    let refused = ask(&server, &access).await.refused(401, "INVALID_TOKEN");
    assert!(refused["message"].as_str().unwrap().contains("JWT_AUDIENCE"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_with_an_address_that_others_can_read_is_not_used() {
    for name in ["jwks_uri", "authorization_endpoint", "token_endpoint", "userinfo_endpoint"] {
        let provider = Scripted::start().await;
        provider.description.lock().unwrap()[name] = json!("http://login.example/x");
        let db = TestDb::sqlite();
        let server = provider.setup().start(&db).await;
        Browser::new(&server.base).get("/auth/login").await.refused(503, "AUTH_UNAVAILABLE");
    }
}

/// Generated for this test; used nowhere else.
const EC_KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgtmw6d6QxiQB7XeV3
708iX4QJ3fE+QHrKdNfvf9P3X1qhRANCAASrX4b+kW740ebJEERVnxOsizkntJjS
ci65TJmq/6i3eCH/BrEQQe9JU8g2Drus3E+3Hk+ZMNz0GWlK3KC/WjB2
-----END PRIVATE KEY-----
";
/// Another one.
const OTHER_KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgq6RXjC6fcDZuPRlw
NXK4Z5M5s290w7cdXa4kywvajNShRANCAAQ/JjKMJBMQ+flsBRu7Deplsp1FRsTv
ScIWPsujoULO5B3nZmuiAf+ClEiZVMCjq/T0lgBbLeLSlGC8VQS9dTtP
-----END PRIVATE KEY-----
";
