//! Nothing gets past the virus scanner, and nothing is lost for want of one.

use std::io::Write as _;
use std::time::Duration;

use serde_json::json;

use crate::support::clamd::{Clamd, eicar};
use crate::support::{Setup, TestDb, TestServer, manual_clock, until};

async fn server_with(clamd: &Clamd, db: &TestDb) -> TestServer {
    Setup::default().with("CLAMD_ADDRESS", clamd.address()).start(db).await
}

on_each_database! {
    async fn a_clean_file_goes_on_and_an_infected_one_is_removed(db: TestDb) {
        let Some(mut clamd) = Clamd::install() else { return };
        clamd.start().await;
        let server = server_with(&clamd, &db).await;
        let client = server.client("ada");
        let clean = client.upload("clean.txt", b"Nothing to see here.").await;
        let infected = client.upload("infected.txt", &eicar()).await;
        server.idle().await;
        assert_eq!(
            client.states(&clean).await[2..],
            ["queued", "scanning", "extracting", "chunking", "embedding", "ready"]
        );
        let file = client.file(&infected).await;
        assert_eq!((file["status"].as_str(), file["error"]["code"].as_str()), (Some("failed"), Some("INFECTED")));
        assert!(file["error"]["message"].as_str().unwrap().contains("Eicar-Test-Signature"), "{file}");
        let id = infected.parse().unwrap();
        until("its bytes are gone", async || server.app.blobs.keys_of(id).await.unwrap().is_empty()).await;
        let path = format!("/api/v2/uploads/files/{infected}");
        client.post(&format!("{path}/retry"), json!({})).await.refused(404, "FILE_NOT_FOUND");
        server.assert_books_balance().await;
        client.delete(&path).await.ok();
        assert_eq!(client.quota().await, (0, 20));
        server.assert_books_balance().await;
        server.stop().await;
    }

    async fn what_the_scanner_cannot_judge_is_not_let_through(db: TestDb) {
        let Some(mut clamd) = Clamd::install() else { return };
        clamd.start().await;
        let server = server_with(&clamd, &db).await;
        let client = server.client("ada");
        let large = client.upload("large.txt", "much ado about nothing ".repeat(100_000).as_bytes()).await;
        let locked = client.upload("locked.zip", &locked_archive()).await;
        server.idle().await;
        for file in [&large, &locked] {
            let file = client.file(file).await;
            assert_eq!(file["error"]["code"], "UNSCANNABLE", "{file}");
            assert_eq!(file["status"], "failed");
        }
        server.assert_books_balance().await;
        server.stop().await;
    }

    async fn while_the_scanner_is_away_files_wait_and_lose_no_attempt(db: TestDb) {
        let Some(mut clamd) = Clamd::install() else { return };
        let clock = manual_clock();
        let setup = Setup::default().clock(&clock).with("CLAMD_ADDRESS", clamd.address());
        let server = setup.start(&db).await;
        let client = server.client("ada");
        let file = client.upload("a.txt", b"Patience is a virtue.").await;
        for _ in 0..10 {
            server.idle().await;
            let waiting = client.file(&file).await;
            assert_eq!((waiting["status"].as_str(), waiting["attempt"].as_i64()), (Some("queued"), Some(0)));
            assert_eq!(waiting["error"]["code"], "SCANNER_UNAVAILABLE");
            clock.advance(Duration::from_secs(10));
        }
        clamd.start().await;
        // It was known to be down, and is tried again after a minute.
        clock.advance(Duration::from_secs(61));
        server.idle().await;
        assert_eq!(client.status(&file).await, "ready");
        server.stop().await;
    }
}

on_each_database! {
    async fn a_file_that_was_to_be_scanned_is_not_let_past_for_want_of_a_scanner(db: TestDb) {
        let nowhere = db.folder.path().join("nobody.sock").display().to_string();
        let server = Setup::default().with("CLAMD_ADDRESS", nowhere).start(&db).await;
        let file = server.client("ada").upload("a.txt", b"Still waiting.").await;
        server.idle().await;
        server.stop().await;

        let server = TestServer::new(&db).await;
        let client = server.client("ada");
        server.idle().await;
        let waiting = client.file(&file).await;
        assert_eq!((&waiting["status"], &waiting["nextStage"]), (&json!("queued"), &json!("scan")));
        assert!(["no_workers", "retry"].contains(&waiting["waitingFor"].as_str().unwrap()), "{waiting}");
        let next = client.upload("b.txt", b"Not to be scanned.").await;
        server.idle().await;
        assert_eq!((client.status(&next).await.as_str(), client.status(&file).await.as_str()), ("ready", "queued"));
        server.stop().await;
    }
}

/// A ZIP archive with one entry that is marked as encrypted.
fn locked_archive() -> Vec<u8> {
    let (name, body) = (b"secret.txt", [0_u8; 40]);
    let mut archive = Vec::new();
    let entry = |archive: &mut Vec<u8>, mark: &[u8], made_by: &[u8]| {
        archive.write_all(mark).unwrap();
        archive.write_all(made_by).unwrap();
        // Version 2.0, flag 1 (encrypted), stored, no time, no date, any checksum.
        archive.write_all(&[20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]).unwrap();
        archive.write_all(&40_u32.to_le_bytes()).unwrap();
        archive.write_all(&28_u32.to_le_bytes()).unwrap();
        archive.write_all(&10_u16.to_le_bytes()).unwrap();
        archive.write_all(&[0, 0]).unwrap();
    };
    entry(&mut archive, b"PK\x03\x04", b"");
    archive.extend_from_slice(name);
    archive.extend_from_slice(&body);
    let directory = archive.len();
    entry(&mut archive, b"PK\x01\x02", &[20, 0]);
    archive.extend_from_slice(&[0; 14]);
    archive.extend_from_slice(name);
    let length = archive.len() - directory;
    archive.extend_from_slice(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    archive.extend_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
    archive.extend_from_slice(&u32::try_from(directory).unwrap().to_le_bytes());
    archive.extend_from_slice(&[0, 0]);
    archive
}
