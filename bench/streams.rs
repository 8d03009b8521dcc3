//! A thousand open event streams: what one costs, and how soon an event arrives.
//!
//! The clients are a separate process, so that only the memory of the server is measured. Each event is for one user,
//! who has ten streams. In the second round there is one more client, an administrator who gets all events and never
//! reads them.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use landfall_core::clock::Clock;
use landfall_server::app::{App, Replacements};
use landfall_server::auth::{TokenClaims, sign};
use landfall_server::config::{Config, Variables};
use landfall_store::Error;
use landfall_store::{Tx, Write, args};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

use super::databases::{Fresh, Kind};
use super::figures::Figures;
use super::measure::{memory, quantile};
use super::serving::Serving;
use super::worker::NoWork;

/// Set for the client process: the address of the server.
pub const CLIENTS: &str = "BENCH_CLIENTS";
const SECRET: &str = "a secret of the benchmark's own, long enough";
const STREAMS: usize = 1_000;
const USERS: usize = 100;
const EVENTS: usize = 600;
const BETWEEN_EVENTS: Duration = Duration::from_millis(15);
/// Bytes in each event. All events together exceed what the kernel buffers for a client that does not read.
const SIZE: usize = 16 * 1024;

pub async fn run(kind: Kind) -> anyhow::Result<Figures> {
    let fresh = Fresh::create(kind, "streams").await?;
    let mut variables = Variables::default();
    variables.set("DATABASE_URL", fresh.url.clone());
    variables.set("DATA_DIR", fresh.path().display().to_string());
    variables.set("JWT_SECRET", SECRET);
    // All streams come from this machine.
    variables.set("MAX_CONNECTIONS_PER_ADDRESS", "2000");
    let replacements = Replacements { work: Some(NoWork::new()), ..Replacements::default() };
    let app = App::start(Config::from_variables(variables)?, replacements).await?;
    let serving = Serving::start(&app).await?;
    let address = serving.address.clone();

    let before = memory();
    let mut clients = Clients::start(&address).await?;
    let per_stream = (memory() - before) * 1024.0 / STREAMS as f64;
    let mut figures = Figures::default();
    let what = |figure: &str| format!("{STREAMS} event streams: {figure}");
    figures.add(what("KiB for each"), per_stream);

    for (round, name) in ["", ", beside a client that never reads"].into_iter().enumerate() {
        let lazy = if round == 0 { None } else { Some(never_read(&address).await?) };
        let mut committed = HashMap::new();
        for number in 0..EVENTS {
            let user = format!("user-{}", number % USERS);
            let id = app.db.write(OneEvent { user }).await?;
            committed.insert(id, now());
            tokio::time::sleep(BETWEEN_EVENTS).await;
        }
        let received = clients.received(committed.len() * STREAMS / USERS).await?;
        let delays: Vec<f64> = received
            .into_iter()
            .filter_map(|(id, at)| committed.get(&id).map(|committed| (at - committed).max(0) as f64 / 1e6))
            .collect();
        anyhow::ensure!(delays.len() == EVENTS * STREAMS / USERS, "{} events arrived", delays.len());
        for (quantity, share) in [("p50", 0.5), ("p99", 0.99)] {
            figures.add(what(&format!("commit to client{name}, {quantity} ms")), quantile(&delays, share));
        }
        drop(lazy);
    }
    clients.end().await?;
    serving.stop().await?;
    fresh.remove(app.db.clone()).await?;
    Ok(figures)
}

struct OneEvent {
    user: String,
}

impl Write for OneEvent {
    type Output = i64;

    async fn apply(&self, tx: &mut Tx) -> Result<i64, Error> {
        let data = serde_json::json!({ "reason": "x".repeat(SIZE) });
        tx.number(
            "INSERT INTO events (at, kind, tenant_id, user_id, data) VALUES ($1, 'file:cleaned-up', $2, $2, $3) RETURNING id",
            args![Clock::System.now(), self.user.clone(), data],
        )
        .await
    }
}

/// Nanoseconds, comparable across all processes of this machine.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    i64::try_from(now.as_nanos()).expect("it is earlier than 2262")
}

/// The client process, seen from the server.
struct Clients {
    child: Child,
    input: ChildStdin,
    lines: tokio::io::Lines<BufReader<ChildStdout>>,
}

impl Clients {
    /// Returns when all streams are open.
    async fn start(address: &str) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .env(CLIENTS, address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().context("piped")?;
        let mut lines = BufReader::new(child.stdout.take().context("piped")?).lines();
        anyhow::ensure!(lines.next_line().await?.as_deref() == Some("open"), "the streams were not opened");
        Ok(Self { child, input, lines })
    }

    /// So many events that arrived since the last call, with their ids and times.
    async fn received(&mut self, events: usize) -> anyhow::Result<Vec<(i64, i64)>> {
        self.input.write_all(format!("{events}\n").as_bytes()).await?;
        let line = self.lines.next_line().await?.context("the clients ended")?;
        Ok(serde_json::from_str(&line)?)
    }

    async fn end(mut self) -> anyhow::Result<()> {
        drop(self.input);
        self.child.wait().await?;
        Ok(())
    }
}

/// The client process itself.
pub async fn clients(address: &str) -> anyhow::Result<()> {
    let (sender, mut received) = mpsc::unbounded_channel();
    for number in 0..STREAMS {
        let token = token(&format!("user-{}", number % USERS), None)?;
        let stream = ask(TcpStream::connect(address).await?, address, &token, "").await?;
        tokio::spawn(listen(stream, sender.clone()));
    }
    // Each stream says first where it begins.
    for _ in 0..STREAMS {
        received.recv().await.context("a stream ended")?;
    }
    println!("open");
    let mut line = String::new();
    // The other tasks keep listening while this one waits for the next command.
    while tokio::task::block_in_place(|| std::io::stdin().read_line(&mut line))? > 0 {
        let mut got: Vec<(i64, i64)> = Vec::new();
        for _ in 0..line.trim().parse::<usize>()? {
            got.push(received.recv().await.context("a stream ended")?);
        }
        println!("{}", serde_json::to_string(&got)?);
        line.clear();
    }
    Ok(())
}

fn token(user: &str, role: Option<&str>) -> anyhow::Result<String> {
    let exp = (Clock::System.now() + chrono::TimeDelta::days(1)).timestamp();
    let claims = TokenClaims {
        sub: user.to_owned(),
        tenant: Some(user.to_owned()),
        role: role.map(str::to_owned),
        exp,
    };
    Ok(sign(SECRET.as_bytes(), &claims)?)
}

async fn ask(mut stream: TcpStream, address: &str, token: &str, query: &str) -> anyhow::Result<TcpStream> {
    let request = format!(
        "GET /api/v2/uploads/events{query} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Accept: text/event-stream\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Records when each event arrived, by the line with its id.
async fn listen(mut stream: TcpStream, sender: mpsc::UnboundedSender<(i64, i64)>) -> anyhow::Result<()> {
    let (mut text, mut piece) = (Vec::new(), vec![0; 32 * 1024]);
    loop {
        let read = stream.read(&mut piece).await?;
        anyhow::ensure!(read > 0, "the server ended it");
        let at = now();
        text.extend_from_slice(&piece[..read]);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            if let Some(id) = std::str::from_utf8(&line).ok().and_then(|line| line.strip_prefix("id: ")) {
                sender.send((id.trim().parse()?, at))?;
            }
        }
    }
}

async fn never_read(address: &str) -> anyhow::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4_096)?;
    let stream = socket.connect(address.parse()?).await?;
    ask(stream, address, &token("root", Some("admin"))?, "?scope=all").await
}
