//! Hostile documents among normal ones, through the whole server: each fails with a message that says what is wrong,
//! and the other files are not affected.

use landfall_test_documents as made;
use serde_json::json;

use crate::support::{Setup, TestDb, batch_summary, landfall_itself, until};

const BATCH: usize = 100;
/// Lower than the default of a server, so that the test packs fewer cells.
const MAX_CELLS: usize = 100_000;

/// Ten documents that cannot be read, with the error code that each must end with.
fn bombs() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let blanks = " ".repeat(20 << 20);
    let entities = "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b \"ha\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\">\
        <!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;\">]><a>&d;</a>";
    let cells = "<c><v>7</v></c>".repeat(MAX_CELLS + 1);
    let many_cells = format!("<sheetData><row>{cells}</row></sheetData>");
    let unpacking = made::stream("/Filter /FlateDecode", &made::packed_blanks(400));
    let whole = made::docx(&made::paragraph("Whole."));
    vec![
        (
            "styles.docx",
            made::docx_with("", &[("word/styles.xml", blanks.as_bytes())], &[("s", "styles", "styles.xml")]),
            "VALIDATION_ERROR",
        ),
        ("strings.xlsx", made::xlsx(&[("A", "<sheetData/>")], &blanks), "VALIDATION_ERROR"),
        ("content.odt", made::open_document("text", &blanks), "VALIDATION_ERROR"),
        ("deep.docx", made::docx(&"<w:p>".repeat(100_000)), "VALIDATION_ERROR"),
        ("cells.xlsx", made::xlsx(&[("A", &many_cells)], ""), "TOO_LARGE"),
        ("stream.pdf", made::pdf_of_contents(&[unpacking], "", &[]), "PARSE_ERROR"),
        ("entities.xml", entities.as_bytes().to_vec(), "NO_TEXT"),
        ("divs.html", format!("<html>{}", "<div>".repeat(300_000)).into_bytes(), "NO_TEXT"),
        ("half.docx", whole[..whole.len() / 2].to_vec(), "PARSE_ERROR"),
        ("notes.pdf", b"These are only notes.".to_vec(), "NOT_PDF"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_bombs_in_a_batch_of_a_hundred_fail_with_a_reason_and_the_other_ninety_are_ready() {
    let db = TestDb::sqlite();
    let server =
        Setup::default().extractor(landfall_itself()).with("EXTRACT_MAX_CELLS", MAX_CELLS).start(&db).await;
    let client = server.client("ada");
    let batch = client.open_batch(BATCH).await;
    let bombs = bombs();
    let mut hostile = Vec::new();
    for (name, bytes, code) in &bombs {
        hostile.push((name, client.upload_in(&batch, name, bytes).await, *code));
        for number in 0..(BATCH - bombs.len()) / bombs.len() {
            let sentence = format!("Beside {name}, page {number}: the tide comes in.");
            let (name, bytes) = match number % 4 {
                0 => ("a.txt", sentence.into_bytes()),
                1 => ("a.docx", made::docx(&made::paragraph(&sentence))),
                2 => ("a.pdf", made::pdf(&[&[&sentence]])),
                _ => ("a.html", format!("<html><p>{sentence}").into_bytes()),
            };
            client.upload_in(&batch, name, &bytes).await;
        }
    }
    until("the batch is complete", async || client.batch(&batch).await["status"] == "completed").await;
    for (name, file, code) in hostile {
        let file = client.file(&file).await;
        assert_eq!(
            (&file["status"], &file["error"]["code"]),
            (&json!("failed"), &json!(code)),
            "{name}: {file}"
        );
        assert!(
            file["error"]["message"].as_str().is_some_and(|message| message.len() > 20),
            "{name}: {file}"
        );
    }
    assert_eq!(client.batch(&batch).await["summary"], batch_summary(BATCH, 90, 10));
    server.assert_audit_clean().await;
    server.stop().await;
}
