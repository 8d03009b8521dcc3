//! A user cancels a file: the work on it stops, whichever process runs it.

use landfall_core::lifecycle::Stage::Embed;
use serde_json::json;

use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::script::Gate;
use crate::support::{Script, Setup, Step, TestDb, on_each_database};

#[on_each_database]
async fn a_cancel_through_another_process_drops_the_running_request(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([Reply::Never]).await;
    let front = Setup::default().with("ROLE", "api").start(&db).await;
    let back = Setup::default()
        .with("EXTRACT_GATEWAY_URL", url)
        // Only the cancellation ends the request.
        .with("GATEWAY_TIMEOUT_MS", 3_600_000)
        .start(&db)
        .await;
    let client = front.client("ada");
    let file = client.upload("a.bin", b"bytes").await;
    gateway.open.subscribe().wait_for(|open| *open == 1).await.unwrap();
    let (_, used) = client.quota().await;
    let answer = client.post(&format!("/api/v2/uploads/files/{file}/cancel"), json!({})).await.ok();
    assert_eq!(answer["status"], "cancelled");
    gateway.open.subscribe().wait_for(|open| *open == 0).await.unwrap();
    back.idle().await;
    let seen = client.file(&file).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("cancelled"), &json!("CANCELLED")));
    assert_eq!(client.quota().await.1, used, "a cancelled file still uses quota");
    client.delete(&format!("/api/v2/uploads/files/{file}")).await;
    assert_eq!(client.quota().await, (0, 0));
    back.assert_audit_clean().await;
    front.stop().await;
    back.stop().await;
}

#[on_each_database]
async fn a_file_cancelled_at_its_last_stage_is_ready_or_cancelled_and_never_both(db: TestDb) {
    for _ in 0..8 {
        let gate = Gate::default();
        let script = Script::new().then(Embed, Step::Block(gate.clone()));
        let server = Setup::default().work(script).start(&db).await;
        let client = server.client("ada");
        let batch = client.open_batch(1).await;
        let file = client.upload_in(&batch, "a.txt", b"a").await;
        gate.reached().await;
        let path = format!("/api/v2/uploads/files/{file}/cancel");
        let cancel = client.post(&path, json!({}));
        gate.open();
        let answer = cancel.await;
        server.idle().await;
        let status = client.status(&file).await;
        let won = match answer.status {
            200 => "cancelled",
            _ => {
                answer.refused(409, "INVALID_STATE");
                "ready"
            }
        };
        assert_eq!(status, won);
        assert_eq!(
            client
                .states(&file)
                .await
                .iter()
                .filter(|state| ["ready", "cancelled"].contains(&state.as_str()))
                .count(),
            1
        );
        server.assert_audit_clean().await;
        server.stop().await;
    }
}
