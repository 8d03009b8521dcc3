//! Clients that others wrote, on servers that know of events from one another only.

use landfall::db::args;
use serde_json::{Value, json};

use crate::support::node::NodeClient;
use crate::support::process::Process;
use crate::support::stream::EventStream;
use crate::support::{Script, Setup, TestDb, TestServer};

const CUTS: usize = 100;
const FILES: usize = 500;

/// All of a user's events after `after`, as they are in the database.
async fn written(server: &TestServer, user: &str, after: i64) -> Vec<i64> {
    let mut tx = server.app.db.read().await.expect("a connection");
    let sql = "SELECT id FROM events WHERE user_id = $1 AND id > $2 ORDER BY id";
    let ids: Vec<(i64,)> = tx.rows(sql, args![user, after]).await.expect("an answer");
    ids.into_iter().map(|(id,)| id).collect()
}

/// What a client printed, up to the event with that id; its own messages are not among them.
fn up_to(client: &mut NodeClient, last: i64) -> Vec<i64> {
    let mut ids = Vec::new();
    while ids.last() != Some(&last) {
        let line = client.line().expect("it goes on until it has all");
        let kind = line["type"].as_str().unwrap_or("stream:");
        assert_ne!(kind, "stream:gap");
        if !kind.starts_with("stream:") {
            ids.push(line["id"].as_i64().expect("an id"));
        }
    }
    ids
}

/// A client is cut off again and again, comes back to now the one and now the other of two processes, and files flow.
async fn cut_off_at_random(db: TestDb, kind: &str) {
    let variables = [("ROLE", "api")];
    let servers = [Process::start(&db, &variables), Process::start(&db, &variables)];
    // The work is done by a third.
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let began = written(&server, "alice", 0).await.last().copied().unwrap_or(0);
    let arguments = [kind, &CUTS.to_string(), &servers[0].base, &servers[1].base];
    let variables = [("LANDFALL_TOKEN", alice.token.clone()), ("LANDFALL_AFTER", began.to_string())];
    let Some(mut client) = NodeClient::start("listen.mjs", &arguments, &variables) else { return };
    let names: Vec<String> = (0..FILES).map(|number| format!("{number}.txt")).collect();
    alice.upload_all(&names).await;
    server.idle().await;
    // The last counts of the batch come within a second.
    crate::support::until("all is told", async || {
        let owed = "SELECT COUNT(*) FROM batches WHERE progress_due IS NOT NULL";
        server.app.db.read().await.unwrap().number(owed, args![]).await.unwrap() == 0
    })
    .await;
    let expected = written(&server, "alice", began).await;
    let last = *expected.last().expect("there are events");
    let got = tokio::task::spawn_blocking(move || {
        let got = up_to(&mut client, last);
        (client, got)
    });
    let (mut client, got) = got.await.expect("the client goes on");
    assert!(expected.len() > FILES * 7);
    assert_eq!(got.len(), expected.len());
    assert_eq!(got, expected, "each once and in order");
    // It was really cut off so often, and hears on.
    alice.upload("last.txt", b"x").await;
    server.idle().await;
    let further = written(&server, "alice", last).await;
    let rest = tokio::task::spawn_blocking(move || {
        let (mut cuts, mut got) = (0, Vec::new());
        while got.len() < 7 || cuts == 0 {
            let line = client.line().expect("it goes on");
            cuts = cuts.max(line["cuts"].as_u64().unwrap_or(0));
            if line["type"] == "file:status-changed" {
                got.push(line["id"].as_i64().expect("an id"));
            }
        }
        (cuts, got)
    });
    let (cuts, got) = rest.await.expect("the client goes on");
    assert_eq!(got, further);
    assert_eq!(cuts, CUTS as u64);
    server.assert_books_balance().await;
    drop(servers);
}

on_each_database! {
    async fn a_web_socket_that_is_cut_off_a_hundred_times_gets_every_event_once(db: TestDb) {
        cut_off_at_random(db, "ws").await;
    }

    async fn an_event_source_that_is_cut_off_a_hundred_times_gets_every_event_once(db: TestDb) {
        cut_off_at_random(db, "sse").await;
    }

    async fn a_web_socket_learns_why_it_is_closed(db: TestDb) {
        let server = Setup::default().work(Script::new()).with("EVENT_HEARTBEAT_MS", 50).start(&db).await;
        let alice = server.client("alice");
        let variables = [("LANDFALL_TOKEN", alice.token.clone())];
        let Some(mut client) = NodeClient::start("listen.mjs", &["ws", "0", &server.base], &variables) else { return };
        let (mut client, first, ping) = tokio::task::spawn_blocking(move || {
            assert_eq!(client.line(), Some(json!({ "cuts": 0 })));
            let lines = [client.line().unwrap(), client.line().unwrap()];
            let [first, ping] = lines;
            (client, first, ping)
        }).await.unwrap();
        assert_eq!(first["type"], "stream:open");
        assert_eq!(ping, json!({ "ping": true }));
        server.stop().await;
        let close = tokio::task::spawn_blocking(move || {
            loop {
                let line = client.line().expect("it is told");
                if !line["close"].is_null() {
                    return line;
                }
            }
        }).await.unwrap();
        assert_eq!(close, json!({ "close": 1001, "reason": "SERVER_STOPPING" }));
    }

    async fn an_event_reaches_the_listeners_of_other_processes(db: TestDb) {
        let other = Process::start(&db, &[("ROLE", "api")]);
        let server = Setup::default().work(Script::new()).start(&db).await;
        let mut alice = server.client("alice");
        alice.base.clone_from(&other.base);
        let mut stream = EventStream::open(&alice, "").await;
        let file = server.client("alice").upload("a.txt", b"x").await;
        let ready = |event: &Value| crate::support::stream::is_state(event, &file, "ready");
        assert_eq!(stream.up_to(ready).await.len(), 7);
        // It goes on when the one that writes is another.
        server.stop().await;
        let again = Setup::default().work(Script::new()).start(&db).await;
        let file = again.client("alice").upload("b.txt", b"x").await;
        let ready = |event: &Value| crate::support::stream::is_state(event, &file, "ready");
        assert_eq!(stream.up_to(ready).await.len(), 7);
    }
}
