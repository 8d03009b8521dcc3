//! Processes die: no innocent file fails for it, however often, and a file that kills its worker does.

use landfall_store::{Db, args};
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::support::embedding_server::EmbeddingServer;
use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::process::{Process, run};
use crate::support::{TestDb, on_each_database, until};

const KILLS: usize = 30;
const FILES: usize = 500;

struct Counts(Db);

impl Counts {
    async fn number(&self, sql: &str) -> i64 {
        self.0.read().await.unwrap().number(sql.to_owned(), args![]).await.unwrap()
    }

    /// The steps that files have made.
    async fn steps(&self) -> i64 {
        self.number("SELECT COUNT(*) FROM events WHERE to_state IS NOT NULL").await
    }

    async fn unfinished(&self) -> i64 {
        self.number("SELECT COUNT(*) FROM files WHERE status NOT IN ('ready', 'failed')").await
    }
}

/// Small files flow while processes are killed at random moments.
async fn kill_again_and_again(db: &TestDb, processes: usize) {
    let mut random = rand::rngs::StdRng::seed_from_u64(42);
    let embeddings = EmbeddingServer::start(8).await;
    let settings = [
        ("POLL_INTERVAL_MS", "50"),
        ("EMBEDDINGS_URL", embeddings.url.as_str()),
        ("EMBEDDINGS_MODEL", "words"),
    ];
    let start = || Process::start(db, &settings);
    let mut running: Vec<Process> = (0..processes).map(|_| start()).collect();
    let client = running[0].client();
    let names: Vec<String> = (0..FILES).map(|number| format!("{number}.txt")).collect();
    let counts = Counts(Db::open(&db.url, 4).await.unwrap());
    let (batch, _) = client.upload_all(&names).await;
    let each = i64::try_from(FILES).unwrap() * 5 / i64::try_from(KILLS).unwrap();
    for _ in 0..KILLS {
        let enough = counts.steps().await + random.random_range(0..each);
        until("the files move", async || counts.steps().await >= enough || counts.unfinished().await == 0)
            .await;
        let victim = random.random_range(0..running.len());
        running[victim].kill();
        running[victim] = start();
    }
    until("every file has ended", async || counts.unfinished().await == 0).await;
    let failed = counts.number("SELECT COUNT(*) FROM files WHERE status <> 'ready'").await;
    assert_eq!(failed, 0, "innocent files failed");
    let client = running[0].client();
    assert_eq!(client.batch(&batch).await["summary"]["ready"], json!(FILES));
    let (code, printed) = run(db, &["audit"]);
    assert_eq!(code, 0, "{printed}");
}

#[on_each_database]
async fn five_hundred_files_are_ready_although_their_only_process_is_killed_thirty_times(db: TestDb) {
    kill_again_and_again(&db, 1).await;
}

#[on_each_database]
async fn five_hundred_files_are_ready_although_one_of_three_processes_is_killed_thirty_times(db: TestDb) {
    kill_again_and_again(&db, 3).await;
}

#[on_each_database]
async fn a_file_that_kills_its_worker_fails_after_five_deaths_and_all_others_are_ready(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(Reply::ApiResponse(200, "text/plain", "Some words about the sea."));
    gateway.reply_to_text("poison", Reply::Never);
    let embeddings = EmbeddingServer::start(8).await;
    let settings = [
        ("POLL_INTERVAL_MS", "50"),
        ("EXTRACT_GATEWAY_URL", url.as_str()),
        ("EMBEDDINGS_URL", embeddings.url.as_str()),
        ("EMBEDDINGS_MODEL", "words"),
    ];
    let mut process = Process::start(&db, &settings);
    let client = process.client();
    let mut others = Vec::new();
    for number in 0..20 {
        others.push(client.upload(&format!("{number}.txt"), b"innocent").await);
    }
    let poison = client.upload("poison.txt", b"poison").await;
    for number in 20..40 {
        others.push(client.upload(&format!("{number}.txt"), b"innocent").await);
    }
    let counts = Counts(Db::open(&db.url, 4).await.unwrap());
    let is_over = async || counts.number("SELECT COUNT(*) FROM files WHERE status = 'failed'").await == 1;
    let mut deaths = 0;
    loop {
        let worked_on = || gateway.calls().iter().filter(|call| call.body.contains("poison")).count();
        until("the file is worked on or has failed", async || worked_on() > 0 || is_over().await).await;
        if worked_on() == 0 {
            break;
        }
        // The work on the file ends the process.
        process.kill();
        deaths += 1;
        gateway.forget();
        process = Process::start(&db, &settings);
    }
    assert!(deaths <= 5, "{deaths} deaths");
    until("every file has ended", async || counts.unfinished().await == 0).await;
    let client = process.client();
    let seen = client.file(&poison).await;
    assert_eq!(
        (&seen["status"], &seen["error"]["code"]),
        (&json!("failed"), &json!("WORKER_LOST")),
        "{seen}"
    );
    for file in &others {
        assert_eq!(client.status(file).await, "ready", "{}", client.file(file).await);
    }
    let (code, printed) = run(&db, &["audit"]);
    assert_eq!(code, 0, "{printed}");
}
