//! Ten thousand files of one user do not delay the single file of another, and neither do documents that never end.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::failure::Failure;
use landfall_core::lifecycle::Stage::Extract;
use landfall_server::stages::{Job, Output, Work};
use landfall_store::Error;
use landfall_store::{Tx, Write, args};
use serde_json::json;

use crate::support::script::Gate;
use crate::support::{Client, Script, Setup, Step, TestDb, TestServer, on_each_database, until};

/// Puts files into the queue as if they had been uploaded one by one.
struct Backlog {
    user: &'static str,
    files: i64,
}

impl Write for Backlog {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let id = if tx.is_postgres() { "gen_random_uuid()" } else { "randomblob(16)" };
        let now = landfall_core::clock::Clock::System.now();
        tx.execute(
            format!(
                "WITH RECURSIVE numbers (n) AS (
                     SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
                 INSERT INTO files (id, tenant_id, user_id, file_name, size_bytes, blob_key, status, next_stage,
                     run_after, is_due, created_at, updated_at, confirmed_at)
                 SELECT {id}, $2, $2, $2 || n, 1, 'none', 'queued', 'extract', $3, TRUE, $3, $3, $3 FROM numbers"
            ),
            args![self.files, self.user, now],
        )
        .await
        .map(drop)
    }
}

/// A server with one slot, which is occupied, so that the files behind it are put in order.
async fn one_slot(db: &TestDb) -> (TestServer, Arc<Script>, Gate) {
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Block(gate.clone()));
    let server = Setup::default().work(script.clone()).with("EXTRACT_CONCURRENCY", 1).start(db).await;
    server.client("first").upload("first", b"a").await;
    gate.reached().await;
    (server, script, gate)
}

async fn upload_with_priority(client: &Client, priority: &str, name: &str) {
    let batch =
        client.post("/api/v2/uploads/batches", json!({ "fileCount": 1, "priority": priority })).await.ok();
    client.upload_in(batch["batchId"].as_str().unwrap(), name, b"a").await;
}

#[on_each_database]
async fn ten_thousand_files_of_one_user_do_not_delay_one_of_another(db: TestDb) {
    let (server, script, gate) = one_slot(&db).await;
    server.app.db.write(Backlog { user: "alice", files: 10_000 }).await.unwrap();
    let bob = server.client("bob");
    let file = bob.upload("bob", b"a").await;
    gate.open();
    until("bob's file is ready", async || bob.status(&file).await == "ready").await;
    let place = script.order().iter().position(|name| name == "bob").unwrap();
    assert!(place <= 3, "bob's file was the {place}th to begin");
    server.stop().await;
}

#[on_each_database]
async fn tenants_take_turns_and_so_do_the_users_of_each(db: TestDb) {
    let (server, script, gate) = one_slot(&db).await;
    for user in ["a1", "a2", "a3"] {
        let client = server.client_of(user, "acme");
        for number in 0..4 {
            client.upload(&format!("{user}-{number}"), b"a").await;
        }
    }
    let solo = server.client("solo");
    for number in 0..4 {
        solo.upload(&format!("solo-{number}"), b"a").await;
    }
    gate.open();
    server.idle().await;
    let begun = &script.order()[1..9];
    let of = |prefix: &str| begun.iter().filter(|name| name.starts_with(prefix)).count();
    assert_eq!(of("solo"), 4, "half of the turns are the other tenant's: {begun:?}");
    assert!(of("a1") >= 1 && of("a2") >= 1 && of("a3") >= 1, "{begun:?}");
    server.stop().await;
}

#[on_each_database]
async fn a_high_priority_file_overtakes_the_other_files_of_its_owner(db: TestDb) {
    let (server, script, gate) = one_slot(&db).await;
    let alice = server.client("alice");
    upload_with_priority(&alice, "low", "low").await;
    for number in 0..5 {
        alice.upload(&format!("normal-{number}"), b"a").await;
    }
    upload_with_priority(&alice, "high", "high").await;
    gate.open();
    server.idle().await;
    let order = script.order();
    assert_eq!((order[1].as_str(), order[7].as_str()), ("high", "low"), "{order:?}");
    assert_eq!(order[2..7], ["normal-0", "normal-1", "normal-2", "normal-3", "normal-4"]);
    server.stop().await;
}

/// Extraction of a file whose name begins with `endless` ends when the test opens the gate.
struct Endless(Gate);

impl Work for Endless {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        async move {
            if job.stage == Extract && job.file.file_name.starts_with("endless") {
                self.0.wait().await;
            }
            Ok(Output::Nothing)
        }
        .boxed()
    }
}

async fn upload_endless(client: &Client, count: usize) -> Vec<String> {
    let mut files = Vec::new();
    for number in 0..count {
        files.push(client.upload(&format!("endless-{number}"), b"a").await);
    }
    files
}

async fn extracting(client: &Client) -> usize {
    let listed = client.get("/api/v2/uploads/files?status=extracting").await.ok();
    listed["files"].as_array().unwrap().len()
}

#[on_each_database]
async fn documents_of_one_tenant_that_never_end_do_not_stop_another(db: TestDb) {
    let gate = Gate::default();
    let work = Arc::new(Endless(gate.clone()));
    let server = Setup::default().work(work).with("EXTRACT_CONCURRENCY", 4).start(&db).await;
    let (alice, bob) = (server.client_of("alice", "acme"), server.client_of("bob", "solo"));
    let endless = upload_endless(&alice, 10).await;
    for _ in 0..4 {
        gate.reached().await;
    }
    assert_eq!(extracting(&alice).await, 4, "a tenant that is alone has all slots");

    let text = bob.upload("text", b"a").await;
    until("bob's file is ready", async || bob.status(&text).await == "ready").await;
    assert_eq!(extracting(&alice).await, 3, "the older work goes on");
    for file in &endless {
        let seen = alice.file(file).await;
        assert!(seen["error"].is_null() && seen["status"] != "failed", "{seen}");
        if seen["status"] == "queued" {
            assert_eq!(seen["attempt"], 0, "an attempt that was stopped does not count: {seen}");
        }
    }

    (0..20).for_each(|_| gate.open());
    for file in &endless {
        until("alice's files are ready", async || alice.status(file).await == "ready").await;
    }
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn two_tenants_whose_documents_take_long_have_half_of_the_slots_each(db: TestDb) {
    let gate = Gate::default();
    let work = Arc::new(Endless(gate.clone()));
    let server = Setup::default().work(work).with("EXTRACT_CONCURRENCY", 4).start(&db).await;
    let (alice, bob) = (server.client_of("alice", "acme"), server.client_of("bob", "solo"));
    upload_endless(&alice, 10).await;
    for _ in 0..4 {
        gate.reached().await;
    }
    upload_endless(&bob, 10).await;
    until("each has half", async || extracting(&alice).await == 2 && extracting(&bob).await == 2).await;
    (0..40).for_each(|_| gate.open());
    server.idle().await;
    server.assert_audit_clean().await;
    server.stop().await;
}
