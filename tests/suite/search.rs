//! What a search finds, and for whom.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_store::{Error, FaultInjector, Step};
use serde_json::json;

use crate::support::{Setup, TestDb, TestServer, on_each_database};

#[on_each_database]
async fn users_find_only_their_own_files(db: TestDb) {
    let server = TestServer::new(&db).await;
    let (alice, bob) = (server.client_of("alice", "acme"), server.client_of("bob", "acme"));
    let hers = alice.upload("a.txt", b"The lighthouse keeper counts the ships.").await;
    let his = bob.upload("b.txt", b"The lighthouse burns whale oil.").await;
    server.idle().await;
    let found =
        |hits: Vec<serde_json::Value>| hits.iter().map(|hit| hit["fileId"].clone()).collect::<Vec<_>>();
    assert_eq!(found(alice.search("lighthouse").await), [json!(hers)]);
    assert_eq!(found(bob.search("lighthouse").await), [json!(his)]);
    assert!(
        server.admin().search("lighthouse").await.is_empty(),
        "an administrator searches their own files too"
    );
}

#[on_each_database]
async fn words_and_meaning_both_match_and_files_that_match_both_come_first(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    alice.upload("dog.txt", b"The puppy chased its tail around the garden all afternoon.").await;
    alice.upload("tax.txt", b"Income tax returns are due by the end of July.").await;
    alice.upload("ship.txt", b"Invoice XK4711 was paid by the shipping company.").await;
    server.idle().await;
    let first = async |query: &str| alice.search(query).await[0]["fileName"].as_str().unwrap().to_owned();
    assert_eq!(first("a young dog playing outside").await, "dog.txt", "no word in common");
    assert_eq!(first("XK4711").await, "ship.txt", "a word that no model knows");
    assert_eq!(first("when must taxes be filed?").await, "tax.txt");
}

#[on_each_database]
async fn a_deleted_file_is_no_longer_found(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"The anchor is made of iron.").await;
    server.idle().await;
    assert_eq!(alice.search("anchor").await.len(), 1);
    alice.delete(&format!("/api/v2/uploads/files/{file}")).await.ok();
    assert!(alice.search("anchor").await.is_empty());
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_search_can_be_narrowed_to_a_batch_or_a_file(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(1).await;
    let inside = alice.upload_in(&batch, "a.txt", b"Ropes and sails.").await;
    let outside = alice.upload("b.txt", b"Ropes and knots.").await;
    server.idle().await;
    for (narrowed, expected) in
        [(json!({ "batchId": batch }), &inside), (json!({ "fileId": outside }), &outside)]
    {
        let mut query = narrowed;
        query["query"] = json!("ropes");
        let hits = alice.post("/api/v2/search", query).await.ok()["hits"].clone();
        assert_eq!(hits.as_array().unwrap().len(), 1);
        assert_eq!(hits[0]["fileId"], json!(expected));
    }
}

#[on_each_database]
async fn a_hostile_query_is_treated_as_plain_words(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    alice.upload("a.txt", b"plain words").await;
    server.idle().await;
    for query in ["\"", "' OR 1=1 --", "a AND (b", "text:*", "NEAR(", "& | ! <->", "%_", "\u{0}x", "owner:u"]
    {
        let answer = alice.post("/api/v2/search", json!({ "query": query })).await;
        assert_eq!(answer.status, 200, "{query:?}: {}", answer.body);
    }
    alice.post("/api/v2/search", json!({ "query": "  " })).await.refused(400, "INVALID_QUERY");
    alice.post("/api/v2/search", json!({ "query": "x".repeat(3_000) })).await.refused(400, "INVALID_QUERY");
    alice.post("/api/v2/search", json!({ "query": "x", "limit": 0 })).await.refused(400, "INVALID_REQUEST");
}

#[on_each_database]
async fn a_long_document_is_found_by_its_matching_part(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let mut page = String::from("<html><body>");
    for number in 0..30 {
        page.push_str(&format!(
            "<h2>Section {number}</h2><p>{}</p>",
            "Nothing of interest happens here today. ".repeat(12)
        ));
    }
    page.push_str(
        "<h2>Rescue</h2><p>In an emergency fire the red flare and wait for the lifeboat.</p></body></html>",
    );
    alice.upload("manual.html", page.as_bytes()).await;
    server.idle().await;
    let hits = alice.search("what to do in an emergency").await;
    assert_eq!(hits[0]["heading"], "Rescue");
    assert!(hits[0]["snippet"].as_str().unwrap().contains("red flare"), "{}", hits[0]);
}

#[on_each_database]
async fn words_written_without_spaces_are_found_within_a_sentence(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let sentences = [
        ("ja.txt", "国境の長いトンネルを抜けると雪国であった。", "雪国"),
        ("coffee.txt", "毎朝、駅前の店でコーヒーを飲みます。", "コーヒー"),
        ("zh.txt", "老人每天晚上都去看守灯塔。", "灯塔"),
        ("ko.txt", "그는 아침마다 커피를 두 잔 마신다.", "커피"),
        ("soft.txt", "The har\u{ad}bour mas\u{ad}ter was asleep.", "harbour"),
    ];
    for (name, sentence, _) in sentences {
        alice.upload(name, sentence.as_bytes()).await;
    }
    server.idle().await;
    for (name, _, asked) in sentences {
        let hits = alice.search(asked).await;
        let hit =
            hits.iter().find(|hit| hit["fileName"] == name).unwrap_or_else(|| panic!("{asked}: {hits:?}"));
        assert!(hit["matched"].as_array().unwrap().contains(&json!("words")), "{asked}: {hit}");
        assert_eq!(hits[0]["fileName"], name, "{asked}");
    }
    server.stop().await;
}

/// Notes the statements that look for something in a list.
#[derive(Default)]
struct Lists(Mutex<BTreeSet<String>>);

impl FaultInjector for Lists {
    fn inject<'a>(&'a self, step: Step<'a>) -> BoxFuture<'a, Result<(), Error>> {
        if let Step::Statement(sql) = step
            && sql.contains(" IN ($")
        {
            self.0.lock().unwrap().insert(sql.to_owned());
        }
        std::future::ready(Ok(())).boxed()
    }
}

/// Each statement stays prepared on each connection.
#[on_each_database]
async fn searches_with_other_numbers_of_hits_make_the_same_statements(db: TestDb) {
    let lists = Arc::new(Lists::default());
    let server = Setup::default().faults(lists.clone()).start(&db).await;
    let alice = server.client("alice");
    let mut made = Vec::new();
    for number in 1..=16 {
        alice.upload(&format!("{number}.txt"), format!("Pilot boat {number} is moored.").as_bytes()).await;
        server.idle().await;
        assert!(!alice.search("pilot boat").await.is_empty());
        made.push(lists.0.lock().unwrap().clone());
    }
    assert!(!made[8].is_empty(), "a search looks for its chunks in lists");
    assert_eq!(made[8], made[15], "9 files are compared as 16 are");
}
