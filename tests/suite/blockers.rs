//! Why files do not move: each cause with its files, what helps, and who may do it.

use std::time::Duration;

use landfall_core::caller::Role;
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage::Extract;
use landfall_store::args;
use serde_json::{Value, json};

use crate::recovery_jobs::{break_claim, without_workers};
use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::offline_app::Sql;
use crate::support::script::Gate;
use crate::support::{Client, Script, Setup, Step, TestDb, manual_clock, on_each_database};

const BLOCKERS: &str = "/api/v2/uploads/blockers";

async fn report(client: &Client, scope: &str) -> Value {
    client.get(&format!("{BLOCKERS}?scope={scope}")).await.ok()
}

/// The only cause.
async fn only(client: &Client, scope: &str) -> Value {
    let report = report(client, scope).await;
    let blockers = report["blockers"].as_array().expect("a list");
    assert_eq!(blockers.len(), 1, "{report}");
    let blocker = blockers[0].clone();
    let message = blocker["message"].as_str().expect("a sentence");
    assert!(message.ends_with('.') && message.starts_with(char::is_uppercase), "{message}");
    blocker
}

/// Fields of a cause.
fn fields<'a, const N: usize>(blocker: &'a Value, names: [&str; N]) -> [&'a Value; N] {
    names.map(|name| &blocker[name])
}

fn stage<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["stages"].as_array().unwrap().iter().find(|stage| stage["stage"] == name).expect("the stage")
}

#[on_each_database]
async fn a_service_that_is_down_is_shown_in_full_to_operators_only(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(Reply::ApiResponse(503, "text/plain", "gone fishing"));
    let clock = manual_clock();
    let server = Setup::default()
        .clock(&clock)
        .with("EXTRACT_GATEWAY_URL", &url)
        .with("EXTRACT_CONCURRENCY", 5)
        .start(&db)
        .await;
    let bob = server.client_of("bob", "acme");
    for number in 0..7 {
        bob.upload(&format!("{number}.bin"), b"bytes").await;
    }
    server.client_of("eve", "globex").upload("hers.bin", b"bytes").await;
    server.idle().await;

    let wanted = ["kind", "stage", "service", "files", "remedy", "isAllowed"];
    let of_bob = only(&bob, "own").await;
    let expected = json!(["circuit", "extract", "gateway", 7, "probe_circuit", false]);
    assert_eq!(json!(fields(&of_bob, wanted)), expected);
    assert_eq!(of_bob["lastError"], "The extraction service fails or cannot be reached.");
    assert!(of_bob["until"].is_string() && of_bob["since"].is_string() && of_bob["oldestAt"].is_string());
    let seen = report(&bob, "own").await;
    assert_eq!(seen["tenants"], json!([]));
    assert_eq!(stage(&seen, "extract")["workers"], 1);
    bob.get(&format!("{BLOCKERS}?scope=tenant")).await.refused(403, "FORBIDDEN");

    let dana = server.client_with("dana", "acme", Role::TenantAdmin);
    let of_tenant = only(&dana, "tenant").await;
    assert_eq!((&of_tenant["files"], &of_tenant["isAllowed"]), (&json!(7), &json!(false)));
    assert_eq!(of_tenant["lastError"], of_bob["lastError"]);
    assert_eq!(report(&dana, "own").await["blockers"], json!([]), "they have no files of their own");
    dana.get(&format!("{BLOCKERS}?scope=all")).await.refused(403, "FORBIDDEN");

    let root = server.admin();
    let of_all = only(&root, "all").await;
    assert_eq!((&of_all["files"], &of_all["isAllowed"]), (&json!(8), &json!(true)));
    assert!(of_all["lastError"].as_str().unwrap().contains("503"), "{of_all}");
    let tenants = report(&root, "all").await["tenants"].clone();
    assert_eq!((tenants.as_array().unwrap().len(), &tenants[0]["tenantId"]), (2, &json!("acme")));
    assert_eq!((&tenants[0]["waiting"], &tenants[0]["running"]), (&json!(7), &json!(0)));
    // The dashboard shows the same circuit.
    for (client, said) in [(&bob, &of_bob["lastError"]), (&root, &of_all["lastError"])] {
        let dashboard = client.get("/api/v2/uploads/dashboard").await.ok();
        let circuits = dashboard["circuits"].as_array().unwrap();
        let circuit = circuits.iter().find(|circuit| circuit["service"] == "gateway").unwrap();
        assert_eq!((&circuit["lastError"], &circuit["nextProbeAt"]), (said, &of_bob["until"]));
    }
}

#[on_each_database]
async fn a_paused_stage_names_the_operator_to_operators(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    let (alice, root) = (server.client("alice"), server.admin());
    root.post("/api/v2/admin/queues/extract/pause", json!({})).await.ok();
    alice.upload("a.txt", b"a").await;
    server.idle().await;
    let wanted = ["kind", "stage", "files", "remedy", "isAllowed", "by"];
    let seen = only(&alice, "own").await;
    assert_eq!(json!(fields(&seen, wanted)), json!(["paused", "extract", 1, "resume_stage", false, null]));
    let seen = only(&root, "all").await;
    assert_eq!(json!(fields(&seen, wanted)), json!(["paused", "extract", 1, "resume_stage", true, "root"]));
    assert!(seen["since"].is_string() && seen["oldestAt"].is_string());
    root.post("/api/v2/admin/queues/extract/resume", json!({})).await.ok();
    server.idle().await;
    assert_eq!(report(&root, "all").await["blockers"], json!([]));
}

#[on_each_database]
async fn without_workers_files_wait_for_one_and_a_lost_worker_leaves_them_stuck(db: TestDb) {
    let clock = manual_clock();
    let server = without_workers(&clock).start(&db).await;
    let alice = server.client("alice");
    alice.upload("waits.txt", b"a").await;
    let stuck = alice.upload("stuck.txt", b"a").await;
    let wanted = ["kind", "stage", "files", "remedy", "isAllowed"];
    let seen = only(&alice, "own").await;
    assert_eq!(json!(fields(&seen, wanted)), json!(["no_workers", "extract", 2, "start_worker", false]));
    assert_eq!(only(&server.admin(), "all").await["isAllowed"], true);

    break_claim(&server, &stuck, Extract).await;
    clock.advance(Duration::from_mins(31));
    let report = report(&alice, "own").await;
    assert_eq!(
        json!(fields(&report["blockers"][1], wanted)),
        json!(["stuck", null, 1, "release_stuck", true])
    );
    assert!(report["blockers"][1]["oldestAt"].is_string());
    assert_eq!(report["blockers"][0]["files"], 1);
    assert_eq!(stage(&report, "extract")["workers"], 0);
}

#[on_each_database]
async fn files_that_only_wait_are_told_apart(db: TestDb) {
    let clock = manual_clock();
    let gate = Gate::default();
    let script =
        Script::new().then(Extract, Step::Fail(Code::DbError)).then(Extract, Step::Block(gate.clone()));
    let server = Setup::default().clock(&clock).work(script).with("EXTRACT_CONCURRENCY", 1).start(&db).await;
    let alice = server.client("alice");
    alice.upload("fails.txt", b"a").await;
    server.idle().await;
    let wanted = ["kind", "stage", "files", "remedy", "isAllowed"];
    let retry = only(&alice, "own").await;
    assert_eq!(json!(fields(&retry, wanted)), json!(["retry", "extract", 1, "wait", true]));
    assert!(retry["until"].is_string());

    alice.upload("runs.txt", b"a").await;
    gate.reached().await;
    alice.upload("next.txt", b"a").await;
    let alone = alice.upload("alone.txt", b"a").await;
    let isolate = "UPDATE files SET is_alone = TRUE, is_due = FALSE WHERE id = $1";
    let isolate = Sql(isolate.to_owned(), args![uuid::Uuid::parse_str(&alone).unwrap()]);
    assert_eq!(server.app.db.write(isolate).await.unwrap(), 1);
    alice.register(None, "never-sent.txt", 1).await;
    let seen = report(&alice, "own").await;
    let kinds: Vec<Value> = seen["blockers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|blocker| json!(fields(blocker, ["kind", "files", "remedy"])))
        .collect();
    assert_eq!(
        kinds,
        [
            json!(["isolation", 1, "wait"]),
            json!(["retry", 1, "wait"]),
            json!(["worker", 1, "wait"]),
            json!(["upload", 1, "upload_again"]),
        ]
    );
    let extract = stage(&seen, "extract");
    assert_eq!(json!(fields(extract, ["waiting", "retrying", "running"])), json!([2, 1, 1]), "{extract}");
    assert!(extract["oldestAt"].is_string());
    assert_eq!(report(&server.client("mallory"), "own").await["blockers"], json!([]));
    gate.open();
}

#[on_each_database]
async fn rate_limits_of_stages_and_of_users_are_causes(db: TestDb) {
    let clock = manual_clock();
    for (setting, files) in [("EXTRACT_RATE_LIMIT", 2), ("USER_RATE_LIMIT", 2)] {
        let server =
            Setup::default().clock(&clock).work(Script::new()).with(setting, "2/1h").start(&db).await;
        let user = server.client(setting);
        for number in 0..4 {
            user.upload(&format!("{number}.txt"), b"a").await;
        }
        server.idle().await;
        for (client, scope) in [(&user, "own"), (&server.admin(), "all")] {
            let seen = only(client, scope).await;
            let wanted = ["kind", "stage", "files", "remedy", "isAllowed"];
            assert_eq!(
                json!(fields(&seen, wanted)),
                json!(["rate_limit", "extract", files, "wait", true]),
                "{setting} {scope}"
            );
            assert!(seen["until"].is_string());
        }
        clock.advance(Duration::from_hours(2));
        server.app.wake.poll_work();
        server.idle().await;
        assert_eq!(report(&user, "own").await["blockers"], json!([]), "{setting}");
        server.stop().await;
    }
}
