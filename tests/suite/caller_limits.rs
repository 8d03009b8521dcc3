//! What one caller or tenant may store and how often it may write: no caller fills the database past its quota.

use std::time::Duration;

use landfall_core::caller::{Reach, TenantUser};
use landfall_server::operations::Start;
use landfall_server::records::files::dead_letters::Filter;
use landfall_server::recovery::Sweep;
use landfall_store::{Rows, args};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::offline_app::OfflineApp;
use crate::support::{Client, Script, Setup, TestDb, manual_clock, on_each_database};

const BATCHES: &str = "/api/v2/uploads/batches";
const FILES: &str = "/api/v2/uploads/files/init";
const DAY: Duration = Duration::from_hours(24);

/// An object of exactly so many bytes as JSON.
fn object_of(bytes: usize) -> Value {
    let object = json!({ "a": "x".repeat(bytes - 8) });
    assert_eq!(object.to_string().len(), bytes);
    object
}

/// Sends a request, and returns the refusal's code and the seconds in `Retry-After`.
async fn refusal(client: &Client, path: &str, body: Value) -> (u16, String, Option<u64>) {
    let response = client.request(Method::POST, path).json(&body).send().await.expect("an answer");
    let status = response.status().as_u16();
    let wait = response.headers().get("retry-after").map(|wait| wait.to_str().unwrap().parse().unwrap());
    let body: Value = response.json().await.expect("JSON");
    (status, body["error"]["code"].as_str().unwrap_or_default().to_owned(), wait)
}

#[on_each_database]
async fn metadata_and_mapping_have_up_to_16_kb_and_are_not_in_lists(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let (most, more) = (object_of(16 << 10), object_of((16 << 10) + 1));

    let full = json!({ "fileCount": 1, "metadata": most, "mapping": most });
    let batch = alice.post(BATCHES, full).await.ok()["batchId"].as_str().unwrap().to_owned();
    let refused = alice.post(BATCHES, json!({ "fileCount": 1, "metadata": more })).await;
    let error = refused.refused(400, "INVALID_METADATA");
    assert!(error["message"].as_str().unwrap().contains("the limit is 16384"), "{error}");
    alice.post(BATCHES, json!({ "fileCount": 1, "mapping": more })).await.refused(400, "INVALID_MAPPING");
    let file = |mapping: &Value| json!({ "fileName": "a", "fileSize": 1, "mapping": mapping });
    alice.post(FILES, file(&most)).await.ok();
    alice.post(FILES, file(&more)).await.refused(400, "INVALID_MAPPING");
    let several = json!([file(&most), file(&more)]);
    let refused = alice.post(&format!("{BATCHES}/{batch}/upload-urls"), several).await;
    assert_eq!(refused.refused(400, "INVALID_MAPPING")["details"]["index"], 1);

    let listed = alice.get(BATCHES).await.ok();
    assert_eq!(listed["batches"].as_array().unwrap().len(), 1);
    assert!(listed.to_string().len() < 1_000, "a list has no metadata: {listed}");
    assert!(alice.get("/api/v2/uploads/files").await.ok().to_string().len() < 4_000);
    assert_eq!(alice.batch(&batch).await["metadata"], most, "the batch itself has it");
    server.stop().await;
}

#[on_each_database]
async fn a_tenant_has_a_maximum_of_active_batches(db: TestDb) {
    let server = Setup::default().work(Script::new()).with("MAX_ACTIVE_BATCHES", 2).start(&db).await;
    let (alice, bob) = (server.client_of("alice", "acme"), server.client_of("bob", "acme"));
    let open = json!({ "fileCount": 1 });
    let first = alice.open_batch(1).await;
    bob.open_batch(1).await;
    let error = alice.post(BATCHES, open.clone()).await.refused(409, "TOO_MANY_BATCHES");
    assert!(error["message"].as_str().unwrap().contains("2 active batches"), "{error}");
    server.client_of("alice", "other").post(BATCHES, open.clone()).await.ok();
    alice.post(&format!("{BATCHES}/{first}/cancel"), json!({})).await.ok();
    alice.post(BATCHES, open).await.ok();
    server.stop().await;
}

#[on_each_database]
async fn batches_that_are_opened_at_the_same_time_stay_below_the_maximum(db: TestDb) {
    let server = Setup::default().work(Script::new()).with("MAX_ACTIVE_BATCHES", 3).start(&db).await;
    let alice = server.client("alice");
    let open = || async { alice.post(BATCHES, json!({ "fileCount": 1 })).await.status };
    let opened = futures_util::future::join_all((0..12).map(|_| open())).await;
    assert_eq!(opened.iter().filter(|status| **status == 201).count(), 3, "{opened:?}");
    server.stop().await;
}

#[on_each_database]
async fn deleted_files_count_among_those_that_a_tenant_registers(db: TestDb) {
    let clock = manual_clock();
    let start = async || {
        Setup::default()
            .clock(&clock)
            .work(Script::new())
            .with("REGISTRATIONS_PER_TENANT", "6/6h")
            .start(&db)
            .await
    };
    let (one, other) = (start().await, start().await);
    let (alice, bob) = (one.client_of("alice", "acme"), other.client_of("bob", "acme"));
    // A batch, four files, and one more for the first KB of a mapping.
    let batch = alice.open_batch(9).await;
    for client in [&alice, &bob, &bob] {
        let file = client.register(None, "a", 1).await["fileId"].as_str().unwrap().to_owned();
        client.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
    }
    let mapped = json!({ "fileName": "a", "fileSize": 1, "mapping": { "a": 1 } });
    alice.post(FILES, mapped).await.ok();
    let file = json!({ "fileName": "a", "fileSize": 1 });
    for client in [&alice, &bob] {
        let refused = refusal(client, FILES, file.clone()).await;
        assert_eq!(refused, (429, "TOO_MANY_REGISTRATIONS".to_owned(), Some(3_600)), "one an hour");
        assert_eq!(refusal(client, BATCHES, json!({ "fileCount": 1 })).await, refused);
    }
    let in_batch = format!("{BATCHES}/{batch}/upload-urls");
    let (status, _, wait) = refusal(&alice, &in_batch, json!([file, file])).await;
    assert_eq!((status, wait), (429, Some(7_200)), "two come in two hours");
    let (status, _, wait) = refusal(&alice, &in_batch, json!(vec![&file; 7])).await;
    assert_eq!((status, wait), (429, None), "seven at once never come");
    assert_eq!(alice.batch(&batch).await["registered"], 0, "a refused request takes no place");
    one.client_of("alice", "other").post(FILES, file.clone()).await.ok();

    clock.advance(Duration::from_hours(2));
    alice.post(&in_batch, json!([file, file])).await.ok();
    alice.post(FILES, file).await.refused(429, "TOO_MANY_REGISTRATIONS");
    one.assert_audit_clean().await;
    one.stop().await;
    other.stop().await;
}

#[on_each_database]
async fn requests_that_change_something_are_limited_for_each_caller(db: TestDb) {
    let clock = manual_clock();
    let server =
        Setup::default().clock(&clock).work(Script::new()).with("WRITES_PER_USER", "3/30s").start(&db).await;
    let alice = server.client_of("alice", "acme");
    let file = alice.register(None, "a", 1).await["fileId"].as_str().unwrap().to_owned();
    // A refused request counts as well.
    alice.confirm(&file).await.refused(409, "UPLOAD_MISSING");
    alice.open_batch(1).await;
    let refused = refusal(&alice, BATCHES, json!({ "fileCount": 1 })).await;
    assert_eq!(refused, (429, "TOO_MANY_WRITES".to_owned(), Some(10)));
    let error = alice.delete(&format!("/api/v2/uploads/files/{file}")).await.refused(429, "TOO_MANY_WRITES");
    assert_eq!(error["retryable"], true);

    alice.get("/api/v2/uploads/files").await.ok();
    alice.post("/api/v2/search", json!({ "query": "tide" })).await.ok();
    server.client_of("alice", "other").open_batch(1).await;
    server.client_of("bob", "acme").open_batch(1).await;
    clock.advance(Duration::from_secs(10));
    alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
    alice.post(BATCHES, json!({ "fileCount": 1 })).await.refused(429, "TOO_MANY_WRITES");
    server.stop().await;
}

#[on_each_database]
async fn a_batch_goes_with_the_last_row_of_its_files(db: TestDb) {
    let clock = manual_clock();
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    let batch = async |status: &str| {
        let id = Uuid::new_v4();
        rest.sql(
            "INSERT INTO batches (id, tenant_id, user_id, status, file_count, created_at, updated_at, expires_at)
             VALUES ($1, 'alice', 'alice', $2, 0, $3, $3, $3)",
            args![id, status, rest.now()],
        )
        .await;
        id
    };
    let left = async || rest.number("SELECT COUNT(*) FROM batches").await;
    let retain = async || rest.app.retention.sweep_once(rest.now()).await.expect("the sweep runs");
    for status in ["cancelled", "expired", "completed", "active"] {
        batch(status).await;
    }
    let with_a_file = batch("completed").await;
    rest.sql(
        "INSERT INTO files (id, tenant_id, user_id, batch_id, file_name, size_bytes, status, next_stage, created_at,
                            updated_at, deleted_at)
         VALUES ($1, 'alice', 'alice', $1, 'a', 1, 'deleted', 'extract', $2, $2, $3)",
        args![with_a_file, rest.now(), rest.now() + chrono::TimeDelta::days(3)],
    )
    .await;
    clock.advance(7 * DAY);
    assert_eq!(retain().await.metrics["batches"], 0);
    clock.advance(Duration::from_secs(1));
    assert_eq!(retain().await.metrics["batches"], 3);
    assert_eq!(left().await, 2, "the active one, and the one with a tombstone");
    clock.advance(3 * DAY);
    let report = retain().await;
    assert_eq!((&report.metrics["tombstones"], &report.metrics["batches"]), (&json!(1), &json!(1)));
    assert_eq!(left().await, 1);
}

#[on_each_database]
async fn the_last_operations_of_a_user_are_kept(db: TestDb) {
    let rest = OfflineApp::open(&db, &manual_clock(), &[]).await;
    let mut rows = Rows::default();
    for number in 1..=1_005_u128 {
        rows.push(args![Uuid::from_u128(number), json!([]), rest.now()]);
    }
    let insert = async |rows: Rows| {
        let tx = rest.app.db.read().await.unwrap();
        let (values, arguments) = rows.into_values(&tx);
        drop(tx);
        let sql = format!(
            "INSERT INTO operations (id, tenant_id, user_id, status, canaries, errors, cursor_at, cursor_id, created_at,
                 updated_at, ended_at)
             SELECT column1, 'acme', 'alice', 'completed', column2, column2, column3, column1, column3, column3, column3
             FROM ({values}) AS v WHERE column1 IS NOT NULL"
        );
        rest.sql(&sql, arguments).await;
    };
    for batch in rows.batches() {
        insert(batch).await;
    }
    let user = TenantUser::new("acme", "alice");
    let filter = Filter::of(Reach::User(user.clone()));
    let retry = Start::retry_all(rest.app.clock.new_id(), user, filter, rest.now());
    rest.app.db.write(retry).await.unwrap();
    assert_eq!(rest.number("SELECT COUNT(*) FROM operations").await, 1_000);
    assert_eq!(rest.number("SELECT COUNT(*) FROM operations WHERE ended_at IS NULL").await, 1, "the new one");
}
