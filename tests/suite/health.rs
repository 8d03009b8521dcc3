//! Liveness and readiness. Every reason not to be ready is named.

use std::time::Duration;

use landfall_core::lifecycle::Stage;
use landfall_store::Error;
use landfall_store::{Tx, Write};
use serde_json::{Value, json};

use crate::support::process::Process;
use crate::support::script::Gate;
use crate::support::{
    Client, Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database, until,
};

async fn checks(client: &Client) -> (u16, Value) {
    let answer = client.get("/readyz").await;
    let checks = answer.body["checks"].as_object().expect("the checks").iter();
    let checks = checks.map(|(name, check)| (name.clone(), check["status"].clone())).collect();
    (answer.status, Value::Object(checks))
}

/// Locks the rows that every claim reads until the gate is opened.
struct BlockClaims(Gate);

impl Write for BlockClaims {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        if tx.is_postgres() {
            tx.script("LOCK TABLE paused_stages IN ACCESS EXCLUSIVE MODE").await?;
        }
        self.0.wait().await;
        Ok(())
    }
}

#[on_each_database]
async fn a_working_server_is_alive_and_ready(db: TestDb) {
    let server = TestServer::new(&db).await;
    let client = Client { token: String::new(), ..server.client("anonymous") };
    assert_eq!(client.get("/healthz").await.ok(), json!({ "status": "ok" }));
    until("it is ready", async || client.get("/readyz").await.status == 200).await;
    let answer = client.get("/readyz").await.ok();
    let ok = json!({ "status": "ok" });
    let mut checks = json!({ "database": ok, "storage": ok, "disk": ok, "heartbeat": ok, "worker": ok });
    if server.app.db.is_postgres() {
        checks["clock"] = ok;
    }
    assert_eq!(answer, json!({ "status": "ready", "checks": checks }));
    server.stop().await;
}

#[on_each_database]
async fn a_server_starts_on_a_machine_without_trusted_certificates(db: TestDb) {
    let empty = tempfile::tempdir().unwrap();
    // Both variables: with only one of them set, certificates may still be found.
    let no_certificates = [("SSL_CERT_FILE", "/dev/null"), ("SSL_CERT_DIR", empty.path().to_str().unwrap())];
    let process = Process::start(&db, &no_certificates);
    until("it is ready", async || process.client().get("/readyz").await.status == 200).await;
}

#[on_each_database]
async fn a_process_without_a_worker_has_no_worker_check(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let ok = json!("ok");
    let mut expected = json!({ "database": ok, "storage": ok, "disk": ok, "heartbeat": ok });
    if server.app.db.is_postgres() {
        expected["clock"] = ok;
    }
    assert_eq!(checks(&server.client("ada")).await, (200, expected));
    server.stop().await;
}

#[on_each_database]
async fn without_its_storage_a_server_is_not_ready_but_alive(db: TestDb) {
    let server = TestServer::new(&db).await;
    let client = server.client("ada");
    let (blobs, aside) = (db.folder.path().join("blobs"), db.folder.path().join("aside"));
    std::fs::rename(&blobs, &aside).unwrap();
    let (status, seen) = checks(&client).await;
    assert_eq!((status, &seen["storage"], &seen["database"]), (503, &json!("failed"), &json!("ok")));
    assert_eq!(client.get("/healthz").await.status, 200);
    std::fs::rename(&aside, &blobs).unwrap();
    until("it is ready again", async || checks(&client).await.0 == 200).await;
    server.stop().await;
}

#[on_each_database]
async fn a_server_whose_worker_loop_has_ended_is_not_ready(db: TestDb) {
    let mut server = Setup::default().work(Script::new()).start(&db).await;
    let client = server.client("ada");
    until("it is ready", async || checks(&client).await.0 == 200).await;
    // Like a panic: the task is dropped in the middle of its work.
    server.abort_work().await;
    let (status, seen) = checks(&client).await;
    assert_eq!((status, &seen["worker"], &seen["database"]), (503, &json!("failed"), &json!("ok")));
}

#[on_each_database]
async fn a_server_whose_worker_loop_hangs_is_not_ready_until_it_continues(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let client = server.client("ada");
    until("it is ready", async || checks(&client).await.0 == 200).await;
    let gate = Gate::default();
    let held = tokio::spawn({
        let (db, gate) = (server.app.db.clone(), gate.clone());
        async move { db.write(BlockClaims(gate)).await }
    });
    gate.reached().await;
    until("the hang is noticed", async || {
        server.app.wake.poll_work();
        clock.advance(Duration::from_secs(22));
        let (status, seen) = checks(&client).await;
        // On SQLite there is one writer, and it hangs too.
        let database = if server.app.db.is_postgres() { "ok" } else { "failed" };
        status == 503 && seen["worker"] == "failed" && seen["database"] == database
    })
    .await;
    assert_eq!(client.get("/healthz").await.status, 200);
    gate.open();
    held.await.unwrap().unwrap();
    until("the loop continues", async || {
        server.app.wake.poll_work();
        checks(&client).await.0 == 200
    })
    .await;
    server.stop().await;
}

#[on_each_database]
async fn long_work_is_not_a_hanging_loop(db: TestDb) {
    let gate = Gate::default();
    let clock = manual_clock();
    let script = Script::new().then(Stage::Extract, Step::Block(gate.clone()));
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    let client = server.client("ada");
    client.upload("a.txt", b"x").await;
    gate.reached().await;
    for _ in 0..5 {
        clock.advance(Duration::from_secs(15));
        server.app.wake.poll_work();
        until("the loop runs", async || checks(&client).await.0 == 200).await;
    }
    gate.open();
    server.idle().await;
    server.stop().await;
}

#[on_each_database]
async fn a_server_whose_storage_cannot_be_written_is_not_ready(db: TestDb) {
    let server = TestServer::new(&db).await;
    let client = server.client("ada");
    until("it is ready", async || checks(&client).await.0 == 200).await;
    // Root may write to a folder without permission to, so the way is barred by a folder of that name.
    let probe = db.folder.path().join(format!("blobs/probe-{}", std::process::id()));
    std::fs::create_dir(&probe).unwrap();
    until("it is noticed", async || {
        let (status, seen) = checks(&client).await;
        assert_eq!(seen["database"], "ok");
        status == 503 && seen["storage"] == "failed"
    })
    .await;
    std::fs::remove_dir(&probe).unwrap();
    until("it is ready again", async || checks(&client).await.0 == 200).await;
    server.stop().await;
}
