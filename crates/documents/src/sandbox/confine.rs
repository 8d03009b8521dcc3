//! Takes rights away from the process before it reads its first document.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

use super::MIB;
use super::child::Arguments;
use super::syscalls;

/// Which of the protections that depend on the kernel are in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protections {
    pub landlock: Landlock,
    pub seccomp: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Landlock {
    Full,
    /// An older kernel: files cannot be reached, but other things can.
    Partial,
    None,
}

/// The descriptors that a process keeps: standard input, output and error.
const DESCRIPTORS: u64 = 3;

/// Must be called first, while the process has one thread and no open files.
pub fn confine(arguments: &Arguments) -> io::Result<Protections> {
    die_with_parent(arguments.parent)?;
    close_descriptors_from(DESCRIPTORS);
    raise_oom_score();
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::As, arguments.memory_mb.saturating_mul(MIB))?;
    // The parent raises the soft limit with each document.
    limit(Resource::Cpu, total_cpu_seconds(arguments.cpu_seconds, arguments.documents))?;
    rustix::thread::set_no_new_privs(true)?;
    drop_capabilities()?;
    let landlock = if arguments.is_without("landlock") { Landlock::None } else { deny_files_and_network() };
    if !arguments.is_without("descriptors") {
        // From here on the process can open nothing.
        limit(Resource::Nofile, DESCRIPTORS)?;
    }
    let seccomp = !arguments.is_without("seccomp") && syscalls::restrict().is_ok();
    if !seccomp {
        // Without the filter, this prevents new processes, except for root.
        limit(Resource::Nproc, 0)?;
    }
    Ok(Protections { landlock, seccomp })
}

/// The kernel kills this process when the thread that started it ends, however it ends.
fn die_with_parent(parent: i32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid().map(Pid::as_raw_pid) == Some(parent) {
        return Ok(());
    }
    Err(io::Error::other("the process that started this one is gone"))
}

/// When the machine runs out of memory, the kernel should kill this process and not its parent. It may refuse the
/// score.
pub fn raise_oom_score() {
    drop(std::fs::write("/proc/self/oom_score_adj", "1000"));
}

/// Descriptors are not inherited unless a library forgot `O_CLOEXEC`. This closes those.
pub fn close_descriptors_from(first: u64) {
    let first = libc::c_uint::try_from(first).unwrap_or(libc::c_uint::MAX);
    // SAFETY: nothing has been opened in this process yet, so nothing owns a descriptor that is closed here. A kernel
    // that does not know the call returns an error and closes nothing.
    let _ = unsafe { libc::close_range(first, libc::c_uint::MAX, 0) };
}

/// The most processor time of a process for all its documents together, in seconds.
pub fn total_cpu_seconds(seconds: u64, documents: u64) -> u64 {
    at_most(Resource::Cpu, seconds.saturating_mul(documents.saturating_add(2)))
}

pub fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let most = at_most(resource, most);
    Ok(rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// A process cannot raise its own hard limit.
fn at_most(resource: Resource, most: u64) -> u64 {
    rustix::process::getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most))
}

/// So that a child of a root process has none of the rights of root.
pub fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// No file, no folder, no TCP port, no abstract socket, no signal to a process outside.
fn deny_files_and_network() -> Landlock {
    allow_only(&[], &[])
}

/// The same, except for reading below `readable` and writing to `writable`.
pub fn allow_only(readable: &[PathBuf], writable: &[PathBuf]) -> Landlock {
    let abi = ABI::V6;
    let write = AccessFs::ReadFile | AccessFs::WriteFile;
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(abi)))
        .and_then(|rules| rules.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        // Paths that do not exist are skipped.
        .and_then(|rules| rules.add_rules(path_beneath_rules(readable, AccessFs::from_read(abi))))
        .and_then(|rules| rules.add_rules(path_beneath_rules(writable, write)))
        .and_then(RulesetCreated::restrict_self);
    match restricted.map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => Landlock::Full,
        Ok(RulesetStatus::PartiallyEnforced) => Landlock::Partial,
        Ok(RulesetStatus::NotEnforced) | Err(_) => Landlock::None,
    }
}
