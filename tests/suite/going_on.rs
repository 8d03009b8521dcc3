//! A worker goes on with a file before the ending of its stage is written, and several endings are written as one.

use std::sync::Arc;
use std::time::Duration;

use landfall_core::clock::Time;
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage::{self, Chunk, Embed, Extract};
use landfall_core::lifecycle::Status;
use landfall_core::text::Chunk as Piece;
use landfall_server::queue::settle::{Finished, SettleGroup, Settlement, Verdict};
use landfall_server::records::file::File;
use landfall_server::stages::Output;
use landfall_store::{Error, Tx, Write, args};
use serde_json::Value;
use uuid::Uuid;

use crate::support::script::Gate;
use crate::support::{Client, Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database};

const WHOLE_WAY: [&str; 7] =
    ["registered", "uploaded", "queued", "extracting", "chunking", "embedding", "ready"];

/// Holds the row of a file until the gate is opened.
struct HoldRow(Uuid, Gate);

impl Write for HoldRow {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        File::lock(tx, self.0).await?;
        self.1.wait().await;
        Ok(())
    }
}

#[on_each_database]
async fn a_worker_goes_on_while_the_end_of_a_stage_is_written(db: TestDb) {
    let (extract, chunk) = (Gate::default(), Gate::default());
    let script =
        Script::new().then(Extract, Step::Block(extract.clone())).then(Chunk, Step::Block(chunk.clone()));
    let server = Setup::default().work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    let id = alice.upload("a.txt", b"a").await;
    extract.reached().await;

    let row = Gate::default();
    let hold = HoldRow(id.parse().unwrap(), row.clone());
    let held = tokio::spawn({
        let db = server.app.db.clone();
        async move { db.write(hold).await }
    });
    row.reached().await;
    extract.open();
    chunk.reached().await;
    row.open();
    held.await.unwrap().unwrap();
    chunk.open();

    server.idle().await;
    assert_eq!(alice.states(&id).await, WHOLE_WAY);
    assert_eq!(script.runs(), [(Extract, 1), (Chunk, 1), (Embed, 1)]);
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_worker_stops_when_the_end_of_an_earlier_stage_was_refused(db: TestDb) {
    let (extract, chunk) = (Gate::default(), Gate::default());
    let script = Script::new()
        .then(Extract, Step::Block(extract.clone()))
        // Never opened: only the refusal ends it.
        .then(Chunk, Step::Block(chunk.clone()));
    let server = Setup::default().work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    let id = alice.upload("a.txt", b"a").await;
    extract.reached().await;

    // As if another process had rescued the file and claimed it again, without a word to this worker.
    let file: Uuid = id.parse().unwrap();
    server.app.db.write(ClaimByOther(file)).await.unwrap();
    extract.open();
    chunk.reached().await;
    server.idle().await;
    assert_eq!(server.app.worker.as_ref().unwrap().fenced_off(), 1);
    server.stop().await;
}

/// What the row of a file says.
async fn held(server: &TestServer, file: Uuid) -> File {
    File::find(&mut server.app.db.read().await.unwrap(), file).await.unwrap().unwrap()
}

/// Another worker takes a file.
struct ClaimByOther(Uuid);

impl Write for ClaimByOther {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let sql = "UPDATE files SET claim = $2, claimed_by = $2 WHERE id = $1";
        tx.execute(sql, args![self.0, Uuid::new_v4()]).await.map(drop)
    }
}

/// A file that waits in its first stage, with the gate that it waits at.
struct Waiting {
    server: TestServer,
    alice: Client,
    gate: Gate,
    batch: String,
    file: File,
}

impl Waiting {
    async fn new(db: &TestDb) -> Self {
        let gate = Gate::default();
        let script = Script::new().then(Extract, Step::Block(gate.clone()));
        let server = Setup::default().clock(&manual_clock()).work(script).start(db).await;
        let alice = server.client("alice");
        let batch = alice.open_batch(1).await;
        let id = alice.upload_in(&batch, "a", b"a").await.parse().unwrap();
        gate.reached().await;
        let file = held(&server, id).await;
        Self { server, alice, gate, batch, file }
    }

    fn now(&self) -> Time {
        self.server.app.clock.now()
    }

    /// Ends `stage` after the others, with `claim`.
    async fn settle(&self, claim: Uuid, before: &[Stage], stage: Stage) -> Result<Option<Status>, Error> {
        let finished = |stage: &Stage| Finished {
            stage: *stage,
            attempt: 1,
            at: self.now(),
            output: Arc::new(match stage {
                Chunk => Output::Chunked(vec![piece(), piece()]),
                _ => Output::Nothing,
            }),
        };
        let settlement = Settlement {
            file: self.file.id,
            owner: self.file.owner(),
            claim,
            finished_before: before.iter().map(finished).collect(),
            stage,
            attempt: 1,
            at: self.now(),
            verdict: Verdict::Advance { output: Arc::new(Output::Nothing), carry: stage.next().is_some() },
            calls: Vec::new(),
        };
        let group = SettleGroup {
            settlements: vec![settlement],
            worker_name: "test:1".to_owned(),
            breaker: self.server.app.config.queue.breaker,
            now: self.now(),
        };
        Ok(self.server.app.db.write(group).await?[0])
    }

    async fn states(&self) -> Vec<String> {
        self.alice.states(&self.file.id.to_string()).await
    }

    /// The worker's own ending changes nothing any more.
    async fn end(self) {
        self.gate.open();
        self.server.idle().await;
        self.server.assert_audit_clean().await;
        self.server.stop().await;
    }
}

fn piece() -> Piece {
    Piece {
        text: "a".to_owned(),
        page: None,
        heading: None,
        headings: Vec::new(),
        places: Vec::new(),
        char_start: 0,
        char_end: 1,
        tokens: 1,
    }
}

#[on_each_database]
async fn stages_that_are_written_together_leave_the_same_row_history_and_counts(db: TestDb) {
    let waiting = Waiting::new(&db).await;
    let claim = waiting.file.claim.unwrap();
    let written = waiting.settle(claim, &[Extract, Chunk], Embed).await.unwrap();
    assert_eq!(written, Some(Status::Ready));
    assert_eq!(waiting.states().await, WHOLE_WAY);
    let row = held(&waiting.server, waiting.file.id).await;
    assert_eq!(
        (row.status, row.next_stage, row.chunk_count, row.claim),
        (Status::Ready, Embed, Some(2), None)
    );
    let path = format!("/api/v2/uploads/files/{}/history", row.id);
    let history = waiting.alice.get(&path).await.ok();
    let history: Vec<&Value> = history["history"].as_array().unwrap().iter().skip(4).collect();
    let told = |name: &str| history.iter().map(|entry| entry[name].clone()).collect::<Vec<_>>();
    assert_eq!(told("stage"), ["extract", "chunk", "embed"]);
    assert_eq!(told("attempt"), [1, 1, 1]);
    assert_eq!(waiting.alice.batch(&waiting.batch).await["summary"]["ready"], 1);
    // Its chunks have no vectors.
    waiting.alice.delete(&format!("/api/v2/uploads/files/{}", row.id)).await.ok();
    waiting.end().await;
}

#[on_each_database]
async fn a_claim_that_is_gone_writes_none_of_several_stages(db: TestDb) {
    let waiting = Waiting::new(&db).await;
    let written = waiting.settle(Uuid::new_v4(), &[Extract, Chunk], Embed).await.unwrap();
    assert_eq!(written, None);
    assert_eq!(waiting.states().await, WHOLE_WAY[..4]);
    assert_eq!(held(&waiting.server, waiting.file.id).await.chunk_count, None);
    let chunks = waiting.alice.get(&format!("/api/v2/uploads/files/{}/chunks", waiting.file.id)).await;
    assert_eq!(chunks.body["chunks"].as_array().map_or(0, Vec::len), 0, "{chunks:?}");
    waiting.end().await;
}

#[on_each_database]
async fn a_stage_cannot_be_passed_over(db: TestDb) {
    let waiting = Waiting::new(&db).await;
    let error = waiting.settle(waiting.file.claim.unwrap(), &[Extract], Embed).await.unwrap_err();
    assert!(error.to_string().contains("chunking"), "{error}");
    assert_eq!(waiting.states().await, WHOLE_WAY[..4]);
    waiting.end().await;
}

#[on_each_database]
async fn a_file_that_failed_before_is_written_stage_by_stage(db: TestDb) {
    let clock = manual_clock();
    let chunk = Gate::default();
    let script =
        Script::new().then(Extract, Step::Fail(Code::DbError)).then(Chunk, Step::Block(chunk.clone()));
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    let alice = server.client("alice");
    let id = alice.upload("a.txt", b"a").await;
    server.idle().await;
    clock.advance(Duration::from_secs(90));
    tokio::select! {
        () = chunk.reached() => {}
        // It polls the queue.
        () = server.idle() => unreachable!("the gate is closed"),
    }
    let row = held(&server, id.parse().unwrap()).await;
    assert_eq!((row.status, row.error_code), (Status::Chunking, None));
    chunk.open();
    server.idle().await;
    assert_eq!(alice.status(&id).await, "ready");
    server.stop().await;
}
