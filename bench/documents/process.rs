//! CPU time and memory of a process with threads and children, as Linux reports them.

use std::fs;
use std::time::Duration;

use anyhow::Context;

/// The CPU time of all threads of a process, of its children, and of its ended children.
pub fn cpu_of_tree(process: u32) -> anyhow::Result<Duration> {
    let all: Vec<Times> = fs::read_dir("/proc")?
        .filter_map(|entry| times_of(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut family = vec![process];
    // The list grows while it is walked: children of children count too.
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(all.iter().filter(|times| times.parent == parent).map(|times| times.process));
        next += 1;
    }
    anyhow::ensure!(all.iter().any(|times| times.process == process), "process {process} is not running");
    Ok(all.iter().filter(|times| family.contains(&times.process)).map(|times| times.used).sum())
}

struct Times {
    process: u32,
    parent: u32,
    used: Duration,
}

fn times_of(process: u32) -> Option<Times> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything, so count from behind it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
    // In user mode and in the kernel, by itself and by children that ended; in hundredths of a second.
    let hundredths: u64 = (11..=14).map(number).sum::<Option<u64>>()?;
    Some(Times {
        process,
        parent: fields.get(1)?.parse().ok()?,
        used: Duration::from_millis(hundredths * 10),
    })
}

/// The peak memory of a process, in MiB.
pub fn peak_memory(process: u32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let kibibytes: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("VmHWM is not there")?
        .trim()
        .trim_end_matches(" kB")
        .parse()?;
    Ok(kibibytes / 1024.0)
}
