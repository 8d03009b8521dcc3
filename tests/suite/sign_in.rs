//! People sign in on the page with a link or a token: a session in a cookie, which other sites cannot use.

use std::time::Duration;

use chrono::TimeDelta;
use landfall_core::clock::Clock;
use landfall_store::args;
use reqwest::Method;
use reqwest::header::{ORIGIN, SET_COOKIE};
use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::node::NodeClient;
use crate::support::process::{self, Process};
use crate::support::{Script, Setup, TestDb, TestServer, manual_clock, on_each_database};

const FILES: &str = "/api/v2/uploads/files";
const INIT: &str = "/api/v2/uploads/files/init";

fn person(user: &str) -> Value {
    json!({ "tenantId": "acme", "userId": user, "role": "member" })
}

/// The code of a new link.
async fn link(server: &TestServer, person: Value) -> String {
    let url = server.admin().post("/auth/links", person).await.ok()["url"].as_str().unwrap().to_owned();
    let (base, code) = url.split_once("/#open=").expect("behind the #");
    assert_eq!(base, server.base);
    code.to_owned()
}

async fn open(browser: &mut Browser, code: &str) -> crate::support::ApiResponse {
    browser.post("/auth/links/open", json!({ "code": code, "confirm": true })).await
}

async fn signed_in(server: &TestServer, user: &str) -> Browser {
    let mut browser = Browser::new(&server.base);
    open(&mut browser, &link(server, person(user)).await).await.ok();
    browser
}

#[on_each_database]
async fn a_link_signs_in_once_and_only_after_it_was_confirmed(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let code = link(&server, person("ada")).await;
    let mut browser = Browser::new(&server.base);
    browser.get(FILES).await.refused(401, "UNAUTHENTICATED");
    let shown = browser.post("/auth/links/open", json!({ "code": code })).await.ok();
    assert_eq!(shown, json!({ "tenantId": "acme", "userId": "ada", "role": "member", "session": null }));
    assert_eq!(browser.session().await, Value::Null, "to look is not to sign in");
    open(&mut browser, &code).await.ok();
    assert_eq!(browser.session().await["userId"], "ada");
    browser.get(FILES).await.ok();

    // A second person with the same link gets nothing, and neither does the first one again.
    open(&mut Browser::new(&server.base), &code).await.refused(401, "INVALID_LINK");
    open(&mut browser, &code).await.refused(401, "INVALID_LINK");
    assert_eq!(browser.session().await["userId"], "ada");
    open(&mut Browser::new(&server.base), "invented").await.refused(401, "INVALID_LINK");
}

#[on_each_database]
async fn of_two_browsers_that_open_a_link_at_once_one_is_signed_in(db: TestDb) {
    let setup = Setup::default().work(Script::new()).with("AUTH_FAILURES_PER_MINUTE", 1_000);
    let server = setup.start(&db).await;
    for _ in 0..10 {
        let code = link(&server, person("ada")).await;
        let tries = (0..4).map(|_| async {
            let mut browser = Browser::new(&server.base);
            open(&mut browser, &code).await.status
        });
        let mut outcomes = futures_util::future::join_all(tries).await;
        outcomes.sort_unstable();
        assert_eq!(outcomes, [200, 401, 401, 401]);
    }
}

#[on_each_database]
async fn a_link_expires_and_only_operators_issue_one(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let code = link(&server, person("ada")).await;
    clock.advance(TimeDelta::minutes(5).to_std().unwrap());
    open(&mut Browser::new(&server.base), &code).await.refused(401, "INVALID_LINK");

    server.client("ada").post("/auth/links", person("ada")).await.refused(403, "FORBIDDEN");
    let nameless = json!({ "tenantId": "", "userId": "ada" });
    server.admin().post("/auth/links", nameless).await.refused(400, "INVALID_REQUEST");
    // The session of an operator is not enough: a page that was taken over cannot leave a way back in.
    let mut browser = Browser::new(&server.base);
    let operator = json!({ "tenantId": "acme", "userId": "root", "role": "operator" });
    open(&mut browser, &link(&server, operator).await).await.ok();
    browser.get("/api/v2/admin/queue-status").await.ok();
    browser.post("/auth/links", person("ada")).await.refused(401, "UNAUTHENTICATED");
}

#[on_each_database]
async fn the_database_has_no_id_and_no_code_that_could_be_used(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let code = link(&server, person("bob")).await;
    let browser = signed_in(&server, "ada").await;
    let id = browser.cookies.values().next().expect("a cookie").clone();
    let mut tx = server.app.db.read().await.unwrap();
    let kept: Vec<(String,)> =
        tx.rows("SELECT id FROM sessions UNION SELECT code FROM sign_in_links", args![]).await.unwrap();
    assert_eq!(kept.len(), 2);
    for (kept,) in kept {
        assert!(kept.len() == 64 && kept != id && kept != code);
        drop(open(&mut Browser::new(&server.base), &kept).await.refused(401, "INVALID_LINK"));
        let mut thief = Browser::new(&server.base);
        thief.cookies = browser.cookies.keys().map(|key| (key.clone(), kept.clone())).collect();
        thief.get(FILES).await.refused(401, "SESSION_EXPIRED");
    }
}

#[on_each_database]
async fn a_session_ends_after_its_time_when_idle_and_at_the_sign_out_on_every_process(db: TestDb) {
    let clock = manual_clock();
    let setup = || {
        let setup = Setup::default().clock(&clock).work(Script::new()).with("ROLE", "api");
        setup.with("SESSION_LIFETIME_MS", 3 * 3_600_000).with("SESSION_IDLE_MS", 3_600_000)
    };
    let server = setup().start(&db).await;
    let minutes = |count| TimeDelta::minutes(count).to_std().unwrap();

    // Idle: what the page does by itself keeps no session alive.
    let mut browser = signed_in(&server, "ada").await;
    clock.advance(minutes(40));
    browser.get(FILES).await.ok();
    clock.advance(minutes(20));
    browser.get(FILES).await.refused(401, "SESSION_EXPIRED");
    assert_eq!(browser.session().await, Value::Null);

    // A person who does something stays, until the lifetime is over.
    let mut browser = signed_in(&server, "ada").await;
    for _ in 0..3 {
        clock.advance(minutes(50));
        assert_eq!(browser.session().await["userId"], "ada");
    }
    clock.advance(minutes(30));
    browser.get(FILES).await.refused(401, "SESSION_EXPIRED");

    let mut browser = signed_in(&server, "ada").await;
    let mut elsewhere = signed_in(&server, "ada").await;
    let mut other = signed_in(&server, "bob").await;
    let stolen = browser.cookies.clone();
    let ended = browser.post("/auth/logout", json!({})).await.ok();
    assert_eq!(ended, json!({ "ended": 1, "providerUrl": null }));
    assert!(browser.cookies.is_empty(), "the browser forgets it");
    browser.cookies = stolen;
    browser.get(FILES).await.refused(401, "SESSION_EXPIRED");
    assert_eq!(elsewhere.session().await["userId"], "ada");
    elsewhere.post("/auth/logout", json!({ "everywhere": true })).await.ok();
    assert_eq!(other.session().await["userId"], "bob");
}

#[on_each_database]
async fn a_session_is_the_same_on_every_process(db: TestDb) {
    let processes = [Process::start(&db, &[("ROLE", "api")]), Process::start(&db, &[("ROLE", "api")])];
    let client = processes[0].client();
    let url = client.post("/auth/links", person("ada")).await.ok()["url"].as_str().unwrap().to_owned();
    let code = url.split_once("#open=").unwrap().1.to_owned();
    // The link of one process is opened at the other.
    let mut browsers = [Browser::new(&processes[0].base), Browser::new(&processes[1].base)];
    open(&mut browsers[1], &code).await.ok();
    let id = browsers[1].cookies.values().next().unwrap().clone();
    let port = processes[0].base.rsplit_once(':').unwrap().1;
    let host = format!("127.0.0.1:{port}");
    browsers[0].cookies.insert((host, format!("landfall-session-{port}")), id);
    assert_eq!(browsers[0].session().await["userId"], "ada");
    browsers[1].post("/auth/logout", json!({})).await.ok();
    browsers[0].get(FILES).await.refused(401, "SESSION_EXPIRED");
}

#[on_each_database]
async fn a_page_of_another_site_cannot_use_a_session(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let mut browser = signed_in(&server, "ada").await;
    let csrf = browser.session().await["csrfToken"].as_str().unwrap().to_owned();
    let body = json!({ "fileName": "a.txt", "fileSize": 1 });
    let post = |browser: &Browser| browser.request(Method::POST, INIT).json(&body);
    let evil = "https://evil.example";
    let own = server.base.clone();

    // A form of another site: the browser adds the cookie (say an old one without SameSite) and the origin.
    let form = browser.http.post(format!("{own}{INIT}")).header(ORIGIN, evil);
    let form = form.header("content-type", "text/plain").body(body.to_string());
    browser.api(form).await.refused(403, "CROSS_SITE_REQUEST");
    for (origin, site, token) in [
        (Some(evil), None, Some(&csrf)),
        (Some("null"), None, Some(&csrf)),
        (Some("http://127.0.0.1:1"), None, Some(&csrf)),
        (None, Some("cross-site"), Some(&csrf)),
        (None, Some("same-site"), Some(&csrf)),
        (Some(own.as_str()), None, None),
        (Some(own.as_str()), None, Some(&"invented".to_owned())),
        (None, None, None),
    ] {
        let mut request = post(&browser);
        for (name, value) in
            [("origin", origin), ("sec-fetch-site", site), ("x-csrf-token", token.map(String::as_str))]
        {
            request = value.into_iter().fold(request, |request, value| request.header(name, value));
        }
        browser.api(request).await.refused(403, "CROSS_SITE_REQUEST");
    }
    // Nor can it sign the person out, or in.
    let out = browser.request(Method::POST, "/auth/logout").header(ORIGIN, evil).json(&json!({}));
    browser.api(out).await.refused(403, "CROSS_SITE_REQUEST");
    let code = link(&server, person("mallory")).await;
    let mut fresh = Browser::new(&server.base);
    let into = fresh.request(Method::POST, "/auth/links/open").header(ORIGIN, evil);
    fresh.api(into.json(&json!({ "code": code, "confirm": true }))).await.refused(403, "CROSS_SITE_REQUEST");
    assert_eq!(browser.get(FILES).await.ok()["files"], json!([]), "nothing was registered");

    browser.post(INIT, body.clone()).await.ok();
    // The token of one session is not that of another.
    let mut other = signed_in(&server, "bob").await;
    let request = post(&other).header(ORIGIN, &own).header("x-csrf-token", &csrf);
    other.api(request).await.refused(403, "CROSS_SITE_REQUEST");
    // A program with a token needs none of this, also with a cookie beside it.
    let token = server.client_of("carol", "acme").token;
    let request = post(&browser).bearer_auth(token).header(ORIGIN, evil);
    browser.api(request).await.ok();
    assert_eq!(browser.get(FILES).await.ok()["files"].as_array().unwrap().len(), 1, "it is Carol's file");
}

#[on_each_database]
async fn a_session_opens_event_streams_of_its_own_pages_only(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let mut browser = signed_in(&server, "ada").await;
    let events = "/api/v2/uploads/events";
    let socket = |browser: &Browser, origin: Option<&str>| {
        let request = browser.request(Method::GET, events).header("connection", "upgrade");
        let request = request.header("upgrade", "websocket").header("sec-websocket-version", "13");
        let request = request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        origin.into_iter().fold(request, |request, origin| request.header(ORIGIN, origin))
    };
    let own = server.base.clone();
    let answer = browser.send(socket(&browser, Some(&own))).await;
    assert_eq!(answer.status(), 101);
    for origin in [None, Some("https://evil.example"), Some("http://127.0.0.1:1"), Some("null")] {
        browser.api(socket(&browser, origin)).await.refused(403, "CROSS_SITE_REQUEST");
    }
    // As a browser does: with the cookie alone. It ends soon after the session, and at once after that.
    // With a limit, so that a stream that does not end fails the test and does not hold it up.
    let request = browser.request(Method::GET, events).timeout(Duration::from_mins(1));
    let request = request.header("accept", "text/event-stream");
    let mut stream = browser.send(request).await;
    assert_eq!(stream.status(), 200);
    browser.post("/auth/logout", json!({})).await.ok();
    clock.advance(TimeDelta::minutes(15).to_std().unwrap());
    let mut text = String::new();
    while let Some(part) = stream.chunk().await.unwrap() {
        text.push_str(&String::from_utf8_lossy(&part));
    }
    assert!(text.contains("TOKEN_EXPIRED"), "{text}");
    let request = browser.request(Method::GET, events).header("accept", "text/event-stream");
    browser.api(request).await.refused(401, "UNAUTHENTICATED");
}

#[on_each_database]
async fn a_token_becomes_a_session_that_ends_with_it(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let mut browser = Browser::new(&server.base);
    browser.api(browser.request(Method::POST, "/auth/session")).await.refused(401, "UNAUTHENTICATED");
    let begin = |browser: &Browser, token: &str| {
        browser.request(Method::POST, "/auth/session").bearer_auth(token).header(ORIGIN, &browser.base)
    };
    browser.api(begin(&browser, "rubbish")).await.refused(401, "INVALID_TOKEN");
    let claims = landfall_server::auth::TokenClaims {
        sub: "ada".to_owned(),
        tenant: Some("acme".to_owned()),
        role: Some("tenant_admin".to_owned()),
        exp: (server.app.clock.now() + TimeDelta::minutes(30)).timestamp(),
    };
    let token = server.app.auth.issue(&claims).unwrap();
    let view = browser.api(begin(&browser, &token)).await.ok();
    assert_eq!((&view["session"]["role"], &view["ways"]["link"]), (&json!("tenant_admin"), &json!(true)));
    browser.get(&format!("{FILES}?scope=tenant")).await.ok();
    browser.get(&format!("{FILES}?scope=all")).await.refused(403, "FORBIDDEN");
    clock.advance(TimeDelta::minutes(30).to_std().unwrap());
    browser.get(FILES).await.refused(401, "SESSION_EXPIRED");
}

#[on_each_database]
async fn a_session_of_another_person_is_never_replaced(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let mut browser = signed_in(&server, "ada").await;
    let before = browser.cookies.clone();
    let code = link(&server, person("mallory")).await;
    open(&mut browser, &code).await.refused(409, "ANOTHER_SESSION");
    let token = server.client_of("mallory", "acme").token;
    let begin =
        browser.request(Method::POST, "/auth/session").bearer_auth(token).header(ORIGIN, &browser.base);
    browser.api(begin).await.refused(409, "ANOTHER_SESSION");
    assert_eq!(browser.cookies, before);
    assert_eq!(browser.session().await["userId"], "ada");
    // The link was not used up: the person may sign out and open it after all.
    browser.post("/auth/logout", json!({})).await.ok();
    open(&mut browser, &code).await.ok();
    assert_eq!(browser.session().await["userId"], "mallory");
    // The same person again: a fresh session, and the old one is over.
    let old = browser.cookies.clone();
    open(&mut browser, &link(&server, person("mallory")).await).await.ok();
    assert_ne!(browser.cookies, old);
    browser.cookies = old;
    browser.get(FILES).await.refused(401, "SESSION_EXPIRED");
}

#[on_each_database]
async fn a_person_has_a_limited_number_of_sessions_and_old_ones_are_removed(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let mut first = signed_in(&server, "ada").await;
    let bob = signed_in(&server, "bob").await;
    for _ in 0..50 {
        clock.advance(TimeDelta::seconds(1).to_std().unwrap());
        drop(signed_in(&server, "ada").await);
    }
    let count = async |what: &str| {
        let sql = format!("SELECT COUNT(*) FROM {what}");
        server.app.db.read().await.unwrap().number(sql, args![]).await.unwrap()
    };
    assert_eq!(count("sessions").await, 51);
    first.get(FILES).await.refused(401, "SESSION_EXPIRED");
    drop(bob);
    drop(link(&server, person("ada")).await);
    clock.advance(TimeDelta::days(1).to_std().unwrap());
    server.run_job("retention").await;
    assert_eq!((count("sessions").await, count("sign_in_links").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cookie_cannot_be_read_by_scripts_or_sent_by_other_sites() {
    let db = TestDb::sqlite();
    let cookie = async |server: &TestServer, base: &str| {
        let code =
            server.admin().post("/auth/links", person("ada")).await.ok()["url"].as_str().unwrap().to_owned();
        let code = code.split_once("#open=").unwrap().1.to_owned();
        let request =
            server.admin().http.post(format!("{}/auth/links/open", server.base)).header(ORIGIN, base);
        let answer = request.json(&json!({ "code": code, "confirm": true })).send().await.unwrap();
        answer.headers()[SET_COOKIE].to_str().unwrap().to_owned()
    };
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let plain = cookie(&server, &server.base).await;
    let port = server.base.rsplit_once(':').unwrap().1;
    assert!(plain.starts_with(&format!("landfall-session-{port}=")), "{plain}");
    assert!(plain.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax"), "{plain}");
    server.stop().await;
    let url = "https://files.example.org";
    let server = Setup::default().with("ROLE", "api").with("PUBLIC_URL", url).start(&db).await;
    let secure = cookie(&server, url).await;
    assert!(secure.starts_with("__Host-landfall-session="), "{secure}");
    assert!(secure.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure"), "{secure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_printed_on_a_terminal_only() {
    let db = TestDb::sqlite();
    let server = Process::start(&db, &[("ROLE", "api")]);
    let (code, printed) = process::run(&db, &["open", "--server", &server.base]);
    assert_eq!((code, printed.as_str()), (2, ""));
    // `script` of util-linux is a terminal.
    let command =
        format!("{} open --server {} --user ada --tenant acme", env!("CARGO_BIN_EXE_landfall"), server.base);
    let output = std::process::Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(db.folder.path())
        .env_clear()
        .envs(db.variables())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("util-linux has `script`");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}");
    let code = printed.split_once("/#open=").expect("a link").1.split_whitespace().next().unwrap();
    let mut browser = Browser::new(&server.base);
    open(&mut browser, code).await.ok();
    let session = browser.session().await;
    assert_eq!(
        (&session["userId"], &session["tenantId"], &session["role"]),
        (&json!("ada"), &json!("acme"), &json!("member"))
    );
    assert!(
        session["expiresAt"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap()
            > Clock::System.now()
    );
}

#[on_each_database]
async fn a_page_asks_before_a_link_signs_in(db: TestDb) {
    let Ok(chromium) = std::env::var("LANDFALL_TEST_CHROMIUM") else {
        eprintln!("not run: LANDFALL_TEST_CHROMIUM is not set; `make test` installs it");
        return;
    };
    let server = Setup::default().work(Script::new()).start(&db).await;
    let (own, foreign) = (link(&server, person("ada")).await, link(&server, person("mallory")).await);
    let shots =
        std::env::var("LANDFALL_TEST_SCREENSHOTS").unwrap_or_else(|_| db.folder.path().display().to_string());
    let arguments = [server.base.as_str(), &own, &foreign, &shots];
    let Some(mut page) = NodeClient::start("link.mjs", &arguments, &[("CHROMIUM", chromium)]) else { return };
    let steps =
        tokio::task::spawn_blocking(move || std::iter::from_fn(|| page.line()).collect::<Vec<Value>>());
    let expected =
        ["a token is ignored", "asked and signed in", "another person's link declined", "used link refused"];
    assert_eq!(steps.await.unwrap(), expected.map(|step| json!({ "step": step })));
}
