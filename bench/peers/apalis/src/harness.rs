//! The task, the phases, and the count of the stages.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Flows,
    Latency,
    /// Takes a job and never finishes it, until the runner kills this process.
    Hold,
    /// Waits for the job that the killed process held.
    Take,
}

#[derive(Debug, Deserialize)]
pub struct Task {
    pub mode: Mode,
    #[serde(default)]
    pub files: u64,
    /// The address of PostgreSQL.
    pub url: Option<String>,
    /// The file of SQLite.
    pub file: Option<String>,
    pub slots: usize,
    pub batch: usize,
}

impl Task {
    pub fn from_environment() -> anyhow::Result<Self> {
        let task = std::env::var("PEER_TASK").context("PEER_TASK is not set; bench/peers/run sets it")?;
        serde_json::from_str(&task).context("PEER_TASK is not a task")
    }
}

pub fn print(line: &Value) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}

/// What a phase has used: real time, and the CPU time of this process.
#[derive(Default)]
pub struct Phases(Option<(Instant, Duration)>);

impl Phases {
    /// Prints what the phase has used, and waits until the runner has read the CPU time of the database.
    pub fn end(&mut self, name: &str, more: Value) -> anyhow::Result<()> {
        let mut line = json!({ "phase": name });
        if let Some((began, cpu)) = self.0 {
            line["ms"] = (began.elapsed().as_secs_f64() * 1e3).into();
            line["client_cpu_ms"] = ((own_cpu() - cpu).as_secs_f64() * 1e3).into();
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            line[key] = value.clone();
        }
        print(&line)?;
        std::io::stdin().read_line(&mut String::new())?;
        self.0 = Some((Instant::now(), own_cpu()));
        Ok(())
    }
}

/// The CPU time of all threads of this process.
fn own_cpu() -> Duration {
    // SAFETY: `rusage` consists of integers, for which zero is a value, and the pointer is valid for the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), 0, "a process can read its own usage");
        usage
    };
    [usage.ru_utime, usage.ru_stime]
        .map(|time| {
            Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_usec).unwrap_or(0) * 1_000)
        })
        .iter()
        .sum()
}

/// Counts the stages that were run.
#[derive(Clone)]
pub struct Tally {
    mode: Mode,
    counts: Arc<[AtomicU64; 3]>,
    /// How many stages of each file have run.
    stages_run: Arc<[AtomicUsize]>,
    out_of_order: Arc<AtomicU64>,
    changed: watch::Sender<()>,
}

impl Tally {
    pub fn new(mode: Mode, files: u64) -> Self {
        Self {
            mode,
            counts: Arc::default(),
            stages_run: (0..files).map(|_| AtomicUsize::new(0)).collect(),
            out_of_order: Arc::default(),
            changed: watch::Sender::new(()),
        }
    }

    pub async fn reached(&self, stage: usize, file: u64) {
        if self.mode == Mode::Hold {
            let _ = print(&json!({ "phase": "held" }));
            return std::future::pending().await;
        }
        let run = usize::try_from(file).ok().and_then(|file| self.stages_run.get(file));
        if run.is_none_or(|run| run.swap(stage + 1, Ordering::Relaxed) != stage) {
            self.out_of_order.fetch_add(1, Ordering::Relaxed);
        }
        self.counts[stage].fetch_add(1, Ordering::Relaxed);
        if stage == 2 || self.mode == Mode::Take {
            self.changed.send_replace(());
        }
    }

    pub fn counts(&self) -> [u64; 3] {
        std::array::from_fn(|stage| self.counts[stage].load(Ordering::Relaxed))
    }

    pub fn out_of_order(&self) -> u64 {
        self.out_of_order.load(Ordering::Relaxed)
    }

    /// Waits until the last stage has run this often.
    pub async fn all(&self, count: u64) {
        self.until(|counts| counts[2] >= count).await;
    }

    /// Waits until the first stage has run.
    pub async fn started(&self) {
        self.until(|counts| counts[0] > 0).await;
    }

    async fn until(&self, reached: impl Fn([u64; 3]) -> bool) {
        let mut changes = self.changed.subscribe();
        while !reached(self.counts()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}
