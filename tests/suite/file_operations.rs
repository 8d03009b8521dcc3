//! Operations on files of any state: each file is changed and counted once, whichever processes take the steps or die between
//! them, and only files that their user may change.

use std::future::pending;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use landfall_core::caller::Role;
use landfall_core::failure::Failure;
use landfall_server::operations::Step as Taken;
use landfall_server::stages::{Job, Output, Work};
use landfall_store::args;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::scripted_failures::{ScriptedFailures, names, operation, revivals, server};
use crate::support::{Client, Setup, TestDb, TestServer, on_each_database, until};

const OPERATIONS: &str = "/api/v2/uploads/operations";

async fn start(client: &Client, body: Value) -> Value {
    let answer = client.post(OPERATIONS, body).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.body
}

fn id_of(operation: &Value) -> String {
    operation["operationId"].as_str().expect("an id").to_owned()
}

/// Takes all steps, and returns the operation.
async fn finish(server: &TestServer, client: &Client, begun: &Value) -> Value {
    let id = id_of(begun);
    until("the operation has ended", async || {
        server.app.operations().advance_up_to(id.parse().unwrap(), 100_000).await.unwrap();
        operation(client, &id).await["endedAt"].is_string()
    })
    .await;
    operation(client, &id).await
}

/// Status, how many matched, and how many were done, left alone and failed.
fn counts(operation: &Value) -> (&str, Option<i64>, [i64; 3]) {
    let count = |name: &str| operation[name].as_i64().expect("a number");
    (
        operation["status"].as_str().expect("a status"),
        operation["totalCount"].as_i64(),
        [count("doneCount"), count("skippedCount"), count("errorCount")],
    )
}

async fn ends(server: &TestServer, state: &str) -> i64 {
    let sql = "SELECT COUNT(*) FROM events WHERE to_state = $1";
    server.app.db.read().await.unwrap().number(sql, args![state]).await.unwrap()
}

#[on_each_database]
async fn each_action_changes_the_files_that_match_and_no_others(db: TestDb) {
    let work = ScriptedFailures::new();
    let first = server(&db, &work).await;
    let alice = first.client("alice");
    alice.upload_all(&[names('p', 120), names('d', 5), names('a', 7)].concat()).await;
    first.client("bob").upload_all(&names('p', 3)).await;
    first.idle().await;
    work.fix('p');
    let begun = start(&alice, json!({ "action": "retry", "filter": { "code": "PARSE_ERROR" } })).await;
    assert_eq!((&begun["action"], &begun["totalCount"]), (&json!("retry"), &json!(120)));
    let done = finish(&first, &alice, &begun).await;
    assert_eq!(counts(&done), ("completed", Some(120), [120, 0, 0]));
    assert_eq!((&done["retriedCount"], &done["filter"]["code"]), (&json!(120), &json!("PARSE_ERROR")));
    first.idle().await;
    assert_eq!(revivals(&first).await, 120);
    // Those that were deleted have no bytes left after a while, and cost no quota.
    let delete = json!({ "action": "delete", "filter": { "status": "ready", "q": "p" } });
    let done = finish(&first, &alice, &start(&alice, delete).await).await;
    assert_eq!((counts(&done), &done["retriedCount"]), (("completed", Some(120), [120, 0, 0]), &json!(0)));
    assert_eq!(ends(&first, "deleted").await, 120);
    assert_eq!(alice.quota().await, (0, 12), "five failed, seven ready, of one byte each");
    until("the blobs are gone", async || {
        let sql = "SELECT COUNT(*) FROM files WHERE blob_key IS NOT NULL AND deleted_at IS NOT NULL";
        first.app.db.read().await.unwrap().number(sql, args![]).await.unwrap() == 0
    })
    .await;
    let reason = format!("Deleted with the operation {}", id_of(&done));
    let deleted = "SELECT COUNT(*) FROM events WHERE to_state = 'deleted' AND CAST(data AS TEXT) LIKE $1";
    let explained =
        first.app.db.read().await.unwrap().number(deleted, args![format!("%{reason}%")]).await.unwrap();
    assert_eq!(explained, 120);
    first.assert_audit_clean().await;
    first.stop().await;

    // Without a worker files wait, and can be cancelled.
    let idle = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = idle.client("alice");
    let (_, waiting) = alice.upload_all(&names('w', 4)).await;
    let done = finish(&idle, &alice, &start(&alice, json!({ "action": "cancel", "filter": {} })).await).await;
    assert_eq!(counts(&done), ("completed", Some(4), [4, 0, 0]));
    assert_eq!(alice.status(&waiting[0]).await, "cancelled");
    // All that is left, in whatever state it is: also what was never sent.
    alice.register(None, "registered", 9).await;
    alice.upload_all(&names('w', 2)).await;
    let done = finish(&idle, &alice, &start(&alice, json!({ "action": "delete", "filter": {} })).await).await;
    assert_eq!(counts(&done), ("completed", Some(19), [19, 0, 0]));
    assert_eq!(alice.quota().await, (0, 0));
    assert_eq!(idle.client("bob").get("/api/v2/uploads/files/counts").await.ok()["total"], 3);
    idle.assert_audit_clean().await;
}

#[on_each_database]
async fn files_that_are_named_are_changed_or_left_alone_with_a_reason(db: TestDb) {
    let server = server(&db, &ScriptedFailures::new()).await;
    let (ada, bob) = (server.client_of("ada", "acme"), server.client_of("bob", "acme"));
    let failed = ada.upload("p1", b"x").await;
    let ready = ada.upload("a1", b"x").await;
    let of_bob = bob.upload("p2", b"x").await;
    let of_another = server.client_of("ada", "evilcorp").upload("p3", b"x").await;
    server.idle().await;
    let unknown = "01920000-0000-7000-8000-000000000000";
    let ids = json!([failed, ready, of_bob, of_another, unknown, failed]);
    let retry = json!({ "action": "retry", "fileIds": ids });
    let done = finish(&server, &ada, &start(&ada, retry.clone()).await).await;
    assert_eq!(counts(&done), ("completed", Some(5), [1, 4, 0]), "{done}");
    let why = |id: &str| {
        let skipped = done["skipped"].as_array().unwrap().iter();
        skipped
            .filter(|one| one["fileId"] == id)
            .map(|one| one["code"].as_str().unwrap().to_owned())
            .collect()
    };
    let why: Vec<Vec<String>> = [&ready, &of_bob, &of_another, unknown].map(why).to_vec();
    assert_eq!(why.concat(), ["INVALID_STATE", "FILE_NOT_FOUND", "FILE_NOT_FOUND", "FILE_NOT_FOUND"]);
    assert!(!done.to_string().contains("p2") && !done.to_string().contains("p3"), "{done}");
    server.idle().await;

    // An administrator reaches the files of the tenant, an operator all.
    let carol = server.client_with("carol", "acme", Role::TenantAdmin);
    let done = finish(&server, &carol, &start(&carol, retry.clone()).await).await;
    assert_eq!(counts(&done), ("completed", Some(5), [2, 3, 0]), "{done}");
    server.idle().await;
    let admin = server.admin();
    let done = finish(&server, &admin, &start(&admin, retry).await).await;
    assert_eq!(counts(&done), ("completed", Some(5), [3, 2, 0]), "{done}");
    server.idle().await;

    // What an administrator does is seen by the administrators of the tenant, and by no other user.
    let of_tenant = json!({ "action": "delete", "filter": { "scope": "tenant", "owner": "bob" } });
    let begun = start(&carol, of_tenant.clone()).await;
    assert_eq!((&begun["scope"], &begun["filter"]["owner"]), (&json!("tenant"), &json!("bob")));
    let path = format!("{OPERATIONS}/{}", id_of(&begun));
    for stranger in [&ada, &bob, &server.client_with("eve", "evilcorp", Role::TenantAdmin)] {
        stranger.get(&path).await.refused(404, "OPERATION_NOT_FOUND");
        stranger.post(&format!("{path}/stop"), json!({})).await.refused(404, "OPERATION_NOT_FOUND");
    }
    assert_eq!(counts(&finish(&server, &carol, &begun).await), ("completed", Some(1), [1, 0, 0]));
    bob.get(&format!("/api/v2/uploads/files/{of_bob}")).await.refused(410, "FILE_DELETED");
    let history = bob.get(&format!("/api/v2/uploads/files/{of_bob}/history")).await.ok();
    let last = history["history"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["actor"], json!({ "kind": "administrator", "name": "carol" }));
    ada.post(OPERATIONS, of_tenant).await.refused(403, "FORBIDDEN");
    let all = json!({ "action": "delete", "filter": { "scope": "all" } });
    carol.post(OPERATIONS, all.clone()).await.refused(403, "FORBIDDEN");
    let done = finish(&server, &admin, &start(&admin, all).await).await;
    assert_eq!(counts(&done), ("completed", Some(3), [3, 0, 0]));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_request_that_makes_no_sense_is_refused(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let id = "01920000-0000-7000-8000-000000000000";
    for (body, code) in [
        (json!({ "action": "retry" }), "INVALID_REQUEST"),
        (json!({ "action": "retry", "filter": {}, "fileIds": [id] }), "INVALID_REQUEST"),
        (json!({ "action": "burn", "filter": {} }), "INVALID_REQUEST"),
        (json!({ "action": "retry", "filter": { "colour": "red" } }), "INVALID_REQUEST"),
        (json!({ "action": "retry", "filter": { "status": "ready" } }), "INVALID_REQUEST"),
        (json!({ "action": "delete", "filter": { "status": "deleted" } }), "INVALID_REQUEST"),
        (json!({ "action": "retry", "filter": { "code": "LOST" } }), "INVALID_REQUEST"),
        (json!({ "action": "retry", "filter": { "owner": "bob" } }), "INVALID_REQUEST"),
        (json!({ "action": "retry", "filter": { "q": "x".repeat(1001) } }), "INVALID_REQUEST"),
        (json!({ "action": "retry", "fileIds": ["x"] }), "INVALID_REQUEST"),
        (json!({ "action": "retry", "fileIds": [] }), "INVALID_FILE_COUNT"),
        (
            json!({ "action": "retry", "fileIds": (0..1001).map(|_| server.app.clock.new_id()).collect::<Vec<_>>() }),
            "INVALID_FILE_COUNT",
        ),
    ] {
        alice.post(OPERATIONS, body).await.refused(400, code);
    }
    let none = start(&alice, json!({ "action": "retry", "filter": { "status": "ready,failed" } })).await;
    assert_eq!(counts(&finish(&server, &alice, &none).await), ("completed", Some(0), [0, 0, 0]));
    let send = async |body: Value| {
        alice.send(alice.request(Method::POST, OPERATIONS).header("Idempotency-Key", "k").json(&body)).await
    };
    let body = json!({ "action": "delete", "filter": {} });
    let first = send(body.clone()).await.ok();
    assert_eq!(send(body).await.ok()["operationId"], first["operationId"]);
    send(json!({ "action": "cancel", "filter": {} })).await.refused(422, "IDEMPOTENCY_KEY_REUSED");
}

#[on_each_database]
async fn an_operation_of_a_killed_process_goes_on_elsewhere_with_exact_counts(db: TestDb) {
    let work = ScriptedFailures::new();
    let idle = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = idle.client("alice");
    let (batch, files) = alice.upload_all(&names('a', 430)).await;
    let begun =
        start(&alice, json!({ "action": "delete", "filter": { "batchId": batch, "status": "queued" } }))
            .await;
    let id = id_of(&begun);
    for _ in 0..2 {
        let taken = idle.app.operations().step(id.parse().unwrap(), true).await.unwrap();
        assert_eq!(taken, Taken::Moved { files: 100, revived: 100 });
    }
    assert_eq!(counts(&operation(&alice, &id).await), ("running", Some(430), [200, 0, 0]));
    // A file that comes later is none of its business, and neither is one that is deleted meanwhile.
    let (_, late) = alice.upload_all(&names('a', 1)).await;
    alice.delete(&format!("/api/v2/uploads/files/{}", files[0])).await.ok();
    idle.stop().await;

    let next = Setup::default().work(work).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
    let alice = next.client("alice");
    until("the operation has ended", async || operation(&alice, &id).await["endedAt"].is_string()).await;
    next.idle().await;
    let ended = operation(&alice, &id).await;
    // The worker may have taken some of them: these were running or ready when their turn came, and stay.
    let (status, _, [done, skipped, failed]) = counts(&ended);
    assert_eq!((status, skipped, failed), ("completed", 0, 0));
    let kept = alice.get(&format!("/api/v2/uploads/files/counts?batchId={batch}")).await.ok()["total"]
        .as_i64()
        .unwrap();
    assert_eq!(done + kept + 1, 430, "{ended}");
    assert_eq!(ends(&next, "deleted").await, done + 1);
    assert_eq!(alice.status(&late[0]).await, "ready");
    next.assert_audit_clean().await;
}

#[on_each_database]
async fn two_operations_on_the_same_files_change_each_file_once(db: TestDb) {
    let one = Setup::default().with("ROLE", "api").start(&db).await;
    let two = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = one.client("alice");
    let (batch, ids) = alice.upload_all(&names('a', 330)).await;
    let mut operations = Vec::new();
    for body in [
        json!({ "action": "delete", "filter": { "status": "queued" } }),
        json!({ "action": "delete", "filter": { "batchId": batch } }),
        json!({ "action": "delete", "fileIds": ids }),
    ] {
        operations.push(id_of(&start(&alice, body).await));
    }
    let sides = (0..9).map(|number| {
        let app = if number % 2 == 0 { &one.app } else { &two.app };
        let (steps, id) = (app.operations(), operations[number % 3].parse().unwrap());
        async move { steps.advance_up_to(id, 10_000).await }
    });
    for side in join_all(sides).await {
        side.unwrap();
    }
    let mut done = [0, 0];
    for id in &operations {
        let ended = operation(&alice, id).await;
        let (status, total, [changed, left, failed]) = counts(&ended);
        assert_eq!((status, total, failed), ("completed", Some(330), 0), "{ended}");
        done = [done[0] + changed, done[1] + left];
    }
    // Whoever came late with ids says that the file is deleted; a filter does not match it any more.
    assert_eq!(done[0], 330);
    assert!(done[1] <= 330);
    assert_eq!(ends(&one, "deleted").await, 330);
    assert_eq!(alice.quota().await, (0, 0));
    one.assert_audit_clean().await;
}

#[on_each_database]
async fn a_stopped_operation_touches_no_further_file(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    alice.upload_all(&names('a', 150)).await;
    let begun = start(&alice, json!({ "action": "cancel", "filter": { "status": "queued" } })).await;
    let id = id_of(&begun);
    let step = async || server.app.operations().step(id.parse().unwrap(), true).await.unwrap();
    assert_eq!(step().await, Taken::Moved { files: 100, revived: 100 });
    let stop = format!("{OPERATIONS}/{id}/stop");
    server.client("mallory").post(&stop, json!({})).await.refused(404, "OPERATION_NOT_FOUND");
    let stopped = alice.post(&stop, json!({})).await.ok();
    assert_eq!(
        (counts(&stopped), &stopped["reason"]),
        (("stopped", Some(150), [100, 0, 0]), &json!("Stopped by alice"))
    );
    assert_eq!(step().await, Taken::Over);
    assert_eq!(operation(&alice, &id).await, stopped);
    let left = alice.get("/api/v2/uploads/files/counts").await.ok();
    assert_eq!(left["byStatus"], json!({ "queued": 50, "cancelled": 100 }));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn the_work_on_files_that_are_cancelled_or_deleted_is_stopped(db: TestDb) {
    struct Endless;
    impl Work for Endless {
        fn run<'a>(&'a self, _: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
            pending().boxed()
        }
    }
    let server = Setup::default().work(Arc::new(Endless)).start(&db).await;
    let alice = server.client("alice");
    for (action, ended) in [("cancel", "cancelled"), ("delete", "deleted")] {
        let file = alice.upload("a", b"x").await;
        until("a worker has it", async || alice.status(&file).await == "extracting").await;
        let begun = start(&alice, json!({ "action": action, "filter": { "status": "extracting" } })).await;
        assert_eq!(counts(&finish(&server, &alice, &begun).await), ("completed", Some(1), [1, 0, 0]));
        server.idle().await;
        assert_eq!(alice.states(&file).await.last().map(String::as_str), Some(ended));
    }
    server.assert_audit_clean().await;
}

/// Files that match are far apart: a step compares a limited number of rows, and goes on behind them.
#[on_each_database]
async fn a_step_of_an_operation_compares_a_limited_number_of_rows(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let admin = server.admin();
    crate::support::many_files::insert_ready(&server, "alice", 12_000).await;
    crate::support::many_files::rename(&server, "rare", "size_bytes % 4000 = 0").await;
    let account = "INSERT INTO tenants (id, used_bytes, used_files) VALUES ('alice', 100000000, 12000)";
    server.app.db.write(crate::support::offline_app::Sql(account.to_owned(), args![])).await.unwrap();
    let filter = json!({ "q": "rare", "scope": "all", "tenantId": "alice" });
    let begun = start(&admin, json!({ "action": "delete", "filter": filter })).await;
    assert_eq!(begun["totalCount"], 3);
    let id = id_of(&begun);
    let (mut steps, mut files) = (0, 0);
    while let Taken::Moved { files: some, .. } =
        server.app.operations().step(id.parse().unwrap(), true).await.unwrap()
    {
        steps += 1;
        files += some;
    }
    assert_eq!((steps, files), (2, 3), "5,000 rows in each step");
    assert_eq!(counts(&operation(&admin, &id).await), ("completed", Some(3), [3, 0, 0]));
}
