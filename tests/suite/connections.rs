//! What clients can do with connections: none takes those of others, and none hides how the server is.

use std::net::SocketAddr;
use std::time::Duration;

use landfall_server::config::Config;
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::stream::{EVENTS, EventStream};
use crate::support::{Client, Setup, TestDb, TestServer, until};

const SLOTS: usize = 30;
/// More than the buffers of a connection hold.
const LARGE: &str = "/api/docs/swagger-ui-bundle.js";
const SMALL: &str = "/api/openapi.json";

async fn full_server(db: &TestDb, write_timeout: Duration) -> TestServer {
    Setup::default()
        .with("ROLE", "api")
        .with("MAX_CONNECTIONS", SLOTS)
        .with("WRITE_TIMEOUT_MS", write_timeout.as_millis())
        .start(db)
        .await
}

fn address(server: &TestServer) -> SocketAddr {
    server.base.strip_prefix("http://").unwrap().parse().unwrap()
}

/// A connection that asks for much and reads nothing.
async fn greedy(server: &TestServer) -> TcpStream {
    let mut socket = TcpStream::connect(address(server)).await.unwrap();
    let request = format!("GET {LARGE} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    socket.write_all(request.repeat(50).as_bytes()).await.unwrap();
    socket
}

/// A client without a token, with a new connection for each request.
fn stranger(server: &TestServer) -> Client {
    let http = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
    Client { http, token: String::new(), ..server.client("stranger") }
}

async fn assert_monitored(client: &Client) {
    client.get("/healthz").await.ok();
    assert_eq!(client.get("/readyz").await.status, 200);
    let metrics = client.http.get(format!("{}/metrics", client.base)).send().await.unwrap();
    assert_eq!(metrics.status(), 200);
    assert!(metrics.text().await.unwrap().contains("landfall_connections_refused_total"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_metrics_answer_while_clients_that_read_nothing_have_all_slots() {
    let db = TestDb::sqlite();
    let server = full_server(&db, Duration::from_hours(1)).await;
    let client = stranger(&server);
    until("it is ready", async || client.get("/readyz").await.status == 200).await;
    let mut attackers = Vec::new();
    for _ in 0..SLOTS {
        attackers.push(greedy(&server).await);
    }
    for _ in 0..5 {
        let refused = client.send(client.request(Method::GET, SMALL)).await;
        assert_eq!(refused.refused(503, "SERVER_BUSY")["retryable"], true);
        assert_monitored(&client).await;
    }
    // Connections that fill the reserve and say nothing make way.
    for _ in 0..100 {
        attackers.push(TcpStream::connect(address(&server)).await.unwrap());
    }
    assert_monitored(&client).await;
    attackers.clear();
    until("a slot is free", async || client.get(SMALL).await.status == 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_nothing_loses_its_connection_and_others_get_its_slot() {
    let db = TestDb::sqlite();
    let server = full_server(&db, Duration::from_millis(200)).await;
    let client = stranger(&server);
    let mut attackers = Vec::new();
    for _ in 0..SLOTS {
        attackers.push(greedy(&server).await);
    }
    until("the slots are free again", async || client.get(SMALL).await.status == 200).await;
    assert_monitored(&client).await;
    for mut attacker in attackers {
        let mut all = Vec::new();
        // What was sent is still there to read, and then comes the end, which may be a reset.
        let ended = attacker.read_to_end(&mut all).await;
        assert!(ended.is_err() || all.len() < 50 * 1_000_000, "the connection was closed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_slowly_gets_everything() {
    let db = TestDb::sqlite();
    let server = full_server(&db, Duration::from_secs(30)).await;
    let mut socket = TcpStream::connect(address(&server)).await.unwrap();
    let request = format!("GET {LARGE} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let (mut read, mut piece) = (0, [0; 4096]);
    loop {
        tokio::task::yield_now().await;
        match socket.read(&mut piece).await.unwrap() {
            0 => break,
            count => read += count,
        }
    }
    let whole = stranger(&server).http.get(format!("{}{LARGE}", server.base)).send().await.unwrap();
    assert!(read > whole.bytes().await.unwrap().len());
}

/// A connection from another address of this machine.
async fn connect_from(from: &str, server: &TestServer) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
    socket.connect(address(server)).await.unwrap()
}

/// Whether a request on the connection gets a response.
async fn answers(socket: &mut TcpStream) -> bool {
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut start = [0; 12];
    socket.write_all(request).await.is_ok()
        && socket.read_exact(&mut start).await.is_ok()
        && start.starts_with(b"HTTP/1.1 200")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_has_a_limited_number_of_connections_and_takes_none_of_others() {
    let db = TestDb::sqlite();
    let setup = Setup::default().with("ROLE", "api").with("MAX_CONNECTIONS_PER_ADDRESS", 3);
    let server = setup.with("MAX_CONNECTIONS", 4).start(&db).await;
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut socket = connect_from("127.0.0.9", &server).await;
        assert!(answers(&mut socket).await);
        open.push(socket);
    }
    for _ in 0..20 {
        assert!(!answers(&mut connect_from("127.0.0.9", &server).await).await, "it has three already");
    }
    let mut other = connect_from("127.0.0.10", &server).await;
    assert!(answers(&mut other).await);
    let token = server.client("alice").token;
    let request = format!(
        "GET /api/v2/uploads/quota HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    other.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    while !text.contains("\r\n\r\n{\"tenantId\"") {
        let mut piece = [0; 4096];
        let count = other.read(&mut piece).await.unwrap();
        assert!(count > 0, "{text}");
        text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
    }
    open.pop();
    until("one that ended makes way", async || answers(&mut connect_from("127.0.0.9", &server).await).await)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_declared_proxy_the_requests_of_each_client_are_limited() {
    let db = TestDb::sqlite();
    let setup = Setup::default().with("ROLE", "api").with("MAX_CONNECTIONS_PER_ADDRESS", 2);
    let server = setup.with("TRUSTED_PROXIES", "127.0.0.1").start(&db).await;
    let alice = server.client("alice");
    let from = |client: &str, path: &str| alice.request(Method::GET, path).header("X-Forwarded-For", client);
    let mut streams = Vec::new();
    for client in ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        // Four connections of the proxy: it has no limit itself.
        streams.push(EventStream::begin(from(client, EVENTS)).await);
    }
    let quota = "/api/v2/uploads/quota";
    alice.send(from("192.0.2.1", quota)).await.refused(429, "TOO_MANY_CONNECTIONS");
    alice.send(from("192.0.2.2", quota)).await.ok();
    assert_eq!(alice.send(from("192.0.2.1", "/healthz")).await.status, 200);
    drop(streams);
    until("its streams have ended", async || alice.send(from("192.0.2.1", quota)).await.status == 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_never_sends_a_request_is_closed() {
    let db = TestDb::sqlite();
    let short: crate::support::Change =
        |config: &mut Config| config.http.header_timeout = Duration::from_millis(50);
    let server = Setup::default().with("ROLE", "api").change(short).start(&db).await;
    let mut socket = TcpStream::connect(address(&server)).await.unwrap();
    let mut all = Vec::new();
    socket.read_to_end(&mut all).await.unwrap();
}
