//! The dashboard is correct at every request, after every kind of change, and shows only the caller's files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::caller::{Reach, Role, TenantUser};
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::{Stage, Status};
use landfall_server::app::App;
use landfall_server::records::totals::Distribution;
use landfall_server::stages::{Job, Output, Work};
use landfall_store::args;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::many_files::list_inserted;
use crate::support::offline_app::Sql;
use crate::support::script::Gate;
use crate::support::{
    Client, Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database, until,
};

const DASHBOARD: &str = "/api/v2/uploads/dashboard";

async fn dashboard(client: &Client) -> Value {
    client.get(DASHBOARD).await.ok()
}

/// The states that have files, according to the dashboard.
fn states(dashboard: &Value) -> BTreeMap<String, i64> {
    let distribution = dashboard["statusDistribution"].as_object().expect("an object");
    distribution
        .iter()
        .map(|(status, count)| (status.clone(), count.as_i64().expect("a number")))
        .filter(|(_, count)| *count != 0)
        .collect()
}

/// The same according to the file lists of each state, page by page.
async fn listed(client: &Client) -> BTreeMap<String, i64> {
    let mut counted = BTreeMap::new();
    for status in Status::ALL {
        let files = pages(client, &format!("status={status}&limit=7")).await;
        assert!(files.iter().all(|file| file["status"] == status.name()), "{files:?}");
        if !files.is_empty() {
            counted.insert(status.name().to_owned(), i64::try_from(files.len()).unwrap());
        }
    }
    counted
}

async fn pages(client: &Client, query: &str) -> Vec<Value> {
    let mut files = Vec::new();
    let mut path = format!("/api/v2/uploads/files?{query}");
    loop {
        let page = client.get(&path).await.ok();
        files.extend(page["files"].as_array().expect("a list").iter().cloned());
        let Some(cursor) = page["nextCursor"].as_str() else { return files };
        path = format!("/api/v2/uploads/files?{query}&cursor={cursor}");
    }
}

fn only(states: &[(&str, i64)]) -> BTreeMap<String, i64> {
    states.iter().map(|(status, count)| ((*status).to_owned(), *count)).collect()
}

/// Compares the stored totals with the rows in one snapshot: of each user, of each tenant and of all, by state and by
/// stage.
async fn compare(app: &App) {
    let mut tx = app.db.snapshot().await.unwrap();
    let rows: Vec<(String, String, String, String, i64)> = tx
        .rows(
            "SELECT tenant_id, user_id, status, next_stage, COUNT(*) FROM files WHERE status <> 'deleted'
             GROUP BY tenant_id, user_id, status, next_stage",
            args![],
        )
        .await
        .unwrap();
    let mut reaches = vec![Reach::All, Reach::User(TenantUser::new("no tenant", "no user"))];
    for (tenant, user, ..) in &rows {
        reaches.extend([Reach::User(TenantUser::new(tenant, user)), Reach::Tenant(tenant.clone())]);
    }
    for reach in reaches {
        let kept = Distribution::load(&mut tx, &reach).await.unwrap();
        let count = |status: Status, stage: Option<Stage>| -> i64 {
            let mine = rows.iter().filter(|(tenant, user, state, next, _)| {
                reach.includes(tenant, user)
                    && state == status.name()
                    && stage.is_none_or(|stage| stage.name() == next)
            });
            mine.map(|(.., count)| count).sum()
        };
        for status in Status::ALL {
            if status != Status::Deleted {
                assert_eq!(kept.count(status), count(status, None), "{reach:?} {status}: {rows:?}");
            }
        }
        for stage in Stage::ALL {
            assert_eq!(
                kept.waiting(stage),
                count(Status::Queued, Some(stage)),
                "{reach:?} {stage}: {rows:?}"
            );
        }
    }
}

/// Ends at random, so that files take every possible path.
struct Chance;

impl Work for Chance {
    fn run<'a>(&'a self, _job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        async move {
            tokio::task::yield_now().await;
            match rand::random_range(0..10) {
                0 => Err(Failure::new(Code::ParseError, "It is damaged")),
                1 => Err(Failure::new(Code::DbError, "Try again")),
                _ => Ok(Output::Nothing),
            }
        }
        .boxed()
    }
}

/// Does something with a file or a batch of the user, whether or not its state allows it.
async fn act(
    server: &TestServer,
    client: &Client,
    files: &mut Vec<String>,
    batches: &mut Vec<String>,
    dice: &mut StdRng,
) {
    let pick = |from: &[String], dice: &mut StdRng| {
        (!from.is_empty()).then(|| from[dice.random_range(0..from.len())].clone())
    };
    let file = pick(files, dice);
    let path = |file: &str, verb: &str| format!("/api/v2/uploads/files/{file}/{verb}");
    match (dice.random_range(0..12), file) {
        (0 | 1, _) => files.push(client.upload("a.txt", b"x").await),
        (2, _) => {
            let batch = client.open_batch(2).await;
            files.push(client.upload_in(&batch, "b.txt", b"y").await);
            files
                .push(client.register(Some(&batch), "c.txt", 1).await["fileId"].as_str().unwrap().to_owned());
            batches.push(batch);
        }
        (3, _) => files.push(client.register(None, "d.txt", 5).await["fileId"].as_str().unwrap().to_owned()),
        (4, _) => files.push(client.send_bytes(None, "e.txt", b"z").await),
        (5, Some(file)) => drop(client.confirm(&file).await),
        (6, Some(file)) => drop(client.post(&path(&file, "cancel"), json!({})).await),
        (7, Some(file)) => drop(client.post(&path(&file, "retry"), json!({})).await),
        (8, Some(file)) => drop(client.delete(&format!("/api/v2/uploads/files/{file}")).await),
        (9, Some(file)) => drop(client.post(&format!("/api/v2/uploads/stuck/{file}/retry"), json!({})).await),
        (10, _) => {
            if let Some(batch) = pick(batches, dice) {
                drop(client.post(&format!("/api/v2/uploads/batches/{batch}/cancel"), json!({})).await);
            }
        }
        _ => {
            drop(client.post("/api/v2/uploads/dlq/retry-all", json!({})).await);
            server.app.wake.poll_work();
        }
    }
}

#[on_each_database]
async fn the_dashboard_has_the_documented_fields(db: TestDb) {
    let work = Script::new().then(Stage::Extract, Step::Fail(Code::ParseError));
    let server = Setup::default().work(work).start(&db).await;
    let alice = server.client("alice");
    let failed = alice.upload("broken.txt", b"x").await;
    server.idle().await;
    let answer = dashboard(&alice).await;
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        names(&answer),
        [
            "activeBatches",
            "circuits",
            "dlqDepth",
            "metrics",
            "oldestWaitingMs",
            "queueDepths",
            "recentErrors",
            "statusDistribution",
            "stuckFiles"
        ]
    );
    assert_eq!(names(&answer["queueDepths"]), ["file-chunk", "file-embed", "file-extract"]);
    assert_eq!(names(&answer["metrics"]), ["averageProcessingTime", "failureRate24h", "throughput24h"]);
    assert_eq!(
        names(&answer["statusDistribution"]),
        [
            "cancelled",
            "chunking",
            "embedding",
            "extracting",
            "failed",
            "queued",
            "ready",
            "registered",
            "scanning",
            "uploaded"
        ]
    );
    let error = &answer["recentErrors"][0];
    assert_eq!((&error["fileId"], &error["fileName"]), (&json!(failed), &json!("broken.txt")));
    assert!(error["error"].as_str().unwrap().starts_with("scripted PARSE_ERROR. "), "{error}");
    assert_eq!(error["timestamp"], alice.file(&failed).await["failedAt"]);
    assert_eq!(answer["circuits"].as_array().unwrap().len(), 4);
    assert_eq!(alice.get(&format!("{DASHBOARD}?scope=mine")).await.code(), "INVALID_REQUEST");
    server.stop().await;
}

#[on_each_database]
async fn every_change_of_a_file_is_counted_in_the_next_response(db: TestDb) {
    let clock = manual_clock();
    let (extract, embed) = (Gate::default(), Gate::default());
    let work = Script::new()
        .then(Stage::Extract, Step::Block(extract.clone()))
        .then(Stage::Embed, Step::Block(embed.clone()))
        .then(Stage::Chunk, Step::Fail(Code::ParseError));
    work.then(Stage::Chunk, Step::Fail(Code::ParseError));
    let server = Setup::default().work(work).clock(&clock).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
    let alice = server.client("alice");
    assert_eq!(states(&dashboard(&alice).await), only(&[]));
    let batch = alice.open_batch(2).await;
    let first = alice.send_bytes(Some(&batch), "a.txt", b"x").await;
    let ticket = alice.register(Some(&batch), "b.txt", 1).await;
    let answer = dashboard(&alice).await;
    assert_eq!(states(&answer), only(&[("uploaded", 1), ("registered", 1)]));
    assert_eq!(answer["activeBatches"], 1);

    alice.confirm(&first).await.ok();
    extract.reached().await;
    assert_eq!(states(&dashboard(&alice).await), only(&[("extracting", 1), ("registered", 1)]));
    let second = ticket["fileId"].as_str().unwrap();
    alice.put(ticket["uploadUrl"].as_str().unwrap(), "x").await.ok();
    alice.confirm(second).await.ok();
    clock.advance(Duration::from_secs(7));
    let answer = dashboard(&alice).await;
    assert_eq!(states(&answer), only(&[("extracting", 1), ("queued", 1)]));
    assert_eq!(listed(&alice).await, states(&answer));
    assert_eq!(answer["queueDepths"], json!({ "file-extract": 1, "file-chunk": 0, "file-embed": 0 }));
    assert_eq!(answer["oldestWaitingMs"], 7_000);

    alice.post(&format!("/api/v2/uploads/files/{second}/cancel"), json!({})).await.ok();
    assert_eq!(states(&dashboard(&alice).await), only(&[("extracting", 1), ("cancelled", 1)]));
    alice.delete(&format!("/api/v2/uploads/files/{second}")).await.ok();
    assert_eq!(states(&dashboard(&alice).await), only(&[("extracting", 1)]));
    extract.open();
    server.idle().await;
    let answer = dashboard(&alice).await;
    assert_eq!(states(&answer), only(&[("failed", 1)]));
    assert_eq!((&answer["dlqDepth"], &answer["activeBatches"]), (&json!(1), &json!(0)));
    assert_eq!(answer["oldestWaitingMs"], 0);
    alice.post(&format!("/api/v2/uploads/files/{first}/retry"), json!({ "fromStage": "extract" })).await.ok();
    server.idle().await;
    assert_eq!(states(&dashboard(&alice).await), only(&[("failed", 1)]), "it fails again");
    alice.post(&format!("/api/v2/uploads/files/{first}/retry"), json!({})).await.ok();
    embed.reached().await;
    // The worker begins a stage before the end of the last one is written.
    until("it embeds", async || states(&dashboard(&alice).await) == only(&[("embedding", 1)])).await;
    embed.open();
    server.idle().await;
    assert_eq!(states(&dashboard(&alice).await), only(&[("ready", 1)]));
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn users_see_only_their_own_files_and_an_administrator_sees_all(db: TestDb) {
    let work = Script::new().then(Stage::Extract, Step::Fail(Code::ParseError));
    let server = Setup::default().work(work).start(&db).await;
    // Two users of one tenant, which owns the files of both.
    let (alice, bob) = (server.client_of("alice", "acme"), server.client_of("bob", "acme"));
    alice.upload("broken.txt", b"x").await;
    server.idle().await;
    bob.upload("whole.txt", b"x").await;
    bob.open_batch(1).await;
    server.idle().await;
    let (hers, his) = (dashboard(&alice).await, dashboard(&bob).await);
    assert_eq!((states(&hers), states(&his)), (only(&[("failed", 1)]), only(&[("ready", 1)])));
    assert_eq!((&hers["dlqDepth"], &his["dlqDepth"]), (&json!(1), &json!(0)));
    assert_eq!((&hers["activeBatches"], &his["activeBatches"]), (&json!(0), &json!(1)));
    assert_eq!(hers["recentErrors"].as_array().unwrap().len(), 1);
    assert_eq!(his["recentErrors"], json!([]));
    assert_eq!(
        (&hers["metrics"]["failureRate24h"], &his["metrics"]["failureRate24h"]),
        (&json!(100.0), &json!(0.0))
    );
    let dana = server.client_with("dana", "acme", Role::TenantAdmin);
    let of_tenant = dana.get(&format!("{DASHBOARD}?scope=tenant")).await.ok();
    assert_eq!(states(&of_tenant), only(&[("failed", 1), ("ready", 1)]));
    assert_eq!(
        (&of_tenant["metrics"]["throughput24h"], &of_tenant["metrics"]["failureRate24h"]),
        (&json!(1), &json!(50.0))
    );
    let elsewhere = server.client_with("dana", "evilcorp", Role::TenantAdmin);
    let nothing = elsewhere.get(&format!("{DASHBOARD}?scope=tenant")).await.ok();
    assert_eq!((states(&nothing), &nothing["metrics"]["throughput24h"]), (only(&[]), &json!(0)));
    let of_all_users = format!("{DASHBOARD}?scope=all");
    bob.get(&of_all_users).await.refused(403, "FORBIDDEN");
    let admin = server.admin();
    let all = admin.get(&of_all_users).await.ok();
    assert_eq!(states(&all), only(&[("failed", 1), ("ready", 1)]));
    assert_eq!(
        (&all["metrics"]["throughput24h"], &all["metrics"]["failureRate24h"]),
        (&json!(1), &json!(50.0))
    );
    assert_eq!((&all["activeBatches"], all["recentErrors"].as_array().unwrap().len()), (&json!(1), 1));
    assert_eq!(states(&dashboard(&admin).await), only(&[]), "the administrator's own files");
    let anonymous = reqwest::get(format!("{}{DASHBOARD}", server.base)).await.unwrap();
    assert_eq!(anonymous.status(), 401);
    server.stop().await;
}

#[on_each_database]
async fn finished_files_are_counted_for_a_day(db: TestDb) {
    let clock = manual_clock();
    let gate = Gate::default();
    let work = Script::new()
        .then(Stage::Extract, Step::Fail(Code::ParseError))
        .then(Stage::Extract, Step::Block(gate.clone()));
    let setup = Setup::default().work(work).clock(&clock).with("RETENTION_SCHEDULE", "0 0 1 1 *");
    let server = setup.start(&db).await;
    let alice = server.client("alice");
    alice.upload("a.txt", b"x").await;
    server.idle().await;
    alice.upload("b.txt", b"x").await;
    gate.reached().await;
    clock.advance(Duration::from_millis(1_500));
    gate.open();
    server.idle().await;
    alice.upload("c.txt", b"x").await;
    server.idle().await;
    let metrics = |answer: Value| answer["metrics"].clone();
    let expected = json!({ "averageProcessingTime": 750, "throughput24h": 2, "failureRate24h": 33.33 });
    assert_eq!(metrics(dashboard(&alice).await), expected);
    clock.advance(Duration::from_hours(23));
    assert_eq!(metrics(dashboard(&alice).await), expected);
    clock.advance(Duration::from_mins(66));
    let nothing = json!({ "averageProcessingTime": 0, "throughput24h": 0, "failureRate24h": 0.0 });
    assert_eq!(metrics(dashboard(&alice).await), nothing);
    let kept = "SELECT COUNT(*) FROM throughput";
    assert!(server.app.db.read().await.unwrap().number(kept, args![]).await.unwrap() > 0);
    server.run_job("retention").await;
    assert_eq!(server.app.db.read().await.unwrap().number(kept, args![]).await.unwrap(), 0);
    server.stop().await;
}

#[on_each_database]
async fn a_stuck_file_is_counted_as_in_the_list_of_stuck_files(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default()
        .work(Script::new())
        .clock(&clock)
        .with("STUCK_RECOVERY_SCHEDULE", "0 0 1 1 *")
        .start(&db)
        .await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"x").await;
    server.idle().await;
    let stuck = "UPDATE files SET status = 'embedding', claim = id, claimed_by = id, claimed_at = created_at";
    server.app.db.write(Sql(stuck.to_owned(), args![])).await.unwrap();
    assert_eq!(dashboard(&alice).await["stuckFiles"], 0, "not stuck yet");
    clock.advance(Duration::from_mins(31));
    assert_eq!(dashboard(&alice).await["stuckFiles"], 1);
    assert_eq!(dashboard(&server.client("bob")).await["stuckFiles"], 0);
    let list = alice.get("/api/v2/uploads/stuck").await.ok();
    assert_eq!((&list["total"], &list["files"][0]["id"]), (&json!(1), &json!(file)));
    server.stop().await;
}

#[on_each_database]
async fn the_totals_equal_the_rows_at_every_moment(db: TestDb) {
    let server = Setup::default()
        .work(Arc::new(Chance))
        .with("RETRY_BASE_DELAY_MS", 5)
        .with("RETRY_LATE_BASE_DELAY_MS", 5)
        .start(&db)
        .await;
    let users = ["alice", "bob"];
    let done = CancellationToken::new();
    let watching = tokio::spawn({
        let (app, done) = (server.app.clone(), done.clone());
        async move {
            let mut checks = 0;
            while !done.is_cancelled() {
                compare(&app).await;
                checks += 1;
            }
            checks
        }
    });
    let histories = (0_u64..4).map(|number| {
        let server = &server;
        async move {
            // Two tasks for each user, one of them also for another tenant.
            let user = users[usize::try_from(number % 2).unwrap()];
            let client = if number < 2 { server.client(user) } else { server.client_of(user, "shared") };
            let mut dice = StdRng::seed_from_u64(number);
            let (mut files, mut batches) = (Vec::new(), Vec::new());
            for _ in 0..60 {
                act(server, &client, &mut files, &mut batches, &mut dice).await;
            }
        }
    });
    futures_util::future::join_all(histories).await;
    server.idle().await;
    done.cancel();
    let checks: usize = watching.await.expect("the totals always equal the rows");
    assert!(checks > 0);
    compare(&server.app).await;
    for user in users {
        let client = server.client(user);
        until("the response is correct", async || {
            let mut tx = server.app.db.read().await.unwrap();
            let rows: Vec<(String, i64)> = tx
                .rows("SELECT status, COUNT(*) FROM files WHERE tenant_id = $1 AND user_id = $1 AND status <> 'deleted'
                     GROUP BY status",
                    args![user],
                )
                .await
                .unwrap();
            states(&dashboard(&client).await) == rows.into_iter().collect()
        })
        .await;
    }
    for user in users {
        let client = server.client(user);
        assert_eq!(listed(&client).await, states(&dashboard(&client).await));
    }
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_name_is_found_however_far_down_the_list_it_is(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let needle = alice.register(None, "needle.txt", 1).await["fileId"].clone();
    let id = if server.app.db.is_postgres() {
        "CAST(lpad(to_hex(n + 1048576), 32, 'f') AS UUID)"
    } else {
        "unhex(replace(printf('%32x', n + 1048576), ' ', 'f'))"
    };
    let hay = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < 12000)
         INSERT INTO files (id, tenant_id, user_id, file_name, size_bytes, status, next_stage, upload_until, created_at,
                            updated_at)
         SELECT {id}, 'alice', 'alice', 'hay-' || n, 1, 'registered', 'extract', $1, $1, $1 FROM numbers"
    );
    let later = server.app.clock.now() + chrono::TimeDelta::hours(1);
    server.app.db.write(Sql(hay, args![later])).await.unwrap();
    list_inserted(&server).await;
    let first = alice.get("/api/v2/uploads/files?q=NEEDLE").await.ok();
    assert_eq!(first["files"], json!([]), "no request scans more rows than the limit");
    assert!(first["nextCursor"].is_string());
    let found = pages(&alice, "q=NEEDLE").await;
    assert_eq!((found.len(), &found[0]["fileId"]), (1, &needle));
    assert_eq!(pages(&alice, "q=hay-&limit=200").await.len(), 12_000);
    server.stop().await;
}
