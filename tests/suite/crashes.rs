//! Processes are killed again and again at arbitrary moments: every file still finishes.

use landfall_store::{Db, args};
use rand::{RngExt, SeedableRng};

use crate::support::process::{Process, run};
use crate::support::{TestDb, batch_summary, on_each_database, until};

const FILES: i64 = 25;
const ROUNDS: usize = 20;

#[on_each_database]
async fn twenty_five_files_finish_despite_twenty_kills(db: TestDb) {
    let mut random = rand::rngs::StdRng::seed_from_u64(4711);
    let quick = [("POLL_INTERVAL_MS", "50"), ("CHUNK_SIZE", "60"), ("CHUNK_OVERLAP", "10")];
    let process = Process::start(&db, &quick);
    let client = process.client();
    let batch = client.open_batch(25).await;
    let mut files = Vec::new();
    for number in 0..FILES {
        let text = format!("Entry {number}: wind from the west, the sea is calm. ").repeat(12);
        files.push(client.upload_in(&batch, &format!("{number}.txt"), text.as_bytes()).await);
    }
    // Each kill waits for a number of steps of the files, so that each one interrupts different work. A state that a file had
    // before is no step: after a death a file may be worked on alone, and one that cannot end its stage there is blamed.
    let reader = Db::open(&db.url, 4).await.unwrap();
    let steps = async || {
        let sql = "SELECT COUNT(*) FROM (SELECT DISTINCT file_id, to_state FROM events WHERE to_state IS NOT NULL) AS s";
        reader.read().await.unwrap().number(sql, args![]).await.unwrap()
    };
    let unfinished = async || {
        let sql = "SELECT COUNT(*) FROM files WHERE status NOT IN ('ready', 'failed')";
        reader.read().await.unwrap().number(sql, args![]).await.unwrap() > 0
    };
    let mut process = Some(process);
    for _ in 0..ROUNDS {
        let mut victim = match process.take() {
            Some(process) => process,
            None => Process::start(&db, &quick),
        };
        let enough = steps().await + random.random_range(1..7);
        until("the files move", async || steps().await >= enough || !unfinished().await).await;
        victim.kill();
    }

    let survivor = Process::start(&db, &quick);
    let client = survivor.client();
    until("every file is terminal", async || !unfinished().await).await;
    let (code, printed) = run(&db, &["audit"]);
    assert_eq!(code, 0, "{printed}");

    for file in &files {
        assert_eq!(client.status(file).await, "ready", "{}", client.file(file).await);
    }
    assert_eq!(client.batch(&batch).await["summary"], batch_summary(FILES, FILES, 0));
    // Each stage took effect once: as many chunks as the text has, as many index entries as chunks.
    let counts =
        async |sql: &str| reader.read().await.unwrap().number(sql.to_owned(), args![]).await.unwrap();
    let expected = counts("SELECT CAST(SUM(chunk_count) AS BIGINT) FROM files").await;
    assert_eq!(counts("SELECT COUNT(*) FROM chunks").await, expected);
    assert_eq!(counts("SELECT COUNT(*) FROM chunk_index").await, expected);
    assert_eq!(counts("SELECT COUNT(*) FROM artifacts").await, FILES);
    let (code, printed) = run(&db, &["audit"]);
    assert_eq!(code, 0, "{printed}");
    survivor.signal("TERM");
    assert!(survivor.wait());
}
