//! Behind a real proxy with the settings in `deploy/`: uploads, events and addresses pass as they should.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::Method;
use tokio::io::AsyncReadExt;

use crate::support::proxy::{Kind, Proxy};
use crate::support::stream::{EVENTS, EventStream};
use crate::support::{Client, Setup, TestDb, TestServer, until};

const SIZE: usize = 8 << 20;

/// A server behind a proxy, and a client that comes from another address than the proxy does.
async fn behind(kind: Kind, db: &TestDb) -> Option<(TestServer, Proxy, Client)> {
    let mut proxy = Proxy::install(kind)?;
    let server = Setup::default()
        .with("PUBLIC_URL", proxy.url())
        .with("TRUSTED_PROXIES", "127.0.0.1")
        .with("AUTH_FAILURES_PER_MINUTE", 3)
        .with("MAX_CONNECTIONS_PER_ADDRESS", 5)
        .start(db)
        .await;
    proxy.start(&server.base).await;
    let client = from(&server, &proxy, "127.0.0.9");
    Some((server, proxy, client))
}

/// Alice at this address.
fn from(server: &TestServer, proxy: &Proxy, address: &str) -> Client {
    let http = proxy.certificate.client().local_address(address.parse::<std::net::IpAddr>().unwrap());
    Client { http: http.build().unwrap(), base: proxy.url(), token: server.client("alice").token }
}

async fn uploads_pass_as_they_arrive(kind: Kind) {
    let db = TestDb::sqlite();
    let Some((server, proxy, alice)) = behind(kind, &db).await else { return };
    let ticket = alice.register(None, "large.txt", SIZE).await;
    let url = ticket["uploadUrl"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&proxy.url()), "{url}");
    let piece = Bytes::from(vec![b'a'; SIZE / 2]);
    let (send, receive) = tokio::sync::oneshot::channel::<()>();
    let second = piece.clone();
    let rest = stream::once(async move {
        receive.await.unwrap();
        Ok::<_, std::io::Error>(second)
    });
    let body = stream::once(async move { Ok(piece) }).chain(rest);
    let request = alice.http.put(&url).header("Content-Length", SIZE).body(reqwest::Body::wrap_stream(body));
    let sending = tokio::spawn({
        let alice = alice.clone();
        async move { alice.send(request).await }
    });
    let incoming = server.app.config.storage.place.folder().unwrap().join("incoming");
    until("half of it has arrived while the client still has the other half", async || {
        let mut files = std::fs::read_dir(&incoming).unwrap().flatten();
        // What is in the buffers of the connections may still be on its way.
        files.any(|file| file.metadata().is_ok_and(|file| file.len() > SIZE as u64 / 4))
    })
    .await;
    send.send(()).unwrap();
    sending.await.unwrap().ok();
    assert_eq!(alice.status(ticket["fileId"].as_str().unwrap()).await, "uploaded");
    server.stop().await;
}

async fn events_pass(kind: Kind) {
    let db = TestDb::sqlite();
    let Some((server, _proxy, alice)) = behind(kind, &db).await else { return };
    let mut events = EventStream::open(&alice, "").await;
    let request = alice
        .request(Method::GET, EVENTS)
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 101);
    let mut socket = response.upgrade().await.unwrap();
    let batch = alice.open_batch(1).await;
    let file = alice.upload_in(&batch, "a.txt", b"Some words about the sea.").await;
    let seen = events.up_to(|event| event["type"] == "batch:completed").await;
    assert!(seen.iter().any(|event| event["data"]["fileId"] == file.as_str()), "{seen:?}");
    let mut text = String::new();
    while !text.contains("batch:completed") {
        let mut piece = [0; 4096];
        let count = socket.read(&mut piece).await.unwrap();
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    drop((events, socket));
    server.stop().await;
}

async fn the_clients_address_is_known_and_cannot_be_claimed(kind: Kind) {
    let db = TestDb::sqlite();
    let Some((server, proxy, alice)) = behind(kind, &db).await else { return };
    let quota = "/api/v2/uploads/quota";
    let wrong = async |client: &Client, claimed: &str| {
        let request = client.http.get(format!("{}{quota}", proxy.url())).bearer_auth("wrong");
        let request =
            request.header("X-Forwarded-For", claimed).header("Forwarded", format!("for={claimed}"));
        client.send(request).await.status
    };
    for (number, expected) in [401, 401, 401, 429, 429].into_iter().enumerate() {
        assert_eq!(wrong(&alice, &format!("192.0.2.{number}")).await, expected);
    }
    // The wrong tokens of another neither shut out its neighbours nor those who have a valid token.
    let bob = from(&server, &proxy, "127.0.0.10");
    assert_eq!(wrong(&bob, "127.0.0.9").await, 401);
    alice.get(quota).await.ok();

    // So many streams that the address may have no further request in progress. Another address may.
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(EventStream::open(&alice, "").await);
    }
    alice.get(quota).await.refused(429, "TOO_MANY_CONNECTIONS");
    bob.get(quota).await.ok();
    drop(streams);
    until("its streams have ended", async || alice.get(quota).await.status == 200).await;

    let page = alice.http.get(proxy.url()).send().await.unwrap();
    assert_eq!(page.headers()["strict-transport-security"], "max-age=63072000");
    let metrics = alice.http.get(format!("{}/metrics", proxy.url())).send().await.unwrap();
    assert_eq!(metrics.status(), 404);
    // A proxy that passes them on, and adds no header, gets none either.
    let direct =
        landfall_server::outbound::client().get(format!("{}/metrics", server.base)).send().await.unwrap();
    assert_eq!(direct.status(), 401, "there is a proxy in front of this server");
    server.stop().await;
}

async fn plain_http_is_redirected(kind: Kind) {
    let db = TestDb::sqlite();
    let Some((server, proxy, _alice)) = behind(kind, &db).await else { return };
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let plain = http.get(format!("http://localhost:{}/a?b=c", proxy.plain_port)).send().await.unwrap();
    assert_eq!(plain.status(), 308);
    assert!(plain.headers()["location"].to_str().unwrap().starts_with("https://localhost"));
    server.stop().await;
}

macro_rules! with_each_proxy {
    ($($name:ident)*) => {
        mod nginx {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(super::Kind::Nginx).await; })*
        }

        mod caddy {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(super::Kind::Caddy).await; })*
        }
    };
}

with_each_proxy! {
    uploads_pass_as_they_arrive
    events_pass
    the_clients_address_is_known_and_cannot_be_claimed
    plain_http_is_redirected
}
