//! Every kind of bad request, and the response to each.

use md5::{Digest, Md5};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::{Client, Script, Setup, TestDb, TestServer, manual_clock, on_each_database};

const INIT: &str = "/api/v2/uploads/files/init";

async fn server(db: &TestDb) -> TestServer {
    Setup::default().work(Script::new()).start(db).await
}

async fn raw(client: &Client, path: &str, body: &'static str) -> crate::support::ApiResponse {
    client.send(client.request(Method::POST, path).body(body)).await
}

#[on_each_database]
async fn a_body_that_cannot_be_parsed_is_refused_with_the_reason(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    for (body, code) in [
        ("", "INVALID_JSON"),
        ("{", "INVALID_JSON"),
        ("not json", "INVALID_JSON"),
        (r#"{"fileName": "a", "fileSize": 1"#, "INVALID_JSON"),
        ("null", "INVALID_REQUEST"),
        ("{}", "INVALID_REQUEST"),
        (r#"{"fileName": 5, "fileSize": 1}"#, "INVALID_REQUEST"),
        (r#"{"fileName": "a", "fileSize": "1"}"#, "INVALID_REQUEST"),
        (r#"{"fileName": "a", "fileSize": 1.5}"#, "INVALID_REQUEST"),
        (r#"{"fileName": "a", "fileSize": 99999999999999999999}"#, "INVALID_REQUEST"),
        (r#"{"fileName": "a", "fileSize": 1, "surprise": true}"#, "INVALID_REQUEST"),
    ] {
        let answer = raw(&alice, INIT, body).await;
        assert_eq!((answer.status, answer.code()), (400, code), "{body}");
    }
    let deep = format!("{{\"fileCount\": 1, \"metadata\": {}1{}}}", "{\"a\":".repeat(200), "}".repeat(200));
    let answer = alice.send(alice.request(Method::POST, "/api/v2/uploads/batches").body(deep)).await;
    answer.refused(400, "INVALID_JSON");
    let large = "x".repeat(3 << 20);
    alice.send(alice.request(Method::POST, INIT).body(large)).await.refused(413, "BODY_TOO_LARGE");
}

#[on_each_database]
async fn a_file_that_is_not_acceptable_is_refused_with_its_own_code(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    let file = |name: &str, size: i64| json!({ "fileName": name, "fileSize": size });
    for (body, status, code) in [
        (file("", 1), 400, "INVALID_FILE_NAME"),
        (file("../../etc/passwd", 1), 400, "INVALID_FILE_NAME"),
        (file("a\u{0}b", 1), 400, "INVALID_FILE_NAME"),
        (file("a\u{202e}fdp.exe", 1), 400, "INVALID_FILE_NAME"),
        (file(&"x".repeat(300), 1), 400, "INVALID_FILE_NAME"),
        (file("a", -5), 400, "INVALID_FILE_SIZE"),
        (file("a", (50 << 20) + 1), 413, "TOO_LARGE"),
        (json!({ "fileName": "a", "fileSize": 1, "md5": "nonsense" }), 400, "INVALID_MD5"),
        (json!({ "fileName": "a", "fileSize": 1, "contentType": "text\n" }), 400, "INVALID_CONTENT_TYPE"),
    ] {
        let answer = alice.post(INIT, body.clone()).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{body}");
    }
    let error = alice.post(INIT, file("a", (50 << 20) + 1)).await.refused(413, "TOO_LARGE");
    assert_eq!(error["message"], "File exceeds 50 MB limit");
    assert_eq!(alice.quota().await, (0, 0));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn an_invalid_confirmation_is_refused_in_every_state_of_the_file(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    let registered = alice.register(None, "registered", 1).await["fileId"].as_str().unwrap().to_owned();
    let uploaded = alice.send_bytes(None, "uploaded", b"a").await;
    let ready = alice.upload("ready", b"a").await;
    server.idle().await;
    for file in [registered, uploaded, ready] {
        let confirm = format!("/api/v2/uploads/files/{file}/confirm");
        alice.post(&confirm, json!({ "size": -1 })).await.refused(400, "INVALID_FILE_SIZE");
        alice.post(&confirm, json!({ "md5": "nonsense" })).await.refused(400, "INVALID_MD5");
    }
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_batch_that_cannot_be_opened_is_refused(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    let open = async |body: Value| alice.post("/api/v2/uploads/batches", body).await;
    for count in [0, -1, 10_001] {
        open(json!({ "fileCount": count })).await.refused(400, "INVALID_FILE_COUNT");
    }
    open(json!({ "fileCount": 1, "priority": "urgent" })).await.refused(400, "INVALID_REQUEST");
    open(json!({ "fileCount": 1, "metadata": 5 })).await.refused(400, "INVALID_METADATA");
    open(json!({ "fileCount": 10_000, "metadata": { "a": [1, null] } })).await.ok();
    open(json!({ "fileCount": 1, "metadata": { "a": "\u{0}" } })).await.refused(400, "INVALID_METADATA");
    let batch = alice.open_batch(5).await;
    let path = format!("/api/v2/uploads/batches/{batch}/upload-urls");
    alice.post(&path, json!([])).await.refused(400, "INVALID_FILE_COUNT");
    let bad = json!([{ "fileName": "a", "fileSize": 1 }, { "fileName": "", "fileSize": 1 }]);
    let error = alice.post(&path, bad).await.refused(400, "INVALID_FILE_NAME");
    assert_eq!(error["details"]["index"], 1, "the index of the bad entry");
}

#[on_each_database]
async fn resources_of_another_user_are_not_found(db: TestDb) {
    let server = server(&db).await;
    let (alice, mallory) = (server.client("alice"), server.client("mallory"));
    let batch = alice.open_batch(2).await;
    let file = alice.upload_in(&batch, "a", b"a").await;
    server.idle().await;
    let nothing = "01890000-0000-7000-8000-000000000000";
    for id in [file.as_str(), nothing, "not-an-id", "%00", "..%2f.."] {
        for (method, suffix) in [
            (Method::GET, ""),
            (Method::GET, "/history"),
            (Method::GET, "/text"),
            (Method::GET, "/result"),
            (Method::GET, "/chunks"),
            (Method::GET, "/download"),
            (Method::POST, "/confirm"),
            (Method::POST, "/upload-url"),
            (Method::POST, "/cancel"),
            (Method::POST, "/retry"),
            (Method::DELETE, ""),
        ] {
            let path = format!("/api/v2/uploads/files/{id}{suffix}");
            let answer = mallory.send(mallory.request(method.clone(), &path)).await;
            assert_eq!((answer.status, answer.code()), (404, "FILE_NOT_FOUND"), "{method} {path}");
        }
    }
    for id in [batch.as_str(), nothing, "not-an-id"] {
        let path = format!("/api/v2/uploads/batches/{id}");
        mallory.get(&path).await.refused(404, "BATCH_NOT_FOUND");
        mallory.post(&format!("{path}/close"), json!({})).await.refused(404, "BATCH_NOT_FOUND");
        let new = json!({ "fileName": "a", "fileSize": 1 });
        mallory.post(&format!("{path}/upload-urls"), new).await.refused(404, "BATCH_NOT_FOUND");
    }
    assert_eq!(mallory.get("/api/v2/uploads/files").await.ok()["files"], json!([]));
    assert_eq!(mallory.get("/api/v2/uploads/files?scope=all").await.code(), "FORBIDDEN");
    assert_eq!(alice.status(&file).await, "ready", "the file is unchanged");
    let everyones = server.admin().get("/api/v2/uploads/files?scope=all").await.ok();
    assert_eq!(everyones["files"].as_array().unwrap().len(), 1);
}

#[on_each_database]
async fn an_upload_url_is_valid_for_one_file_one_size_and_a_limited_time(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let (one, two) = (alice.register(None, "a", 5).await, alice.register(None, "b", 5).await);
    let url = one["uploadUrl"].as_str().unwrap();
    let (file, other) = (one["fileId"].as_str().unwrap(), two["fileId"].as_str().unwrap());
    for forged in [
        url.replace(file, other),
        url.replace("size=5", "size=6"),
        url.replace("expires=1", "expires=2"),
        url.replace("signature=", "signature=0"),
        url.replace("signature=", "signature=zz"),
    ] {
        alice.put(&forged, "12345").await.refused(403, "INVALID_SIGNATURE");
    }
    alice.put(url.split('?').next().unwrap(), "12345").await.refused(400, "INVALID_REQUEST");
    let get = alice.send(alice.http.get(url)).await;
    get.refused(405, "METHOD_NOT_ALLOWED");

    // A fresh URL extends the deadline of the file; without it the file would expire with the first URL.
    clock.advance(std::time::Duration::from_mins(50));
    let fresh = alice.post(&format!("/api/v2/uploads/files/{file}/upload-url"), json!({})).await.ok();
    clock.advance(std::time::Duration::from_secs(601));
    alice.put(url, "12345").await.refused(403, "UPLOAD_URL_EXPIRED");
    alice.put(fresh["uploadUrl"].as_str().unwrap(), "12345").await.ok();
    alice.confirm(file).await.ok();
    let late = alice.post(&format!("/api/v2/uploads/files/{file}/upload-url"), json!({})).await;
    late.refused(409, "INVALID_STATE");
    server.idle().await;
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_body_of_another_size_is_refused_and_the_url_stays_valid(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "a", 5).await;
    let (file, url) = (ticket["fileId"].as_str().unwrap(), ticket["uploadUrl"].as_str().unwrap());
    alice.put(url, "1234").await.refused(400, "SIZE_MISMATCH");
    alice.put(url, "123456").await.refused(400, "SIZE_MISMATCH");
    // The same without a Content-Length header, so that only the bytes show it.
    for body in ["1234", "123456"] {
        let stream = futures_util::stream::iter([Ok::<_, std::io::Error>(body)]);
        alice.put(url, reqwest::Body::wrap_stream(stream)).await.refused(400, "SIZE_MISMATCH");
    }
    assert_eq!(alice.status(file).await, "registered");
    alice.confirm(file).await.refused(409, "UPLOAD_MISSING");
    assert_eq!(leftovers(&db), 0, "a broken upload leaves nothing behind");
    alice.put(url, "12345").await.ok();
    assert_eq!(alice.confirm(file).await.ok()["status"], "queued");
    server.idle().await;
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn an_interrupted_upload_leaves_nothing_behind(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "a", 5).await;
    let (file, url) = (ticket["fileId"].as_str().unwrap(), ticket["uploadUrl"].as_str().unwrap());
    let stream = futures_util::stream::iter([Ok("12"), Err(std::io::Error::other("cut"))]);
    let cut = alice.http.put(url).body(reqwest::Body::wrap_stream(stream)).send().await;
    assert!(cut.is_err(), "{cut:?}");
    // The next upload passes through the same server after it is done with the interrupted one.
    alice.put(url, "12345").await.ok();
    alice.confirm(file).await.ok();
    server.idle().await;
    while leftovers(&db) > 0 {
        tokio::task::yield_now().await;
    }
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn bytes_with_another_md5_than_declared_are_refused(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    let right = "827ccb0eea8a706c4c34a16891f84e7b"; // of 12345
    let body = json!({ "fileName": "a", "fileSize": 5, "md5": right });
    let ticket = alice.post(INIT, body).await.ok();
    let (file, url) = (ticket["fileId"].as_str().unwrap(), ticket["uploadUrl"].as_str().unwrap());
    alice.put(url, "54321").await.refused(400, "CHECKSUM_MISMATCH");
    let header = |md5: &'static str| alice.http.put(url).header("Content-MD5", md5).body("12345");
    alice.send(header("1B2M2Y8AsgTpgAmY7PhCfg==")).await.refused(400, "CHECKSUM_MISMATCH");
    alice.send(header("gnzLDuqKcGxMNKFokfhOew==")).await.ok();
    let confirm = format!("/api/v2/uploads/files/{file}/confirm");
    alice
        .post(&confirm, json!({ "md5": "d41d8cd98f00b204e9800998ecf8427e" }))
        .await
        .refused(400, "CHECKSUM_MISMATCH");
    alice.post(&confirm, json!({ "size": 6 })).await.refused(400, "SIZE_MISMATCH");
    alice.post(&confirm, json!({ "size": 5, "md5": right, "x": 1 })).await.refused(400, "INVALID_REQUEST");
    assert_eq!(alice.post(&confirm, json!({ "size": 5, "md5": right })).await.ok()["status"], "queued");
    server.idle().await;
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_repeated_idempotency_key_returns_the_same_response_and_refuses_another_request(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    let send = async |client: &Client, key: &str, body: Value| {
        client.send(client.request(Method::POST, INIT).header("Idempotency-Key", key).json(&body)).await
    };
    let body = json!({ "fileName": "a", "fileSize": 1 });
    let first = send(&alice, "k", body.clone()).await.ok();
    assert_eq!(send(&alice, "k", body.clone()).await.ok(), first);
    send(&alice, "k", json!({ "fileName": "b", "fileSize": 1 })).await.refused(422, "IDEMPOTENCY_KEY_REUSED");
    assert_ne!(send(&alice, "k2", body.clone()).await.ok()["fileId"], first["fileId"]);
    assert_ne!(send(&server.client("bob"), "k", body.clone()).await.ok()["fileId"], first["fileId"]);
    send(&alice, "", body.clone()).await.refused(400, "INVALID_IDEMPOTENCY_KEY");
    send(&alice, &"k".repeat(300), body).await.refused(400, "INVALID_IDEMPOTENCY_KEY");
    // A refusal is not stored: the same request may succeed later.
    let batch = alice.open_batch(1).await;
    let path = format!("/api/v2/uploads/batches/{batch}/upload-urls");
    let two = json!([{ "fileName": "a", "fileSize": 1 }, { "fileName": "b", "fileSize": 1 }]);
    let request = || alice.request(Method::POST, &path).header("Idempotency-Key", "k3");
    alice.send(request().json(&two)).await.refused(409, "BATCH_FULL");
    alice.send(request().json(&two[0])).await.ok();
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn pages_list_every_file_once_newest_first(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    let mut registered = Vec::new();
    for number in 0..25 {
        let ticket = alice.register(None, &format!("file {number}.txt"), 1).await;
        registered.push(ticket["fileId"].as_str().unwrap().to_owned());
    }
    let mut seen = Vec::new();
    let mut path = "/api/v2/uploads/files?limit=10".to_owned();
    loop {
        let page = alice.get(&path).await.ok();
        seen.extend(
            page["files"].as_array().unwrap().iter().map(|f| f["fileId"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/api/v2/uploads/files?limit=10&cursor={cursor}");
    }
    registered.reverse();
    assert_eq!(seen, registered);
    for bad in
        ["limit=0", "limit=201", "limit=x", "cursor=x", "status=lost", "batchId=", "scope=world", "x=1"]
    {
        let answer = alice.get(&format!("/api/v2/uploads/files?{bad}")).await;
        assert!(matches!(answer.status, 400 | 404), "{bad}: {}", answer.body);
    }
    let count = async |query: &str| {
        alice.get(&format!("/api/v2/uploads/files?{query}")).await.ok()["files"].as_array().unwrap().len()
    };
    assert_eq!(count("q=FILE%202").await, 6, "2 and 20 to 24");
    assert_eq!(count("q=%25").await, 0, "a percent sign is a percent sign");
    assert_eq!(count("status=registered").await, 25);
    assert_eq!(count("status=ready").await, 0);
}

#[on_each_database]
async fn files_are_found_by_the_checksum_of_their_bytes(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    let md5 = |bytes: &[u8]| hex::encode(Md5::digest(bytes));
    let sha256 = |bytes: &[u8]| hex::encode(Sha256::digest(bytes));
    let (tide, ebb) = (md5(b"high tide"), md5(b"ebb"));
    let first = alice.upload("tide.txt", b"high tide").await;
    let second = alice.upload("copy.txt", b"high tide").await;
    let other = alice.upload("ebb.txt", b"ebb").await;
    server.client("bob").upload("his.txt", b"high tide").await;
    let declared = json!({ "fileName": "declared.txt", "fileSize": 3, "md5": md5(b"low") });
    let declared = alice.post("/api/v2/uploads/files/init", declared).await.ok()["fileId"].clone();
    server.idle().await;
    let found = async |query: &str| {
        let page = alice.get(&format!("/api/v2/uploads/files?{query}")).await.ok();
        let ids = page["files"].as_array().unwrap().iter().map(|file| file["fileId"].clone());
        ids.collect::<Vec<Value>>()
    };
    assert_eq!(found(&format!("md5={tide}")).await, [json!(second), json!(first)]);
    assert_eq!(
        found(&format!("md5={ebb},{}", tide.to_uppercase())).await,
        [json!(other), json!(second), json!(first)]
    );
    assert_eq!(found(&format!("md5={tide}&q=COPY")).await, [json!(second)]);
    assert_eq!(found(&format!("md5={tide}&status=ready&limit=1")).await, [json!(second)]);
    assert_eq!(found(&format!("md5={tide}&status=failed")).await, [] as [Value; 0]);
    assert_eq!(found(&format!("md5={}", md5(b"low"))).await, std::slice::from_ref(&declared));
    assert_eq!(found(&format!("md5={}", md5(b"nothing"))).await, [] as [Value; 0]);
    let shown = alice.file(&first).await;
    assert_eq!((&shown["md5"], &shown["sha256"]), (&json!(tide), &json!(sha256(b"high tide"))));
    let shown = alice.file(declared.as_str().unwrap()).await;
    assert_eq!((&shown["md5"], &shown["sha256"]), (&json!(md5(b"low")), &Value::Null));

    assert_eq!(alice.delete(&format!("/api/v2/uploads/files/{first}")).await.status, 204);
    assert_eq!(found(&format!("md5={tide}")).await, [json!(second)], "a deleted file is not there");
    let many = vec![tide.as_str(); 101].join(",");
    for bad in ["", "tide", "d41d8cd98f00b204e9800998ecf8427e,", many.as_str()] {
        alice.get(&format!("/api/v2/uploads/files?md5={bad}")).await.refused(400, "INVALID_MD5");
    }
}

#[on_each_database]
async fn a_file_name_is_treated_as_data_everywhere(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    let name = "<img src=x onerror=alert(1)> \"quoted\"; ü.txt";
    let file = alice.upload(name, b"a").await;
    server.idle().await;
    assert_eq!(alice.file(&file).await["fileName"], name);
    let path = format!("/api/v2/uploads/files/{file}/download");
    let download = alice.request(Method::GET, &path).send().await.unwrap();
    let headers = download.headers();
    assert_eq!(headers["x-content-type-options"], "nosniff");
    let disposition = headers["content-disposition"].to_str().unwrap();
    assert!(
        disposition.starts_with("attachment; filename=\"<img_src=x_onerror=alert(1)>__quoted_"),
        "{disposition}"
    );
    assert!(disposition.ends_with("%C3%BC.txt"), "{disposition}");
}

#[on_each_database]
async fn unknown_paths_and_methods_have_their_own_codes(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    alice.get("/api/v2/nothing").await.refused(404, "NOT_FOUND");
    alice.delete("/api/v2/uploads/quota").await.refused(405, "METHOD_NOT_ALLOWED");
    let answer = alice.request(Method::GET, "/healthz").header("x-request-id", "mine").send().await.unwrap();
    assert_eq!(answer.headers()["x-request-id"], "mine");
}

#[on_each_database]
async fn text_and_bytes_that_do_not_exist_yet_are_refused_with_a_code(db: TestDb) {
    let server = server(&db).await;
    let alice = server.client("alice");
    let file = alice.register(None, "a", 1).await["fileId"].as_str().unwrap().to_owned();
    let path = format!("/api/v2/uploads/files/{file}");
    alice.get(&format!("{path}/text")).await.refused(409, "NOT_EXTRACTED");
    alice.get(&format!("{path}/download")).await.refused(409, "UPLOAD_MISSING");
    assert_eq!(alice.get(&format!("{path}/chunks")).await.ok()["chunks"], json!([]));
    assert_eq!(alice.file(&file).await["waitingFor"], "upload");
}

/// Partial files that an upload left behind.
fn leftovers(db: &TestDb) -> usize {
    std::fs::read_dir(db.folder.path().join("blobs/incoming")).unwrap().count()
}
