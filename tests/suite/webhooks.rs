//! Events reach the endpoints of webhooks: signed, in order, at least once, and no endpoint delays another.

use std::collections::HashSet;
use std::time::Duration;

use chrono::TimeDelta;
use landfall_core::clock::{Clock, ManualClock, Time};
use landfall_core::event::EventKind;
use landfall_server::delivery::webhooks::turn::{Release, Take};
use landfall_server::records::events::{self, Event};
use landfall_store::Error;
use landfall_store::{Tx, Write, args};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::hooks::{Hook, WEBHOOKS, server, setup};
use crate::support::process::Process;
use crate::support::script::Gate;
use crate::support::webhook_receiver::{Call, Receiver, Reply};
use crate::support::{TestDb, TestServer, manual_clock, on_each_database, until};

fn time(value: &Value) -> Time {
    value.as_str().expect("a time").parse().expect("a time")
}

fn seconds_until(clock: &ManualClock, delivery: &Value) -> f64 {
    let wait = time(&delivery["nextAttemptAt"]) - Clock::Manual(clock.clone()).now();
    wait.as_seconds_f64()
}

/// Moves the clock to the next attempt.
fn advance_to_next(clock: &ManualClock, delivery: &Value) {
    clock
        .advance(Duration::from_secs_f64(seconds_until(clock, delivery).max(0.0)) + Duration::from_millis(1));
}

/// All events of a user as type, file and state, in order.
async fn events_of(server: &TestServer, user: &str) -> Vec<(String, Option<Uuid>, Option<String>)> {
    let sql = "SELECT kind, file_id, to_state FROM events WHERE user_id = $1 ORDER BY id";
    server.app.db.read().await.unwrap().rows(sql, args![user]).await.unwrap()
}

fn received(calls: &[Call]) -> Vec<(String, Option<Uuid>, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    calls
        .iter()
        .map(Call::json)
        .map(|body| {
            let data = &body["data"];
            (
                text(&body["type"]).unwrap(),
                text(&data["fileId"]).map(|id| id.parse().unwrap()),
                text(&data["to"]),
            )
        })
        .collect()
}

/// Events inserted directly into the database: many, and quickly.
struct InsertEvents {
    count: usize,
    user: &'static str,
    now: Time,
}

impl Write for InsertEvents {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let event = |number: usize| Event {
            user: self.user.to_owned(),
            tenant: self.user.to_owned(),
            ..Event::of_system(EventKind::BatchCompleted, self.now, json!({ "number": number }))
        };
        events::record(tx, (0..self.count).map(event).collect()).await
    }
}

async fn insert_events(server: &TestServer, user: &'static str, count: usize) {
    server.app.db.write(InsertEvents { count, user, now: server.app.clock.now() }).await.unwrap();
}

fn numbers(calls: &[Call]) -> Vec<u64> {
    calls.iter().filter_map(|call| call.json()["data"]["number"].as_u64()).collect()
}

#[on_each_database]
async fn events_of_a_users_files_arrive_signed_and_in_order(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let (alice, bob) = (server.client("alice"), server.client("bob"));
    alice.upload("before.txt", b"12345").await;
    server.idle().await;
    let before = events_of(&server, "alice").await.len();
    let receiver = Receiver::serve([]).await;
    let hook = Hook::register(&alice, &receiver.url).await;
    alice.upload_all(&["a.txt", "b.txt", "c.txt"].map(str::to_owned)).await;
    bob.upload("d.txt", b"12345").await;
    server.idle().await;
    let expected = events_of(&server, "alice").await.split_off(before);
    assert!(expected.len() > 20, "{expected:?}");
    let calls = receiver.wait_for_calls(expected.len()).await;
    hook.settled().await;
    assert_eq!(received(&receiver.calls()), expected);
    for call in &calls {
        assert!(call.is_signed_with(&hook.secret));
        assert_eq!(call.timestamp, server.app.clock.now().timestamp());
    }
    let ids: HashSet<&String> = calls.iter().map(|call| &call.id).collect();
    assert_eq!(ids.len(), calls.len());
    let first = calls[0].json();
    assert_eq!(first.as_object().unwrap().keys().collect::<Vec<_>>(), ["data", "epoch", "timestamp", "type"]);
    assert_eq!(time(&first["timestamp"]), server.app.clock.now());
    // The log shows the same, newest first, in pages.
    let mut logged = Vec::new();
    let mut query = "/deliveries?limit=7".to_owned();
    loop {
        let page = alice.get(&hook.path(&query)).await.ok();
        logged.extend(page["deliveries"].as_array().unwrap().clone());
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        query = format!("/deliveries?limit=7&cursor={cursor}");
    }
    logged.reverse();
    assert_eq!(logged.len(), calls.len());
    for (entry, call) in logged.iter().zip(&calls) {
        assert_eq!((&entry["messageId"], &entry["status"]), (&json!(call.id), &json!("delivered")));
        assert_eq!((&entry["attempts"], &entry["responseStatus"]), (&json!(1), &json!(200)));
    }
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn the_first_webhook_gets_its_events_at_once(db: TestDb) {
    // Without a webhook a process does not look at events, and no poll comes to its help here.
    let server = setup().with("POLL_INTERVAL_MS", 3_600_000).start(&db).await;
    let alice = server.client("alice");
    alice.upload("before.txt", b"12345").await;
    server.idle().await;
    let receiver = Receiver::serve([]).await;
    Hook::register(&alice, &receiver.url).await;
    alice.upload("a.txt", b"12345").await;
    let first = &receiver.wait_for_calls(1).await[0];
    assert_eq!(first.json()["data"]["to"], "registered");
}

#[on_each_database]
async fn a_webhook_gets_the_types_it_names_and_an_administrator_may_get_those_of_all_users(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let (alice, bob) = (server.client("alice"), server.client("bob"));
    let (few, all) = (Receiver::serve([]).await, Receiver::serve([]).await);
    let named = Hook::register_as(&alice, json!({ "url": few.url, "eventTypes": ["batch:completed"] })).await;
    let of_all_users = Hook::register_as(&server.admin(), json!({ "url": all.url, "scope": "all" })).await;
    let (batch, _) = alice.upload_all(&["a.txt".to_owned()]).await;
    bob.upload("b.txt", b"12345").await;
    server.idle().await;
    server.app.db.write(SystemEvent { now: server.app.clock.now() }).await.unwrap();
    let expected =
        server.app.db.read().await.unwrap().number("SELECT COUNT(*) FROM events", args![]).await.unwrap();
    let calls = all.wait_for_calls(usize::try_from(expected).unwrap()).await;
    let whose = |call: &Call| call.json()["data"]["userId"].as_str().map(str::to_owned);
    let users: HashSet<Option<String>> = calls.iter().map(whose).collect();
    assert_eq!(users, HashSet::from([Some("alice".to_owned()), Some("bob".to_owned()), None]));
    of_all_users.settled().await;
    assert_eq!(all.calls().len(), calls.len());
    let calls = few.wait_for_calls(1).await;
    assert_eq!(
        (&calls[0].json()["type"], &calls[0].json()["data"]["batchId"]),
        (&json!("batch:completed"), &json!(batch))
    );
    named.settled().await;
    assert_eq!(few.calls().len(), 1);
    assert!(calls[0].json()["data"]["userId"].is_null(), "the scope is the user's own");
}

#[on_each_database]
async fn a_failed_delivery_is_retried_with_the_same_id(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let elsewhere = Receiver::serve([]).await;
    let receiver = Receiver::serve([
        Reply::Says(500, "the database is away\0"),
        Reply::RetryAfter(503, "600"),
        Reply::Redirect(elsewhere.url.clone()),
    ])
    .await;
    let hook = Hook::register(&server.client("alice"), &receiver.url).await;
    let test = hook.test().await;
    assert_eq!((&test["status"], &test["attempts"]), (&json!("pending"), &json!(0)));

    let first = hook.after(1, &test).await;
    assert_eq!((&first["status"], &first["responseStatus"]), (&json!("pending"), &json!(500)));
    assert_eq!(first["responseExcerpt"], "the database is away\u{fffd}");
    assert!(first["durationMs"].is_u64(), "{first}");
    let wait = seconds_until(&clock, &first);
    assert!((4.5..=5.5).contains(&wait), "{wait}");
    assert!(hook.show().await["failingSince"].is_string());

    advance_to_next(&clock, &first);
    let second = hook.after(2, &test).await;
    let wait = seconds_until(&clock, &second);
    assert!((599.0..=601.0).contains(&wait), "it asked for ten minutes: {wait}");

    advance_to_next(&clock, &second);
    let third = hook.after(3, &test).await;
    assert_eq!((&third["responseStatus"], &third["status"]), (&json!(307), &json!("pending")));
    assert!(elsewhere.calls().is_empty(), "a redirect was followed");

    advance_to_next(&clock, &third);
    let fourth = hook.after(4, &test).await;
    assert_eq!((&fourth["status"], &fourth["responseStatus"]), (&json!("delivered"), &json!(200)));
    assert_eq!((&fourth["error"], &fourth["nextAttemptAt"]), (&Value::Null, &Value::Null));
    let calls = receiver.calls();
    assert_eq!(calls.len(), 4);
    assert!(calls.iter().all(|call| call.id == calls[0].id && call.body == calls[0].body));
    assert!(calls.iter().all(|call| call.is_signed_with(&hook.secret)));
    assert!(calls[3].timestamp > calls[0].timestamp, "each attempt is signed at its own time");
    assert_eq!(hook.show().await["failingSince"], Value::Null);
}

#[on_each_database]
async fn a_delivery_is_retried_for_a_day_and_then_no_more(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let receiver = Receiver::serve([]).await;
    receiver.otherwise(Reply::Status(500));
    let hook = Hook::register(&server.client("alice"), &receiver.url).await;
    let began = server.app.clock.now();
    let test = hook.test().await;
    let mut attempts = 1;
    let last = loop {
        let entry = hook.after(attempts, &test).await;
        assert_eq!(entry["attempts"], attempts, "no extra attempt");
        if entry["status"] != "pending" {
            break entry;
        }
        advance_to_next(&clock, &entry);
        attempts += 1;
    };
    assert_eq!((&last["status"], &last["error"]), (&json!("exhausted"), &json!("the endpoint answered 500")));
    assert!((12..=14).contains(&attempts), "{attempts}");
    let took = server.app.clock.now() - began;
    assert!(took <= TimeDelta::days(1) && took > TimeDelta::hours(19), "{took}");
    // It stays in the log, and a user may have it delivered again, with another day of retries.
    clock.advance(Duration::from_hours(48));
    receiver.otherwise(Reply::Status(204));
    let again = hook.redeliver(&last).await.ok();
    assert_ne!(again["id"], last["id"]);
    assert_eq!(hook.after(1, &again).await["status"], "delivered");
    let calls = receiver.calls();
    assert_eq!(u64::try_from(calls.len()).unwrap(), attempts + 1);
    assert!(calls.iter().all(|call| call.id == calls[0].id), "receivers know it by the same id");
}

#[on_each_database]
async fn an_endpoint_that_is_gone_is_disabled_and_its_owner_notified(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let alice = server.client("alice");
    let receiver = Receiver::serve([Reply::Status(410)]).await;
    let hook = Hook::register(&alice, &receiver.url).await;
    let test = hook.test().await;
    assert_eq!(hook.after(1, &test).await["status"], "exhausted");
    let shown = hook.show().await;
    assert_eq!(
        (&shown["enabled"], &shown["disabledReason"]),
        (&json!(false), &json!("the endpoint answered 410 Gone"))
    );
    let told = alice.get("/api/v2/notifications").await.ok();
    let told = &told["notifications"][0];
    assert_eq!((&told["type"], &told["fileId"]), (&json!("webhook-disabled-notification"), &Value::Null));
    assert_eq!(told["data"]["webhookId"], json!(hook.id));
    alice.post(&hook.path("/test"), json!({})).await.refused(409, "WEBHOOK_DISABLED");
    hook.redeliver(&test).await.refused(409, "WEBHOOK_DISABLED");

    // Events of that time are not delivered later.
    alice.upload("a.txt", b"12345").await;
    server.idle().await;
    assert_eq!(hook.change(json!({ "enabled": true })).await.ok()["enabled"], true);
    hook.test().await;
    hook.settled().await;
    let calls = receiver.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].json()["type"], "webhook:test");
}

#[on_each_database]
async fn an_endpoint_that_fails_for_days_is_disabled_and_its_owner_notified_once(db: TestDb) {
    let clock = manual_clock();
    let server = setup().clock(&clock).with("WEBHOOK_DISABLE_AFTER_DAYS", 2).start(&db).await;
    let alice = server.client("alice");
    let receiver = Receiver::serve([]).await;
    receiver.otherwise(Reply::Status(500));
    let hook = Hook::register(&alice, &receiver.url).await;
    // Each is tried once more when the next day begins.
    for day in 0..2 {
        assert_eq!(hook.show().await["enabled"], true, "day {day}");
        let test = hook.test().await;
        hook.after(1, &test).await;
        clock.advance(Duration::from_hours(24));
    }
    until("it is disabled", async || hook.show().await["enabled"] == false).await;
    let told = alice.get("/api/v2/notifications").await.ok();
    assert_eq!(told["notifications"].as_array().unwrap().len(), 1);
    // Fixed: the count starts again.
    receiver.otherwise(Reply::Status(200));
    hook.change(json!({ "enabled": true })).await.ok();
    let shown = hook.show().await;
    assert_eq!((&shown["failingSince"], &shown["disabledReason"]), (&Value::Null, &Value::Null));
    let test = hook.test().await;
    assert_eq!(hook.after(1, &test).await["status"], "delivered");
}

#[on_each_database]
async fn a_delivery_that_was_sent_and_not_recorded_is_sent_again(db: TestDb) {
    let receiver = Receiver::serve([Reply::Never]).await;
    let quick = [("POLL_INTERVAL_MS", "50"), ("WEBHOOK_ALLOW_PRIVATE", "true")];
    let mut victim = Process::start(&db, &quick);
    let hook = Hook::register(&victim.client(), &receiver.url).await;
    hook.test().await;
    // The endpoint has the whole request, and the process never learns of it.
    receiver.wait_for_calls(1).await;
    victim.kill();
    let survivor = Process::start(&db, &quick);
    let hook = Hook { client: survivor.client(), ..hook };
    let calls = receiver.wait_for_calls(2).await;
    assert_eq!((&calls[0].id, &calls[0].body), (&calls[1].id, &calls[1].body));
    hook.settled().await;
    assert_eq!(hook.log("").await[0]["attempts"], 1, "the attempt that was never recorded does not count");
    assert_eq!(receiver.calls().len(), 2);
}

#[on_each_database]
async fn two_processes_send_nothing_twice_and_keep_the_order(db: TestDb) {
    let clock = manual_clock();
    let (one, other) = (server(&db, &clock).await, server(&db, &clock).await);
    let mut ends = Vec::new();
    for _ in 0..2 {
        let receiver = Receiver::serve([]).await;
        let hook = Hook::register(&one.client("alice"), &receiver.url).await;
        ends.push((receiver, hook));
    }
    for server in [&one, &other, &one, &other] {
        insert_events(server, "alice", 25).await;
    }
    let expected: Vec<u64> = (0..4).flat_map(|_| 0..25).collect();
    for (receiver, hook) in &ends {
        receiver.wait_for_calls(expected.len()).await;
        hook.settled().await;
        assert_eq!(numbers(&receiver.calls()), expected);
    }
}

#[on_each_database]
async fn the_clocks_of_two_processes_may_differ_by_a_moment_and_the_order_is_kept(db: TestDb) {
    let (clock, ahead) = (manual_clock(), manual_clock());
    ahead.advance(Duration::from_secs(1));
    let receiver = Receiver::serve([]).await;
    let (mut hook, mut sent) = (None, Vec::new());
    for clock in [&ahead, &clock] {
        let front = setup().clock(clock).with("ROLE", "api").start(&db).await;
        let alice = front.client("alice");
        let of = match hook.take() {
            Some(Hook { id, secret, .. }) => Hook { client: alice, id, secret },
            None => Hook::register(&alice, &receiver.url).await,
        };
        sent.push(of.test().await["messageId"].clone());
        hook = Some(of);
        front.stop().await;
    }
    let server = server(&db, &clock).await;
    let calls = receiver.wait_for_calls(2).await;
    assert_eq!(calls.iter().map(|call| json!(call.id)).collect::<Vec<_>>(), sent);
    server.stop().await;
}

#[on_each_database]
async fn a_webhook_is_held_by_one_process_as_long_as_that_process_lives(db: TestDb) {
    let clock = manual_clock();
    let server = setup().clock(&clock).with("ROLE", "api").start(&db).await;
    let hook = Hook::register(&server.client("alice"), "http://127.0.0.1:9/").await;
    let webhook: Uuid = hook.id.parse().unwrap();
    let (living, dead) = (server.app.liveness.identity().id, Uuid::new_v4());
    let now = server.app.clock.now();
    let take = async |holder| server.app.db.write(Take { webhook, holder, now }).await.unwrap();
    assert!(!take(dead).await, "the process is unknown");
    assert!(take(living).await);
    assert!(take(living).await, "it holds the webhook already");
    assert!(!take(dead).await);
    server.app.db.write(Release { webhook, holder: dead }).await.unwrap();
    let held = async || {
        let mut tx = server.app.db.read().await.unwrap();
        tx.row::<(Option<Uuid>,)>("SELECT held_by FROM webhooks", args![]).await.unwrap().unwrap().0
    };
    assert_eq!(held().await, Some(living), "only its holder releases it");
    // Its holder is removed: any living process may take it.
    server.app.db.write(HeldBy(dead)).await.unwrap();
    assert!(take(living).await);
    server.app.db.write(Release { webhook, holder: living }).await.unwrap();
    assert_eq!(held().await, None);
}

#[on_each_database]
async fn a_process_that_lost_a_webhook_while_sending_records_nothing(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let gate = Gate::default();
    let receiver = Receiver::serve([Reply::Block(gate.clone())]).await;
    let hook = Hook::register(&server.client("alice"), &receiver.url).await;
    let test = hook.test().await;
    gate.reached().await;
    // As if it had been declared dead: another process has the webhook now.
    let other = setup().clock(&clock).with("ROLE", "api").start(&db).await;
    server.app.db.write(HeldBy(other.app.liveness.identity().id)).await.unwrap();
    gate.open();
    until("it was answered", async || *receiver.open.borrow() == 0).await;
    // A delivery that needs a turn of the same process, so that the other one is surely over.
    let second = Hook::register(&server.client("bob"), &receiver.url).await;
    second.test().await;
    second.settled().await;
    assert_eq!(hook.log("").await[0]["attempts"], 0);
    // The other process ends without having sent it, and it is sent again.
    other.stop().await;
    assert_eq!(hook.after(1, &test).await["status"], "delivered");
    let sent = receiver.calls().into_iter().filter(|call| json!(call.id) == test["messageId"]).count();
    assert_eq!(sent, 2);
}

#[on_each_database]
async fn the_owner_can_have_a_delivery_sent_again(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let (alice, bob) = (server.client("alice"), server.client("bob"));
    let receiver = Receiver::serve([Reply::Status(200), Reply::Status(500)]).await;
    let hook = Hook::register(&alice, &receiver.url).await;
    let first = hook.test().await;
    assert_eq!(hook.after(1, &first).await["status"], "delivered");
    // A new entry with the same message; it fails this time.
    let second = hook.redeliver(&first).await.ok();
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["messageId"], first["messageId"]);
    assert_eq!(hook.after(1, &second).await["status"], "pending");
    // While it waits no entry is added: it is only sent at once.
    let third = hook.redeliver(&second).await.ok();
    assert_eq!(third["id"], second["id"]);
    assert_eq!(hook.after(2, &second).await["status"], "delivered");
    assert_eq!(receiver.calls().len(), 3);
    assert_eq!(hook.log("").await.len(), 2);

    let foreign = Hook { client: bob, id: hook.id.clone(), secret: String::new() };
    foreign.redeliver(&first).await.refused(404, "WEBHOOK_NOT_FOUND");
    let another = Hook::register(&alice, &receiver.url).await;
    another.redeliver(&first).await.refused(404, "DELIVERY_NOT_FOUND");
    another.redeliver(&json!({ "id": "x" })).await.refused(404, "DELIVERY_NOT_FOUND");
    // The same request sent twice counts once.
    let again = async || {
        let path = hook.path(&format!("/deliveries/{}/redeliver", first["id"].as_str().unwrap()));
        alice.send(alice.request(reqwest::Method::POST, &path).header("Idempotency-Key", "k")).await.ok()
    };
    assert_eq!(again().await["id"], again().await["id"]);
    hook.settled().await;
    assert_eq!(receiver.calls().len(), 4);
}

#[on_each_database]
async fn a_new_secret_signs_beside_the_old_one_for_a_day(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let alice = server.client("alice");
    let receiver = Receiver::serve([]).await;
    let hook = Hook::register(&alice, &receiver.url).await;
    hook.test().await;
    let calls = receiver.wait_for_calls(1).await;
    assert_eq!(calls[0].signature.split(' ').count(), 1);
    let rotated = alice.post(&hook.path("/rotate-secret"), json!({})).await.ok();
    let fresh = rotated["secret"].as_str().unwrap().to_owned();
    assert_ne!(fresh, hook.secret);
    assert_eq!(time(&rotated["oldSecretValidUntil"]) - server.app.clock.now(), TimeDelta::days(1));
    hook.test().await;
    let calls = receiver.wait_for_calls(2).await;
    assert!(calls[1].is_signed_with(&fresh) && calls[1].is_signed_with(&hook.secret));
    assert_eq!(calls[1].signature.split(' ').count(), 2);
    clock.advance(Duration::from_hours(24));
    hook.test().await;
    let calls = receiver.wait_for_calls(3).await;
    assert!(calls[2].is_signed_with(&fresh) && !calls[2].is_signed_with(&hook.secret));
}

#[on_each_database]
async fn a_slow_endpoint_does_not_delay_another(db: TestDb) {
    let clock = manual_clock();
    let server = setup()
        .clock(&clock)
        .change(|config| config.webhooks.concurrency = 4)
        .with("WEBHOOK_TIMEOUT_MS", 300)
        .start(&db)
        .await;
    let alice = server.client("alice");
    let dead = Receiver::serve([]).await;
    dead.otherwise(Reply::Never);
    for _ in 0..8 {
        let hook = Hook::register(&alice, &dead.url).await;
        let test = hook.test().await;
        let failed = hook.after(1, &test).await;
        assert_eq!(failed["error"], "there was no answer within 300 ms");
    }
    let good = Receiver::serve([]).await;
    let hook = Hook::register(&server.client("bob"), &good.url).await;
    // All deliveries to dead endpoints are due again and again while bob's are sent.
    for round in 1..=3 {
        clock.advance(Duration::from_hours(5));
        until("the dead endpoints are tried", async || *dead.open.borrow() > 0).await;
        insert_events(&server, "bob", 10).await;
        good.wait_for_calls(10 * round).await;
        assert!(*dead.open.borrow() <= 2, "failing endpoints have half of the slots");
    }
    hook.settled().await;
    assert_eq!(numbers(&good.calls()), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].repeat(3));
}

#[on_each_database]
async fn an_endless_response_is_read_up_to_a_limit(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let receiver = Receiver::serve([Reply::Endless]).await;
    let hook = Hook::register(&server.client("alice"), &receiver.url).await;
    let test = hook.test().await;
    let entry = hook.after(1, &test).await;
    assert_eq!(entry["status"], "delivered");
    assert_eq!(entry["responseExcerpt"].as_str().unwrap().len(), 1_024);
    until("the connection was closed", async || *receiver.open.borrow() == 0).await;
}

#[on_each_database]
async fn a_long_backlog_stays_in_the_events_and_arrives_complete_when_the_endpoint_is_back(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let receiver = Receiver::serve([]).await;
    receiver.otherwise(Reply::Status(503));
    let hook = Hook::register(&server.client("alice"), &receiver.url).await;
    let number =
        async |sql: &'static str| server.app.db.read().await.unwrap().number(sql, args![]).await.unwrap();
    let waiting = "SELECT COUNT(*) FROM webhook_deliveries WHERE next_at IS NOT NULL";
    insert_events(&server, "alice", 1_700).await;
    until("the backlog is full", async || number(waiting).await >= 1_000).await;
    until("the webhook is paused", async || {
        number("SELECT COUNT(*) FROM webhooks WHERE rest_until IS NOT NULL").await == 1
    })
    .await;
    assert!(number(waiting).await < 1_700, "the backlog has a limit");
    let attempts = receiver.calls().len();
    assert!(attempts < 10, "{attempts} attempts at an endpoint that is down");
    receiver.otherwise(Reply::Status(200));
    clock.advance(Duration::from_hours(1));
    until("all is delivered", async || {
        number("SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'delivered'").await == 1_700
    })
    .await;
    hook.settled().await;
    let calls = receiver.calls();
    let mut arrived: Vec<u64> = numbers(&calls[attempts..]);
    assert_eq!(arrived.len(), 1_700);
    arrived.sort_unstable();
    assert_eq!(arrived, (0..1_700).collect::<Vec<_>>());
}

#[on_each_database]
async fn a_removed_webhook_gets_nothing_more_and_leaves_nothing_behind(db: TestDb) {
    let clock = manual_clock();
    let server = server(&db, &clock).await;
    let alice = server.client("alice");
    let receiver = Receiver::serve([]).await;
    receiver.otherwise(Reply::Status(500));
    let hook = Hook::register(&alice, &receiver.url).await;
    insert_events(&server, "alice", 700).await;
    until("they wait", async || hook.log("?status=pending&limit=200").await.len() == 200).await;
    assert_eq!(alice.delete(&hook.path("")).await.status, 204);
    alice.get(&hook.path("")).await.refused(404, "WEBHOOK_NOT_FOUND");
    alice.get(&hook.path("/deliveries")).await.refused(404, "WEBHOOK_NOT_FOUND");
    assert_eq!(alice.get(WEBHOOKS).await.ok()["webhooks"], json!([]));
    let left = server
        .app
        .db
        .read()
        .await
        .unwrap()
        .number("SELECT COUNT(*) FROM webhook_deliveries", args![])
        .await
        .unwrap();
    assert_eq!(left, 0);
}

struct SystemEvent {
    now: Time,
}

impl Write for SystemEvent {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let event = Event::of_system(EventKind::CircuitChanged, self.now, json!({ "service": "gateway" }));
        events::record(tx, vec![event]).await
    }
}

/// Makes this process the holder of every webhook.
struct HeldBy(Uuid);

impl Write for HeldBy {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        tx.execute("UPDATE webhooks SET held_by = $1", args![self.0]).await
    }
}
