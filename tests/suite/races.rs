//! Concurrent actions, and one correct outcome.

use std::sync::Arc;

use futures_util::future::join_all;
use landfall_core::caller::{Caller, Role};
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage::Extract;
use landfall_core::lifecycle::Status;
use landfall_server::intake::announce::Announced;
use landfall_server::intake::register::{Register, Tickets};
use landfall_server::queue::settle::{SettleGroup, Settlement, Verdict};
use landfall_server::records::file::File;
use landfall_store::Error;
use landfall_store::{Tx, Write, apply_alone};
use md5::{Digest, Md5};
use serde_json::json;
use tokio::sync::Barrier;

use crate::support::script::Gate;
use crate::support::{Client, Script, Setup, Step, TestDb, batch_summary, on_each_database, until};

/// Runs the same thing many times at once.
async fn at_once<T, F>(times: usize, what: impl Fn(usize) -> F) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let barrier = Arc::new(Barrier::new(times));
    let tasks = (0..times).map(|number| {
        let (barrier, work) = (barrier.clone(), what(number));
        tokio::spawn(async move {
            barrier.wait().await;
            work.await
        })
    });
    join_all(tasks).await.into_iter().map(|done| done.expect("no panic")).collect()
}

/// A change that is applied and then waits at the gate before its commit.
struct Held<W> {
    change: W,
    gate: Gate,
}

impl<W: Write> Write for Held<W> {
    type Output = W::Output;

    async fn apply(&self, tx: &mut Tx) -> Result<W::Output, Error> {
        let answer = self.change.apply(tx).await?;
        self.gate.wait().await;
        Ok(answer)
    }
}

fn file_path(id: &str) -> String {
    format!("/api/v2/uploads/files/{id}")
}

#[on_each_database]
async fn a_late_settlement_in_one_group_with_the_holders_has_no_effect(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Block(gate.clone()));
    let server = Setup::default().work(script).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(1).await;
    let id = alice.upload_in(&batch, "a", b"a").await.parse().unwrap();
    gate.reached().await;
    let file = File::find(&mut server.app.db.read().await.unwrap(), id).await.unwrap().unwrap();
    let failure = Failure::new(Code::ParseError, "It is damaged");
    let ending = |claim| Settlement {
        file: id,
        owner: file.owner(),
        claim,
        finished_before: Vec::new(),
        stage: Extract,
        attempt: 1,
        at: server.app.clock.now(),
        verdict: Verdict::DeadLetter { failure: failure.clone() },
        calls: Vec::new(),
    };
    let (holder, before) = (ending(file.claim.unwrap()), ending(uuid::Uuid::new_v4()));
    let group = SettleGroup {
        settlements: vec![before.clone(), holder, before],
        worker_name: "test:1".to_owned(),
        breaker: server.app.config.queue.breaker,
        now: server.app.clock.now(),
    };
    let endings = server.app.db.write(group).await.unwrap();
    assert_eq!(endings, [None, Some(Status::Failed), None]);
    let id = id.to_string();
    assert_eq!(alice.states(&id).await.iter().filter(|state| *state == "failed").count(), 1);
    assert_eq!(alice.batch(&batch).await["summary"]["failed"], 1);
    gate.open();
    server.idle().await;
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn a_file_confirmed_ten_times_at_once_is_queued_once(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Block(gate.clone()));
    let server = Setup::default().work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.send_bytes(None, "a", b"a").await;
    let answers = at_once(10, |_| {
        let (alice, file) = (alice.clone(), file.clone());
        async move { alice.confirm(&file).await }
    })
    .await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    gate.open();
    server.idle().await;
    assert_eq!(
        alice.states(&file).await,
        ["registered", "uploaded", "queued", "extracting", "chunking", "embedding", "ready"]
    );
    assert_eq!(alice.quota().await, (0, 1));
    assert_eq!(
        alice.confirm(&file).await.ok()["status"],
        "ready",
        "a later confirm returns the current state"
    );
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_confirmed_while_it_is_deleted_ends_deleted(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    for round in 0..10 {
        let file = alice.send_bytes(None, "a", b"a").await;
        let answers = at_once(2, |number| {
            let (alice, file) = (alice.clone(), file.clone());
            async move {
                if number == 0 { alice.confirm(&file).await } else { alice.delete(&file_path(&file)).await }
            }
        })
        .await;
        assert_eq!(answers[1].status, 204, "round {round}");
        // The confirm came first, or found the file gone, or found its blob gone before it read the row.
        assert!(matches!(answers[0].status, 200 | 410 | 409), "round {round}: {:?}", answers[0]);
        alice.get(&file_path(&file)).await.refused(410, "FILE_DELETED");
        alice.confirm(&file).await.refused(410, "FILE_DELETED");
    }
    server.idle().await;
    assert_eq!(alice.quota().await, (0, 0));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_deleted_while_a_worker_has_it_is_gone_and_the_worker_changes_nothing(db: TestDb) {
    let gate = Gate::default();
    let script = Script::new().then(Extract, Step::Block(gate.clone()));
    let server = Setup::default().work(script.clone()).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a", b"a").await;
    gate.reached().await;
    alice.delete(&file_path(&file)).await.ok();
    server.idle().await;
    let states = alice.states(&file).await;
    assert_eq!(states, ["registered", "uploaded", "queued", "extracting", "cancelled", "deleted"]);
    assert_eq!(script.runs().len(), 1);
    assert_eq!(alice.quota().await, (0, 0));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_file_deleted_ten_times_at_once_is_refunded_once(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let kept = alice.upload("kept", b"kept").await;
    let file = alice.upload("a", b"a").await;
    server.idle().await;
    let answers = at_once(10, |_| {
        let (alice, file) = (alice.clone(), file.clone());
        async move { alice.delete(&file_path(&file)).await.status }
    })
    .await;
    assert_eq!(answers, [204; 10]);
    assert_eq!(alice.quota().await, (0, 4));
    assert_eq!(alice.status(&kept).await, "ready");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn twenty_users_that_register_at_once_fill_the_quota_and_do_not_exceed_it(db: TestDb) {
    let server =
        Setup::default().work(Script::new()).with("DEFAULT_TENANT_QUOTA_BYTES", 1_000).start(&db).await;
    // Twenty users of one tenant, each asking for ten files of 30 bytes: 33 fit.
    let answers = at_once(20, |number| {
        let client: Client = server.client_of(&format!("user{number}"), "acme");
        async move {
            let mut codes = Vec::new();
            for _ in 0..10 {
                let file = json!({ "fileName": "a", "fileSize": 30 });
                let answer = client.post("/api/v2/uploads/files/init", file).await;
                codes.push((answer.status, answer.code().to_owned()));
            }
            codes
        }
    })
    .await;
    let answers: Vec<_> = answers.into_iter().flatten().collect();
    let (admitted, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(status, _)| *status == 201);
    assert_eq!((admitted.len(), refused.len()), (33, 167));
    assert!(refused.iter().all(|(status, code)| (*status, code.as_str()) == (413, "QUOTA_EXCEEDED")));
    assert_eq!(server.client_of("user0", "acme").quota().await, (990, 0));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn ten_concurrent_requests_with_one_idempotency_key_create_one_file(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let answers = at_once(10, |_| {
        let alice = alice.clone();
        async move {
            let request = alice.request(reqwest::Method::POST, "/api/v2/uploads/files/init");
            let body = json!({ "fileName": "a", "fileSize": 1 });
            alice.send(request.header("Idempotency-Key", "once").json(&body)).await.ok()
        }
    })
    .await;
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    assert_eq!(alice.quota().await, (1, 0));
}

#[on_each_database]
async fn an_upload_that_ends_after_the_confirm_does_not_change_the_bytes(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "a", 5).await;
    let (file, url) = (ticket["fileId"].as_str().unwrap(), ticket["uploadUrl"].as_str().unwrap());
    alice.put(url, "right").await.ok();
    // The second upload has sent half of its bytes when the first is confirmed.
    let (half, rest) = tokio::sync::mpsc::channel::<Result<bytes::Bytes, std::io::Error>>(1);
    let slow = tokio::spawn({
        let (alice, url) = (alice.clone(), url.to_owned());
        let body =
            futures_util::stream::unfold(rest, async |mut rest| rest.recv().await.map(|part| (part, rest)));
        async move { alice.put(&url, reqwest::Body::wrap_stream(Box::pin(body))).await }
    });
    half.send(Ok("wro".into())).await.unwrap();
    until("it arrives", async || !server.app.blobs.unfinished().await.unwrap().is_empty()).await;
    alice.confirm(file).await.ok();
    half.send(Ok("ng".into())).await.unwrap();
    drop(half);
    slow.await.unwrap().refused(409, "INVALID_STATE");
    server.idle().await;
    let download = alice.request(reqwest::Method::GET, &format!("{}/download", file_path(file)));
    assert_eq!(download.send().await.unwrap().text().await.unwrap(), "right");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_client_that_disconnects_after_its_last_byte_leaves_no_unknown_blob(db: TestDb) {
    use std::io::Write;
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let host = server.base.strip_prefix("http://").unwrap().to_owned();
    let ticket = alice.register(None, "a", 5).await;
    let path = ticket["uploadUrl"].as_str().unwrap().strip_prefix(&server.base).unwrap().to_owned();
    at_once(50, |_| {
        let (host, path) = (host.clone(), path.clone());
        async move {
            let mut socket = std::net::TcpStream::connect(&host).unwrap();
            write!(socket, "PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n\r\n12345").unwrap();
            drop(socket);
        }
    })
    .await;
    // Whatever was started is completed, and then the place is free.
    let url = ticket["uploadUrl"].as_str().unwrap();
    until("another upload is accepted", async || alice.put(url, "12345").await.status == 200).await;
    let incoming = db.folder.path().join("blobs/incoming");
    while !server.app.uploads.is_empty() || std::fs::read_dir(&incoming).unwrap().count() > 0 {
        tokio::task::yield_now().await;
    }
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn registering_in_a_batch_and_deleting_from_it_do_not_block_each_other(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(400).await;
    at_once(8, |number| {
        let (alice, batch) = (alice.clone(), batch.clone());
        async move {
            for _ in 0..20 {
                let file = alice.register(Some(&batch), "a", 1).await["fileId"].as_str().unwrap().to_owned();
                if number % 2 == 0 {
                    alice.delete(&file_path(&file)).await.ok();
                }
            }
        }
    })
    .await;
    if server.app.db.is_postgres() {
        let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
        assert_eq!(server.app.db.read().await.unwrap().number(sql, vec![]).await.unwrap(), 0);
    }
    assert_eq!(alice.quota().await, (80, 0));
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn of_concurrent_uploads_one_is_received_and_the_others_are_refused(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let ticket = alice.register(None, "a", 5).await;
    let (file, url) = (ticket["fileId"].as_str().unwrap(), ticket["uploadUrl"].as_str().unwrap().to_owned());
    let answers = at_once(4, |number| {
        let (alice, url) = (alice.clone(), url.clone());
        async move { alice.put(&url, format!("take{number}")).await }
    })
    .await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    // One that began after the end of another is received as well.
    assert!(!taken.is_empty());
    for answer in refused {
        answer.refused(409, "UPLOAD_IN_PROGRESS");
    }
    alice.confirm(file).await.ok();
    server.idle().await;
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn two_workers_never_hold_the_same_file(db: TestDb) {
    let (one, two) = (Script::new(), Script::new());
    let first = Setup::default().work(one.clone()).start(&db).await;
    let second = Setup::default().work(two.clone()).start(&db).await;
    let alice = first.client("alice");
    let batch = alice.open_batch(60).await;
    for number in 0..60 {
        alice.upload_in(&batch, &number.to_string(), b"a").await;
        second.app.wake.poll_work();
    }
    first.idle().await;
    second.idle().await;
    assert_eq!(alice.batch(&batch).await["summary"], batch_summary(60, 60, 0));
    assert_eq!(one.runs().len() + two.runs().len(), 180, "each stage of each file ran once");
    first.assert_audit_clean().await;
}

#[on_each_database]
async fn a_batch_cancelled_while_files_are_added_and_processed_leaves_none_in_progress(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(400).await;
    at_once(9, |number| {
        let (alice, batch) = (alice.clone(), batch.clone());
        async move {
            for round in 0..20 {
                if number == 0 && round < 10 {
                    continue;
                }
                if number == 0 {
                    alice.post(&format!("/api/v2/uploads/batches/{batch}/cancel"), json!({})).await.ok();
                    continue;
                }
                let path = format!("/api/v2/uploads/batches/{batch}/upload-urls");
                let answer = alice.post(&path, json!({ "fileName": "a", "fileSize": 1 })).await;
                if answer.status == 409 {
                    return;
                }
                let ticket = answer.ok();
                // Calls that come too late are refused.
                alice.put(ticket["uploadUrl"].as_str().unwrap(), "x").await;
                alice.confirm(ticket["fileId"].as_str().unwrap()).await;
            }
        }
    })
    .await;
    server.idle().await;
    let seen = alice.batch(&batch).await;
    assert_eq!(seen["status"], "cancelled");
    for state in ["registered", "uploaded", "queued", "extracting", "chunking", "embedding"] {
        assert_eq!(seen["progress"][state], 0, "{seen}");
    }
    while !server.app.uploads.is_empty() {
        tokio::task::yield_now().await;
    }
    landfall_server::recovery::unfinished_deletions::sweep_once(&server.app.db, &server.app.blobs)
        .await
        .unwrap();
    server.assert_audit_clean().await;
}

/// A registration in a transaction of its own.
struct Alone(Register);

impl Write for Alone {
    type Output = Tickets;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        apply_alone(&self.0, tx).await
    }
}

#[on_each_database]
async fn a_file_added_at_the_moment_its_batch_is_cancelled_is_deleted_with_it(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(5).await;
    let (app, gate) = (server.app.clone(), Gate::default());
    let file = app.clock.new_id();
    let announced = Announced { name: "a".to_owned(), size: 7, ..Announced::default() };
    let register = Alone(Register {
        caller: Caller { user: "alice".to_owned(), tenant: "alice".to_owned(), role: Role::Member },
        batch: Some(batch.parse().unwrap()),
        priority: None,
        files: vec![(file, announced)],
        now: app.clock.now(),
        config: app.config.intake.clone(),
        tickets: Tickets::none(),
        direct: None,
        trace: None,
    });
    // The file has its place in the batch and is not committed when the batch is cancelled.
    let adding = tokio::spawn({
        let (db, held) = (app.db.clone(), Held { change: register, gate: gate.clone() });
        async move { db.write(held).await }
    });
    gate.reached().await;
    let cancelling = tokio::spawn({
        let (alice, batch) = (alice.clone(), batch.clone());
        async move { alice.post(&format!("/api/v2/uploads/batches/{batch}/cancel"), json!({})).await }
    });
    if app.db.is_postgres() {
        until("the cancellation waits for the batch", async || {
            let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            app.db.read().await.unwrap().number(sql, vec![]).await.unwrap() > 0
        })
        .await;
    }
    gate.open();
    adding.await.unwrap().unwrap();
    let seen = cancelling.await.unwrap().ok();
    assert_eq!((&seen["status"], &seen["progress"]["deleted"]), (&json!("cancelled"), &json!(1)), "{seen}");
    assert_eq!(alice.quota().await, (0, 0));
    alice.get(&file_path(&file.to_string())).await.refused(410, "FILE_DELETED");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_dead_letter_retried_ten_times_at_once_is_queued_once(db: TestDb) {
    let script = Script::new().then(Extract, Step::Fail(landfall_core::failure::Code::ParseError));
    let server = Setup::default().work(script).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a", b"a").await;
    server.idle().await;
    let answers = at_once(10, |_| {
        let (alice, file) = (alice.clone(), file.clone());
        async move { alice.post(&format!("/api/v2/uploads/dlq/{file}/retry"), json!({})).await.status }
    })
    .await;
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 1, "{answers:?}");
    assert!(answers.iter().all(|status| matches!(status, 200 | 409)), "{answers:?}");
    server.idle().await;
    let states = alice.states(&file).await;
    assert_eq!(states.iter().filter(|state| *state == "queued").count(), 2, "{states:?}");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn of_many_files_of_a_tenant_sent_at_once_each_has_its_own_outcome(db: TestDb) {
    const FILES: usize = 40;
    let server = Setup::default().work(Script::new()).start(&db).await;
    let users = ["alice", "bob"].map(|user| server.client_of(user, "acme"));
    let batches = [users[0].open_batch(FILES).await, users[1].open_batch(FILES).await];
    let sent = at_once(FILES, |number| {
        let (client, own) = (users[number % 2].clone(), batches[number % 2].clone());
        let others = batches[(number + 1) % 2].clone();
        async move {
            if number % 10 < 2 {
                let file = json!({ "fileName": "a", "fileSize": 1 });
                let answer =
                    client.post(&format!("/api/v2/uploads/batches/{others}/upload-urls"), file).await;
                answer.refused(404, "BATCH_NOT_FOUND");
                return None;
            }
            let text = format!("The words of file {number}");
            let file = client.upload_in(&own, &format!("{number}.txt"), text.as_bytes()).await;
            Some((client, file, text))
        }
    })
    .await;
    let sent: Vec<_> = sent.into_iter().flatten().collect();
    assert_eq!(sent.len(), FILES * 8 / 10);
    for (client, file, text) in &sent {
        let number = text.rsplit(' ').next().unwrap();
        let seen = client.file(file).await;
        let md5 = hex::encode(Md5::digest(text));
        assert_eq!((&seen["fileName"], &seen["md5"]), (&json!(format!("{number}.txt")), &json!(md5)));
        assert_eq!(client.states(file).await[..3], ["registered", "uploaded", "queued"]);
    }
    let bytes: usize = sent.iter().map(|(_, _, text)| text.len()).sum();
    assert_eq!(users[0].quota().await, (0, i64::try_from(bytes).unwrap()));
    server.assert_audit_clean().await;
}
