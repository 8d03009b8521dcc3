//! Processes that die, freeze, and come back. Real ones.

use serde_json::Value;

use crate::support::process::{Process, run};
use crate::support::{Client, TestDb, until};

/// So much text that embedding it takes a while.
fn a_long_read() -> Vec<u8> {
    (0..1_000)
        .map(|n| format!("Entry {n}: the barometer falls and the swell grows heavier by the hour. "))
        .collect::<String>()
        .into_bytes()
}

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

on_each_database! {
    async fn what_a_killed_process_held_is_taken_over_long_before_any_heartbeat_could_tell(db: TestDb) {
        // No heartbeat expires within a day: only the lock that died with the process can give it away.
        let patient = [("HEARTBEAT_INTERVAL_MS", "40000000"), ("HEARTBEAT_EXPIRY_MS", "86400000")];
        let mut first = Process::start(&db, &patient);
        let file = first.client().upload("long.txt", &a_long_read()).await;
        until("the file is being embedded", async || first.client().status(&file).await == "embedding").await;
        let second = Process::start(&db, &patient);
        let client = second.client();
        let holder = client.file(&file).await["inflight"]["worker"].clone();
        first.kill();
        until("another process has it", async || {
            let worker = client.file(&file).await["inflight"]["worker"].clone();
            worker != Value::Null && worker != holder
        })
        .await;
        let lost = history(&client, &file).await.into_iter().filter(|entry| entry["errorCode"] == "WORKER_LOST").count();
        assert_eq!(lost, 1);
        client.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
        second.signal("TERM");
        assert!(second.wait(), "it ends well");
        let (code, printed) = run(&db, &["audit"]);
        assert_eq!(code, 0, "{printed}");
    }

    async fn a_frozen_process_that_wakes_up_again_changes_nothing(db: TestDb) {
        let hasty = [("HEARTBEAT_INTERVAL_MS", "500"), ("HEARTBEAT_EXPIRY_MS", "6000")];
        let frozen = Process::start(&db, &hasty);
        let file = frozen.client().upload("long.txt", &a_long_read()).await;
        until("the file is being embedded", async || frozen.client().status(&file).await == "embedding").await;
        let other = Process::start(&db, &hasty);
        let client = other.client();
        let holder = client.file(&file).await["inflight"]["worker"].clone();
        frozen.signal("STOP");
        until("another process has it", async || {
            let worker = client.file(&file).await["inflight"]["worker"].clone();
            worker != Value::Null && worker != holder
        })
        .await;
        frozen.signal("CONT");
        // Awake, it finds that it was taken for dead and takes on new work under a new name.
        until("the file is ready", async || client.status(&file).await == "ready").await;
        until("the woken process answers", async || frozen.client().get("/readyz").await.status == 200).await;

        let entries = history(&client, &file).await;
        let taken = entries.iter().position(|entry| entry["errorCode"] == "WORKER_LOST").unwrap();
        assert!(entries[taken + 1..].iter().all(|entry| entry["worker"] != holder), "{entries:#?}");
        for process in [frozen, other] {
            process.signal("TERM");
            assert!(process.wait(), "it ends well");
        }
        let (code, printed) = run(&db, &["audit"]);
        assert_eq!(code, 0, "{printed}");
    }

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
            // Claimed or carried into each stage exactly once, whoever did it.
            for state in ["extracting", "chunking", "embedding", "ready"] {
                assert_eq!(entries.iter().filter(|entry| entry["to"] == state).count(), 1, "{entries:#?}");
            }
            workers.extend(entries.iter().filter_map(|entry| entry["worker"].as_str().map(str::to_owned)));
        }
        assert_eq!(workers.len(), 2, "both had a part in it: {workers:?}");
        let (code, printed) = run(&db, &["audit"]);
        assert_eq!(code, 0, "{printed}");
    }
}
