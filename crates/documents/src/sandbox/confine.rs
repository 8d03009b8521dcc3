//! What a process takes away from itself before it meets its first document.

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

/// What of the protections this machine has that not every machine has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protections {
    pub landlock: Landlock,
    pub seccomp: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Landlock {
    Full,
    /// An older kernel: files are out of reach, but not all else.
    Partial,
    None,
}

/// The descriptors that a process keeps: what it is asked, what it answers, what it complains of.
const DESCRIPTORS: u64 = 3;

/// To be called first of all, while the process has one thread and nothing open.
pub fn confine(arguments: &Arguments) -> io::Result<Protections> {
    die_with_parent(arguments.parent)?;
    close_all_but_the_first(DESCRIPTORS);
    be_the_first_to_go();
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::As, arguments.memory_mb.saturating_mul(MIB))?;
    // The server moves the soft limit forward with each document.
    limit(Resource::Cpu, computing_in_all(arguments.cpu_seconds, arguments.documents))?;
    rustix::thread::set_no_new_privs(true)?;
    drop_capabilities()?;
    let landlock = if arguments.goes_without("landlock") { Landlock::None } else { hide_files_and_network() };
    if !arguments.goes_without("descriptors") {
        // From here on nothing can be opened at all.
        limit(Resource::Nofile, DESCRIPTORS)?;
    }
    let seccomp = !arguments.goes_without("seccomp") && syscalls::restrict().is_ok();
    if !seccomp {
        // Without a filter this is what there is against new processes. It does not hold root.
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
    Err(io::Error::other("whoever started this process is gone"))
}

/// When memory is short, the kernel is to take this process and not the server. It may say no; then it is a guess.
pub fn be_the_first_to_go() {
    drop(std::fs::write("/proc/self/oom_score_adj", "1000"));
}

/// Descriptors are not handed down unless somebody forgot to say so; this is for that case.
pub fn close_all_but_the_first(kept: u64) {
    let first = libc::c_uint::try_from(kept).unwrap_or(libc::c_uint::MAX);
    // SAFETY: nothing has been opened in this process yet, so nothing owns a descriptor that is closed here. A kernel
    // that does not know the call answers with an error and closes nothing.
    let _ = unsafe { libc::close_range(first, libc::c_uint::MAX, 0) };
}

/// The most computing of a process over all its documents, in seconds.
pub fn computing_in_all(seconds: u64, documents: u64) -> u64 {
    at_most(Resource::Cpu, seconds.saturating_mul(documents.saturating_add(2)))
}

pub fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let most = at_most(resource, most);
    Ok(rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Nobody can allow more than is allowed already.
fn at_most(resource: Resource, most: u64) -> u64 {
    rustix::process::getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most))
}

/// A server that runs as root has children that are root in name only.
pub fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// No file, no folder, no TCP port, no abstract socket, no signal to anybody outside: there is no rule that allows any.
fn hide_files_and_network() -> Landlock {
    hide_all_but(&[], &[])
}

/// The same, but for what is readable, with all in it, and what may be written to.
pub fn hide_all_but(readable: &[PathBuf], writable: &[PathBuf]) -> Landlock {
    let abi = ABI::V6;
    let write = AccessFs::ReadFile | AccessFs::WriteFile;
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(abi)))
        .and_then(|rules| rules.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        // What is not there needs no rule.
        .and_then(|rules| rules.add_rules(path_beneath_rules(readable, AccessFs::from_read(abi))))
        .and_then(|rules| rules.add_rules(path_beneath_rules(writable, write)))
        .and_then(RulesetCreated::restrict_self);
    match restricted.map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => Landlock::Full,
        Ok(RulesetStatus::PartiallyEnforced) => Landlock::Partial,
        Ok(RulesetStatus::NotEnforced) | Err(_) => Landlock::None,
    }
}
