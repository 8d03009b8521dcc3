//! A change of the embedding model: files embedded with the old model stay findable, their vectors are never compared
//! with new ones, and they are re-embedded without being missing at any moment.

use std::process::Stdio;

use landfall_core::caller::{Role, TenantUser};
use landfall_core::clock::Clock;
use landfall_core::text::{Chunk, Embedded};
use landfall_server::app::App;
use landfall_server::content::chunks;
use landfall_server::stages::reindex::{Reindex, Report, stale_models};
use landfall_store::Error;
use landfall_store::{Db, Tx, Write, args};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::embedding_server::{EmbeddingServer, Reply};
use crate::support::process::{Process, run};
use crate::support::script::Gate;
use crate::support::{Client, Setup, TestDb, TestServer, on_each_database, until};

fn model(service: &EmbeddingServer, name: &str) -> Setup {
    Setup::default()
        .with("EMBEDDINGS_URL", &service.url)
        .with("EMBEDDINGS_MODEL", name)
        .with("RETRY_LATE_BASE_DELAY_MS", 1)
        .with("EMBED_CONCURRENCY", 2)
}

/// A server whose files were embedded with an earlier model, and its current embedding service.
async fn after_a_change(db: &TestDb, files: usize) -> (TestServer, EmbeddingServer, Vec<String>) {
    let before = EmbeddingServer::start(8).await;
    let server = model(&before, "before").start(db).await;
    let alice = server.client("alice");
    let mut ids = Vec::new();
    for number in 0..files {
        ids.push(
            alice
                .upload(&format!("{number}.txt"), format!("The cat number {number} sleeps.").as_bytes())
                .await,
        );
    }
    server.idle().await;
    server.stop().await;
    let after = EmbeddingServer::start(211).await;
    (model(&after, "after").start(db).await, after, ids)
}

fn reindex(app: &App) -> Reindex {
    let (db, embedder, retry) = (app.db.clone(), app.embedder.clone(), app.config.queue.retry.clone());
    Reindex::new(db, Clock::System, embedder, app.config.chunks, retry, 2)
}

async fn run_once(app: &App) -> Report {
    reindex(app).run(&CancellationToken::new(), |_| ()).await.expect("it finishes")
}

async fn stale(app: &App) -> i64 {
    stale_models(&app.db, &app.embedder).await.unwrap().iter().map(|(_, files)| files).sum()
}

/// How a query that shares no word with the files finds them.
async fn match_kinds(client: &Client, question: &str) -> Vec<Value> {
    client.search(question).await.iter().map(|hit| hit["matched"].clone()).collect()
}

#[on_each_database]
async fn after_a_change_of_model_words_find_all_files_and_vectors_find_new_ones(db: TestDb) {
    let (server, service, old) = after_a_change(&db, 4).await;
    let alice = server.client("alice");
    assert_eq!(stale(&server.app).await, 4);
    let new = alice.upload("new.txt", b"The ship sails.").await;
    server.idle().await;
    assert_eq!(match_kinds(&alice, "vessel").await, [json!(["meaning"])], "the new file, and no old one");
    assert_eq!(match_kinds(&alice, "cat").await.iter().filter(|way| way[0] == "words").count(), 4);

    let states = alice.states(&old[0]).await;
    let before = alice.file(&old[0]).await;
    service.forget();
    let report = run_once(&server.app).await;
    assert_eq!(report, Report { stale: 4, reindexed: 4, ..Report::default() });
    assert_eq!(
        service.calls().iter().skip(1).map(|asked| asked.texts.len()).sum::<usize>(),
        4,
        "only stale files"
    );
    let found = alice.search("feline").await;
    assert_eq!(found.len(), 4, "all old files are compared now");
    assert!(found.iter().all(|hit| hit["fileId"] != json!(new)), "the ship has nothing to do with it");
    assert_eq!(
        (alice.states(&old[0]).await, alice.file(&old[0]).await),
        (states, before),
        "users see no difference"
    );
    assert_eq!(run_once(&server.app).await, Report::default(), "a second run does nothing");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_is_found_at_every_moment_while_it_is_re_embedded(db: TestDb) {
    let (server, service, _) = after_a_change(&db, 3).await;
    let alice = server.client("alice");
    // The dimensions are learned before, so that the searches below need no reply of their own.
    let gate = Gate::default();
    service.then(Reply::Good).then(Reply::Wait(gate.clone())).then(Reply::Wait(gate.clone()));
    let app = server.app.clone();
    let running = tokio::spawn(async move { run_once(&app).await });
    gate.reached().await;
    gate.reached().await;
    assert_eq!(alice.search("cat").await.len(), 3);
    gate.open();
    gate.open();
    assert_eq!(running.await.unwrap().reindexed, 3);
    assert_eq!(alice.search("cat").await.len(), 3);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_reindex_killed_half_way_resumes_where_it_stopped(db: TestDb) {
    let (server, service, _) = after_a_change(&db, 6).await;
    server.stop().await;
    service.forget();
    // The request for the dimensions, two files, and then nothing more.
    service.then(Reply::Good).then(Reply::Good).then(Reply::Good);
    service.otherwise(Reply::Hang);
    let variables =
        [("EMBEDDINGS_URL", service.url.as_str()), ("EMBEDDINGS_MODEL", "after"), ("EMBED_CONCURRENCY", "1")];
    let mut victim =
        Process::command(&db).arg("reindex").envs(variables).stdout(Stdio::null()).spawn().unwrap();
    service.hanging().await;
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(run(&db, &["audit"]).0, 0, "it stopped between files");
    service.forget();
    service.otherwise(Reply::Good);
    let second = Process::command(&db).args(["reindex", "--json"]).envs(variables).output().unwrap();
    let report: Value = serde_json::from_slice(&second.stdout).unwrap();
    assert_eq!(second.status.code(), Some(0), "{report}");
    assert_eq!(
        (&report["stale"], &report["reindexed"], &report["remaining"]),
        (&json!(4), &json!(4), &json!(0))
    );
    assert_eq!(service.calls().len(), 1 + 4, "finished files are not repeated");
    assert_eq!(run(&db, &["audit"]).0, 0);
}

#[on_each_database]
async fn two_concurrent_reindexes_share_the_files_and_embed_each_once(db: TestDb) {
    let (server, _service, _) = after_a_change(&db, 20).await;
    let (one, two) = tokio::join!(run_once(&server.app), run_once(&server.app));
    assert_eq!(one.reindexed + two.reindexed, 20, "{one:?} {two:?}");
    assert_eq!((one.failed, two.failed, stale(&server.app).await), (0, 0, 0));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_deleted_meanwhile_stays_deleted(db: TestDb) {
    let (server, service, files) = after_a_change(&db, 2).await;
    let alice = server.client("alice");
    // Also if its chunks would be recomputed: this one is longer than the limit for any model of a service.
    let file = files[1].parse().unwrap();
    server.app.db.write(Reprocess { file, text: Some("cat ".repeat(2_100)) }).await.unwrap();
    let gate = Gate::default();
    service.then(Reply::Good).then(Reply::Wait(gate.clone())).then(Reply::Wait(gate.clone()));
    let app = server.app.clone();
    let running = tokio::spawn(async move { run_once(&app).await });
    for file in &files {
        gate.reached().await;
        alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
    }
    gate.open();
    gate.open();
    assert_eq!(running.await.unwrap(), Report { stale: 2, left_alone: 2, ..Report::default() });
    assert!(alice.search("cat").await.is_empty());
    let left =
        server.app.db.read().await.unwrap().number("SELECT COUNT(*) FROM chunks", args![]).await.unwrap();
    assert_eq!(left, 0);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_processed_again_meanwhile_gets_no_outdated_vectors(db: TestDb) {
    let (server, service, files) = after_a_change(&db, 1).await;
    let file: Uuid = files[0].parse().unwrap();
    let gate = Gate::default();
    service.then(Reply::Good).then(Reply::Wait(gate.clone()));
    let app = server.app.clone();
    let running = tokio::spawn(async move { run_once(&app).await });
    gate.reached().await;
    server.app.db.write(Reprocess { file, text: None }).await.unwrap();
    gate.open();
    let report = running.await.unwrap();
    assert_eq!((report.left_alone, report.remaining), (1, 1), "{report:?}");
    server.assert_audit_clean().await;
    assert_eq!(run_once(&server.app).await.reindexed, 1);
}

#[on_each_database]
async fn a_service_that_fails_file_after_file_is_not_called_for_all_of_them(db: TestDb) {
    let (server, service, _) = after_a_change(&db, 30).await;
    service.forget();
    service.then(Reply::Good);
    service.otherwise(Reply::Refusal(401, None));
    let report = run_once(&server.app).await;
    assert!((5..=7).contains(&report.failed), "{report:?}");
    assert!(service.calls().len() <= 8, "{}", service.calls().len());
    assert_eq!((report.reindexed, report.remaining), (0, 30));
    assert!(report.last_failure.unwrap().contains("401"));
    service.otherwise(Reply::Refusal(503, None));
    let error = reindex(&server.app).run(&CancellationToken::new(), |_| ()).await.unwrap_err();
    assert!(error.to_string().contains("503"), "{error}");
    // A temporary error costs an attempt and no file.
    service.otherwise(Reply::Good);
    service.then(Reply::Good).then(Reply::Refusal(503, None)).then(Reply::Refusal(500, None));
    assert_eq!(run_once(&server.app).await.reindexed, 30);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn chunks_that_are_too_long_for_the_new_model_are_recomputed(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    let server = model(&service, "reads-much").start(&db).await;
    let alice = server.client("alice");
    let text = (0..80).map(|n| format!("Sentence {n} says that the cat sleeps. ")).collect::<String>();
    let file = alice.upload("a.txt", text.as_bytes()).await;
    server.idle().await;
    let few = alice.file(&file).await["chunkCount"].as_i64().unwrap();
    server.stop().await;

    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    assert_eq!(run_once(&server.app).await.reindexed, 1);
    let many = alice.file(&file).await["chunkCount"].as_i64().unwrap();
    assert!(many > few, "{many} {few}");
    let chunks = alice.get(&format!("/api/v2/uploads/files/{file}/chunks")).await.ok();
    let chunks = chunks["chunks"].as_array().unwrap();
    assert!(chunks.iter().all(|chunk| chunk["tokens"].as_i64().unwrap() <= 126));
    assert_eq!(alice.search("sentence 79").await[0]["fileId"], json!(file));
    server.assert_audit_clean().await;
}

/// A second processing: the same text in new chunks, by a process that still has the old model.
struct Reprocess {
    file: Uuid,
    /// Another text instead of the same.
    text: Option<String>,
}

impl Write for Reprocess {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let (text, model): (String, String) = tx
            .row(
                "SELECT c.text, i.model FROM chunks c JOIN chunk_index i ON i.chunk_id = c.id WHERE c.file_id = $1",
                args![self.file],
            )
            .await?
            .expect("it is there");
        let text = self.text.clone().unwrap_or(text);
        let chunk = Chunk {
            char_end: text.len(),
            text,
            page: None,
            heading: None,
            headings: Vec::new(),
            places: Vec::new(),
            char_start: 0,
            tokens: 5,
        };
        chunks::keep(tx, self.file, &[chunk]).await?;
        let vectors = vec![vec![1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]];
        let alice = TenantUser::new("alice", "alice");
        landfall_server::content::index::replace(tx, self.file, &alice, &Embedded { model, vectors }).await
    }
}

const REINDEX: &str = "/api/v2/admin/reindex";

async fn until_ended(server: &TestServer) -> Value {
    let root = server.admin();
    until("the re-embedding ended", async || root.get(REINDEX).await.ok()["isRunning"] == false).await;
    root.get(REINDEX).await.ok()
}

#[on_each_database]
async fn an_operator_starts_it_and_sees_its_progress(db: TestDb) {
    let (server, service, _) = after_a_change(&db, 4).await;
    let root = server.admin();
    let idle = root.get(REINDEX).await.ok();
    let expected = json!({
        "isRunning": false, "model": "service:after", "total": 4, "done": 0, "failed": 0, "remaining": 4,
        "startedAt": null, "startedBy": null, "endedAt": null, "message": null,
    });
    assert_eq!(idle, expected);
    for client in [server.client("alice"), server.client_with("dana", "acme", Role::TenantAdmin)] {
        client.get(REINDEX).await.refused(403, "FORBIDDEN");
        client.post(REINDEX, json!({})).await.refused(403, "FORBIDDEN");
        client.delete(REINDEX).await.refused(403, "FORBIDDEN");
    }
    assert_eq!(root.delete(REINDEX).await.ok(), expected, "there is nothing to stop");

    let gate = Gate::default();
    service.then(Reply::Good).then(Reply::Good).then(Reply::Wait(gate.clone()));
    let started = root.post(REINDEX, json!({})).await;
    assert_eq!(started.status, 202);
    let started = started.ok();
    assert_eq!((&started["total"], &started["startedBy"]), (&json!(4), &json!("root")));
    gate.reached().await;
    root.post(REINDEX, json!({})).await.refused(409, "JOB_RUNNING");
    until("the progress is shown", async || root.get(REINDEX).await.ok()["done"] == 1).await;
    let running = root.get(REINDEX).await.ok();
    assert_eq!((&running["isRunning"], &running["remaining"]), (&json!(true), &json!(3)));
    gate.open();
    let ended = until_ended(&server).await;
    assert_eq!((&ended["done"], &ended["failed"], &ended["remaining"]), (&json!(4), &json!(0), &json!(0)));
    assert_eq!(ended["message"], "All files have vectors of this model.");
    assert!(ended["endedAt"].is_string() && ended["startedAt"].is_string());
    assert_eq!(stale(&server.app).await, 0);
    let log = root.get("/api/v2/admin/audit-log?action=startReindex&outcome=done").await.ok();
    assert_eq!(log["entries"][0]["actorUserId"], "root");

    root.post(REINDEX, json!({})).await.ok();
    let again = until_ended(&server).await;
    assert_eq!((&again["total"], &again["done"]), (&json!(0), &json!(0)), "nothing is left to do");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn an_operator_stops_it_and_what_was_done_stays(db: TestDb) {
    let (server, service, _) = after_a_change(&db, 4).await;
    let root = server.admin();
    service.then(Reply::Good).then(Reply::Good);
    service.otherwise(Reply::Hang);
    root.post(REINDEX, json!({})).await.ok();
    service.hanging().await;
    let stopped = root.delete(REINDEX).await.ok();
    assert_eq!((&stopped["isRunning"], &stopped["message"]), (&json!(false), &json!("Stopped by root.")));
    service.dropped().await;
    assert_eq!(stale(&server.app).await, 3);
    service.otherwise(Reply::Good);
    root.post(REINDEX, json!({})).await.ok();
    assert_eq!(until_ended(&server).await["done"], 3);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn it_goes_on_in_another_process_after_a_restart(db: TestDb) {
    let (server, service, _) = after_a_change(&db, 5).await;
    service.then(Reply::Good).then(Reply::Good).then(Reply::Good);
    service.otherwise(Reply::Hang);
    server.admin().post(REINDEX, json!({})).await.ok();
    service.hanging().await;
    server.stop().await;
    service.otherwise(Reply::Good);
    // A process that only serves requests leaves it to the others, and so does one with another model.
    let api = model(&service, "after").with("ROLE", "api").start(&db).await;
    let other = model(&service, "third").start(&db).await;
    let waiting = api.admin().get(REINDEX).await.ok();
    assert_eq!((&waiting["isRunning"], &waiting["done"]), (&json!(true), &json!(2)));
    let heir = model(&service, "after").start(&db).await;
    let ended = until_ended(&heir).await;
    assert_eq!((&ended["total"], &ended["done"], &ended["remaining"]), (&json!(5), &json!(5), &json!(0)));
    assert_eq!(ended["startedBy"], "root");
    for server in [api, other, heir] {
        server.stop().await;
    }
}

#[on_each_database]
async fn a_killed_process_leaves_it_to_the_next(db: TestDb) {
    let (server, service, _) = after_a_change(&db, 4).await;
    server.stop().await;
    service.then(Reply::Good).then(Reply::Good);
    service.otherwise(Reply::Hang);
    let settings =
        [("EMBEDDINGS_URL", service.url.as_str()), ("EMBEDDINGS_MODEL", "after"), ("EMBED_CONCURRENCY", "2")];
    let mut victim = Process::start(&db, &settings);
    victim.client().post(REINDEX, json!({})).await.ok();
    service.hanging().await;
    victim.kill();
    service.otherwise(Reply::Good);
    let heir = model(&service, "after").start(&db).await;
    let ended = until_ended(&heir).await;
    assert_eq!(
        (&ended["total"], &ended["done"]),
        (&json!(4), &json!(4)),
        "also what nobody had noted: {ended}"
    );
    heir.assert_audit_clean().await;
}

#[on_each_database]
async fn a_model_that_fails_is_tried_again_and_says_so(db: TestDb) {
    let (server, service, _) = after_a_change(&db, 2).await;
    let root = server.admin();
    service.otherwise(Reply::Refusal(503, None));
    root.post(REINDEX, json!({})).await.ok();
    until("it says so", async || root.get(REINDEX).await.ok()["message"].is_string()).await;
    let waits = root.get(REINDEX).await.ok();
    assert!(waits["isRunning"] == true && waits["message"].as_str().unwrap().contains("503"), "{waits}");
    root.delete(REINDEX).await.ok();
    // A new wish does not wait for the time of the old one.
    service.otherwise(Reply::Good);
    root.post(REINDEX, json!({})).await.ok();
    assert_eq!(until_ended(&server).await["done"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_pgvector_models_of_any_dimensions_also_work_side_by_side() {
    let Some(db) = TestDb::postgres().await else { return };
    let db = TestDb { url: db.another().await, folder: db.folder };
    // Like a server without pgvector. The table exists already, so the installation leaves it alone.
    let opened = Db::open(&db.url, 4).await.unwrap();
    opened.write(PlainArrays).await.unwrap();
    opened.close().await;
    let (server, _service, _) = after_a_change(&db, 3).await;
    let alice = server.client("alice");
    let new = alice.upload("new.txt", b"The ship sails.").await;
    server.idle().await;
    let hits = alice.search("vessel").await;
    assert_eq!((hits.len(), &hits[0]["fileId"]), (1, &json!(new)));
    assert_eq!(run_once(&server.app).await.reindexed, 3);
    assert_eq!(alice.search("feline").await.len(), 3);
    server.assert_audit_clean().await;
}

struct PlainArrays;

impl Write for PlainArrays {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.script(landfall_server::content::index::WITHOUT_PGVECTOR).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_logs_at_its_start_that_files_wait_for_a_reindex() {
    let db = TestDb::sqlite();
    let (server, service, _) = after_a_change(&db, 2).await;
    server.stop().await;
    let mut process = Process::command(&db)
        .arg("serve")
        .envs([("EMBEDDINGS_URL", service.url.as_str()), ("EMBEDDINGS_MODEL", "after")])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = process.stderr.take().unwrap();
    let said = tokio::task::spawn_blocking(move || {
        use std::io::BufRead;
        std::io::BufReader::new(log)
            .lines()
            .map_while(Result::ok)
            .find(|line| line.contains("landfall reindex"))
    })
    .await
    .unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(said.expect("a line about it").contains("2 files were embedded with another model"));
}
