//! People sign in with a real OpenID provider: npm's `oidc-provider`, with its own form, and once in a real browser.

use chrono::TimeDelta;
use landfall_core::clock::{Clock, ManualClock};
use reqwest::header::ORIGIN;
use serde_json::{Value, json};
use url::Url;

use crate::support::browser::{Browser, Visited};
use crate::support::node::NodeClient;
use crate::support::{Client, Setup, TestDb, on_each_database};

const FILES: &str = "/api/v2/uploads/files";
const SECRET: &str = "the secret of the client+/ &";

struct Provider {
    issuer: String,
    _node: NodeClient,
}

/// The program of the provider prints its issuer when it listens.
async fn provider() -> Option<Provider> {
    let mut node = NodeClient::start("provider.mjs", &["0"], &[])?;
    tokio::task::spawn_blocking(move || {
        let issuer = node.line().expect("it starts")["issuer"].as_str().expect("its name").to_owned();
        Some(Provider { issuer, _node: node })
    })
    .await
    .expect("it prints a line")
}

fn setup(provider: &Provider) -> Setup {
    Setup::default()
        .with("OIDC_ISSUER", &provider.issuer)
        .with("OIDC_SCOPES", "openid landfall")
        .with("JWT_AUDIENCE", "landfall-api")
        .with("JWT_USER_CLAIM", "preferred_username")
        .with("JWT_ROLE_CLAIM", "groups.landfall")
        .with("JWT_OPERATOR_ROLES", "op")
        .with("JWT_ADMIN_ROLES", "boss")
}

fn confidential(provider: &Provider) -> Setup {
    setup(provider).with("OIDC_CLIENT_ID", "landfall").with("OIDC_CLIENT_SECRET", SECRET)
}

/// Where the form on a page goes.
fn action(page: &Visited) -> String {
    let (_, rest) =
        page.text.split_once("action=\"").unwrap_or_else(|| panic!("no form: {} {}", page.url, page.text));
    page.url.join(rest.split_once('"').expect("it ends").0).expect("an address").to_string()
}

/// Signs in with the forms of the provider, up to where it sends the browser back; answers that address, which is not visited.
async fn answer_forms(browser: &mut Browser, name: &str, return_to: &str) -> Url {
    let login = format!("{}/auth/login?returnTo={}", browser.base, return_to.replace('#', "%23"));
    let form = browser.visit(&login).await;
    let landfall = std::mem::take(&mut browser.base);
    let form =
        browser.submit(&action(&form), &[("prompt", "login"), ("login", name), ("password", "x")]).await;
    // The consent is the last step, so its redirects are followed by hand.
    let mut to = action(&form);
    browser.base.clone_from(&landfall);
    let mut request = browser
        .http
        .post(&to)
        .header("content-type", "application/x-www-form-urlencoded")
        .body("prompt=consent");
    loop {
        let response = browser.send(request).await;
        assert!(response.status().is_redirection(), "{} {}", response.status(), to);
        to = response.url().join(response.headers()["location"].to_str().unwrap()).unwrap().to_string();
        if to.starts_with(&landfall) {
            return Url::parse(&to).unwrap();
        }
        request = browser.http.get(&to);
    }
}

async fn sign_in(browser: &mut Browser, name: &str) -> Visited {
    let back = answer_forms(browser, name, "/#x").await;
    browser.visit(back.as_str()).await
}

/// What went wrong, as the page is told.
fn failure(visited: &Visited) -> String {
    visited
        .url
        .fragment()
        .and_then(|text| text.strip_prefix("sign-in-failed="))
        .unwrap_or_default()
        .to_owned()
}

#[on_each_database]
async fn a_person_signs_in_with_a_real_provider_and_out_again(db: TestDb) {
    let Some(provider) = provider().await else { return };
    let server = confidential(&provider).start(&db).await;
    let mut browser = Browser::new(&server.base);
    assert_eq!(
        browser.get("/auth/session").await.ok()["ways"],
        json!({ "provider": true, "link": false, "token": true })
    );
    let back = sign_in(&mut browser, "ada@acme").await;
    assert_eq!(back.url.as_str(), format!("{}/#x", server.base), "back to where the person was");
    let session = browser.session().await;
    assert_eq!(
        (&session["userId"], &session["tenantId"], &session["role"]),
        (&json!("ada"), &json!("acme"), &json!("member"))
    );
    browser.get(FILES).await.ok();
    browser.post(&format!("{FILES}/init"), json!({ "fileName": "a.txt", "fileSize": 1 })).await.ok();

    // Other people, with other roles.
    for (name, role) in
        [("bob@acme+boss", "tenant_admin"), ("root@acme+op", "operator"), ("eve@acme+admin", "member")]
    {
        let mut browser = Browser::new(&server.base);
        sign_in(&mut browser, name).await;
        assert_eq!(browser.session().await["role"], role, "{name}");
    }
    let mut homeless = Browser::new(&server.base);
    assert_eq!(failure(&sign_in(&mut homeless, "acme").await), "SIGN_IN_REFUSED", "without a tenant");
    assert_eq!(homeless.session().await, Value::Null);

    let out = browser.post("/auth/logout", json!({})).await.ok();
    let url = out["providerUrl"].as_str().expect("the provider has a place to sign out");
    assert!(url.starts_with(&format!("{}/session/end?client_id=landfall", provider.issuer)), "{url}");
    assert_eq!(browser.visit(url).await.status, 200, "the provider accepts it");
    browser.get(FILES).await.refused(401, "UNAUTHENTICATED");
}

#[on_each_database]
async fn a_client_without_a_secret_signs_in_with_pkce_alone(db: TestDb) {
    let Some(provider) = provider().await else { return };
    let server = setup(&provider).with("OIDC_CLIENT_ID", "landfall-page").start(&db).await;
    let mut browser = Browser::new(&server.base);
    sign_in(&mut browser, "ada@acme").await;
    assert_eq!(browser.session().await["userId"], "ada");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_works_once_and_only_in_the_browser_that_asked_for_it() {
    let Some(provider) = provider().await else { return };
    let db = TestDb::sqlite();
    let server = confidential(&provider).start(&db).await;
    // Mallory sends her own callback to a person: with no sign-in under way, and with one.
    let mut mallory = Browser::new(&server.base);
    let hers = answer_forms(&mut mallory, "mallory@acme", "/").await;
    let mut victim = Browser::new(&server.base);
    assert_eq!(failure(&victim.visit(hers.as_str()).await), "SIGN_IN_EXPIRED");
    let his = answer_forms(&mut victim, "victim@acme", "/").await;
    assert_eq!(failure(&victim.visit(hers.as_str()).await), "SIGN_IN_EXPIRED");
    // Her code with his state: the verifier is not the one that the code was asked for with.
    let with = |url: &Url, name: &str, value: Option<&str>| {
        let mut changed = url.clone();
        changed.query_pairs_mut().clear();
        for (known, old) in url.query_pairs() {
            match value {
                Some(value) if known == name => drop(changed.query_pairs_mut().append_pair(name, value)),
                None if known == name => {}
                _ => drop(changed.query_pairs_mut().append_pair(&known, &old)),
            }
        }
        changed
    };
    let of =
        |url: &Url, name: &str| url.query_pairs().find(|(known, _)| known == name).unwrap().1.into_owned();
    let cookies = victim.cookies.clone();
    let mixed = with(&his, "code", Some(&of(&hers, "code")));
    assert_eq!(failure(&victim.visit(mixed.as_str()).await), "SIGN_IN_REFUSED");
    // Another provider's answer, and one that does not say whose it is.
    for issuer in [Some("https://evil.example"), None] {
        victim.cookies.clone_from(&cookies);
        assert_eq!(failure(&victim.visit(with(&his, "iss", issuer).as_str()).await), "SIGN_IN_REFUSED");
    }
    for (name, value) in [("state", None), ("state", Some("invented"))] {
        victim.cookies.clone_from(&cookies);
        assert_eq!(failure(&victim.visit(with(&his, name, value).as_str()).await), "SIGN_IN_EXPIRED");
    }
    assert_eq!(victim.session().await, Value::Null);
    victim.cookies.clone_from(&cookies);
    victim.visit(his.as_str()).await;
    assert_eq!(victim.session().await["userId"], "victim");
    // The same answer again.
    let mut again = Browser::new(&server.base);
    again.cookies = cookies;
    assert_eq!(failure(&again.visit(his.as_str()).await), "SIGN_IN_REFUSED");

    // The person who is signed in stays, also when another person signs in at the provider.
    let mut mallory = Browser::new(&server.base);
    let hers = answer_forms(&mut mallory, "mallory@acme", "/").await;
    let own = victim.cookies.clone();
    victim
        .cookies
        .extend(mallory.cookies.clone().into_iter().filter(|((_, name), _)| name.contains("sign-in")));
    assert_eq!(failure(&victim.visit(hers.as_str()).await), "ANOTHER_SESSION");
    assert_eq!(victim.cookies, own);
    assert_eq!(victim.session().await["userId"], "victim");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_back_never_leads_to_another_site_and_an_attempt_expires() {
    let Some(provider) = provider().await else { return };
    let db = TestDb::sqlite();
    let clock = ManualClock::starting_at(Clock::System.now());
    let server = confidential(&provider).clock(&clock).start(&db).await;
    for to in ["https://evil.example/", "//evil.example", "/\\evil.example"] {
        let mut browser = Browser::new(&server.base);
        let back = answer_forms(&mut browser, "ada@acme", to).await;
        let visited = browser.visit(back.as_str()).await;
        assert_eq!(visited.url.as_str(), format!("{}/", server.base), "{to}");
    }
    let mut slow = Browser::new(&server.base);
    let back = answer_forms(&mut slow, "ada@acme", "/").await;
    clock.advance(TimeDelta::minutes(10).to_std().unwrap());
    assert_eq!(failure(&slow.visit(back.as_str()).await), "SIGN_IN_EXPIRED");
    // A program gets the refusal itself.
    let refused = slow.get("/auth/callback?code=x&state=y").await.refused(400, "SIGN_IN_EXPIRED");
    assert!(refused["message"].as_str().unwrap().contains("sign in again"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_use_access_tokens_of_the_provider_also_after_its_keys_changed() {
    let Some(provider) = provider().await else { return };
    let db = TestDb::sqlite();
    let clock = ManualClock::starting_at(Clock::System.now());
    let server = confidential(&provider).clock(&clock).start(&db).await;
    let access_token = async |resource: &str| {
        let form = format!("grant_type=client_credentials&resource=http://127.0.0.1:1/{resource}");
        let http = landfall_server::outbound::client();
        let request = http
            .post(format!("{}/token", provider.issuer))
            .header("content-type", "application/x-www-form-urlencoded");
        // As RFC 6749 writes it: encoded like a form before it is base64.
        let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let answer = request.basic_auth("landfall", Some(encoded(SECRET))).body(form).send().await.unwrap();
        let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        body["access_token"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
    };
    let quota = async |token: &str| {
        Client::new(server.base.clone(), token.to_owned()).get("/api/v2/uploads/quota").await
    };
    let before = access_token("api").await;
    assert_eq!(quota(&before).await.ok()["tenantId"], "robots");
    quota(&access_token("other").await).await.refused(401, "INVALID_TOKEN");
    let http = landfall_server::outbound::client();
    http.post(format!("{}/rotate", provider.issuer)).send().await.unwrap().error_for_status().unwrap();
    clock.advance(TimeDelta::seconds(11).to_std().unwrap());
    assert_eq!(quota(&access_token("api").await).await.ok()["tenantId"], "robots");
    quota(&before).await.refused(401, "INVALID_TOKEN");
    // No link signs in beside the provider.
    let link = json!({ "tenantId": "a", "userId": "b" });
    Client::new(server.base.clone(), access_token("api").await)
        .post("/auth/links", link)
        .await
        .refused(403, "FORBIDDEN");
    let mut browser = Browser::new(&server.base);
    let request = browser.request(reqwest::Method::POST, "/auth/links/open").header(ORIGIN, &server.base);
    browser.api(request.json(&json!({ "code": "x" }))).await.refused(409, "SIGN_IN_UNAVAILABLE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_calls_itself_otherwise_is_not_believed() {
    let Some(provider) = provider().await else { return };
    let db = TestDb::sqlite();
    // The same machine by another name: its description is found, and names another issuer.
    let other = provider.issuer.replace("127.0.0.1", "localhost");
    let server = confidential(&provider).with("OIDC_ISSUER", other).start(&db).await;
    let mut browser = Browser::new(&server.base);
    browser.get("/auth/login").await.refused(503, "AUTH_UNAVAILABLE");
    let visited = browser.visit(&format!("{}/auth/login", server.base)).await;
    assert_eq!(failure(&visited), "AUTH_UNAVAILABLE");
}

#[on_each_database]
async fn a_person_uses_the_page_in_a_real_browser(db: TestDb) {
    let Ok(chromium) = std::env::var("LANDFALL_TEST_CHROMIUM") else {
        eprintln!("not run: LANDFALL_TEST_CHROMIUM is not set; `make test` installs it");
        return;
    };
    let Some(provider) = provider().await else { return };
    let server = confidential(&provider).start(&db).await;
    let file = db.folder.path().join("harbour.txt");
    std::fs::write(&file, "The lighthouse keeper counts the boats in the harbour.").unwrap();
    let shots =
        std::env::var("LANDFALL_TEST_SCREENSHOTS").unwrap_or_else(|_| db.folder.path().display().to_string());
    let arguments = [server.base.as_str(), file.to_str().unwrap(), &shots];
    let variables = [("CHROMIUM", chromium)];
    let Some(mut page) = NodeClient::start("page.mjs", &arguments, &variables) else { return };
    let lines =
        tokio::task::spawn_blocking(move || std::iter::from_fn(|| page.line()).collect::<Vec<Value>>());
    let steps = lines.await.unwrap();
    let expected = [
        "signed in",
        "uploaded",
        "created and revoked a key",
        "another site refused",
        "signed in again",
        "signed out",
    ];
    assert_eq!(steps, expected.map(|step| json!({ "step": step })));
}
