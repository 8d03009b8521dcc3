//! Bulk retries of dead letters: each file is retried once, whichever processes take the steps or die between them.

use std::time::Duration;

use futures_util::future::join_all;
use landfall_core::caller::{Reach, TenantUser};
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage::{Chunk, Embed, Extract};
use landfall_server::operations::{Start, Step as Taken};
use landfall_server::records::files::dead_letters::Filter;
use landfall_server::records::fingerprint::fingerprint as fingerprint_of;
use landfall_store::Error;
use landfall_store::{Rows, Tx, Write, args};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::scripted_failures::{
    DLQ, RETRY_ALL, ScriptedFailures, entries, fingerprint, finish_operation, names, operation, revivals,
    server, summary,
};
use crate::support::{Script, Setup, Step, TestDb, batch_summary, manual_clock, on_each_database, until};

#[on_each_database]
async fn all_matching_files_are_retried_and_no_others(db: TestDb) {
    let work = ScriptedFailures::new();
    let server = server(&db, &work).await;
    let (alice, bob) = (server.client("alice"), server.client("bob"));
    let (batch, _) = alice.upload_all(&[names('p', 3), names('d', 2)].concat()).await;
    alice.upload_all(&names('p', 4)).await;
    bob.upload_all(&names('p', 5)).await;
    server.idle().await;
    let of_all_users = server.admin().get(&format!("{DLQ}/groups?scope=all")).await.ok();
    let counts =
        of_all_users["groups"].as_array().unwrap().iter().map(|group| group["count"].as_i64().unwrap());
    assert_eq!(counts.collect::<Vec<_>>(), [12, 2], "files of one cause together, across users");
    work.fix('p');
    work.fix('d');

    let none = alice.post(RETRY_ALL, json!({ "code": "NO_TEXT" })).await.ok();
    assert_eq!(summary(&none).1, "completed");
    assert_eq!(
        (&none["retriedCount"], &none["skippedCount"], &none["errors"]),
        (&json!(0), &json!(0), &json!([]))
    );
    let narrow = alice
        .post(RETRY_ALL, json!({ "code": "PARSE_ERROR", "stage": "extract", "batchId": batch }))
        .await
        .ok();
    assert_eq!((summary(&narrow).1, summary(&narrow).2), ("completed", 3));
    assert_eq!(
        narrow["filter"],
        json!({ "code": "PARSE_ERROR", "stage": "extract", "batchId": batch, "fingerprint": null })
    );
    // An empty body means all files of the caller.
    let wide = alice.send(alice.request(Method::POST, RETRY_ALL)).await.ok();
    assert_eq!((summary(&wide).1, summary(&wide).2), ("completed", 6));
    assert_eq!(entries(&bob, "").await.len(), 5, "files of other users are left alone");
    let of_all_users = server.admin().post(RETRY_ALL, json!({ "scope": "all" })).await.ok();
    assert_eq!(
        (summary(&of_all_users).1, summary(&of_all_users).2, &of_all_users["scope"]),
        ("completed", 5, &json!("all"))
    );
    server.idle().await;
    assert_eq!(revivals(&server).await, 14);
    let listed = alice.get("/api/v2/uploads/operations?limit=2").await.ok();
    assert_eq!(listed["operations"][0]["operationId"], wide["operationId"], "the newest first");
    assert_eq!(listed["operations"].as_array().unwrap().len(), 2);
    let count = async |query: &str| {
        let listed = server.admin().get(&format!("/api/v2/uploads/operations{query}")).await.ok();
        listed["operations"].as_array().unwrap().len()
    };
    assert_eq!((count("").await, count("?scope=all").await), (1, 4));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_that_fails_again_at_once_is_not_retried_again(db: TestDb) {
    // The clock stands still, so that a second failure is not newer than the first.
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(ScriptedFailures::new()).start(&db).await;
    let alice = server.client("alice");
    alice.upload_all(&names('p', 230)).await;
    server.idle().await;
    let done = alice.post(RETRY_ALL, json!({})).await.ok();
    assert_eq!((summary(&done).1, summary(&done).2), ("completed", 230));
    finish_operation(&server, &summary(&done).0).await;
    assert_eq!(revivals(&server).await, 230);
    assert_eq!(entries(&alice, "").await.len(), 230);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_group_is_left_alone_after_its_canaries_fail_the_same_way(db: TestDb) {
    let server = server(&db, &ScriptedFailures::new()).await;
    let alice = server.client("alice");
    alice.upload_all(&[names('p', 20), names('d', 2)].concat()).await;
    server.idle().await;
    let fingerprint = fingerprint(&alice, "PARSE_ERROR").await;
    let begun = alice.post(RETRY_ALL, json!({ "fingerprint": fingerprint })).await.ok();
    let (id, status, retried, _) = summary(&begun);
    assert_eq!(retried, 3);
    assert!(matches!(status, "canary" | "stopped"), "{begun}");
    finish_operation(&server, &id).await;
    let ended = operation(&alice, &id).await;
    assert_eq!((summary(&ended).1, summary(&ended).2), ("stopped", 3));
    let reason = ended["reason"].as_str().unwrap();
    assert!(
        reason.contains("of the 3 files that were tried first") && reason.contains("is damaged"),
        "{reason}"
    );
    finish_operation(&server, &id).await;
    assert_eq!(revivals(&server).await, 3);
    assert_eq!(entries(&alice, "").await.len(), 22);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_group_is_retried_after_its_canaries_succeed(db: TestDb) {
    let work = ScriptedFailures::new();
    let server = server(&db, &work).await;
    let alice = server.client("alice");
    let (batch, _) = alice.upload_all(&[names('e', 120), names('p', 2)].concat()).await;
    server.idle().await;
    work.fix('e');
    let fingerprint = fingerprint(&alice, "EMBED_ERROR").await;
    let begun = alice.post(RETRY_ALL, json!({ "fingerprint": fingerprint })).await.ok();
    finish_operation(&server, &summary(&begun).0).await;
    let ended = operation(&alice, &summary(&begun).0).await;
    assert_eq!((summary(&ended).1, summary(&ended).2, &ended["reason"]), ("completed", 120, &Value::Null));
    assert_eq!(alice.batch(&batch).await["summary"], batch_summary(122, 120, 2));
    assert_eq!(revivals(&server).await, 120);
    assert_eq!(work.runs("e7"), [Extract, Chunk, Embed, Embed]);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn the_rest_waits_until_the_canaries_are_finished(db: TestDb) {
    let work = ScriptedFailures::new();
    let first = server(&db, &work).await;
    let alice = first.client("alice");
    alice.upload_all(&names('e', 8)).await;
    first.idle().await;
    let fingerprint = fingerprint(&alice, "EMBED_ERROR").await;
    first.stop().await;

    // No worker runs here.
    let idle = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = idle.client("alice");
    let begun = alice.post(RETRY_ALL, json!({ "fingerprint": fingerprint })).await.ok();
    let (id, status, retried, _) = summary(&begun);
    assert_eq!((status, retried), ("canary", 3));
    for _ in 0..3 {
        assert_eq!(idle.app.operations().step(id.parse().unwrap(), true).await.unwrap(), Taken::Waits);
    }
    assert_eq!(summary(&operation(&alice, &id).await).2, 3);
    // One canary is cancelled: that is no verdict, but it is an end.
    let canary = alice.get("/api/v2/uploads/files?status=queued").await.ok()["files"][0]["fileId"].clone();
    alice.post(&format!("/api/v2/uploads/files/{}/cancel", canary.as_str().unwrap()), json!({})).await.ok();
    assert_eq!(idle.app.operations().step(id.parse().unwrap(), true).await.unwrap(), Taken::Waits);
    idle.stop().await;

    work.fix('e');
    let last = server(&db, &work).await;
    let alice = last.client("alice");
    until("the operation has ended", async || operation(&alice, &id).await["endedAt"].is_string()).await;
    last.idle().await;
    let ended = operation(&alice, &id).await;
    assert_eq!((summary(&ended).1, summary(&ended).2), ("completed", 8));
    last.assert_audit_clean().await;
}

#[on_each_database]
async fn an_interrupted_operation_continues_elsewhere_and_counts_each_file_once(db: TestDb) {
    let work = ScriptedFailures::new();
    let first = server(&db, &work).await;
    let alice = first.client("alice");
    let (batch, files) = alice.upload_all(&names('p', 430)).await;
    first.idle().await;
    first.stop().await;

    // Two steps, then the process is gone.
    let second = Setup::default().with("ROLE", "api").start(&db).await;
    let (id, now) = (second.app.clock.new_id(), second.app.clock.now());
    let alice = TenantUser::new("alice", "alice");
    let filter = Filter::of(Reach::User(alice.clone()));
    second.app.db.write(Start::retry_all(id, alice, filter, now)).await.unwrap();
    for _ in 0..2 {
        let taken = second.app.operations().step(id, true).await.unwrap();
        assert_eq!(taken, Taken::Moved { files: 100, revived: 100 });
    }
    let half = operation(&second.client("alice"), &id.to_string()).await;
    assert_eq!((summary(&half).1, summary(&half).2), ("running", 200));
    second.stop().await;

    // Some of the retried files fail again meanwhile, as all files do here.
    let third = server(&db, &work).await;
    let alice = third.client("alice");
    let id = id.to_string();
    until("the operation has ended", async || operation(&alice, &id).await["endedAt"].is_string()).await;
    third.idle().await;
    let ended = operation(&alice, &id).await;
    assert_eq!((summary(&ended).1, summary(&ended).2, summary(&ended).3), ("completed", 430, 0));
    assert_eq!(revivals(&third).await, 430);
    for file in [&files[0], &files[215], &files[429]] {
        let states = alice.states(file).await;
        assert_eq!(states.iter().filter(|state| *state == "failed").count(), 2, "{states:?}");
    }
    assert_eq!(alice.batch(&batch).await["summary"], batch_summary(430, 0, 430));
    third.assert_audit_clean().await;
}

#[on_each_database]
async fn a_request_for_very_many_files_returns_before_all_are_retried(db: TestDb) {
    let serving = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = serving.client("alice");
    let ids = (0..1_150).map(|_| serving.app.clock.new_id()).collect();
    serving.app.db.write(Failed { ids, now: serving.app.clock.now() }).await.unwrap();
    let begun = alice.post(RETRY_ALL, json!({})).await.ok();
    assert_eq!((summary(&begun).1, summary(&begun).2), ("running", 1_000));
    let working = Setup::default().work(Script::new()).start(&db).await;
    let id = summary(&begun).0;
    until("the operation has ended", async || operation(&alice, &id).await["endedAt"].is_string()).await;
    let ended = operation(&alice, &id).await;
    assert_eq!((summary(&ended).1, summary(&ended).2), ("completed", 1_150));
    working.idle().await;
    assert_eq!(revivals(&working).await, 1_150);
    assert_eq!(entries(&alice, "").await, [] as [Value; 0]);
}

#[on_each_database]
async fn concurrent_steps_count_each_file_once(db: TestDb) {
    let work = ScriptedFailures::new();
    let first = server(&db, &work).await;
    first.client("alice").upload_all(&names('p', 350)).await;
    first.idle().await;
    first.stop().await;
    let one = Setup::default().with("ROLE", "api").start(&db).await;
    let two = Setup::default().with("ROLE", "api").start(&db).await;
    let (id, now) = (one.app.clock.new_id(), one.app.clock.now());
    let alice = TenantUser::new("alice", "alice");
    let filter = Filter::of(Reach::User(alice.clone()));
    one.app.db.write(Start::retry_all(id, alice, filter, now)).await.unwrap();
    let sides = (0..8).map(|number| {
        let operations = if number % 2 == 0 { one.app.operations() } else { two.app.operations() };
        async move { operations.advance_up_to(id, 10_000).await }
    });
    for side in join_all(sides).await {
        side.unwrap();
    }
    let ended = operation(&one.client("alice"), &id.to_string()).await;
    assert_eq!((summary(&ended).1, summary(&ended).2), ("completed", 350));
    assert_eq!(revivals(&one).await, 350);
    one.assert_audit_clean().await;
}

#[on_each_database]
async fn concurrent_steps_pass_over_only_the_file_that_cannot_be_retried(db: TestDb) {
    let work = ScriptedFailures::new();
    let first = server(&db, &work).await;
    let alice = first.client("alice");
    alice.upload_all(&names('p', 5)).await;
    let (_, bad) = alice.upload_all(&["p9".to_owned()]).await;
    alice.upload_all(&names('p', 20)).await;
    first.idle().await;
    first.stop().await;
    let idle = Setup::default().with("ROLE", "api").start(&db).await;
    idle.app.db.write(Sql(DAMAGE)).await.unwrap();
    let (id, now) = (idle.app.clock.new_id(), idle.app.clock.now());
    let owner = TenantUser::new("alice", "alice");
    let filter = Filter::of(Reach::User(owner.clone()));
    idle.app.db.write(Start::retry_all(id, owner, filter, now)).await.unwrap();
    let sides = (0..8).map(|_| {
        let operations = idle.app.operations();
        async move { operations.advance_up_to(id, 10_000).await }
    });
    for side in join_all(sides).await {
        side.unwrap();
    }
    let ended = operation(&idle.client("alice"), &id.to_string()).await;
    assert_eq!((summary(&ended).1, summary(&ended).2, &ended["errorCount"]), ("completed", 25, &json!(1)));
    assert_eq!(ended["errors"][0]["fileId"], json!(bad[0]));
    assert_eq!(revivals(&idle).await, 25);
}

#[on_each_database]
async fn a_process_whose_clock_is_behind_retries_nothing_twice(db: TestDb) {
    let (ahead, behind) = (manual_clock(), manual_clock());
    ahead.advance(Duration::from_secs(10));
    let work = ScriptedFailures::new();
    let first = Setup::default().clock(&ahead).work(work.clone()).start(&db).await;
    first.client("alice").upload_all(&names('p', 130)).await;
    first.idle().await;
    let (id, now) = (first.app.clock.new_id(), first.app.clock.now());
    first.stop().await;
    // Its failures are older than those that the operation has handled.
    let second = Setup::default().clock(&behind).work(work).start(&db).await;
    let alice = TenantUser::new("alice", "alice");
    let filter = Filter::of(Reach::User(alice.clone()));
    second.app.db.write(Start::retry_all(id, alice, filter, now)).await.unwrap();
    let mut steps = 0;
    while second.app.operations().step(id, true).await.unwrap() != Taken::Over {
        steps += 1;
        assert!(steps < 10, "it never ends");
        second.idle().await;
    }
    let ended = operation(&second.client("alice"), &id.to_string()).await;
    assert_eq!((summary(&ended).1, summary(&ended).2), ("completed", 130));
    assert_eq!(revivals(&second).await, 130);
    second.assert_audit_clean().await;
}

#[on_each_database]
async fn a_stopped_operation_takes_no_further_step(db: TestDb) {
    let work = ScriptedFailures::new();
    let first = server(&db, &work).await;
    first.client("alice").upload_all(&names('e', 9)).await;
    first.idle().await;
    let fingerprint = fingerprint(&first.client("alice"), "EMBED_ERROR").await;
    first.stop().await;
    let idle = Setup::default().with("ROLE", "api").start(&db).await;
    let (alice, mallory) = (idle.client("alice"), idle.client("mallory"));
    let (id, ..) = summary(&alice.post(RETRY_ALL, json!({ "fingerprint": fingerprint })).await.ok());
    let stop = format!("/api/v2/uploads/operations/{id}/stop");
    mallory.post(&stop, json!({})).await.refused(404, "OPERATION_NOT_FOUND");
    let stopped = alice.post(&stop, json!({})).await.ok();
    assert_eq!((summary(&stopped).1, &stopped["reason"]), ("stopped", &json!("Stopped by alice")));
    assert_eq!(alice.post(&stop, json!({})).await.ok(), stopped, "repeating it is safe");
    idle.stop().await;

    work.fix('e');
    let last = server(&db, &work).await;
    finish_operation(&last, &id).await;
    let alice = last.client("alice");
    assert_eq!(operation(&alice, &id).await, stopped);
    assert_eq!(entries(&alice, "").await.len(), 6, "the canaries are ready, the others unchanged");
    last.assert_audit_clean().await;
}

#[on_each_database]
async fn infected_files_are_skipped_and_counted(db: TestDb) {
    let script =
        Script::new().then(Extract, Step::Fail(Code::Infected)).then(Extract, Step::Fail(Code::ParseError));
    let server = Setup::default().work(script).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
    let alice = server.client("alice");
    for name in ["a", "b"] {
        alice.upload(name, b"a").await;
        server.idle().await;
    }
    let done = alice.post(RETRY_ALL, json!({})).await.ok();
    assert_eq!((summary(&done).1, summary(&done).2, summary(&done).3), ("completed", 1, 1));
    let fingerprint = fingerprint(&alice, "INFECTED").await;
    let done = alice.post(RETRY_ALL, json!({ "fingerprint": fingerprint })).await.ok();
    assert_eq!((summary(&done).1, summary(&done).2, summary(&done).3), ("completed", 0, 1));
}

struct Sql(&'static str);

impl Write for Sql {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        tx.execute(self.0, args![]).await
    }
}

/// As if the batch of a single file had lost count: the database refuses a count below zero, so that file cannot be retried.
const DAMAGE: &str = "UPDATE batches SET failed_files = 0, deleted_files = 1 WHERE file_count = 1";

#[on_each_database]
async fn a_file_that_cannot_be_retried_does_not_block_the_others(db: TestDb) {
    let work = ScriptedFailures::new();
    let server = server(&db, &work).await;
    let alice = server.client("alice");
    alice.upload_all(&names('p', 5)).await;
    let (_, bad) = alice.upload_all(&["p9".to_owned()]).await;
    alice.upload_all(&names('p', 5)).await;
    server.idle().await;
    work.fix('p');
    server.app.db.write(Sql(DAMAGE)).await.unwrap();
    let done = alice.post(RETRY_ALL, json!({})).await.ok();
    assert_eq!((summary(&done).1, summary(&done).2, &done["errorCount"]), ("completed", 10, &json!(1)));
    assert_eq!(done["errors"][0]["fileId"], json!(bad[0]));
    let repair = "UPDATE batches SET failed_files = 1, deleted_files = 0 WHERE file_count = 1";
    server.app.db.write(Sql(repair)).await.unwrap();
    server.idle().await;
    assert_eq!(alice.status(&bad[0]).await, "failed");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn the_same_idempotency_key_returns_the_same_operation(db: TestDb) {
    let work = ScriptedFailures::new();
    let server = server(&db, &work).await;
    let alice = server.client("alice");
    alice.upload_all(&names('p', 2)).await;
    server.idle().await;
    let send = async |body: Value| {
        alice.send(alice.request(Method::POST, RETRY_ALL).header("Idempotency-Key", "k").json(&body)).await
    };
    let first = send(json!({})).await.ok();
    server.idle().await;
    assert_eq!(send(json!({})).await.ok()["operationId"], first["operationId"]);
    send(json!({ "code": "NO_TEXT" })).await.refused(422, "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(revivals(&server).await, 2);
}

/// Dead letters inserted directly into the database: many, and quickly.
struct Failed {
    ids: Vec<Uuid>,
    now: Time,
}

impl Write for Failed {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let failure = Failure::new(Code::EmbedError, "The model is closed");
        let mut rows = Rows::default();
        for id in &self.ids {
            rows.push(args![
                *id,
                "alice",
                "alice",
                "a",
                1,
                "no/blob",
                "failed",
                Embed,
                failure.code,
                &failure.message,
                Embed,
                fingerprint_of(Embed, &failure),
                self.now,
                self.now,
                self.now,
                self.now,
            ]);
        }
        tx.insert(
            "files (id, tenant_id, user_id, file_name, size_bytes, blob_key, status, next_stage, error_code,
                    error_message, error_stage, error_fingerprint, failed_at, created_at, updated_at, confirmed_at)",
            rows,
            "",
        )
        .await
    }
}
