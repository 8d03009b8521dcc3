//! CPU time and memory of processes, a stopwatch, and statistics.

use std::time::{Duration, Instant};

/// The CPU time of all threads of this process.
pub fn own_cpu() -> Duration {
    const PROCESS_CPU_TIME: i32 = 2;
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the C library is linked into every program here; on 64-bit Linux this is the layout of `timespec`, and
    // the pointer is valid for the call.
    let result = unsafe { clock_gettime(PROCESS_CPU_TIME, &raw mut time) };
    assert_eq!(result, 0, "the clock of the process can be read");
    Duration::new(
        u64::try_from(time.seconds).expect("no process has used negative time"),
        u32::try_from(time.nanoseconds).expect("less than a second"),
    )
}

/// The peak memory of this process, in MiB.
pub fn peak_memory() -> f64 {
    status("VmHWM:")
}

/// The memory of this process, in MiB.
pub fn memory() -> f64 {
    status("VmRSS:")
}

fn status(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux reports the status of a process");
    let kibibytes: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .expect("it is a number of kB");
    kibibytes / 1024.0
}

/// The CPU time of a process with a single thread. `None` if it does not exist or runs on another machine.
pub fn cpu_of(process: i64) -> Option<ProcessTimes> {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).ok();
    let stat = read("stat")?;
    // The name in parentheses may contain anything, so count from behind it.
    let (before, rest) = stat.rsplit_once(')')?;
    let fields: Vec<u64> = rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    // These are ticks of a hundredth of a second; `schedstat` has nanoseconds, if the kernel provides it.
    let ticks = |first: usize| Duration::from_millis((fields[first] + fields[first + 1]) * 10);
    let nanoseconds = read("schedstat").and_then(|text| text.split_whitespace().next()?.parse().ok());
    Some(ProcessTimes {
        name: before.split_once('(')?.1.to_owned(),
        parent: i64::try_from(fields[1]).ok()?,
        own: nanoseconds.map_or_else(|| ticks(11), Duration::from_nanos),
        ended_children: ticks(13),
    })
}

pub struct ProcessTimes {
    pub name: String,
    pub parent: i64,
    pub own: Duration,
    pub ended_children: Duration,
}

/// The CPU time of a process, its children and its ended children.
pub fn cpu_of_family(parent: i64) -> Duration {
    let children = std::fs::read_dir("/proc")
        .expect("Linux lists processes")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(cpu_of)
        .filter(|process| process.parent == parent)
        .map(|process| process.own)
        .sum::<Duration>();
    children + cpu_of(parent).map_or(Duration::ZERO, |process| process.own + process.ended_children)
}

/// A stopwatch for real time and for the CPU time of this process.
pub struct Stopwatch {
    began: Instant,
    cpu: Duration,
}

impl Stopwatch {
    pub fn start() -> Self {
        Self { began: Instant::now(), cpu: own_cpu() }
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn cpu(&self) -> Duration {
        own_cpu().saturating_sub(self.cpu)
    }
}

pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value that this share of the values does not exceed.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1).expect("there is something to measure");
    sorted[(last as f64 * share).round() as usize]
}

pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
