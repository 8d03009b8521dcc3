//! The audit log has every action of an administrator and every refusal, with actor, target and address.

use std::time::Duration;

use landfall_core::caller::Role;
use landfall_store::args;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::offline_app::Sql;
use crate::support::{Client, Setup, TestDb, manual_clock, on_each_database};

const LOG: &str = "/api/v2/admin/audit-log";
const FILES: &str = "/api/v2/uploads/files";

async fn entries(client: &Client, query: &str) -> Vec<Value> {
    client.get(&format!("{LOG}?{query}")).await.ok()["entries"].as_array().expect("a list").clone()
}

#[on_each_database]
async fn actions_of_administrators_are_written_down_with_their_outcome(db: TestDb) {
    let server = Setup::default().start(&db).await;
    let bob = server.client_of("bob", "acme");
    let dana = server.client_with("dana", "acme", Role::TenantAdmin);
    let file = bob.upload("a.txt", b"The tide.").await;
    server.idle().await;
    let path = format!("{FILES}/{file}");
    assert_eq!(dana.delete(&path).await.status, 204);
    dana.post(&format!("{path}/retry"), json!({})).await.refused(410, "FILE_DELETED");

    let root = server.admin();
    let quota =
        root.request(Method::PUT, "/api/v2/admin/tenants/acme/quota").json(&json!({ "bytes": 1_000 }));
    root.send(quota).await.ok();
    let deleted = &entries(&root, "action=deleteFile").await[0];
    let expected = json!({
        "actorTenantId": "acme", "actorUserId": "dana", "actorRole": "tenant_admin", "credential": "token",
        "address": "127.0.0.1", "action": "deleteFile", "method": "DELETE", "path": path,
        "targetTenantId": "acme", "targetUserId": "bob", "outcome": "done", "status": 204, "code": null,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&deleted[name], value, "{name}: {deleted}");
    }
    assert!(deleted["requestId"].is_string());
    let retried = &entries(&root, "action=retryFile").await[0];
    assert_eq!((&retried["outcome"], &retried["code"]), (&json!("failed"), &json!("FILE_DELETED")));
    let quota = &entries(&root, "action=setQuota").await[0];
    assert_eq!((&quota["actorUserId"], &quota["targetTenantId"]), (&json!("root"), &json!("acme")));
    // What members do with their own files is in the history of these, and so are the uploads of administrators.
    assert!(entries(&root, "actor=bob").await.is_empty());
    let before = entries(&root, "actor=dana").await.len();
    dana.upload("hers.txt", b"The ebb.").await;
    dana.search("ebb").await;
    assert_eq!(entries(&root, "actor=dana").await.len(), before);
    let his = bob.send_bytes(None, "his.txt", b"The flood.").await;
    dana.confirm(&his).await.ok();
    assert_eq!(entries(&root, "actor=dana").await[0]["action"], "confirmFile");
}

#[on_each_database]
async fn an_action_is_in_the_log_before_it_begins(db: TestDb) {
    let server = Setup::default().start(&db).await;
    let root = server.admin();
    // A database that takes no entry lets no action through.
    let block = "DROP TABLE audit_log";
    server.app.db.write(Sql(block.to_owned(), args![])).await.unwrap();
    let answer = root.post("/api/v2/admin/queues/extract/pause", json!({})).await;
    assert!(answer.status >= 500, "{answer:?}");
    let paused = "SELECT COUNT(*) FROM paused_stages";
    assert_eq!(server.app.db.read().await.unwrap().number(paused, args![]).await.unwrap(), 0);
}

#[on_each_database]
async fn refusals_are_written_down_also_where_the_caller_sees_that_there_is_nothing(db: TestDb) {
    let server = Setup::default().start(&db).await;
    let (alice, bob) = (server.client_of("alice", "globex"), server.client_of("bob", "acme"));
    let file = bob.upload("a.txt", b"The tide.").await;
    alice.get(&format!("{FILES}/{file}")).await.refused(404, "FILE_NOT_FOUND");
    alice.get(&format!("{FILES}?scope=all")).await.refused(403, "FORBIDDEN");
    alice.get("/api/v2/admin/queue-status").await.refused(403, "FORBIDDEN");
    let missing = uuid::Uuid::nil();
    alice.get(&format!("{FILES}/{missing}")).await.refused(404, "FILE_NOT_FOUND");
    Client::new(server.base.clone(), "wrong".to_owned()).get(FILES).await.refused(401, "INVALID_TOKEN");

    let refused = entries(&server.admin(), "outcome=refused").await;
    let seen: Vec<(&str, i64, &str)> = refused
        .iter()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or("");
            (text("action"), entry["status"].as_i64().unwrap(), text("actorUserId"))
        })
        .collect();
    let expected = [
        ("listFiles", 401, ""),
        ("showQueueStatus", 403, "alice"),
        ("listFiles", 403, "alice"),
        ("showFile", 404, "alice"),
    ];
    assert_eq!(seen, expected, "what does not exist is no refusal");
}

#[on_each_database]
async fn reads_of_what_is_not_their_own_are_written_down_once_in_a_while(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).start(&db).await;
    let bob = server.client_of("bob", "acme");
    let dana = server.client_with("dana", "acme", Role::TenantAdmin);
    let his = bob.upload("his.txt", b"The tide.").await;
    let hers = dana.upload("hers.txt", b"The tide.").await;
    for _ in 0..3 {
        dana.get(&format!("{FILES}/{his}")).await.ok();
        dana.get(&format!("{FILES}/{hers}")).await.ok();
        dana.get(FILES).await.ok();
        dana.get(&format!("{FILES}?scope=tenant")).await.ok();
    }
    let root = server.admin();
    let reads = |entries: &[Value]| -> Vec<String> {
        let reads = entries.iter().filter(|entry| entry["method"] == "GET");
        reads.map(|entry| format!("{} {}", entry["action"], entry["targetUserId"])).collect()
    };
    let seen = reads(&entries(&root, "actor=dana").await);
    assert_eq!(seen, [r#""listFiles" null"#, r#""showFile" "bob""#]);
    clock.advance(Duration::from_mins(10));
    dana.get(&format!("{FILES}/{his}")).await.ok();
    assert_eq!(reads(&entries(&root, "actor=dana").await).len(), 3);
}

#[on_each_database]
async fn the_log_is_listed_filtered_exported_and_kept_for_its_time(db: TestDb) {
    let clock = manual_clock();
    let setup = Setup::default().clock(&clock).with("AUDIT_LOG_RETENTION_DAYS", 30);
    let server = setup.with("RETENTION_SCHEDULE", "0 0 1 1 *").start(&db).await;
    let root = server.admin();
    for _ in 0..3 {
        root.post("/api/v2/admin/queues/extract/pause", json!({})).await.ok();
        clock.advance(Duration::from_mins(1));
    }
    let dana = server.client_with("dana", "acme", Role::TenantAdmin);
    dana.post("/api/v2/uploads/stuck/retry-all", json!({})).await.ok();

    let first = root.get(&format!("{LOG}?limit=2&method=POST")).await;
    first.refused(400, "INVALID_REQUEST");
    let first = root.get(&format!("{LOG}?limit=2&action=pauseQueue")).await.ok();
    let cursor = first["nextCursor"].as_str().expect("another page");
    let second = root.get(&format!("{LOG}?limit=2&action=pauseQueue&cursor={cursor}")).await.ok();
    assert_eq!(
        (first["entries"].as_array().unwrap().len(), second["entries"].as_array().unwrap().len()),
        (2, 1)
    );
    assert_eq!(second["nextCursor"], Value::Null);

    // An administrator sees what concerns the tenant, and nothing else.
    let own = entries(&dana, "").await;
    assert!(own.iter().all(|entry| entry["actorTenantId"] == "acme"), "{own:?}");
    dana.get(&format!("{LOG}?scope=all")).await.refused(403, "FORBIDDEN");
    server.client("alice").get(LOG).await.refused(403, "FORBIDDEN");

    let export =
        root.http.get(format!("{}{LOG}/export?action=pauseQueue", server.base)).bearer_auth(&root.token);
    let export = export.send().await.unwrap();
    assert_eq!(export.headers()["content-type"], "application/x-ndjson");
    let lines: Vec<Value> =
        export.text().await.unwrap().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 3);

    clock.advance(Duration::from_hours(30 * 24));
    server.run_job("retention").await;
    let left = entries(&root, "").await;
    assert!(left.iter().all(|entry| entry["action"] != "pauseQueue"), "{left:?}");
    assert!(!left.is_empty(), "what is young stays");
}

#[on_each_database]
async fn a_flood_of_refusals_does_not_fill_the_log(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).start(&db).await;
    let alice = server.client("alice");
    for _ in 0..100 {
        alice.get("/api/v2/admin/queue-status").await.refused(403, "FORBIDDEN");
    }
    let count = "SELECT COUNT(*) FROM audit_log";
    assert_eq!(server.app.db.read().await.unwrap().number(count, args![]).await.unwrap(), 60);
    clock.advance(Duration::from_mins(1));
    alice.get("/api/v2/admin/queue-status").await.refused(403, "FORBIDDEN");
    assert_eq!(server.app.db.read().await.unwrap().number(count, args![]).await.unwrap(), 61);
}
