//! The figures: what is counted, of files and of attempts, how long files take, and what could not be cleaned.

use std::time::Duration;

use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage;
use landfall_store::args;
use serde_json::{Value, json};

use crate::recovery_jobs::{by_hand, without_workers};
use crate::support::script::Gate;
use crate::support::{Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database, until};

const FILES: &str = "/api/v2/uploads/files";

async fn queue_status(server: &TestServer) -> Value {
    server.admin().get("/api/v2/admin/queue-status").await.ok()
}

#[on_each_database]
async fn every_failed_attempt_is_counted_by_its_class_beside_the_files(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    script.then(Stage::Extract, Step::Fail(Code::StageTimeout));
    script.then(Stage::Extract, Step::Fail(Code::GatewayTimeout));
    script.then(Stage::Embed, Step::Fail(Code::DbError));
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"12345").await;
    for _ in 0..3 {
        server.idle().await;
        clock.advance(Duration::from_mins(5));
    }
    server.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
    let status = queue_status(&server).await;
    let sum = |name: &str| -> i64 {
        status["recentHours"].as_array().unwrap().iter().map(|hour| hour[name].as_i64().unwrap()).sum()
    };
    assert_eq!(
        (sum("failedAttempts"), sum("attemptsTimedOut"), sum("failed"), sum("timedOut")),
        (3, 2, 0, 0)
    );
    let total = &status["throughput"];
    assert_eq!((&total["totalFailedAttempts"], &total["totalAttemptsTimedOut"]), (&json!(3), &json!(2)));
    let classes: Vec<&Value> =
        status["recentHours"].as_array().unwrap().iter().map(|hour| &hour["attemptsByClass"]).collect();
    let of = |class: &str| -> i64 { classes.iter().filter_map(|hour| hour[class].as_i64()).sum() };
    assert_eq!((of("TIMEOUT"), of("DB_ERROR")), (2, 1));
}

#[on_each_database]
async fn the_failure_rate_counts_files_and_the_success_of_retries_is_known(db: TestDb) {
    let script = Script::new();
    for _ in 0..2 {
        script.then(Stage::Extract, Step::Fail(Code::ParseError));
    }
    let server = Setup::default().work(script).start(&db).await;
    let alice = server.client("alice");
    let bad = alice.upload("bad.txt", b"12345").await;
    server.idle().await;
    let names: Vec<String> = (0..28).map(|number| format!("{number}.txt")).collect();
    let retry = async || {
        alice.post(&format!("{FILES}/{bad}/retry"), json!({})).await.ok();
        server.idle().await;
    };
    retry().await;
    assert_eq!(alice.status(&bad).await, "failed", "for the second time");
    alice.upload_all(&names).await;
    server.idle().await;
    let rate = async || {
        let own = alice.get("/api/v2/uploads/dashboard").await.ok()["metrics"]["failureRate24h"].clone();
        let all = server.admin().get("/api/v2/uploads/dashboard?scope=all").await.ok();
        assert_eq!(own, all["metrics"]["failureRate24h"]);
        own
    };
    assert_eq!(rate().await, json!(3.45), "one of 29 files");
    assert_eq!(queue_status(&server).await["throughput"]["retrySuccessRate"], json!(0.0));
    retry().await;
    assert_eq!((alice.status(&bad).await, rate().await), ("ready".to_owned(), json!(0.0)));
    let throughput = queue_status(&server).await["throughput"].clone();
    assert_eq!(
        (&throughput["totalRetried"], &throughput["totalRetriedReady"], &throughput["retrySuccessRate"]),
        (&json!(2), &json!(1), &json!(50.0))
    );
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_percentile_is_less_than_a_tenth_off(db: TestDb) {
    let (clock, gate) = (manual_clock(), Gate::default());
    let script = Script::new().then(Stage::Extract, Step::Block(gate.clone()));
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    server.client("alice").upload("a.txt", b"12345").await;
    gate.reached().await;
    clock.advance(Duration::from_millis(375));
    gate.open();
    server.idle().await;
    let status = queue_status(&server).await;
    for figures in [&status["recentHours"][0], &status["throughput"]] {
        for share in ["p50Ms", "p95Ms"] {
            let found = figures[share].as_f64().unwrap();
            assert!((found / 375.0 - 1.0).abs() < 0.1, "{share}: {found} and not 375");
        }
    }
}

#[on_each_database]
async fn the_expiry_of_uploads_is_a_job_that_is_recorded_and_watched(db: TestDb) {
    let clock = manual_clock();
    let server = without_workers(&clock).start(&db).await;
    let alice = server.client("alice");
    let file = alice.register(None, "never.txt", 5).await["fileId"].as_str().unwrap().to_owned();
    clock.advance(Duration::from_hours(2));
    until("it expired", async || alice.get(&format!("{FILES}/{file}")).await.status == 410).await;
    let job = async || {
        let jobs = server.admin().get("/api/v2/admin/jobs").await.ok();
        jobs["jobs"].as_array().unwrap().iter().find(|job| job["name"] == "upload-expiry").unwrap().clone()
    };
    until("its run has ended", async || job().await["lastRun"]["endedAt"].is_string()).await;
    assert_eq!(job().await["lastRun"]["metrics"], json!({ "adopted": 0, "deleted": 1 }));
    assert_eq!(job().await["lastRun"]["startedBy"], Value::Null);
    let request = server.admin().request(reqwest::Method::GET, "/metrics");
    let scrape = request.send().await.unwrap().text().await.unwrap();
    assert!(scrape.contains("landfall_job_overdue_seconds{name=\"upload-expiry\"}"), "{scrape}");
}

#[on_each_database]
async fn what_could_not_be_cleaned_is_listed_until_it_is(db: TestDb) {
    let clock = manual_clock();
    let server = by_hand(&clock).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"12345").await;
    server.idle().await;
    // Where the blob was is a folder, so it cannot be removed.
    let sql = "SELECT blob_key FROM files";
    let key: Option<(String,)> = server.app.db.read().await.unwrap().row(sql, args![]).await.unwrap();
    let blob = server.app.config.storage.place.folder().unwrap().join("blobs").join(key.expect("a file").0);
    std::fs::remove_file(&blob).unwrap();
    std::fs::create_dir(&blob).unwrap();
    assert_ne!(alice.delete(&format!("{FILES}/{file}")).await.status, 204);
    let failures = async || server.admin().get("/api/v2/admin/cleanup-failures").await.ok();
    until("it is listed", async || {
        clock.advance(Duration::from_mins(1));
        failures().await["total"] == 1
    })
    .await;
    let listed = failures().await["failures"][0].clone();
    assert_eq!((&listed["scope"], &listed["fileId"]), (&json!("unfinished-deletions"), &json!(file)));
    assert!(listed["error"].as_str().is_some_and(|error| !error.is_empty()), "{listed}");
    alice.get("/api/v2/admin/cleanup-failures").await.refused(403, "FORBIDDEN");
    server.admin().get("/api/v2/admin/cleanup-failures?limit=0").await.refused(400, "INVALID_REQUEST");

    std::fs::remove_dir(&blob).unwrap();
    until("it is clean", async || {
        clock.advance(Duration::from_mins(1));
        failures().await["total"] == 0
    })
    .await;
    server.assert_audit_clean().await;
}
