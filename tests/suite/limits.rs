//! Rate limits that hold across all processes, and stages that an operator pauses.

use std::time::Duration;

use landfall_core::clock::ManualClock;
use landfall_store::args;
use serde_json::json;

use crate::support::{Script, Setup, TestDb, TestServer, manual_clock, on_each_database};

async fn upload_many(server: &TestServer, user: &str, count: usize) {
    let client = server.client(user);
    for number in 0..count {
        client.upload(&format!("{user}-{number}"), b"a").await;
    }
}

/// Lets time pass in small steps; after each step every process has done what it can.
async fn pass(clock: &ManualClock, servers: &[&TestServer], time: Duration) {
    const STEP: Duration = Duration::from_millis(50);
    for _ in 0..time.as_millis() / STEP.as_millis() {
        clock.advance(STEP);
        for server in servers {
            server.idle().await;
        }
    }
}

#[on_each_database]
async fn a_rate_limit_holds_across_two_processes_and_drops_nothing(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    let start = async || {
        Setup::default()
            .clock(&clock)
            .work(script.clone())
            .with("EXTRACT_RATE_LIMIT", "5/1s")
            .start(&db)
            .await
    };
    let (one, other) = (start().await, start().await);
    upload_many(&one, "alice", 40).await;
    upload_many(&other, "bob", 20).await;
    pass(&clock, &[&one, &other], Duration::from_secs(8)).await;
    let begun = script.order().len();
    assert!((42..=46).contains(&begun), "{begun} files began in 8 seconds: 5 at once, then 5 a second");

    let waiting = one.client("alice").get("/api/v2/uploads/files?status=queued").await.ok();
    assert_eq!(waiting["files"][0]["waitingFor"], "rate_limit", "{waiting}");
    let queues = one.admin().get("/api/v2/admin/queue-status").await.ok()["queues"].take();
    let until: chrono::DateTime<chrono::Utc> =
        queues["file-extract"]["limitedUntil"].as_str().expect("the stage is limited").parse().unwrap();
    assert!(
        until > one.app.clock.now() && until <= one.app.clock.now() + chrono::TimeDelta::seconds(1),
        "{queues}"
    );
    assert!(queues["file-chunk"]["limitedUntil"].is_null(), "{queues}");
    pass(&clock, &[&one, &other], Duration::from_secs(6)).await;
    assert_eq!(script.order().len(), 60);
    let events: Vec<(serde_json::Value,)> = one
        .app
        .db
        .read()
        .await
        .unwrap()
        .rows("SELECT data FROM events WHERE kind = 'queue:rate-limit-exceeded'", args![])
        .await
        .unwrap();
    assert_eq!(events.len(), 1, "one event a minute, not one for each file");
    assert_eq!(events[0].0["queue"], "file-extract");
    clock.advance(Duration::from_secs(1));
    let queues = one.admin().get("/api/v2/admin/queue-status").await.ok()["queues"].take();
    assert!(queues["file-extract"]["limitedUntil"].is_null(), "nothing limits it now: {queues}");
    one.stop().await;
    other.stop().await;
}

#[on_each_database]
async fn a_limit_of_two_lets_two_begin_at_once_and_is_reported_when_a_third_waits(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    let server = Setup::default()
        .clock(&clock)
        .work(script.clone())
        .with("EXTRACT_RATE_LIMIT", "2/10s")
        .start(&db)
        .await;
    let reports = async || {
        let sql = "SELECT COUNT(*) FROM events WHERE kind = 'queue:rate-limit-exceeded'";
        server.app.db.read().await.unwrap().number(sql, args![]).await.unwrap()
    };
    upload_many(&server, "alice", 2).await;
    server.idle().await;
    assert_eq!((script.order().len(), reports().await), (2, 0), "no file waits for it");
    upload_many(&server, "bob", 1).await;
    server.idle().await;
    assert_eq!((script.order().len(), reports().await), (2, 1));
    let waiting = &server.client("bob").get("/api/v2/uploads/files").await.ok()["files"][0];
    assert_eq!((&waiting["waitingFor"], &waiting["retryInMs"]), (&json!("rate_limit"), &json!(5_000)));
    clock.advance(Duration::from_secs(5));
    server.idle().await;
    assert_eq!(script.order().len(), 3);
    server.stop().await;
}

#[on_each_database]
async fn each_user_has_a_separate_rate(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    let server =
        Setup::default().clock(&clock).work(script.clone()).with("USER_RATE_LIMIT", "2/1s").start(&db).await;
    upload_many(&server, "alice", 20).await;
    upload_many(&server, "bob", 4).await;
    pass(&clock, &[&server], Duration::from_secs(3)).await;
    let of = |user: &str| script.order().iter().filter(|name| name.starts_with(user)).count();
    assert!((6..=9).contains(&of("alice")), "{} of alice's", of("alice"));
    assert_eq!(of("bob"), 4);
    let waiting = server.client("alice").get("/api/v2/uploads/files?status=queued").await.ok();
    assert_eq!(waiting["files"][0]["waitingFor"], "rate_limit", "{waiting}");
    server.stop().await;
}

#[on_each_database]
async fn a_rate_limit_for_users_keeps_their_turns(db: TestDb) {
    use crate::support::Step;
    use crate::support::script::Gate;
    use landfall_core::lifecycle::Stage::Extract;
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Block(gate.clone()));
    let server = Setup::default()
        .work(script.clone())
        .with("USER_RATE_LIMIT", "100000/1s")
        .with("EXTRACT_CONCURRENCY", 1)
        .start(&db)
        .await;
    upload_many(&server, "first", 1).await;
    gate.reached().await;
    for user in ["bob", "carol"] {
        upload_many(&server, user, 10).await;
    }
    upload_many(&server, "aaron", 1).await;
    gate.open();
    server.idle().await;
    let place = script.order().iter().position(|name| name == "aaron-0").unwrap();
    assert!(place <= 3, "{:?}", script.order());
    server.stop().await;
}

#[on_each_database]
async fn a_paused_stage_stays_paused_on_every_process_until_it_is_resumed(db: TestDb) {
    let script = Script::new();
    let start = async || Setup::default().work(script.clone()).start(&db).await;
    let (one, other) = (start().await, start().await);
    let admin = one.admin();
    admin.post("/api/v2/admin/queues/embed/pause", json!({})).await.ok();
    // Each process has polled the queue since.
    one.idle().await;
    other.idle().await;
    let client = one.client("alice");
    let file = client.upload("a.txt", b"a").await;
    one.idle().await;
    other.idle().await;
    let seen = client.file(&file).await;
    assert_eq!((&seen["status"], &seen["nextStage"]), (&json!("queued"), &json!("embed")), "{seen}");
    assert_eq!((&seen["waitingFor"], &seen["queuePosition"]), (&json!("paused"), &json!(1)));
    let status = admin.get("/api/v2/admin/queue-status").await.ok();
    assert_eq!(status["queues"]["file-embed"]["paused"]["by"], "root", "{status}");
    assert_eq!(status["queues"]["file-embed"]["waiting"], 1);

    admin.post("/api/v2/admin/queues/embed/resume", json!({})).await.ok();
    one.idle().await;
    other.idle().await;
    assert_eq!(client.status(&file).await, "ready");
    one.stop().await;
    other.stop().await;
}

#[on_each_database]
async fn only_an_administrator_pauses_a_stage_and_only_an_existing_one(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    alice.post("/api/v2/admin/queues/embed/pause", json!({})).await.refused(403, "FORBIDDEN");
    alice.get("/api/v2/admin/queue-status").await.refused(403, "FORBIDDEN");
    server.admin().post("/api/v2/admin/queues/sing/pause", json!({})).await.refused(404, "QUEUE_NOT_FOUND");
    server.stop().await;
}
