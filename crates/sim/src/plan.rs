//! What happens in a history, drawn from its seed: the processes, the files and their clients, and the faults.
//!
//! Each seed draws its own mix (a swarm): most histories have a few kinds of faults, and some have none. The plan lists its faults
//! and files one by one, so that a failing history can be repeated without some of them.

mod draw;

use std::collections::BTreeSet;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use draw::{draw_faults, draw_files, draw_mix};
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;

/// In one of so many histories, most documents are bad in the same way: some faults need two of a kind.
const MANY_ALIKE: u64 = 8;

/// One of so many histories begins with a database that no process has used. It costs five times as much as another: to create the tables
/// makes SQLite parse all statements anew.
const NEW_DATABASES: u32 = 128;

/// How many files a service fails until its circuit opens.
pub const CIRCUIT_THRESHOLD: u32 = 5;

/// How long files wait for a service where nothing but this ends their wait: longer than any outage.
const LONG_PATIENCE: Duration = Duration::from_mins(10);

/// How much happens in a history. A small one costs a fifth of a large one, and most faults need no more.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// How long clients and faults are active, in milliseconds. What they began may last longer.
    active: u64,
    files: &'static [usize],
    faults: &'static [usize],
}

impl Size {
    const SMALL: Self = Self { active: 4_000, files: &[1, 2], faults: &[0, 1, 1, 2] };
    const MEDIUM: Self = Self { active: 8_000, files: &[2, 3, 4], faults: &[0, 1, 2, 3] };
    const LARGE: Self = Self { active: 20_000, files: &[3, 5, 8], faults: &[0, 1, 2, 3, 5] };

    fn draw(random: &mut StdRng) -> Self {
        match random.random_range(0..6) {
            0..3 => Self::SMALL,
            3 | 4 => Self::MEDIUM,
            _ => Self::LARGE,
        }
    }
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Plan {
    pub seed: u64,
    pub size: Size,
    pub processes: u32,
    /// Seconds between the hour at which histories begin and the beginning of this one, so that jobs of the calendar fall into it.
    pub later: i64,
    /// How far the processes may run ahead of each other, in milliseconds.
    pub tick: u64,
    pub mix: Mix,
    pub faults: Vec<Fault>,
    pub files: Vec<FilePlan>,
    pub outages: Outages,
    /// Whether a service extracts the text, and not this program. The same for the embeddings.
    pub has_gateway: bool,
    pub has_embeddings: bool,
    /// Whether the first process creates the tables.
    pub has_new_database: bool,
    pub has_webhook: bool,
    pub has_readers: bool,
    /// Whether the first process is the only one left when the faults are over.
    pub ends_alone: bool,
    /// Whether the faults that last longer than the active time come to their own end.
    pub is_long: bool,
    /// How long after its opening a batch expires.
    pub batch_timeout: Duration,
    /// How long a file waits for a service, if that is less than its outages may last.
    patience: Option<Duration>,
}

/// What a service does that is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outages {
    /// It answers that it is not available.
    NotAvailable,
    NotReached,
}

/// How often small faults happen, in a thousand.
#[derive(Debug, Clone, Default)]
pub struct Mix {
    /// A database step takes some time.
    pub slow_steps: u32,
    /// A database step fails.
    pub lost_steps: u32,
    /// The answer to a commit is lost.
    pub lost_commits: u32,
    /// The object store does what it was asked, and its answer is lost.
    pub lost_puts: u32,
    /// The object store refuses for a moment.
    pub throttled: u32,
    /// For how long a new object is in no listing, in milliseconds.
    pub listing_lag: u64,
    /// The answer to a client is lost.
    pub lost_answers: u32,
    /// A stage takes long.
    pub slow_stages: u32,
    /// The receiver of webhooks fails, or its answer is lost.
    pub bad_receiver: u32,
}

impl Mix {
    pub const NAMES: [&'static str; 9] = [
        "slow steps",
        "lost steps",
        "lost commits",
        "lost puts",
        "throttling",
        "listing lag",
        "lost answers",
        "slow stages",
        "bad receiver",
    ];

    /// Turns one kind off, by its place in the list of names. Returns whether it was on.
    pub fn turn_off(&mut self, kind: usize) -> bool {
        let rate = match kind {
            0 => &mut self.slow_steps,
            1 => &mut self.lost_steps,
            2 => &mut self.lost_commits,
            3 => &mut self.lost_puts,
            4 => &mut self.throttled,
            5 => return std::mem::take(&mut self.listing_lag) > 0,
            6 => &mut self.lost_answers,
            7 => &mut self.slow_stages,
            _ => &mut self.bad_receiver,
        };
        std::mem::take(rate) > 0
    }
}

/// A fault that happens once. Times are milliseconds since the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed right before this database step of its first life, or right after the commit that follows.
    CrashAtStep {
        process: u32,
        step: u64,
        after: bool,
    },
    Crash {
        process: u32,
        at: u64,
    },
    Freeze {
        process: u32,
        at: u64,
        lasts: u64,
    },
    /// The process cannot reach its database.
    NoDatabase {
        process: u32,
        at: u64,
        lasts: u64,
    },
    /// The process cannot reach the object store.
    NoStorage {
        process: u32,
        at: u64,
        lasts: u64,
    },
    Outage {
        service: Service,
        at: u64,
        lasts: u64,
    },
    FullDisk {
        at: u64,
        lasts: u64,
    },
    /// The process loses the lock that shows that it is alive.
    LockLost {
        process: u32,
        at: u64,
    },
    /// The clock of its machine is wrong by this many milliseconds.
    Skew {
        process: u32,
        ahead: i64,
    },
    /// The clock of its machine is set to another time.
    ClockJump {
        process: u32,
        at: u64,
        by: i64,
    },
}

impl Fault {
    pub fn name(&self) -> &'static str {
        match self {
            Self::CrashAtStep { after: false, .. } => "crash before a step",
            Self::CrashAtStep { after: true, .. } => "crash after a commit",
            Self::Crash { .. } => "crash",
            Self::Freeze { .. } => "freeze",
            Self::NoDatabase { .. } => "no database",
            Self::NoStorage { .. } => "no storage",
            Self::Outage { .. } => "outage",
            Self::FullDisk { .. } => "full disk",
            Self::LockLost { .. } => "lock lost",
            Self::Skew { .. } => "skew",
            Self::ClockJump { .. } => "clock jump",
        }
    }

    /// Whether a process cannot use this service while it lasts.
    fn takes_away(&self, service: Service) -> bool {
        match self {
            Self::Outage { service: down, .. } => *down == service,
            Self::NoStorage { .. } => service == Service::Storage,
            _ => false,
        }
    }

    /// From when to when it lasts, if it is bound to a time.
    fn lasts(&self) -> Option<(u64, u64)> {
        match self {
            Self::CrashAtStep { .. } | Self::Skew { .. } => None,
            Self::Crash { at, .. } | Self::LockLost { at, .. } | Self::ClockJump { at, .. } => {
                Some((*at, *at))
            }
            Self::Freeze { at, lasts, .. }
            | Self::NoDatabase { at, lasts, .. }
            | Self::NoStorage { at, lasts, .. }
            | Self::Outage { at, lasts, .. }
            | Self::FullDisk { at, lasts } => Some((*at, at + lasts)),
        }
    }
}

/// What a document does to those who work on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Innocent,
    /// The reader refuses it.
    Damaged,
    Infected,
    /// The extraction service fails with it, each time.
    BreaksGateway,
    /// It has no text.
    Empty,
    /// The process that works on it dies.
    Kills,
}

impl Kind {
    /// The reasons for which such a file may fail.
    pub fn reasons(self) -> &'static [&'static str] {
        match self {
            Self::Innocent => &[],
            Self::Damaged => &["PARSE_ERROR"],
            Self::Infected => &["INFECTED"],
            // Its last attempt may have met an outage of the same service.
            Self::BreaksGateway => &["GW_5XX", "GW_UNAVAILABLE"],
            Self::Empty => &["NO_TEXT"],
            Self::Kills => &["WORKER_LOST"],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    Whole,
    Twice,
    /// Too few bytes first, then all of them.
    ShortFirst,
    /// In one request that comes in pieces.
    InPieces,
    /// In several requests (tus), the last of which confirms it.
    Resumable,
    /// Straight to the object store.
    Direct,
    /// The client vanishes after its registration.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirming {
    Once,
    Twice,
    /// The client vanishes after it sent the bytes.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Nothing,
    Cancel,
    Delete,
    Retry,
    Search,
    DeleteAmongMany,
    /// Cancels the batch with all its files. A file without a batch is cancelled alone.
    CancelBatch,
    CancelAndRetry,
}

impl Then {
    /// Whether a client may do it with a file that it did not confirm.
    pub fn needs_no_confirmation(self) -> bool {
        matches!(self, Self::Delete | Self::DeleteAmongMany | Self::CancelBatch)
    }
}

/// A file and what its client does with it.
#[derive(Debug, Clone)]
pub struct FilePlan {
    /// Its name, which is also the key of its registration.
    pub name: String,
    pub tenant: usize,
    pub kind: Kind,
    pub in_batch: bool,
    pub begins: u64,
    pub sending: Sending,
    pub confirming: Confirming,
    pub then: Then,
    /// How long after the confirmation.
    pub wait: u64,
    /// Whether the client asks for that only once, and vanishes.
    pub asks_once: bool,
}

impl FilePlan {
    /// The bytes of the file, different for each.
    pub fn bytes(&self) -> Vec<u8> {
        format!("The wind of {} comes from the west", self.word()).into_bytes()
    }

    /// The stage at which it ends its worker, if it does that.
    pub fn kills_at(&self) -> Stage {
        let number = usize::from(self.name.bytes().next().unwrap_or_default());
        Stage::ALL[(number + self.tenant) % Stage::ALL.len()]
    }

    /// A word that only this file has.
    pub fn word(&self) -> String {
        format!("zephyr{}", self.name.replace(['-', '.'], ""))
    }
}

/// What is left out of a history that is repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Without {
    pub faults: BTreeSet<usize>,
    pub files: BTreeSet<usize>,
    /// Kinds of small faults.
    pub kinds: BTreeSet<usize>,
}

impl Plan {
    pub fn draw(seed: u64, without: &Without) -> Self {
        let mut random = StdRng::seed_from_u64(seed ^ 0x706c_616e);
        let size = Size::draw(&mut random);
        let processes = *[1, 1, 2, 2, 3].choose(&mut random).expect("not empty");
        let mut plan = Self {
            seed,
            size,
            processes,
            later: random.random_range(0..120),
            tick: *[10, 25, 50].choose(&mut random).expect("not empty"),
            mix: draw_mix(&mut random),
            faults: draw_faults(&mut random, size, processes),
            files: draw_files(&mut random, size),
            has_gateway: random.random(),
            has_embeddings: random.random(),
            has_new_database: random.random_ratio(1, NEW_DATABASES),
            has_webhook: random.random_ratio(1, 3),
            has_readers: random.random_ratio(1, 2),
            ends_alone: random.random_ratio(4, 5),
            is_long: random.random_ratio(1, 4),
            batch_timeout: Duration::from_secs(random.random_range(5..120)),
            patience: random.random_ratio(1, 6).then(|| Duration::from_secs(random.random_range(5..30))),
            outages: if random.random() { Outages::NotAvailable } else { Outages::NotReached },
        };
        if seed.is_multiple_of(MANY_ALIKE) {
            plan.make_alike();
        }
        if !plan.has_gateway {
            for file in plan.files.iter_mut().filter(|file| file.kind == Kind::BreaksGateway) {
                file.kind = Kind::Damaged;
                file.name = file.name.replace("BreaksGateway", "Damaged");
            }
        }
        plan.add_outage();
        plan.leave_out(without);
        plan
    }

    /// Lets the extraction service fail in half of the histories with documents that it cannot read: it takes both to see
    /// whether such a document is told from an outage. From a chance of its own, so that all else is as it was drawn.
    fn add_outage(&mut self) {
        let mut random = StdRng::seed_from_u64(self.seed ^ 0x6f75_7467);
        if self.files.iter().any(|file| file.kind == Kind::BreaksGateway) && random.random() {
            let at = random.random_range(200..self.size.active);
            let lasts = random.random_range(5_000..60_000);
            self.faults.push(Fault::Outage { service: Service::Gateway, at, lasts });
        }
    }

    /// Makes most documents bad in the same way. From a chance of its own, so that all else is as it was drawn.
    fn make_alike(&mut self) {
        let mut random = StdRng::seed_from_u64(self.seed ^ 0x616c_696b);
        let kinds = [Kind::Damaged, Kind::Infected, Kind::BreaksGateway, Kind::Empty, Kind::Kills];
        let kind = *kinds.choose(&mut random).expect("not empty");
        self.has_gateway |= kind == Kind::BreaksGateway;
        for (number, file) in self.files.iter_mut().enumerate() {
            if random.random_ratio(2, 3) {
                (file.kind, file.name) = (kind, format!("{number}-{kind:?}.txt"));
            }
        }
    }

    /// Whether this installation calls such a service.
    pub fn calls(&self, service: Service) -> bool {
        match service {
            Service::Gateway => self.has_gateway,
            Service::Embeddings => self.has_embeddings,
            Service::Scanner | Service::Storage => true,
        }
    }

    fn leave_out(&mut self, without: &Without) {
        for kind in &without.kinds {
            self.mix.turn_off(*kind);
        }
        let mut place = 0..;
        self.faults.retain(|_| !without.faults.contains(&place.next().expect("endless")));
        let mut place = 0..;
        self.files.retain(|_| !without.files.contains(&place.next().expect("endless")));
    }

    /// When the faults are over.
    pub fn calm_from(&self) -> u64 {
        let ends = self.faults.iter().filter_map(Fault::lasts).map(|(_, end)| end);
        ends.filter(|_| self.is_long).fold(self.size.active, u64::max)
    }

    /// The next time, from this one on, at which a fault begins or ends.
    pub fn next_turn(&self, now: u64) -> Option<u64> {
        let turns = self.faults.iter().filter_map(Fault::lasts).flat_map(|(from, to)| [from, to]);
        turns.filter(|turn| *turn >= now).min()
    }

    /// Whether nothing keeps a file that is due from being taken at once.
    pub fn is_undisturbed(&self) -> bool {
        let mix = &self.mix;
        self.faults.is_empty()
            && self.files.iter().all(|file| file.kind != Kind::Kills)
            && mix.slow_steps + mix.lost_steps + mix.lost_commits + mix.slow_stages == 0
    }

    /// Whether there are so many documents that the extraction service cannot read that they alone look like an outage of it.
    pub fn may_keep_a_circuit_open(&self) -> bool {
        let breaking = self.files.iter().filter(|file| file.kind == Kind::BreaksGateway).count();
        breaking >= usize::try_from(CIRCUIT_THRESHOLD).unwrap_or(usize::MAX)
    }

    /// How long a file waits for a service, if its wait may end in this history.
    pub fn patience(&self) -> Option<Duration> {
        self.patience.or_else(|| self.may_keep_a_circuit_open().then_some(LONG_PATIENCE))
    }

    /// Whether files lose their patience in this history while an outage lasts.
    pub fn has_short_patience(&self) -> bool {
        self.patience.is_some()
    }

    /// Whether a file may fail for this reason because a service was down for longer than files wait for it.
    pub fn may_give_up_for(&self, reason: &str) -> bool {
        let may_be_down = |service: Service| {
            self.faults.iter().any(|fault| fault.takes_away(service))
                // Its circuit is also open after documents that it cannot read.
                || (service == Service::Gateway && self.files.iter().any(|file| file.kind == Kind::BreaksGateway))
        };
        let gives_up_for = |service: Service| {
            self.calls(service) && Code::of_outage(service).name() == reason && may_be_down(service)
        };
        self.has_short_patience() && Service::ALL.into_iter().any(gives_up_for)
    }

    /// The skew of a process's machine, in milliseconds.
    pub fn skew(&self, process: u32) -> i64 {
        let skew = |fault: &Fault| match fault {
            Fault::Skew { process: of, ahead } if *of == process => Some(*ahead),
            _ => None,
        };
        self.faults.iter().find_map(skew).unwrap_or(0)
    }
}

/// Milliseconds as the time since the beginning.
pub fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
