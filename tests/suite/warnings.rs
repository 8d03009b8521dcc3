//! What is missing of a file that is ready: told wherever the file is shown, and replaced when it is extracted again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage;
use landfall_core::text::{Chunk, Embedded, Extracted};
use landfall_core::warning::{Warning, WarningCode};
use landfall_server::stages::{Job, Output, Work};
use landfall_test_documents as made;
use serde_json::{Value, json};

use crate::support::stream::EventStream;
use crate::support::{Client, Setup, TestDb, TestServer, on_each_database};

const FILES: &str = "/api/v2/uploads/files";

/// Four pages, up to the beginning of the content of this one.
fn cut_pdf(page: usize) -> Vec<u8> {
    let lines = ["Fairway buoy one", "Fairway buoy two", "Fairway buoy three", "Fairway buoy four"];
    let whole = made::pdf(&lines.each_ref().map(std::slice::from_ref));
    let line = lines[page - 1].as_bytes();
    let end = whole.windows(line.len()).position(|window| window == line).expect("the line");
    whole[..end].to_vec()
}

fn codes(file: &Value) -> Vec<&str> {
    let warnings = file["warnings"].as_array().expect("a list");
    warnings.iter().map(|warning| warning["code"].as_str().expect("a code")).collect()
}

async fn counted(server: &TestServer, code: WarningCode) -> f64 {
    let scrape = reqwest::get(format!("{}/metrics", server.base)).await.unwrap().text().await.unwrap();
    let series = format!("landfall_file_warnings_total{{code=\"{code}\"}} ");
    let line = scrape.lines().find_map(|line| line.strip_prefix(&series));
    line.unwrap_or_else(|| panic!("{series} in {scrape}")).parse().expect("a number")
}

#[on_each_database]
async fn a_document_that_breaks_off_is_ready_and_says_what_is_missing(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let mut stream = EventStream::open(&alice, "?types=file:status-changed").await;
    let before = counted(&server, WarningCode::Truncated).await;
    let file = alice.upload("cut.pdf", &cut_pdf(4)).await;
    server.idle().await;

    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["warningCount"]), (&json!("ready"), &json!(1)), "{seen}");
    let warning = &seen["warnings"][0];
    assert_eq!((&warning["code"], &warning["page"]), (&json!("TRUNCATED"), &json!(4)));
    let message = warning["message"].as_str().unwrap();
    assert!(message.contains("Page 4 of 4 cannot be read"), "{message}");

    let listed = alice.get(FILES).await.ok();
    assert_eq!(listed["files"][0]["warningCount"], 1);
    assert_eq!(listed["files"][0]["warnings"], json!(null), "a list has the number only");

    let event = loop {
        let event = stream.next().await.expect("an event");
        if event["data"]["to"] == "ready" {
            break event;
        }
        assert_eq!(event["data"].get("warnings"), None, "{event}");
    };
    assert_eq!(event["data"]["warnings"], seen["warnings"], "{event}");
    assert_eq!(event["data"]["warningCount"], 1);
    assert!(counted(&server, WarningCode::Truncated).await > before);
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_whole_document_has_no_warnings(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let mut stream = EventStream::open(&alice, "?types=file:status-changed").await;
    let file = alice.upload("whole.txt", b"The harbour closes at low tide.").await;
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["warningCount"], &seen["warnings"]), (&json!(0), &json!([])));
    let event = loop {
        let event = stream.next().await.expect("an event");
        if event["data"]["to"] == "ready" {
            break event;
        }
    };
    assert_eq!(event["data"].get("warningCount"), None, "{event}");
}

#[on_each_database]
async fn a_document_of_which_most_is_missing_fails_with_the_reason(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("cut.pdf", &cut_pdf(2)).await;
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("PARSE_ERROR")));
    let message = seen["error"]["message"].as_str().unwrap();
    assert!(message.contains("only 1 of 4 pages can be read"), "{message}");
    assert_eq!((&seen["warningCount"], &seen["warnings"]), (&json!(0), &json!([])));
}

#[on_each_database]
async fn what_an_attachment_is_called_cannot_break_the_warning(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let name = format!("a\\000b\\012{}.zip", "é".repeat(900));
    let catalog = "/Names << /EmbeddedFiles << /Names [(x) 6 0 R] >> >>";
    let file = format!("<< /Type /Filespec /F ({name}) >>").into_bytes();
    let pdf = made::pdf_of_contents(&[made::lines(&["See the file"])], catalog, &[file]);
    let file = alice.upload("named.pdf", &pdf).await;
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!(codes(&seen), ["PARTS_NOT_READ"], "{seen}");
    let message = seen["warnings"][0]["message"].as_str().unwrap();
    assert!(message.len() <= Warning::MAX_MESSAGE && !message.contains(char::is_control), "{message}");
}

/// Extracts with other warnings each time, and embeds only at the fourth attempt.
#[derive(Default)]
struct Changing(Mutex<BTreeMap<&'static str, usize>>);

impl Changing {
    fn stage(&self, stage: Stage) -> Result<Output, Failure> {
        let mut runs = self.0.lock().unwrap();
        let run = runs.entry(stage.name()).or_default();
        *run += 1;
        match (stage, *run) {
            (Stage::Scan, _) => Ok(Output::Nothing),
            (Stage::Extract, 3) => Err(Failure::new(Code::ParseError, "It is damaged")),
            (Stage::Extract, run) => {
                let codes = [WarningCode::Truncated, WarningCode::OcrIncomplete];
                let warnings = match run {
                    1 => codes.map(|code| Warning::new(code, "Something is missing")).to_vec(),
                    2 => vec![Warning::new(codes[1], "Something is missing").on_page(Some(7))],
                    _ => Vec::new(),
                };
                Ok(Output::Extracted(Extracted { warnings, ..Extracted::plain("text".to_owned()) }))
            }
            (Stage::Chunk, _) => Ok(Output::Chunked(vec![Chunk {
                text: "text".to_owned(),
                page: None,
                heading: None,
                headings: Vec::new(),
                places: Vec::new(),
                char_start: 0,
                char_end: 4,
                tokens: 1,
            }])),
            (Stage::Embed, 1..=3) => Err(Failure::new(Code::ParseError, "Not yet")),
            (Stage::Embed, _) => {
                Ok(Output::Embedded(Embedded { model: "made".to_owned(), vectors: vec![vec![1.0; 8]] }))
            }
        }
    }
}

impl Work for Changing {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        let output = self.stage(job.stage);
        async move { output }.boxed()
    }
}

async fn retry_from(alice: &Client, file: &str, stage: &str) -> Value {
    alice.post(&format!("{FILES}/{file}/retry"), json!({ "fromStage": stage })).await.ok()
}

#[on_each_database]
async fn an_extraction_replaces_the_warnings_of_the_one_before(db: TestDb) {
    let server = Setup::default().work(Arc::new(Changing::default())).start(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("a", b"a").await;
    server.idle().await;
    assert_eq!(codes(&alice.file(&file).await), ["TRUNCATED", "OCR_INCOMPLETE"]);

    // A later stage leaves them as they are.
    let queued = retry_from(&alice, &file, "chunk").await;
    assert_eq!(queued["warningCount"], 2);
    server.idle().await;
    assert_eq!(codes(&alice.file(&file).await), ["TRUNCATED", "OCR_INCOMPLETE"]);

    let queued = retry_from(&alice, &file, "extract").await;
    assert_eq!(
        (&queued["warningCount"], &queued["warnings"]),
        (&json!(0), &json!([])),
        "they are not true any more"
    );
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((codes(&seen), &seen["warnings"][0]["page"]), (vec!["OCR_INCOMPLETE"], &json!(7)));

    // The third extraction fails, and the fourth finds everything.
    retry_from(&alice, &file, "extract").await;
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!((&seen["status"], &seen["warningCount"]), (&json!("failed"), &json!(0)));
    retry_from(&alice, &file, "extract").await;
    server.idle().await;
    let seen = alice.file(&file).await;
    assert_eq!(
        (&seen["status"], &seen["warningCount"], &seen["warnings"]),
        (&json!("ready"), &json!(0), &json!([]))
    );
}

#[on_each_database]
async fn a_deleted_file_keeps_no_warnings(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("cut.pdf", &cut_pdf(4)).await;
    server.idle().await;
    let kept = async || {
        let mut tx = server.app.db.read().await.unwrap();
        let sql = "SELECT COUNT(*) FROM files WHERE warnings IS NOT NULL OR warning_count > 0";
        let (count,): (i64,) = tx.row(sql, vec![]).await.unwrap().unwrap();
        count
    };
    assert_eq!(kept().await, 1);
    alice.delete(&format!("{FILES}/{file}")).await.ok();
    assert_eq!(kept().await, 0);
}

#[test]
fn the_document_lists_exactly_the_existing_warnings() {
    let document = include_str!("../../docs/warnings.md");
    let table = document.split("| code | meaning |").nth(1).expect("the table");
    let listed: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    let expected: Vec<String> =
        WarningCode::ALL.iter().map(|code| format!("| `{code}` | {} |", code.meaning())).collect();
    assert_eq!(listed, expected);
}
