//! `landfall audit --fix`: what is safe to put right is put right, and what is not is left and named.

use std::process::Stdio;

use chrono::TimeDelta;
use landfall_core::clock::Clock;
use landfall_server::audit::{self, Finding};
use landfall_store::args;
use serde_json::Value;

use crate::support::at_rest::AtRest;
use crate::support::process::Process;
use crate::support::stillness::{First, sweep_until_still};
use crate::support::{TestDb, TestServer, manual_clock, on_each_database};

/// What is left of a server with a batch of two ready files and a registered one.
async fn in_good_order(db: &TestDb) -> AtRest {
    let server = TestServer::new(db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(2).await;
    alice.upload_in(&batch, "a.txt", b"Something to be found.").await;
    alice.upload_in(&batch, "b.txt", b"Something else to be found.").await;
    alice.register(None, "c.txt", 10).await;
    server.idle().await;
    server.stop().await;
    let rest = AtRest::open(db, &manual_clock(), &[]).await;
    rest.assert_books_balance().await;
    rest
}

async fn fix(rest: &AtRest) -> Vec<Finding> {
    let now = Clock::System.now();
    let (heartbeat, written) = (now - TimeDelta::seconds(20), now - TimeDelta::days(1));
    let fixed = audit::fix(&rest.app.ownership, heartbeat, written, false, now).await.expect("it mends");
    assert_eq!(fixed.held_back, None);
    fixed.findings
}

#[on_each_database]
async fn what_can_be_counted_or_given_back_is_mended(db: TestDb) {
    let rest = in_good_order(&db).await;
    assert_eq!(fix(&rest).await, [], "nothing is mended that is whole");
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
    ] {
        rest.sql(damage, args![]).await;
        assert!(!rest.findings().await.is_empty(), "{damage}");
        let mended = sweep_until_still(&rest, First::TwiceAtOnce, async || fix(&rest).await).await;
        assert!(!mended.concat().is_empty(), "{damage}");
        rest.assert_books_balance().await;
        assert_eq!(fix(&rest).await, [], "{damage}");
    }
}

#[on_each_database]
async fn a_file_that_nobody_known_holds_goes_back_to_the_queue(db: TestDb) {
    let rest = in_good_order(&db).await;
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
    rest.assert_books_balance().await;
    rest.app.db.close().await;
    let server = TestServer::new(&db).await;
    server.idle().await;
    assert_eq!(server.client("alice").search("something found").await.len(), 2, "it made landfall");
    server.assert_books_balance().await;
}

#[on_each_database]
async fn blobs_without_rows_are_removed_when_they_are_old_and_only_then(db: TestDb) {
    let rest = in_good_order(&db).await;
    let now = Clock::System.now();
    rest.store("00/old", "stray", now - TimeDelta::hours(25));
    rest.store("00/fresh", "stray", now - TimeDelta::hours(23));
    let mended = fix(&rest).await;
    assert_eq!(mended.len(), 1, "{mended:?}");
    assert!(!rest.is_stored("00/old") && rest.is_stored("00/fresh"));
    assert_eq!(rest.findings().await.len(), 1, "the fresh one is still named");
}

#[on_each_database]
async fn what_would_be_a_guess_is_left_and_named(db: TestDb) {
    let rest = in_good_order(&db).await;
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
async fn the_index_of_a_file_that_is_not_ready_goes(db: TestDb) {
    let rest = in_good_order(&db).await;
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
async fn the_command_mends_says_what_and_ends_well_when_nothing_is_left(db: TestDb) {
    let rest = in_good_order(&db).await;
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
