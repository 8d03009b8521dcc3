//! Events are read in the order of their ids and none is skipped, in whatever order they were committed.

use std::time::Duration;

use landfall_core::caller::{Reach, TenantUser};
use landfall_server::app::App;
use landfall_server::delivery::tail::{self, StoredEvent};
use landfall_store::{Db, args};
use sqlx::Connection;
use sqlx_postgres::PgConnection;

use crate::support::offline_app::{OfflineApp, Sql};
use crate::support::stream::EventStream;
use crate::support::{Setup, TestDb, manual_clock, on_each_database, until};

const INSERT: &str =
    "INSERT INTO events (at, kind, tenant_id, user_id) VALUES ('2026-01-02T03:04:05+00:00', $1, $2, $2)";

async fn insert_event(db: &Db, kind: &str, user: &str) {
    db.write(Sql(INSERT.to_owned(), args![kind, user])).await.expect("it is written");
}

/// All events of these owners that can be read now, in pages of that size.
async fn read(db: &Db, reach: &Reach, limit: i64) -> Vec<StoredEvent> {
    let up_to = tail::settled_up_to(db).await.expect("a horizon");
    let mut tx = db.read().await.expect("a connection");
    let (mut events, mut after) = (Vec::new(), 0);
    while after < up_to {
        let page = tail::page(&mut tx, after, up_to, reach, limit).await.expect("a page");
        assert!(page.up_to > after, "each page advances");
        events.extend(page.events);
        after = page.up_to;
    }
    events
}

fn kinds(events: &[StoredEvent]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

/// A transaction of another process that has taken an id and has not ended.
async fn open_transaction(url: &str, kind: &str) -> PgConnection {
    let mut other = PgConnection::connect(url).await.expect("PostgreSQL answers");
    sqlx::query("BEGIN").execute(&mut other).await.expect("it begins");
    sqlx::query(INSERT).bind(kind).bind("alice").execute(&mut other).await.expect("it is written");
    other
}

async fn end(mut transaction: PgConnection, how: &'static str) {
    sqlx::query(how).execute(&mut transaction).await.expect("it ends");
}

/// Gives a reader that does not wait the time to fail.
async fn pass_some_time(app: &App) {
    for _ in 0..100 {
        app.db.read().await.expect("a connection").last_id("events").await.expect("an answer");
    }
}

#[on_each_database]
async fn events_are_read_in_order_in_pages_of_any_size(db: TestDb) {
    let rest = OfflineApp::open(&db, &manual_clock(), &[]).await;
    let all = Reach::All;
    assert!(read(&rest.app.db, &all, 10).await.is_empty());
    for (kind, user) in
        [("one", "alice"), ("two", "bob"), ("three", "alice"), ("four", ""), ("five", "alice")]
    {
        insert_event(&rest.app.db, kind, user).await;
    }
    for limit in [1, 2, 3, 5, 100] {
        assert_eq!(kinds(&read(&rest.app.db, &all, limit).await), ["one", "two", "three", "four", "five"]);
        let alice = Reach::User(TenantUser::new("alice", "alice"));
        assert_eq!(kinds(&read(&rest.app.db, &alice, limit).await), ["one", "three", "five"]);
        assert!(read(&rest.app.db, &Reach::User(TenantUser::new("carol", "carol")), limit).await.is_empty());
    }
}

#[on_each_database]
async fn events_of_other_users_are_skipped_page_by_page(db: TestDb) {
    let rest = OfflineApp::open(&db, &manual_clock(), &[]).await;
    insert_event(&rest.app.db, "one", "alice").await;
    let many = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
                INSERT INTO events (at, kind, tenant_id, user_id)
                SELECT '2026-01-02T03:04:05+00:00', 'noise', 'bob', 'bob' FROM n";
    rest.sql(many, args![]).await;
    insert_event(&rest.app.db, "two", "alice").await;
    let alice = Reach::User(TenantUser::new("alice", "alice"));
    assert_eq!(kinds(&read(&rest.app.db, &alice, 10).await), ["one", "two"]);
}

#[on_each_database]
async fn the_horizon_does_not_move_back_when_the_last_events_are_removed(db: TestDb) {
    let rest = OfflineApp::open(&db, &manual_clock(), &[]).await;
    insert_event(&rest.app.db, "one", "alice").await;
    let before = tail::settled_up_to(&rest.app.db).await.unwrap();
    rest.sql("DELETE FROM events", args![]).await;
    assert_eq!(tail::settled_up_to(&rest.app.db).await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_with_a_lower_id_that_is_committed_later_is_not_skipped() {
    let Some(db) = TestDb::postgres().await else { return };
    let rest = OfflineApp::open(&db, &manual_clock(), &[]).await;
    let slow = open_transaction(&db.url, "one").await;
    insert_event(&rest.app.db, "two", "alice").await;
    // The trap: the second event is visible, the first is not.
    let visible = tail::page(&mut rest.app.db.read().await.unwrap(), 0, 100, &Reach::All, 10).await;
    assert_eq!(kinds(&visible.unwrap().events), ["two"]);
    let (events, ()) = tokio::join!(read(&rest.app.db, &Reach::All, 10), async {
        pass_some_time(&rest.app).await;
        end(slow, "COMMIT").await;
    });
    assert_eq!(kinds(&events), ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_delay_of_listeners_is_a_metric() {
    let Some(db) = TestDb::postgres().await else { return };
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).start(&db).await;
    let alice = server.client("alice");
    let mut stream = EventStream::open(&alice, "").await;
    let lag = async || {
        let scrape = reqwest::get(format!("{}/metrics", server.base)).await.expect("an answer");
        let scrape = scrape.text().await.expect("text");
        let line = scrape.lines().find_map(|line| line.strip_prefix("landfall_event_lag_seconds "));
        line.expect("the metric").parse::<f64>().expect("a number")
    };
    assert!(lag().await.abs() < f64::EPSILON);
    let slow = open_transaction(&db.url, "one").await;
    alice.register(None, "a.txt", 5).await;
    clock.advance(Duration::from_mins(1));
    let behind = lag().await;
    assert!((59.0..61.0).contains(&behind), "{behind}");
    end(slow, "ROLLBACK").await;
    assert_eq!(stream.next().await.unwrap()["data"]["to"], "registered");
    until("no listener is behind", async || lag().await.abs() < f64::EPSILON).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_is_never_committed_delays_no_listener() {
    let Some(db) = TestDb::postgres().await else { return };
    let rest = OfflineApp::open(&db, &manual_clock(), &[]).await;
    let slow = open_transaction(&db.url, "one").await;
    insert_event(&rest.app.db, "two", "alice").await;
    let (events, ()) = tokio::join!(read(&rest.app.db, &Reach::All, 10), async {
        pass_some_time(&rest.app).await;
        end(slow, "ROLLBACK").await;
    });
    assert_eq!(kinds(&events), ["two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_begins_later_is_not_waited_for() {
    let Some(db) = TestDb::postgres().await else { return };
    let rest = OfflineApp::open(&db, &manual_clock(), &[]).await;
    insert_event(&rest.app.db, "one", "alice").await;
    let first = open_transaction(&db.url, "two").await;
    let horizon = tokio::spawn({
        let db = rest.app.db.clone();
        async move { tail::settled_up_to(&db).await.expect("a horizon") }
    });
    pass_some_time(&rest.app).await;
    // The transaction stays open until the test ends.
    let second = open_transaction(&db.url, "three").await;
    end(first, "COMMIT").await;
    let horizon = horizon.await.unwrap();
    let mut tx = rest.app.db.read().await.unwrap();
    let page = tail::page(&mut tx, 0, horizon, &Reach::All, 10).await.unwrap();
    assert_eq!(kinds(&page.events), ["one", "two"]);
    end(second, "COMMIT").await;
}
