//! What a search returns: the same on both databases, nothing for nonsense, and only from the files that are meant.

use landfall_server::recovery::old_terms;
use landfall_store::{Error, Tx, Write, args};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::{Setup, TestDb, TestServer, on_each_database};

/// Documents in several languages, each with questions in other forms of its words.
const DOCUMENTS: [(&str, &str, &[&str]); 12] = [
    (
        "english.txt",
        "The harbour master closes the gates of the port when the tide is low and the wind is strong. Ships wait outside.",
        &["closing gates", "ship waiting", "harbours"],
    ),
    (
        "german.txt",
        "Der Hafenmeister schließt die Tore, wenn das Wasser niedrig ist und der Wind stark weht. Die alten Häuser am Hafen sind leer.",
        &["altes Haus", "geschlossene Tore am Hafen", "Häusern"],
    ),
    (
        "french.txt",
        "Les bateaux de pêche rentrent au port avant la nuit. Les pêcheurs vendent leurs poissons au marché de la ville.",
        &["vendre du poisson", "bateau de peche", "les marchés"],
    ),
    (
        "spanish.txt",
        "Los barcos pesqueros vuelven al puerto antes de la noche. Las redes rotas se reparan en la playa por la mañana.",
        &["reparar redes", "barco pesquero", "manana"],
    ),
    (
        "italian.txt",
        "Le barche dei pescatori tornano nel porto prima della notte, e le vele bianche si vedono da lontano.",
        &["vela bianca", "barca del pescatore"],
    ),
    (
        "russian.txt",
        "Рыбацкие корабли возвращаются в порт до наступления ночи. Капитаны пишут в журнале о погоде.",
        &["капитан корабля", "журналы"],
    ),
    (
        "dutch.txt",
        "De schepen varen elke ochtend naar de eilanden en brengen boeken en brieven mee.",
        &["eiland", "brief boek"],
    ),
    ("chinese.txt", "老人每天晚上都去看守灯塔，直到太阳升起。", &["灯塔", "看守灯塔的老人"]),
    ("japanese.txt", "国境の長いトンネルを抜けると雪国であった。夜の底が白くなった。", &["雪国", "トンネル"]),
    ("korean.txt", "그는 아침마다 바닷가에서 커피를 두 잔 마신다.", &["커피", "바닷가"]),
    ("thai.txt", "เรือประมงออกจากท่าเรือทุกเช้าก่อนพระอาทิตย์ขึ้น", &["ท่าเรือ", "พระอาทิตย์"]),
    (
        "numbers.txt",
        "Invoice XK4711 over 1.250,00 EUR was paid on 2024-03-05 by Müller & Söhne.",
        &["xk4711", "Muller", "1250 invoice"],
    ),
];

async fn ask(client: &Client, body: Value) -> Value {
    client.post("/api/v2/search", body).await.ok()
}

fn names(found: &Value) -> Vec<&str> {
    found["hits"].as_array().unwrap().iter().map(|hit| hit["fileName"].as_str().unwrap()).collect()
}

async fn with_documents(db: &TestDb) -> TestServer {
    let server = TestServer::new(db).await;
    let alice = server.client("alice");
    for (name, text, _) in DOCUMENTS {
        alice.upload(name, text.as_bytes()).await;
        // Hits of the same score come in the order in which their files became ready.
        server.idle().await;
    }
    server
}

#[on_each_database]
async fn words_are_found_in_other_forms_in_every_language(db: TestDb) {
    let server = with_documents(&db).await;
    let alice = server.client("alice");
    for (name, _, questions) in DOCUMENTS {
        for question in questions {
            let found = ask(&alice, json!({ "query": question, "mode": "words" })).await;
            assert_eq!(names(&found).first(), Some(&name), "{question}: {found}");
            assert_eq!(found["hits"][0]["matched"], json!(["words"]), "{question}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_databases_give_the_same_answers() {
    let Some(postgres) = TestDb::postgres().await else { return };
    let sqlite = TestDb::sqlite();
    let (one, other) = (with_documents(&sqlite).await, with_documents(&postgres).await);
    let all = [
        "port",
        "the night",
        "der Hafen und die Schiffe",
        "ships at night in the harbour",
        "le port",
        "to be or not to be",
    ];
    let questions = DOCUMENTS.iter().flat_map(|(_, _, questions)| questions.iter()).chain(&all);
    for question in questions {
        for mode in ["words", "meaning", "hybrid"] {
            let body = json!({ "query": question, "mode": mode, "limit": 50, "explain": true });
            let (on_sqlite, on_postgres) =
                (ask(&one.client("alice"), body.clone()).await, ask(&other.client("alice"), body).await);
            assert_eq!(names(&on_sqlite), names(&on_postgres), "{mode}: {question}");
            let parts = |found: &Value| {
                let part = |hit: &Value| {
                    json!([hit["ordinal"], hit["snippet"], hit["matched"], hit["explanation"]["terms"]])
                };
                found["hits"].as_array().unwrap().iter().map(part).collect::<Vec<Value>>()
            };
            assert_eq!(parts(&on_sqlite), parts(&on_postgres), "{mode}: {question}");
            assert_eq!(on_sqlite["explanation"], on_postgres["explanation"], "{mode}: {question}");
            for (a, b) in
                on_sqlite["hits"].as_array().unwrap().iter().zip(on_postgres["hits"].as_array().unwrap())
            {
                // The databases add up the products of vectors in another order.
                let difference = a["score"].as_f64().unwrap() - b["score"].as_f64().unwrap();
                assert!(difference.abs() < 1e-4, "{mode}: {question}: {a} {b}");
            }
        }
    }
}

#[on_each_database]
async fn a_question_about_nothing_finds_nothing(db: TestDb) {
    let server = with_documents(&db).await;
    let alice = server.client("alice");
    for question in ["asdf qwer zxcv", "xyzzy", "qqqq wwww eeee rrrr", "zzkj", "blorf the snizzle"] {
        for mode in ["words", "meaning", "hybrid"] {
            let found = ask(&alice, json!({ "query": question, "mode": mode })).await;
            assert_eq!(found["hits"], json!([]), "{mode}: {question}");
        }
    }
    for hit in ask(&alice, json!({ "query": "When are the gates of the port closed?" })).await["hits"]
        .as_array()
        .unwrap()
    {
        let score = hit["score"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score), "{hit}");
    }
}

#[on_each_database]
async fn a_mode_compares_only_what_it_says(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    alice.upload("dog.txt", b"The puppy chased its tail around the garden all afternoon.").await;
    server.idle().await;
    let found = async |query: &str, mode: &str| ask(&alice, json!({ "query": query, "mode": mode })).await;
    assert_eq!(names(&found("a young dog playing outside", "words").await), [""; 0]);
    assert_eq!(names(&found("a young dog playing outside", "meaning").await), ["dog.txt"]);
    let by_words = found("puppy", "words").await;
    assert_eq!(by_words["hits"][0]["matched"], json!(["words"]));
    assert_eq!(by_words["hits"][0]["explanation"], Value::Null);
    alice
        .post("/api/v2/search", json!({ "query": "dog", "mode": "magic" }))
        .await
        .refused(400, "INVALID_REQUEST");
}

#[on_each_database]
async fn a_search_is_narrowed_by_what_is_known_of_the_files(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let upload = async |name: &str, kind: &str, attributes: Value| {
        let text = "Ropes and sails.";
        let new = json!({ "fileName": name, "fileSize": text.len(), "contentType": kind, "attributes": attributes });
        let ticket = alice.post("/api/v2/uploads/files/init", new).await.ok();
        alice.put(ticket["uploadUrl"].as_str().unwrap(), text).await.ok();
        let file = ticket["fileId"].as_str().unwrap().to_owned();
        alice.confirm(&file).await.ok();
        file
    };
    let a = upload(
        "Alpha_1.txt",
        "text/plain; charset=utf-8",
        json!({ "project": "north", "year": 2024, "draft": true }),
    )
    .await;
    let b = upload("beta%.md", "text/markdown", json!({ "project": "south", "year": 2024, "draft": false }))
        .await;
    let c = upload("gamma.txt", "text/plain", json!({})).await;
    server.idle().await;
    let created = |file: &str| {
        let path = format!("/api/v2/uploads/files/{file}");
        let alice = alice.clone();
        async move { alice.get(&path).await.ok()["createdAt"].clone() }
    };
    for (narrowed, expected) in [
        (json!({}), vec![&a, &b, &c]),
        (json!({ "fileIds": [a, c] }), vec![&a, &c]),
        (json!({ "fileId": b }), vec![&b]),
        (json!({ "name": "ALPHA_" }), vec![&a]),
        (json!({ "name": "%" }), vec![&b]),
        (json!({ "name": "_" }), vec![&a]),
        (json!({ "types": ["text/plain"] }), vec![&a, &c]),
        (json!({ "types": ["text/markdown", "image/"] }), vec![&b]),
        (json!({ "types": ["text/"] }), vec![&a, &b, &c]),
        (json!({ "attributes": { "project": "north" } }), vec![&a]),
        (json!({ "attributes": { "year": 2024 } }), vec![&a, &b]),
        (json!({ "attributes": { "year": 2024, "draft": false } }), vec![&b]),
        (json!({ "attributes": { "year": 2023 } }), vec![]),
        (json!({ "createdAfter": created(&b).await }), vec![&b, &c]),
        (json!({ "createdBefore": created(&b).await }), vec![&a]),
        (json!({ "createdAfter": created(&b).await, "name": "gamma", "types": ["text/plain"] }), vec![&c]),
    ] {
        for mode in ["words", "meaning", "hybrid"] {
            let mut body = narrowed.clone();
            body["query"] = json!("ropes and sails");
            body["mode"] = json!(mode);
            let found = ask(&alice, body).await;
            let mut files: Vec<&str> =
                found["hits"].as_array().unwrap().iter().map(|hit| hit["fileId"].as_str().unwrap()).collect();
            files.sort_unstable();
            let mut expected: Vec<&str> = expected.iter().map(|file| file.as_str()).collect();
            expected.sort_unstable();
            assert_eq!(files, expected, "{mode}: {narrowed}");
        }
    }
    for wrong in [
        json!({ "fileIds": [] }),
        json!({ "name": "" }),
        json!({ "types": [] }),
        json!({ "types": [""] }),
        json!({ "attributes": { "x": [1] } }),
        json!({ "attributes": { "x": "\u{0}" } }),
        json!({ "offset": 151 }),
        json!({ "limit": 51 }),
    ] {
        let mut body = wrong;
        body["query"] = json!("ropes");
        alice.post("/api/v2/search", body).await.refused(400, "INVALID_REQUEST");
    }
}

#[on_each_database]
async fn attributes_can_be_changed_and_go_with_their_file(db: TestDb) {
    let server = TestServer::new(&db).await;
    let (alice, bob) = (server.client("alice"), server.client("bob"));
    let file = alice.upload("a.txt", b"Ropes and sails.").await;
    bob.upload("b.txt", b"Ropes and sails.").await;
    server.idle().await;
    let path = format!("/api/v2/uploads/files/{file}");
    let change = async |client: &Client, attributes: Value| {
        let request = client.request(Method::PATCH, &path).json(&json!({ "attributes": attributes }));
        client.send(request).await
    };
    let found = async |client: &Client, attributes: Value| {
        let found = ask(client, json!({ "query": "ropes", "attributes": attributes })).await;
        found["hits"].as_array().unwrap().len()
    };
    let changed = change(&alice, json!({ "project": "north", "year": 2024 })).await.ok();
    assert_eq!(changed["attributes"], json!({ "project": "north", "year": 2024 }));
    assert_eq!(alice.file(&file).await["attributes"], changed["attributes"]);
    assert_eq!(found(&alice, json!({ "project": "north" })).await, 1);
    assert_eq!(found(&bob, json!({ "project": "north" })).await, 0, "they are Alice's");
    change(&alice, json!({ "project": "south" })).await.ok();
    assert_eq!(found(&alice, json!({ "project": "north" })).await, 0);
    assert_eq!(found(&alice, json!({ "project": "south" })).await, 1);
    change(&alice, json!({ "project": { "name": "south" } })).await.refused(400, "INVALID_ATTRIBUTES");
    change(&bob, json!({ "project": "mine" })).await.refused(404, "FILE_NOT_FOUND");
    alice.delete(&path).await.ok();
    change(&alice, json!({ "project": "south" })).await.refused(410, "FILE_DELETED");
    let kept =
        server.app.db.read().await.unwrap().number("SELECT COUNT(*) FROM file_attributes", args![]).await;
    assert_eq!(kept.unwrap(), 0);
}

#[on_each_database]
async fn neighbouring_chunks_are_one_hit(db: TestDb) {
    let server = Setup::default().with("CHUNK_SIZE", 40).with("CHUNK_OVERLAP", 0).start(&db).await;
    let alice = server.client("alice");
    let (filler, about) = (
        "The kitchen was painted blue last week by two men. ",
        "The lighthouse lamp burns whale oil every night. ",
    );
    let text = [filler.repeat(12), about.repeat(6), filler.repeat(12), about.to_owned()].concat();
    alice.upload("log.txt", text.as_bytes()).await;
    server.idle().await;
    let found = ask(&alice, json!({ "query": "lighthouse lamp oil", "mode": "words" })).await;
    let hits = found["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 2, "{found}");
    let numbers = |hit: &Value, names: [&str; 2]| names.map(|name| hit[name].as_i64().unwrap());
    let long = hits
        .iter()
        .max_by_key(|hit| hit["lastOrdinal"].as_i64().unwrap() - hit["firstOrdinal"].as_i64().unwrap());
    let ([first, last], [start, end]) = (
        numbers(long.unwrap(), ["firstOrdinal", "lastOrdinal"]),
        numbers(long.unwrap(), ["charStart", "charEnd"]),
    );
    assert!(last > first, "{found}");
    let [start, end] = [start, end].map(|place| usize::try_from(place).unwrap());
    assert!(text[start..end].matches("lighthouse").count() >= 5, "{}", &text[start..end]);
    // Pages are parts of the same order.
    let page = async |offset: usize| {
        ask(&alice, json!({ "query": "lighthouse lamp oil", "mode": "words", "limit": 1, "offset": offset }))
            .await
    };
    let (one, two, three) = (page(0).await, page(1).await, page(2).await);
    assert_eq!([&one["hits"][0], &two["hits"][0]], [&hits[0], &hits[1]]);
    assert_eq!([&one["hasMore"], &two["hasMore"], &three["hasMore"]], [true, false, false]);
    assert_eq!(three["hits"], json!([]));
}

#[on_each_database]
async fn a_search_explains_what_it_found(db: TestDb) {
    let server = with_documents(&db).await;
    let alice = server.client("alice");
    let found =
        ask(&alice, json!({ "query": "Are the ships waiting for the blorf?", "explain": true })).await;
    let terms: Vec<&str> = found["explanation"]["terms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|term| term["term"].as_str().unwrap())
        .collect();
    assert_eq!(terms.len(), 3, "{found}");
    assert_eq!(
        found["explanation"]["terms"][0],
        json!({ "term": "blorf", "chunks": 0.0, "weight": found["explanation"]["terms"][0]["weight"] })
    );
    let hit = &found["hits"][0];
    assert_eq!(hit["fileName"], "english.txt");
    let mut matched: Vec<&str> =
        hit["explanation"]["terms"].as_array().unwrap().iter().map(|term| term.as_str().unwrap()).collect();
    matched.sort_unstable();
    assert_eq!(matched, ["ships", "waiting"]);
    let coverage = hit["explanation"]["coverage"].as_f64().unwrap();
    assert!(coverage > 0.3 && coverage < 0.9, "{hit}");
    assert!(
        hit["explanation"]["similarity"].as_f64().unwrap()
            > found["explanation"]["unrelated"].as_f64().unwrap()
    );
}

/// The index as an earlier version left it.
struct WithoutTerms;

impl Write for WithoutTerms {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        if !tx.is_postgres() {
            tx.execute("DELETE FROM chunk_postings", args![]).await?;
        }
        tx.execute("DELETE FROM chunk_terms", args![]).await?;
        tx.execute("UPDATE indexed_files SET terms_format = 0", args![]).await.map(drop)
    }
}

#[on_each_database]
async fn files_of_an_earlier_version_are_found_by_meaning_until_their_words_are_indexed_again(db: TestDb) {
    let server = with_documents(&db).await;
    let alice = server.client("alice");
    server.app.db.write(WithoutTerms).await.unwrap();
    server.assert_audit_clean().await;
    let question = json!({ "query": "when are the gates of the port closed?" });
    let found = ask(&alice, question.clone()).await;
    assert_eq!(found["hits"][0]["fileName"], "english.txt");
    assert_eq!(found["hits"][0]["matched"], json!(["meaning"]));
    assert!(found["warning"].as_str().unwrap().contains("still being indexed"), "{found}");
    assert_eq!(old_terms::sweep(&server.app.db).await.unwrap(), DOCUMENTS.len());
    let found = ask(&alice, question).await;
    assert_eq!(found["hits"][0]["matched"], json!(["words", "meaning"]));
    assert_eq!(found["warning"], Value::Null);
    assert_eq!(old_terms::sweep(&server.app.db).await.unwrap(), 0);
    server.assert_audit_clean().await;
}
