//! Text in images: read where tesseract is installed; elsewhere the file says what would help.

use std::fs::{Permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use landfall_documents::ocr::Ocr;
use landfall_test_documents as made;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::support::process::Process;
use crate::support::{TestDb, TestServer, landfall_itself, on_each_database, until};

#[on_each_database]
async fn an_image_of_text_is_read_or_the_error_says_what_would_help(db: TestDb) {
    let server = TestServer::new(&db).await;
    let alice = server.client("alice");
    let file = alice.upload("sign.bmp", &made::picture_of("TIDES")).await;
    server.idle().await;
    let seen = alice.file(&file).await;
    if Ocr::find(&landfall_itself(), "eng").is_some() {
        assert_eq!(seen["status"], "ready", "{}", seen["error"]);
        let hits = alice.search("tides").await;
        assert!(hits.iter().any(|hit| hit["fileId"] == json!(file)), "{hits:?}");
    } else {
        assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("failed"), &json!("NO_TEXT")));
        assert!(seen["error"]["message"].as_str().unwrap().contains("tesseract"));
    }
    server.assert_audit_clean().await;
}

#[tokio::test]
async fn an_invalid_image_is_an_error_and_not_empty_text() {
    let Some(ocr) = Ocr::find(&landfall_itself(), "eng") else {
        eprintln!("SKIPPED: tesseract is not installed");
        return;
    };
    assert!(ocr.recognise(b"\x89PNG\r\n\x1A\nand nothing more").await.is_err());
    assert!(ocr.recognise(b"").await.is_err());
    let unknown = Ocr::find(&landfall_itself(), "no_such_language").expect("it is installed");
    let error = unknown.recognise(&made::picture_of("TIDES")).await.unwrap_err();
    assert!(error.to_string().contains("tesseract"), "{error}");
}

/// A script in place of tesseract, in its own folder.
struct FakeTesseract {
    folder: TempDir,
}

impl FakeTesseract {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tesseract = Self { folder };
        let program = tesseract.program();
        write(&program, format!("#!/bin/bash\n{script}\n")).expect("a script");
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a program");
        tesseract
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("tesseract")
    }

    fn ocr(&self) -> Ocr {
        Ocr::at(&landfall_itself(), &self.program(), "eng")
    }

    /// A search path on which it comes first.
    fn path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.folder.path().display())
    }
}

#[tokio::test]
async fn a_program_that_prints_too_much_is_ended_and_its_text_is_kept() {
    let complaining =
        FakeTesseract::new("cat >/dev/null; head -c 1000000 /dev/zero | tr '\\0' w >&2; echo The words.");
    assert_eq!(complaining.ocr().recognise(b"A picture").await.unwrap(), "The words.\n");
    // It would run forever, and so would the test.
    let talkative = FakeTesseract::new("cat >/dev/null; yes word");
    assert_eq!(talkative.ocr().recognise(b"A picture").await.unwrap().len(), 1 << 20);
    // The output of a program that closes its input is read all the same.
    let deaf = FakeTesseract::new("echo Enough seen.");
    assert_eq!(deaf.ocr().recognise(&vec![0; 4 << 20]).await.unwrap(), "Enough seen.\n");
    let failing = FakeTesseract::new("cat >/dev/null; echo First this. >&2; echo Then that. >&2; exit 1");
    let error = failing.ocr().recognise(b"A picture").await.unwrap_err();
    assert!(error.to_string().ends_with("Then that."), "{error}");
}

#[tokio::test]
async fn ocr_of_a_document_ends_in_time_and_keeps_the_text_so_far() {
    let tesseract = FakeTesseract::new(
        "read -r picture; [ \"$picture\" = slow ] && exec sleep 1000; echo \"Seen: $picture\"",
    );
    let pictures: [&[u8]; 4] = [b"one\n", b"two\n", b"slow\n", b"three\n"];
    let ocr = tesseract.ocr().within(Duration::from_secs(3));
    let (words, failed) = ocr.recognise_all(pictures.into_iter(), || async {}).await;
    assert_eq!(words, [Some("Seen: one\n".to_owned()), Some("Seen: two\n".to_owned()), None]);
    assert!(failed.unwrap().to_string().contains("took longer"));
}

#[on_each_database]
async fn the_ocr_program_cannot_reach_the_data_of_the_server(db: TestDb) {
    let secret = db.folder.path().join("secret");
    write(&secret, "TREASURE").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tesseract = FakeTesseract::new(&format!(
        r#"
        own="${{BASH_SOURCE%/*}}"
        cat >/dev/null
        echo Environment:
        env
        head -c 8 {secret} && echo FOUND the secret
        ls {folder} && echo FOUND the folder
        cat "/proc/$PPID/environ" /proc/*/environ && echo FOUND an environment
        (exec 3<>/dev/tcp/{address}) && echo FOUND the network
        (: > "$own/made") && echo FOUND a place to write
        (: > /tmp/made-$$) && echo FOUND a place to write
        chmod 600 "$own/tesseract" && echo FOUND rights to change
        kill -0 {test} && echo FOUND a process to kill
        (: > /dev/null) || echo FOUND no way to be silent
        head -c 1 /usr/bin/env >/dev/null || echo FOUND nothing of the system
        echo The end."#,
        secret = secret.display(),
        folder = db.folder.path().display(),
        address = listener.local_addr().unwrap().to_string().replace(':', "/"),
        test = std::process::id(),
    ));
    let path = tesseract.path();
    let variables = [("PATH", path.as_str()), ("EMBEDDINGS_API_KEY", "SESAME"), ("LC_ALL", "C")];
    let server = Process::start(&db, &variables);
    let client = server.client();
    let file = client.upload("sign.bmp", &made::picture_of("TIDES")).await;
    until("it is read", async || ["ready", "failed"].contains(&client.status(&file).await.as_str())).await;
    let path = format!("/api/v2/uploads/files/{file}/text");
    let text = client.request(reqwest::Method::GET, &path).send().await.unwrap().text().await.unwrap();
    assert!(
        text.contains("Environment:") && text.contains("LC_ALL=C") && text.contains("The end."),
        "{text}"
    );
    for never in ["TREASURE", "FOUND", "SESAME", "DATABASE_URL", "DATA_DIR", "STORAGE_URL"] {
        assert!(!text.contains(never), "{never}: {text}");
    }
}

#[on_each_database]
async fn the_ocr_program_dies_with_the_server_and_with_its_file(db: TestDb) {
    // However it tries to stay alive, it and its children carry this number.
    let mark = format!("1{:08}", Uuid::new_v4().as_u128() % 100_000_000);
    let tesseract = FakeTesseract::new(&format!(
        "trap '' TERM HUP INT PIPE; sleep {mark} & setsid sleep {mark} & (sleep {mark} & sleep {mark}) & exec sleep {mark}"
    ));
    let path = tesseract.path();
    for cancelled in [true, false] {
        let mut server = Process::start(&db, &[("PATH", path.as_str())]);
        let client = server.client();
        let file =
            client.upload("sign.bmp", &made::picture_of(if cancelled { "SITE" } else { "TIDES" })).await;
        until("they run", async || sleepers(&mark) >= 4).await;
        if cancelled {
            client.post(&format!("/api/v2/uploads/files/{file}/cancel"), json!({})).await.ok();
            until("all are gone", async || sleepers(&mark) == 0).await;
        }
        server.kill();
        until("all are gone", async || sleepers(&mark) == 0).await;
    }
}

fn sleepers(mark: &str) -> usize {
    let all = std::fs::read_dir("/proc").expect("Linux lists processes");
    let command_lines = all.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    command_lines
        .filter(|line| line.starts_with(b"sleep\0") && line.ends_with(format!("{mark}\0").as_bytes()))
        .count()
}
