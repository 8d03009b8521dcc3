//! A real server in the process of the test, on its own database.

pub mod scripted_failures;
pub mod offline_app;
pub mod certificate;
pub mod chromium;
pub mod browser;
pub mod clamd;
pub mod client;
pub mod cluster;
pub mod collector;
pub mod contract;
pub mod database;
pub mod embedding_server;
pub mod fixture;
pub mod folder;
pub mod gateway_server;
pub mod actions;
pub mod hooks;
pub mod fault_injector;
pub mod many_files;
pub mod model_folder;
pub mod network;
pub mod node;
pub mod object_stores;
pub mod process;
pub mod proxy;
pub mod relay;
pub mod script;
pub mod scripted_service;
pub mod repeated_sweeps;
pub mod session;
pub mod stream;
pub mod template;
pub mod tus;
pub mod webhook_receiver;

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use landfall_core::caller::Role;
use landfall_core::clock::{Clock, ManualClock};
use landfall_documents::sandbox::Program;
use landfall_server::app::{App, Replacements};
use landfall_server::audit::{Finding, audit};
use landfall_server::auth::TokenClaims;
use landfall_server::config::{Config, Variables};
use landfall_server::delivery::webhooks::target::Names;
use landfall_server::http;
use landfall_server::stages::Work;
use landfall_store::FaultInjector;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use client::{ApiResponse, Client};
pub use database::TestDb;
pub use landfall_test_macros::on_each_database;
pub use script::{Script, Step};

/// A change of a value that is not a setting.
pub type Change = fn(&mut Config);

/// What a test changes from the default server.
#[derive(Default)]
pub struct Setup {
    pub clock: Option<ManualClock>,
    /// By how much the clock of its machine is ahead.
    pub ahead: Option<TimeDelta>,
    pub work: Option<Arc<dyn Work>>,
    pub variables: Vec<(&'static str, String)>,
    pub changes: Vec<Change>,
    pub extractor: Option<Program>,
    pub names: Option<Names>,
    pub faults: Option<Arc<dyn FaultInjector>>,
}

/// The program that reads documents; the test binary cannot.
pub fn landfall_itself() -> Program {
    Program { path: env!("CARGO_BIN_EXE_landfall").into(), arguments: Vec::new() }
}

impl Setup {
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.variables.push((name, value.to_string()));
        self
    }

    /// Changes a value that is not a setting.
    pub fn change(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }

    pub fn work(mut self, work: Arc<dyn Work>) -> Self {
        self.work = Some(work);
        self
    }

    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "only debug builds can misbehave"))]
    pub fn extractor(mut self, extractor: Program) -> Self {
        self.extractor = Some(extractor);
        self
    }

    /// How host names of webhooks are resolved.
    pub fn names(mut self, names: Names) -> Self {
        self.names = Some(names);
        self
    }

    pub fn clock(mut self, clock: &ManualClock) -> Self {
        self.clock = Some(clock.clone());
        self
    }

    /// With faults in its database connections.
    pub fn faults(mut self, faults: Arc<dyn FaultInjector>) -> Self {
        self.faults = Some(faults);
        self
    }

    /// On a machine whose clock is ahead by this much, or behind if it is negative.
    pub fn ahead(mut self, seconds: i64) -> Self {
        self.ahead = Some(TimeDelta::seconds(seconds));
        self
    }

    pub async fn start(self, db: &TestDb) -> TestServer {
        TestServer::start(db, self).await
    }
}

/// Polls until the check holds; panics after two minutes.
pub async fn until(what: &str, mut check: impl AsyncFnMut() -> bool) {
    for _ in 0..6_000 {
        if check().await {
            return;
        }
        Clock::System.sleep(Duration::from_millis(20)).await;
    }
    panic!("never happened: {what}");
}

/// A clock that starts at a fixed time in the past.
/// The summary of a batch of which nothing was cancelled, deleted or missing.
pub fn batch_summary<T: serde::Serialize>(total: T, ready: T, failed: T) -> serde_json::Value {
    serde_json::json!({ "total": total, "ready": ready, "failed": failed,
        "cancelled": 0, "deleted": 0, "neverUploaded": 0 })
}

pub fn manual_clock() -> ManualClock {
    ManualClock::starting_at("2026-01-02T03:04:05Z".parse().expect("a time"))
}

pub struct TestServer {
    pub app: App,
    pub base: String,
    stop: CancellationToken,
    running: JoinHandle<()>,
    serving: JoinHandle<()>,
}

impl TestServer {
    pub async fn new(db: &TestDb) -> Self {
        Setup::default().start(db).await
    }

    async fn start(db: &TestDb, setup: Setup) -> Self {
        let mut config = config(db, &setup.variables);
        for change in &setup.changes {
            change(&mut config);
        }
        let replacements = Replacements {
            clock: setup.clock.map(Clock::Manual).or(setup.ahead.map(Clock::Skewed)),
            work: setup.work,
            extractor: Some(setup.extractor.unwrap_or_else(landfall_itself)),
            faults: setup.faults,
            names: setup.names,
            simulated: None,
        };
        let app = Box::pin(App::start(config, replacements)).await.expect("the server starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("bound"));
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let (app, stop) = (app.clone(), stop.clone());
            async move { app.run(stop).await }
        });
        let serving = tokio::spawn({
            let (app, stop) = (app.clone(), stop.clone());
            async move { http::serve(listener, http::router(app.clone()), &app.config.http, stop).await }
        });
        Self { app, base, stop, running, serving }
    }

    /// A client for a user who is their own tenant.
    pub fn client(&self, user: &str) -> Client {
        self.client_with(user, user, Role::Member)
    }

    pub fn client_of(&self, user: &str, tenant: &str) -> Client {
        self.client_with(user, tenant, Role::Member)
    }

    pub fn admin(&self) -> Client {
        self.client_with("root", "root", Role::Operator)
    }

    /// The circuit of a service, as an operator sees it.
    pub async fn circuit(&self, service: &str) -> Value {
        let status = self.admin().get("/api/v2/admin/queue-status").await.ok();
        let circuits = status["circuits"].as_array().expect("circuits");
        circuits.iter().find(|circuit| circuit["service"] == service).expect("one of each service").clone()
    }

    pub fn client_with(&self, user: &str, tenant: &str, role: Role) -> Client {
        let claims = TokenClaims {
            sub: user.to_owned(),
            tenant: Some(tenant.to_owned()),
            role: Some(role.name().to_owned()),
            exp: (self.app.clock.now() + chrono::TimeDelta::days(1000)).timestamp(),
        };
        Client::new(self.base.clone(), self.app.auth.issue(&claims).expect("a token"))
    }

    /// Runs a job, after a run of its schedule that may be under way. Returns the answer.
    pub async fn run_job(&self, name: &str) -> Value {
        let admin = self.admin();
        loop {
            let answer = admin.post(&format!("/api/v2/admin/jobs/{name}/run"), json!({})).await;
            if answer.status != 409 {
                return answer.ok();
            }
        }
    }

    /// Waits until there is nothing left to do.
    pub async fn idle(&self) {
        self.app.worker.as_ref().expect("this server has a worker").run_until_idle().await;
    }

    pub async fn findings(&self) -> Vec<Finding> {
        let oldest = Clock::System.now() - chrono::TimeDelta::seconds(20);
        audit(&self.app.db, &self.app.blobs, oldest).await.expect("the audit runs").findings
    }

    pub async fn assert_audit_clean(&self) {
        assert_eq!(self.findings().await, [], "the audit found something");
    }

    /// Aborts the background work in the middle, as a panic in it would.
    pub async fn abort_work(&mut self) {
        self.running.abort();
        drop((&mut self.running).await);
    }

    /// Stops as SIGTERM does.
    pub async fn stop(self) {
        self.stop.cancel();
        self.running.await.expect("the worker exits cleanly");
        self.serving.await.expect("the server exits cleanly");
        self.app.db.close().await;
    }
}

pub fn config(db: &TestDb, variables: &[(&'static str, String)]) -> Config {
    Config::from_variables(settings(db, variables)).expect("the settings are valid")
}

fn settings(db: &TestDb, extra: &[(&'static str, String)]) -> Variables {
    let mut variables = Variables::default();
    for (name, value) in db.variables() {
        variables.set(name, value);
    }
    for (name, value) in extra {
        variables.set(name, value);
    }
    variables
}
