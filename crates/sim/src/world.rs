//! The processes and their time.
//!
//! Each process, and all clients together, has a runtime of its own, whose time stands still until the world moves it. A process
//! that is killed loses its runtime, with every task in it. One that is frozen is not run, and finds later that time has passed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;

use landfall_core::clock::{Ahead, SimulatedTime};
use landfall_core::lifecycle::Stage;
use landfall_server::app::{App, Replacements, Simulated};
use landfall_server::blobs::Blobs;
use landfall_server::config::Config;
use landfall_server::queue::config::OptionalServices;
use landfall_store::SimulatedDatabase;

use crate::database::DatabaseFaults;
use crate::plan::{CIRCUIT_THRESHOLD, Fault, Plan};
use crate::receiver::Received;
use crate::services::{Stages, embedder};
use crate::shared::{Life, Shared};
use crate::storage::{Bucket, Storage};

/// What is the same for all histories.
pub struct Ground {
    /// As an earlier process left it: with the tables that the first one creates.
    used: SimulatedDatabase,
    /// One that no process has used. To create the tables makes SQLite parse all statements anew, so few histories begin here.
    new: SimulatedDatabase,
    pub config: Config,
    /// The statements that were prepared.
    prepared: Mutex<BTreeSet<String>>,
}

impl Ground {
    pub fn new(used: SimulatedDatabase, new: SimulatedDatabase, config: Config) -> Self {
        Self { used, new, config, prepared: Mutex::default() }
    }

    /// The database that a history begins with.
    pub fn database(&self, plan: &Plan) -> SimulatedDatabase {
        if plan.has_new_database { self.new.clone() } else { self.used.clone() }
    }

    /// Histories find the database as it is now.
    pub fn begin_here(&self) {
        self.used.begin_here().expect("nothing holds the database");
    }

    /// Makes the database again what it was before a history, if it is the one that most histories begin with.
    fn clear(&self, database: &SimulatedDatabase) {
        if database.is(&self.used) {
            database.begin_again().expect("nothing holds the database");
        }
    }

    /// Parses and plans these statements for all histories that follow. That changes nothing but their time.
    pub fn prepare<'a>(&self, statements: impl Iterator<Item = &'a String>) {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh: Vec<&String> = statements.filter(|sql| prepared.insert((*sql).clone())).collect();
        for database in [&self.used, &self.new] {
            database.prepare(fresh.iter().map(|sql| sql.as_str()));
        }
    }
}

/// A runtime whose time the world moves.
pub struct Machine {
    pub runtime: Runtime,
    time: SimulatedTime,
    /// Milliseconds of the world at which it began.
    since: u64,
    /// Up to when it was run.
    ran_until: u64,
}

/// How long a machine without anything to do may stand still, in milliseconds. Timeouts pass unseen for that long.
const LONGEST_REST: u64 = 1_000;

/// What a request to a simulated service, or to the storage, takes no longer than when the faults are over, in milliseconds.
const MOMENT: u64 = 40;

/// How often machines may wake each other within a tick. More waits for the next one.
const MOST_ROUNDS: usize = 100;

thread_local! {
    /// Who waits until no task of the machine that runs can go on, and whether that has come.
    static AT_REST: RefCell<(Option<Waker>, bool)> = const { RefCell::new((None, false)) };
}

/// Resolves when no other task of this runtime can go on. The runtime's time does not move until then.
async fn none_can_go_on() {
    let mut waits = false;
    std::future::poll_fn(|context| {
        AT_REST.with_borrow_mut(|(waker, is_at_rest)| {
            if waits && *is_at_rest {
                return Poll::Ready(());
            }
            (waits, *is_at_rest, *waker) = (true, false, Some(context.waker().clone()));
            Poll::Pending
        })
    })
    .await;
}

/// Called before a machine would let its time pass, because no task can go on.
fn come_to_rest() {
    let waker = AT_REST.with_borrow_mut(|(waker, is_at_rest)| {
        *is_at_rest = true;
        waker.take()
    });
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Machine {
    /// A machine that starts now, whose clock is ahead of the world's.
    pub fn start(shared: &Shared, ahead: Ahead) -> Self {
        let mut builder = Builder::new_current_thread();
        let built = builder.enable_time().start_paused(true).on_thread_park(come_to_rest).build();
        let runtime = built.expect("a runtime without I/O can always be built");
        let now = shared.now();
        let time = runtime.block_on(async { SimulatedTime::starting_at(shared.time(), ahead) });
        Self { runtime, time, since: now, ran_until: now }
    }

    /// Runs its tasks from one time of the world to another and until none of them can go on, or until `ends`.
    pub fn run(&mut self, from: u64, until: u64, ends: impl Future<Output = ()>) {
        self.ran_until = until;
        let (from, until) = (self.moment(from), self.moment(until));
        self.time.enter();
        self.runtime.block_on(async {
            // While it had nothing to do, its time stood still. It goes on before the first task sees it.
            #[expect(
                clippy::disallowed_methods,
                reason = "this is what moves the time of a simulated machine"
            )]
            let stood_at = tokio::time::Instant::now();
            tokio::time::advance(from.saturating_duration_since(stood_at)).await;
            tokio::select! {
                biased;
                () = ends => {}
                () = async {
                    tokio::time::sleep_until(until).await;
                    none_can_go_on().await;
                } => {}
            }
        });
    }

    /// Whether it has something to do by this time of the world: a sleep ends, another machine has woken a task of it, or it was
    /// not run for so long that a timeout may have passed.
    pub fn is_due(&self, until: u64) -> bool {
        self.time.ends_by(self.moment(until)) || self.is_woken() || until >= self.ran_until + LONGEST_REST
    }

    /// When it has something to do.
    fn next_due(&self, now: u64) -> u64 {
        if self.is_woken() {
            return now;
        }
        let rested = self.ran_until + LONGEST_REST;
        self.time.next_end().map_or(rested, |end| {
            let since_start = end.saturating_duration_since(self.time.origin()).as_millis();
            rested.min(self.since + u64::try_from(since_start).unwrap_or(u64::MAX))
        })
    }

    /// Whether another machine has woken a task of it.
    fn is_woken(&self) -> bool {
        self.runtime.metrics().global_queue_depth() > 0
    }

    fn moment(&self, at: u64) -> tokio::time::Instant {
        self.time.origin() + Duration::from_millis(at.saturating_sub(self.since))
    }

    /// Runs one task to its end, while all other machines stand still.
    pub fn finish<T>(&self, task: impl Future<Output = T>) -> T {
        self.time.enter();
        self.runtime.block_on(task)
    }
}

/// The processes that answer requests.
#[derive(Clone, Default)]
pub struct Directory(Arc<Mutex<Vec<(u32, Handle, App)>>>);

impl Directory {
    fn entries(&self) -> MutexGuard<'_, Vec<(u32, Handle, App)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, process: u32) {
        let removed: Vec<_> = self.entries().extract_if(.., |(number, ..)| *number == process).collect();
        drop(removed);
    }

    /// One of them.
    pub fn choose(&self, shared: &Shared) -> Option<(u32, Handle, App)> {
        let entries = self.entries();
        let place = usize::try_from(shared.number(entries.len() as u64)).unwrap_or(0);
        entries.get(place).cloned()
    }
}

pub struct World {
    pub shared: Arc<Shared>,
    ground: Arc<Ground>,
    pub database: SimulatedDatabase,
    pub bucket: Arc<Bucket>,
    pub received: Arc<Received>,
    pub directory: Directory,
    pub clients: Machine,
    processes: Vec<Process>,
    tick: u64,
}

struct Process {
    number: u32,
    lives: u32,
    living: Option<(Arc<Life>, Machine)>,
    /// When it is started again.
    starts_at: u64,
    /// The clock of its machine.
    ahead: Ahead,
}

impl World {
    pub fn new(shared: &Arc<Shared>, ground: Arc<Ground>) -> Self {
        let process = |number| Process {
            number,
            lives: 0,
            living: None,
            starts_at: u64::from(number) * 50,
            ahead: Ahead::of(shared.plan.skew(number)),
        };
        Self {
            processes: (1..=shared.plan.processes).map(process).collect(),
            shared: shared.clone(),
            database: ground.database(&shared.plan),
            ground,
            bucket: Arc::default(),
            received: Received::new(shared),
            directory: Directory::default(),
            clients: Machine::start(shared, Ahead::default()),
            tick: shared.plan.tick,
        }
    }

    /// How many files one process works on at a stage at once.
    pub fn slots_at(&self, stage: Stage) -> usize {
        let stages = self.ground.config.queue.stages.iter();
        stages.filter(|of| of.stage == stage).map(|of| of.concurrency).sum()
    }

    pub fn slow_down(&mut self, tick: u64) {
        self.tick = tick;
    }

    /// Whether no machine is in the middle of something: nothing that it waits for ends in the next moment.
    pub fn is_quiet(&self) -> bool {
        self.next() > self.shared.now() + MOMENT
    }

    /// Lets time pass in which no machine runs. Each of them finds then that all sleeps that ended meanwhile are over, as after a
    /// freeze of them all, and runs each loop once.
    pub fn sleep(&self, milliseconds: u64) {
        self.shared.set_now(self.shared.now() + milliseconds);
    }

    /// Moves the world on by one tick, after those in which nothing happens, but not beyond `until` before the last.
    pub fn go_on(&mut self, until: u64) {
        let next = self.next().min(until);
        let quiet = next.saturating_sub(self.shared.now() + 1) / self.tick;
        self.shared.set_now(self.shared.now() + quiet * self.tick);
        let before = self.shared.now();
        let now = before + self.tick;
        self.strike(before, now);
        if self.clients.is_due(now) {
            self.clients.run(before, now, std::future::pending());
        }
        let first = usize::try_from(self.shared.number(self.processes.len() as u64)).unwrap_or(0);
        for place in 0..self.processes.len() {
            let place = (first + place) % self.processes.len();
            self.run(place, before, now);
        }
        self.let_answers_arrive(first, now);
        self.shared.set_now(now);
    }

    /// The earliest time at which something may happen.
    fn next(&self) -> u64 {
        let now = self.shared.now();
        let of_process = |process: &Process| {
            process.living.as_ref().map_or(process.starts_at, |(_, machine)| machine.next_due(now))
        };
        let turn = self.shared.plan.next_turn(now).filter(|_| !self.shared.is_calm());
        let machines = self.processes.iter().map(of_process).chain([self.clients.next_due(now)]);
        machines.chain(turn).min().unwrap_or(now)
    }

    /// Runs the machines that others have woken, until there are none. Otherwise each answer, and each turn at the database, would take
    /// a tick.
    fn let_answers_arrive(&mut self, first: usize, now: u64) {
        for _ in 0..MOST_ROUNDS {
            let mut is_quiet = true;
            if self.clients.is_woken() {
                is_quiet = false;
                self.clients.run(now, now, std::future::pending());
            }
            for place in 0..self.processes.len() {
                let place = (first + place) % self.processes.len();
                let is_woken = |(life, machine): &(Arc<Life>, Machine)| !life.is_over() && machine.is_woken();
                if self.processes[place].living.as_ref().is_some_and(is_woken)
                    && !self.is_frozen(self.processes[place].number)
                {
                    is_quiet = false;
                    self.run(place, now, now);
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    /// The faults that happen at a time.
    fn strike(&mut self, from: u64, to: u64) {
        if self.shared.is_calm() {
            return;
        }
        for fault in &self.shared.plan.faults {
            match fault {
                Fault::Crash { process, at } if (from..to).contains(at) => {
                    let process = &self.processes[*process as usize - 1];
                    if let Some((life, _)) = &process.living {
                        life.end("crash");
                    }
                }
                Fault::LockLost { process, at } if (from..to).contains(at) => {
                    self.shared.trace().reached(fault.name());
                    self.shared.tell(|| format!("process {process} loses its lock"));
                    self.database.release_locks(*process);
                }
                Fault::ClockJump { process, at, by } if (from..to).contains(at) => {
                    self.shared.trace().reached(fault.name());
                    self.shared.tell(|| format!("the clock of process {process} jumps by {by} ms"));
                    self.processes[*process as usize - 1].ahead.jump(*by);
                }
                _ => {}
            }
        }
    }

    fn is_frozen(&self, process: u32) -> bool {
        self.shared.is_under(|fault| match fault {
            Fault::Freeze { process: of, at, lasts } if *of == process => Some((*at, *lasts)),
            _ => None,
        })
    }

    fn run(&mut self, place: usize, before: u64, now: u64) {
        let number = self.processes[place].number;
        if self.is_frozen(number) {
            return;
        }
        if self.processes[place].living.is_none() && self.processes[place].starts_at <= now {
            self.start(place);
        }
        let Some((life, machine)) = &mut self.processes[place].living else { return };
        if !life.is_over() && machine.is_due(now) {
            machine.run(before, now, life.over.notified());
        }
        if life.is_over() {
            self.bury(place, now);
        }
    }

    fn bury(&mut self, place: usize, now: u64) {
        let process = &mut self.processes[place];
        self.directory.remove(process.number);
        if let Some((life, machine)) = process.living.take() {
            // What it drops now must not see another process's time.
            machine.time.enter();
            drop(machine);
            drop(life);
        }
        self.database.release_locks(process.number);
        process.starts_at = now + 200 + self.shared.number(4_000);
    }

    fn start(&mut self, place: usize) {
        let shared = &self.shared;
        let process = &mut self.processes[place];
        let (number, ahead) = (process.number, process.ahead.clone());
        process.lives += 1;
        let life = Life::new(shared, number, process.lives == 1);
        let machine = Machine::start(shared, ahead.clone());
        shared.tell(|| format!("process {number} starts"));
        if !ahead.delta().is_zero() {
            shared.trace().reached("skew");
        }
        machine.time.enter();
        let starting = Starting {
            config: self.ground.config.clone(),
            database: self.database.clone(),
            life: life.clone(),
            blobs: Blobs::made(Arc::new(Storage::new(&self.bucket, shared, Some(life.clone())))),
            received: self.received.clone(),
            directory: self.directory.clone(),
            handle: machine.runtime.handle().clone(),
            name: format!("process {number}, life {}", process.lives),
            ahead,
        };
        machine.runtime.spawn(starting.run());
        process.living = Some((life, machine));
    }

    /// Everything comes to a rest: the faults are over.
    pub fn calm(&mut self) {
        self.shared.tell(|| "the faults are over".to_owned());
        if self.shared.plan.ends_alone {
            for process in self.processes.iter_mut().skip(1) {
                if let Some((life, _)) = &process.living {
                    life.end("crash");
                }
            }
            for place in 1..self.processes.len() {
                self.bury(place, 0);
                self.processes[place].starts_at = u64::MAX;
            }
        }
        self.shared.calm();
    }

    /// Ends it, and leaves the ground as it was found.
    pub fn end(mut self) {
        for place in 0..self.processes.len() {
            self.bury(place, 0);
        }
        let Self { clients, database, ground, .. } = self;
        clients.time.enter();
        drop(clients);
        ground.clear(&database);
    }
}

/// A process that starts.
struct Starting {
    config: Config,
    database: SimulatedDatabase,
    life: Arc<Life>,
    blobs: Blobs,
    received: Arc<Received>,
    directory: Directory,
    handle: Handle,
    name: String,
    ahead: Ahead,
}

impl Starting {
    async fn run(self) {
        let faults = Arc::new(DatabaseFaults(self.life.clone()));
        let db = self.database.connect(self.life.process, self.ahead, Some(faults));
        let stages = Stages { life: self.life.clone(), db: db.clone(), blobs: self.blobs.clone() };
        let replacements = Replacements {
            work: Some(Arc::new(stages)),
            simulated: Some(Box::new(Simulated {
                name: self.name,
                db,
                blobs: self.blobs,
                embedder: embedder(),
                receiver: self.received.of(&self.life),
            })),
            ..Replacements::default()
        };
        let mut config = self.config;
        let plan = &self.life.shared.plan;
        config.intake.batch_timeout = plan.batch_timeout;
        let services =
            OptionalServices { scanner: true, gateway: plan.has_gateway, embeddings: plan.has_embeddings };
        for stage in &mut config.queue.stages {
            stage.services = services.of_stage(stage.stage);
        }
        config.queue.breaker.threshold = CIRCUIT_THRESHOLD;
        if let Some(patience) = plan.patience() {
            config.queue.breaker.patience = patience;
        }
        match Box::pin(App::start(config, replacements)).await {
            Ok(app) => {
                self.directory.entries().push((self.life.process, self.handle, app.clone()));
                app.run(CancellationToken::new()).await;
            }
            Err(error) => {
                let process = self.life.process;
                self.life.shared.tell(|| format!("process {process} cannot start: {error}"));
            }
        }
        self.life.end("could not start");
    }
}
