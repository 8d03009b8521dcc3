//! Files that failed permanently: listed and discarded.

use std::collections::BTreeSet;

use landfall_core::clock::Time;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::scripted_failures::{
    DLQ, RETRY_ALL, ScriptedFailures, entries, fingerprint, groups, names, server, summary, time,
};
use crate::support::{Setup, TestDb, on_each_database};
use landfall_core::lifecycle::Status;

#[on_each_database]
async fn five_hundred_dead_letters_with_three_causes_form_three_groups(db: TestDb) {
    let server = server(&db, &ScriptedFailures::new()).await;
    let alice = server.client("alice");
    let all = [names('p', 300), names('d', 150), names('e', 50)].concat();
    let (batch, files) = alice.upload_all(&all).await;
    server.idle().await;

    let groups = groups(&alice).await;
    let counted: Vec<_> = groups
        .iter()
        .map(|g| (g["stage"].as_str().unwrap(), g["code"].as_str().unwrap(), g["count"].as_i64().unwrap()))
        .collect();
    assert_eq!(
        counted,
        [("extract", "PARSE_ERROR", 300), ("chunk", "DB_ERROR", 150), ("embed", "EMBED_ERROR", 50)]
    );
    for group in &groups {
        let sample = alice.file(group["sample"]["fileId"].as_str().unwrap()).await;
        assert_eq!(sample["error"]["message"], group["sample"]["message"]);
        assert_eq!(sample["error"]["code"], group["code"]);
        assert_eq!(group["lastSeen"], sample["failedAt"], "the newest is the sample");
        assert!(time(&group["firstSeen"]) <= time(&group["lastSeen"]));
    }

    let listed = entries(&alice, "").await;
    let order: Vec<Time> = listed.iter().map(|entry| time(&entry["failedAt"])).collect();
    assert!(order.is_sorted_by(|one, next| one >= next), "the newest first");
    let ids: BTreeSet<_> = listed.iter().map(|entry| entry["fileId"].as_str().unwrap().to_owned()).collect();
    assert_eq!((listed.len(), ids), (500, files.into_iter().collect()), "each entry once");

    let first = fingerprint(&alice, "PARSE_ERROR").await;
    for (query, count) in [
        ("code=PARSE_ERROR".to_owned(), 300),
        ("stage=chunk".to_owned(), 150),
        ("stage=chunk&code=PARSE_ERROR".to_owned(), 0),
        (format!("batchId={batch}"), 500),
        (format!("batchId={}", Uuid::max()), 0),
        (format!("fingerprint={first}"), 300),
    ] {
        assert_eq!(entries(&alice, &query).await.len(), count, "{query}");
    }
    assert_eq!(entries(&server.admin(), "").await.len(), 0, "the administrator has none");
    assert_eq!(entries(&server.admin(), "scope=all").await.len(), 500);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn an_entry_shows_what_a_user_needs_to_judge_it(db: TestDb) {
    let work = ScriptedFailures::new();
    let server = server(&db, &work).await;
    let alice = server.client("alice");
    let (batch, files) = alice.upload_all(&names('p', 1)).await;
    server.idle().await;
    let failed_at = alice.file(&files[0]).await["failedAt"].clone();
    let deletion_at = alice.file(&files[0]).await["deletionAt"].clone();
    let error = landfall_core::reason::sentences("PARSE_ERROR", "Page 0 is damaged", Status::Failed);
    let entry = |failed_at: &Value| {
        json!({
            "fileId": files[0], "fileName": "p0", "batchId": batch, "stage": "extract", "code": "PARSE_ERROR",
            "error": error, "attempts": 1, "failedAt": failed_at, "tenantId": "alice", "userId": "alice",
            "deletionAt": deletion_at,
        })
    };
    assert_eq!(entries(&alice, "").await, [entry(&failed_at)]);

    // Retried, and failed again: the entry says so.
    let retried = alice.post(&format!("{DLQ}/{}/retry", files[0]), json!({})).await.ok();
    assert_eq!(retried, json!({ "success": true, "fileId": files[0], "status": "queued" }));
    server.idle().await;
    let again = &entries(&alice, "").await[0];
    assert_eq!(again["retriedBy"], "alice");
    assert!(time(&again["retriedAt"]) > time(&failed_at));
    assert!(time(&again["failedAt"]) > time(&again["retriedAt"]));
    work.fix('p');
    alice.post(&format!("{DLQ}/{}/retry", files[0]), json!({})).await.ok();
    server.idle().await;
    assert_eq!(entries(&alice, "").await, [] as [Value; 0]);
    assert_eq!(groups(&alice).await, [] as [Value; 0]);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_discarded_file_is_deleted_and_refunded(db: TestDb) {
    let server = server(&db, &ScriptedFailures::new()).await;
    let (alice, mallory) = (server.client("alice"), server.client("mallory"));
    let (batch, files) = alice.upload_all(&names('p', 2)).await;
    server.idle().await;
    assert_eq!(alice.quota().await, (0, 2));
    let path = format!("{DLQ}/{}", files[0]);
    mallory.delete(&path).await.refused(404, "FILE_NOT_FOUND");
    assert_eq!(alice.delete(&path).await.status, 204);
    assert_eq!(alice.delete(&path).await.status, 204, "repeating it is safe");
    assert_eq!(alice.quota().await, (0, 1));
    alice.get(&format!("/api/v2/uploads/files/{}", files[0])).await.refused(410, "FILE_DELETED");
    alice.post(&format!("{path}/retry"), json!({})).await.refused(410, "FILE_DELETED");
    assert!(server.app.blobs.keys_of(files[0].parse().unwrap()).await.unwrap().is_empty());
    assert_eq!(entries(&alice, "").await.len(), 1);
    assert_eq!(alice.batch(&batch).await["progress"]["deleted"], 1);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn only_failed_files_are_dead_letters(db: TestDb) {
    let work = ScriptedFailures::new();
    let server = server(&db, &work).await;
    let alice = server.client("alice");
    let ready = alice.upload("a", b"a").await;
    server.idle().await;
    let registered = alice.register(None, "b", 1).await["fileId"].as_str().unwrap().to_owned();
    server.stop().await;
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let (queued, cancelled) = (alice.upload("c", b"c").await, alice.upload("d", b"d").await);
    alice.post(&format!("/api/v2/uploads/files/{cancelled}/cancel"), json!({})).await.ok();
    for file in [&ready, &registered, &queued, &cancelled] {
        alice.post(&format!("{DLQ}/{file}/retry"), json!({})).await.refused(409, "INVALID_STATE");
        alice.delete(&format!("{DLQ}/{file}")).await.refused(409, "INVALID_STATE");
        let error =
            alice.post(&format!("/api/jobs/{file}/retry"), json!({})).await.refused(409, "INVALID_STATE");
        assert_eq!(error["message"], "Only failed jobs can be retried");
    }
    assert_eq!(alice.status(&cancelled).await, "cancelled");
    assert_eq!(entries(&alice, "").await, [] as [Value; 0]);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn bad_requests_are_refused(db: TestDb) {
    let server = server(&db, &ScriptedFailures::new()).await;
    let (alice, mallory) = (server.client("alice"), server.client("mallory"));
    let (_, files) = alice.upload_all(&names('p', 1)).await;
    server.idle().await;
    for bad in [
        "limit=0",
        "limit=201",
        "limit=x",
        "cursor=x",
        "cursor=1_x",
        "code=NOPE",
        "code=%00",
        "stage=upload",
        "fingerprint=zz",
        "fingerprint=%00",
        "scope=world",
        "x=1",
    ] {
        let answer = alice.get(&format!("{DLQ}?{bad}")).await;
        assert_eq!(answer.status, 400, "{bad}: {}", answer.body);
    }
    alice.get(&format!("{DLQ}?batchId=x")).await.refused(404, "BATCH_NOT_FOUND");
    alice.get(&format!("{DLQ}/groups?cursor=1")).await.refused(400, "INVALID_REQUEST");
    for bad in [
        json!({ "x": 1 }),
        json!({ "code": 5 }),
        json!({ "code": "NOPE" }),
        json!({ "stage": "x" }),
        json!([]),
    ] {
        let answer = alice.post(RETRY_ALL, bad.clone()).await;
        assert_eq!((answer.status, answer.code()), (400, "INVALID_REQUEST"), "{bad}");
    }
    for path in [DLQ.to_owned(), format!("{DLQ}/groups"), "/api/v2/uploads/operations".to_owned()] {
        alice.get(&format!("{path}?scope=all")).await.refused(403, "FORBIDDEN");
    }
    alice.post(RETRY_ALL, json!({ "scope": "all" })).await.refused(403, "FORBIDDEN");

    let (own, ..) = summary(&alice.post(RETRY_ALL, json!({ "code": "NO_TEXT" })).await.ok());
    let nothing = "01890000-0000-7000-8000-000000000000";
    for id in [files[0].as_str(), nothing, "not-an-id", "%00", "..%2f.."] {
        mallory.post(&format!("{DLQ}/{id}/retry"), json!({})).await.refused(404, "FILE_NOT_FOUND");
        mallory.delete(&format!("{DLQ}/{id}")).await.refused(404, "FILE_NOT_FOUND");
    }
    for id in [own.as_str(), nothing, "not-an-id", "%00"] {
        let path = format!("/api/v2/uploads/operations/{id}");
        mallory.get(&path).await.refused(404, "OPERATION_NOT_FOUND");
        mallory.post(&format!("{path}/stop"), json!({})).await.refused(404, "OPERATION_NOT_FOUND");
    }
    assert_eq!(entries(&mallory, "").await, [] as [Value; 0]);
    assert_eq!(groups(&mallory).await, [] as [Value; 0]);
    assert_eq!(mallory.get("/api/v2/uploads/operations").await.ok()["operations"], json!([]));
    assert_eq!(entries(&alice, "").await.len(), 1, "the file is unchanged");
    assert_eq!(server.admin().get(&format!("/api/v2/uploads/operations/{own}")).await.status, 200);
}
