//! A file through the whole pipeline.

use serde_json::json;

use crate::support::{TestDb, TestServer, batch_summary, on_each_database};

const TIDES: &str = "# Tides\n\nThe harbour closes at low tide. Ships wait outside until the water rises.\n\n## Fees\n\nMooring costs five euros a day.\n";

#[on_each_database]
async fn a_file_goes_from_registration_to_search(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("tides.md", TIDES.as_bytes()).await;
    server.idle().await;

    assert_eq!(
        alice.states(&file).await,
        ["registered", "uploaded", "queued", "extracting", "chunking", "embedding", "ready"]
    );
    let seen = alice.file(&file).await;
    assert_eq!(seen["status"], "ready");
    assert_eq!(seen["error"], json!(null));
    assert!(seen["chunkCount"].as_i64().unwrap() >= 1);

    let path = format!("/api/v2/uploads/files/{file}");
    let text = alice.request(reqwest::Method::GET, &format!("{path}/text")).send().await.unwrap();
    assert_eq!(text.headers()["content-type"], "text/markdown; charset=utf-8");
    assert_eq!(text.text().await.unwrap(), TIDES);
    let bytes = alice.request(reqwest::Method::GET, &format!("{path}/download")).send().await.unwrap();
    assert_eq!(bytes.bytes().await.unwrap(), TIDES.as_bytes());
    let chunks = alice.get(&format!("{path}/chunks")).await.ok();
    assert_eq!(chunks["chunks"][0]["heading"], "Tides");

    let hits = alice.search("when does the port close?").await;
    assert_eq!(hits[0]["fileId"], json!(file));
    assert!(hits[0]["snippet"].as_str().unwrap().contains("harbour closes"));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_batch_of_25_completes_exactly_once_with_all_files_ready(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(25).await;
    for number in 0..25 {
        alice
            .upload_in(
                &batch,
                &format!("{number}.txt"),
                format!("Ship number {number} is in port.").as_bytes(),
            )
            .await;
    }
    server.idle().await;

    let seen = alice.batch(&batch).await;
    assert_eq!(seen["status"], "completed");
    assert_eq!(seen["summary"], batch_summary(25, 25, 0));
    assert_eq!(seen["progress"]["ready"], 25);
    let completions: Vec<(serde_json::Value,)> = server
        .app
        .db
        .read()
        .await
        .unwrap()
        .rows("SELECT data FROM events WHERE kind = 'batch:completed'", vec![])
        .await
        .unwrap();
    assert_eq!(completions.len(), 1, "{completions:?}");
    assert_eq!(completions[0].0["summary"], batch_summary(25, 25, 0));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_restart_changes_nothing(db: TestDb) {
    let server = TestServer::new(&db).await;
    let file = server.client("alice").upload("tides.md", TIDES.as_bytes()).await;
    server.idle().await;
    let before = server.client("alice").file(&file).await;
    server.stop().await;

    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    server.idle().await;
    assert_eq!(alice.file(&file).await, before);
    assert_eq!(alice.search("mooring").await[0]["heading"], "Fees");
    server.assert_audit_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_id_of_an_event_lost_in_a_power_failure_is_not_used_again() {
    let db = TestDb::sqlite();
    let mut first_ids = Vec::new();
    for _ in 0..2 {
        let server = TestServer::new(&db).await;
        let alice = server.client("alice");
        let file = alice.upload("tides.md", TIDES.as_bytes()).await;
        server.idle().await;
        let history = alice.get(&format!("/api/v2/uploads/files/{file}/history")).await.ok();
        first_ids.push(history["history"][0]["id"].as_i64().unwrap());
        server.stop().await;
    }
    assert!(first_ids[1] - first_ids[0] > 1_000_000, "{first_ids:?}");
}
