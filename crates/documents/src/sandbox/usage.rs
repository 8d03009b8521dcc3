//! The resources that a process has used, from `/proc`.

use std::time::Duration;

use rustix::process::Pid;

#[derive(Debug, Clone, Copy)]
pub struct Usage {
    pub cpu: Duration,
    pub resident_bytes: u64,
}

impl Usage {
    /// `None` if there is no such process.
    pub fn of(process: Pid) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name in parentheses may contain any character, so the fields are counted after it.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<u64> = rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        let (user, system, pages) = (fields.get(11)?, fields.get(12)?, fields.get(21)?);
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        Some(Self {
            cpu: Duration::from_millis((user + system) * 1_000 / ticks_per_second),
            resident_bytes: pages * rustix::param::page_size() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_is_read_also_if_the_name_of_the_process_has_parentheses() {
        let own = Usage::of(rustix::process::getpid()).expect("Linux has /proc");
        assert!(own.resident_bytes > 100_000, "{own:?}");
        let strange = "7 (a) b (c) R 1 7 7 0 -1 0 9 9 9 9 150 50 0 0 20 0 1 0 0 1000 3 0";
        let read = Usage::parse(strange).unwrap();
        assert_eq!(read.cpu, Duration::from_millis(200_000 / rustix::param::clock_ticks_per_second()));
        assert_eq!(read.resident_bytes, 3 * rustix::param::page_size() as u64);
    }
}
