//! One trace for each file, whichever process ran its stages.

use std::process::Stdio;

use landfall_store::{Db, args};
use reqwest::Method;
use serde_json::json;

use crate::support::collector::{Collector, Span};
use crate::support::embedding_server::EmbeddingServer;
use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::process::Process;
use crate::support::{Client, TestDb, TestServer, on_each_database, until};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const OURS: &str = "b7ad6b7169203331";
const ANOTHER: &str = "11111111111111111111111111111111";

fn traceparent(trace: &str) -> String {
    format!("00-{trace}-{OURS}-01")
}

/// Uploads a file; only its registration carries a trace.
async fn upload_traced(client: &Client, trace: &str) -> String {
    let batch = client.open_batch(1).await;
    let request = client
        .request(Method::POST, &format!("/api/v2/uploads/batches/{batch}/upload-urls"))
        .header("traceparent", traceparent(trace))
        .json(&json!({ "fileName": "a.txt", "fileSize": 23 }));
    let ticket = client.send(request).await.ok();
    let file = ticket["fileId"].as_str().unwrap().to_owned();
    client.put(ticket["uploadUrl"].as_str().unwrap(), "Some words to be found.").await.ok();
    client.confirm(&file).await.ok();
    file
}

#[track_caller]
fn only(mut spans: Vec<Span>) -> Span {
    assert_eq!(spans.len(), 1, "{spans:#?}");
    spans.remove(0)
}

#[on_each_database]
async fn a_file_whose_stages_ran_on_two_processes_has_one_trace(db: TestDb) {
    let collector = Collector::start().await;
    let common = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20of-the-collector"),
    ];
    let start = |service, stages| {
        let mut variables = common.to_vec();
        variables.extend([("OTEL_SERVICE_NAME", service), ("WORKER_STAGES", stages)]);
        Process::start(&db, &variables)
    };
    let (one, other) = (start("one", "extract"), start("other", "chunk,embed"));
    let client = one.client();
    let file = upload_traced(&client, TRACE).await;
    until("it is ready", async || client.status(&file).await == "ready").await;
    // Spans in transit are sent before the processes end.
    for process in [one, other] {
        process.signal("TERM");
        assert!(process.wait(), "it exits cleanly");
    }

    let registered = only(collector.spans().into_iter().filter(|span| span.parent == OURS).collect());
    assert_eq!(registered.name, "POST /api/v2/uploads/batches/{batchId}/upload-urls");
    assert_eq!((registered.trace.as_str(), &registered.attributes["status"]), (TRACE, &"201".to_owned()));
    let confirmed = only(collector.of_file(&file, "confirm"));
    for (name, route) in [
        ("upload", "PUT /api/v2/uploads/blobs/{fileId}"),
        ("confirm", "POST /api/v2/uploads/files/{fileId}/confirm"),
    ] {
        let span = only(collector.of_file(&file, name));
        assert_eq!((span.trace.as_str(), &span.parent), (TRACE, &registered.id), "{name}");
        let request = only(collector.spans().into_iter().filter(|span| span.name == route).collect());
        assert_eq!(span.links, [(request.trace.clone(), request.id)], "linked to its request");
        assert_ne!(request.trace, TRACE);
    }
    for (stage, service) in [("extract", "one"), ("chunk", "other"), ("embed", "other")] {
        let span = only(collector.of_file(&file, stage));
        assert_eq!(
            (span.trace.as_str(), &span.parent, span.service.as_str()),
            (TRACE, &confirmed.id, service)
        );
        let said = |name: &str| span.attributes.get(name).map_or("", String::as_str);
        assert_eq!((said("stage"), said("attempt"), said("outcome")), (stage, "1", "done"));
        assert!(!said("batchId").is_empty() && said("worker").contains(':') && !span.failed, "{span:?}");
        let below: Vec<String> = collector.below(&span).into_iter().map(|span| span.name).collect();
        assert!(below.contains(&"settle".to_owned()), "{below:?}");
        assert_eq!(below.contains(&"read document".to_owned()), stage == "extract", "{below:?}");
    }
    let waits: Vec<(String, String)> = collector
        .of_file(&file, "wait in queue")
        .into_iter()
        .inspect(|wait| assert_eq!((wait.trace.as_str(), &wait.parent), (TRACE, &confirmed.id)))
        .inspect(|wait| assert!(wait.nanoseconds < 600_000_000_000, "{wait:?}"))
        .map(|wait| (wait.attributes["stage"].clone(), wait.service))
        .collect();
    assert_eq!(waits.len(), 2, "{waits:?}");
    assert!(
        waits.contains(&("extract".to_owned(), "one".to_owned()))
            && waits.contains(&("chunk".to_owned(), "other".to_owned())),
        "{waits:?}"
    );
    for headers in collector.headers() {
        assert_eq!(headers["authorization"], "Bearer of-the-collector");
    }
}

#[on_each_database]
async fn a_retry_continues_in_the_trace_of_its_caller_with_a_link_to_the_first(db: TestDb) {
    let collector = Collector::start().await;
    let (gateway, url) = GatewayServer::serve([Reply::ApiResponse(400, "text/plain", "no")]).await;
    gateway.otherwise(Reply::ApiResponse(200, "text/plain", "Some words about the sea."));
    let embeddings = EmbeddingServer::start(8).await;
    let process = Process::start(
        &db,
        &[
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("{}/v1/traces", collector.url)),
            ("EXTRACT_GATEWAY_URL", &url),
            ("EMBEDDINGS_URL", &embeddings.url),
            ("EMBEDDINGS_MODEL", "words"),
        ],
    );
    let client = process.client();
    let file = upload_traced(&client, TRACE).await;
    until("it failed", async || client.status(&file).await == "failed").await;
    let retry = client
        .request(Method::POST, &format!("/api/v2/uploads/files/{file}/retry"))
        .header("traceparent", traceparent(ANOTHER));
    client.send(retry).await.ok();
    until("it is ready", async || client.status(&file).await == "ready").await;
    process.signal("TERM");
    assert!(process.wait(), "it exits cleanly");

    let mut attempts = collector.of_file(&file, "extract");
    attempts.sort_by_key(|span| span.trace == ANOTHER);
    let [first, second] = attempts.as_slice() else { panic!("{attempts:#?}") };
    assert_eq!(
        (first.trace.as_str(), first.failed, &*first.attributes["errorCode"], &*first.attributes["outcome"]),
        (TRACE, true, "GW_4XX", "failed")
    );
    assert_eq!(
        (second.trace.as_str(), second.failed, &*second.attributes["outcome"]),
        (ANOTHER, false, "done")
    );
    let confirmed = only(collector.of_file(&file, "confirm"));
    assert_eq!(second.links, [(TRACE.to_owned(), confirmed.id)]);
    let retried = only(
        collector.spans().into_iter().filter(|span| span.name.ends_with("/files/{fileId}/retry")).collect(),
    );
    assert_eq!((&second.parent, retried.parent.as_str()), (&retried.id, OURS));
    // The services that were called know which trace they were part of.
    let asked: Vec<Option<String>> = gateway.calls().into_iter().map(|call| call.traceparent).collect();
    let expected = [first, second].map(|attempt| {
        let asking = only(
            collector
                .below(attempt)
                .into_iter()
                .filter(|span| span.name == "ask the extraction service")
                .collect(),
        );
        Some(format!("00-{}-{}-01", asking.trace, asking.id))
    });
    assert_eq!(asked, expected);
    let asked: Vec<Option<String>> = embeddings.calls().into_iter().map(|asked| asked.traceparent).collect();
    assert!(asked.iter().flatten().any(|parent| parent.contains(ANOTHER)), "{asked:?}");
}

#[on_each_database]
async fn a_bulk_retry_continues_in_the_trace_of_its_caller(db: TestDb) {
    let collector = Collector::start().await;
    let (gateway, url) = GatewayServer::serve([
        Reply::ApiResponse(400, "text/plain", "no"),
        Reply::ApiResponse(400, "text/plain", "no"),
    ])
    .await;
    gateway.otherwise(Reply::ApiResponse(200, "text/plain", "Some words about the sea."));
    let process = Process::start(
        &db,
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url), ("EXTRACT_GATEWAY_URL", &url)],
    );
    let client = process.client();
    let files = [upload_traced(&client, TRACE).await, upload_traced(&client, TRACE).await];
    for file in &files {
        until("it failed", async || client.status(file).await == "failed").await;
    }
    let retry = client
        .request(Method::POST, "/api/v2/uploads/dlq/retry-all")
        .header("traceparent", traceparent(ANOTHER));
    client.send(retry.json(&json!({}))).await.ok();
    for file in &files {
        until("it is ready", async || client.status(file).await == "ready").await;
    }
    process.signal("TERM");
    assert!(process.wait(), "it exits cleanly");
    for file in &files {
        let again = only(
            collector.of_file(file, "extract").into_iter().filter(|span| span.trace == ANOTHER).collect(),
        );
        assert_eq!(again.links, [(TRACE.to_owned(), only(collector.of_file(file, "confirm")).id)]);
    }
}

#[on_each_database]
async fn without_a_collector_no_traces_are_kept(db: TestDb) {
    let server = TestServer::new(&db).await;
    let client = server.client("ada");
    upload_traced(&client, TRACE).await;
    server.idle().await;
    let kept = "SELECT COUNT(*) FROM files WHERE trace_parent IS NOT NULL OR trace_first IS NOT NULL";
    assert_eq!(server.app.db.read().await.unwrap().number(kept, args![]).await.unwrap(), 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_hangs_or_is_down_costs_a_warning_and_nothing_else() {
    // It accepts connections and never responds.
    let hangs = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let away = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addresses = [hangs.local_addr().unwrap(), away.local_addr().unwrap()];
    drop(away);
    for address in addresses {
        let db = TestDb::sqlite();
        let log = db.folder.path().join("log");
        let endpoint = format!("http://{address}");
        let variables =
            [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_EXPORTER_OTLP_TIMEOUT", "300")];
        let process =
            Process::start_with_log(&db, &variables, Stdio::from(std::fs::File::create(&log).unwrap()));
        let client = process.client();
        for _ in 0..3 {
            let file = upload_traced(&client, TRACE).await;
            until("it is ready", async || client.status(&file).await == "ready").await;
        }
        let complaints = || {
            let log = std::fs::read_to_string(&log).unwrap();
            log.matches("spans cannot be sent").count()
        };
        until("the warning is logged", async || complaints() > 0).await;
        process.signal("TERM");
        assert!(process.wait(), "it exits cleanly");
        assert_eq!(complaints(), 1, "it is logged once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_caller_decides_whether_a_trace_is_kept() {
    let db = TestDb::sqlite();
    let collector = Collector::start().await;
    let process = Process::start(
        &db,
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url), ("OTEL_TRACES_SAMPLER", "parentbased_always_off")],
    );
    let client = process.client();
    let (kept, not_kept) =
        (upload_traced(&client, TRACE).await, client.upload("b.txt", b"Other words.").await);
    for file in [&kept, &not_kept] {
        until("it is ready", async || client.status(file).await == "ready").await;
    }
    process.signal("TERM");
    assert!(process.wait(), "it exits cleanly");
    assert_eq!(collector.of_file(&kept, "embed").len(), 1);
    assert!(collector.of_file(&not_kept, "embed").is_empty());
    let reader = Db::open(&db.url, 4).await.unwrap();
    reader.close().await;
}
