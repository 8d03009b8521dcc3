//! Events are read in the order of their ids and none is passed by, in whatever order they were committed.

use std::time::Duration;

use landfall_server::app::App;
use landfall_server::delivery::tail::{self, Audience, StoredEvent};
use landfall_store::{Db, args};
use sqlx::Connection;
use sqlx_postgres::PgConnection;

use crate::support::at_rest::{AtRest, Sql};
use crate::support::stream::EventStream;
use crate::support::{Setup, TestDb, manual_clock, on_each_database, until};

const INSERT: &str =
    "INSERT INTO events (at, kind, tenant_id, user_id) VALUES ('2026-01-02T03:04:05+00:00', $1, $2, $2)";

async fn tell(db: &Db, kind: &str, user: &str) {
    db.write(Sql(INSERT.to_owned(), args![kind, user])).await.expect("it is written");
}

/// All that the audience can read now, in pages of that size.
async fn read(db: &Db, audience: &Audience, limit: i64) -> Vec<StoredEvent> {
    let up_to = tail::settled_up_to(db).await.expect("a horizon");
    let mut tx = db.read().await.expect("a connection");
    let (mut events, mut after) = (Vec::new(), 0);
    while after < up_to {
        let page = tail::page(&mut tx, after, up_to, audience, limit).await.expect("a page");
        assert!(page.up_to > after, "each page leads on");
        events.extend(page.events);
        after = page.up_to;
    }
    events
}

fn kinds(events: &[StoredEvent]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

/// A transaction of somebody else's that has taken an id and not ended.
async fn half_done(url: &str, kind: &str) -> PgConnection {
    let mut other = PgConnection::connect(url).await.expect("PostgreSQL answers");
    sqlx::query("BEGIN").execute(&mut other).await.expect("it begins");
    sqlx::query(INSERT).bind(kind).bind("alice").execute(&mut other).await.expect("it is written");
    other
}

async fn end(mut transaction: PgConnection, how: &'static str) {
    sqlx::query(how).execute(&mut transaction).await.expect("it ends");
}

/// Time for whoever does not wait to go wrong.
async fn dawdle(app: &App) {
    for _ in 0..100 {
        app.db.read().await.expect("a connection").last_id("events").await.expect("an answer");
    }
}

#[on_each_database]
async fn events_are_read_in_their_order_in_pages_of_any_size(db: TestDb) {
    let rest = AtRest::open(&db, &manual_clock(), &[]).await;
    let everybody = Audience::All;
    assert!(read(&rest.app.db, &everybody, 10).await.is_empty());
    for (kind, user) in
        [("one", "alice"), ("two", "bob"), ("three", "alice"), ("four", ""), ("five", "alice")]
    {
        tell(&rest.app.db, kind, user).await;
    }
    for limit in [1, 2, 3, 5, 100] {
        assert_eq!(
            kinds(&read(&rest.app.db, &everybody, limit).await),
            ["one", "two", "three", "four", "five"]
        );
        let alice = Audience::User("alice".to_owned());
        assert_eq!(kinds(&read(&rest.app.db, &alice, limit).await), ["one", "three", "five"]);
        assert!(read(&rest.app.db, &Audience::User("carol".to_owned()), limit).await.is_empty());
    }
}

#[on_each_database]
async fn others_events_are_passed_over_page_by_page(db: TestDb) {
    let rest = AtRest::open(&db, &manual_clock(), &[]).await;
    tell(&rest.app.db, "one", "alice").await;
    let many = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
                INSERT INTO events (at, kind, tenant_id, user_id)
                SELECT '2026-01-02T03:04:05+00:00', 'noise', 'bob', 'bob' FROM n";
    rest.sql(many, args![]).await;
    tell(&rest.app.db, "two", "alice").await;
    let alice = Audience::User("alice".to_owned());
    assert_eq!(kinds(&read(&rest.app.db, &alice, 10).await), ["one", "two"]);
}

#[on_each_database]
async fn the_horizon_does_not_go_back_when_the_last_events_are_removed(db: TestDb) {
    let rest = AtRest::open(&db, &manual_clock(), &[]).await;
    tell(&rest.app.db, "one", "alice").await;
    let before = tail::settled_up_to(&rest.app.db).await.unwrap();
    rest.sql("DELETE FROM events", args![]).await;
    assert_eq!(tail::settled_up_to(&rest.app.db).await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_with_a_lower_id_that_is_committed_later_is_not_passed_by() {
    let Some(db) = TestDb::postgres().await else { return };
    let rest = AtRest::open(&db, &manual_clock(), &[]).await;
    let slow = half_done(&db.url, "one").await;
    tell(&rest.app.db, "two", "alice").await;
    // That is the trap: the second is there, the first is not.
    let visible = tail::page(&mut rest.app.db.read().await.unwrap(), 0, 100, &Audience::All, 10).await;
    assert_eq!(kinds(&visible.unwrap().events), ["two"]);
    let (events, ()) = tokio::join!(read(&rest.app.db, &Audience::All, 10), async {
        dawdle(&rest.app).await;
        end(slow, "COMMIT").await;
    });
    assert_eq!(kinds(&events), ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_long_listeners_have_been_held_up_is_a_metric() {
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
    let slow = half_done(&db.url, "one").await;
    alice.register(None, "a.txt", 5).await;
    clock.advance(Duration::from_mins(1));
    let behind = lag().await;
    assert!((59.0..61.0).contains(&behind), "{behind}");
    end(slow, "ROLLBACK").await;
    assert_eq!(stream.next().await.unwrap()["data"]["to"], "registered");
    until("nobody is behind", async || lag().await.abs() < f64::EPSILON).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_never_comes_to_be_holds_nobody_up() {
    let Some(db) = TestDb::postgres().await else { return };
    let rest = AtRest::open(&db, &manual_clock(), &[]).await;
    let slow = half_done(&db.url, "one").await;
    tell(&rest.app.db, "two", "alice").await;
    let (events, ()) = tokio::join!(read(&rest.app.db, &Audience::All, 10), async {
        dawdle(&rest.app).await;
        end(slow, "ROLLBACK").await;
    });
    assert_eq!(kinds(&events), ["two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_begins_to_write_later_is_not_waited_for() {
    let Some(db) = TestDb::postgres().await else { return };
    let rest = AtRest::open(&db, &manual_clock(), &[]).await;
    tell(&rest.app.db, "one", "alice").await;
    let first = half_done(&db.url, "two").await;
    let horizon = tokio::spawn({
        let db = rest.app.db.clone();
        async move { tail::settled_up_to(&db).await.expect("a horizon") }
    });
    dawdle(&rest.app).await;
    // It goes on for as long as the test does.
    let second = half_done(&db.url, "three").await;
    end(first, "COMMIT").await;
    let horizon = horizon.await.unwrap();
    let mut tx = rest.app.db.read().await.unwrap();
    let page = tail::page(&mut tx, 0, horizon, &Audience::All, 10).await.unwrap();
    assert_eq!(kinds(&page.events), ["one", "two"]);
    end(second, "COMMIT").await;
}
