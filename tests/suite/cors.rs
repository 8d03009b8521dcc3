//! Pages of other origins use the API if the operator listed them, and not otherwise.

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::json;

use crate::support::browser::Browser;
use crate::support::{Script, Setup, TestDb, TestServer, on_each_database};

const APP: &str = "https://app.example.com";
const EVIL: &str = "https://evil.example";
const FILES: &str = "/api/v2/uploads/files";

async fn ask(server: &TestServer, origin: &str, method: &str, path: &str) -> (u16, HeaderMap) {
    let request = server.client("alice").http.request(Method::OPTIONS, format!("{}{path}", server.base));
    let request = request.header("Origin", origin).header("Access-Control-Request-Method", method);
    let response =
        request.header("Access-Control-Request-Headers", "authorization,tus-resumable").send().await;
    let response = response.expect("an answer");
    (response.status().as_u16(), response.headers().clone())
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().expect("text"))
}

/// Whether a list has all of these names.
fn has_all(list: &str, names: &[&str]) -> bool {
    let list: Vec<String> = list.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
    names.iter().all(|name| list.contains(&name.to_ascii_lowercase()))
}

#[on_each_database]
async fn a_listed_origin_is_answered_on_every_route(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").with("CORS_ORIGINS", APP).start(&db).await;
    for (method, path) in [
        ("GET", "/api/v2/uploads/files"),
        ("POST", "/api/v2/uploads/tus"),
        ("PATCH", "/api/v2/uploads/tus/00000000-0000-0000-0000-000000000000"),
        ("DELETE", "/api/v2/uploads/files/x"),
        ("GET", "/api/v2/uploads/events"),
        ("POST", "/api/v2/search"),
    ] {
        let (status, headers) = ask(&server, APP, method, path).await;
        assert_eq!(status, 204, "{method} {path}");
        assert_eq!(header(&headers, "access-control-allow-origin"), Some(APP));
        assert_eq!(header(&headers, "access-control-allow-credentials"), Some("true"));
        assert!(has_all(header(&headers, "access-control-allow-methods").unwrap(), &[method]));
        let sent = [
            "Authorization",
            "Content-Type",
            "Tus-Resumable",
            "Upload-Offset",
            "X-CSRF-Token",
            "Idempotency-Key",
        ];
        assert!(has_all(header(&headers, "access-control-allow-headers").unwrap(), &sent));
        assert_eq!(header(&headers, "vary"), Some("Origin"));
        let (_, headers) = ask(&server, EVIL, method, path).await;
        assert_eq!(header(&headers, "access-control-allow-origin"), None, "{method} {path}");
        assert_eq!(header(&headers, "vary"), Some("Origin"), "a cache tells them apart");
    }
    // What is not for pages of others.
    for path in ["/healthz", "/metrics", "/auth/login", "/"] {
        let (_, headers) = ask(&server, APP, "GET", path).await;
        assert_eq!(header(&headers, "access-control-allow-origin"), None, "{path}");
    }
    server.stop().await;
}

#[on_each_database]
async fn a_page_reads_responses_and_refusals(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").with("CORS_ORIGINS", APP).start(&db).await;
    let alice = server.client("alice");
    let read = [
        "Location",
        "Upload-Offset",
        "Upload-Length",
        "Upload-Expires",
        "Tus-Resumable",
        "ETag",
        "Retry-After",
        "X-Request-Id",
        "X-File-Id",
    ];
    for (token, path, status) in
        [(alice.token.as_str(), FILES, 200), ("nonsense", FILES, 401), (&alice.token, "/api/nothing", 404)]
    {
        let request = alice.http.get(format!("{}{path}", server.base)).bearer_auth(token);
        let response = request.header("Origin", APP).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(header(response.headers(), "access-control-allow-origin"), Some(APP));
        assert!(has_all(header(response.headers(), "access-control-expose-headers").unwrap(), &read));
    }
    // The stream of events, which has no end.
    let events = alice.request(Method::GET, "/api/v2/uploads/events").header("Accept", "text/event-stream");
    let events = events.header("Origin", APP).send().await.unwrap();
    assert_eq!(header(events.headers(), "access-control-allow-origin"), Some(APP));
    drop(events);
    server.stop().await;
}

#[on_each_database]
async fn by_default_no_origin_is_allowed(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let (status, headers) = ask(&server, APP, "GET", FILES).await;
    assert_eq!((status, header(&headers, "access-control-allow-origin")), (405, None));
    assert_eq!(header(&headers, "vary"), None);
    server.stop().await;
}

/// A person who is signed in.
async fn signed_in(server: &TestServer) -> Browser {
    let person = json!({ "tenantId": "acme", "userId": "ada", "role": "member" });
    let url = server.admin().post("/auth/links", person).await.ok()["url"].as_str().unwrap().to_owned();
    let code = url.split_once("/#open=").expect("behind the #").1;
    let mut browser = Browser::new(&server.base);
    browser.post("/auth/links/open", json!({ "code": code, "confirm": true })).await.ok();
    browser
}

/// Registers a file with the session, as a page of this origin.
async fn register(browser: &mut Browser, origin: &str, csrf: Option<&str>) -> crate::support::ApiResponse {
    let mut request = browser.request(Method::POST, "/api/v2/uploads/files/init").header("Origin", origin);
    if let Some(csrf) = csrf {
        request = request.header("X-CSRF-Token", csrf);
    }
    browser.api(request.json(&json!({ "fileName": "a", "fileSize": 1 }))).await
}

#[on_each_database]
async fn only_a_listed_origin_may_use_a_session_and_only_with_its_token(db: TestDb) {
    let server = Setup::default().work(Script::new()).with("CORS_ORIGINS", APP).start(&db).await;
    let mut browser = signed_in(&server).await;
    // What a listed page can read and another one cannot.
    let session = browser.request(Method::GET, "/auth/session").header("Origin", APP);
    let session = browser.send(session).await;
    assert_eq!(header(session.headers(), "access-control-allow-credentials"), Some("true"));
    let csrf = browser.session().await["csrfToken"].as_str().unwrap().to_owned();
    register(&mut browser, APP, Some(&csrf)).await.ok();
    register(&mut browser, APP, None).await.refused(403, "CROSS_SITE_REQUEST");
    for other in [EVIL, "null", "https://app.example.com.evil.example", "http://app.example.com"] {
        register(&mut browser, other, Some(&csrf)).await.refused(403, "CROSS_SITE_REQUEST");
    }
    // No page of another origin signs a person in.
    let token = server.client("mallory").token;
    let login = browser.request(Method::POST, "/auth/session").header("Origin", APP);
    browser.api(login.bearer_auth(token)).await.refused(403, "CROSS_SITE_REQUEST");
    server.stop().await;
}

#[on_each_database]
async fn any_origin_is_allowed_without_sessions(db: TestDb) {
    let server = Setup::default().work(Script::new()).with("CORS_ORIGINS", "*").start(&db).await;
    let (status, headers) = ask(&server, EVIL, "POST", "/api/v2/uploads/tus").await;
    assert_eq!((status, header(&headers, "access-control-allow-origin")), (204, Some("*")));
    assert_eq!(header(&headers, "access-control-allow-credentials"), None);
    let mut browser = signed_in(&server).await;
    let csrf = browser.session().await["csrfToken"].as_str().unwrap().to_owned();
    register(&mut browser, EVIL, Some(&csrf)).await.refused(403, "CROSS_SITE_REQUEST");
    server.stop().await;
}
