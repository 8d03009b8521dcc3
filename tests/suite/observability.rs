//! Prometheus metrics: all of them after real work, who may read them, and the rules and the dashboard that use
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage;
use landfall_server::http;
use landfall_server::telemetry::metrics::{self, Kind};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::{Script, Setup, Step, TestDb, TestServer, manual_clock, on_each_database};

/// Where `make test` says that promtool is.
const PROMTOOL: &str = "LANDFALL_TEST_PROMTOOL";
const ALERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/prometheus/alerts.yml");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The samples of a scrape by name and labels, and the kinds of its metrics.
struct Scrape {
    text: String,
    samples: BTreeMap<String, f64>,
    kinds: BTreeMap<String, String>,
}

impl Scrape {
    fn parse(text: String) -> Self {
        let (mut samples, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a name and a kind");
                assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').expect("a series and a value");
                let value = value.parse().expect("a number");
                assert!(samples.insert(series.to_owned(), value).is_none(), "{series} twice");
            }
        }
        Self { text, samples, kinds }
    }

    async fn of(server: &TestServer) -> Self {
        let response = reqwest::get(format!("{}/metrics", server.base)).await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert!(
            response.headers()["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4")
        );
        Self::parse(response.text().await.expect("text"))
    }

    #[track_caller]
    fn value(&self, series: &str) -> f64 {
        *self.samples.get(series).unwrap_or_else(|| panic!("{series} is not in {}", self.text))
    }

    /// The names that a query can use.
    fn names(&self) -> BTreeSet<String> {
        let name = |series: &String| series.split('{').next().unwrap_or_default().to_owned();
        self.samples.keys().map(name).collect()
    }
}

/// A server on which everything that is counted has happened.
async fn busy(db: &TestDb) -> TestServer {
    let clock = manual_clock();
    let work = Script::new()
        .then(Stage::Extract, Step::Fail(Code::ParseError))
        .then(Stage::Chunk, Step::Fail(Code::DbError));
    // Started by hand only: a scheduled run might be in progress.
    let server = Setup::default()
        .with("STUCK_RECOVERY_SCHEDULE", "0 0 1 1 *")
        .with("ORPHAN_CLEANUP_SCHEDULE", "0 0 1 1 *")
        .work(work)
        .clock(&clock)
        .start(db)
        .await;
    let alice = server.client_of("alice", "acme");
    alice.upload("broken.txt", b"x").await;
    server.idle().await;
    alice.upload("whole.txt", b"x").await;
    alice.register(None, "never.txt", 12).await;
    clock.advance(Duration::from_secs(30));
    server.idle().await;
    alice.get("/api/v2/uploads/dashboard").await.ok();
    alice.get("/api/v2/uploads/stuck").await.ok();
    alice.get("/no/such/address").await.refused(404, "NOT_FOUND");
    clock.advance(Duration::from_hours(25));
    server.app.stuck_files.expiry.sweep_once(server.app.clock.now()).await.unwrap();
    for job in ["stuck-file-recovery", "orphan-cleanup"] {
        server.run_job(job).await;
    }
    server.idle().await;
    server
}

fn is_close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-9
}

#[on_each_database]
async fn a_scrape_after_work_has_every_metric_with_correct_values(db: TestDb) {
    let before = metrics::recorder().render();
    let before = Scrape::parse(before);
    let server = busy(&db).await;
    let scrape = Scrape::of(&server).await;
    for metric in metrics::ALL {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        assert_eq!(scrape.kinds.get(metric.name).map(String::as_str), Some(kind), "{}", metric.name);
        assert!(
            scrape.text.contains(&format!("# HELP {} {}\n", metric.name, metric.help)),
            "{}",
            metric.name
        );
    }
    // Other tests may count in the same process.
    let grew = |series: &str| scrape.value(series) - before.samples.get(series).copied().unwrap_or(0.0);
    for (series, least) in [
        ("landfall_files_completed_total", 1.0),
        ("landfall_dead_letters_total{stage=\"extract\",class=\"DOCUMENT_ERROR\"}", 1.0),
        ("landfall_retries_total{stage=\"chunk\",class=\"DB_ERROR\"}", 1.0),
        ("landfall_stage_duration_seconds_count{stage=\"embed\",outcome=\"done\"}", 1.0),
        ("landfall_stage_duration_seconds_count{stage=\"extract\",outcome=\"failed\"}", 1.0),
        ("landfall_queue_wait_seconds_count{stage=\"extract\"}", 2.0),
        ("resource_orphaned_files_cleaned_total{tenant_id=\"acme\"}", 1.0),
        ("resource_quota_refunded_bytes_total{tenant_id=\"acme\"}", 12.0),
        ("abandoned_uploads_deleted_total", 1.0),
        ("dashboard_request_duration_seconds_count{endpoint=\"/dashboard\"}", 1.0),
        (
            "landfall_http_request_duration_seconds_count{method=\"GET\",path=\"unmatched\",status=\"4xx\"}",
            1.0,
        ),
        (
            "landfall_http_request_duration_seconds_count{method=\"POST\",path=\"/api/v2/uploads/files/{fileId}/confirm\",status=\"2xx\"}",
            2.0,
        ),
    ] {
        assert!(grew(series) >= least, "{series}: {}", grew(series));
    }
    assert!(!scrape.text.contains("no/such/address"), "requested paths are not labels");
    for (series, value) in [
        ("file_pipeline_status{status=\"ready\"}", 1.0),
        ("file_pipeline_status{status=\"failed\"}", 1.0),
        ("file_pipeline_status{status=\"registered\"}", 0.0),
        ("landfall_queue_depth{stage=\"extract\"}", 0.0),
        ("landfall_workers{stage=\"embed\"}", 1.0),
        ("landfall_circuit_state{service=\"storage\",state=\"closed\"}", 1.0),
        ("landfall_circuit_state{service=\"storage\",state=\"open\"}", 0.0),
        ("landfall_database_up", 1.0),
        ("landfall_storage_up", 1.0),
        ("landfall_job_last_errors{name=\"orphan-cleanup\"}", 0.0),
    ] {
        assert!(is_close(scrape.value(series), value), "{series}: {}", scrape.value(series));
    }
    check_with_promtool(&scrape);
    server.stop().await;
}

#[on_each_database]
async fn reading_the_metrics_needs_permission(db: TestDb) {
    let server =
        Setup::default().work(Script::new()).with("METRICS_TOKEN", "only-for-prometheus").start(&db).await;
    let url = format!("{}/metrics", server.base);
    let ask = async |token: Option<&str>| {
        let request = server.client("alice").http.get(&url);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(ask(None).await, 401);
    assert_eq!(ask(Some("only-for-prometheu")).await, 401);
    assert_eq!(ask(Some("only-for-prometheus")).await, 200);
    assert_eq!(ask(Some(&server.admin().token)).await, 200);
    assert_eq!(ask(Some(&server.client("alice").token)).await, 403);
    server.stop().await;

    // Without a token, only if the server cannot be reached from other machines.
    let server = Setup::default().work(Script::new()).start(&db).await;
    let http = server.client("alice").http;
    let url = format!("{}/metrics", server.base);
    assert_eq!(http.get(&url).send().await.unwrap().status(), 200);
    let by_proxy = http.get(&url).header("X-Forwarded-For", "192.0.2.1").send().await.unwrap();
    assert_eq!(by_proxy.status(), 401);
    // A proxy in front of the server may add no header, so none is needed to know that there is one.
    for (name, value) in [("TRUSTED_PROXIES", "192.0.2.0/24"), ("PUBLIC_URL", "https://files.example.com")] {
        let behind = Setup::default().work(Script::new()).with(name, value).start(&db).await;
        let url = format!("{}/metrics", behind.base);
        assert_eq!(http.get(&url).send().await.unwrap().status(), 401, "{name}");
        assert_eq!(http.get(&url).bearer_auth(&behind.admin().token).send().await.unwrap().status(), 200);
        // The address for monitoring is not what a proxy leads to.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let monitoring = format!("http://{}/metrics", listener.local_addr().unwrap());
        let router = http::monitoring_router(behind.app.clone(), "127.0.0.1".parse().unwrap());
        let app = behind.app.clone();
        let serving = tokio::spawn(async move {
            http::serve(listener, router, &app.config.http, CancellationToken::new()).await;
        });
        assert_eq!(http.get(monitoring).send().await.unwrap().status(), 200, "{name}");
        serving.abort();
        behind.stop().await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = format!("http://{}/metrics", listener.local_addr().unwrap());
    let stop = CancellationToken::new();
    let router = http::monitoring_router(server.app.clone(), "0.0.0.0".parse().unwrap());
    let serving = tokio::spawn({
        let (app, stop) = (server.app.clone(), stop.clone());
        async move { http::serve(listener, router, &app.config.http, stop).await }
    });
    assert_eq!(http.get(&elsewhere).send().await.unwrap().status(), 401);
    assert_eq!(http.get(&elsewhere).bearer_auth(&server.admin().token).send().await.unwrap().status(), 200);
    assert_eq!(http.get(elsewhere.replace("metrics", "healthz")).send().await.unwrap().status(), 200);
    assert_eq!(
        http.get(elsewhere.replace("metrics", "api/v2/uploads/files")).send().await.unwrap().status(),
        404
    );
    stop.cancel();
    serving.await.unwrap();
    server.stop().await;
}

#[on_each_database]
async fn without_its_database_a_process_still_serves_metrics_and_reports_the_outage(db: TestDb) {
    let server = Setup::default().work(Script::new()).start(&db).await;
    server.app.db.close().await;
    let scrape = Scrape::of(&server).await;
    assert!(is_close(scrape.value("landfall_database_up"), 0.0));
    assert!(scrape.samples.contains_key("landfall_files_completed_total"));
    assert!(!scrape.text.contains("file_pipeline_status{"), "unknown values are left out");
}

#[on_each_database]
async fn rules_and_dashboard_use_only_existing_metrics(db: TestDb) {
    let server = busy(&db).await;
    let mut known = Scrape::of(&server).await.names();
    server.stop().await;
    // Prometheus itself adds these for every target.
    known.insert("up".to_owned());
    let rules = std::fs::read_to_string(ALERTS).expect("the rules");
    let expressions = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ").map(str::to_owned));
    let dashboard: Value = serde_json::from_str(
        &std::fs::read_to_string(format!("{ROOT}/deploy/grafana/landfall.json")).expect("the dashboard"),
    )
    .expect("JSON");
    let mut queries: Vec<String> = expressions.collect();
    assert!(queries.len() >= 9, "{queries:?}");
    let panels = dashboard["panels"].as_array().expect("panels");
    for panel in panels {
        for target in panel["targets"].as_array().into_iter().flatten() {
            queries.push(target["expr"].as_str().expect("a query").to_owned());
        }
    }
    assert!(queries.len() > 25, "{}", queries.len());
    for query in queries {
        let used = metrics_in(&query);
        assert!(!used.is_empty(), "{query} asks for nothing");
        for name in used {
            assert!(known.contains(&name), "{name} in {query} is in no scrape");
        }
    }
}

/// The names of metrics in a query: words that are not functions, labels, keywords, or strings.
fn metrics_in(query: &str) -> BTreeSet<String> {
    const WORDS: &[&str] = &[
        "by",
        "without",
        "on",
        "ignoring",
        "group_left",
        "group_right",
        "and",
        "or",
        "unless",
        "bool",
        "offset",
    ];
    let mut bare = String::new();
    let (mut depth, mut in_by) = (0_u32, false);
    let mut rest = query;
    // Without selectors, ranges, and lists of labels.
    while let Some(letter) = rest.chars().next() {
        if ["by (", "by(", "on (", "on(", "without (", "ignoring ("].iter().any(|word| rest.starts_with(word))
            && depth == 0
        {
            in_by = true;
        }
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ')' if in_by => in_by = false,
            _ if depth == 0 && !in_by => bare.push(letter),
            _ => {}
        }
        rest = &rest[letter.len_utf8()..];
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut found = BTreeSet::new();
    let mut start = None;
    let letters: Vec<char> = bare.chars().chain([' ']).collect();
    for (at, letter) in letters.iter().enumerate() {
        match (start, is_part(*letter)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                let word: String = letters[from..at].iter().collect();
                let next = letters[at..].iter().find(|c| !c.is_whitespace());
                let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic());
                if is_name && next != Some(&'(') && !WORDS.contains(&word.as_str()) {
                    found.insert(word);
                }
                start = None;
            }
            _ => {}
        }
    }
    found
}

#[test]
fn metrics_are_found_in_queries() {
    let names = |query: &str| metrics_in(query).into_iter().collect::<Vec<_>>();
    assert_eq!(names("sum by (stage) (rate(a_total{x=\"y\"}[5m])) / on(job) b > 0.05"), ["a_total", "b"]);
    assert_eq!(names("time() - max(c{job=\"d\"}) > 90000 and e == 1"), ["c", "e"]);
}

fn check_with_promtool(scrape: &Scrape) {
    let Some(promtool) = promtool() else { return };
    let mut check = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool runs");
    check.stdin.take().expect("piped").write_all(scrape.text.as_bytes()).expect("it is read");
    let output = check.wait_with_output().expect("it ends");
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

/// A plain `cargo test` may have none; `make test` installs it.
fn promtool() -> Option<String> {
    let found = std::env::var(PROMTOOL).ok();
    if found.is_none() {
        eprintln!("not run: {PROMTOOL} is not set; `make test` installs promtool");
    }
    found
}

#[test]
fn the_rules_are_valid_and_each_alert_fires_when_it_should() {
    let Some(promtool) = promtool() else { return };
    for arguments in [
        vec!["check", "rules", ALERTS],
        vec!["check", "config", "deploy/prometheus/prometheus.yml"],
        vec!["test", "rules", "deploy/prometheus/alerts.test.yml"],
    ] {
        let output =
            Command::new(&promtool).current_dir(ROOT).args(&arguments).output().expect("promtool runs");
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
}

#[test]
fn every_rule_has_a_test() {
    let rules = std::fs::read_to_string(ALERTS).expect("the rules");
    let tests =
        std::fs::read_to_string(format!("{ROOT}/deploy/prometheus/alerts.test.yml")).expect("their tests");
    let names: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() >= 9, "{names:?}");
    for name in names {
        assert!(tests.contains(&format!("alertname: {name}\n")), "{name}");
    }
}
