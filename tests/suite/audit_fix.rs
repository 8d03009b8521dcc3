//! `landfall audit --fix`: it repairs what is safe to repair, and leaves and reports the rest.

use std::process::Stdio;

use chrono::TimeDelta;
use landfall_core::clock::Clock;
use landfall_server::audit::{self, Finding};
use landfall_store::args;
use serde_json::Value;

use crate::support::offline_app::OfflineApp;
use crate::support::process::Process;
use crate::support::repeated_sweeps::{FirstSweep, sweep_repeatedly};
use crate::support::{TestDb, TestServer, manual_clock, on_each_database};

/// The offline data of a server with a batch of two ready files and a registered one.
async fn undamaged(db: &TestDb) -> OfflineApp {
    let server = TestServer::new(db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(2).await;
    alice.upload_in(&batch, "a.txt", b"Something to be found.").await;
    alice.upload_in(&batch, "b.txt", b"Something else to be found.").await;
    alice.register(None, "c.txt", 10).await;
    server.idle().await;
    server.stop().await;
    let rest = OfflineApp::open(db, &manual_clock(), &[]).await;
    rest.assert_audit_clean().await;
    rest
}

async fn fix(rest: &OfflineApp) -> Vec<Finding> {
    let now = Clock::System.now();
    let (heartbeat, written) = (now - TimeDelta::seconds(20), now - TimeDelta::days(1));
    let fixed = audit::fix(&rest.app.ownership, heartbeat, written, false, now).await.expect("the fix runs");
    assert_eq!(fixed.held_back, None);
    fixed.findings
}

#[on_each_database]
async fn what_can_be_recounted_or_released_is_fixed(db: TestDb) {
    let rest = undamaged(&db).await;
    assert_eq!(fix(&rest).await, [], "there is nothing to fix");
    for damage in [
        "UPDATE tenants SET used_bytes = used_bytes + 1",
        "UPDATE tenants SET reserved_files = reserved_files + 1, used_files = 0",
        "DELETE FROM tenants",
        "UPDATE user_totals SET ready = ready + 1, registered = registered - 1",
        "DELETE FROM user_totals",
        "UPDATE batches SET ready_files = 1, failed_files = 1",
        "UPDATE batches SET ready_files = 1, deleted_files = 1",
        "UPDATE batches SET status = 'active', completed_at = NULL",
        "UPDATE files SET status = 'uploaded', blob_key = NULL WHERE file_name = 'c.txt'",
        "DELETE FROM events WHERE id = (SELECT MAX(id) FROM events WHERE kind = 'file:status-changed')",
        "DELETE FROM listed_files",
        "UPDATE listed_files SET tenant_id = 'other', user_id = 'other' WHERE file_name = 'a.txt'",
        "UPDATE listed_files SET id = (SELECT id FROM batches) WHERE file_name = 'a.txt'",
        "DELETE FROM code_segments",
        "DELETE FROM coded_files",
        "UPDATE code_segments SET codes = chunks",
    ] {
        rest.sql(damage, args![]).await;
        assert!(!rest.findings().await.is_empty(), "{damage}");
        let fixed = sweep_repeatedly(&rest, FirstSweep::TwiceAtOnce, async || fix(&rest).await).await;
        assert!(!fixed.concat().is_empty(), "{damage}");
        rest.assert_audit_clean().await;
        assert_eq!(fix(&rest).await, [], "{damage}");
    }
}

#[on_each_database]
async fn a_file_held_by_an_unknown_worker_goes_back_to_the_queue(db: TestDb) {
    let rest = undamaged(&db).await;
    rest.sql(
        "UPDATE files SET status = 'embedding', claim = id, claimed_by = id, claimed_at = created_at, attempt = 1
         WHERE file_name = 'a.txt'",
        args![],
    )
    .await;
    assert!(!fix(&rest).await.is_empty());
    let row: Vec<(String, i64)> =
        rest.rows("SELECT status, attempt FROM files WHERE file_name = 'a.txt'", args![]).await;
    assert_eq!(row, [("queued".to_owned(), 0)]);
    rest.assert_audit_clean().await;
    rest.app.db.close().await;
    let server = TestServer::new(&db).await;
    server.idle().await;
    assert_eq!(server.client("alice").search("something found").await.len(), 2, "the file is ready");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn blobs_without_rows_are_removed_only_when_they_are_old(db: TestDb) {
    let rest = undamaged(&db).await;
    let now = Clock::System.now();
    rest.store("00/old", "stray", now - TimeDelta::hours(25));
    rest.store("00/fresh", "stray", now - TimeDelta::hours(23));
    let fixed = fix(&rest).await;
    assert_eq!(fixed.len(), 1, "{fixed:?}");
    assert!(!rest.is_stored("00/old") && rest.is_stored("00/fresh"));
    assert_eq!(rest.findings().await.len(), 1, "the new blob is still reported");
}

#[on_each_database]
async fn what_would_be_a_guess_is_left_and_reported(db: TestDb) {
    let rest = undamaged(&db).await;
    let key = rest.rows::<(String,)>("SELECT blob_key FROM files WHERE file_name = 'a.txt'", args![]).await
        [0]
    .0
    .clone();
    rest.app.blobs.remove(&key).await.unwrap();
    rest.sql(
        "DELETE FROM chunk_index WHERE file_id = (SELECT id FROM files WHERE file_name = 'b.txt')",
        args![],
    )
    .await;
    let before = rest.findings().await;
    fix(&rest).await;
    let after = rest.findings().await;
    for invariant in ["no row without its blob", "the index equals the chunks of ready files"] {
        assert!(before.iter().any(|finding| finding.invariant == invariant), "{before:?}");
        assert!(after.iter().any(|finding| finding.invariant == invariant), "{after:?}");
    }
}

#[on_each_database]
async fn index_entries_of_a_file_that_is_not_ready_are_removed(db: TestDb) {
    let rest = undamaged(&db).await;
    rest.sql(
        "UPDATE chunk_index SET file_id = (SELECT id FROM files WHERE file_name = 'c.txt')
              WHERE file_id = (SELECT id FROM files WHERE file_name = 'a.txt')",
        args![],
    )
    .await;
    fix(&rest).await;
    let strays =
        "SELECT COUNT(*) FROM chunk_index WHERE file_id = (SELECT id FROM files WHERE file_name = 'c.txt')";
    assert_eq!(rest.number(strays).await, 0);
}

#[on_each_database]
async fn the_command_fixes_and_reports_and_exits_with_zero_when_nothing_is_left(db: TestDb) {
    let rest = undamaged(&db).await;
    rest.sql("UPDATE tenants SET used_bytes = used_bytes + 1", args![]).await;
    rest.app.db.close().await;
    let say = |arguments: &[&str]| {
        let output =
            Process::command(&db).args(arguments).stderr(Stdio::inherit()).output().expect("it runs");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), printed)
    };
    let (code, printed) = say(&["audit"]);
    assert_eq!(code, Some(1));
    assert!(printed.contains("--fix"), "{printed}");
    let (code, printed) = say(&["audit", "--fix", "--json"]);
    assert_eq!(code, Some(0), "{printed}");
    let report: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(0));
    assert_eq!(report["fixed"][0]["invariant"], "quota equals the rows");
    let (code, printed) = say(&["audit", "--fix"]);
    assert_eq!(code, Some(0));
    assert!(printed.contains("all is well") && !printed.contains("fixed:"), "{printed}");
}
