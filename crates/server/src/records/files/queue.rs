//! Files that wait in the queue: those that a worker may claim, and those that wait for their next attempt.

use std::collections::BTreeMap;

use landfall_core::caller::{Reach, TenantUser};
use landfall_core::clock::Time;
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage;
use landfall_store::wake::Signal;
use landfall_store::{Error, Rows, Tx, args};
use uuid::Uuid;

use crate::records::file::File;
use crate::records::reach;

/// The files of one user that wait at a stage.
pub type Lane = TenantUser;

/// Marks files as due whose retry time has come, up to `most`.
pub async fn make_due(tx: &mut Tx, most: usize, now: Time) -> Result<(), Error> {
    let skip_locked = tx.skip_locked();
    tx.execute(
        format!(
            "WITH due AS MATERIALIZED (
                 SELECT id FROM files WHERE queue_stage IS NOT NULL AND NOT is_due AND run_after <= $1 AND NOT is_alone
                 ORDER BY run_after LIMIT $2 {skip_locked})
             UPDATE files SET is_due = TRUE WHERE id IN (SELECT id FROM due)"
        ),
        args![now, most],
    )
    .await
    .map(drop)
}

/// Lets the files that failed first with one of these codes have their turn now, up to `most`.
pub async fn make_failed_due(tx: &mut Tx, codes: &[Code], most: u32, now: Time) -> Result<(), Error> {
    let codes: Vec<String> = codes.iter().map(|code| format!("'{code}'")).collect();
    // A row that another process has locked is being claimed.
    let skip_locked = tx.skip_locked();
    let sql = format!(
        "WITH failed AS MATERIALIZED (
             SELECT id FROM files
             WHERE queue_stage IS NOT NULL AND error_code IS NOT NULL AND error_code IN ({}) AND NOT is_due AND NOT is_alone
               AND run_after > $1
             ORDER BY error_at LIMIT $2 {skip_locked})
         UPDATE files SET run_after = $1, is_due = TRUE WHERE id IN (SELECT id FROM failed)",
        codes.join(", ")
    );
    tx.execute(sql, args![now, most]).await.map(drop)
}

/// Lets one file in the queue have its turn now. `recoveries` is added to the number of times that it was recovered.
pub async fn make_one_due(tx: &mut Tx, file: Uuid, recoveries: i64, now: Time) -> Result<(), Error> {
    tx.execute(
        "UPDATE files SET run_after = $2, is_due = NOT is_alone, updated_at = $2, retry_count = retry_count + $3
         WHERE id = $1 AND status = 'queued'",
        args![file, now, recoveries],
    )
    .await
    .map(drop)
}

/// Lets an archive that waits for its files have its turn now. One that another transaction holds is passed over: its wait
/// ends by itself.
pub async fn end_wait(tx: &mut Tx, archive: Uuid, now: Time) -> Result<(), Error> {
    let skip_locked = tx.skip_locked();
    let woken = tx
        .execute(
            format!(
                "UPDATE files SET run_after = $2, is_due = NOT is_alone, updated_at = $2
                 WHERE status = 'queued' AND id IN
                     (SELECT id FROM files WHERE id = $1 AND status = 'queued' AND run_after > $2
                        AND archive_batch IS NOT NULL {skip_locked})"
            ),
            args![archive, now],
        )
        .await?;
    if woken > 0 {
        tx.signal(Signal::Work);
    }
    Ok(())
}

/// A file that waits, when it was put into the queue, and when its next attempt is due.
#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct Wait {
    pub id: Uuid,
    pub updated_at: Time,
    pub run_after: Time,
}

/// Files whose wait began later than `ahead`, a time that has not come yet: a clock that was wrong has set it. Up to `most`.
pub async fn waits_from_ahead(tx: &mut Tx, ahead: Time, most: usize) -> Result<Vec<Wait>, Error> {
    // No wait ends before it begins, so the end is in the index and the beginning need not be.
    tx.rows(
        "SELECT id, updated_at, run_after FROM files
         WHERE queue_stage IS NOT NULL AND NOT is_due AND run_after > $1 AND updated_at > $1
         ORDER BY run_after LIMIT $2",
        args![ahead, most],
    )
    .await
}

/// Lets a wait that is still as it was seen begin now. It lasts as long as it was meant to. Returns whether it was changed.
pub async fn begin_wait_now(tx: &mut Tx, wait: &Wait, now: Time) -> Result<bool, Error> {
    let run_after = now + (wait.run_after - wait.updated_at);
    let sql = "UPDATE files SET run_after = $4, updated_at = $5
               WHERE id = $1 AND updated_at = $2 AND run_after = $3 AND status = 'queued' AND NOT is_due";
    let changed = tx.execute(sql, args![wait.id, wait.updated_at, wait.run_after, run_after, now]).await?;
    tx.signal(Signal::Work);
    Ok(changed > 0)
}

/// Restores an attempt of each file that waits after one of these failures, at `since` or later. From then on it waits
/// for the service.
pub async fn refund_attempts(tx: &mut Tx, codes: &[Code], since: Time) -> Result<(), Error> {
    if codes.is_empty() {
        return Ok(());
    }
    let codes: Vec<String> = codes.iter().map(|code| format!("'{code}'")).collect();
    // A row that another process has locked is being claimed, so the file is already being retried.
    let skip_locked = tx.skip_locked();
    let sql = format!(
        "WITH failed AS MATERIALIZED (
             SELECT id FROM files
             WHERE queue_stage IS NOT NULL AND error_code IS NOT NULL AND error_at >= $1 AND attempt > 0
               AND error_code IN ({}) {skip_locked})
         UPDATE files SET attempt = attempt - 1, waits = waits + 1, generation = generation + 1,
                waiting_since = COALESCE(waiting_since, error_at)
         WHERE id IN (SELECT id FROM failed)",
        codes.join(", ")
    );
    tx.execute(sql, args![since]).await.map(drop)
}

/// Where a walk from tenant to tenant begins at a stage: behind `after`, for so many steps. The tenants of the first
/// part come before those of the second.
#[derive(Debug, Clone, Copy)]
pub struct TenantWalk<'a> {
    pub stage: Stage,
    pub after: &'a str,
    pub steps: usize,
    pub part: usize,
}

/// The tenants that these walks meet, each with the name of its stage. A step is one look into the queue's index.
pub async fn tenants_waiting(tx: &mut Tx, walks: &[TenantWalk<'_>]) -> Result<Vec<(String, String)>, Error> {
    let mut starts = Rows::default();
    for TenantWalk { stage, after, steps, part } in walks {
        starts.push(args![*stage, *after, *steps, *part]);
    }
    let (values, arguments) = starts.into_values(tx);
    let next = |stage: &str, after: &str| {
        format!(
            "(SELECT tenant_id FROM files
              WHERE is_due AND queue_stage = {stage} AND tenant_id > {after}
              ORDER BY tenant_id LIMIT 1)"
        )
    };
    let (first, then) = (next("column1", "column2"), next("walk.stage", "walk.tenant"));
    tx.rows(
        format!(
            "WITH RECURSIVE walk (stage, tenant, steps, part) AS (
                 SELECT column1, {first}, column3, column4 FROM ({values}) AS starts WHERE column1 IS NOT NULL
                 UNION ALL
                 SELECT stage, {then}, steps - 1, part FROM walk WHERE tenant IS NOT NULL AND steps > 1)
             SELECT stage, tenant FROM walk WHERE tenant IS NOT NULL ORDER BY part, steps DESC"
        ),
        arguments,
    )
    .await
}

/// Whether a file of another tenant could be claimed at a stage.
pub async fn other_tenant_waits(tx: &mut Tx, stage: Stage, tenant: &str) -> Result<bool, Error> {
    // The first tenant in the index, and the first behind this one.
    let walks = ["", tenant].map(|after| TenantWalk { stage, after, steps: 1, part: 0 });
    let found = tenants_waiting(tx, &walks).await?;
    Ok(found.iter().any(|(_, waiting)| waiting != tenant))
}

/// Where a walk from user to user of a tenant begins: behind `after`, for so many steps. `turn` and `part` come back with
/// what it meets.
#[derive(Debug, Clone, Copy)]
pub struct UserWalk<'a> {
    pub tenant: &'a str,
    pub after: &'a str,
    pub steps: usize,
    pub turn: usize,
    pub part: usize,
}

/// A user that a walk met, with the steps that were left.
#[derive(Debug)]
pub struct UserMet {
    pub lane: Lane,
    pub steps: i64,
    pub turn: i64,
    pub part: i64,
}

/// The users with files at a stage that these walks meet.
pub async fn users_waiting(tx: &mut Tx, stage: Stage, walks: &[UserWalk<'_>]) -> Result<Vec<UserMet>, Error> {
    let mut starts = Rows::default();
    for UserWalk { tenant, after, steps, turn, part } in walks {
        starts.push(args![*tenant, *after, *steps, *turn, *part]);
    }
    let next = |tenant: &str, after: &str| {
        format!(
            "(SELECT user_id FROM files
              WHERE is_due AND queue_stage = '{stage}' AND tenant_id = {tenant}
                AND user_id > {after}
              ORDER BY user_id LIMIT 1)"
        )
    };
    let (first, then) = (next("column1", "column2"), next("walk.tenant", "walk.user_id"));
    let mut met = Vec::new();
    for batch in starts.batches() {
        let (values, arguments) = batch.into_values(tx);
        let sql = format!(
            "WITH RECURSIVE walk (tenant, user_id, steps, turn, part) AS (
                 SELECT column1, {first}, column3, column4, column5 FROM ({values}) AS starts
                 WHERE column1 IS NOT NULL
                 UNION ALL
                 SELECT tenant, {then}, steps - 1, turn, part FROM walk WHERE user_id IS NOT NULL AND steps > 1)
             SELECT tenant, user_id, steps, turn, part FROM walk WHERE user_id IS NOT NULL"
        );
        let found: Vec<(String, String, i64, i64, i64)> = tx.rows(sql, arguments).await?;
        met.extend(found.into_iter().map(|(tenant, user, steps, turn, part)| UserMet {
            lane: Lane { tenant, user },
            steps,
            turn,
            part,
        }));
    }
    Ok(met)
}

/// The first files of each of these lanes, up to `most` of each, locked until the transaction ends. Files that another
/// process has locked are passed over. At most [`Rows::MAX`] lanes.
pub async fn lock_first(tx: &mut Tx, stage: Stage, lanes: &[&Lane], most: usize) -> Result<Vec<Uuid>, Error> {
    let found: Vec<(Uuid,)> = if let [lane] = lanes {
        let walk = walk(stage, "$1", "$2", "$3", tx.skip_locked());
        tx.rows(walk, args![&lane.tenant, &lane.user, most]).await?
    } else {
        let mut rows = Rows::default();
        for lane in lanes {
            rows.push(args![&lane.tenant, &lane.user]);
        }
        let (values, arguments) = rows.named("lanes", &["tenant", "owner"], tx);
        // The number is in the statement, because SQLite cannot take a limit from a row.
        let walk = walk(stage, "lanes.tenant", "lanes.owner", &most.to_string(), tx.skip_locked());
        let due = tx.for_each("(SELECT * FROM lanes WHERE tenant IS NOT NULL) AS lanes", "files", &walk);
        tx.rows(format!("WITH {values} {due}"), arguments).await?
    };
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// A user's files, by priority and then the longest due first.
fn walk(stage: Stage, tenant: &str, user: &str, most: &str, skip_locked: &str) -> String {
    format!(
        "SELECT id FROM files
         WHERE is_due AND queue_stage = '{stage}' AND tenant_id = {tenant} AND user_id = {user}
         ORDER BY priority, run_after LIMIT {most} {skip_locked}"
    )
}

/// The files of this lane that have waited the longest, whatever their priority, locked until the transaction ends:
/// those that probe a service. Otherwise the same few files of a high priority would speak for all.
pub async fn lock_longest_waiting(
    tx: &mut Tx,
    stage: Stage,
    lane: &Lane,
    most: usize,
) -> Result<Vec<Uuid>, Error> {
    // One range of the queue's index for each priority.
    let waiting = (0..3).map(|priority| {
        format!(
            "SELECT * FROM (SELECT id, run_after FROM files WHERE is_due AND queue_stage = '{stage}'
                 AND tenant_id = $1 AND user_id = $2 AND priority = {priority} ORDER BY run_after LIMIT $3) AS p{priority}"
        )
    });
    let sql = format!(
        "SELECT f.id FROM files f WHERE f.id IN (
             SELECT id FROM ({}) AS waiting ORDER BY run_after LIMIT $3)
           AND f.is_due {}",
        waiting.collect::<Vec<String>>().join(" UNION ALL "),
        tx.skip_locked()
    );
    let found: Vec<(Uuid,)> = tx.rows(sql, args![&lane.tenant, &lane.user, most]).await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// The file that has waited the longest of those that are claimed alone at a stage, with its owner, locked until the
/// transaction ends.
pub async fn lock_alone(tx: &mut Tx, stage: Stage, now: Time) -> Result<Option<(Uuid, Lane)>, Error> {
    let sql = format!("SELECT id, tenant_id, user_id {} {}", first_alone(stage), tx.skip_locked());
    let found: Option<(Uuid, String, String)> = tx.row(sql, args![now]).await?;
    Ok(found.map(|(file, tenant, user)| (file, Lane { tenant, user })))
}

/// Since when that file waits.
pub async fn one_alone_since(tx: &mut Tx, stage: Stage, now: Time) -> Result<Option<Time>, Error> {
    let found: Option<(Time,)> =
        tx.row(format!("SELECT run_after {}", first_alone(stage)), args![now]).await?;
    Ok(found.map(|(since,)| since))
}

/// Whether a file could be claimed at a stage, not alone, that has waited since before this time.
pub async fn any_due_before(tx: &mut Tx, stage: Stage, before: Time) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) FROM (SELECT 1 FROM files WHERE is_due AND queue_stage = $1 AND run_after < $2 LIMIT 1)
                   AS waiting";
    Ok(tx.number(sql, args![stage, before]).await? > 0)
}

fn first_alone(stage: Stage) -> String {
    format!(
        "FROM files WHERE queue_stage = '{stage}' AND is_alone AND run_after <= $1 ORDER BY run_after LIMIT 1"
    )
}

/// Forgets the deaths of workers that worked on nothing but one of these files. If a worker works on one now, its death
/// will not count either.
pub async fn clear_deaths_alone(tx: &mut Tx) -> Result<(), Error> {
    // In the terms of an index each. Those that another transaction holds are being claimed, ended or rescued.
    for (files, cleared) in
        [("queue_stage IS NOT NULL", "0"), ("claimed_by IS NOT NULL", "CASE WHEN begun THEN -1 ELSE 0 END")]
    {
        let sql = format!(
            "WITH suspected AS MATERIALIZED (
                 SELECT id FROM files WHERE {files} AND is_alone AND deaths_alone > {cleared} ORDER BY id {})
             UPDATE files SET deaths_alone = {cleared} WHERE id IN (SELECT id FROM suspected)",
            tx.skip_locked()
        );
        tx.execute(sql, args![]).await?;
    }
    Ok(())
}

/// Files that have waited at a stage since `before` or earlier, locked until the transaction ends. Files that another
/// process has locked are passed over.
pub async fn lock_waiting_since(
    tx: &mut Tx,
    stage: Stage,
    before: Time,
    most: usize,
) -> Result<Vec<File>, Error> {
    let sql = format!(
        "SELECT * FROM files WHERE queue_stage = $1 AND COALESCE(waiting_since, updated_at) <= $2
         ORDER BY id LIMIT $3 {}",
        tx.skip_locked()
    );
    tx.rows(sql, args![stage, before, most]).await
}

/// How many of its owner's files at its stage come before a file, counted up to `most`.
pub async fn count_before(tx: &mut Tx, file: &File, most: i64) -> Result<i64, Error> {
    // Two ranges of the index. With one range, `(priority, run_after) < ($4, $5)`, SQLite would step through all
    // files that became due at the same moment as this one.
    let mine = "is_due AND queue_stage = $1 AND tenant_id = $2 AND user_id = $3";
    tx.number(
        format!(
            "SELECT COUNT(*) FROM (
                 SELECT 1 FROM files WHERE {mine} AND priority < $4
                 UNION ALL
                 SELECT 1 FROM files WHERE {mine} AND priority = $4 AND run_after < $5
                 LIMIT $6) AS before"
        ),
        args![file.next_stage, &file.tenant_id, &file.user_id, file.priority, file.run_after, most],
    )
    .await
}

/// When the first `most` of a user's files at a stage have their turn, in that order, as their priority and time.
pub async fn first_turns(
    tx: &mut Tx,
    user: &TenantUser,
    stage: Stage,
    most: i64,
) -> Result<Vec<(i64, Option<Time>)>, Error> {
    tx.rows(
        "SELECT priority, run_after FROM files WHERE is_due AND queue_stage = $1 AND tenant_id = $2 AND user_id = $3
         ORDER BY priority, run_after LIMIT $4",
        args![stage, &user.tenant, &user.user, most],
    )
    .await
}

/// How many files wait for their next attempt, by the names of their stages, counted up to `most` in all.
pub async fn count_retrying(tx: &mut Tx, most: i64) -> Result<Vec<(String, i64)>, Error> {
    tx.rows(
        "SELECT queue_stage, COUNT(*) FROM (SELECT queue_stage FROM files WHERE queue_stage IS NOT NULL AND NOT is_due LIMIT $1)
             AS retrying GROUP BY queue_stage",
        args![most],
    )
    .await
}

/// Whether a file waits at a stage that could have been claimed at `since` or before.
pub async fn any_waits_since(tx: &mut Tx, stage: Stage, since: Time) -> Result<bool, Error> {
    // Files whose retry is due also wait, even if no process has marked them as due.
    let mut waits = false;
    for which in ["is_due", "NOT is_due"] {
        let sql = format!(
            "SELECT COUNT(*) FROM (SELECT 1 FROM files WHERE {which} AND queue_stage = $1
                 AND run_after <= $2 LIMIT 1) AS waiting"
        );
        waits = waits || tx.number(sql, args![stage, since]).await? > 0;
    }
    Ok(waits)
}

/// Whether a file is at one of these stages, waiting or in the hand of a worker, that is none of `except`.
pub async fn others_are_at(tx: &mut Tx, stages: &[Stage], except: &[Uuid]) -> Result<bool, Error> {
    let mut rows = Rows::default();
    for file in except {
        rows.push(args![*file]);
    }
    let listed = |of: fn(&Stage) -> String| stages.iter().map(of).collect::<Vec<_>>().join(", ");
    let (queued, running) =
        (listed(|stage| format!("'{stage}'")), listed(|stage| format!("'{}'", stage.running())));
    let (values, arguments) = rows.named("known", &["id"], tx);
    let other = "id NOT IN (SELECT id FROM known WHERE id IS NOT NULL)";
    // Each part is a range of an index.
    let sql = format!(
        "WITH {values}
         SELECT COUNT(*) FROM (
             SELECT 1 FROM files WHERE is_due AND queue_stage IN ({queued}) AND {other}
             UNION ALL SELECT 1 FROM files WHERE queue_stage IS NOT NULL AND NOT is_due AND queue_stage IN ({queued}) AND {other}
             UNION ALL SELECT 1 FROM files WHERE claimed_by IS NOT NULL AND status IN ({running}) AND {other}
             LIMIT 1) AS others"
    );
    Ok(!stages.is_empty() && tx.number(sql, arguments).await? > 0)
}

/// Since when the oldest file at each stage has waited that a worker could claim, of up to `most_users` of these owners.
///
/// Each user has a queue at each stage, by priority and then by time: one index lookup finds the head of each.
pub async fn oldest_by_stage(
    tx: &mut Tx,
    reach: &Reach,
    most_users: usize,
) -> Result<BTreeMap<Stage, Time>, Error> {
    let mut arguments = args![most_users];
    let whose = reach::condition(reach, &mut arguments);
    let stages = Stage::ALL.map(|stage| format!("('{stage}')")).join(", ");
    let has_files =
        Stage::ALL.map(|stage| format!("(s.column1 = '{stage}' AND t.at_{stage} > 0)")).join(" OR ");
    let sql = format!(
        "SELECT stage, MIN(since) FROM (
             SELECT s.column1 AS stage, (SELECT f.run_after FROM files f
                     WHERE f.is_due AND f.queue_stage = s.column1
                       AND f.tenant_id = t.tenant_id AND f.user_id = t.user_id AND f.priority = p.column1
                     ORDER BY f.run_after LIMIT 1) AS since
             FROM (SELECT * FROM user_totals
                   WHERE {whose} AND at_scan + at_extract + at_chunk + at_embed > 0 LIMIT $1) AS t
             CROSS JOIN (VALUES {stages}) AS s CROSS JOIN (VALUES (0), (1), (2)) AS p
             WHERE {has_files}) AS heads GROUP BY stage"
    );
    let oldest: Vec<(String, Option<Time>)> = tx.rows(sql, arguments).await?;
    Ok(oldest.into_iter().filter_map(|(stage, since)| Some((stage.parse().ok()?, since?))).collect())
}
