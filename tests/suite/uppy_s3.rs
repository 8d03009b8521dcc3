//! Uppy's S3 plugin, in a real browser on another site, sends a large file in parts straight to the object store.

use crate::support::network::Request;
use crate::support::node::NodeClient;
use crate::support::object_stores::ObjectStore;
use crate::support::{Script, Setup, TestDb, on_each_database};

const SIZE: usize = 12 << 20;
const CHROMIUM: &str = "LANDFALL_TEST_CHROMIUM";

fn is_part(request: &Request) -> bool {
    request.method == "PUT" && request.target.contains("partNumber=")
}

#[on_each_database]
async fn uppy_sends_parts_to_the_store_over_a_network_that_is_cut(db: TestDb) {
    let Ok(chromium) = std::env::var(CHROMIUM) else {
        eprintln!("not run: {CHROMIUM} is not set; `make test` installs chromium");
        return;
    };
    landfall_server::outbound::client();
    let Some(bucket) = ObjectStore::S3.bucket().await else { return };
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("bound").port().to_string()
    };
    let origin = format!("http://localhost:{port}");
    let network = bucket.network().await;
    let mut setup = Setup::default().work(Script::new()).with("CORS_ORIGINS", &origin);
    setup.variables.extend(bucket.settings());
    // The browser's way to the store breaks, not the server's.
    let server = setup.with("STORAGE_PUBLIC_URL", network.url()).start(&db).await;
    server.app.blobs.set_cors(std::slice::from_ref(&origin)).await.expect("the bucket takes rules");
    let alice = server.client("alice");
    network.cut_after_sending(7 << 20);
    let size = SIZE.to_string();
    let variables = [("LANDFALL_TOKEN", alice.token.clone()), ("CHROMIUM", chromium)];
    let Some(mut client) = NodeClient::start("uppy_s3.mjs", &[&server.base, &size, &port], &variables) else {
        return;
    };
    let lines = tokio::task::spawn_blocking(move || std::iter::from_fn(|| client.line()).collect::<Vec<_>>());
    let lines = lines.await.expect("the reader does not panic");
    let file = lines.iter().find_map(|line| line["done"].as_str()).unwrap_or_else(|| panic!("{lines:?}"));
    assert_eq!(network.lost(), 1, "{lines:?}");
    let parts = network.requests().iter().filter(|request| is_part(request)).count();
    assert!(parts > 3, "the part that was cut came again: {parts}");
    server.idle().await;
    assert_eq!(alice.status(file).await, "ready");
    let path = format!("/api/v2/uploads/files/{file}/download?proxy=true");
    let loaded = alice.request(reqwest::Method::GET, &path).send().await.expect("an answer");
    let expected: Vec<u8> =
        (0..u32::try_from(SIZE / 4).expect("small enough")).flat_map(u32::to_be_bytes).collect();
    assert!(loaded.bytes().await.expect("a body") == expected);
    server.assert_audit_clean().await;
    server.stop().await;
}
