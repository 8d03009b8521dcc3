//! What all parts of a history share: its plan, its chance, its time, its trace.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Notify;

use landfall_core::clock::Time;
use landfall_core::service::Service;

use crate::plan::{Fault, Plan};
use crate::trace::{Detail, Trace};

/// The earliest time at which a history begins, in seconds since 1970.
const BEGINNING: i64 = 1_800_000_000;

pub struct Shared {
    pub plan: Plan,
    chance: Mutex<StdRng>,
    trace: Mutex<Trace>,
    /// Milliseconds since the beginning.
    now: AtomicU64,
    /// Whether the faults are over.
    is_calm: AtomicBool,
}

impl Shared {
    pub fn new(plan: Plan, detail: Detail) -> Arc<Self> {
        Arc::new(Self {
            chance: Mutex::new(StdRng::seed_from_u64(plan.seed ^ 0x6368_616e)),
            trace: Mutex::new(Trace::new(detail)),
            plan,
            now: AtomicU64::new(0),
            is_calm: AtomicBool::new(false),
        })
    }

    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The time at which the clocks of the world began.
    pub fn beginning(&self) -> Time {
        Time::from_timestamp(BEGINNING + self.plan.later, 0).expect("a time")
    }

    /// What a clock shows that is right.
    pub fn time(&self) -> Time {
        self.beginning() + TimeDelta::milliseconds(i64::try_from(self.now()).unwrap_or(i64::MAX))
    }

    pub fn set_now(&self, now: u64) {
        self.now.store(now, Ordering::Relaxed);
    }

    /// Whether the steps of the history are counted.
    pub fn is_counted(&self) -> bool {
        self.trace().is_counted()
    }

    pub fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    pub fn calm(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
    }

    /// Whether something happens that happens so often in a thousand times. Never when the faults are over.
    pub fn happens(&self, rate: u32, what: &'static str) -> bool {
        if rate == 0 || self.is_calm() {
            return false;
        }
        let happens = self.number(1_000) < u64::from(rate);
        if happens {
            self.trace().reached(what);
        }
        happens
    }

    /// A number from 0 up to this one.
    pub fn number(&self, below: u64) -> u64 {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner).random_range(0..below.max(1))
    }

    pub fn trace(&self) -> MutexGuard<'_, Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line of the story.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        let now = self.now();
        self.trace().tell(now, line);
    }

    pub fn is_down(&self, service: Service) -> bool {
        self.is_under(|fault| match fault {
            Fault::Outage { service: down, at, lasts } if *down == service => Some((*at, *lasts)),
            _ => None,
        })
    }

    pub fn disk_is_full(&self) -> bool {
        self.is_under(|fault| match fault {
            Fault::FullDisk { at, lasts } => Some((*at, *lasts)),
            _ => None,
        })
    }

    /// Whether a fault of this kind lasts now.
    pub fn is_under(&self, of: impl Fn(&Fault) -> Option<(u64, u64)>) -> bool {
        let now = self.now();
        let lasting = |fault: &&Fault| of(fault).is_some_and(|(at, lasts)| (at..at + lasts).contains(&now));
        let Some(fault) = (!self.is_calm()).then(|| self.plan.faults.iter().find(lasting)).flatten() else {
            return false;
        };
        self.trace().reached(fault.name());
        true
    }
}

/// One life of one process.
pub struct Life {
    pub shared: Arc<Shared>,
    pub process: u32,
    steps: AtomicU64,
    /// The steps at which this life ends, and whether after the commit that follows.
    ends_at: Vec<(u64, bool)>,
    is_over: AtomicBool,
    pub over: Notify,
}

impl Life {
    pub fn new(shared: &Arc<Shared>, process: u32, is_first: bool) -> Arc<Self> {
        let ends = |fault: &Fault| match fault {
            Fault::CrashAtStep { process: of, step, after } if *of == process && is_first => {
                Some((*step, *after))
            }
            _ => None,
        };
        Arc::new(Self {
            ends_at: shared.plan.faults.iter().filter_map(ends).collect(),
            shared: shared.clone(),
            process,
            steps: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            over: Notify::new(),
        })
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Ends it. From here on none of its calls returns.
    pub fn end(&self, why: &'static str) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            self.shared.trace().reached(why);
            self.shared.tell(|| format!("process {} dies: {why}", self.process));
            self.over.notify_one();
        }
    }

    /// Counts a database step, and returns whether this life ends before it, or after the next commit.
    pub fn step(&self) -> (bool, bool) {
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        if self.shared.is_calm() {
            return (false, false);
        }
        let ends_before = self.ends_at.contains(&(step, false));
        (ends_before, self.ends_at.iter().any(|(at, after)| *after && *at <= step))
    }

    pub fn cannot_reach_database(&self) -> bool {
        self.shared.is_under(|fault| match fault {
            Fault::NoDatabase { process, at, lasts } if *process == self.process => Some((*at, *lasts)),
            _ => None,
        })
    }

    pub fn cannot_reach_storage(&self) -> bool {
        self.shared.is_under(|fault| match fault {
            Fault::NoStorage { process, at, lasts } if *process == self.process => Some((*at, *lasts)),
            _ => None,
        })
    }
}
