//! Cleanup removes leftovers, and nothing else. The tests damage rows by SQL and blobs on disk; each sweep runs
//! twice, and twice at the same time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::clock::{ManualClock, Time};
use landfall_core::failure::{Code, Failure};
use landfall_server::blobs::{Blobs, Saved, Unsaved};
use landfall_server::recovery::{Sweep, SweepReport, resumable_uploads};
use landfall_server::stages::{Job, Output, Work};
use landfall_store::args;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::offline_app::OfflineApp;
use crate::support::{Setup, TestDb, TestServer, manual_clock, on_each_database, until};

const DAY: Duration = Duration::from_hours(24);

/// Slightly less than so many days.
fn almost(days: u64) -> Duration {
    Duration::from_millis(days * 86_400_000 - 1)
}

/// Fails every file whose name begins with an f.
struct FailsSome;

impl Work for FailsSome {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        let fails = job.file.file_name.starts_with('f');
        let end =
            if fails { Err(Failure::new(Code::ParseError, "It is damaged")) } else { Ok(Output::Nothing) };
        async move { end }.boxed()
    }
}

/// A server on which every file whose name begins with an f fails.
async fn serve(db: &TestDb, clock: &ManualClock) -> TestServer {
    Setup::default().clock(clock).work(Arc::new(FailsSome)).start(db).await
}

/// The offline data of a server after these files were uploaded to it.
async fn offline_after_uploads(db: &TestDb, clock: &ManualClock, names: &[&str]) -> OfflineApp {
    let server = serve(db, clock).await;
    for name in names {
        server.client("alice").upload(name, b"12345").await;
    }
    server.idle().await;
    server.stop().await;
    OfflineApp::open(db, clock, &[]).await
}

async fn clean(rest: &OfflineApp) -> SweepReport {
    rest.app.orphan_cleanup.sweep_once(rest.now()).await.expect("the sweep runs")
}

/// Two processes at the same time; returns both reports.
async fn clean_twice_at_once(rest: &OfflineApp) -> [SweepReport; 2] {
    let (one, other) = tokio::join!(clean(rest), clean(rest));
    [one, other]
}

#[track_caller]
fn assert_metrics(report: &SweepReport, orphans: Value, abandoned: Value, failures: Value) {
    assert_eq!(report.errors, Vec::<String>::new());
    assert!(report.metrics["executionTime"].is_u64());
    let found = json!([
        report.metrics["orphanBlobs"],
        report.metrics["abandonedUploads"],
        report.metrics["oldFailures"]
    ]);
    assert_eq!(found, json!([orphans, abandoned, failures]));
}

fn no_orphans() -> Value {
    json!({ "total": 0, "deleted": 0, "errors": 0 })
}

fn none_abandoned() -> Value {
    json!({ "total": 0, "deleted": 0 })
}

fn failures(warnings: usize, deleted: usize) -> Value {
    json!({ "warnings": warnings, "deleted": deleted })
}

/// Runs all jobs that are due and waits for their end.
async fn run_due_jobs(rest: &OfflineApp) {
    rest.app.jobs.run_due().await.expect("the schedules are read");
    until("the due jobs have ended", async || {
        rest.number("SELECT COUNT(*) FROM job_runs WHERE ended_at IS NULL").await == 0
    })
    .await;
}

async fn warnings_and_status(rest: &OfflineApp) -> (i64, String) {
    let warnings =
        rest.number("SELECT COUNT(*) FROM notifications WHERE kind = 'file-deletion-warning'").await;
    let status: Vec<(String,)> = rest.rows("SELECT status FROM files", args![]).await;
    (warnings, status[0].0.clone())
}

/// The sum over both reports.
fn sum(reports: &[SweepReport; 2], scope: &str, name: &str) -> u64 {
    reports.iter().map(|report| report.metrics[scope][name].as_u64().expect("a number")).sum()
}

async fn keys(rest: &OfflineApp) -> Vec<(Uuid, String)> {
    rest.rows("SELECT id, blob_key FROM files WHERE blob_key IS NOT NULL ORDER BY id", args![]).await
}

async fn quota(rest: &OfflineApp) -> (i64, i64, i64, i64) {
    rest.rows("SELECT reserved_bytes, reserved_files, used_bytes, used_files FROM tenants", args![]).await[0]
}

#[on_each_database]
async fn old_blobs_without_a_row_are_removed(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after_uploads(&db, &clock, &["a.txt", "b.txt"]).await;
    let old = rest.now() - TimeDelta::hours(24) - TimeDelta::milliseconds(1);
    let fresh = rest.now() - TimeDelta::hours(24);
    let known = keys(&rest).await;
    for (_, key) in &known {
        rest.age(key, old);
    }
    let nobodys = Blobs::key(rest.app.clock.new_id(), rest.app.clock.new_id());
    // An earlier upload of a file that was uploaded twice.
    let replaced = Blobs::key(known[0].0, rest.app.clock.new_id());
    let arriving = Blobs::key(rest.app.clock.new_id(), rest.app.clock.new_id());
    let strays = [nobodys.as_str(), replaced.as_str(), "no/key-of-ours", "at-the-top"];
    for key in strays {
        rest.store(key, "stray", old);
    }
    rest.store(&arriving, "fresh", fresh);

    assert_metrics(
        &clean(&rest).await,
        json!({ "total": 4, "deleted": 4, "errors": 0 }),
        none_abandoned(),
        failures(0, 0),
    );
    assert!(strays.iter().all(|key| !rest.is_stored(key)));
    assert!(known.iter().all(|(_, key)| rest.is_stored(key)), "blobs that a row references stay");
    assert!(rest.is_stored(&arriving), "an upload in progress stays");
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 0));
    clock.advance(Duration::from_millis(1));
    assert_eq!(clean(&rest).await.metrics["orphanBlobs"]["deleted"], 1, "it is a day old now");
    rest.assert_audit_clean().await;
    rest.app.blobs.check().await.expect("the cleanup leaves the storage itself intact");
}

#[on_each_database]
async fn an_unfinished_upload_is_no_orphan_at_any_age(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after_uploads(&db, &clock, &[]).await;
    let key = Blobs::key(rest.app.clock.new_id(), rest.app.clock.new_id());
    let mut incoming = rest.app.blobs.receive(rest.app.liveness.identity().id, &key).await.unwrap();
    incoming.write(b"12345").await.unwrap();
    incoming.publish(|_| Ok(())).await.unwrap();
    rest.age(&key, rest.now() - TimeDelta::days(30));
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 0));
    assert!(rest.is_stored(&key));
    incoming.finish().await;
    assert_eq!(clean(&rest).await.metrics["orphanBlobs"]["deleted"], 1);
    assert!(!rest.is_stored(&key));
}

#[on_each_database]
async fn bytes_of_a_resumable_upload_go_with_its_row_and_not_before(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after_uploads(&db, &clock, &[]).await;
    let user = crate::support::actions::TestUser {
        rest: Arc::new(rest),
        caller: landfall_core::caller::Caller {
            tenant: "alice".to_owned(),
            user: "alice".to_owned(),
            role: landfall_core::caller::Role::Member,
        },
    };
    let rest = user.rest.clone();
    let upload = user.create_upload(None, "a").await.unwrap();
    user.resume(upload, 3).await.unwrap();
    let unknown = Blobs::key(rest.app.clock.new_id(), rest.app.clock.new_id());
    let left = rest.app.blobs.append(&unknown, &Saved::default(), Unsaved::Keep, 5).await.unwrap();
    let mut left = left.expect("no one writes to it");
    left.write(b"12").await.unwrap();
    left.save().await.unwrap();
    drop(left);
    assert!(
        rest.findings().await.iter().any(|finding| finding.what.contains(&unknown)),
        "the audit names it"
    );
    assert_eq!(rest.app.blobs.all_appended().await.unwrap().len(), 2);
    resumable_uploads::sweep_once(&rest.app.resumables, rest.now()).await.unwrap();
    assert_eq!(rest.app.blobs.all_appended().await.unwrap().len(), 1, "what a row knows stays");
    // A blob that was made of an upload and is not in its file's row yet is no orphan at any age.
    let key: Vec<(String,)> = rest.rows("SELECT blob_key FROM resumable_uploads", args![]).await;
    rest.store(&key[0].0, "12345", rest.now() - TimeDelta::days(30));
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 0));
    assert!(rest.is_stored(&key[0].0));
    rest.assert_audit_clean().await;
    user.terminate(upload).await.unwrap();
    assert!(!rest.is_stored(&key[0].0));
    assert_eq!(rest.app.blobs.all_appended().await.unwrap(), [] as [&str; 0]);
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn two_concurrent_cleanups_remove_every_orphan_and_nothing_else(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after_uploads(&db, &clock, &["a.txt"]).await;
    let old = rest.now() - TimeDelta::days(2);
    let (_, known) = keys(&rest).await[0].clone();
    rest.age(&known, old);
    let strays: Vec<String> = (0..600).map(|_| Blobs::key(Uuid::new_v4(), rest.app.clock.new_id())).collect();
    for key in &strays {
        rest.store(key, "stray", old);
    }
    // So many orphans among so few blobs are removed only with force.
    let forced = rest.app.orphan_cleanup.forced().expect("it can be forced");
    let (one, other) = tokio::join!(forced.sweep_once(rest.now()), forced.sweep_once(rest.now()));
    let reports = [one.unwrap(), other.unwrap()];
    assert!(reports.iter().all(|report| report.errors.is_empty()), "{reports:?}");
    assert!(sum(&reports, "orphanBlobs", "deleted") >= 600);
    assert!(strays.iter().all(|key| !rest.is_stored(key)) && rest.is_stored(&known));
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn a_registration_without_bytes_expires_after_a_day_and_is_refunded_once(db: TestDb) {
    let clock = manual_clock();
    let server = serve(&db, &clock).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(2).await;
    alice.register(Some(&batch), "gone.txt", 10).await;
    alice.register(None, "slow.txt", 20).await;
    alice.send_bytes(None, "here.txt", b"1234567").await;
    server.stop().await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    assert_eq!(quota(&rest).await, (37, 3, 0, 0));

    clock.advance(almost(1));
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 0));
    // Bytes still arrive for one of them.
    rest.sql(
        "UPDATE files SET upload_until = $1 WHERE file_name = 'slow.txt'",
        args![rest.now() + TimeDelta::hours(1)],
    )
    .await;
    clock.advance(Duration::from_millis(1));
    let reports = clean_twice_at_once(&rest).await;
    assert_eq!(sum(&reports, "abandonedUploads", "deleted"), 1, "{reports:?}");
    assert_eq!(quota(&rest).await, (27, 2, 0, 0), "refunded once");
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 0));

    let told: Vec<(Value,)> =
        rest.rows("SELECT data FROM events WHERE kind = 'file:cleaned-up'", args![]).await;
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0].0["reason"], &told[0].0["sizeReclaimed"]), (&json!("abandoned"), &json!(10)));
    let status = "SELECT COUNT(*) FROM files WHERE file_name = 'gone.txt' AND status = 'deleted'";
    assert_eq!(rest.number(status).await, 1);
    assert_eq!(rest.number("SELECT deleted_files FROM batches").await, 1);

    clock.advance(Duration::from_hours(1));
    assert_eq!(
        clean(&rest).await.metrics["abandonedUploads"]["deleted"],
        1,
        "the slow upload was interrupted"
    );
    assert_eq!(quota(&rest).await, (7, 1, 0, 0), "this job does not touch complete uploads");
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn the_owner_of_a_failed_file_is_warned_on_day_23_and_the_file_deleted_on_day_30(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after_uploads(&db, &clock, &["f.txt", "good.txt"]).await;
    let key = rest.rows::<(String,)>("SELECT blob_key FROM files WHERE file_name = 'f.txt'", args![]).await
        [0]
    .0
    .clone();
    clock.advance(almost(23));
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 0));
    clock.advance(Duration::from_millis(1));
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(1, 0));
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 0));
    let warnings: Vec<(String, Value)> = rest
        .rows("SELECT user_id, data FROM notifications WHERE kind = 'file-deletion-warning'", args![])
        .await;
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].0, "alice");
    let date: Time = warnings[0].1["deletionDate"].as_str().unwrap().parse().unwrap();
    assert_eq!(date, rest.now() + TimeDelta::days(7));

    clock.advance(almost(7));
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 0));
    assert!(rest.is_stored(&key));
    clock.advance(Duration::from_millis(1));
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 1));
    assert!(!rest.is_stored(&key));
    assert_eq!(quota(&rest).await, (0, 0, 5, 1), "the failed file is refunded, the ready one is still there");
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 0));
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn a_server_that_was_down_from_day_20_to_day_40_warns_then_and_deletes_on_day_47(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after_uploads(&db, &clock, &["f.txt"]).await;
    clock.advance(DAY * 20);
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 0));
    clock.advance(DAY * 20);
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(1, 0));
    for _ in 41..47 {
        clock.advance(DAY);
        assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 0));
    }
    clock.advance(DAY);
    assert_metrics(&clean(&rest).await, no_orphans(), none_abandoned(), failures(0, 1));
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn the_schedule_warns_of_a_failed_file_once_on_day_23_and_deletes_it_on_day_30(db: TestDb) {
    let clock = ManualClock::starting_at("2026-01-02T02:00:00Z".parse().unwrap());
    let rest = offline_after_uploads(&db, &clock, &["f.txt"]).await;
    // The job is scheduled for three o'clock.
    clock.advance(Duration::from_hours(1));
    for day in 0..=31 {
        run_due_jobs(&rest).await;
        let expected = match day {
            0..23 => (0, "failed"),
            23..30 => (1, "failed"),
            _ => (1, "deleted"),
        };
        assert_eq!(warnings_and_status(&rest).await, (expected.0, expected.1.to_owned()), "day {day}");
        clock.advance(DAY);
    }
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn the_schedule_warns_of_an_old_failure_after_a_long_outage_and_deletes_it_a_week_later(db: TestDb) {
    let clock = ManualClock::starting_at("2026-01-02T02:00:00Z".parse().unwrap());
    let mut rest = offline_after_uploads(&db, &clock, &["f.txt"]).await;
    clock.advance(Duration::from_hours(1));
    for day in 0..=48 {
        if day == 40 {
            rest.app.db.close().await;
            rest = OfflineApp::open(&db, &clock, &[]).await;
        }
        if !(20..40).contains(&day) {
            run_due_jobs(&rest).await;
            let expected = match day {
                0..40 => (0, "failed"),
                40..47 => (1, "failed"),
                _ => (1, "deleted"),
            };
            assert_eq!(warnings_and_status(&rest).await, (expected.0, expected.1.to_owned()), "day {day}");
        }
        clock.advance(DAY);
    }
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn the_owner_of_a_file_that_fails_again_after_its_warning_is_warned_again(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after_uploads(&db, &clock, &["f.txt"]).await;
    clock.advance(DAY * 23);
    assert_eq!(clean(&rest).await.metrics["oldFailures"], failures(1, 0));
    clock.advance(DAY);
    // As if it had been retried and had failed again today.
    rest.sql("UPDATE files SET failed_at = $1, error_at = $1", args![rest.now()]).await;
    clock.advance(DAY * 7);
    assert_eq!(clean(&rest).await.metrics["oldFailures"], failures(0, 0), "30 days after the first failure");
    clock.advance(DAY * 16);
    assert_eq!(clean(&rest).await.metrics["oldFailures"], failures(1, 0));
    clock.advance(DAY * 7);
    assert_eq!(clean(&rest).await.metrics["oldFailures"], failures(0, 1));
}

#[on_each_database]
async fn a_short_retention_still_leaves_seven_days_after_the_warning(db: TestDb) {
    let clock = manual_clock();
    drop(offline_after_uploads(&db, &clock, &["f.txt"]).await);
    let rest = OfflineApp::open(&db, &clock, &[("FAILED_FILE_RETENTION_DAYS", "1".to_owned())]).await;
    assert_eq!(clean(&rest).await.metrics["oldFailures"], failures(1, 0), "warned at once");
    clock.advance(almost(7));
    assert_eq!(clean(&rest).await.metrics["oldFailures"], failures(0, 0));
    clock.advance(Duration::from_millis(1));
    assert_eq!(clean(&rest).await.metrics["oldFailures"], failures(0, 1));
}

#[on_each_database]
async fn two_concurrent_cleanups_warn_once_and_refund_once(db: TestDb) {
    let clock = manual_clock();
    let server = serve(&db, &clock).await;
    let names: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
    server.client("alice").upload_all(&names).await;
    server.idle().await;
    server.stop().await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    clock.advance(DAY * 30);
    let reports = clean_twice_at_once(&rest).await;
    assert_eq!(sum(&reports, "oldFailures", "warnings"), 40, "{reports:?}");
    let count = "SELECT COUNT(*) FROM notifications WHERE kind = 'file-deletion-warning'";
    assert_eq!(rest.number(count).await, 40);
    let told = "SELECT COUNT(*) FROM events WHERE kind = 'notification:created'";
    assert_eq!(rest.number(told).await, 80, "one for each failure and one for each warning");
    clock.advance(DAY * 7);
    let reports = clean_twice_at_once(&rest).await;
    assert_eq!(sum(&reports, "oldFailures", "deleted"), 40, "{reports:?}");
    assert_eq!(quota(&rest).await, (0, 0, 0, 0));
    assert_eq!(rest.number("SELECT deleted_files FROM batches").await, 40);
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn an_error_in_one_scope_does_not_stop_the_others(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after_uploads(&db, &clock, &["f.txt"]).await;
    std::fs::rename(db.folder.path().join("blobs/incoming"), db.folder.path().join("away")).unwrap();
    rest.store("no/key-of-ours", "stray", rest.now() - TimeDelta::days(2));
    clock.advance(DAY * 23);
    let report = clean(&rest).await;
    assert_eq!(report.errors.len(), 1, "{report:?}");
    assert!(report.errors[0].starts_with("orphan blobs"), "{report:?}");
    assert_eq!(report.metrics["oldFailures"], failures(1, 0));
    assert!(rest.is_stored("no/key-of-ours"), "uploads in progress are unknown, so no blob is removed");
}

#[on_each_database]
async fn the_orphan_report_shows_all_blobs_to_administrators_and_their_own_to_users(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after_uploads(&db, &clock, &["a.txt"]).await;
    let (file, _) = keys(&rest).await[0].clone();
    let old = rest.now() - TimeDelta::days(2);
    let own = Blobs::key(file, rest.app.clock.new_id());
    rest.store(&own, "12345", old);
    rest.store("no/key-of-ours", "1234567", old);
    rest.app.db.close().await;

    let server = serve(&db, &clock).await;
    let report = async |user: &str, path: &str| {
        let client = if user == "root" { server.admin() } else { server.client(user) };
        client.get(&format!("/api/v2/uploads/orphans{path}")).await
    };
    let all = report("root", "?scope=all").await.ok();
    assert_eq!((&all["orphanBlobs"]["count"], &all["orphanBlobs"]["totalSize"]), (&json!(2), &json!(12)));
    let samples: BTreeSet<&str> =
        all["orphanBlobs"]["samples"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(samples, BTreeSet::from([own.as_str(), "no/key-of-ours"]));
    assert_eq!(all["abandonedUploads"], json!({ "count": 0, "oldestAge": 0 }));
    assert_eq!(all["lastScanTime"].as_str().unwrap().parse::<Time>().unwrap(), server.app.clock.now());
    let alices = report("alice", "").await.ok();
    assert_eq!(alices["orphanBlobs"], json!({ "count": 1, "totalSize": 5, "samples": [own] }));
    let bobs = report("bob", "").await.ok();
    assert_eq!(bobs["orphanBlobs"], json!({ "count": 0, "totalSize": 0, "samples": [] }));

    // A report is cached for an hour, unless an administrator asks for a refresh.
    server.app.blobs.remove("no/key-of-ours").await.unwrap();
    clock.advance(Duration::from_mins(59));
    assert_eq!(report("root", "?scope=all").await.ok()["orphanBlobs"]["count"], 2);
    assert_eq!(report("root", "").await.ok()["orphanBlobs"]["count"], 0, "an administrator's own");
    report("alice", "?scope=all").await.refused(403, "FORBIDDEN");
    report("alice", "?refresh=true").await.refused(403, "FORBIDDEN");
    assert_eq!(report("root", "?refresh=true&scope=all").await.ok()["orphanBlobs"]["count"], 1);
    server.app.blobs.remove(&own).await.unwrap();
    assert_eq!(report("alice", "").await.ok()["orphanBlobs"]["count"], 1);
    clock.advance(Duration::from_hours(1));
    assert_eq!(report("alice", "").await.ok()["orphanBlobs"]["count"], 0);
}

#[on_each_database]
async fn deleted_files_are_purged_with_their_history_once_their_blob_is_gone(db: TestDb) {
    let clock = manual_clock();
    let server = serve(&db, &clock).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(3).await;
    let mut files = Vec::new();
    for name in ["a.txt", "b.txt", "c.txt"] {
        files.push(alice.upload_in(&batch, name, b"12345").await);
    }
    server.idle().await;
    for file in &files[..2] {
        alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
    }
    server.stop().await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    rest.sql("UPDATE files SET blob_key = 'still/here' WHERE file_name = 'b.txt'", args![]).await;
    let gone = async |name: &str| {
        rest.rows::<(Uuid,)>("SELECT id FROM files WHERE file_name = $1", args![name]).await.is_empty()
    };
    let retain = async || rest.app.retention.sweep_once(rest.now()).await.expect("the sweep runs");

    clock.advance(DAY * 7);
    assert_eq!(retain().await.metrics["tombstones"], 0);
    clock.advance(Duration::from_millis(1));
    let (one, other) = tokio::join!(retain(), retain());
    assert_eq!(
        one.metrics["tombstones"].as_u64().unwrap() + other.metrics["tombstones"].as_u64().unwrap(),
        1
    );
    assert_eq!((one.errors, other.errors), (vec![], vec![]));
    assert!(gone("a.txt").await);
    assert!(!gone("b.txt").await, "its blob is not removed yet");
    let history = "SELECT COUNT(*) FROM events e WHERE file_id IS NOT NULL
                   AND NOT EXISTS (SELECT 1 FROM files f WHERE f.id = e.file_id)";
    assert_eq!(rest.number(history).await, 0);
    clock.advance(DAY * 1000);
    rest.sql("UPDATE files SET blob_key = NULL WHERE file_name = 'b.txt'", args![]).await;
    assert_eq!(retain().await.metrics["tombstones"], 1);
    assert_eq!(retain().await.metrics["tombstones"], 0);
    rest.assert_audit_clean().await;
    let kept = "SELECT COUNT(*) FROM events WHERE kind = 'file:status-changed'";
    assert!(rest.number(kept).await > 0, "the history of a file stays with it");
}

#[on_each_database]
async fn records_are_removed_when_their_retention_ends_and_not_before(db: TestDb) {
    let clock = manual_clock();
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    let now = rest.now();
    let hour: Time = "2026-01-02T03:00:00Z".parse().unwrap();
    let id = Uuid::new_v4;
    let webhook = id();
    let record = async |name: &str, at: Time| {
        match name {
        "events" => rest.sql("INSERT INTO events (at, kind, tenant_id, user_id) VALUES ($1, 'circuit:changed', '', '')", args![at]).await,
        "idempotencyKeys" => rest.sql("INSERT INTO idempotency_keys (tenant_id, user_id, key, request, created_at) VALUES ('alice', 'alice', $2, 'x', $1)", args![at, id().to_string()]).await,
        "hourlyMetrics" => rest.sql("INSERT INTO hourly (hour, name, count) VALUES ($1, $2, 1)", args![at, id().to_string()]).await,
        "jobRuns" => rest.sql("INSERT INTO job_runs (id, name, worker, worker_name, started_at, ended_at, errors) VALUES ($2, 'x', $2, 'w', $1, $1, $3)", args![at, id(), json!([])]).await,
        "operations" => rest.sql(
            "INSERT INTO operations (id, user_id, status, canaries, errors, cursor_at, cursor_id, created_at, updated_at, ended_at)
             VALUES ($2, 'alice', 'completed', $3, $3, $1, $2, $1, $1, $1)", args![at, id(), json!([])]).await,
        "notifications" => rest.sql(
            "INSERT INTO notifications (id, tenant_id, user_id, kind, file_id, file_name, message, data, created_at)
             VALUES ($2, 'alice', 'alice', 'file-deletion-warning', $2, 'f', 'm', $3, $1)", args![at, id(), json!({})]).await,
        "auditLog" => rest.sql(
            "INSERT INTO audit_log (at, actor_tenant, actor_user, action, method, path, outcome)
             VALUES ($1, 'alice', 'alice', 'deleteFile', 'DELETE', '/', 'done')", args![at]).await,
        "apiKeys" => rest.sql(
            "INSERT INTO api_keys (id, tenant_id, user_id, role, scopes, name, hash, hint, creator_tenant, creator_user, created_at, revoked_at, revoked_by)
             VALUES ($2, 'alice', 'alice', 'member', $4, 'k', $3, 'lf_', 'alice', 'alice', $1, $1, 'alice')", args![at, id(), id().to_string(), json!(["read"])]).await,
        "rateBuckets" => rest.sql("INSERT INTO rate_buckets (name, next_at) VALUES ($2, $1)", args![at, id().to_string()]).await,
        "webhookDeliveries" => rest.sql(
            "INSERT INTO webhook_deliveries (id, webhook_id, message_id, event_type, body, status, created_at, ended_at)
             VALUES ($2, $3, $2, 'webhook:test', '{}', 'delivered', $1, $1)", args![at, id(), webhook]).await,
        "deliveriesWithoutWebhook" => rest.sql(
            "INSERT INTO webhook_deliveries (id, webhook_id, message_id, event_type, body, status, next_at, created_at)
             VALUES ($2, $2, $2, 'webhook:test', '{}', 'pending', $1, $1)", args![at, id()]).await,
        other => panic!("{other} is no kind of record"),
    }
    };
    rest.sql("INSERT INTO job_schedules (name, schedule) VALUES ('x', '0 0 * * *')", args![]).await;
    rest.sql(
        "INSERT INTO webhooks (id, tenant_id, user_id, scope, url, secret, cursor_id, turn_at, created_at, updated_at)
         VALUES ($1, 'alice', 'alice', 'own', 'https://example.com', $2, 0, $3, $3, $3)",
        args![webhook, vec![1], now],
    )
    .await;
    let just_over = TimeDelta::milliseconds(1);
    let kinds = [
        ("events", now - TimeDelta::days(30)),
        ("idempotencyKeys", now - TimeDelta::days(7)),
        ("hourlyMetrics", hour - TimeDelta::hours(167)),
        ("jobRuns", now - TimeDelta::days(30)),
        ("operations", now - TimeDelta::days(30)),
        ("notifications", now - TimeDelta::days(90)),
        ("auditLog", now - TimeDelta::days(365)),
        ("apiKeys", now - TimeDelta::days(90)),
        ("rateBuckets", now - TimeDelta::days(1)),
        ("webhookDeliveries", now - TimeDelta::days(30)),
        ("deliveriesWithoutWebhook", now),
    ];
    for (name, limit) in kinds {
        record(name, limit).await;
        for _ in 0..3 {
            record(name, limit - just_over).await;
        }
    }
    // Records that are still in use stay at any age.
    rest.sql("INSERT INTO job_runs (id, name, worker, worker_name, started_at, errors) VALUES ($2, 'x', $2, 'w', $1, $3)", args![now - TimeDelta::days(900), id(), json!([])]).await;
    rest.sql(
        "INSERT INTO webhook_deliveries (id, webhook_id, message_id, event_type, body, status, next_at, created_at)
         VALUES ($2, $3, $2, 'webhook:test', '{}', 'pending', $1, $1)",
        args![now - TimeDelta::days(900), id(), webhook],
    )
    .await;

    let retain = async || rest.app.retention.sweep_once(now).await.expect("the sweep runs");
    let (one, other) = tokio::join!(retain(), retain());
    assert_eq!((&one.errors, &other.errors), (&vec![], &vec![]));
    for (name, _) in kinds {
        let removed = one.metrics[name].as_u64().unwrap() + other.metrics[name].as_u64().unwrap();
        assert_eq!(removed, 3, "{name}");
    }
    let again = retain().await;
    assert!(again.metrics.values().all(|removed| *removed == json!(0)), "{again:?}");
    assert_eq!(rest.number("SELECT COUNT(*) FROM job_runs").await, 2);
}

#[on_each_database]
async fn many_records_are_removed_in_batches(db: TestDb) {
    let clock = manual_clock();
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    rest.sql(
        "INSERT INTO rate_buckets (name, next_at)
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1234)
         SELECT CAST(n AS TEXT), $1 FROM n",
        args![rest.now() - TimeDelta::days(2)],
    )
    .await;
    let report = rest.app.retention.sweep_once(rest.now()).await.unwrap();
    assert_eq!(report.metrics["rateBuckets"], 1234);
}

#[tokio::test]
async fn the_storage_is_listed_in_pages_no_longer_than_requested() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(folder.path().to_owned()).await.unwrap();
    let mut stored = BTreeSet::new();
    for number in 0..300_usize {
        let key = format!("{:02x}/{:032x}/{number:032x}", number % 7, number / 3);
        let path = folder.path().join("blobs").join(&key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, vec![0; number]).unwrap();
        stored.insert((key, number as u64));
    }
    let mut listing = blobs.list("", None);
    let mut listed = BTreeSet::new();
    loop {
        let page = listing.next_page(7).await.unwrap();
        assert!(page.len() <= 7);
        if page.is_empty() {
            break;
        }
        for blob in page {
            assert!(listed.insert((blob.key, blob.size)), "each blob is listed once");
        }
    }
    assert_eq!(listed, stored);
}
