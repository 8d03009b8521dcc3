//! Real documents of every supported kind, through the whole server.

use landfall_test_documents as made;
use serde_json::json;

use crate::support::{TestDb, TestServer, on_each_database};

#[on_each_database]
async fn every_kind_of_text_becomes_searchable(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let french = "Le phare s'allume dès la tombée de la nuit, même en été.";
    let utf16: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain(french.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let documents: Vec<(&str, Vec<u8>, &str)> = vec![
        ("utf8.txt", french.as_bytes().to_vec(), "phare"),
        ("utf16.txt", utf16, "tombée"),
        ("latin1.txt", encoding_rs::WINDOWS_1252.encode(french).0.into_owned(), "été"),
        ("readme.md", b"# Buoys\n\nRed buoys mark the port side.".to_vec(), "buoys"),
        (
            "page.html",
            b"<html><head><title>x</title></head><body><p>Foghorn <b>signals</b></p></body></html>".to_vec(),
            "foghorn",
        ),
        ("crew.csv", b"name,rank\nNemo,captain\nAronnax,professor\n".to_vec(), "Aronnax"),
        ("log.json", br#"{"entries": [{"what": "Kraken sighted"}]}"#.to_vec(), "kraken"),
        ("nul.json", br#"{"a": "before\u0000binnacle"}"#.to_vec(), "binnacle"),
        ("pilot.pdf", made::pdf(&[&["The pilot boards", "at the fairway buoy"]]), "fairway"),
        ("pilot.docx", made::docx(&made::paragraph("A capstan hauls the cable.")), "capstan"),
        ("pilot.pptx", made::pptx(&[("Winds", "The mistral blows", "")]), "mistral"),
        (
            "pilot.xlsx",
            made::xlsx(
                &[("Crew", "<sheetData><row><c t=\"s\"><v>0</v></c></row></sheetData>")],
                "<si><t>bosun</t></si>",
            ),
            "bosun",
        ),
        ("pilot.odt", made::open_document("text", "<text:p>The sextant is brass.</text:p>"), "sextant"),
        ("pilot.rtf", br"{\rtf1 The halyard is frayed.}".to_vec(), "halyard"),
        (
            "pilot.eml",
            b"From: a@b.example\nTo: c@d.example\nSubject: Ballast\n\nTake on water.".to_vec(),
            "ballast",
        ),
        ("pilot.xml", b"<?xml version='1.0'?><log><entry>Scurvy aboard</entry></log>".to_vec(), "scurvy"),
        ("log.jsonl", b"{\"a\": \"maelstrom\"}\n{\"a\": \"calm\"}\n".to_vec(), "maelstrom"),
    ];
    let mut files = Vec::new();
    for (name, bytes, _) in &documents {
        files.push(alice.upload(name, bytes).await);
    }
    server.idle().await;
    for ((name, _, word), file) in documents.iter().zip(&files) {
        let seen = alice.file(file).await;
        assert_eq!(seen["status"], "ready", "{name}: {}", seen["error"]);
        let hits = alice.search(word).await;
        let found = hits.iter().any(|hit| hit["fileId"] == json!(file) && hit["matched"][0] == "words");
        assert!(found, "{name} is not found by {word}: {hits:?}");
    }
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn a_document_that_cannot_be_read_fails_with_the_reason(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let documents: Vec<(&str, &[u8], &str)> = vec![
        ("fake.pdf", b"this is no PDF", "NOT_PDF"),
        ("packed.txt", b"\x1F\x8B\x08\0\0\0\0\0", "UNSUPPORTED_TYPE"),
        ("broken.docx", b"PK\x03\x04\x14\0\x06\0", "PARSE_ERROR"),
        ("broken.pdf", b"%PDF-1.7\nand nothing more", "PARSE_ERROR"),
        ("noise.bin", &[0, 159, 146, 150, 0, 1, 2, 3], "UNSUPPORTED_TYPE"),
        ("broken.json", b"{\"a\": ", "PARSE_ERROR"),
        ("empty.txt", b"", "NO_TEXT"),
        ("blank.txt", b"   \n \t ", "NO_TEXT"),
        ("script.html", b"<html><script>var words = 'many'</script></html>", "NO_TEXT"),
    ];
    for (name, bytes, code) in documents {
        let file = alice.upload(name, bytes).await;
        server.idle().await;
        let seen = alice.file(&file).await;
        assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!(code)), "{name}");
        assert_eq!(seen["error"]["class"], "DOCUMENT_ERROR");
        assert!(seen["error"]["message"].as_str().unwrap().len() > 10);
    }
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn chunks_fit_the_model_and_cover_the_whole_text(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let text: String =
        (0..400).map(|n| format!("Sentence number {n} speaks of winds and currents. ")).collect();
    let file = alice.upload("long.txt", text.as_bytes()).await;
    server.idle().await;
    let chunks = alice.get(&format!("/api/v2/uploads/files/{file}/chunks?limit=200")).await.ok();
    let chunks = chunks["chunks"].as_array().unwrap();
    let characters: Vec<char> = text.chars().collect();
    let mut covered = 0;
    for chunk in chunks {
        let number = |name: &str| usize::try_from(chunk[name].as_u64().unwrap()).unwrap();
        assert!(number("tokens") <= 120);
        let (start, end) = (number("charStart"), number("charEnd"));
        assert_eq!(chunk["text"].as_str().unwrap(), characters[start..end].iter().collect::<String>());
        assert!(
            characters[covered.min(start)..start].iter().all(|c| c.is_whitespace()),
            "a gap before {start}"
        );
        covered = covered.max(end);
    }
    assert!(characters[covered..].iter().all(|c| c.is_whitespace()));
    assert!(chunks.len() > 30);
}
