//! A storage beside the wrong database, or beside an old backup of the right one: no blob is removed.

use std::process::{Output, Stdio};

use chrono::TimeDelta;
use landfall_core::clock::{Clock, ManualClock};
use landfall_server::app::{App, Replacements};
use landfall_server::audit::fix;
use landfall_server::blobs::Blobs;
use landfall_server::recovery::ownership::{Ownership, Standing};
use landfall_server::recovery::{Sweep, SweepReport};
use landfall_store::args;
use landfall_store::{Db, Error};
use serde_json::{Value, json};

use crate::support::fault_injector::{HoldPoint, PlannedFaults};
use crate::support::offline_app::OfflineApp;
use crate::support::process::Process;
use crate::support::{Script, Setup, TestDb, config, manual_clock, on_each_database};

/// Runs a server, uploads these files to it, and stops it.
async fn run_server_with(db: &TestDb, clock: &ManualClock, names: &[&str]) {
    let server = Setup::default().clock(clock).work(Script::new()).start(db).await;
    for name in names {
        server.client("alice").upload(name, b"12345").await;
    }
    server.idle().await;
    server.stop().await;
}

async fn open_with(db: &TestDb, clock: &ManualClock, url: &str) -> OfflineApp {
    OfflineApp::open(db, clock, &[("DATABASE_URL", url.to_owned())]).await
}

/// Why a server does not start with this database.
async fn refusal(db: &TestDb, url: &str) -> String {
    let config = config(db, &[("DATABASE_URL", url.to_owned())]);
    let replacements = Replacements { work: Some(Script::new()), ..Replacements::default() };
    match App::start(config, replacements).await {
        Err(Error::StorageMismatch(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it started"),
    }
}

/// Runs the program on this database.
fn run_program(db: &TestDb, url: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Process::command(db);
    let Output { status, stdout, stderr } =
        command.env("DATABASE_URL", url).args(arguments).stderr(Stdio::piped()).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

async fn clean(rest: &OfflineApp) -> SweepReport {
    rest.app.orphan_cleanup.sweep_once(rest.now()).await.expect("the sweep runs")
}

/// Makes everything in the storage old enough to be removed.
fn age_all(rest: &OfflineApp) -> Vec<String> {
    let keys = rest.stored().into_keys().filter_map(|path| {
        let path = path.to_str()?.to_owned();
        path.split_once("blobs/blobs/").map(|(_, key)| key.to_owned())
    });
    let keys: Vec<String> = keys.collect();
    for key in &keys {
        rest.age(key, rest.now() - TimeDelta::days(2));
    }
    keys
}

fn store_strays(rest: &OfflineApp, count: usize, age: TimeDelta) -> Vec<String> {
    let strays: Vec<String> =
        (0..count).map(|_| Blobs::key(rest.app.clock.new_id(), rest.app.clock.new_id())).collect();
    for key in &strays {
        rest.store(key, "stray", rest.now() - age);
    }
    strays
}

#[on_each_database]
async fn no_server_starts_with_the_storage_of_another_database_until_it_is_adopted(db: TestDb) {
    let clock = manual_clock();
    run_server_with(&db, &clock, &["a", "b", "c"]).await;
    let other = db.another().await;
    let why = refusal(&db, &other).await;
    assert!(why.contains("another database") && why.contains("landfall storage adopt"), "{why}");
    let (code, _, told) = run_program(&db, &other, &["serve"]);
    assert!(code == Some(2) && told.contains(&why), "{code:?} {told}");
    let (code, _, told) = run_program(&db, &other, &["audit", "--fix"]);
    assert!(code == Some(2) && told.contains(&why), "{code:?} {told}");
    let (code, told, _) = run_program(&db, &other, &["audit"]);
    assert!(code == Some(1) && told.contains(&why), "{code:?} {told}");
    let (code, told, _) = run_program(&db, &other, &["storage", "show", "--json"]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!((code, &told["standing"]), (Some(1), &json!("of-another")));

    let rest = OfflineApp::open(&db, &clock, &[]).await;
    assert_eq!(age_all(&rest).len(), 3, "no blob was removed");
    rest.assert_audit_clean().await;
    rest.app.db.close().await;
    let (code, told, _) = run_program(&db, &other, &["storage", "adopt"]);
    assert_eq!((code, told.as_str()), (Some(0), "The storage belongs to this database.\n"));
    drop(open_with(&db, &clock, &other).await);
    assert!(
        refusal(&db, &db.url).await.contains("another database"),
        "now the first database has no storage"
    );
}

#[on_each_database]
async fn a_running_server_removes_no_orphans_after_its_storage_was_given_to_another_database(db: TestDb) {
    let clock = manual_clock();
    run_server_with(&db, &clock, &["a"]).await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    let strays = store_strays(&rest, 1, TimeDelta::days(2));
    assert_eq!(run_program(&db, &db.another().await, &["storage", "adopt"]).0, Some(0));
    let report = clean(&rest).await;
    assert!(report.errors[0].contains("another database"), "{report:?}");
    assert!(rest.is_stored(&strays[0]));
}

#[on_each_database]
async fn after_a_restored_backup_no_blob_is_removed_until_the_storage_is_adopted(db: TestDb) {
    let clock = manual_clock();
    run_server_with(&db, &clock, &["before"]).await;
    let backup = db.back_up().await;
    run_server_with(&db, &clock, &["after"]).await;
    let rest = open_with(&db, &clock, &backup).await;
    assert_eq!(
        rest.number("SELECT COUNT(*) FROM files").await,
        1,
        "the backup does not have the second file"
    );
    let keys = age_all(&rest);
    assert_eq!(keys.len(), 2);
    let report = clean(&rest).await;
    assert!(
        report.errors.len() == 1 && report.errors[0].contains("a later state of this database"),
        "{report:?}"
    );
    assert_eq!(report.metrics["orphanBlobs"], json!({ "total": 1, "deleted": 0, "errors": 0 }));
    let forced = rest.app.orphan_cleanup.forced().expect("it can be forced");
    assert_eq!(forced.sweep_once(rest.now()).await.unwrap().errors.len(), 1, "force does not override this");
    let now = Clock::System.now();
    let (heartbeat, written) = (now - TimeDelta::seconds(20), now - TimeDelta::days(1));
    let fixed = fix(&rest.app.ownership, heartbeat, written, true, now).await.unwrap();
    assert!(fixed.held_back.is_some_and(|why| why.contains("a later state")));
    assert!(rest.findings().await.iter().any(|found| found.invariant == "the storage is the database's own"));
    assert!(keys.iter().all(|key| rest.is_stored(key)), "both blobs are there");
    // A server that runs meanwhile does not hide the difference.
    for _ in 0..5 {
        rest.app.ownership.keep().await.unwrap();
    }
    assert_eq!(clean(&rest).await.errors.len(), 1);

    rest.app.ownership.adopt().await.unwrap();
    assert_eq!(clean(&rest).await.metrics["orphanBlobs"]["deleted"], 1);
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn a_crash_between_the_database_and_the_mark_is_not_taken_for_a_restored_backup(db: TestDb) {
    let clock = manual_clock();
    run_server_with(&db, &clock, &["a"]).await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    rest.sql("UPDATE database_identity SET generation = generation + 1", args![]).await;
    store_strays(&rest, 1, TimeDelta::days(2));
    let report = clean(&rest).await;
    assert_eq!(
        (report.errors.len(), &report.metrics["orphanBlobs"]["deleted"]),
        (0, &json!(1)),
        "{report:?}"
    );
    // And of many processes that increment at once, none takes the others for a later state.
    let keep = async || rest.app.ownership.keep().await.unwrap();
    for _ in 0..20 {
        let (one, two, three) = tokio::join!(keep(), keep(), keep());
        assert!([one, two, three].iter().all(Standing::may_be_cleaned));
    }
}

#[on_each_database]
async fn of_two_databases_that_take_a_new_storage_at_once_only_one_gets_it(db: TestDb) {
    let blobs = Blobs::open(db.folder.path().join("blobs")).await.unwrap();
    let faults = PlannedFaults::new();
    let slow = Db::open_with(&db.url, 4, Some(faults.clone())).await.unwrap();
    let fast = Db::open(&db.another().await, 4).await.unwrap();
    let owner = |db: &Db| Ownership { db: db.clone(), blobs: blobs.clone() };
    // The slow database has found the storage free, and is about to write its mark.
    let gate = faults.hold_at(HoldPoint::Before("UPDATE database_identity"));
    let ownership = owner(&slow);
    let keep = tokio::spawn(async move { ownership.keep().await });
    gate.reached().await;
    assert_eq!(owner(&fast).keep().await.unwrap(), Standing::Ours);
    gate.open();
    let standing = keep.await.unwrap().unwrap();
    assert!(matches!(standing, Standing::OfAnother(_)), "{standing:?}");
    assert_eq!(owner(&fast).standing().await.unwrap(), Standing::Ours);
    // An operator who adopts the storage decides, so it is taken from the other database.
    let gate = faults.hold_at(HoldPoint::Before("UPDATE database_identity"));
    let ownership = owner(&slow);
    let adopt = tokio::spawn(async move { ownership.adopt().await });
    gate.reached().await;
    assert_eq!(owner(&fast).keep().await.unwrap(), Standing::Ours);
    gate.open();
    assert!(matches!(adopt.await.unwrap().unwrap(), Standing::OfAnother(_)));
    assert_eq!(owner(&slow).standing().await.unwrap(), Standing::Ours);
    assert!(matches!(owner(&fast).keep().await.unwrap(), Standing::OfAnother(_)));
    slow.close().await;
    fast.close().await;
}

#[on_each_database]
async fn a_storage_without_a_mark_is_refused_where_files_could_be_lost(db: TestDb) {
    let clock = manual_clock();
    run_server_with(&db, &clock, &["a"]).await;
    let mark = db.folder.path().join("blobs/database.json");
    std::fs::remove_file(&mark).unwrap();
    let empty = db.another().await;
    let why = refusal(&db, &empty).await;
    assert!(why.contains("knows of no file"), "{why}");
    assert!(!mark.exists(), "no mark was written");
    // Nor by its own database, for which it looks like another folder, or one that was not mounted.
    let why = refusal(&db, &db.url).await;
    assert!(why.contains("was not mounted") && why.contains("landfall storage adopt"), "{why}");
    assert!(!mark.exists(), "no mark was written");
    assert_eq!(run_program(&db, &db.url, &["storage", "adopt"]).0, Some(0));
    run_server_with(&db, &clock, &[]).await;
    assert!(mark.exists());
    std::fs::write(&mark, "{\"database\":").unwrap();
    let why = refusal(&db, &db.url).await;
    assert!(why.contains("does not say readably") && why.contains("landfall storage adopt"), "{why}");
    assert_eq!(run_program(&db, &db.url, &["storage", "adopt"]).0, Some(0));
    run_server_with(&db, &clock, &[]).await;
}

#[on_each_database]
async fn unusually_many_orphans_are_kept_until_an_operator_forces_the_removal(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    server.client("alice").upload("known", b"12345").await;
    server.idle().await;
    server.stop().await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    age_all(&rest);
    let strays = store_strays(&rest, 101, TimeDelta::days(2));
    let report = clean(&rest).await;
    assert_eq!(report.metrics["orphanBlobs"], json!({ "total": 101, "deleted": 0, "errors": 0 }));
    assert!(report.errors[0].contains("101 of the 102 blobs belong to no file"), "{report:?}");
    assert!(report.errors[0].contains("--force"), "{report:?}");
    assert!(strays.iter().all(|key| rest.is_stored(key)));

    // The same when the operator starts the job; then with force.
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let admin = server.admin();
    let run = "/api/v2/admin/jobs/orphan-cleanup/run";
    let ran = admin.post(run, json!({})).await.ok();
    assert_eq!(ran["run"]["errors"].as_array().map(Vec::len), Some(1), "{ran}");
    let raised = server.app.alerts().check_once(server.app.clock.now()).await.unwrap();
    assert!(raised.iter().any(|alert| alert.name == "recovery-errors:orphan-cleanup"), "{raised:?}");
    assert_eq!(admin.get("/api/v2/uploads/orphans?scope=all").await.ok()["orphanBlobs"]["count"], 101);
    server.client("alice").post(&format!("{run}?force=true"), json!({})).await.refused(403, "FORBIDDEN");
    admin.post(&format!("{run}?force=perhaps"), json!({})).await.refused(400, "INVALID_REQUEST");
    admin
        .post("/api/v2/admin/jobs/retention/run?force=true", json!({}))
        .await
        .refused(400, "NOTHING_TO_FORCE");
    assert!(strays.iter().all(|key| rest.is_stored(key)));
    let ran = admin.post(&format!("{run}?force=true"), json!({})).await.ok();
    assert_eq!(
        (&ran["run"]["errors"], &ran["run"]["metrics"]["orphanBlobs"]["deleted"]),
        (&json!([]), &json!(101)),
        "{ran}"
    );
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_hundred_orphans_or_a_fifth_of_the_blobs_are_removed_without_force(db: TestDb) {
    let clock = manual_clock();
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    store_strays(&rest, 100, TimeDelta::days(2));
    assert_eq!(clean(&rest).await.metrics["orphanBlobs"]["deleted"], 100);
    // New blobs count as blobs too.
    let young = store_strays(&rest, 419, TimeDelta::hours(1));
    store_strays(&rest, 105, TimeDelta::days(2));
    let report = clean(&rest).await;
    assert_eq!(report.metrics["orphanBlobs"]["deleted"], 0, "105 of 524 are more than a fifth: {report:?}");
    rest.store(&Blobs::key(rest.app.clock.new_id(), rest.app.clock.new_id()), "young", rest.now());
    let report = clean(&rest).await;
    assert_eq!(report.metrics["orphanBlobs"]["deleted"], 105, "105 of 525 are not: {report:?}");
    assert!(young.iter().all(|key| rest.is_stored(key)));
}

#[on_each_database]
async fn the_audit_keeps_many_orphans_too_and_says_what_to_do(db: TestDb) {
    let clock = manual_clock();
    run_server_with(&db, &clock, &["known"]).await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    let strays: Vec<String> =
        (0..101).map(|_| Blobs::key(rest.app.clock.new_id(), rest.app.clock.new_id())).collect();
    for key in &strays {
        rest.store(key, "stray", Clock::System.now() - TimeDelta::days(2));
    }
    let (code, told, _) = run_program(&db, &db.url, &["audit", "--fix"]);
    assert!(code == Some(1) && told.contains("not fixed: 101 of the"), "{code:?} {told}");
    assert!(strays.iter().all(|key| rest.is_stored(key)));
    assert_eq!(run_program(&db, &db.url, &["audit", "--force"]).0, Some(2), "force needs --fix");
    let (code, told, _) = run_program(&db, &db.url, &["audit", "--fix", "--force"]);
    assert!(code == Some(0) && !told.contains("not fixed"), "{code:?} {told}");
    assert!(!strays.iter().any(|key| rest.is_stored(key)));
}
