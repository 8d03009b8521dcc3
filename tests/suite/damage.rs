//! The audit finds damage: each kind is done by SQL or on disk, and must be reported.

use landfall_server::blobs::Blobs;
use landfall_server::recovery::abandoned_uploads::sweep_once;
use landfall_store::Error;
use landfall_store::{Tx, Write, args};

use crate::support::{TestDb, TestServer, on_each_database, until};

struct Sql(&'static str);

impl Write for Sql {
    type Output = u64;

    async fn apply(&self, tx: &mut Tx) -> Result<u64, Error> {
        tx.execute(self.0, args![]).await
    }
}

/// A server with one batch of two ready files and a registered one.
async fn undamaged_server(db: &TestDb) -> TestServer {
    let server = TestServer::new(db).await;
    let alice = server.client("alice");
    let batch = alice.open_batch(2).await;
    alice.upload_in(&batch, "a.txt", b"Something to be found.").await;
    alice.upload_in(&batch, "b.txt", b"Something else to be found.").await;
    alice.register(None, "c.txt", 10).await;
    server.idle().await;
    server.assert_audit_clean().await;
    server
}

#[on_each_database]
async fn every_damage_to_the_rows_is_reported(db: TestDb) {
    let server = undamaged_server(&db).await;
    for (damage, repair, invariant) in [
        (
            "UPDATE tenants SET used_bytes = used_bytes + 1",
            "UPDATE tenants SET used_bytes = used_bytes - 1",
            "quota equals the rows",
        ),
        (
            "UPDATE tenants SET reserved_files = reserved_files + 1",
            "UPDATE tenants SET reserved_files = reserved_files - 1",
            "quota equals the rows",
        ),
        (
            "UPDATE batches SET ready_files = 1, failed_files = 1",
            "UPDATE batches SET ready_files = 2, failed_files = 0",
            "batch counts equal the rows",
        ),
        (
            "UPDATE batches SET status = 'active'",
            "UPDATE batches SET status = 'completed'",
            "batches are completed exactly when all their files are terminal",
        ),
        (
            "UPDATE files SET status = 'uploaded' WHERE file_name = 'c.txt'",
            "UPDATE files SET status = 'registered' WHERE file_name = 'c.txt'",
            "histories end where their files are",
        ),
        (
            "UPDATE listed_files SET size_bytes = size_bytes + 1",
            "UPDATE listed_files SET size_bytes = size_bytes - 1",
            "lists have each file with its values",
        ),
        (
            "UPDATE listed_files SET file_name = 'A.txt' WHERE file_name = 'a.txt'",
            "UPDATE listed_files SET file_name = 'a.txt' WHERE file_name = 'A.txt'",
            "lists have each file with its values",
        ),
        (
            "INSERT INTO listed_files (id, tenant_id, user_id, file_name, size_bytes, created_at)
             SELECT id, tenant_id, user_id, 'of no file', 1, created_at FROM batches",
            "DELETE FROM listed_files WHERE file_name = 'of no file'",
            "lists have each file with its values",
        ),
        (
            "UPDATE files SET chunk_count = chunk_count + 1 WHERE file_name = 'a.txt'",
            "UPDATE files SET chunk_count = chunk_count - 1 WHERE file_name = 'a.txt'",
            "ready files have their chunks",
        ),
        (
            "UPDATE chunk_index SET chunk_id = chunk_id + 1000000",
            "UPDATE chunk_index SET chunk_id = chunk_id - 1000000",
            "index entries belong to chunks",
        ),
    ] {
        assert!(server.app.db.write(Sql(damage)).await.unwrap() > 0, "{damage} changes something");
        let found = server.findings().await;
        assert!(found.iter().any(|finding| finding.invariant == invariant), "{damage}: {found:?}");
        server.app.db.write(Sql(repair)).await.unwrap();
        server.assert_audit_clean().await;
    }
}

#[on_each_database]
async fn a_missing_index_entry_is_reported(db: TestDb) {
    let server = undamaged_server(&db).await;
    server
        .app
        .db
        .write(Sql("DELETE FROM chunk_index WHERE chunk_id = (SELECT MIN(id) FROM chunks)"))
        .await
        .unwrap();
    let found = server.findings().await;
    assert!(found.iter().any(|f| f.invariant == "the index equals the chunks of ready files"), "{found:?}");
}

#[on_each_database]
async fn a_file_held_by_no_living_worker_is_reported(db: TestDb) {
    let server = undamaged_server(&db).await;
    let held = "UPDATE files SET status = 'embedding', claim = id, claimed_by = id, claimed_at = created_at
                WHERE file_name = 'a.txt'";
    server.app.db.write(Sql(held)).await.unwrap();
    let found = server.findings().await;
    assert!(found.iter().any(|f| f.invariant == "running files are held by living workers"), "{found:?}");
}

#[on_each_database]
async fn blobs_without_rows_and_rows_without_blobs_are_reported(db: TestDb) {
    let server = undamaged_server(&db).await;
    let blobs = db.folder.path().join("blobs/blobs");
    let stray = blobs.join("00/0189000000007000800000000000aa00");
    std::fs::create_dir_all(&stray).unwrap();
    std::fs::write(stray.join("x"), "stray").unwrap();
    let found = server.findings().await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].invariant, "no blob without its row");
    std::fs::remove_dir_all(stray).unwrap();

    let key: Option<(String,)> = server
        .app
        .db
        .read()
        .await
        .unwrap()
        .row("SELECT blob_key FROM files WHERE file_name = 'a.txt'", args![])
        .await
        .unwrap();
    let blob = blobs.join(key.unwrap().0);
    std::fs::write(&blob, "shorter").unwrap();
    assert_eq!(server.findings().await[0].invariant, "no row without its blob");
    std::fs::remove_file(&blob).unwrap();
    let found = server.findings().await;
    assert!(found[0].what.contains("missing"), "{found:?}");
}

#[on_each_database]
async fn the_database_refuses_rows_that_contradict_themselves(db: TestDb) {
    let server = undamaged_server(&db).await;
    for nonsense in [
        "UPDATE files SET status = 'extracting' WHERE file_name = 'a.txt'",
        "UPDATE files SET claim = id, claimed_by = id, claimed_at = created_at WHERE file_name = 'a.txt'",
        "UPDATE files SET status = 'queued', run_after = NULL WHERE file_name = 'a.txt'",
        "UPDATE files SET status = 'failed' WHERE file_name = 'a.txt'",
        "UPDATE files SET status = 'lost' WHERE file_name = 'a.txt'",
        "UPDATE files SET status = 'queued', run_after = created_at WHERE file_name = 'c.txt'",
        "UPDATE tenants SET used_bytes = -1",
        "UPDATE batches SET failed_files = 5",
    ] {
        let written = server.app.db.write(Sql(nonsense)).await;
        let refused = matches!(&written, Err(error) if error.is_about_the_data());
        assert!(refused, "{nonsense}: {written:?}");
    }
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn an_upload_of_a_dead_process_is_removed_unless_its_row_records_it(db: TestDb) {
    let server = undamaged_server(&db).await;
    let (blobs, clock) = (&server.app.blobs, &server.app.clock);
    let dead = clock.new_id();
    let ticket = server.client("alice").register(None, "d.txt", 5).await;
    let file: uuid::Uuid = ticket["fileId"].as_str().unwrap().parse().unwrap();
    // One is stored, but the process died before it updated the row; the other is half written.
    let (stored, half) = (Blobs::key(file, clock.new_id()), Blobs::key(file, clock.new_id()));
    let mut incoming = blobs.receive(dead, &stored).await.unwrap();
    incoming.write(b"12345").await.unwrap();
    incoming.publish(|_| Ok(())).await.unwrap();
    drop(incoming);
    let mut incoming = blobs.receive(dead, &half).await.unwrap();
    incoming.write(b"12").await.unwrap();
    std::mem::forget(incoming);
    // Another one, of a living process.
    let alive = Blobs::key(file, clock.new_id());
    let mut going_on = blobs.receive(server.app.liveness.identity().id, &alive).await.unwrap();
    // The process died after it updated the row: only the marker of an unfinished upload is left.
    let known: Option<(String,)> = server
        .app
        .db
        .read()
        .await
        .unwrap()
        .row("SELECT blob_key FROM files WHERE file_name = 'a.txt'", args![])
        .await
        .unwrap();
    let known = known.unwrap().0;
    let link = format!("{}.{}", dead.simple(), known.replace('/', "."));
    let folder = db.folder.path().join("blobs");
    std::fs::hard_link(folder.join("blobs").join(&known), folder.join("incoming").join(link)).unwrap();
    assert_eq!(server.findings().await.len(), 1);

    assert_eq!(sweep_once(&server.app.db, blobs).await.unwrap(), 3);
    assert_eq!(sweep_once(&server.app.db, blobs).await.unwrap(), 0);
    assert_eq!(
        std::fs::read_dir(folder.join("incoming")).unwrap().count(),
        1,
        "the upload of the living process"
    );
    going_on.write(b"12345").await.unwrap();
    drop(going_on);
    assert_eq!(std::fs::read_dir(folder.join("incoming")).unwrap().count(), 0);
    assert_eq!(blobs.size(&stored).await.unwrap(), None);
    assert!(blobs.size(&known).await.unwrap().is_some());
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn an_interrupted_deletion_is_finished(db: TestDb) {
    use landfall_server::recovery::unfinished_deletions::sweep_once;
    let server = undamaged_server(&db).await;
    // The state after a crash between the row and the blob.
    let blobs = db.folder.path().join("blobs/blobs");
    let hidden = db.folder.path().join("hidden");
    let key: Option<(uuid::Uuid, String)> = server
        .app
        .db
        .read()
        .await
        .unwrap()
        .row("SELECT id, blob_key FROM files WHERE file_name = 'a.txt'", args![])
        .await
        .unwrap();
    let (id, key) = key.unwrap();
    std::fs::rename(blobs.join(&key), &hidden).unwrap();
    std::fs::create_dir_all(blobs.join(&key)).unwrap();
    // A folder in the blob's place cannot be removed like a blob: the storage fails the deletion.
    std::fs::write(blobs.join(&key).join("x"), "x").unwrap();
    server
        .client("alice")
        .delete(&format!("/api/v2/uploads/files/{id}"))
        .await
        .refused(503, "STORAGE_UNAVAILABLE");
    std::fs::remove_dir_all(blobs.join(&key)).unwrap();
    std::fs::rename(&hidden, blobs.join(&key)).unwrap();

    // The server sweeps by itself too, so either of the two sweeps removes the blob.
    until("the blob is gone", async || {
        sweep_once(&server.app.db, &server.app.blobs).await.unwrap();
        !blobs.join(&key).exists()
    })
    .await;
    assert_eq!(sweep_once(&server.app.db, &server.app.blobs).await.unwrap(), 0);
    assert_eq!(server.client("alice").quota().await, (10, 27));
    server.assert_audit_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_syncs_every_commit_to_disk() {
    struct Pragma(&'static str);
    impl Write for Pragma {
        type Output = String;
        async fn apply(&self, tx: &mut Tx) -> Result<String, Error> {
            if self.0 == "journal_mode" {
                return Ok(tx.row::<(String,)>("PRAGMA journal_mode", args![]).await?.unwrap().0);
            }
            Ok(tx.number(format!("PRAGMA {}", self.0), args![]).await?.to_string())
        }
    }
    let db = TestDb::sqlite();
    let server = TestServer::new(&db).await;
    assert_eq!(server.app.db.write(Pragma("synchronous")).await.unwrap(), "2", "FULL");
    assert_eq!(server.app.db.write(Pragma("journal_mode")).await.unwrap(), "wal");
    assert_eq!(server.app.db.write(Pragma("foreign_keys")).await.unwrap(), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sqlite_writer_survives_a_failed_commit() {
    /// Like a full disk: the transaction is gone at the commit.
    struct LostTransaction;
    impl Write for LostTransaction {
        type Output = ();
        async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
            tx.script("ROLLBACK").await
        }
    }
    let db = TestDb::sqlite();
    let server = TestServer::new(&db).await;
    for _ in 0..3 {
        assert!(server.app.db.write(LostTransaction).await.is_err());
        let alice = server.client("alice");
        let file = alice.upload("a.txt", b"All is well again.").await;
        server.idle().await;
        assert_eq!(alice.status(&file).await, "ready");
    }
    server.assert_audit_clean().await;
}
