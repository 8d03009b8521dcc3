//! A service as the model: what it is sent, what of its answers is believed, and what its refusals mean for a file.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::embedding_server::{EmbeddingServer, Reply};
use crate::support::process::Process;
use crate::support::{Setup, TestDb, manual_clock, on_each_database};

const KEY: &str = "sk-very-secret-4711";

fn with(service: &EmbeddingServer) -> Setup {
    Setup::default()
        .with("EMBEDDINGS_URL", &service.url)
        .with("EMBEDDINGS_MODEL", "tiny")
        .with("EMBEDDINGS_API_KEY", KEY)
}

/// A document of seven chunks: each heading has its own.
fn seven_sections() -> String {
    let about = ["the cat", "the ship", "the clock", "a river", "some bread", "that hill", "old paper"];
    about.iter().enumerate().map(|(n, what)| format!("## Part {n}\n\nAll about {what}.\n\n")).collect()
}

#[on_each_database]
async fn chunks_go_in_batches_and_their_vectors_come_back_in_the_order_of_their_indexes(db: TestDb) {
    let service = EmbeddingServer::start(64).await;
    service.otherwise(Reply::Backwards);
    let server =
        with(&service).with("EMBEDDINGS_BATCH", 3).with("EMBEDDINGS_DIMENSIONS", 64).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.md", seven_sections().as_bytes()).await;
    server.idle().await;
    assert_eq!(alice.file(&file).await["status"], "ready", "{}", alice.file(&file).await);
    let asked = service.calls();
    assert_eq!(asked.iter().map(|asked| asked.texts.len()).collect::<Vec<_>>(), [3, 3, 1]);
    for asked in &asked {
        assert_eq!(asked.authorization.as_deref(), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!((asked.model.as_str(), asked.dimensions), ("tiny", Some(64)));
    }
    for (question, part) in [("feline", "Part 0"), ("vessel", "Part 1"), ("timepiece", "Part 2")] {
        let hits = alice.search(question).await;
        assert_eq!(hits[0]["heading"], part, "{question}");
        assert_eq!(hits[0]["matched"], json!(["meaning"]), "{question}");
    }
    server.assert_books_balance().await;
}

#[on_each_database]
async fn an_answer_that_cannot_be_right_is_not_stored(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    let server = with(&service)
        .with("RETRY_MAX_ATTEMPTS", 1)
        .with("EMBEDDINGS_DIMENSIONS", 8)
        // A service that answers nothing but nonsense is as good as down, and would be waited for.
        .with("CIRCUIT_THRESHOLD", 1_000)
        .start(&db)
        .await;
    let alice = server.client("alice");
    let cases: Vec<(&str, Reply, &str)> = vec![
        (
            "one too few",
            Reply::Changed(|answer| {
                answer["data"].as_array_mut().unwrap().pop();
            }),
            "vectors for",
        ),
        (
            "one too many",
            Reply::Changed(|answer| {
                let again = answer["data"][0].clone();
                answer["data"].as_array_mut().unwrap().push(again);
            }),
            "vectors for",
        ),
        ("an index twice", Reply::Changed(|answer| answer["data"][1]["index"] = json!(0)), "index 0"),
        ("an index beyond", Reply::Changed(|answer| answer["data"][1]["index"] = json!(99)), "index 99"),
        (
            "dimensions",
            Reply::Changed(|answer| answer["data"][0]["embedding"] = json!([1.0, 2.0])),
            "2 dimensions",
        ),
        (
            "no dimensions",
            Reply::Changed(|answer| answer["data"][0]["embedding"] = json!([])),
            "0 dimensions",
        ),
        ("too large", Reply::Changed(|answer| answer["data"][0]["embedding"][0] = json!(1e300)), "none"),
        ("null", Reply::Changed(|answer| answer["data"][0]["embedding"][0] = Value::Null), "not what"),
        (
            "zero",
            Reply::Changed(|answer| answer["data"][0]["embedding"] = json!([0, 0, 0, 0, 0, 0, 0, 0])),
            "zero",
        ),
        ("NaN", Reply::Body(r#"{"data": [{"index": 0, "embedding": [NaN, 1]}]}"#.to_owned()), "not what"),
        ("a page", Reply::Body("<html>Welcome to the proxy</html>".to_owned()), "not what"),
        ("without end", Reply::Endless, "far longer"),
    ];
    for (name, reply, said) in cases {
        service.then(reply);
        let file = alice.upload("a.md", seven_sections().as_bytes()).await;
        server.idle().await;
        let seen = alice.file(&file).await;
        assert_eq!(
            (&seen["status"], &seen["error"]["code"]),
            (&json!("failed"), &json!("EMBED_ERROR")),
            "{name}"
        );
        assert!(seen["error"]["message"].as_str().unwrap().contains(said), "{name}: {}", seen["error"]);
        assert_eq!(seen["error"]["class"], "LLM_ERROR");
    }
    assert!(alice.search("feline cat").await.is_empty(), "nothing of them is in the index");
    server.assert_books_balance().await;
}

#[on_each_database]
async fn a_model_that_changes_its_dimensions_meets_nothing_of_before(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    let server = with(&service).with("RETRY_MAX_ATTEMPTS", 1).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"The cat sleeps.").await;
    server.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
    service.then(Reply::Body(r#"{"data": [{"index": 0, "embedding": [1, 2, 3]}]}"#.to_owned()));
    let other = alice.upload("b.txt", b"The cat wakes.").await;
    server.idle().await;
    let message = alice.file(&other).await["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("3 dimensions in place of 8") && message.contains("restart"), "{message}");
}

#[on_each_database]
async fn a_service_that_names_a_time_is_asked_again_at_that_time(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    let cases = [(429, "45", 45), (503, "45", 45), (429, "Fri, 01 Jan 2100 00:00:00 GMT", 3_600)];
    for (status, header, wait) in cases {
        let clock = manual_clock();
        let server = with(&service).clock(&clock).start(&db).await;
        let alice = server.client("alice");
        service.then(Reply::Refusal(status, Some(("retry-after", header.to_owned()))));
        let file = alice.upload("a.txt", b"The cat sleeps.").await;
        server.idle().await;
        let seen = alice.file(&file).await;
        assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("queued"), &json!("EMBED_ERROR")));
        service.forget();
        clock.advance(Duration::from_secs(wait - 1));
        server.idle().await;
        assert_eq!((alice.status(&file).await.as_str(), service.calls().len()), ("queued", 0));
        clock.advance(Duration::from_secs(1));
        server.idle().await;
        assert_eq!((alice.status(&file).await.as_str(), service.calls().len()), ("ready", 1));
        server.stop().await;
    }
}

#[on_each_database]
async fn a_service_that_recovers_costs_an_attempt_and_no_file(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    let clock = manual_clock();
    let server = with(&service).clock(&clock).start(&db).await;
    let alice = server.client("alice");
    service.then(Reply::Refusal(500, None)).then(Reply::Refusal(408, None));
    let file = alice.upload("a.txt", b"The cat sleeps.").await;
    for _ in 0..2 {
        server.idle().await;
        assert_eq!(alice.status(&file).await, "queued");
        clock.advance(Duration::from_mins(1));
    }
    server.idle().await;
    assert_eq!(alice.status(&file).await, "ready");
    assert_eq!(service.calls().len(), 3);
    server.assert_books_balance().await;
}

#[on_each_database]
async fn a_refusal_that_would_be_repeated_is_final_and_says_why_without_the_key(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    let server = with(&service).start(&db).await;
    let alice = server.client("alice");
    for status in [400, 401, 403, 404, 413, 422] {
        service.forget();
        service.then(Reply::Echo(status));
        let file = alice.upload("a.txt", b"The cat sleeps.").await;
        server.idle().await;
        let seen = alice.file(&file).await;
        assert_eq!(
            (&seen["status"], &seen["error"]["code"]),
            (&json!("failed"), &json!("EMBED_ERROR")),
            "{status}"
        );
        let message = seen["error"]["message"].as_str().unwrap();
        assert!(message.contains(&status.to_string()) && message.contains("bad key"), "{message}");
        assert!(!message.contains(KEY), "{message}");
        assert_eq!(service.calls().len(), 1, "asked once");
    }
}

#[on_each_database]
async fn a_redirect_is_not_followed(db: TestDb) {
    let (service, elsewhere) = (EmbeddingServer::start(8).await, EmbeddingServer::start(8).await);
    let server = with(&service).start(&db).await;
    let alice = server.client("alice");
    service.then(Reply::Refusal(307, Some(("location", format!("{}/embeddings", elsewhere.url)))));
    let file = alice.upload("a.txt", b"For this service's eyes only.").await;
    server.idle().await;
    assert_eq!(alice.status(&file).await, "failed");
    assert!(elsewhere.calls().is_empty());
}

#[on_each_database]
async fn a_service_that_hangs_is_given_up_and_so_is_the_request(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    let server =
        with(&service).with("EMBEDDINGS_TIMEOUT_MS", 300).with("RETRY_MAX_ATTEMPTS", 1).start(&db).await;
    let alice = server.client("alice");
    service.then(Reply::Hang);
    let file = alice.upload("a.txt", b"The cat sleeps.").await;
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("EMBED_ERROR")));
    assert!(seen["error"]["message"].as_str().unwrap().contains("0.3 s"), "{}", seen["error"]);
    service.dropped().await;
}

#[on_each_database]
async fn the_request_for_a_file_that_is_called_off_is_dropped(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    let server = with(&service).start(&db).await;
    let alice = server.client("alice");
    service.then(Reply::Hang);
    let file = alice.upload("a.txt", b"The cat sleeps.").await;
    service.hanging().await;
    alice.post(&format!("/api/v2/uploads/files/{file}/cancel"), json!({})).await.ok();
    service.dropped().await;
    server.idle().await;
    assert_eq!(alice.status(&file).await, "cancelled");
    server.assert_books_balance().await;
}

#[on_each_database]
async fn a_search_goes_by_words_while_the_service_is_down_and_says_so(db: TestDb) {
    let service = EmbeddingServer::start(8).await;
    let server = with(&service).start(&db).await;
    let alice = server.client("alice");
    alice.upload("a.txt", b"The cat sleeps.").await;
    server.idle().await;
    assert!(alice.post("/api/v2/search", json!({ "query": "cat" })).await.ok()["warning"].is_null());
    service.otherwise(Reply::Refusal(503, None));
    let found = alice.post("/api/v2/search", json!({ "query": "cat" })).await.ok();
    assert_eq!(found["hits"][0]["matched"], json!(["words"]));
    assert!(found["warning"].as_str().unwrap().contains("only the words"), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_is_neither_in_the_log_nor_among_the_settings() {
    let db = TestDb::sqlite();
    let service = EmbeddingServer::start(8).await;
    service.otherwise(Reply::Echo(401));
    let say = |command: &str| {
        let output = Process::command(&db)
            .arg(command)
            .env("EMBEDDINGS_URL", &service.url)
            .env("EMBEDDINGS_MODEL", "tiny")
            .env("EMBEDDINGS_API_KEY", KEY)
            .env("LOG_LEVEL", "trace")
            .stderr(std::process::Stdio::piped())
            .output()
            .expect("the program runs");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let (settings, log) = (say("config"), say("reindex"));
    assert!(settings.contains("EMBEDDINGS_API_KEY") && settings.contains("***"), "{settings}");
    assert!(log.contains("401"), "{log}");
    assert_eq!(service.calls()[0].authorization.as_deref(), Some(format!("Bearer {KEY}").as_str()));
    assert!(!settings.contains(KEY) && !log.contains(KEY));
}
