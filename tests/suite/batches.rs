//! Files that belong together.

use landfall::failure::Code;
use landfall::lifecycle::Stage::Extract;
use serde_json::json;

use crate::support::{Script, Setup, Step, TestDb};

on_each_database! {
    async fn a_batch_waits_for_every_file_it_was_opened_for(db: TestDb) {
        let server = Setup::default().work(Script::new()).start(&db).await;
        let alice = server.client("alice");
        let batch = alice.open_batch(2).await;
        alice.upload_in(&batch, "a", b"a").await;
        server.idle().await;
        assert_eq!(alice.batch(&batch).await["status"], "active");
        alice.upload_in(&batch, "b", b"b").await;
        server.idle().await;
        assert_eq!(alice.batch(&batch).await["status"], "completed");
    }

    async fn a_batch_takes_no_more_files_than_it_was_opened_for(db: TestDb) {
        let server = Setup::default().work(Script::new()).start(&db).await;
        let alice = server.client("alice");
        let batch = alice.open_batch(2).await;
        let path = format!("/api/v2/uploads/batches/{batch}/upload-urls");
        let file = json!({ "fileName": "a", "fileSize": 1 });
        alice.post(&path, json!([file, file, file])).await.refused(409, "BATCH_FULL");
        assert_eq!(alice.quota().await, (0, 0), "nothing of the list was kept");
        alice.post(&path, json!([file, file])).await.ok();
        alice.post(&path, file).await.refused(409, "BATCH_FULL");
        server.assert_books_balance().await;
    }

    async fn a_closed_batch_is_complete_with_what_it_has(db: TestDb) {
        let server = Setup::default().work(Script::new()).start(&db).await;
        let alice = server.client("alice");
        let batch = alice.open_batch(10).await;
        alice.upload_in(&batch, "a", b"a").await;
        server.idle().await;
        let closed = alice.post(&format!("/api/v2/uploads/batches/{batch}/close"), json!({})).await.ok();
        assert_eq!((&closed["status"], &closed["fileCount"]), (&json!("completed"), &json!(1)));
        let file = json!({ "fileName": "b", "fileSize": 1 });
        let path = format!("/api/v2/uploads/batches/{batch}/upload-urls");
        alice.post(&path, file).await.refused(409, "BATCH_NOT_ACTIVE");
        server.assert_books_balance().await;
    }

    async fn a_retried_file_makes_its_batch_active_and_completes_it_again(db: TestDb) {
        let script = Script::new().then(Extract, Step::Fail(Code::ParseError));
        let server = Setup::default().work(script).start(&db).await;
        let alice = server.client("alice");
        let batch = alice.open_batch(1).await;
        let file = alice.upload_in(&batch, "a", b"a").await;
        server.idle().await;
        assert_eq!(alice.batch(&batch).await["summary"], json!({ "total": 1, "ready": 0, "failed": 1 }));
        alice.post(&format!("/api/v2/uploads/files/{file}/retry"), json!({})).await.ok();
        server.idle().await;
        let seen = alice.batch(&batch).await;
        assert_eq!((&seen["status"], &seen["summary"]), (&json!("completed"), &json!({ "total": 1, "ready": 1, "failed": 0 })));
        let completions = server.app.db.read().await.unwrap()
            .number("SELECT COUNT(*) FROM events WHERE kind = 'batch:completed'", vec![]).await.unwrap();
        assert_eq!(completions, 2);
        server.assert_books_balance().await;
    }

    async fn a_file_deleted_from_a_batch_is_one_that_it_no_longer_waits_for(db: TestDb) {
        let server = Setup::default().work(Script::new()).start(&db).await;
        let alice = server.client("alice");
        let batch = alice.open_batch(2).await;
        alice.upload_in(&batch, "a", b"a").await;
        let unwanted = alice.send_bytes(Some(&batch), "b", b"b").await;
        server.idle().await;
        assert_eq!(alice.batch(&batch).await["status"], "active");
        alice.delete(&format!("/api/v2/uploads/files/{unwanted}")).await.ok();
        assert_eq!(alice.batch(&batch).await["status"], "completed");
        server.assert_books_balance().await;
    }

    async fn a_file_is_confirmed_in_its_own_batch_only(db: TestDb) {
        let server = Setup::default().work(Script::new()).start(&db).await;
        let alice = server.client("alice");
        let (mine, other) = (alice.open_batch(1).await, alice.open_batch(1).await);
        let file = alice.send_bytes(Some(&mine), "a", b"a").await;
        let confirm = |batch: &str| format!("/api/v2/uploads/batches/{batch}/files/{file}/confirm");
        alice.post(&confirm(&other), json!({})).await.refused(404, "FILE_NOT_FOUND");
        assert_eq!(alice.post(&confirm(&mine), json!({})).await.ok()["status"], "queued");
    }
}
