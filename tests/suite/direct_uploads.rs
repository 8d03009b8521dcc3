//! With an object store, clients send their bytes straight there. Exactly the bytes that were confirmed are read afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::TimeDelta;
use landfall_server::blobs::Blobs;
use landfall_server::recovery::Sweep;
use md5::{Digest, Md5};
use reqwest::Method;
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION};
use serde_json::{Value, json};
use sha2::Sha256;
use uuid::Uuid;

use crate::support::fixture::text;
use crate::support::network::{Network, Request};
use crate::support::object_stores::{Bucket, ObjectStore};
use crate::support::{
    Client, Setup, TestDb, TestServer, landfall_itself, manual_clock, on_each_database, until,
};

const BYTES: &[u8] = b"The lighthouse of Alexandria was one of the seven wonders.";

/// The quota that the bytes take.
fn stored() -> i64 {
    i64::try_from(BYTES.len()).unwrap()
}

fn on(bucket: &Bucket) -> Setup {
    let setup = Setup { extractor: Some(landfall_itself()), ..Setup::default() };
    bucket.settings().into_iter().fold(setup, |setup, (name, value)| setup.with(name, value))
}

async fn bucket_of(store: ObjectStore) -> Option<Bucket> {
    landfall_server::outbound::client();
    store.bucket().await
}

/// Runs each test on each store, with a bucket of its own, on each database.
macro_rules! on_each_store {
    ($($test:ident)*) => {
        mod on_s3 {
            use super::*;
            $(#[on_each_database]
            async fn $test(db: TestDb) {
                if let Some(bucket) = bucket_of(ObjectStore::S3).await {
                    super::$test(db, bucket).await;
                }
            })*
        }
        mod on_azure {
            use super::*;
            $(#[on_each_database]
            async fn $test(db: TestDb) {
                if let Some(bucket) = bucket_of(ObjectStore::Azure).await {
                    super::$test(db, bucket).await;
                }
            })*
        }
        mod on_google {
            use super::*;
            $(#[on_each_database]
            async fn $test(db: TestDb) {
                if let Some(bucket) = bucket_of(ObjectStore::Gcs).await {
                    super::$test(db, bucket).await;
                }
            })*
        }
    };
}

on_each_store! {
    bytes_go_straight_to_the_store_and_the_file_becomes_ready
    an_upload_url_takes_only_what_was_registered_and_only_once
    an_object_that_was_replaced_after_its_confirmation_is_never_read
    an_upload_that_its_client_never_confirmed_is_adopted_at_its_deadline
    a_lost_answer_of_the_store_costs_nothing
    while_the_store_is_away_files_wait_at_no_cost
    a_single_file_waits_at_no_cost_too
}

fn key_of(ticket: &Value) -> String {
    let file: Uuid = text(&ticket["fileId"]).parse().unwrap();
    format!("blobs/{}", Blobs::direct_key(file))
}

async fn register(client: &Client, name: &str, bytes: &[u8]) -> Value {
    let body = json!({
        "fileName": name, "fileSize": bytes.len(), "contentType": "text/plain",
        "md5": hex::encode(Md5::digest(bytes)), "sha256": BASE64_STANDARD.encode(Sha256::digest(bytes)),
    });
    client.post("/api/v2/uploads/files/init", body).await.ok()
}

/// Sends bytes as the ticket says, with these headers changed.
async fn send(ticket: &Value, bytes: &[u8], changed: &[(&str, &str)]) -> (u16, String) {
    let mut headers: BTreeMap<String, String> = serde_json::from_value(ticket["headers"].clone()).unwrap();
    for (name, value) in changed {
        let known = headers.keys().find(|known| known.eq_ignore_ascii_case(name)).cloned();
        known.map(|known| headers.remove(&known));
        if !value.is_empty() {
            headers.insert((*name).to_owned(), (*value).to_owned());
        }
    }
    let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
    let mut request = client.put(text(&ticket["uploadUrl"])).body(bytes.to_vec());
    for (name, value) in headers {
        if !name.eq_ignore_ascii_case("content-length") {
            request = request.header(name, value);
        }
    }
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn send_right(ticket: &Value, bytes: &[u8]) {
    let (status, body) = send(ticket, bytes, &[]).await;
    assert!((200..300).contains(&status), "{status} {body}");
}

/// Registers, sends and confirms.
async fn upload(client: &Client, name: &str, bytes: &[u8]) -> Value {
    let ticket = register(client, name, bytes).await;
    send_right(&ticket, bytes).await;
    client.confirm(text(&ticket["fileId"])).await.ok();
    ticket
}

async fn until_ready(client: &Client, file: &str) {
    until("the file is ready", async || client.status(file).await == "ready").await;
}

async fn bytes_go_straight_to_the_store_and_the_file_becomes_ready(db: TestDb, bucket: Bucket) {
    let store = bucket.store;
    let server = on(&bucket).start(&db).await;
    let alice = server.client("alice");
    let ticket = register(&alice, "Überblick.txt", BYTES).await;
    assert!(!text(&ticket["uploadUrl"]).starts_with(&server.base), "{store:?}: not to the server");
    let file = text(&ticket["fileId"]);
    alice.confirm(file).await.refused(409, "UPLOAD_MISSING");
    send_right(&ticket, BYTES).await;
    assert_eq!(alice.confirm(file).await.ok()["status"], "queued", "{store:?}");
    alice.confirm(file).await.ok();
    until_ready(&alice, file).await;
    assert_eq!(alice.search("lighthouse").await.len(), 1, "{store:?}");

    let plain = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let path = format!("{}/api/v2/uploads/files/{file}/download", server.base);
    let redirect = plain.get(&path).bearer_auth(&alice.token).send().await.unwrap();
    assert_eq!(redirect.status(), 302, "{store:?}");
    let direct = plain.get(redirect.headers()[LOCATION].to_str().unwrap()).send().await.unwrap();
    let headers = direct.headers().clone();
    assert_eq!(direct.bytes().await.unwrap(), BYTES, "{store:?}");
    let disposition = headers[CONTENT_DISPOSITION].to_str().unwrap();
    assert!(disposition.contains("filename*=UTF-8''%C3%9Cberblick.txt"), "{store:?}: {disposition}");
    assert_eq!(headers[CONTENT_TYPE], "text/plain", "{store:?}");
    let proxied = plain.get(format!("{path}?proxy=true")).bearer_auth(&alice.token).send().await.unwrap();
    assert_eq!((proxied.status().as_u16(), &proxied.bytes().await.unwrap()[..]), (200, BYTES));

    server.assert_audit_clean().await;
    assert_eq!(alice.quota().await, (0, stored()), "{store:?}");
    alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
    assert_eq!(bucket.get(&key_of(&ticket)).await, None, "{store:?}");
    assert_eq!(alice.quota().await, (0, 0), "{store:?}");
    server.assert_audit_clean().await;
    server.stop().await;
}

async fn an_upload_url_takes_only_what_was_registered_and_only_once(db: TestDb, bucket: Bucket) {
    let store = bucket.store;
    let server = on(&bucket).with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let (longer, other) = ([BYTES, b"more"].concat(), vec![b'x'; BYTES.len()]);
    // Azure signs no headers, so there it is the confirmation that refuses.
    if store == ObjectStore::Azure {
        for bytes in [&longer, &other] {
            let ticket = register(&alice, "wrong.txt", BYTES).await;
            let (file, key) = (text(&ticket["fileId"]), key_of(&ticket));
            let (status, body) = send(&ticket, bytes, &[("content-md5", "")]).await;
            assert_eq!(status, 201, "{body}");
            let code = if bytes.len() == BYTES.len() { "CHECKSUM_MISMATCH" } else { "SIZE_MISMATCH" };
            alice.confirm(file).await.refused(400, code);
            // A process that stands still here must not remove what another one has confirmed.
            assert_eq!(bucket.get(&key).await.as_deref(), Some(&bytes[..]), "it stays with its file");
            alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
            assert_eq!(bucket.get(&key).await, None);
        }
    }
    let ticket = register(&alice, "a.txt", BYTES).await;
    let file = text(&ticket["fileId"]);
    if store != ObjectStore::Azure {
        for (bytes, changed) in [
            (&longer[..], &[][..]),
            (&other[..], &[]),
            (
                BYTES,
                &[("x-amz-checksum-sha256", ""), ("content-md5", ""), ("x-goog-content-length-range", "")],
            ),
            (BYTES, &[("if-none-match", ""), ("x-goog-if-generation-match", "")]),
        ] {
            let (status, body) = send(&ticket, bytes, changed).await;
            assert!((400..500).contains(&status), "{store:?} {changed:?}: {status} {body}");
            assert_eq!(bucket.get(&key_of(&ticket)).await, None, "{store:?} {changed:?}");
        }
    }
    send_right(&ticket, BYTES).await;
    // Also without the condition in the request, where the store signs none.
    for changed in [&[][..], &[("if-none-match", "")]] {
        let (status, _) = send(&ticket, BYTES, changed).await;
        assert!((400..500).contains(&status), "{store:?}: never a second time: {status}");
    }
    let fresh = alice.post(&format!("/api/v2/uploads/files/{file}/upload-url"), json!(null)).await.ok();
    let (status, _) = send(&fresh, BYTES, &[]).await;
    assert!((400..500).contains(&status), "{store:?}: nor with a fresh URL: {status}");
    alice.confirm(file).await.ok();
    server.stop().await;
}

async fn an_object_that_was_replaced_after_its_confirmation_is_never_read(db: TestDb, bucket: Bucket) {
    let store = bucket.store;
    let api = on(&bucket).with("ROLE", "api").start(&db).await;
    let alice = api.client("alice");
    let ticket = upload(&alice, "a.txt", BYTES).await;
    let file = text(&ticket["fileId"]).to_owned();
    bucket.remove(&key_of(&ticket)).await;
    bucket.put(&key_of(&ticket), &vec![b'x'; BYTES.len()]).await;
    let key = key_of(&ticket);
    let key = key.strip_prefix("blobs/").unwrap();
    for path in ["download", "download?proxy=true"] {
        let refused = alice.get(&format!("/api/v2/uploads/files/{file}/{path}")).await;
        let error = refused.refused(409, "BLOB_CHANGED");
        assert!(text(&error["message"]).contains(key), "{store:?}: {error}");
    }
    api.stop().await;
    let server = on(&bucket).start(&db).await;
    let alice = server.client("alice");
    until("it fails", async || alice.status(&file).await == "failed").await;
    assert_eq!(alice.file(&file).await["error"]["code"], "BLOB_CHANGED", "{store:?}");
    assert!(alice.search("xxxx").await.is_empty());
    server.stop().await;
}

async fn an_upload_that_its_client_never_confirmed_is_adopted_at_its_deadline(db: TestDb, bucket: Bucket) {
    let clock = manual_clock();
    let server = on(&bucket).clock(&clock).start(&db).await;
    let alice = server.client("alice");
    let (whole, never) = (register(&alice, "a.txt", BYTES).await, register(&alice, "b.txt", BYTES).await);
    let wrong = register(&alice, "c.txt", BYTES).await;
    send_right(&whole, BYTES).await;
    bucket.put(&key_of(&wrong), b"something else").await;
    server.assert_audit_clean().await;
    clock.advance(Duration::from_hours(2));
    server.app.stuck_files.expiry.sweep_once(server.app.clock.now()).await.unwrap();
    until("the file is ready", async || {
        // A store that is slow for a moment lets the file wait for its next attempt, by this clock.
        clock.advance(Duration::from_secs(1));
        alice.status(text(&whole["fileId"])).await == "ready"
    })
    .await;
    for gone in [&never, &wrong] {
        alice
            .get(&format!("/api/v2/uploads/files/{}", text(&gone["fileId"])))
            .await
            .refused(410, "FILE_DELETED");
        assert_eq!(bucket.get(&key_of(gone)).await, None, "{:?}", bucket.store);
    }
    assert_eq!(alice.quota().await, (0, stored()));
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_registration_that_is_deleted_takes_its_object_with_it(db: TestDb) {
    let Some(bucket) = bucket_of(ObjectStore::S3).await else { return };
    let server = on(&bucket).with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let ticket = register(&alice, "a.txt", BYTES).await;
    send_right(&ticket, BYTES).await;
    alice.delete(&format!("/api/v2/uploads/files/{}", text(&ticket["fileId"]))).await.ok();
    assert_eq!(bucket.get(&key_of(&ticket)).await, None);
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_notification_of_the_store_stands_for_the_confirmation(db: TestDb) {
    let Some(bucket) = bucket_of(ObjectStore::S3).await else { return };
    let server = on(&bucket).with("STORAGE_EVENTS_TOKEN", "swordfish-1234567890").start(&db).await;
    let alice = server.client("alice");
    let ticket = register(&alice, "a.txt", BYTES).await;
    let event = |key: &str| {
        json!({ "Records": [{ "eventName": "ObjectCreated:Put",
            "s3": { "bucket": { "name": bucket.name }, "object": { "key": key } } }] })
    };
    let notify = async |token: &str, body: Value| {
        let path = format!("{}/api/v2/storage/events?token={token}", server.base);
        alice.send(alice.http.post(path).json(&body)).await
    };
    notify("wrong", event(&key_of(&ticket))).await.refused(401, "UNAUTHENTICATED");
    // Before the bytes, about something else, and about nothing.
    for body in [event(&key_of(&ticket)), event("blobs/x"), event("other"), json!({}), json!([{ "a": 1 }])] {
        assert_eq!(notify("swordfish-1234567890", body).await.ok()["adopted"], 0);
    }
    send_right(&ticket, BYTES).await;
    assert_eq!(notify("swordfish-1234567890", event(&key_of(&ticket))).await.ok()["adopted"], 1);
    assert_eq!(
        notify("swordfish-1234567890", event(&key_of(&ticket))).await.ok()["adopted"],
        0,
        "at least once"
    );
    until_ready(&alice, text(&ticket["fileId"])).await;
    alice.confirm(text(&ticket["fileId"])).await.ok();
    let grid = json!([{ "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent",
        "data": { "validationCode": "abc" } }]);
    assert_eq!(notify("swordfish-1234567890", grid).await.ok()["validationResponse"], "abc");
    server.stop().await;
}

#[on_each_database]
async fn without_a_token_no_notifications_are_taken(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    alice
        .send(alice.http.post(format!("{}/api/v2/storage/events", server.base)).json(&json!({})))
        .await
        .refused(401, "UNAUTHENTICATED");
    server.stop().await;
}

fn is_blob(method: &'static str) -> impl Fn(&Request) -> bool + Send {
    move |request| request.method == method && request.target.contains("blobs")
}

/// A server whose bytes go through it, and the network to its store.
async fn proxying(db: &TestDb, bucket: &Bucket) -> (TestServer, Network) {
    let network = bucket.network().await;
    let server = on(&bucket.through(&network)).with("UPLOAD_MODE", "proxy").start(db).await;
    (server, network)
}

async fn a_lost_answer_of_the_store_costs_nothing(db: TestDb, bucket: Bucket) {
    let store = bucket.store;
    let (server, network) = proxying(&db, &bucket).await;
    let alice = server.client("alice");
    network.lose_answer(1, is_blob("PUT"));
    let file = alice.upload("a.txt", BYTES).await;
    until_ready(&alice, &file).await;
    assert_eq!(network.lost(), 1, "{store:?}");
    // Many parts, of which one is lost and the answer to the completion as well.
    let large: Vec<u8> = b"The lighthouse shines.\n".iter().copied().cycle().take(20 << 20).collect();
    network.lose_answer(2, is_blob("PUT"));
    if store == ObjectStore::S3 {
        network.lose_answer(2, is_blob("POST"));
    }
    let file = alice.upload("large.bin", &large).await;
    let path = format!("{}/api/v2/uploads/files/{file}/download", server.base);
    let loaded = alice.http.get(path).bearer_auth(&alice.token).send().await.unwrap().bytes().await.unwrap();
    assert!(loaded == large, "{store:?}");
    server.assert_audit_clean().await;
    server.stop().await;
}

async fn while_the_store_is_away_files_wait_at_no_cost(db: TestDb, bucket: Bucket) {
    let store = bucket.store;
    let network = bucket.network().await;
    let setup =
        on(&bucket.through(&network)).with("CIRCUIT_TIMEOUT_MS", "500").with("CIRCUIT_THRESHOLD", "2");
    let server = setup.start(&db).await;
    let alice = server.client("alice");
    let mut tickets = Vec::new();
    for n in 0..3 {
        let ticket = register(&alice, &format!("{n}.txt"), BYTES).await;
        send_right(&ticket, BYTES).await;
        tickets.push(ticket);
    }
    // The confirmation reaches the store, and what reads the bytes does not.
    for ticket in &tickets[..1] {
        let file = text(&ticket["fileId"]).to_owned();
        network.answer(1, 503, "<Error><Code>SlowDown</Code></Error>", is_blob("GET"));
        alice.confirm(&file).await.ok();
        until_ready(&alice, &file).await;
    }
    network.refuse();
    alice.confirm(text(&tickets[1]["fileId"])).await.refused(503, "STORAGE_UNAVAILABLE");
    let ready = alice.get("/readyz").await;
    assert_eq!(ready.status, 503, "{store:?}: {}", ready.body);
    assert!(ready.body.to_string().contains("storage"), "{store:?}: {}", ready.body);
    network.restore();
    for ticket in &tickets[1..] {
        let file = text(&ticket["fileId"]).to_owned();
        until("it is confirmed", async || alice.confirm(&file).await.status == 200).await;
        until_ready(&alice, &file).await;
    }
    until("it is ready again", async || alice.get("/readyz").await.status == 200).await;
    server.assert_audit_clean().await;
    server.stop().await;
}

/// Too few files to open the circuit.
async fn a_single_file_waits_at_no_cost_too(db: TestDb, bucket: Bucket) {
    let network = bucket.network().await;
    let server = on(&bucket.through(&network)).with("RETRY_BASE_DELAY_MS", "20").start(&db).await;
    let (alice, extract) = (server.client("alice"), "/api/v2/admin/queues/extract");
    let ticket = register(&alice, "a.txt", BYTES).await;
    send_right(&ticket, BYTES).await;
    let file = text(&ticket["fileId"]).to_owned();
    server.admin().post(&format!("{extract}/pause"), json!({})).await.ok();
    alice.confirm(&file).await.ok();
    network.refuse();
    server.admin().post(&format!("{extract}/resume"), json!({})).await.ok();
    let failures = async || {
        let history = alice.get(&format!("/api/v2/uploads/files/{file}/history")).await.ok();
        let entries = history["history"].as_array().expect("a history").clone();
        entries.iter().filter(|entry| entry["errorCode"] == "IO_ERROR").count()
    };
    // More often than a failure of the storage is retried otherwise.
    until("it was tried three times", async || failures().await >= 3).await;
    let seen = alice.file(&file).await;
    assert_ne!(seen["status"], "failed", "{seen}");
    network.restore();
    until_ready(&alice, &file).await;
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn parts_of_an_upload_that_was_abandoned_are_removed(db: TestDb) {
    let Some(bucket) = bucket_of(ObjectStore::S3).await else { return };
    let server = on(&bucket).with("UPLOAD_MODE", "proxy").with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let awaited = alice.register(None, "a", 10).await;
    let begin = async |key: String| {
        let response = bucket.request(Method::POST, &key, &[("uploads", "")], &[], b"").send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.text().await.unwrap());
    };
    begin(key_of(&json!({ "fileId": Uuid::now_v7() }))).await;
    begin(key_of(&awaited)).await;
    begin("not/ours".to_owned()).await;
    let uploads = async || {
        let listed = bucket.request(Method::GET, "", &[("uploads", "")], &[], b"").send().await.unwrap();
        listed.text().await.unwrap().matches("<UploadId>").count()
    };
    assert_eq!(uploads().await, 3);
    let now = landfall_core::clock::Clock::System.now();
    let report = server.app.orphan_cleanup.sweep_once(now).await.unwrap();
    assert_eq!(report.metrics["abandonedParts"]["aborted"], 0, "they are young");
    assert_eq!(uploads().await, 3);
    let report = server.app.orphan_cleanup.sweep_once(now + TimeDelta::days(3)).await.unwrap();
    assert_eq!(report.metrics["abandonedParts"]["aborted"], 1, "{:?}", report.errors);
    assert_eq!(uploads().await, 2, "what a file awaits stays, and what is not ours");
    server.stop().await;
}

/// Has a request signed and sends it.
async fn s3_request(client: &Client, file: &str, request: Value, body: &[u8]) -> reqwest::Response {
    let path = format!("/api/v2/uploads/files/{file}/s3-requests");
    let signed = client.post(&path, request.clone()).await.ok();
    let method = Method::from_bytes(text(&request["method"]).as_bytes()).unwrap();
    let mut sent = reqwest::Client::new().request(method, text(&signed["url"])).body(body.to_vec());
    for (name, value) in signed["headers"].as_object().unwrap() {
        sent = sent.header(name, text(value));
    }
    sent.send().await.unwrap()
}

/// The content of the first element with this name.
fn element(xml: &str, name: &str) -> String {
    let rest = xml.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("{name} in {xml}")).1;
    rest.split_once("</").unwrap().0.to_owned()
}

#[on_each_database]
async fn a_file_goes_to_the_store_in_parts_that_its_client_sends(db: TestDb) {
    let Some(bucket) = bucket_of(ObjectStore::S3).await else { return };
    let server = on(&bucket).start(&db).await;
    let alice = server.client("alice");
    let content: Vec<u8> = b"The lighthouse shines.\n".iter().copied().cycle().take(12 << 20).collect();
    let ticket = register(&alice, "large.bin", &content).await;
    let file = text(&ticket["fileId"]);
    let begun = s3_request(&alice, file, json!({ "method": "POST", "key": "ignored" }), b"").await;
    let id = element(&begun.text().await.unwrap(), "UploadId");
    let mut listed = String::new();
    for (number, part) in (1..).zip(content.chunks(5 << 20)) {
        let request = json!({ "method": "PUT", "uploadId": id, "partNumber": number });
        let sent = s3_request(&alice, file, request, part).await;
        let etag = sent.headers()["etag"].to_str().unwrap().to_owned();
        listed.push_str(&format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"));
    }
    let parts = s3_request(&alice, file, json!({ "method": "GET", "uploadId": id }), b"").await;
    assert_eq!(parts.text().await.unwrap().matches("<PartNumber>").count(), 3);
    alice.confirm(file).await.refused(409, "UPLOAD_MISSING");
    let body = format!("<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>");
    let done = s3_request(&alice, file, json!({ "method": "POST", "uploadId": id }), body.as_bytes()).await;
    assert!(done.status().is_success(), "{}", done.text().await.unwrap());
    alice.confirm(file).await.ok();
    let path = format!("/api/v2/uploads/files/{file}/download?proxy=true");
    let loaded = alice.request(Method::GET, &path).send().await.unwrap().bytes().await.unwrap();
    assert!(loaded == content);

    // One that is aborted leaves nothing, and one of another length is not confirmed.
    let ticket = register(&alice, "b.txt", BYTES).await;
    let file = text(&ticket["fileId"]);
    let begin = async || {
        let begun = s3_request(&alice, file, json!({ "method": "POST" }), b"").await;
        element(&begun.text().await.unwrap(), "UploadId")
    };
    let id = begin().await;
    let aborted = s3_request(&alice, file, json!({ "method": "DELETE", "uploadId": id }), b"").await;
    assert!(aborted.status().is_success());
    let id = begin().await;
    let request = json!({ "method": "PUT", "uploadId": id, "partNumber": 1 });
    let etag = s3_request(&alice, file, request, b"too short").await.headers()["etag"].clone();
    let part = format!("<Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part>", etag.to_str().unwrap());
    let body = format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>");
    s3_request(&alice, file, json!({ "method": "POST", "uploadId": id }), body.as_bytes()).await;
    alice.confirm(file).await.refused(400, "SIZE_MISMATCH");
    assert!(bucket.get(&key_of(&ticket)).await.is_some(), "it stays with its file");

    let path = format!("/api/v2/uploads/files/{file}/s3-requests");
    for bad in [
        json!({ "method": "GET" }),
        json!({ "method": "DELETE" }),
        json!({ "method": "PUT", "uploadId": "x" }),
        json!({ "method": "PUT", "uploadId": "x", "partNumber": 0 }),
        json!({ "method": "PUT", "uploadId": "x", "partNumber": 10_001 }),
        json!({ "method": "PATCH" }),
    ] {
        alice.post(&path, bad).await.refused(400, "INVALID_REQUEST");
    }
    server.client("bob").post(&path, json!({ "method": "POST" })).await.refused(404, "FILE_NOT_FOUND");
    server.stop().await;
}

#[on_each_database]
async fn a_folder_has_no_requests_to_sign(db: TestDb) {
    let server = Setup::default().with("ROLE", "api").start(&db).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "a", 5).await;
    let path = format!("/api/v2/uploads/files/{}/s3-requests", text(&ticket["fileId"]));
    alice.post(&path, json!({ "method": "POST" })).await.refused(409, "NO_DIRECT_UPLOADS");
    server.stop().await;
}
