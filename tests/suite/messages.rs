//! What owners are told: sentences that are true where they are shown, with numbers beside them.

use std::time::Duration;

use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage::Extract;
use serde_json::{Value, json};

use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::stream::{EventStream, is_state};
use crate::support::{Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database};

const RETRIES: &str = "tries it again by itself";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a sentence and not {value}"))
}

/// An instant like `2026-11-16T01:00:08` has no place in a sentence.
#[track_caller]
fn assert_is_for_people(sentence: &str) {
    let digits = |part: &str| part.len() >= 2 && part.bytes().rev().take(2).all(|byte| byte.is_ascii_digit());
    assert!(!sentence.split('T').any(digits), "it has an instant: {sentence}");
    assert!(!sentence.contains(['{', '}']) && !sentence.contains("0 minutes"), "{sentence}");
}

#[on_each_database]
async fn a_waiting_file_says_that_it_is_retried_and_a_failed_one_does_not(db: TestDb) {
    let clock = manual_clock();
    let script = Script::new();
    for _ in 0..3 {
        script.then(Extract, Step::Fail(Code::GatewayTimeout));
    }
    let server = Setup::default().clock(&clock).work(script).start(&db).await;
    let alice = server.client("alice");
    let mut stream = EventStream::open(&alice, "").await;
    let file = alice.upload("a.txt", b"hello").await;
    server.idle().await;

    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["waitingFor"]), (&json!("queued"), &json!("retry")));
    for sentence in [&seen["error"]["message"], &seen["waitingMessage"]] {
        assert!(text(sentence).contains(RETRIES), "{sentence}");
        assert_is_for_people(text(sentence));
    }
    let wait = seen["retryInMs"].as_i64().expect("a number");
    assert!((1..=10_000).contains(&wait) && seen["retryAt"].is_string(), "{seen}");
    clock.advance(Duration::from_secs(1));
    assert_eq!(alice.file(&file).await["retryInMs"], json!(wait - 1_000), "it counts down");

    for _ in 0..2 {
        clock.advance(Duration::from_mins(1));
        server.idle().await;
    }
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["retryInMs"]), (&json!("failed"), &Value::Null));
    let dead_letter = alice.get("/api/v2/uploads/dlq").await.ok()["entries"][0].clone();
    let group = alice.get("/api/v2/uploads/dlq/groups").await.ok()["groups"][0].clone();
    let told = alice.get("/api/v2/notifications").await.ok()["notifications"][0].clone();
    let events = stream.up_to(|event| event["type"] == "notification:created").await;
    let failed = events.iter().find(|event| is_state(event, &file, "failed")).expect("it failed");
    let requeued = events
        .iter()
        .rev()
        .find(|event| event["data"]["error"].is_object() && event["data"]["to"] == "queued");
    for sentence in [
        &seen["error"]["message"],
        &dead_letter["error"],
        &group["sample"]["message"],
        &told["message"],
        &told["data"]["reason"],
        &failed["data"]["error"]["message"],
    ] {
        let sentence = text(sentence);
        assert!(!sentence.contains(RETRIES) && !sentence.contains("will retry"), "{sentence}");
        assert!(sentence.contains("Retry it when the extraction service works again"), "{sentence}");
        assert_is_for_people(sentence);
    }
    assert!(text(&requeued.expect("it was retried")["data"]["error"]["message"]).contains(RETRIES));
    server.stop().await;
}

#[on_each_database]
async fn a_gateway_that_answers_with_json_is_quoted_in_plain_words(db: TestDb) {
    const SAID: &str = r#"{ "error": { "code": 17, "message": "The scan has no pages." } }"#;
    let (_gateway, url) = GatewayServer::serve([Reply::ApiResponse(422, "application/json", SAID)]).await;
    let server = Setup::default().with("EXTRACT_GATEWAY_URL", url).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"hello").await;
    server.idle().await;
    let message = alice.file(&file).await["error"]["message"].clone();
    assert!(text(&message).contains(": The scan has no pages."), "{message}");
    assert_is_for_people(text(&message));
}

#[on_each_database]
async fn a_damaged_document_fails_with_a_reason_and_without_what_its_parser_said(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let documents: [(&str, &[u8]); 5] = [
        ("a.pdf", b"%PDF-1.7\n1 0 obj << /Type /Catalog >> [91 49 32 endobj"),
        ("a.xlsx", b"PK\x03\x04 this is no archive"),
        ("a.xml", b"<a><b></a>"),
        ("a.json", b"{\"a\": [1, 2"),
        ("a.xls", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1 cut short"),
    ];
    for (name, bytes) in documents {
        let file = alice.upload(name, bytes).await;
        server.idle().await;
        let seen = alice.file(&file).await;
        assert_eq!(seen["status"], "failed", "{name}");
        let message = text(&seen["error"]["message"]);
        assert_is_for_people(message);
        assert!(!message.contains("Error") && message.len() < 300, "{name}: {message}");
    }
}
