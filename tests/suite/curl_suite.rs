//! `scripts/curl-suite.sh` passes against a correct server, and names what is wrong with another.

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use landfall_server::config::{Config, Variables};
use tokio_util::sync::CancellationToken;

use crate::support::{Setup, TestDb, on_each_database};

fn script() -> Command {
    let mut command = Command::new("bash");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/curl-suite.sh")).env_clear();
    for name in ["PATH", "HOME", "TMPDIR"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command
}

async fn run(mut command: Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(move || command.output().expect("bash runs")).await.expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_script_finds_nothing_unexpected_on_its_own_server() {
    let mut command = script();
    command.arg("--own-server").env("LANDFALL", env!("CARGO_BIN_EXE_landfall"));
    let (code, said, wrong) = run(command).await;
    assert_eq!(code, 0, "{said}\n{wrong}");
    assert!(said.contains(" calls, 0 unexpected") && said.contains("not_due"), "{said}");
}

#[on_each_database]
async fn the_script_finds_nothing_unexpected_on_a_running_server(db: TestDb) {
    let server = Setup::default().start(&db).await;
    for client in [server.admin(), server.client("ada")] {
        let bystander = client.upload("bystander.pdf", b"this is no PDF either").await;
        server.idle().await;
        let mut command = script();
        command.env("LANDFALL_URL", &server.base).env("LANDFALL_TOKEN", &client.token);
        let (code, said, wrong) = run(command).await;
        assert_eq!(code, 0, "{said}\n{wrong}");
        assert!(said.contains(" calls, 0 unexpected"), "{said}");
        let files = client.get("/api/v2/uploads/files").await.ok();
        let left: Vec<_> = files["files"].as_array().unwrap().iter().map(|file| &file["fileId"]).collect();
        assert_eq!(left, [bystander.as_str()], "it removes its own files and leaves others alone");
        assert_eq!(client.file(&bystander).await["retryCount"], 0);
    }
    server.assert_audit_clean().await;
    server.stop().await;
}

/// Forwards everything to a server, except for what it makes up: a wrong response, and once that a job runs already.
struct Proxy {
    to: String,
    is_running: AtomicBool,
}

const WRONG: &str = "/api/v2/uploads/stuck/retry-all";
const RUNNING: &str = "/api/v2/admin/jobs/stuck-file-recovery/run";

async fn forward(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    if request.uri().path() == WRONG {
        return (StatusCode::OK, r#"{"files": [], "total": 0, "withoutWorkers": {}}"#).into_response();
    }
    if request.uri().path() == RUNNING && proxy.is_running.swap(false, Ordering::Relaxed) {
        let body = r#"{"error": {"code": "JOB_RUNNING", "message": "It runs already"}}"#;
        return (StatusCode::CONFLICT, body).into_response();
    }
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.expect("a small body");
    let address = format!("{}{}", proxy.to, parts.uri);
    let mut headers = parts.headers;
    headers.remove("host");
    let answer = landfall_server::outbound::client()
        .request(parts.method, address)
        .headers(headers)
        .body(bytes)
        .send()
        .await;
    let answer = answer.expect("the server answers");
    let status = answer.status();
    (status, answer.bytes().await.expect("a body")).into_response()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_response_is_named_and_a_job_that_its_schedule_has_begun_is_waited_for() {
    let db = TestDb::sqlite();
    let server = Setup::default().start(&db).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let proxy = Arc::new(Proxy { to: server.base.clone(), is_running: AtomicBool::new(true) });
    let router = Router::new().fallback(forward).with_state(proxy.clone());
    tokio::spawn(async move {
        let settings = Config::from_variables(Variables::default()).expect("the defaults are good").http;
        landfall_server::http::serve(listener, router, &settings, CancellationToken::new()).await;
    });
    let mut command = script();
    command.env("LANDFALL_URL", base).env("LANDFALL_TOKEN", server.admin().token);
    let (code, said, wrong) = run(command).await;
    assert_eq!(code, 1, "{said}\n{wrong}");
    assert!(said.contains(" calls, 1 unexpected"), "{said}\n{wrong}");
    assert!(wrong.contains("UNEXPECTED: all stuck files can be retried"), "{wrong}");
    assert!(!proxy.is_running.load(Ordering::Relaxed), "the job was asked for");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_server_ends_the_script_at_once() {
    let mut command = script();
    command.env("LANDFALL_URL", "http://127.0.0.1:9").env("LANDFALL_TOKEN", "any");
    let (code, _, wrong) = run(command).await;
    assert_eq!(code, 2, "{wrong}");
    assert!(wrong.contains("no response from http://127.0.0.1:9"), "{wrong}");
    let (code, _, wrong) = run(script()).await;
    assert!(code == 2 && wrong.contains("LANDFALL_TOKEN"), "{wrong}");
}
