//! API keys: what each may do, until when, and that no one sees them again.

use std::time::Duration;

use landfall_core::caller::{KeyScope, Role};
use landfall_server::http::document;
use landfall_store::args;
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::support::process::Process;
use crate::support::{Client, Setup, TestDb, TestServer, manual_clock, on_each_database};

const KEYS: &str = "/api/v2/keys";
const FILES: &str = "/api/v2/uploads/files";

/// Creates a key, and returns it with a client that uses it.
async fn create(server: &TestServer, creator: &Client, wanted: Value) -> (Value, Client) {
    let created = creator.post(KEYS, wanted).await.ok();
    let key = created["key"].as_str().expect("a key").to_owned();
    (created, Client::new(server.base.clone(), key))
}

fn id(key: &Value) -> &str {
    key["keyId"].as_str().expect("an id")
}

#[on_each_database]
async fn a_key_acts_for_its_user_until_it_is_revoked(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).start(&db).await;
    let alice = server.client_of("alice", "acme");
    let file = alice.upload("hers.txt", b"The tide comes in.").await;
    server.idle().await;
    let (key, program) = create(&server, &alice, json!({ "name": "backup", "scopes": ["read"] })).await;
    let text = key["key"].as_str().unwrap();
    assert!(text.starts_with("lf_") && text.len() == 49, "{text}");
    assert_eq!(
        (&key["tenantId"], &key["userId"], &key["role"]),
        (&json!("acme"), &json!("alice"), &json!("member"))
    );

    program.get(&format!("{FILES}/{file}")).await.ok();
    let seen = &alice.get(KEYS).await.ok()["keys"][0];
    assert_eq!((&seen["name"], &seen["lastUsedFrom"]), (&json!("backup"), &json!("127.0.0.1")));
    assert_eq!(seen["lastUsedAt"], json!(server.app.clock.now()));
    assert!(!alice.get(KEYS).await.ok().to_string().contains(text), "it is shown once");
    let stored: Vec<(String,)> =
        server.app.db.read().await.unwrap().rows("SELECT hash FROM api_keys", args![]).await.unwrap();
    assert!(!stored[0].0.contains(&text[3..]) && stored[0].0.len() == 64, "{stored:?}");

    // A minute's uses are one.
    clock.advance(Duration::from_secs(59));
    program.get(FILES).await.ok();
    assert_eq!(alice.get(KEYS).await.ok()["keys"][0]["lastUsedAt"], seen["lastUsedAt"]);
    clock.advance(Duration::from_secs(1));
    program.get(FILES).await.ok();
    assert_ne!(alice.get(KEYS).await.ok()["keys"][0]["lastUsedAt"], seen["lastUsedAt"]);

    assert_eq!(alice.delete(&format!("{KEYS}/{}", id(&key))).await.status, 204);
    program.get(FILES).await.refused(401, "INVALID_TOKEN");
    let revoked = alice.get(KEYS).await.ok()["keys"][0].clone();
    assert_eq!((&revoked["revokedBy"], revoked["revokedAt"].is_string()), (&json!("alice"), true));
    assert_eq!(alice.delete(&format!("{KEYS}/{}", id(&key))).await.status, 204, "once more changes nothing");
    assert_eq!(alice.get(KEYS).await.ok()["keys"][0], revoked);
}

#[on_each_database]
async fn a_key_expires(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).start(&db).await;
    let alice = server.client("alice");
    let at = server.app.clock.now() + chrono::TimeDelta::hours(1);
    let wanted = json!({ "name": "for an hour", "scopes": ["read"], "expiresAt": at });
    let (_, program) = create(&server, &alice, wanted).await;
    clock.advance(Duration::from_mins(59));
    program.get(FILES).await.ok();
    clock.advance(Duration::from_mins(1));
    program.get(FILES).await.refused(401, "TOKEN_EXPIRED");
    let past = json!({ "name": "too late", "scopes": ["read"], "expiresAt": at });
    alice.post(KEYS, past).await.refused(400, "INVALID_REQUEST");
}

/// Calls every operation with keys of a single scope: only the one that the operation names lets it pass.
#[on_each_database]
async fn each_operation_needs_exactly_its_scope(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let admin = server.admin();
    let mut programs = Vec::new();
    for scope in KeyScope::ALL.iter().copied() {
        let role = if scope == KeyScope::Admin { "operator" } else { "member" };
        let wanted = json!({ "name": scope.name(), "scopes": [scope.name()], "role": role });
        programs.push((scope, create(&server, &admin, wanted).await.1));
    }
    let mut checked = 0;
    for (path, item) in document()["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            let Some(needed) = operation["x-scope"].as_str() else {
                assert!(operation["security"].is_array(), "{method} {path} is public, or has a scope");
                continue;
            };
            // A stream has no end. A key has no session, and begins none.
            if ["streamEvents", "logOut", "beginSession"].iter().any(|name| operation["operationId"] == *name)
            {
                continue;
            }
            let path = path.replace("{stage}", "extract");
            let parts: Vec<&str> = path
                .split('/')
                .map(|part| if part.starts_with('{') { "00000000-0000-0000-0000-000000000000" } else { part })
                .collect();
            for (scope, program) in &programs {
                let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
                let request = program.request(method.clone(), &parts.join("/")).body("{}");
                let answer = program.send(request).await;
                let what = format!("{method} {path} with {scope}: {answer:?}");
                // The answer to a HEAD has no body.
                let is_refused = answer.body["error"]["code"] == "INSUFFICIENT_SCOPE"
                    || (method == Method::HEAD && answer.status == 403);
                assert_eq!(is_refused, scope.name() != needed, "{what}");
                checked += 1;
            }
        }
    }
    assert!(checked > 150, "{checked}");
}

#[on_each_database]
async fn a_key_gives_no_more_than_its_creator_has(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client_of("alice", "acme");
    let dana = server.client_with("dana", "acme", Role::TenantAdmin);
    let key = |more: Value| {
        let mut wanted = json!({ "name": "k", "scopes": ["read"] });
        wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        wanted
    };
    for wanted in [
        key(json!({ "userId": "bob" })),
        key(json!({ "tenantId": "evilcorp" })),
        key(json!({ "scopes": ["admin"], "role": "tenant_admin" })),
        key(json!({ "scopes": ["admin"], "role": "operator" })),
    ] {
        alice.post(KEYS, wanted).await.refused(403, "FORBIDDEN");
    }
    dana.post(KEYS, key(json!({ "userId": "bob" }))).await.ok();
    dana.post(KEYS, key(json!({ "tenantId": "evilcorp" }))).await.refused(403, "FORBIDDEN");
    dana.post(KEYS, key(json!({ "scopes": ["admin"], "role": "operator" }))).await.refused(403, "FORBIDDEN");
    for wanted in [
        key(json!({ "scopes": [] })),
        key(json!({ "name": "  " })),
        key(json!({ "name": "x".repeat(101) })),
        key(json!({ "userId": "" })),
        key(json!({ "scopes": ["everything"] })),
        key(json!({ "more": 1 })),
    ] {
        alice.post(KEYS, wanted).await.refused(400, "INVALID_REQUEST");
    }
    dana.post(KEYS, key(json!({ "role": "tenant_admin" }))).await.refused(400, "INVALID_REQUEST");

    // With a key, keys of no more scopes and no longer life.
    let at = server.app.clock.now() + chrono::TimeDelta::hours(1);
    let (_, program) =
        create(&server, &alice, json!({ "name": "k", "scopes": ["manage", "read"], "expiresAt": at })).await;
    program
        .post(KEYS, key(json!({ "scopes": ["upload"], "expiresAt": at })))
        .await
        .refused(403, "INSUFFICIENT_SCOPE");
    program.post(KEYS, key(json!({}))).await.refused(400, "INVALID_REQUEST");
    program.post(KEYS, key(json!({ "expiresAt": at }))).await.ok();
    // Without the scope admin, the role is not used.
    let (_, reader) = create(&server, &server.admin(), json!({ "name": "k", "scopes": ["read"] })).await;
    reader.get(&format!("{FILES}?scope=all")).await.refused(403, "FORBIDDEN");
    let wanted = json!({ "name": "k", "scopes": ["read", "admin"], "role": "operator" });
    let (_, operator) = create(&server, &server.admin(), wanted).await;
    operator.get(&format!("{FILES}?scope=all")).await.ok();
}

#[on_each_database]
async fn a_user_has_a_limited_number_of_keys(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let mut last = Value::Null;
    for _ in 0..50 {
        last = alice.post(KEYS, json!({ "name": "k", "scopes": ["read"] })).await.ok();
    }
    alice.post(KEYS, json!({ "name": "k", "scopes": ["read"] })).await.refused(409, "TOO_MANY_KEYS");
    server.client("bob").post(KEYS, json!({ "name": "k", "scopes": ["read"] })).await.ok();
    alice.delete(&format!("{KEYS}/{}", id(&last))).await;
    alice.post(KEYS, json!({ "name": "k", "scopes": ["read"] })).await.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_none_is_refused() {
    let db = TestDb::sqlite();
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    for wrong in ["lf_", "lf_x", &format!("lf_{}", "0".repeat(46)), &format!("lf_{}", "ä".repeat(23))] {
        let client = Client::new(server.base.clone(), wrong.to_owned());
        let answer = client
            .http
            .get(format!("{}{FILES}", server.base))
            .header("authorization", format!("Bearer {wrong}").into_bytes());
        let status = answer.send().await.unwrap().status();
        assert_eq!(status, 401, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_creates_lists_and_revokes_keys() {
    let db = TestDb::sqlite();
    let server = Process::start(&db, &[]);
    let run = |arguments: &[&str]| {
        let output = Process::command(&db)
            .args(arguments)
            .env("LANDFALL_URL", &server.base)
            .env("LANDFALL_TOKEN", &server.token)
            .output()
            .expect("the program runs");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let create = [
        "keys",
        "create",
        "--name",
        "ci",
        "--scope",
        "read",
        "--scope",
        "upload",
        "--user",
        "ci",
        "--tenant",
        "acme",
        "--expires-in",
        "90d",
    ];
    let (good, key) = run(&create);
    assert!(good && key.trim().starts_with("lf_"), "{key}");
    let client = Client::new(server.base.clone(), key.trim().to_owned());
    client.get(FILES).await.ok();
    let (_, listed) = run(&["keys", "list", "--of", "all"]);
    assert!(
        listed.contains("acme/ci") && listed.contains("read,upload") && !listed.contains(key.trim()),
        "{listed}"
    );
    let (_, listed) = run(&["keys", "list", "--of", "all", "--json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let (good, _) = run(&["keys", "revoke", id(&listed["keys"][0])]);
    assert!(good);
    client.get(FILES).await.refused(401, "INVALID_TOKEN");
    let (_, log) = run(&["audit-log", "--action", "revokeKey", "--json"]);
    let entry: Map<String, Value> = serde_json::from_str(log.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&entry["actorUserId"], &entry["outcome"]), (&json!("admin"), &json!("done")));
    let (_, log) = run(&["audit-log"]);
    assert!(log.contains("createKey") && log.contains("revokeKey"), "{log}");
}
