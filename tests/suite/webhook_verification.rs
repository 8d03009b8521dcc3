//! The code in `docs/webhooks.md` works: its programs accept what is sent, and nothing else.

use std::path::Path;
use std::process::{Command, Stdio};

use landfall_server::outbound;
use serde_json::{Value, json};

use crate::support::hooks::{Hook, setup};
use crate::support::node::NodeClient;
use crate::support::webhook_receiver::Receiver;
use crate::support::{TestDb, on_each_database};

const DOCUMENT: &str = include_str!("../../docs/webhooks.md");

/// The program in this language.
fn program(language: &str) -> &'static str {
    let (_, rest) = DOCUMENT.split_once(&format!("```{language}\n")).expect("the document has it");
    rest.split_once("```").expect("it has an end").0
}

#[on_each_database]
async fn the_standardwebhooks_library_accepts_what_is_sent_and_nothing_else(db: TestDb) {
    // With the real clock: the library accepts only messages of the last five minutes.
    let server = setup().start(&db).await;
    let alice = server.client("alice");
    let hook = Hook::register(&alice, "http://127.0.0.1:9/").await;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("receiver.mjs");
    std::fs::write(&script, program("js")).unwrap();
    let Ok(clients) = std::env::var("LANDFALL_TEST_NODE") else {
        eprintln!("not run: LANDFALL_TEST_NODE is not set; `make test` installs the library");
        return;
    };
    let modules = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(clients).join("node_modules");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    let variables = [("WEBHOOK_SECRET", hook.secret.clone()), ("PORT", "0".to_owned())];
    let mut node = NodeClient::start(script.to_str().unwrap(), &[], &variables).expect("node is there");
    let (listening, mut node) = tokio::task::spawn_blocking(move || {
        let line = node.line().expect("it listens");
        (line, node)
    })
    .await
    .unwrap();
    let url = format!("http://127.0.0.1:{}/", listening["port"]);
    hook.change(json!({ "url": url, "eventTypes": ["batch:completed"] })).await.ok();

    // A message of another sender, and one that was tampered with.
    let forged = outbound::client()
        .post(&url)
        .header("webhook-id", "1")
        .header("webhook-timestamp", "1")
        .header("webhook-signature", "v1,AAAA")
        .body("{}")
        .send()
        .await
        .unwrap();
    assert_eq!(forged.status(), 400);

    let (batch, _) = alice.upload_all(&["a.txt".to_owned(), "ü.txt".to_owned()]).await;
    let test = hook.test().await;
    let (lines, mut node) = tokio::task::spawn_blocking(move || {
        let lines = [node.line().expect("one"), node.line().expect("another")];
        (lines, node)
    })
    .await
    .unwrap();
    let completed = lines.iter().find(|line| line["type"] == "batch:completed").expect("it came");
    assert_eq!(completed["data"]["batchId"], json!(batch));
    let tested = lines.iter().find(|line| line["type"] == "webhook:test").expect("it came");
    assert_eq!(tested["id"], test["messageId"]);
    hook.settled().await;

    // After the secret was replaced, the old one still signs beside the new one.
    alice.post(&hook.path("/rotate-secret"), json!({})).await.ok();
    let test = hook.test().await;
    let line = tokio::task::spawn_blocking(move || node.line()).await.unwrap().expect("it came");
    assert_eq!(line["id"], test["messageId"]);
}

#[on_each_database]
async fn the_python_function_in_the_document_accepts_what_is_sent_and_nothing_else(db: TestDb) {
    let server = setup().start(&db).await;
    let receiver = Receiver::serve([]).await;
    let hook = Hook::register(&server.client("alice"), &receiver.url).await;
    hook.test().await;
    let call = receiver.wait_for_calls(1).await.remove(0);
    let headers = |signature: &str| json!({ "webhook-id": call.id, "webhook-timestamp": call.timestamp.to_string(), "webhook-signature": signature });
    let check = |secret: &str, headers: Value, body: &str| {
        let script = format!(
            "{}\nimport json, os\nprint(verify(os.environ['S'], json.loads(os.environ['H']), os.environ['B'].encode()))",
            program("python")
        );
        let output = Command::new("python3")
            .arg("-c")
            .arg(script)
            .env("S", secret)
            .env("H", headers.to_string())
            .env("B", body)
            .stderr(Stdio::inherit())
            .output()
            .expect("python3 runs");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let good = headers(&call.signature);
    assert_eq!(check(&hook.secret, good.clone(), &call.body), "True");
    assert_eq!(check(&hook.secret, good.clone(), &format!("{} ", call.body)), "False");
    assert_eq!(check("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", good, &call.body), "False");
    assert_eq!(check(&hook.secret, headers(&format!("v1,AAAA {}", call.signature)), &call.body), "True");
}
