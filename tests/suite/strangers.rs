//! Bob's files are private: whatever a stranger calls, with any of his ids, they see nothing of his and change nothing of
//! his. Strangers are all users but the administrators of his tenant and the operators: also one of the same name in another
//! tenant, and a member of his own. The calls are all calls of the API description.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture};
use landfall_core::caller::Role;
use landfall_core::failure::Failure;
use landfall_server::http::document;
use landfall_server::stages::{Job, Output, Work};
use md5::{Digest, Md5};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::tus;
use crate::support::{Client, Setup, TestDb, TestServer, manual_clock, on_each_database};

/// A word that is in everything of Bob's, and nowhere else.
const MARK: &str = "zanzibarquartz";
const BOB: &str = "bob";
const TENANT: &str = "harbour";

/// Stops each file at the state that its name begins with.
struct StopAtState;

impl Work for StopAtState {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        if job.file.file_name.starts_with(job.stage.running().name()) {
            return future::pending().boxed();
        }
        async { Ok(Output::Nothing) }.boxed()
    }
}

/// Everything that Bob owns.
struct Resources {
    files: Vec<String>,
    batches: Vec<String>,
    operation: String,
    notification: String,
    webhook: String,
    webhook_secret: String,
    key: String,
    delivery: String,
    fingerprint: String,
    upload_url: String,
}

impl Resources {
    /// The ids that can be used for a path parameter.
    fn ids(&self, parameter: &str) -> Vec<String> {
        match parameter {
            "fileId" | "uploadId" => self.files.clone(),
            "batchId" => self.batches.clone(),
            "operationId" => vec![self.operation.clone()],
            "notificationId" => vec![self.notification.clone()],
            "webhookId" => vec![self.webhook.clone()],
            "deliveryId" => vec![self.delivery.clone()],
            "keyId" => vec![self.key.clone()],
            "tenantId" => vec![TENANT.to_owned()],
            "stage" => vec!["extract".to_owned()],
            "jobName" => vec!["retention".to_owned()],
            "service" => vec!["gateway".to_owned()],
            "asset" => vec!["index.html".to_owned()],
            "consoleFile" => vec!["icon.svg".to_owned()],
            other => panic!("add Bob's ids for {{{other}}}"),
        }
    }

    /// Values for query parameters, besides those that every list accepts.
    fn values(&self, parameter: &str) -> Vec<String> {
        match parameter {
            // The first four are what an identity provider sends back, and where to go on. Every call to the stream has the
            // last four anyway, or cannot have them.
            "state" | "error" | "iss" | "returnTo" | "actor" | "action" | "outcome" | "address" | "since"
            | "until" | "limit" | "hours" | "status" | "code" | "stage" | "unread" | "after" | "types"
            | "ticket" | "follow" | "token" | "createdAfter" | "createdBefore" | "sort" | "order" => {
                Vec::new()
            }
            "batchId" => self.batches.clone(),
            "fileIds" => vec![self.files.join(",")],
            "owner" => vec![BOB.to_owned(), format!("{BOB}&scope=tenant"), format!("{BOB}&scope=all")],
            "tenantId" => vec![TENANT.to_owned(), format!("{TENANT}&scope=tenant")],
            "cursor" => vec![uuid::Uuid::max().to_string(), "0".to_owned()],
            "offset" => vec!["0".to_owned(), "1".to_owned()],
            "q" => vec![MARK.to_owned()],
            // Those of the bytes of his files: of "bytes", and of the text that has the mark.
            "md5" => [&b"bytes"[..], text().as_bytes()].map(|bytes| hex::encode(Md5::digest(bytes))).to_vec(),
            "fingerprint" => vec![self.fingerprint.clone()],
            "scope" => vec!["tenant".to_owned(), "all".to_owned()],
            "refresh" | "force" | "proxy" | "warnings" => vec!["true".to_owned()],
            "format" => vec!["markdown".to_owned(), "plain".to_owned()],
            other => panic!("add what Alice should send as ?{other}="),
        }
    }

    /// Valid request bodies.
    fn bodies(&self, operation: &str) -> Vec<Value> {
        let file = json!({ "fileName": "own.txt", "fileSize": 5 });
        match operation {
            "openBatch" => vec![json!({ "fileCount": 1 })],
            "signS3Request" => vec![json!({ "method": "POST" })],
            "takeStorageEvents" => vec![json!({ "Records": [] })],
            "registerFile" => vec![file],
            "registerFilesInBatch" => vec![file.clone(), json!([file])],
            "confirmFile" | "confirmFileInBatch" => vec![json!({}), json!({ "size": 5 })],
            "retryFile" => vec![json!({}), json!({ "fromStage": "extract" })],
            "retryDeadLetters" => vec![
                json!({}),
                json!({ "batchId": self.batches[0] }),
                json!({ "fingerprint": self.fingerprint }),
                json!({ "scope": "tenant" }),
                json!({ "scope": "all" }),
            ],
            "startOperation" => ["retry", "cancel", "delete"]
                .iter()
                .flat_map(|action| {
                    [
                        json!({ "action": action, "fileIds": self.files }),
                        json!({ "action": action, "filter": { "batchId": self.batches[0] } }),
                        json!({ "action": action, "filter": { "q": MARK } }),
                        json!({ "action": action, "filter": { "scope": "tenant", "owner": BOB } }),
                        json!({ "action": action, "filter": { "scope": "all", "tenantId": TENANT } }),
                    ]
                })
                .collect(),
            "search" => vec![
                json!({ "query": MARK }),
                json!({ "query": MARK, "batchId": self.batches[0] }),
                json!({ "query": MARK, "fileId": self.files[0] }),
                // An explanation has the words of the query.
                json!({ "query": "bytes", "fileIds": self.files, "mode": "words", "explain": true }),
                json!({ "query": MARK, "attributes": { "project": MARK } }),
                json!({ "query": MARK, "name": "a", "mode": "meaning" }),
            ],
            "registerWebhook" => {
                vec![
                    json!({ "url": "http://127.0.0.1:9/hook" }),
                    json!({ "url": "https://x.example", "scope": "tenant" }),
                    json!({ "url": "https://x.example", "scope": "all" }),
                ]
            }
            "changeFile" => vec![json!({ "attributes": {} }), json!({ "attributes": { "project": "mine" } })],
            "changeWebhook" => vec![json!({ "enabled": false }), json!({ "url": "http://127.0.0.1:9/mine" })],
            "logOut" => vec![json!({}), json!({ "everywhere": true })],
            "issueLink" => vec![json!({ "tenantId": TENANT, "userId": BOB, "role": "operator" })],
            "openLink" => vec![json!({ "code": MARK, "confirm": true })],
            "createKey" => vec![
                json!({ "name": "k", "scopes": ["read"] }),
                json!({ "name": "k", "scopes": ["read"], "userId": BOB, "tenantId": TENANT }),
            ],
            "setQuota" => vec![json!({ "bytes": 1 })],
            // Bytes, and what is said of them in headers.
            "createUpload" | "appendToUpload" | "overrideMethod" => vec![Value::Null],
            other => panic!("add what Alice should send to {other}"),
        }
    }

    /// What must not be in any response to a stranger.
    fn secrets(&self) -> Vec<&str> {
        let ids = self.files.iter().chain(&self.batches).map(String::as_str);
        let others = [
            &self.operation,
            &self.notification,
            &self.webhook,
            &self.delivery,
            &self.webhook_secret,
            &self.key,
        ];
        ids.chain(others.map(String::as_str)).chain([MARK]).collect()
    }
}

fn text() -> String {
    format!("The {MARK} is mined near the harbour.")
}

/// Files in every state, a batch of each kind, a dead letter, an operation, a notification.
async fn create_resources(db: &TestDb) -> (TestServer, Resources) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).start(db).await;
    let bob = server.client_of(BOB, TENANT);
    let about = json!({ "fileCount": 2, "metadata": { "about": MARK } });
    let done = bob.post("/api/v2/uploads/batches", about).await.ok()["batchId"].as_str().unwrap().to_owned();
    let text = text();
    let ready = bob.upload_in(&done, &format!("ready-{MARK}.txt"), text.as_bytes()).await;
    let failed = bob.upload_in(&done, &format!("failed-{MARK}.pdf"), text.as_bytes()).await;
    server.client("alice").upload("hers.txt", b"The harbour is Alice's own.").await;
    server.idle().await;
    let groups = bob.get("/api/v2/uploads/dlq/groups").await.ok();
    let operation = bob.post("/api/v2/uploads/dlq/retry-all", json!({ "code": "INFECTED" })).await.ok();
    let notifications = bob.get("/api/v2/notifications").await.ok();
    server.stop().await;

    // The same again, with a scanner, and with workers that never finish.
    let server = Setup::default()
        .clock(&clock)
        .with("CLAMD_ADDRESS", "tcp://127.0.0.1:1")
        .with("WEBHOOK_ALLOW_PRIVATE", true)
        .work(Arc::new(StopAtState))
        .start(db)
        .await;
    let bob = server.client_of(BOB, TENANT);
    let under_way = bob.open_batch(20).await;
    let mut files = vec![ready, failed];
    for state in ["scanning", "extracting", "chunking", "embedding"] {
        let file = bob.upload_in(&under_way, &format!("{state}-{MARK}.txt"), b"bytes").await;
        crate::support::until(state, async || bob.status(&file).await == state).await;
        files.push(file);
    }
    server.admin().post("/api/v2/admin/queues/scan/pause", json!({})).await.ok();
    files.push(bob.upload_in(&under_way, &format!("queued-{MARK}.txt"), b"bytes").await);
    let cancelled = bob.upload_in(&under_way, &format!("cancelled-{MARK}.txt"), b"bytes").await;
    bob.post(&format!("/api/v2/uploads/files/{cancelled}/cancel"), json!({})).await.ok();
    let deleted = bob.upload_in(&under_way, &format!("deleted-{MARK}.txt"), b"bytes").await;
    assert_eq!(bob.delete(&format!("/api/v2/uploads/files/{deleted}")).await.status, 204);
    files.extend([cancelled, deleted]);
    files.push(bob.send_bytes(Some(&under_way), &format!("uploaded-{MARK}.txt"), b"bytes").await);
    let resumable = bob.create_upload(&format!("resumable-{MARK}.txt"), 5).await.expect(201);
    bob.append(&resumable.location(), 0, b"by").await.expect(204);
    files.push(resumable.file());
    let ticket = bob.register(Some(&under_way), &format!("registered-{MARK}.txt"), 5).await;
    files.push(ticket["fileId"].as_str().unwrap().to_owned());
    let about = json!({ "url": format!("http://127.0.0.1:9/{MARK}"), "description": MARK });
    let webhook = bob.post("/api/v2/webhooks", about).await.ok();
    let hooks = format!("/api/v2/webhooks/{}", webhook["id"].as_str().unwrap());
    let delivery = bob.post(&format!("{hooks}/test"), json!({})).await.ok();
    // No endpoint listens there, and the clock stands still: it is tried once.
    let tried = async || bob.get(&format!("{hooks}/deliveries")).await.ok()["deliveries"][0]["attempts"] == 1;
    crate::support::until("the first attempt", tried).await;
    let key = bob.post("/api/v2/keys", json!({ "name": MARK, "scopes": ["read"] })).await.ok();
    let belongings = Resources {
        key: key["keyId"].as_str().unwrap().to_owned(),
        files,
        batches: vec![done, under_way],
        operation: operation["operationId"].as_str().unwrap().to_owned(),
        notification: notifications["notifications"][0]["notificationId"].as_str().unwrap().to_owned(),
        webhook: webhook["id"].as_str().unwrap().to_owned(),
        webhook_secret: webhook["secret"].as_str().unwrap().to_owned(),
        delivery: delivery["id"].as_str().unwrap().to_owned(),
        fingerprint: groups["groups"][0]["fingerprint"].as_str().unwrap().to_owned(),
        upload_url: ticket["uploadUrl"].as_str().unwrap().to_owned(),
    };
    (server, belongings)
}

/// Everything that Bob sees.
async fn as_bob_sees_it(bob: &Client, his: &Resources) -> Vec<(String, Value)> {
    // Without the quota, which he shares with the other users of his tenant.
    let mut paths: Vec<String> = ["files?limit=200", "batches", "dlq", "operations", "stuck"]
        .iter()
        .map(|list| format!("/api/v2/uploads/{list}"))
        .collect();
    paths.extend(
        ["/api/v2/notifications", "/api/v2/webhooks", "/api/v2/uploads/dashboard", "/api/v2/keys"]
            .map(str::to_owned),
    );
    paths.push(format!("/api/v2/webhooks/{}/deliveries", his.webhook));
    paths.extend(his.batches.iter().map(|batch| format!("/api/v2/uploads/batches/{batch}")));
    for file in &his.files {
        paths.push(format!("/api/v2/uploads/files/{file}"));
        paths.push(format!("/api/v2/uploads/files/{file}/history"));
        paths.push(format!("/api/v2/uploads/files/{file}/chunks"));
    }
    let mut seen = Vec::new();
    for path in paths {
        seen.push((path.clone(), bob.get(&path).await.body));
    }
    seen.push(("search".to_owned(), json!(bob.search(MARK).await)));
    seen
}

/// One call of the description, with all parameters filled in.
struct Call {
    method: Method,
    /// With its query.
    path: String,
    body: Option<Value>,
    operation: &'static Value,
}

impl Call {
    fn has_id_of_bobs(&self, his: &Resources) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        his.secrets().iter().any(|secret| path.contains(secret))
    }

    /// The scope that it asks for.
    fn scope(&self) -> &str {
        let body = self.body.as_ref();
        let body = body.and_then(|body| body["scope"].as_str().or(body["filter"]["scope"].as_str()));
        let query = ["tenant", "all"].into_iter().find(|scope| self.path.contains(&format!("scope={scope}")));
        body.or(query).unwrap_or("own")
    }

    /// Whether only operators may call it.
    fn is_for_operators(&self) -> bool {
        // Administrators see the part of the audit log that concerns their tenant.
        let is_audit_log = self.path.starts_with("/api/v2/admin/audit-log");
        (self.operation["tags"][0] == "administration" && !is_audit_log)
            || self.operation["operationId"] == "showMetrics"
            || self.operation["operationId"] == "issueLink"
            || self.path.contains("refresh=true")
            || self.scope() == "all"
    }

    /// The statuses that are correct for a stranger.
    fn expected(&self, his: &Resources, role: Role) -> &'static [u16] {
        let is_audit_log = self.path.starts_with("/api/v2/admin/audit-log");
        let for_bob = self.body.as_ref().is_some_and(|body| body["tenantId"] == TENANT);
        if self.is_for_operators()
            || (is_audit_log && role == Role::Member)
            || for_bob
            || (self.scope() == "tenant" && role == Role::Member)
            || (self.operation["tags"][0] == "jobs" && self.has_id_of_bobs(his))
        {
            &[403]
        } else if self.method == Method::OPTIONS {
            // What resumable uploads can do is the same for everyone.
            &[204]
        } else if self.operation["tags"][0] == "sign-in" {
            // No link that was issued, no session to end, no identity provider.
            &[200, 401, 409]
        } else if self.has_id_of_bobs(his) && self.path.contains("cursor=") {
            // One of the two kinds of cursors does not belong to this list; the server says that to any caller.
            &[404, 400]
        } else if self.has_id_of_bobs(his) {
            &[404]
        } else {
            // Their own files, or none. A cursor of another list is refused.
            &[200, 201, 202, 307, 400]
        }
    }
}

fn is_public(operation: &Value) -> bool {
    operation["security"].is_array()
}

/// Every operation with each of Bob's ids in every position.
fn calls(his: &Resources) -> Vec<Call> {
    let mut calls = Vec::new();
    for (template, item) in document()["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            let mut paths = vec![String::new()];
            for part in template.split('/').skip(1) {
                let parameter = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
                let choices = parameter.map_or_else(|| vec![part.to_owned()], |name| his.ids(name));
                paths = paths
                    .iter()
                    .flat_map(|path| choices.iter().map(move |choice| format!("{path}/{choice}")))
                    .collect();
            }
            let name = operation["operationId"].as_str().expect("a name");
            if ["sendBytes", "takeStorageEvents"].contains(&name) {
                // Its URL or its own token is the permission; it has its own test.
                continue;
            }
            if name == "streamEvents" {
                // From the beginning up to the present.
                paths = paths.iter().map(|path| format!("{path}?after=0&follow=false")).collect();
            }
            let plain = paths.clone();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                if parameter["in"] == "query" {
                    let key = parameter["name"].as_str().expect("a name");
                    for value in his.values(key) {
                        paths.extend(plain.iter().map(|path| {
                            let and = if path.contains('?') { '&' } else { '?' };
                            format!("{path}{and}{key}={value}")
                        }));
                    }
                }
            }
            let bodies: Vec<Option<Value>> = match &operation["requestBody"] {
                Value::Null => vec![None],
                _ => his.bodies(name).into_iter().map(Some).collect(),
            };
            for path in paths {
                for body in &bodies {
                    let method =
                        Method::from_bytes(method.to_ascii_uppercase().as_bytes()).expect("a method");
                    calls.push(Call { method, path: path.clone(), body: body.clone(), operation });
                }
            }
        }
    }
    calls
}

/// The status and the whole response.
async fn send(client: &Client, call: &Call, token: bool) -> (u16, String) {
    let mut request = client.http.request(call.method.clone(), format!("{}{}", client.base, call.path));
    if token {
        request = request.bearer_auth(&client.token);
    }
    if call.path.starts_with(tus::PATH) {
        // The method that does the most harm.
        request = request.header("Tus-Resumable", "1.0.0").header("X-HTTP-Method-Override", "DELETE");
        request = request.header("Content-Type", tus::PIECE).header("Upload-Offset", 2).body("tes");
        request = request.header("Upload-Metadata", tus::metadata(&[("filename", "own.txt")]));
        request = request.header("Upload-Length", 5);
    } else if let Some(body) = &call.body {
        request = request.json(body);
    }
    if call.operation["operationId"] == "streamEvents" {
        request = request.header("Accept", "text/event-stream");
    }
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status().as_u16(), format!("{:?}", response.headers()));
    (status, headers + &without_filter(&response.text().await.expect("text")))
}

/// A response without the parts in which an operation repeats its request: the filter, and ids that name nothing.
fn without_filter(answer: &str) -> String {
    let unknown = "{\"code\":\"FILE_NOT_FOUND\",\"fileId\":\"";
    let mut unfound = answer.split(unknown);
    let first = unfound.next().unwrap_or_default().to_owned();
    let answer = unfound.fold(first, |text, part| text + unknown + part.split_at(36.min(part.len())).1);
    let mut parts = answer.split("\"filter\":{");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest.push_str(part.split_once('}').map_or("", |(_, after)| after));
    }
    rest
}

#[on_each_database]
async fn strangers_see_nothing_and_change_nothing(db: TestDb) {
    let (server, his) = create_resources(&db).await;
    let bob = server.client_of(BOB, TENANT);
    let before = as_bob_sees_it(&bob, &his).await;
    let shown = json!(before).to_string();
    for secret in his.secrets().into_iter().filter(|secret| *secret != his.webhook_secret) {
        assert!(shown.contains(secret), "Bob himself does not see {secret}");
    }
    let calls = calls(&his);
    assert!(calls.len() > 200, "{}", calls.len());
    for (user, tenant, role) in [
        ("alice", "alice", Role::Member),
        (BOB, "evilcorp", Role::Member),
        (BOB, "evilcorp", Role::TenantAdmin),
        ("carol", TENANT, Role::Member),
    ] {
        let stranger = server.client_with(user, tenant, role);
        for call in &calls {
            let (status, answer) = send(&stranger, call, true).await;
            let what = format!(
                "{user} of {tenant}, {role}: {} {} {:?}: {status} {answer}",
                call.method, call.path, call.body
            );
            assert!(call.expected(&his, role).contains(&status), "{what}");
            // The audit log of their own tenant repeats the addresses that they called.
            let repeats = call.path.starts_with("/api/v2/admin/audit-log");
            for secret in his.secrets().into_iter().filter(|secret| !repeats || *secret == MARK) {
                assert!(!answer.contains(secret), "{secret} in {what}");
            }
        }
        assert_eq!(as_bob_sees_it(&bob, &his).await, before, "after {user} of {tenant}");
    }
    server.assert_audit_clean().await;
}

/// Whether only its owner has it, whatever the role of others: what they were told, and where they are told it.
fn is_personal(call: &Call) -> bool {
    let tag = call.operation["tags"][0].as_str().unwrap_or_default();
    (tag == "notifications" || tag == "webhooks") && call.path.matches('/').count() > 3
}

#[on_each_database]
async fn administrators_see_their_tenant_and_operators_see_all(db: TestDb) {
    let (server, his) = create_resources(&db).await;
    let dana = server.client_with("dana", TENANT, Role::TenantAdmin);
    let root = server.client_with("root", "root", Role::Operator);
    let calls = calls(&his);
    for (client, role) in [(&dana, Role::TenantAdmin), (&root, Role::Operator)] {
        for call in calls.iter().filter(|call| call.method == Method::GET) {
            let (status, answer) = send(client, call, true).await;
            let what = format!("{role}: {} {}: {status} {answer}", call.method, call.path);
            if role == Role::TenantAdmin && call.is_for_operators() {
                assert_eq!(status, 403, "{what}");
            } else if call.operation["tags"][0] == "sign-in" {
                assert!([200, 409].contains(&status), "{what}");
            } else if is_personal(call) {
                assert!([404, 400].contains(&status), "{what}");
            } else {
                // What a file in this state does not have, or no longer, is missing for its owner as well.
                assert_ne!(status, 401, "{what}");
                if [403, 404].contains(&status) {
                    let (to_bob, _) = send(&server.client_of(BOB, TENANT), call, true).await;
                    assert_eq!(to_bob, status, "{what}");
                }
            }
        }
        let scope = if role == Role::TenantAdmin { "tenant" } else { "all" };
        for list in ["files", "dlq", "operations"] {
            let path = format!("/api/v2/uploads/{list}?limit=200&scope={scope}");
            let seen = client.get(&path).await.ok().to_string();
            let expected = if list == "operations" { &his.operation } else { &his.files[1] };
            assert!(seen.contains(expected), "{role}: {path}: {seen}");
        }
    }
    let others = dana.get("/api/v2/uploads/files?limit=200&scope=tenant").await.ok().to_string();
    assert!(!others.contains("hers.txt"), "the file of another tenant: {others}");
}

#[on_each_database]
async fn an_administrator_may_change_what_belongs_to_the_tenant(db: TestDb) {
    let server = Setup::default().start(&db).await;
    let bob = server.client_of(BOB, TENANT);
    let dana = server.client_with("dana", TENANT, Role::TenantAdmin);
    let failed = bob.upload("failed.pdf", b"no document").await;
    let ready = bob.upload("ready.txt", b"The tide comes in.").await;
    server.idle().await;
    assert_eq!(bob.status(&failed).await, "failed");
    dana.post(&format!("/api/v2/uploads/files/{failed}/retry"), json!({})).await.ok();
    server.idle().await;
    let history = bob.get(&format!("/api/v2/uploads/files/{failed}/history")).await.ok();
    assert!(history.to_string().contains(r#"{"kind":"administrator","name":"dana"}"#), "{history}");
    dana.post("/api/v2/uploads/dlq/retry-all", json!({ "scope": "tenant" })).await.ok();
    assert_eq!(dana.delete(&format!("/api/v2/uploads/files/{ready}")).await.status, 204);
    bob.get(&format!("/api/v2/uploads/files/{ready}")).await.refused(410, "FILE_DELETED");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn without_a_token_only_health_and_the_description_are_available(db: TestDb) {
    let (server, his) = create_resources(&db).await;
    let anonymous = server.client("anonymous");
    for call in calls(&his) {
        let (status, answer) = send(&anonymous, &call, false).await;
        let what = format!("{} {}: {status} {answer}", call.method, call.path);
        if call.operation["tags"][0] == "sign-in" {
            // No person is signed in, and no way in works: no link, no token, no identity provider.
            assert!([200, 401, 409].contains(&status), "{what}");
            assert!(!answer.contains("set-cookie") && !answer.contains("csrfToken"), "{what}");
        } else if is_public(call.operation) {
            let is_description = call.method == Method::OPTIONS && call.path.starts_with(tus::PATH);
            assert!(is_description || call.operation["tags"][0] == "health", "{what}");
            assert!(status < 400, "{what}");
        } else {
            assert_eq!(status, 401, "{what}");
        }
    }
}

#[on_each_database]
async fn a_signed_url_is_valid_for_its_own_file_only(db: TestDb) {
    let (server, his) = create_resources(&db).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "alice.txt", 5).await;
    let hers = ticket["uploadUrl"].as_str().unwrap();
    let file = ticket["fileId"].as_str().unwrap();
    for other in &his.files {
        alice.put(&hers.replace(file, other), "bytes").await.refused(403, "INVALID_SIGNATURE");
    }
    let longer = hers.replace("size=5", "size=6");
    alice.put(&longer, "bytes!").await.refused(403, "INVALID_SIGNATURE");
    assert!(his.upload_url.contains(his.files.last().unwrap()));
    alice.put(hers, "bytes").await.ok();
}
