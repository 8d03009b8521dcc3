//! No file passes without a scan, and no file is lost because the scanner is down.

use std::time::Duration;

use landfall_core::failure::{Code, Failure};
use landfall_server::stages::scan::{Address, scan};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::clamd::{Clamd, eicar};
use crate::support::{Setup, TestDb, TestServer, manual_clock, on_each_database, until};

async fn server_with(clamd: &Clamd, db: &TestDb) -> TestServer {
    Setup::default().with("CLAMD_ADDRESS", clamd.address()).start(db).await
}

#[on_each_database]
async fn a_clean_file_continues_and_an_infected_one_is_removed(db: TestDb) {
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
    server.assert_audit_clean().await;
    client.delete(&path).await.ok();
    assert_eq!(client.quota().await, (0, 20));
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn files_that_the_scanner_cannot_judge_do_not_pass(db: TestDb) {
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
    server.assert_audit_clean().await;
    server.stop().await;
}

#[on_each_database]
async fn files_wait_while_the_scanner_is_down_and_use_no_attempt(db: TestDb) {
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
    // The scanner was known to be down, and is tried again after a minute.
    clock.advance(Duration::from_secs(61));
    server.idle().await;
    assert_eq!(client.status(&file).await, "ready");
    server.stop().await;
}

#[on_each_database]
async fn a_file_that_was_to_be_scanned_does_not_pass_without_a_scanner(db: TestDb) {
    let nowhere = db.folder.path().join("missing.sock").display().to_string();
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
    assert_eq!(
        (client.status(&next).await.as_str(), client.status(&file).await.as_str()),
        ("ready", "queued")
    );
    server.stop().await;
}

#[on_each_database]
async fn files_wait_while_the_scanner_hangs_and_use_no_attempt(db: TestDb) {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let clock = manual_clock();
    let address = silent.local_addr().unwrap().to_string();
    let setup =
        Setup::default().clock(&clock).with("CLAMD_ADDRESS", address).with("SCAN_TIMEOUT_MS", "60000");
    let server = setup.start(&db).await;
    let client = server.client("ada");
    let file = client.upload("a.txt", b"Patience is a virtue.").await;
    let mut held = Vec::new();
    for _ in 0..4 {
        let (mut connection, _) = silent.accept().await.unwrap();
        take_all(&mut connection).await;
        held.push(connection);
        let mut waiting = json!(null);
        // Less than the wait before its next attempt, or that attempt might begin unnoticed.
        until("it has waited long enough", async || {
            clock.advance(Duration::from_secs(1));
            waiting = client.file(&file).await;
            waiting["status"] == "queued"
        })
        .await;
        assert_eq!(
            (&waiting["attempt"], &waiting["error"]["code"]),
            (&json!(0), &json!("SCANNER_UNAVAILABLE"))
        );
        // More than that wait: the next attempt begins after this, whenever that is.
        clock.advance(Duration::from_mins(2));
        server.app.wake.poll_work();
    }
    let (mut connection, _) = silent.accept().await.unwrap();
    take_all(&mut connection).await;
    connection.write_all(b"stream: OK\0").await.unwrap();
    server.idle().await;
    assert_eq!(client.status(&file).await, "ready");
    server.stop().await;
}

/// The result for a document if the scanner replies after half of it; the rest never comes unless the scanner closes
/// the connection.
async fn reply_half_way(words: &'static [u8], hang_up: bool) -> Result<(), Failure> {
    let clamd = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Tcp(clamd.local_addr().unwrap().to_string());
    let (document, mut rest) = tokio::io::duplex(1 << 20);
    rest.write_all(b"The first half.").await.unwrap();
    let scanner = tokio::spawn(async move {
        let (mut connection, _) = clamd.accept().await.unwrap();
        let mut seen = vec![0; b"zINSTREAM\0....The first half.".len()];
        connection.read_exact(&mut seen).await.unwrap();
        connection.write_all(words).await.unwrap();
        if hang_up {
            drop(connection);
            // Ends when the reader of the document is gone.
            while rest.write_all(b"The second half.").await.is_ok() {
                tokio::task::yield_now().await;
            }
        } else {
            // Until the other side closes the connection.
            drop(connection.read_to_end(&mut Vec::new()).await);
        }
    });
    let verdict = scan(&address, document, || ()).await;
    scanner.await.unwrap();
    verdict
}

#[tokio::test]
async fn a_scanner_that_has_not_read_the_whole_file_cannot_pass_it() {
    for hang_up in [false, true] {
        let failure = reply_half_way(b"stream: OK\0", hang_up).await.unwrap_err();
        assert_eq!(failure.code, Code::ScannerUnavailable, "{}", failure.message);
        let failure = reply_half_way(b"stream: OK", true).await.unwrap_err();
        assert_eq!(failure.code, Code::ScannerUnavailable, "{}", failure.message);
        // A virus in the first part counts for the whole file.
        let failure = reply_half_way(b"stream: Eicar-Signature FOUND\0", hang_up).await.unwrap_err();
        assert_eq!(failure.code, Code::Infected);
        let failure = reply_half_way(b"INSTREAM size limit exceeded. ERROR\0", hang_up).await.unwrap_err();
        assert_eq!(failure.code, Code::Unscannable);
    }
}

/// Reads a document to its end, as a scanner does.
async fn take_all(connection: &mut TcpStream) {
    connection.read_exact(&mut [0; b"zINSTREAM\0".len()]).await.unwrap();
    loop {
        let length = connection.read_u32().await.unwrap();
        if length == 0 {
            return;
        }
        connection.read_exact(&mut vec![0; length as usize]).await.unwrap();
    }
}

/// A ZIP archive with one entry that is marked as encrypted.
fn locked_archive() -> Vec<u8> {
    let (name, body) = (b"secret.txt", [0_u8; 40]);
    let mut archive = Vec::new();
    let entry = |archive: &mut Vec<u8>, mark: &[u8], made_by: &[u8]| {
        archive.extend_from_slice(mark);
        archive.extend_from_slice(made_by);
        // Version 2.0, flag 1 (encrypted), stored, no time, no date, any checksum.
        archive.extend_from_slice(&[20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
        archive.extend_from_slice(&40_u32.to_le_bytes());
        archive.extend_from_slice(&28_u32.to_le_bytes());
        archive.extend_from_slice(&10_u16.to_le_bytes());
        archive.extend_from_slice(&[0, 0]);
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
