//! The server serves `https` itself: which versions, which certificate, and what happens when its files change.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use landfall_server::config::{Config, TlsFiles};
use landfall_server::http::{self, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::support::certificate::Certificate;
use crate::support::process::Process;
use crate::support::{Client, Setup, TestDb, TestServer, until};

/// A server with its own listener for `https`.
struct Secure {
    server: TestServer,
    port: u16,
    stop: CancellationToken,
}

impl Secure {
    async fn start(db: &TestDb, files: &Certificate, change: crate::support::Change) -> Self {
        let server = Setup::default().with("ROLE", "api").change(change).start(db).await;
        let tls = Tls::load(&files_of(files)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = CancellationToken::new();
        let (app, until, watched) = (server.app.clone(), stop.clone(), tls.clone());
        tokio::spawn(async move {
            http::serve_with(listener, http::router(app.clone()), &app.config.http, Some(tls), until).await;
        });
        let until = stop.clone();
        tokio::spawn(
            async move { until.run_until_cancelled(watched.watch(Duration::from_millis(10))).await },
        );
        Self { server, port, stop }
    }

    fn client(&self, trusted: &Certificate) -> Client {
        let http = trusted.client().build().unwrap();
        Client { http, base: format!("https://localhost:{}", self.port), ..self.server.client("alice") }
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn files_of(pair: &Certificate) -> TlsFiles {
    TlsFiles { cert: pair.cert.clone(), key: pair.key.clone() }
}

fn nothing(_: &mut Config) {}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_trusts_the_certificate_uploads_by_https() {
    let db = TestDb::sqlite();
    let pair = Certificate::make(db.folder.path(), "tls");
    let secure = Secure::start(&db, &pair, nothing).await;
    let alice = secure.client(&pair);
    let ticket = alice.register(None, "a.txt", 4).await;
    let url = ticket["uploadUrl"].as_str().unwrap();
    assert!(url.starts_with(&format!("https://localhost:{}/", secure.port)), "{url}");
    alice.put(url, "word").await.ok();
    alice.confirm(ticket["fileId"].as_str().unwrap()).await.ok();
    let page = alice.http.get(&alice.base).send().await.unwrap();
    assert_eq!(page.headers()["strict-transport-security"], "max-age=63072000");
    let stranger = Certificate::make(db.folder.path(), "stranger");
    let refused = secure.client(&stranger).http.get(&alice.base).send().await.unwrap_err();
    assert!(refused.is_connect(), "{refused:?}");
}

/// What openssl says about a connection with these options.
fn s_client(port: u16, trusted: &Path, options: &[&str]) -> (bool, String) {
    let output = Command::new("openssl")
        .args([
            "s_client",
            "-connect",
            &format!("localhost:{port}"),
            "-servername",
            "localhost",
            "-verify_return_error",
        ])
        .arg("-CAfile")
        .arg(trusted)
        .args(options)
        .stdin(Stdio::null())
        .output()
        .expect("openssl is installed");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_1_2_and_later_are_spoken_and_nothing_older() {
    let db = TestDb::sqlite();
    let pair = Certificate::make(db.folder.path(), "tls");
    let secure = Secure::start(&db, &pair, nothing).await;
    let port = secure.port;
    tokio::task::spawn_blocking(move || {
        for (version, name) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
            let (good, said) = s_client(port, &pair.cert, &[version, "-alpn", "h2,http/1.1"]);
            assert!(good && said.contains(name) && said.contains("ALPN protocol: http/1.1"), "{said}");
        }
        let (good, said) = s_client(port, &pair.cert, &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]);
        assert!(!good, "{said}");
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_is_used_without_a_restart_and_open_connections_stay() {
    let db = TestDb::sqlite();
    let in_use = Certificate::make(db.folder.path(), "in-use");
    let (old, new) = (Certificate::make(db.folder.path(), "old"), Certificate::make(db.folder.path(), "new"));
    old.replace(&in_use);
    let secure = Secure::start(&db, &in_use, nothing).await;
    let (before, after) = (secure.client(&old), secure.client(&new));
    before.get("/healthz").await.ok();
    assert!(after.http.get(format!("{}/healthz", after.base)).send().await.is_err());
    // A pair that cannot be used changes nothing.
    std::fs::write(&in_use.key, "no key").unwrap();
    new.replace(&in_use);
    let accepted = async || after.http.get(format!("{}/healthz", after.base)).send().await.is_ok();
    until("the new certificate is in use", accepted).await;
    // Its connection is still open: a new one would not have the certificate that this client trusts.
    before.get("/healthz").await.ok();
    let again = secure.client(&old);
    assert!(again.http.get(format!("{}/healthz", again.base)).send().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_shakes_hands_is_disconnected() {
    let db = TestDb::sqlite();
    let pair = Certificate::make(db.folder.path(), "tls");
    let secure =
        Secure::start(&db, &pair, |config| config.http.header_timeout = Duration::from_millis(50)).await;
    let mut socket = TcpStream::connect(("127.0.0.1", secure.port)).await.unwrap();
    let mut all = Vec::new();
    socket.read_to_end(&mut all).await.unwrap();
    assert!(all.is_empty());
    // So is one that speaks no TLS.
    let mut socket = TcpStream::connect(("127.0.0.1", secure.port)).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    drop(socket.read_to_end(&mut all).await);
    assert!(!all.starts_with(b"HTTP"), "{all:?}");
}

#[test]
fn a_pair_that_cannot_be_used_stops_the_start_and_is_named() {
    let db = TestDb::sqlite();
    let folder = db.folder.path();
    let (pair, other) = (Certificate::make(folder, "tls"), Certificate::make(folder, "other"));
    let rubbish = folder.join("rubbish");
    std::fs::write(&rubbish, "rubbish").unwrap();
    for (cert, key, said) in [
        (&pair.cert, &other.key, "does not belong"),
        (&rubbish, &pair.key, "rubbish has no certificate"),
        (&pair.cert, &rubbish, "private key"),
        (&folder.join("missing"), &pair.key, "missing cannot be read"),
    ] {
        let error = Tls::load(&TlsFiles { cert: cert.clone(), key: key.clone() }).err().expect("refused");
        assert!(error.contains(said), "{error}");
        let mut command = Process::command(&db);
        command.env("TLS_CERT", cert).env("TLS_KEY", key).env("PORT", "0").arg("serve");
        let ended = command.stderr(Stdio::piped()).output().unwrap();
        let error = String::from_utf8(ended.stderr).unwrap();
        assert!(
            ended.status.code() == Some(2) && error.contains("TLS_CERT") && error.contains(said),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_talks_to_it() {
    let db = TestDb::sqlite();
    let pair = Certificate::make(db.folder.path(), "tls");
    let (cert, key) = (pair.cert.to_str().unwrap(), pair.key.to_str().unwrap());
    let process = Process::start(&db, &[("TLS_CERT", cert), ("TLS_KEY", key)]);
    let server = process.base.replace("127.0.0.1", "localhost");
    assert!(server.starts_with("https://"), "{server}");
    std::fs::write(db.folder.path().join("a.txt"), "Some words about the sea.").unwrap();
    let run = |trusted: &[(&str, &str)], arguments: &[&str]| {
        let mut command = Process::command(&db);
        command.env("LANDFALL_URL", &server).envs(trusted.iter().copied()).args(arguments);
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said)
    };
    let (good, said) = run(&[("SSL_CERT_FILE", cert)], &["upload", "a.txt"]);
    assert!(good, "{said}");
    let (good, said) = run(&[("SSL_CERT_FILE", cert)], &["files"]);
    assert!(good && said.contains("a.txt"), "{said}");
    let (good, said) = run(&[], &["files"]);
    assert!(!good && said.contains("does not trust") && said.contains("SSL_CERT_FILE"), "{said}");
}
