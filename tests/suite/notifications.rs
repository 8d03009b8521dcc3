//! Users are notified of what happened to their files: once, in the same transaction, and only the owner.

use std::time::Duration;

use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage;
use landfall_server::queue::rescue::RescueWorker;
use landfall_store::args;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::offline_app::OfflineApp;
use crate::support::{Client, Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database};

const NOTIFICATIONS: &str = "/api/v2/notifications";

/// A server on which so many of alice's files failed, one after the other.
async fn with_failures(db: &TestDb, count: usize) -> TestServer {
    let clock = manual_clock();
    let script = Script::new();
    for _ in 0..count {
        script.then(Stage::Extract, Step::Fail(Code::ParseError));
    }
    let server = Setup::default().clock(&clock).work(script).start(db).await;
    for number in 0..count {
        server.client("alice").upload(&format!("{number}.txt"), b"12345").await;
        server.idle().await;
        clock.advance(Duration::from_secs(1));
    }
    server
}

async fn list(client: &Client, query: &str) -> Value {
    client.get(&format!("{NOTIFICATIONS}{query}")).await.ok()
}

fn names(list: &Value) -> Vec<&str> {
    let all = list["notifications"].as_array().expect("a list").iter();
    all.map(|one| one["fileName"].as_str().expect("a name")).collect()
}

#[on_each_database]
async fn the_owner_of_a_failed_file_is_notified_once_with_the_reason(db: TestDb) {
    let server = with_failures(&db, 1).await;
    let alice = server.client("alice");
    let found = list(&alice, "").await;
    assert_eq!(found["unreadCount"], 1);
    let told = &found["notifications"][0];
    assert_eq!(told["type"], "file-failure-notification");
    assert_eq!((&told["fileName"], &told["readAt"]), (&json!("0.txt"), &Value::Null));
    assert_eq!((&told["data"]["code"], &told["data"]["stage"]), (&json!("PARSE_ERROR"), &json!("extract")));
    assert!(told["message"].as_str().unwrap().contains("scripted PARSE_ERROR"), "{told}");
    let events: Vec<(String, Value)> = server
        .app
        .db
        .read()
        .await
        .unwrap()
        .rows("SELECT user_id, data FROM events WHERE kind = 'notification:created'", args![])
        .await
        .unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].0, "alice");
    assert_eq!(events[0].1["notificationId"], told["notificationId"]);

    // Retried and ready: no further notification.
    let file = told["fileId"].as_str().unwrap();
    alice.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({})).await.ok();
    server.idle().await;
    assert_eq!(alice.status(file).await, "ready");
    assert_eq!(list(&alice, "").await["notifications"].as_array().unwrap().len(), 1);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_that_is_retried_automatically_causes_no_notification_until_it_fails_permanently(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    for _ in 0..3 {
        script.then(Stage::Embed, Step::Fail(Code::DbError));
    }
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    let alice = server.client("alice");
    alice.upload("a.txt", b"12345").await;
    for attempts in 1..=3 {
        server.idle().await;
        let told = usize::from(attempts == 3);
        assert_eq!(names(&list(&alice, "").await).len(), told, "after {attempts} attempts");
        clock.advance(Duration::from_mins(2));
        server.app.wake.poll_work();
    }
}

#[on_each_database]
async fn the_owner_of_a_file_whose_workers_died_is_notified(db: TestDb) {
    let clock = manual_clock();
    let server = with_failures(&db, 0).await;
    server.client("alice").upload("poison.txt", b"12345").await;
    server.idle().await;
    server.stop().await;
    let rest = OfflineApp::open(&db, &clock, &[]).await;
    let worker = Uuid::new_v4();
    rest.sql(
        "INSERT INTO workers (id, name, stages, services, lock_key, started_at, heartbeat_at)
         VALUES ($1, 'w', 'embed', '', 1, $2, $2)",
        args![worker, rest.now()],
    )
    .await;
    rest.sql(
        "UPDATE files SET status = 'embedding', claim = $1, claimed_by = $1, claimed_at = $2, attempt = 1, lost_workers = 4,
             begun = TRUE, is_alone = TRUE, deaths = 3, deaths_alone = 1",
        args![worker, rest.now()],
    )
    .await;
    let rescue = async || rest.app.db.write(RescueWorker { worker, now: rest.now() }).await.unwrap();
    let (one, other) = tokio::join!(rescue(), rescue());
    assert_eq!([one, other].into_iter().flatten().map(|rescued| rescued.failed).sum::<usize>(), 1);
    let told: Vec<(String, Value)> = rest.rows("SELECT kind, data FROM notifications", args![]).await;
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].0.as_str(), &told[0].1["code"]),
        ("file-failure-notification", &json!("WORKER_LOST"))
    );
}

#[on_each_database]
async fn the_list_is_paged_from_new_to_old(db: TestDb) {
    let server = with_failures(&db, 5).await;
    let alice = server.client("alice");
    let mut seen = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = list(&alice, &query).await;
        assert_eq!(page["unreadCount"], 5);
        seen.extend(names(&page).into_iter().map(str::to_owned));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        query = format!("?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, ["4.txt", "3.txt", "2.txt", "1.txt", "0.txt"]);
    alice.get(&format!("{NOTIFICATIONS}?limit=0")).await.refused(400, "INVALID_REQUEST");
    alice.get(&format!("{NOTIFICATIONS}?cursor=x")).await.refused(400, "INVALID_CURSOR");
}

#[on_each_database]
async fn read_notifications_stay_read_and_all_can_be_marked_at_once(db: TestDb) {
    let server = with_failures(&db, 3).await;
    let alice = server.client("alice");
    let first = list(&alice, "").await["notifications"][0]["notificationId"].as_str().unwrap().to_owned();
    let read = async || alice.post(&format!("{NOTIFICATIONS}/{first}/read"), json!({})).await.ok();
    let at = read().await["readAt"].clone();
    assert!(at.is_string());
    assert_eq!(read().await["readAt"], at);
    assert_eq!(list(&alice, "").await["unreadCount"], 2);
    assert_eq!(names(&list(&alice, "?unread=true").await), ["1.txt", "0.txt"]);
    let all = async || alice.post(&format!("{NOTIFICATIONS}/read-all"), json!({})).await.ok();
    let (one, other) = tokio::join!(all(), all());
    assert_eq!(one["markedCount"].as_u64().unwrap() + other["markedCount"].as_u64().unwrap(), 2);
    assert_eq!(list(&alice, "").await["unreadCount"], 0);
    assert!(names(&list(&alice, "?unread=true").await).is_empty());
    assert_eq!(names(&list(&alice, "").await).len(), 3);
}

#[on_each_database]
async fn a_user_can_neither_see_nor_mark_the_notifications_of_another(db: TestDb) {
    let server = with_failures(&db, 1).await;
    let alice = server.client("alice");
    let id = list(&alice, "").await["notifications"][0]["notificationId"].as_str().unwrap().to_owned();
    for other in [server.client("bob"), server.client_of("bob", "alice"), server.admin()] {
        assert!(names(&list(&other, "").await).is_empty());
        other
            .post(&format!("{NOTIFICATIONS}/{id}/read"), json!({}))
            .await
            .refused(404, "NOTIFICATION_NOT_FOUND");
        assert_eq!(other.post(&format!("{NOTIFICATIONS}/read-all"), json!({})).await.ok()["markedCount"], 0);
    }
    for id in ["x", "0189d5c2-0000-7000-8000-000000000000"] {
        alice
            .post(&format!("{NOTIFICATIONS}/{id}/read"), json!({}))
            .await
            .refused(404, "NOTIFICATION_NOT_FOUND");
    }
    assert_eq!(list(&alice, "").await["unreadCount"], 1);
    let anonymous = Client::new(server.base.clone(), "no token".to_owned());
    assert_eq!(anonymous.get(NOTIFICATIONS).await.status, 401);
}
