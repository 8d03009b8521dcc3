//! An operator's own extraction service, in place of the built-in extraction.

use std::time::Duration;

use serde_json::json;

use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::{Setup, TestDb, manual_clock, on_each_database, until};

#[on_each_database]
async fn the_response_is_stored_and_its_text_is_found(db: TestDb) {
    let page = "<h1>Tides</h1><p>The moon pulls the <b>ocean</b>.</p>";
    let (script, url) =
        GatewayServer::serve([Reply::ApiResponse(200, "text/html; charset=utf-8", page)]).await;
    let server = Setup::default().with("EXTRACT_GATEWAY_URL", url).start(&db).await;
    let client = server.client("ada");
    let mapping = json!({ "columns": ["a", "b"] });
    let batch =
        client.post("/api/v2/uploads/batches", json!({ "fileCount": 1, "mapping": mapping })).await.ok();
    let file = client.upload_in(batch["batchId"].as_str().unwrap(), "tides.bin", b"\x00\x01 any bytes").await;
    server.idle().await;
    assert_eq!(client.status(&file).await, "ready", "{}", client.file(&file).await);

    let [call] = &script.calls()[..] else { panic!("one call") };
    assert_eq!(call.key, format!("{file}-1"));
    for part in [
        "name=\"file\"; filename=\"tides.bin\"",
        "\u{0}\u{1} any bytes",
        "name=\"mapping\"",
        "{\"columns\":[\"a\",\"b\"]}",
    ] {
        assert!(call.body.contains(part), "{part} in {:?}", call.body);
    }
    let request = client.request(reqwest::Method::GET, &format!("/api/v2/uploads/files/{file}/result"));
    let result = request.send().await.unwrap();
    assert_eq!(result.headers()["content-type"], "text/html; charset=utf-8");
    assert!(result.headers()["content-disposition"].to_str().unwrap().starts_with("attachment"));
    assert_eq!(result.text().await.unwrap(), page);
    assert!(client.search("what pulls the ocean").await[0]["snippet"].as_str().unwrap().contains("moon"));
    server.stop().await;
}

#[on_each_database]
async fn a_document_with_a_malformed_content_type_is_sent_all_the_same(db: TestDb) {
    let reply = || Reply::ApiResponse(200, "text/plain", "Ebb and flow.");
    let (script, url) = GatewayServer::serve([reply(), reply()]).await;
    let server = Setup::default().with("EXTRACT_GATEWAY_URL", url).start(&db).await;
    let client = server.client("ada");
    for (declared, sent) in
        [("image/x-tide; depth", "image/x-tide"), ("image/x-tide; depth=9", "image/x-tide; depth=9")]
    {
        let file = json!({ "fileName": "a.bin", "fileSize": 1, "contentType": declared });
        let ticket = client.post("/api/v2/uploads/files/init", file).await.ok();
        let id = ticket["fileId"].as_str().unwrap();
        client.put(ticket["uploadUrl"].as_str().unwrap(), "a").await.ok();
        client.confirm(id).await.ok();
        server.idle().await;
        assert_eq!(client.status(id).await, "ready", "{}", client.file(id).await);
        let body = script.calls().pop().unwrap().body;
        assert!(body.to_ascii_lowercase().contains(&format!("content-type: {sent}\r\n")), "{body:?}");
    }
    server.stop().await;
}

#[on_each_database]
async fn a_gateway_with_a_temporary_error_is_called_again_later_and_one_that_refuses_is_not(db: TestDb) {
    let text = || Reply::ApiResponse(200, "text/plain", "At last, some words.");
    let (script, url) = GatewayServer::serve([
        Reply::ApiResponse(502, "text/plain", "oops"),
        Reply::RetryAfter("30"),
        text(),
        Reply::ApiResponse(400, "text/plain", "no such column"),
        Reply::ApiResponse(200, "image/png", "png"),
    ])
    .await;
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).with("EXTRACT_GATEWAY_URL", url).start(&db).await;
    let client = server.client("ada");
    let file = client.upload("a.bin", b"bytes").await;
    server.idle().await;
    assert_eq!(client.file(&file).await["error"]["code"], "GW_5XX");
    clock.advance(Duration::from_secs(7));
    server.idle().await;
    assert_eq!(client.file(&file).await["error"]["code"], "GW_UNAVAILABLE");
    clock.advance(Duration::from_secs(29));
    server.idle().await;
    assert_eq!((client.status(&file).await.as_str(), script.calls().len()), ("queued", 2));
    clock.advance(Duration::from_secs(2));
    server.idle().await;
    assert_eq!((client.status(&file).await.as_str(), script.calls().len()), ("ready", 3));
    let keys: Vec<String> = script.calls().into_iter().map(|call| call.key).collect();
    // The second call cost no attempt, because the gateway said that it is busy.
    assert_eq!(keys, ["1", "2", "1.2"].map(|attempt| format!("{file}-{attempt}")));

    for reason in ["no such column", "image/png"] {
        let refused = client.upload("b.bin", b"bytes").await;
        server.idle().await;
        let file = client.file(&refused).await;
        assert_eq!(
            (file["status"].as_str(), file["error"]["code"].as_str()),
            (Some("failed"), Some("GW_4XX"))
        );
        assert!(file["error"]["message"].as_str().unwrap().contains(reason), "{file}");
    }
    server.stop().await;
}

#[on_each_database]
async fn two_failed_calls_and_a_good_one_are_three_calls_with_growing_waits(db: TestDb) {
    let bad = || Reply::ApiResponse(502, "text/plain", "oops");
    let (script, url) =
        GatewayServer::serve([bad(), bad(), Reply::ApiResponse(200, "text/plain", "Third time lucky.")])
            .await;
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).with("EXTRACT_GATEWAY_URL", url).start(&db).await;
    let client = server.client("ada");
    let file = client.upload("a.bin", b"bytes").await;
    // 5 s and 10 s, each plus or minus a fifth.
    for (calls, too_soon, rest) in [(1, 3_999, 2_001), (2, 7_999, 4_001)] {
        server.idle().await;
        clock.advance(Duration::from_millis(too_soon));
        server.idle().await;
        assert_eq!((client.status(&file).await.as_str(), script.calls().len()), ("queued", calls));
        clock.advance(Duration::from_millis(rest));
    }
    server.idle().await;
    assert_eq!((client.status(&file).await.as_str(), script.calls().len()), ("ready", 3));
    server.stop().await;
}

#[on_each_database]
async fn an_endless_wait_that_the_gateway_asks_for_is_limited_to_an_hour(db: TestDb) {
    let text = Reply::ApiResponse(200, "text/plain", "Here again.");
    let (script, url) = GatewayServer::serve([Reply::RetryAfter("99999999999"), text]).await;
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).with("EXTRACT_GATEWAY_URL", url).start(&db).await;
    let client = server.client("ada");
    let file = client.upload("a.bin", b"bytes").await;
    server.idle().await;
    assert_eq!(client.status(&file).await, "queued");
    clock.advance(Duration::from_mins(61));
    server.idle().await;
    assert_eq!((client.status(&file).await.as_str(), script.calls().len()), ("ready", 2));
    server.stop().await;
}

#[on_each_database]
async fn a_redirect_of_the_gateway_is_not_followed(db: TestDb) {
    let (elsewhere, there) = GatewayServer::serve([Reply::ApiResponse(200, "text/plain", "Caught.")]).await;
    let (_, url) = GatewayServer::serve([Reply::Redirect(there)]).await;
    let server = Setup::default().with("EXTRACT_GATEWAY_URL", url).start(&db).await;
    let client = server.client("ada");
    let file = client.upload("a.bin", b"bytes").await;
    server.idle().await;
    assert_eq!(client.file(&file).await["error"]["code"], "GW_4XX");
    assert!(elsewhere.calls().is_empty());
    server.stop().await;
}

#[on_each_database]
async fn a_call_to_a_hanging_gateway_times_out_and_is_dropped(db: TestDb) {
    let (script, url) = GatewayServer::serve([Reply::Never, Reply::Never]).await;
    let server = Setup::default()
        .with("EXTRACT_GATEWAY_URL", &url)
        .with("GATEWAY_TIMEOUT_MS", 50)
        .with("RETRY_MAX_ATTEMPTS", 1)
        .start(&db)
        .await;
    let client = server.client("ada");
    let file = client.upload("a.bin", b"bytes").await;
    until("it has failed", async || client.status(&file).await == "failed").await;
    assert_eq!(client.file(&file).await["error"]["code"], "GW_TIMEOUT");
    script.open.subscribe().wait_for(|open| *open == 0).await.unwrap();
    server.stop().await;

    let server = Setup::default().with("EXTRACT_GATEWAY_URL", url).start(&db).await;
    let client = server.client("ada");
    let file = client.upload("b.bin", b"bytes").await;
    script.open.subscribe().wait_for(|open| *open == 1).await.unwrap();
    client.post(&format!("/api/v2/uploads/files/{file}/cancel"), json!({})).await.ok();
    script.open.subscribe().wait_for(|open| *open == 0).await.unwrap();
    server.stop().await;
}

#[on_each_database]
async fn an_invalid_mapping_is_refused_at_registration(db: TestDb) {
    let server = crate::support::TestServer::new(&db).await;
    let client = server.client("ada");
    for mapping in [json!("columns"), json!(7), json!({ "a": "\u{0}" }), json!({ "a": "x".repeat(70_000) })] {
        let batch = json!({ "fileCount": 1, "mapping": mapping });
        client.post("/api/v2/uploads/batches", batch).await.refused(400, "INVALID_MAPPING");
        let file = json!({ "fileName": "a.txt", "fileSize": 3, "mapping": mapping });
        client.post("/api/v2/uploads/files/init", file).await.refused(400, "INVALID_MAPPING");
    }
    server.stop().await;
}
