//! Which tokens the server accepts.

use jsonwebtoken::{EncodingKey, Header};
use landfall_core::clock::Clock;
use landfall_server::app::{App, Replacements};
use serde_json::{Value, json};

use crate::support::{Client, Setup, TestDb, TestServer, config};

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

    let open = config(&TestDb::sqlite(), &[("BIND_ADDRESS", "0.0.0.0".to_owned())]);
    let refused = App::start(open, Replacements::default()).await.err().expect("refused");
    assert!(refused.to_string().contains("JWT_SECRET"), "{refused}");
}
