//! One file retried by a user: where it resumes, what it needs for that, and the names of an older API.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage::{self, Chunk, Embed, Extract, Scan};
use landfall_core::text::Embedded;
use landfall_server::stages::{Job, Output, Work};
use reqwest::Method;
use serde_json::json;

use crate::support::scripted_failures::{DLQ, ScriptedFailures, names, server};
use crate::support::{Script, Setup, Step, TestDb, on_each_database};

#[on_each_database]
async fn a_retry_resumes_at_the_failed_stage_and_repeats_nothing(db: TestDb) {
    let work = ScriptedFailures::new();
    let server = server(&db, &work).await;
    let alice = server.client("alice");
    let (_, files) = alice.upload_all(&names('e', 1)).await;
    server.idle().await;
    work.fix('e');
    alice.post(&format!("{DLQ}/{}/retry", files[0]), json!({})).await.ok();
    server.idle().await;
    assert_eq!(alice.status(&files[0]).await, "ready");
    assert_eq!(work.runs("e0"), [Extract, Chunk, Embed, Embed]);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_retry_from_an_earlier_stage_replaces_the_output_of_later_stages(db: TestDb) {
    let work = Arc::new(Shrinking::default());
    let server = Setup::default().work(work.clone()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a", b"a").await;
    server.idle().await;
    let (chunks, retry) =
        (format!("/api/v2/uploads/files/{file}/chunks"), format!("/api/v2/uploads/files/{file}/retry"));
    assert_eq!(alice.file(&file).await["error"]["stage"], "embed");
    assert_eq!(alice.get(&chunks).await.ok()["chunks"].as_array().unwrap().len(), 3);
    alice.post(&retry, json!({ "fromStage": "chunk" })).await.ok();
    server.idle().await;
    assert_eq!(alice.get(&chunks).await.ok()["chunks"].as_array().unwrap().len(), 2);
    let queued = alice.post(&retry, json!({ "fromStage": "extract" })).await.ok();
    assert_eq!(
        (&queued["status"], &queued["nextStage"], &queued["error"]),
        (&json!("queued"), &json!("extract"), &json!(null))
    );
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["chunkCount"]), (&json!("ready"), &json!(1)));
    assert_eq!(alice.get(&chunks).await.ok()["chunks"].as_array().unwrap().len(), 1);
    assert_eq!(*work.runs.lock().unwrap(), [Extract, Chunk, Embed, Chunk, Embed, Extract, Chunk, Embed]);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_retry_from_an_unreached_or_unknown_stage_is_refused(db: TestDb) {
    let script = Script::new().then(Chunk, Step::Fail(Code::ParseError));
    let server = Setup::default().work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a", b"a").await;
    server.idle().await;
    let path = format!("/api/v2/uploads/files/{file}/retry");
    let error = alice.post(&path, json!({ "fromStage": "embed" })).await.refused(400, "STAGE_NOT_REACHED");
    assert!(error["message"].as_str().unwrap().contains("chunk stage"), "{error}");
    alice.post(&path, json!({ "fromStage": "scan" })).await.refused(400, "NO_SCANNER");
    alice.post(&path, json!({ "fromStage": "upload" })).await.refused(400, "INVALID_REQUEST");
    alice.post(&path, json!({ "onlyFailed": true })).await.refused(400, "INVALID_REQUEST");
    assert_eq!(alice.status(&file).await, "failed");
    assert_eq!(
        alice.send(alice.request(Method::POST, &path)).await.ok()["nextStage"],
        "chunk",
        "without a body"
    );
    server.idle().await;
    assert_eq!(script.runs(), [(Extract, 1), (Chunk, 1), (Chunk, 1), (Embed, 1)]);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn with_a_scanner_a_retry_can_begin_with_the_scan(db: TestDb) {
    let script =
        Script::new().then(Extract, Step::Fail(Code::ParseError)).then(Extract, Step::Fail(Code::ParseError));
    let server = Setup::default().work(script.clone()).with("CLAMD_ADDRESS", "127.0.0.1:9").start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a", b"a").await;
    server.idle().await;
    let path = format!("/api/v2/uploads/files/{file}/retry");
    alice.post(&path, json!({ "fromStage": "scan" })).await.ok();
    server.idle().await;
    assert_eq!(script.runs(), [(Scan, 1), (Extract, 1), (Scan, 1), (Extract, 1)]);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_whose_bytes_are_gone_is_retried_only_from_stages_that_do_not_need_them(db: TestDb) {
    let work = ScriptedFailures::new();
    let server = server(&db, &work).await;
    let alice = server.client("alice");
    let (_, files) = alice.upload_all(&["p0".to_owned(), "e0".to_owned()]).await;
    server.idle().await;
    for file in &files {
        for key in server.app.blobs.keys_of(file.parse().unwrap()).await.unwrap() {
            server.app.blobs.remove(&key).await.unwrap();
        }
    }
    for path in [
        format!("{DLQ}/{}/retry", files[0]),
        format!("/api/jobs/{}/retry", files[0]),
        format!("/api/v2/uploads/files/{}/retry", files[0]),
    ] {
        let error = alice.post(&path, json!({})).await.refused(404, "FILE_NOT_FOUND");
        assert_eq!(error["message"], "Source file no longer exists");
    }
    work.fix('e');
    let path = format!("/api/v2/uploads/files/{}/retry", files[1]);
    alice.post(&path, json!({ "fromStage": "extract" })).await.refused(404, "FILE_NOT_FOUND");
    alice.post(&path, json!({})).await.ok();
    server.idle().await;
    assert_eq!(
        (alice.status(&files[0]).await, alice.status(&files[1]).await),
        ("failed".to_owned(), "ready".to_owned())
    );
}

#[on_each_database]
async fn jobs_are_the_same_files_in_the_terms_of_another_api(db: TestDb) {
    let work = ScriptedFailures::new();
    let server = server(&db, &work).await;
    let (alice, mallory) = (server.client("alice"), server.client("mallory"));
    let (_, files) = alice.upload_all(&["p0".to_owned(), "a0".to_owned()]).await;
    let gone = alice.upload("gone", b"x").await;
    server.idle().await;
    alice.delete(&format!("/api/v2/uploads/files/{gone}")).await.ok();
    let jobs = alice.get("/api/jobs").await.ok();
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 2, "{jobs}");
    assert_eq!(alice.get("/api/jobs?status=failed").await.ok()["jobs"][0]["id"], json!(files[0]));
    assert_eq!(alice.get(&format!("/api/jobs/{}", files[0])).await.ok()["isDeadLetter"], true);
    let path = format!("/api/jobs/{}/download", files[1]);
    let bytes = alice.request(Method::GET, &path).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(bytes, "x");

    let nothing = "01890000-0000-7000-8000-000000000000";
    for (client, id) in [
        (&mallory, files[0].as_str()),
        (&alice, gone.as_str()),
        (&alice, nothing),
        (&alice, "not-an-id"),
        (&alice, "%00"),
    ] {
        for (method, suffix) in [(Method::GET, ""), (Method::GET, "/download"), (Method::POST, "/retry")] {
            let path = format!("/api/jobs/{id}{suffix}");
            let error = client.send(client.request(method, &path)).await.refused(403, "FORBIDDEN");
            assert_eq!(error["message"], "Not authorized");
        }
    }
    work.fix('p');
    let retried = alice.post(&format!("/api/jobs/{}/retry", files[0]), json!({})).await;
    assert_eq!(
        (retried.status, retried.body),
        (200, json!({ "message": "Job queued for retry", "job": { "id": files[0], "status": "queued" } }))
    );
    server.idle().await;
    assert_eq!(alice.status(&files[0]).await, "ready");
    assert_eq!(work.runs("p0"), [Extract, Extract, Chunk, Embed]);
    server.assert_audit_clean().await;
}

/// Returns one chunk fewer each time, and embeds only the last.
#[derive(Default)]
struct Shrinking {
    runs: Mutex<Vec<Stage>>,
}

impl Work for Shrinking {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        let mut runs = self.runs.lock().unwrap();
        runs.push(job.stage);
        let round = runs.iter().filter(|stage| **stage == Chunk).count();
        let chunk = |number: usize| landfall_core::text::Chunk {
            text: format!("piece {number}"),
            page: None,
            heading: None,
            headings: Vec::new(),
            places: Vec::new(),
            char_start: number,
            char_end: number + 1,
            tokens: 1,
        };
        let done = match job.stage {
            Chunk => Ok(Output::Chunked((round..4).map(chunk).collect())),
            Embed if round < 3 => Err(Failure::new(Code::EmbedError, "not yet").permanent()),
            Embed => Ok(Output::Embedded(Embedded { model: "test".to_owned(), vectors: vec![vec![1.0]] })),
            Scan | Extract => Ok(Output::Nothing),
        };
        async move { done }.boxed()
    }
}
