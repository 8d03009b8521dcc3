//! Which tokens the server accepts.

use std::time::Duration;

use jsonwebtoken::{EncodingKey, Header};
use landfall_core::clock::Clock;
use landfall_server::app::{App, Replacements};
use landfall_server::auth::TokenClaims;
use serde_json::{Value, json};

use crate::logs::Logged;
use crate::support::{Client, Setup, TestDb, TestServer, config, manual_clock};

const QUOTA: &str = "/api/v2/uploads/quota";

fn in_an_hour() -> i64 {
    (Clock::System.now() + chrono::TimeDelta::hours(1)).timestamp()
}

async fn ask(server: &TestServer, token: &str) -> crate::support::ApiResponse {
    Client::new(server.base.clone(), token.to_owned()).get(QUOTA).await
}

fn signed(secret: &str, claims: &Value) -> String {
    jsonwebtoken::encode(&Header::default(), claims, &EncodingKey::from_secret(secret.as_bytes())).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_an_unexpired_token_signed_with_the_secret_is_accepted() {
    let db = TestDb::sqlite();
    let secret = "a secret that is long enough to be one";
    let server = Setup::default().with("JWT_SECRET", secret).with("ROLE", "api").start(&db).await;
    let good = json!({ "sub": "alice", "tenant": "acme", "exp": in_an_hour() });
    assert_eq!(ask(&server, &signed(secret, &good)).await.ok()["tenantId"], "acme");

    ask(&server, &signed("another secret that is long enough", &good)).await.refused(401, "INVALID_TOKEN");
    ask(&server, "rubbish").await.refused(401, "INVALID_TOKEN");
    let past = json!({ "sub": "alice", "tenant": "acme", "exp": in_an_hour() - 3_601 });
    ask(&server, &signed(secret, &past)).await.refused(401, "TOKEN_EXPIRED");
    for claims in [
        json!({ "sub": "alice", "tenant": "acme" }),
        json!({ "exp": in_an_hour(), "tenant": "acme" }),
        json!({ "sub": "", "tenant": "acme", "exp": in_an_hour() }),
        json!({ "sub": "alice", "tenant": "", "exp": in_an_hour() }),
    ] {
        ask(&server, &signed(secret, &claims)).await.refused(401, "INVALID_TOKEN");
    }
    let unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6NDEwMjQ0NDgwMH0.";
    ask(&server, unsigned).await.refused(401, "INVALID_TOKEN");
    let stranger = server.client("x").http.get(format!("{}{QUOTA}", server.base)).send().await.unwrap();
    assert_eq!(stranger.status(), 401);
}

/// A user whose name is that of a tenant must not become one of its users.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_without_a_tenant_gets_the_one_that_is_configured_or_none() {
    let secret = "a secret that is long enough to be one";
    let start = async |db: &TestDb, default: &str| {
        let setup = Setup::default().with("JWT_SECRET", secret).with("ROLE", "api");
        setup.with("DEFAULT_TENANT", default).start(db).await
    };
    let token = |tenant: Option<&str>| match tenant {
        Some(tenant) => signed(secret, &json!({ "sub": "acme", "tenant": tenant, "exp": in_an_hour() })),
        None => signed(secret, &json!({ "sub": "acme", "exp": in_an_hour() })),
    };

    let db = TestDb::sqlite();
    let server = start(&db, "").await;
    ask(&server, &token(None)).await.refused(401, "INVALID_TOKEN");
    assert_eq!(ask(&server, &token(Some("globex"))).await.ok()["tenantId"], "globex");

    let db = TestDb::sqlite();
    let server = start(&db, "everyone").await;
    assert_eq!(ask(&server, &token(None)).await.ok()["tenantId"], "everyone");
    assert_eq!(ask(&server, &token(Some("globex"))).await.ok()["tenantId"], "globex");

    let db = TestDb::sqlite();
    let server = start(&db, "{user}").await;
    assert_eq!(ask(&server, &token(None)).await.ok()["tenantId"], "acme");
    assert_eq!(ask(&server, &token(Some("acme"))).await.ok()["tenantId"], "acme");
    ask(&server, &token(Some("globex"))).await.refused(401, "INVALID_TOKEN");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_secret_is_private_to_the_server_and_only_used_on_this_machine() {
    use std::os::unix::fs::PermissionsExt;
    let db = TestDb::sqlite();
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let file = db.folder.path().join("jwt-secret");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = std::fs::read_to_string(&file).unwrap();
    server.stop().await;
    let _again = Setup::default().with("ROLE", "api").start(&db).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), kept, "tokens stay valid after a restart");

    let elsewhere = [("BIND_ADDRESS", "0.0.0.0".to_owned()), ("TRUSTED_PROXIES", "private".to_owned())];
    let open = config(&TestDb::sqlite(), &elsewhere);
    let refused = App::start(open, Replacements::default()).await.err().expect("refused");
    assert!(refused.to_string().contains("JWT_SECRET"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_tokens_of_an_address_are_limited_and_valid_ones_are_always_accepted() {
    let db = TestDb::sqlite();
    let clock = manual_clock();
    let setup = Setup::default().with("ROLE", "api").with("AUTH_FAILURES_PER_MINUTE", 3).clock(&clock);
    let server = setup.start(&db).await;
    let alice = server.client("alice");
    let expired = server.app.auth.issue(&TokenClaims {
        sub: "alice".to_owned(),
        tenant: None,
        role: None,
        exp: server.app.clock.now().timestamp() - 1,
    });
    let expired = expired.unwrap();
    for _ in 0..3 {
        ask(&server, "wrong").await.refused(401, "INVALID_TOKEN");
        // An expired token was valid, and a request without a token is no attempt: neither counts.
        ask(&server, &expired).await.refused(401, "TOKEN_EXPIRED");
        assert_eq!(alice.http.get(format!("{}{QUOTA}", server.base)).send().await.unwrap().status(), 401);
    }
    clock.advance(Duration::from_secs(15));
    let limited =
        alice.http.get(format!("{}{QUOTA}", server.base)).bearer_auth("wrong").send().await.unwrap();
    assert_eq!((limited.status().as_u16(), limited.headers()["retry-after"].to_str().unwrap()), (429, "46"));
    let ticket = alice.http.get(format!("{}/api/v2/uploads/events?ticket=wrong", server.base));
    alice.send(ticket.header("Accept", "text/event-stream")).await.refused(429, "TOO_MANY_AUTH_FAILURES");
    alice.get(QUOTA).await.ok();
    clock.advance(Duration::from_secs(46));
    ask(&server, "wrong").await.refused(401, "INVALID_TOKEN");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_wrong_tokens_is_seen_in_the_metrics_and_in_one_line_of_the_log() {
    let db = TestDb::sqlite();
    let logged = Logged::start(&db, &[("LOG_FORMAT", "json"), ("ROLE", "api")]);
    let client = logged.process.client();
    let url = format!("{}{QUOTA}", client.base);
    for _ in 0..300 {
        let refused = client.http.get(&url).bearer_auth("wrong").send().await.unwrap().status().as_u16();
        assert!(refused == 401 || refused == 429, "{refused}");
    }
    let metrics =
        client.http.get(format!("{}/metrics", client.base)).send().await.unwrap().text().await.unwrap();
    let counted = "landfall_auth_failures_total{code=\"INVALID_TOKEN\"} 300";
    assert!(metrics.contains(counted), "{metrics}");
    let about = |line: &Value| line["message"].as_str().unwrap().contains("an address sends wrong tokens");
    let lines: Vec<Value> = logged.lines().into_iter().filter(about).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((&lines[0]["level"], &lines[0]["address"]), (&json!("WARN"), &json!("127.0.0.1")));
}
