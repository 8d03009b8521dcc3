//! Machines whose clocks differ share a database: its time counts, and no file suffers for it.

use std::time::Duration;

use landfall_core::clock::{Clock, ManualClock, Time};
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage;
use serde_json::Value;

use crate::support::hooks::{self, Hook};
use crate::support::script::Gate;
use crate::support::webhook_receiver::{Receiver, Reply};
use crate::support::{
    Client, Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database, until,
};

/// By how many seconds the clocks of the machines are ahead.
const AHEAD: [i64; 3] = [25, 7_200, -7_200];

/// A server on each machine. Only the first one works on files, with this script.
async fn three_machines(db: &TestDb, script: std::sync::Arc<Script>) -> [TestServer; 3] {
    let on = |ahead, role| Setup::default().ahead(ahead).with("ROLE", role);
    [
        on(AHEAD[0], "all").work(script).start(db).await,
        on(AHEAD[1], "api").start(db).await,
        on(AHEAD[2], "api").start(db).await,
    ]
}

async fn was_lost(client: &Client, file: &str) -> bool {
    let history = client.get(&format!("/api/v2/uploads/files/{file}/history")).await.ok();
    let mut entries = history["history"].as_array().expect("a history").iter();
    entries.any(|entry| entry["errorCode"] == "WORKER_LOST")
}

/// Registers a file on one machine, sends its bytes to the next and confirms it on the last.
async fn upload_across(clients: &[Client; 3], servers: &[TestServer; 3], first: usize) -> String {
    let (register, send, confirm) = (first, (first + 1) % 3, (first + 2) % 3);
    let registered = clients[register].register(None, "report.txt", 5).await;
    let url = registered["uploadUrl"].as_str().expect("a URL");
    let elsewhere = url.replace(&servers[register].base, &servers[send].base);
    clients[send].put(&elsewhere, "12345").await.ok();
    let file = registered["fileId"].as_str().expect("an id").to_owned();
    clients[confirm].confirm(&file).await.ok();
    file
}

#[tokio::test]
async fn machines_whose_clocks_differ_take_no_living_process_for_dead_and_refuse_no_upload() {
    let Some(db) = TestDb::postgres().await else { return };
    let gate = Gate::default();
    let script = Script::new().then(Stage::Extract, Step::Block(gate.clone()));
    let servers = three_machines(&db, script).await;
    let clients = [0, 1, 2].map(|machine: usize| servers[machine].client("alice"));

    let mut files = vec![upload_across(&clients, &servers, 0).await];
    gate.reached().await;
    for server in &servers {
        assert_eq!(server.app.liveness.rescue_dead_workers().await.expect("it looks"), 0);
    }
    for first in [1, 2, 0] {
        files.push(upload_across(&clients, &servers, first).await);
    }
    // A heartbeat of each, written and compared after the clocks were corrected.
    for server in &servers {
        let before = server.app.liveness.renewed_at();
        until("the heartbeat is renewed", async || server.app.liveness.renewed_at() > before).await;
        assert_eq!(server.app.liveness.rescue_dead_workers().await.expect("it looks"), 0);
    }
    gate.open();
    for file in &files {
        until("it is ready", async || clients[1].status(file).await == "ready").await;
        assert!(!was_lost(&clients[2], file).await, "no process died");
    }
    servers[0].assert_audit_clean().await;
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test]
async fn a_machine_whose_clock_differs_is_named_and_stays_ready() {
    let Some(db) = TestDb::postgres().await else { return };
    for (ahead, words) in [(25, "25.0 s ahead of"), (-7_200, "7200.0 s behind")] {
        let server = Setup::default().ahead(ahead).with("ROLE", "api").start(&db).await;
        let answer = server.client("ada").get("/readyz").await.ok();
        let clock = &answer["checks"]["clock"];
        assert!(
            clock["status"] == "ok" && clock["message"].as_str().is_some_and(|text| text.contains(words)),
            "{clock}"
        );
        let shown = metric(&server, "landfall_clock_skew_seconds").await;
        #[expect(clippy::cast_precision_loss, reason = "it is small")]
        let differs = (shown - ahead as f64).abs();
        assert!(differs < 1.0, "{shown}");
        server.stop().await;
    }
}

#[on_each_database]
async fn a_machine_whose_clock_is_right_is_not_named(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let answer = server.client("ada").get("/readyz").await.ok();
    assert_eq!(answer["checks"]["clock"]["message"], Value::Null);
    assert!(metric(&server, "landfall_clock_skew_seconds").await.abs() < 1.0);
    server.stop().await;
}

async fn metric(server: &TestServer, name: &str) -> f64 {
    let request = server.admin().request(reqwest::Method::GET, "/metrics");
    let text = request.send().await.expect("an answer").text().await.expect("text");
    let line = text.lines().find(|line| line.starts_with(name)).expect("the metric");
    line.split_whitespace().last().expect("a value").parse().expect("a number")
}

#[on_each_database]
async fn a_clock_that_was_ahead_and_is_set_back_stops_no_registration(db: TestDb) {
    for ahead in [7_200, 0] {
        let setup =
            Setup::default().ahead(ahead).with("ROLE", "api").with("REGISTRATIONS_PER_TENANT", "5/1m");
        let server = setup.start(&db).await;
        server.client("ada").register(None, "report.txt", 5).await;
        server.stop().await;
    }
}

/// By how much a clock was ahead until it was set right.
const JUMP: Duration = Duration::from_mins(25);
/// How often the sweep runs that corrects what such a clock has written.
const SWEEP: Duration = Duration::from_mins(5);
/// Longer than the waits after the first two failures of a file (12 seconds at most), and after the first of a delivery.
const WAIT: Duration = Duration::from_secs(15);

fn clock_that_is_ahead() -> ManualClock {
    let clock = manual_clock();
    clock.advance(JUMP);
    clock
}

fn is_soon(at: &Value, clock: &ManualClock) -> bool {
    let at: Option<Time> = at.as_str().map(|text| text.parse().expect("a time"));
    at.is_none_or(|at| at <= Clock::Manual(clock.clone()).now() + WAIT)
}

#[on_each_database]
async fn a_file_that_was_queued_again_under_a_clock_that_was_ahead_waits_no_longer_than_it_should(
    db: TestDb,
) {
    let ahead = clock_that_is_ahead();
    let fails = || Step::Fail(Code::DbError);
    let script = Script::new().then(Stage::Extract, fails()).then(Stage::Extract, fails());
    let server = Setup::default().clock(&ahead).work(script).start(&db).await;
    let file = server.client("ada").upload("report.txt", b"12345").await;
    let ada = server.client("ada");
    let waits = async |attempt: i64| {
        let seen = ada.file(&file).await;
        seen["attempt"] == attempt && seen["retryAfter"].is_string()
    };
    until("it waits for its second attempt", async || waits(1).await).await;
    // The sweep itself is due when this clock says so.
    ahead.advance(SWEEP);
    until("the sweep has run", async || !is_soon(&next_sweep(&server).await, &manual_clock())).await;
    until("it waits for its third attempt", async || {
        // A worker whose poll failed, because the machine stood still, sleeps until this clock moves again.
        if waits(1).await {
            ahead.advance(Duration::from_secs(1));
        }
        waits(2).await
    })
    .await;
    server.stop().await;

    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let ada = server.client("ada");
    let_sweep_run(&server, &clock).await;
    until("its wait begins now", async || is_soon(&ada.file(&file).await["retryAfter"], &clock)).await;
    clock.advance(WAIT);
    until("it is ready", async || ada.status(&file).await == "ready").await;
    server.assert_audit_clean().await;
    server.stop().await;
}

/// Waits until this clock counts for the sweep of stuck files, and lets its time come.
async fn let_sweep_run(server: &TestServer, clock: &ManualClock) {
    until("the sweep is due by this clock", async || {
        let due: Option<Time> = next_sweep(server).await.as_str().map(|text| text.parse().expect("a time"));
        due.is_some_and(|due| due <= Clock::Manual(clock.clone()).now() + SWEEP)
    })
    .await;
    clock.advance(SWEEP);
}

/// When the sweep of stuck files is due.
async fn next_sweep(server: &TestServer) -> Value {
    let jobs = server.admin().get("/api/v2/admin/jobs").await.ok();
    let mut jobs = jobs["jobs"].as_array().expect("a list").iter();
    jobs.find(|job| job["name"] == "stuck-file-recovery").expect("the job")["nextRunAt"].clone()
}

#[on_each_database]
async fn a_delivery_under_a_clock_that_was_ahead_waits_no_longer_than_it_should(db: TestDb) {
    let ahead = clock_that_is_ahead();
    let receiver = Receiver::serve([Reply::Status(500)]).await;
    let server = hooks::server(&db, &ahead).await;
    let hook = Hook::register(&server.client("ada"), &receiver.url).await;
    let delivery = hook.test().await;
    hook.after(1, &delivery).await;
    server.stop().await;

    let clock = manual_clock();
    let server = hooks::server(&db, &clock).await;
    let hook = Hook { client: server.client("ada"), ..hook };
    let_sweep_run(&server, &clock).await;
    until("its wait begins now", async || {
        let log = hook.log("").await;
        is_soon(&log[0]["nextAttemptAt"], &clock)
    })
    .await;
    clock.advance(WAIT);
    assert_eq!(hook.after(2, &delivery).await["status"], "delivered");
    server.stop().await;
}
