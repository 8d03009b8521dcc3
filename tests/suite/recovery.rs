//! Each sweep meets the damage that it exists for, at every stage: once, or by two sweeps at once. It repairs all
//! of it, and further sweeps change nothing.

use std::time::Duration;

use chrono::TimeDelta;
use landfall_core::caller::{Caller, Role};
use landfall_core::clock::ManualClock;
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage;
use landfall_server::blobs::Blobs;
use landfall_server::intake::delete;
use landfall_server::queue::rescue::RescueWorker;
use landfall_server::recovery::batch_timeout::BatchTimeout;
use landfall_server::recovery::{Sweep, SweepReport, abandoned_uploads, unfinished_deletions};
use landfall_store::args;
use serde_json::Value;
use uuid::Uuid;

use crate::support::offline_app::OfflineApp;
use crate::support::repeated_sweeps::{FirstSweep, sweep_repeatedly};
use crate::support::{Client, Script, Setup, Step, TestDb, manual_clock, on_each_database};

const DAY: Duration = Duration::from_hours(24);

/// The offline data of a server on which a client did this. No worker ran there.
async fn offline_after(db: &TestDb, clock: &ManualClock, what: impl AsyncFnOnce(&Client)) -> OfflineApp {
    let server = Setup::default().clock(clock).with("ROLE", "api").start(db).await;
    what(&server.client("alice")).await;
    server.stop().await;
    OfflineApp::open(db, clock, &[]).await
}

/// The same with a queued file for each stage, and for each way of the first sweep.
async fn with_a_file_for_each_stage(db: &TestDb, clock: &ManualClock) -> OfflineApp {
    offline_after(db, clock, async |alice| {
        for first in FirstSweep::BOTH {
            for stage in Stage::ALL {
                alice.upload(&name(first, stage), b"12345").await;
            }
        }
    })
    .await
}

fn name(first: FirstSweep, stage: Stage) -> String {
    format!("{first:?}-{stage}")
}

/// A worker whose lock no process holds.
const ADD_WORKER: &str =
    "INSERT INTO workers (id, name, stages, services, lock_key, started_at, heartbeat_at)
                          VALUES ($1, 'gone:1', '', '', 1, $2, $2)";

/// Another death of the worker that works on this file alone, and the file fails.
const SUSPECT: &str =
    "UPDATE files SET lost_workers = 4, begun = TRUE, is_alone = TRUE, deaths = 3, deaths_alone = 1
     WHERE file_name = $1";

/// What the history of a file would have recorded of its last step.
const HISTORY: &str = "INSERT INTO events (at, kind, tenant_id, user_id, file_id, to_state)
                       SELECT $2, 'file:status-changed', tenant_id, user_id, id, status FROM files WHERE file_name = $1";

/// Leaves a file at a stage, claimed by `worker`.
async fn strand(rest: &OfflineApp, file: &str, stage: Stage, worker: Uuid) {
    rest.move_files(
        "UPDATE files SET status = $2, next_stage = $3, claim = $4, claimed_by = $5, claimed_at = $6, updated_at = $6,
                          run_after = NULL, is_due = FALSE, attempt = 1
         WHERE file_name = $1",
        args![file, stage.running(), stage, Uuid::new_v4(), worker, rest.now()],
    )
    .await;
    rest.sql(HISTORY, args![file, rest.now()]).await;
}

/// The status, stage, attempts, recoveries and worker deaths of a file.
async fn file_state(rest: &OfflineApp, file: &str) -> (String, String, i64, i64, i64) {
    let sql = "SELECT status, next_stage, attempt, retry_count, lost_workers FROM files WHERE file_name = $1";
    rest.rows(sql, args![file]).await.remove(0)
}

async fn status(rest: &OfflineApp, file: &str) -> String {
    file_state(rest, file).await.0
}

async fn notifications(rest: &OfflineApp, kind: &str) -> i64 {
    rest.rows::<(i64,)>("SELECT COUNT(*) FROM events WHERE kind = $1", args![kind]).await[0].0
}

/// The sum of this count over all reports.
fn sum(reports: &[SweepReport], name: &str) -> i64 {
    let one = |report: &SweepReport| {
        assert_eq!(report.errors, Vec::<String>::new());
        report.metrics[name].as_i64().expect("a number")
    };
    reports.iter().map(one).sum()
}

fn sum_of(reports: &[SweepReport], scope: &str, name: &str) -> i64 {
    let one = |report: &SweepReport| {
        assert_eq!(report.errors, Vec::<String>::new());
        report.metrics[scope][name].as_i64().expect("a number")
    };
    reports.iter().map(one).sum()
}

#[on_each_database]
async fn a_claim_of_an_unknown_process_is_released_once_at_every_stage(db: TestDb) {
    let clock = manual_clock();
    let rest = with_a_file_for_each_stage(&db, &clock).await;
    for (round, first) in (1..).zip(FirstSweep::BOTH) {
        for stage in Stage::ALL {
            strand(&rest, &name(first, stage), stage, Uuid::new_v4()).await;
        }
        clock.advance(Duration::from_mins(30));
        let sweep = async || rest.app.stuck_files.sweep_once(rest.now()).await.unwrap();
        let reports = sweep_repeatedly(&rest, first, sweep).await;
        assert_eq!((sum(&reports, "totalStuck"), sum(&reports, "reEnqueued")), (4, 4), "{reports:?}");
        for stage in Stage::ALL {
            let expected = ("queued".to_owned(), stage.name().to_owned(), 0, 1, 0);
            assert_eq!(file_state(&rest, &name(first, stage)).await, expected);
        }
        assert_eq!(notifications(&rest, "file:processing-stalled").await, 4 * round);
    }
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_released_three_times_fails_once_and_its_owner_is_notified_once(db: TestDb) {
    let clock = manual_clock();
    let rest = with_a_file_for_each_stage(&db, &clock).await;
    for (round, first) in (1..).zip(FirstSweep::BOTH) {
        for stage in Stage::ALL {
            strand(&rest, &name(first, stage), stage, Uuid::new_v4()).await;
            rest.sql("UPDATE files SET retry_count = 3 WHERE file_name = $1", args![name(first, stage)])
                .await;
        }
        clock.advance(Duration::from_mins(30));
        let sweep = async || rest.app.stuck_files.sweep_once(rest.now()).await.unwrap();
        let reports = sweep_repeatedly(&rest, first, sweep).await;
        assert_eq!(sum(&reports, "permanentlyFailed"), 4, "{reports:?}");
        let failed = "SELECT COUNT(*) FROM files WHERE status = 'failed' AND error_code = 'STUCK_EXHAUSTED'
                          AND error_stage = next_stage";
        assert_eq!(rest.number(failed).await, 4 * round);
        assert_eq!(rest.number("SELECT COUNT(*) FROM notifications").await, 4 * round);
    }
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn a_next_attempt_that_is_years_ahead_is_made_due_once_at_every_stage(db: TestDb) {
    let clock = manual_clock();
    let rest = with_a_file_for_each_stage(&db, &clock).await;
    for first in FirstSweep::BOTH {
        for stage in Stage::ALL {
            rest.move_files(
                "UPDATE files SET run_after = $2, is_due = FALSE, next_stage = $3 WHERE file_name = $1",
                args![name(first, stage), rest.now() + TimeDelta::days(700), stage],
            )
            .await;
        }
        let sweep = async || rest.app.stuck_files.sweep_once(rest.now()).await.unwrap();
        let reports = sweep_repeatedly(&rest, first, sweep).await;
        assert_eq!(sum(&reports, "reEnqueued"), 4, "{reports:?}");
        assert_eq!(rest.number("SELECT COUNT(*) FROM files WHERE NOT is_due").await, 0);
    }
    assert_eq!(rest.number("SELECT COUNT(*) FROM files WHERE is_due AND retry_count = 0").await, 8);
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn files_of_a_dead_worker_are_released_once_at_every_stage_and_fail_at_the_second_death_alone(
    db: TestDb,
) {
    let clock = manual_clock();
    let rest = with_a_file_for_each_stage(&db, &clock).await;
    for first in FirstSweep::BOTH {
        let worker = Uuid::new_v4();
        rest.sql(ADD_WORKER, args![worker, rest.now()]).await;
        for stage in Stage::ALL {
            strand(&rest, &name(first, stage), stage, worker).await;
        }
        let suspected = name(first, Stage::Embed);
        rest.sql(SUSPECT, args![&suspected]).await;
        let sweep = async || rest.app.db.write(RescueWorker { worker, now: rest.now() }).await.unwrap();
        let rescued: Vec<_> = sweep_repeatedly(&rest, first, sweep).await.into_iter().flatten().collect();
        assert_eq!(rescued.len(), 1, "one of them rescued the files");
        assert_eq!((rescued[0].requeued, rescued[0].failed), (3, 1));
        for stage in [Stage::Scan, Stage::Extract, Stage::Chunk] {
            let expected = ("queued".to_owned(), stage.name().to_owned(), 0, 0, 1);
            assert_eq!(
                file_state(&rest, &name(first, stage)).await,
                expected,
                "the attempt does not count, the death does"
            );
        }
        assert_eq!(status(&rest, &suspected).await, "failed");
    }
    let notifications = "SELECT COUNT(*) FROM notifications WHERE kind = 'file-failure-notification'";
    assert_eq!(rest.number(notifications).await, 2);
    rest.assert_audit_clean().await;
}

/// If something else kills workers too, the file may not be the cause.
#[on_each_database]
async fn of_workers_that_are_found_dead_at_once_the_one_with_a_suspected_file_is_rescued_last(db: TestDb) {
    let clock = manual_clock();
    let rest =
        offline_after(&db, &clock, async |alice| drop(alice.upload("suspected", b"12345").await)).await;
    let (alone, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    for worker in [alone, other] {
        rest.sql(ADD_WORKER, args![worker, rest.now()]).await;
    }
    strand(&rest, "suspected", Stage::Embed, alone).await;
    rest.sql(SUSPECT, args!["suspected"]).await;
    assert_eq!(rest.app.liveness.rescue_dead_workers().await.unwrap(), 2);
    assert_eq!(status(&rest, "suspected").await, "queued");
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn an_unconfirmed_upload_is_adopted_if_complete_and_deleted_if_not_once(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after(&db, &clock, async |alice| {
        for first in FirstSweep::BOTH {
            alice.register(None, &format!("{first:?}-never-sent"), 5).await;
            for what in ["whole", "lost", "short", "other"] {
                alice.send_bytes(None, &format!("{first:?}-{what}"), b"12345").await;
            }
        }
    })
    .await;
    clock.advance(Duration::from_hours(1));
    for first in FirstSweep::BOTH {
        let key = async |what: &str| -> String {
            let sql = "SELECT blob_key FROM files WHERE file_name = $1";
            rest.rows::<(String,)>(sql, args![format!("{first:?}-{what}")]).await.remove(0).0
        };
        rest.app.blobs.remove(&key("lost").await).await.unwrap();
        rest.store(&key("short").await, "123", rest.now());
        rest.sql(
            "UPDATE files SET declared_md5 = 'another' WHERE file_name = $1",
            args![format!("{first:?}-other")],
        )
        .await;
    }
    // Both sets have the same deadline, so the first sweep meets both.
    let sweep = async || rest.app.stuck_files.expiry.sweep_once(rest.now()).await.unwrap();
    let reports = sweep_repeatedly(&rest, FirstSweep::TwiceAtOnce, sweep).await;
    assert_eq!((sum(&reports, "adopted"), sum(&reports, "deleted")), (2, 8), "{reports:?}");
    for first in FirstSweep::BOTH {
        assert_eq!(status(&rest, &format!("{first:?}-whole")).await, "queued");
        for what in ["never-sent", "lost", "short", "other"] {
            assert_eq!(status(&rest, &format!("{first:?}-{what}")).await, "deleted", "{what}");
        }
    }
    assert_eq!(notifications(&rest, "file:cleaned-up").await, 8);
    let quota: Vec<(i64, i64)> = rest.rows("SELECT reserved_bytes, used_bytes FROM tenants", args![]).await;
    assert_eq!(quota, [(0, 10)]);
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn a_batch_that_waits_in_vain_expires_once_and_keeps_uploaded_files(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after(&db, &clock, async |alice| {
        for _ in FirstSweep::BOTH {
            let batch = alice.open_batch(4).await;
            alice.register(Some(&batch), "never-sent", 5).await;
            alice.send_bytes(Some(&batch), "unconfirmed", b"12345").await;
            alice.upload_in(&batch, "confirmed", b"12345").await;
        }
        // And one batch that never got a file.
        alice.open_batch(3).await;
    })
    .await;
    // One at a time is due: the first, then the other two.
    let batches: Vec<(Uuid,)> = rest.rows("SELECT id FROM batches ORDER BY id", args![]).await;
    rest.sql(
        "UPDATE batches SET expires_at = $1 WHERE id <> $2",
        args![rest.now() + TimeDelta::hours(48), batches[0].0],
    )
    .await;
    let sweep = BatchTimeout { db: rest.app.db.clone() };
    for (first, expired, deleted) in [(FirstSweep::Once, 1, 1), (FirstSweep::TwiceAtOnce, 2, 1)] {
        clock.advance(DAY);
        let reports =
            sweep_repeatedly(&rest, first, async || sweep.sweep_once(rest.now()).await.unwrap()).await;
        let found = (sum(&reports, "expiredBatches"), sum(&reports, "deletedFiles"));
        assert_eq!(found, (expired, deleted), "{reports:?}");
    }
    for (file, expected) in [("never-sent", "deleted"), ("unconfirmed", "uploaded"), ("confirmed", "queued")]
    {
        let sql = format!("SELECT COUNT(*) FROM files WHERE file_name = '{file}' AND status = '{expected}'");
        assert_eq!(rest.number(&sql).await, 2, "{file}");
    }
    assert_eq!(notifications(&rest, "batch:expired").await, 3);
    let quota: Vec<(i64, i64)> = rest.rows("SELECT reserved_bytes, used_bytes FROM tenants", args![]).await;
    assert_eq!(quota, [(10, 10)]);
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn leftovers_of_all_three_kinds_are_removed_once(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    for _ in FirstSweep::BOTH {
        script.then(Stage::Extract, Step::Fail(Code::ParseError));
    }
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    let alice = server.client("alice");
    for _ in FirstSweep::BOTH {
        alice.upload("failed", b"12345").await;
        alice.register(None, "never-came", 5).await;
    }
    server.idle().await;
    server.stop().await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    let sweep = async || rest.app.orphan_cleanup.sweep_once(rest.now()).await.unwrap();
    let mut failed: Vec<(Uuid,)> =
        rest.rows("SELECT id FROM files WHERE file_name = 'failed' ORDER BY id", args![]).await;
    // The second of each kind is created two months after the first.
    let later = rest.now() + TimeDelta::days(60);
    rest.sql("UPDATE files SET failed_at = $1 WHERE id = $2", args![later, failed.remove(1).0]).await;
    let second = "UPDATE files SET created_at = $1, upload_until = $1
                  WHERE id = (SELECT id FROM files WHERE file_name = 'never-came' ORDER BY id DESC LIMIT 1)";
    rest.sql(second, args![later]).await;
    for first in FirstSweep::BOTH {
        clock.advance(DAY * 30);
        rest.store(&format!("00/{first:?}"), "stray", rest.now() - TimeDelta::days(2));
        let reports = sweep_repeatedly(&rest, first, sweep).await;
        assert_eq!(sum_of(&reports, "oldFailures", "warnings"), 1, "{reports:?}");
        assert_eq!(sum_of(&reports, "abandonedUploads", "deleted"), 1, "{reports:?}");
        assert!(!rest.is_stored(&format!("00/{first:?}")));
        clock.advance(DAY * 30);
        let reports = sweep_repeatedly(&rest, first, sweep).await;
        assert_eq!(sum_of(&reports, "oldFailures", "deleted"), 1, "{reports:?}");
    }
    assert_eq!(
        rest.number("SELECT COUNT(*) FROM notifications WHERE kind = 'file-deletion-warning'").await,
        2
    );
    assert_eq!(
        rest.number("SELECT used_bytes + used_files + reserved_bytes + reserved_files FROM tenants").await,
        0
    );
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn uploads_that_a_process_left_behind_are_cleaned_up_once(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after(&db, &clock, async |alice| {
        alice.send_bytes(None, "known", b"12345").await;
    })
    .await;
    let (known,): (String,) = rest.rows("SELECT blob_key FROM files", args![]).await.remove(0);
    let blobs = &rest.app.blobs;
    for first in FirstSweep::BOTH {
        let dead = Uuid::new_v4();
        let (kept, half) =
            (Blobs::key(Uuid::new_v4(), Uuid::new_v4()), Blobs::key(Uuid::new_v4(), Uuid::new_v4()));
        let mut incoming = blobs.receive(dead, &kept).await.unwrap();
        incoming.write(b"12345").await.unwrap();
        incoming.publish(|_| Ok(())).await.unwrap();
        drop(incoming);
        let mut incoming = blobs.receive(dead, &half).await.unwrap();
        incoming.write(b"12").await.unwrap();
        std::mem::forget(incoming);
        let link = format!("{}.{}", dead.simple(), known.replace('/', "."));
        let root = db.folder.path().join("blobs");
        std::fs::hard_link(root.join("blobs").join(&known), root.join("incoming").join(link)).unwrap();
        let sweep = async || abandoned_uploads::sweep_once(&rest.app.db, blobs).await.unwrap();
        let cleared: usize = sweep_repeatedly(&rest, first, sweep).await.into_iter().sum();
        assert!(cleared >= 3);
        assert!(!rest.is_stored(&kept) && !rest.is_stored(&half) && rest.is_stored(&known));
        assert!(blobs.unfinished().await.unwrap().is_empty());
    }
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn an_interrupted_deletion_is_finished_once_also_for_an_infected_file(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after(&db, &clock, async |alice| {
        for first in FirstSweep::BOTH {
            alice.upload(&format!("{first:?}"), b"12345").await;
            alice.upload(&format!("infected-{first:?}"), b"12345").await;
        }
    })
    .await;
    let caller = Caller { user: "alice".to_owned(), tenant: "alice".to_owned(), role: Role::Member };
    for first in FirstSweep::BOTH {
        let sql = "SELECT id, blob_key FROM files WHERE file_name = $1";
        let (id, key): (Uuid, String) = rest.rows(sql, args![format!("{first:?}")]).await.remove(0);
        let obstruction = rest.obstruct(&key);
        delete::delete(&rest.app.db, &rest.app.blobs, &caller, id, rest.now())
            .await
            .expect_err("the storage fails");
        obstruction.remove();
        // And the process died after the result of the scanner was recorded.
        let infected = format!("infected-{first:?}");
        let (_, bad): (Uuid, String) = rest.rows(sql, args![&infected]).await.remove(0);
        strand(&rest, &infected, Stage::Scan, Uuid::new_v4()).await;
        let judged = "UPDATE files SET status = 'failed', failed_at = $2, error_code = 'INFECTED', error_message = 'Eicar',
                          error_stage = 'scan', error_at = $2, error_fingerprint = 'x', claim = NULL, claimed_by = NULL,
                          claimed_at = NULL
                      WHERE file_name = $1";
        rest.move_files(judged, args![&infected, rest.now()]).await;
        rest.sql(HISTORY, args![&infected, rest.now()]).await;
        let sweep = async || unfinished_deletions::sweep_once(&rest.app.db, &rest.app.blobs).await.unwrap();
        let finished: usize = sweep_repeatedly(&rest, first, sweep).await.into_iter().sum();
        assert!(finished >= 2 && !rest.is_stored(&key) && !rest.is_stored(&bad));
        assert_eq!(status(&rest, &infected).await, "failed", "its owner can still read why");
    }
    assert_eq!(rest.number("SELECT used_bytes FROM tenants").await, 10, "the deleted file was refunded");
    rest.assert_audit_clean().await;
}

#[on_each_database]
async fn records_past_their_retention_are_removed_once(db: TestDb) {
    let clock = manual_clock();
    let rest = offline_after(&db, &clock, async |alice| {
        for _ in FirstSweep::BOTH {
            let file = alice.upload("a", b"12345").await;
            alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
        }
    })
    .await;
    let deleted: Vec<(Uuid,)> = rest.rows("SELECT id FROM files ORDER BY id", args![]).await;
    rest.sql(
        "UPDATE files SET deleted_at = $1 WHERE id = $2",
        args![rest.now() + TimeDelta::days(30), deleted[1].0],
    )
    .await;
    for first in FirstSweep::BOTH {
        clock.advance(DAY * 31);
        let sweep = async || rest.app.retention.sweep_once(rest.now()).await.unwrap();
        let reports = sweep_repeatedly(&rest, first, sweep).await;
        assert_eq!(sum(&reports, "tombstones"), 1, "{reports:?}");
    }
    assert_eq!(rest.number("SELECT COUNT(*) FROM files").await, 0);
    let left: Vec<(Value,)> = rest.rows("SELECT data FROM events WHERE file_id IS NOT NULL", args![]).await;
    assert!(left.is_empty(), "their history was removed with them");
    rest.assert_audit_clean().await;
}
