//! Third-party clients, on servers that learn of events only from each other.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use landfall_store::args;
use serde_json::{Value, json};

use crate::support::node::NodeClient;
use crate::support::process::{self, Process};
use crate::support::stream::EventStream;
use crate::support::{Script, Setup, TestDb, TestServer, on_each_database};

const CUTS: usize = 100;
const FILES: usize = 500;

/// The ids of all events of a user after `after`, as they are in the database.
async fn stored_event_ids(server: &TestServer, user: &str, after: i64) -> Vec<i64> {
    let mut tx = server.app.db.read().await.expect("a connection");
    let sql = "SELECT id FROM events WHERE user_id = $1 AND id > $2 ORDER BY id";
    let ids: Vec<(i64,)> = tx.rows(sql, args![user, after]).await.expect("an answer");
    ids.into_iter().map(|(id,)| id).collect()
}

/// What a client has printed so far.
struct ListeningClient {
    client: NodeClient,
    ids: Vec<i64>,
    cuts: u64,
}

impl ListeningClient {
    /// Reads until `reached` holds; messages about the stream itself are not counted as events.
    async fn up_to(mut self, reached: impl Fn(&Self) -> bool + Send + 'static) -> Self {
        let reading = tokio::task::spawn_blocking(move || {
            while !reached(&self) {
                let line = self.client.line().expect("it runs until it has all events");
                let kind = line["type"].as_str().unwrap_or("stream:");
                assert_ne!(kind, "stream:gap");
                if !kind.starts_with("stream:") {
                    self.ids.push(line["id"].as_i64().expect("an id"));
                }
                self.cuts = self.cuts.max(line["cuts"].as_u64().unwrap_or(0));
            }
            self
        });
        reading.await.expect("the reader does not panic")
    }
}

/// A client is disconnected again and again and reconnects to either of two processes while files are processed.
async fn disconnect_at_random(db: TestDb, kind: &str) {
    let variables = [("ROLE", "api")];
    let servers = [Process::start(&db, &variables), Process::start(&db, &variables)];
    // A third process does the work.
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let began = stored_event_ids(&server, "alice", 0).await.last().copied().unwrap_or(0);
    let arguments = [kind, &CUTS.to_string(), &servers[0].base, &servers[1].base];
    let variables = [("LANDFALL_TOKEN", alice.token.clone()), ("LANDFALL_AFTER", began.to_string())];
    let Some(client) = NodeClient::start("listen.mjs", &arguments, &variables) else { return };
    let listening = ListeningClient { client, ids: Vec::new(), cuts: 0 };
    let names: Vec<String> = (0..FILES).map(|number| format!("{number}.txt")).collect();
    alice.upload_all(&names).await;
    server.idle().await;
    // The last counts of the batch are sent within a second.
    crate::support::until("all events are written", async || {
        let owed = "SELECT COUNT(*) FROM batches WHERE progress_due IS NOT NULL";
        server.app.db.read().await.unwrap().number(owed, args![]).await.unwrap() == 0
    })
    .await;
    let expected = stored_event_ids(&server, "alice", began).await;
    let last = *expected.last().expect("there are events");
    let listening = listening.up_to(move |so_far| so_far.ids.last() == Some(&last)).await;
    assert!(expected.len() > FILES * 7);
    assert_eq!(listening.ids.len(), expected.len());
    assert_eq!(listening.ids, expected, "each once and in order");
    // It was really disconnected that often, and still receives events.
    let listening = listening.up_to(|so_far| so_far.cuts > 0).await;
    assert_eq!(listening.cuts, CUTS as u64);
    alice.upload("last.txt", b"x").await;
    server.idle().await;
    let all = stored_event_ids(&server, "alice", began).await;
    let count = all.len();
    let listening = listening.up_to(move |so_far| so_far.ids.len() == count).await;
    assert_eq!(listening.ids, all);
    server.assert_audit_clean().await;
    drop(servers);
}

#[on_each_database]
async fn a_web_socket_disconnected_a_hundred_times_gets_every_event_once(db: TestDb) {
    disconnect_at_random(db, "ws").await;
}

#[on_each_database]
async fn an_event_source_disconnected_a_hundred_times_gets_every_event_once(db: TestDb) {
    disconnect_at_random(db, "sse").await;
}

#[on_each_database]
async fn a_web_socket_gets_the_reason_when_it_is_closed(db: TestDb) {
    let server = Setup::default()
        .work(Script::new())
        .change(|config| config.events.heartbeat = Duration::from_millis(500))
        .start(&db)
        .await;
    let alice = server.client("alice");
    let variables = [("LANDFALL_TOKEN", alice.token.clone())];
    let Some(mut client) = NodeClient::start("listen.mjs", &["ws", "0", &server.base], &variables) else {
        return;
    };
    let (mut client, first, ping) = tokio::task::spawn_blocking(move || {
        assert_eq!(client.line(), Some(json!({ "cuts": 0 })));
        let lines = [client.line().unwrap(), client.line().unwrap()];
        let [first, ping] = lines;
        (client, first, ping)
    })
    .await
    .unwrap();
    assert_eq!(first["type"], "stream:open");
    assert_eq!(ping, json!({ "ping": true }));
    server.stop().await;
    let close = tokio::task::spawn_blocking(move || {
        loop {
            let line = client.line().expect("the client prints the reason");
            if !line["close"].is_null() {
                return line;
            }
        }
    })
    .await
    .unwrap();
    assert_eq!(close, json!({ "close": 1001, "reason": "SERVER_STOPPING" }));
}

#[on_each_database]
async fn the_command_line_shows_past_and_new_events(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"x").await;
    server.idle().await;
    let arguments = ["events", "--server", &server.base, "--token", &alice.token];
    let (code, lines) = process::run(&db, &[&arguments[..], &["--json"]].concat());
    assert_eq!(code, 0);
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events.len(), 7);
    assert_eq!((&events[6]["data"]["to"], &events[6]["data"]["fileId"]), (&json!("ready"), &json!(file)));
    let fourth = events[3]["id"].to_string();
    let (code, lines) =
        process::run(&db, &[&arguments[..], &["--after", &fourth, "--type", "file:status-changed"]].concat());
    assert_eq!((code, lines.lines().count()), (0, 3));
    assert!(lines.lines().all(|line| line.contains(&file)), "{lines}");
    assert!(lines.contains("embedding → ready"), "{lines}");
    assert_eq!(process::run(&db, &[&arguments[..], &["--type", "file:danced"]].concat()).0, 2);
    assert_eq!(process::run(&db, &[&arguments[..], &["--all"]].concat()).0, 2);

    let mut following = Process::command(&db)
        .args(arguments)
        .args(["--follow", "--json", "--after", &fourth])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut lines = BufReader::new(following.stdout.take().expect("piped")).lines();
    for event in &events[4..] {
        assert_eq!(serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap(), *event);
    }
    let file = alice.upload("b.txt", b"x").await;
    let news = tokio::task::spawn_blocking(move || lines.take(7).map(Result::unwrap).collect::<Vec<_>>());
    assert!(news.await.unwrap().iter().all(|line| line.contains(&file)));
    following.kill().expect("it runs until it is killed");
    following.wait().expect("it ends");
}

#[on_each_database]
async fn an_event_reaches_listeners_on_other_processes(db: TestDb) {
    let other = Process::start(&db, &[("ROLE", "api")]);
    let server = Setup::default().work(Script::new()).start(&db).await;
    let mut alice = server.client("alice");
    alice.base.clone_from(&other.base);
    let mut stream = EventStream::open(&alice, "").await;
    let file = server.client("alice").upload("a.txt", b"x").await;
    let ready = |event: &Value| crate::support::stream::is_state(event, &file, "ready");
    assert_eq!(stream.up_to(ready).await.len(), 7);
    // It also works when another process writes.
    server.stop().await;
    let again = Setup::default().work(Script::new()).start(&db).await;
    let file = again.client("alice").upload("b.txt", b"x").await;
    let ready = |event: &Value| crate::support::stream::is_state(event, &file, "ready");
    assert_eq!(stream.up_to(ready).await.len(), 7);
}
