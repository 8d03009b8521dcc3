//! One history, from its seed to its verdict.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use landfall_core::clock::Ahead;
use landfall_core::{blocking, random};
use landfall_server::config::{Config, Variables};
use landfall_server::content::index;
use landfall_store::SimulatedDatabase;
use tokio::runtime::Builder;

use crate::clients::{Accounts, Client};
use crate::oracles::{self, Observer};
use crate::plan::{Plan, Without};
use crate::shared::Shared;
use crate::trace::Detail;
use crate::world::{Ground, World};

/// How long the world may take to come to rest when the faults are over, in milliseconds. It includes the windows in which
/// files expire whose clients vanished.
const MOST_CALM: u64 = 20 * 60_000;
/// When it is first checked whether the world rests, after the faults, and how often from then on.
const FIRST_CHECK: u64 = 1_000;
const BETWEEN_CHECKS: u64 = 2_000;
/// How long all machines sleep at once where nothing is left but deadlines, and when it is checked again after that. A process whose
/// last heartbeat was as old as it may be is still alive after it.
const SLEEP: u64 = 10_000;
const AFTER_SLEEP: u64 = 500;

/// The histories that come before all others, by their seeds. Between them they make most statements, and search.
const WARMING: RangeInclusive<u64> = 1..=10;

/// What a history came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Verdict {
    pub seed: u64,
    pub hash: u64,
    pub steps: u64,
    /// How long it lasted in its own time, in milliseconds.
    pub lasted: u64,
    /// What is wrong at its end.
    pub violations: Vec<String>,
    pub story: Vec<String>,
    pub most_often: Vec<String>,
    pub reached: Vec<(String, u64)>,
    /// The steps that were made, where they were counted.
    pub made: Vec<String>,
    /// The steps before which a process died.
    pub died_before: Vec<String>,
    /// The statements with which the history was judged, where steps were counted.
    pub judged_with: Vec<String>,
}

/// What all histories begin with. It is made once, before the first.
pub fn prepare() -> Arc<Ground> {
    blocking::stay_on_this_thread();
    random::seed(0);
    let ground = Arc::new(ground());
    ground.begin_here();
    let statements = warm_up(&ground);
    ground.prepare(statements.iter());
    ground
}

fn ground() -> Ground {
    let [used, new] = [(); 2].map(|()| SimulatedDatabase::create().expect("a database in memory"));
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime without I/O");
    runtime
        .block_on(async { index::install(&used.connect(0, Ahead::default(), None)).await })
        .expect("the tables are created");
    Ground::new(used, new, config())
}

/// Runs histories whose only purpose is that what a process computes once is computed before the others begin. Returns the
/// statements that they made.
fn warm_up(ground: &Arc<Ground>) -> BTreeSet<String> {
    let nothing = Without::default();
    let warming = |seed| {
        let verdict = run(seed, &nothing, Detail::Statements, ground.clone());
        verdict.made.into_iter().chain(verdict.judged_with)
    };
    // The database that no process has used stays as it is.
    WARMING.filter(|seed| !Plan::draw(*seed, &nothing).has_new_database).flat_map(warming).collect()
}

fn config() -> Config {
    let mut variables = Variables::default();
    for (name, value) in [
        ("DATABASE_URL", "sqlite://unused.db"),
        ("DATA_DIR", "/nonexistent"),
        ("JWT_SECRET", "e2b7c1f09a6d4835be07f1c2d93a5648"),
        ("SECRET_KEY", "5d0c9e7fb83a4126a94e1b7c6f20d385"),
        ("CLAMD_ADDRESS", "127.0.0.1:1"),
        ("EXTRACT_GATEWAY_URL", "http://127.0.0.1:1/"),
        ("EMBEDDINGS_URL", "http://127.0.0.1:1/"),
        ("EMBEDDINGS_MODEL", "simulated"),
        ("UPLOAD_CONFIRM_WINDOW_MS", "60000"),
        ("RESUMABLE_UPLOAD_WINDOW_MS", "90000"),
        ("ORPHAN_MIN_AGE_MS", "120000"),
        ("ORPHAN_CLEANUP_SCHEDULE", "* * * * *"),
        ("ABANDONED_UPLOAD_THRESHOLD_MS", "120000"),
        ("BATCH_TIMEOUT_SCHEDULE", "* * * * *"),
        ("STUCK_RECOVERY_SCHEDULE", "* * * * *"),
        ("POLL_INTERVAL_MS", "2000"),
        ("MIN_FREE_DISK", "1"),
    ] {
        variables.set(name, value);
    }
    let mut config = Config::from_variables(variables).expect("the settings are valid");
    config.queue.liveness.lock_check_interval = std::time::Duration::from_secs(2);
    config
}

/// Runs the history of a seed, without what is left out of it.
pub fn run(seed: u64, without: &Without, detail: Detail, ground: Arc<Ground>) -> Verdict {
    random::seed(seed);
    let plan = Plan::draw(seed, without);
    let shared = Shared::new(plan, detail);
    let mut world = World::new(&shared, ground);
    let observer = Observer::new(&world);
    let accounts = Accounts::new(shared.plan.files.len());
    let readers = begin_clients(&world, &accounts);
    let mut violations = Vec::new();

    let calm_from = shared.plan.calm_from();
    while shared.now() < calm_from {
        world.go_on(calm_from);
    }
    world.calm();
    world.slow_down(250);
    let most = shared.now() + MOST_CALM;
    let mut next_check = shared.now() + FIRST_CHECK;
    loop {
        world.go_on(next_check);
        // Whoever looks on must not wait for a process that stands still in the middle of a transaction.
        if shared.now() < next_check || (!world.database.is_free() && shared.now() <= most) {
            continue;
        }
        if !world.database.is_free() {
            violations.push("a process never ends its transaction".to_owned());
            drop(observer);
            world.end();
            return verdict(seed, &shared, violations);
        }
        let all_over = accounts.all().iter().all(|account| account.is_over);
        let waits = if all_over { observer.waits_for(&world, &readers) } else { Some("clients".to_owned()) };
        match waits {
            None => break,
            Some(what) if shared.now() > most => {
                violations.push(format!("the world does not come to rest: {what}"));
                break;
            }
            // Nothing is left but deadlines. To wait for them with every poll of every process would be most of a history.
            Some(_) if all_over && world.is_quiet() && observer.none_is_worked_on(&world) => {
                world.sleep(SLEEP);
                next_check = shared.now() + AFTER_SLEEP;
            }
            Some(_) => next_check = shared.now() + BETWEEN_CHECKS,
        }
    }
    violations.extend(oracles::judge(&world, &observer, &accounts, &readers));
    observer.count_transitions(&world);
    drop(observer);
    world.end();
    verdict(seed, &shared, violations)
}

fn verdict(seed: u64, shared: &Shared, violations: Vec<String>) -> Verdict {
    let lasted = shared.now();
    let mut trace = shared.trace();
    let most_often = trace.most_often();
    let (made, died_before) = trace.steps_made();
    Verdict {
        made,
        died_before,
        judged_with: trace.statements_of_judges(),
        seed,
        hash: trace.hash(),
        steps: trace.steps,
        lasted,
        violations,
        most_often,
        story: trace.story(),
        reached: trace.reached.clone().into_iter().collect(),
    }
}

/// The events that each reader has seen, with its tenant.
pub type Readers = Vec<(usize, Arc<Mutex<Vec<i64>>>)>;

fn begin_clients(world: &World, accounts: &Accounts) -> Readers {
    let shared = &world.shared;
    let client = Client {
        shared: shared.clone(),
        directory: world.directory.clone(),
        accounts: accounts.clone(),
        bucket: world.bucket.clone(),
    };
    let runtime = &world.clients.runtime;
    for (place, file) in shared.plan.files.iter().enumerate() {
        runtime.spawn(client.clone().handle(place, file.clone()));
    }
    if shared.plan.has_webhook {
        runtime.spawn(client.clone().register_webhook());
    }
    let mut readers = Vec::new();
    if shared.plan.has_readers {
        for tenant in 0..2 {
            let seen = Arc::new(Mutex::new(Vec::new()));
            runtime.spawn(client.clone().read_events(tenant, seen.clone()));
            readers.push((tenant, seen));
        }
    }
    readers
}

/// What a reader has seen.
pub fn seen_by(reader: &Mutex<Vec<i64>>) -> Vec<i64> {
    reader.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
