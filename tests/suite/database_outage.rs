//! The database goes away under load and comes back: callers get an error at once, workers stop and resume by
//! themselves, and nothing is lost.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::clock::Clock;
use landfall_core::failure::Failure;
use landfall_core::lifecycle::Stage;
use landfall_server::stages::{Job, Output, Work};
use landfall_store::args;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::cluster::Cluster;
use crate::support::script::Gate;
use crate::support::{Client, Script, Setup, Step, TestDb, batch_summary, until};

/// Short keep-alives, so that a test notices within seconds what otherwise takes a minute.
fn short_keep_alives() -> Setup {
    Setup::default()
        .change(|config| config.queue.liveness.heartbeat_interval = Duration::from_millis(300))
        .with("HEARTBEAT_EXPIRY_MS", 3_000)
}

/// Takes a moment for each stage, so that some files are always in progress.
struct SlowStages;

impl Work for SlowStages {
    fn run<'a>(&'a self, _: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        async {
            Clock::System.sleep(Duration::from_millis(40)).await;
            Ok(Output::Nothing)
        }
        .boxed()
    }
}

/// A request that may fail, but only as unavailable.
async fn ask(client: &Client, request: reqwest::RequestBuilder, refusals: &Refusals) -> Option<Value> {
    let answer = client.send(request).await;
    if answer.status < 300 {
        return Some(answer.body);
    }
    refusals.take(answer.status, answer.body);
    None
}

#[derive(Default)]
struct Refusals {
    unavailable: AtomicUsize,
    others: Mutex<Vec<Value>>,
}

impl Refusals {
    fn take(&self, status: u16, body: Value) {
        let error = &body["error"];
        // An upload whose process lost its identity meanwhile is told to send the bytes again.
        let known = [json!("DATABASE_UNAVAILABLE"), json!("UPLOAD_INTERRUPTED")].contains(&error["code"]);
        if status == 503 && known && error["retryable"] == true {
            self.unavailable.fetch_add(1, Ordering::Relaxed);
        } else {
            self.others.lock().unwrap().push(body);
        }
    }
}

/// Uploads one file and repeats each call until it succeeds, as a client should.
async fn upload_with_retries(client: &Client, batch: &str, name: &str, refusals: &Refusals) -> String {
    let again = async || Clock::System.sleep(Duration::from_millis(50)).await;
    let register = format!("/api/v2/uploads/batches/{batch}/upload-urls");
    let ticket = loop {
        // With a key, so that a request whose response was lost does not register twice.
        let request = client
            .request(Method::POST, &register)
            .header("idempotency-key", name)
            .json(&json!({ "fileName": name, "fileSize": 5 }));
        match ask(client, request, refusals).await {
            Some(ticket) => break ticket,
            None => again().await,
        }
    };
    let url = ticket["uploadUrl"].as_str().unwrap().to_owned();
    let file = ticket["fileId"].as_str().unwrap().to_owned();
    let confirm = format!("/api/v2/uploads/files/{file}/confirm");
    loop {
        if ask(client, client.http.put(&url).body("bytes"), refusals).await.is_some()
            && ask(client, client.request(Method::POST, &confirm), refusals).await.is_some()
        {
            return file;
        }
        again().await;
        // The confirm may be committed although its response was lost; then there is nothing left to upload.
        let shown = client.request(Method::GET, &format!("/api/v2/uploads/files/{file}"));
        let status = ask(client, shown, refusals).await.map(|shown| shown["status"].clone());
        if status.is_some_and(|status| !["registered", "uploaded"].contains(&status.as_str().unwrap())) {
            return file;
        }
    }
}

/// `until_lost`: the outage lasts until the heartbeats of the workers have expired.
async fn survive_outages(outages: usize, until_lost: bool) {
    const FILES: usize = 120;
    let Some(cluster) = Cluster::start_new() else { return };
    let db = cluster.database();
    let expiry = if until_lost { 3_000 } else { 600_000 };
    let setup = || short_keep_alives().with("HEARTBEAT_EXPIRY_MS", expiry).work(Arc::new(SlowStages));
    let (one, other) = (setup().start(&db).await, setup().start(&db).await);
    let client = one.client("ada");
    let batch = client.open_batch(FILES).await;
    let refusals = Arc::new(Refusals::default());
    let done = Arc::new(AtomicUsize::new(0));
    let mut coming = Vec::new();
    for lane in 0..8 {
        let (client, batch, refusals, done) = (client.clone(), batch.clone(), refusals.clone(), done.clone());
        coming.push(tokio::spawn(async move {
            let mut files = Vec::new();
            for number in (lane..FILES).step_by(8) {
                files.push(upload_with_retries(&client, &batch, &format!("{number}.txt"), &refusals).await);
                done.fetch_add(1, Ordering::Relaxed);
            }
            files
        }));
    }
    for round in 1..=outages {
        until("files arrive", async || done.load(Ordering::Relaxed) > round * 10).await;
        let names = [one.app.liveness.identity(), other.app.liveness.identity()];
        cluster.kill();
        until("both are not ready", async || {
            let seen = [one.client("ada").get("/readyz").await, other.client("ada").get("/readyz").await];
            seen.iter()
                .all(|seen| seen.status == 503 && seen.body["checks"]["database"]["status"] == "failed")
        })
        .await;
        assert_eq!(client.get("/healthz").await.status, 200, "it is alive, and a restart would not help");
        let error = client
            .get(&format!("/api/v2/uploads/batches/{batch}"))
            .await
            .refused(503, "DATABASE_UNAVAILABLE");
        assert_eq!(error["retryable"], true);
        if until_lost {
            until("both stop work on claims that they cannot prove", async || {
                names.iter().all(|name| name.lost.is_cancelled())
            })
            .await;
            let seen = client.get("/readyz").await.body;
            assert_eq!(seen["checks"]["heartbeat"]["status"], "failed", "{seen}");
        }
        cluster.start_again().await;
        until("both are ready again", async || {
            one.client("ada").get("/readyz").await.status == 200
                && other.client("ada").get("/readyz").await.status == 200
        })
        .await;
        if !until_lost {
            for (before, server) in names.iter().zip([&one, &other]) {
                until("its lock is held again", async || {
                    let sql = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";
                    server.app.db.read().await.unwrap().number(sql, args![]).await.unwrap() >= 2
                })
                .await;
                assert_eq!(server.app.liveness.identity().id, before.id, "no worker was declared dead");
            }
        }
    }
    let mut files = Vec::new();
    for lane in coming {
        files.extend(lane.await.expect("all files are uploaded"));
    }
    assert_eq!(*refusals.others.lock().unwrap(), Vec::<Value>::new(), "no other error was returned");
    assert!(refusals.unavailable.load(Ordering::Relaxed) > 0, "some requests were refused");
    until("all are ready", async || client.batch(&batch).await["status"] == "completed").await;
    assert_eq!(client.batch(&batch).await["summary"], batch_summary(FILES, FILES, 0));
    assert_eq!(files.len(), FILES);
    // An upload whose response was lost is settled as soon as the database is back.
    until("the audit finds nothing", async || one.findings().await.is_empty()).await;
    one.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_postgres_is_killed_again_and_again_under_load() {
    // More often than a file may lose its worker: an outage does not count against the files.
    survive_outages(4, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_postgres_is_down_for_longer_than_the_heartbeat_expiry() {
    survive_outages(2, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_work_survives_a_restart_of_postgres_and_is_not_repeated() {
    let Some(cluster) = Cluster::start_new() else { return };
    let db = cluster.database();
    let gate = Gate::default();
    let script = Script::new().then(Stage::Extract, Step::Block(gate.clone()));
    // Only the lock could show that the worker is dead, and PostgreSQL forgot the locks when it was killed.
    let patient = || {
        Setup::default()
            .change(|config| config.queue.liveness.heartbeat_interval = Duration::from_millis(300))
            .with("HEARTBEAT_EXPIRY_MS", 600_000)
    };
    let server = patient().work(script.clone()).start(&db).await;
    let other = patient().with("WORKER_STAGES", "embed").work(Script::new()).start(&db).await;
    let client = server.client("ada");
    let file = client.upload("a.txt", b"bytes").await;
    gate.reached().await;
    cluster.kill();
    until("the outage is noticed", async || client.get("/readyz").await.status == 503).await;
    cluster.start_again().await;
    until("it is back", async || client.get("/readyz").await.status == 200).await;
    // The other process has checked, and had many chances to declare the first one dead.
    until("the other process checks", async || other.app.liveness.rescue_dead_workers().await.is_ok()).await;
    gate.open();
    until("it is ready", async || {
        let answer = client.get(&format!("/api/v2/uploads/files/{file}")).await;
        answer.body["status"] == "ready"
    })
    .await;
    assert_eq!(script.runs().iter().filter(|(stage, _)| *stage == Stage::Extract).count(), 1);
    assert_eq!(
        client.states(&file).await.iter().filter(|state| *state == "queued").count(),
        1,
        "the file was never released"
    );
    server.assert_audit_clean().await;
    server.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_postgres_is_treated_as_down_until_it_continues() {
    let Some(cluster) = Cluster::start_new() else { return };
    let db = cluster.database();
    let server = short_keep_alives().start(&db).await;
    let client = server.client("ada");
    let file = client.upload("a.txt", b"Some words to be found.").await;
    server.idle().await;
    // Its backends still serve open connections; new connections are not accepted.
    cluster.signal("STOP");
    let many = futures_util::future::join_all((0..40).map(|_| client.get("/api/v2/uploads/files")));
    let answers = many.await;
    assert!(
        answers.iter().all(|answer| answer.status == 200 || answer.code() == "DATABASE_UNAVAILABLE"),
        "{answers:?}"
    );
    cluster.signal("CONT");
    until("it is back", async || client.get("/readyz").await.status == 200).await;
    assert_eq!(client.status(&file).await, "ready");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_file_locked_by_another_program_gets_the_same_response() {
    let db = TestDb::sqlite();
    let server = Setup::default().start(&db).await;
    let client = server.client("ada");
    let file = client.send_bytes(None, "a.txt", b"Some words to be found.").await;
    let other = db.sqlite_connection();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let seen = client.get("/readyz").await;
    assert_eq!(
        (seen.status, &seen.body["checks"]["database"]["status"]),
        (503, &json!("failed")),
        "{}",
        seen.body
    );
    assert_eq!(client.confirm(&file).await.refused(503, "DATABASE_UNAVAILABLE")["retryable"], true);
    other.execute_batch("ROLLBACK").unwrap();
    until("it can be written again", async || client.get("/readyz").await.status == 200).await;
    client.confirm(&file).await.ok();
    server.idle().await;
    assert_eq!(client.status(&file).await, "ready");
    server.assert_audit_clean().await;
    server.stop().await;
}
