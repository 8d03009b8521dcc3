//! Words in pictures: read where tesseract is installed, and where it is not, the file says what would help.

use landfall::stages::ocr::Ocr;
use serde_json::json;

use crate::support::made;
use crate::support::{TestDb, TestServer};

on_each_database! {
    async fn a_picture_of_words_is_read_or_says_what_would_help(db: TestDb) {
        let server = TestServer::new(&db).await;
        let alice = server.client("alice");
        let file = alice.upload("sign.bmp", &made::picture_of("TIDES")).await;
        server.idle().await;
        let seen = alice.file(&file).await;
        if Ocr::find("eng").is_some() {
            assert_eq!(seen["status"], "ready", "{}", seen["error"]);
            let hits = alice.search("tides").await;
            assert!(hits.iter().any(|hit| hit["fileId"] == json!(file)), "{hits:?}");
        } else {
            assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("NO_TEXT")));
            assert!(seen["error"]["message"].as_str().unwrap().contains("tesseract"));
        }
        server.assert_books_balance().await;
    }
}

#[tokio::test]
async fn a_picture_that_is_none_is_an_error_and_no_text() {
    let Some(ocr) = Ocr::find("eng") else {
        eprintln!("SKIPPED: tesseract is not installed");
        return;
    };
    assert!(ocr.recognise(b"\x89PNG\r\n\x1A\nand nothing more").await.is_err());
    assert!(ocr.recognise(b"").await.is_err());
    let unknown = Ocr::find("no_such_language").expect("it is installed");
    let error = unknown.recognise(&made::picture_of("TIDES")).await.unwrap_err();
    assert!(error.to_string().contains("tesseract"), "{error}");
}
