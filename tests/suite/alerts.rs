//! Alerts for operators: each is sent at most once an hour across all processes, also if the channel is down.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use chrono::TimeDelta;
use landfall_server::config::{Config, Variables};
use landfall_store::args;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::offline_app::OfflineApp;
use crate::support::{Script, Setup, TestDb, manual_clock, on_each_database};

/// Where alerts are sent to.
#[derive(Clone, Default)]
struct Channel {
    messages: Arc<Mutex<Vec<Value>>>,
    /// How many messages it refuses first.
    refusals: Arc<Mutex<usize>>,
}

async fn take(State(channel): State<Channel>, body: String) -> StatusCode {
    let mut refusals = channel.refusals.lock().unwrap();
    if *refusals > 0 {
        *refusals -= 1;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    channel.messages.lock().unwrap().push(serde_json::from_str(&body).expect("JSON"));
    StatusCode::OK
}

impl Channel {
    async fn open(refusals: usize) -> (Self, String) {
        let channel = Self { refusals: Arc::new(Mutex::new(refusals)), ..Self::default() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/services/T0/B0/secret", listener.local_addr().unwrap());
        let router = Router::new().route("/services/T0/B0/secret", post(take)).with_state(channel.clone());
        tokio::spawn(async move {
            let settings = Config::from_variables(Variables::default()).expect("the defaults are good").http;
            landfall_server::http::serve(listener, router, &settings, CancellationToken::new()).await;
        });
        (channel, url)
    }

    fn texts(&self) -> Vec<String> {
        let messages = self.messages.lock().unwrap();
        messages.iter().map(|message| message["text"].as_str().expect("Slack's form").to_owned()).collect()
    }
}

async fn open(db: &TestDb, webhook: &str) -> OfflineApp {
    let mut variables = vec![("ALERT_DEAD_LETTERS", "3".to_owned())];
    if !webhook.is_empty() {
        variables.push(("ALERT_WEBHOOK_URL", webhook.to_owned()));
    }
    OfflineApp::open(db, &manual_clock(), &variables).await
}

async fn check_alerts(rest: &OfflineApp) -> Vec<String> {
    let raised = rest.app.alerts().check_once(rest.now()).await.expect("the check runs");
    raised.into_iter().map(|alert| alert.name).collect()
}

async fn open_circuit(rest: &OfflineApp) {
    rest.sql(
        "INSERT INTO circuits (service, state, failures, until) VALUES ('gateway', 'open', 5, $1)",
        args![rest.now() + TimeDelta::minutes(1)],
    )
    .await;
}

#[on_each_database]
async fn an_open_circuit_is_alerted_once_an_hour_across_all_processes(db: TestDb) {
    let (channel, url) = Channel::open(0).await;
    let rest = open(&db, &url).await;
    assert!(check_alerts(&rest).await.is_empty(), "nothing is wrong");
    open_circuit(&rest).await;
    let (one, other) = tokio::join!(check_alerts(&rest), check_alerts(&rest));
    assert_eq!([one, other].concat(), ["circuit-open:gateway"]);
    rest.clock.advance(Duration::from_mins(59));
    assert!(check_alerts(&rest).await.is_empty());
    assert_eq!(channel.texts().len(), 1, "{:?}", channel.texts());
    assert!(channel.texts()[0].contains("the extraction service"), "{:?}", channel.texts());
    rest.clock.advance(Duration::from_mins(1));
    assert_eq!(check_alerts(&rest).await, ["circuit-open:gateway"]);
    assert_eq!(channel.texts().len(), 2);
    let events: Vec<(String, Value)> =
        rest.rows("SELECT user_id, data FROM events WHERE kind = 'alert:raised'", args![]).await;
    assert_eq!(events.len(), 2);
    assert_eq!((events[0].0.as_str(), &events[0].1["alert"]), ("", &json!("circuit-open:gateway")));
}

#[on_each_database]
async fn an_alert_reaches_a_channel_that_was_down_once_it_is_back(db: TestDb) {
    let (channel, url) = Channel::open(2).await;
    let rest = open(&db, &url).await;
    open_circuit(&rest).await;
    assert_eq!(check_alerts(&rest).await.len(), 1);
    assert!(channel.texts().is_empty());
    check_alerts(&rest).await;
    assert!(channel.texts().is_empty());
    for _ in 0..3 {
        check_alerts(&rest).await;
        assert_eq!(channel.texts().len(), 1);
    }
}

#[on_each_database]
async fn an_unreachable_channel_is_tried_only_a_few_times(db: TestDb) {
    // A port that was free a moment ago.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let rest = open(&db, &format!("http://{closed}/")).await;
    open_circuit(&rest).await;
    for _ in 0..8 {
        check_alerts(&rest).await;
    }
    assert_eq!(rest.number("SELECT attempts FROM alerts").await, 5);
    assert_eq!(rest.number("SELECT COUNT(*) FROM alerts WHERE delivered_at IS NULL").await, 1);
}

#[on_each_database]
async fn without_a_channel_an_alert_is_still_recorded_as_an_event(db: TestDb) {
    let rest = open(&db, "").await;
    open_circuit(&rest).await;
    assert_eq!(check_alerts(&rest).await, ["circuit-open:gateway"]);
    assert_eq!(rest.number("SELECT COUNT(*) FROM events WHERE kind = 'alert:raised'").await, 1);
}

#[on_each_database]
async fn files_that_wait_without_a_worker_raise_an_alert(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let admin = server.admin();
    admin.post("/api/v2/admin/queues/extract/pause", json!({})).await.ok();
    server.client("alice").upload("a.txt", b"12345").await;
    server.idle().await;
    server.stop().await;
    let rest = OfflineApp::open(&db, &clock, &[("ROLE", "api".to_owned())]).await;
    clock.advance(Duration::from_mins(1));
    assert!(check_alerts(&rest).await.is_empty(), "an operator paused the stage");
    rest.sql("DELETE FROM paused_stages", args![]).await;
    assert_eq!(check_alerts(&rest).await, ["no-workers:extract"]);
    rest.sql("UPDATE workers SET stages = 'extract'", args![]).await;
    clock.advance(Duration::from_hours(1));
    assert!(check_alerts(&rest).await.is_empty(), "a worker is running");
}

#[on_each_database]
async fn a_high_failure_rate_raises_an_alert(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    for _ in 0..3 {
        script.then(
            landfall_core::lifecycle::Stage::Extract,
            crate::support::Step::Fail(landfall_core::failure::Code::ParseError),
        );
    }
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    for number in 0..3 {
        server.client("alice").upload(&format!("{number}.txt"), b"12345").await;
    }
    server.idle().await;
    server.stop().await;
    let rest = open(&db, "").await;
    assert_eq!(check_alerts(&rest).await, ["dead-letter-growth"]);
    rest.clock.advance(Duration::from_hours(1));
    assert!(check_alerts(&rest).await.is_empty(), "the failures are an hour old");
}

#[on_each_database]
async fn a_job_with_errors_raises_an_alert_until_a_run_has_none(db: TestDb) {
    let rest = open(&db, "").await;
    rest.sql("INSERT INTO job_schedules (name, schedule) VALUES ('x', '0 0 * * *')", args![]).await;
    let run = async |errors: Value| {
        rest.clock.advance(Duration::from_mins(1));
        rest.sql(
            "INSERT INTO job_runs (id, name, worker, worker_name, started_at, ended_at, errors)
             VALUES ($1, 'x', $1, 'w', $2, $2, $3)",
            args![Uuid::new_v4(), rest.now(), errors],
        )
        .await;
    };
    run(json!([])).await;
    assert!(check_alerts(&rest).await.is_empty());
    run(json!(["blob a: gone", "blob b: gone"])).await;
    assert_eq!(check_alerts(&rest).await, ["recovery-errors:x"]);
    rest.clock.advance(Duration::from_hours(1));
    run(json!([])).await;
    assert!(check_alerts(&rest).await.is_empty());
}
