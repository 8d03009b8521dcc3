//! Clients of others upload resumably over a network that breaks: tus-js-client, and Uppy in a real browser on another site.

use std::time::Duration;

use serde_json::Value;

use crate::support::network::{Network, Request};
use crate::support::node::NodeClient;
use crate::support::tus::PATH;
use crate::support::{Client, Script, Setup, TestDb, TestServer, on_each_database};

const SIZE: usize = 12 << 20;
const CHROMIUM: &str = "LANDFALL_TEST_CHROMIUM";

/// The bytes that the clients send: the numbers of their words.
fn numbers(size: usize) -> Vec<u8> {
    (0..u32::try_from(size / 4).expect("small enough")).flat_map(u32::to_be_bytes).collect()
}

fn is_patch(request: &Request) -> bool {
    request.method == "PATCH"
}

/// All that a client prints until it ends.
async fn lines(script: &str, arguments: &[&str], variables: &[(&str, String)]) -> Option<Vec<Value>> {
    let mut client = NodeClient::start(script, arguments, variables)?;
    let read = tokio::task::spawn_blocking(move || {
        let mut lines = Vec::new();
        while let Some(line) = client.line() {
            lines.push(line);
        }
        lines
    });
    Some(read.await.expect("the reader does not panic"))
}

/// Runs tus-js-client behind a network.
async fn run(alice: &Client, network: &Network, more: &[&str]) -> Option<Vec<Value>> {
    let (endpoint, size) = (format!("{}{PATH}", network.url()), SIZE.to_string());
    let arguments = [&[endpoint.as_str(), size.as_str()], more].concat();
    lines("tus.mjs", &arguments, &[("LANDFALL_TOKEN", alice.token.clone())]).await
}

/// The value that a line has under this name.
fn said(lines: &[Value], name: &str) -> Option<String> {
    lines.iter().find_map(|line| line[name].as_str().map(str::to_owned))
}

fn count(lines: &[Value], name: &str) -> usize {
    lines.iter().filter(|line| !line[name].is_null()).count()
}

async fn serve(db: &TestDb) -> (TestServer, Network) {
    let server = Setup::default().work(Script::new()).start(db).await;
    let network = Network::before(&server.base).await;
    (server, network)
}

/// The one file that was uploaded, which must have all bytes.
async fn assert_arrived(server: &TestServer, alice: &Client, size: usize) {
    server.idle().await;
    let files = alice.get("/api/v2/uploads/files").await.ok();
    let files = files["files"].as_array().expect("a list");
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!((&files[0]["status"], &files[0]["fileName"]), (&"ready".into(), &"numbers.bin".into()));
    let file = files[0]["fileId"].as_str().expect("an id");
    assert!(alice.download(file).await == numbers(size), "the bytes are those that were sent");
    assert_eq!(alice.quota().await.1, i64::try_from(size).expect("small enough"));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn tus_js_client_goes_on_after_its_connection_was_cut(db: TestDb) {
    let (server, network) = serve(&db).await;
    let alice = server.client("alice");
    network.cut_after_sending(5 << 20);
    let Some(lines) = run(&alice, &network, &[]).await else { return };
    assert!(said(&lines, "done").is_some(), "{lines:?}");
    assert_eq!((network.lost(), count(&lines, "retry")), (1, 1), "{lines:?}");
    let sent: usize = network.requests().iter().filter(|request| is_patch(request)).count();
    assert_eq!(sent, 2, "it went on and did not begin again");
    assert_arrived(&server, &alice, SIZE).await;
    server.stop().await;
}

#[on_each_database]
async fn tus_js_client_finds_its_file_when_the_last_answer_is_lost(db: TestDb) {
    let (server, network) = serve(&db).await;
    let alice = server.client("alice");
    network.lose_answer(1, is_patch);
    let Some(lines) = run(&alice, &network, &[]).await else { return };
    assert!(said(&lines, "done").is_some(), "{lines:?}");
    assert_eq!(network.lost(), 1);
    assert_arrived(&server, &alice, SIZE).await;
    server.stop().await;
}

#[on_each_database]
async fn tus_js_client_sends_parts_at_once_that_are_joined(db: TestDb) {
    let (server, network) = serve(&db).await;
    let alice = server.client("alice");
    network.cut_after_sending(5 << 20);
    let Some(lines) = run(&alice, &network, &["--parallel", "3"]).await else { return };
    assert!(said(&lines, "done").is_some(), "{lines:?}");
    assert_eq!(network.lost(), 1);
    assert_arrived(&server, &alice, SIZE).await;
    server.stop().await;
}

#[on_each_database]
async fn another_run_of_tus_js_client_goes_on_where_the_first_ended(db: TestDb) {
    let (server, network) = serve(&db).await;
    let alice = server.client("alice");
    network.delay(Duration::from_millis(2));
    let Some(lines) = run(&alice, &network, &["--stop-at", "4000000"]).await else { return };
    let url = said(&lines, "url").expect("it is known before the end");
    network.restore();
    // Also with another token of the same person.
    let renewed = server.client("alice");
    let Some(lines) = run(&renewed, &network, &["--resume", &url]).await else { return };
    assert!(said(&lines, "done").is_some(), "{lines:?}");
    assert_arrived(&server, &alice, SIZE).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uppy_on_another_site_goes_on_after_cuts_and_after_the_page_was_loaded_again() {
    let Ok(chromium) = std::env::var(CHROMIUM) else {
        eprintln!("not run: {CHROMIUM} is not set; `make test` installs chromium");
        return;
    };
    let db = TestDb::sqlite();
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("bound").port().to_string()
    };
    let setup = Setup::default().work(Script::new());
    let server = setup.with("CORS_ORIGINS", format!("http://localhost:{port}")).start(&db).await;
    let network = Network::before(&server.base).await;
    let alice = server.client("alice");
    // Slow enough that the page can be loaded again in the middle.
    network.delay(Duration::from_millis(10));
    network.cut_after_sending(3 << 20);
    let (endpoint, size) = (format!("{}{PATH}", network.url()), SIZE.to_string());
    let variables = [("LANDFALL_TOKEN", alice.token.clone()), ("CHROMIUM", chromium)];
    let Some(lines) = lines("uppy.mjs", &[&endpoint, &size, &port], &variables).await else { return };
    assert!(said(&lines, "done").is_some(), "{lines:?}");
    let reloaded = lines.iter().position(|line| !line["reloaded"].is_null()).expect("it was loaded again");
    let methods = |lines: &[Value]| -> Vec<String> {
        lines.iter().filter_map(|line| line["method"].as_str().map(str::to_owned)).collect()
    };
    assert!(methods(&lines[..reloaded]).contains(&"HEAD".to_owned()), "it went on after the cut: {lines:?}");
    let after = methods(&lines[reloaded..]);
    assert!(
        after.contains(&"HEAD".to_owned()) && !after.contains(&"POST".to_owned()),
        "and went on: {lines:?}"
    );
    assert_eq!(network.lost(), 1);
    assert_arrived(&server, &alice, SIZE).await;
    server.stop().await;
}
