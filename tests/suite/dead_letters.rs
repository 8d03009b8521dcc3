//! Files that failed for good: looked at, retried one by one and together, discarded.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use landfall::clock::Time;
use landfall::db::{Rows, Tx, Write, args};
use landfall::error::Error;
use landfall::failure::{Code, Failure};
use landfall::lifecycle::Stage::{self, Chunk, Embed, Extract, Scan};
use landfall::queue::dead_letter::{Filter, fingerprint as fingerprint_of};
use landfall::queue::operations::{RetryAll, Step as Taken};
use landfall::stages::{self, Embedded, Job, Output, Work};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Client, Script, Setup, Step, TestDb, TestServer, manual_clock, until};

const DLQ: &str = "/api/v2/uploads/dlq";
const RETRY_ALL: &str = "/api/v2/uploads/dlq/retry-all";

/// Fails files by the first letter of their names, until what ails those is mended.
#[derive(Default)]
struct Ailments {
    mended: Mutex<HashSet<char>>,
    runs: Mutex<Vec<(String, Stage)>>,
}

impl Ailments {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn mend(&self, ailment: char) {
        self.mended.lock().unwrap().insert(ailment);
    }

    fn runs(&self, name: &str) -> Vec<Stage> {
        let runs = self.runs.lock().unwrap();
        runs.iter().filter(|(file, _)| file == name).map(|(_, stage)| *stage).collect()
    }

    fn meet(&self, job: &Job) -> Result<Output, Failure> {
        let name = job.file.file_name.as_str();
        self.runs.lock().unwrap().push((name.to_owned(), job.stage));
        let (ailment, number) = name.split_at(1);
        let ailment = ailment.chars().next().unwrap_or_default();
        if self.mended.lock().unwrap().contains(&ailment) {
            return Ok(Output::Nothing);
        }
        let (code, message) = match (ailment, job.stage) {
            ('p', Extract) => (Code::ParseError, format!("Page {number} is damaged")),
            ('d', Chunk) => (Code::DbError, format!("The row \"{name}\" was refused")),
            ('e', Embed) => (Code::EmbedError, format!("https://model.example/v{number} is closed")),
            _ => return Ok(Output::Nothing),
        };
        Err(Failure::new(code, message).for_good())
    }
}

impl Work for Ailments {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        async move { self.meet(job) }.boxed()
    }
}

fn names(ailment: char, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{ailment}{number}")).collect()
}

async fn server(db: &TestDb, work: &Arc<Ailments>) -> TestServer {
    Setup::default().work(work.clone()).start(db).await
}

async fn groups(client: &Client) -> Vec<Value> {
    client.get(&format!("{DLQ}/groups")).await.ok()["groups"].as_array().expect("a list").clone()
}

/// The ids of all entries that match, page by page.
async fn entries(client: &Client, query: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut path = format!("{DLQ}?limit=40&{query}");
    loop {
        let page = client.get(&path).await.ok();
        found.extend(page["entries"].as_array().expect("a list").iter().cloned());
        let Some(cursor) = page["nextCursor"].as_str() else { return found };
        path = format!("{DLQ}?limit=40&{query}&cursor={cursor}");
    }
}

async fn fingerprint(client: &Client, code: &str) -> String {
    let groups = groups(client).await;
    let group = groups.iter().find(|group| group["code"] == code).expect("a group with this code");
    group["fingerprint"].as_str().expect("a text").to_owned()
}

async fn operation(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/v2/uploads/operations/{id}")).await.ok()
}

fn time(text: &Value) -> Time {
    text.as_str().expect("a text").parse().expect("a time")
}

/// The operation's id, status, and how many files it retried and skipped.
fn seen(operation: &Value) -> (String, &str, i64, i64) {
    (
        operation["operationId"].as_str().expect("an id").to_owned(),
        operation["status"].as_str().expect("a status"),
        operation["retriedCount"].as_i64().expect("a number"),
        operation["skippedCount"].as_i64().expect("a number"),
    )
}

/// Lets the canaries come to their end, the operation see it, and the rest come to its end.
async fn go_on(server: &TestServer, operation: &str) {
    server.idle().await;
    server.app.operations().advance_up_to(operation.parse().unwrap(), 10_000).await.unwrap();
    server.idle().await;
}

async fn revivals(server: &TestServer) -> i64 {
    let sql = "SELECT COUNT(*) FROM events WHERE from_state = 'failed' AND to_state = 'queued'";
    server.app.db.read().await.unwrap().number(sql, args![]).await.unwrap()
}

on_each_database! {
    async fn five_hundred_dead_letters_of_three_causes_are_three_groups(db: TestDb) {
        let server = server(&db, &Ailments::new()).await;
        let alice = server.client("alice");
        let all = [names('p', 300), names('d', 150), names('e', 50)].concat();
        let (batch, files) = alice.upload_all(&all).await;
        server.idle().await;

        let groups = groups(&alice).await;
        let counted: Vec<_> = groups.iter().map(|g| (g["stage"].as_str().unwrap(), g["code"].as_str().unwrap(), g["count"].as_i64().unwrap())).collect();
        assert_eq!(counted, [("extract", "PARSE_ERROR", 300), ("chunk", "DB_ERROR", 150), ("embed", "EMBED_ERROR", 50)]);
        for group in &groups {
            let sample = alice.file(group["sample"]["fileId"].as_str().unwrap()).await;
            assert_eq!(sample["error"]["message"], group["sample"]["message"]);
            assert_eq!(sample["error"]["code"], group["code"]);
            assert_eq!(group["lastSeen"], sample["failedAt"], "the newest is the sample");
            assert!(time(&group["firstSeen"]) <= time(&group["lastSeen"]));
        }

        let listed = entries(&alice, "").await;
        let order: Vec<Time> = listed.iter().map(|entry| time(&entry["failedAt"])).collect();
        assert!(order.is_sorted_by(|one, next| one >= next), "the newest first");
        let ids: BTreeSet<_> = listed.iter().map(|entry| entry["fileId"].as_str().unwrap().to_owned()).collect();
        assert_eq!((listed.len(), ids), (500, files.into_iter().collect()), "each once");

        let first = fingerprint(&alice, "PARSE_ERROR").await;
        for (query, count) in [
            ("code=PARSE_ERROR".to_owned(), 300), ("stage=chunk".to_owned(), 150), ("stage=chunk&code=PARSE_ERROR".to_owned(), 0),
            (format!("batchId={batch}"), 500), (format!("batchId={}", Uuid::max()), 0), (format!("fingerprint={first}"), 300),
        ] {
            assert_eq!(entries(&alice, &query).await.len(), count, "{query}");
        }
        assert_eq!(entries(&server.admin(), "").await.len(), 0, "an administrator's own");
        assert_eq!(entries(&server.admin(), "scope=all").await.len(), 500);
        server.assert_books_balance().await;
    }

    async fn an_entry_says_what_a_person_needs_to_judge_it(db: TestDb) {
        let work = Ailments::new();
        let server = server(&db, &work).await;
        let alice = server.client("alice");
        let (batch, files) = alice.upload_all(&names('p', 1)).await;
        server.idle().await;
        let failed_at = alice.file(&files[0]).await["failedAt"].clone();
        let entry = |failed_at: &Value| json!({
            "fileId": files[0], "fileName": "p0", "batchId": batch, "stage": "extract", "code": "PARSE_ERROR",
            "error": "Page 0 is damaged", "attempts": 1, "failedAt": failed_at,
        });
        assert_eq!(entries(&alice, "").await, [entry(&failed_at)]);

        // Retried, and failed again: it says so.
        let retried = alice.post(&format!("{DLQ}/{}/retry", files[0]), json!({})).await.ok();
        assert_eq!(retried, json!({ "success": true, "fileId": files[0], "status": "queued" }));
        server.idle().await;
        let again = &entries(&alice, "").await[0];
        assert_eq!(again["retriedBy"], "alice");
        assert!(time(&again["retriedAt"]) > time(&failed_at));
        assert!(time(&again["failedAt"]) > time(&again["retriedAt"]));
        work.mend('p');
        alice.post(&format!("{DLQ}/{}/retry", files[0]), json!({})).await.ok();
        server.idle().await;
        assert_eq!(entries(&alice, "").await, [] as [Value; 0]);
        assert_eq!(groups(&alice).await, [] as [Value; 0]);
        server.assert_books_balance().await;
    }

    async fn a_retry_goes_on_at_the_stage_that_failed_and_repeats_nothing(db: TestDb) {
        let work = Ailments::new();
        let server = server(&db, &work).await;
        let alice = server.client("alice");
        let (_, files) = alice.upload_all(&names('e', 1)).await;
        server.idle().await;
        work.mend('e');
        alice.post(&format!("{DLQ}/{}/retry", files[0]), json!({})).await.ok();
        server.idle().await;
        assert_eq!(alice.status(&files[0]).await, "ready");
        assert_eq!(work.runs("e0"), [Extract, Chunk, Embed, Embed]);
        server.assert_books_balance().await;
    }

    async fn all_that_match_are_retried_and_no_others(db: TestDb) {
        let work = Ailments::new();
        let server = server(&db, &work).await;
        let (alice, bob) = (server.client("alice"), server.client("bob"));
        let (batch, _) = alice.upload_all(&[names('p', 3), names('d', 2)].concat()).await;
        alice.upload_all(&names('p', 4)).await;
        bob.upload_all(&names('p', 5)).await;
        server.idle().await;
        let everybodys = server.admin().get(&format!("{DLQ}/groups?scope=all")).await.ok();
        let counts = everybodys["groups"].as_array().unwrap().iter().map(|group| group["count"].as_i64().unwrap());
        assert_eq!(counts.collect::<Vec<_>>(), [12, 2], "those of one cause together, whosever they are");
        work.mend('p');
        work.mend('d');

        let none = alice.post(RETRY_ALL, json!({ "code": "NO_TEXT" })).await.ok();
        assert_eq!(seen(&none).1, "completed");
        assert_eq!((&none["retriedCount"], &none["skippedCount"], &none["errors"]), (&json!(0), &json!(0), &json!([])));
        let narrow = alice.post(RETRY_ALL, json!({ "code": "PARSE_ERROR", "stage": "extract", "batchId": batch })).await.ok();
        assert_eq!((seen(&narrow).1, seen(&narrow).2), ("completed", 3));
        assert_eq!(narrow["filter"], json!({ "code": "PARSE_ERROR", "stage": "extract", "batchId": batch, "fingerprint": null }));
        // An empty body is all of one's own.
        let wide = alice.send(alice.request(Method::POST, RETRY_ALL)).await.ok();
        assert_eq!((seen(&wide).1, seen(&wide).2), ("completed", 6));
        assert_eq!(entries(&bob, "").await.len(), 5, "somebody else's are left alone");
        let everybodys = server.admin().post(RETRY_ALL, json!({ "scope": "all" })).await.ok();
        assert_eq!((seen(&everybodys).1, seen(&everybodys).2, &everybodys["scope"]), ("completed", 5, &json!("all")));
        server.idle().await;
        assert_eq!(revivals(&server).await, 14);
        let listed = alice.get("/api/v2/uploads/operations?limit=2").await.ok();
        assert_eq!(listed["operations"][0]["operationId"], wide["operationId"], "the newest first");
        assert_eq!(listed["operations"].as_array().unwrap().len(), 2);
        let count = async |query: &str| {
            let listed = server.admin().get(&format!("/api/v2/uploads/operations{query}")).await.ok();
            listed["operations"].as_array().unwrap().len()
        };
        assert_eq!((count("").await, count("?scope=all").await), (1, 4));
        server.assert_books_balance().await;
    }

    async fn what_fails_again_at_once_is_not_retried_again(db: TestDb) {
        // The time stands still, so that what fails again is no newer than it was.
        let clock = manual_clock();
        let server = Setup::default().clock(&clock).work(Ailments::new()).start(&db).await;
        let alice = server.client("alice");
        alice.upload_all(&names('p', 230)).await;
        server.idle().await;
        let done = alice.post(RETRY_ALL, json!({})).await.ok();
        assert_eq!((seen(&done).1, seen(&done).2), ("completed", 230));
        go_on(&server, &seen(&done).0).await;
        assert_eq!(revivals(&server).await, 230);
        assert_eq!(entries(&alice, "").await.len(), 230);
        server.assert_books_balance().await;
    }

    async fn a_group_is_left_alone_after_its_canaries_fail_the_same_way(db: TestDb) {
        let server = server(&db, &Ailments::new()).await;
        let alice = server.client("alice");
        alice.upload_all(&[names('p', 20), names('d', 2)].concat()).await;
        server.idle().await;
        let fingerprint = fingerprint(&alice, "PARSE_ERROR").await;
        let begun = alice.post(RETRY_ALL, json!({ "fingerprint": fingerprint })).await.ok();
        let (id, status, retried, _) = seen(&begun);
        assert_eq!(retried, 3);
        assert!(matches!(status, "canary" | "stopped"), "{begun}");
        go_on(&server, &id).await;
        let ended = operation(&alice, &id).await;
        assert_eq!((seen(&ended).1, seen(&ended).2), ("stopped", 3));
        let reason = ended["reason"].as_str().unwrap();
        assert!(reason.contains("of the 3 files that were tried first") && reason.contains("is damaged"), "{reason}");
        go_on(&server, &id).await;
        assert_eq!(revivals(&server).await, 3);
        assert_eq!(entries(&alice, "").await.len(), 22);
        server.assert_books_balance().await;
    }

    async fn a_group_follows_its_canaries_when_they_arrive(db: TestDb) {
        let work = Ailments::new();
        let server = server(&db, &work).await;
        let alice = server.client("alice");
        let (batch, _) = alice.upload_all(&[names('e', 120), names('p', 2)].concat()).await;
        server.idle().await;
        work.mend('e');
        let fingerprint = fingerprint(&alice, "EMBED_ERROR").await;
        let begun = alice.post(RETRY_ALL, json!({ "fingerprint": fingerprint })).await.ok();
        go_on(&server, &seen(&begun).0).await;
        let ended = operation(&alice, &seen(&begun).0).await;
        assert_eq!((seen(&ended).1, seen(&ended).2, &ended["reason"]), ("completed", 120, &Value::Null));
        assert_eq!(alice.batch(&batch).await["summary"], json!({ "total": 122, "ready": 120, "failed": 2 }));
        assert_eq!(revivals(&server).await, 120);
        assert_eq!(work.runs("e7"), [Extract, Chunk, Embed, Embed]);
        server.assert_books_balance().await;
    }

    async fn the_rest_waits_for_as_long_as_the_canaries_take(db: TestDb) {
        let work = Ailments::new();
        let first = server(&db, &work).await;
        let alice = first.client("alice");
        alice.upload_all(&names('e', 8)).await;
        first.idle().await;
        let fingerprint = fingerprint(&alice, "EMBED_ERROR").await;
        first.stop().await;

        // Here nobody works.
        let idle = Setup::default().with("ROLE", "api").start(&db).await;
        let alice = idle.client("alice");
        let begun = alice.post(RETRY_ALL, json!({ "fingerprint": fingerprint })).await.ok();
        let (id, status, retried, _) = seen(&begun);
        assert_eq!((status, retried), ("canary", 3));
        for _ in 0..3 {
            assert_eq!(idle.app.operations().step(id.parse().unwrap(), true).await.unwrap(), Taken::Waits);
        }
        assert_eq!(seen(&operation(&alice, &id).await).2, 3);
        // One is called off: that says nothing, but it is an end.
        let canary = alice.get("/api/v2/uploads/files?status=queued").await.ok()["files"][0]["fileId"].clone();
        alice.post(&format!("/api/v2/uploads/files/{}/cancel", canary.as_str().unwrap()), json!({})).await.ok();
        assert_eq!(idle.app.operations().step(id.parse().unwrap(), true).await.unwrap(), Taken::Waits);
        idle.stop().await;

        work.mend('e');
        let last = server(&db, &work).await;
        let alice = last.client("alice");
        until("the operation is over", async || operation(&alice, &id).await["endedAt"].is_string()).await;
        last.idle().await;
        let ended = operation(&alice, &id).await;
        assert_eq!((seen(&ended).1, seen(&ended).2), ("completed", 8));
        last.assert_books_balance().await;
    }

    async fn an_operation_that_was_cut_short_goes_on_elsewhere_and_counts_each_file_once(db: TestDb) {
        let work = Ailments::new();
        let first = server(&db, &work).await;
        let alice = first.client("alice");
        let (batch, files) = alice.upload_all(&names('p', 430)).await;
        first.idle().await;
        first.stop().await;

        // Two steps, and the process is gone.
        let second = Setup::default().with("ROLE", "api").start(&db).await;
        let (id, now) = (second.app.clock.new_id(), second.app.clock.now());
        let filter = Filter { of_user: Some("alice".to_owned()), ..Filter::default() };
        second.app.db.write(RetryAll { id, user: "alice".to_owned(), filter, now }).await.unwrap();
        for _ in 0..2 {
            let taken = second.app.operations().step(id, true).await.unwrap();
            assert_eq!(taken, Taken::Moved { files: 100, revived: 100 });
        }
        let half = operation(&second.client("alice"), &id.to_string()).await;
        assert_eq!((seen(&half).1, seen(&half).2), ("running", 200));
        second.stop().await;

        // Some of what it retried fails once more meanwhile, as all of them do here.
        let third = server(&db, &work).await;
        let alice = third.client("alice");
        let id = id.to_string();
        until("the operation is over", async || operation(&alice, &id).await["endedAt"].is_string()).await;
        third.idle().await;
        let ended = operation(&alice, &id).await;
        assert_eq!((seen(&ended).1, seen(&ended).2, seen(&ended).3), ("completed", 430, 0));
        assert_eq!(revivals(&third).await, 430);
        for file in [&files[0], &files[215], &files[429]] {
            let states = alice.states(file).await;
            assert_eq!(states.iter().filter(|state| *state == "failed").count(), 2, "{states:?}");
        }
        assert_eq!(alice.batch(&batch).await["summary"], json!({ "total": 430, "ready": 0, "failed": 430 }));
        third.assert_books_balance().await;
    }

    async fn a_request_for_very_many_is_answered_while_the_rest_is_still_to_do(db: TestDb) {
        let serving = Setup::default().with("ROLE", "api").start(&db).await;
        let alice = serving.client("alice");
        let ids = (0..1_150).map(|_| serving.app.clock.new_id()).collect();
        serving.app.db.write(Failed { ids, now: serving.app.clock.now() }).await.unwrap();
        let begun = alice.post(RETRY_ALL, json!({})).await.ok();
        assert_eq!((seen(&begun).1, seen(&begun).2), ("running", 1_000));
        let working = Setup::default().work(Script::new()).start(&db).await;
        let id = seen(&begun).0;
        until("the operation is over", async || operation(&alice, &id).await["endedAt"].is_string()).await;
        let ended = operation(&alice, &id).await;
        assert_eq!((seen(&ended).1, seen(&ended).2), ("completed", 1_150));
        working.idle().await;
        assert_eq!(revivals(&working).await, 1_150);
        assert_eq!(entries(&alice, "").await, [] as [Value; 0]);
    }

    async fn steps_taken_from_many_sides_count_each_file_once(db: TestDb) {
        let work = Ailments::new();
        let first = server(&db, &work).await;
        first.client("alice").upload_all(&names('p', 350)).await;
        first.idle().await;
        first.stop().await;
        let one = Setup::default().with("ROLE", "api").start(&db).await;
        let two = Setup::default().with("ROLE", "api").start(&db).await;
        let (id, now) = (one.app.clock.new_id(), one.app.clock.now());
        let filter = Filter { of_user: Some("alice".to_owned()), ..Filter::default() };
        one.app.db.write(RetryAll { id, user: "alice".to_owned(), filter, now }).await.unwrap();
        let sides = (0..8).map(|number| {
            let operations = if number % 2 == 0 { one.app.operations() } else { two.app.operations() };
            async move { operations.advance_up_to(id, 10_000).await }
        });
        for side in join_all(sides).await {
            side.unwrap();
        }
        let ended = operation(&one.client("alice"), &id.to_string()).await;
        assert_eq!((seen(&ended).1, seen(&ended).2), ("completed", 350));
        assert_eq!(revivals(&one).await, 350);
        one.assert_books_balance().await;
    }

    async fn a_process_whose_clock_is_behind_retries_nothing_twice(db: TestDb) {
        let (ahead, behind) = (manual_clock(), manual_clock());
        ahead.advance(Duration::from_secs(10));
        let work = Ailments::new();
        let first = Setup::default().clock(&ahead).work(work.clone()).start(&db).await;
        first.client("alice").upload_all(&names('p', 130)).await;
        first.idle().await;
        let (id, now) = (first.app.clock.new_id(), first.app.clock.now());
        first.stop().await;
        // What it fails again is older than what the operation has dealt with.
        let second = Setup::default().clock(&behind).work(work).start(&db).await;
        let filter = Filter { of_user: Some("alice".to_owned()), ..Filter::default() };
        second.app.db.write(RetryAll { id, user: "alice".to_owned(), filter, now }).await.unwrap();
        let mut steps = 0;
        while second.app.operations().step(id, true).await.unwrap() != Taken::Over {
            steps += 1;
            assert!(steps < 10, "it never ends");
            second.idle().await;
        }
        let ended = operation(&second.client("alice"), &id.to_string()).await;
        assert_eq!((seen(&ended).1, seen(&ended).2), ("completed", 130));
        assert_eq!(revivals(&second).await, 130);
        second.assert_books_balance().await;
    }

    async fn a_stopped_operation_takes_no_further_step(db: TestDb) {
        let work = Ailments::new();
        let first = server(&db, &work).await;
        first.client("alice").upload_all(&names('e', 9)).await;
        first.idle().await;
        let fingerprint = fingerprint(&first.client("alice"), "EMBED_ERROR").await;
        first.stop().await;
        let idle = Setup::default().with("ROLE", "api").start(&db).await;
        let (alice, mallory) = (idle.client("alice"), idle.client("mallory"));
        let (id, ..) = seen(&alice.post(RETRY_ALL, json!({ "fingerprint": fingerprint })).await.ok());
        let stop = format!("/api/v2/uploads/operations/{id}/stop");
        mallory.post(&stop, json!({})).await.refused(404, "OPERATION_NOT_FOUND");
        let stopped = alice.post(&stop, json!({})).await.ok();
        assert_eq!((seen(&stopped).1, &stopped["reason"]), ("stopped", &json!("Stopped by alice")));
        assert_eq!(alice.post(&stop, json!({})).await.ok(), stopped, "repeating it is safe");
        idle.stop().await;

        work.mend('e');
        let last = server(&db, &work).await;
        go_on(&last, &id).await;
        let alice = last.client("alice");
        assert_eq!(operation(&alice, &id).await, stopped);
        assert_eq!(entries(&alice, "").await.len(), 6, "the canaries arrived, the others are where they were");
        last.assert_books_balance().await;
    }

    async fn infected_files_are_skipped_and_counted(db: TestDb) {
        let script = Script::new().then(Extract, Step::Fail(Code::Infected)).then(Extract, Step::Fail(Code::ParseError));
        let server = Setup::default().work(script).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
        let alice = server.client("alice");
        for name in ["a", "b"] {
            alice.upload(name, b"a").await;
            server.idle().await;
        }
        let done = alice.post(RETRY_ALL, json!({})).await.ok();
        assert_eq!((seen(&done).1, seen(&done).2, seen(&done).3), ("completed", 1, 1));
        let fingerprint = fingerprint(&alice, "INFECTED").await;
        let done = alice.post(RETRY_ALL, json!({ "fingerprint": fingerprint })).await.ok();
        assert_eq!((seen(&done).1, seen(&done).2, seen(&done).3), ("completed", 0, 1));
    }

    async fn a_file_that_cannot_be_retried_does_not_keep_the_others(db: TestDb) {
        struct Sql(&'static str);
        impl Write for Sql {
            type Answer = u64;

            async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
                tx.execute(self.0, args![]).await
            }
        }
        let work = Ailments::new();
        let server = server(&db, &work).await;
        let alice = server.client("alice");
        alice.upload_all(&names('p', 5)).await;
        let (_, bad) = alice.upload_all(&["p9".to_owned()]).await;
        alice.upload_all(&names('p', 5)).await;
        server.idle().await;
        work.mend('p');
        // As if its batch had lost count: to take one from nothing is refused by the database.
        let damage = "UPDATE batches SET failed_files = 0, deleted_files = 1 WHERE file_count = 1";
        server.app.db.write(Sql(damage)).await.unwrap();
        let done = alice.post(RETRY_ALL, json!({})).await.ok();
        assert_eq!((seen(&done).1, seen(&done).2, &done["errorCount"]), ("completed", 10, &json!(1)));
        assert_eq!(done["errors"][0]["fileId"], json!(bad[0]));
        let repair = "UPDATE batches SET failed_files = 1, deleted_files = 0 WHERE file_count = 1";
        server.app.db.write(Sql(repair)).await.unwrap();
        server.idle().await;
        assert_eq!(alice.status(&bad[0]).await, "failed");
        server.assert_books_balance().await;
    }

    async fn the_same_idempotency_key_is_the_same_operation(db: TestDb) {
        let work = Ailments::new();
        let server = server(&db, &work).await;
        let alice = server.client("alice");
        alice.upload_all(&names('p', 2)).await;
        server.idle().await;
        let send = async |body: Value| {
            alice.send(alice.request(Method::POST, RETRY_ALL).header("Idempotency-Key", "k").json(&body)).await
        };
        let first = send(json!({})).await.ok();
        server.idle().await;
        assert_eq!(send(json!({})).await.ok()["operationId"], first["operationId"]);
        send(json!({ "code": "NO_TEXT" })).await.refused(422, "IDEMPOTENCY_KEY_REUSED");
        assert_eq!(revivals(&server).await, 2);
    }

    async fn a_discarded_file_is_deleted_and_its_quota_given_back(db: TestDb) {
        let server = server(&db, &Ailments::new()).await;
        let (alice, mallory) = (server.client("alice"), server.client("mallory"));
        let (batch, files) = alice.upload_all(&names('p', 2)).await;
        server.idle().await;
        assert_eq!(alice.quota().await, (0, 2));
        let path = format!("{DLQ}/{}", files[0]);
        mallory.delete(&path).await.refused(404, "FILE_NOT_FOUND");
        assert_eq!(alice.delete(&path).await.status, 204);
        assert_eq!(alice.delete(&path).await.status, 204, "repeating it is safe");
        assert_eq!(alice.quota().await, (0, 1));
        alice.get(&format!("/api/v2/uploads/files/{}", files[0])).await.refused(410, "FILE_DELETED");
        alice.post(&format!("{path}/retry"), json!({})).await.refused(410, "FILE_DELETED");
        assert!(server.app.blobs.keys_of(files[0].parse().unwrap()).await.unwrap().is_empty());
        assert_eq!(entries(&alice, "").await.len(), 1);
        assert_eq!(alice.batch(&batch).await["progress"]["deleted"], 1);
        server.assert_books_balance().await;
    }

    async fn only_what_failed_is_a_dead_letter(db: TestDb) {
        let work = Ailments::new();
        let server = server(&db, &work).await;
        let alice = server.client("alice");
        let ready = alice.upload("a", b"a").await;
        server.idle().await;
        let registered = alice.register(None, "b", 1).await["fileId"].as_str().unwrap().to_owned();
        server.stop().await;
        let server = Setup::default().with("ROLE", "api").start(&db).await;
        let alice = server.client("alice");
        let (queued, cancelled) = (alice.upload("c", b"c").await, alice.upload("d", b"d").await);
        alice.post(&format!("/api/v2/uploads/files/{cancelled}/cancel"), json!({})).await.ok();
        for file in [&ready, &registered, &queued, &cancelled] {
            alice.post(&format!("{DLQ}/{file}/retry"), json!({})).await.refused(409, "INVALID_STATE");
            alice.delete(&format!("{DLQ}/{file}")).await.refused(409, "INVALID_STATE");
            let error = alice.post(&format!("/api/jobs/{file}/retry"), json!({})).await.refused(409, "INVALID_STATE");
            assert_eq!(error["message"], "Only failed jobs can be retried");
        }
        assert_eq!(alice.status(&cancelled).await, "cancelled");
        assert_eq!(entries(&alice, "").await, [] as [Value; 0]);
        server.assert_books_balance().await;
    }

    async fn what_is_asked_wrongly_is_refused(db: TestDb) {
        let server = server(&db, &Ailments::new()).await;
        let (alice, mallory) = (server.client("alice"), server.client("mallory"));
        let (_, files) = alice.upload_all(&names('p', 1)).await;
        server.idle().await;
        for bad in [
            "limit=0", "limit=201", "limit=x", "cursor=x", "cursor=1_x", "code=NOPE", "code=%00", "stage=upload",
            "fingerprint=zz", "fingerprint=%00", "scope=world", "x=1",
        ] {
            let answer = alice.get(&format!("{DLQ}?{bad}")).await;
            assert_eq!(answer.status, 400, "{bad}: {}", answer.body);
        }
        alice.get(&format!("{DLQ}?batchId=x")).await.refused(404, "BATCH_NOT_FOUND");
        alice.get(&format!("{DLQ}/groups?cursor=1")).await.refused(400, "INVALID_REQUEST");
        for bad in [json!({ "x": 1 }), json!({ "code": 5 }), json!({ "code": "NOPE" }), json!({ "stage": "x" }), json!([])] {
            let answer = alice.post(RETRY_ALL, bad.clone()).await;
            assert_eq!((answer.status, answer.code()), (400, "INVALID_REQUEST"), "{bad}");
        }
        for path in [DLQ.to_owned(), format!("{DLQ}/groups"), "/api/v2/uploads/operations".to_owned()] {
            alice.get(&format!("{path}?scope=all")).await.refused(403, "FORBIDDEN");
        }
        alice.post(RETRY_ALL, json!({ "scope": "all" })).await.refused(403, "FORBIDDEN");

        let (own, ..) = seen(&alice.post(RETRY_ALL, json!({ "code": "NO_TEXT" })).await.ok());
        let nothing = "01890000-0000-7000-8000-000000000000";
        for id in [files[0].as_str(), nothing, "not-an-id", "%00", "..%2f.."] {
            mallory.post(&format!("{DLQ}/{id}/retry"), json!({})).await.refused(404, "FILE_NOT_FOUND");
            mallory.delete(&format!("{DLQ}/{id}")).await.refused(404, "FILE_NOT_FOUND");
        }
        for id in [own.as_str(), nothing, "not-an-id", "%00"] {
            let path = format!("/api/v2/uploads/operations/{id}");
            mallory.get(&path).await.refused(404, "OPERATION_NOT_FOUND");
            mallory.post(&format!("{path}/stop"), json!({})).await.refused(404, "OPERATION_NOT_FOUND");
        }
        assert_eq!(entries(&mallory, "").await, [] as [Value; 0]);
        assert_eq!(groups(&mallory).await, [] as [Value; 0]);
        assert_eq!(mallory.get("/api/v2/uploads/operations").await.ok()["operations"], json!([]));
        assert_eq!(entries(&alice, "").await.len(), 1, "and nothing happened to it");
        assert_eq!(server.admin().get(&format!("/api/v2/uploads/operations/{own}")).await.status, 200);
    }

    async fn a_retry_from_an_earlier_stage_replaces_what_the_later_ones_made(db: TestDb) {
        let work = Arc::new(Shrinking::default());
        let server = Setup::default().work(work.clone()).start(&db).await;
        let alice = server.client("alice");
        let file = alice.upload("a", b"a").await;
        server.idle().await;
        let (chunks, retry) = (format!("/api/v2/uploads/files/{file}/chunks"), format!("/api/v2/uploads/files/{file}/retry"));
        assert_eq!(alice.file(&file).await["error"]["stage"], "embed");
        assert_eq!(alice.get(&chunks).await.ok()["chunks"].as_array().unwrap().len(), 3);
        alice.post(&retry, json!({ "fromStage": "chunk" })).await.ok();
        server.idle().await;
        assert_eq!(alice.get(&chunks).await.ok()["chunks"].as_array().unwrap().len(), 2);
        let queued = alice.post(&retry, json!({ "fromStage": "extract" })).await.ok();
        assert_eq!((&queued["status"], &queued["nextStage"], &queued["error"]), (&json!("queued"), &json!("extract"), &json!(null)));
        server.idle().await;
        let seen = alice.file(&file).await;
        assert_eq!((&seen["status"], &seen["chunkCount"]), (&json!("ready"), &json!(1)));
        assert_eq!(alice.get(&chunks).await.ok()["chunks"].as_array().unwrap().len(), 1);
        assert_eq!(*work.runs.lock().unwrap(), [Extract, Chunk, Embed, Chunk, Embed, Extract, Chunk, Embed]);
        server.assert_books_balance().await;
    }

    async fn a_retry_begins_at_no_stage_that_was_not_reached_or_is_not_there(db: TestDb) {
        let script = Script::new().then(Chunk, Step::Fail(Code::ParseError));
        let server = Setup::default().work(script.clone()).start(&db).await;
        let alice = server.client("alice");
        let file = alice.upload("a", b"a").await;
        server.idle().await;
        let path = format!("/api/v2/uploads/files/{file}/retry");
        let error = alice.post(&path, json!({ "fromStage": "embed" })).await.refused(400, "STAGE_NOT_REACHED");
        assert!(error["message"].as_str().unwrap().contains("chunk stage"), "{error}");
        alice.post(&path, json!({ "fromStage": "scan" })).await.refused(400, "NO_SCANNER");
        alice.post(&path, json!({ "fromStage": "upload" })).await.refused(400, "INVALID_REQUEST");
        alice.post(&path, json!({ "onlyFailed": true })).await.refused(400, "INVALID_REQUEST");
        assert_eq!(alice.status(&file).await, "failed");
        assert_eq!(alice.send(alice.request(Method::POST, &path)).await.ok()["nextStage"], "chunk", "without a body");
        server.idle().await;
        assert_eq!(script.runs(), [(Extract, 1), (Chunk, 1), (Chunk, 1), (Embed, 1)]);
        server.assert_books_balance().await;
    }

    async fn where_there_is_a_scanner_a_retry_can_begin_with_it(db: TestDb) {
        let script = Script::new().then(Extract, Step::Fail(Code::ParseError)).then(Extract, Step::Fail(Code::ParseError));
        let server = Setup::default().work(script.clone()).with("CLAMD_ADDRESS", "127.0.0.1:9").start(&db).await;
        let alice = server.client("alice");
        let file = alice.upload("a", b"a").await;
        server.idle().await;
        let path = format!("/api/v2/uploads/files/{file}/retry");
        alice.post(&path, json!({ "fromStage": "scan" })).await.ok();
        server.idle().await;
        assert_eq!(script.runs(), [(Scan, 1), (Extract, 1), (Scan, 1), (Extract, 1)]);
        server.assert_books_balance().await;
    }

    async fn a_file_whose_bytes_are_gone_is_retried_only_where_they_are_not_needed(db: TestDb) {
        let work = Ailments::new();
        let server = server(&db, &work).await;
        let alice = server.client("alice");
        let (_, files) = alice.upload_all(&["p0".to_owned(), "e0".to_owned()]).await;
        server.idle().await;
        for file in &files {
            for key in server.app.blobs.keys_of(file.parse().unwrap()).await.unwrap() {
                server.app.blobs.remove(&key).await.unwrap();
            }
        }
        for path in [format!("{DLQ}/{}/retry", files[0]), format!("/api/jobs/{}/retry", files[0]), format!("/api/v2/uploads/files/{}/retry", files[0])] {
            let error = alice.post(&path, json!({})).await.refused(404, "FILE_NOT_FOUND");
            assert_eq!(error["message"], "Source file no longer exists");
        }
        work.mend('e');
        let path = format!("/api/v2/uploads/files/{}/retry", files[1]);
        alice.post(&path, json!({ "fromStage": "extract" })).await.refused(404, "FILE_NOT_FOUND");
        alice.post(&path, json!({})).await.ok();
        server.idle().await;
        assert_eq!((alice.status(&files[0]).await, alice.status(&files[1]).await), ("failed".to_owned(), "ready".to_owned()));
    }

    async fn jobs_are_the_same_files_in_the_words_of_another_api(db: TestDb) {
        let work = Ailments::new();
        let server = server(&db, &work).await;
        let (alice, mallory) = (server.client("alice"), server.client("mallory"));
        let (_, files) = alice.upload_all(&["p0".to_owned(), "a0".to_owned()]).await;
        let gone = alice.upload("gone", b"x").await;
        server.idle().await;
        alice.delete(&format!("/api/v2/uploads/files/{gone}")).await.ok();
        assert_eq!(alice.get("/api/jobs").await.ok(), alice.get("/api/v2/uploads/files").await.ok());
        assert_eq!(alice.get("/api/jobs?status=failed").await.ok()["files"][0]["fileId"], json!(files[0]));
        assert_eq!(alice.get(&format!("/api/jobs/{}", files[0])).await.ok(), alice.file(&files[0]).await);
        let path = format!("/api/jobs/{}/download", files[1]);
        let bytes = alice.request(Method::GET, &path).send().await.unwrap().bytes().await.unwrap();
        assert_eq!(bytes, "x");

        let nothing = "01890000-0000-7000-8000-000000000000";
        for (client, id) in [
            (&mallory, files[0].as_str()), (&alice, gone.as_str()), (&alice, nothing), (&alice, "not-an-id"), (&alice, "%00"),
        ] {
            for (method, suffix) in [(Method::GET, ""), (Method::GET, "/download"), (Method::POST, "/retry")] {
                let path = format!("/api/jobs/{id}{suffix}");
                let error = client.send(client.request(method, &path)).await.refused(403, "FORBIDDEN");
                assert_eq!(error["message"], "Not authorized");
            }
        }
        work.mend('p');
        let retried = alice.post(&format!("/api/jobs/{}/retry", files[0]), json!({})).await;
        assert_eq!((retried.status, retried.body), (200, json!({ "message": "Job queued for retry", "job": { "id": files[0], "status": "queued" } })));
        server.idle().await;
        assert_eq!(alice.status(&files[0]).await, "ready");
        assert_eq!(work.runs("p0"), [Extract, Extract, Chunk, Embed]);
        server.assert_books_balance().await;
    }
}

/// Cuts a document into one chunk less each time, and embeds only the last.
#[derive(Default)]
struct Shrinking {
    runs: Mutex<Vec<Stage>>,
}

impl Work for Shrinking {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        let mut runs = self.runs.lock().unwrap();
        runs.push(job.stage);
        let round = runs.iter().filter(|stage| **stage == Chunk).count();
        let chunk = |number: usize| stages::Chunk {
            text: format!("piece {number}"),
            page: None,
            heading: None,
            char_start: number,
            char_end: number + 1,
            tokens: 1,
        };
        let done = match job.stage {
            Chunk => Ok(Output::Chunked((round..4).map(chunk).collect())),
            Embed if round < 3 => Err(Failure::new(Code::EmbedError, "not yet").for_good()),
            Embed => Ok(Output::Embedded(Embedded { model: "test".to_owned(), vectors: vec![vec![1.0]] })),
            Scan | Extract => Ok(Output::Nothing),
        };
        async move { done }.boxed()
    }
}

/// Dead letters that never came through the front door: many, and quickly.
struct Failed {
    ids: Vec<Uuid>,
    now: Time,
}

impl Write for Failed {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let failure = Failure::new(Code::EmbedError, "The model is closed");
        let mut rows = Rows::default();
        for id in &self.ids {
            rows.push(args![
                *id,
                "alice",
                "alice",
                "a",
                1,
                "no/blob",
                "failed",
                Embed,
                failure.code,
                &failure.message,
                Embed,
                fingerprint_of(Embed, &failure),
                self.now,
                self.now,
                self.now,
                self.now,
            ]);
        }
        tx.insert(
            "files (id, tenant_id, user_id, file_name, size_bytes, blob_key, status, next_stage, error_code,
                    error_message, error_stage, error_fingerprint, failed_at, created_at, updated_at, confirmed_at)",
            rows,
            "",
        )
        .await
    }
}
