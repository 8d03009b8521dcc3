//! Real processes that die, freeze and come back.

use serde_json::Value;

use crate::support::embedding_server::{EmbeddingServer, Reply};
use crate::support::process::{Process, run};
use crate::support::script::Gate;
use crate::support::{Client, TestDb, on_each_database, until};

async fn history(client: &Client, file: &str) -> Vec<Value> {
    let mut entries = Vec::new();
    let mut path = format!("/api/v2/uploads/files/{file}/history?limit=200");
    loop {
        let page = client.get(&path).await.ok();
        entries.extend(page["history"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["nextCursor"].as_str() else {
            return entries;
        };
        path = format!("/api/v2/uploads/files/{file}/history?limit=200&cursor={cursor}");
    }
}

#[on_each_database]
async fn files_of_a_killed_process_are_taken_over_long_before_its_heartbeat_expires(db: TestDb) {
    // No heartbeat expires within a day: only the lock that is free again shows that the process died.
    let service = EmbeddingServer::start(8).await;
    service.otherwise(Reply::Hang);
    let patient = [
        ("HEARTBEAT_EXPIRY_MS", "86400000"),
        ("EMBEDDINGS_URL", &service.url),
        ("EMBEDDINGS_MODEL", "words"),
    ];
    let mut first = Process::start(&db, &patient);
    let file = first.client().upload("log.txt", b"The barometer falls and the swell grows heavier.").await;
    service.hanging().await;
    let second = Process::start(&db, &patient);
    let client = second.client();
    let holder = client.file(&file).await["inflight"]["worker"].clone();
    first.kill();
    until("another process has it", async || {
        let worker = client.file(&file).await["inflight"]["worker"].clone();
        worker != Value::Null && worker != holder
    })
    .await;
    let lost =
        history(&client, &file).await.into_iter().filter(|entry| entry["errorCode"] == "WORKER_LOST").count();
    assert_eq!(lost, 1);
    client.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
    second.signal("TERM");
    assert!(second.wait(), "it exits cleanly");
    let (code, printed) = run(&db, &["audit"]);
    assert_eq!(code, 0, "{printed}");
}

#[on_each_database]
async fn a_frozen_process_that_wakes_up_again_changes_nothing(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    let (answer_to_the_frozen, answer_to_the_other) = (Gate::default(), Gate::default());
    service.then(Reply::Wait(answer_to_the_frozen.clone())).then(Reply::Wait(answer_to_the_other.clone()));
    let hasty =
        [("HEARTBEAT_EXPIRY_MS", "6000"), ("EMBEDDINGS_URL", &service.url), ("EMBEDDINGS_MODEL", "words")];
    let frozen = Process::start(&db, &hasty);
    let file = frozen.client().upload("log.txt", b"The barometer falls and the swell grows heavier.").await;
    answer_to_the_frozen.reached().await;
    let other = Process::start(&db, &hasty);
    let client = other.client();
    let workers =
        async || client.get("/api/v2/admin/queue-status").await.ok()["workers"].as_array().unwrap().len();
    let holder = client.file(&file).await["inflight"]["worker"].clone();
    frozen.signal("STOP");
    answer_to_the_other.reached().await;
    assert_eq!(workers().await, 1);
    let worker = client.file(&file).await["inflight"]["worker"].clone();
    assert!(worker != Value::Null && worker != holder, "{worker}");
    // After it wakes up, it has its result while the other process still works. It finds that it was declared dead,
    // drops the file, and takes new work under a new name.
    answer_to_the_frozen.open();
    frozen.signal("CONT");
    until("the woken process works under its new name", async || workers().await == 2).await;
    answer_to_the_other.open();
    until("the file is ready", async || client.status(&file).await == "ready").await;

    let entries = history(&client, &file).await;
    let taken = entries.iter().position(|entry| entry["errorCode"] == "WORKER_LOST").unwrap();
    assert!(entries[taken + 1..].iter().all(|entry| entry["worker"] != holder), "{entries:#?}");
    for process in [frozen, other] {
        process.signal("TERM");
        assert!(process.wait(), "it exits cleanly");
    }
    let (code, printed) = run(&db, &["audit"]);
    assert_eq!(code, 0, "{printed}");
}

#[on_each_database]
async fn two_processes_share_the_work_and_do_nothing_twice(db: TestDb) {
    let processes = [Process::start(&db, &[]), Process::start(&db, &[])];
    let clients = [processes[0].client(), processes[1].client()];
    let batch = clients[0].open_batch(30).await;
    let mut files = Vec::new();
    for number in 0..30 {
        let text = format!("Report {number}. ").repeat(60);
        files.push(clients[number % 2].upload_in(&batch, &format!("{number}.txt"), text.as_bytes()).await);
    }
    until("the batch is complete", async || clients[1].batch(&batch).await["status"] == "completed").await;
    let mut workers = std::collections::BTreeSet::new();
    for file in &files {
        let entries = history(&clients[0], file).await;
        // Each file was claimed or carried into each stage exactly once, by either process.
        for state in ["extracting", "chunking", "embedding", "ready"] {
            assert_eq!(entries.iter().filter(|entry| entry["to"] == state).count(), 1, "{entries:#?}");
        }
        workers.extend(entries.iter().filter_map(|entry| entry["worker"].as_str().map(str::to_owned)));
    }
    assert_eq!(workers.len(), 2, "both had a part in it: {workers:?}");
    let (code, printed) = run(&db, &["audit"]);
    assert_eq!(code, 0, "{printed}");
}
