//! Events of every type, from a real server, are as the description of the API says. (Every message that any test reads from a
//! stream is checked too.)

use std::collections::BTreeSet;
use std::time::Duration;

use landfall_core::event::EventKind;
use landfall_core::lifecycle::Stage;
use landfall_store::args;
use reqwest::Method;
use serde_json::{Value, json};

use crate::recovery_jobs::{break_claim, by_hand, recover};
use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::hooks::Hook;
use crate::support::stream::{EVENTS, EventStream};
use crate::support::webhook_receiver::{Call, Receiver};
use crate::support::{Client, TestDb, TestServer, contract, manual_clock, on_each_database, until};

const UP: Reply = Reply::ApiResponse(200, "text/plain", "Some words about the sea.");
const REFUSED: Reply = Reply::ApiResponse(422, "text/plain", "not a document");
const DOWN: Reply = Reply::ApiResponse(503, "text/plain", "gone fishing");
/// As many failures open the circuit.
const THRESHOLD: usize = 5;

async fn all_events(client: &Client) -> Vec<Value> {
    let path = format!("{EVENTS}?after=0&scope=all&follow=false");
    EventStream::begin(client.request(Method::GET, &path)).await.rest().await
}

fn types<'a>(messages: impl IntoIterator<Item = &'a Value>) -> BTreeSet<String> {
    messages.into_iter().map(|message| message["type"].as_str().expect("a type").to_owned()).collect()
}

async fn has_happened(server: &TestServer, kind: EventKind) -> bool {
    let sql = "SELECT COUNT(*) FROM events WHERE kind = $1";
    server.app.db.read().await.unwrap().number(sql, args![kind]).await.unwrap() > 0
}

/// Makes something of every kind happen.
async fn live_through_everything(server: &TestServer, gateway: &GatewayServer, advance: impl Fn(Duration)) {
    let alice = server.client("alice");
    // A file that becomes ready and one that fails: status, progress, completion, and a notification.
    gateway.then(REFUSED);
    let batch = alice.open_batch(2).await;
    for name in ["one.bin", "two.bin"] {
        alice.upload_in(&batch, name, b"bytes").await;
        server.idle().await;
    }
    assert_eq!(alice.batch(&batch).await["status"], "completed");
    let batch = alice.open_batch(1).await;
    alice.post(&format!("/api/v2/uploads/batches/{batch}/cancel"), json!({})).await.ok();

    // Of several files some wait for the rate limit, and all for a service that is down.
    gateway.otherwise(DOWN);
    let mut waiting = String::new();
    for number in 0..2 * THRESHOLD {
        waiting = alice.upload(&format!("{number}.bin"), b"bytes").await;
    }
    until("an alert is raised about the service", async || {
        server.idle().await;
        advance(Duration::from_secs(5));
        // The server may have checked at the same moment, and raised it.
        server.app.alerts().check_once(server.app.clock.now()).await.expect("the check runs");
        has_happened(server, EventKind::AlertRaised).await
    })
    .await;

    break_claim(server, &waiting, Stage::Extract).await;
    advance(Duration::from_mins(30));
    recover(server).await;

    let batch = alice.open_batch(2).await;
    alice.register(Some(&batch), "never-sent.txt", 100).await;
    advance(Duration::from_hours(24));
    server.run_job("batch-timeout").await;
    assert_eq!(alice.batch(&batch).await["status"], "expired");
}

#[on_each_database]
async fn events_of_every_type_are_as_the_description_says(db: TestDb) {
    let clock = manual_clock();
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(UP);
    let server = by_hand(&clock)
        .with("EXTRACT_GATEWAY_URL", url)
        .with("EXTRACT_CONCURRENCY", THRESHOLD)
        .with("EXTRACT_RATE_LIMIT", format!("{THRESHOLD}/10s"))
        .with("WEBHOOK_ALLOW_PRIVATE", "true")
        .with("POLL_INTERVAL_MS", 20)
        .start(&db)
        .await;
    let receiver = Receiver::serve([]).await;
    let everything = json!({ "url": receiver.url, "scope": "all" });
    let hook = Hook::register_as(&server.admin(), everything).await;
    hook.test().await;
    live_through_everything(&server, &gateway, |time| clock.advance(time)).await;

    // Each message was checked when it was read.
    let mut expected: BTreeSet<String> = EventKind::ALL.iter().map(ToString::to_string).collect();
    let mut seen = types(&all_events(&server.admin()).await);
    assert!(seen.remove("stream:open") && seen.remove("stream:end"), "{seen:?}");
    assert_eq!(seen, expected);

    expected.insert("webhook:test".to_owned());
    until("every type is delivered", async || {
        clock.advance(Duration::from_secs(1));
        let bodies: Vec<Value> = receiver.calls().iter().map(Call::json).collect();
        types(&bodies) == expected
    })
    .await;
    receiver.calls().iter().for_each(|call| contract::check_as("WebhookMessage", &call.json()));
}

#[on_each_database]
async fn a_gap_in_the_stream_is_as_the_description_says(db: TestDb) {
    let server = crate::support::Setup::default().start(&db).await;
    let path = format!("{EVENTS}?after=4711&follow=false");
    let messages = EventStream::begin(server.client("alice").request(Method::GET, &path)).await.rest().await;
    assert_eq!(types(&messages), ["stream:end", "stream:gap"].map(str::to_owned).into());
}
