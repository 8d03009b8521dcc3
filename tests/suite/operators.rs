//! What operators see of the server, and what they can do: circuits, hours, runs of jobs, tenants, traces.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::caller::Role;
use landfall_core::clock::Time;
use landfall_core::states::RunOutcome;
use landfall_server::config::Config;
use landfall_server::recovery::{Job, Jobs, Sweep, SweepReport, runs};
use landfall_store::{Error, args};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::recovery_jobs::by_hand;
use crate::support::gateway_server::{GatewayServer, Reply};
use crate::support::offline_app::Sql;
use crate::support::scripted_failures::{ScriptedFailures, groups, names};
use crate::support::{Client, Script, Setup, TestDb, TestServer, manual_clock, on_each_database, until};

const QUEUE_STATUS: &str = "/api/v2/admin/queue-status";
const TENANTS: &str = "/api/v2/admin/tenants";
const RUNS: &str = "/api/v2/admin/jobs/retention/runs";

async fn sql(server: &TestServer, sql: &str, arguments: Vec<landfall_store::Arg>) {
    server.app.db.write(Sql(sql.to_owned(), arguments)).await.unwrap();
}

async fn actions(server: &TestServer, action: &str) -> Vec<Value> {
    let log = server.admin().get(&format!("/api/v2/admin/audit-log?action={action}")).await.ok();
    log["entries"].as_array().expect("a list").clone()
}

/// A member, an administrator of a tenant, and an API key of an operator without the scope for it.
async fn others(server: &TestServer) -> Vec<(Client, &'static str)> {
    let key = json!({ "name": "reads", "scopes": ["read", "manage"] });
    let key = server.admin().post("/api/v2/keys", key).await.ok()["key"].as_str().unwrap().to_owned();
    vec![
        (server.client("alice"), "FORBIDDEN"),
        (server.client_with("dana", "acme", Role::TenantAdmin), "FORBIDDEN"),
        (Client::new(server.base.clone(), key), "INSUFFICIENT_SCOPE"),
    ]
}

#[on_each_database]
async fn an_operator_has_a_service_tried_at_once(db: TestDb) {
    let (gateway, url) = GatewayServer::serve([]).await;
    gateway.otherwise(Reply::ApiResponse(503, "text/plain", "gone fishing"));
    let clock = manual_clock();
    let server = Setup::default()
        .clock(&clock)
        .with("EXTRACT_GATEWAY_URL", &url)
        .with("EXTRACT_CONCURRENCY", 5)
        .start(&db)
        .await;
    let (alice, root) = (server.client("alice"), server.admin());
    let probe = "/api/v2/admin/circuits/gateway/probe";
    let closed = root.post(probe, json!({})).await.ok();
    assert_eq!((&closed["state"], &closed["lastError"]), (&json!("closed"), &json!(null)));
    // All that wait were failed by the service, so none of them is due before the circuit would try again.
    let mut files = Vec::new();
    for number in 0..5 {
        files.push(alice.upload(&format!("{number}.bin"), b"bytes").await);
    }
    server.idle().await;
    let calls = gateway.calls().len();
    for (client, code) in others(&server).await {
        client.post(probe, json!({})).await.refused(403, code);
    }
    root.post("/api/v2/admin/circuits/moon/probe", json!({})).await.refused(404, "CIRCUIT_NOT_FOUND");
    let status = root.get(QUEUE_STATUS).await.ok();
    let open = status["circuits"].as_array().unwrap().iter().find(|one| one["service"] == "gateway").unwrap();
    assert_eq!((&open["state"], &open["nextProbeAt"]), (&json!("open"), &open["until"]));
    assert!(open["lastError"].as_str().unwrap().contains("503"), "{open}");
    server.idle().await;
    assert_eq!(gateway.calls().len(), calls, "it is open");

    gateway.otherwise(Reply::ApiResponse(200, "text/plain", "Some words about the sea."));
    let tried = root.post(probe, json!({})).await.ok();
    assert_eq!((&tried["state"], &tried["nextProbeAt"]), (&json!("half-open"), &json!(null)));
    server.idle().await;
    let states = alice.get("/api/v2/uploads/dashboard").await.ok()["statusDistribution"].clone();
    assert_eq!(states["ready"], 3, "as many as probe it, without any time: {states}");
    let status = root.get(QUEUE_STATUS).await.ok();
    assert!(status["circuits"].as_array().unwrap().iter().all(|one| one["state"] == "closed"), "{status}");
    let logged = actions(&server, "probeCircuit").await;
    assert_eq!(logged.iter().filter(|entry| entry["outcome"] == "refused").count(), 3, "{logged:?}");
    assert!(logged.iter().any(|entry| entry["outcome"] == "done" && entry["actorUserId"] == "root"));
    clock.advance(Duration::from_mins(2));
    server.idle().await;
    assert_eq!(alice.status(&files[4]).await, "ready");
    server.assert_audit_clean().await;
}

#[on_each_database]
async fn queue_status_has_every_hour_that_was_asked_for(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(Script::new()).start(&db).await;
    let root = server.admin();
    server.client("alice").upload("a.txt", b"a").await;
    server.idle().await;
    clock.advance(Duration::from_hours(100));
    let hours = async |query: &str| {
        let status = root.get(&format!("{QUEUE_STATUS}{query}")).await.ok();
        (status["recentHours"].as_array().unwrap().clone(), status["throughput"]["totalCompleted"].clone())
    };
    let (week, completed) = hours("?hours=168").await;
    assert_eq!((week.len(), completed), (168, json!(1)));
    let counted: Vec<usize> = (0..168).filter(|hour| week[*hour]["completed"] == 1).collect();
    assert_eq!(counted, [100], "the newest first");
    assert!(week.iter().all(|hour| hour["failed"] == 0 && hour["byClass"] == json!({})));
    let times: Vec<Time> = week.iter().map(|hour| hour["hour"].as_str().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted_by(|one, next| *one - *next == chrono::TimeDelta::hours(1)));
    assert_eq!(hours("?hours=1").await.0.len(), 1);
    assert_eq!(hours("").await, (Vec::new(), json!(0)), "two days, without hours in which nothing happened");
    for bad in ["0", "169", "-1", "many"] {
        root.get(&format!("{QUEUE_STATUS}?hours={bad}")).await.refused(400, "INVALID_REQUEST");
    }
    for (client, code) in others(&server).await {
        client.get(&format!("{QUEUE_STATUS}?hours=24")).await.refused(403, code);
    }
}

#[on_each_database]
async fn a_group_says_when_whom_and_what_helps(db: TestDb) {
    let clock = manual_clock();
    let server = Setup::default().clock(&clock).work(ScriptedFailures::new()).start(&db).await;
    let users: Vec<Client> = (0..7).map(|n| server.client_of(&format!("user{n}"), "acme")).collect();
    // An hour too early, in the first hour, and now.
    for hours in [2, 22, 0] {
        users[0].upload_all(&names('p', 2)).await;
        server.idle().await;
        clock.advance(Duration::from_hours(hours));
    }
    for user in &users {
        user.upload_all(&names('p', 1)).await;
    }
    users[1].upload_all(&names('e', 1)).await;
    server.idle().await;

    let own = groups(&users[0]).await;
    let mut trend = vec![0; 24];
    (trend[1], trend[23]) = (2, 3);
    assert_eq!((&own[0]["count"], &own[0]["trend"]), (&json!(7), &json!(trend)));
    let owner = json!({ "tenantId": "acme", "userId": "user0", "count": 7 });
    assert_eq!(own[0]["owners"], json!({ "count": 1, "top": [owner] }), "no word of the others");
    let dana = server.client_with("dana", "acme", Role::TenantAdmin);
    let all = dana.get("/api/v2/uploads/dlq/groups?scope=tenant").await.ok()["groups"].clone();
    assert_eq!((&all[0]["code"], &all[0]["retryHelps"]), (&json!("PARSE_ERROR"), &json!(false)));
    assert!(all[0]["advice"].as_str().unwrap().contains("upload that copy."), "{all}");
    assert_eq!((&all[0]["owners"]["count"], &all[0]["owners"]["top"][0]), (&json!(7), &owner));
    assert_eq!(all[0]["owners"]["top"].as_array().unwrap().len(), 5);
    assert_eq!(all[0]["trend"][23], 9);
    assert_eq!((&all[1]["code"], &all[1]["retryHelps"]), (&json!("EMBED_ERROR"), &json!(true)));
    assert_eq!(all[1]["advice"], "Retry it when the embedding service works again.");
    let stranger = server.client_with("eve", "globex", Role::TenantAdmin);
    assert_eq!(stranger.get("/api/v2/uploads/dlq/groups?scope=tenant").await.ok()["groups"], json!([]));
}

/// A sweep that ends in one way.
struct Ends(&'static str);

impl Sweep for Ends {
    fn name(&self) -> &'static str {
        self.0
    }

    fn sweep_once(&self, _: Time) -> BoxFuture<'_, Result<SweepReport, Error>> {
        async move {
            match self.0 {
                "fails" => Err(Error::Internal("it is broken".to_owned())),
                "panics" => panic!("a scripted panic"),
                "waits" => std::future::pending().await,
                _ => Ok(SweepReport { errors: vec!["one item".to_owned()], ..SweepReport::default() }),
            }
        }
        .boxed()
    }
}

#[on_each_database]
async fn every_run_of_a_job_has_its_outcome(db: TestDb) {
    let clock = manual_clock();
    let server = by_hand(&clock).start(&db).await;
    let app = &server.app;
    let job = |name| Job { sweep: Arc::new(Ends(name)), schedule: "0 0 1 1 *".parse().unwrap() };
    let jobs = ["ends", "fails", "panics", "waits"].map(job).into();
    let jobs = Jobs::start(app.db.clone(), app.clock.clone(), app.liveness.clone(), jobs).await.unwrap();
    let outcome = async |name: &str| {
        let runs = runs::history(&mut app.db.read().await.unwrap(), name, None, 10).await.unwrap();
        landfall_api::maintenance::RunView::from(runs[0].clone()).outcome
    };
    for (name, expected) in
        [("ends", RunOutcome::Completed), ("fails", RunOutcome::Failed), ("panics", RunOutcome::Failed)]
    {
        jobs.run_by_hand(name, "root").await.unwrap().ended.await.unwrap();
        assert_eq!(outcome(name).await, expected, "{name}");
    }
    let waits = jobs.run_by_hand("waits", "root").await.unwrap();
    assert_eq!(outcome("waits").await, RunOutcome::Running);
    jobs.stop().await;
    waits.ended.await.unwrap();
    assert_eq!(outcome("waits").await, RunOutcome::Interrupted);

    // A run of a process that is gone: seen at once, and written down when that process is found dead.
    let (run, dead) = (Uuid::new_v4(), Uuid::new_v4());
    sql(
        &server,
        "INSERT INTO job_runs (id, name, worker, worker_name, started_at, errors) VALUES ($1, 'retention', $2, 'gone', $3, $4)",
        args![run, dead, app.clock.now(), json!([])],
    )
    .await;
    let root = server.admin();
    let shown = async || root.get(RUNS).await.ok()["runs"][0].clone();
    assert_eq!((&shown().await["outcome"], &shown().await["endedAt"]), (&json!("interrupted"), &json!(null)));
    let listed = root.get("/api/v2/admin/jobs").await.ok();
    let retention = listed["jobs"].as_array().unwrap().iter().find(|job| job["name"] == "retention").unwrap();
    assert_eq!(
        (&retention["running"], &retention["lastRun"]["outcome"]),
        (&json!(false), &json!("interrupted"))
    );
    sql(
        &server,
        "INSERT INTO workers (id, name, stages, services, lock_key, started_at, heartbeat_at)
         VALUES ($1, 'gone', '', '', 1, $2, $2)",
        args![dead, app.clock.now()],
    )
    .await;
    // No process holds its lock, so the server finds it dead.
    until("its end is written down", async || shown().await["endedAt"].is_string()).await;
    let ended = shown().await;
    assert_eq!(ended["outcome"], "interrupted");
    assert_eq!(ended["errors"], json!(["the process that ran it died"]));
}

#[on_each_database]
async fn the_last_500_runs_of_a_job_are_listed_page_by_page(db: TestDb) {
    let clock = manual_clock();
    let server = by_hand(&clock).start(&db).await;
    let root = server.admin();
    for (client, code) in others(&server).await {
        client.get(RUNS).await.refused(403, code);
    }
    root.get("/api/v2/admin/jobs/none/runs").await.refused(404, "JOB_NOT_FOUND");
    root.get(&format!("{RUNS}?cursor=x")).await.refused(400, "INVALID_CURSOR");
    root.get(&format!("{RUNS}?limit=201")).await.refused(400, "INVALID_REQUEST");
    for number in 0..505 {
        let at = server.app.clock.now() - chrono::TimeDelta::minutes(number + 1);
        sql(
            &server,
            "INSERT INTO job_runs (id, name, worker, worker_name, started_at, ended_at, metrics, errors, outcome)
             VALUES ($1, 'retention', $1, 'w', $2, $2, $3, $4, 'completed')",
            args![Uuid::new_v4(), at, json!({ "number": number }), json!([])],
        )
        .await;
    }
    server.run_job("retention").await;
    let (mut seen, mut path) = (Vec::new(), format!("{RUNS}?limit=200"));
    loop {
        let page = root.get(&path).await.ok();
        seen.extend(page["runs"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("{RUNS}?limit=200&cursor={cursor}");
    }
    assert_eq!(seen.len(), 500);
    assert_eq!((&seen[0]["startedBy"], &seen[0]["outcome"]), (&json!("root"), &json!("completed")));
    assert!(seen[0]["metrics"]["jobRuns"].is_number() && seen[0]["endedAt"].is_string(), "{}", seen[0]);
    let numbers: Vec<&Value> = seen[1..].iter().map(|run| &run["metrics"]["number"]).collect();
    assert_eq!(numbers, (0..499).map(Value::from).collect::<Vec<_>>().iter().collect::<Vec<_>>());
}

#[on_each_database]
async fn operators_list_the_tenants_with_their_quotas(db: TestDb) {
    let server =
        Setup::default().work(Script::new()).with("DEFAULT_TENANT_QUOTA_BYTES", 1_000).start(&db).await;
    let root = server.admin();
    for tenant in ["acme", "Acme%2", "globex", "initech"] {
        server.client_of("bob", tenant).upload("a.txt", b"12345").await;
    }
    let set = root.request(Method::PUT, &format!("{TENANTS}/globex/quota")).json(&json!({ "bytes": 70 }));
    root.send(set).await.ok();
    for (client, code) in others(&server).await {
        client.get(TENANTS).await.refused(403, code);
    }
    let list = async |query: &str| {
        let page = root.get(&format!("{TENANTS}{query}")).await.ok();
        let names: Vec<String> = page["tenants"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tenant| tenant["tenantId"].as_str().unwrap().to_owned())
            .collect();
        (names, page["nextCursor"].as_str().map(str::to_owned))
    };
    let (mut all, mut cursor) = list("?limit=3").await;
    while let Some(next) = cursor {
        let more: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
        let page = list(&format!("?limit=3&cursor={more}")).await;
        all.extend(page.0);
        cursor = page.1;
    }
    all.sort();
    assert_eq!(all, ["Acme%2", "acme", "globex", "initech"]);
    let mut found = list("?q=ACME").await.0;
    found.sort();
    assert_eq!(found, ["Acme%2", "acme"]);
    assert_eq!(list("?q=e%25").await, (vec!["Acme%2".to_owned()], None), "not a pattern");
    assert_eq!(list("?q=nothing").await, (vec![], None));
    let globex = root.get(&format!("{TENANTS}?q=globex")).await.ok()["tenants"][0].clone();
    let expected = json!({
        "tenantId": "globex",
        "bytes": { "limit": 70, "reserved": 0, "used": 5, "free": 65 },
        "files": globex["files"],
        "isDefault": { "bytes": false, "files": true },
    });
    assert_eq!(globex, expected);
    root.get(&format!("{TENANTS}?limit=0")).await.refused(400, "INVALID_REQUEST");
    root.get(&format!("{TENANTS}?cursor=%00")).await.refused(400, "INVALID_CURSOR");
}

#[on_each_database]
async fn a_file_links_to_its_trace_if_there_is_one(db: TestDb) {
    let server = Setup::default()
        .work(Script::new())
        .with("TRACE_URL", "https://traces.example/t/{traceId}?ui=1")
        .start(&db)
        .await;
    let alice = server.client("alice");
    let file = alice.upload("a.txt", b"a").await;
    server.idle().await;
    assert_eq!(alice.file(&file).await["traceUrl"], json!(null), "no traces are collected");
    let id = Uuid::parse_str(&file).unwrap();
    for (flags, expected) in
        [("01", json!("https://traces.example/t/0af7651916cd43dd8448eb211c80319c?ui=1")), ("00", json!(null))]
    {
        let parent = format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}");
        sql(&server, "UPDATE files SET trace_parent = $2 WHERE id = $1", args![id, parent]).await;
        assert_eq!(alice.file(&file).await["traceUrl"], expected);
        let listed = alice.get("/api/v2/uploads/files").await.ok();
        assert_eq!(listed["files"][0]["traceUrl"], expected);
    }
    server.stop().await;
    let server = Setup::default().work(Script::new()).start(&db).await;
    assert_eq!(server.client("alice").file(&file).await["traceUrl"], json!(null), "there is no setting");
}

#[test]
fn the_address_of_traces_has_the_place_for_their_id() {
    for (value, is_valid) in [
        ("https://jaeger.example.com/trace/{traceId}", true),
        ("http://localhost:3000/explore?id={traceId}", true),
        ("https://jaeger.example.com/trace/", false),
        ("javascript:alert({traceId})", false),
        ("jaeger/{traceId}", false),
        ("https://user:secret@jaeger.example.com/{traceId}", false),
    ] {
        let mut variables = landfall_server::config::Variables::default();
        variables.set("TRACE_URL", value);
        let read = Config::from_variables(variables);
        let complains = read.as_ref().is_err_and(|error| error.to_string().contains("TRACE_URL"));
        assert_eq!(complains, !is_valid, "{value}: {:?}", read.err().map(|error| error.to_string()));
    }
}
