//! The whole way of small files over HTTP: each is registered, sent, confirmed, and its events are read until it is ready.
//! The stages do nothing, so that the requests are measured and not the reading of documents.
//!
//! The clients are a separate process, so that the CPU time of this one is that of the server.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::StreamExt;
use landfall_server::app::{App, Replacements};
use landfall_server::auth::TokenClaims;
use landfall_server::config::{Config, Variables};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::databases::{Fresh, Kind, postmaster};
use super::figures::Figures;
use super::measure::{Stopwatch, cpu_of_family, milliseconds, peak_memory, quantile};
use super::serving::Serving;
use super::worker::NoWork;

/// Set for the client process: the address of the server and a token.
pub const CLIENTS: &str = "BENCH_INTAKE_CLIENTS";
const CONNECTIONS: usize = 16;
const FILES: usize = 4_000;
/// With so many files in the table PostgreSQL plans as it does from then on. It reads a table of a few hundred rows as a whole.
const WARM_UP: usize = 4_000;
/// Register, send, confirm.
const REQUESTS: usize = 3;
const SIZE: usize = 1_024;
const BATCHES: usize = 30;
const FILES_OF_BATCH: usize = 1_000;

pub async fn run(kind: Kind) -> anyhow::Result<Figures> {
    let fresh = Fresh::create(kind, "intake").await?;
    let mut variables = Variables::default();
    variables.set("DATABASE_URL", fresh.url.clone());
    variables.set("DATA_DIR", fresh.path().display().to_string());
    let replacements = Replacements { work: Some(NoWork::new()), ..Replacements::default() };
    let app = App::start(Config::from_variables(variables)?, replacements).await?;
    let serving = Serving::start(&app).await?;
    let base = format!("http://{}", serving.address);
    let exp = (app.clock.now() + chrono::TimeDelta::days(1)).timestamp();
    let claims = TokenClaims { sub: "bench".to_owned(), tenant: Some("bench".to_owned()), role: None, exp };
    let token = app.auth.issue(&claims)?;

    let mut figures = Figures::default();
    let postmaster = postmaster(&app.db).await?;
    let mut clients = Clients::start(&base, &token)?;
    clients.ask(&Task::Files(WARM_UP)).await?;
    if let Some(pool) = app.db.postgres() {
        // PostgreSQL does it by itself within a minute after the first files. Until then it plans for empty tables.
        sqlx::raw_sql("ANALYZE").execute(pool).await?;
    }
    let server_before = postmaster.map(cpu_of_family);
    let watch = Stopwatch::start();
    clients.ask(&Task::Files(FILES)).await?;
    let (elapsed, cpu) = (watch.elapsed(), watch.cpu());
    let count = FILES as f64;
    figures.add("intake: requests/s", count * REQUESTS as f64 / elapsed.as_secs_f64());
    figures.add("intake: CPU ms per file", milliseconds(cpu) / count);
    if let (Some(postmaster), Some(before)) = (postmaster, server_before) {
        let server = cpu_of_family(postmaster).saturating_sub(before);
        figures.add("intake: server's CPU ms per file", milliseconds(server) / count);
    }
    for (names, what) in [(Names::Own, ""), (Names::SameAgain, " with the names of the batches before")] {
        let batches = clients.ask(&Task::Batches(BATCHES, names)).await?;
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            let what = format!("intake: registration of {FILES_OF_BATCH} files{what}, {name} ms");
            figures.add(what, quantile(&batches, share));
        }
    }
    figures.add("intake: peak memory, MiB", peak_memory());
    clients.end().await?;
    serving.stop().await?;
    fresh.remove(app.db.clone()).await?;
    Ok(figures)
}

/// What the server's process asks of the clients' process.
#[derive(Debug, Serialize, Deserialize)]
enum Task {
    /// So many files, until all of them are ready.
    Files(usize),
    /// So many requests, each of which registers the files of a batch. Their durations in milliseconds are returned.
    Batches(usize, Names),
}

/// How the files of a batch are named. The indexes by name have names that follow each other in few pages, and names that are
/// spread among those of other batches in a page for each.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Names {
    /// As in a folder: they follow each other, and no other batch has them.
    Own,
    /// Each batch has the same names.
    SameAgain,
}

impl Names {
    fn files(self, batch: usize) -> Vec<Value> {
        let file = |number| {
            let name = match self {
                Self::Own => format!("scan-{batch}-{number}.txt"),
                Self::SameAgain => format!("report-{number}.txt"),
            };
            json!({ "fileName": name, "fileSize": SIZE })
        };
        (0..FILES_OF_BATCH).map(file).collect()
    }
}

/// The client process, seen from the server.
struct Clients {
    child: Child,
    input: ChildStdin,
    lines: tokio::io::Lines<BufReader<ChildStdout>>,
}

impl Clients {
    fn start(base: &str, token: &str) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .env(CLIENTS, format!("{base} {token}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().context("piped")?;
        let lines = BufReader::new(child.stdout.take().context("piped")?).lines();
        Ok(Self { child, input, lines })
    }

    async fn ask(&mut self, task: &Task) -> anyhow::Result<Vec<f64>> {
        self.input.write_all(format!("{}\n", serde_json::to_string(task)?).as_bytes()).await?;
        let line = self.lines.next_line().await?.context("the clients ended")?;
        Ok(serde_json::from_str(&line)?)
    }

    async fn end(mut self) -> anyhow::Result<()> {
        drop(self.input);
        anyhow::ensure!(self.child.wait().await?.success(), "the clients failed");
        Ok(())
    }
}

/// The client process itself.
pub async fn clients(server: &str) -> anyhow::Result<()> {
    let (base, token) = server.split_once(' ').context("an address and a token")?;
    let client = Arc::new(Client {
        http: landfall_server::outbound::client(),
        base: base.to_owned(),
        token: token.to_owned(),
        ready: tokio::sync::watch::Sender::new(0),
    });
    // Open before the first file is registered, so that no event is missed.
    let events = tokio::spawn(client.clone().count_ready(client.events().await?));
    let mut line = String::new();
    while tokio::task::block_in_place(|| std::io::stdin().read_line(&mut line))? > 0 {
        let answer = match serde_json::from_str(&line)? {
            Task::Files(files) => client.clone().files(files).await?,
            Task::Batches(batches, names) => client.batches(batches, names).await?,
        };
        println!("{}", serde_json::to_string(&answer)?);
        line.clear();
    }
    events.abort();
    Ok(())
}

struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
    /// How many files were ready, by the stream of events.
    ready: tokio::sync::watch::Sender<usize>,
}

impl Client {
    async fn files(self: Arc<Self>, files: usize) -> anyhow::Result<Vec<f64>> {
        let mut ready = self.ready.subscribe();
        let before = *ready.borrow_and_update();
        let left = Arc::new(AtomicUsize::new(files));
        let uploads: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let (client, left) = (self.clone(), left.clone());
                tokio::spawn(async move {
                    while left
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                        .is_ok()
                    {
                        client.upload().await?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        for upload in uploads {
            upload.await??;
        }
        let all = ready.wait_for(|ready| *ready >= before + files);
        tokio::time::timeout(Duration::from_mins(1), all).await.context("not all files became ready")??;
        Ok(Vec::new())
    }

    async fn upload(&self) -> anyhow::Result<()> {
        let ticket = self.post("files/init", &json!({ "fileName": "hello.txt", "fileSize": SIZE })).await?;
        let url = ticket["uploadUrl"].as_str().context("a URL")?;
        let sent = self.http.put(url).body(vec![b'a'; SIZE]).send().await?.error_for_status()?;
        sent.bytes().await?;
        let file = ticket["fileId"].as_str().context("an id")?;
        self.post(&format!("files/{file}/confirm"), &json!({})).await?;
        Ok(())
    }

    async fn batches(&self, batches: usize, names: Names) -> anyhow::Result<Vec<f64>> {
        let mut durations = Vec::new();
        for number in 0..batches {
            let files = names.files(number);
            let batch = self.post("batches", &json!({ "fileCount": FILES_OF_BATCH })).await?;
            let path = format!("batches/{}/upload-urls", batch["batchId"].as_str().context("an id")?);
            let began = Instant::now();
            self.post(&path, &json!(files)).await?;
            durations.push(milliseconds(began.elapsed()));
        }
        Ok(durations)
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let url = format!("{}/api/v2/uploads/{path}", self.base);
        let response = self.http.post(url).bearer_auth(&self.token).json(body).send().await?;
        let status = response.status();
        let body = response.bytes().await?;
        anyhow::ensure!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&body));
        Ok(serde_json::from_slice(&body)?)
    }

    async fn events(&self) -> anyhow::Result<reqwest::Response> {
        let url = format!("{}/api/v2/uploads/events", self.base);
        let request = self.http.get(url).bearer_auth(&self.token).header("Accept", "text/event-stream");
        Ok(request.send().await?.error_for_status()?)
    }

    /// Reads the user's events and counts the files that became ready.
    async fn count_ready(self: Arc<Self>, events: reqwest::Response) -> anyhow::Result<()> {
        let mut pieces = events.bytes_stream();
        let mut text = Vec::new();
        while let Some(piece) = pieces.next().await {
            text.extend_from_slice(&piece?);
            let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
            let lines: Vec<u8> = text.drain(..end).collect();
            let ready = std::str::from_utf8(&lines)?.matches(r#""to":"ready""#).count();
            if ready > 0 {
                self.ready.send_modify(|all| *all += ready);
            }
        }
        Ok(())
    }
}
