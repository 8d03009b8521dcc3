//! Processes start at the same moment, or while another one has locked the database.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;

use crate::support::process::Process;
use crate::support::{TestDb, on_each_database, until};

const PROCESSES: usize = 8;

#[on_each_database]
async fn any_number_of_processes_may_start_at_once_on_an_empty_database(db: TestDb) {
    // Several times: without the lock it would still go well now and then.
    for round in 0..3 {
        let url = db.another().await;
        let folder = tempfile::tempdir_in(db.folder.path()).expect("a folder");
        let empty = Arc::new(TestDb { url, folder });
        let starting: Vec<_> = (0..PROCESSES)
            .map(|_| {
                let empty = empty.clone();
                tokio::task::spawn_blocking(move || Process::start(&empty, &[("DATABASE_CONNECTIONS", "4")]))
            })
            .collect();
        let mut processes = Vec::new();
        for process in starting {
            processes.push(process.await.unwrap_or_else(|error| panic!("round {round}: {error}")));
        }
        for process in &processes {
            until("it is ready", async || process.client().get("/readyz").await.status == 200).await;
        }
        let file = processes[0].client().upload("a.txt", b"All hands on deck.").await;
        let client = processes[PROCESSES - 1].client();
        until("it is ready", async || client.status(&file).await == "ready").await;
    }
}

/// A process that is frozen in a transaction has the lock of SQLite until it goes on.
#[tokio::test]
async fn a_start_waits_for_a_process_that_has_locked_the_database() {
    let db = TestDb::sqlite();
    // The schema is there, so that the start has nothing to wait for but the lock.
    drop(Process::start(&db, &[]));
    let frozen = db.sqlite_connection();
    frozen.execute_batch("BEGIN IMMEDIATE").expect("it takes the lock");
    let (log, written) = std::io::pipe().expect("a pipe");
    let started = std::thread::scope(|scope| {
        let start = scope.spawn(|| Process::start_with_log(&db, &[], Stdio::from(written)));
        let mut lines = BufReader::new(log).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("another process has locked the database")));
        frozen.execute_batch("ROLLBACK").expect("it lets go");
        // A process whose log is not read would stand still.
        std::thread::spawn(move || lines.count());
        start.join().expect("it starts")
    });
    until("it is ready", async || started.client().get("/readyz").await.status == 200).await;
}
