//! The structure of a document in its text, its chunks and the hits of a search.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::failure::Failure;
use landfall_core::lifecycle::Stage;
use landfall_core::text::{Area, Chunk, Embedded, Extracted, Markup, PageArea, TextBox};
use landfall_server::stages::{Job, Output, Work};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, Setup, TestDb, TestServer, on_each_database};

const FILES: &str = "/api/v2/uploads/files";
const HEADER: &str = "| Berth | Use |\n| --- | --- |\n";

fn handbook() -> String {
    let row = |number| {
        format!("| {number} | The ferry of {number} o'clock to the [islands](https://example.org) |\n")
    };
    let rows: String = (1..=40).map(row).collect();
    format!(
        "# Handbook\n\n## Berths\n\nThe *quay* has these:\n\n{HEADER}{rows}\n## Hours\n\n- From nine\n- to five\n"
    )
}

async fn text_as(client: &Client, file: &str, query: &str) -> (String, String) {
    let path = format!("{FILES}/{file}/text{query}");
    let answer = client.request(Method::GET, &path).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 200);
    let content_type = answer.headers()["content-type"].to_str().expect("a content type").to_owned();
    (content_type, answer.text().await.expect("text"))
}

async fn chunks_of(client: &Client, file: &str) -> Vec<Value> {
    let listed = client.get(&format!("{FILES}/{file}/chunks?limit=200")).await.ok();
    listed["chunks"].as_array().expect("chunks").clone()
}

#[on_each_database]
async fn a_text_is_shown_as_markdown_or_plain(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("handbook.md", handbook().as_bytes()).await;
    let note = alice.upload("note.txt", b"# not a heading\n| a | b |\n").await;
    server.idle().await;
    let markdown = ("text/markdown; charset=utf-8".to_owned(), handbook());
    assert_eq!(text_as(&alice, &file, "").await, markdown);
    assert_eq!(text_as(&alice, &file, "?format=markdown").await, markdown);
    let (content_type, plain) = text_as(&alice, &file, "?format=plain").await;
    assert_eq!(content_type, "text/plain; charset=utf-8");
    let beginning = "Handbook\n\nBerths\n\nThe *quay* has these:\n\nBerth\tUse\n1\tThe ferry of 1 o'clock to the islands\n";
    assert!(plain.starts_with(beginning), "{plain}");
    assert!(plain.ends_with("Hours\n\n- From nine\n- to five"), "{plain}");
    // A file that is plain text is not Markdown, whatever it looks like.
    for query in ["", "?format=markdown", "?format=plain"] {
        let (content_type, text) = text_as(&alice, &note, query).await;
        assert_eq!(content_type, "text/plain; charset=utf-8", "{query}");
        assert!(text.starts_with("# not a heading\n| a | b |"), "{text}");
    }
    alice.get(&format!("{FILES}/{file}/text?format=pdf")).await.refused(400, "INVALID_REQUEST");
}

#[on_each_database]
async fn chunks_keep_rows_whole_repeat_the_header_and_have_their_headings(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("handbook.md", handbook().as_bytes()).await;
    server.idle().await;
    let chunks = chunks_of(&alice, &file).await;
    let (hours, berths) = chunks.split_last().expect("chunks");
    assert_eq!(hours["headings"], json!(["Handbook", "Hours"]));
    assert_eq!(hours["places"], json!([]));
    assert!(berths.len() > 3, "{}", berths.len());
    let text: Vec<char> = handbook().chars().collect();
    let mut rows = 0;
    for chunk in berths {
        assert_eq!(chunk["headings"], json!(["Handbook", "Berths"]));
        let shown = chunk["text"].as_str().expect("text");
        assert_eq!(shown.matches(HEADER).count(), 1, "{shown}");
        rows += shown.lines().filter(|line| line.ends_with("[islands](https://example.org) |")).count();
        let place = |name: &str| usize::try_from(chunk[name].as_u64().expect("a place")).expect("it fits");
        let stored: String = text[place("charStart")..place("charEnd")].iter().collect();
        assert!(shown.ends_with(&stored), "{stored}");
    }
    assert_eq!(rows, 40);
    let hits = alice.search("the ferry of 33 o'clock").await;
    assert_eq!(hits[0]["headings"], json!(["Handbook", "Berths"]));
    let snippet = hits[0]["snippet"].as_str().expect("a snippet");
    assert!(!snippet.contains("---") && !snippet.contains("https"), "{snippet}");
}

#[on_each_database]
async fn chunks_are_cut_by_size_alone_if_the_operator_wants_that(db: TestDb) {
    let server = Setup::default().with("CHUNKING", "fixed").start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("handbook.md", handbook().as_bytes()).await;
    server.idle().await;
    let chunks = chunks_of(&alice, &file).await;
    let headers =
        chunks.iter().filter(|chunk| chunk["text"].as_str().is_some_and(|text| text.contains("---")));
    assert_eq!(headers.count(), 1, "the header is not repeated");
}

/// A reader that knows where the words are on the page.
struct Placed;

fn area(top: u16) -> Area {
    Area { left: 1_000, top, right: 9_000, bottom: top + 500 }
}

impl Work for Placed {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        let text = "The lighthouse keeper".to_owned();
        let output = match job.stage {
            Stage::Scan => Output::Nothing,
            Stage::Extract => Output::Extracted(Extracted {
                markup: Markup::Markdown,
                boxes: vec![TextBox { start: 0, end: text.len(), page: 2, area: area(0) }],
                ..Extracted::plain(text)
            }),
            Stage::Chunk => Output::Chunked(vec![Chunk {
                char_end: text.len(),
                text,
                page: Some(2),
                heading: Some("Crew".to_owned()),
                headings: vec!["Handbook".to_owned(), "Crew".to_owned()],
                places: vec![PageArea { page: 2, area: area(0) }, PageArea { page: 3, area: area(2_500) }],
                char_start: 0,
                tokens: 3,
            }]),
            Stage::Embed => {
                Output::Embedded(Embedded { model: "made".to_owned(), vectors: vec![vec![1.0; 8]] })
            }
        };
        async move { Ok(output) }.boxed()
    }
}

#[on_each_database]
async fn a_chunk_and_its_hit_say_where_they_are_on_the_pages(db: TestDb) {
    let server = Setup::default().work(Arc::new(Placed)).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("crew.pdf", b"bytes").await;
    server.idle().await;
    let places = json!([
        { "page": 2, "box": { "left": 0.1, "top": 0.0, "right": 0.9, "bottom": 0.05 } },
        { "page": 3, "box": { "left": 0.1, "top": 0.25, "right": 0.9, "bottom": 0.3 } },
    ]);
    let chunks = chunks_of(&alice, &file).await;
    assert_eq!((&chunks[0]["places"], &chunks[0]["headings"]), (&places, &json!(["Handbook", "Crew"])));
    let hits = alice.search("lighthouse").await;
    assert_eq!((&hits[0]["places"], &hits[0]["headings"]), (&places, &json!(["Handbook", "Crew"])));
}
