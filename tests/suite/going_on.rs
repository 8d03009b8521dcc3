//! A worker goes on with a file before the ending of its stage is written, and several endings are written as one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage::{self, Chunk, Embed, Extract};
use landfall_core::lifecycle::Status;
use landfall_core::text::{Chunk as Piece, Embedded};
use landfall_server::queue::settle::{Finished, SettleGroup, Settlement, Verdict};
use landfall_server::records::file::File;
use landfall_server::stages::{Job, Output, Work};
use landfall_store::{Error, FaultInjector, Step as DatabaseStep, Tx, Write, args};
use serde_json::{Value, json};
use tokio::task::{self, JoinHandle};
use uuid::Uuid;

use crate::support::script::Gate;
use crate::support::{
    ApiResponse, Client, Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database, until,
};

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

    // As if another process had rescued the file and claimed it again, without a word to this worker. The claim holds the row until the
    // next stage has begun: otherwise the refusal may come first, and that stage never begins.
    let row = Gate::default();
    let claim = ClaimByOther(id.parse().unwrap(), row.clone());
    let claimed = tokio::spawn({
        let db = server.app.db.clone();
        async move { db.write(claim).await }
    });
    row.reached().await;
    extract.open();
    chunk.reached().await;
    row.open();
    claimed.await.unwrap().unwrap();
    server.idle().await;
    assert_eq!(server.app.worker.as_ref().unwrap().fenced_off(), 1);
    let metrics = reqwest::get(format!("{}/metrics", server.base)).await.unwrap().text().await.unwrap();
    let interrupted = "landfall_stage_duration_seconds_count{stage=\"chunk\",outcome=\"interrupted\"} 1";
    assert!(metrics.lines().any(|line| line == interrupted), "{metrics}");
    server.stop().await;
}

/// What the row of a file says.
async fn held(server: &TestServer, file: Uuid) -> File {
    File::find(&mut server.app.db.read().await.unwrap(), file).await.unwrap().unwrap()
}

/// Another worker takes a file. Its claim is committed when the gate is opened.
struct ClaimByOther(Uuid, Gate);

impl Write for ClaimByOther {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let sql = "UPDATE files SET claim = $2, claimed_by = $2 WHERE id = $1";
        tx.execute(sql, args![self.0, Uuid::new_v4()]).await?;
        self.1.wait().await;
        Ok(())
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

/// Two files in hand. The settler waits for the row of the first, so the endings of the second wait for the settler.
struct BusySettler {
    server: TestServer,
    script: Arc<Script>,
    alice: Client,
    row: Gate,
    held: JoinHandle<Result<(), Error>>,
    /// The first file is in its second stage.
    chunk: Gate,
    first: String,
    second: String,
}

impl BusySettler {
    /// `next` is what the second file does in its second stage, which has begun.
    async fn new(db: &TestDb, setup: Setup, next: Step) -> Self {
        let [of_first, of_second, chunk, row] = std::array::from_fn(|_| Gate::default());
        let script = Script::new()
            .then(Extract, Step::Block(of_first.clone()))
            .then(Extract, Step::Block(of_second.clone()))
            .then(Chunk, Step::Block(chunk.clone()))
            .then(Chunk, next);
        let server = setup.work(script.clone()).start(db).await;
        let alice = server.client("alice");
        let first = alice.upload("first", b"a").await;
        of_first.reached().await;
        let second = alice.upload("second", b"a").await;
        of_second.reached().await;
        let hold = HoldRow(first.parse().unwrap(), row.clone());
        let held = tokio::spawn({
            let db = server.app.db.clone();
            async move { db.write(hold).await }
        });
        row.reached().await;
        of_first.open();
        chunk.reached().await;
        of_second.open();
        until("the second file is in its second stage", async || script.runs().len() == 4).await;
        Self { server, script, alice, row, held, chunk, first, second }
    }

    /// Lets the settler write, and the first file go on.
    async fn go_on(&mut self) {
        self.row.open();
        (&mut self.held).await.unwrap().unwrap();
        self.chunk.open();
        self.server.idle().await;
        assert_eq!(self.alice.states(&self.first).await, WHOLE_WAY);
    }

    async fn row_of_second(&self) -> File {
        held(&self.server, self.second.parse().unwrap()).await
    }

    fn extractions(&self) -> usize {
        self.script.runs().iter().filter(|(stage, _)| *stage == Extract).count()
    }
}

#[on_each_database]
async fn a_stage_that_fails_before_the_last_one_is_written_fails_as_itself(db: TestDb) {
    let mut busy = BusySettler::new(&db, Setup::default(), Step::Fail(Code::ParseError)).await;
    busy.go_on().await;
    let states = busy.alice.states(&busy.second).await;
    assert_eq!(states, ["registered", "uploaded", "queued", "extracting", "chunking", "failed"]);
    let seen = busy.alice.file(&busy.second).await;
    assert_eq!((&seen["error"]["code"], &seen["error"]["stage"]), (&json!("PARSE_ERROR"), &json!("chunk")));
    assert_eq!(busy.row_of_second().await.attempt, 1);
    busy.server.assert_audit_clean().await;
    busy.server.stop().await;
}

#[on_each_database]
async fn a_stage_that_fails_before_the_last_one_is_written_is_retried_from_itself(db: TestDb) {
    let clock = manual_clock();
    let setup = Setup::default().clock(&clock);
    let mut busy = BusySettler::new(&db, setup, Step::Fail(Code::DbError)).await;
    busy.go_on().await;
    let row = busy.row_of_second().await;
    assert_eq!((row.status, row.next_stage, row.attempt), (Status::Queued, Chunk, 1));
    clock.advance(Duration::from_secs(90));
    busy.server.idle().await;
    assert_eq!(busy.alice.status(&busy.second).await, "ready");
    assert_eq!(busy.extractions(), 2, "{:?}", busy.script.runs());
    busy.server.assert_audit_clean().await;
    busy.server.stop().await;
}

/// Ends the second file while the end of its first stage waits to be written. Returns what the request was answered.
async fn end_second(
    db: &TestDb,
    busy: &mut BusySettler,
    request: impl AsyncFnOnce(Client, String) -> ApiResponse,
) -> ApiResponse {
    let request = request(busy.alice.clone(), busy.second.clone());
    if db.url.starts_with("sqlite:") {
        // There is one writer at a time, so the request waits as well.
        let (answer, ()) = tokio::join!(request, busy.go_on());
        return answer;
    }
    let answer = request.await;
    busy.go_on().await;
    assert_eq!(busy.server.app.worker.as_ref().unwrap().fenced_off(), 1);
    answer
}

#[on_each_database]
async fn a_file_that_is_cancelled_between_two_stages_stays_cancelled_until_it_is_retried(db: TestDb) {
    // Never opened: only the cancellation ends it.
    let mut busy = BusySettler::new(&db, Setup::default(), Step::Block(Gate::default())).await;
    let cancel = async |client: Client, file: String| {
        client.post(&format!("/api/v2/uploads/files/{file}/cancel"), json!({})).await
    };
    end_second(&db, &mut busy, cancel).await.ok();
    assert_eq!(busy.alice.status(&busy.second).await, "cancelled");
    busy.server.assert_audit_clean().await;
    busy.alice.post(&format!("/api/v2/uploads/files/{}/retry", busy.second), json!({})).await.ok();
    busy.server.idle().await;
    assert_eq!(busy.alice.status(&busy.second).await, "ready");
    busy.server.assert_audit_clean().await;
    busy.server.stop().await;
}

#[on_each_database]
async fn a_file_that_is_deleted_between_two_stages_leaves_nothing(db: TestDb) {
    let mut busy = BusySettler::new(&db, Setup::default(), Step::Block(Gate::default())).await;
    let delete =
        async |client: Client, file: String| client.delete(&format!("/api/v2/uploads/files/{file}")).await;
    end_second(&db, &mut busy, delete).await.ok();
    assert_eq!(busy.row_of_second().await.status, Status::Deleted);
    busy.server.assert_audit_clean().await;
    busy.server.stop().await;
}

#[on_each_database]
async fn a_worker_that_stops_gives_a_file_back_at_the_stage_that_it_came_to(db: TestDb) {
    let setup = Setup::default().with("SHUTDOWN_GRACE_MS", 1);
    let busy = BusySettler::new(&db, setup, Step::Block(Gate::default())).await;
    let BusySettler { server, row, held: holding, first, second, .. } = busy;
    let let_write = async {
        row.open();
        holding.await.unwrap().unwrap();
    };
    tokio::join!(server.stop(), let_write);

    let script = Script::new();
    let server = Setup::default().work(script.clone()).start(&db).await;
    server.idle().await;
    let alice = server.client("alice");
    for file in [first, second] {
        assert_eq!(alice.status(&file).await, "ready");
    }
    let mut runs = script.runs();
    runs.sort_unstable();
    assert_eq!(runs, [(Chunk, 1), (Chunk, 1), (Embed, 1), (Embed, 1)]);
    server.assert_audit_clean().await;
    server.stop().await;
}

/// The first write of an ending fails: before it is written, or after that, as if its answer were lost.
#[derive(Default)]
struct FailsOnce {
    loses_answer: bool,
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    Waits,
    /// This task has written it and not committed it.
    Written(Option<task::Id>),
    Failed,
}

impl FailsOnce {
    fn fails(&self, step: DatabaseStep<'_>) -> bool {
        let mut state = self.state.lock().unwrap();
        match (&*state, step) {
            // Only the statements that write endings have a fence.
            (State::Waits, DatabaseStep::Statement(sql)) if sql.contains("v.fence") => {
                *state = if self.loses_answer { State::Written(task::try_id()) } else { State::Failed };
                !self.loses_answer
            }
            (State::Written(by), DatabaseStep::Committed) if *by == task::try_id() => {
                *state = State::Failed;
                true
            }
            _ => false,
        }
    }
}

impl FaultInjector for FailsOnce {
    fn inject<'a>(&'a self, step: DatabaseStep<'a>) -> BoxFuture<'a, Result<(), Error>> {
        let lost = || std::io::Error::new(std::io::ErrorKind::ConnectionReset, "broken by the test");
        let result = if self.fails(step) { Err(Error::Database(sqlx::Error::Io(lost()))) } else { Ok(()) };
        std::future::ready(result).boxed()
    }
}

/// Stages that never run out of time.
fn without_timeouts() -> Setup {
    Setup::default().change(|config| {
        for stage in &mut config.queue.stages {
            stage.timeout = Duration::from_hours(24);
        }
    })
}

#[on_each_database]
async fn an_ending_that_could_not_be_written_is_written_while_the_next_stage_runs(db: TestDb) {
    let chunk = Gate::default();
    let script = Script::new().then(Chunk, Step::Block(chunk.clone()));
    let faults = Arc::new(FailsOnce::default());
    let server = without_timeouts().work(script.clone()).faults(faults).start(&db).await;
    let alice = server.client("alice");
    let id = alice.upload("a.txt", b"a").await;
    chunk.reached().await;
    until("the end of the first stage is written", async || alice.status(&id).await == "chunking").await;
    chunk.open();
    server.idle().await;
    assert_eq!(alice.states(&id).await, WHOLE_WAY);
    assert_eq!(script.runs(), [(Extract, 1), (Chunk, 1), (Embed, 1)]);
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_file_whose_ending_was_written_without_an_answer_goes_on_at_its_stage(db: TestDb) {
    // Never opened: the worker cannot know that it still has the file, and gives it back.
    let script = Script::new().then(Chunk, Step::Block(Gate::default()));
    let faults = Arc::new(FailsOnce { loses_answer: true, ..FailsOnce::default() });
    let server = without_timeouts().work(script.clone()).faults(faults).start(&db).await;
    let alice = server.client("alice");
    let id = alice.upload("a.txt", b"a").await;
    until("the file is ready", async || alice.status(&id).await == "ready").await;
    let expected = [&WHOLE_WAY[..5], &["queued"], &WHOLE_WAY[4..]].concat();
    assert_eq!(alice.states(&id).await, expected);
    assert_eq!(script.runs(), [(Extract, 1), (Chunk, 1), (Chunk, 1), (Embed, 1)]);
    server.assert_audit_clean().await;
    server.stop().await;
}

/// Its first stage returns vectors of chunks that there are not, which the index refuses. Its second one never ends.
struct Unstorable;

impl Work for Unstorable {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        match job.stage {
            Extract => {
                let embedded = Embedded { model: "none".to_owned(), vectors: vec![vec![1.0]] };
                std::future::ready(Ok(Output::Embedded(embedded))).boxed()
            }
            _ => std::future::pending().boxed(),
        }
    }
}

#[on_each_database]
async fn a_worker_does_not_go_on_after_an_output_that_the_database_refuses(db: TestDb) {
    let setup = without_timeouts().work(Arc::new(Unstorable)).with("RETRY_MAX_ATTEMPTS", 1);
    let server = setup.start(&db).await;
    let alice = server.client("alice");
    let id = alice.upload("a.txt", b"a").await;
    until("the file has failed", async || alice.status(&id).await == "failed").await;
    let seen = alice.file(&id).await;
    assert_eq!((&seen["error"]["code"], &seen["error"]["stage"]), (&json!("DB_ERROR"), &json!("extract")));
    server.idle().await;
    server.assert_audit_clean().await;
    server.stop().await;
}
