//! The quota of a tenant: reserved, used, refunded.

use reqwest::Method;
use serde_json::json;

use crate::support::{Script, Setup, TestDb, on_each_database};

#[on_each_database]
async fn bytes_are_reserved_then_used_then_refunded(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.send_bytes(None, "a", b"12345").await;
    assert_eq!(alice.quota().await, (5, 0));
    alice.confirm(&file).await.ok();
    assert_eq!(alice.quota().await, (0, 5));
    server.idle().await;
    alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
    assert_eq!(alice.quota().await, (0, 0));
    let other = alice.register(None, "b", 7).await;
    alice.delete(&format!("/api/v2/uploads/files/{}", other["fileId"].as_str().unwrap())).await.ok();
    assert_eq!(alice.quota().await, (0, 0));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_list_that_exceeds_the_quota_registers_nothing(db: TestDb) {
    let server =
        Setup::default().work(Script::new()).with("DEFAULT_TENANT_QUOTA_BYTES", 100).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(3).await;
    let files = json!([{ "fileName": "a", "fileSize": 60 }, { "fileName": "b", "fileSize": 60 }]);
    let refusal = alice.post(&format!("/api/v2/uploads/batches/{batch}/upload-urls"), files).await;
    let error = refusal.refused(413, "QUOTA_EXCEEDED");
    assert_eq!(error["details"]["quota"]["bytes"]["free"], 100);
    assert_eq!(alice.quota().await, (0, 0));
    assert_eq!(alice.batch(&batch).await["registered"], 0);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn the_number_of_files_is_limited_too(db: TestDb) {
    let server = Setup::default().work(Script::new()).with("DEFAULT_TENANT_QUOTA_FILES", 1).start(&db).await;
    let alice = server.client("alice");
    alice.register(None, "a", 1).await;
    let second = alice.post("/api/v2/uploads/files/init", json!({ "fileName": "b", "fileSize": 1 })).await;
    assert!(second.refused(413, "QUOTA_EXCEEDED")["message"].as_str().unwrap().contains("1 files"));
}

#[on_each_database]
async fn an_administrator_sets_another_limit_for_a_tenant(db: TestDb) {
    let server = Setup::default().work(Script::new()).with("DEFAULT_TENANT_QUOTA_BYTES", 10).start(&db).await;
    let alice = server.client_of("alice", "acme");
    let big = json!({ "fileName": "a", "fileSize": 50 });
    alice.post("/api/v2/uploads/files/init", big.clone()).await.refused(413, "QUOTA_EXCEEDED");
    let path = "/api/v2/admin/tenants/acme/quota";
    let set = |client: crate::support::Client, body: serde_json::Value| async move {
        client.send(client.request(Method::PUT, path).json(&body)).await
    };
    set(alice.clone(), json!({ "bytes": 100 })).await.refused(403, "FORBIDDEN");
    set(server.admin(), json!({ "bytes": -1 })).await.refused(400, "INVALID_REQUEST");
    assert_eq!(set(server.admin(), json!({ "bytes": 100 })).await.ok()["bytes"]["limit"], 100);
    alice.post("/api/v2/uploads/files/init", big).await.ok();
}
